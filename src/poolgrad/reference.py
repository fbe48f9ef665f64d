"""The verbs once more, in plain NumPy: the definition, and the oracle in the tests. Slow, and meant to be read.

An array is seen as (outer, pooled dimensions, inner); `cells` walks the windows of one destination cell in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from .rules import Mean, Share, Start
from .verbs import Array, Astray
from .windows import Plan

Cell = tuple[int, ...]


def _view(array: Array, plan: Plan, lengths: Cell) -> Array:
    return array.reshape(plan.outer, *lengths, plan.inner)


def _source(array: Array, plan: Plan) -> Array:
    return _view(array, plan, tuple(axis.length for axis in plan.axes))


def _dest(array: Array, plan: Plan) -> Array:
    return _view(array, plan, tuple(len(axis) for axis in plan.axes))


def _windows(plan: Plan) -> Iterator[tuple[Cell, list[Cell], bool]]:
    """Every destination cell, the source cells it reads in row-major order, and whether its window was cut."""
    for i in product(*(range(len(axis)) for axis in plan.axes)):
        ranges = [range(axis.start[k], axis.stop[k]) for axis, k in zip(plan.axes, i, strict=True)]
        cut = any(axis.span is not None and axis.span[k] != axis.count[k] for axis, k in zip(plan.axes, i, strict=True))
        yield i, list(product(*ranges)), cut


def _covering(plan: Plan, reversed: bool) -> Iterator[tuple[Cell, list[tuple[Cell, int]]]]:
    """Every source cell, and the windows that cover it with the number of cells of each."""
    axes = [axis.transpose() for axis in plan.axes]
    for j in product(*(range(len(axis)) for axis in axes)):
        ranges = [range(axis.start[k], axis.stop[k]) for axis, k in zip(axes, j, strict=True)]
        order = [i[::-1] for i in product(*ranges[::-1])] if reversed else list(product(*ranges))
        yield j, [(i, int(np.prod([axis.count[k] for axis, k in zip(plan.axes, i, strict=True)]))) for i in order]


def lowest(dtype: np.dtype[Any]) -> Any:
    """The lowest finite value of a type."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min
    import ml_dtypes

    return ml_dtypes.finfo(dtype).min


def _limit(dtype: np.dtype[Any], count: int, mean: Mean) -> Any:
    """The divisor: the count as the type holds it, counted up one by one or rounded once."""
    digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype.name]
    return dtype.type(min(count, 2**digits) if mean is Mean.COUNTED else count)


def _toward_zero(total: Array, count: int) -> Array:
    quotient = total // count
    return quotient + ((total < 0) & (quotient * count != total))


def fold(plan: Plan, mean: Mean, x: Array) -> Array:
    """y[i] = mean of x over window i, added cell by cell in the type of x."""
    y = np.empty(plan.dest, x.dtype)
    source, dest = _source(x, plan), _dest(y, plan)
    wide = np.int64 if mean is Mean.WIDE else x.dtype
    with np.errstate(all="ignore"):
        for i, cells, _ in _windows(plan):
            total = np.zeros((plan.outer, plan.inner), wide)
            for j in cells:
                total = total + source[(slice(None), *j)].astype(wide)
            at = (slice(None), *i)
            dest[at] = (
                _toward_zero(total, len(cells)) if x.dtype.kind in "iu" else total / _limit(x.dtype, len(cells), mean)
            )
    return y


def spread(plan: Plan, share: Share, reversed: bool, g: Array) -> Array:
    """dx[j] = sum of g[i]/count[i] over the windows i that cover j."""
    dx = np.empty(plan.source, g.dtype)
    source, dest = _source(dx, plan), _dest(g, plan)
    kind = np.dtype(np.float64) if share is Share.QUOTIENT else g.dtype
    with np.errstate(all="ignore"):
        for j, windows in _covering(plan, reversed):
            total = np.zeros((plan.outer, plan.inner), kind)
            for i, count in windows:
                cell = dest[(slice(None), *i)].astype(kind)
                if share is Share.QUOTIENT:
                    total = total + cell / count
                else:
                    one = 1.0 / count if share is Share.RECIPROCAL else np.float32(1) / np.float32(count)
                    total = (
                        total + cell * np.float32(one).astype(kind)
                        if kind.itemsize == 2
                        else total + cell * kind.type(one)
                    )
            source[(slice(None), *j)] = _settle(total, g.dtype)
    return dx


def _settle(total: Array, dtype: np.dtype[Any]) -> Array:
    """float64 sums to a type: by way of float32 to a half type, to its lowest value where an integer type cannot hold it."""
    if dtype.kind in "iu":
        fits = np.abs(np.trunc(total)) < 2.0 ** (8 * dtype.itemsize - 1)
        return np.where(fits, np.where(fits, total, 0).astype(dtype), lowest(dtype)).astype(dtype)
    return total.astype(np.float32).astype(dtype) if dtype.itemsize == 2 else total.astype(dtype)


def near(plan: Plan, eps: float, x: Array, y: Array, g: Array) -> Array:
    """dx[j] = sum of g[i] over the windows i that cover j and have abs(x[j] - y[i]) < eps."""
    dx = np.empty(plan.source, x.dtype)
    sx, sd, dy, dg = _source(x, plan), _source(dx, plan), _dest(y, plan), _dest(g, plan)
    with np.errstate(all="ignore"):
        for j, windows in _covering(plan, True):
            at = (slice(None), *j)
            total = np.zeros((plan.outer, plan.inner), x.dtype)
            for i, _ in windows:
                best, add = dy[(slice(None), *i)], dg[(slice(None), *i)]
                hit = (
                    sx[at] == best if x.dtype.kind in "iu" else np.abs(sx[at] - best) < np.float32(eps).astype(x.dtype)
                )
                total = total + np.where(hit, add, np.zeros_like(add))
            sd[at] = total
    return dx


