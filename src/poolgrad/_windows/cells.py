"""List the source cells of windows, and the windows of source cells, as flat positions."""

from __future__ import annotations

from math import prod

import numpy as np
import numpy.typing as npt

from .axis import Axis, IntArray
from .plan import Plan


def window_axes(plan: Plan) -> tuple[Axis | None, ...]:
    """Return the axis of each dimension, or None where cells keep their place."""
    return tuple(None if axis is None or axis.identity else axis for axis in plan.by_dimension)


def count_cells(plan: Plan) -> int:
    """Count the source cells that all windows read together; a cell counts once per window.

    >>> count_cells(Plan((1, 4), {1: Axis(4, [0, 1], [3, 4])}))
    6
    """
    return prod(int(a.count.sum()) if a is not None else n for a, n in zip(window_axes(plan), plan.dest, strict=True))


def cell_pairs(plan: Plan, windows: IntArray) -> tuple[IntArray, IntArray]:
    """Return one (k, cell) pair per cell of windows[k]: the flat source cells of each window in row-major order.

    >>> [a.tolist() for a in cell_pairs(Plan((1, 4), {1: Axis(4, [0, 1], [3, 4])}), np.array([1, 0]))]
    [[0, 0, 0, 1, 1, 1], [1, 2, 3, 0, 1, 2]]
    """
    axes, place = window_axes(plan), np.unravel_index(windows, plan.dest)
    counts = np.ones(len(windows), np.int64)
    for axis, at in zip(axes, place, strict=True):
        if axis is not None:
            counts *= axis.count[at]
    k = np.repeat(np.arange(len(windows)), counts)
    tap = np.arange(len(k)) - np.repeat(np.cumsum(counts) - counts, counts)
    cell, stride = np.zeros(len(k), np.int64), 1
    for axis, at, length in zip(reversed(axes), reversed(place), reversed(plan.source), strict=True):
        if axis is None:
            cell += at[k] * stride
        else:
            count = axis.count[at[k]]
            cell += (axis.start[at[k]] + tap % count * axis.step) * stride
            tap //= count
        stride *= length
    return k, cell


def covering_windows(plan: Plan, cell: tuple[int, ...]) -> IntArray:
    """Return the windows that read a source cell, as flat destination cells.

    >>> covering_windows(Plan((1, 4), {1: Axis(4, [0, 1], [3, 4])}), (0, 3)).tolist()
    [1]
    """
    sides = [
        np.array([at]) if axis is None else np.flatnonzero(_covers(axis, at))
        for axis, at in zip(window_axes(plan), cell, strict=True)
    ]
    return np.asarray(np.ravel_multi_index(np.meshgrid(*sides, indexing="ij"), plan.dest).reshape(-1), np.int64)


def _covers(axis: Axis, at: int) -> npt.NDArray[np.bool_]:
    inside: npt.NDArray[np.bool_] = (axis.start <= at) & (at < axis.stop) & ((at - axis.start) % axis.step == 0)
    return inside
