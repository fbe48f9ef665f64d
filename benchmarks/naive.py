"""Compute the ops in a few lines of NumPy: the loop that a kernel must beat on any machine."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from .cells import Cell
from .data import Array, Arrays, dtype_of

Slices = tuple[slice, ...]


def _taps(cell: Cell) -> Iterator[tuple[Slices, Slices]]:
    """Yield, for each place in the window, the input cells there and the outputs that have such a cell."""
    for place in itertools.product(*(range(e.k) for e in cell.extents)):
        source, dest = [slice(None)] * len(cell.shape), [slice(None)] * len(cell.shape)
        for d, e, at in zip(cell.space, cell.extents, place, strict=True):
            low = max(-((at - e.before) // e.s), 0)
            high = min((e.n - 1 + e.before - at) // e.s + 1, e.m)
            if high <= low:
                break
            begin = low * e.s - e.before + at
            source[d], dest[d] = slice(begin, begin + (high - low - 1) * e.s + 1, e.s), slice(low, high)
        else:
            yield tuple(source), tuple(dest)


def _counts(cell: Cell) -> Array:
    count = np.zeros((1, *cell.dest[1:]), np.float32)
    for _, dest in _taps(cell):
        count[dest] += 1
    return count


def loop(cell: Cell, arrays: Arrays) -> Callable[[], Array]:
    """Compute the cell with NumPy slices, one pass per place in the window."""
    taps, a = list(_taps(cell)), arrays
    count = None if cell.maximal else _counts(cell).astype(dtype_of(cell))
    kinds: dict[tuple[bool, int], Callable[[], Array]] = {
        (True, 0): lambda: _maximum(taps, a.x, cell.dest),
        (True, 1): lambda: _routed(taps, a),
        (True, 2): lambda: _recalled(taps, a),
        (False, 0): lambda: _mean(taps, a.x, cell.dest, count),
        (False, 1): lambda: _spread(taps, a.g, cell.shape, count),
    }
    return kinds[cell.maximal, cell.op.order]


def _maximum(taps: list[tuple[Slices, Slices]], x: Array, shape: tuple[int, ...]) -> Array:
    y = np.full(shape, -np.inf, x.dtype)
    for source, dest in taps:
        np.maximum(y[dest], x[source], out=y[dest])
    return y


def _routed(taps: list[tuple[Slices, Slices]], a: Arrays) -> Array:
    dx = np.zeros_like(a.x)
    for source, dest in taps:
        dx[source] += np.where(a.x[source] == a.y[dest], a.g[dest], 0)
    return dx


def _recalled(taps: list[tuple[Slices, Slices]], a: Arrays) -> Array:
    out = np.zeros_like(a.y)
    for source, dest in taps:
        np.copyto(out[dest], a.v[source], where=a.x[source] == a.y[dest])
    return out


def _mean(taps: list[tuple[Slices, Slices]], x: Array, shape: tuple[int, ...], count: Array | None) -> Array:
    y = np.zeros(shape, x.dtype)
    for source, dest in taps:
        y[dest] += x[source]
    return np.asarray(y / count)


def _spread(taps: list[tuple[Slices, Slices]], g: Array, shape: tuple[int, ...], count: Array | None) -> Array:
    dx, share = np.zeros(shape, g.dtype), g / count
    for source, dest in taps:
        dx[source] += share[dest]
    return dx
