"""The command line: its output, its files, its refusals, and its exit codes."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from support import ROOT

from poolgrad import raw_ops
from poolgrad._cli import bench, demo
from poolgrad._cli.panels import GLYPHS, diverging
from poolgrad._common import png
from poolgrad._kernels import native
from poolgrad._ops.table import OPS
from poolgrad.cli import COMMANDS, main

X = np.arange(32, dtype=np.float32).reshape(1, 4, 4, 2) % 7
SIZES = ["ksize=1,2,2,1", "strides=1,2,2,1", "padding=VALID"]
KEYWORDS = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the one line on stderr of a command that ends with 2 and prints nothing else."""
    try:
        code = main(list(words))
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else -1
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


# ---- ops


def test_ops_lists_every_row_of_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1 : 1 + len(OPS)]] == list(OPS)


@pytest.mark.parametrize("name", OPS)
def test_an_ops_page_has_its_arguments_dtypes_layouts_and_deviations(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ops", name]) == 0
    text = capsys.readouterr().out
    op = OPS[name]
    for fact in (*(p.name for p in op.params), *op.dtypes, *op.formats, *op.promise.deviations, op.summary):
        assert fact in text


# ---- run


def test_run_writes_what_the_op_returns(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "MaxPool", "input=x.npy", *SIZES, "-o", "y.npy"]) == 0
    assert capsys.readouterr().out == "y.npy: f32 [1, 2, 2, 2]\n"
    assert np.array_equal(np.load("y.npy"), raw_ops.MaxPool(input=X, **KEYWORDS))


def test_run_without_a_file_shows_the_result(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "MaxPool", "input=x.npy", *SIZES]) == 0
    assert "output: f32 [1, 2, 2, 2]\n  [0, :, :, 0] =\n  [[3. 6.]\n   [5. 6.]]\n" in capsys.readouterr().out


def test_run_takes_shapes_sequences_flags_ratios_types_and_scalars_as_text(folder: Path) -> None:
    np.save("g.npy", np.ones((1, 2, 2, 2), np.float32))
    assert main(["run", "AvgPoolGrad", "orig_input_shape=1,4,4,2", "grad=g.npy", *SIZES, "-o", "dx.npy"]) == 0
    assert (np.load("dx.npy") == 0.25).all()
    borders = {"row_pooling_sequence": [0, 1, 3], "col_pooling_sequence": [0, 2, 4]}
    words = ["orig_input_tensor_shape=1,4,4,2", "out_backprop=g.npy", "overlapping=true"]
    words += [f"{name}={','.join(map(str, values))}" for name, values in borders.items()]
    assert main(["run", "FractionalAvgPoolGrad", *words, "-o", "dx.npy"]) == 0
    wanted = raw_ops.FractionalAvgPoolGrad(
        orig_input_tensor_shape=[1, 4, 4, 2], out_backprop=np.load("g.npy"), overlapping=True, **borders
    )
    assert np.array_equal(np.load("dx.npy"), wanted)
    np.save("codes.npy", X.astype(np.uint8))
    assert (
        main(["run", "QuantizedMaxPool", "input=codes.npy", "min_input=-1.5", "max_input=1.5", *SIZES, "-o", "q.npz"])
        == 0
    )
    with np.load("q.npz") as q:
        assert (q["min_output"], q["max_output"], q["output"].dtype) == (-1.5, 1.5, np.uint8)


def test_an_op_with_several_outputs_writes_a_file_each(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "MaxPoolWithArgmax", "input=x.npy", *SIZES, "Targmax=int32", "-o", "y.npy"]) == 0
    assert capsys.readouterr().out == "y.npy: f32 [1, 2, 2, 2]\ny.argmax.npy: i32 [1, 2, 2, 2]\n"
    assert np.load("y.argmax.npy").dtype == np.int32
    words = ["value=x.npy", "pooling_ratio=1,1.44,1.44,1", "deterministic=true", "seed=3", "overlapping=true"]
    assert main(["run", "FractionalMaxPool", *words, "-o", "y.npz"]) == 0
    with np.load("y.npz") as parts:
        assert sorted(parts) == ["col_pooling_sequence", "output", "row_pooling_sequence"]


def test_v2_sizes_come_as_text_or_as_a_file(folder: Path) -> None:
    np.save("k.npy", np.array([1, 2, 2, 1], np.int32))
    assert main(["run", "MaxPoolV2", "input=x.npy", "ksize=k.npy", *SIZES[1:], "-o", "y.npy"]) == 0
    assert np.array_equal(np.load("y.npy"), raw_ops.MaxPool(input=X, **KEYWORDS))


