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
    assert case.refused_alike(lambda x: autograd.make_vjp(lambda a: case.run(pool, a))(x))


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
