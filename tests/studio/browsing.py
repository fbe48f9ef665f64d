"""Which browser there is, and a watch over what a page asks for."""

from __future__ import annotations

import importlib.util
import shutil
from typing import Any
from urllib.parse import urlsplit

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
LOCAL = ("data", "blob", "file", "about")


def browser_path() -> str:
    """Where a browser is; skips the test if there is none to drive."""
    if importlib.util.find_spec("playwright") is None:
        pytest.skip("playwright, which drives the browser, is not installed here")
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None:
        pytest.skip("there is no Chromium on the PATH (`python tools/browser.py` installs it where it can)")
    return found


class Watch:
    """What a page asked for and complained about."""

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
        """Listens to a page."""
        page.on("pageerror", lambda error: self.errors.append(f"{error}\n{error.stack}"))
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)

    def clean(self) -> None:
        """Nothing was asked of another host, and nothing failed."""
        assert not self.foreign, f"requests to other hosts: {self.foreign}"
        assert not self.errors, f"errors on the page: {self.errors}"
