"""Summarise a report: ratios, fractions, geometric means."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .cells import SEEDS

Record = dict[str, Any]
IDLE = 0.1  # cores that other processes may use before a figure becomes doubtful


@dataclass(frozen=True)
class Line:
    """A comparison in one cell: our time and that of the fastest peer with the same inputs."""

    record: Record
    given: bool
    ours: float
    peer: str
    theirs: float
    fraction: float  # of the copy speed at the cell's own traffic

    @property
    def ratio(self) -> float:
        """Return the fastest peer's time over ours: below 1 is a loss, NaN means no peer."""
        return self.theirs / self.ours

    @property
    def lost(self) -> bool:
        """Return True if a peer was faster."""
        return self.ratio < 1

    @property
    def name(self) -> str:
        """Return the cell's name, marked if positions were given."""
        return f"{self.record['name']}{' +indices' if self.given else ''}"


def disturbance(report: Record) -> str:
    """Return a warning if other processes were busy during the races, else ""."""
    hit = [record["others"] for record in report["cells"] if record["others"] > IDLE]
    if not hit:
        return ""
    where = f"in {len(hit)} of {len(report['cells'])} cells, which slows peers with many threads most"
    return f"not an idle machine: other processes kept up to {max(hit):.1f} cores busy {where}"


def busy(cores: float) -> list[str]:
    """Return a warning, in a list, if other processes used more cores than may be."""
    if cores <= IDLE:
        return []
    return [
        f"doubtful: not an idle machine: other processes kept {cores:.1f} cores busy, which slows calls with many threads most"
    ]


def _best(record: Record, name: str) -> float:
    return float(record["contestants"].get(name, {}).get("best", math.nan))


def lines(report: Record) -> list[Line]:
    """Return all comparisons of a report."""
    found = []
    for record in report["cells"]:
        for given in (False, True):
            ours = _best(record, "poolgrad +indices" if given else "poolgrad")
            times = {
                name: c["best"]
                for name, c in record["contestants"].items()
                if c["given"] is given and "best" in c and not name.startswith("poolgrad")
            }
            if math.isnan(ours) or (given and not times):
                continue
            peer = min(times, key=lambda name: times[name], default="")
            traffic = record["traffic_given" if given else "traffic"]
            found.append(Line(record, given, ours, peer, times.get(peer, math.nan), traffic / ours / record["copy"]))
    return found


def against(line: Line, name: str) -> float:
    """Return a named contestant's time over ours; NaN if it did not run."""
    return _best(line.record, name) / line.ours


def geometric(values: Iterable[float]) -> float:
    """Return the geometric mean without NaN; NaN if nothing is left."""
    logs = [math.log(v) for v in values if v > 0]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def means(all_lines: list[Line]) -> dict[str, tuple[float, int]]:
    """Return the geometric means that the targets name, each with its number of cells."""
    same = [line for line in all_lines if not line.given]
    sets = {
        "fastest peer": [line.ratio for line in same],
        "fastest peer, indices given": [line.ratio for line in all_lines if line.given],
        "TensorFlow": [against(line, "tensorflow") for line in same],
        "TensorFlow, seed operators": [against(line, "tensorflow") for line in same if line.record["kind"] in SEEDS],
        "PyTorch contiguous, channels first": [
            against(line, "torch contiguous") for line in same if line.record["channels_first"]
        ],
    }
    return {name: (geometric(values), sum(v > 0 for v in values)) for name, values in sets.items()}


def seconds(value: float) -> str:
    """Return a time with three digits and a unit.

    >>> seconds(0.0123), seconds(4.5e-6), seconds(float("nan"))
    ('12.3 ms', '4.50 µs', '–')
    """
    if math.isnan(value):
        return "–"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}" if value / size >= 10 else f"{value / size:.2f} {unit}"
    return f"{value * 1e9:.0f} ns"


def times(value: float) -> str:
    """Return a ratio for a table, a loss in bold.

    >>> times(3.14159), times(0.5), times(float("nan"))
    ('3.1x', '**0.50x**', '–')
    """
    if math.isnan(value):
        return "–"
    return f"{value:.0f}x" if value >= 100 else f"{value:.1f}x" if value >= 1 else f"**{value:.2f}x**"
