"""Derivatives of functions that use the variables of functions around them: exact, at any depth, in any mixture."""

import copy
import pickle
from fractions import Fraction
from itertools import product

import ml_dtypes
import numpy as np
import pytest
from support import same_bits
from towers import Taped, depends, depth, program

import poolgrad as pg

PROGRAMS = 480
rng = np.random.default_rng(5)


@pytest.mark.parametrize("part", range(8))
def test_random_nested_programs_have_the_derivatives_of_exact_numbers(part):
    wrong = []
    for seed in range(part, PROGRAMS, 8):
        made, want = program(seed)
        got = Taped().run(made, {})
        if not np.array_equal(got, want):
            wrong.append(f"towers.program({seed}): got {got}, wanted {want}\n    {made}")
    assert not wrong, "\n".join(wrong[:3])


def test_random_programs_are_nested_and_use_outer_variables():
    made = [program(seed)[0] for seed in range(80)]
    assert {depth(p) for p in made} == {1, 2, 3, 4}

    def closes(e):
        """Tell if a derivative inside uses a variable from outside, at a constant."""
        if not isinstance(e, tuple):
            return False
        inner = len(e) == 5 and e[3][0] == "const" and depends(e[2]) - {e[1]}
        return bool(inner) or any(map(closes, e[1:]))

    assert sum(map(closes, made)) > 20


def test_an_inner_gradient_keeps_its_dependence_on_an_outer_variable():
    a = np.array([3.0, 5.0])
    assert pg.grad(lambda a: (a * pg.grad(lambda b: (a * b).sum(), np.ones(2))).sum(), a).tolist() == [6, 10]


def test_perturbations_are_not_confused():
    one = np.array(1.0)
    for inner in (
        lambda x: pg.grad(lambda y: x + y, np.array(2.0)),
        lambda x: pg.jvp(lambda y: x + y, np.array(2.0), one)[1],
        lambda x: pg.vjp(lambda y: x + y, np.array(2.0))[1](one),
        lambda x: pg.grad(lambda y: x + y, x),  # the same place, another start
    ):
        assert pg.grad(lambda x, f=inner: x * f(x), one) == 1
        assert pg.jvp(lambda x, f=inner: x * f(x), one, one)[1] == 1
    assert pg.grad(lambda x: x * pg.grad(lambda y: x * y * y, x), np.array(3.0)) == 6 * 9  # x * 2x**2


@pytest.mark.parametrize("deep", [1, 2, 3, 4])
def test_closures_of_any_depth(deep):
    """The k-th function multiplies by all variables around it: d/dv1 ... d/dvk of (v1 v2 ... vk)**2 at constants."""
    at = [np.array([1.5, -2.0]), np.array([3.0, 0.5]), np.array([-1.0, 4.0]), np.array([2.0, 0.25])][:deep]

    def level(k, product):
        if k == deep:
            return (product * product).sum()
        return pg.grad(lambda v: level(k + 1, v if product is None else product * v), at[k]).sum()

    got = pg.grad(lambda v: level(1, v), at[0])
    exact = [2**deep * np.prod([Fraction(a[i]) for a in at]) for i in range(2)]
    assert got.tolist() == [float(e) for e in exact]


MODES = {
    "grad": lambda f, x: pg.grad(lambda v: f(v).sum(), x),
    "vjp": lambda f, x: pg.vjp(f, x)[1](np.ones(2)),
    "jvp": lambda f, x: pg.jvp(f, x, np.ones(2))[1],
    "vjp by a variable": lambda f, x: pg.vjp(f, x)[1](x * 0 + 1),
    "jvp by a variable": lambda f, x: pg.jvp(f, x, x * 0 + 1)[1],
}


@pytest.mark.parametrize("modes", list(product(MODES, repeat=3)), ids=" in ".join)
def test_mixtures_of_all_orders(modes):
    """Of a*b*b*c*c*c cell by cell, at constants: 1 * 2b * 3c**2, times the outer variables where they are used."""
    a, b, c = np.array([2.0, -1.0]), np.array([0.5, 3.0]), np.array([4.0, -2.0])
    outer, middle, inner = (MODES[m] for m in modes)
    got = outer(lambda u: middle(lambda v: inner(lambda w: u * v * v * w * w * w, c), b), a)
    assert isinstance(got, np.ndarray)
    assert got.tolist() == (2 * b * 3 * c * c).tolist()
    again = outer(lambda u: u * middle(lambda v: v * inner(lambda w: u * v * w * w, c), b), a)
    assert again.tolist() == (2 * a * 2 * b * 2 * c).tolist()


