"""Run pages block by block: only changed blocks run, and a failed block stops only the blocks that depend on it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import raw_ops
from .._ops.table import Op
from . import literals
from .check import REFUSALS, arguments, blame, check
from .embedded_files import Sources
from .model import Node, Page, PageProblem
from .op_family import forward_of
from .seen import BLOCKED, FAILED, OK, Checked, Seen

Array = npt.NDArray[Any]
Progress = Callable[[int, int, str], None]


@dataclass
class BlockResult:
    """The result of a block."""

    outputs: dict[str, Array]
    warning: str = ""
    notes: dict[str, Any] = field(default_factory=dict)  # facts that other modules derived from the result

    @cached_property
    def room(self) -> int:
        """Return the bytes that `notes` may take."""
        return 8 * sum(array.nbytes for array in self.outputs.values()) + 4096

    @cached_property
    def nbytes(self) -> int:
        """Return the bytes of the arrays plus those that `notes` may take."""
        return sum(array.nbytes for array in self.outputs.values()) + self.room


class Cache:
    """A cache of results, keyed by a hash of everything that they depend on.

    Parameters
    ----------
    nbytes : int, default 2**28
        The size limit. Beyond it, the least recently used results are dropped.

    Examples
    --------
    >>> cache = Cache(2**20)
    >>> cache.get("no such key") is None
    True
    """

    def __init__(self, nbytes: int = 2**28) -> None:
        self.limit = nbytes
        self.results: dict[str, BlockResult] = {}  # ordered by use, the latest last
        self.held = 0  # bytes of all entries

    def get(self, key: str) -> BlockResult | None:
        """Return the result cached under a key, or None."""
        result = self.results.pop(key, None)
        if result is not None:
            self.results[key] = result
        return result

    def put(self, key: str, result: BlockResult) -> None:
        """Cache a result, unless it alone exceeds the limit."""
        self._forget(key)
        if result.nbytes > self.limit:
            return
        self.results[key] = result
        self.held += result.nbytes
        while self.held > self.limit:
            self._forget(next(iter(self.results)))

    def _forget(self, key: str) -> None:
        gone = self.results.pop(key, None)
        self.held -= 0 if gone is None else gone.nbytes


@dataclass
class Ran:
    """The run of one block."""

    status: str
    result: BlockResult | None = None
    key: str = ""
    cached: bool = False
    ms: float = 0.0


@dataclass
class Run:
    """The run of a page."""

    checked: Checked
    blocks: dict[str, Ran]
    warnings: list[PageProblem]
    ms: float

    @property
    def problems(self) -> list[PageProblem]:
        """Return all problems of the page."""
        return self.checked.problems

    def array(self, end: str) -> Array | None:
        """Return the array of `node.pin`, or None."""
        node, _, pin = end.partition(".")
        result = self.blocks[node].result if node in self.blocks else None
        return None if result is None else result.outputs.get(pin)


def execute(
    page: Page,
    sources: Sources,
    cache: Cache | None = None,
    wanted: Iterable[str] | None = None,
    progress: Progress | None = None,
    checked: Checked | None = None,
) -> Run:
    """Run a page, or only the blocks that the wanted ones need; pass the result of `check` as `checked` if you have it."""
    begin = time.perf_counter()
    run = Run(check(page, sources) if checked is None else checked, {}, [], 0.0)
    chosen = _ancestors(run.checked, wanted)
    names = [name for name in run.checked.order if chosen is None or name in chosen]
    cache = cache if cache is not None else Cache()
    for done, name in enumerate(names):
        if progress:
            progress(done, len(names), name)
        run.blocks[name] = _block(page.nodes[name], run, cache)
    ordered = set(run.checked.order)
    run.blocks |= {name: Ran(FAILED) for name in run.checked.seen if name not in ordered}
    run.checked.sort()
    run.ms = (time.perf_counter() - begin) * 1e3
    return run


def _ancestors(checked: Checked, wanted: Iterable[str] | None) -> set[str] | None:
    if wanted is None:
        return None
    chosen, waiting = set(), list(wanted)
    while waiting:
        name = waiting.pop()
        if name not in chosen and name in checked.seen:
            chosen.add(name)
            waiting += [source.partition(".")[0] for source in checked.seen[name].sources.values()]
    return chosen


def _block(node: Node, run: Run, cache: Cache) -> Ran:
    seen = run.checked.seen[node.id]
    givers = [run.blocks[source.partition(".")[0]] for source in seen.sources.values()]
    if seen.status == FAILED:
        return Ran(FAILED)
    if seen.status == BLOCKED or any(giver.result is None for giver in givers):
        return Ran(BLOCKED)
    if node.op == "Placeholder" and seen.outputs["output"].value is None:
        run.checked.problems.append(PageProblem(node.id, "feed", "nothing", "an array: feed it, or type one"))
        return Ran(FAILED)
    begin = time.perf_counter()
    key = _key(node, seen, run)
    result = cache.get(key)
    if result is not None:
        _warn(node, result, run)
        return Ran(OK, result, key, True)
    try:
        result = _compute(node, seen, run)
    except REFUSALS as error:
        _fail(node, seen, run, error)
        return Ran(FAILED)
    for array in result.outputs.values():
        array.flags.writeable = False
    cache.put(key, result)
    _warn(node, result, run)
    return Ran(OK, result, key, False, (time.perf_counter() - begin) * 1e3)


def _key(node: Node, seen: Seen, run: Run) -> str:
    """Return the hash of everything a result depends on: the op, its parsed attributes, and the keys of its inputs."""
    value = seen.outputs["output"].value if seen.block is not None and seen.block.row is None else None
    if value is not None:
        head = json.dumps([value.dtype.name, value.shape]).encode()
        return hashlib.sha256(head + np.ascontiguousarray(value).tobytes()).hexdigest()
    wires = sorted((pin, run.blocks[s.partition(".")[0]].key, s.partition(".")[2]) for pin, s in seen.sources.items())
    drawn = time.perf_counter_ns() if _fresh(seen) else 0
    text = json.dumps([node.op, sorted(seen.values.items(), key=str), wires, drawn], default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _fresh(seen: Seen) -> bool:
    """Return True if every run of this block draws new windows: a fractional pooling without seeds."""
    op = seen.block.row if seen.block else None
    values = seen.values
    draws = op is not None and any(p.name == "deterministic" for p in op.params)
    return draws and not (values.get("deterministic") or values.get("seed") or values.get("seed2"))


def inputs_of(seen: Seen, run: Run) -> dict[str, Array]:
    """Return the arrays wired into a block, by pin."""
    found = {pin: run.array(source) for pin, source in seen.sources.items()}
    return {pin: array for pin, array in found.items() if array is not None}


def _compute(node: Node, seen: Seen, run: Run) -> BlockResult:
    arrays, value = inputs_of(seen, run), seen.outputs["output"].value
    op = seen.block.row if seen.block else None
    if op is not None:
        given, attrs = arguments(op, seen, arrays)
        result = getattr(raw_ops, op.name)(**given, **attrs)
        outputs = dict(zip(op.outputs, result if len(op.outputs) > 1 else (result,), strict=True))
        return BlockResult({name: np.asarray(a) for name, a in outputs.items()}, _pooled(op, given, attrs))
    if seen.pool_call is not None:
        return BlockResult({"output": seen.pool_call.run(arrays)})
    if value is not None:
        return BlockResult({"output": np.array(value)})
    if node.op == "Random":
        v = seen.values
        return BlockResult({"output": literals.random(v["dist"], v["shape"], v["dtype"], v["seed"])})
    if node.op == "Shape":
        return BlockResult({"output": np.array(arrays["input"].shape, seen.values["out_type"])})
    x, y = arrays["x"], arrays["y"]
    if (x.shape, x.dtype) != (y.shape, y.dtype):
        raise ValueError(f"{y.dtype.name} {list(y.shape)}, wanted {x.dtype.name} {list(x.shape)}, as x")
    with np.errstate(all="ignore"):
        return BlockResult({"output": x + y})


def _pooled(op: Op, given: Mapping[str, Array], attrs: Mapping[str, Any]) -> str:
    """Return a warning if orig_output is not the forward op's result for orig_input, else ""."""
    forward = forward_of(op)
    if "orig_output" not in given or forward is None or op.rule.verify:
        return ""
    names = {p.name for p in forward.params}
    first = forward.params[0].name
    y = getattr(raw_ops, forward.name)(**{first: given["orig_input"]}, **{n: v for n, v in attrs.items() if n in names})
    wrong = (y != given["orig_output"]) & ((y == y) | (given["orig_output"] == given["orig_output"]))
    if not wrong.any():
        return ""
    at = [int(i) for i in np.argwhere(wrong)[0]]
    return f"{given['orig_output'][tuple(at)]} at {at}, and {int(wrong.sum())} of {wrong.size} cells like it"


def _warn(node: Node, result: BlockResult, run: Run) -> None:
    values = run.checked.seen[node.id].values
    if values.get("explicit_paddings") and values.get("padding") != "EXPLICIT":
        got = f"explicit_paddings with padding {values.get('padding')}"
        run.warnings.append(PageProblem(node.id, "attrs", got, "padding EXPLICIT: other paddings ignore these numbers"))
    if result.warning:
        expected = "the pooled orig_input: orig_output is not the pooled orig_input, so gradients may be lost"
        run.warnings.append(PageProblem(node.id, "orig_output", result.warning, expected))


def _fail(node: Node, seen: Seen, run: Run, error: Exception) -> None:
    """Record the error that a block raised when it ran."""
    before = len(run.checked.problems)
    if seen.block is not None and seen.block.windowed and hasattr(error, "findings"):
        blame(node, seen, run.checked, error, set(), inputs_of(seen, run))
    if len(run.checked.problems) == before:
        run.checked.problems.append(PageProblem(node.id, None, str(error)[:200], "a block that can run"))


def with_feeds(sources: Sources, feeds: Mapping[str, Any]) -> Sources:
    """Return the sources with more feeds of placeholders."""
    return replace(sources, feeds={**sources.feeds, **feeds})
