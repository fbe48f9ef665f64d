"""`poolgrad pool` and `poolgrad pyramid`: results, estimates, progress, refusals in one line."""

import time

import numpy as np
import pytest

import poolgrad as pg
from poolgrad.cli import main

X = np.random.default_rng(0).integers(0, 255, (40, 30), dtype=np.uint8)


@pytest.fixture
def src(tmp_path):
    np.save(tmp_path / "x.npy", X)
    return str(tmp_path / "x.npy")


@pytest.mark.parametrize(
    ("words", "want"),
    [
        (["--max", "2,2"], lambda: pg.max_pool(X, 2)),
        (["--min", "3x2", "--stride", "1", "--padding", "same"], lambda: pg.min_pool(X, (3, 2), 1, padding="same")),
        (["--avg", "2", "--dtype", "uint8", "--rounding", "floor"], lambda: pg.avg_pool(X, 2, dtype="u1", rounding="floor")),
        (["--sum", "4", "--axes", "1", "--ceil"], lambda: pg.sum_pool(X, 4, axes=1, ceil_mode=True)),
        (["--global", "avg", "--axes", "0"], lambda: pg.global_avg_pool(X, axes=0)),
    ],
)  # fmt: skip
def test_pools_by_their_names(words, want, src, tmp_path, capsys):
    assert main(["pool", src, str(tmp_path / "y.npy"), *words]) == 0
    got = np.load(tmp_path / "y.npy")
    assert (got.dtype, got.tobytes()) == (want().dtype, np.ascontiguousarray(want()).tobytes())
    assert "regions" in capsys.readouterr().err


def test_a_dry_run_of_a_petabyte_takes_no_time(tmp_path, capsys):
    start = time.perf_counter()
    words = [
        "100000x100000x50000:uint16:128x128x128",
        str(tmp_path / "y.zarr"),
        "--max",
        "2",
        "--memory",
        "2GB",
        "--workers",
        "4",
    ]
    assert main(["pool", *words, "--dry-run"]) == 0
    assert time.perf_counter() - start < 5
    said = capsys.readouterr().out
    assert "1 PB, chunks 128x128x128" in said
    assert "50000x50000x25000 uint16, 125 TB" in said
    assert "1.00 times the source" in said
    assert not list(tmp_path.iterdir())


def test_a_dry_run_of_a_file_reads_its_head(src, tmp_path, capsys):
    assert main(["pool", src, str(tmp_path / "y.npy"), "--max", "3", "--stride", "1", "--dry-run"]) == 0
    assert "40x30 uint8" in capsys.readouterr().out
    assert not (tmp_path / "y.npy").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--max", "2"], "which exists, wanted resume=True, overwrite=True, or another path"),
        (["--max", "2", "--memory", "3"], "memory: got"),
        (["--max", "2", "--nan", "ignore", "--axes", "7"], "axes: got 7"),
    ],
)
def test_refusals_are_one_line(words, message, src, tmp_path, capsys):
    np.save(tmp_path / "y.npy", X)
    assert main(["pool", src, str(tmp_path / "y.npy"), *words]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_pyramid(src, tmp_path):
    zarr = pytest.importorskip("zarr")
    words = ["--levels", "3", "--chunks", "16,16", "--scale", "2,1", "--quiet"]
    assert main(["pyramid", src, str(tmp_path / "p.zarr"), *words]) == 0
    group = zarr.open_group(str(tmp_path / "p.zarr"), mode="r")
    assert group["2"].shape == (10, 8)
    assert main(["pyramid", src, str(tmp_path / "p.zarr"), *words]) == 2
