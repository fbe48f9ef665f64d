"""Run kernels on arrays: allocate the result, call the native core. `reference` has the same functions in plain NumPy.

Arrays must be contiguous, aligned and in native byte order; `Plan` guarantees that a plan is valid.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .. import _core
from .._ops.semantics import Mean, Share, Start
from .._windows.plan import Plan

Array = npt.NDArray[Any]

_core.use_bfloat16(np.empty(0, ml_dtypes.bfloat16))


class Astray(ValueError):
    """An error at flat index `at`: a position outside its array, or a value that is not the pooled input."""

    def __init__(self, at: int) -> None:
        super().__init__(f"at flat position {at}")
        self.at = at


class NotWhole(ValueError):
    """An error for an array with NaN, where the caller wanted none."""


def native(plan: Plan, plain: bool = False, schedule: str | None = None) -> _core.Plan:
    """Return the core's plan, cached on the plan.

    `plain` replaces it by one that visits taps in the simplest way; `schedule` by one that runs this schedule only, and refuses calls that
    the schedule cannot run.
    """
    made: _core.Plan | None = plan.__dict__.get("_native")
    if made is None or plain or schedule is not None:
        if any(axis.step > 1 for axis in plan.axes):
            raise ValueError(
                "Plan: step: got windows whose cells lie apart, wanted its phases: the core knows intervals"
            )
        axes = [(axis.length, axis.start, axis.stop, axis.span, axis.parents.get(0)) for axis in plan.axes]
        made = _core.Plan(plan.source, plan.dest, plan.outer, plan.inner, axes, schedule or plain)
        object.__setattr__(plan, "_native", made)
    return made


_USUAL_RULES = {"fold": Mean.EXACT, "spread": Share.RECIPROCAL, "select": Start.LOWEST}


def schedule(
    plan: Plan, verb: str, dtype: npt.DTypeLike, rule: Mean | Share | Start | None = None, verify: bool = False
) -> str:
    """Return the name of the core's schedule for a call; several names, joined by "+", if parts of the call differ.

    `rule` is that of fold, spread or select; `verify` asks for a route that checks y. The answer depends on the number of threads.
    """
    number = _USUAL_RULES.get(verb, 0) if rule is None else rule
    return _core.schedule(native(plan), verb, np.empty(0, dtype), number, verify)


def able_schedules(
    plan: Plan, verb: str, dtype: npt.DTypeLike, rule: Mean | Share | Start | None = None, verify: bool = False
) -> list[str]:
    """Return the names of all schedules that can run a call; arguments as for `schedule`."""
    number = _USUAL_RULES.get(verb, 0) if rule is None else rule
    return _core.able(native(plan), verb, np.empty(0, dtype), number, verify)


def fold(plan: Plan, mean: Mean, x: Array, out: Array | None = None) -> Array:
    """y[i] = mean of x over window i."""
    return _core.fold(native(plan), mean, x, out)


def spread(plan: Plan, share: Share, reversed: bool, g: Array, out: Array | None = None) -> Array:
    """dx[j] = sum of g[i]/count[i] over the windows i that cover j."""
    return _core.spread(native(plan), share, reversed, g, out)


@np.errstate(all="ignore")
def whole_share(share: Share, cells: int, g: Array) -> Array:
    """Return the gradient of each cell of a window that covers all of them, so many."""
    if share is Share.QUOTIENT:
        quotient: Array = (g.astype(np.float64) / cells + 0).astype(g.dtype)  # a sum starts at 0, so -0 becomes 0
        return quotient
    product: Array = g * g.dtype.type(1 / cells) + g.dtype.type(0)
    return product


def spread_whole(plan: Plan, share: Share, g: Array) -> Array:
    """Return the same bits as `spread` if one window covers all cells: each cell copies its window's share."""
    if g.dtype.kind in "iu":
        return spread(plan, share, False, g)  # raises the error
    dx = _core.empty(plan.source, g)
    dx[...] = whole_share(share, prod(axis.length for axis in plan.axes), g)
    return dx


def near(plan: Plan, eps: float, x: Array, y: Array, g: Array, out: Array | None = None) -> Array:
    """dx[j] = sum of g[i] over the windows i that cover j and have abs(x[j] - y[i]) < eps."""
    return _core.near(native(plan), eps, x, y, g, out)


