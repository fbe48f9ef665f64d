"""A studio on a free port, and a browser that may connect to nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from browsing import Watch, browser_path
from hands import PATIENCE

from poolgrad.graph import service
from poolgrad.studio.command import together
from poolgrad.studio.server import serve


@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    """Yield one browser for all tests here; it ends with them, because later tests fork."""
    path = browser_path()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Yield the address of a studio that shows four examples."""
    names = ("seed 003 repaired", "seed 003 as pictured", "seed 004 as pictured", "Your picture")
    found = {example["name"]: example for example in service.examples()}
    server, where = serve({"graph": together([found[name] for name in names]), "notes": [], "name": ""})
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield where
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def watch(chromium: Any, address: str) -> Iterator[Any]:
    """Yield a watched, fresh browser context; the test fails if it asks another host for anything."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    context.set_default_timeout(PATIENCE)
    watcher = Watch(context, urlsplit(address).netloc)
    watcher.context = context  # type: ignore[attr-defined]
    yield watcher
    context.close()
    watcher.clean()


@pytest.fixture
def page(watch: Any, address: str) -> Any:
    """Return the studio, with its first page run."""
    page = watch.context.new_page()
    watch.follow(page)
    page.goto(address)
    page.get_by_label("Status").get_by_text("ran").wait_for()
    return page
