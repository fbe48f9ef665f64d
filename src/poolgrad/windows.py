"""Define windows: per axis, the source cells that each destination cell reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ._common.arrays import afford
from ._common.errors import ArgumentErrors
from ._windows.plan_cache import cache_plan

Ints = npt.NDArray[np.int64]

_STEP = 1 << 18  # entries of a table that are made at a time
_MANY = 1 << 23  # entries from which on memory may run out


def table(m: int, part: Callable[[int, int], npt.ArrayLike]) -> Ints:
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


def _frozen(values: npt.ArrayLike) -> Ints:
    """Copy the values: a caller may keep a writable view even of an array that is read-only."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"Axis: start, stop: got values of dtype {array.dtype}, wanted integers")
    flat = array.astype(np.int64, copy=False).reshape(-1)
    return table(flat.size, lambda a, b: flat[a:b])


@dataclass(frozen=True, eq=False)
class Axis:
    """Cell i of the result reads start[i]:stop[i]:step of an axis of `length`; span[i] is how many cells before it was cut.

    >>> axis = Axis(5, [0, 1, 3], [2, 4, 5])
    >>> axis.pairs()
    [(0, 2), (1, 4), (3, 5)]
    >>> axis.transpose().pairs()
    [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
    """

    length: int
    start: Ints
    stop: Ints
    span: Ints | None = None
    step: int = 1
    count: Ints = field(init=False)

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
        put(self, "start", _frozen(start))
        put(self, "stop", _frozen(stop))
        put(self, "step", int(step))
        if self.start.shape != self.stop.shape:
            raise ValueError(f"Axis: start: got {len(self.start)} windows, wanted {len(self.stop)}, as in stop")
        put(self, "count", table(len(self), self._counts))
        put(self, "span", self.count if span is None else _frozen(np.broadcast_to(span, self.start.shape)))
        self._check()

    def _counts(self, a: int, b: int) -> Ints:
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
        span = None if self.span is None or self.span is self.count else _packed(self.span)
        return _unpacked, (self.length, self.step, _packed(self.start), _packed(self.stop), span)

    def __copy__(self) -> Axis:
        return self  # which nobody can change

    def __deepcopy__(self, memo: Any) -> Axis:
        return self

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self.pairs())

    def pairs(self) -> list[tuple[int, int]]:
        """Return the windows as (start, stop)."""
        return list(zip(self.start.tolist(), self.stop.tolist(), strict=True))

    @property
    def identity(self) -> bool:
        """True if cell i reads cell i and nothing else, by a window that was not cut."""
        if len(self) != self.length or self.step != 1 or not (self.count == 1).all() or not np.all(self.span == 1):
            return False
        return bool((self.start[1:] > self.start[:-1]).all())  # so many starts that rise are 0, 1, 2, ...

    @property
    def covers(self) -> bool:
        """True if one window covers all cells and was not cut."""
        return len(self) == 1 and self.step == 1 and bool(self.count[0] == self.length == self.span[0])  # type: ignore[index]

    @property
    def tables(self) -> set[Axis]:
        """Itself."""
        return {self}

    def transpose(self) -> Axis:
        """Return the axis read backwards: for each source cell, the windows that cover it."""
        if self.step > 1:
            raise ValueError(
                f"Axis: step: got {self.step}, wanted 1: cells that are apart are not covered by an interval"
            )
        cells = np.arange(self.length)
        first = np.searchsorted(self.stop, cells, side="right")
        last = np.searchsorted(self.start, cells, side="right")
        return Axis(len(self), np.minimum(first, last), last)

    def phases(self) -> list[tuple[slice, slice, Axis]]:
        """Return the same windows by cells that lie side by side: per residue of the step, source slice, result slice, axis.

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
            start, span = (self.start[here] - r) // self.step, None if self.span is None else self.span[here]
            parts.append(
                (
                    slice(r, None, self.step),
                    slice(int(here[0]), int(here[-1]) + 1, every),
                    Axis(n, start, start + self.count[here], span),
                )
            )
        return parts

    def cut(self, i0: int, i1: int) -> tuple[slice, Axis]:
        """Return the source slice that result cells i0:i1 need, and the axis re-based to it.

        >>> Axis(5, [0, 1, 3], [2, 4, 5]).cut(1, 3)[0]
        slice(1, 5, None)
        """
        start, stop = self.start[i0:i1], self.stop[i0:i1]
        lo, hi = (int(start[0]), int(stop[-1])) if len(start) else (0, 0)
        span = None if self.span is None else self.span[i0:i1]
        return slice(lo, hi), Axis(hi - lo, start - lo, stop - lo, span, self.step)


def _packed(values: Ints) -> tuple[str, bytes]:
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


@cache_plan(1024)
def clip(n: int, k: int, s: int, pad: int, m: int) -> Axis:
    """Windows of k every s, cut off at the edges.

    >>> clip(5, k=3, s=2, pad=1, m=3).pairs()
    [(0, 2), (1, 4), (3, 5)]
    """

    def stop(a: int, b: int) -> Ints:
        return np.minimum(np.arange(a, b) * s + (k - pad), n)

    start = table(m, lambda a, b: np.minimum(np.maximum(np.arange(a, b) * s - pad, 0), stop(a, b)))
    return Axis(n, start, table(m, stop), k)


@cache_plan(1024)
def reach(n: int, k: int, s: int, pad: int, m: int) -> Axis:
    """As clip, but where k > n a window that begins before the axis reaches its end.

    >>> clip(4, k=5, s=1, pad=2, m=4).pairs(), reach(4, k=5, s=1, pad=2, m=4).pairs()
    ([(0, 3), (0, 4), (0, 4), (1, 4)], [(0, 4), (0, 4), (0, 4), (1, 4)])
    """
    axis = clip(n, k, s, pad, m)
    if k <= n:
        return axis
    return Axis(n, axis.start, table(m, lambda a, b: np.where(np.arange(a, b) * s < pad, n, axis.stop[a:b])))


def edges(n: int, sequence: npt.ArrayLike, overlapping: bool = False) -> Axis:
    """Windows between the entries of a sequence; overlapping ones share the cell at the border.

    >>> edges(5, [0, 2, 4], overlapping=True).pairs()
    [(0, 3), (2, 5)]
    """
    border = _frozen(sequence)
    return Axis(n, border[:-1], np.minimum(border[1:] + bool(overlapping), n))


def whole(n: int) -> Axis:
    """One window over everything."""
    return Axis(n, [0], [n])


def itself(n: int) -> Axis:
    """Return an axis whose window i is cell i: it is not pooled."""
    return Axis(n, table(n, np.arange), table(n, lambda a, b: np.arange(a + 1, b + 1)))


def valid_length(n: int, k: int, s: int) -> int:
    """Windows of k every s that fit into n, by division toward zero: 0 down to s short, else negative.

    >>> valid_length(5, 2, 2), valid_length(2, 3, 2), valid_length(2, 5, 2), valid_length(1, 6, 2)
    (2, 0, 0, -1)
    """
    over = n - k + s
    return over // s if over >= 0 else -(-over // s)


def same_length(n: int, s: int) -> int:
    """Windows every s that cover n."""
    return -(-n // s)


def same_pad(n: int, k: int, s: int) -> int:
    """Cells before the axis under SAME; negative where the windows leave cells over."""
    total = (same_length(n, s) - 1) * s + k - n
    return total // 2 if total >= 0 else -(-total // 2)


MOST_AXES = 16  # that the core walks through: pooled ones, and those between them


class TooManyAxes(ValueError):
    """More axes than the core walks through."""

    def __init__(self, pooled: int, between: int) -> None:
        self.got = f"{pooled} pooled axes" + (f" and {between} between them" if between else "")
        self.wanted = f"at most {MOST_AXES}"
        super().__init__(f"Plan: source: got {self.got}, wanted {self.wanted}")


@dataclass(frozen=True, eq=False)
class Plan:
    """An axis per dimension of an array, and the same as (outer, axes, inner).

    Dimensions between two pooled ones are joined if the core would have too many axes.

    >>> plan = Plan((2, 4, 4, 3), {1: clip(4, 2, 2, 0, 2), 2: clip(4, 2, 2, 0, 2)})
    >>> plan.dest, plan.outer, plan.inner, len(plan.axes)
    ((2, 2, 2, 3), 2, 3, 2)
    >>> [axis.length for axis in Plan((4, 5, *[1] * 14, 6, 4), {0: whole(4), 17: whole(4)}).axes]
    [4, 5, 6, 4]
    """

    source: tuple[int, ...]
    dest: tuple[int, ...]
    outer: int
    inner: int
    axes: tuple[Axis, ...]
    by_dimension: tuple[Axis | None, ...]

    def __init__(self, source: Sequence[int], pooled: dict[int, Axis]) -> None:
        put = object.__setattr__
        put(self, "source", tuple(source))
        put(self, "dest", tuple(len(pooled[d]) if d in pooled else n for d, n in enumerate(source)))
        for d, axis in pooled.items():
            if axis.length != source[d]:
                raise ValueError(
                    f"Plan: source: got length {source[d]} in dimension {d}, wanted {axis.length}, as its windows"
                )
        put(self, "by_dimension", tuple(pooled.get(d) for d in range(len(self.source))))
        kept = [d for d in sorted(pooled) if not pooled[d].identity] or sorted(pooled)[-1:] or [len(source) - 1]
        put(self, "outer", _product(self.source[: kept[0]]))
        put(self, "inner", _product(self.source[kept[-1] + 1 :]))
        put(self, "axes", _axes(self.source, pooled, kept))

    def __reduce__(self) -> tuple[Any, ...]:
        pooled = ((d, axis) for d, axis in enumerate(self.by_dimension) if axis is not None)
        return planned, (
            tuple(map(int, self.source)),
            *pooled,
        )  # what hangs on a plan, such as the native one, is made again

    def __copy__(self) -> Plan:
        return self  # which nobody can change

    def __deepcopy__(self, memo: Any) -> Plan:
        return self

    @property
    def tables(self) -> set[Axis]:
        """All axes that it holds."""
        return {*self.axes, *filter(None, self.by_dimension)}

    @property
    def whole(self) -> bool:
        """True if there is one window along the pooled axes, and it covers them."""
        return all(len(axis) == 1 and 0 < axis.length == axis.count[0] for axis in self.axes)


@cache_plan(1024)
def planned(source: tuple[int, ...], *pooled: tuple[int, Axis]) -> Plan:
    """Return the plan of these axes; cache it."""
    return Plan(source, dict(pooled))


def _axes(source: tuple[int, ...], pooled: dict[int, Axis], kept: list[int]) -> tuple[Axis, ...]:
    """Return the axes from the first dimension in `kept` to the last, joined where they are too many."""
    first, last = kept[0], kept[-1]
    if last - first < MOST_AXES:
        return tuple(pooled[d] if d in pooled else itself(source[d]) for d in range(first, last + 1))
    axes: list[Axis | int] = []  # a number stands for so many cells that keep their place
    for d in range(first, last + 1):
        axis, before = pooled.get(d), axes[-1] if axes else None
        if d not in kept:
            axes += [source[d]] if source[d] != 1 else []
        elif axis is not None and axis.covers and isinstance(before, Axis) and before.covers:
            axes[-1] = whole(before.length * axis.length)
        else:
            axes.append(itself(source[d]) if axis is None else axis)
    while len(axes) > MOST_AXES:
        pairs = [(a * b, i) for i, (a, b) in enumerate(pairwise(axes)) if isinstance(a, int) and isinstance(b, int)]
        if not pairs:
            raise TooManyAxes(len(kept), sum(isinstance(axis, int) for axis in axes))
        size, i = min(pairs)
        axes[i : i + 2] = [size]
    return tuple(itself(axis) if isinstance(axis, int) else axis for axis in axes)


def _product(sizes: Sequence[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total
