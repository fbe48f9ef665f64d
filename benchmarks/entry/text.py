"""Write the report of the entry points as Markdown."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from ..summary import disturbance, geometric, seconds
from .contest import OURS

Record = dict[str, Any]


def fastest(record: Record) -> tuple[str, float]:
    """Return the fastest peer of a cell and its time; "" and NaN if no peer ran."""
    peers = {name: c["best"] for name, c in record["contestants"].items() if not name.startswith(OURS)}
    return min(peers.items(), key=lambda item: item[1], default=("", float("nan")))


def ratio(record: Record) -> float:
    """Return the fastest peer's time over ours; below 1 is a loss."""
    return float(fastest(record)[1] / record["contestants"][OURS]["best"])


def one_line(record: Record) -> str:
    """Return a cell in one line."""
    name, theirs = fastest(record)
    ours = seconds(record["contestants"][OURS]["best"])
    failed = "".join(f"; {peer}: {why[:80]}" for peer, why in record["failed"].items())
    return (
        f"{ratio(record):6.2f} {record['group']:5} {record['name']}: {name} {seconds(theirs)}, poolgrad {ours}{failed}"
    )


def markdown(report: Record) -> str:
    """Return the tables: one per entry point, a line per cell, the fastest peer beside poolgrad."""
    machine, parts = report["machine"], []
    parts += [f"Processor: {machine['cpu']}, {machine['threads']} threads. {machine['date']}.", ""]
    parts += ["Peers: " + ", ".join(f"{name} {version}" for name, version in machine["versions"].items()) + ".", ""]
    parts += [f"Absent: {name}: {why}." for name, why in machine["missing"].items()]
    if disturbance(report):
        parts += ["Doubtful: " + disturbance(report) + ".", ""]
    for group, cells in groupby(report["cells"], key=lambda record: record["group"]):
        parts += _table(group, list(cells))
    return "\n".join(parts) + "\n"


def _table(group: str, cells: list[Record]) -> list[str]:
    ratios = [r for r in map(ratio, cells) if r == r]
    lost = sum(r < 1 for r in ratios)
    rows = ["", f"## {group}", ""]
    if ratios:
        rows += [
            f"{len(cells)} cells, {lost} lost; geometric mean {geometric(ratios):.2f}, lowest {min(ratios):.2f}.",
            "",
        ]
    rows += ["| call | poolgrad | fastest peer | peer/poolgrad | others |", "|---|---|---|---|---|"]
    for record in cells:
        name, theirs = fastest(record)
        rest = [f"{peer} {seconds(c['best'])}" for peer, c in record["contestants"].items() if peer not in (OURS, name)]
        rest += [f"{peer}: {why[:60]}" for peer, why in record["failed"].items()]
        ours = seconds(record["contestants"][OURS]["best"])
        mark = f"**{ratio(record):.2f}**" if ratio(record) < 1 else f"{ratio(record):.2f}"
        rows.append(f"| {record['name']} | {ours} | {name} {seconds(theirs)} | {mark} | {', '.join(rest)} |")
    return rows
