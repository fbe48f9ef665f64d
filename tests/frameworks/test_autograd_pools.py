"""The pools under HIPS autograd: NumPy's bits and errors, derivatives to the second order in both modes."""

import numpy as np
import pytest
from support import same_bits
from traced_cases import ALL, BAD, LINEAR, Case

autograd = pytest.importorskip("autograd", reason="autograd is not installed")

from autograd.test_util import check_grads  # noqa: E402

import poolgrad as pg  # noqa: E402
import poolgrad.autograd as pool  # noqa: E402

IMAGE = Case("max_pool", (2, 1), {"layout": "NHWC"})


@pytest.mark.parametrize("case", ALL, ids=str)
def test_derivatives_to_the_second_order_are_those_of_differences(case):
    np.random.seed(0)
    check_grads(lambda x: case.run(pool, x), modes=["fwd", "rev"], order=2)(case.x())


@pytest.mark.parametrize("case", LINEAR, ids=str)
def test_values_and_gradients_have_the_bits_of_numpy(case):
    for dtype in (np.float64, np.float32, np.float16):
        x = case.x(dtype)
        y, back = pg.vjp(lambda a: case.run(pg, a), x)
        g = np.resize(case.x(dtype), y.shape)
        pull, got = autograd.make_vjp(lambda a: case.run(pool, a))(x)
        assert same_bits(got, y).all()
        assert same_bits(pull(g), back(g)).all()


@pytest.mark.parametrize("case", BAD, ids=str)
def test_a_bad_call_is_refused_in_the_words_of_numpy(case):
    x = case.x(np.float32)
    with pytest.raises((ValueError, TypeError)) as numpy:
        case.run(pg, x)
    with pytest.raises(numpy.type) as here:
        autograd.make_vjp(lambda a: case.run(pool, a))(x)
    assert str(here.value) == str(numpy.value)


@pytest.mark.parametrize("reduce", ["sum", "assign"])
def test_taps_unpool_as_in_numpy_with_their_derivatives(reduce):
    x = IMAGE.x()
    y, taps = IMAGE.run(pg, x, return_taps=True)
    got, chosen = IMAGE.run(pool, x, return_taps=True)
    assert np.array_equal(chosen.flat(), taps.flat())
    assert np.array_equal(pool.unpool(got, chosen, reduce=reduce), pg.unpool(y, taps, reduce=reduce))
    check_grads(lambda a: pool.unpool(a, chosen, reduce=reduce), modes=["fwd", "rev"], order=2)(y)


def test_the_chosen_cells_do_not_depend_on_who_traces():
    x = IMAGE.x()
    hessian = autograd.hessian(lambda a: (IMAGE.run(pool, a) ** 2).sum())(x).reshape(x.size, x.size)
    assert np.array_equal(hessian, 2 * IMAGE.matrix().T @ IMAGE.matrix())


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


def test_integers_and_casts_follow_the_policy_of_the_numpy_pools():
    assert pool.avg_pool(np.array([1.0, 2.0]), 2, dtype="i8", rounding="ceil").tolist() == [2]
    for x in (np.array([300, 300]), np.array([300.0, 300.0])):
        with pytest.raises(ValueError, match="avg_pool: dtype: got uint8 for a mean of 300"):
            pool.avg_pool(x, 2, dtype="u1")
    with pytest.raises(ValueError, match="sum_pool: x: got a sum of 9223372036854775808"):
        pool.sum_pool(np.array([2**62] * 2), 2)
    assert pool.avg_pool(np.array([2**62] * 2), 2).tolist() == [2.0**62]
    with pytest.raises(TypeError, match="avg_pool: dtype: got 'nonsense'"):
        pool.avg_pool(np.ones(4), 2, dtype="nonsense")


@pytest.mark.parametrize("flag", ["count_include_pad", "ceil_mode"])
def test_what_is_neither_true_nor_false_is_refused(flag):
    with pytest.raises(TypeError, match=f"avg_pool: {flag}: got 'False', wanted True or False"):
        pool.avg_pool(np.ones(4), 2, **{flag: "False"})


@pytest.mark.parametrize("name", ["max_pool", "min_pool", "avg_pool", "sum_pool", "lp_pool"])
def test_foreign_byte_order_gives_the_native_bits(name):
    x = np.arange(1.0, 9.0)
    for dtype in ("f4", "f8"):
        given, foreign = x.astype(dtype), x.astype(np.dtype(dtype).newbyteorder())
        y = getattr(pool, name)(foreign, 2)
        assert y.dtype.isnative
        assert np.array_equal(y, getattr(pool, name)(given, 2))
    gradient = autograd.grad(lambda x: autograd.numpy.sum(getattr(pool, name)(x, 2) ** 2))
    assert np.array_equal(gradient(x.astype(">f8")), gradient(x))
