"""A page in an address, and the static build: opened from disk and from a plain host, with no request to anywhere."""

from __future__ import annotations

import base64
import functools
import json
import threading
import zlib
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from hands import place, reason, rename, settled, turn, write

from poolgrad.cli import main


def packed(text: str | bytes) -> str:
    """Return a text as an address holds it."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    raw = squeeze.compress(text if isinstance(text, bytes) else text.encode()) + squeeze.flush()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


ALONE = "() => window.studio?.store.doc.pages.length === 1"


def copied(page: Any) -> str:
    """Copy the link of the page, and return it."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Export").click()
    page.get_by_role("menuitem", name="Export Copy link", exact=True).click()
    page.get_by_label("Status").get_by_text("Copied a link").wait_for()
    return str(page.evaluate("() => navigator.clipboard.readText()"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the static build."""
    path = tmp_path_factory.mktemp("static") / "studio.html"
    assert main(["studio", "--write", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def host(built: Path) -> Iterator[str]:
    """Yield the address of a plain web host that serves the static build."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(built.parent)))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/studio.html"
    server.shutdown()
    server.server_close()


def opened(watch: Any, url: str) -> tuple[Any, list[str]]:
    """Open an address; return the page and all requests of it but modules that it holds itself."""
    page, asked = watch.context.new_page(), []
    page.on("request", lambda request: asked.append(request.url) if not request.url.startswith("data:") else None)
    watch.follow(page)
    page.goto(url)
    return page, asked


def understood(page: Any) -> None:
    """Point, step and read a formula, on the first page."""
    page.get_by_label("Explanation").locator(".reason").wait_for()
    assert reason(page) == "0 because 11 < 15"
    assert page.get_by_label("Explanation").locator(".formula").inner_text() == "dx[0,3,2,0] = 40·0 = 0"
    steps = page.get_by_role("group", name="Step through windows")
    for count in range(1, 4):
        steps.get_by_label("Next window").click()
        assert f"{count} of 4" in steps.inner_text()
    cell = page.locator('.inspector [data-tensor="dx.output"] [data-cell]').first
    cell.hover()


def test_the_static_build_lives_from_disk_without_a_request(watch, built):
    page, asked = opened(watch, built.as_uri())
    understood(page)
    names = page.locator('[role="tab"]').all_inner_texts()
    assert len(names) == 8
    for name in names[1:]:
        page.get_by_label(f"Page {name}", exact=True).click()
        page.locator(".canvas .block").first.wait_for()
    assert asked == [built.as_uri()]


def test_the_static_build_lives_on_a_plain_host(watch, host):
    watch.host = urlsplit(host).netloc
    page, asked = opened(watch, host)
    understood(page)
    assert [url for url in asked if not url.endswith("/favicon.ico")] == [host]


def test_a_link_opens_in_the_studio_and_in_the_static_build(page, watch, built, address):
    turn(page, "seed 003 repaired")
    link = copied(page)
    assert "token" not in link
    assert len(link) < 16_100
    page.evaluate("hash => { location.hash = hash; }", link.partition("#")[2])
    page.wait_for_function(ALONE)
    settled(page)
    assert page.get_by_role("tab", name="seed 003 repaired").count() == 1
    other, _ = opened(watch, link)  # a tab without a token, beside one that has it
    other.wait_for_function(ALONE)
    settled(other)
    alone, asked = opened(watch, f"{built.as_uri()}#{link.partition('#')[2]}")
    assert alone.locator('[role="tab"]').first.inner_text() == "seed 003 repaired"
    alone.get_by_label("dx[0,0,1,1,0] = 0", exact=True).first.hover()
    assert reason(alone) == "0 because 7 < 15"
    assert len(asked) == 1


def test_a_large_page_is_refused_a_link(page):
    page.get_by_label("New page").click()
    rename(page, place(page, "Const"), "x")
    write(page, "x", val=",".join(f"{v:.6f}" for v in np.random.default_rng(1).random(5000)), shape="[5000]")
    settled(page)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Export").click()
    page.get_by_role("menuitem", name="Export Copy link", exact=True).click()
    page.get_by_label("Status").get_by_text("characters in an address, which holds at most 16000").wait_for()


GRAPH = {"format": "poolgrad-graph", "version": 1, "pages": [{"name": "p", "nodes": [], "wires": [], "fetch": []}]}
NODE = {"status": "ok", "links": None, "conservation": None, "outputs": {
    "output": {"shape": [4], "dtype": "float32", "role": "value", "axes": ["W"], "ref": "r", "stats": {}, "values": {"type": "float32", "b64": "AAAA"}}}}  # fmt: skip
HOSTILE = {
    "a bomb": packed(b"a" * 8_000_000),
    "no code": "%00<script>",
    "cut off": packed(json.dumps({"graph": GRAPH}))[:-9],
    "no page": packed("[]"),
    "no blocks": packed(json.dumps({"graph": {**GRAPH, "pages": [{"name": "p", "nodes": [{"id": "a b", "op": "x"}]}]}})),
    "wires": packed(json.dumps({"graph": {**GRAPH, "pages": [{"name": "p", "nodes": [], "wires": 5}]}})),
    "too long": "A" * 20_000,
    "results": packed(json.dumps({"graph": GRAPH, "run": {"page": "p", "order": [], "problems": [], "warnings": [], "nodes": {"x": NODE}}})),
}  # fmt: skip


def test_hostile_addresses_are_refused_with_a_reason(page, watch, built):
    before = page.evaluate("() => studio.store.doc.pages.length")
    for what, code in HOSTILE.items():
        page.evaluate("code => { location.hash = `page=${code}`; }", code)
        page.get_by_label("Status").get_by_text("This address holds no page").wait_for()
        assert page.evaluate("() => studio.store.doc.pages.length") == before, what
        page.evaluate("() => studio.say('next')")
    for what in ("a bomb", "results", "wires"):
        alone, _ = opened(watch, f"{built.as_uri()}#page={HOSTILE[what]}")
        assert "This address holds no page" in alone.get_by_role("alert").inner_text()
        assert alone.locator('[role="tab"]').count() == 8, what
        alone.close()
