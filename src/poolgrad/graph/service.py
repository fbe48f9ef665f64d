"""Serve the studio's server and the command line: JSON in, JSON out. Raise GraphError for malformed input."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.errors import short_repr
from .._windows.cells import window_axes
from . import edits, embedded_files, html, report
from . import export as exporting
from .answers import FREE, Lock, check, opened_page, ops, run
from .blocks import BLOCKS
from .check import check_node
from .derive import gradients as derived
from .embedded_files import Sources
from .executor import Cache
from .model import Graph, GraphError, Json, Limits, Node, Page, refuse
from .scope import Scope
from .seen import Checked, Seen
from .text import TextError

Array = npt.NDArray[Any]
_COLUMN, _ROW = 276, 400  # pixels between new blocks
__all__ = ["Cache", "GraphError", "check", "embed", "examples", "export", "gradients", "hits", "import_", "new_graph", "ops",
           "parse", "repair", "run", "tensor", "tensor_npy"]  # fmt: skip


# ---- texts and tensors


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


def limited(graph: Json, limits: Limits) -> Graph:
    """Read a graph from JSON and set the limits of its pages."""
    opened = Graph.from_json(graph)
    opened.limits = limits
    return opened


def _held(cache: Cache, ref: str) -> Array:
    key, _, pin = ref.partition(".") if isinstance(ref, str) else ("", "", "")
    result = cache.get(key)
    if result is None or pin not in result.outputs:
        refuse("tensor", short_repr(ref), "the ref of a tensor that has run")
    return result.outputs[pin]


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


def hits(cache: Cache, ref: str, windows: Any) -> Json:
    """Return the hits of some windows of a block that has too many to list.

    Parameters
    ----------
    cache : Cache
        The cache of a run.
    ref : str
        The reference of the block's hits in that run.
    windows : list of int
        Flat result cells.

    Returns
    -------
    dict
        `ptr` and `cell`, as in the links of a run: window k has the source cells `cell[ptr[k]:ptr[k + 1]]`.

    Raises
    ------
    GraphError
        If the cache has no such block, or the windows do not exist or are too large.
    """
    key, _, kind = ref.partition(".") if isinstance(ref, str) else ("", "", "")
    result = cache.get(key)
    made = result.notes.get("subject") if result is not None and kind == "hits" else None
    if made is None:
        refuse("hits", short_repr(ref), "the ref of a block that has run")
    count = math.prod(made.plan.dest)
    if not isinstance(windows, list) or not all(type(at) is int and 0 <= at < count for at in windows):
        refuse("windows", short_repr(windows), f"a list of integers from 0 to {count - 1}")
    largest = math.prod(int(axis.count.max(initial=0)) for axis in window_axes(made.plan) if axis is not None)
    if len(windows) * largest > report.MOST_LINKED:
        refuse("windows", f"{len(windows)} windows of up to {largest} cells", f"at most {report.MOST_LINKED} cells")
    found = made.links(np.array(windows, np.int64))
    if found.ptr is None or found.cell is None:
        refuse("hits", short_repr(ref), "a block whose windows choose cells")
    return {"ptr": report.numbers(found.ptr.astype(np.int32)), "cell": report.numbers(found.cell.astype(np.int32))}


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
    opened, chosen = opened_page(graph, page)
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
    opened, chosen = opened_page(graph, page)
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
    """Place new blocks to the right of the others: each in the column after the new blocks that it needs."""
    places = [node.at for node in page.nodes.values() if node.at is not None]
    if not places:
        return
    left, top = max(at[0] for at in places) + _COLUMN, min(at[1] for at in places)
    names = {node.id for node in fresh}
    depth: dict[str, int] = {}
    for node in fresh:  # a block comes after the blocks that it needs
        givers = (source.partition(".")[0] for source, target in page.wires if target.partition(".")[0] == node.id)
        depth[node.id] = max((depth[giver] + 1 for giver in givers if giver in names and giver in depth), default=0)
        row = sum(other == depth[node.id] for other in depth.values()) - 1
        node.at = (left + _COLUMN * depth[node.id], top + _ROW * row)


# ---- files


def examples() -> list[Json]:
    """Return the example pages of the package: the title, a short key for the command line, and the graph of each."""
    folder = files("poolgrad").joinpath("data", "examples")
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".json")), key=lambda entry: entry.name)
    graphs = {entry.name: Graph.from_json(entry.read_text("utf-8")) for entry in found}
    return [{"name": graph.pages[0].name, "key": name.removesuffix(".json").partition("-")[2], "graph": graph.to_dict()}
            for name, graph in graphs.items()]  # fmt: skip


def export(graph: Json | Graph, page: str | None = None, kind: str = "json", cache: Cache | None = None,
           paths: bool = False, lock: Lock = FREE) -> tuple[bytes, str, str]:  # fmt: skip
    """Export a page, with the embedded files that its blocks name and nothing else of the graph.

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
    whole, chosen = opened_page(graph, page)
    opened = whole.only(chosen.name)  # a file holds the chosen page, and nothing of the others
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