def test_bfloat16_files_are_read_and_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("b.npy", X.astype(ml_dtypes.bfloat16))
    assert "say b.npy:bfloat16" in refused(capsys, "run", "MaxPool", "input=b.npy", *SIZES)
    assert main(["run", "MaxPool", "input=b.npy:bfloat16", *SIZES, "-o", "y.npy"]) == 0
    assert "y.npy:bfloat16" in capsys.readouterr().out
    y = np.load("y.npy").view(ml_dtypes.bfloat16)
    assert np.array_equal(y.astype(np.float32), raw_ops.MaxPool(input=X, **KEYWORDS))
    assert "raw two-byte" in refused(capsys, "run", "MaxPool", "input=x.npy:bfloat16", *SIZES)


REFUSED = [
    (["run", "MaxPol"], "there is no op 'MaxPol'; did you mean 'MaxPool'?"),
    (["run", "MaxPool", "ksizes=1,2,2,1"], "no argument 'ksizes'; did you mean 'ksize'?"),
    (["run", "MaxPool", "input=x.npy"], "still wanted: ksize=, strides=, padding="),
    (["run", "MaxPool", "x.npy"], "wanted name=value"),
    (["run", "MaxPool", "input=none.npy", *SIZES], "no such file"),
    (["run", "MaxPool", "input=text.npy", *SIZES], "it does not begin like one"),
    (["run", "MaxPool", "input=short.npy", *SIZES], "wanted a .npy file"),
    (["run", "MaxPool", "input=pickle.npy", *SIZES], "pickled Python objects, which are never loaded"),
    (["run", "MaxPool", "input=x.npy", "input=x.npy"], "twice"),
    (["run", "MaxPool", "input=x.npy", "ksize=1,2.5,2,1", *SIZES[1:]], "got '1,2.5,2,1', wanted integers like 1,2,2,1"),
    (
        ["run", "MaxPool", "input=x.npy", "ksize=1,0,2,1", *SIZES[1:]],
        "MaxPool: ksize: got [1, 0, 2, 1], wanted positive",
    ),
    (["run", "MaxPool", "input=x.npy", *SIZES, "-o", "y.txt"], "ends in .npy or .npz"),
    (
        ["run", "MaxPool", "input=x.npy", *SIZES, "-o", "nowhere/y.npy"],
        "-o: got 'nowhere/y.npy', wanted a file that can",
    ),
    (["run", "FractionalMaxPool", "value=x.npy", "pooling_ratio=1,2,2,1", "overlapping=maybe"], "wanted true or false"),
    (
        ["run", "FractionalMaxPool", "value=x.npy", "pooling_ratio=1,2,2,1", "seed=3,4"],
        "seed: got '3,4', wanted integers",
    ),
    (
        ["run", "AvgPoolGrad", "orig_input_shape=1,9999999999,4,1", "grad=x.npy", *SIZES],
        "wanted an integer from -2147483648",
    ),
    (["run", "MaxPool", "input=x.npy", "ksize=", *SIZES[1:]], "ksize: got '', wanted integers like 1,2,2,1"),
    (["try", "max x=1x4x4x1 k=2y2"], "column 15"),
    (["try", "max x=1x4x4x1 k=2x2", "--data", "-1"], "--data"),
    (["try", "max x=1x4x4x1 k=2x2", "--data", "one"], "invalid int"),
    (["demo", "-o", "nowhere/demo.png"], "-o: got 'nowhere/demo.png', wanted a file that can be written (no such file"),
    (["check", "none.json"], "file: got 'none.json', wanted a page that can be read (no such file or directory)"),
    (["check", "wrong.json"], "file: 'wrong.json': "),
    (["run", "example:seed-003-repaired", "--page", "q"], "page: got 'q', wanted 'seed 003 repaired'"),
    (["run", "example:seed-003-repaired", "zz=x.npy"], "'zz': got 'zz=x.npy', wanted placeholder=file.npy"),
    (["explain", "example:seed-003-repaired", "zz", "0,0"], "block: seed 003 repaired: got 'zz'"),
    (["explain", "example:seed-003-repaired", "dx", "0,0"], "cell: got [0, 0]"),
    (["explain", "example:seed-003-repaired", "dx", "a"], "cell: at character 1: got 'a'"),
    (["export", "example:seed-003-repaired"], "-o: got nothing"),
    (["studio", "none.json"], "file: got 'none.json'"),
    (["ops", "AvgPoolgrad"], "did you mean 'AvgPoolGrad'?"),
    (["oops"], "there is no command 'oops'; did you mean 'ops'?"),
    (["ops", "--long"], "unrecognized arguments"),
]


