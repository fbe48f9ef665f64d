"""Random windows and regions: plans of every kind, cut into parts along every dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise, product

import numpy as np

from poolgrad._windows.sliding import EmptyWindow, slide
from poolgrad.windows import Axis, Plan

Region = tuple[slice, ...]

LONGEST = {1: 150, 2: 84, 3: 15}  # cells of an axis, by rank


def random_axis(rng: np.random.Generator, n: int, dilated: bool, near: bool) -> Axis:
    """Return long windows that are one or two cells apart if `near`, else windows of any kind."""
    if near:
        k = int(rng.integers((n + 2) // 3, n // 2 + 2))
        return slide(n, k, int(rng.choice([1, 1, 1, 2])), 1, ((k - 1) // 2, k // 2), False)
    kind = rng.integers(6)
    if kind == 0:
        start = np.sort(rng.integers(0, n, rng.integers(1, n + 1)))
        return Axis(n, start, np.minimum(start + int(rng.integers(1, n + 1)), n))
    if kind == 1:
        m = int(rng.integers(1, n + 1))
        return Axis(n, [i * n // m for i in range(m)], [-(-(i + 1) * n // m) for i in range(m)])
    d = int(rng.integers(1, 4)) if dilated and n > 6 else 1
    k = int(rng.integers((n + 3 * d) // (3 * d), n // d + 1)) if kind < 5 else int(rng.integers(1, min(4, n // d) + 1))
    pads = tuple(int(p) for p in rng.integers(0, (d * (k - 1) + 2) // 2, 2)) if k > 1 else (0, 0)
    try:
        return slide(n, k, int(rng.choice([1, 1, 1, 2, 3])), d, pads, bool(rng.integers(2)))
    except EmptyWindow:
        return slide(n, k, 1, d, (0, 0), False)


def random_plan(seed: int, rank: int, channels_last: bool, dilated: bool = False) -> Plan:
    """Return a plan of so many pooled dimensions, with a batch and channels; even seeds give long windows near each other."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(LONGEST[rank] // 4, LONGEST[rank], rank).tolist()
    axes = [random_axis(rng, n, dilated, not dilated and seed % 2 == 0) for n in lengths]
    channels = int(rng.choice([1, 3, 9]))
    shape = (2, *lengths, channels) if channels_last else (2, channels, *lengths)
    return Plan(shape, dict(enumerate(axes, 1 if channels_last else 2)))


def regions(rng: np.random.Generator, shape: tuple[int, ...]) -> Iterator[Region]:
    """Return boxes that tile an array of that shape."""
    cuts = [sorted({0, n, *rng.integers(0, n + 1, rng.integers(0, 3)).tolist()}) for n in shape]
    for box in product(*(list(pairwise(c)) or [(0, 0)] for c in cuts)):
        yield tuple(slice(a, b) for a, b in box)


def inside(cells: Region, source: Region) -> Region:
    """Return the cells as a part counts them that begins with `source`."""
    return tuple(slice(c.start - s.start, c.stop - s.start) for c, s in zip(cells, source, strict=True))


def assembled(rng: np.random.Generator, plan: Plan, run: Callable[[Plan, Region, Region], np.ndarray]) -> np.ndarray:
    """Return a result that run(part, source, dest) computes region by region."""
    out: np.ndarray | None = None
    for region in regions(rng, plan.dest):
        source, part = plan.cut(region)
        made = run(part, source, region)
        out = np.full(plan.dest, 77, made.dtype) if out is None else out
        out[region] = made
    assert out is not None
    return out


def assembled_back(
    rng: np.random.Generator, plan: Plan, run: Callable[[Plan, Region, Region], np.ndarray]
) -> np.ndarray:
    """Return a gradient that run(part, source, dest) computes region by region."""
    out: np.ndarray | None = None
    for cells in regions(rng, plan.source):
        dest, source, part = plan.cut_back(cells)
        made = run(part, source, dest)
        out = np.full(plan.source, 77, made.dtype) if out is None else out
        out[cells] = made[inside(cells, source)]
    assert out is not None
    return out
