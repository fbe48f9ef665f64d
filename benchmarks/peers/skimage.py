"""scikit-image: block_reduce."""

from __future__ import annotations

import numpy as np

from ..cells import Cell
from ..data import Arrays
from .base import Peer, Run, installed, load, version_of
from .blocks import refusal


class Skimage:
    """skimage.measure.block_reduce with a NumPy reduction."""

    name = "skimage"
    given = False

    def __init__(self) -> None:
        self.measure = load("skimage.measure")

    def version(self) -> str:
        """Return the version of scikit-image."""
        return version_of("scikit-image")

    def can(self, cell: Cell) -> str | None:
        """Accept blocks only."""
        return refusal(cell)

    def prepare(self, cell: Cell, arrays: Arrays) -> Run:
        """One block per window."""
        block, reduction, x = tuple(cell.every(cell.ksize)), np.max if cell.maximal else np.mean, arrays.x
        return Run(lambda: self.measure.block_reduce(x, block, reduction))


def peers() -> list[Peer]:
    """Return scikit-image, if installed."""
    return [Skimage()] if installed("skimage") else []
