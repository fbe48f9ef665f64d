"""Compute random jobs by every engine, and compare each bit with the result of the whole array in memory.

    python fuzz/jobs.py --calls 3000 --jobs 2
    python fuzz/jobs.py --case 1234 --engine dask

`job_cases` draws the jobs: pools, derivatives of all orders, and TensorFlow's ops, over windows of all kinds, dtypes and NaN. Half of them
use formulas for few windows too. An engine whose package is not installed is skipped. Cubed, which writes
files, gets every eighth job, unless --cubed-every says otherwise.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "fuzz" / "helpers")]

import numpy as np
from job_cases import Case, by_regions, difference, random_case

import poolgrad as pg
from poolgrad._windows import regular

ENGINES = {"regions": "numpy", "loop": "zarr", "dask": "dask", "stores": "dask", "cubed": "cubed"}


def random_chunks(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return chunks of any length."""
    borders = [sorted([0, n, *rng.integers(0, n + 1, rng.integers(0, 3)).tolist()]) for n in shape]
    return tuple(tuple(np.diff(line).tolist()) for line in borders)


def random_size(rng: np.random.Generator, shape: tuple[int, ...]) -> list[int]:
    """Return the shape of even chunks, three along an axis at most."""
    return [int(rng.integers(max(n // 3, 1), n + 1)) if n else 1 for n in shape]


def run_loop(case: Case, rng: np.random.Generator) -> Any:
    """Run the plain loop, from Zarr arrays to a Zarr array where Zarr has the dtypes."""
    import zarr

    arrays, out = list(case.arrays), None
    fits = all(a.dtype.kind in "biuf" and a.size and a.ndim for a in (*arrays, *case.want))
    if not fits:
        size = random_size(rng, case.job.result)
        return pg.pool(case.arrays, None, case.job, size=size, workers=int(rng.integers(1, 4)))
    with tempfile.TemporaryDirectory() as folder:
        version = int(rng.choice([2, 3]))
        for k, array in enumerate(arrays):
            chunks = tuple(random_size(rng, array.shape))
            path = f"{folder}/{k}"
            arrays[k] = zarr.create_array(
                path, shape=array.shape, chunks=chunks, dtype=array.dtype, zarr_format=version
            )
            arrays[k][...] = array
        out = tuple(f"{folder}/y{k}" for k in range(len(case.job.outputs)))
        words = {"chunks": random_size(rng, case.job.result), "zarr_format": version}
        if version == 3 and rng.integers(2):
            words["shards"] = [c * int(rng.integers(1, 3)) for c in words["chunks"]]
        made = pg.pool(tuple(arrays), out, case.job, memory="1GB", workers=int(rng.integers(1, 4)), **words)
        return tuple(np.asarray(y[...]) for y in (made if isinstance(made, tuple) else (made,)))


def run_dask(case: Case, rng: np.random.Generator, lazy: bool) -> Any:
    """Run Dask on blocks, or on stores that tasks read."""
    import dask
    import dask.array as da

    import poolgrad.dask as pgd

    arrays = [da.from_array(a, chunks=random_chunks(rng, a.shape)) for a in case.arrays] if lazy else case.arrays
    chunks = random_chunks(rng, case.job.result) if rng.integers(2) or not lazy else None
    y = pgd.run(case.job, *arrays, chunks=chunks)
    return dask.compute(*(y if isinstance(y, tuple) else (y,)), scheduler="sync")


def run_cubed(case: Case, rng: np.random.Generator) -> Any:
    """Run Cubed; its files have no bfloat16 and no empty arrays."""
    import cubed

    import poolgrad.cubed as pgc

    if any(a.dtype.kind not in "biuf" or not a.size for a in (*case.arrays, *case.want)):
        return case.want
    with tempfile.TemporaryDirectory() as folder:
        spec = cubed.Spec(work_dir=folder, allowed_mem="2GB")
        arrays = [cubed.from_array(a, chunks=tuple(random_size(rng, a.shape)), spec=spec) for a in case.arrays]
        y = pgc.run(case.job, *arrays, chunks=random_size(rng, case.job.result) if rng.integers(2) else None)
        return tuple(np.asarray(v.compute()) for v in (y if isinstance(y, tuple) else (y,)))


def run_engine(engine: str, case: Case, rng: np.random.Generator) -> Any:
    """Return the results of one engine."""
    if engine == "regions":
        return by_regions(case, rng)
    if engine == "loop":
        return run_loop(case, rng)
    if engine == "cubed":
        return run_cubed(case, rng)
    return run_dask(case, rng, engine == "dask")


def check(seed: int, engines: list[str], every: dict[str, int]) -> tuple[Counter[str], list[str]]:
    """Compare one case by all engines; return how many comparisons there were, and what differed."""
    warnings.simplefilter("ignore")
    regular.SHORT = 0 if seed % 2 else 1 << 12
    case, found, wrong = random_case(seed), Counter[str](), []
    for engine in engines:
        if seed % every.get(engine, 1):
            continue
        try:
            got = run_engine(engine, case, np.random.default_rng(seed))
            text = difference(got if isinstance(got, tuple) else (got,), case.want)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
        found[engine] += 1
        if text:
            wrong.append(f"--case {seed} --engine {engine}: {case.name[:300]}: {text[:300]}")
    return found, wrong


def main() -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=3000, help="jobs (default 3000)")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seed", type=int, default=0, help="begin with this job")
    parser.add_argument("--engine", choices=ENGINES, action="append")
    parser.add_argument("--cubed-every", type=int, default=8, help="Cubed gets one job of so many (default 8)")
    parser.add_argument("--case", type=int, help="this job alone")
    given = parser.parse_args()
    engines = [e for e in given.engine or ENGINES if importlib.util.find_spec(ENGINES[e])]
    seeds = [given.case] if given.case is not None else range(given.seed, given.seed + given.calls)
    every = {"cubed": 1 if given.case is not None else given.cubed_every}
    found, wrong, begun = Counter[str](), [], time.monotonic()
    with ProcessPoolExecutor(given.jobs) as workers:
        for made, texts in workers.map(check, seeds, [engines] * len(seeds), [every] * len(seeds), chunksize=8):
            found += made
            wrong += texts
            for text in texts:
                print(text, flush=True)
            if time.monotonic() - begun > given.seconds:
                workers.shutdown(cancel_futures=True)
                break
    counts = ", ".join(f"{count} by {engine}" for engine, count in found.items())
    print(f"jobs: {found.total()} comparisons ({counts}), {len(wrong)} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
