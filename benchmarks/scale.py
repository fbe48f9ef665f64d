"""Pool a Zarr array of several gigabytes: CPU seconds, seconds and peak memory of poolgrad and of others.

    python -m benchmarks.scale --gb 4.8 --folder /tmp/scale                              # 2x2x2, max and mean, all ways
    python -m benchmarks.scale --gb 0.6 --window halo                                    # 3x3x3 with stride 1, against dask-image
    python -m benchmarks.scale --gb 4.8 --codec zstd                                     # a compressed array
    python -m benchmarks.scale --gb 4.8 16 --only poolgrad --limit 2GB                   # under a limit of memory
    python -m benchmarks.scale --gb 0.1 0.4 1.6 6.4 16 --only poolgrad --plot docs/scale.png

Each run is a process of its own: 2 threads, uint16, chunks of 128^3, a warm cache; the best of --repeats counts, each figure by itself.
Compare CPU seconds on a machine that does other work. "formula" is what `--dry-run` says: the arrays of two workers, and Python with its
packages. --keep leaves the arrays there for the next call. Others are skipped if they are not installed.
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
    "halving": {"poolgrad": ("max", "mean"), "tensorstore": ("max", "mean"), "coarsen": ("max", "mean")},
    "halo": {"poolgrad": ("max", "mean"), "dask-image": ("max", "mean")},
}
CODECS = ("raw", "zstd", "blosc")


def shape_of(gigabytes: float) -> tuple[int, int, int]:
    """Return a shape of whole chunks with about so many bytes of uint16."""
    chunks = max(round((gigabytes * 1e9 / 2) ** (1 / 3) / CHUNK), 1)
    depth = max(round(gigabytes * 1e9 / 2 / (chunks * CHUNK) ** 2 / CHUNK), 1)
    return depth * CHUNK, chunks * CHUNK, chunks * CHUNK


def make(path: Path, shape: tuple[int, int, int], codec: str = "raw") -> None:
    """Write the array, unless it is there. Compressed ones hold few bits a cell, as images do."""
    import zarr

    if (path / "made").exists():
        return
    shutil.rmtree(path, ignore_errors=True)
    rng = np.random.default_rng(0)
    block = rng.integers(0, 60_000 if codec == "raw" else 500, (CHUNK, *shape[1:]), dtype=np.uint16)
    made = zarr.create_array(
        str(path), shape=shape, chunks=(CHUNK,) * 3, dtype="uint16", compressors=compressors(codec)
    )
    for z in range(0, shape[0], CHUNK):
        made[z : z + CHUNK] = np.roll(block, z, 2)
    (path / "made").touch()


def compressors(codec: str) -> Any:
    """Return the compressors of Zarr."""
    from zarr.codecs import BloscCodec, ZstdCodec

    return {"raw": None, "zstd": ZstdCodec(level=0), "blosc": BloscCodec(cname="lz4", shuffle="bitshuffle")}[codec]


def run_poolgrad(source: str, out: str, reduce: str, window: str) -> None:
    """Run the plain loop."""
    import poolgrad as pg

    args, words = poolgrad_call(reduce, window)
    pg.pool(source, out, *args, memory="2GB", workers=2, overwrite=True, **words)


def poolgrad_call(reduce: str, window: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of the pool."""
    words: dict[str, Any] = {"dtype": "uint16"} if reduce == "mean" else {}
    sizes: tuple[int, ...] = (2,)
    if window == "halo":
        sizes, words = (3, 1), {**words, "padding": "same"}
    return ({"max": "max_pool", "mean": "avg_pool"}[reduce], *sizes), words


def formula(source: str, out: str, reduce: str, window: str) -> int:
    """Return the bytes for arrays that `--dry-run` names."""
    import poolgrad as pg
    from poolgrad._common.errors import ArgumentErrors
    from poolgrad.jobs.loop import estimate
    from poolgrad.jobs.stores import Wanted, buffer_of_target, open_source

    (op, *args), words = poolgrad_call(reduce, window)
    store = open_source(ArgumentErrors("scale"), "src", source)
    job = pg.Job(op, store.shape, store.dtype, *args, **words)
    unit = job.chunks_like(store.chunks, "1GB") if store.chunks else None
    wanted = Wanted(job.result, job.outputs[0].dtype, unit, None, 3, store.array)
    return estimate(job, store.chunks, unit, "2GB", 2, (store.buffer, buffer_of_target(out, wanted))).peak


