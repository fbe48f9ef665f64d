"""Plot a report: time against the fastest peer, and the share of copy speed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from .peers.base import installed, load
from .readme import by_workload
from .summary import Line, geometric, lines

AHEAD, BEHIND, SHARE = "#2a6f97", "#c1121f", "#8a9a5b"
TICKS = tuple(digit * 10.0**power for power in range(-4, 4) for digit in (1, 2, 5))
Row = tuple[str, float, float]


def rows_by_workload(all_lines: list[Line]) -> list[Row]:
    """Return a bar for each workload and layout."""
    rows = []
    for name, group in by_workload(all_lines).items():
        for layout in sorted({line.record["layout"] for line in group}, reverse=True):
            part = [line for line in group if line.record["layout"] == layout]
            rows.append(
                (
                    f"{name} {layout}",
                    geometric(1 / line.ratio for line in part if line.peer),
                    geometric(line.fraction for line in part),
                )
            )
    return rows


def rows_by_cell(all_lines: list[Line]) -> list[Row]:
    """Return a bar for each comparison."""
    return [(line.name, 1 / line.ratio if line.peer else math.nan, line.fraction) for line in all_lines]


def draw(rows: list[Row], title: str, files: list[Path]) -> None:
    """Draw two panels of horizontal bars that share their labels."""
    matplotlib = load("matplotlib")
    matplotlib.use("Agg")
    pyplot = load("matplotlib.pyplot")
    places = range(len(rows))
    figure, (left, right) = pyplot.subplots(
        1, 2, sharey=True, figsize=(11, 1.4 + 0.22 * len(rows)), layout="constrained"
    )
    left.barh(places, [r[1] - 1 for r in rows], left=1, color=[BEHIND if r[1] > 1 else AHEAD for r in rows])
    left.set_xscale("log")
    low, high = left.get_xlim()
    ticks = [tick for tick in TICKS if low <= tick <= high]
    left.set_xticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=8)
    left.set_xticks([], minor=True)
    left.axvline(1, color="black", linewidth=0.8)
    left.set_xlabel("poolgrad's time / fastest peer's time (left of 1 is faster)")
    left.set_yticks(places, [r[0] for r in rows], fontsize=7)
    left.set_ylim(len(rows) - 0.5, -0.5)
    right.barh(places, [r[2] for r in rows], color=SHARE)
    right.axvline(1, color="black", linewidth=0.8)
    right.axvline(0.75, color="black", linewidth=0.8, linestyle=":")
    right.set_xlabel("share of copy speed, compulsory traffic only (dotted: 75 %)")
    figure.suptitle(title, fontsize=9)
    for file in files:
        figure.savefig(file, dpi=130)
    pyplot.close(figure)


def plot(report: dict[str, Any], folder: Path) -> list[Path]:
    """Write speed.png/svg (a bar per workload) and cells.png/svg (a bar per cell); without matplotlib, nothing."""
    if not installed("matplotlib") or not report["cells"]:
        return []
    all_lines, place = lines(report), report["machine"]
    title = f"{place['cpu']}, {place['threads']} threads, {place['date']}"
    files: list[Path] = []
    for name, rows in (("speed", rows_by_workload(all_lines)), ("cells", rows_by_cell(all_lines))):
        pair = [folder / f"{name}.png", folder / f"{name}.svg"]
        draw(rows, title, pair)
        files += pair
    return files
