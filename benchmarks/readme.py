"""Write the speed sections of the README and of docs/performance.md from a report."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from .markdown import heading, losses, means_table, table
from .summary import Line, against, disturbance, geometric, lines, times


def by_workload(all_lines: list[Line]) -> dict[str, list[Line]]:
    """Group the comparisons from the same inputs by workload."""
    groups: dict[str, list[Line]] = {}
    for line in all_lines:
        if not line.given:
            groups.setdefault(line.record["workload"], []).append(line)
    return groups


def summary(report: dict[str, Any], picture: str = "") -> str:
    """Return the README's section: the geometric means, the machine, the number of losses, the picture."""
    all_lines, place, warning = lines(report), report["machine"], disturbance(report)
    lost = sum(line.lost for line in all_lines)
    parts = [
        *means_table(all_lines),
        "",
        f"Measured {place['date']} on {place['cpu']}, {place['threads']} threads.",
        f"A peer was faster in {lost} of {len(all_lines)} comparisons.",
        *([f"**Doubtful: {warning}.**"] if warning else []),
    ]
    return "\n".join([*parts, *_picture(picture)])


def section(report: dict[str, Any], picture: str = "") -> str:
    """Return the section of docs/performance.md: machine, means, a row per workload, every loss."""
    all_lines = lines(report)
    rows = []
    for name, group in by_workload(all_lines).items():
        slowest = min((line.ratio for line in group if line.peer), default=float("nan"))
        ratio, tensorflow = (
            geometric(line.ratio for line in group),
            geometric(against(line, "tensorflow") for line in group),
        )
        share = f"{geometric(line.fraction for line in group):.0%}"
        shape = "x".join(map(str, group[0].record["x"]))
        rows.append([name, shape, str(len(group)), times(ratio), times(slowest), times(tensorflow), share])
    head = [
        "workload",
        "input",
        "cells",
        "faster than the fastest peer",
        "worst cell",
        "than TensorFlow",
        "of copy speed",
    ]
    parts = [*heading(report), "", *means_table(all_lines), "", *table(head, rows), *_picture(picture)]
    lost = losses(all_lines)
    fold = [
        "",
        f"<details><summary>The {len(lost)} comparisons in which a peer was faster</summary>",
        "",
        *lost,
        "",
        "</details>",
    ]
    return "\n".join([*parts, *(fold if lost else [])])


def _picture(path: str) -> list[str]:
    return ["", f"![Time against the fastest peer, and share of copy speed]({path})"] if path else []


def marks(name: str) -> tuple[str, str]:
    """Return the marks around a section that a benchmark writes."""
    return f"<!-- {name}:begin -->", f"<!-- {name}:end -->"


BEGIN, END = marks("speed")


def rewrite(file: Path, text: str, name: str = "speed") -> None:
    """Put the text between the marks of a file; raise ValueError if the file does not have each mark once."""
    old, (begin, end) = file.read_text(), marks(name)
    if old.count(begin) != 1 or old.count(end) != 1 or old.index(begin) > old.index(end):
        raise ValueError(f"readme: got {file} without its {name} section, wanted one {begin} and one {end} after it")
    file.write_text(re.sub(f"{begin}.*{end}", lambda _: f"{begin}\n{text}\n{end}", old, flags=re.DOTALL))


def written(file: Path, name: str) -> str:
    """Return the text between the marks of a file."""
    begin, end = marks(name)
    return file.read_text().split(begin)[1].split(end)[0].strip("\n")
