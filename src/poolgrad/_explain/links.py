"""Link source and destination cells: for every window, the cells that it reads and the cells that count.

Each destination cell has a window of source cells. For a mean, all cells of the window count equally. Otherwise the window has
hits: its largest cells, the cells near a given value, or a given position. The first hit counts; under NEAR, every hit counts. For a
norm, all cells count, each with a weight of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from .._ops.semantics import Kernel, OpSemantics
from .._windows.axis import Axis, IntArray
from .._windows.cells import cell_pairs, window_axes
from .._windows.plan import Plan

Array = npt.NDArray[Any]


class PoolVerb(Enum):
    """The computations of pools that no operator of the table has."""

    CARRY = "carry"  # v at the best cells of x: the tangent of a maximum
    NORM = "norm"  # y[i] = p-norm of window i
    PUSH = "push"  # the gradient of a norm
    PULL = "pull"  # the tangent of a norm


@dataclass(frozen=True)
class Weighing:
    """The divisor of a window and the cells that count, if they do not follow from the verb."""

    divide: str | float = "cells"  # a mean: by the cells that count, by the "span" (with the padding), or by a number
    skip: bool = False  # NaN cells do not count
    least: bool = False  # the smallest cell is the best
    last: bool = False  # the last of equal cells is the tap
    ties: str = "first"  # of equal cells: the "first", "every" one in full, or a "split"
    p: float = 2.0  # the power of a norm


PLAIN = Weighing()
SHARED = (Kernel.FOLD, Kernel.SPREAD)
NORMS = (PoolVerb.NORM, PoolVerb.PUSH, PoolVerb.PULL)
GIVEN = (Kernel.SCATTER, Kernel.GATHER)  # kernels that read positions from the caller instead of windows


@dataclass(frozen=True, eq=False)
class Links:
    """Links between source and destination cells, for all windows or some of them.

    >>> plan = Plan((1, 4), {1: Axis(4, [0, 2], [2, 4])})
    >>> made = links(plan, OpSemantics(None, Kernel.ROUTE), {"x": np.array([[5, 7, 7, 7]])})
    >>> made.hits(0), made.hits(1), made.push(np.array([[10, 20]])).tolist()
    ([1], [2, 3], [[0.0, 10.0, 20.0, 0.0]])
    """

    verb: Kernel | PoolVerb
    plan: Plan
    windows: IntArray  # flat destination cells
    ptr: IntArray | None = None  # hits of windows[k] are cell[ptr[k]:ptr[k + 1]]; None if all cells count
    cell: IntArray | None = None
    eps: float = 0.0
    how: Weighing = PLAIN

    @cached_property
    def axes(self) -> tuple[Axis | None, ...]:
        """Axis per dimension; None if the dimension is not pooled."""
        return window_axes(self.plan)

    @property
    def taken(self) -> str:
        """Cells that count in a window: "share" (all, equally), "norm" (all), "every" or "split" (every hit), "first" (the first hit)."""
        if self.verb in SHARED:
            return "share"
        return "norm" if self.verb in NORMS else "every" if self.verb is Kernel.NEAR else self.how.ties

    @property
    def nbytes(self) -> int:
        """Bytes of the window and hit tables."""
        return self.windows.nbytes + sum(a.nbytes for a in (self.ptr, self.cell) if a is not None)

    def hits(self, k: int) -> list[int]:
        """Return the hits of the k-th window, as flat source cells."""
        assert self.ptr is not None
        assert self.cell is not None
        found: list[int] = self.cell[self.ptr[k] : self.ptr[k + 1]].tolist()
        return found

    def weights(self) -> tuple[IntArray, IntArray, npt.NDArray[np.float64]]:
        """Return arrays of destination cell, source cell and weight, one entry per link of an op that counts."""
        if self.ptr is None or self.cell is None:
            k, j = cell_pairs(self.plan, self.windows)
            count = np.bincount(k, minlength=len(self.windows))
            return self.windows[k], j, 1.0 / count[k]
        found = np.diff(self.ptr)
        if self.taken == "first":
            some = found > 0
            return self.windows[some], self.cell[self.ptr[:-1][some]], np.ones(int(some.sum()))
        return np.repeat(self.windows, found), self.cell, np.ones(len(self.cell))

    def push(self, g: Array) -> npt.NDArray[np.float64]:
        """dx[j] = sum of weight * g[i], in float64."""
        i, j, weight = self.weights()
        total = np.bincount(j, weight * g.reshape(-1)[i].astype(np.float64), prod(self.plan.source))
        return total.astype(np.float64).reshape(self.plan.source)

    def pull(self, v: Array) -> npt.NDArray[np.float64]:
        """y[i] = sum of weight * v[j], in float64."""
        i, j, weight = self.weights()
        total = np.bincount(i, weight * v.reshape(-1)[j].astype(np.float64), prod(self.plan.dest))
        return total.astype(np.float64).reshape(self.plan.dest)


@dataclass(frozen=True)
class PoolRule:
    """The verb of a pool, in the place of an operator's semantics."""

    verb: Kernel | PoolVerb
    eps: float = 0.0


