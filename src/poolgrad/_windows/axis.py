"""Define an axis: the source cells that each window along one dimension reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.arrays import afford
from .._common.errors import ArgumentErrors
from .plan_cache import cache_plan

IntArray = npt.NDArray[np.int64]

_STEP = 1 << 18  # entries of a table that are made at a time
_MANY = 1 << 23  # entries from which on memory may run out


def table(m: int, part: Callable[[int, int], npt.ArrayLike]) -> IntArray:
    """Make a read-only table of m integers; part(a, b) gives entries a to b - 1. Python can handle signals between parts."""
    if not 0 <= m <= _MANY:
        _check_many(m)
    made = np.empty(m, np.int64)
    for a in range(0, m, _STEP):
        made[a : a + _STEP] = part(a, min(a + _STEP, m))
    made.flags.writeable = False
    return made


def _check_many(m: int) -> None:
    """Refuse more entries than there is memory for, before any is made."""
    problems = ArgumentErrors("Axis")
    if m < 0:
        problems.fail("windows", m, "no negative number of windows")
    afford(problems, "windows", 4 * 8 * m, f"{m} windows")


def frozen_integers(values: npt.ArrayLike) -> IntArray:
    """Copy the values: a caller may keep a writable view even of an array that is read-only."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"Axis: start, stop: got values of dtype {array.dtype}, wanted integers")
    flat = array.astype(np.int64, copy=False).reshape(-1)
    return table(flat.size, lambda a, b: flat[a:b])


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

    def __init__(
        self,
        length: int,
        start: npt.ArrayLike,
        stop: npt.ArrayLike,
        span: npt.ArrayLike | None = None,
        step: int = 1,
    ) -> None:
        put = object.__setattr__
        put(self, "length", int(length))
        put(self, "start", frozen_integers(start))
        put(self, "stop", frozen_integers(stop))
        put(self, "step", int(step))
        if self.start.shape != self.stop.shape:
            raise ValueError(f"Axis: start: got {len(self.start)} windows, wanted {len(self.stop)}, as in stop")
        put(self, "count", table(len(self), self._counts))
        put(self, "span", self.count if span is None else frozen_integers(np.broadcast_to(span, self.start.shape)))
        self._check()

    def _counts(self, a: int, b: int) -> IntArray:
        cells = self.stop[a:b] - self.start[a:b]
        return cells if self.step == 1 else -(-cells // self.step)

    def _check(self) -> None:
        if self.length < 0 or (self.start < 0).any() or (self.stop > self.length).any() or (self.count < 0).any():
            raise ValueError(f"Axis: start, stop: got windows {self.pairs()[:8]}, wanted them inside 0:{self.length}")
        if self.step > 1:  # neighbours may be cut at different cells: what must rise is each phase by itself
            self.phases()
        elif (self.start[1:] < self.start[:-1]).any() or (self.stop[1:] < self.stop[:-1]).any():
            raise ValueError(f"Axis: start, stop: got windows {self.pairs()[:8]}, wanted them in ascending order")

    def __len__(self) -> int:
        return len(self.start)

    def __repr__(self) -> str:
        step = f", step={self.step}" if self.step > 1 else ""
        return f"Axis({self.length}, {self.start.tolist()}, {self.stop.tolist()}{step})"

    def __reduce__(self) -> tuple[Any, ...]:
        span = None if self.span is self.count else _packed(self.span)
        return _unpacked, (self.length, self.step, _packed(self.start), _packed(self.stop), span)

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
        """True if window i is cell i and was not cut: the dimension is not pooled."""
        if len(self) != self.length or self.step != 1 or not (self.count == 1).all() or not np.all(self.span == 1):
            return False
        return bool((self.start[1:] > self.start[:-1]).all())  # so many starts that rise are 0, 1, 2, ...

    @property
    def covers(self) -> bool:
        """True if one window covers all cells and was not cut."""
        return len(self) == 1 and self.step == 1 and bool(self.count[0] == self.length == self.span[0])

    @property
    def tables(self) -> set[Axis]:
        """The axis itself, as a set; the plan cache counts it."""
        return {self}

    def transpose(self) -> Axis:
        """Return the axis read backwards: for each source cell, the windows that cover it.

        Returns
        -------
        Axis
            An axis whose length is the number of windows, with one window per source cell.

        Raises
        ------
        ValueError
            If the windows are dilated.

        Examples
        --------
        >>> import poolgrad as pg
        >>> pg.Axis(3, [0, 1], [2, 3]).transpose().pairs()
        [(0, 1), (0, 2), (1, 2)]
        """
        if self.step > 1:
            raise ValueError(
                f"Axis: step: got {self.step}, wanted 1: cells that are apart are not covered by an interval"
            )
        cells = np.arange(self.length)
        first = np.searchsorted(self.stop, cells, side="right")
        last = np.searchsorted(self.start, cells, side="right")
        return Axis(len(self), np.minimum(first, last), last)

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
            parts.append(
                (
                    slice(r, None, self.step),
                    slice(int(here[0]), int(here[-1]) + 1, every),
                    Axis(n, start, start + self.count[here], self.span[here]),
                )
            )
        return parts

    def cut(self, i0: int, i1: int) -> tuple[slice, Axis]:
        """Return the part of the axis that some result cells need.

        Parameters
        ----------
        i0, i1 : int
            The first result cell, and the one after the last.

        Returns
        -------
        source : slice
            The source cells that they need.
        axis : Axis
            Their windows, counted from the first of these cells.

        Examples
        --------
        >>> Axis(5, [0, 1, 3], [2, 4, 5]).cut(1, 3)[0]
        slice(1, 5, None)
        """
        start, stop = self.start[i0:i1], self.stop[i0:i1]
        lo, hi = (int(start[0]), int(stop[-1])) if len(start) else (0, 0)
        return slice(lo, hi), Axis(hi - lo, start - lo, stop - lo, self.span[i0:i1], self.step)


def _packed(values: IntArray) -> tuple[str, bytes]:
    """Pack integers for a pickle: the name of the shortest dtype that holds them, and their bytes."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    kind = next(k for k in ("<i1", "<i2", "<i4", "<i8") if np.iinfo(k).min <= low and high <= np.iinfo(k).max)
    return kind, values.astype(kind).tobytes()


@cache_plan(1024)
def _unpacked(
    length: int, step: int, start: tuple[str, bytes], stop: tuple[str, bytes], span: tuple[str, bytes] | None
) -> Axis:
    """Return the axis of a pickle; cache equal axes."""
    first, last = (np.frombuffer(data, kind) for kind, data in (start, stop))
    return Axis(length, first, last, None if span is None else np.frombuffer(span[1], span[0]), step)