def _best(plan: Plan, start: Start, x: Array) -> tuple[Array, Array]:
    """Per destination cell the maximum and the number of the tap that gave it (0 if none did)."""
    y, taps = np.empty(plan.dest, x.dtype), np.zeros(plan.dest, np.int64)
    source, dest, chosen = _source(x, plan), _dest(y, plan), _dest(taps, plan)
    bottom = lowest(x.dtype)
    with np.errstate(all="ignore"):
        for i, cells, cut in _windows(plan):
            at = (slice(None), *i)
            begin = bottom if start is not Start.INFINITY or cut or x.dtype.kind in "iu" else -np.inf
            dest[at] = source[(slice(None), *cells[0])] if start is Start.FIRST and cells else begin
            for k, j in enumerate(cells):
                cell = source[(slice(None), *j)]
                better = dest[at] < cell
                dest[at] = np.where(better, cell, dest[at])
                chosen[at] = np.where(better, k, chosen[at])
    return y, taps


def select(plan: Plan, start: Start, x: Array) -> Array:
    """y[i] = maximum of x over window i: the first of equals, NaN never greater."""
    return _best(plan, start, x)[0]


def _positions(plan: Plan, taps: Array) -> Array:
    """Flat positions in the source of the taps of every window."""
    flat = _source(np.arange(int(np.prod(plan.source))), plan)
    where = np.zeros(plan.dest, np.int64)
    dest, chosen = _dest(where, plan), _dest(taps, plan)
    for i, cells, _ in _windows(plan):
        at = (slice(None), *i)
        for k, j in enumerate(cells):
            dest[at] = np.where(chosen[at] == k, flat[(slice(None), *j)], dest[at])
    return where


def argmax(plan: Plan, modulo: int, index: npt.DTypeLike, x: Array) -> tuple[Array, Array]:
    """The maximum of each window and its flat position modulo `modulo`."""
    y, taps = _best(plan, Start.FIRST, x)
    return y, (_positions(plan, taps) % modulo).astype(index)


def _add_at(dx: Array, where: Array, g: Array) -> None:
    flat = dx.reshape(-1)
    with np.errstate(all="ignore"):
        for at, value in zip(where.reshape(-1).tolist(), g.reshape(-1), strict=True):
            flat[at] = flat[at] + value


def route(plan: Plan, x: Array, g: Array, y: Array | None = None) -> Array:
    """dx[tap] += g[i], tap being the first maximum of window i; y, if given, must be the pooled x."""
    best, taps = _best(plan, Start.FIRST, x)
    if y is not None:
        with np.errstate(invalid="ignore"):
            forward = _best(plan, Start.LOWEST, x)[0]
            fine = (y == best) | (y == forward) | ((y != y) & (best != best)) | (_tiny(y) & _tiny(best))
        if not fine.all():
            raise Astray(int(np.argmin(fine)))
    dx = np.zeros(plan.source, x.dtype)
    _add_at(dx, _positions(plan, taps), g)
    return dx


def _tiny(values: Array) -> Array:
    """Which values are 0 to a forward pass that flushes subnormals."""
    if values.dtype.kind in "iu":
        return np.zeros(values.shape, bool)
    import ml_dtypes

    return cast(Array, np.abs(values) < ml_dtypes.finfo(values.dtype).smallest_normal)


def recall(plan: Plan, x: Array, y: Array, v: Array) -> Array:
    """out[i] = v at the first cell of window i where x equals y[i], else 0."""
    out = np.zeros(plan.dest, x.dtype)
    sx, sv, dy, dest = _source(x, plan), _source(v, plan), _dest(y, plan), _dest(out, plan)
    for i, cells, _ in _windows(plan):
        at = (slice(None), *i)
        for j in cells[::-1]:
            there = (slice(None), *j)
            dest[at] = np.where(sx[there] == dy[at], sv[there], dest[at])
    return out


def _absolute(plan: Plan, items: int, absolute: bool, index: Array) -> Array:
    """Positions from the array's beginning, or Astray at the first that is outside."""
    total = int(np.prod(plan.source))
    base = 0 if absolute else (np.arange(index.size) // max(index.size // items, 1)) * (total // items)
    where = index.reshape(-1).astype(object) + base
    wrong = [k for k, (raw, at) in enumerate(zip(index.reshape(-1), where, strict=True)) if raw < 0 or at >= total]
    if wrong:
        raise Astray(wrong[0])
    return where.astype(np.int64)


def scatter(plan: Plan, items: int, absolute: bool, g: Array, index: Array) -> Array:
    """dx[index[k]] += g[k]."""
    dx = np.zeros(plan.source, g.dtype)
    _add_at(dx, _absolute(plan, items, absolute, index), g)
    return dx


def gather(plan: Plan, items: int, absolute: bool, v: Array, index: Array) -> Array:
    """out[k] = v[index[k]]."""
    return v.reshape(-1)[_absolute(plan, items, absolute, index)].reshape(plan.dest)
