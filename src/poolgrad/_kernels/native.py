"""Run kernels on arrays: allocate the result, call the native core. `reference` has the same functions in plain NumPy.

Arrays must be contiguous, aligned and in native byte order; `Plan` guarantees that a plan is valid.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .. import _core
from .._ops.semantics import Mean, Share, Start
from .._windows.plan import Plan, forward_parts
from .._windows.plan_cache import Entries, make_room

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
        if {axis.step for axis in plan.axes} != {1}:
            raise ValueError(
                "Plan: step: got windows whose cells lie apart, wanted its phases: the core knows intervals"
            )
        axes = [(axis.length, axis.start, axis.stop, axis.span, axis.parents.get(0)) for axis in plan.axes]
        made = _core.Plan(plan.source, plan.dest, plan.outer, plan.inner, axes, schedule or plain)
        object.__setattr__(plan, "_native", made)
    return made


def windows(plan: Plan) -> _core.Plan | _core.Parts:
    """Return the core's plan for the verbs that also take a plan in parts, cached on the plan: long axes then need no long tables."""
    if plan.axes[0].formula is None or "_native" in plan.__dict__:
        return native(plan)
    made: _core.Parts | None = plan.__dict__.get("_parts")
    if made is not None:
        return made
    parts = forward_parts(plan)
    if parts is None:
        return native(plan)
    plans = list(dict.fromkeys(part for _, part in parts))
    number = {part: i for i, part in enumerate(plans)}
    places = [(number[part], cell) for cell, part in parts]
    made = _core.Parts(plan.source, plan.dest, plan.outer, plan.axes[0].length, [native(p) for p in plans], places)
    plan.__dict__.update(_parts=made, _of_parts=Entries(sum(axis.held for part in plans for axis in part.axes)))
    make_room()
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
    return _core.fold(windows(plan), mean, x, out)


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
    y = _core.select(windows(plan), start, x, out, whole)
    if y is None:
        raise NotWhole
    return y


NAN_RULES = ("propagate", "ignore", "tf")
ROUNDINGS = ("nearest", "floor", "ceil", "toward_zero")


def _best_rule(least: bool, nan: str) -> int:
    return int(least) + 2 * NAN_RULES.index(nan)


def best(plan: Plan, least: bool, nan: str, x: Array) -> Array:
    """Return the largest or least cell of each window; `nan` is one of NAN_RULES."""
    return best_finder(plan, least, nan)(x)


def best_finder(plan: Plan, least: bool, nan: str) -> Callable[[Array], Array]:
    """Return `best` as a function of x alone."""
    made, rule = windows(plan), _best_rule(least, nan)
    return lambda x: _core.best(made, rule, x, None)


def best_taps(plan: Plan, least: bool, nan: str, x: Array) -> tuple[Array, Array]:
    """Return the largest or least cell of each window and its tap: the first of equals."""
    y, taps = _core.empty(plan.dest, x), np.empty(plan.dest, tap_type(plan))
    _core.best_taps(windows(plan), _best_rule(least, nan), x, y, taps)
    return y, taps


def averager(plan: Plan, by: float | str | None, ignore_nan: bool) -> Callable[[Array], Array]:
    """Return the function that sums floats over each window and divides the sum.

    `by`: None for the cells of the window, "span" for those before an edge cut it, or a number. With `ignore_nan`, NaN is left out of
    sums and of cells.
    """
    made = windows(plan)
    return lambda x: _core.mean(made, x, by, ignore_nan, x)  # type: ignore[return-value]


def integer_averager(
    plan: Plan, by: float | str | None, dtype: npt.DTypeLike, rounding: str
) -> Callable[[Array], Array | None]:
    """Return the function that sums integers of at most 32 bits exactly, divides in float64, and rounds once to `dtype`.

    `rounding` is one of ROUNDINGS. The function returns None if the dtype does not hold a result.
    """
    made, like, mode = windows(plan), np.empty(0, dtype), ROUNDINGS.index(rounding)
    return lambda x: _core.mean(made, x, by, False, like, mode)


def norm(plan: Plan, p: int, small: float, x: Array) -> Array | None:
    """Return the norm of each window for p = 1 or 2, from sums of float32 for half types.

    Return None if a sum of powers overflowed, or is below `small` and may have lost digits.
    """
    return _core.norm(windows(plan), x, p, small)


def folder(plan: Plan, mean: Mean) -> Callable[[Array], Array]:
    """Return `fold` as a function of x alone."""
    made = windows(plan)
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
        cells = prod(max(axis.widest, 1) if len(axis) else 1 for axis in plan.axes)
        kept = np.uint8 if cells <= 256 else np.uint32
        object.__setattr__(plan, "_tap_type", kept)
    return kept


def choose(plan: Plan, x: Array, whole: bool = False) -> tuple[Array, Array]:
    """Return the maximum of each window and its tap: the first of equals; NaN only if it comes first. `whole` as in select."""
    y, taps = _core.empty(plan.dest, x), np.empty(plan.dest, tap_type(plan))
    if not _core.choose(native(plan), x, y, taps, whole):
        raise NotWhole
    return y, taps


class PlaneWindows(NamedTuple):
    """Planes with windows of their own: `sizes` windows of `kernel` cells per axis, and their starts, plane after plane."""

    lengths: tuple[int, ...]
    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    starts: Array  # int64, a row per plane: the starts along the first axis, then those along the next

    @property
    def tap_type(self) -> npt.DTypeLike:
        """The dtype of taps, as `tap_type`."""
        return np.uint8 if prod(self.kernel) <= 256 else np.uint32


def choose_planes(windows: PlaneWindows, x: Array) -> tuple[Array, Array]:
    """Return the maximum of each window of each plane, and its tap; raise NotWhole if x has NaN."""
    shape = (len(windows.starts), *windows.sizes)
    y, taps = _core.empty(shape, x), np.empty(shape, windows.tap_type)
    if not _core.choose_planes(*windows[:3], windows.starts.reshape(-1), x, y, taps):
        raise NotWhole
    return y, taps


def place_planes(windows: PlaneWindows, g: Array, taps: Array) -> Array:
    """Add each cell of g at its tap: the transpose of `choose_planes` at these taps."""
    dx = _core.empty((len(windows.starts), *windows.lengths), g)
    wrong = _core.place_planes(*windows[:3], windows.starts.reshape(-1), g, taps, dx)
    if wrong >= 0:
        raise Astray(wrong)
    return dx


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
