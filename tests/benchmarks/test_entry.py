"""The race of entry points: it compares results before it times them, and names the peers that are absent."""

import json

import numpy as np
import pytest

from benchmarks import readme
from benchmarks.command import RESULTS, main
from benchmarks.entry import contest, jax_calls, numpy_calls, text, torch_calls
from benchmarks.entry.contest import OURS, Cell, Contest, Disagreement, Found


def test_results_must_agree():
    contest.agree([1.0, np.nan], [1.0, np.nan], 0.0)
    contest.agree([100.0], [101.0], 0.01)
    contest.agree([100], [101], 0.0, 1.0)
    for theirs in ([1.0, 2.0], [[1.0]], [np.nan]):
        with pytest.raises(Disagreement):
            contest.agree([1.0], theirs, 0.5)
    with pytest.raises(Disagreement, match="by 1"):
        contest.agree([100], [101], 0.0)


def test_a_peer_that_disagrees_or_fails_is_named_and_not_timed():
    def broken() -> None:
        raise RuntimeError("no")

    calls = {OURS: (lambda: 1, np.asarray), "good": (lambda: 1, np.asarray), "wrong": (lambda: 2, np.asarray)}
    record = contest.run(Cell("numpy", "one", lambda: Contest({**calls, "broken": (broken, np.asarray)})), 0.01)
    assert set(record["contestants"]) == {OURS, "good"}
    assert record["failed"] == {"wrong": "Disagreement: differs from poolgrad by 1", "broken": "RuntimeError: no"}
    assert text.fastest(record)[0] == "good"
    with pytest.raises(RuntimeError, match="no"):
        contest.run(Cell("numpy", "two", lambda: Contest({OURS: (broken, np.asarray)})), 0.01)


def test_an_absent_peer_is_named():
    def absent() -> None:
        raise ImportError("gone")

    found = Found()
    assert found.load("ghost", absent, str) is None
    assert found.load("here", lambda: 5, str) == 5
    assert (found.missing, found.versions) == ({"ghost": "ImportError: gone"}, {"here": "5"})
    report = contest.compete([], 0.1, found)
    assert "Absent: ghost: ImportError: gone." in text.markdown(report)


@pytest.mark.parametrize("group", [numpy_calls, torch_calls, jax_calls], ids=["numpy", "torch", "jax"])
def test_cells_have_names_of_their_own(group):
    names = [cell.name for cell in group.cells(Found(), False)]
    assert len(set(names)) == len(names)


def test_a_short_race_writes_both_reports(tmp_path, capsys):
    only = ["avg_pool(x, 2), 256x256 uint8", "max_pool(a, 5), ", "global_sum_pool(x), 4000 uint8", "nan='ignore'"]
    words = [word for name in only for word in ("--only", name)]
    assert (
        main(["entry", "--quick", "--group", "numpy", "--seconds-per-cell", "0.02", "-o", str(tmp_path), *words]) == 0
    )
    report = json.loads((tmp_path / "entry.json").read_text())
    assert len(report["cells"]) == 4
    assert report["machine"]["cpu"]
    for record in report["cells"]:
        assert record["contestants"][OURS]["best"] > 0
        assert "Disagreement" not in str(record["failed"])
    table = (tmp_path / "entry.md").read_text()
    assert table.startswith("Processor: ")
    assert "| global_sum_pool(x), 4000 uint8 |" in table
    assert "NumPy" in capsys.readouterr().out


