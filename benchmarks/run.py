"""Run every cell with every contestant that can compute it: check agreement, then race."""

from __future__ import annotations

import gc
import math
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from . import data, machine
from .bandwidth import Copier, beyond_cache, last_level_cache
from .cells import Cell
from .data import Array, Arrays
from .peers import Peer
from .summary import lines
from .timing import Entry, once, race

Record = dict[str, Any]
CLOSE = 2.0  # repeat a race won or lost by less, if passes are left


def label(peer: Peer) -> str:
    """Return a contestant's name in reports."""
    return f"{peer.name} +indices" if peer.given else peer.name


def tolerance(cell: Cell, arrays: Arrays) -> float:
    """Return the largest allowed difference: 0 for maxima, the rounding of all additions for means."""
    if cell.maximal:
        return 0.0
    eps = (
        float(np.finfo(np.float32).eps)
        if cell.dtype == "float32"
        else {"float64": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}.get(cell.dtype, 0.0)
    )
    terms = math.prod(cell.ksize) if cell.ksize else math.prod(math.ceil(r) + 1 for r in cell.ratio)
    operand = arrays.g if cell.op.order else arrays.x
    return eps / 2 * terms * float(np.abs(operand[:1].astype(np.float32)).max())


def disagreement(ours: Array, theirs: Array, allowed: float) -> str:
    """Return how a peer's result differs from ours, or ""."""
    if theirs.shape != ours.shape:
        return f"disagrees: shape {theirs.shape} instead of {ours.shape}"
    wide = np.float64 if ours.dtype == np.float64 else np.float32  # holds every value of a narrower type exactly
    worst = 0.0
    for one, other in zip(ours, theirs, strict=True):  # one image at a time, to stay in the cache
        gap = np.abs(one.astype(wide, copy=False) - other.astype(wide, copy=False))
        worst = max(worst, float(gap.max(initial=0.0)) if not np.isnan(gap).any() else math.inf)
    return "" if worst <= allowed else f"disagrees by {worst:.3g}, allowed {allowed:.3g}"


def enter(cell: Cell, arrays: Arrays, peers: Iterable[Peer]) -> tuple[list[Entry], Record]:
    """Prepare and check all contestants of a cell; record the reason of those that fail."""
    entries: list[Entry] = []
    out: Record = {}
    ours: Array | None = None
    for peer in peers:
        why = peer.can(cell)
        if why is not None:
            out[label(peer)] = {"given": peer.given, "left_out": why}
            continue
        try:
            prepared = peer.prepare(cell, arrays)
            result = np.asarray(prepared.result(prepared.call()))
            first = once(prepared.call)[1]  # the first call may have compiled code
        except Exception as error:  # record any error of a peer as its answer
            if peer.name == "poolgrad":
                raise
            out[label(peer)] = {"given": peer.given, "error": f"{type(error).__name__}: {error}"[:300]}
            continue
        if ours is None:
            ours = np.array(result)
        wrong = disagreement(ours, result, tolerance(cell, arrays))
        if wrong:
            out[label(peer)] = {"given": peer.given, "error": wrong}
            continue
        out[label(peer)] = {"given": peer.given}
        entries.append(Entry(label(peer), prepared.call, first, [first]))
    return entries, out


def measure(cell: Cell, arrays: Arrays, peers: Iterable[Peer], copier: Copier, seconds: float) -> Record:
    """Return one cell's record: all raw times, traffic, copy speed."""
    entries, contestants = enter(cell, arrays, peers)
    others = machine.Others()
    race(entries, seconds)
    foreign = others.cores()
    for entry in entries:
        found = contestants[entry.name]
        if entry.error:
            found["error"] = entry.error
        else:
            found |= {"best": entry.best, "times": [float(f"{t:.4g}") for t in entry.times]}
    return {
        "name": cell.name, "workload": cell.workload, "kind": cell.kind, "layout": cell.layout, "dtype": cell.dtype,
        "overlapping": cell.overlapping, "x": list(cell.x),
        "window": list(cell.ksize) or [math.ceil(r) for r in cell.ratio[1:-1]],
        "channels_first": cell.first, "traffic": cell.traffic, "traffic_given": cell.traffic_given(1),
        "copy": copier.rate(cell.traffic), "others": foreign, "contestants": contestants,
    }  # fmt: skip


