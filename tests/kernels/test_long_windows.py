"""Long windows slide in tiles: maxima equal those of the plain path, sums of integers are exact, whatever the tile."""

import numpy as np
import pytest
from support import plain_verbs

from poolgrad._kernels import native
from poolgrad._ops.semantics import Mean, Share, Start
from poolgrad.windows import Axis, Plan, same_length, same_pad, sliding_axis

# shape, window and stride by axis; each is cut another way
PLANS = {
    "lanes": ((1, 40, 23, 384), {1: (13, 1), 2: (13, 1)}),
    "columns": ((2, 70, 300, 16), {1: (31, 1), 2: (31, 1)}),
    "rows of one lane": ((17, 45, 130), {1: (31, 1), 2: (29, 1)}),
    "images side by side": ((70, 19, 19), {1: (13, 1), 2: (13, 1)}),
    "slabs": ((1, 12, 90, 80, 4), {1: (5, 1), 2: (5, 1), 3: (5, 1)}),
    "slabs of one lane": ((2, 11, 60, 140), {1: (5, 1), 2: (7, 1), 3: (4, 1)}),
    "strides": ((1, 60, 90, 5), {1: (24, 2), 2: (22, 3)}),
    "far apart": ((1, 61, 150, 8), {1: (3, 7), 2: (101, 1)}),
    "windows longer than the axis": ((1, 17, 64, 5), {0: (1, 1), 1: (35, 3), 2: (22, 2)}),
    "four axes": ((6, 9, 30, 40, 2), {0: (3, 1), 1: (4, 1), 2: (5, 1), 3: (6, 1)}),
}


def axes_of(name: str) -> dict[int, Axis]:
    shape, pooled = PLANS[name]
    sizes = [(a, shape[a], k, s) for a, (k, s) in pooled.items()]
    return {a: sliding_axis(n, k, s, max(same_pad(n, k, s), 0), same_length(n, s)) for a, n, k, s in sizes}


def plans(name: str) -> tuple[Plan, Plan]:
    fast, plain = Plan(PLANS[name][0], axes_of(name)), Plan(PLANS[name][0], axes_of(name))
    native.native(plain, plain=True)
    return fast, plain


def whole(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(-50, 50, shape).astype(np.float32)


def special(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    x = np.round(rng.standard_normal(shape) * 3).astype(np.float32)
    odd = rng.random(shape) < 0.3
    x[odd] = rng.choice(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32), int(odd.sum()))
    return x


def window_sums(x: np.ndarray, axes: dict[int, list[tuple[int, int]]]) -> np.ndarray:
    for axis, pairs in axes.items():
        start, stop = np.array(pairs).T
        upto = np.insert(np.cumsum(x, axis), 0, 0, axis)
        x = upto.take(stop, axis) - upto.take(start, axis)
    return x


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.tobytes() == b.tobytes() or np.where(a != a, 7, a).tobytes() == np.where(b != b, 7, b).tobytes()


@pytest.mark.parametrize("make", [whole, special])
@pytest.mark.parametrize("name", PLANS)
def test_maxima_and_what_follows_them_equal_the_plain_path(name, make):
    fast, plain = plans(name)
    rng = np.random.default_rng(5)
    x, v, g = make(rng, fast.source), make(rng, fast.source), whole(rng, fast.dest)
    for start in (Start.LOWEST, Start.INFINITY):
        assert same(native.select(fast, start, x), native.select(plain, start, x))
    assert same(native.route(fast, x, g), native.route(plain, x, g))
    y = native.select(fast, Start.LOWEST, x)
    y.reshape(-1)[:: y.size // 7 + 1] = 1  # most of these are no maxima
    assert same(native.recall(fast, x, y, v), native.recall(plain, x, y, v))
    assert same(native.near(fast, 1e-5, x, y, g), native.near(plain, 1e-5, x, y, g))


@pytest.mark.parametrize("name", PLANS)
def test_rounding_does_not_depend_on_who_is_near(name):
    fast, plain = plans(name)
    rng = np.random.default_rng(6)
    x, g = (rng.standard_normal(shape).astype(np.float32) for shape in (fast.source, fast.dest))
    y = native.select(fast, Start.LOWEST, x)
    assert same(native.near(fast, 1e-5, x, y, g), native.near(plain, 1e-5, x, y, g))
    assert same(native.near(fast, 0.5, x, y, g), native.near(plain, 0.5, x, y, g))


@pytest.mark.parametrize("name", PLANS)
def test_sums_of_whole_numbers_are_exact(name):
    fast, _ = plans(name)
    rng = np.random.default_rng(7)
    forward = {a: axis.pairs() for a, axis in axes_of(name).items()}
    x = whole(rng, fast.source)
    counts = window_sums(np.ones(fast.source), forward)
    want = window_sums(x.astype(np.float64), forward) / counts
    assert same(native.fold(fast, Mean.EXACT, x), want.astype(np.float32))


@pytest.mark.parametrize("name", PLANS)
def test_gradients_of_means_write_every_cell(name):
    fast, plain = plans(name)
    g = whole(np.random.default_rng(8), fast.dest)
    dx = native.spread(fast, Share.RECIPROCAL, False, g)
    assert same(dx, native.spread(plain, Share.RECIPROCAL, False, g))
    assert abs(dx.sum(dtype=float) - g.sum(dtype=float)) < 0.05 * g.size**0.5


def test_a_mean_of_minus_zeros_is_zero():
    fast, _ = plans("columns")
    assert not np.signbit(native.fold(fast, Mean.EXACT, np.full(fast.source, -0.0, np.float32))).any()


def test_windows_that_neither_begin_nor_end_with_a_block_do_not_slide():
    """Blocks are as long as the longest window; the first window lies inside one."""
    start = np.arange(3, 41)
    rows = Axis(60, start, np.where(start == 3, 9, start + 20))
    plan = Plan((1, 60, 40, 3), {1: rows, 2: sliding_axis(40, 20, 1, 0, 21)})
    x = np.random.default_rng(0).integers(-99, 99, plan.source).astype(np.float32)
    got = native.select(plan, Start.LOWEST, x)
    assert (got == plain_verbs().select(plan, Start.LOWEST, x)).all()
