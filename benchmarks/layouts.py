"""Time every verb channels first against the same numbers channels last, in turns."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from poolgrad import _core, get_num_threads, threads

from . import machine, planes
from .cells import Cell, solid
from .data import Array, Arrays, dtype_of, in_other_layout
from .native import Task, same_bits
from .run import Progress
from .summary import busy, geometric, seconds
from .timing import duel

Record = dict[str, Any]
MOST = 1.3  # the wanted ratio, channels first over channels last
DTYPES = ("float32", "bfloat16")
DOUBTFUL = (0.95 * MOST, 1.5 * MOST)  # measure a cell again, longer, if its ratio seems to lie between these
VERBS = {  # the verb: an op of two dimensions with its windows and its arrays
    "select": "MaxPool", "choose": "MaxPool", "argmax": "MaxPool", "fold": "AvgPool", "route": "MaxPoolGrad",
    "near": "MaxPoolGrad", "place": "MaxPoolGrad", "spread": "AvgPoolGrad", "recall": "MaxPoolGradGrad",
    "pick": "MaxPoolGradGrad",
}  # fmt: skip

Item = tuple[Cell, str]  # a channels-first cell and a verb


def items(verbs: Iterable[str] = VERBS, dtypes: Iterable[str] = DTYPES) -> list[Item]:
    """Return the grid of `planes` for these verbs; near has three dimensions only."""
    verbs = list(verbs)
    found = []
    for cell in planes.cells(["MaxPool"], dtypes):
        for verb in verbs:
            if verb != "near" or cell.op.spatial == 3:
                kind = VERBS[verb] if cell.op.spatial == 2 else solid(VERBS[verb])
                found.append((replace(cell, kind=kind), verb))
    return found


def name(item: Item) -> str:
    """Return an item's name, one word, which `--only` matches."""
    cell, verb = item
    return f"{cell.workload}/{verb}/{cell.dtype}"


def compare(chosen: list[Item], budget: float, count: int = 0, quiet: bool = False) -> Record:
    """Time all items in both layouts for `budget` seconds each, with `count` threads; return the report."""
    others, progress, found = machine.Others(), Progress(len(chosen), quiet), []
    count = count or get_num_threads()
    with threads(count):
        for group in _by_shape(chosen):
            numbers = _Numbers(group[0][0])
            for item in group:
                progress.step(name(item))
                found.append(_timed(item, numbers, budget))
    progress.close()
    return {
        "machine": machine.describe({}, {}), "others": others.cores(),
        "settings": {"seconds_per_cell": budget, "threads": count},
        "cells": sorted(found, key=lambda record: -record["ratio"]),
    }  # fmt: skip


def _by_shape(chosen: list[Item]) -> Iterator[list[Item]]:
    """Group neighbours of one shape and type, which share their numbers."""
    for _, group in itertools.groupby(chosen, lambda item: (item[0].x, item[0].dtype)):
        yield list(group)


class _Numbers:
    """The arrays of one shape in both layouts; those of the last windows stay for the next item."""

    def __init__(self, cell: Cell) -> None:
        self.rng = np.random.default_rng(7)
        self.x, self.v = self._draw(cell, cell.shape), self._draw(cell, cell.shape)
        self.windows: Any = None
        self.both: tuple[Arrays, Arrays]

    def of(self, cell: Cell) -> tuple[Arrays, Arrays]:
        """Return the arrays channels first, and the same channels last."""
        windows = (cell.ksize, cell.strides)
        if self.windows != windows:
            g = self._draw(cell, cell.dest)
            known = Arrays(self.x, g, g, self.v)
            forward = replace(cell, kind="MaxPool" if cell.op.spatial == 2 else "MaxPool3D")
            y = Task.of(forward, known).on(_core)()
            arrays = Arrays(self.x, y, g, self.v)
            self.both, self.windows = (arrays, in_other_layout(cell, arrays)), windows
        return self.both

    def _draw(self, cell: Cell, shape: tuple[int, ...]) -> Array:
        numbers = 40 * self.rng.standard_normal(shape, np.float32)
        return (np.abs(numbers) if cell.dtype.startswith("u") else numbers).astype(dtype_of(cell))


def _timed(item: Item, numbers: _Numbers, budget: float) -> Record:
    cell, verb = item
    twin = cell.twin
    assert twin is not None
    first, last = (
        Task.of(each, arrays, verb).on(_core)
        for each, arrays in zip((cell, twin), numbers.of(cell), strict=True)
    )  # fmt: skip
    same = _agree(first(), last())
    result = duel(first, last, budget, lambda ratio: DOUBTFUL[0] < ratio < DOUBTFUL[1])
    return {
        "name": name(item), "verb": verb, "plane": planes.plane_of(cell), "size": cell.workload.rpartition("_")[2],
        "dtype": cell.dtype, "x": list(cell.x), "window": cell.ksize[0], "stride": cell.strides[0],
        "first": result.one, "last": result.other, "ratio": result.ratio, "times": result.times,
        "again": result.again, "same_bits": same,
    }  # fmt: skip


def _agree(first: Any, last: Any) -> bool:
    """Return True if both layouts have the same bits; flat positions, of int64, count in their own layout."""
    pairs = zip(first, last, strict=True) if isinstance(first, tuple) else [(first, last)]
    return all(
        same_bits(one, np.ascontiguousarray(np.moveaxis(other, -1, 1))) for one, other in pairs if one.dtype != np.int64
    )


def text(report: Record) -> str:
    """Return the summary: the share of cells within the limit, means per plane and verb, every cell above the limit."""
    cells = report["cells"]
    above = [record for record in cells if record["ratio"] > MOST]
    within = len(cells) - len(above)
    mean = geometric(record["ratio"] for record in cells)
    wrong = [f"  {record['name']}" for record in cells if not record["same_bits"]]
    parts = [
        f"channels first/channels last, geometric mean: {mean:.3f} over {len(cells)} cells, "
        f"{report['settings']['threads']} threads",
        f"{'met' if not above else 'MISSED'}: at most {MOST} in {within} of {len(cells)} cells ({within / len(cells):.1%})",
        *_groups(cells), f"cells above {MOST}: {len(above)}", *map(_line, above),
        *([f"cells whose layouts differ in bits: {len(wrong)}", *wrong] if wrong else ["bits: the same in both layouts"]),
        *busy(report["others"]),
    ]  # fmt: skip
    return "\n".join(parts)


def _groups(cells: list[Record]) -> Iterator[str]:
    for what in ("plane", "verb", "window", "stride", "dtype", "size"):
        yield f"by {what}: geometric mean, worst, share within {MOST}"
        for value in dict.fromkeys(sorted((record[what] for record in cells), key=_order)):
            ratios = [record["ratio"] for record in cells if record[what] == value]
            share = sum(ratio <= MOST for ratio in ratios) / len(ratios)
            yield f"  {value!s:12} {geometric(ratios):6.3f} {max(ratios):6.2f} {share:6.0%} of {len(ratios)}"


def _order(value: Any) -> Any:
    """Sort planes by rank and size, other values by themselves."""
    sides = str(value).split("x")
    return (len(sides), [int(side) for side in sides]) if all(side.isdigit() for side in sides) else (0, value)


def _line(record: Record) -> str:
    times = f"first {seconds(record['first'])}, last {seconds(record['last'])}"
    again = f", timed {record['again'] + 1} times" if record["again"] else ""
    return f"  {record['ratio']:.2f} {record['name']}: {times}{again}"
