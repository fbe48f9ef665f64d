"""Answer for a page in JSON: the blocks there are, its problems, and the results of a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from .._common.errors import short_repr
from .._explain.pools import POOL
from .._explain.sentences import phrases
from . import report
from .blocks import BLOCKS, GROUPS, Block, Pin
from .check import check as check_page
from .embedded_files import Sources
from .executor import Cache, Progress, Run, execute, with_feeds
from .model import Graph, Json, Page, refuse
from .repair import repaired
from .seen import Checked
from .text import DTYPES

# Guards a cache that others use too: held while blocks run, not while texts and files are read.
Lock = AbstractContextManager[Any]
FREE: Lock = nullcontext()


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
    elif block.pool is not None:
        facts |= {"family": block.pool.pool, "order": int(block.pool.form != POOL), "link": "docs/pools.md"}
    return found | facts


def _pin(pin: Pin) -> Json:
    return {
        "name": pin.name, "kind": pin.kind, "type": pin.type, "required": pin.required, "default": pin.default,
        "example": pin.example, "doc": pin.doc, "words": None if pin.words is None else list(pin.words),
        "dtypes": None if pin.dtypes is None else list(pin.dtypes), "rank": pin.rank, "blank": pin.blank, "unset": pin.unset,
    }  # fmt: skip


# ---- check and run


def opened_page(graph: Json | Graph, page: str | None) -> tuple[Graph, Page]:
    """Read a graph, and find the page of that name, or the first."""
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
    >>> from poolgrad.graph.service import new_graph
    >>> check(new_graph())
    {'page': 'page', 'nodes': {}, 'problems': [], 'warnings': []}
    """
    opened, chosen = opened_page(graph, page)
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
        limit: int = 16384, paths: bool = False, lock: Lock = FREE, known: Collection[str] = (),
        progress: Progress | None = None) -> Json:  # fmt: skip
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
    known : collection of str, optional
        References of arrays that the caller has already; their values are left out.
    progress : callable, optional
        Called before each block with the number of blocks done, of all blocks, and the block's name; an exception ends the run.

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
    >>> from poolgrad.graph.service import new_graph
    >>> run(new_graph())["nodes"]
    {}
    """
    opened, chosen = opened_page(graph, page)
    cache = cache if cache is not None else Cache()
    sources = with_feeds(Sources.of(opened, paths), feeds or {})
    found = check_page(chosen, sources)
    with lock:
        done = execute(chosen, sources, cache, progress=progress, checked=found)
        budget = report.LinkBudget(opened.limits)
        taken = report.users_of(done.checked)
        nodes = {name: _ran(name, taken, done, limit, budget, known) for name in done.checked.seen}
    fresh = [ran for ran in done.blocks.values() if ran.result is not None]
    return {
        "page": chosen.name, "ms": round(done.ms, 3), "ran": sum(not ran.cached for ran in fresh),
        "cached": sum(ran.cached for ran in fresh), "order": done.checked.order, "nodes": nodes,
        "problems": [report.problem(p) for p in repaired(chosen, done.checked)],
        "warnings": [report.problem(p) for p in repaired(chosen, done.checked, done.warnings)],
    }  # fmt: skip


def _ran(
    name: str, taken: report.Users, done: Run, limit: int, budget: report.LinkBudget, known: Collection[str]
) -> Json:
    seen, ran = done.checked.seen[name], done.blocks[name]
    about = {pin: report.described(done.checked, f"{name}.{pin}", taken) for pin in seen.outputs}
    outputs: Json = {pin: report.outline(spec, about[pin]) for pin, spec in seen.outputs.items()}
    links = totals = None
    if ran.result is not None:
        for pin, array in ran.result.outputs.items():
            spec = {"role": about[pin]["role"], "axes": report.axes(about[pin]["axes"], array.ndim)}
            outputs[pin] = report.tensor(array, spec, limit, f"{ran.key}.{pin}", known)
        links, totals = report.relation(name, seen, ran, done, budget, known)
    return {"status": ran.status, "cached": ran.cached, "ms": round(ran.ms, 3), "outputs": outputs, "links": links,
            "conservation": totals}  # fmt: skip
