"""Run the benchmarks, which belong to the source tree and are not installed with the package."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

ELSEWHERE = "the benchmarks are not installed; run `python -m benchmarks` in the source tree of poolgrad"


def source_tree() -> Path | None:
    """Return the source tree that this module lies in, or the current folder if it is one."""
    for folder in (Path(__file__).resolve().parents[3], Path.cwd()):
        if (folder / "benchmarks" / "workloads.json").is_file() and (folder / "src" / "poolgrad").is_dir():
            return folder
    return None


def run(arguments: Sequence[str]) -> int:
    """Run the benchmarks of the source tree with these arguments; raise ValueError if there is no source tree."""
    tree = source_tree()
    if tree is None:
        raise ValueError(ELSEWHERE)
    sys.path.insert(0, str(tree))
    status: int = import_module("benchmarks").main(list(arguments))
    return status
