"""The pools under HIPS autograd: byte orders, arrays that change later, derivatives through closures, halves."""

import numpy as np
import pytest

autograd = pytest.importorskip("autograd", reason="autograd is not installed")

import poolgrad.autograd as pool  # noqa: E402


@pytest.mark.parametrize("op", ["max_pool", "min_pool", "avg_pool", "sum_pool", "lp_pool"])
def test_foreign_byte_orders_have_values_and_derivatives(op):
    for dtype in (">f2", ">f4", ">f8"):
        x = np.array([1, 3, 2, 5], dtype)
        native = x.astype(x.dtype.newbyteorder("="))
        pull, y = autograd.make_vjp(lambda a: getattr(pool, op)(a, 2))(x)
        same, want = autograd.make_vjp(lambda a: getattr(pool, op)(a, 2))(native)
        assert y.dtype.isnative
        assert y.tolist() == want.tolist()
        assert pull(np.ones(2, y.dtype)).tolist() == same(np.ones(2, y.dtype)).tolist()
        tangents = (autograd.make_jvp(lambda a: getattr(pool, op)(a, 2))(a)(a)[1] for a in (x, native))
        assert len({tuple(t.tolist()) for t in tangents}) == 1


@pytest.mark.parametrize("ties", ["first", "last", "all", "split"])
def test_an_array_that_changes_later_does_not_change_the_gradient(ties):
    x = np.array([3.0, 3.0, 1.0, 2.0])
    pull, _ = autograd.make_vjp(lambda a: pool.max_pool(a, 2, ties=ties))(x)
    want = pull(np.ones(2)).copy()
    x[:] = 0
    assert pull(np.ones(2)).tolist() == want.tolist() != [0, 0, 0, 0]


def test_nested_derivatives_through_closures_keep_outer_variables():
    ones, a = np.ones(2), np.array([3.0, 5.0])

    def outer(a):  # a * d/db sum(a * b) = a * a
        return (a * autograd.grad(lambda b: (a * pool.avg_pool(b, 1)).sum())(ones)).sum()

    assert autograd.grad(outer)(a).tolist() == [6.0, 10.0]

    def deep(a):  # a0 * max(a * a)
        inner = autograd.grad(lambda b: pool.avg_pool(a * b, 1).sum())(ones)
        return (a[:1] * pool.max_pool(a * inner, 2)).sum()

    assert autograd.grad(deep)(a).tolist() == [25.0, 30.0]
    assert autograd.grad(lambda a: (autograd.grad(deep)(a) * ones).sum())(a).tolist() == [10.0, 16.0]


def test_powers_of_halves_do_not_overflow():
    assert pool.lp_pool(np.array([300, 400], np.float16), 2).tolist() == [500]


def test_lp_pool_refuses_in_its_own_name():
    with pytest.raises(ValueError, match=r"^lp_pool: padding: got window 0 of axis 0 without a cell"):
        pool.lp_pool(np.ones(2), 1, padding=1)
