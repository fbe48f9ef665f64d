"""Find a browser, and watch the requests and errors of a page."""

from __future__ import annotations

import importlib.util
import shutil
from typing import Any
from urllib.parse import urlsplit

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
LOCAL = ("data", "blob", "file", "about")


def browser_path() -> str:
    """Return the path of a browser; skip the test if there is none to drive."""
    if importlib.util.find_spec("playwright") is None:
        pytest.skip("playwright, which drives the browser, is not installed here")
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None:
        pytest.skip("there is no Chromium on the PATH (`python tools/browser.py` installs it where it can)")
    return found


class Watch:
    """The foreign requests and the errors of a page."""

    def __init__(self, context: Any, host: str) -> None:
        self.foreign: list[str] = []
        self.errors: list[str] = []
        self.host = host
        context.route("**/*", self._request)

    def _request(self, route: Any) -> None:
        url = urlsplit(route.request.url)
        if url.scheme in LOCAL or (url.scheme == "http" and url.netloc == self.host):
            route.continue_()
            return
        self.foreign.append(route.request.url)
        route.abort()

    def follow(self, page: Any) -> None:
        """Record the errors of a page."""
        page.on("pageerror", lambda error: self.errors.append(f"{error}\n{error.stack}"))
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)

    def clean(self) -> None:
        """Fail if the page sent a request to another host, or reported an error."""
        assert not self.foreign, f"requests to other hosts: {self.foreign}"
        assert not self.errors, f"errors on the page: {self.errors}"
