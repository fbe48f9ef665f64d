"""Show what engines make of a job: the size of graphs, 100,000 tasks, workers and commands that are killed, memory that spills.

    python -m benchmarks.cluster graph           # 10^6 regions: time, pickled bytes, tasks per region; --dry-run of a petabyte
    python -m benchmarks.cluster tasks           # 10^5 tasks through a LocalCluster
    python -m benchmarks.cluster workers         # a worker is killed three times
    python -m benchmarks.cluster command         # the command is killed at 20 random points, and goes on
    python -m benchmarks.cluster spill           # workers with too little memory

Each prints a line of JSON with what it found, and fails if a bit differs. Needs zarr and distributed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pickle
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import poolgrad as pg

ROOT = Path(__file__).resolve().parent.parent
PETABYTE = "100000x100000x50000:uint16:128x128x128"


def note(log: str, region: Any) -> None:
    """Append a region to a file at once."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, (" ".join(f"{s.start}:{s.stop}" for s in region) + "\n").encode())
    os.close(file)


def twice(log: Path) -> tuple[int, int]:
    """Return the regions of a file, and how many were read more than once, each time counted."""
    found = Counter(log.read_text().splitlines())
    return len(found), found.total() - len(found)


def lines(log: Path) -> int:
    """Return the number of lines of a file."""
    return log.read_bytes().count(b"\n") if log.exists() else 0


def volume(folder: Path, side: int, chunk: int, dtype: str = "uint16") -> Any:
    """Store a cube of random cells."""
    import zarr

    array = zarr.create_array(
        str(folder / "x.zarr"), shape=(side,) * 3, chunks=(chunk,) * 3, dtype=dtype, overwrite=True
    )
    array[...] = np.random.default_rng(0).integers(0, 60_000, (side,) * 3).astype(dtype)
    return array


def digest(array: Any) -> str:
    """Return a digest of all cells."""
    return hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).hexdigest()


def cluster(workers: int = 2, **words: Any) -> Any:
    """Start workers of one thread each."""
    return import_module("distributed").LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50, **words
    )


def connected(made: Any) -> Any:
    """Connect to a cluster."""
    return import_module("distributed").Client(made)