def test_results_are_variables_wherever_a_variable_took_part():
    seen = []

    def outer(a):
        b = np.ones(2)
        y, back = pg.vjp(lambda v: v * 2, b)
        seen.append(("no variable", y, back(b), pg.grad(lambda v: v.sum(), b), *pg.jvp(lambda v: v * 2, b, b)))
        y, back = pg.vjp(lambda v: v + a, b)
        seen.append(("closure", y, back(b), pg.grad(lambda v: (v + a).sum(), b), *pg.jvp(lambda v: v + a, b, b)))
        y, back = pg.vjp(lambda v: v * 2, a)
        seen.append(("x", y, back(b), pg.grad(lambda v: v.sum(), a), *pg.jvp(lambda v: v * 2, a, b)))
        seen.append(("g or v", pg.vjp(lambda v: v * 2, b)[1](a), *pg.jvp(lambda v: v * 2, b, a)))
        y, back = pg.vjp(lambda v: a, b)
        seen.append(("f returns the closure's variable", y, back(b), *pg.jvp(lambda v: a, b, b)))
        deeper = pg.grad(lambda v: pg.grad(lambda w: (w + v + a).sum(), b).sum(), b)
        seen.append(("a closure two functions away", deeper))
        return (a * deeper).sum()

    assert pg.grad(outer, np.array([1.0, 2.0])).tolist() == [0, 0]
    for case, *results in seen:
        assert {isinstance(r, pg.Var) for r in results} == {case != "no variable"}, case
    by_hand = pg.Var(np.array([3.0, 4.0]))
    assert isinstance(pg.grad(lambda v: (by_hand * v).sum(), np.ones(2)), pg.Var)
    made_inside = pg.grad(lambda v: (pg.Var(np.array([3.0, 4.0])) * v).sum(), np.ones(2))
    assert made_inside.tolist() == [3, 4]
    y, back = pg.vjp(lambda v: pg.Var(np.array([3.0, 4.0])) * v, np.ones(2))
    assert pg.vjp(back, y)[0].tolist() == [9, 16]


def test_functions_that_ignore_x_have_derivative_zero():
    a = np.array([3.0, 5.0])

    def outer(a):
        y, back = pg.vjp(lambda b: a, np.ones(3))
        assert y.value.tolist() == [3, 5]
        dx = back(np.ones(2))
        assert dx.value.tolist() == [0, 0, 0]
        _, dy = pg.jvp(lambda b: a * a, np.ones(3), np.ones(3))
        assert dy.value.tolist() == [0, 0]
        zero = pg.grad(lambda b: (a**0).sum(), np.ones(3))
        return (a * y).sum() + dx.sum() + dy.sum() + zero.sum()

    assert pg.grad(outer, a).tolist() == [6, 10]


def test_pullbacks_may_be_called_often_and_after_the_outer_function_returned():
    kept = []

    def outer(a):
        y, back = pg.vjp(lambda b: a * b * b, np.array([1.0, 2.0]))
        kept.append(back)
        return (back(np.ones(2)) * back(np.array([1.0, 3.0])) + y).sum()

    y, back = pg.vjp(outer, np.array([3.0, 5.0]))
    # 4 a a b b (1, 3) + a b b
    assert y == 4 * 9 + 3 + 3 * 4 * 25 * 4 + 5 * 4
    want = [8 * 3 + 1, 3 * 8 * 5 * 4 + 4]
    for _ in range(3):
        assert back(1.0).tolist() == want
        late = kept[0](np.array([1.0, 10.0]))
        assert isinstance(late, pg.Var)
        assert late.value.tolist() == [6, 200]