@pytest.mark.parametrize(("words", "wanted"), REFUSED, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_what_is_wrong_is_said_in_one_line(
    words: list[str], wanted: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("text.npy").write_text("no array")
    Path("wrong.json").write_text("{}")
    Path("short.npy").write_bytes(Path("x.npy").read_bytes()[:-1])
    np.save("pickle.npy", np.array([{}], object), allow_pickle=True)
    assert wanted in refused(capsys, *words)


# ---- try


def test_try_shows_the_call_and_agrees_with_the_reference(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["try", "max bf16 nchw x=1x2x5x5 k=3x3 s=2x2 pad=same grad", "--data", "4", "--real"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "MaxPoolGrad: max bf16 nchw x=1x2x5x5 k=3x3 s=2x2 pad=same grad\norig_input: bf16 [1, 2, 5, 5]\n"
    )
    assert "the same bits as the reference" in out


def test_try_tells_the_schedules_of_the_core_and_their_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["try", "--why", "max f32 x=2x9x9x64 k=3x3 s=2x2 grad"]) == 0
    out = capsys.readouterr().out
    reason = "inner elements fill vectors, or no other way fits: visit every cell of each window"
    assert f"route float32 2x9x9x64 -> 2x4x4x64: direct\n  direct: {reason}\n" in out
    assert main(["try", "--why", "max f32 x=2x9x9x2 k=3x3 s=2x2 argmax grad"]) == 0
    assert "scatter float32 2x4x4x2 -> 2x9x9x2: follow_taps\n" in capsys.readouterr().out


def test_try_ends_with_1_where_the_kernel_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    select = native.select
    monkeypatch.setattr(native, "select", lambda plan, start, x: select(plan, start, x) + 1)
    assert main(["try", "max x=1x4x4x1 k=2x2"]) == 1
    assert "DIFFERS from the reference in output" in capsys.readouterr().out
    assert main(["try", "max x=1x4x4x1 k=2x2", "--no-check"]) == 0


# ---- demo, and the rest


def test_the_demo_shows_the_five_operators_and_names_three_things_to_try(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "-o", "page.png"]) == 0
    out = capsys.readouterr().out
    five = ["FractionalMaxPoolGrad", "FractionalAvgPoolGrad", "AvgPoolGrad", "MaxPool3DGrad", "MaxPoolGradGrad"]
    rows = [line.split() for line in out.splitlines() if line.split()[:1] and line.split()[0] in OPS]
    assert [row[0] for row in rows] == five
    assert all(row[3] == row[4] for row in rows[:3])
    assert out.partition("Three things to try:")[2].count("\n  poolgrad ") == 3
    page = png.read("page.png")
    assert page.shape[2] == 3
    assert {(255, 255, 255), (25, 25, 30)} <= {tuple(pixel) for pixel in page.reshape(-1, 3).tolist()}


def test_what_the_demo_tells_to_try_works(folder: Path) -> None:
    for command, _ in demo._NEXT:
        words = (
            [word.strip('"') for word in command.split()]
            if '"' not in command
            else ["poolgrad", "try", command.split('"')[1]]
        )
        assert main(words[1:]) == 0


def test_config_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config"]) == 0
    assert main([]) == 0
    text = capsys.readouterr().out
    assert all(command.name in text for command in COMMANDS)
    for command in COMMANDS:
        if command.name == "bench":  # the benchmarks have their own parser
            continue
        with pytest.raises(SystemExit) as leave:
            main([command.name, "--help"])
        assert leave.value.code == 0
        assert f"examples:\n  poolgrad {command.name}" in capsys.readouterr().out


def test_bench_runs_the_benchmarks_of_a_source_tree(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["bench", "--list", "max f32 nhwc x=2x9x9x5 k=3x3 s=2x2 pad=same grad"]) == 0
    assert capsys.readouterr().out == "2x9x9x5_k3x3_s2x2/MaxPoolGrad/NHWC/float32\n"


@pytest.mark.parametrize("words", [[], ["--quick"], ["--help"]], ids=" ".join)
def test_bench_without_a_source_tree_says_where_the_benchmarks_are(
    words: list[str], capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "__file__", str(folder / "lib" / "poolgrad" / "_cli" / "bench.py"))
    assert main(["bench", *words]) == 2
    wanted = "the benchmarks are not installed; run `python -m benchmarks` in the source tree of poolgrad"
    assert capsys.readouterr().err == f"poolgrad bench: {wanted}\n"


PRINTING = [["ops"], ["--help"], [], ["--version"], ["run", "--help"], ["run", "example:seed-003-repaired"],
            ["run", "MaxPool", "input=x.npy", *SIZES, "-o", "y.npy"], ["export", "example:seed-003-repaired", "--to", "html"]]  # fmt: skip


@pytest.mark.parametrize("words", PRINTING, ids=" ".join)
def test_a_reader_that_leaves_early_is_no_error(words: list[str], folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "poolgrad", *words], stdout=closed, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(os.name != "posix", reason="a shell that closes streams")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("words", "code"), [("ops", 0), ("--version", 0), ("check example:seed-003-as-pictured", 1), ("run MaxPol", 2), ("oops", 2)])  # fmt: skip
def test_a_command_without_streams_ends_with_its_status_and_without_a_traceback(
    words: str, code: int, closed: str, folder: Path
) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m poolgrad {words} {closed}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("words", [["ops"], ["run", "example:seed-003-repaired"]], ids=" ".join)
def test_output_that_cannot_be_written_is_said_in_one_line(words: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "poolgrad", *words], stdout=full, stderr=subprocess.PIPE, check=False, text=True
        )
    assert (done.returncode, done.stderr) == (2, "poolgrad: output: got no space left on device, wanted to write it\n")


