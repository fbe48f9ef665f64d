"""Name what a job and its calls speak about: regions, inputs, outputs, and the part of the windows that a region needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from .._common.arrays import Array
from .._common.errors import ArgumentErrors, short_repr
from .._windows.axis import Axis
from .._windows.plan import Plan
from .._windows.regular import Regular

Region: TypeAlias = tuple[slice, ...]
Shape: TypeAlias = tuple[int, ...]
Windows: TypeAlias = Axis | Regular


class Input(NamedTuple):
    """An array that a job reads."""

    name: str
    shape: Shape
    dtype: np.dtype[Any]
    pooled: bool  # True if it has the shape of the pooled array, False if that of the array before pooling


class Output(NamedTuple):
    """An array that a job makes."""

    name: str
    shape: Shape
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class Part:
    """The windows that a region needs, and their place in the whole array."""

    plan: Plan
    source: Region  # the cells that the windows read
    dest: Region  # the windows


class Call(Protocol):
    """The computation of a job over a part; pickled with the job."""

    @property
    def back(self) -> bool:
        """True if the result has the shape of the array before pooling."""

    def inputs(self, source: Shape, dest: Shape) -> tuple[Input, ...]:
        """Return the arrays that it reads."""

    def outputs(self, shape: Shape) -> tuple[Output, ...]:
        """Return the arrays that it makes."""

    def run(self, part: Part, whole: Shape, *arrays: Array) -> tuple[Array, ...]:
        """Compute the results over a part of an array of shape `whole`."""

    def temporary(self, part: Part) -> int:
        """Return the bytes that it needs besides its inputs and outputs, where those of a gradient cover the part's cells."""


def as_region(problems: ArgumentErrors, name: str, region: Sequence[slice], shape: Shape) -> Region:
    """Return a region with its bounds: 0 <= start <= stop <= length in each dimension."""
    given = tuple(region)
    if len(given) != len(shape) or any(not isinstance(s, slice) or s.step not in (None, 1) for s in given):
        problems.fail(name, short_repr(given), f"{len(shape)} slices without a step, for shape {list(shape)}")
    bounds = (s.indices(n) for s, n in zip(given, shape, strict=True))
    return tuple(slice(start, max(start, stop)) for start, stop, _ in bounds)


def size_of(region: Region) -> Shape:
    """Return the shape of a region."""
    return tuple(s.stop - s.start for s in region)


def within(region: Region, outer: Region) -> Region:
    """Return a region as an array counts it that begins with `outer`."""
    return tuple(slice(r.start - o.start, r.stop - o.start) for r, o in zip(region, outer, strict=True))


def edges_of(chunks: Sequence[int]) -> tuple[int, ...]:
    """Return the borders of chunks, from their lengths.

    >>> edges_of((4, 4, 2))
    (0, 4, 8, 10)
    """
    edges = [0]
    for c in chunks:
        edges.append(edges[-1] + int(c))
    return tuple(edges)


def pieces(edges: Sequence[Sequence[int]], need: Region) -> Iterator[tuple[Shape, Region, Region]]:
    """Yield the pieces of a need: the block, the slice of the need, and the slice of the block."""
    axes = []
    for lines, s in zip(edges, need, strict=True):
        first = max(int(np.searchsorted(lines, s.start, "right")) - 1, 0)
        last = int(np.searchsorted(lines, s.stop, "left"))
        axes.append([
            (b, slice(max(lo, s.start) - s.start, min(hi, s.stop) - s.start), slice(max(lo, s.start) - lo, min(hi, s.stop) - lo))
            for b in range(first, last)
            for lo, hi in [(lines[b], lines[b + 1])]
            if hi > lo
        ])  # fmt: skip
    for found in product(*axes):
        yield tuple(p[0] for p in found), tuple(p[1] for p in found), tuple(p[2] for p in found)


def joined(parts: Iterable[tuple[Region, Array]], many: int, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Put an array together from so many pieces, each with its place; one piece is the array."""
    if many == 1:
        return next(iter(parts))[1]
    whole = np.empty(shape, dtype)
    for place, part in parts:
        whole[place] = part
    return whole
