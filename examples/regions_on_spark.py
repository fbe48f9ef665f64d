"""Share the regions of a job among tasks of Spark.

    pip install pyspark zarr
    python examples/regions_on_spark.py in.zarr out.zarr --workers 4
    spark-submit --py-files examples/shared_regions.py examples/regions_on_spark.py in.zarr out.zarr --workers 64

Task i of n computes job.regions(...)[i::n]; the tasks share nothing but the stores. Spark starts a task that fails again, and it writes the
same bytes again. Turn speculation off (spark.speculation, the default): two copies of a task would write the same files.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession
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
    source, out, n, memory = given.source, given.out, given.workers, given.memory
    spark = SparkSession.builder.appName("poolgrad").config("spark.executorEnv.POOLGRAD_NUM_THREADS", "1").getOrCreate()
    done = spark.sparkContext.parallelize(range(n), n).map(lambda i: work(source, out, i, n, memory)).collect()
    spark.stop()
    print(f"{sum(done)} regions by {n} tasks of Spark: {done}")


if __name__ == "__main__":
    main()
