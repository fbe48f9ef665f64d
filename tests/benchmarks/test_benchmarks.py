"""The benchmark is fair: it checks for the same numbers first, gives turns to all, and records every failure."""

from __future__ import annotations

import itertools
import json
import math
import sys
import threading
import time

import numpy as np
import pytest

from benchmarks import cells, data, machine, main, memory, naive, plot, readme, targets
from benchmarks.bandwidth import Copier
from benchmarks.cells import BUNDLED, Cell, of_line
from benchmarks.guard import check, problems
from benchmarks.markdown import render
from benchmarks.peers import MODULES, Run, available
from benchmarks.peers.base import installed
from benchmarks.peers.ours import Ours, OursGiven
from benchmarks.run import close, disagreement, enter, measure, merge, run
from benchmarks.summary import disturbance, geometric, lines, means
from benchmarks.timing import Entry, race, settle
from poolgrad import raw_ops

pytestmark = pytest.mark.clock

ALL = cells.read([str(BUNDLED)])
LITTLE = {cell.name: cells.small(cell, 2**12) for cell in ALL if max(cell.ksize or (1,)) < 13}
LINE = "max f32 nhwc x=2x9x9x5 k=3x3 s=2x2 pad=same grad"


def one(line: str) -> Cell:
    (cell,) = cells.read([line])
    return cell


class Fake:
    """A peer whose answer is poolgrad's, changed by a function."""

    given = False

    def __init__(self, name, change=lambda out: out, refusal=None):
        self.name, self.change, self.refusal = name, change, refusal

    def version(self):
        return "1"

    def can(self, cell):
        return self.refusal

    def prepare(self, cell, arrays):
        prepared = Ours().prepare(cell, arrays)
        return Run(prepared.call, lambda out: self.change(np.array(prepared.result(out))))


# ---- cells


def test_bundled_workloads_name_every_kind_once_per_layout_and_dtype():
    names = [cell.name for cell in ALL]
    assert len(names) == len(set(names)) == 245
    assert {cell.kind for cell in ALL} >= set(cells.SEEDS)


@pytest.mark.parametrize("name", sorted(LITTLE))
def test_a_cell_knows_the_shape_of_its_result(name):
    cell = LITTLE[name]
    arrays = data.make(cell)
    out = getattr(raw_ops, cell.kind)(**data.arguments(cell, arrays))
    out = out[0] if isinstance(out, tuple) else out
    assert out.shape == (cell.shape if cell.op.order == 1 else cell.dest)
    assert out.dtype.name == cell.dtype


@pytest.mark.parametrize(
    "line", [LINE, LINE.replace("f32", "bf16"), "max f32 nchw x=2x5x9x9 k=4x2 s=1x3 pad=same grad"]
)
def test_no_window_holds_its_maximum_twice(line):
    cell = one(line)
    arrays = data.make(cell)
    hits = np.zeros(cell.dest, int)
    for source, dest in naive._taps(cell):
        hits[dest] += arrays.x[source] == arrays.y[dest]
    assert (hits == 1).all()


def test_traffic_counts_each_array_once():
    gradient, mean, second = one(LINE), one(LINE.replace("max", "avg")), one(LINE.replace("grad", "gradgrad"))
    x, y = 2 * 9 * 9 * 5 * 4, 2 * 5 * 5 * 5 * 4
    assert gradient.traffic == x + y + x  # x and g read, dx written; y is only compared in shape
    assert mean.traffic == y + x
    assert second.traffic == x + y + y + x
    assert gradient.traffic_given(8) == 2 * y + y + x


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("max f32 nhwc x=2x9x9x5", "k="),
        ("median f32 nhwc x=2x9x9x5 k=3x3", "family"),
        (LINE + " twice", "twice"),
        (LINE + " dilation=2", "dilation"),
        (LINE.replace("nhwc", "ndhwc"), "nhwc"),
        (LINE.replace("k=3x3", "k=3xq"), "sizes like 3x3"),
        (LINE + " argmax", "race"),
        ("qmax x=2x9x9x5 k=3x3", "race"),
        ("max x=2x9x9x5 k=1x1x1x5", "race"),
        ("max x=2x9x9x5 k=3x3 pad=explicit:1,1/1,1", "race"),
    ],
)
def test_a_wrong_problem_line_is_refused_with_what_was_wanted(line, names, capsys):
    with pytest.raises(ValueError, match="problem: ") as error:
        of_line(line)
    assert names in str(error.value)
    assert main(["run", line]) == 2
    assert "problem: " in capsys.readouterr().err


