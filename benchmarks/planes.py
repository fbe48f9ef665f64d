"""Lay out a grid of cells that no workload names: planes of many sizes, short windows, arrays in cache and beyond it."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator
from typing import TypeVar

from .bandwidth import last_level_cache
from .cells import Cell, solid
from .machine import available_memory

# A plane: its sides, and the channels that such a plane usually has. Many rows do not fill a vector of lanes.
FLAT = {
    (7, 7): 512, (13, 13): 384, (14, 14): 256, (28, 28): 192, (35, 35): 64, (56, 56): 64, (57, 61): 37,
    (112, 112): 64, (224, 224): 16, (480, 640): 8, (1000, 1503): 4, (2000, 3000): 4,
}  # fmt: skip
SOLID = {(4, 7, 7): 256, (8, 14, 14): 128, (16, 28, 28): 64, (13, 29, 31): 37, (32, 56, 56): 16, (64, 128, 128): 4}
WINDOWS, STRIDES = (2, 3, 5), (1, 2, 3)
KINDS = ("MaxPool", "MaxPoolGrad", "MaxPoolGradGrad", "AvgPool", "AvgPoolGrad")
FEWEST = 3  # channels: with one channel both layouts are the same
WORD = 4  # bytes of an element by which sizes are chosen, so that all types have the same shapes

T = TypeVar("T")


def sizes() -> dict[str, int]:
    """Return the bytes of a float32 input that lies in the cache, with its result, and of one that no cache holds."""
    cache = last_level_cache()
    return {"cache": cache // 16, "memory": min(2 * cache, available_memory() // 32)}


def shape(plane: tuple[int, ...], channels: int, size: str) -> tuple[int, ...] | None:
    """Return the channels-last shape of about a size; None if the plane is too large for the cache."""
    limit = sizes()
    pixels = math.prod(plane) * WORD
    channels = min(channels, max(limit[size] // pixels, FEWEST))
    images = max(limit[size] // (pixels * channels), 1)
    if size == "cache" and images * channels * pixels > 4 * limit["cache"]:
        return None
    return (images, *plane, channels)


def cells(kinds: Iterable[str] = KINDS, dtypes: Iterable[str] = ("float32", "bfloat16")) -> Iterator[Cell]:
    """Yield the channels-first cells of the grid; kinds are those of two dimensions.

    Odd windows have SAME padding and even ones VALID, which every peer has.
    """
    dtypes, kinds = list(dtypes), list(kinds)
    for (plane, channels), size in itertools.product([*FLAT.items(), *SOLID.items()], sizes()):
        x = shape(plane, channels, size)
        if x is None:
            continue
        for dtype, k, s in itertools.product(dtypes, WINDOWS, STRIDES):
            for kind in kinds:
                yield _cell(x, size, kind, dtype, k, s)


def _cell(x: tuple[int, ...], size: str, kind: str, dtype: str, k: int, s: int) -> Cell:
    rank = len(x) - 2
    name = "x".join(map(str, x)) + f"_k{k}_s{s}_{size}"
    padding = "SAME" if k % 2 else "VALID"
    layout, kind = ("NCHW", kind) if rank == 2 else ("NCDHW", solid(kind))
    return Cell(name, kind, layout, dtype, x, (k,) * rank, (s,) * rank, padding)


def plane_of(cell: Cell) -> str:
    """Return the sides of a cell's plane, such as "14x14"."""
    return "x".join(map(str, cell.x[1:-1]))


def sample(items: list[T], count: int, seed: int = 0) -> list[T]:
    """Return `count` items drawn at random, in their order; all if `count` is 0 or too large."""
    if not 0 < count < len(items):
        return items
    return [items[i] for i in sorted(random.Random(seed).sample(range(len(items)), count))]
