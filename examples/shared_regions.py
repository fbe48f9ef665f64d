"""Share the regions of a job among workers that know nothing of each other: processes here, a Slurm array, Ray or Spark elsewhere.

    python examples/shared_regions.py in.zarr out.zarr --workers 4       # starts 4 processes
    python examples/shared_regions.py in.zarr out.zarr --worker 3 --workers 64   # what one task of an array job runs

Worker i of n computes job.regions(...)[i::n]. Regions are whole chunks of the result, so no two workers write one chunk.
In a Slurm array: --worker $SLURM_ARRAY_TASK_ID --workers $SLURM_ARRAY_TASK_COUNT. On Ray or Spark, map `work` over range(n). Needs zarr.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import zarr

import poolgrad as pg


def work(source: str, out: str, worker: int, workers: int) -> int:
    """Compute the share of one worker; return its number of regions."""
    x, y = zarr.open_array(source, mode="r"), zarr.open_array(out, mode="r+")
    job = pg.Job("max_pool", x.shape, x.dtype, 2)
    share = job.regions("200MB", unit=y.shards or y.chunks, chunks=x.chunks)[worker::workers]
    pg.pool(x, y, job, regions=share, workers=1, memory="200MB")
    return len(share)


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("out")
    parser.add_argument("--worker", type=int, help="compute the share of this worker alone; the result must exist")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    if given.worker is not None:
        print(work(given.source, given.out, given.worker, given.workers), "regions")
        return
    x = zarr.open_array(given.source, mode="r")
    shape = pg.output_shape(x.shape, 2)
    zarr.create_array(
        given.out, shape=shape, chunks=x.chunks, dtype=x.dtype, overwrite=True
    )  # once, before the workers
    with ProcessPoolExecutor(given.workers, mp_context=get_context("spawn")) as pool:
        n = given.workers
        done = list(pool.map(work, [given.source] * n, [given.out] * n, range(n), [n] * n))
    print(f"{sum(done)} regions by {n} workers: {done}")


if __name__ == "__main__":
    main()