def test_a_problem_line_says_the_same_to_the_benchmarks_as_to_the_command_line():
    cell = of_line("fmax f64 x=2x9x8x5 ratio=1.5x1.25 overlapping pseudo seed=3 seed2=4 grad")
    assert (cell.kind, cell.dtype, cell.layout, cell.seeds) == ("FractionalMaxPoolGrad", "float64", "NHWC", (3, 4))
    assert (cell.ratio, cell.overlapping, cell.pseudo) == ((1.0, 1.5, 1.25, 1.0), True, True)
    first = of_line("MaxPoolGradV2 nchw x=2x5x9x8 k=3x2 s=2x1 pad=same")
    assert (first.name, first.shape) == ("2x9x8x5_k3x2_s2x1/MaxPoolGradV2/NCHW/float32", (2, 5, 9, 8))
    out = Ours().prepare(first, data.make(first)).call()
    assert out.shape == first.shape


def test_filters_and_their_emptiness(capsys):
    assert main(["--list", "--only", "tiny", "--kind", "AvgPool"]) == 0
    assert capsys.readouterr().out.split() == ["tiny/AvgPool/NHWC/float32"]
    assert main(["--only", "no such workload"]) == 2


# ---- agreement


def test_a_peer_that_differs_in_one_value_does_not_run():
    cell = one(LINE)

    def spoil(out):
        out.reshape(-1)[17] += 1
        return out

    peers = [Ours(), OursGiven(), Fake("liar", spoil), Fake("shape", lambda out: out[:1]), Fake("no", refusal="cannot")]
    entries, found = enter(cell, data.make(cell), peers)
    assert [entry.name for entry in entries] == ["poolgrad", "poolgrad +indices"]
    assert found["liar"]["error"].startswith("disagrees by 1")
    assert "shape" in found["shape"]["error"]
    assert found["no"] == {"given": False, "left_out": "cannot"}


def test_a_peer_that_raises_is_recorded_and_the_others_run():
    def fail(out):
        raise RuntimeError("broken peer")

    cell = one(LINE)
    record = measure(cell, data.make(cell), [Ours(), Fake("bad", fail), Fake("good")], Copier(), 0.01)
    assert record["contestants"]["bad"] == {"given": False, "error": "RuntimeError: broken peer"}
    assert record["contestants"]["good"]["best"] > 0
    assert record["copy"] > 0


def test_nan_never_agrees():
    assert disagreement(np.zeros((1, 2), np.float32), np.array([[0, np.nan]], np.float32), 1.0)


@pytest.mark.parametrize("module", [name for name in MODULES if name != "ours"])
def test_installed_peers_agree_with_poolgrad(module):
    needs = {"onednn": "numpy"}.get(module, module)
    if not installed(needs):
        pytest.skip(f"{module} is not installed")
    peers, missing = available([module])
    if missing:
        pytest.skip(f"{module}: {missing[module]}")
    ran = 0
    for name in ("resnet_stem", "odd_channels", "mnist", "inception_branch", "unet3d", "i3d_branch", "fmp_sqrt2"):
        for cell in (cell for cell in LITTLE.values() if cell.workload == name and cell.dtype == "float32"):
            entries, found = enter(cell, data.make(cell), peers)
            assert not {peer: c["error"] for peer, c in found.items() if "error" in c}, cell.name
            ran += sum(not entry.name.startswith("poolgrad") for entry in entries)
    assert ran


