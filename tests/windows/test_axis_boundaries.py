"""Windows that a caller gives, of every kind, against a walk over their cells."""

from itertools import product

import numpy as np
import pytest
from boundaries import boundaries, one_cell

import poolgrad as pg
from poolgrad import reference
from poolgrad._kernels import native
from poolgrad._ops.semantics import Mean, Share
from poolgrad._windows.cells import window_axes
from poolgrad.windows import MOST_AXES, Axis, Plan, itself, whole

Spelled = list[list[tuple[int, int]]]


def drawn(seed: int) -> tuple[np.ndarray, Spelled]:
    """Return a small array of numbers that differ, and windows along both of its axes."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 7, 2))
    pairs = [list(zip(*(b.tolist() for b in boundaries(rng, n, empty=False)), strict=True)) for n in shape]
    return rng.permutation(shape[0] * shape[1]).reshape(shape).astype(np.float64), pairs


def walked(x: np.ndarray, pairs: Spelled, f) -> np.ndarray:
    """Return f of the cells of every window."""
    return np.array([[f(x[a:b, c:d]) for c, d in pairs[1]] for a, b in pairs[0]])


def spread_back(x: np.ndarray, pairs: Spelled, weight) -> np.ndarray:
    """Return the gradient of the sum of all windows: weight(cells of a window) added over its cells."""
    dx = np.zeros_like(x)
    for (a, b), (c, d) in product(*pairs):
        dx[a:b, c:d] += weight(x[a:b, c:d])
    return dx


@pytest.mark.parametrize("seed", range(120))
def test_pools_over_boundaries_read_the_cells_that_they_name(seed):
    x, pairs = drawn(seed)
    np.testing.assert_array_equal(pg.max_pool(x, pairs), walked(x, pairs, np.max))
    np.testing.assert_array_equal(pg.min_pool(x, pairs), walked(x, pairs, np.min))
    np.testing.assert_array_equal(pg.sum_pool(x, pairs), walked(x, pairs, np.sum))
    np.testing.assert_allclose(pg.avg_pool(x, pairs), walked(x, pairs, np.mean), rtol=1e-15)


@pytest.mark.parametrize("seed", range(120))
def test_gradients_over_boundaries_reach_the_cells_that_they_name(seed):
    x, pairs = drawn(seed)
    best = spread_back(x, pairs, lambda w: (w == w.max()).astype(float))
    np.testing.assert_array_equal(pg.grad(lambda v: pg.max_pool(v, pairs).sum(), x), best)
    mean = spread_back(x, pairs, lambda w: np.full(w.shape, 1 / w.size))
    np.testing.assert_allclose(pg.grad(lambda v: pg.avg_pool(v, pairs).sum(), x), mean, rtol=1e-14)
    y, taps = pg.max_pool(x, pairs, return_taps=True)
    np.testing.assert_array_equal(taps.operator(x), y)
    np.testing.assert_array_equal(x.reshape(-1)[taps.flat()], y)
    np.testing.assert_array_equal(pg.unpool(np.ones_like(y), taps), best)


def test_an_axis_is_the_identity_only_if_its_starts_are_0_1_2():
    assert itself(4).identity
    assert Axis(0, [], []).identity
    assert not Axis(2, [1, 1], [2, 2]).identity
    assert not Axis(2, [0, 0], [1, 1]).identity
    rng = np.random.default_rng(0)
    for n in range(1, 7):
        for _ in range(20):
            start, stop = one_cell(rng, n)
            axis = Axis(n, start, stop)
            assert axis.identity == (start.tolist() == list(range(n)))
            assert (window_axes(Plan((n,), {0: axis}))[0] is None) == axis.identity


# ---- axes that are far apart, or many


def far_apart(between: tuple[int, ...]) -> tuple[np.ndarray, dict[int, Axis]]:
    """Return an array whose first and last axes are pooled, with those between them."""
    shape = (4, *between, 6)
    x = np.random.default_rng(1).integers(0, 9, shape).astype(np.float32)
    return x, {0: Axis(4, [0, 1], [2, 4]), len(shape) - 1: Axis(6, [0, 2, 3], [3, 5, 6])}


@pytest.mark.parametrize("between", [(2,) * 6, (1,) * 30, (2, 1, 3) + (1,) * 20 + (2,), (2,) * 12, (2,) * 14 + (0,)])
def test_axes_between_pooled_ones_do_not_count(between):
    x, axes = far_apart(between)
    flat = x.reshape(4, -1, 6) if x.size else np.zeros((4, 0, 6), np.float32)
    plan, same = Plan(x.shape, axes), Plan(flat.shape, {0: axes[0], 2: axes[x.ndim - 1]})
    assert len(plan.axes) <= MOST_AXES
    for verb, *words in (("fold", Mean.TOTAL), ("choose",)):
        got, want = (getattr(native, verb)(p, *words, v) for p, v in ((plan, x), (same, flat)))
        got, want = (r[0] if isinstance(r, tuple) else r for r in (got, want))
        np.testing.assert_array_equal(got, want.reshape(got.shape))
    g = np.ones(plan.dest, np.float32)
    dx = native.spread(plan, Share.RECIPROCAL, False, g)
    np.testing.assert_array_equal(dx, reference.spread(plan, Share.RECIPROCAL, False, g))
    ends = (0, x.ndim - 1)
    pairs = [axes[d].pairs() for d in ends]
    y, taps = pg.max_pool(x, pairs, axes=ends, return_taps=True)
    np.testing.assert_array_equal(x.reshape(-1)[taps.flat()], y)


def test_a_pool_over_everything_takes_as_many_axes_as_an_array_has():
    x = np.random.default_rng(1).permutation(2**18).reshape((2,) * 18 + (1,) * 12).astype(np.float64)
    assert pg.global_max_pool(x).item() == 2**18 - 1
    assert pg.global_avg_pool(x).item() == (2**18 - 1) / 2


def test_too_many_pooled_axes_are_refused_by_name():
    with pytest.raises(ValueError, match=r"^max_pool: x: got 20 pooled axes, wanted at most 16$"):
        pg.max_pool(np.zeros((2,) * 20, np.uint8), [[(0, 1), (0, 2)]] * 20)
    with pytest.raises(ValueError, match=r"^Plan: source: got 9 pooled axes and 8 between them, wanted at most 16$"):
        Plan((2,) * 17, {d: whole(2) for d in range(0, 17, 2)})


def test_many_pooled_axes_in_any_order_of_memory():
    x = np.random.default_rng(1).integers(0, 99, (2,) * 12)
    axes = tuple(range(10))
    np.testing.assert_array_equal(pg.max_pool(x.T, 2, axes=axes), x.T.max(axes, keepdims=True))
