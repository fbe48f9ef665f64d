"""A gradient op is the transpose of its forward op: <A x, g> = <x, A' g>, exactly, on whole numbers."""

from math import lcm, prod

import numpy as np
import pytest
from support import FAST, Case, arguments, draw, outputs, rng_of

from poolgrad import raw_ops
from poolgrad._ops.table import OPS

FLAT = [
    {"x": (2, 6, 7, 3), "k": (2, 2), "s": (2, 2), "pad": "VALID"},
    {"x": (1, 7, 5, 4), "k": (3, 2), "s": (1, 1), "pad": "SAME"},
    {"x": (1, 9, 8, 2), "k": (3, 3), "s": (2, 3), "pad": "SAME"},
    {"x": (1, 6, 6, 5), "k": (2, 3), "s": (4, 2), "pad": "VALID"},
    {"x": (2, 5, 6, 3), "k": (3, 2), "s": (1, 2), "pad": "SAME", "first": True},
]
SOLID = [
    {"x": (1, 4, 4, 6, 2), "k": (2, 2, 2), "s": (2, 2, 2), "pad": "VALID"},
    {"x": (2, 3, 5, 4, 3), "k": (2, 3, 2), "s": (1, 2, 1), "pad": "SAME"},
    {"x": (1, 3, 4, 5, 2), "k": (3, 2, 2), "s": (2, 1, 2), "pad": "SAME", "first": True},
]
DRAWN = [
    {"x": (2, 9, 8, 3), "ratio": (1.6, 1.4), "overlapping": over, "pseudo": pseudo}
    for over in (False, True)
    for pseudo in (False, True)
]


def dot(a: np.ndarray, b: np.ndarray) -> float:
    """Return the dot product: exact as long as every product and sum is a whole number below 2**53."""
    return float((a * b).sum())


def whole(text: str, shape: tuple[int, ...], factor: int = 1) -> np.ndarray:
    return rng_of(text).integers(-9, 10, shape).astype(np.float64) * factor


def sizes(case: Case) -> dict:
    return {
        k: v
        for k, v in arguments(case).items()
        if k in ("ksize", "strides", "padding", "explicit_paddings", "data_format")
    }


def divisor(case: Case) -> int:
    """Return a number that every window's count divides, so that every share is whole."""
    return lcm(*range(1, max(case.window) + 1)) ** len(case.window)


@pytest.mark.parametrize(
    "case",
    [Case("AvgPool", "float64", **g) for g in FLAT] + [Case("AvgPool3D", "float64", **g) for g in SOLID],
    ids=repr,
)
def test_averages_and_their_gradients_are_adjoint(case):
    forward = "value" if case.op == "AvgPool" else "input"
    x, g = whole(f"x{case!r}", case.source, divisor(case)), whole(f"g{case!r}", case.dest)
    y = FAST[case.op](**{forward: x}, **sizes(case))
    dx = FAST[case.op + "Grad"](orig_input_shape=np.array(case.source, np.int32), grad=g, **sizes(case))
    left, right = dot(y, g), dot(x, dx)
    assert y.tolist() == np.round(y).tolist(), "the mean of multiples is whole"
    # The gradients multiply by a rounded 1/count (in the 3-D op rounded to float32): exact only for powers of two.
    bound = (1e-15 if case.op == "AvgPool" else 1e-7) * float(np.abs(x).sum() * np.abs(g).max())
    assert abs(left - right) <= bound, f"{left} != {right}: {case!r}"


@pytest.mark.parametrize("k", [(2, 2), (4, 1), (1, 2), (4, 2)])
@pytest.mark.parametrize("name", ["AvgPool", "AvgPool3D"])
def test_averages_over_powers_of_two_are_exactly_adjoint(name, k):
    k = k if name == "AvgPool" else (2, *k)
    case = Case(name, "float64", x=(2, *(2 * n + 3 for n in k), 3), k=k, s=(1,) * len(k), pad="VALID")
    x, g = whole("x", case.source), whole("g", case.dest)
    y = FAST[name](**{"value" if name == "AvgPool" else "input": x}, **sizes(case))
    dx = FAST[name + "Grad"](orig_input_shape=np.array(case.source, np.int32), grad=g, **sizes(case))
    assert dot(y, g) == dot(x, dx), repr(case)


@pytest.mark.parametrize("case", [Case("FractionalAvgPool", "float64", **g) for g in DRAWN], ids=repr)
def test_fractional_averages_and_their_gradients_are_adjoint(case):
    args = arguments(case)
    x, g = whole("x", case.source, 36), whole("g", case.dest, 36)
    y, rows, cols = raw_ops.FractionalAvgPool(**{**args, "value": x})
    dx = raw_ops.FractionalAvgPoolGrad(
        orig_input_tensor_shape=np.array(case.source),
        out_backprop=g,
        row_pooling_sequence=rows,
        col_pooling_sequence=cols,
        overlapping=case.overlapping,
    )
    assert dot(y, g) == dot(x, dx), repr(case)


def distinct(text: str, shape: tuple[int, ...]) -> np.ndarray:
    return draw(rng_of(text), "float64", shape, "distinct")


@pytest.mark.parametrize("case", [Case("FractionalMaxPool", "float64", **g) for g in DRAWN], ids=repr)
def test_the_fractional_maximum_is_the_transpose_of_its_gradient_at_x(case):
    x, g = distinct("x", case.source), whole("g", case.dest)
    y, rows, cols = raw_ops.FractionalMaxPool(**{**arguments(case), "value": x})
    dx = raw_ops.FractionalMaxPoolGrad(
        orig_input=x,
        orig_output=y,
        out_backprop=g,
        row_pooling_sequence=rows,
        col_pooling_sequence=cols,
        overlapping=case.overlapping,
    )
    assert dot(y, g) == dot(x, dx), repr(case)