# ---- the race


def test_contestants_take_turns():
    log: list[str] = []
    entries = [Entry(name, lambda name=name: (log.append(name), time.sleep(0.02)), 0.02) for name in "abc"]
    race(entries, 0.7)
    turns = "".join(name for name, _ in itertools.groupby(log))
    assert turns.startswith("abcabc")
    assert all(len(entry.times) >= 2 for entry in entries)


def test_a_slow_contestant_has_a_turn_and_a_failing_one_is_named():
    def fail():
        raise OSError("gone")

    slow, quick, gone = (
        Entry("slow", lambda: time.sleep(0.1), 0.1),
        Entry("quick", lambda: None, 1e-6),
        Entry("gone", fail, 1e-3),
    )
    race([slow, quick, gone], 0.15)
    assert len(slow.times) == 1
    assert len(quick.times) > 1
    assert quick.best < 1e-4
    assert gone.error == "OSError: gone"


def test_a_bad_first_call_does_not_decide_how_often_a_contestant_runs():
    stalled = Entry("stalled", lambda: None, 0.02, [0.02])
    race([stalled], 0.05)
    assert stalled.best < 1e-4
    assert len(stalled.times) > 5


def test_cores_that_others_use_are_what_is_not_ours(monkeypatch):
    busy, own, clock = iter([100.0, 103.0]), iter([10.0, 11.0]), iter([0.0, 2.0])
    monkeypatch.setattr(machine, "_busy_seconds", lambda: next(busy))
    monkeypatch.setattr(machine, "_own_seconds", lambda: next(own))
    monkeypatch.setattr(machine.time, "monotonic", lambda: next(clock))
    assert machine.Others().cores() == 1.0  # 3 s busy, 1 s of it ours, in 2 s


def test_doubtful_figures_decide_nothing():
    report = report_of(1.0, 40.0, 16.0)
    report["cells"][0]["others"] = 1.5
    assert "not an idle machine" in disturbance(report)
    assert "**Doubtful" in render(report)


def test_no_contestant_left_ends_the_race():
    began = time.perf_counter()
    race([Entry("late", lambda: None, 99.0)], 30.0, patience=10.0)
    assert time.perf_counter() - began < 5


# ---- reports


def report_of(ours: float, peer: float, tensorflow: float, kind: str = "MaxPoolGrad") -> dict:
    record = {
        "name": f"w/{kind}/NCHW/float32", "workload": "w", "kind": kind, "layout": "NCHW", "dtype": "float32",
        "overlapping": False, "x": [1, 2, 2, 1], "window": [2, 2], "channels_first": True, "traffic": 300,
        "traffic_given": 200, "copy": 1000.0, "others": 0.0,
        "contestants": {
            "poolgrad": {"given": False, "best": ours}, "poolgrad +indices": {"given": True, "best": ours},
            "torch contiguous": {"given": False, "best": peer}, "tensorflow": {"given": False, "best": tensorflow},
            "jax": {"given": False, "error": "no"}, "torch contiguous +indices": {"given": True, "best": ours / 2},
        },
    }  # fmt: skip
    place = {
        "date": "2001-02-03",
        "cpu": "abacus",
        "threads": 2,
        "load": 0.1,
        "config": {"isa": "beads"},
        "versions": {"jax": "9"},
        "missing": {},
    }
    return {
        "machine": place,
        "bandwidth": {"copy": 1e9, "bytes": 2**20, "last_level_cache": 100},
        "cells": [record],
        "targets": [],
    }