def test_a_pullback_is_differentiated_by_its_cotangent():
    x = np.array([1.0, 2.0, 3.0, 4.0])
    _, back = pg.vjp(lambda v: pg.max_pool(v, 2) ** 2, x)
    twice, again = pg.vjp(back, np.ones(2))  # all functions have returned: results are arrays
    assert twice.tolist() == [0, 4, 0, 8]
    assert again(np.ones(4)).tolist() == [4, 8]
    assert pg.jvp(back, np.ones(2), np.array([1.0, 0.5]))[1].tolist() == [0, 4, 0, 4]
    for pool in (pg.lp_pool, pg.avg_pool, pg.min_pool):
        _, back = pg.vjp(lambda v, p=pool: p(v, 2) ** 2, x)
        assert isinstance(pg.vjp(back, np.ones(2))[0], np.ndarray)


def test_a_variable_whose_function_returned_is_a_constant():
    kept = []
    pg.grad(lambda a: kept.append(a * 2) or a.sum(), np.array([3.0, 5.0]))
    assert pg.grad(lambda b: (kept[0] * b).sum(), np.ones(2)).tolist() == [6, 10]


def test_a_function_that_fails_leaves_nothing_behind():
    kept = []
    for derive in (pg.vjp, pg.grad, lambda f, x: pg.jvp(f, x, x)):
        with pytest.raises(ZeroDivisionError):
            derive(lambda a: kept.append(a) or 1 / 0, np.ones(2))
        assert pg.grad(lambda b: (kept[-1] * b).sum(), np.ones(2)).tolist() == [1, 1]


@pytest.mark.parametrize("p", [1, 2, 3])
def test_lp_pools_inside_closures(p):
    """lp_pool(x)**p is the sum of abs(x)**p, whose derivative by a of a derivative by b is known."""
    a, b = np.array([1.5, 2.0, 0.5, 3.0]), np.array([0.5, 1.0, 2.0, 0.25])
    got = pg.grad(lambda u: pg.grad(lambda v: (pg.lp_pool(u * v, 2, p=p) ** p).sum(), b).sum(), a)
    assert np.allclose(got, p * p * a ** (p - 1) * b ** (p - 1), rtol=1e-12)


def test_tapes_may_be_long_and_inner_derivatives_many():
    def outer(a):
        for _ in range(400):
            a = pg.grad(lambda b, a=a: (a * b).sum(), np.ones(2)) * 1.0 + 0.0 * a
            assert len(a.levels) <= 2
        return a.sum()

    assert pg.grad(outer, np.ones(2)).tolist() == [1, 1]

    def long(x):
        for _ in range(20000):
            x = x + 1.0
        return x.sum()

    assert pg.grad(long, np.ones(2)).tolist() == [1, 1]


# ---- arithmetic


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ml_dtypes.bfloat16])
def test_values_have_the_bits_of_numpys_arithmetic(dtype):
    x, y = ((rng.choice([-1, 1], 4000) * rng.uniform(0.1, 9, 4000)).astype(dtype) for _ in range(2))
    for name, f in {
        "x / y": lambda a, b: a / b,
        "x - y": lambda a, b: a - b,
        "-x": lambda a, b: -a,
        "x + y": lambda a, b: a + b,
        "x * y": lambda a, b: a * b,
        "3 / x": lambda a, b: 3 / a,
        "3 - x": lambda a, b: 3 - a,
    }.items():
        want = f(x, y)
        assert same_bits(pg.vjp(lambda a, f=f: f(a, y), x)[0], want).all(), f"{name}, y an array"
        assert same_bits(pg.vjp(lambda b, f=f: f(pg.Var(x), b), y)[0], want).all() or name == "-x", name


def test_quotients_have_exact_derivatives():
    a, b = np.array([3.0, -8.0]), np.array([2.0, 0.5])
    assert pg.grad(lambda v: (v / b).sum(), a).tolist() == (1 / b).tolist()
    assert pg.grad(lambda v: (a / v).sum(), b).tolist() == (-a / b**2).tolist()
    assert pg.grad(lambda u: pg.grad(lambda v: (u / v).sum(), b).sum(), a).tolist() == (-1 / b**2).tolist()
    assert pg.grad(lambda u: pg.grad(lambda v: (6 / v).sum(), u).sum(), b).tolist() == (12 / b**3).tolist()


