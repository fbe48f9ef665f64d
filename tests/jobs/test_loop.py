"""`pool` reads and writes every kind of store with the bits of the whole array, goes on after any fault, and refuses before it works."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from job_cases import difference, random_case

import poolgrad as pg
from poolgrad.jobs.loop import State

pytestmark = pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore:divide by zero:RuntimeWarning")
X = np.random.default_rng(0).integers(0, 60_000, (70, 66, 50), dtype=np.uint16)
CHUNKS = (16, 16, 16)


@pytest.fixture
def zarr():
    return pytest.importorskip("zarr", reason="zarr is not installed")


def stored(zarr, path, array=X, chunks=CHUNKS, **words):
    made = zarr.create_array(str(path), shape=array.shape, chunks=chunks, dtype=array.dtype, **words)
    made[...] = array
    return str(path)


def close(array):
    if hasattr(array, "file"):
        array.file.close()


@pytest.mark.parametrize("first", range(2000, 2040, 20))
def test_random_jobs_over_arrays_have_the_bits_of_the_whole_array(first):
    for seed in range(first, first + 20):
        case, rng = random_case(seed), np.random.default_rng(seed)
        size = [int(rng.integers(1, n + 1)) if n else 1 for n in case.job.result]
        size = [max(s, n // 4) for s, n in zip(size, case.job.result, strict=True)]
        got = pg.pool(case.arrays, None, case.job, size=size, workers=int(rng.integers(1, 4)))
        assert not difference(got if isinstance(got, tuple) else (got,), case.want), (seed, case.name)


@pytest.mark.parametrize("source", ["x.zarr", "x2.zarr", "x.npy", "x.h5::a/x", "array"])
@pytest.mark.parametrize("target", ["y.zarr", "y2.zarr", "y.npy", "y.h5::a/y", "array", "none"])
def test_every_store_in_and_out(source, target, tmp_path, zarr):
    h5py = pytest.importorskip("h5py")
    src = X if source == "array" else str(tmp_path / source)
    if source.endswith(".zarr"):
        stored(zarr, src, zarr_format=2 if "2" in source else 3)
    elif source == "x.npy":
        np.save(src, X)
    elif source != "array":
        with h5py.File(tmp_path / "x.h5", "w") as file:
            file.create_dataset("a/x", data=X, chunks=CHUNKS)
    want = pg.max_pool(X, 2)
    out = {"array": np.zeros(want.shape, want.dtype), "none": None}.get(target, str(tmp_path / target))
    y = pg.pool(src, out, "max", 2, memory="400KB", zarr_format=2 if "2" in target else 3)
    assert y.dtype == want.dtype
    assert np.asarray(y[...]).tobytes() == want.tobytes()
    close(y)


def test_results_with_shards_are_written_shard_by_shard(tmp_path, zarr):
    src, seen = stored(zarr, tmp_path / "x.zarr"), []
    y = pg.pool(src, tmp_path / "y.zarr", "avg", 3, 1, padding="same", size=(32, 32, 32), chunks=(8, 8, 8), shards=(32, 32, 32), progress=lambda s: seen.append((s.done, s.total)))  # fmt: skip
    assert y.shards == (32, 32, 32)
    assert y[...].tobytes() == pg.avg_pool(X, 3, 1, padding="same").tobytes()
    assert seen == [(k + 1, 18) for k in range(18)]


def test_chunks_of_the_result_are_shorter_where_memory_is_short(tmp_path, zarr):
    x = np.random.default_rng(3).standard_normal((360, 40, 50)).astype(np.float32)
    source = zarr.create_array(str(tmp_path / "x"), shape=x.shape, chunks=(30, 20, 25), dtype="float32")
    source[:] = x
    wide = pg.pool(source, tmp_path / "wide", "avg", (30, 2, 2), workers=1)
    tight = pg.pool(source, tmp_path / "tight", "avg", (30, 2, 2), workers=1, memory="700KB")
    assert wide.chunks == (12, 20, 25)
    assert tight.chunks == (1, 20, 25)
    assert tight[:].tobytes() == wide[:].tobytes() == pg.avg_pool(x, (30, 2, 2)).tobytes()
    with pytest.raises(MemoryError, match="avg_pool: memory: got"):
        pg.pool(source, tmp_path / "never", "avg", (30, 2, 2), workers=1, memory="200B")
    assert not (tmp_path / "never").exists()


def test_several_results_and_several_sources(tmp_path, zarr):
    x = X[:40, :40, 0].astype(np.float32)
    src = stored(zarr, tmp_path / "x.zarr", x, (16, 16))
    job = pg.Job("max_pool", x.shape, x.dtype, 3, 2, returns=("values", "taps"))
    y, taps = pg.pool(src, (tmp_path / "y.zarr", tmp_path / "t.zarr"), job, memory="30KB")
    want, want_taps = pg.max_pool(x, 3, 2, return_taps=True)
    assert (y[...].tobytes(), taps[...].tobytes()) == (want.tobytes(), want_taps.values.tobytes())
    g = np.random.default_rng(1).standard_normal(want.shape).astype(np.float32)
    back = pg.Job("max_pool", x.shape, x.dtype, 3, 2).vjp(from_taps=True)
    dx = pg.pool((taps, g), None, back, memory="30KB")
    assert dx.tobytes() == np.ascontiguousarray(want_taps.operator.T(g)).tobytes()


def test_shares_of_the_work_fill_the_result(tmp_path, zarr):
    src = stored(zarr, tmp_path / "x.zarr")
    job = pg.Job("max_pool", X.shape, X.dtype, 2)
    regions = job.regions("300KB", unit=CHUNKS, chunks=CHUNKS)
    assert len(regions) > 5
    for i in range(3):
        y = pg.pool(src, tmp_path / "y.zarr", job, regions=regions[i::3], memory="1MB")
    assert y[...].tobytes() == pg.max_pool(X, 2).tobytes()


# ---- faults


def test_a_run_goes_on_where_it_stopped(tmp_path, zarr):
    src, out, seen = stored(zarr, tmp_path / "x.zarr"), tmp_path / "y.zarr", []

    def stop(state: State) -> None:
        seen.append(state.done)
        if state.done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pg.pool(src, out, "max", 2, memory="300KB", workers=2, progress=stop)
    states = []
    y = pg.pool(src, out, "max", 2, memory="900KB", resume=True, progress=lambda s: states.append(s.skipped))
    assert y[...].tobytes() == pg.max_pool(X, 2).tobytes()
    assert states[-1] == 7


@pytest.mark.parametrize("fault", ["torn", "flipped", "missing", "journal"])
def test_damage_is_mended_by_resuming(fault, tmp_path, zarr):
    src, out = stored(zarr, tmp_path / "x.zarr"), tmp_path / "y.zarr"
    y = pg.pool(src, out, "max", 2, memory="300KB", chunks=CHUNKS)
    chunk = out / "c" / "1" / "0" / "1"
    if fault == "journal":
        journal = tmp_path / "y.zarr.journal"
        journal.write_bytes(journal.read_bytes()[:-3])  # a line that is not whole
    elif fault == "missing":
        chunk.unlink()
    elif fault == "torn":
        y[16:32, 0:16, 16:20] = 7
    else:
        y[17, 3, 18] ^= 1
    again = pg.pool(src, out, "max", 2, memory="300KB", resume=True)
    assert again[...].tobytes() == pg.max_pool(X, 2).tobytes()


def test_a_chunk_of_the_source_that_cannot_be_read_is_named(tmp_path, zarr):
    src = stored(zarr, tmp_path / "x.zarr")
    (tmp_path / "x.zarr" / "c" / "2" / "1" / "0").write_bytes(b"torn")
    with pytest.raises(OSError, match=r"chunk \[2, 1, 0\] that cannot be read"):
        pg.pool(src, tmp_path / "y.zarr", "max", 2, memory="300KB")


def test_a_full_disk_is_named_and_the_run_goes_on_later(tmp_path, zarr):
    class Full(np.ndarray):
        room = 3

        def __setitem__(self, key, value):
            if Full.room <= 0:
                raise OSError(28, "No space left on device")
            Full.room -= 1
            super().__setitem__(key, value)

    out = np.zeros(pg.max_pool(X, 2).shape, X.dtype).view(Full)
    with pytest.raises(OSError, match=r"region \[.*\] that cannot be written .*No space left"):
        pg.pool(X, out, "max", 2, memory="300KB", size=(16, 16, 16))


@pytest.mark.parametrize("change", ["source", "windows"])
def test_another_source_or_job_is_not_resumed(change, tmp_path, zarr):
    src, out = stored(zarr, tmp_path / "x.zarr"), tmp_path / "y.zarr"
    pg.pool(src, out, "max", 2)
    if change == "source":
        zarr.open_array(src, mode="r+")[0, 0, 0] += 1
    with pytest.raises(
        ValueError, match=f"pool: resume: got .*journal, of another {'source' if change == 'source' else 'job'}"
    ):
        pg.pool(src, out, "max" if change == "source" else "min", 2, resume=True)
    y = pg.pool(src, out, "min", 2, overwrite=True)
    assert y[...].tobytes() == pg.min_pool(zarr.open_array(src)[...], 2).tobytes()


@pytest.mark.clock
def test_a_command_that_is_killed_at_any_point_goes_on(tmp_path, zarr):
    """Run 4 kills here; set POOLGRAD_KILLS for more."""
    src, out = stored(zarr, tmp_path / "x.zarr"), tmp_path / "y.zarr"
    command = [sys.executable, "-m", "poolgrad", "pool", src, str(out), "--avg", "3", "--stride", "1", "--padding", "same", "--memory", "700KB", "--resume", "--quiet"]  # fmt: skip
    rng = random.Random(0)
    start = time.perf_counter()
    subprocess.run(command, check=True)
    whole = time.perf_counter() - start
    for path in (out, tmp_path / "y.zarr.journal"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for _ in range(int(os.environ.get("POOLGRAD_KILLS", "4"))):
        child = subprocess.Popen(command)
        time.sleep(rng.uniform(0.3, 1) * whole)
        child.send_signal(signal.SIGKILL)
        child.wait()
    subprocess.run(command, check=True)
    assert zarr.open_array(str(out))[...].tobytes() == pg.avg_pool(X, 3, 1, padding="same").tobytes()


# ---- refusals


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda p: pg.pool(p / "no.zarr", None, "max", 2), FileNotFoundError, "pool: src: got .* wanted a path that exists"),
        (lambda p: pg.pool([1, 2], None, "max", 2), TypeError, "pool: src: got .* wanted an array, a .npy file"),
        (lambda p: pg.pool(X, None, "mode", 2), ValueError, "Job: op: got 'mode'"),
        (lambda p: pg.pool(X, None, "max", 2, workers=0), ValueError, "pool: workers: got 0"),
        (lambda p: pg.pool(X, None, "max", 2, memory="much"), ValueError, "pool: memory: got 'much'"),
        (lambda p: pg.pool(X, None, "max", 2, memory=10), MemoryError, "max_pool: memory: got .* bytes for each worker"),
        (lambda p: pg.pool(X, p / "y.zarr", "max", 2, memory=9999, chunks=(64, 64, 64)), MemoryError, "at least"),
        (lambda p: pg.pool(X, np.zeros((3, 3), "u2"), "max", 2), ValueError, r"pool: out: got shape \[3, 3\]"),
        (lambda p: pg.pool(X, np.zeros((35, 33, 25), "u4"), "max", 2), TypeError, "pool: out: got dtype uint32"),
        (lambda p: pg.pool(X, p / "y.zarr", "max", 2, chunks=(16, 16, 16), shards=(24, 16, 16)), ValueError, "pool: shards"),
        (lambda p: pg.pool(X, p / "y.zarr", "max", 2, chunks=(8, 8, 8), shards=(16, 16, 16), size=(8, 16, 16)), ValueError, "whole units of"),
        (lambda p: pg.pool(X, p / "no" / "y.zarr", "max", 2), FileNotFoundError, "a folder that exists"),
        (lambda p: pg.pool(X, p / "y.h5", "max", 2), ValueError, "the name of a dataset too"),
        (lambda p: pg.pool((X, X), None, "max", 2), ValueError, "pool: src: got 2 arrays, wanted x"),
        (lambda p: pg.pool(X, None, pg.Job("max_pool", (4,), "u2", 2)), ValueError, r"pool: x: got shape \[70, 66, 50\]"),
        (lambda p: pg.pool(X, None, pg.Job("max_pool", X.shape, "i2", 2)), TypeError, "pool: x: got dtype uint16"),
        (lambda p: pg.pool(X, None, "max", 2, regions=[[slice(0, 9)] * 3, [slice(8, 12)] * 3]), ValueError, "do not overlap"),
        (lambda p: pg.pool(X, (None, None), "max", 2), ValueError, "pool: out: got"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused_before_anything_is_written(call, error, message, tmp_path):
    pytest.importorskip("zarr")
    with pytest.raises(error, match=message):
        call(tmp_path)
    assert not [p for p in tmp_path.iterdir() if p.suffix != ".h5"]


def test_parts_of_shards_are_refused(tmp_path, zarr):
    out = stored(zarr, tmp_path / "y.zarr", np.zeros((35, 33, 25), "u2"), (8, 8, 8), shards=(16, 16, 16))
    with pytest.raises(ValueError, match=r"whole units of \[16, 16, 16\]: two tasks must not write one"):
        pg.pool(X, out, "max", 2, regions=[[slice(0, 8)] * 3])
    with pytest.raises(FileExistsError, match=r"pool: out: got .*which exists"):
        pg.pool(X, out, "max", 2)
