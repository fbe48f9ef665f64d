"""Write a report as Markdown."""

from __future__ import annotations

from typing import Any

from .summary import Line, against, disturbance, lines, means, seconds, times

Record = dict[str, Any]
NOTES = (
    "Times are the best of all interleaved turns. `+indices`: both are given the positions of the maxima.",
    "The last column counts the traffic that no algorithm can avoid, against a copy of as many bytes.",
    "An op that reads more than it writes can exceed 100 %, for a copy writes half of its bytes.",
    "PyTorch contiguous and ONNX Runtime get channels-last data in their own layout, converted beforehand.",
)


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def heading(report: Record) -> list[str]:
    """Return the machine and the versions behind the report."""
    place, copy = report["machine"], report["bandwidth"]
    versions = ", ".join(f"{name} {version}" for name, version in place["versions"].items())
    absent = "; ".join(f"{name}: {why}" for name, why in place["missing"].items())
    warning, passes = disturbance(report), report.get("settings", {}).get("passes", 1)
    return [
        *([f"**Doubtful: {warning}.**"] if warning else []),
        f"Measured {place['date']} on {place['cpu']}, {place['threads']} threads, "
        f"instruction set {place['config']['isa']}, load {place['load']} at the start."
        + (f" Races that were close were run {passes} times, for all contestants alike." if passes > 1 else ""),
        f"Contestants: {versions}." + (f" Absent: {absent}." if absent else ""),
        f"Copy: {copy['copy'] / 1e9:.1f} GB/s read and written with all threads over {copy['bytes'] / 2**20:.0f} MiB.",
    ]


def means_table(all_lines: list[Line]) -> list[str]:
    """Return the table of geometric means."""
    return table(
        ["times faster than", "geometric mean", "cells"],
        [[name, times(mean), str(count)] for name, (mean, count) in means(all_lines).items()],
    )


def _row(line: Line) -> list[str]:
    return [
        line.name.replace("/", " "), seconds(line.ours), f"{line.peer} {seconds(line.theirs)}" if line.peer else "none",
        times(line.ratio), "–" if line.given else times(against(line, "tensorflow")), f"{line.fraction:.0%}",
    ]  # fmt: skip


def losses(all_lines: list[Line]) -> list[str]:
    """Return every cell in which a peer was faster, or a sentence that there is none."""
    lost = sorted((line for line in all_lines if line.lost), key=lambda line: line.ratio)
    if not lost:
        return ["No cell was lost to a peer."]
    return [
        f"- {line.name}: {line.peer} {seconds(line.theirs)}, poolgrad {seconds(line.ours)} ({times(line.ratio)})"
        for line in lost
    ]


def exceptions(report: Record) -> list[str]:
    """Return the contestants that failed or disagreed, with their messages."""
    found: dict[str, list[str]] = {}
    for record in report["cells"]:
        for name, contestant in record["contestants"].items():
            if "error" in contestant:
                found.setdefault(f"{name}: {contestant['error']}".replace("\n", " "), []).append(record["name"])
    return [f"- {what} ({len(where)} cells, such as {where[0]})" for what, where in found.items()]


def targets_table(report: Record) -> list[str]:
    """Return the table of targets with their figures."""
    rows = [
        [str(t["target"]), t["what"], t["figure"], {True: "met", False: "**missed**", None: "open"}[t["met"]]]
        for t in report["targets"]
    ]
    return table(["", "target", "measured", ""], rows)


def render(report: Record) -> str:
    """Return the whole report."""
    all_lines = lines(report)
    parts = ["# Speed", "", *(f"{text}  " for text in heading(report)), "", *means_table(all_lines), ""]
    if report.get("targets"):
        parts += ["## Targets", "", *targets_table(report), ""]
    head = ["cell", "poolgrad", "fastest peer", "faster than it", "than TensorFlow", "of copy speed"]
    parts += ["## Losses", "", *losses(all_lines), "", "## Cells", "", *NOTES]
    parts += ["", *table(head, [_row(line) for line in all_lines]), ""]
    failed = exceptions(report)
    if failed:
        parts += ["## Peers that failed in a cell", "", *failed, ""]
    return "\n".join(parts)