def test_write_puts_both_sections_and_keeps_the_results(tmp_path, capsys):
    page, front, kept = (tmp_path / name for name in ("page.md", "front.md", "kept"))
    begin, end = readme.marks("entry")
    for file in (page, front):
        file.write_text(f"above\n{begin}\nold\n{end}\nbelow\n")
    words = [
        "--quick",
        "--group",
        "numpy",
        "--only",
        "max_pool(x, 2), 8x8",
        "--seconds-per-cell",
        "0.01",
        "-o",
        tmp_path,
    ]
    words += ["--write", "--page", page, "--readme", front, "--results", kept]
    assert main(["entry", *map(str, words)]) == 0
    [report] = text.stored(kept)
    assert readme.written(page, "entry") == text.markdown(report).strip("\n")
    assert readme.written(front, "entry") == text.summary([report])
    assert "A quick run" in readme.written(front, "entry")
    assert f"| `poolgrad` | {report['machine']['cpu']} | 1 |" in readme.written(front, "entry")
    assert all(file.read_text().startswith("above") and file.read_text().endswith("below\n") for file in (page, front))
    front.write_text("no marks")
    assert main(["entry", *map(str, words)]) == 2
    assert "without its entry section" in capsys.readouterr().err


def test_the_documents_say_what_the_stored_results_say():
    root, reports = RESULTS.parents[1], text.stored(RESULTS)
    assert reports, "no results: python -m benchmarks entry --write makes them"
    assert readme.written(root / text.PAGE, "entry") == text.page_of(reports)
    assert readme.written(root / "README.md", "entry") == text.summary(reports)
    assert not any(report["settings"]["quick"] for report in reports)


def test_two_processors_stand_side_by_side_and_a_new_run_replaces_the_old_one(tmp_path):
    def report(cpu: str, date: str, theirs: float) -> text.Record:
        best = {OURS: {"best": 1.0}, "NumPy": {"best": theirs}}
        record = {"group": "numpy", "name": "max_pool(x, 2)", "contestants": best, "failed": {}, "others": 0.0}
        machine = {"date": date, "cpu": cpu, "threads": 2, "versions": {}, "missing": {}}
        return {"machine": machine, "settings": {"quick": False}, "cells": [record]}

    old, new = report("AMD EPYC", "2026-11-18 18:54 UTC", 2.0), report("Intel(R) Xeon(R)", "2026-11-19 07:00 UTC", 0.5)
    for each in (report("AMD EPYC 2", "2026-11-17 00:00 UTC", 9.0), old, new):
        (tmp_path / text.file_name(each)).write_text(json.dumps(each))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["entry-amd.json", "entry-intel.json"]
    assert text.stored(tmp_path) == [new, old]
    found = text.summary([new, old])
    assert "| `poolgrad` | Intel(R) Xeon(R) | 1 | 0.5x | [1](docs/entry-points.md#numpy) |" in found
    assert "| `poolgrad` | AMD EPYC | 1 | 2.0x | 0 |" in found
    assert "| `poolgrad` | AMD EPYC | 1 | 2.0x | 0 |" in text.page_of([new, old])
    assert "AMD" not in text.page_of([new])


def test_a_summary_names_losses_and_headlines():
    def cell(name: str, ours: float, **peers: float) -> text.Record:
        best = {OURS: ours, **peers}
        return {
            "group": "numpy",
            "name": name,
            "contestants": {n: {"best": t} for n, t in best.items()},
            "failed": {},
            "others": 0.0,
        }

    cells = [cell("max_pool(x, 2), 8x8", 1.0, **{"scikit-image": 4.0, "Pillow": 0.5})]
    cells += [cell("min_pool(x, 2), 8x8", 1.0, **{"scikit-image": 16.0}), cell("global_max_pool(x)", 2.0, NumPy=1.0)]
    machine = {"date": "today", "cpu": "a processor", "threads": 1, "versions": {}, "missing": {}}
    found = text.summary([{"machine": machine, "settings": {"quick": False}, "cells": cells}])
    assert "| `poolgrad` | a processor | 3 | 1.6x | [2](docs/entry-points.md#numpy) |" in found
    assert "| scikit-image | 8.0x (4.0 to 16.0) | 2 |" in found
    assert "| global pools | NumPy | 0.5x (0.5 to 0.5) | 1 |" in found
    assert "quick" not in found
