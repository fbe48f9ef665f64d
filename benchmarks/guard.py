"""Guard against lost speed on any machine: time poolgrad against NumPy loops in one run, one thread each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from poolgrad import threads

from . import data
from .cells import Cell, read
from .naive import loop
from .peers.ours import Ours
from .run import disagreement, tolerance
from .targets import best_times

ORDERS = {"max": ("", "grad", "gradgrad"), "avg": ("", "grad")}
SHAPES = (
    "f32 nhwc x=2x56x56x32 k=3x3 s=2x2 pad=same",
    "f32 nchw x=2x32x56x56 k=3x3 s=2x2 pad=same",
    "f32 nhwc x=2x56x56x32 k=2x2 s=2x2 pad=valid",
    "f32 nhwc x=1x64x64x32 k=13x13 s=1x1 pad=same",
    "f64 ndhwc x=1x16x28x28x16 k=2x2x2 s=2x2x2 pad=valid",
)
# Largest share of the loop's time that a call may take, channels last and first. A sound kernel stays several
# times below it: only the loss of a whole fast path (lanes, fusion, separable windows) comes near.
SHARE = (1.0, 2.0)


@dataclass(frozen=True)
class Finding:
    """The result of one guarded cell."""

    name: str
    ours: float
    naive: float
    wrong: str
    limit: float

    @property
    def passed(self) -> bool:
        """Return True if the result is right and the time within the limit."""
        return not self.wrong and self.ours <= self.limit * self.naive

    def __str__(self) -> str:
        verdict = self.wrong or ("ok" if self.passed else f"TOO SLOW, limit {self.limit}")
        return f"{self.name:60} {self.ours / self.naive:6.3f} of the NumPy loop's time  {verdict}"


def problems() -> Iterator[Cell]:
    """Return the guarded cells."""
    for family, orders in ORDERS.items():
        for shape in SHAPES:
            yield from read(f"{family} {shape} {order}" for order in orders)


def check(cell: Cell, budget: float) -> Finding:
    """Compare results, then times; measure a failure again, because any run may be interrupted once."""
    arrays = data.make(cell)
    ours, naive = Ours().prepare(cell, arrays).call, loop(cell, arrays)
    wrong = disagreement(np.asarray(ours()), naive(), tolerance(cell, arrays))
    with threads(1):
        for patience in (1, 4):
            times = best_times([ours, naive], budget * patience)
            finding = Finding(cell.name, times[0], times[1], wrong, SHARE[cell.first])
            if finding.passed:
                break
    return finding


def guard(budget: float = 0.05, only: str = "") -> list[Finding]:
    """Check all cells; print each finding at once."""
    found = []
    for cell in problems():
        if only in cell.name:
            found.append(check(cell, budget))
            print(found[-1], flush=True)
    return found
