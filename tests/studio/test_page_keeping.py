"""The page loses no work and gives none away: copies in the browser, saving without a server, a new token, lean exports."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest
from hands import PATIENCE, export, in_block, open_files, place, select, settled, turn, write

from poolgrad._common import png
from poolgrad.graph import Graph, service


class Process:
    """A studio as a process of its own, which can be stopped and started again at the same port."""

    def __init__(self) -> None:
        self.port = 0
        self.start()

    def start(self) -> str:
        words = [sys.executable, "-m", "poolgrad", "studio", "--no-browser", "--port", str(self.port)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)/#\S+", self.process.stdout.readline())
        assert found
        self.port, self.address = int(found[1]), found[0]
        return self.address

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=20)


@pytest.fixture
def mortal(chromium: Any) -> Iterator[tuple[Any, Any, Process]]:
    """Yield a page, its context, and its studio."""
    studio = Process()
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(studio.address)
    page.get_by_label("Status").get_by_text("ran").wait_for()
    yield page, context, studio
    context.close()
    studio.stop()


def kept(page: Any) -> None:
    """Wait until the browser has its copy."""
    page.evaluate(
        "() => new Promise((done) => setTimeout(() => studio.autosave.queue.then(() => setTimeout(() => studio.autosave.queue.then(done), 50)), 400))"
    )


def val(page: Any) -> Any:
    return page.get_by_label("g val", exact=True).input_value()


def test_work_that_was_not_saved_is_offered_again_after_a_reload(page):
    turn(page, "seed 003 repaired")
    write(page, "g", val="30,4,5,6")
    kept(page)
    page.on("dialog", lambda dialog: dialog.accept())
    page.reload()
    page.get_by_role("button", name="Restore").click()
    settled(page)
    assert val(page) == "30,4,5,6"
    assert in_block(page, "dx.output")["0,1,1,1,0"] == "30"
    page.get_by_label("Canvas", exact=True).focus()
    page.keyboard.press("Control+z")
    assert val(page) == "3,4,5,6", "a restored document is one step"


def test_work_that_was_saved_or_discarded_is_not_offered(page, tmp_path):
    write(page, "g", val="30,4,5,6")
    kept(page)
    export(page, "Save", tmp_path)
    kept(page)
    page.reload()
    page.get_by_label("Status").get_by_text("ran").wait_for()
    page.evaluate("() => studio.autosave.queue")
    assert page.get_by_label("Unsaved work").count() == 0


def test_a_stopped_server_loses_nothing_and_a_new_token_is_taken_over(mortal, tmp_path):
    page, context, studio = mortal
    studio.stop()
    write(page, "g", val="70,20,30,40")
    page.locator(".status.bad").get_by_text("does not answer").wait_for()
    page.get_by_label("Canvas", exact=True).focus()
    with page.expect_download() as waiting:
        page.keyboard.press("Control+s")
    target = tmp_path / "saved.json"
    waiting.value.save_as(target)
    saved = Graph.from_json(target.read_text("utf-8"))
    assert saved.page("Why is this gradient zero?").nodes["g"].text["val"] == "70,20,30,40"
    address = studio.start()
    other = context.new_page()
    other.goto(address)
    other.get_by_label("Status").get_by_text("ran").wait_for()
    page.bring_to_front()
    page.wait_for_function("() => studio.store.tensors?.get('dx.output')?.values[4] === 70")
    assert val(page) == "70,20,30,40"


def test_a_new_address_pasted_into_the_tab_is_taken_over_without_a_reload(mortal):
    page, _, studio = mortal
    studio.stop()
    address = studio.start()
    write(page, "g", val="70,20,30,40")
    page.locator(".status.bad").get_by_text("started again").wait_for()
    page.evaluate("hash => { location.hash = hash; }", address.partition("#")[2])
    page.wait_for_function("() => studio.store.tensors?.get('dx.output')?.values[4] === 70")


def test_a_program_that_took_the_port_gets_nothing_of_the_document(mortal):
    page, _, studio = mortal
    page.wait_for_load_state("networkidle")  # a request for which the studio proved itself may still be on its way
    studio.stop()
    heard: list[bytes] = []

    class Impostor(BaseHTTPRequestHandler):
        """Answer everything, and keep what comes."""

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"proof": "00"}')

        def do_POST(self) -> None:
            heard.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", studio.port), Impostor)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    write(page, "g", val="70,20,30,40")
    page.locator(".status.bad").get_by_text("started again").wait_for()
    server.shutdown()
    server.server_close()
    thread.join()
    assert heard == []
    studio.start()


def test_opening_a_file_is_one_step_that_undo_takes_back(page, tmp_path):
    turn(page, "seed 003 repaired")
    write(page, "g", val="30,4,5,6")
    path = tmp_path / "other.json"
    path.write_text(json.dumps(service.new_graph()))
    open_files(page, path)
    assert page.evaluate("() => studio.store.doc.pages.map((p) => p.name)") == ["page"]
    page.get_by_label("Canvas", exact=True).focus()
    page.keyboard.press("Control+z")
    settled(page)
    assert val(page) == "30,4,5,6"
    assert in_block(page, "dx.output")["0,1,1,1,0"] == "30"
    page.keyboard.press("Control+y")
    assert page.evaluate("() => studio.store.doc.pages.map((p) => p.name)") == ["page"]


def test_undo_of_a_closed_page_shows_that_page(page):
    turn(page, "seed 003 as pictured")
    page.get_by_label("Close seed 003 as pictured").click()
    page.get_by_label("Canvas", exact=True).focus()
    page.keyboard.press("Control+z")
    settled(page)
    assert page.evaluate("() => studio.store.page.name") == "seed 003 as pictured"


def test_a_deleted_picture_and_other_pages_are_in_no_export(page, tmp_path):
    path = tmp_path / "secret.png"
    png.write(path, np.arange(48, dtype=np.uint8).reshape(4, 4, 3))
    page.get_by_label("New page").click()
    for name in (path, tmp_path / "kept.png"):
        png.write(name, np.arange(48, dtype=np.uint8).reshape(4, 4, 3) + np.uint8(name.stem == "kept"))
        open_files(page, name)
        page.wait_for_function("name => studio.store.page.nodes.length === name", arg=1 if name is path else 2)
    settled(page)
    names = page.locator(".block .file").all_inner_texts()
    assert sorted(names) == ["kept.png", "secret.png"], "blocks show the names of files"
    places = page.evaluate("() => studio.store.page.nodes.map((n) => n.at.join())")
    assert len(set(places)) == 2, "each at a place of its own"
    first = page.evaluate("() => studio.store.page.nodes[0].id")
    select(page, first)
    page.keyboard.press("Delete")
    settled(page)
    for kind in ("JSON", "HTML", "Python", "Save"):
        content = export(page, kind, tmp_path).read_bytes()
        assert b"kept.png" in content or kind == "Python"
        assert b"secret.png" not in content, kind
        if kind != "Save":
            assert b"seed 003" not in content, kind


def test_a_saved_file_has_the_bytes_that_python_writes(page):
    doc = page.evaluate(
        """() => { const { doc } = studio.store; return { ...doc, note: { b: 'ä😀', a: [1.5, true, null] }, pages: [{ ...doc.pages[0], name: 'ü "x"' }, ...doc.pages.slice(1)] }; }"""
    )
    text = page.evaluate("async (doc) => (await import('poolgrad/save')).written(doc)", doc)
    assert text == Graph.from_json(doc).to_json()


@pytest.mark.parametrize(
    ("graph", "why"),
    [
        ({"nodes": [{"id": "a b", "op": "Const"}]}, "no block"),
        ({"nodes": [{"id": "a", "op": "Const"}], "wires": 5}, "no list"),
        ({"nodes": [{"id": "a", "op": "Const"}], "wires": [["a.output", "b"]]}, "no wire"),
        ({"nodes": [{"id": "a", "op": "Const", "at": [None, 3]}]}, "no block"),
    ],
    ids=["id", "wires", "wire", "place"],
)
def test_pasted_json_that_is_no_graph_is_refused_with_the_reason(page, graph, why):
    before = page.evaluate("() => JSON.stringify(studio.store.doc)")
    text = json.dumps({"format": "poolgrad-graph", "version": 1, "pages": [{"name": "x", **graph}]})
    page.evaluate(
        """(text) => { const data = new DataTransfer(); data.setData('text/plain', text);
        document.querySelector('.canvas').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true })); }""",
        text,
    )
    assert why in page.get_by_label("Status").inner_text()
    assert page.evaluate("() => JSON.stringify(studio.store.doc)") == before


def test_typing_into_another_block_leaves_the_pinned_cell_in_view(page):
    turn(page, "seed 003 repaired")
    select(page, "dx")
    page.get_by_label("dx[0,0,0,0,0] = 0", exact=True).click()
    page.get_by_label("x val", exact=True).focus()
    assert page.get_by_label("Inspector").locator("h2").inner_text() == "dx.output"


def test_a_long_run_says_so_and_can_be_cancelled(page):
    page.get_by_label("New page").click()
    x = place(page, "Random")
    settled(page)  # the run of the new block: on a slow machine it says "running" too
    held: list[Any] = []  # the first run, to the end: `unroute` would send it on its way, cancelled or not

    def hold_the_first(route: Any) -> None:
        if held:
            route.fallback()
        else:
            held.append(route)

    page.route("**/api/run", hold_the_first)
    write(page, x, shape="1,3,3,1")
    page.get_by_label("Status").get_by_text("running").wait_for()
    page.get_by_label("Status").get_by_role("button", name="Cancel").click()
    page.get_by_label("Status").get_by_text("Cancelled").wait_for()
    write(page, x, shape="1,2,2,1")
    settled(page)
    assert page.evaluate("id => studio.store.tensors.get(`${id}.output`).shape", x) == [1, 2, 2, 1]
