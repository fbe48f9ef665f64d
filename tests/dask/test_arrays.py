"""Pools on Dask: the bits of the whole array from any blocks, one task per region, small graphs, with and without query planning."""

import time

import numpy as np
import pytest
from job_cases import difference, random_case
from support import ROOT, python

import poolgrad as pg

cloudpickle = pytest.importorskip("cloudpickle")
dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array")
pgd = pytest.importorskip("poolgrad.dask")

pytestmark = pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore:divide by zero:RuntimeWarning")


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="sync"):
        yield


def random_chunks(rng, shape):
    """Return chunks of any length, also of none."""
    borders = [sorted([0, n, *rng.integers(0, n + 1, rng.integers(0, 3)).tolist()]) for n in shape]
    return tuple(tuple(np.diff(line).tolist()) for line in borders)


def check_random_jobs(first, last):
    for seed in range(first, last):
        case, rng = random_case(seed), np.random.default_rng(seed)
        chunks = random_chunks(rng, case.job.result) if rng.integers(2) else None
        blocks = [da.from_array(x, chunks=random_chunks(rng, x.shape)) for x in case.arrays]
        for arrays, cut in ((blocks, chunks), (case.arrays, random_chunks(rng, case.job.result))):
            y = pgd.run(case.job, *arrays, chunks=cut)
            outs = y if isinstance(y, tuple) else (y,)
            assert [(o.shape, o.dtype) for o in outs] == [(o.shape, o.dtype) for o in case.job.outputs]
            assert not difference(dask.compute(*outs), case.want), (seed, case.name)


@pytest.mark.parametrize("first", range(1000, 1080, 20))
def test_random_jobs_on_blocks_and_on_stores_have_the_bits_of_the_whole_array(first):
    check_random_jobs(first, first + 20)


def test_query_planning_gives_the_same_bits():
    program = f"""
import sys
sys.path[:0] = {[str(ROOT / "tests/dask"), str(ROOT / "fuzz/helpers")]!r}
import dask, test_arrays
assert test_arrays.da.ARRAY_EXPR_ENABLED
dask.config.set(scheduler="sync")
test_arrays.check_random_jobs(1100, 1140)
"""
    done = python("-W", "ignore", "-c", program, DASK_ARRAY__QUERY_PLANNING="True")
    assert done.returncode == 0, done.stderr


def test_a_pool_of_a_store_has_one_task_per_region():
    x = np.arange(64.0 * 64).reshape(64, 64)
    y = pgd.max_pool(x, 2, chunks=8)
    assert len(y.dask) == 16
    assert (y.compute() == pg.max_pool(x, 2)).all()


class Store:
    """An array of 500 TB that nobody reads."""

    shape, dtype, chunks = (60_000, 65_000, 65_000), np.dtype("uint16"), (100, 100, 100)

    def __dask_tokenize__(self):
        return "large"

    def __getitem__(self, region):
        raise AssertionError("read")


def test_a_million_regions_cost_no_time():
    pgd.max_pool(Store(), 2, chunks=300)
    start = time.perf_counter()
    y = pgd.max_pool(Store(), 2, chunks=300)
    assert time.perf_counter() - start < 0.5  # 50 ms on a machine without other work
    assert y.npartitions > 1_000_000
    task = y.dask.layers[y.name].task
    assert len(cloudpickle.dumps(task)) < 10_000


def test_slices_of_neighbours_are_cut_before_they_are_sent():
    x = da.ones((40, 40), chunks=20)
    y = pgd.max_pool(x, 3, 1, padding="same")
    assert y.chunks == x.chunks
    layer = y.dask.layers[y.name]
    assert sum(key[0] == y.name for key in layer) == 4
    assert sum(key[0].startswith("cut-") for key in layer) == 12  # two sides and a corner for each of four blocks


def test_blocks_of_the_result_are_those_of_the_array():
    x = da.zeros((100, 30, 3), chunks=((40, 40, 20), (10, 20), 3))
    assert pgd.avg_pool(x, 4, 2, axes=(0, 1)).chunks == ((20, 20, 9), (5, 9), (3,))
    back = pgd.run(pg.Job("avg_pool", x.shape, x.dtype, 2, axes=(0, 1)).vjp(), da.ones((50, 15, 3), chunks=(20, 5, 3)))
    assert back.chunks == ((40, 40, 20), (10, 10, 10), (3,))


def test_unknown_chunk_sizes_are_refused():
    x = da.ones(8, chunks=4)
    with pytest.raises(ValueError, match="max_pool: x: got unknown chunk sizes"):
        pgd.max_pool(x[x > 0], 2)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pgd.max_pool([1, 2], 2), TypeError, r"max_pool: x: got \[1, 2\], wanted a Dask array, or a store"),
        (lambda: pgd.max_pool(da.ones(8), 2, chunks=(3, 3)), ValueError, "max_pool: chunks: got"),
        (lambda: pgd.max_pool(np.ones(8), 2, memory=3), MemoryError, "max_pool: memory: got 3 bytes for each worker"),
        (lambda: pgd.run(pg.Job("max_pool", (8,), "f8", 2), da.ones(9)), ValueError, r"x: got shape \[9\], wanted \[8\]"),
        (lambda: pgd.run(pg.Job("max_pool", (8,), "f8", 2), da.ones(8, dtype="f4")), TypeError, "x: got dtype float32"),
        (lambda: pgd.run(pg.Job("max_pool", (8,), "f8", 2)), ValueError, "max_pool: arrays: got 0 of them, wanted x"),
        (lambda: pgd.vjp(3, da.ones(8)), TypeError, "vjp: f: got 3, wanted a function"),
        (lambda: pgd.vjp(lambda x: 3, da.ones(8)), TypeError, "vjp: f: got a function that returned 3"),
        (lambda: pgd.jvp(lambda x: pgd.max_pool(x, 2), da.ones(8), da.ones(7)), ValueError, r"jvp: v: got shape \[7\]"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused_before_anything_is_computed(call, error, message):
    with pytest.raises(error, match=message):
        call()