class Progress:
    """A progress bar on stderr with the remaining time."""

    def __init__(self, total: int, quiet: bool = False) -> None:
        self.total, self.quiet, self.began, self.done = total, quiet, time.monotonic(), 0

    def show(self, what: str) -> None:
        """Draw the bar: one line on a terminal, a line per step elsewhere."""
        if self.quiet:
            return
        spent = time.monotonic() - self.began
        left = f"{spent / self.done * (self.total - self.done):5.0f} s left" if self.done else "        "
        filled = round(24 * self.done / max(self.total, 1))
        line = f"[{'#' * filled}{'.' * (24 - filled)}] {self.done}/{self.total} {left}  {what}"
        terminal = sys.stderr.isatty()
        print(f"\r\x1b[K{line}" if terminal else line, end="" if terminal else "\n", file=sys.stderr, flush=True)

    def step(self, what: str) -> None:
        """Show the next step and count the one before as done."""
        self.show(what)
        self.done += 1

    def close(self) -> None:
        """End the line."""
        self.done = self.total
        self.show("done")
        if not self.quiet and sys.stderr.isatty():
            print(file=sys.stderr)


def grouped(cells: list[Cell]) -> Iterator[tuple[Cell, Arrays]]:
    """Yield cells with their arrays, grouped by arrays, so that each array is made once."""
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        key = (cell.workload, cell.x, cell.layout, cell.dtype, cell.overlapping, cell.maximal)
        groups.setdefault(key, []).append(cell)
    for group in groups.values():
        arrays = data.make(group[0])
        for cell in group:
            yield cell, arrays
        del arrays
        gc.collect()


def close(record: Record) -> bool:
    """Return True if a cell's race is so close that another run could change the winner."""
    return any(1 / CLOSE < line.ratio < CLOSE for line in lines({"cells": [record]}))


def merge(record: Record, again: Record) -> None:
    """Add the times of a later pass to those of the first."""
    record["copy"] = max(record["copy"], again["copy"])
    record["others"] = min(record["others"], again["others"])
    for name, found in record["contestants"].items():
        later = again["contestants"][name]
        if "best" in found and "best" in later:
            found |= {"best": min(found["best"], later["best"]), "times": found["times"] + later["times"]}


def run(
    cells: list[Cell], seconds: float, peers: list[Peer], missing: dict[str, str], passes: int = 1, quiet: bool = False
) -> Record:
    """Race all cells, and close ones again in later passes; return the report without targets."""
    copier = Copier()
    far = beyond_cache()
    records: dict[str, Record] = {}
    began = time.monotonic()
    report: Record = {
        "machine": machine.describe({p.name: p.version() for p in peers}, missing),
        "settings": {"seconds_per_cell": seconds, "cells": len(cells), "passes": passes},
        "bandwidth": {"copy": copier.rate(far, 0.5), "bytes": far, "last_level_cache": last_level_cache()},
    }
    for _ in range(passes):
        copier.known.clear()
        left = [cell for cell in cells if cell.name not in records or close(records[cell.name])]
        progress = Progress(len(left), quiet)
        for cell, arrays in grouped(left):
            progress.step(cell.name)
            record = measure(cell, arrays, peers, copier, seconds)
            if cell.name in records:
                merge(records[cell.name], record)
            else:
                records[cell.name] = record
        progress.close()
    report["cells"] = list(records.values())
    report["settings"]["seconds"] = round(time.monotonic() - began, 1)
    return report
