"""Random windows for races, in the form that the core takes, and right taps for them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
from boundaries import boundaries
from overwritten import Rng, pick

from poolgrad import _core

FLOATS = ("float16", "bfloat16", "float32", "float64")
DTYPES = (*FLOATS, "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")  # by the core's numbers


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the NumPy type of a name."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


@dataclass
class Windows:
    """Axes, an outer and an inner size, and their native plan."""

    outer: int
    inner: int
    axes: list[tuple[int, np.ndarray, np.ndarray, np.ndarray | None]]

    @property
    def source(self) -> list[int]:
        """Return the shape of the source."""
        return [self.outer, *(a[0] for a in self.axes), self.inner]

    @property
    def dest(self) -> list[int]:
        """Return the shape of the destination."""
        return [self.outer, *(len(a[1]) for a in self.axes), self.inner]

    def native(self) -> Any:
        """Return the native plan."""
        return _core.Plan(self.source, self.dest, self.outer, self.inner, self.axes)

    @property
    def cells(self) -> int:
        """Return the number of cells of the largest window."""
        return prod(max(int((stop - start).max(initial=0)), 1) for _, start, stop, _ in self.axes)

    @property
    def tap(self) -> Any:
        """Return the type of a tap."""
        return np.uint8 if self.cells <= 256 else np.uint32


def windows(rng: Rng) -> Windows:
    """Return windows over arrays of some thousand cells: a call takes as long as a few writes."""
    rank, axes = int(rng.integers(1, 4)), []
    most = (4096, 96, 20)[rank - 1]
    for _ in range(rank):
        n = int(rng.integers(max(most // 4, 2), most))
        if rng.random() < 0.6:
            k, s = int(rng.integers(1, min(n, pick(rng, (4, 4, 40))) + 1)), int(rng.integers(1, 4))
            start = np.arange(0, n - k + 1, s)
            axes.append((n, start, start + k, np.full(len(start), k) if rng.random() < 0.5 else None))
        else:
            axes.append((n, *boundaries(rng, n), None))
    inner = int(pick(rng, (1, 1, 3, 16, 33)))
    return Windows(int(rng.integers(1, 1 + max(1, 2**17 // (prod(a[0] for a in axes) * inner)))), inner, axes)


def true_taps(rng: Rng, w: Windows) -> np.ndarray:
    """Return taps inside their windows."""
    count = np.ones((), np.int64)
    for _, start, stop, _ in w.axes:
        count = np.multiply.outer(count, stop - start)
    most = np.broadcast_to(np.maximum(count, 1)[None, ..., None], w.dest)
    return rng.integers(0, most).astype(w.tap)
