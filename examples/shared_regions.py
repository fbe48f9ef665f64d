"""Share the regions of a job among workers that know nothing of each other: processes here, or Ray, Spark and Slurm.

    python examples/shared_regions.py in.zarr out.zarr --workers 4                 # starts 4 processes
    python examples/shared_regions.py in.zarr out.zarr --create                    # makes the result, without cells
    python examples/shared_regions.py in.zarr out.zarr --worker 3 --workers 64     # what one task of an array job runs

Worker i of n computes job.regions(...)[i::n]. Regions are whole chunks of the result, so no two workers write one chunk.
regions_on_ray.py, regions_on_spark.py and regions_on_slurm.sh call `work` and `create`. Needs zarr.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context


def create(source: str, out: str) -> None:
    """Make the result, once, before the workers."""
    import zarr

    import poolgrad as pg

    x = zarr.open_array(source, mode="r")
    shape = pg.output_shape(x.shape, 2)
    zarr.create_array(out, shape=shape, chunks=x.chunks, dtype=x.dtype, overwrite=True)


def work(source: str, out: str, worker: int, workers: int, memory: str) -> int:
    """Compute the share of one worker; return its number of regions."""
    import zarr

    import poolgrad as pg

    x, y = zarr.open_array(source, mode="r"), zarr.open_array(out, mode="r+")
    job = pg.Job("max_pool", x.shape, x.dtype, 2)
    share = job.regions(memory, unit=y.shards or y.chunks, chunks=x.chunks)[worker::workers]
    pg.pool(x, y, job, regions=share, workers=1, memory=memory)
    return len(share)


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("out")
    parser.add_argument("--create", action="store_true", help="make the result, and compute nothing")
    parser.add_argument("--worker", type=int, help="compute the share of this worker alone; the result must exist")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="200MB", help="bytes of arrays of each worker")
    given = parser.parse_args()
    if given.worker is not None:
        print(work(given.source, given.out, given.worker, given.workers, given.memory), "regions")
        return
    create(given.source, given.out)
    if given.create:
        return
    with ProcessPoolExecutor(given.workers, mp_context=get_context("spawn")) as pool:
        n = given.workers
        done = list(pool.map(work, [given.source] * n, [given.out] * n, range(n), [n] * n, [given.memory] * n))
    print(f"{sum(done)} regions by {n} workers: {done}")


if __name__ == "__main__":
    main()
