"""Choose the best cell of each window: largest or least, the first or the last of equals, with or without NaN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._common.errors import ArgumentErrors, short_repr
from .._kernels import native
from .._windows.axis import Axis
from .._windows.plan import Plan, uncut
from .operators import Ordered, Sharing, TapGather, dilated, forth_by, parts, per_window
from .types import Nan, Ties

_TIES = ("first", "last", "all", "split")


def judge(problems: ArgumentErrors, ties: Any, nan: Any) -> None:
    """Refuse an unknown `ties` or `nan`."""
    if not isinstance(ties, str) or ties not in _TIES:
        problems.add("ties", short_repr(ties), "'first', 'last', 'all' or 'split'")
    if not isinstance(nan, str) or nan not in native.NAN_RULES:
        problems.add("nan", short_repr(nan), "'propagate', 'ignore' or 'tf'")
    problems.raise_if_any()


def has_nan(x: Array) -> bool:
    """Return True if any cell is NaN."""
    return x.dtype.kind not in "iub" and not native.whole(x)


def ranks(x: Array, nan_wins: bool) -> Array:
    """Return integers in the order of floats: NaN is the largest (`nan_wins`) or the least, both zeros are equal."""
    whole = np.dtype(f"i{x.dtype.itemsize}")
    bits = (x + np.zeros((), x.dtype)).view(whole)  # the zero makes -0 equal to 0
    most, lowest = np.iinfo(whole).max, np.iinfo(whole).min
    made: Array = bits ^ ((bits >> (8 * x.dtype.itemsize - 1)) & most)
    made[x != x] = most if nan_wins else lowest
    return made


def _flipped(plan: Plan) -> Plan:
    """Return the plan for an array that is read from its end along every pooled axis."""
    turned = {}
    for d, axis in enumerate(plan.by_dimension):
        if axis is not None:
            last = axis.start + (axis.count - 1) * axis.step + 1
            turned[d] = Axis(axis.length, (axis.length - last)[::-1], (axis.length - axis.start)[::-1], step=axis.step)
    return Plan(plan.source, turned)


def _choose(plan: Plan, x: Array, least: bool, nan: Nan) -> tuple[Array, Array]:
    """Return the best of each window and its tap, phase by phase."""
    if not dilated(plan):
        return native.best_taps(plan, least, nan, x)
    y, taps = np.empty(plan.dest, x.dtype), np.empty(plan.dest, native.tap_type(plan))
    for source, dest, part in parts(plan):
        y[dest], taps[dest] = native.best_taps(part, least, nan, np.ascontiguousarray(x[source]))
    return y, taps


def _choose_last(plan: Plan, x: Array, least: bool, nan: Nan) -> tuple[Array, Array]:
    flip = tuple(slice(None) if axis is None else slice(None, None, -1) for axis in plan.by_dimension)
    y, taps = _choose(_flipped(plan), np.ascontiguousarray(x[flip]), least, nan)
    return np.ascontiguousarray(y[flip]), (per_window(plan, "count") - 1 - taps[flip]).astype(taps.dtype)


def best_values(plan: Plan, x: Array, least: bool, nan: Nan) -> Array:
    """Return the best value of each window without making taps."""
    return value_finder(plan, least, nan)(x)


def value_finder(plan: Plan, least: bool, nan: Nan) -> Callable[[Array], Array]:
    """Return `best_values` as a function of x alone."""
    wide = uncut(plan)
    if not dilated(plan):
        return native.best_finder(wide, least, nan)
    return lambda x: forth_by(wide, lambda part, v: native.best(part, least, nan, v), x)


def extreme(plan: Plan, x: Array, order: Sequence[int], least: bool, ties: Ties, nan: Nan) -> tuple[Array, Ordered]:
    """Return the best of each window and the operator that picks it; x and the results have their axes in memory order."""
    y, taps = (_choose_last if ties == "last" else _choose)(plan, x, least, nan)
    if nan == "tf":
        y = best_values(plan, x, least, nan)
    if ties in ("first", "last"):
        return y, TapGather(plan, taps, order)
    return y, Sharing(plan, x, y, ties == "split", order)