def graph(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Build the graph of a million regions, and plan a petabyte."""
    import zarr

    import poolgrad.dask as pgd

    x = zarr.create_array(str(folder / "x.zarr"), shape=(12_800,) * 3, chunks=(128,) * 3, dtype="uint16")
    times = []
    for _ in range(5):
        start = time.perf_counter()
        y = pgd.max_pool(x, 2, chunks=64)
        times.append(time.perf_counter() - start)
    small = pgd.max_pool(
        zarr.create_array(str(folder / "s.zarr"), shape=(256,) * 3, chunks=(32,) * 3, dtype="u2"), 2, chunks=16
    )
    assert len(dict(small.__dask_graph__())) == small.npartitions == 512
    start = time.perf_counter()
    plan = [sys.executable, "-m", "poolgrad", "pool", PETABYTE, "y.zarr", "--max", "2", "--memory", "2GB", "--dry-run"]
    text = subprocess.run(plan, check=True, capture_output=True, text=True).stdout
    took = time.perf_counter() - start
    return {
        "regions": y.npartitions,
        "build_ms": [round(t * 1e3, 1) for t in times],
        "pickled_bytes": len(pickle.dumps(y.__dask_graph__())),
        "tasks_per_region": len(dict(small.__dask_graph__())) / small.npartitions,
        "petabyte_s": round(took, 2),
        "petabyte_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3,
        "petabyte": text.splitlines(),
    }


def tasks(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Run many small tasks on a cluster; each reads its part of a store."""

    import poolgrad.dask as pgd

    side = round(given.tasks ** (1 / 3)) + 1
    x = volume(folder, side * 4, 64)
    y = pgd.max_pool(x, 2, chunks=2)
    want = pg.max_pool(x[...], 2)
    with cluster() as made, connected(made):
        start = time.perf_counter()
        wrong = (
            y.map_blocks(_wrong, np.ascontiguousarray(want), dtype=np.int64, chunks=(1, 1, 1)) if given.check else None
        )
        total = int((y if wrong is None else wrong).sum(split_every=64).compute())
        took = time.perf_counter() - start
    assert total == (int(want.sum()) if wrong is None else 0)
    return {"tasks": y.npartitions, "seconds": round(took, 1), "ms_per_task": round(took / y.npartitions * 1e3, 2)}


def _wrong(block: Any, want: Any, block_id: Any = None) -> Any:
    place = tuple(slice(2 * i, 2 * i + 2) for i in block_id)
    return np.full((1, 1, 1), (block != want[place]).sum())


def workers(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Kill a worker three times while a cluster pools a store into a store: by `pool`, which keeps a journal, and by Dask's `store`."""
    import dask
    import distributed  # noqa: F401  # fills the configuration
    import zarr

    import poolgrad.dask as pgd

    x, rng = volume(folder, 256, 32, "float32"), random.Random(given.seed)
    want = digest(pg.avg_pool(x[...], 3, 1, padding="same"))
    found: dict[str, Any] = {}
    for way in ("pool", "store"):
        log, out = folder / f"log-{way}", folder / f"{way}.zarr"
        (folder / "preload.py").write_text(_NOTE_READS.format(root=str(ROOT), log=str(log)))
        with (
            dask.config.set({"distributed.worker.preload": [str(folder / "preload.py")]}),
            cluster() as made,
            connected(made) as client,
            ThreadPoolExecutor(1) as here,
        ):
            if way == "pool":
                words = {"memory": "3MB", "workers": 2, "executor": client.get_executor(retries=20)}
                ends = here.submit(pg.pool, str(folder / "x.zarr"), out, "avg", 3, 1, padding="same", **words)
            else:
                y = pgd.avg_pool(x, 3, 1, padding="same", chunks=32)
                zarr.create_array(str(out), shape=x.shape, chunks=(32,) * 3, dtype="float32")
                ends = here.submit(y.store, zarr.open_array(str(out)), lock=False)
            killed = 0
            for third in range(3):
                while not ends.done() and lines(log) < 40 + third * 70:
                    time.sleep(0.002)
                chosen = rng.choice(list(made.workers.values()))
                if (pid := getattr(chosen, "pid", None)) is not None and not ends.done():
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
            ends.result(timeout=600)
        regions, again = twice(log)
        assert digest(zarr.open_array(str(out), mode="r")[...]) == want
        found[way] = {"killed": killed, "regions": regions, "done_twice": again}
    assert found["pool"]["done_twice"] <= found["pool"]["killed"], found
    return {**found, "digest": want}


_NOTE_READS = """
import sys
sys.path.insert(0, {root!r})
from benchmarks.cluster import note
from poolgrad.jobs import stores
def noting(read):
    def noted(self, region, slot=None):
        cells = read(self, region, slot)
        if not (slot or "source").startswith("target"):
            note({log!r}, region)
        return cells
    return noted
if stores.Store.read.__name__ == "read":  # Dask loads this twice
    stores.Store.read = noting(stores.Store.read)
"""


def command(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Kill the command at random points, and let it go on."""
    import zarr

    x, log, out = volume(folder, 256, 32, "float32"), folder / "log", folder / "y.zarr"
    want, rng = pg.avg_pool(x[...], 3, 1, padding="same"), random.Random(given.seed)
    words = ["--avg", "3", "--stride", "1", "--padding", "same", "--memory", "3MB", "--workers", "2", "--resume"]
    code = (
        _NOTE_READS.format(root=str(ROOT), log=str(log)) + "from poolgrad.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    line = [sys.executable, "-c", code, "pool", str(folder / "x.zarr"), str(out), *words, "--quiet"]
    plan = subprocess.run([*line[:-1], "--dry-run"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    total = int(plan.split("regions")[1].split()[0])
    kills, points = 0, []
    for _ in range(given.kills):
        until = lines(log) + rng.randrange(0, round(1.6 * total / given.kills))  # regions that it may read
        delay = rng.uniform(0, 0.004)
        child = subprocess.Popen(line, cwd=ROOT)
        while child.poll() is None and lines(log) < until:
            time.sleep(0.0005)
        time.sleep(delay)
        if child.poll() is None:
            child.send_signal(signal.SIGKILL)
            kills += 1
        child.wait()
        points.append(lines(log))
    subprocess.run(line, cwd=ROOT, check=True)
    regions, again = twice(log)
    assert digest(zarr.open_array(str(out), mode="r")[...]) == digest(want)
    assert again <= 2 * kills, again
    found = {"kills": kills, "regions_read_until_kill": points, "regions": regions}
    return {**found, "done_twice": again, "at_most": 2 * kills, "digest": digest(want)}


def _spilled(dask_worker: Any) -> int:
    data = dask_worker.data
    return int(data.spilled_total.disk)


def spill(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Hold more on workers than their memory, so that Dask writes blocks to disk; compare a gradient's bits."""
    import dask
    import dask.array as da

    import poolgrad.dask as pgd

    x = np.random.default_rng(1).standard_normal((320, 320, 320)).astype(np.float32)
    g = np.random.default_rng(2).standard_normal(pg.max_pool(x, 3, 2).shape).astype(np.float32)
    want = pg.vjp(lambda x: pg.max_pool(x, 3, 2), x)[1](g)
    limit, most = 300e6, 0
    with (
        dask.config.set({"distributed.worker.memory.target": 0.15, "distributed.worker.memory.spill": 0.5}),
        cluster(memory_limit=limit) as made,
        connected(made) as client,
    ):
        cells = da.from_array(x, chunks=64)
        _, back = pgd.vjp(lambda x: pgd.max_pool(x, 3, 2), cells)
        dx = back(da.from_array(g, chunks=32)).persist()
        import_module("distributed").wait(dx)
        most = sum(client.run(_spilled).values())
        parts = [(slice(z, z + 64),) for z in range(0, 320, 64)]
        same = all(digest(dx[part].compute()) == digest(want[part]) for part in parts)
    assert same
    assert most > 0
    return {"memory_limit": limit, "array_bytes": x.nbytes, "spilled_bytes": most, "digest": digest(want)}


PARTS: dict[str, Callable[[Path, argparse.Namespace], dict[str, Any]]] = {
    "graph": graph, "tasks": tasks, "workers": workers, "command": command, "spill": spill,
}  # fmt: skip


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--check", action="store_true", help="compare each block on the workers, not the sum alone")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    os.environ.setdefault("POOLGRAD_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps({given.part: PARTS[given.part](Path(folder), given)}))


if __name__ == "__main__":
    main()
