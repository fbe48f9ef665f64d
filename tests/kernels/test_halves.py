"""Sums of halves round at each step as NumPy's do, at the edges of the types too; those of taps and positions round once."""

from fractions import Fraction
from math import floor, log2

import ml_dtypes
import numpy as np
import pytest

import poolgrad
import poolgrad as pg
from poolgrad import reference
from poolgrad._kernels import native
from poolgrad._ops.semantics import Mean, Share
from poolgrad.windows import Axis, Plan, sliding_axis, whole

DTYPES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]


def values(dtype: np.dtype) -> np.ndarray:
    """Return both ends of every binade, ties on either side of them, subnormals, infinities and NaN, of either sign."""
    digits = ml_dtypes.finfo(dtype).nmant
    exponents = np.arange(0, 0x8000, 1 << digits, dtype=np.uint16)
    last = (1 << digits) - 1
    bits = (exponents[:, None] + np.array([0, 1, 2, last // 2, last - 1, last], np.uint16)).ravel()
    return np.concatenate([bits, bits | 0x8000]).astype(np.uint16).view(dtype)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Return True if the bits are equal; all NaN are alike."""
    nan = a != a
    return bool(np.array_equal(nan, b != b) and np.array_equal(a.view(np.uint16)[~nan], b.view(np.uint16)[~nan]))


def triples(dtype: np.dtype) -> np.ndarray:
    """Return all pairs of values, then the first once more with its sign turned: an overflow must not come back."""
    v = values(dtype)[::2] if dtype.name == "bfloat16" else values(dtype)
    a, b = (np.ascontiguousarray(part) for part in np.broadcast_arrays(v[:, None], v[None, :]))
    return np.stack([a, b, -a], axis=1)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@np.errstate(all="ignore")
def test_a_mean_rounds_each_sum(dtype):
    x = triples(dtype)
    y = native.fold(Plan(x.shape, {1: whole(3)}), Mean.COUNTED, x)
    assert same(y[:, 0], (x[:, 0] + x[:, 1] + x[:, 2]) / dtype.type(3))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@np.errstate(all="ignore")
def test_a_mean_gradient_rounds_each_product_and_each_sum(dtype, reverse):
    g = triples(dtype)
    dx = native.spread(
        Plan((g.shape[0], 5, g.shape[2]), {1: sliding_axis(5, 3, 1, 0, 3)}), Share.RECIPROCAL, reverse, g
    )
    shares = g * np.float32(1 / 3).astype(dtype)
    for j in range(5):
        total = np.zeros_like(g[:, 0])
        for i in range(max(j - 2, 0), min(j, 2) + 1):
            total = total + shares[:, i]
        assert same(dx[:, j], total)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_what_is_near_is_decided_once_the_difference_is_rounded(dtype):
    """A difference just below one half rounds to one half, which is not near."""
    step = 0.5 * float(ml_dtypes.finfo(dtype).eps)
    x = (0.5 - step * np.arange(8)[:, None] * np.ones(64)).astype(dtype)
    y = (-step / 32 * np.arange(64)).astype(dtype).reshape(1, 64)
    plan, g = Plan(x.shape, {0: whole(8)}), np.ones((1, 64), dtype)
    assert (x.astype(float) - y.astype(float) < 0.5).sum() > (x - y < 0.5).sum()  # some are near only before
    for near in (native.near, reference.near):
        assert np.array_equal(near(plan, 0.5, x, y, g), (abs(x - y) < 0.5).astype(dtype))


# ---- sums by position or by tap round once


def once(terms: list[np.ndarray], dtype: np.dtype) -> np.ndarray:
    """Return the exact sum of finite halves, rounded once to even: by integers, in units of the smallest number."""
    digits, unit = ml_dtypes.finfo(dtype).nmant, -(24 if dtype.name == "float16" else 133)
    exact = [sum(Fraction(float(t[i])) for t in terms) for i in range(len(terms[0]))]
    made = []
    for value in exact:
        size = abs(value)
        place = unit if size == 0 else max(floor(log2(size)) - digits, unit)
        while size and Fraction(2) ** (place + digits + 1) <= size:
            place += 1
        rounded = round(size / Fraction(2) ** place) * Fraction(2) ** place
        most = Fraction(float(ml_dtypes.finfo(dtype).max))
        number = float("inf") if rounded > most else float(rounded)
        made.append(-number if value < 0 else number)
    return np.array(made, np.float64).astype(np.float32).astype(dtype)


def crowded(dtype: np.dtype) -> list[np.ndarray]:
    """Return terms that float32 adds exactly: some that cancel, some that a sum rounded at each step would lose one by one."""
    rng = np.random.default_rng(5)
    made = np.round(rng.standard_normal((5, 400)) * 64) / 64
    made[0, :100], made[1, :100] = 1000, -1000
    one = 2.0 ** (ml_dtypes.finfo(dtype).nmant + 1)
    made[:, 100:200] = np.array([one, 1, 1, 1, 1])[:, None]
    made[:, 200:300] = np.array([-one, -0.5, -1, 0.25, -1])[:, None]
    return list(made.astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("inner", [1, 16])
@np.errstate(all="ignore")
def test_what_taps_bring_to_one_cell_is_rounded_once(dtype, threads, inner):
    terms, times = crowded(dtype), 100 // inner
    g = np.tile(np.stack([np.stack(terms, 1)] * inner, 2), (times, 1, 1))  # many images, 5 windows over the same cell
    plan = Plan((400 * times, 6, inner), {1: Axis(6, range(5), [5, 5, 5, 5, 6])})
    taps = np.broadcast_to(np.arange(4, -1, -1, dtype=np.uint8)[:, None], plan.dest).copy()
    with poolgrad.threads(threads):
        dx = native.place(plan, g, taps)
    assert same(dx, reference.place(plan, g, taps))
    want = np.tile(once(terms, dtype), times)
    for c in range(inner):
        assert same(np.ascontiguousarray(dx[:, 4, c]), want)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("items", [1, 4, 400])
@np.errstate(all="ignore")
def test_what_positions_bring_to_one_cell_is_rounded_once(dtype, threads, items):
    terms, times = crowded(dtype), 100
    size = 400 * times
    g, each = np.tile(np.stack(terms, 1), (times, 1)), size // items
    index = np.broadcast_to(np.arange(each)[:, None], (items, each, 5)).reshape(size, 5)
    with poolgrad.threads(threads):
        dx = pg.unpool(g, index, (size,), items=items)
    assert same(dx, np.tile(once(terms, dtype), times))
    grad = pg.vjp(lambda v: pg.unpooling(index, (size,), items=items).T(v), np.zeros(size, dtype))[1](g)
    assert same(grad, dx)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@np.errstate(all="ignore")
def test_all_ends_of_binades_brought_to_one_cell_are_rounded_once(dtype):
    x = triples(dtype)
    g = np.ascontiguousarray(x.transpose(0, 2, 1).reshape(-1, 3))
    plan = Plan((len(g), 4), {1: Axis(4, [0, 1, 2], [3, 3, 4])})
    taps = np.broadcast_to(np.array([2, 1, 0], np.uint8), plan.dest).copy()
    assert same(native.place(plan, g, taps), reference.place(plan, g, taps))
    index = np.full(g.shape, 2)
    shape = Plan((len(g), 4), {1: Axis(4, [0, 1, 2], [3, 3, 4])})
    assert same(
        native.scatter(shape, len(g), False, g, index, True), reference.scatter(shape, len(g), False, g, index, True)
    )
    finite = np.isfinite(g.astype(np.float32)).all(1)
    some = np.flatnonzero(finite)[:: max(1, finite.sum() // 4000)]
    dx = native.place(plan, g, taps)[some, 2]
    narrow = (
        np.ptp(np.frexp(np.where(g[some] == 0, 1, g[some]).astype(np.float64))[1], axis=1) < 10
    )  # float32 adds those exactly
    assert same(np.ascontiguousarray(dx[narrow]), once([g[some, i][narrow] for i in range(3)], dtype))
    assert narrow.sum() > 100


@np.errstate(all="ignore")
def test_ops_of_tensorflow_still_round_at_each_addition():
    g = np.array([2048, 1, 1], np.float16)
    plan = Plan((4,), {0: Axis(4, [0, 1, 2], [3, 3, 4])})
    x = np.array([0, 0, 1, 0], np.float16)
    assert native.route(plan, x, g)[2] == 2048
    assert native.scatter(plan, 1, True, g, np.full(3, 2))[2] == 2048
    assert native.place(plan, g, np.array([2, 1, 0], np.uint8))[2] == 2050


@pytest.mark.parametrize("inner", [1, 15, 16, 40, 64])
@pytest.mark.parametrize("kind", DTYPES)
def test_padded_means_add_and_divide_in_float32(kind: np.dtype, inner: int) -> None:
    """Numbers far apart, whose float32 sums depend on their order and differ from float64 sums."""
    rng = np.random.default_rng(inner)
    x = (rng.standard_normal((2, 9, 10, inner)) * 2.0 ** rng.integers(-14, 14, (2, 9, 10, inner))).astype(kind)
    wide = np.pad(x.astype(np.float32), ((0, 0), (1, 1), (1, 1), (0, 0)))
    total = np.zeros((2, 9, 10, inner), np.float32)
    for i, j in np.ndindex(3, 3):
        total = total + wide[:, i : i + 9, j : j + 10]
    wanted = (total / np.float32(9)).astype(kind)
    means = pg.avg_pool(x, 3, 1, padding="same", axes=(1, 2), count_include_pad=True)
    np.testing.assert_array_equal(means.view(np.uint16), wanted.view(np.uint16))
    windows = pg.Plan(x.shape, {1: sliding_axis(9, 3, 1, 1, 9), 2: sliding_axis(10, 3, 1, 1, 10)})
    np.testing.assert_array_equal(
        pg.averaging(windows, count_include_pad=True)(x).view(np.uint16), wanted.view(np.uint16)
    )


@pytest.mark.parametrize("window", [2, 3, 5])
@pytest.mark.parametrize("inner", [1, 16, 63, 64, 130])
@pytest.mark.parametrize("kind", DTYPES)
def test_means_are_exact_sums_that_are_rounded_once(kind: np.dtype, inner: int, window: int) -> None:
    rng = np.random.default_rng(window)
    x = (rng.standard_normal((8, 10, inner)) * 2.0 ** rng.integers(-14, 14, (8, 10, inner))).astype(kind)
    views = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (window, window), axis=(0, 1))
    wanted = (views.sum(axis=(-2, -1)) / window**2).astype(np.float32).astype(kind)
    np.testing.assert_array_equal(pg.avg_pool(x, window, 1, axes=(0, 1)).view(np.uint16), wanted.view(np.uint16))