def test_python_m_poolgrad_is_the_command(folder: Path) -> None:
    for words in (["--version"], ["ops", "MaxPool"], ["run", "MaxPol"], ["oops"]):
        module, script = (
            subprocess.run([sys.executable, "-m", name, *words], capture_output=True, text=True, check=False)
            for name in ("poolgrad", "poolgrad.cli")
        )
        assert (module.returncode, module.stdout, module.stderr) == (script.returncode, script.stdout, script.stderr)
        assert "__main__" not in module.stdout + module.stderr


# ---- files that are whole or not there


def listed(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


WRITERS: dict[str, Callable[[], int]] = {
    "y.npy": lambda: main(["run", "MaxPool", "input=x.npy", *SIZES, "-o", "y.npy"]),
    "y.npz": lambda: main(["run", "MaxPoolWithArgmax", "input=x.npy", *SIZES, "-o", "y.npz"]),
    "page.npz": lambda: main(["run", "example:seed-003-repaired", "-o", "page.npz"]),
    "page.py": lambda: main(["export", "example:seed-003-repaired", "-o", "page.py"]),
    "page.html": lambda: main(["export", "example:seed-003-repaired", "-o", "page.html"]),
    "page.json": lambda: main(["check", "example:seed-003-as-pictured", "--repair", "page.json"]),
    "demo.png": lambda: main(["demo", "-o", "demo.png"]),
}


class Broken(Exception):
    pass


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), Broken(), KeyboardInterrupt()], ids=repr)
def test_a_file_whose_writing_fails_stays_as_it_was(
    name: str, fault: BaseException, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_text("the old file")
    before = listed(folder)

    def fail(*_: object) -> None:
        raise fault

    monkeypatch.setattr(os, "fsync", fail)  # when all is written, but not yet in its place
    if isinstance(fault, OSError):
        assert WRITERS[name]() == 2
        argument = "--repair" if name == "page.json" else "-o"
        wanted = f"{argument}: got '{name}', wanted a file that can be written (no space left on device)"
        assert wanted in capsys.readouterr().err
    else:
        with pytest.raises(type(fault)):
            WRITERS[name]()
    assert Path(name).read_text() == "the old file"
    assert listed(folder) == before


def test_none_of_several_files_is_replaced_if_one_cannot_be_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("y.npy").write_text("the old file")
    Path("y.argmax.npy").mkdir()
    before = listed(folder)
    assert main(["run", "MaxPoolWithArgmax", "input=x.npy", *SIZES, "-o", "y.npy"]) == 2
    assert "-o: got 'y.argmax.npy', wanted a file that can be written (is a directory)" in capsys.readouterr().err
    assert Path("y.npy").read_text() == "the old file"
    assert listed(folder) == before


@pytest.mark.skipif(os.name != "posix", reason="links and modes as on POSIX")
def test_modes_and_links_stay_what_they_are(folder: Path) -> None:
    old = os.umask(0o027)
    try:
        assert WRITERS["y.npy"]() == 0
        assert stat.S_IMODE(os.stat("y.npy").st_mode) == 0o640
    finally:
        os.umask(old)
    os.chmod("y.npy", 0o604)
    Path("sub").mkdir()
    Path("y.npy").rename("sub/real.npy")
    Path("y.npy").symlink_to("sub/real.npy")
    assert WRITERS["y.npy"]() == 0
    assert Path("y.npy").is_symlink()
    assert stat.S_IMODE(os.stat("sub/real.npy").st_mode) == 0o604
    assert np.load("y.npy").shape == (1, 2, 2, 2)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="a user for whom modes count")
