"""A cluster whose workers are killed gives the same bits."""

import os
import signal
import time

import numpy as np
import pytest

import poolgrad as pg

distributed = pytest.importorskip("distributed", reason="distributed is not installed")
zarr = pytest.importorskip("zarr", reason="zarr is not installed")
pgd = pytest.importorskip("poolgrad.dask")


@pytest.mark.clock
@pytest.mark.filterwarnings("ignore")
def test_workers_that_are_killed_do_not_change_the_result(tmp_path):
    """The tasks read a store, so a new worker computes them again. Workers are killed three times."""
    x = np.random.default_rng(0).standard_normal((96, 96, 96)).astype(np.float32)
    store = zarr.create_array(str(tmp_path / "x.zarr"), shape=x.shape, chunks=(16, 16, 16), dtype=x.dtype)
    store[...] = x
    y = pgd.avg_pool(store, 3, 1, padding="same", chunks=12)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        future, killed = client.compute(y, retries=20), 0
        for _ in range(3):
            time.sleep(0.4)
            for worker in list(cluster.workers.values())[:1]:
                if (pid := getattr(worker, "pid", None)) is not None:
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
        got = future.result(timeout=120)
    assert killed
    assert got.tobytes() == pg.avg_pool(x, 3, 1, padding="same").tobytes()
