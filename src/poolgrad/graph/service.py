"""Serve the studio's server and the command line: JSON in, JSON out. Raise GraphError for malformed input."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.errors import short_repr
from .._explain.sentences import phrases
from . import edits, embedded_files, report
from .blocks import BLOCKS, GROUPS, Block, Pin
from .check import check as check_page
from .check import check_node
from .embedded_files import Sources
from .executor import Cache, Run, execute, with_feeds
from .model import Graph, GraphError, Json, Limits, Node, Page, refuse
from .repair import repaired
from .seen import Checked, Seen
from .text import DTYPES, TextError

Array = npt.NDArray[Any]
Lock = AbstractContextManager[
    Any
]  # guards a cache that others use too: held while blocks run, not while texts and files are read
FREE: Lock = nullcontext()
__all__ = ["Cache", "GraphError", "check", "embed", "examples", "export", "gradients", "import_", "new_graph", "ops",
           "parse", "repair", "run", "tensor", "tensor_npy"]  # fmt: skip


# ---- blocks


def ops() -> Json:
    """Return every block with its pins, the palette's groups, and the phrases of explanations."""
    blocks = [_block(block) for block in BLOCKS.values()]
    return {"blocks": blocks, "groups": list(GROUPS), "phrases": phrases(), "dtypes": list(DTYPES)}


def _block(block: Block) -> Json:
    row = block.row
    found: Json = {"op": block.op, "group": block.group, "doc": block.doc, "pins": [_pin(pin) for pin in block.pins],
                   "outputs": [{"name": name, "doc": ""} for name in block.outputs]}  # fmt: skip
    facts: Json = {"family": None, "order": None, "rank": None, "formats": [], "dtypes": [], "link": None}
    if row is not None:
        facts = {"family": row.family, "order": row.order, "rank": row.spatial + 2, "formats": list(row.formats),
                 "dtypes": list(row.dtypes), "link": f"docs/ops/{row.name}.md"}  # fmt: skip
    return found | facts


def _pin(pin: Pin) -> Json:
    return {
        "name": pin.name, "kind": pin.kind, "type": pin.type, "required": pin.required, "default": pin.default,
        "example": pin.example, "doc": pin.doc, "words": None if pin.words is None else list(pin.words),
        "dtypes": None if pin.dtypes is None else list(pin.dtypes), "rank": pin.rank, "blank": pin.blank,
    }  # fmt: skip


def parse(op: str, pin: str, text: str) -> Json:
    """Parse one text while the user types it.

    Parameters
    ----------
    op, pin : str
        The kind of block, and its text pin.
    text : str
        The text.

    Returns
    -------
    dict
        `value`, or None and a `problem` with its place, its sentence and a corrected text.

    Raises
    ------
    GraphError
        If there is no such block or text pin.

    Examples
    --------
    >>> parse("MaxPool", "ksize", "1,2,2,1")
    {'value': [1, 2, 2, 1], 'problem': None}
    """
    block = BLOCKS.get(op) if isinstance(op, str) else None
    found = block.pin(pin) if block else None
    if found is None or found.read is None or not isinstance(text, str):
        refuse("parse", short_repr([op, pin]), "a block and one of its text pins")
    try:
        value = found.read(text if text.strip() else found.blank)
    except TextError as error:
        said = {"at": error.at, "length": error.length, "got": error.got, "expected": error.wanted, "fix": error.fix}
        return {"value": None, "problem": said | {"sentence": f"{pin}, {error}"}}
    return {"value": value, "problem": None}


# ---- check and run


def limited(graph: Json, limits: Limits) -> Graph:
    """Read a graph from JSON and set the limits of its pages."""
    opened = Graph.from_json(graph)
    opened.limits = limits
    return opened


def _opened(graph: Json | Graph, page: str | None) -> tuple[Graph, Page]:
    if not isinstance(graph, (Graph, dict)):
        refuse("graph", short_repr(graph), "an object")
    opened = graph if isinstance(graph, Graph) else Graph.from_json(graph)
    return opened, opened.page(page)


