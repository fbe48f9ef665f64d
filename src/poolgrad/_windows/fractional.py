"""Draw the random windows of fractional pooling from (seed, seed2), as TensorFlow does. `reference.sequence` defines them."""

from __future__ import annotations

from collections.abc import Sequence

from . import tables
from .axis import Axis, IntArray, afford_windows


def draw(
    lengths: Sequence[int], sizes: Sequence[int], pseudo_random: bool, overlapping: bool, seeds: tuple[int, int]
) -> list[tuple[IntArray, Axis]]:
    """Return the boundaries and the windows of several axes, drawn in this order: sizes[d] windows over lengths[d] cells.

    >>> [borders.tolist() for borders, axis in draw((10, 7), (6, 4), False, False, (1, 2))]
    [[0, 1, 3, 4, 6, 8, 10], [0, 2, 4, 6, 7]]
    """
    afford_windows(max(sizes))
    seed, seed2 = seeds
    made = tables.draw(lengths, sizes, pseudo_random, overlapping, seed % 2**64, seed2 % 2**64)
    return [(borders, Axis.of(n, drawn)) for n, (borders, drawn) in zip(lengths, made, strict=True)]


def placed_axis(n: int, k: int, m: int, u: float) -> Axis:
    """Return m windows of k cells that lie evenly over n cells from a random offset on, as PyTorch's fractional pools have them.

    >>> placed_axis(10, 3, 4, 0.5).pairs()
    [(0, 3), (2, 5), (4, 7), (7, 10)]
    """
    afford_windows(m)
    return Axis.of(n, tables.placed(n, k, m, u))