def test_ratios_means_and_losses_of_a_report_made_by_hand():
    report = report_of(1.0, 4.0, 16.0)
    same, given = lines(report)
    assert (same.peer, same.ratio, same.lost, same.fraction) == ("torch contiguous", 4.0, False, 0.3)
    assert (given.peer, given.ratio, given.lost, given.fraction) == ("torch contiguous +indices", 0.5, True, 0.2)
    assert means([same, given])["TensorFlow, seed operators"] == pytest.approx((16.0, 1))
    assert means([same, given])["PyTorch contiguous, channels first"] == pytest.approx((4.0, 1))
    assert geometric([2.0, 8.0, math.nan]) == pytest.approx(4.0)
    text = render(report)
    assert "**0.50x**" in text
    assert "run 3 times" in render(report | {"settings": {"passes": 3}})
    assert "times, for all" not in text
    assert "- w/MaxPoolGrad/NCHW/float32 +indices: torch contiguous +indices" in text
    assert "jax: no (1 cells" in text


@pytest.mark.parametrize(
    ("ours", "peer", "expected"), [(1.0, 1.9, True), (1.9, 1.0, True), (1.0, 2.1, False), (2.1, 1.0, False)]
)
def test_a_race_is_close_whoever_wins(ours, peer, expected):
    (record,) = report_of(ours, peer, 99.0)["cells"]
    del record["contestants"]["torch contiguous +indices"]
    assert close(record) is expected


def test_later_passes_add_times_of_all_contestants():
    (first,), (again,) = report_of(2.0, 3.0, 9.0)["cells"], report_of(1.0, 4.0, 9.0)["cells"]
    for record in (first, again):
        for found in record["contestants"].values():
            found |= {"times": [found["best"]]} if "best" in found else {}
    merge(first, again | {"copy": 2000.0})
    assert first["copy"] == 2000.0
    assert first["contestants"]["poolgrad"] == {"given": False, "best": 1.0, "times": [2.0, 1.0]}
    assert first["contestants"]["torch contiguous"] == {"given": False, "best": 3.0, "times": [3.0, 4.0]}
    assert "error" in first["contestants"]["jax"]


@pytest.mark.parametrize(("theirs", "races"), [(1.5, 2), (3.0, 1)])
def test_a_close_race_is_run_in_each_pass_and_no_other(monkeypatch, theirs, races):
    def decided(entries, _):
        for entry in entries:
            entry.times = [theirs if entry.name == "twin" else 1.0]

    monkeypatch.setattr(sys.modules["benchmarks.run"], "race", decided)
    twin = Ours()
    twin.name = "twin"
    (record,) = run([one(LINE)], 0.01, [Ours(), twin], {}, passes=2, quiet=True)["cells"]
    assert record["contestants"]["twin"]["times"] == [theirs] * races


def test_targets_that_a_report_decides():
    good, bad = (
        targets.Targets(report_of(1.0, 40.0, 16.0), [], 0.0, True),
        targets.Targets(report_of(1.0, 0.5, 2.0), [], 0.0, True),
    )
    assert good.target_1()[1] is False  # the race with indices is lost in both
    assert good.target_2()[1] is True
    assert bad.target_2()[1] is False
    words = "0 of 0 cells channels last, 0 of 1 cells channels first; lowest 30% in w/MaxPoolGrad/NCHW/float32"
    assert good.target_3() == (words, False)
    assert targets.Targets({"cells": [], "bandwidth": {"last_level_cache": 1}}, [], 0.0, True).target_1()[1] is None


def test_a_run_writes_json_and_markdown(tmp_path, capsys):
    assert main([LINE, "--quick", "--peer", "xarray", "--no-targets", "-o", str(tmp_path)]) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    (record,) = report["cells"]
    assert record["contestants"]["poolgrad"]["times"]
    assert report["machine"]["cpu"]
    assert record["name"].replace("/", " ") in (tmp_path / "report.md").read_text()
    assert "report.md" in capsys.readouterr().out
    assert (tmp_path / "speed.svg").exists() == installed("matplotlib")


