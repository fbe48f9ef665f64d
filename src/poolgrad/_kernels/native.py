"""The verbs on arrays: allocate the result, call the native core. `reference` has the same functions in plain NumPy.

Arrays come in contiguous, aligned and in native byte order; a plan comes in as valid as `Plan` makes it.
"""

from __future__ import annotations

from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .. import _core
from .._ops.semantics import Mean, Share, Start
from ..windows import Plan

Array = npt.NDArray[Any]

_core.use_bfloat16(np.empty(0, ml_dtypes.bfloat16))


class Astray(ValueError):
    """A position outside its array, or a value that is not the pooled input, at flat place `at`."""

    def __init__(self, at: int) -> None:
        super().__init__(f"at flat position {at}")
        self.at = at


class NotWhole(ValueError):
    """A cell is NaN, which has no place in the order of numbers."""


def native(plan: Plan, plain: bool = False) -> _core.Plan:
    """The plan as the core keeps it, made once; plain takes the core's generic path."""
    made: _core.Plan | None = plan.__dict__.get("_native")
    if made is None or plain:
        if any(axis.step > 1 for axis in plan.axes):
            raise ValueError(
                "Plan: step: got windows whose cells lie apart, wanted its phases: the core knows intervals"
            )
        axes = [(axis.length, axis.start, axis.stop, axis.span) for axis in plan.axes]
        made = _core.Plan(plan.source, plan.dest, plan.outer, plan.inner, axes, plain)
        object.__setattr__(plan, "_native", made)
    return made


def fold(plan: Plan, mean: Mean, x: Array, out: Array | None = None) -> Array:
    """y[i] = mean of x over window i."""
    return _core.fold(native(plan), mean, x, out)


def spread(plan: Plan, share: Share, reversed: bool, g: Array, out: Array | None = None) -> Array:
    """dx[j] = sum of g[i]/count[i] over the windows i that cover j."""
    return _core.spread(native(plan), share, reversed, g, out)


@np.errstate(all="ignore")
def spread_whole(plan: Plan, share: Share, g: Array) -> Array:
    """The bits of spread where one window covers all: a cell adds nothing up, it copies its window's share."""
    if g.dtype.kind in "iu":
        return spread(plan, share, False, g)  # which says what is wrong
    cells = prod(axis.length for axis in plan.axes)
    if share is Share.QUOTIENT:
        shares = (g.astype(np.float64) / cells + 0).astype(g.dtype)  # a sum begins with 0, which makes 0 of -0
    else:
        shares = g * g.dtype.type(1 / cells) + g.dtype.type(0)
    dx = _core.empty(plan.source, g)
    dx[...] = shares
    return dx


def near(plan: Plan, eps: float, x: Array, y: Array, g: Array, out: Array | None = None) -> Array:
    """dx[j] = sum of g[i] over the windows i that cover j and have abs(x[j] - y[i]) < eps."""
    return _core.near(native(plan), eps, x, y, g, out)


def select(plan: Plan, start: Start, x: Array, out: Array | None = None, whole: bool = False) -> Array:
    """y[i] = maximum of x over window i; NotWhole if x must be whole and has NaN."""
    y = _core.select(native(plan), start, x, out, whole)
    if y is None:
        raise NotWhole
    return y


def whole(x: Array) -> bool:
    """Whether no cell is NaN."""
    return _core.whole(x)


def argmax(plan: Plan, modulo: int, index: npt.DTypeLike, x: Array) -> tuple[Array, Array]:
    """The maximum of each window and its flat position modulo `modulo`."""
    y, where = _core.empty(plan.dest, x), _core.empty(plan.dest, np.empty(0, index))
    _core.argmax(native(plan), modulo, x, y, where)
    return y, where


def tap_type(plan: Plan) -> npt.DTypeLike:
    """The type of a tap, which is a cell's number in its window: a byte where no window has more than 256 cells."""
    kept: npt.DTypeLike | None = plan.__dict__.get("_tap_type")
    if kept is None:
        cells = prod(int(axis.count.max(initial=1)) for axis in plan.axes)
        kept = np.uint8 if cells <= 256 else np.uint32
        object.__setattr__(plan, "_tap_type", kept)
    return kept


def choose(plan: Plan, x: Array, whole: bool = False) -> tuple[Array, Array]:
    """The maximum of each window and its tap: the first of equals, NaN only if it comes first; NotWhole as in select."""
    y, taps = _core.empty(plan.dest, x), np.empty(plan.dest, tap_type(plan))
    if not _core.choose(native(plan), x, y, taps, whole):
        raise NotWhole
    return y, taps


def pick(plan: Plan, v: Array, taps: Array, out: Array | None = None) -> Array:
    """out[i] = v at tap i of window i."""
    return _followed(_core.pick(native(plan), v, taps, out))


def place(plan: Plan, g: Array, taps: Array, out: Array | None = None) -> Array:
    """dx[j] = sum of g[i] over the windows i whose tap is j: the transpose of pick. Halves are added in float32, rounded once."""
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

    Halves round at each addition, as in TensorFlow; once, they are added in float32 and rounded at the end.
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
