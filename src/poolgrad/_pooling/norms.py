"""Compute norms over windows: powers, sums and roots, without overflow or underflow on the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._common.errors import ArgumentErrors, names_memory, short_repr
from .._kernels import native
from .._ops.dtypes import HALVES
from .._windows.cells import cell_pairs
from .._windows.plan import Plan
from .operators import Linear, WindowSum, dilated, widest
from .selection import best_values
from .sources import array_of, finish, lay_out
from .tape import Result, Var, lift
from .window_args import PooledAxes

_TOGETHER = 1 << 20  # cells of windows that are scaled in one go


def check_power(op: str, p: Any, dtype: np.dtype[Any]) -> int | float:
    """Return the power as a Python number; refuse other values, and dtypes that have no norm."""
    problems = ArgumentErrors(op)
    real = isinstance(p, (int, float, np.integer, np.floating)) and not isinstance(p, bool)
    try:
        near = float(p) if real else 0.0
    except OverflowError:
        near = np.inf
    if not 0 < near < np.inf:
        problems.fail("p", short_repr(p), f"a positive {'finite ' if near > 0 else ''}number; max_pool is its limit")
    if dtype.kind in "iub":
        problems.fail("x", f"dtype {dtype}", "a floating dtype", TypeError)
    return int(p) if isinstance(p, (int, np.integer)) else float(p)


@names_memory
def norm_of(
    op: str, x: Any, geometry: PooledAxes, p: int | float, args: tuple[Any, ...] | None = None, out: Array | None = None
) -> Result:
    """Return the p-norm of each window; remember the call if `args` are given."""
    problems = ArgumentErrors(op)
    array, layout = lay_out(problems, array_of(problems, x), geometry)
    operator = WindowSum(layout.plan, 1.0, layout.order)
    operator.name = f"{op} operator"
    if isinstance(x, Var):
        return traced_norms(operator, x, p)
    found: Array = finish(op, x, array, layout, lambda x: norms(operator, x, p), args, out)
    return found


@np.errstate(all="ignore")
def norms(operator: WindowSum, x: Array, p: int | float) -> Array:
    """Return the norm of each window of x, which lies as the operator's plan has it."""
    kind = np.dtype(np.float32) if x.dtype.name in HALVES else x.dtype
    small = np.finfo(kind).tiny * widest(operator.plan)
    if p in (1, 2) and not dilated(operator.plan):
        found = native.norm(operator.plan, int(p), float(small), x)
        if found is not None:
            return operator.restore(found)
    wide = x.astype(kind, copy=False)
    total = operator.carry(np.abs(wide) ** p)
    y = np.where(total == 0, np.zeros((), total.dtype), total ** (1 / p))
    doubtful = (total < small) | (total == np.inf)
    if doubtful.any():
        largest = best_values(operator.plan, np.abs(wide), False, "propagate")
        doubtful &= (largest > 0) & (largest < np.inf)
        flat, again = y.reshape(-1), np.flatnonzero(doubtful)
        for part, found in _scaled(operator.plan, wide, largest.reshape(-1), p, again):
            flat[part] = found
        y = flat.reshape(y.shape)
    return operator.restore(y.astype(x.dtype, copy=False))


def _scaled(plan: Plan, x: Array, largest: Array, p: int | float, windows: Array) -> Iterator[tuple[Any, Any]]:
    """Norms of some windows, each as its largest cell times the norm of what remains: numbers from 0 to 1."""
    if widest(plan) > _TOGETHER:
        for at in windows.tolist():
            scale = np.float64(largest[at])
            yield at, scale * np.sum((np.abs(x[_cells(plan, at)]).astype(np.float64) / scale) ** p) ** (1 / p)
        return
    step = max(_TOGETHER // max(widest(plan), 1), 1)
    for first in range(0, len(windows), step):
        part = windows[first : first + step]
        window, cell = cell_pairs(plan, part)
        top = largest[part].astype(np.float64)
        shares = (np.abs(x.reshape(-1)[cell]).astype(np.float64) / top[window]) ** p
        yield part, top * np.bincount(window, shares, len(part)) ** (1 / p)


def _cells(plan: Plan, at: int) -> tuple[slice, ...]:
    """Return the cells of one window."""
    place = np.unravel_index(at, plan.dest)
    return tuple(
        slice(int(i), int(i) + 1) if axis is None else slice(int(axis.start[i]), int(axis.stop[i]), axis.step)
        for axis, i in zip(plan.by_dimension, place, strict=True)
    )


class Recast(Linear):
    """The cells times a number, in another float dtype."""

    name = "lp_pool"

    def __init__(self, shape: tuple[int, ...], before: np.dtype[Any], after: np.dtype[Any], factor: float) -> None:
        self.source = self.dest = shape
        self.before, self.after, self.factor = before, after, factor
        self.wide = before if before.itemsize > after.itemsize else after

    def forth(self, v: Array) -> Array:
        """Multiply and cast to the second dtype."""
        return np.asarray(v.astype(self.wide) * self.wide.type(self.factor)).astype(self.after)

    def back(self, g: Array) -> Array:
        """Multiply and cast to the first dtype."""
        return np.asarray(g.astype(self.wide) * self.wide.type(self.factor)).astype(self.before)


@np.errstate(all="ignore")
def traced_norms(operator: WindowSum, x: Var, p: int | float) -> Var:
    """Return the norms of a variable; if its largest power leaves the range, scale all of it, which changes no derivative."""
    kind = x.dtype
    wide = np.dtype(np.float32) if kind.name in HALVES else kind
    scale = _scale(x.value.astype(wide, copy=False), p)
    same = wide == kind and scale == 1
    v = x if same else lift(Recast(x.shape, kind, wide, 1 / scale), x)
    total = lift(operator, abs(v) ** p)
    empty = Var((total.value == 0).astype(total.dtype))
    y = (total + empty) ** (1 / p) * (1 - empty)
    return y if same else lift(Recast(y.shape, wide, kind, scale), y)


def _scale(x: Array, p: int | float) -> float:
    """Return a power of two near the largest cell if its power is far from 1, else 1."""
    limits = np.finfo(x.dtype)
    largest = float(np.abs(x).max(initial=0))
    if not 0 < largest < np.inf:
        return 1.0
    exponent = int(np.frexp(largest)[1])
    if abs(p * exponent) <= 0.75 * limits.maxexp:
        return 1.0
    return float(2.0 ** max(min(exponent, limits.maxexp - 2), limits.minexp))
