"""A studio on a free port, and a browser that may speak to nobody else."""

from __future__ import annotations

import importlib.util
import shutil
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from poolgrad.studio.command import opening
from poolgrad.studio.server import serve

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


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One browser for all tests."""
    path = browser_path()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a studio that shows the examples."""
    server, where = serve(opening(None))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield where
    server.shutdown()
    server.server_close()
    thread.join()


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


@pytest.fixture
def watch(chromium: Any, address: str) -> Iterator[Any]:
    """A fresh browser context that is watched; the test fails if it asks another host for anything."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    context.set_default_timeout(10_000)
    watcher = Watch(context, urlsplit(address).netloc)
    watcher.context = context  # type: ignore[attr-defined]
    yield watcher
    context.close()
    watcher.clean()


@pytest.fixture
def page(watch: Any, address: str) -> Any:
    """The studio, with its first page run."""
    page = watch.context.new_page()
    watch.follow(page)
    page.goto(address)
    page.get_by_label("Status").get_by_text("ran").wait_for()
    return page
