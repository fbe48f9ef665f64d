"""Tile a result into regions: a sequence that costs nothing however many there are, and the choice of their size."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from math import ceil, prod
from typing import Any, overload

from .._common.errors import ArgumentErrors, short_repr
from .parts import Region, Shape

_UNITS = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4, "P": 1000**5}


class Regions(Sequence[Region]):
    """Boxes that tile an array, in row-major order. A slice of it, such as ``regions[i::n]``, is the share of one of n workers.

    >>> tiles = Regions((5, 4), (2, 4))
    >>> len(tiles), tiles[2]
    (3, (slice(4, 5, None), slice(0, 4, None)))
    >>> [region[0] for region in tiles[1::2]]
    [slice(2, 4, None)]
    """

    def __init__(self, shape: Shape, size: Shape, which: range | None = None) -> None:
        self.shape, self.size = tuple(shape), tuple(max(s, 1) for s in size)
        self.grid = tuple(-(-n // s) for n, s in zip(self.shape, self.size, strict=True))
        self.which = range(prod(self.grid)) if which is None else which

    def __len__(self) -> int:
        return len(self.which)

    @overload
    def __getitem__(self, at: int) -> Region: ...
    @overload
    def __getitem__(self, at: slice) -> Regions: ...
    def __getitem__(self, at: int | slice) -> Region | Regions:
        if isinstance(at, slice):
            return Regions(self.shape, self.size, self.which[at])
        return self.at(self.place(self.which[at]))

    def __iter__(self) -> Iterator[Region]:
        return (self.at(self.place(number)) for number in self.which)

    def __repr__(self) -> str:
        return f"<Regions: {len(self)} of {list(self.size)} in {list(self.shape)}>"

    def place(self, number: int) -> Shape:
        """Return the place in the grid of the region with that number."""
        place = []
        for n in reversed(self.grid):
            number, here = divmod(number, n)
            place.append(here)
        return tuple(reversed(place))

    def at(self, place: Sequence[int]) -> Region:
        """Return the region at a place of the grid."""
        return tuple(
            slice(int(i) * s, min((int(i) + 1) * s, n)) for i, s, n in zip(place, self.size, self.shape, strict=True)
        )

    @property
    def chunks(self) -> tuple[tuple[int, ...], ...]:
        """The lengths of the regions along each dimension, as Dask writes them."""
        return tuple(
            tuple(min(s, n - i) for i in range(0, n, s)) or (0,) for s, n in zip(self.size, self.shape, strict=True)
        )


def as_bytes(problems: ArgumentErrors, name: str, value: Any) -> int:
    """Return a number of bytes from a number or a text.

    >>> as_bytes(ArgumentErrors("pool"), "memory", "1.5 GB"), as_bytes(ArgumentErrors("pool"), "memory", "2MiB")
    (1500000000, 2097152)
    """
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([KMGTP]?)(i?)B?\s*", value, re.I) if isinstance(value, str) else None
    if not found or float(found[1]) <= 0:
        problems.fail(name, short_repr(value), "a number of bytes, such as 2000000000, '2GB' or '500 MiB'")
    unit = _UNITS[found[2].upper()]
    if found[3]:
        unit = 1024 ** round(len(str(unit)) / 3 - 0.1)
    return int(float(found[1]) * unit)


def choose_size(
    shape: Shape,
    unit: Shape,
    cost: Callable[[Shape], tuple[float, int]],
    memory: int,
    target: int,
) -> Shape | None:
    """Return the size of the regions: whole units, with as little read twice as memory allows; None if one unit does not fit.

    `cost` gives, for a size, the bytes that are read per byte of result, and the bytes of memory. Regions grow while that lowers the
    former by a hundredth, and until they need `target` bytes of memory, so that the costs of a task are small.
    """
    size = tuple(min(u, n) if n else 1 for u, n in zip(unit, shape, strict=True))
    read, needed = cost(size)
    if needed > memory:
        return None
    while True:
        best: tuple[float, int, Shape] | None = None
        for d in reversed(range(len(shape))):
            if size[d] >= shape[d]:
                continue
            steps = max(ceil(size[d] / unit[d]), 1)
            longer = tuple(min(2 * steps * unit[d], shape[d]) if k == d else s for k, s in enumerate(size))
            more_read, more = cost(longer)
            if more <= memory and (best is None or more_read < best[0] * 0.999):
                best = more_read, more, longer
        if best is None or not (best[0] < 0.99 * read or needed < target):
            return size
        if best[1] > target and best[0] >= 0.99 * read:
            return size
        read, needed, size = best
