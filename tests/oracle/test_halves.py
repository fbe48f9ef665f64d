"""Sums of halves round at each step as NumPy's do, at the edges of the types too."""

import ml_dtypes
import numpy as np
import pytest

from poolgrad import reference, verbs
from poolgrad.rules import Mean, Share
from poolgrad.windows import Plan, clip, whole

DTYPES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]


def values(dtype: np.dtype) -> np.ndarray:
    """Both ends of every binade, ties on either side of them, subnormals, infinities and NaN, of either sign."""
    digits = ml_dtypes.finfo(dtype).nmant
    exponents = np.arange(0, 0x8000, 1 << digits, dtype=np.uint16)
    last = (1 << digits) - 1
    bits = (exponents[:, None] + np.array([0, 1, 2, last // 2, last - 1, last], np.uint16)).ravel()
    return np.concatenate([bits, bits | 0x8000]).astype(np.uint16).view(dtype)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal to the bit, all NaN alike."""
    nan = a != a
    return bool(np.array_equal(nan, b != b) and np.array_equal(a.view(np.uint16)[~nan], b.view(np.uint16)[~nan]))


def triples(dtype: np.dtype) -> np.ndarray:
    """All pairs of values, and then the first once more with its sign turned: an overflow must not come back."""
    v = values(dtype)[::2] if dtype.name == "bfloat16" else values(dtype)
    a, b = (np.ascontiguousarray(part) for part in np.broadcast_arrays(v[:, None], v[None, :]))
    return np.stack([a, b, -a], axis=1)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@np.errstate(all="ignore")
def test_a_mean_rounds_each_sum(dtype):
    x = triples(dtype)
    y = verbs.fold(Plan(x.shape, {1: whole(3)}), Mean.COUNTED, x)
    assert same(y[:, 0], (x[:, 0] + x[:, 1] + x[:, 2]) / dtype.type(3))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@np.errstate(all="ignore")
def test_a_mean_gradient_rounds_each_product_and_each_sum(dtype, reverse):
    g = triples(dtype)
    dx = verbs.spread(Plan((g.shape[0], 5, g.shape[2]), {1: clip(5, 3, 1, 0, 3)}), Share.RECIPROCAL, reverse, g)
    shares = g * np.float32(1 / 3).astype(dtype)
    for j in range(5):
        total = np.zeros_like(g[:, 0])
        for i in range(max(j - 2, 0), min(j, 2) + 1):
            total = total + shares[:, i]
        assert same(dx[:, j], total)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_what_is_near_is_decided_once_the_difference_is_rounded(dtype):
    """Less than a half by less than a rounding is a half, which is not near."""
    step = 0.5 * float(ml_dtypes.finfo(dtype).eps)
    x = (0.5 - step * np.arange(8)[:, None] * np.ones(64)).astype(dtype)
    y = (-step / 32 * np.arange(64)).astype(dtype).reshape(1, 64)
    plan, g = Plan(x.shape, {0: whole(8)}), np.ones((1, 64), dtype)
    assert (x.astype(float) - y.astype(float) < 0.5).sum() > (x - y < 0.5).sum()  # some are near only before
    for near in (verbs.near, reference.near):
        assert np.array_equal(near(plan, 0.5, x, y, g), (abs(x - y) < 0.5).astype(dtype))
