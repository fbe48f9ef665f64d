"""Race PyTorch, JAX and TensorFlow on channels-first cells outside the workloads, with the same number of threads for each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import poolgrad

from .markdown import exceptions
from .peers import Peer, available
from .peers.base import installed, load
from .summary import disturbance, geometric, lines, seconds

Record = dict[str, Any]


def use_threads(count: int) -> None:
    """Give this process `count` cores, so that every library starts as many threads. Call it before they are imported."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        if count > len(cores):
            raise ValueError(f"threads: got {count}, wanted at most {len(cores)}, the cores of this process")
        os.sched_setaffinity(0, cores[:count])
    poolgrad.set_num_threads(count)
    if installed("torch"):
        load("torch").set_num_threads(count)


def contestants() -> tuple[list[Peer], dict[str, str]]:
    """Return poolgrad, PyTorch, JAX and TensorFlow, which runs in both layouts, and why others are absent."""
    found, missing = available(["torch", "jax"])
    if installed("tensorflow"):
        layouts = import_module("benchmarks.peers.tensorflow").EitherLayout
        return [*found, layouts(True), layouts(False)], missing
    return found, missing | {"tensorflow": "not installed"}


def text(report: Record) -> str:
    """Return the summary: peer/ours for each peer, every cell that a peer won, peers that failed."""
    ratios = _ratios(report)
    lost = sorted((line for line in lines(report) if line.lost), key=lambda line: line.ratio)
    doubt, failed = disturbance(report), exceptions(report)
    parts = [
        "peer/poolgrad: geometric mean, lowest, lost cells",
        *(f"  {name:28} {geometric(found):6.2f} {min(found):6.2f} {sum(r < 1 for r in found):5} of {len(found)}"
          for name, found in ratios.items()),
        f"cells lost to the fastest peer: {len(lost)} of {sum(bool(line.peer) for line in lines(report))}",
        *(f"  {line.ratio:.2f} {line.name}: {line.peer} {seconds(line.theirs)}, poolgrad {seconds(line.ours)}" for line in lost),
        *(["doubtful: " + doubt] if doubt else []), *(["peers that failed:", *failed] if failed else []),
        *(f"absent: {name}: {why}" for name, why in report["machine"]["missing"].items()),
    ]  # fmt: skip
    return "\n".join(parts)


def _ratios(report: Record) -> dict[str, list[float]]:
    """Return, for each peer, its time over ours in every cell that both ran from the same inputs; fastest of all last."""
    found: dict[str, list[float]] = {}
    for name, ratio in _comparisons(report):
        found.setdefault(name, []).append(ratio)
    fastest = [line.ratio for line in lines(report) if line.peer]
    return found | ({"fastest peer": fastest} if fastest else {})


def _comparisons(report: Record) -> Iterator[tuple[str, float]]:
    for line in lines(report):
        for name, contestant in line.record["contestants"].items():
            if contestant["given"] is line.given and "best" in contestant and not name.startswith("poolgrad"):
                yield name, contestant["best"] / line.ours
