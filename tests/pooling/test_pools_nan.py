"""NaN rules hold per window: a window without NaN has the bits that it has in an array without NaN, and so has its gradient."""

import numpy as np
import pytest
from support import dtype_of

import poolgrad as pg

DTYPES = ("float16", "bfloat16", "float32", "float64")
CASES = {  # shape, window, more arguments; long and short sums, channels first and last
    "short": ((2, 9, 11, 3), (3, 3), {"axes": (1, 2), "stride": 2, "padding": 1}),
    "long": ((2, 30, 26, 2), (13, 11), {"axes": (1, 2), "stride": 1, "padding": 5}),
    "long, channels first": ((2, 3, 30, 26), (13, 11), {"axes": (2, 3), "stride": 1, "padding": 5}),
    "one axis": ((3, 200), 70, {"axes": 1, "stride": 3}),
    "cubes": ((1, 9, 10, 11, 2), (5, 5, 5), {"axes": (1, 2, 3), "stride": 1, "padding": 2}),
    "dilated": ((2, 30, 26), (9, 9), {"axes": (1, 2), "stride": 1, "dilation": (2, 1), "padding": 4}),
}
POOLS = {
    "avg_pool": (pg.avg_pool, {}),
    "avg_pool, padding counted": (pg.avg_pool, {"count_include_pad": True}),
    "avg_pool, divisor": (pg.avg_pool, {"divisor": 7.0}),
    "sum_pool": (pg.sum_pool, {}),
    "max_pool": (pg.max_pool, {}),
    "min_pool": (pg.min_pool, {}),
}


def bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def arrays(shape: tuple[int, ...], dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Return an array with zeros of both signs, and the same array with a few NaN."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal(shape).astype(dtype_of(dtype))
    x[rng.random(shape) < 0.05] = -0.0
    some = x.copy()
    some.reshape(-1)[rng.choice(x.size, 2, replace=False)] = np.nan
    return x, some


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("name", CASES)
def test_nan_elsewhere_changes_no_bit(name, pool, dtype):
    (shape, window, more), (run, options) = CASES[name], POOLS[pool]
    plan = pg.plan(shape, window, **more)
    whole, some = arrays(shape, dtype)
    touched = pg.summing(plan)((some != some).astype(np.int64)) > 0
    assert 0 < touched.sum() < touched.size
    for nan in ("ignore", "propagate"):
        found, want = (run(x, window, nan=nan, **more, **options) for x in (some, whole))
        assert (bits(found) == bits(want))[~touched].all(), nan


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("name", CASES)
def test_nan_elsewhere_changes_no_bit_of_a_gradient(name, pool, dtype):
    (shape, window, more), (run, options) = CASES[name], POOLS[pool]
    plan = pg.plan(shape, window, **more)
    whole, some = arrays(shape, dtype)
    touched = pg.summing(plan)((some != some).astype(np.int64)) > 0
    near = pg.summing(plan).T(touched.astype(np.int64)) > 0  # cells under a window with NaN
    assert 0 < near.sum() < near.size
    g = np.random.default_rng(5).standard_normal(plan.dest).astype(whole.dtype)
    found, want = (pg.vjp(lambda v: run(v, window, nan="ignore", **more, **options), x)[1](g) for x in (some, whole))
    assert (bits(np.asarray(found)) == bits(np.asarray(want)))[~near].all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_means_that_leave_out_nan_are_means_of_the_other_cells(dtype):
    x = np.arange(120).reshape(1, 120).astype(dtype_of(dtype)) % 16
    x[0, 3] = np.nan
    got = pg.avg_pool(x, 80, stride=40, axes=1, nan="ignore").astype(np.float64)
    assert abs(got[0, 0] - np.nanmean(x[0, :80].astype(np.float64))) < 0.05
    assert got[0, 1] == 7.5
