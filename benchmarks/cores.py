"""Race two builds of the native core on the same arrays, in one process and in turns."""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

from poolgrad import _core, get_num_threads

from . import machine
from .cells import Cell
from .data import Array, Arrays
from .native import WITH_TAPS, Task, result_of, same_bits
from .run import Progress, grouped
from .summary import busy, geometric, seconds
from .timing import duel

Record = dict[str, Any]
DOUBTFUL = 0.95  # measure a cell again, longer, if the new core seems slower than this
LEAST, MEAN = 0.9, 1.0  # the wanted ratios old/new: of every cell, and on average
WORST = 10  # cells that the summary lists at least


@contextmanager
def loaded(*files: Path) -> Iterator[list[ModuleType]]:
    """Load builds of the core beside the one that poolgrad uses; copies, so that one file may be loaded twice."""
    with tempfile.TemporaryDirectory() as folder:
        yield [_load(file, shutil.copy(file, Path(folder) / f"{i}{file.name}")) for i, file in enumerate(files)]


def _load(file: Path, copy: str | Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("_core", copy)
    if spec is None or spec.loader is None:
        raise ValueError(f"core: got {file}, wanted a compiled module such as {Path(_core.__file__).name}")
    try:
        core = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(core)
        core.use_bfloat16(np.empty(0, ml_dtypes.bfloat16))
    except (ImportError, AttributeError) as error:
        raise ValueError(f"core: got {file}, wanted a build of poolgrad's core for this Python: {error}") from None
    return core


def in_both_layouts(cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells and the twins that are not among them, each beside its cell."""
    every = [each for cell in cells for each in (cell, cell.twin) if each is not None]
    return list({cell.name: cell for cell in every}.values())


def verbs_of(cell: Cell, taps: bool) -> list[str]:
    """Return the verb of the cell's op and, if `taps`, the verb of the same order that finds or follows taps."""
    own = cell.op.rule.verb.value
    return [own, WITH_TAPS[cell.op.order]] if taps and cell.maximal else [own]


def race(
    old: ModuleType, new: ModuleType, cells: list[Cell], budget: float, threads: int = 0, taps: bool = False,
    fill: bool = False, quiet: bool = False,
) -> Record:  # fmt: skip
    """Race both cores on every cell for `budget` seconds each; return the report."""
    for core in (old, new):
        core.set_num_threads(threads or get_num_threads())
    others = machine.Others()
    progress = Progress(sum(len(verbs_of(cell, taps)) for cell in cells), quiet)
    found = []
    for cell, arrays in grouped(cells):
        for verb in verbs_of(cell, taps):
            progress.step(f"{cell.name} {verb}")
            found.append(_compare(old, new, cell, arrays, verb, budget, fill))
    progress.close()
    return {
        "machine": machine.describe({}, {}), "others": others.cores(),
        "settings": {"seconds_per_cell": budget, "threads": new.get_num_threads(), "fill": fill},
        "cells": sorted(found, key=lambda record: record["ratio"]),
    }  # fmt: skip


def _compare(
    old: ModuleType, new: ModuleType, cell: Cell, arrays: Arrays, verb: str, budget: float, fill: bool
) -> Record:
    task = Task.of(cell, arrays, verb)
    out = result_of(cell) if fill else None
    calls = [task.on(core, out) for core in (old, new)]
    before = tuple(array.copy() if fill else array for array in _results(calls[0]()))
    same = all(map(same_bits, before, _results(calls[1]())))
    del before
    result = duel(calls[0], calls[1], budget, lambda ratio: ratio < DOUBTFUL)
    return {
        "name": cell.name, "verb": verb, "kind": cell.kind, "layout": cell.layout, "channels_first": cell.first,
        "dtype": cell.dtype, "x": list(cell.x), "old": result.one, "new": result.other, "ratio": result.ratio,
        "times": result.times, "again": result.again, "same_bits": same,
    }  # fmt: skip


def _results(result: Array | tuple[Array, ...]) -> tuple[Array, ...]:
    return result if isinstance(result, tuple) else (result,)


def text(report: Record) -> str:
    """Return the summary of a race: means, every cell that became slower, cells with other bits."""
    cells = report["cells"]
    slower = [record for record in cells if record["ratio"] < 1]
    mean, least = geometric(record["ratio"] for record in cells), cells[0]["ratio"]
    parts = [
        f"old/new, geometric mean: {mean:.3f} over {len(cells)} cells, {report['settings']['threads']} threads",
        *(f"  {mean:.3f} {what} ({count} cells)" for what, mean, count in _groups(cells)),
        f"cells below 1.0: {len(slower)}; these, or the {WORST} lowest:", *map(_line, cells[: max(len(slower), WORST)]),
        *_other_bits(cells), *busy(report["others"]),
        f"{'met' if mean >= MEAN else 'MISSED'}: geometric mean at least {MEAN}",
        f"{'met' if least >= LEAST else 'MISSED'}: no cell below {LEAST}; lowest {least:.3f}",
    ]  # fmt: skip
    return "\n".join(parts)


def _groups(cells: list[Record]) -> Iterator[tuple[str, float, int]]:
    for what in ("verb", "layout", "dtype"):
        for value in sorted({record[what] for record in cells}):
            ratios = [record["ratio"] for record in cells if record[what] == value]
            yield value, geometric(ratios), len(ratios)


def _line(record: Record) -> str:
    again = f", timed {record['again'] + 1} times" if record["again"] else ""
    times = f"old {seconds(record['old'])}, new {seconds(record['new'])}"
    return f"  {record['ratio']:.3f} {record['name']} {record['verb']}: {times}{again}"


def _other_bits(cells: list[Record]) -> list[str]:
    found = [f"  {record['name']} {record['verb']}" for record in cells if not record["same_bits"]]
    return [f"cells whose bits differ: {len(found)}", *found] if found else ["bits: the same in all cells"]