def test_constants_take_the_variables_dtype_and_a_derivative_that_of_its_variable():
    x, wide = np.array([1.0, 2.0], np.float32), np.array([3.0, 4.0])
    for f in (lambda v: v * wide, lambda v: wide / v, lambda v: v - wide, lambda v: v ** np.float64(2)):
        y, back = pg.vjp(f, x)
        assert y.dtype == back(wide).dtype == np.float32
        assert {r.dtype for r in pg.jvp(f, x, wide)} == {np.dtype(np.float32)}
    kinds = []

    def outer(u):  # float64 inside, and a float32 variable in the same product
        kinds.append(pg.grad(lambda v: (u * v).sum(), x).dtype)
        _, dy = pg.jvp(lambda v: u * v, x, x)
        kinds.append(dy.dtype)
        return (u * dy).sum()

    assert pg.grad(outer, wide).dtype == np.float64
    assert kinds == [np.float32, np.float64]
    assert pg.grad(lambda v: (v * np.arange(6.0).reshape(3, 2)).sum(), x).tolist() == [6, 9]


# ---- refusals


def test_errors_name_the_function_and_its_argument():
    x = np.arange(4.0)

    def square(v):
        return (v * v).sum()

    for op, call in {
        "vjp": pg.vjp,
        "grad": pg.grad,
        "jvp": lambda f, x: pg.jvp(f, x, np.zeros(4)),
    }.items():
        for given in (np.arange(4), np.array([1j]), np.array(["a"]), np.array([True])):
            with pytest.raises(TypeError, match=f"^{op}: x: got .*, wanted a floating dtype"):
                call(square, given)
        with pytest.raises(TypeError, match=f"^{op}: x: got None"):
            call(square, None)
        with pytest.raises(TypeError, match=f"^{op}: f: got 3, wanted a function"):
            call(3, x)
        with pytest.raises(TypeError, match=f"^{op}: f: got a function that returned"):
            call(lambda v: np.ones(()), x)
    with pytest.raises(ValueError, match=r"^grad: f: got a function to shape \[4\]"):
        pg.grad(lambda v: v * v, x)
    with pytest.raises(ValueError, match=r"^jvp: v: got shape \[3\], wanted \[4\]"):
        pg.jvp(square, x, np.ones(3))
    for given in ("text", None, np.array([1j] * 4), [object()]):
        with pytest.raises(TypeError, match=r"^jvp: v: got"):
            pg.jvp(square, x, given)
        with pytest.raises(TypeError, match=r"^vjp: g: got"):
            pg.vjp(lambda v: v * v, x)[1](given)
    with pytest.raises(ValueError, match=r"^vjp: g: got shape \[1\], wanted \[4\]"):
        pg.vjp(lambda v: v * v, x)[1](np.ones(1))


@pytest.mark.parametrize(
    ("f", "error", "text"),
    [
        (lambda v: v + np.ones(3), ValueError, r"\+: got shapes \[4\] and \[3\], wanted shapes that broadcast"),
        (lambda v: v / np.ones(3), ValueError, r"/: got shapes \[4\] and \[3\]"),
        (lambda v: np.ones(3) - v, ValueError, r"-: got shapes \[3\] and \[4\]"),
        (lambda v: v * "text", TypeError, r"\*: got 'text'"),
        (lambda v: v * 1j, TypeError, r"\*: got "),
        (lambda v: v + 10**400, TypeError, r"\+: got "),
        (lambda v: v ** (10**400), TypeError, r"\*\*: got "),
        (lambda v: v ** np.ones(4), TypeError, r"\*\*: got .*, wanted a number as exponent"),
        (lambda v: v**v, TypeError, r"\*\*: got a variable as exponent, wanted a number"),
        (lambda v: v.reshape(3), ValueError, r"reshape: got \(3,\), wanted a shape of as many cells as \[4\]"),
    ],
)
def test_arithmetic_that_has_no_result_is_refused_by_name(f, error, text):
    with pytest.raises(error, match=f"^Var: {text}"):
        pg.vjp(f, np.ones(4))


def test_variables_are_not_pickled_and_a_copy_is_the_same_variable():
    def f(v):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(TypeError, match=r"^Var: pickle: got a variable"):
                pickle.dumps(v, protocol)
        return (copy.copy(v) * copy.deepcopy([v])[0]).sum()

    assert pg.grad(f, np.array([1.0, 2.0])).tolist() == [2, 4]