def check(graph: Json | Graph, page: str | None = None, cache: Cache | None = None, paths: bool = False,
          lock: Lock = FREE) -> Json:  # fmt: skip
    """Check a page; with a cache, run it too and add warnings about values.

    Parameters
    ----------
    graph : dict or Graph
        The graph, or its JSON object.
    page : str or None
        The name of the page; None: the first page.
    cache : Cache, optional
        Keeps results between calls.
    paths : bool, default False
        True: blocks may read files. False: only data that the graph embeds.
    lock : context manager, optional
        Held while blocks run, if others use the cache too.

    Returns
    -------
    dict
        Per block its status, shapes and types; all problems and warnings, each with its repair.

    Raises
    ------
    GraphError
        If the graph is malformed.

    Examples
    --------
    >>> check(new_graph())
    {'page': 'page', 'nodes': {}, 'problems': [], 'warnings': []}
    """
    opened, chosen = _opened(graph, page)
    sources = Sources.of(opened, paths)
    found = check_page(chosen, sources)
    if cache is None:
        return _checked(chosen, found, None)
    with lock:
        return _checked(chosen, found, execute(chosen, sources, cache, checked=found))


def _checked(page: Page, found: Checked, done: Run | None) -> Json:
    nodes, taken = {}, report.users_of(found)
    for name, seen in found.seen.items():
        outputs = {pin: report.outline(spec, report.described(found, f"{name}.{pin}", taken))
                   for pin, spec in seen.outputs.items()}  # fmt: skip
        nodes[name] = {"status": done.blocks[name].status if done else seen.status, "outputs": outputs}
    return {"page": page.name, "nodes": nodes, "problems": [report.problem(p) for p in repaired(page, found)],
            "warnings": [report.problem(p) for p in repaired(page, found, done.warnings)] if done else []}  # fmt: skip


def run(graph: Json | Graph, page: str | None = None, cache: Cache | None = None, feeds: Mapping[str, Any] | None = None,
        limit: int = 16384, paths: bool = False, lock: Lock = FREE) -> Json:  # fmt: skip
    """Run a page.

    Parameters
    ----------
    graph : dict or Graph
        The graph, or its JSON object.
    page : str or None
        The name of the page; None: the first page.
    cache : Cache, optional
        Keeps results between calls.
    feeds : mapping, optional
        Arrays by the name of their placeholder.
    limit : int, default 16384
        Arrays of more cells come without their values; ask for them with `tensor`.
    paths : bool, default False
        True: blocks may read files. False: only data that the graph embeds.
    lock : context manager, optional
        Held while blocks run, if others use the cache too.

    Returns
    -------
    dict
        Per block its status, time, arrays and links between cells; all problems and warnings.

    Raises
    ------
    GraphError
        If the graph is malformed.

    Examples
    --------
    >>> run(new_graph())["nodes"]
    {}
    """
    opened, chosen = _opened(graph, page)
    cache = cache if cache is not None else Cache()
    sources = with_feeds(Sources.of(opened, paths), feeds or {})
    found = check_page(chosen, sources)
    with lock:
        done = execute(chosen, sources, cache, checked=found)
        linked = report.Linked(opened.limits)
        taken = report.users_of(done.checked)
        nodes = {name: _ran(name, taken, done, limit, linked) for name in done.checked.seen}
    fresh = [ran for ran in done.blocks.values() if ran.kept is not None]
    return {
        "page": chosen.name, "ms": round(done.ms, 3), "ran": sum(not ran.cached for ran in fresh),
        "cached": sum(ran.cached for ran in fresh), "order": done.checked.order, "nodes": nodes,
        "problems": [report.problem(p) for p in repaired(chosen, done.checked)],
        "warnings": [report.problem(p) for p in repaired(chosen, done.checked, done.warnings)],
    }  # fmt: skip


def _ran(name: str, taken: report.Users, done: Run, limit: int, linked: report.Linked) -> Json:
    seen, ran = done.checked.seen[name], done.blocks[name]
    about = {pin: report.described(done.checked, f"{name}.{pin}", taken) for pin in seen.outputs}
    outputs: Json = {pin: report.outline(spec, about[pin]) for pin, spec in seen.outputs.items()}
    links = kept = None
    if ran.kept is not None:
        for pin, array in ran.kept.outputs.items():
            spec = {"role": about[pin]["role"], "axes": report.axes(about[pin]["axes"], array.ndim)}
            outputs[pin] = report.tensor(array, spec, limit, f"{ran.key}.{pin}")
        links, kept = report.relation(name, seen, ran, done, linked)
    return {"status": ran.status, "cached": ran.cached, "ms": round(ran.ms, 3), "outputs": outputs, "links": links,
            "conservation": kept}  # fmt: skip


