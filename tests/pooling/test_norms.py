"""Norms over windows: no power on the way leaves the range of numbers, and half types are rounded once."""

import warnings
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import poolgrad as pg


def norm(values, p: int) -> float:
    """Return the norm, by fractions and one root."""
    cells = [abs(Fraction(float(v))) for v in values]
    top = max(cells)
    return float(top) * float(sum((c / top) ** p for c in cells)) ** (1 / p) if top else 0.0


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_types_are_rounded_once(dtype):
    assert pg.lp_pool(np.array([300, 400], dtype), 2).astype(float).tolist() == [float(dtype(500))]
    x = np.random.default_rng(0).standard_normal(400).astype(dtype) * dtype(100)
    for p in (2, 3, 7):
        want = np.array([norm(pair, p) for pair in x.reshape(-1, 4)])
        near = pg.lp_pool(x, 4, p=p).astype(float)
        below, above = (
            np.array([float(np.float64(v).astype(np.float32).astype(dtype)) for v in want * f])
            for f in (1 - 1e-5, 1 + 1e-5)
        )
        assert ((below <= near) & (near <= above)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", [2, 3, 20])
@pytest.mark.parametrize(
    "words", [{"window": 3}, {"window": 3, "stride": 1}, {"window": 2, "stride": 1, "dilation": 2}]
)
def test_numbers_of_any_size_have_their_norm(dtype, p, words):
    info = np.finfo(dtype)
    rng = np.random.default_rng(p)
    x = (rng.uniform(1, 2, (9, 9)) * 2.0 ** rng.integers(info.minexp + 8, info.maxexp - 8, (9, 9))).astype(dtype)
    x[rng.random((9, 9)) < 0.3] = 0
    plan = pg.plan(x.shape, **words)
    sides = [[list(range(a, b, axis.step)) for a, b in axis.pairs()] for axis in plan.axes]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = pg.lp_pool(x, **words, p=p)
        assert np.array_equal(pg.lp_pool(np.asfortranarray(x), **words, p=p), y)
    want = [[norm(x[np.ix_(rows, cols)].ravel(), p) for cols in sides[1]] for rows in sides[0]]
    np.testing.assert_allclose(y, want, rtol=1e-4 if dtype == "float32" else 1e-12)


def test_windows_longer_than_what_is_scaled_together(monkeypatch):
    monkeypatch.setattr("poolgrad._pooling.norms._TOGETHER", 8)
    x = np.full((4, 5), 2e200)
    np.testing.assert_allclose(pg.lp_pool(x, (4, 5)), [[2e200 * np.sqrt(20)]])
    np.testing.assert_allclose(pg.lp_pool(x, (2, 2), 1), np.full((3, 4), 4e200))


def test_infinities_nan_and_zeros_keep_their_meaning():
    x = np.array([np.inf, 1, np.nan, 1, 0, 0, 1e200, np.inf, 5e-324, 0])
    np.testing.assert_array_equal(pg.lp_pool(x, 2), [np.inf, np.nan, 0, np.inf, 5e-324])


def test_plain_numbers_have_the_bits_of_the_formula():
    x = np.random.default_rng(2).standard_normal((8, 8)).astype(np.float32)
    for p in (1, 2, 3, 2.5):
        total = pg.sum_pool(np.abs(x) ** p, 2)
        assert np.array_equal(pg.lp_pool(x, 2, p=p), total ** (1 / p))
        assert pg.lp_pool(x, 2, p=np.float64(p)).dtype == np.float32


@pytest.mark.parametrize(
    "x",
    [
        np.array([300, 400], np.float16),
        np.array([3e200, 4e200]),
        np.array([3e-200, 4e-200]),
        np.array([3e30, 4e30], "f4"),
    ],
)
def test_derivatives_stay_in_range(x):
    dx = pg.grad(lambda v: pg.lp_pool(v, 2).sum(), x)
    assert dx.dtype == x.dtype
    np.testing.assert_allclose(dx.astype(float), [0.6, 0.8], rtol=1e-3 if x.dtype == np.float16 else 1e-6)
    y, tangent = pg.jvp(lambda v: pg.lp_pool(v, 2), x, np.array([1, 1], x.dtype))
    np.testing.assert_allclose(y, pg.lp_pool(x, 2), rtol=1e-6)
    np.testing.assert_allclose(tangent.astype(float), [1.4], rtol=1e-3 if x.dtype == np.float16 else 1e-6)


def test_autograd_has_the_same_norms_of_halves_and_the_same_name_in_errors():
    pool = pytest.importorskip("poolgrad.autograd")
    assert pool.lp_pool(np.array([300, 400], np.float16), 2).tolist() == [500]
    with pytest.raises(ValueError, match="lp_pool: window: got 0"):
        pool.lp_pool(np.ones(4), 0)
