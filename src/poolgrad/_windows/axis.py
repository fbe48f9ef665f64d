"""Define an axis: the source cells that each window along one dimension reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from .._common.arrays import afford
from .._common.errors import ArgumentErrors
from . import tables
from .plan_cache import cache_plan, make_room

IntArray = npt.NDArray[np.int64]

_STEP = 1 << 18  # entries of a table that are made at a time
_MANY = 1 << 23  # entries from which on memory may run out
_TABLES = ("start", "stop", "span", "count")
_MOST = 1 << 62  # cells of an axis, and cells from one cell of a window to the next


def table(m: int, part: Callable[[int, int], npt.ArrayLike]) -> IntArray:
    """Make a read-only table of m integers; part(a, b) gives entries a to b - 1. Python can handle signals between parts."""
    afford_windows(m)
    made = np.empty(m, np.int64)
    for a in range(0, m, _STEP):
        made[a : a + _STEP] = part(a, min(a + _STEP, m))
    made.flags.writeable = False
    return made


def afford_windows(m: int) -> None:
    """Refuse a negative number of windows, and more windows than there is memory for, before any is made."""
    if 0 <= m <= _MANY:
        return
    problems = ArgumentErrors("Axis")
    if m < 0:
        problems.fail("windows", m, "no negative number of windows")
    afford(problems, "windows", 4 * 8 * m, f"{m} windows")


def integers(values: npt.ArrayLike) -> IntArray:
    """Return boundaries as a vector that the core can read."""
    array = values if type(values) is np.ndarray else np.asarray(values)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"Axis: start, stop: got values of dtype {array.dtype}, wanted integers")
    flat = array.astype(np.int64, copy=False).reshape(-1)
    return flat if flat.flags.c_contiguous and flat.flags.aligned else flat.copy()


class Parent(NamedTuple):
    """The axis that a part was cut from. The core composes long sums by it, so that a part has the bits of the whole."""

    length: int  # its source cells
    windows: int  # the number of its windows
    origin: int  # its source cell at which the part begins
    first: int  # its window at which the part begins
    widest: int  # the cells of its longest window
    overlap: int  # the most windows that read one cell
    fits: int  # 1 if every window begins or ends with a block of `widest` cells, or spans two of them
    fits_back: int  # the same for the transposed axis, with blocks of `overlap` windows

    def part(self, origin: int, first: int) -> Parent:
        """Return the facts for a part that begins so many cells and windows further."""
        return self._replace(origin=self.origin + origin, first=self.first + first)

    def near_start(self) -> Parent:
        """Return the facts for the part as if it began some whole blocks earlier, which changes no bit: equal parts get equal facts.

        The part must end before its parent does, in cells and in windows. It still begins at least a block behind the parent's start.
        """

        def moved(at: int, block: int) -> int:
            return at if at < 2 * block else at % block + block

        return self._replace(
            origin=moved(self.origin, max(self.widest, 1)), first=moved(self.first, max(self.overlap, 1))
        )


class Phase(NamedTuple):
    """The windows of an axis whose starts have one residue of the step: their numbers, and the axis that they came from."""

    first: int  # the number of the first such window
    every: int  # the step from one such window to the next
    parent: Parent | None  # None if nothing is pooled


_NO_PARENTS: Mapping[int, Parent] = {}


class Formula(Protocol):
    """Windows that need no tables: `regular.Regular`."""

    @property
    def length(self) -> int: ...
    def __len__(self) -> int: ...
    def axis(self) -> Axis: ...
    def cut(self, i0: int, i1: int) -> tuple[slice, Axis]: ...
    def counted(self) -> Formula: ...
    def forward_parts(self) -> list[tuple[int, Axis]] | None: ...
    def limits(self, what: Literal["count", "span"]) -> tuple[int, int]: ...
    @property
    def widest(self) -> int: ...
    @property
    def uncut(self) -> bool: ...


@dataclass(frozen=True, eq=False)
class Axis:
    """The windows along one dimension: cell i of the result reads cells start[i]:stop[i]:step of the source.

    Pass an axis as `window` to a pool, or several, one per pooled axis. An axis never changes: it copies the boundaries, and its
    arrays are read-only. Axes can be iterated over, pickled and copied.

    Parameters
    ----------
    length : int
        The number of source cells along the dimension.
    start, stop : array_like of int
        The first cell of each window, and the cell after its last one. Both ascend.
    span : array_like of int, optional
        The number of cells that each window had before the edges cut it; `count_include_pad` divides by it. Default: its cells.
    step : int, optional
        The distance between the cells of a window: its dilation. Default: 1.

    Attributes
    ----------
    count : ndarray of int64
        The number of cells of each window.

    Raises
    ------
    TypeError
        If a boundary is not an integer.
    ValueError
        If a window is not inside the dimension, or windows do not ascend.

    See Also
    --------
    Plan : An axis per dimension of an array.
    sliding_axis, reach, edges, whole, adaptive, fractional_windows : Make axes.

    Examples
    --------
    >>> import poolgrad as pg
    >>> axis = pg.Axis(5, [0, 1, 3], [2, 4, 5])
    >>> axis.pairs()
    [(0, 2), (1, 4), (3, 5)]
    >>> axis.transpose().pairs()
    [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
    >>> pg.max_pool([4, 1, 7, 2, 3], axis).tolist()
    [4, 7, 3]
    """

    length: int
    start: IntArray
    stop: IntArray
    span: IntArray
    step: int
    count: IntArray = field(init=False)
    parents: Mapping[int, Parent] = field(init=False, repr=False)  # of a part, by the residues of its starts
    formula: Formula | None = field(
        init=False, repr=False
    )  # of a long axis, whose tables are made when someone reads them

    def __init__(
        self,
        length: int,
        start: npt.ArrayLike,
        stop: npt.ArrayLike,
        span: npt.ArrayLike | None = None,
        step: int = 1,
    ) -> None:
        first, last, length, step = integers(start), integers(stop), int(length), int(step)
        if first.shape != last.shape:
            raise ValueError(f"Axis: start: got {len(first)} windows, wanted {len(last)}, as in stop")
        if not 1 <= step < _MOST:
            raise ValueError(f"Axis: step: got {step}, wanted 1 to {_MOST - 1}")
        afford_windows(len(first))
        spans = None if span is None else integers(np.broadcast_to(span, first.shape))
        self._take(length, step, tables.windows(max(min(length, _MOST), -1), first, last, spans, step))

    @staticmethod
    def of(length: int, made: tuple[int, IntArray, IntArray, IntArray, IntArray], step: int = 1) -> Axis:
        """Return the axis of tables that the core made."""
        axis: Axis = object.__new__(Axis)
        axis._take(int(length), step, made)
        return axis

    @staticmethod
    def by(formula: Formula) -> Axis:
        """Return the axis of windows that a formula gives side by side; it makes its tables when someone reads them."""
        axis: Axis = object.__new__(Axis)
        axis.__dict__.update(
            length=formula.length,
            step=1,
            parents=_NO_PARENTS,
            formula=formula,
            _entries=formula.length + len(formula),
        )
        return axis

    def __getattr__(self, name: str) -> Any:
        formula = self.__dict__.get("formula") if name in _TABLES else None
        if formula is None:
            raise AttributeError(f"Axis: no attribute {name!r}")
        made = formula.axis()
        self.__dict__.update({table: getattr(made, table) for table in _TABLES})
        make_room()
        return self.__dict__[name]

    def _take(self, length: int, step: int, made: tuple[int, IntArray, IntArray, IntArray, IntArray]) -> None:
        fault, start, stop, count, span = made
        self.__dict__.update(
            length=length,
            start=start,
            stop=stop,
            span=span,
            step=step,
            count=count,
            parents=_NO_PARENTS,
            formula=None,
            _entries=length + len(start),
        )
        if fault:
            wanted = f"inside 0:{length}" if fault == tables.OUTSIDE else "in ascending order"
            raise ValueError(f"Axis: start, stop: got windows {self.pairs()[:8]}, wanted them {wanted}")
        if step > 1:  # neighbours may be cut at different cells: what must rise is each phase by itself
            self.phases()

    def __len__(self) -> int:
        return len(self.start if self.formula is None else self.formula)

    def __repr__(self) -> str:
        step = f", step={self.step}" if self.step > 1 else ""
        return f"Axis({self.length}, {self.start.tolist()}, {self.stop.tolist()}{step})"

    def __reduce__(self) -> tuple[Any, ...]:
        span = None if self.span is self.count else _packed(self.span)
        parents = tuple((r, tuple(parent)) for r, parent in self.parents.items())
        return _unpacked, (self.length, self.step, _packed(self.start), _packed(self.stop), span, parents)

    def __copy__(self) -> Axis:
        return self  # which nobody can change

    def __deepcopy__(self, memo: Any) -> Axis:
        return self

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self.pairs())

    def pairs(self) -> list[tuple[int, int]]:
        """Return the windows as pairs.

        Returns
        -------
        list of (int, int)
            The start and the stop of each window.

        Examples
        --------
        >>> import poolgrad as pg
        >>> pg.edges(5, [0, 2, 5]).pairs()
        [(0, 2), (2, 5)]
        """
        return list(zip(self.start.tolist(), self.stop.tolist(), strict=True))

    @property
    def identity(self) -> bool:
        """True if window i is cell i and was not cut: the dimension is not pooled. A part is as pooled as its parent."""
        if self.parents or self.step != 1 or len(self) != self.length:
            return False
        if self.formula is not None:
            return self.formula.limits("count") == self.formula.limits("span") == (1, 1)
        if not (self.count == 1).all() or not np.all(self.span == 1):
            return False
        return bool((self.start[1:] > self.start[:-1]).all())  # so many starts that rise are 0, 1, 2, ...

    @property
    def covers(self) -> bool:
        """True if one window covers all cells and was not cut."""
        return (
            len(self) == 1
            and self.step == 1
            and not self.parents
            and bool(self.count[0] == self.length == self.span[0])
        )

    @property
    def widest(self) -> int:
        """The cells of the longest window."""
        return int(self.count.max(initial=0)) if self.formula is None else self.formula.widest

    @property
    def uncut(self) -> bool:
        """True if the edges cut no window: spans are counts."""
        return self.span is self.count if self.formula is None else self.formula.uncut

    @property
    def tables(self) -> set[Axis]:
        """The axis itself, as a set; the plan cache counts it."""
        return {self}

    @property
    def tables_by_now(self) -> set[Axis]:
        """The axis that owns the tables, as a set."""
        return {self.__dict__.get("_lender", self)}

    @property
    def held(self) -> int:
        """The table entries that the axis has by now: none if it is a formula whose tables nobody has read."""
        entries: int = self.__dict__["_entries"]
        return entries if "start" in self.__dict__ else 0

    def transpose(self) -> Axis:
        """Return the axis read backwards: for each source cell, the windows that read it.

        Returns
        -------
        Axis
            An axis whose length is the number of windows, with one window per source cell.

        Raises
        ------
        ValueError
            If the windows are dilated, and those that read one cell are no evenly spaced interval, or some residue of the step
            has no window.

        Examples
        --------
        >>> import poolgrad as pg
        >>> pg.Axis(3, [0, 1], [2, 3]).transpose().pairs()
        [(0, 1), (0, 2), (1, 2)]
        >>> pg.Axis(4, [0, 1], [3, 4], step=2).transpose()
        Axis(2, [0, 1, 0, 1], [1, 2, 1, 2], step=2)
        """
        if self.step > 1:
            return self._transpose_phases()
        cells = np.arange(self.length)
        first = np.searchsorted(self.stop, cells, side="right")
        last = np.searchsorted(self.start, cells, side="right")
        return Axis(len(self), np.minimum(first, last), last)

    def _transpose_phases(self) -> Axis:
        """Transpose dilated windows: each phase by itself, then number its windows as the axis does."""
        phases = self.phases()
        steps = {dest.step for _, dest, part in phases if len(part) > 1}
        if len(phases) < min(self.step, self.length) or len(steps) > 1:
            raise ValueError(
                f"Axis: step: got {self.step} with starts {self.start.tolist()[:8]}, wanted windows for each residue of the "
                "step, as many apart: else the windows over a cell are no interval"
            )
        every = steps.pop() if steps else self.step
        start, stop = np.zeros((2, self.length), np.int64)
        for source, dest, part in phases:
            back = part.transpose()
            start[source] = dest.start + back.start * every
            stop[source] = np.minimum(start[source] + np.maximum((back.count - 1) * every + 1, 0), len(self))
        return Axis(len(self), start, stop, step=every)

    def phases(self) -> list[tuple[slice, slice, Axis]]:
        """Split dilated windows into parts whose cells lie side by side, one part per residue of the step.

        Returns
        -------
        list of (slice, slice, Axis)
            For each part: its source cells, its result cells, and the axis between them.

        Raises
        ------
        ValueError
            If the residues of the starts do not repeat evenly.

        Examples
        --------
        >>> [(s, d, a.pairs()) for s, d, a in Axis(5, [0, 1, 2], [3, 4, 5], step=2).phases()]
        [(slice(0, None, 2), slice(0, 3, 2), [(0, 2), (1, 3)]), (slice(1, None, 2), slice(1, 2, 1), [(0, 2)])]
        """
        if self.step == 1:
            return [(slice(None), slice(None), self)]
        parts = []
        for r in np.unique(self.start % self.step).tolist():
            here = np.flatnonzero(self.start % self.step == r)
            every = int(here[1] - here[0]) if len(here) > 1 else 1
            if (np.diff(here) != every).any():
                raise ValueError(
                    f"Axis: start: got {self.start.tolist()[:8]}, wanted residues of {self.step} that repeat evenly"
                )
            n = len(range(r, self.length, self.step))
            start = (self.start[here] - r) // self.step
            part = Axis(n, start, start + self.count[here], self.span[here])
            part = with_parents(part, {0: self.parents[r]} if r in self.parents else {})
            parts.append((slice(r, None, self.step), slice(int(here[0]), int(here[-1]) + 1, every), part))
        return parts

    def cut(self, i0: int, i1: int) -> tuple[slice, Axis]:
        """Return the part of the axis that some result cells need. Pools over it give the bits of the whole axis.

        Parameters
        ----------
        i0, i1 : int
            The first result cell, and the one after the last.

        Returns
        -------
        source : slice
            The source cells that they need.
        axis : Axis
            Their windows, counted from the first of these cells. It knows its place in the whole axis.

        See Also
        --------
        Plan : Cut every dimension of an array with `Plan.cut`.

        Examples
        --------
        >>> Axis(5, [0, 1, 3], [2, 4, 5]).cut(1, 3)[0]
        slice(1, 5, None)
        """
        start, stop = self.start[i0:i1], self.stop[i0:i1]
        lo, hi = (int(start.min()), int(stop.max())) if len(start) else (0, 0)
        return slice(lo, hi), self._part(slice(i0, i1), slice(lo, hi))

    def cut_back(self, j0: int, j1: int) -> tuple[slice, slice, Axis]:
        """Return the part of the axis that some source cells need: the gradients of these cells, over it, have the bits of the whole.

        Parameters
        ----------
        j0, j1 : int
            The first source cell, and the one after the last.

        Returns
        -------
        dest : slice
            The windows that may read one of them.
        source : slice
            The cells of these windows, and the given ones.
        axis : Axis
            The windows, counted from the first of these cells. Other cells than the given ones may lack windows.

        Examples
        --------
        >>> Axis(6, [0, 1, 3], [2, 4, 6]).cut_back(2, 3)
        (slice(1, 2, None), slice(1, 4, None), Axis(3, [0], [3]))
        """
        if self.step == 1:
            i0, i1 = int(np.searchsorted(self.stop, j0, side="right")), int(np.searchsorted(self.start, j1))
        else:
            reading = np.flatnonzero((self.start < j1) & (self.stop > j0))
            i0, i1 = (int(reading[0]), int(reading[-1]) + 1) if len(reading) else (0, 0)
        dest = slice(i0, max(i0, i1) if j0 < j1 else i0)
        lo, hi = int(self.start[dest].min(initial=j0)), int(self.stop[dest].max(initial=j1))
        return dest, slice(lo, hi), self._part(dest, slice(lo, hi))

    def _part(self, dest: slice, source: slice) -> Axis:
        """Return these windows as an axis over these cells, which hold them."""
        lo, hi = source.start, source.stop
        i0, i1, _ = dest.indices(len(self))
        if (i0, i1, lo, hi) == (0, len(self), 0, self.length):
            return self
        parents = parents_of_part(self._phases_of_whole(), self.step, i0, lo)
        part = Axis(hi - lo, self.start[i0:i1] - lo, self.stop[i0:i1] - lo, self.span[i0:i1], self.step)
        return with_parents(part, parents)

    def _phases_of_whole(self) -> dict[int, Phase]:
        """Return the facts that parts need, by the residues of the starts; computed once."""
        kept: dict[int, Phase] | None = self.__dict__.get("_whole")
        if kept is None:
            kept = {}
            for source, dest, axis in self.phases():
                first, every = dest.start or 0, dest.step or 1
                kept[source.start or 0] = Phase(first, every, None if axis.identity else parent_of(axis))
            object.__setattr__(self, "_whole", kept)
        return kept


def counted(axis: Axis) -> Axis:
    """Return the same windows, whose spans are their counts."""
    if axis.formula is not None:
        return Axis.by(axis.formula.counted())
    return Axis(axis.length, axis.start, axis.stop, step=axis.step)


def limits(axis: Axis, what: Literal["count", "span"]) -> tuple[int, int]:
    """Return the least and the largest count or span of a window."""
    if axis.formula is not None:
        return axis.formula.limits(what)
    values = getattr(axis, what)
    return (int(values.min()), int(values.max())) if values.size else (1, 1)


def parents_of_part(phases: Mapping[int, Phase], step: int, window: int, cell: int) -> dict[int, Parent]:
    """Return the parents of a part that begins with this window and this cell, by the residues of its own starts."""
    parents = {}
    for residue, phase in phases.items():
        if phase.parent is not None:
            here = (residue - cell) % step  # the residue as the part counts cells
            before = max(-(-(window - phase.first) // phase.every), 0)
            parents[here] = phase.parent.part((cell + here - residue) // step, before)
    return parents


def with_parents(axis: Axis, parents: Mapping[int, Parent]) -> Axis:
    """Return a new axis as a part of these ones."""
    object.__setattr__(axis, "parents", parents)
    return axis


def parent_of(axis: Axis) -> Parent:
    """Return the facts about the axis that this one was cut from, or about itself; its windows are not dilated."""
    if axis.parents:
        return axis.parents[0]
    back = axis.transpose()
    widest, overlap = (int(a.count.max(initial=0)) for a in (axis, back))
    return Parent(axis.length, len(axis), 0, 0, widest, overlap, int(_fits(axis, widest)), int(_fits(back, overlap)))


def _fits(axis: Axis, block: int) -> bool:
    """Return True if every window begins or ends with a block, or spans two: the core may then add up block by block.

    The last block ends with the axis.
    """
    if not len(axis) or not axis.count.all():
        return False
    begin = axis.start // block * block
    end = np.minimum(begin + block, axis.length)
    return bool(((axis.start == begin) | (axis.stop >= end)).all())


def _packed(values: IntArray) -> tuple[str, bytes]:
    """Pack integers for a pickle: the name of the shortest dtype that holds them, and their bytes."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    kind = next(k for k in ("<i1", "<i2", "<i4", "<i8") if np.iinfo(k).min <= low and high <= np.iinfo(k).max)
    return kind, values.astype(kind).tobytes()


@cache_plan(1024)
def _unpacked(
    length: int,
    step: int,
    start: tuple[str, bytes],
    stop: tuple[str, bytes],
    span: tuple[str, bytes] | None,
    parents: tuple[tuple[int, tuple[int, ...]], ...] = (),
) -> Axis:
    """Return the axis of a pickle; cache equal axes."""
    first, last = (np.frombuffer(data, kind) for kind, data in (start, stop))
    axis = Axis(length, first, last, None if span is None else np.frombuffer(span[1], span[0]), step)
    return with_parents(axis, {r: Parent(*facts) for r, facts in parents})
