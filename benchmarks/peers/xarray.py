"""xarray: coarsen."""

from __future__ import annotations

import numpy as np

from ..cells import Cell
from ..data import Arrays
from .base import Peer, Run, installed, load, version_of
from .blocks import refusal


class Xarray:
    """DataArray.coarsen, with maximum or mean."""

    name = "xarray coarsen"
    given = False

    def __init__(self) -> None:
        self.xarray = load("xarray")

    def version(self) -> str:
        """Return the version of xarray."""
        return version_of("xarray")

    def can(self, cell: Cell) -> str | None:
        """Accept blocks only."""
        return refusal(cell)

    def prepare(self, cell: Cell, arrays: Arrays) -> Run:
        """The array with a name per dimension."""
        named = self.xarray.DataArray(arrays.x, dims=[f"d{d}" for d in range(len(cell.shape))])
        sizes = {f"d{d}": k for d, k in zip(cell.space, cell.ksize, strict=True)}
        verb = "max" if cell.maximal else "mean"
        return Run(lambda: getattr(named.coarsen(sizes), verb)(), lambda out: np.asarray(out.values))


def peers() -> list[Peer]:
    """Return xarray, if installed."""
    return [Xarray()] if installed("xarray") else []
