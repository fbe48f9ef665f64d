"""`poolgrad check|run|explain|export page.json`: the studio's answers at a terminal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import PACKAGE, ROOT, python

from poolgrad.cli import main
from poolgrad.graph import Graph, Scope, ops

EXAMPLES = {path.stem.partition("-")[2]: str(path) for path in (PACKAGE / "data" / "examples").glob("*.json")}
GOOD, BAD = EXAMPLES["seed-003-repaired"], EXAMPLES["seed-004-as-pictured"]
Capture = pytest.CaptureFixture[str]


def refused(capsys: Capture, *words: str) -> str:
    assert main(list(words)) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


def test_check_lists_blocks_shapes_problems_and_repairs(capsys: Capture) -> None:
    assert main(["check", GOOD]) == 0
    assert "ok  dx   MaxPool3DGrad      output f32 [2, 2, 2, 2, 2]" in capsys.readouterr().out
    assert main(["check", BAD]) == 1
    out = capsys.readouterr().out
    assert "failed  ddy  MaxPoolGradGrad  output ?" in out
    assert out.count("problem: ddy: ") == 2
    assert "  repair: Insert MaxPool and connect it" in out


def test_check_makes_the_repairs_when_it_is_asked_to(tmp_path: Path, capsys: Capture) -> None:
    mended = tmp_path / "mended.json"
    assert main(["check", BAD, "--repair", str(mended)]) == 0
    assert "repaired: ddy: Insert MaxPool and connect it" in capsys.readouterr().out
    assert main(["run", str(mended)]) == 0
    assert "[[[[ 7.  8.]]]" in capsys.readouterr().out
    Graph.from_json(mended.read_text("utf-8"))


def test_run_prints_what_is_fetched_or_saves_everything(tmp_path: Path, capsys: Capture) -> None:
    assert main(["run", GOOD]) == 0
    out = capsys.readouterr().out
    assert out.startswith("dx.output: f32 [2, 2, 2, 2, 2]")
    assert "ddy.output: f32 [2, 1, 1, 1, 2]" in out
    assert main(["run", GOOD, "-o", str(tmp_path / "a.npz")]) == 0
    with np.load(tmp_path / "a.npz") as arrays:
        assert arrays["y.output"].ravel().tolist() == [15, 16, 31, 32]
    assert main(["run", BAD]) == 1


def test_run_feeds_placeholders_and_reads_files_beside_the_page(tmp_path: Path, capsys: Capture) -> None:
    x = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    np.save(tmp_path / "x.npy", x)
    s = Scope.new_root_scope(collect=True)
    fed = ops.Placeholder(s.with_op_name("fed"))
    ops.MaxPool(s.with_op_name("y"), fed, "1,2,2,1", "1,2,2,1", "SAME")
    ops.MaxPool(s.with_op_name("z"), ops.File(s.with_op_name("file"), "x.npy"), "1,4,4,1", "1,4,4,1", "SAME")
    page = tmp_path / "page.json"
    page.write_text(s.to_json(), "utf-8")
    assert main(["run", str(page), f"fed={tmp_path / 'x.npy'}"]) == 0
    out = capsys.readouterr().out
    assert "y.output: f32 [1, 2, 2, 1]" in out
    assert "15." in out
    assert main(["run", str(page)]) == 1
    assert "problem: fed: feed: got nothing" in capsys.readouterr().out
    assert "placeholders: fed" in refused(capsys, "run", str(page), "y=1.npy")
    assert main(["export", str(page), "-o", str(tmp_path / "page.html")]) == 0
    assert main(["export", str(page), "-o", str(tmp_path / "page.npz")]) == 0


def test_explain_says_the_sentence(capsys: Capture) -> None:
    assert main(["explain", GOOD, "dx", "0,1,1,1,0"]) == 0
    assert capsys.readouterr().out.startswith(
        "dx[0,1,1,1,0] = 3 = g[0,0,0,0,0] (3), because x[0,1,1,1,0] = 15 is nearer than 1e-5"
    )
    assert main(["explain", GOOD, "dx", "0,0,0,0,0", "--pin", "grad"]) == 0
    assert capsys.readouterr().out.startswith("g[0,0,0,0,0] = 3 goes whole to dx[0,1,1,1,0]")


def test_export_goes_by_the_name_or_the_word(tmp_path: Path, capsys: Capture) -> None:
    assert main(["export", GOOD, "--to", "python"]) == 0
    assert "ops.MaxPool3DGrad(" in capsys.readouterr().out
    assert (
        main(["export", str(ROOT / "tests" / "data" / "enuspace" / "seed004.svg"), "-o", str(tmp_path / "p.json")]) == 0
    )
    assert main(["run", str(tmp_path / "p.json")]) == 0


def test_the_pages_that_come_with_the_package_go_by_their_names(tmp_path: Path, capsys: Capture) -> None:
    assert main(["check", "example:seed-003-as-pictured"]) == 1
    assert main(["run", "example:seed-004-repaired"]) == 0
    assert main(["export", "example:seed 003 repaired", "-o", str(tmp_path / "page.json")]) == 0
    assert (tmp_path / "page.json").read_text("utf-8") == Path(GOOD).read_text("utf-8")
    capsys.readouterr()
    assert main(["check", "example:a-picture-and-back"]) == main(["check", "example:picture"]) == 0
    capsys.readouterr()
    assert "wanted one of why-zero, ties, overlap," in refused(capsys, "check", "example:none")


def test_what_is_wrong_is_one_line_and_exit_code_2(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "bad.json").write_text("{", "utf-8")
    assert "import: got" in refused(capsys, "check", str(tmp_path / "bad.json"))
    assert "no such file" in refused(capsys, "check", str(tmp_path / "none.json"))
    assert "wanted 'seed 003 repaired'" in refused(capsys, "check", GOOD, "--page", "other")
    assert "wanted a cell of output, shape" in refused(capsys, "explain", GOOD, "dx", "9,9,9,9,9")
    assert "at character 1" in refused(capsys, "explain", GOOD, "dx", "a,b")
    assert "wanted an output of a block" in refused(capsys, "explain", GOOD, "nobody", "0")
    assert "x: got a Const" in refused(capsys, "explain", GOOD, "x", "0")
    assert "did not run" in refused(capsys, "explain", BAD, "ddy", "0")
    assert "wanted a name that ends in .json" in refused(capsys, "export", GOOD)
    assert ".npz is not text" in refused(capsys, "export", GOOD, "--to", "npz")
    assert "wanted a name that ends in .npz" in refused(capsys, "run", GOOD, "-o", "a.npy")
    assert "--page: got 'p' with the op 'MaxPool'" in refused(capsys, "run", "MaxPool", "--page", "p")


def test_as_a_program_it_does_the_same() -> None:
    done = python("-m", "poolgrad.cli", "check", BAD)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
