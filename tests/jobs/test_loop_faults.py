"""Each fault that the guide names: refused before anything is read or written, or mended, or named by its index."""

import os
import re
import signal
import subprocess
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import poolgrad as pg
from poolgrad.jobs.journal import Journal

zarr = pytest.importorskip("zarr", reason="zarr is not installed")
X = np.random.default_rng(0).integers(1, 60_000, (64, 64, 64), dtype=np.uint16)
WANT = pg.max_pool(X, 2)


class Unread:
    """An array that must not be read."""

    shape, dtype, chunks = X.shape, X.dtype, (16, 16, 16)

    def __getitem__(self, region):
        raise AssertionError("something was read")


def stored(path, array=X, chunks=(16, 16, 16), **words):
    made = zarr.create_array(str(path), shape=array.shape, chunks=chunks, dtype=array.dtype, **words)
    made[...] = array
    return made


def target(path, **words):
    return zarr.create_array(str(path), shape=WANT.shape, chunks=(8, 8, 8), dtype="uint16", **words)


REGION = [slice(0, 16)] * 3
REFUSED = [
    ("smaller than a shard", {"size": (8, 16, 16)}, ValueError, "whole units of"),
    ("part of a shard", {"regions": [[slice(0, 8)] * 3]}, ValueError, "two tasks must not write one"),
    ("shards that are cut", {"regions": pg.Job("max_pool", X.shape, "u2", 2).regions(size=(8, 8, 8))}, ValueError, "whole units of"),
    ("overlap", {"regions": [REGION, REGION]}, ValueError, "do not overlap"),
    ("overlap in a corner", {"regions": [[slice(0, 32)] * 3, [slice(16, 32), slice(16, 32), slice(16, 32)]]}, ValueError, "do not overlap"),
    ("too little memory", {"memory": 5_000}, MemoryError, "max_pool: memory: got .* bytes for each worker"),
    ("too little memory for a region", {"regions": [REGION], "memory": 5_000}, MemoryError, "bytes for each worker"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "error", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused_before_anything_is_read_or_written(words, error, message, tmp_path):
    out = target(tmp_path / "y", shards=(16, 16, 16))
    with pytest.raises(error, match=message):
        pg.pool(Unread(), out, "max", 2, **words)
    assert not (tmp_path / "y" / "c").exists()


@pytest.mark.parametrize(("shape", "dtype", "error"), [((32, 32), "u2", ValueError), ((32, 32, 31), "u2", ValueError), ((32, 32, 32), "i2", TypeError)])  # fmt: skip
def test_a_target_of_another_shape_or_dtype_is_refused(shape, dtype, error, tmp_path):
    out = zarr.create_array(str(tmp_path / "y"), shape=shape, chunks=(8,) * len(shape), dtype=dtype)
    with pytest.raises(error, match="pool: out: got"):
        pg.pool(Unread(), out, "max", 2)


def test_a_window_beyond_the_memory_is_refused_with_the_way_that_works():
    with pytest.raises(MemoryError, match=r"tree=True of pool or poolgrad.dask pools windows that are larger"):
        pg.pool(Unread(), None, "global_avg", memory="100KB")
    x = X.astype(np.float64)
    assert pg.pool(x, None, "global_max", tree=True, memory="10MB").tolist() == [[[x.max()]]]


def test_unknown_chunk_sizes_are_refused():
    da = pytest.importorskip("dask.array")
    pgd = pytest.importorskip("poolgrad.dask")
    x = da.from_array(X, chunks=32)
    with pytest.raises(ValueError, match="unknown chunk sizes"):
        pgd.max_pool(x[x.max(axis=(1, 2)) > 0], 2)


@pytest.mark.parametrize("change", ["cell", "chunk removed", "metadata", "another path"])
def test_a_source_that_changed_since_the_journal_is_refused(change, tmp_path):
    x = stored(tmp_path / "x")
    pg.pool(str(tmp_path / "x"), tmp_path / "y", "max", 2)
    src = tmp_path / "x"
    if change == "cell":
        x[0, 0, 0] += 1
    elif change == "chunk removed":
        (src / "c" / "0" / "0" / "0").unlink()
    elif change == "metadata":
        os.utime(src / "zarr.json", (1, 1))
    else:
        src = tmp_path / "z"
        stored(src)
    before = (tmp_path / "y.journal").read_bytes()
    with pytest.raises(ValueError, match=r"of another source, wanted a source that has not changed"):
        pg.pool(str(src), tmp_path / "y", "max", 2, resume=True)
    assert (tmp_path / "y.journal").read_bytes() == before


@pytest.mark.parametrize("fault", ["short", "empty", "garbage", "flipped", "removed"])
@pytest.mark.parametrize("codec", ["raw", "zstd"])
def test_a_damaged_chunk_of_the_result_is_made_again(fault, codec, tmp_path):
    stored(tmp_path / "x", compressors=None if codec == "raw" else "auto")
    y = pg.pool(str(tmp_path / "x"), tmp_path / "y", "max", 2, chunks=(8, 8, 8), size=(8, 8, 8))
    path = tmp_path / "y" / "c" / "1" / "2" / "3"
    data = path.read_bytes()
    broken = {
        "short": data[:-3],
        "empty": b"",
        "garbage": bytes(len(data)),
        "flipped": data[:-1] + bytes([data[-1] ^ 1]),
    }
    path.unlink() if fault == "removed" else path.write_bytes(broken[fault])
    skipped = []
    y = pg.pool(
        str(tmp_path / "x"), tmp_path / "y", "max", 2, resume=True, progress=lambda s: skipped.append(s.skipped)
    )
    assert y[...].tobytes() == WANT.tobytes()
    assert skipped[-1] == 63


def test_a_damaged_chunk_of_a_shard_is_named(tmp_path):
    stored(tmp_path / "x", chunks=(8, 8, 8), shards=(32, 32, 32))
    path = tmp_path / "x" / "c" / "1" / "0" / "1"
    data = bytearray(path.read_bytes())
    data[10:2000] = bytes(1990)
    path.write_bytes(data)
    with pytest.raises(OSError, match=r"chunk \[\d, \d, \d\] that cannot be read") as caught:
        pg.pool(str(tmp_path / "x"), tmp_path / "y", "max", 2)
    named = [int(i) for i in re.search(r"chunk \[(.*?)\]", str(caught.value))[1].split(",")]
    assert [i // 4 for i in named] == [1, 0, 1]
    with pytest.raises(RuntimeError):
        zarr.open_array(str(tmp_path / "x"), mode="r")[tuple(slice(8 * i, 8 * i + 8) for i in named)]


@pytest.fixture
def small_disk(tmp_path):
    """Return a disk of 300 KB."""
    where = tmp_path / "disk"
    where.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(where)]
    if os.name != "posix" or os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can mount a small disk")
    yield where
    subprocess.run(["umount", "-l", str(where)], check=True)


@pytest.mark.parametrize("shards", [None, (16, 16, 16)])
def test_a_full_disk_is_named_and_the_run_goes_on_when_there_is_room(shards, small_disk, tmp_path):
    x = np.random.default_rng(1).integers(
        1, 60_000, (128, 128, 64), dtype=np.uint16
    )  # the result has 262 KB, and files of pages
    np.save(tmp_path / "x.npy", x)
    (small_disk / "other").write_bytes(bytes(200_000))
    words = {"chunks": (8, 8, 8), "shards": shards, "size": (16, 16, 16)}
    with pytest.raises(OSError, match=r"pool: .*y: got region \[.*\] that cannot be written .*No space left"):
        pg.pool(tmp_path / "x.npy", small_disk / "y", "max", 2, **words)
    assert not [name for _, _, names in os.walk(small_disk / "y") for name in names if "partial" in name]
    (small_disk / "other").unlink()
    subprocess.run(["mount", "-o", "remount,size=3m", str(small_disk)], check=True)
    y = pg.pool(tmp_path / "x.npy", small_disk / "y", "max", 2, resume=True, **words)
    assert y[...].tobytes() == pg.max_pool(x, 2).tobytes()


def test_a_full_disk_under_the_journal_is_no_silent_end(tmp_path, monkeypatch):
    def full(self, number, check):
        raise OSError(28, "No space left on device")

    stored(tmp_path / "x")
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "add", full)
        with pytest.raises(OSError, match="No space left"):
            pg.pool(str(tmp_path / "x"), tmp_path / "y", "max", 2, size=(16, 16, 16), chunks=(16, 16, 16))
    y = pg.pool(str(tmp_path / "x"), tmp_path / "y", "max", 2, resume=True)
    assert y[...].tobytes() == WANT.tobytes()


# ---- other executors


@pytest.mark.parametrize("source", ["x.zarr", "x.npy"])
def test_processes_compute_regions_and_this_one_keeps_the_journal(source, tmp_path):
    src, out = tmp_path / source, tmp_path / "y.zarr"
    stored(src) if source.endswith("zarr") else np.save(src, X)
    words = {"size": (16, 16, 16), "chunks": (16, 16, 16), "workers": 2}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        y = pg.pool(src, out, "max", 2, executor=executor, **words)
        assert y[...].tobytes() == WANT.tobytes()
        assert (tmp_path / "y.zarr.journal").read_bytes().count(b"\n") == 9
        with pytest.raises(TypeError, match="with an executor"):
            pg.pool(X, out, "max", 2, executor=executor, overwrite=True)
        with pytest.raises(ValueError, match="None with tree=True"):
            pg.pool(src, None, "global_max", executor=executor, tree=True)
    skipped = []
    pg.pool(src, out, "max", 2, resume=True, progress=lambda s: skipped.append(s.skipped))
    assert skipped[-1] == 8


@pytest.mark.clock
@pytest.mark.filterwarnings("ignore")
def test_a_killed_worker_of_a_cluster_loses_its_region_alone(tmp_path):
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    stored(tmp_path / "x")
    words = {"size": (16, 16, 16), "chunks": (16, 16, 16), "workers": 2, "padding": "same"}
    killed = []
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):

        def kill(state):
            if state.done in (8, 24, 40):
                pid = getattr(list(cluster.workers.values())[len(killed) % 2], "pid", None)
                if pid is not None:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(time.monotonic())

        y = pg.pool(tmp_path / "x", tmp_path / "y", "avg", 3, 1, executor=client.get_executor(), progress=kill, **words)
    assert len(killed) == 3
    assert y[...].tobytes() == pg.avg_pool(X, 3, 1, padding="same").tobytes()
