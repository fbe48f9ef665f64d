"""Pool a Zarr array of several gigabytes by 2x2x2: CPU seconds, seconds and peak memory of poolgrad and of others.

    python -m benchmarks.scale --gb 4.8 --folder /tmp/scale
    python -m benchmarks.scale --gb 0.1 0.4 1.6 6.4 --only poolgrad --plot docs/scale.png

Each run is a process of its own: 2 threads, uint16, chunks of 128^3 without compression, a warm cache. Compare CPU seconds on a machine
that does other work. Others are skipped if they are not installed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

CHUNK = 128
WAYS = {
    "poolgrad": ("max", "mean"),
    "tensorstore": ("max", "mean"),
    "coarsen": ("max", "mean"),
}


def shape_of(gigabytes: float) -> tuple[int, int, int]:
    """Return a shape of whole chunks with about so many bytes of uint16."""
    chunks = max(round((gigabytes * 1e9 / 2) ** (1 / 3) / CHUNK), 1)
    depth = max(round(gigabytes * 1e9 / 2 / (chunks * CHUNK) ** 2 / CHUNK), 1)
    return depth * CHUNK, chunks * CHUNK, chunks * CHUNK


def make(path: Path, shape: tuple[int, int, int]) -> None:
    """Write the array, unless it is there."""
    import zarr

    if path.exists():
        return
    rng = np.random.default_rng(0)
    block = rng.integers(0, 60_000, (CHUNK, *shape[1:]), dtype=np.uint16)
    made = zarr.create_array(str(path), shape=shape, chunks=(CHUNK,) * 3, dtype="uint16", compressors=None)
    for z in range(0, shape[0], CHUNK):
        made[z : z + CHUNK] = np.roll(block, z, 2)


def run_poolgrad(source: str, out: str, reduce: str) -> None:
    """Run the plain loop."""
    import poolgrad as pg

    words: dict[str, Any] = {"dtype": "uint16"} if reduce == "mean" else {}
    pg.pool(source, out, {"max": "max", "mean": "avg"}[reduce], 2, memory="2GB", workers=2, overwrite=True, **words)


def run_tensorstore(source: str, out: str, reduce: str) -> None:
    """Copy a downsampled view."""
    ts: Any = import_module("tensorstore")

    limit = ts.Context({"data_copy_concurrency": {"limit": 2}, "file_io_concurrency": {"limit": 2}})
    x = ts.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": source}}, context=limit, open=True).result()
    y = ts.downsample(x, [2, 2, 2], reduce)
    metadata = {
        "shape": y.shape,
        "data_type": "uint16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [CHUNK] * 3}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    }
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": out}, "metadata": metadata}
    target = ts.open(spec, create=True, delete_existing=True, context=limit).result()
    for z in range(0, y.shape[0], CHUNK):
        for r in range(0, y.shape[1], CHUNK):
            for c in range(0, y.shape[2], CHUNK):
                part = np.s_[
                    z : min(z + CHUNK, y.shape[0]), r : min(r + CHUNK, y.shape[1]), c : min(c + CHUNK, y.shape[2])
                ]
                target[part].write(y[part]).result()


def run_coarsen(source: str, out: str, reduce: str) -> None:
    """Run Dask's own."""
    import dask
    import dask.array as da

    with dask.config.set(scheduler="threads", num_workers=2):
        x = da.from_zarr(source)
        y = da.coarsen({"max": np.max, "mean": np.mean}[reduce], x, dict.fromkeys(range(3), 2))
        y.astype("uint16").rechunk((CHUNK,) * 3).to_zarr(out, overwrite=True)


def measure(way: str, reduce: str, source: str, out: str) -> dict[str, Any]:
    """Run one way in a process of its own."""
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "benchmarks.scale", "--child", way, reduce, source, out]
    done = subprocess.run(command, env={**os.environ, "POOLGRAD_NUM_THREADS": "2"}, capture_output=True, text=True)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def child(way: str, reduce: str, source: str, out: str) -> None:
    """Run one way here, and print what it took."""
    import resource

    import zarr  # noqa: F401

    import poolgrad  # noqa: F401  # so that all have the same base

    base = int(Path("/proc/self/statm").read_text().split()[1]) * 4
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    {"poolgrad": run_poolgrad, "tensorstore": run_tensorstore, "coarsen": run_coarsen}[way](source, out, reduce)
    after = resource.getrusage(resource.RUSAGE_SELF)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    peak = int(status["VmHWM"].split()[0])
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"cpu": cpu, "seconds": time.perf_counter() - start, "peak": peak, "base": base}))


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, nargs="+", default=[0.5])
    parser.add_argument("--folder", default="scale-benchmark")
    parser.add_argument("--only", choices=WAYS, action="append")
    parser.add_argument("--reduce", choices=("max", "mean"), action="append")
    parser.add_argument("--plot", help="draw time and memory against size")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(*given.child)
        return
    folder = Path(given.folder)
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for gigabytes in given.gb:
        shape = shape_of(gigabytes)
        source = folder / f"x-{'x'.join(map(str, shape))}.zarr"
        make(source, shape)
        for way in given.only or WAYS:
            for reduce in given.reduce or WAYS[way]:
                found = measure(way, reduce, str(source.resolve()), str((folder / f"y-{way}.zarr").resolve()))
                rows.append({"gb": np.prod(shape) * 2 / 1e9, "way": way, "reduce": reduce, **found})
                print(json.dumps(rows[-1]), flush=True)
        shutil.rmtree(source)
    if given.plot:
        plot(rows, given.plot)


def plot(rows: list[dict[str, Any]], path: str) -> None:
    """Draw CPU time and peak memory against the size of the array."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), constrained_layout=True)
    for way, reduce in sorted({(r["way"], r["reduce"]) for r in rows if "cpu" in r}):
        mine = [r for r in rows if (r["way"], r["reduce"]) == (way, reduce) and "cpu" in r]
        left.loglog([r["gb"] for r in mine], [r["cpu"] for r in mine], "o-", label=f"{way}, {reduce}")
        right.semilogx([r["gb"] for r in mine], [r["peak"] / 1e3 for r in mine], "o-")
    for axes, label in ((left, "CPU seconds"), (right, "peak memory, MB")):
        axes.set(xlabel="array, GB", ylabel=label)
        axes.grid(alpha=0.3)
    right.set_ylim(0)
    left.legend()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
