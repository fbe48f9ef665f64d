"""Two cores, or two layouts, race on the same numbers, take turns, are checked for equal bits, and are timed again in doubt."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import ROOT

import poolgrad
from benchmarks import cells, channels_first, cores, data, layouts, main, planes, timing
from benchmarks.cells import BUNDLED, of_line
from benchmarks.native import Task, same_bits
from benchmarks.peers.base import installed
from benchmarks.peers.ours import Ours
from benchmarks.run import enter
from benchmarks.timing import duel
from poolgrad import _core, raw_ops, reference

pytestmark = pytest.mark.clock

CORE = Path(_core.__file__)
LINE = "max f32 nchw x=2x5x9x9 k=3x3 s=2x2 pad=same"
QUICK = ["--quick", "--seconds-per-cell", "0.001"]


def sure(ratio: float) -> bool:
    return False


# ---- duels


def test_the_side_that_begins_changes_each_round():
    log: list[str] = []
    duel(lambda: (log.append("a"), time.sleep(0.01)), lambda: (log.append("b"), time.sleep(0.01)), 0.2, sure)
    runs = [(name, len(list(group))) for name, group in itertools.groupby(log[4:])]  # after two first calls of each
    assert [name for name, _ in runs[:3]] == ["a", "b", "a"]
    assert runs[1][1] > 1.5 * runs[0][1]  # b ends a round and begins the next


def test_a_doubtful_duel_is_timed_again_and_longer_but_not_for_ever():
    asked: list[float] = []

    def slow() -> None:
        time.sleep(0.002)

    result = duel(slow, lambda: time.sleep(0.001), 0.005, lambda ratio: not asked.append(ratio))
    assert (result.again, len(asked)) == (timing.AGAIN, timing.AGAIN + 1)
    assert result.ratio == asked[-1] > 1.2
    settled = duel(slow, slow, 0.005, sure)
    assert settled.again == 0
    assert settled.times < result.times


def test_a_duel_counts_the_best_time():
    waits = iter([0.02, 0.02, 0.001] + [0.02] * 1000)
    result = duel(lambda: time.sleep(next(waits)), lambda: time.sleep(0.02), 0.05, sure)
    assert result.one < 0.01 < result.other


# ---- tasks


@pytest.mark.parametrize("verb", layouts.VERBS)
@pytest.mark.parametrize("line", [LINE, "max f32 ncdhw x=2x3x5x6x7 k=2x3x2 s=1x2x2 pad=same"])
def test_a_task_runs_the_verb_that_it_names(verb, line):
    cell = of_line(line)
    arrays = data.make(cell)
    kind = layouts.VERBS[verb] if cell.op.spatial == 2 else cells.solid(layouts.VERBS[verb])
    task = Task.of(replace(cell, kind=kind), arrays, verb)
    plan, rule, a = task.plan, task.rule, arrays
    _, taps = reference.choose(plan, a.x)
    wanted = {
        "select": lambda: reference.select(plan, task.start, a.x),
        "choose": lambda: reference.choose(plan, a.x),
        "argmax": lambda: reference.argmax(plan, math.prod(cell.shape[1:]), np.int64, a.x),
        "fold": lambda: reference.fold(plan, rule.mean, a.x),
        "spread": lambda: reference.spread(plan, rule.share, rule.reversed, a.g),
        "route": lambda: reference.route(plan, a.x, a.g),
        "near": lambda: reference.near(plan, rule.eps, a.x, a.y, a.g),
        "recall": lambda: reference.recall(plan, a.x, a.y, a.v),
        "place": lambda: reference.place(plan, a.g, taps),
        "pick": lambda: reference.pick(plan, a.v, taps),
    }[verb]()
    shape = cell.shape if verb in ("spread", "route", "near", "place") else cell.dest
    for out in (None, np.full(shape, 7, np.float32)):
        got = task.on(_core, out)()
        pairs = zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]
        assert all(np.array_equal(one, other) for one, other in pairs)
        assert out is None or np.shares_memory(out, got[0] if isinstance(got, tuple) else got)


def test_bits_are_compared_and_not_values():
    zero, nan = np.zeros(3, np.float32), np.full(3, np.nan, np.float32)
    assert same_bits(nan, nan.copy())
    assert not same_bits(zero, -zero)
    assert not same_bits(zero, zero[:2])


# ---- cores


def test_both_layouts_and_all_types_of_the_workloads_race():
    listed = cells.read([str(BUNDLED)])
    both = cores.in_both_layouts(listed)
    names = {cell.name for cell in both}
    assert len(names) == len(both)
    assert names >= {cell.name for cell in listed}
    assert {"tiny/MaxPool/NCHW/float32", "one_channel_photo/MaxPool/NCHW/uint8"} <= names
    assert all(cell.twin is None or cell.twin.name in names for cell in both)
    assert {verb for cell in both for verb in cores.verbs_of(cell, True)} == set(layouts.VERBS) - {"argmax"}


def test_two_copies_of_a_core_are_two_cores():
    with cores.loaded(CORE, CORE) as (old, new):
        assert len({old, new, _core}) == 3
        old.set_num_threads(1)
        new.set_num_threads(2)
        assert (old.get_num_threads(), new.get_num_threads()) == (1, 2)


def test_a_race_of_cores_prints_means_and_slower_cells_and_writes_json(tmp_path, capsys):
    words = ["cores", str(CORE), "--cells", LINE, "--cells", LINE.replace("max f32", "avg bf16") + " grad"]
    assert main([*words, *QUICK, "--taps", "--threads", "1", "-o", str(tmp_path)]) == 0
    report = json.loads((tmp_path / "cores.json").read_text())
    found = sorted((record["verb"], record["layout"], record["dtype"]) for record in report["cells"])
    maxima = [(verb, layout, "float32") for verb in ("choose", "select") for layout in ("NCHW", "NHWC")]
    assert found == sorted([*maxima, ("spread", "NCHW", "bfloat16"), ("spread", "NHWC", "bfloat16")])
    assert report["settings"]["threads"] == 1
    ratios = [record["ratio"] for record in report["cells"]]
    assert ratios == sorted(ratios)
    assert ratios == [record["old"] / record["new"] for record in report["cells"]]
    out = capsys.readouterr().out
    assert "over 6 cells, 1 threads" in out
    assert "bits: the same in all cells" in out
    assert "cores.json" in out


class Slowed:
    """The core, with a select that sleeps and gives other bits. It has no other private names."""

    def __init__(self, wait: float, shift: float) -> None:
        self.wait, self.shift = wait, shift
        self.Plan, self.set_num_threads, self.get_num_threads = _core.Plan, lambda n: None, lambda: 1

    def select(self, *args):
        time.sleep(self.wait)
        out = _core.select(*args)
        out += self.shift
        return out


@pytest.mark.parametrize("fill", [False, True])
def test_a_slower_core_and_other_bits_are_named(fill):
    cell = of_line(LINE)
    report = cores.race(Slowed(0, 0), Slowed(0.002, 1), [cell], 0.001, fill=fill, quiet=True)
    (record,) = report["cells"]
    assert record["ratio"] < 0.5
    assert record["again"] == timing.AGAIN
    assert not record["same_bits"]
    text = cores.text(report)
    assert "cells below 1.0: 1" in text
    assert "timed 4 times" in text
    assert f"cells whose bits differ: 1\n  {cell.name} select" in text
    assert "MISSED: no cell below 0.9" in text
    faster = cores.text(cores.race(Slowed(0.002, 0), Slowed(0, 0), [cell], 0.001, fill=fill, quiet=True))
    assert "MISSED" not in faster
    assert "cells below 1.0: 0" in faster


@pytest.mark.parametrize(("name", "content"), [("_core.so", b"no library"), ("_core.txt", b""), ("_core.py", b"")])
def test_a_file_that_is_no_core_is_refused(tmp_path, capsys, name, content):
    (tmp_path / name).write_bytes(content)
    assert main(["cores", str(tmp_path / name)]) == 2
    assert f"core: got {tmp_path / name}, wanted" in capsys.readouterr().err
    assert main(["cores", str(tmp_path / "absent.so")]) == 2


# ---- the grid


def test_the_grid_has_both_sizes_all_windows_and_rows_that_do_not_fill_a_vector():
    grid = list(planes.cells(["MaxPool"], ["float32"]))
    assert {(cell.ksize[0], cell.strides[0]) for cell in grid} == {(k, s) for k in (2, 3, 5) for s in (1, 2, 3)}
    assert {planes.plane_of(cell) for cell in grid} >= {"7x7", "2000x3000", "13x29x31"}
    assert any(cell.x[-2] % 4 for cell in grid)
    assert all(cell.first and cell.x[-1] >= planes.FEWEST and min(cell.dest) >= 1 for cell in grid)
    bytes_of = {
        size: [math.prod(cell.x) * 4 for cell in grid if cell.workload.endswith(size)] for size in ("cache", "memory")
    }
    assert max(bytes_of["cache"]) <= planes.last_level_cache() / 4
    assert len({cell.name for cell in grid}) == len(grid)
    beyond = min(planes.sizes()["memory"], 2 * planes.last_level_cache())
    assert min(bytes_of["memory"]) > beyond / 2


def test_the_grid_is_outside_the_workloads():
    known = {(cell.x, cell.ksize, cell.strides) for cell in cells.read([str(BUNDLED)])}
    assert not known & {(cell.x, cell.ksize, cell.strides) for cell in planes.cells()}


def test_a_sample_is_the_same_each_time_and_in_order():
    some = planes.sample(list(range(1000)), 20)
    assert some == planes.sample(list(range(1000)), 20) == sorted(set(some))
    assert len(some) == 20
    assert planes.sample([3, 1, 2], 0) == planes.sample([3, 1, 2], 9) == [3, 1, 2]


# ---- layouts


def test_every_verb_is_timed_in_two_and_three_dimensions():
    found = {(verb, cell.op.spatial) for cell, verb in layouts.items()}
    assert found == {(verb, rank) for verb in layouts.VERBS for rank in (2, 3)} - {("near", 2)}


def test_layouts_prints_shares_and_means_and_writes_json(tmp_path, capsys):
    words = ["layouts", "--sample", "12", "--dtype", "float32", "--verb", "select", "--verb", "near"]
    assert main([*words, *QUICK, "--threads", "1", "-o", str(tmp_path)]) == 0
    report = json.loads((tmp_path / "layouts.json").read_text())
    assert len(report["cells"]) == 12
    assert all(record["same_bits"] and record["first"] > 0 for record in report["cells"])
    assert {record["verb"] for record in report["cells"]} == {"select", "near"}
    out = capsys.readouterr().out
    for words in ("over 12 cells, 1 threads", "by plane: ", "by verb: ", "cells above 1.3: ", "bits: the same"):
        assert words in out
    assert main(["layouts", "--only", "no such plane"]) == 2


def test_layouts_of_one_cell_hold_the_same_numbers():
    cell, _ = next(item for item in layouts.items(["recall"]) if item[0].op.spatial == 3)
    cell = cells.small(cell, 2**12)
    first, last = layouts._Numbers(cell).of(cell)
    assert first.x.shape == cell.shape
    assert last.x.shape == cell.twin.shape
    for one, other in ((first.x, last.x), (first.y, last.y), (first.g, last.g), (first.v, last.v)):
        assert np.array_equal(one, np.moveaxis(other, -1, 1))
    assert np.array_equal(first.y, raw_ops.MaxPool3D(**data.arguments(cell, first, "MaxPool3D")))


def test_the_summary_of_layouts_counts_what_it_lists():
    def record(verb, plane, ratio, same=True):
        return {
            "name": f"{plane}/{verb}", "verb": verb, "plane": plane, "size": "cache", "dtype": "float32", "window": 2,
            "stride": 1, "ratio": ratio, "first": ratio, "last": 1.0, "again": 0, "same_bits": same,
        }  # fmt: skip

    found = [record("fold", "7x7", 2.0), record("select", "14x14", 1.3, False), record("fold", "14x14", 0.5)]
    text = layouts.text({"cells": found, "others": 0.5, "settings": {"threads": 3}})
    assert "1.091 over 3 cells, 3 threads" in text  # the third root of 2 * 1.3 * 0.5
    assert "MISSED: at most 1.3 in 2 of 3 cells (66.7%)" in text
    assert "cells above 1.3: 1\n  2.00 7x7/fold: first 2.00 s, last 1.00 s" in text
    assert "differ in bits: 1\n  14x14/select" in text
    assert "others" not in text
    assert "doubtful: not an idle machine" in text
    plane, by_verb = text.index("by plane"), text.index("by verb")
    assert text.index("  7x7", plane) < text.index("  14x14", plane) < by_verb  # sorted as numbers
    fold = next(line for line in text[by_verb:].splitlines() if line.startswith("  fold"))
    assert fold.split() == ["fold", "1.000", "2.00", "50%", "of", "2"]


# ---- channels first


def test_tensorflow_runs_channels_first_cells_channels_last():
    if not installed("tensorflow"):
        pytest.skip("tensorflow is not installed")
    from benchmarks.peers.tensorflow import EitherLayout

    for line in (LINE + " grad", LINE + " gradgrad", LINE.replace("max", "avg")):
        cell = of_line(line)
        entries, found = enter(cell, data.make(cell), [Ours(), EitherLayout(False), EitherLayout(True)])
        assert {"poolgrad", "tensorflow channels_last"} <= {entry.name for entry in entries}
        assert "disagrees" not in found["tensorflow"].get("error", "")
    last = of_line("max f32 nhwc x=2x9x9x5 k=3x3 s=2x2")
    assert EitherLayout(False).can(last) == "the cell's channels come last"


def test_channels_first_prints_each_peer_and_lost_cells_and_writes_json(tmp_path, capsys):
    nhwc = LINE.replace("nchw x=2x5x9x9", "nhwc x=2x9x9x5")
    assert main(["channels-first", LINE, nhwc, LINE + " grad", *QUICK, "-o", str(tmp_path)]) == 0
    report = json.loads((tmp_path / "channels-first.json").read_text())
    assert [record["layout"] for record in report["cells"]] == ["NCHW", "NCHW"]
    out = capsys.readouterr().out
    assert "cells lost to the fastest peer: " in out
    assert ("torch contiguous" in out) == installed("torch")


def test_ratios_of_peers_made_by_hand():
    def record(name, **best):
        names = {"ours": "poolgrad", "given": "torch contiguous +indices", "mine": "poolgrad +indices"}
        contestants = {
            names.get(key, key): {"given": key in ("given", "mine"), "best": value} for key, value in best.items()
        }
        return {
            "name": name, "others": 0.0, "traffic": 1, "traffic_given": 1, "copy": 1.0, "contestants": contestants,
        }  # fmt: skip

    report = {
        "cells": [record("a", ours=2.0, jax=1.0, tensorflow=8.0), record("b", ours=1.0, jax=8.0, mine=1.0, given=3.0)],
        "machine": {"missing": {"torch": "not installed"}},
    }
    assert channels_first._ratios(report) == {
        "jax": [0.5, 8.0], "tensorflow": [4.0], "torch contiguous +indices": [3.0], "fastest peer": [0.5, 8.0, 3.0],
    }  # fmt: skip
    text = channels_first.text(report)
    assert "cells lost to the fastest peer: 1 of 3\n  0.50 a: jax 1.00 s, poolgrad 2.00 s" in text
    assert "absent: torch: not installed" in text


def test_a_number_of_threads_holds_for_every_library():
    code = (
        "from benchmarks import channels_first, machine\n"
        "import poolgrad\n"
        "channels_first.use_threads(1)\n"
        "print(machine.threads(), poolgrad.get_num_threads())"
    )
    paths = os.pathsep.join([str(ROOT), *sys.path])
    got = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths})  # fmt: skip
    assert got.stdout.split() == (["1", "1"] if hasattr(os, "sched_setaffinity") else [str(os.cpu_count()), "1"])
    with pytest.raises(ValueError, match="threads: got 5000, wanted at most"):
        channels_first.use_threads(5000)
    assert poolgrad.get_num_threads() < 5000
