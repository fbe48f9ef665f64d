"""Prepare the array of a call: convert it, find its windows, and lay its axes out as the core reads them."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import ml_dtypes as ml_dtypes  # NumPy learns the name bfloat16
import numpy as np

from .._common.arrays import Array, afford, as_array, ready
from .._common.errors import ArgumentErrors, names_memory
from .._ops.dtypes import REALS
from .._windows.axis import Axis
from .._windows.plan import MOST_AXES, Plan
from .._windows.plan_cache import SHORT, cache_plan, entries
from .operators import inverse, put
from .repeated import Run, remember
from .tape import Result, Var
from .window_args import PooledAxes, SpelledWindows, WindowArgs, flag, resolve, spell


class Layout(NamedTuple):
    """The layout of an array whose axes are in memory order: order[k] is the caller's axis that comes k-th, dtype the caller's."""

    plan: Plan
    order: tuple[int, ...]
    axes: tuple[int, ...]
    dtype: np.dtype[Any]

    def seen(self, y: Array) -> Array:
        """Return an array that the core made as the caller sees it."""
        return y.transpose(inverse(self.order))

    @property
    def plain(self) -> bool:
        """True if the core reads the cells as the caller sees them."""
        return self.dtype != np.bool_ and self.order == tuple(range(len(self.order)))


def accept(op: str, x: Any) -> Result:
    """Return x as a plain array, or as the variable that it is: the one place where a pool converts its argument."""
    if (type(x) is np.ndarray and x.dtype.isnative) or isinstance(x, Var):
        return x
    return array_of(ArgumentErrors(op), x)


def array_of(problems: ArgumentErrors, x: Any) -> Array:
    """Return the array of anything that can be pooled."""
    array = as_array(problems, "x", x.value if isinstance(x, Var) else x)
    if array is None:
        problems.raise_if_any()
    assert array is not None
    return array


def _memory_order(x: Array, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes by falling stride if that makes the array contiguous and keeps the order of pooled axes, else unchanged."""
    if x.flags.c_contiguous or 2 * len(axes) > MOST_AXES:  # in another order more axes may lie between the pooled ones
        return tuple(range(x.ndim))
    order = tuple(sorted(range(x.ndim), key=lambda d: (-x.strides[d], d)))
    kept = [d for d in order if d in axes]
    return order if kept == sorted(kept) and x.transpose(order).flags.c_contiguous else tuple(range(x.ndim))


@cache_plan(1024)
def _ordered_plan(plan: Plan, order: tuple[int, ...]) -> Plan:
    pooled = {k: axis for k, d in enumerate(order) if (axis := plan.by_dimension[d]) is not None}
    return Plan([plan.source[d] for d in order], pooled)


@cache_plan(1024)
def _understood(op: str, shape: tuple[int, ...], words: WindowArgs) -> PooledAxes:
    plain = type(words.window) is int or (
        type(words.window) is tuple and set(map(type, words.window)) == {int}
    )  # other windows may be long
    return (_spelled if plain else _spell)(op, len(shape), words).over(ArgumentErrors(op), shape)


def _spell(op: str, ndim: int, words: WindowArgs) -> SpelledWindows:
    return spell(ArgumentErrors(op), ndim, words)


_spelled = lru_cache(256)(_spell)


_SCALARS = frozenset({int, str, type(None), Axis})


def frozen(value: Any) -> Any:
    """Return a hashable cache key; raise TypeError for other types, such as bool, because `True == 1`."""
    if isinstance(value, np.ndarray) and value.size <= SHORT:
        value = value.tolist()
    if type(value) in (list, tuple):
        return tuple(map(frozen, value))
    if type(value) in _SCALARS:
        return value
    raise TypeError("no key")


@names_memory
def geometry_of(op: str, shape: tuple[int, ...], words: WindowArgs) -> PooledAxes:
    """Return the windows that the arguments describe over an array of that shape; cache them."""
    flag(ArgumentErrors(op), "ceil_mode", words.ceil_mode)
    try:
        *sizes, ceil_mode = words
        if not _SCALARS.issuperset(map(type, sizes)):
            sizes = list(map(frozen, sizes))
        key = WindowArgs._make((*sizes, bool(ceil_mode)))
    except (TypeError, RecursionError):
        return resolve(ArgumentErrors(op), shape, words)
    return _understood(op, shape, key)


def lay_out(problems: ArgumentErrors, array: Array, geometry: PooledAxes) -> tuple[Array, Layout]:
    """Return the array with its axes in memory order, and the plan for it; refuse dtypes and sizes that cannot be pooled."""
    dtype, array = array.dtype, array.view(np.uint8) if array.dtype == np.bool_ else array
    order = _memory_order(array, geometry.axes)
    plan = geometry.plan if order == tuple(range(len(order))) else _ordered_plan(geometry.plan, order)
    needed = prod(plan.dest) * array.dtype.itemsize
    if needed > array.nbytes:
        afford(problems, "window", needed, f"a result of shape {list(geometry.plan.dest)}")
    if array.dtype not in DTYPES:
        problems.fail("x", f"dtype {array.dtype}", "a real floating, integer or boolean dtype", TypeError)
    return ready(problems, "x", array.transpose(order)), Layout(plan, order, geometry.axes, dtype)


DTYPES = frozenset(map(np.dtype, REALS))


def finish(
    op: str, x: Any, array: Array, layout: Layout, run: Run, args: tuple[Any, ...] | None, out: Array | None
) -> Any:
    """Run a pool on its array, and return the result, or `out` with the result in it. Remember the call if `args` are given."""
    found = run(array)
    if args is not None and layout.plain and entries(layout.plan) <= SHORT:
        remember(op, x, args, prod(layout.plan.dest), run)
    if out is None:
        return found
    problems = ArgumentErrors(op)
    return (put(problems, found[0], out), *found[1:]) if isinstance(found, tuple) else put(problems, found, out)
