"""The README's speed section, from a report."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from .markdown import heading, losses, means_table, table
from .summary import Line, against, geometric, lines, times

BEGIN, END = "<!-- speed:begin -->", "<!-- speed:end -->"


def by_workload(all_lines: list[Line]) -> dict[str, list[Line]]:
    """Comparisons from the same inputs, by workload."""
    groups: dict[str, list[Line]] = {}
    for line in all_lines:
        if not line.given:
            groups.setdefault(line.record["workload"], []).append(line)
    return groups


def section(report: dict[str, Any], picture: str = "") -> str:
    """What stands between the marks: machine, means, a row per workload, every loss."""
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
    parts = [" ".join(heading(report)), "", *means_table(all_lines), "", *table(head, rows), ""]
    if picture:
        parts += [f"![Time against the fastest peer, and share of copy speed]({picture})", ""]
    lost = losses(all_lines)
    fold = [
        f"<details><summary>The {len(lost)} comparisons in which a peer was faster</summary>",
        "",
        *lost,
        "",
        "</details>",
    ]
    return "\n".join([*parts, *(fold if lost else [])])


def rewrite(readme: Path, report: dict[str, Any], picture: str = "") -> None:
    """Puts the section between the marks; a README without marks is an error, not a place to guess."""
    text = readme.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f"readme: got {readme} without its speed section, wanted one {BEGIN} and one {END} after it")
    body = f"{BEGIN}\n{section(report, picture)}\n{END}"
    readme.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: body, text, flags=re.DOTALL))