def _held(cache: Cache, ref: str) -> Array:
    key, _, pin = ref.partition(".") if isinstance(ref, str) else ("", "", "")
    kept = cache.get(key)
    if kept is None or pin not in kept.outputs:
        refuse("tensor", short_repr(ref), "the ref of a tensor that has run")
    return kept.outputs[pin]


def tensor(cache: Cache, ref: str, slice: Any = None) -> Json:
    """Return a result of the cache, or a slice of it.

    Parameters
    ----------
    cache : Cache
        The cache of a run.
    ref : str
        The reference of the result in that run.
    slice : list of [start, stop], optional
        A range per dimension.

    Returns
    -------
    dict
        `shape`, `dtype` and `values`.

    Raises
    ------
    GraphError
        If the cache has no such result, or the slice does not fit.
    """
    array = _held(cache, ref)
    if slice is not None:
        pairs = slice if isinstance(slice, (list, tuple)) else []
        fine = len(pairs) == array.ndim and all(
            isinstance(p, (list, tuple)) and len(p) == 2 and all(type(v) is int and v >= 0 for v in p) for p in pairs
        )
        if not fine:
            refuse("slice", short_repr(slice), f"[start, stop] for each of {array.ndim} dimensions")
        array = array[tuple(map(_span, pairs))]
    return {"shape": list(array.shape), "dtype": array.dtype.name, "values": report.numbers(array)}


def _span(pair: Any) -> Any:
    return np.s_[pair[0] : pair[1]]


def tensor_npy(cache: Cache, ref: str) -> bytes:
    """Return a result of the cache as the bytes of a .npy file.

    Parameters
    ----------
    cache : Cache
        The cache of a run.
    ref : str
        The reference of the result in that run.

    Returns
    -------
    bytes
        The file.

    Raises
    ------
    GraphError
        If the cache has no such result.
    """
    stream = io.BytesIO()
    np.save(stream, _held(cache, ref), allow_pickle=False)
    return stream.getvalue()


# ---- changes


def repair(graph: Json | Graph, page: str | None, changes: Any) -> Json:
    """Return the graph with edits applied.

    Parameters
    ----------
    graph : dict or Graph
        The graph, or its JSON object.
    page : str or None
        The name of the page; None: the first page.
    changes : list of dict
        The edits, as in `Repair.edits`.

    Returns
    -------
    dict
        The JSON object of the new graph.

    Raises
    ------
    GraphError
        If the graph is malformed, or an edit does not fit the page.
    """
    opened, chosen = _opened(graph, page)
    edits.apply(chosen, changes)
    return opened.to_dict()


def new_graph() -> Json:
    """Return a graph with one empty page."""
    return Graph().to_dict()


def embed(name: str, raw: bytes) -> Json:
    """Make an uploaded file graph data.

    Parameters
    ----------
    name : str
        The name of the file; it ends in .npy or .png.
    raw : bytes
        Its content.

    Returns
    -------
    dict
        `data` for the graph, the `node` that reads it, and the array's `shape` and `dtype`.

    Raises
    ------
    GraphError
        If the file cannot be read.
    """
    try:
        ref, entry, array = embedded_files.embed(name, raw)
    except ValueError as error:
        raise GraphError(f"upload: {error}") from None
    op = "Image" if Path(name).suffix.lower() == ".png" else "File"
    text = {"file": ref} | ({"dtype": "DT_FLOAT"} if op == "Image" else {})
    seen = Checked({"upload": Seen(BLOCKS[op])})
    check_node(Node("upload", op, text), seen, Sources({ref: entry}, False))
    spec = seen.seen["upload"].outputs["output"]
    return {
        "data": {ref: entry},
        "node": {"op": op, "text": text},
        "shape": list(spec.shape or array.shape),
        "dtype": spec.dtype,
    }