def select(plan: Plan, start: Start, x: Array, out: Array | None = None, whole: bool = False) -> Array:
    """y[i] = maximum of x over window i; with `whole`, raise NotWhole if x has NaN."""
    y = _core.select(native(plan), start, x, out, whole)
    if y is None:
        raise NotWhole
    return y


def selector(plan: Plan, start: Start, whole: bool, otherwise: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return `select` as a function of x alone; it calls `otherwise` where select raises NotWhole."""
    made = native(plan)

    def maxima(x: Array) -> Array:
        y = _core.select(made, start, x, None, whole)
        return otherwise(x) if y is None else y

    return maxima


def folder(plan: Plan, mean: Mean) -> Callable[[Array], Array]:
    """Return `fold` as a function of x alone."""
    made = native(plan)
    return lambda x: _core.fold(made, mean, x, None)


def whole(x: Array) -> bool:
    """Return True if no cell is NaN."""
    return _core.whole(x)


def argmax(plan: Plan, modulo: int, index: npt.DTypeLike, x: Array) -> tuple[Array, Array]:
    """Return the maximum of each window and its flat position modulo `modulo`."""
    y, where = _core.empty(plan.dest, x), _core.empty(plan.dest, np.empty(0, index))
    _core.argmax(native(plan), modulo, x, y, where)
    return y, where


def tap_type(plan: Plan) -> npt.DTypeLike:
    """Return the dtype of taps (numbers of cells within their windows): uint8 if no window has more than 256 cells."""
    kept: npt.DTypeLike | None = plan.__dict__.get("_tap_type")
    if kept is None:
        cells = prod(int(axis.count.max(initial=1)) for axis in plan.axes)
        kept = np.uint8 if cells <= 256 else np.uint32
        object.__setattr__(plan, "_tap_type", kept)
    return kept


def choose(plan: Plan, x: Array, whole: bool = False) -> tuple[Array, Array]:
    """Return the maximum of each window and its tap: the first of equals; NaN only if it comes first. `whole` as in select."""
    y, taps = _core.empty(plan.dest, x), np.empty(plan.dest, tap_type(plan))
    if not _core.choose(native(plan), x, y, taps, whole):
        raise NotWhole
    return y, taps


def pick(plan: Plan, v: Array, taps: Array, out: Array | None = None) -> Array:
    """out[i] = v at tap i of window i."""
    return _followed(_core.pick(native(plan), v, taps, out))


def place(plan: Plan, g: Array, taps: Array, out: Array | None = None) -> Array:
    """dx[j] = sum of g[i] over the windows i whose tap is j: the transpose of pick. Half types are summed in float32 and rounded once."""
    return _followed(_core.place(native(plan), g, taps, out))


def _followed(result: Array | int) -> Array:
    if isinstance(result, int):
        raise Astray(result)
    return result


def route(plan: Plan, x: Array, g: Array, y: Array | None = None, out: Array | None = None) -> Array:
    """dx[tap] += g[i], tap being the first maximum of window i; y, if given, must be the pooled x."""
    return _followed(_core.route(native(plan), x, y, g, out))


def recall(plan: Plan, x: Array, y: Array, v: Array, out: Array | None = None) -> Array:
    """out[i] = v at the first cell of window i where x equals y[i], else 0."""
    return _core.recall(native(plan), x, y, v, out)


def scatter(plan: Plan, items: int, absolute: bool, g: Array, index: Array, once: bool = False) -> Array:
    """dx[index[k]] += g[k]; positions count from their image, or from the array's beginning if absolute.

    Half types are rounded after each addition, as in TensorFlow; with `once`, they are summed in float32 and rounded at the end.
    """
    dx = _core.empty(plan.source, g)
    wrong = _core.scatter(items, absolute, g, index, dx, once)
    if wrong >= 0:
        raise Astray(wrong)
    return dx


def gather(plan: Plan, items: int, absolute: bool, v: Array, index: Array) -> Array:
    """out[k] = v[index[k]]."""
    out = _core.empty(plan.dest, v)
    wrong = _core.gather(items, absolute, v, index, out)
    if wrong >= 0:
        raise Astray(wrong)
    return out
