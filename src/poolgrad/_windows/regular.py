"""Define sliding windows as a formula: a part of it costs what the part has windows, however many there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import gcd
from typing import Any, Literal

import numpy as np

from . import tables
from .axis import Axis, IntArray, Parent, Phase, afford_windows, counted, parents_of_part, with_parents
from .plan_cache import SHORT, cache_plan

FAR = 1 << 62  # cells behind an axis that no window reaches
LONG = 1 << 19  # windows from which on an axis is a formula, which is cut into parts
_PART = 1 << 18  # windows of a part, at least


class EmptyWindow(ValueError):
    """A window, by its number, that has no cell of the array."""

    def __init__(self, window: int) -> None:
        super().__init__(f"window {window} has no cell")
        self.window = window


@dataclass(frozen=True)
class Regular:
    """Windows of k cells, d apart, every s: window i begins `before` cells before cell i * s, and the edges cut it.

    Cut it as an `Axis`: both give the same parts. It has no tables, so that 10^10 windows are as cheap as ten.

    >>> Regular(5, 3, 2, 1, 1, 1, 3).axis().pairs()
    [(0, 2), (1, 4), (3, 5)]
    >>> Regular(10**12, 3, 2, 1, 1, 1, 10**11).cut(10**9, 10**9 + 2)
    (slice(1999999999, 2000000004, None), Axis(5, [0, 2], [3, 5]))
    """

    length: int  # cells along the dimension
    k: int
    s: int
    d: int
    before: int
    after: int | None  # cells of padding that spans may count; None if each span is k
    windows: int
    spans: bool = True  # False if spans are counts

    def __len__(self) -> int:
        return self.windows

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self.length, self.k, self.s, self.d, self.before, self.after, self.windows, self.spans)
        return Regular, fields  # tables and facts are made again

    @property
    def reach(self) -> int:
        """The cells from the first to the last of a window that is not cut."""
        return self.d * (self.k - 1) + 1

    def first(self, a: int, b: int) -> IntArray:
        """Return where windows a to b - 1 begin; before the edges cut them."""
        return np.arange(a, b, dtype=np.int64) * self.s - self.before

    def start(self, a: int, b: int) -> IntArray:
        """Return the first cell of windows a to b - 1."""
        first = self.first(a, b)
        return np.where(first < 0, first % self.d, first)

    def stop(self, a: int, b: int) -> IntArray:
        """Return the cell after the last one of windows a to b - 1."""
        return np.minimum(self.first(a, b) + self.reach, self.length)

    def span(self, a: int, b: int) -> IntArray:
        """Return the cells, padding included, of windows a to b - 1."""
        if not self.spans:
            return -((self.start(a, b) - self.stop(a, b)) // self.d)
        if self.after is None:
            return np.full(b - a, self.k, np.int64)
        return -(-np.minimum(self.reach, self.length + self.after - self.first(a, b)) // self.d)

    @property
    def uncut(self) -> bool:
        """True if spans are counts."""
        return not self.spans or not self.windows or self._uncut(0, self.windows)

    def counted(self) -> Regular:
        """Return the same windows, whose spans are their counts."""
        return replace(self, spans=False)

    def limits(self, what: Literal["count", "span"]) -> tuple[int, int]:
        """Return the least and the largest count or span of a window: they rise, stay, and fall."""
        if not self.windows:
            return 1, 1
        spans = what == "span"
        middle = self._about_middle()
        some = np.concatenate(
            [self.span(i, i + 1) if spans else self._count(i) for i in {0, *middle, self.windows - 1}]
        )
        return int(some.min()), int(some.max())

    def _count(self, i: int) -> IntArray:
        return -((self.start(i, i + 1) - self.stop(i, i + 1)) // self.d)

    def _about_middle(self) -> list[int]:
        """Return windows of which one has the most cells: those beside the first and the last that the edges do not cut."""
        edges = -(-self.before // self.s), (self.length + self.before - self.reach) // self.s
        return [min(max(i + more, 0), self.windows - 1) for i in edges for more in (-1, 0, 1)]

    def axis(self) -> Axis:
        """Return the windows as tables; refuse a window without a cell."""
        afford_windows(self.windows)
        after = FAR if self.after is None else self.after
        made, empty = tables.slide(self.length, self.k, self.s, self.d, self.before, after, self.windows)
        if empty >= 0:
            raise EmptyWindow(empty)
        axis = Axis.of(self.length, made, self.d)
        return axis if self.spans else counted(axis)

    @cached_property
    def _short(self) -> Axis | None:
        """The windows as tables if they are few. The formulas below want two windows for each residue of the dilation."""
        return self.axis() if self.windows <= max(SHORT, 2 * self.d) or self.length < self.d else None

    def check(self) -> None:
        """Refuse a window without a cell."""
        if self._short is None:  # whose tables are checked
            if self.before > self.d * (self.k - 1):
                raise EmptyWindow(0)
            past = max(
                -(-(self.length + self.before) // self.s), 0
            )  # the first window that begins behind the last cell
            if past < self.windows:
                raise EmptyWindow(past)

    def cut(self, i0: int, i1: int) -> tuple[slice, Axis]:
        """Return the part that windows i0 to i1 - 1 need, as `Axis.cut`."""
        if self._short is not None:
            return self._short.cut(i0, i1)
        lo, hi = self._cells(i0, i1) if i1 > i0 else (0, 0)
        return slice(lo, hi), self._part(i0, i1, lo, hi)

    def forward_parts(self) -> list[tuple[int, Axis]] | None:
        """Cut all windows into parts: (first cell, windows) each. Return None if windows are so long that parts would be few.

        Never compute gradients by these parts. They do not know their place among the windows (`Parent.first` is 0), by which the core
        orders long sums of gradients; without it, most parts are equal and share their windows.
        """
        period = self.widest // gcd(self.s, self.widest)  # parts that begin with a block of long sums are alike
        alone = -(-(2 * self.widest + max(self.before, 0)) // (self.s * period)) * period  # those near the edge are not
        step = -(-max(_PART, 4 * self.widest // self.s) // period) * period
        if self.windows < 2 * step:
            return None
        cuts = [0, *range(alone, self.windows - step, step), self.windows]
        ranges = [(a, b, *self._cells(a, b)) for a, b in pairwise(cuts)]
        return [(lo, self._part(a, b, lo, hi, forward=True)) for a, b, lo, hi in ranges]

    def cut_back(self, j0: int, j1: int) -> tuple[slice, slice, Axis]:
        """Return the part that the gradients of cells j0 to j1 - 1 need, as `Axis.cut_back`."""
        if self._short is not None:
            return self._short.cut_back(j0, j1)
        i0 = min(max((j0 + self.before - self.reach) // self.s + 1, 0), self.windows)
        i1 = max(min(-(-(j1 + self.before) // self.s), self.windows), i0) if j0 < j1 else i0
        first, last = self._cells(i0, i1) if i1 > i0 else (j0, j1)
        lo, hi = min(first, j0), max(last, j1)
        return slice(i0, i1), slice(lo, hi), self._part(i0, i1, lo, hi)

    def _uncut(self, i0: int, i1: int) -> bool:
        """Return True if the edges cut none of windows i0 to i1 - 1, of which there is one."""
        return i0 * self.s >= self.before and (i1 - 1) * self.s - self.before + self.reach <= self.length

    def _cells(self, i0: int, i1: int) -> tuple[int, int]:
        """Return the first cell of windows i0 to i1 - 1, and the cell after their last one."""
        if self._uncut(i0, i1):
            return i0 * self.s - self.before, (i1 - 1) * self.s - self.before + self.reach
        return int(self.start(i0, i1).min()), int(self.stop(i0, i1).max())

    def _part(self, i0: int, i1: int, lo: int, hi: int, *, forward: bool = False) -> Axis:
        """Return windows i0 to i1 - 1 over cells lo to hi - 1; `forward` drops what only gradients need."""
        parents = parents_of_part(self._phases, self.d, i0, lo)
        if forward:
            parents = {residue: parent._replace(first=0) for residue, parent in parents.items()}
        if i0 < i1 and self._uncut(i0, i1):
            if hi + self.d <= self.length and i1 + self.d <= self.windows:
                parents = {residue: parent.near_start() for residue, parent in parents.items()}
            offset = i0 * self.s - self.before - lo
            return _uncut_part(hi - lo, i1 - i0, offset, self.k, self.s, self.d, tuple(parents.items()))
        part = Axis(hi - lo, self.start(i0, i1) - lo, self.stop(i0, i1) - lo, self.span(i0, i1), self.d)
        return with_parents(part, parents)

    @cached_property
    def widest(self) -> int:
        """The cells of the longest window."""
        if self._short is not None:
            return int(self._short.count.max(initial=0))
        return max(phase.parent.widest if phase.parent else 1 for phase in self._phases.values())

    @cached_property
    def _phases(self) -> dict[int, Phase]:
        """The facts that parts need, by the residues of the starts; `Axis` finds the same ones in its tables."""
        every = self.d // gcd(self.s, self.d)
        found = {}
        for first in range(min(every, self.windows)):
            residue = (first * self.s - self.before) % self.d
            cells = len(range(residue, self.length, self.d))
            many = len(range(first, self.windows, every))
            begin = (first * self.s - self.before - residue) // self.d
            parent = _parent(cells, self.k, self.s * every // self.d, begin, many)
            itself = self.k == self.s == 1 and begin == 0 and many == cells
            found[residue] = Phase(first, every if many > 1 else 1, None if itself else parent)
        return found


@cache_plan(8)
def _uncut_part(n: int, m: int, offset: int, k: int, s: int, d: int, parents: tuple[tuple[int, Parent], ...]) -> Axis:
    """Return m windows over n cells, of which the first begins at `offset`; most parts of an array have the same ones."""
    tables = _uncut_tables(n, m, offset, k, s, d)
    part = Axis.of(n, (0, tables.start, tables.stop, tables.count, tables.span), d)
    part.__dict__["_lender"] = tables
    return with_parents(part, dict(parents))


@cache_plan(4)
def _uncut_tables(n: int, m: int, offset: int, k: int, s: int, d: int) -> Axis:
    start = np.arange(offset, offset + m * s, s, dtype=np.int64)
    return Axis(n, start, start + (d * (k - 1) + 1), np.full(m, k, np.int64), d)


def _parent(n: int, k: int, s: int, begin: int, m: int) -> Parent:
    """Return the facts about m windows of k cells side by side, every s, over n cells; none is empty, the first begins at `begin`."""

    def cells(i: int) -> int:
        first = begin + min(max(i, 0), m - 1) * s
        return min(first + k, n) - max(first, 0)

    uncut = min(0, n - k), max(0, n - k)  # where a window begins that has as many cells as possible
    widest = max(cells(i + more) for edge in uncut for i in [(edge - begin) // s] for more in (0, 1))
    covered = begin <= 0 and begin + (m - 1) * s + k >= n and (s <= k or m == 1)
    # Windows that edges do not cut have `widest` cells, so each ends a block or spans two. The others begin or end with the axis.
    # The windows over a cell are `overlap`, or one less, or begin or end with all windows: the same holds for them.
    return Parent(n, m, 0, 0, widest, min(m, -(-k // s)), 1, int(covered))


def borders(windows: Axis | Regular, edges: Sequence[int], back: bool) -> list[int]:
    """Return, for borders between cells, those between windows that lie mostly before and after them; or the way back.

    >>> three = Axis(6, [0, 1, 3], [2, 4, 6])
    >>> borders(three, [0, 3, 6], False), borders(three, [0, 2, 3], True)
    ([0, 2, 3], [0, 3, 6])
    >>> borders(Regular(10, 2, 2, 1, 0, 0, 5), [0, 4, 10], False)
    [0, 2, 5]
    """
    inner, most = list(edges[1:-1]), windows.length if back else len(windows)
    if isinstance(windows, Regular):
        shift = windows.before - (windows.reach - windows.s) // 2
        found = [e * windows.s - shift if back else -(-(e + shift) // windows.s) for e in inner]
    elif back:
        start, stop = windows.start, windows.stop
        found = [int(start[e] + stop[e - 1]) // 2 if 0 < e < len(windows) else 0 if e <= 0 else most for e in inner]
    else:
        middle = np.maximum.accumulate((windows.start + windows.stop) // 2)  # dilated windows may not rise
        found = np.searchsorted(middle, inner).tolist()
    return [0, *np.maximum.accumulate(np.clip(np.asarray(found, np.int64), 0, most)).tolist(), most]
