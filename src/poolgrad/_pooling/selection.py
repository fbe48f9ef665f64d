"""Choose the best cell of each window: largest or least, the first or the last of equals, with or without NaN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._common.errors import ArgumentErrors, short_repr
from .._kernels import native
from .._ops.semantics import Start
from .._windows.axis import Axis
from .._windows.plan import Plan, uncut
from .operators import Ordered, Sharing, TapGather, dilated, forth_by, parts, per_window
from .types import Nan, Ties

_TIES = ("first", "last", "all", "split")
_NAN = ("propagate", "ignore", "tf")


def judge(problems: ArgumentErrors, ties: Any, nan: Any) -> None:
    """Refuse an unknown `ties` or `nan`."""
    if not isinstance(ties, str) or ties not in _TIES:
        problems.add("ties", short_repr(ties), "'first', 'last', 'all' or 'split'")
    if not isinstance(nan, str) or nan not in _NAN:
        problems.add("nan", short_repr(nan), "'propagate', 'ignore' or 'tf'")
    problems.raise_if_any()


def has_nan(x: Array) -> bool:
    """Return True if any cell is NaN."""
    return x.dtype.kind not in "iub" and not native.whole(x)


def keys(x: Array, least: bool, nan_wins: bool | None) -> Array:
    """Return an array whose maxima are where x has its best cells; None for nan_wins if x has no NaN."""
    if x.dtype.kind in "iu":
        return ~x if least else x
    if nan_wins is None:
        return -x if least else x
    whole = np.dtype(f"i{x.dtype.itemsize}")
    bits = (x + np.zeros((), x.dtype)).view(whole)  # the zero makes -0 equal to 0
    most, lowest = np.iinfo(whole).max, np.iinfo(whole).min
    ranks: Array = bits ^ ((bits >> (8 * x.dtype.itemsize - 1)) & most)
    ranks = ~ranks if least else ranks
    ranks[x != x] = most if nan_wins else lowest
    return ranks


def _flipped(plan: Plan) -> Plan:
    """Return the plan for an array that is read from its end along every pooled axis."""
    turned = {}
    for d, axis in enumerate(plan.by_dimension):
        if axis is not None:
            last = axis.start + (axis.count - 1) * axis.step + 1
            turned[d] = Axis(axis.length, (axis.length - last)[::-1], (axis.length - axis.start)[::-1], step=axis.step)
    return Plan(plan.source, turned)


def _choose(plan: Plan, x: Array, whole: bool) -> tuple[Array, Array]:
    """Return the maximum of each window and its tap, phase by phase."""
    if not dilated(plan):
        return native.choose(plan, x, whole)
    y, taps = np.empty(plan.dest, x.dtype), np.empty(plan.dest, native.tap_type(plan))
    for source, dest, part in parts(plan):
        y[dest], taps[dest] = native.choose(part, np.ascontiguousarray(x[source]), whole)
    return y, taps


def _choose_last(plan: Plan, x: Array, whole: bool) -> tuple[Array, Array]:
    flip = tuple(slice(None) if axis is None else slice(None, None, -1) for axis in plan.by_dimension)
    y, taps = _choose(_flipped(plan), np.ascontiguousarray(x[flip]), whole)
    return np.ascontiguousarray(y[flip]), (per_window(plan, "count") - 1 - taps[flip]).astype(taps.dtype)


def _maxima(plan: Plan, x: Array, start: Start, whole: bool) -> Array:
    return forth_by(uncut(plan), lambda part, v: native.select(part, start, v, None, whole), x)


def best_values(plan: Plan, x: Array, least: bool, nan: Nan) -> Array:
    """Return the best value of each window without making taps."""
    return value_finder(plan, least, nan)(x)


def value_finder(plan: Plan, least: bool, nan: Nan) -> Callable[[Array], Array]:
    """Return `best_values` as a function of x alone."""
    start, whole = (Start.LOWEST, False) if nan == "tf" else (Start.INFINITY, True)

    def among_nan(x: Array) -> Array:
        return _among_nan(plan, x, range(x.ndim), least, "first", nan)[0]

    def by_keys(x: Array) -> Array:
        try:
            return keys(_maxima(plan, keys(x, least, None), start, whole), least, None)
        except native.NotWhole:
            return among_nan(x)

    return by_keys if least or dilated(plan) else native.selector(uncut(plan), start, whole, among_nan)


def _among_nan(
    plan: Plan, x: Array, order: Sequence[int], least: bool, ties: Ties, nan: Nan
) -> tuple[Array, TapGather]:
    """Return the best of each window where NaN is above or below all numbers, and the operator that picks it."""
    picking = TapGather(plan, _taps_of(ties)(plan, keys(x, least, nan == "propagate"), False)[1], order)
    return picking.carry(x), picking


def _taps_of(ties: Ties) -> Any:
    return _choose_last if ties == "last" else _choose


def extreme(plan: Plan, x: Array, order: Sequence[int], least: bool, ties: Ties, nan: Nan) -> tuple[Array, Ordered]:
    """Return the best of each window and the operator that picks it; x and the results have their axes in memory order."""
    rank = keys(x, least, None)
    try:
        y, taps = _taps_of(ties)(plan, rank, nan != "tf")
    except native.NotWhole:
        y, picking = _among_nan(plan, x, order, least, ties, nan)
    else:
        picking = TapGather(plan, taps, order)
        if nan == "tf":
            y = keys(_maxima(plan, rank, Start.LOWEST, False), least, None)
        elif least:
            y = picking.carry(x)
    if ties in ("first", "last"):
        return y, picking
    return y, Sharing(plan, x, y, ties == "split", order)
