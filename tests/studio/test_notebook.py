"""The studio in notebooks: what `poolgrad.studio` shows, the widget driven in a browser, and the example notebook executed."""

from __future__ import annotations

import importlib.util
import json
import sys
from typing import Any

import numpy as np
import pytest
from support import ROOT

import poolgrad as pg
from poolgrad.graph import Graph, GraphError, Scope, Session, ops

X = np.float32([[1, 5, 2, 0], [4, 3, 8, 6], [7, 2, 9, 1], [0, 3, 4, 5]])
NOTEBOOK = ROOT / "examples" / "studio.ipynb"


def widget(*args: Any, **words: Any) -> Any:
    """Return a widget; skip the test if there is no anywidget."""
    pytest.importorskip("anywidget", reason="anywidget, which shows pages in notebooks, is not installed")
    return pg.studio(*args, **words)


def test_a_call_makes_the_page_of_a_pool_and_its_gradient():
    shown = pg.studio(X, 2, g=[[10, 20], [30, 40]], static=True)
    page = shown.graph.pages[0]
    assert [node.op for node in page.nodes.values()] == ["Const", "max_pool", "Const", "max_pool_grad"]
    dx = Session(Scope.of(shown.graph, page.name)).run("dx")
    assert np.array_equal(dx, pg.vjp(lambda a: pg.max_pool(a, 2), X)[1](np.float32([[10, 20], [30, 40]])))
    assert dx[tuple(page.extra["show"]["at"])] == 0, "a zero is pinned"
    assert "<iframe" in shown._repr_html_()


@pytest.mark.parametrize(
    ("args", "words", "ops_shown"),
    [
        ((X.astype(np.int32), 2), {}, ["Const", "max_pool"]),
        ((X,), {"pool": "global_avg_pool"}, ["Const", "global_avg_pool", "Const", "global_avg_pool_grad"]),
        ((X,), {"pool": "fractional_max_pool", "ratio": 1.5}, ["Const", "fractional_max_pool", "Const", "fractional_max_pool_grad"]),
        ((X, 2), {"pool": "lp_pool", "p": 3}, ["Const", "lp_pool", "Const", "lp_pool_grad"]),
    ],
)  # fmt: skip
def test_every_kind_of_pool_is_shown(args, words, ops_shown):
    page = pg.studio(*args, static=True, **words).graph.pages[0]
    assert [node.op for node in page.nodes.values()] == ops_shown


def test_wrong_calls_are_refused_by_name(monkeypatch):
    with pytest.raises(GraphError, match=r"studio: pool: got 'mean', wanted one of max_pool, min_pool"):
        pg.studio(X, 2, pool="mean", static=True)
    with pytest.raises(GraphError, match=r"studio: window: got 2, wanted it with an array to pool only"):
        pg.studio(Scope.new_root_scope(), 2, static=True)
    with pytest.raises(GraphError, match=r"studio: window: got 2, wanted none: global_max_pool has no such argument"):
        pg.studio(X, 2, pool="global_max_pool", static=True)
    with pytest.raises(GraphError, match=r"max_pool: y: window"):
        pg.studio(X, 0, static=True)
    from poolgrad.studio import notebook

    monkeypatch.setitem(sys.modules, "anywidget", None)
    notebook._widget_class.cache_clear()
    with pytest.raises(
        ImportError, match=r"wanted anywidget>=0.9: run `pip install 'poolgrad\[notebook\]'`.*static=True"
    ):
        pg.studio(X, 2)
    notebook._widget_class.cache_clear()


def test_a_page_with_paths_is_refused_and_odd_messages_are_ignored(tmp_path):
    np.save(tmp_path / "x.npy", X)
    scope = Scope.new_root_scope()
    ops.File(scope.with_op_name("x"), tmp_path / "x.npy")
    with pytest.raises(GraphError, match=r"studio: x.file: got a path, wanted data that the page holds"):
        widget(scope)
    shown = widget(X, 2)
    before = shown.graph.to_dict()
    for message in (None, 7, {}, {"poolgrad": "run"}, {"poolgrad": "keep"}):
        shown._hear(shown, message, [b"{}"])
    assert shown.graph.to_dict() == before
    assert shown._app.ask("POST", "/api/run", b"[")[0] == 400
    assert shown._app.ask("GET", "/api/nothing", b"")[0] == 404


HOST = """
async (esm) => {
  const module = await import(`data:text/javascript;base64,${btoa(unescape(encodeURIComponent(esm)))}`);
  const heard = [];
  const model = {
    get: (name) => ({ height: 700, _page: window.studioPage })[name],
    on: (event, act) => heard.push(act), off: () => {},
    send: async (message, _, buffers) => {
      const body = buffers.length ? new TextDecoder().decode(buffers[0]) : '';
      const answer = await window.kernel(message, body);
      if (answer) for (const act of heard) act(answer[0], [new DataView(new TextEncoder().encode(answer[1]).buffer)]);
    },
  };
  module.default.render({ model, el: document.body });
}
"""


def test_the_widget_asks_the_kernel_and_keeps_what_was_changed(watch):
    """The widget's own module runs in a browser; a model like that of JupyterLab carries its messages to Python."""
    shown = widget(X, 2, g=[[10, 20], [30, 40]])
    sent: list[tuple[Any, bytes]] = []
    shown.send = lambda message, buffers=None: sent.append((message, bytes(buffers[0])))

    def kernel(message: Any, body: str) -> Any:
        sent.clear()
        shown._hear(shown, message, [body.encode()] if body else [])
        return [sent[0][0], sent[0][1].decode()] if sent else None

    watch.context.set_offline(True)
    page = watch.context.new_page()
    watch.follow(page)
    page.expose_function("kernel", kernel)
    page.set_content("<!doctype html><title>notebook</title>")
    page.evaluate("text => { window.studioPage = text; }", shown._page)
    page.evaluate(HOST, shown._esm)
    frame = page.frame_locator("iframe")
    frame.get_by_label("Explanation").locator(".reason").get_by_text("0 because").wait_for()
    cell = frame.locator('.inspector [aria-label="x[0,0] = 1"]')
    cell.dblclick()
    page.keyboard.type("99")
    page.keyboard.press("Enter")
    frame.locator('.inspector [aria-label="dx[0,0] = 10"]').wait_for()
    assert shown.graph.pages[0].nodes["x"].text["val"].startswith("99")
    frame.get_by_role("button", name="Add gradient").click()
    frame.locator('.block[data-id="dx_grad"] [data-tensor]').wait_for()
    assert "dx_grad" in shown.graph.pages[0].nodes


def test_the_example_notebook_runs(tmp_path):
    for name in ("anywidget", "nbclient", "ipykernel"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name}, which runs notebooks, is not installed")
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in book.cells), "the example is kept without outputs"
    done = NotebookClient(book, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    data = [out["data"] for cell in done.cells for out in cell.get("outputs", []) if "data" in out]
    assert sum("application/vnd.jupyter.widget-view+json" in found for found in data) == 2
    assert sum("text/html" in found for found in data) == 3, "each page shows without a widget, too"
    assert any("['Const', 'max_pool', 'Const', 'max_pool_grad']" in str(found.get("text/plain")) for found in data)
    assert Graph.from_json(json.loads(json.dumps(pg.studio(X, 2, static=True).graph.to_dict())))
