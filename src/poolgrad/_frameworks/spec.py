"""Describe a pool as a static, hashable spec; boundaries and taps are runtime arrays.

A traced pool is a hashable `PoolSpec` and arrays: the boundaries of the windows, one array with three rows (start, stop, span) and
a column per window, and the state of its operator, such as taps. Boundaries are data, so new windows need no new trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import Array
from .._common.errors import ArgumentErrors, short_repr
from .._common.integers import ROUNDINGS, ratio_of
from .._pooling import means, plan_operators
from .._pooling.adaptive_global import adaptive_axes, global_axes
from .._pooling.fractional import drawing_over, fractional_windows, seeds_of
from .._pooling.means import Division
from .._pooling.operators import Linear, TapGather, apply, most_over_a_cell
from .._pooling.selection import judge
from .._pooling.sources import geometry_of, lay_out
from .._pooling.taps import Taps, picking, unpooling
from .._pooling.window_args import PooledAxes, WindowArgs, checked_plan, flag
from .._windows.axis import Axis
from .._windows.plan import Plan
from .._windows.plan_cache import cache_plan

SLIDING = ("max_pool", "min_pool", "avg_pool", "sum_pool")
FRACTIONAL = ("fractional_max_pool", "fractional_avg_pool")
ADAPTIVE = ("adaptive_max_pool", "adaptive_avg_pool")
GLOBAL = ("global_max_pool", "global_min_pool", "global_avg_pool", "global_sum_pool")
_FLAGS = ("return_taps", "return_windows", "count_include_pad", "keepdims", "pseudo_random", "overlapping")
POOLS = (*SLIDING, *FRACTIONAL, *ADAPTIVE, *GLOBAL)


@dataclass(frozen=True)
class Frame:
    """The pooled axes as (dimension, cells, windows, step), and the most cells that a window can have.

    A `loose` frame may have a wider tap dtype than its windows need. `reach` has, per pooled axis, the most cells of a window and the most
    windows that read one cell; boundaries that are drawn when the pool runs stay within it.
    """

    axes: tuple[tuple[int, int, int, int], ...]
    cells: int
    loose: bool = False
    reach: tuple[tuple[int, int], ...] = ()

    @property
    def taps(self) -> np.dtype[Any]:
        """Dtype of taps."""
        return np.dtype(np.uint8 if self.cells <= 256 else np.uint32)

    def dest(self, source: Sequence[Any]) -> tuple[Any, ...]:
        """Return the pooled shape of that source shape; lengths that are not pooled may be of any type."""
        sizes = {d: m for d, _, m, _ in self.axes}
        return tuple(sizes.get(d, n) for d, n in enumerate(source))

    def source(self, dest: Sequence[Any]) -> tuple[Any, ...]:
        """Return the source shape of that pooled shape."""
        sizes = {d: n for d, n, _, _ in self.axes}
        return tuple(sizes.get(d, n) for d, n in enumerate(dest))

    def batched(self) -> Frame:
        """Return the frame for arrays with one more axis in front."""
        return replace(self, axes=tuple((d + 1, n, m, step) for d, n, m, step in self.axes))

    def plan(self, source: Sequence[int], windows: Array) -> Plan:
        """Return the plan of these windows over an array of that shape."""
        return _plan(self, tuple(int(n) for n in source), np.ascontiguousarray(windows, np.int64).tobytes())


@cache_plan(1024)
def _plan(frame: Frame, source: tuple[int, ...], windows: bytes) -> Plan:
    start, stop, span = np.frombuffer(windows, np.int64).reshape(3, -1)
    pooled, at = {}, 0
    for d, n, m, step in frame.axes:
        here = slice(at, at + m)
        pooled[d], at = Axis(n, start[here], stop[here], span[here], step), at + m
    return Plan(source, pooled)


@dataclass(frozen=True)
class PoolSpec:
    """A pool without its arrays. `kind` says how to make its operator; the other fields are options of some kinds.

    "fold": sums and means. "pick": by taps. "like": rebuilt from the source array, if the operator depends on more than taps.
    "assign": by taps; if cells repeat, the last one counts. "index": by positions.
    """

    op: str
    kind: str
    frame: Frame
    least: bool = False
    ties: Any = "first"
    nan: Any = "propagate"
    mean: bool = False
    count_include_pad: bool = False
    divisor: float | None = None
    shape: tuple[int, ...] = ()  # for "index": shape before the operator
    after: tuple[int, ...] = ()  # for "index": shape after the operator
    reduce: Any = "sum"
    items: int = 1

    @property
    def picks(self) -> bool:
        """True if the pool chooses one cell per window, so that taps determine its operator."""
        return self.ties in ("first", "last")

    def dest(self, source: Sequence[Any]) -> tuple[Any, ...]:
        """Return the shape after the operator."""
        return self.after if self.kind == "index" else self.frame.dest(source)

    def source(self, dest: Sequence[Any]) -> tuple[Any, ...]:
        """Return the shape before the operator."""
        return self.shape if self.kind == "index" else self.frame.source(dest)

    def batched(self, size: int) -> PoolSpec:
        """Return the spec for arrays with one more axis of that size in front."""
        before, after = ((size, *form) if self.kind == "index" else () for form in (self.shape, self.after))
        return replace(self, frame=self.frame.batched(), items=self.items * size, shape=before, after=after)

    def operator(self, source: Sequence[int], windows: Array, *state: Array) -> Linear:
        """Make the operator on arrays of shape `source`, from this state."""
        if self.kind == "index":
            return unpooling(state[0], self.shape, self.reduce, self.items).T
        plan = self.frame.plan(source, windows)
        if self.kind == "fold":
            if self.mean:
                return plan_operators.averaging(plan, count_include_pad=self.count_include_pad, divisor=self.divisor)
            return plan_operators.summing(plan)
        if self.kind == "like":
            return self._like(plan, state[0])
        picked = _picking(plan, state[0])
        return picked if self.kind == "pick" else unpooling(Taps(picked, ()), None, "assign").T

    def _like(self, plan: Plan, x: Array) -> Linear:
        if self.mean or self.ties == "none":
            how = Division(self.mean, self.count_include_pad, self.divisor, self.nan)
            axes = tuple(d for d, _, _, _ in self.frame.axes)
            cells, layout = lay_out(ArgumentErrors(self.op), x, PooledAxes(axes, plan))
            return means.folding(self.op, layout, how, cells)
        return plan_operators.selecting(self.op, x, plan, self.least, self.ties, self.nan)[1]


def _picking(plan: Plan, taps: Array) -> TapGather:
    operator = picking(plan, taps)
    assert isinstance(operator, TapGather)
    return operator


def select(rule: PoolSpec, x: Array, windows: Array) -> tuple[Array, Array | None]:
    """Return the best cell of each window, and the taps if the pool chooses one cell."""
    plan = rule.frame.plan(x.shape, windows)
    y, operator = plan_operators.selecting(rule.op, np.ascontiguousarray(x), plan, rule.least, rule.ties, rule.nan)
    assert isinstance(y, np.ndarray)
    y = np.ascontiguousarray(y).view(np.bool_) if x.dtype == np.bool_ else y
    return y, operator.restore(operator.taps).astype(rule.frame.taps) if isinstance(operator, TapGather) else None


def chosen(rule: PoolSpec, x: Array, windows: Array) -> list[Array]:
    """Return the results of `select` that there are."""
    return [part for part in select(rule, x, windows) if part is not None]


def carry(rule: PoolSpec, back: bool, v: Array, windows: Array, *state: Array) -> Array:
    """Apply the operator of a spec, or its transpose, to v."""
    source = rule.source(v.shape) if back else v.shape
    operator = rule.operator(source, windows, *state)
    operator.name = rule.op
    with np.errstate(invalid="ignore"):  # a window with only NaN has no mean
        result: Array = apply(operator.T if back else operator, np.ascontiguousarray(v))
    return result


def whole(rule: PoolSpec, dtype: Any, rounding: Any, x: Array, windows: Array) -> Array:
    """Return sums or means of integers, which have no derivative."""
    plan = rule.frame.plan(x.shape, windows)
    how = Division(rule.mean, rule.count_include_pad, rule.divisor, rule.nan, dtype, rounding)
    axes = tuple(d for d, _, _, _ in rule.frame.axes)
    result = means.folded(rule.op, np.ascontiguousarray(x), PooledAxes(axes, plan), how)
    assert isinstance(result, np.ndarray)
    return result


def settled(rule: PoolSpec, dtype: np.dtype[Any], rounding: Any, y: Array) -> Array:
    """Round sums or means of floats to an integer dtype; refuse those that it cannot hold."""
    how = Division(rule.mean, dtype=dtype, rounding=rounding)
    return means.cast(ArgumentErrors(rule.op), np.asarray(y), dtype, how)


def positions(rule: PoolSpec, method: str, taps: Array, windows: Array) -> Array:
    """Convert taps to positions by `Taps.flat` or `Taps.plane`."""
    operator = _picking(rule.frame.plan(rule.frame.source(taps.shape), windows), taps)
    found: Array = getattr(Taps(operator, [d for d, _, _, _ in rule.frame.axes]), method)()
    return found


def draw(lengths: tuple[int, ...], sizes: tuple[int, ...], pseudo: bool, overlapping: bool, seed: Array) -> Array:
    """Draw fractional windows from a pair of seeds; return their boundaries."""
    words = np.asarray(seed).reshape(-1).astype(np.int64).tolist()
    pair = (words[0], words[-1] if len(words) > 1 else 0)
    made = fractional_windows(lengths, size=sizes, seed=pair, pseudo_random=pseudo, overlapping=overlapping)
    return boundaries(made)


def boundaries(axes: Sequence[Axis]) -> Array:
    """Concatenate the windows of several axes: rows start, stop and span."""
    rows = [np.stack([a.start, a.stop, a.span]) for a in axes]
    return np.concatenate(rows, axis=1).astype(np.int32)


def pairs(first: int, last: int, windows: Array) -> Array:
    """Return some of the windows as pairs (start, stop)."""
    return np.ascontiguousarray(windows[:2, first:last].T)


class PoolCall(NamedTuple):
    """A checked call of a pool: its spec, its windows, and the results that the caller wants."""

    rule: PoolSpec
    windows: Array
    axes: tuple[Axis, ...]
    given: Mapping[str, Any]
    drops: bool

    def wants(self, name: str) -> bool:
        """Return True if the caller set this option."""
        return bool(self.given.get(name, False))


def _words(given: Mapping[str, Any]) -> WindowArgs:
    return WindowArgs(*(given[name] for name in WindowArgs._fields))


def _geometry_of(op: str, shape: tuple[int, ...], given: Mapping[str, Any]) -> PooledAxes:
    """Return the windows of a call."""
    problems, where = ArgumentErrors(op), (given["axes"], given["layout"])
    if op in (*SLIDING, "lp_pool"):
        return geometry_of(op, shape, _words(given))
    if op in ADAPTIVE:
        return adaptive_axes(problems, shape, given["size"], *where)
    if op in GLOBAL:
        return global_axes(problems, shape, *where)
    how = given["pseudo_random"], given["overlapping"]
    axes, drawing = drawing_over(problems, shape, given["ratio"], given["size"], how, *where)
    made = drawing.draw(seeds_of(problems, given["seed"]))
    return PooledAxes(axes, checked_plan(problems, shape, dict(zip(axes, made, strict=True))))


def _reach(axis: Axis, drawn: bool, overlapping: bool) -> tuple[int, int]:
    """Return the most cells of a window and the most windows over a cell; for drawn windows, bounds that hold for every seed."""
    if drawn:
        return axis.length // max(len(axis), 1) + 1 + overlapping, 1 + overlapping
    return int(axis.count.max(initial=1)), most_over_a_cell(axis)


def frame_of(axes: Mapping[int, Axis], drawn: bool = False, overlapping: bool = False) -> Frame:
    """Return the frame of windows along these dimensions; of all windows that other seeds draw, if they are drawn."""
    reach = tuple(_reach(axis, drawn, overlapping) for axis in axes.values())
    cells = prod(widest for widest, _ in reach)
    pooled = tuple((d, axis.length, len(axis), axis.step) for d, axis in axes.items())
    return Frame(pooled, cells, drawn and cells > 256, reach)


_KINDS = {"max": "max", "min": "min", "avg": "avg", "sum": "sum", "lp": "sum"}


def _kind(op: str) -> str:
    """Return the kind of a pool by its name; a norm is a sum of powers. A pool of another kind needs code of its own."""
    return next(kind for word, kind in _KINDS.items() if f"{word}_pool" in op)


def understand_call(op: str, shape: tuple[int, ...], dtype: Any, given: Mapping[str, Any]) -> PoolCall:
    """Check a call of the pool of that name; take the arguments of the NumPy pool, and raise the same errors."""
    for name in _FLAGS:
        flag(ArgumentErrors(op), name, given.get(name, False))
    geometry, problems = _geometry_of(op, shape, given), ArgumentErrors(op)
    axes = {d: a for d in geometry.axes if (a := geometry.plan.by_dimension[d]) is not None}
    ties, nan = given.get("ties", "first"), given["nan"]
    judge(problems, ties, nan)
    if given.get("return_taps") and ties in ("all", "split"):
        problems.fail("return_taps", True, f"ties='first' or 'last': {ties!r} chooses no single cell")
    lay_out(problems, np.empty((0,) * len(shape), dtype), geometry)
    frame = frame_of(axes, op in FRACTIONAL, bool(given.get("overlapping", False)))
    rule = PoolSpec(op, "pick", frame, least=_kind(op) == "min", ties=ties, nan=nan)
    if _kind(op) in ("avg", "sum"):
        if given.get("divisor") is not None:
            ratio_of(problems, given["divisor"])
        rule = _folding(problems, rule, given, np.dtype(dtype))
    elif not rule.picks:
        rule = replace(rule, kind="like")
    pooled = tuple(axes.values())
    return PoolCall(rule, boundaries(pooled), pooled, given, not given.get("keepdims", True))


def _folding(problems: ArgumentErrors, rule: PoolSpec, given: Mapping[str, Any], dtype: np.dtype[Any]) -> PoolSpec:
    if given.get("rounding", "nearest") not in ROUNDINGS:
        problems.fail("rounding", short_repr(given["rounding"]), "'nearest', 'floor', 'ceil' or 'toward_zero'")
    padded, by = bool(given.get("count_include_pad", False)), given.get("divisor")
    mean = _kind(rule.op) == "avg"
    careful = given["nan"] == "ignore" and dtype.kind not in "iub"
    return replace(
        rule, kind="like" if careful else "fold", ties="none", mean=mean, count_include_pad=padded, divisor=by
    )
