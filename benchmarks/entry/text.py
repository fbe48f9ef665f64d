"""Write the report of the entry points as Markdown."""

from __future__ import annotations

import json
import re
from itertools import groupby
from pathlib import Path
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
    parts += [*_warnings(report), ""]
    for group, cells in groupby(report["cells"], key=lambda record: record["group"]):
        parts += _table(group, list(cells))
    return "\n".join(parts) + "\n"


# The rows of a summary: words, an entry point, words that a cell's name must contain, and the peer.
HEADLINES = (
    ("block maxima, minima, means and sums of pictures", "numpy", ("_pool(x, ",), "scikit-image"),
    ("moving maxima, minima and means of pictures", "numpy", (", 1), ",), "scipy"),
    ("global pools", "numpy", ("global_",), "NumPy"),
    ("max pools, contiguous", "torch", ("max ", "contiguous"), "torch"),
    ("max pools, channels last", "torch", ("max ", "channels last"), "torch"),
    ("gradients of max pools under jit", "jax", ("max ", "gradient"), "lax.reduce_window"),
)
PAGE = "docs/entry-points.md"


def file_name(report: Record) -> str:
    """Return the name of the file that keeps the results of a processor: by its maker, the first word of its name."""
    maker = re.match(r"[A-Za-z0-9]*", report["machine"]["cpu"])
    return f"entry-{maker[0].lower() if maker and maker[0] else 'unknown'}.json"


def stored(folder: Path) -> list[Record]:
    """Return the kept results, one report per processor, the newest first."""
    reports = [json.loads(file.read_text()) for file in folder.glob("entry-*.json")]
    return sorted(reports, key=lambda report: str(report["machine"]["date"]), reverse=True)


def page_of(reports: list[Record]) -> str:
    """Return the section of the page: all processors side by side, then every cell of the newest report."""
    beside = [*_processors(reports, ""), ""] if len(reports) > 1 else []
    return "\n".join([*beside, markdown(reports[0]).strip("\n")])


def _processors(reports: list[Record], page: str) -> list[str]:
    """Return a row per entry point and processor; losses of the first report, which has the cells, are links."""
    rows = ["| entry point | processor | calls | geometric mean | slower than the fastest peer |"]
    rows += ["| --- | --- | --- | --- | --- |"]
    found = []
    for report in reports:
        for place, (group, cells) in enumerate(groupby(report["cells"], key=lambda record: record["group"])):
            ratios = [r for r in map(ratio, cells) if r == r]
            if ratios:
                lost = f"{sum(r < 1 for r in ratios)}"
                lost = f"[{lost}]({page}#{group})" if report is reports[0] else lost
                values = [f"`{_module(group)}`", report["machine"]["cpu"], str(len(ratios))]
                found.append((place, [*values, f"{geometric(ratios):.1f}x", lost]))
    return rows + [f"| {' | '.join(row)} |" for _, row in sorted(found, key=lambda item: item[0])]


def summary(reports: list[Record], page: str = PAGE) -> str:
    """Return the section of the README: a row per entry point and processor with its losses, and a row per headline."""
    report = reports[0]
    machine = report["machine"]
    rows = [f"The functions that users call, against what they replace; [every call and every loss]({page}):", ""]
    rows += _processors(reports, page)
    rows += ["", "| task | against | times faster | cells |", "| --- | --- | --- | --- |"]
    for words, group, parts, peer in HEADLINES:
        found = [
            record["contestants"][peer]["best"] / record["contestants"][OURS]["best"]
            for record in report["cells"]
            if record["group"] == group and peer in record["contestants"] and all(p in record["name"] for p in parts)
        ]
        if found:
            spread = f"{geometric(found):.1f}x ({min(found):.1f} to {max(found):.1f})"
            rows.append(f"| {words} | {peer} | {spread} | {len(found)} |")
    rows += ["", f"Tasks measured {machine['date']} on {machine['cpu']}, {machine['threads']} threads."]
    return "\n".join([*rows, *_warnings(report)])


def _module(group: str) -> str:
    return "poolgrad" if group == "numpy" else f"poolgrad.{group}"


def _warnings(report: Record) -> list[str]:
    """Return why a report is no measurement to rely on."""
    quick = ["**A quick run on small arrays: a check, not a measurement.**"] if report["settings"].get("quick") else []
    return quick + ([f"**Doubtful: {disturbance(report)}.**"] if disturbance(report) else [])


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