def gradients(graph: Json | Graph, page: str | None, y: str, x: str) -> Json:
    """Return the graph with added blocks that compute the derivative of y with respect to x.

    Parameters
    ----------
    graph : dict or Graph
        The graph, or its JSON object.
    page : str or None
        The name of the page; None: the first page.
    y, x : str
        Names of outputs, such as `pool.output`.

    Returns
    -------
    dict
        The JSON object of the new graph.

    Raises
    ------
    GraphError
        If the graph is malformed, or y has no derivative with respect to x.
    """
    from .derive import gradients as derived
    from .scope import Scope

    opened, chosen = _opened(graph, page)
    if not isinstance(y, str) or not isinstance(x, str):
        refuse("gradients", short_repr([y, x]), "two outputs like 'y.output' and 'x.output'")
    scope = Scope.of(opened, chosen.name, paths=False)
    old = set(chosen.nodes)
    scope._state.collect = False
    made = derived(scope.output(y), scope.output(x))
    _arrange(chosen, [node for name, node in chosen.nodes.items() if name not in old])
    chosen.fetch.append(made.name)
    return opened.to_dict()


def _arrange(page: Page, fresh: list[Node]) -> None:
    """Place new blocks in a column to the right of the others."""
    places = [node.at for node in page.nodes.values() if node.at is not None]
    if not places:
        return
    left = max(at[0] for at in places) + 260
    for i, node in enumerate(fresh):
        node.at = (left + 260 * (i // 3), 24 + 280 * (i % 3))


# ---- files


def examples() -> list[Json]:
    """Return the example pages of the package."""
    folder = files("poolgrad").joinpath("data", "examples")
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".json")), key=lambda entry: entry.name)
    graphs = [Graph.from_json(entry.read_text("utf-8")) for entry in found]
    return [{"name": graph.pages[0].name, "graph": graph.to_dict()} for graph in graphs]


def export(graph: Json | Graph, page: str | None = None, kind: str = "json", cache: Cache | None = None,
           paths: bool = False, lock: Lock = FREE) -> tuple[bytes, str, str]:  # fmt: skip
    """Export a page.

    Parameters
    ----------
    graph : dict or Graph
        The graph, or its JSON object.
    page : str or None
        The name of the page; None: the first page.
    kind : {'json', 'python', 'html', 'npz'}, default 'json'
        The kind of file.
    cache : Cache, optional
        Keeps results between calls.
    paths : bool, default False
        True: blocks may read files. False: only data that the graph embeds.
    lock : context manager, optional
        Held while blocks run, if others use the cache too.

    Returns
    -------
    content : bytes
        The content of the file.
    name : str
        The name of the file.
    media : str
        Its media type.

    Raises
    ------
    GraphError
        If the graph is malformed, or there is no such kind of file.

    Examples
    --------
    >>> export(new_graph())[1:]
    ('page.json', 'application/json')
    """
    from . import export as exporting
    from . import html

    opened, chosen = _opened(graph, page)
    makers: dict[str, tuple[str, str, Callable[[], str | bytes]]] = {
        "json": ("json", "application/json", opened.to_json),
        "python": ("py", "text/x-python", lambda: exporting.python(opened, chosen)),
        "html": ("html", "text/html", lambda: html.standalone(opened, chosen.name, cache, paths, lock)),
        "npz": ("npz", "application/octet-stream", lambda: exporting.npz(opened, chosen, cache, paths, lock)),
    }
    if not isinstance(kind, str) or kind not in makers:
        refuse("export", short_repr(kind), " or ".join(makers))
    suffix, media, make = makers[kind]
    made = make()
    return made.encode() if isinstance(made, str) else made, exporting.filename(chosen.name, suffix), media


def import_(given: Mapping[str, bytes]) -> Json:
    """Read a graph from files.

    Parameters
    ----------
    given : mapping of str to bytes
        Contents by file name: a graph of poolgrad, or an enuSpace page (.svg with its .dat, or its .json).

    Returns
    -------
    dict
        The `graph`, and `notes` about everything that could not be taken over.

    Raises
    ------
    GraphError
        If no file holds a graph.
    """
    from . import enuspace

    graph, notes = enuspace.load(given)
    return {"graph": graph.to_dict(), "notes": notes}