def test_pictures_are_drawn(tmp_path):
    if not installed("matplotlib"):
        pytest.skip("matplotlib is not installed")
    files = plot.plot(report_of(1.0, 4.0, 16.0), tmp_path)
    assert [file.name for file in files] == ["speed.png", "speed.svg", "cells.png", "cells.svg"]
    assert all(file.stat().st_size > 1000 for file in files)


def test_the_readme_gets_the_summary_and_the_page_the_whole_table(tmp_path, capsys):
    file, page, report = tmp_path / "README.md", tmp_path / "performance.md", tmp_path / "report.json"
    report.write_text(json.dumps(report_of(1.0, 4.0, 16.0)))
    words = ["readme", str(report), "--readme", str(file), "--page", str(page), "--picture", "speed.png"]
    for each in (file, page):
        each.write_text(f"above\n{readme.BEGIN}\nold\n{readme.END}\nbelow\n")
    for _ in range(2):
        assert main(words) == 0
    for text in (file.read_text(), page.read_text()):
        assert text.startswith("above\n")
        assert text.endswith("\nbelow\n")
        assert "old" not in text
        assert "geometric mean" in text
        assert text.count(readme.BEGIN) == 1
    assert "(speed.png)" in file.read_text()
    assert "abacus" in page.read_text()
    assert "worst cell" in page.read_text()
    assert "worst cell" not in file.read_text()
    page.write_text("no marks")
    assert main(words) == 2
    assert page.read_text() == "no marks"
    assert "speed section" in capsys.readouterr().err


def test_run_reports_what_is_missing():
    report = run([one(LINE)], 0.01, [Ours()], {"torch": "not installed"}, quiet=True)
    assert report["machine"]["missing"] == {"torch": "not installed"}
    assert report["bandwidth"]["copy"] > 1e6


# ---- the guard


def test_every_guarded_call_is_right_and_not_slower_than_the_loop(capsys):
    assert main(["guard", "--seconds", "0.02"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(list(problems()))


def test_the_guard_sees_a_slow_kernel_and_a_wrong_one(monkeypatch):
    cell = one("max f32 nhwc x=1x16x16x8 k=2x2 s=2x2")
    original = Ours.prepare

    def slowly(self, cell, arrays):
        prepared = original(self, cell, arrays)
        return Run(lambda: (time.sleep(0.002), prepared.call())[1])

    monkeypatch.setattr(Ours, "prepare", slowly)
    assert "TOO SLOW" in str(check(cell, 0.01))
    monkeypatch.setattr(
        Ours, "prepare", lambda self, cell, arrays: Run(lambda: original(self, cell, arrays).call() + 1)
    )
    assert "disagrees by 1" in str(check(cell, 0.01))


def test_an_empty_guard_is_no_pass():
    assert main(["guard", "--only", "no such cell"]) == 1


# ---- memory


def frugal():
    return np.ones(2**22, np.uint8)


def hungry():
    scratch = np.ones(2**23, np.uint8)
    return np.ones(2**22, np.uint8) + scratch[: 2**22]


def test_memory_that_a_call_frees_again_is_seen():
    if not memory.supported():
        pytest.skip("no /proc/self/clear_refs here")
    # In fresh processes, as the benchmark does it: frameworks that other tests load allocate in the background.
    assert abs(memory._alone(memory.growth, frugal)) < 2**20
    assert memory._alone(memory.growth, hungry) > 2**23 - 2**20


def test_a_turn_begins_when_the_threads_of_the_one_before_are_asleep():
    done, endless = threading.Event(), threading.Event()

    def spin(seconds: float, end: threading.Event) -> None:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until and not end.is_set():
            pass
        end.set()

    threading.Thread(target=spin, args=(0.04, done)).start()
    settle()
    assert done.is_set()
    threading.Thread(target=spin, args=(60, endless)).start()
    settle()  # nobody waits for ever
    assert not endless.is_set()
    endless.set()