MAXIMA = [("MaxPool", g) for g in FLAT] + [("MaxPool3D", g) for g in SOLID] + [("MaxPoolV2", g) for g in FLAT]
EXPLICIT = [("MaxPool", {"x": (2, 6, 5, 3), "k": (3, 3), "s": (2, 1), "pad": ((1, 2), (2, 0))})]
DEEP = [("MaxPool", {"x": (2, 3, 2, 6), "depth": 3}), ("MaxPoolV2", {"x": (1, 3, 4, 8), "depth": 2, "first": True})]


def derivatives(name: str) -> tuple[str, str]:
    return ("MaxPoolGradV2", "MaxPoolGradGradV2") if name.endswith("V2") else (f"{name}Grad", f"{name}GradGrad")


@pytest.mark.parametrize(("name", "fields"), MAXIMA + EXPLICIT + DEEP, ids=str)
def test_the_maximum_is_the_transpose_of_its_gradient_at_x(name, fields):
    case = Case(name, "float64", **fields)
    x, g = distinct("x", case.source), whole("g", case.dest)
    y = FAST[name](input=x, **sizes(case))
    dx = FAST[derivatives(name)[0]](orig_input=x, orig_output=y, grad=g, **sizes(case))
    assert dot(y, g) == dot(x, dx), repr(case)


@pytest.mark.parametrize(("name", "fields"), MAXIMA + DEEP, ids=str)
def test_second_order_is_the_adjoint_of_first_order(name, fields):
    case = Case(name, "float64", **fields)
    x, g, v = distinct("x", case.source), whole("g", case.dest), whole("v", case.source)
    y = FAST[name](input=x, **sizes(case))
    first, second = derivatives(name)
    dx = FAST[first](orig_input=x, orig_output=y, grad=g, **sizes(case))
    ddy = FAST[second](orig_input=x, orig_output=y, grad=v, **sizes(case))
    assert dot(dx, v) == dot(g, ddy), repr(case)
    back = FAST[first](orig_input=x, orig_output=y, grad=ddy, **sizes(case))
    assert dot(back, v) == dot(ddy, ddy), "third order: the gradient again"


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("fields", [g for g in FLAT if not g.get("first")], ids=str)
def test_scatter_and_gather_by_positions_are_adjoint(fields, batched):
    case = Case("MaxPoolWithArgmax", "float64", batched=batched, **fields)
    x, g, v = distinct("x", case.source), whole("g", case.dest), whole("v", case.source)
    flag = {"include_batch_in_index": batched}
    y, where = raw_ops.MaxPoolWithArgmax(input=x, **sizes(case), **flag)
    dx = raw_ops.MaxPoolGradWithArgmax(input=x, grad=g, argmax=where, **sizes(case), **flag)
    ddy = raw_ops.MaxPoolGradGradWithArgmax(input=x, grad=v, argmax=where, **sizes(case), **flag)
    assert dot(dx, v) == dot(g, ddy)
    assert dot(y, g) == dot(x, dx)
    assert (dx == raw_ops.MaxPoolGrad(orig_input=x, orig_output=y, grad=g, **sizes(case))).all()


STEPS = [
    name for name, op in OPS.items() if op.order == 0 and not op.family.startswith("q") and name != "MaxPoolWithArgmax"
]


@pytest.mark.parametrize("name", STEPS)
def test_finite_differences_away_from_ties_agree(name):
    """Pooling is linear between ties, so the only error of a central difference is rounding."""
    op = OPS[name]
    if op.spatial == 3:
        fields: dict = {"x": (1, 3, 4, 3, 2), "k": (2, 2, 2), "s": (1, 2, 1), "pad": "VALID"}
    else:
        fields = {"x": (1, 5, 6, 2), "k": (2, 2), "s": (2, 1), "pad": "VALID", "overlapping": True}
    case = Case(name, "float64", **fields)
    args = arguments(case)
    source = op.params[0].name
    x, g, h = distinct("x", case.source), whole("g", case.dest), 0.25
    pool = lambda moved: outputs(FAST[name](**{**args, source: moved}))[0]  # noqa: E731
    slope = np.empty(prod(case.source))
    for j in range(slope.size):
        step = np.zeros(slope.size)
        step[j] = h
        step = step.reshape(case.source)
        slope[j] = dot((pool(x + step) - pool(x - step)) / (2 * h), g)
    np.testing.assert_allclose(gradient(case, args, x, pool(x), g).reshape(-1), slope, rtol=1e-6, atol=1e-6)


def gradient(case: Case, args: dict, x: np.ndarray, y: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Return the op's first derivative, whatever its name and arguments are."""
    name = "MaxPoolGradV2" if case.op == "MaxPoolV2" else case.op + "Grad"
    have = {
        **args,
        "orig_input": x,
        "orig_output": y,
        "grad": g,
        "out_backprop": g,
        "orig_input_shape": np.array(case.source, np.int32),
        "orig_input_tensor_shape": np.array(case.source),
    }
    have |= dict(
        zip(("row_pooling_sequence", "col_pooling_sequence"), case.drawn if case.op[0] == "F" else (), strict=False)
    )
    return FAST[name](**{p.name: have[p.name] for p in OPS[name].params if p.name in have})