def links(
    plan: Plan,
    rule: OpSemantics | PoolRule,
    arrays: Mapping[str, Array],
    windows: IntArray | None = None,
    items: int = 1,
    absolute: bool = True,
    how: Weighing = PLAIN,
) -> Links:
    """Return the links of a plan and a rule for these arrays, named x, y, v, g or index by their role."""
    asked = np.arange(prod(plan.dest)) if windows is None else windows
    made = Links(rule.verb, plan, asked, eps=rule.eps, how=how)
    if rule.verb in (*SHARED, *NORMS):
        return made
    if rule.verb in GIVEN:
        each = prod(plan.dest) // max(items, 1)
        base = 0 if absolute else asked // max(each, 1) * (prod(plan.source) // max(items, 1))
        at = arrays["index"].reshape(-1)[asked].astype(np.int64) + base
        return Links(rule.verb, plan, asked, np.arange(len(asked) + 1), at)
    k, j = cell_pairs(plan, asked)
    turn = slice(None, None, -1 if how.last else 1)  # where the last cell wins, the search begins at the end
    hit = _hit(rule, arrays, asked, k[turn], j[turn])[turn]
    ptr = np.concatenate([[0], np.cumsum(np.bincount(k[hit], minlength=len(asked)))])
    cell = j[hit]
    if how.last:  # the tap comes first
        cell = cell[ptr[k[hit]] + ptr[k[hit] + 1] - 1 - np.arange(len(cell))]
    return Links(rule.verb, plan, asked, ptr, cell, rule.eps, how)


@np.errstate(all="ignore")
def _hit(
    rule: OpSemantics | PoolRule, arrays: Mapping[str, Array], windows: IntArray, k: IntArray, j: IntArray
) -> npt.NDArray[np.bool_]:
    """Return a mask of the cells that count, or that tie with a cell that counts."""
    x = _plain(arrays["x"])[j]
    searched = rule.verb in (Kernel.ROUTE, Kernel.ARGMAX, PoolVerb.CARRY)
    if searched and not (isinstance(rule, PoolRule) and "y" in arrays):
        return _largest(x, k)
    y = _plain(arrays["y"])[windows[k]]
    if rule.verb is Kernel.NEAR and x.dtype.kind not in "iu":
        limit = np.float32(rule.eps).astype(arrays["x"].dtype)
        near = np.abs(arrays["x"].reshape(-1)[j] - arrays["y"].reshape(-1)[windows[k]]) < limit
        return np.asarray(near, bool)
    return np.asarray(x == y, bool)


def _plain(array: Array) -> Array:
    """Return the array flat, in a dtype that NumPy itself can compare."""
    flat = array.reshape(-1)
    return flat.astype(np.float32) if flat.dtype.name == "bfloat16" else flat


def _largest(x: Array, k: IntArray) -> npt.NDArray[np.bool_]:
    """Return a mask of the largest cells of each window; NaN is the largest only as the first cell, since no number exceeds it."""
    if not len(k):
        return np.zeros(0, bool)
    first = np.flatnonzero(np.diff(k, prepend=-1))
    number = np.cumsum(np.diff(k, prepend=-1) != 0) - 1
    best = np.fmax.reduceat(x, first)
    lost = x[first] != x[first]
    hit: npt.NDArray[np.bool_] = (x == best[number]) & ~lost[number]
    hit[first[lost]] = True
    return hit
