"""Show the studio in a notebook: the same page in a frame; the kernel answers its requests through the widget's messages."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._common.errors import short_repr
from .._pooling.named import POOLS, WORDS
from ..graph import Graph, GraphError, Scope, Session, html, ops
from ..graph.literals import numpy_type
from ..graph.scope import Operation, as_output
from . import page
from .command import opening
from .routes import App

if TYPE_CHECKING:
    from anywidget import AnyWidget

_HEIGHT = 720
_PLACES = {"x": (40.0, 40.0), "g": (40.0, 400.0), "y": (320.0, 40.0), "dx": (600.0, 40.0)}
_MISSING = (
    "studio: got no package anywidget, wanted anywidget>=0.9: run `pip install 'poolgrad[notebook]'` and restart the kernel, "
    "or show the page without it, unchangeable: studio(..., static=True)"
)

_ESM = """
export default {
  render({ model, el }) {
    const dark = document.body.dataset.jpThemeLight === 'false' || /vscode-(dark|high-contrast)(?!-light)/.test(document.body.className);
    const frame = document.createElement('iframe');
    frame.title = 'poolgrad studio';
    frame.setAttribute('sandbox', 'allow-scripts allow-downloads allow-modals');
    Object.assign(frame.style, { width: '100%', height: `${model.get('height')}px`, border: '1px solid #8884', borderRadius: '6px' });
    const hear = ({ source, data }) => {
      if (source !== frame.contentWindow || typeof data?.poolgrad !== 'string') return;
      model.send({ poolgrad: data.poolgrad, id: data.id, method: data.method, path: data.path }, undefined, data.body ? [new DataView(data.body)] : []);
    };
    const answer = (message, buffers) => {
      const [view] = buffers ?? [];
      const body = view ? view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength) : new ArrayBuffer(0);
      frame.contentWindow?.postMessage(message.error ? message : { ...message, body }, '*');
    };
    addEventListener('message', hear);
    model.on('msg:custom', answer);
    frame.srcdoc = model.get('_page').replace('<html lang="en"', `<html lang="en" data-theme="${dark ? 'dark' : 'light'}"`);
    el.append(frame);
    return () => { removeEventListener('message', hear); model.off('msg:custom', answer); };
  },
};
"""


class StaticPage:
    """A page with its results, for notebooks and files: pointing, stepping and formulas work, nothing can be changed.

    Parameters
    ----------
    graph : Graph
        The pages; each becomes a tab.
    paths : bool, default True
        True: blocks may read files.
    """

    def __init__(self, graph: Graph, paths: bool = True) -> None:
        self.graph, self._paths = graph, paths

    def to_html(self) -> str:
        """Return the page as one HTML file that fetches nothing."""
        return html.together([self.graph.only(found.name) for found in self.graph.pages], paths=self._paths)

    def _repr_html_(self) -> str:
        return html.framed(self.to_html(), self.graph.pages[0].name, html.table(self.graph, None, self._paths))


def studio(
    what: Any = None,
    window: Any = None,
    *,
    pool: str = "max_pool",
    g: Any = None,
    static: bool = False,
    height: int = _HEIGHT,
    **words: Any,
) -> Any:
    """Show a pool and its gradient, or a page of blocks, in a notebook.

    The page is the studio: point at a number to see where it came from, step through the windows, change numbers, texts and wires.
    The kernel computes; nothing is served on a port.

    Parameters
    ----------
    what : array_like, Scope, Graph, str or Path, optional
        The array to pool; or a page of `poolgrad.graph`; or the name of a file that `poolgrad studio` opens. Default: the examples.
    window : int or sequence of int, optional
        Only with an array: the window, for pools that have one.
    pool : str, default "max_pool"
        Only with an array: the name of the pool.
    g : array_like, optional
        Only with an array: the gradient at the result. Default: ones.
    static : bool, default False
        Return the page with its results instead of a widget: it needs no anywidget, and nothing can be changed.
    height : int, default 720
        The height in pixels.
    **words
        Only with an array: other arguments of the pool, such as `stride` or `ties`.

    Returns
    -------
    AnyWidget or StaticPage
        Shown if it is the last value of a cell. The widget has the attribute `graph`, the latest state of the document.

    Raises
    ------
    ImportError
        If anywidget is not installed and `static` is False.
    GraphError
        If the pool refuses its arguments.

    See Also
    --------
    max_pool, avg_pool, lp_pool : Pools that it shows.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> shown = pg.studio(np.arange(16.0).reshape(4, 4), 2, static=True)
    >>> [node.op for node in shown.graph.pages[0].nodes.values()]
    ['Const', 'max_pool', 'Const', 'max_pool_grad']
    """
    if window is not None:
        words["window"] = window
    graph, paths = _graph_of(what, pool, g, words)
    return StaticPage(graph, paths) if static else _widget_class()(graph, height, paths)


def _graph_of(what: Any, pool: str, g: Any, words: dict[str, Any]) -> tuple[Graph, bool]:
    """Return the pages to show, and whether their blocks may read files."""
    array = not (what is None or isinstance(what, (str, os.PathLike, Scope, Graph, Mapping)))
    if not array and (words or g is not None):
        name = next(iter(words), "g")
        raise GraphError(f"studio: {name}: got {short_repr(words.get(name, g))}, wanted it with an array to pool only")
    if isinstance(what, Scope):
        return what.graph.only(what.page.name), what.sources.paths
    if isinstance(what, Graph):
        return what, True
    if isinstance(what, Mapping):
        return Graph.from_json(dict(what)), False
    if not array:
        return Graph.from_json(opening(None if what is None else str(Path(what)))["graph"]), False
    if pool not in POOLS:
        raise GraphError(f"studio: pool: got {short_repr(pool)}, wanted one of {', '.join(POOLS)}")
    return _pooled(what, pool, g, words), False


def _pooled(x: Any, pool: str, g: Any, words: dict[str, Any]) -> Graph:
    """Return a page with an array, its pool and the gradient."""
    if POOLS[pool][1] == "fractional":
        words.setdefault("seed", 0)
    if "window" not in WORDS[POOLS[pool][1]] and "window" in words:
        raise GraphError(f"studio: window: got {short_repr(words['window'])}, wanted none: {pool} has no such argument")
    if pool == "lp_pool":
        words.setdefault("p", 2)
    scope = Scope.new_root_scope(pool)
    source = as_output(ops.Const(scope.with_op_name("x"), x if isinstance(x, np.ndarray) else np.asarray(x)))
    dtype = numpy_type(source.dtype or "float32")
    y = getattr(ops, pool)(scope.with_op_name("y"), source, **words)
    if dtype.kind not in "iub" and not {"dtype", "rounding"} & words.keys():
        weights = np.ones(as_output(y).shape or (), dtype) if g is None else np.asarray(g, dtype)
        given = ops.Const(scope.with_op_name("g"), weights)
        dx = getattr(ops, f"{pool}_grad")(scope.with_op_name("dx"), source, given, **words)
        scope.page.fetch.append(as_output(dx).name)
        _pin(scope, dx)
    elif g is not None:
        raise GraphError("studio: g: got a gradient, wanted none: integers and rounded results have no derivatives")
    for name, place in _PLACES.items():
        if name in scope.page.nodes:
            scope.page.nodes[name].at = place
    return scope.graph


def _pin(scope: Scope, dx: Operation) -> None:
    """Let the page begin with a zero of the gradient, if there is one: its reason is what people ask for."""
    zeros = np.argwhere(Session(scope).run(dx) == 0)
    at = zeros[len(zeros) // 2].tolist() if len(zeros) else [0] * len(as_output(dx).shape or ())
    scope.page.extra["show"] = {"cell": as_output(dx).name, "at": at}


@cache
def _page() -> str:
    """Return the whole studio as one HTML document that fetches nothing; its requests go to the frame that holds it."""
    files = page.static()
    style = files["viewer.css"][0] + files["studio.css"][0]
    parts = {"/*STYLE*/": style.decode(), "/*IMPORTMAP*/": html.importmap("notebook")}
    made = files["notebook.html"][0].decode()
    for gap, text in parts.items():
        made = made.replace(gap, text)
    return made


@cache
def _widget_class() -> type[AnyWidget]:
    """Return the class of the widget; made late, because anywidget is an extra."""
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise ImportError(_MISSING) from None

    class StudioWidget(anywidget.AnyWidget):
        """The studio in a notebook. `graph` is the latest state of the document."""

        _esm = _ESM
        _page = traitlets.Unicode(_page()).tag(sync=True)
        height = traitlets.Int(_HEIGHT).tag(sync=True)

        def __init__(self, graph: Graph, height: int, paths: bool) -> None:
            self._app = App("", 0, {"graph": embedded(graph, paths), "notes": [], "name": ""}, log=self._log)
            super().__init__(height=height)
            self.on_msg(self._hear)

        @property
        def graph(self) -> Graph:
            """Return the latest state of the document on the page."""
            return Graph.from_json(self._app.start["graph"])

        def _log(self, text: str) -> None:
            self.log.error(text)

        def _hear(self, widget: Any, content: Any, buffers: list[Any]) -> None:
            """Answer a request of the page, or keep its document."""
            if not isinstance(content, dict) or content.get("poolgrad") not in ("ask", "keep"):
                return
            body = bytes(buffers[0]) if buffers else b""
            if content["poolgrad"] == "keep":
                self._app.keep(body)
                return
            status, headers, answer = self._app.ask(str(content.get("method")), str(content.get("path")), body)
            said = {name: headers[name] for name in ("Content-Type", "Content-Disposition") if name in headers}
            self.send({"poolgrad": "answer", "id": content.get("id"), "status": status, "headers": said}, [answer])

        def _repr_mimebundle_(self, **kwargs: Any) -> Any:
            """Add the page without a kernel, for places that show no widgets."""
            bundle = super()._repr_mimebundle_(**kwargs)
            if bundle is None:
                return None
            data, metadata = bundle
            return {**data, "text/html": StaticPage(self.graph, False)._repr_html_()}, metadata

    return StudioWidget


def embedded(graph: Graph, paths: bool) -> dict[str, Any]:
    """Return the graph as JSON; refuse blocks that read paths, which a page may not name."""
    made = graph.to_dict()
    named = [
        f"{node['id']}.file"
        for found in made["pages"]
        for node in found["nodes"]
        if node.get("text", {}).get("file") and node["text"]["file"] not in made.get("data", {})
    ]
    if paths and named:
        raise GraphError(
            f"studio: {named[0]}: got a path, wanted data that the page holds: pass the array to a Const, or use static=True"
        )
    return made


__all__ = ["StaticPage", "studio"]
