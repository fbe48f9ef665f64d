"""Share the regions of a job among tasks of Ray.

    pip install ray zarr
    python examples/regions_on_ray.py in.zarr out.zarr --workers 4

Task i of n computes job.regions(...)[i::n]; the tasks share nothing but the stores. A task whose worker dies is started again by Ray, and
writes the same bytes again.
"""

from __future__ import annotations

import argparse

import ray
from shared_regions import create, work


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("out")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--memory", default="200MB", help="bytes of arrays of each worker")
    given = parser.parse_args()
    create(given.source, given.out)  # once, before the workers
    ray.init(runtime_env={"env_vars": {"POOLGRAD_NUM_THREADS": "1"}}, include_dashboard=False)
    task = ray.remote(num_cpus=1, max_retries=3)(work)
    done = ray.get([task.remote(given.source, given.out, i, given.workers, given.memory) for i in range(given.workers)])
    print(f"{sum(done)} regions by {given.workers} tasks of Ray: {done}")


if __name__ == "__main__":
    main()
