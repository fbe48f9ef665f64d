"""The race of entry points: it compares results before it times them, and names the peers that are absent."""

import json

import numpy as np
import pytest

from benchmarks.command import main
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
