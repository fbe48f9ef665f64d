"""A job computes every region with the bits of the whole array, is small, and says no before it works."""

import pickle
import time

import numpy as np
import pytest
from job_cases import by_regions, difference, random_case

import poolgrad as pg
from poolgrad._windows import regular
from poolgrad.jobs import Regions

pytestmark = pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore:divide by zero:RuntimeWarning")


@pytest.mark.parametrize("formulas", [False, True], ids=["tables", "formulas"])
@pytest.mark.parametrize("first", range(0, 240, 20))
def test_random_jobs_have_the_bits_of_the_whole_array(first, formulas, monkeypatch):
    """Run fuzz/jobs.py for more."""
    if formulas:
        monkeypatch.setattr(regular, "SHORT", 0)
    for seed in range(first, first + 20):
        case = random_case(seed)
        assert not difference(by_regions(case, np.random.default_rng(seed)), case.want), (seed, case.name)
        again = pickle.loads(pickle.dumps(case.job))
        assert again == case.job
        assert again.inputs == case.job.inputs


def test_a_job_over_ten_thousand_million_samples_costs_nothing():
    job = pg.Job("avg_pool", [10**10], "float32", 441, 147, padding=200)
    assert job.dest == ((10**10 + 400 - 441) // 147 + 1,)
    ((need,),) = job.needs([slice(5 * 10**7, 5 * 10**7 + 1000)])
    assert (need.start, need.stop) == (5 * 10**7 * 147 - 200, (5 * 10**7 + 999) * 147 - 200 + 441)
    assert len(pickle.dumps(job)) < 1000
    assert len(pickle.dumps(job.vjp())) < 1000


def test_regions_of_a_petabyte_are_found_at_once():
    job = pg.Job("max_pool", (100_000, 100_000, 50_000), "uint16", 2)
    start = time.perf_counter()
    regions = job.regions("2GB", unit=(128, 128, 128), chunks=(128, 128, 128))
    assert time.perf_counter() - start < 1
    assert len(regions) > 10_000
    assert job.peak(regions.size) <= 2e9
    assert all(s % 128 == 0 for s in regions.size)
    share = regions[7::1000]
    assert isinstance(share, Regions)
    assert share[1] == regions[1007]


@pytest.mark.parametrize(("shape", "size"), [((5, 4), (2, 4)), ((7,), (3,)), ((0, 3), (2, 2)), ((), ())])
def test_regions_tile_the_result(shape, size):
    regions = Regions(shape, size)
    seen = np.zeros(shape, int)
    for region in regions:
        seen[region] += 1
    assert (seen == 1).all()
    assert len(list(regions)) == len(regions)
    assert sum(len(regions[i::3]) for i in range(3)) == len(regions)


def test_a_region_grows_where_less_is_read_twice():
    """A halo of two cells around chunks of 32: more chunks at once read less."""
    job = pg.Job("max_pool", (512, 512, 512), "uint8", 3, 1, padding="same")
    small = job.regions("3MB", unit=(32, 32, 32), chunks=(32, 32, 32))
    large = job.regions("200MB", unit=(32, 32, 32), chunks=(32, 32, 32))
    assert job._amplification(large.size, (32, 32, 32)) < 0.5 * job._amplification(small.size, (32, 32, 32))
    assert job.peak(small.size) <= 3e6 < job.peak(large.size) <= 2e8


def test_a_gradient_needs_no_array_where_it_does_not_depend_on_it():
    job = pg.Job("avg_pool", (9, 9), "float32", 3, 1)
    assert [i.name for i in job.vjp().inputs] == ["g"]
    assert [i.name for i in job.jvp().inputs] == ["v"]
    assert [i.name for i in pg.Job("max_pool", (9, 9), "float32", 3).vjp(from_taps=True).inputs] == ["taps", "g"]
    assert [i.name for i in pg.Job("max_pool", (9, 9), "float32", 3).vjp(3).inputs] == ["x", "g", "v1", "v2"]
    words = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    assert [i.name for i in pg.Job("MaxPoolGrad", (1, 8, 8, 1), "float32", **words).inputs] == ["orig_input", "grad"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pg.Job("mode_pool", (4,), "float32", 2), ValueError, "Job: op: got 'mode_pool', wanted a pool"),
        (lambda: pg.Job("max_pool", (4, -1), "float32", 2), ValueError, "Job: shape: got"),
        (lambda: pg.Job("max_pool", (4,), "complex64", 2), TypeError, "Job: dtype: got"),
        (lambda: pg.Job("max_pool", (4,), "nonsense", 2), TypeError, "Job: dtype: got 'nonsense'"),
        (lambda: pg.Job("max_pool", (4,), "float32"), ValueError, "max_pool: window: got nothing"),
        (lambda: pg.Job("max_pool", (4,), "float32", 2, p=3), ValueError, "max_pool: p: got 3, wanted an argument of"),
        (lambda: pg.Job("max_pool", (4,), "float32", 2, window=3), ValueError, "max_pool: window: got 3, wanted one"),
        (lambda: pg.Job("max_pool", (4,), "float32", 2, nan="none"), ValueError, "max_pool: nan: got 'none'"),
        (lambda: pg.Job("max_pool", (4,), "float32", 2, returns="where"), ValueError, "max_pool: returns: got"),
        (lambda: pg.Job("avg_pool", (4,), "float32", 2, returns="taps"), ValueError, "avg_pool: returns: got"),
        (lambda: pg.Job("avg_pool", (4,), "int8", 2).vjp(), TypeError, "avg_pool.vjp: dtype: got int8"),
        (lambda: pg.Job("avg_pool", (4,), "float32", 2).vjp(0), ValueError, "avg_pool.vjp: order: got 0"),
        (lambda: pg.Job("max_pool", (4,), "float32", 2).vjp().vjp(), ValueError, "max_pool.vjp: op: got"),
        (lambda: pg.Job("max_pool", (4,) * 17, "float32", 2), ValueError, "max_pool: x: got 17 pooled axes"),
        (lambda: pg.Job("max_pool", (9,), "u1", 2, padding=4), ValueError, "max_pool: padding: got window 0"),
        (lambda: pg.Job("MaxPool", (1, 4, 4, 1), "float32", ksize=2), TypeError, "MaxPool: ksize"),
        (lambda: pg.Job("MaxPool", (1, 4, 4), "float32", ksize=[1, 2, 2, 1]), ValueError, "shape: got .1, 4, 4., wanted 4"),
        (lambda: pg.Job("MaxPool", (1, 4, 4, 1), "float32", window=2), ValueError, "MaxPool: window: got 2, wanted an arg"),
        (lambda: pg.Job("AvgPool", (1, 4, 4, 1), "int8"), TypeError, "AvgPool: dtype: got int8"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_wrong_arrays_are_refused():
    job = pg.Job("max_pool", (8, 8), "float32", 2)
    region = (slice(0, 2), slice(0, 4))
    with pytest.raises(
        ValueError, match=r"max_pool: x: got shape \[8, 8\], wanted \[4, 8\], the part that the region needs"
    ):
        job.run(region, np.zeros((8, 8), np.float32))
    with pytest.raises(TypeError, match="max_pool: x: got dtype float64, wanted float32"):
        job.run(region, np.zeros((4, 8)))
    with pytest.raises(ValueError, match="max_pool: arrays: got 0 of them, wanted x"):
        job.run(region)
    with pytest.raises(ValueError, match="max_pool: region: got"):
        job.needs([slice(0, 2)])
    with pytest.raises(MemoryError, match="max_pool: memory: got 10 bytes for each worker, wanted at least"):
        job.regions(10, unit=(4, 4))
    with pytest.raises(ValueError, match=r"max_pool: size: got \[3, 4\], wanted whole units of \[2, 4\]"):
        job.regions(unit=(2, 4), size=(3, 4))


def test_the_layout_of_memory_does_not_change_bits():
    """The core adds in the order of memory; a job always reads rows."""
    x = np.random.default_rng(0).standard_normal((60, 70))
    job = pg.Job("avg_pool", x.shape, x.dtype, 21, 1)
    region = tuple(slice(0, n) for n in job.result)
    want = job.run(region, x)
    assert job.run(region, np.asfortranarray(x)).tobytes() == want.tobytes()
    assert job.run(region, x.astype(">f8")).tobytes() == want.tobytes()


def test_positions_outside_their_window_are_named():
    words = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    job = pg.Job("MaxPoolGradWithArgmax", (1, 8, 8, 1), "float32", **words)
    index = pg.raw_ops.MaxPoolWithArgmax(input=np.zeros((1, 8, 8, 1), np.float32), **words).argmax.copy()
    index[0, 3, 1, 0] = 0
    region = (slice(0, 1), slice(4, 8), slice(0, 8), slice(0, 1))
    with pytest.raises(
        ValueError, match=r"MaxPoolGradWithArgmax: argmax: got 0 at \[0, 3, 1, 0\], wanted a flat position"
    ):
        job.run(region, np.zeros((1, 2, 4, 1), np.float32), index[:, 2:4])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(
    ("op", "words"), [("global_avg_pool", {}), ("global_sum_pool", {}), ("avg_pool", {"window": 37, "divisor": 3.0})]
)
def test_the_gradient_of_a_window_over_everything_needs_no_more_than_its_region(op, words, dtype):
    g = np.array([[-0.0], [1.7], [-3.3]]).astype(dtype)
    x = np.ones((3, 37), dtype)
    job = pg.Job(op, x.shape, dtype, axes=1, **words).vjp()
    assert job.needs([slice(1, 3), slice(5, 9)]) == ((slice(1, 3), slice(0, 1)),)
    want = pg.vjp(lambda x: getattr(pg, op)(x, axes=1, **words), x)[1](g)
    assert job.run([slice(1, 3), slice(5, 9)], g[1:3]).tobytes() == np.ascontiguousarray(want[1:3, 5:9]).tobytes()
    assert job.run([slice(0, 3), slice(0, 37)], g).tobytes() == np.ascontiguousarray(want).tobytes()
    assert len(pg.Job("global_avg_pool", (10**10,), dtype).vjp().regions("100MB")) > 100


def test_a_table_over_too_many_cells_is_refused():
    with pytest.raises(MemoryError, match="max_pool: window: got a call that needs more memory"):
        pg.Job("max_pool", (10**13,), "f4", [[(0, 5), (3, 9)]])
