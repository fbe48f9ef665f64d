"""scipy.ndimage: running filters, for windows at every cell."""

from __future__ import annotations

import numpy as np

from ..cells import Cell
from ..data import Arrays
from .base import Peer, Run, installed, load, version_of


class Scipy:
    """maximum_filter and uniform_filter."""

    name = "scipy.ndimage"
    given = False

    def __init__(self) -> None:
        self.ndimage = load("scipy.ndimage")

    def version(self) -> str:
        """Return the version of scipy."""
        return version_of("scipy")

    def can(self, cell: Cell) -> str | None:
        """Accept forward ops of stride 1; means only if no window is cut, because scipy divides by the full window."""
        if cell.op.order or cell.fractional:
            return "forward filters only"
        if any(s != 1 for s in cell.strides):
            return "filters have stride 1"
        if cell.dtype in ("float16", "bfloat16"):
            return "no half types"
        if not cell.maximal and cell.padding != "VALID":
            return "divides cut windows by the full count"
        return None

    def prepare(self, cell: Cell, arrays: Arrays) -> Run:
        """Make a filter centred like the windows, then cut out the part that has windows."""
        size, x = tuple(cell.every(cell.ksize)), arrays.x
        origin, part = [0] * len(size), [slice(None)] * len(size)
        for d, e in zip(cell.space, cell.extents, strict=True):
            origin[d] = e.before - e.k // 2 if cell.padding == "SAME" else 0
            if cell.padding == "VALID":
                part[d] = slice(e.k // 2, e.k // 2 + e.m)
        window = tuple(part)
        if not cell.maximal:
            return Run(lambda: self.ndimage.uniform_filter(x, size, mode="constant")[window])
        lowest = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf
        return Run(lambda: self.ndimage.maximum_filter(x, size, mode="constant", cval=lowest, origin=origin)[window])


def peers() -> list[Peer]:
    """Return scipy, if installed."""
    return [Scipy()] if installed("scipy") else []
