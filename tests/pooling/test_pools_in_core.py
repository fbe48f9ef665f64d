"""Pools that the core computes in one pass: norms, and sums and means of integers, against the same arithmetic in NumPy."""

import numpy as np
import pytest
from support import dtype_of

import poolgrad as pg
from poolgrad import _core

HALVES = ("float16", "bfloat16")


def windows_of(x: np.ndarray, k: int, s: int) -> np.ndarray:
    """Return the windows of the last two axes, their cells last, in row-major order."""
    seen = np.lib.stride_tricks.sliding_window_view(x, (k, k), (-2, -1))[..., ::s, ::s, :, :]
    return np.ascontiguousarray(seen).reshape(*seen.shape[:-2], k * k)


def summed(terms: np.ndarray) -> np.ndarray:
    """Return sums of the last axis, cell after cell in the dtype."""
    total = np.zeros(terms.shape[:-1], terms.dtype)
    for c in range(terms.shape[-1]):
        total = total + terms[..., c]
    return total


@pytest.mark.parametrize("p", [1, 2, 1.0, 2.0])
@pytest.mark.parametrize("dtype", [*HALVES, "float32", "float64"])
def test_norms_are_roots_of_sums_of_powers(dtype, p):
    x = np.random.default_rng(3).standard_normal((2, 41, 70)).astype(dtype_of(dtype))
    x[0, :8, :8] = 0  # windows of zeros
    x[0, 8:12, :4] = -np.zeros((), x.dtype)
    wide = np.abs(x.astype(np.float32) if dtype in HALVES else x)
    for k, s in ((2, 2), (3, 1), (4, 4)):
        total = summed(windows_of(wide * wide if p == 2 else wide, k, s))
        want = (np.sqrt(total) if p == 2 else total).astype(x.dtype)
        found = pg.lp_pool(x, k, s, p=p, axes=(1, 2))
        assert found.dtype == x.dtype
        assert found.tobytes() == want.tobytes(), (k, s)


def test_norms_keep_their_digits_where_powers_leave_the_range():
    for scale in (2.0**-80, 2.0**-70, 2.0**80):  # squares vanish, are subnormal, overflow
        x = np.full((4, 4), 3 * scale, np.float32)
        x[2:, 2:] = 0
        y = pg.lp_pool(x, 2, p=2)
        assert (y == np.array([[6, 6], [6, 0]]) * scale).all(), scale
    assert pg.lp_pool(np.array([[np.inf, 1.0], [0.0, 2.0]]), 2, p=2) == np.inf
    assert np.isnan(pg.lp_pool(np.array([[np.nan, 1.0], [0.0, 2.0]]), 2, p=2))
    large = np.array([[3e4, 4e4], [0, 0]], np.float16)  # the square of a half may not be a half
    assert pg.lp_pool(large, 2, p=2) == np.float16(5e4)


SHAPES = {
    "rows": ((3, 37, 130), 2, 2),
    "far rows": ((64, 64, 70), 5, 5),
    "rows that windows share": ((2, 30, 90), 3, 1),
    "rows that many windows share": ((1, 40, 80), 17, 1),
    "gaps": ((1, 50, 100), 3, 7),
    "short rows": ((9, 33, 20), 4, 3),
}


@pytest.mark.parametrize("bytes_of_a_box", [0, 700])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("name", SHAPES)
def test_sums_and_means_of_integers_are_exact(name, dtype, bytes_of_a_box):
    shape, k, s = SHAPES[name]
    info = np.iinfo(dtype)
    x = np.random.default_rng(7).integers(info.min, info.max, shape, dtype, endpoint=True)
    total = windows_of(x, k, s).sum(-1, dtype=np.int64)
    _core.box_at_most(bytes_of_a_box)
    try:
        assert (pg.sum_pool(x, k, s, axes=(1, 2)).astype(np.int64) == total).all()
        assert (pg.avg_pool(x, k, s, axes=(1, 2)) == total / k**2).all()
        for rounding, exact in {
            "floor": total // k**2,
            "ceil": -(-total // k**2),
            "toward_zero": np.sign(total) * (np.abs(total) // k**2),
            "nearest": np.rint(total / k**2),
        }.items():
            found = pg.avg_pool(x, k, s, axes=(1, 2), dtype=dtype, rounding=rounding)
            assert (found == exact).all(), rounding
    finally:
        _core.box_at_most(0)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_long_runs_of_integers_are_summed_exactly(dtype):
    for extreme in (np.iinfo(dtype).min, np.iinfo(dtype).max):
        x = np.full((3, 200_001), extreme, dtype)
        x[1, 7] //= 2
        total = x.sum(1, dtype=np.int64)
        assert (pg.global_sum_pool(x, axes=1).astype(np.int64).ravel() == total).all()
        assert (pg.global_avg_pool(x, axes=1).ravel() == total / x.shape[1]).all()
        blocks = x[:, :200_000].reshape(3, -1, 1000).sum(2, dtype=np.int64)
        assert (pg.sum_pool(x, 1000, axes=1).astype(np.int64) == blocks).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8", "int32"])
def test_minima_of_long_windows_are_maxima_of_negated_cells(dtype):
    x = np.random.default_rng(9).integers(0, 100, (2, 90, 95)).astype(dtype)
    want = 100 - pg.max_pool((100 - x).astype(dtype), 31, 1, axes=(1, 2))
    assert (pg.min_pool(x, 31, 1, axes=(1, 2)) == want).all()
    if x.dtype.kind == "f":
        x[1, 40, 40] = np.nan
        found = pg.min_pool(x, 31, 1, axes=(1, 2))
        assert np.isnan(found[1, 10:41, 10:41]).all()
        assert np.isnan(found).sum() == 31 * 31
        assert (np.isnan(found) | (found == want)).all()
