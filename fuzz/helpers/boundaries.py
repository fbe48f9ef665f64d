"""Random windows over an axis, as a caller may give them: repeated, of one cell, empty in the middle, far apart, late."""

from __future__ import annotations

from typing import Any

import numpy as np

Rng = np.random.Generator
Windows = tuple[np.ndarray, np.ndarray]  # start and stop of each window


def one_cell(rng: Rng, n: int) -> Windows:
    """Return as many windows as cells, of one cell each: the axis looks like one that is not pooled."""
    start = np.sort(rng.integers(0, n, n))
    return start, start + 1


def repeated(rng: Rng, n: int) -> Windows:
    """Return windows, some of them several times."""
    start, stop = rising(rng, n)
    times = rng.integers(1, 4, len(start))
    return start.repeat(times), stop.repeat(times)


def late(rng: Rng, n: int) -> Windows:
    """Return windows that all begin behind the middle."""
    start = np.sort(rng.integers(n // 2, n, int(rng.integers(1, n + 2))))
    return start, np.minimum(start + int(rng.integers(1, 4)), n)


def apart(rng: Rng, n: int) -> Windows:
    """Return a window at each end, and none between them."""
    return np.array([0, n - 1]), np.array([1, n])


def rising(rng: Rng, n: int) -> Windows:
    """Return windows of at least one cell, anywhere, as long as starts and stops both rise."""
    m = int(rng.integers(1, n + 3))
    start = np.sort(rng.integers(0, n, m))
    return start, np.maximum(start + 1, np.sort(rng.integers(1, n + 1, m)))


def hollow(rng: Rng, n: int) -> Windows:
    """Return windows of which some, also in the middle, have no cell."""
    start, stop = rising(rng, n)
    empty = rng.random(len(start)) < 0.4
    stop = np.where(empty, start, stop)
    return start, np.maximum.accumulate(stop)


FULL = (one_cell, one_cell, repeated, late, apart, rising)


def boundaries(rng: Rng, n: int, empty: bool = True) -> Windows:
    """Return windows of a random kind over n cells, at least one window; empty windows only if allowed."""
    kinds: Any = (*FULL, hollow) if empty else FULL
    start, stop = kinds[int(rng.integers(len(kinds)))](rng, n)
    return start.astype(np.int64), stop.astype(np.int64)