def test_a_file_that_may_not_be_written_is_not_replaced_and_one_in_a_closed_folder_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("y.npy").write_text("the old file")
    os.chmod("y.npy", 0o444)
    assert WRITERS["y.npy"]() == 2
    assert "permission denied" in capsys.readouterr().err
    assert Path("y.npy").read_text() == "the old file"
    os.chmod("y.npy", 0o644)
    os.chmod(folder, 0o555)
    try:
        assert WRITERS["y.npy"]() == 0
    finally:
        os.chmod(folder, 0o755)
    assert np.load("y.npy").shape == (1, 2, 2, 2)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes that have a name")
def test_a_pipe_is_written_to_and_stays_a_pipe(folder: Path) -> None:
    os.mkfifo("page.json")
    done = subprocess.Popen(
        [sys.executable, "-m", "poolgrad", "export", "example:seed-003-repaired", "-o", "page.json"],
        stdout=subprocess.DEVNULL,
    )
    assert json.loads(Path("page.json").read_bytes())["format"] == "poolgrad-graph"
    assert done.wait(60) == 0
    assert stat.S_ISFIFO(os.stat("page.json").st_mode)
    assert main(["export", "example:seed-003-repaired", "--to", "json", "-o", os.devnull]) == 0


# ---- pictures


@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (6, 4, 3), (1, 9, 3), (40, 3, 3)])
def test_a_picture_survives_a_png_file(shape: tuple[int, ...], folder: Path) -> None:
    rng = np.random.default_rng(1)
    for picture in (rng.integers(0, 256, shape, np.uint8), np.cumsum(np.ones(shape), axis=0).astype(np.uint8)):
        png.write("p.png", picture)
        assert np.array_equal(png.read("p.png"), picture)


@pytest.mark.parametrize(
    "harm", [lambda b: b[:-9], lambda b: b"GIF" + b[3:], lambda b: b[:60] + b"?" + b[61:], lambda b: b[:20]]
)
def test_a_damaged_png_is_refused(harm: Callable[[bytes], bytes]) -> None:
    whole = png.encode(np.arange(300, dtype=np.uint8).reshape(10, 10, 3))
    with pytest.raises(ValueError, match=r"^png: got"):
        png.decode(harm(whole))


@pytest.mark.parametrize("shape", [(0, 3), (3, 3, 4), (3,)])
def test_what_is_no_picture_is_not_written(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^png: picture: got"):
        png.encode(np.zeros(shape, np.uint8))


def test_the_bundled_picture_is_small_and_what_the_demo_reads() -> None:
    assert demo.picture().shape == (1, 96, 96, 3)
    assert files("poolgrad").joinpath("data/picture.png").stat().st_size < 40_000


def test_letters_are_all_different_and_colours_are_symmetric_about_zero() -> None:
    assert len({(glyph.shape, glyph.tobytes()) for glyph in GLYPHS.values()}) == len(GLYPHS)
    below, zero, above = diverging(np.array([[-0.5, 0.0, 0.5]]), 1.0)[0].astype(int)
    assert below[2] > below[0]
    assert above[0] > above[2]
    assert len(set(zero.tolist())) == 1


def test_the_command_line_shows_an_empty_result(capsys):
    assert main(["try", "max x=0x4x4x2 k=2x2"]) == 0
    assert capsys.readouterr().out


def test_the_module_runs_as_a_program():
    done = subprocess.run(
        [sys.executable, "-c", "import poolgrad.cli as c; c.main(['--version'])"], capture_output=True, text=True
    )
    assert "poolgrad" in done.stdout
