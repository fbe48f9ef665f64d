"""Every pool is a linear operator with the right transpose, and the tape composes them to any order."""

from fractions import Fraction

import numpy as np
import pytest
from brute import WORDS

import poolgrad as pg

rng = np.random.default_rng(3)


def operators(shape, words):
    x = rng.integers(0, 5, shape)
    plan = pg.plan(shape, **words)
    for ties in ("first", "last", "all"):
        yield f"max {ties}", pg.max_operator(x, plan, ties=ties)[1]
        yield f"min {ties}", pg.min_operator(x, plan, ties=ties)[1]
    yield "sum", pg.summing(plan)
    _, taps = pg.max_pool(x, **words, return_taps=True)
    yield "unpool", pg.unpooling(taps)
    yield "unpool assign", pg.unpooling(taps, reduce="assign")


@pytest.mark.parametrize(("shape", "words"), WORDS, ids=lambda v: str(v))
def test_an_operator_and_its_transpose_agree_exactly_on_integers(shape, words):
    for name, P in operators(shape, words):
        v, g = rng.integers(-9, 9, P.source), rng.integers(-9, 9, P.dest)
        assert (P(v) * g).sum() == (v * P.T(g)).sum(), name
        assert P.T.T is P


@pytest.mark.parametrize(("shape", "words"), WORDS, ids=lambda v: str(v))
def test_means_and_shares_agree_with_their_transposes(shape, words):
    plan = pg.plan(shape, **words)
    x = rng.integers(0, 3, shape).astype(float)
    for P in (
        pg.averaging(plan),
        pg.averaging(plan, count_include_pad=True),
        pg.averaging(plan, divisor=3),
        pg.max_operator(x, plan, ties="split")[1],
    ):
        assert np.allclose(P.matrix(), P.T.matrix().T, rtol=1e-15, atol=0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_gradients_of_halves_are_rounded_once(dtype):
    plan = pg.plan((40,), 9, 1)
    g = rng.standard_normal(plan.dest).astype(dtype)
    exact = [sum((Fraction(float(g[i])) / 9 for i in range(32) if i <= j < i + 9), Fraction(0)) for j in range(40)]
    dx = pg.averaging(plan).T(g)
    digits = {"float16": 2**-11, "float32": 2**-21, "float64": 2**-50}[dtype]
    assert all(abs(float(a) - float(b)) <= digits * max(abs(float(b)), 0.1) for a, b in zip(dx, exact, strict=True))


@pytest.mark.parametrize(("shape", "words"), WORDS, ids=lambda v: str(v))
def test_a_matrix_has_the_bits_of_the_operator_on_unit_arrays(shape, words):
    plan, x = pg.plan(shape, **words), rng.integers(0, 3, shape).astype(float)
    split = pg.max_operator(x, plan, ties="split")[1]
    for P in (pg.averaging(plan), pg.averaging(plan, count_include_pad=True), pg.averaging(plan, divisor=7), split):
        for Q in (P, P.T):
            columns = [Q(unit.reshape(Q.source)).reshape(-1) for unit in np.eye(int(np.prod(Q.source)))]
            assert np.array_equal(Q.matrix(), np.stack(columns, 1))


def test_a_matrix_is_refused_before_it_is_made():
    for P, shape, arrow in (
        (pg.averaging(pg.plan((512, 512), 2)), [65536, 262144], "[512, 512] -> [256, 256]"),
        (pg.summing(pg.plan((512, 512), 2)).T, [262144, 65536], "[256, 256] -> [512, 512]"),
        (pg.unpooling(np.arange(8192), (8192,)), [8192, 8192], "[8192] -> [8192]"),
    ):
        with pytest.raises(MemoryError) as error:
            P.matrix()
        text = f"{P.name}: matrix: got a matrix of shape {shape} for {arrow}: {8 * shape[0] * shape[1]} bytes, wanted at most"
        assert str(error.value).startswith(text)
        assert "apply P(v) and P.T(g) to arrays instead" in str(error.value)
    few = pg.summing(pg.plan((1 << 20,), 1 << 20))  # one row, many columns: go by rows, or take hours
    assert few.matrix().shape == (1, 1 << 20)
    assert few.T.matrix().all()


def towers():
    """Yield functions to a single number, by name, smooth at the points where they are tried."""
    x = rng.permutation(64).reshape(8, 8) / 8.0
    plan = [pg.Axis(8, [0, 1, 4, 5], [1, 5, 5, 8]), pg.Axis(8, [0, 2, 3], [3, 4, 8])]

    def square(y):
        return (y * y * y).sum()

    yield "max", lambda v: square(pg.max_pool(v, 2)), x
    yield "min, dilated", lambda v: square(pg.min_pool(v, 2, dilation=3, padding=1)), x
    yield "avg", lambda v: square(pg.avg_pool(v, 3, 2, padding=1, count_include_pad=True)), x
    yield "sum of max", lambda v: square(pg.sum_pool(pg.max_pool(v, 2, 1), 2)), x
    yield "lp", lambda v: square(pg.lp_pool(v + 1, 2, p=3)), x
    yield "fractional max", lambda v: square(pg.fractional_max_pool(v, 1.5, seed=4)), x
    yield "fractional avg", lambda v: square(pg.fractional_avg_pool(v, 1.5, seed=4, overlapping=True)), x
    yield "boundaries", lambda v: square(pg.max_pool(v, plan)), x
    yield "adaptive", lambda v: square(pg.adaptive_avg_pool(v, (3, 5))), x
    yield "global", lambda v: square(pg.global_max_pool(v, axes=1, keepdims=False)), x
    yield "split ties", lambda v: square(pg.max_pool(v, 2, ties="split")), x


TOWERS = {name: (f, x) for name, f, x in towers()}


def slope(f, x, v, h=1e-4):
    return (f(x + h * v) - f(x - h * v)) / (2 * h)


@pytest.mark.parametrize("name", TOWERS)
def test_derivatives_of_orders_one_to_three_are_slopes_of_the_order_below(name):
    f, x = TOWERS[name]
    v = rng.standard_normal(x.shape)

    def value(z):
        return f(pg.Var(z)).value

    def first(z):
        return pg.grad(f, z)

    def second(z):
        return pg.jvp(lambda u: pg.grad(f, u), z, v)[1]

    third = pg.jvp(lambda u: pg.jvp(lambda w: pg.grad(f, w), u, v)[1], x, v)[1]
    assert np.isclose((first(x) * v).sum(), slope(value, x, v), rtol=1e-5, atol=1e-6)
    assert np.isclose(pg.jvp(f, x, v)[1], (first(x) * v).sum())
    assert np.allclose(second(x), slope(first, x, v), rtol=1e-5, atol=1e-5)
    assert np.allclose(third, slope(second, x, v), rtol=1e-5, atol=1e-4)


def test_the_tower_has_tensorflows_numbers():
    x = rng.standard_normal((2, 6, 6, 3)).astype(np.float32)
    sizes = {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    y, P = pg.max_operator(x, pg.plan(x.shape, 3, 2, padding="same", layout="NHWC"))
    g, v = rng.standard_normal(y.shape).astype(np.float32), rng.standard_normal(x.shape).astype(np.float32)
    raw = pg.raw_ops
    assert np.array_equal(y, raw.MaxPool(input=x, **sizes))
    assert np.array_equal(P.T(g), raw.MaxPoolGrad(orig_input=x, orig_output=y, grad=g, **sizes))
    assert np.array_equal(P(v), raw.MaxPoolGradGrad(orig_input=x, orig_output=y, grad=v, **sizes))
    A = pg.averaging(pg.plan(x.shape, 3, 2, padding="same", layout="NHWC"))
    assert np.array_equal(A(x), raw.AvgPool(value=x, **sizes))
    assert np.array_equal(A.T(g), raw.AvgPoolGrad(orig_input_shape=x.shape, grad=g, **sizes))


def test_what_cannot_be_differentiated_is_said():
    with pytest.raises(TypeError, match="vjp: x: got dtype int64, wanted a floating dtype"):
        pg.vjp(lambda x: pg.max_pool(x, 2), np.arange(4))
    with pytest.raises(TypeError, match="Var: an array that is being differentiated"):
        pg.vjp(lambda x: np.sin(np.asarray(x)), np.arange(4.0))
    with pytest.raises(TypeError, match="vjp: f: got a function that returned"):
        pg.vjp(lambda x: 3.0, np.arange(4.0))
    with pytest.raises(ValueError, match=r"vjp: g: got shape \[3\], wanted \[2\]"):
        pg.vjp(lambda x: pg.max_pool(x, 2), np.arange(4.0))[1](np.ones(3))
    with pytest.raises(ValueError, match=r"grad: f: got a function to shape \[2\]"):
        pg.grad(lambda x: pg.max_pool(x, 2), np.arange(4.0))