def run_tensorstore(source: str, out: str, reduce: str, window: str) -> None:
    """Copy a downsampled view."""
    ts: Any = import_module("tensorstore")

    limit = ts.Context({"data_copy_concurrency": {"limit": 2}, "file_io_concurrency": {"limit": 2}})
    x = ts.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": source}}, context=limit, open=True).result()
    y = ts.downsample(x, [2, 2, 2], reduce)
    metadata = {
        "shape": y.shape,
        "data_type": "uint16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [CHUNK] * 3}},
        "codecs": json.loads(Path(source, "zarr.json").read_text())["codecs"],
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


def run_coarsen(source: str, out: str, reduce: str, window: str) -> None:
    """Run Dask's own."""
    import dask
    import dask.array as da

    with dask.config.set(scheduler="threads", num_workers=2):
        x = da.from_zarr(source)
        y = da.coarsen({"max": np.max, "mean": np.mean}[reduce], x, dict.fromkeys(range(3), 2))
        to_zarr(y.astype("uint16").rechunk((CHUNK,) * 3), out, source)


def run_dask_image(source: str, out: str, reduce: str, window: str) -> None:
    """Run the filters of dask-image."""
    import dask
    import dask.array as da

    filters = import_module("dask_image.ndfilters")
    with dask.config.set(scheduler="threads", num_workers=2):
        x = da.from_zarr(source)
        filtered = {"max": filters.maximum_filter, "mean": filters.uniform_filter}[reduce](x, size=3)
        to_zarr(filtered, out, source)


def to_zarr(y: Any, out: str, like: str) -> None:
    """Store a Dask array, compressed as its source."""
    import zarr

    packing = zarr.open_array(like, mode="r").compressors or None
    made = zarr.create_array(
        out, shape=y.shape, chunks=(CHUNK,) * 3, dtype="uint16", compressors=packing, overwrite=True
    )
    y.store(made, lock=False)


RUNS = {
    "poolgrad": run_poolgrad,
    "tensorstore": run_tensorstore,
    "coarsen": run_coarsen,
    "dask-image": run_dask_image,
}


def measure(way: str, reduce: str, source: str, out: str, given: argparse.Namespace) -> dict[str, Any]:
    """Run one way several times, each in a process of its own; return the least of each figure, but the largest peak."""
    best: dict[str, Any] = {}
    for _ in range(given.repeats):
        shutil.rmtree(out, ignore_errors=True)
        command = [
            sys.executable,
            "-m",
            "benchmarks.scale",
            "--child",
            way,
            reduce,
            source,
            out,
            "--window",
            given.window,
        ]
        command += ["--limit", str(given.limit)] if given.limit else []
        done = subprocess.run(command, env={**os.environ, "POOLGRAD_NUM_THREADS": "2"}, capture_output=True, text=True)
        if done.returncode:
            return {"error": done.stderr.strip().splitlines()[-1]}
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        best = {k: (max if k == "peak" else min)(v, best.get(k, v)) for k, v in found.items()}
    return best


def child(way: str, reduce: str, source: str, out: str, window: str, limit: str | None) -> None:
    """Run one way here, and print what it took."""
    import resource

    import zarr  # noqa: F401

    import poolgrad  # noqa: F401  # so that all have the same base
    from poolgrad._common.errors import ArgumentErrors
    from poolgrad.jobs.regions import as_bytes

    if limit:
        most = as_bytes(ArgumentErrors("scale"), "limit", limit)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    arrays = formula(source, out, reduce, window) if way == "poolgrad" else 0
    base = int(Path("/proc/self/statm").read_text().split()[1]) * 4
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    RUNS[way](source, out, reduce, window)
    took, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    peak = int(status["VmHWM"].split()[0])
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = {"cpu": cpu, "seconds": took, "peak": peak, "base": base}
    print(json.dumps({**found, **({"formula": base + arrays // 1024} if arrays else {})}))


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, nargs="*", default=[0.5], help="sizes; none to draw --rows alone")
    parser.add_argument("--folder", default="scale-benchmark")
    parser.add_argument("--window", choices=WAYS, default="halving", help="2x2x2 with stride 2, or 3x3x3 with stride 1")
    parser.add_argument("--codec", choices=CODECS, default="raw")
    parser.add_argument("--repeats", type=int, default=1, help="runs of each way; the best counts")
    parser.add_argument("--limit", help="bytes of address space that a run may have, such as 2GB")
    parser.add_argument("--keep", action="store_true", help="leave the arrays in the folder")
    parser.add_argument("--rows", help="a file to add the results to, as lines of JSON; --plot draws all of them")
    parser.add_argument("--only", choices=RUNS, action="append")
    parser.add_argument("--reduce", choices=("max", "mean"), action="append")
    parser.add_argument("--plot", help="draw time and memory against size")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        way, reduce, source, out = given.child
        child(way, reduce, source, out, given.window, given.limit)
        return
    folder = Path(given.folder)
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for gigabytes in given.gb:
        shape = shape_of(gigabytes)
        source = folder / f"x-{'x'.join(map(str, shape))}-{given.codec}.zarr"
        make(source, shape, given.codec)
        ways = WAYS[given.window]
        for way in [w for w in ways if w in (given.only or ways)]:
            for reduce in given.reduce or ways[way]:
                out = folder / f"y-{way}.zarr"
                found = measure(way, reduce, str(source.resolve()), str(out.resolve()), given)
                about = {"gb": np.prod(shape) * 2 / 1e9, "codec": given.codec, "window": given.window}
                rows.append({**about, "way": way, "reduce": reduce, **found})
                print(json.dumps(rows[-1]), flush=True)
                shutil.rmtree(out, ignore_errors=True)
                out.with_name(out.name + ".journal").unlink(missing_ok=True)
        if not given.keep:
            shutil.rmtree(source)
    if given.rows:
        with Path(given.rows).open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        rows = [json.loads(line) for line in Path(given.rows).read_text().splitlines()]
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
        mine.sort(key=lambda r: float(r["gb"]))
        (line,) = left.loglog([r["gb"] for r in mine], [r["cpu"] for r in mine], "o-", label=f"{way}, {reduce}")
        left.loglog([r["gb"] for r in mine], [r["seconds"] for r in mine], ":", color=line.get_color())
        right.semilogx([r["gb"] for r in mine], [r["peak"] / 1e3 for r in mine], "o-", color=line.get_color())
        if all("formula" in r for r in mine):
            right.semilogx([r["gb"] for r in mine], [r["formula"] / 1e3 for r in mine], "--", color=line.get_color())
    for axes, label in ((left, "CPU seconds (dotted: seconds)"), (right, "peak memory, MB (dashed: formula)")):
        axes.set(xlabel="array, GB", ylabel=label)
        axes.grid(alpha=0.3)
    right.set_ylim(0)
    left.legend()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
