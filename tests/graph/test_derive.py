"""gradients(y, x): the right blocks, to any order, and the right numbers."""

from __future__ import annotations

import numpy as np
import pytest

from poolgrad import raw_ops
from poolgrad._ops.table import OPS
from poolgrad.graph import GraphError, Operation, Output, Scope, Session, gradients, ops, service
from poolgrad.graph.derive import derivative_of, linear_input

W4 = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
W5 = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
RNG = np.random.default_rng(11)
X4 = RNG.permutation(50).astype(np.float32).reshape(1, 5, 5, 2)
X5 = RNG.permutation(64).astype(np.float32).reshape(1, 4, 4, 4, 1)
DRAWN = {"pooling_ratio": [1, 1.5, 1.5, 1], "overlapping": True, "deterministic": True, "seed": 3}

FORWARD = {
    "MaxPool": (X4, W4, ["MaxPoolGrad", "MaxPoolGradGrad", "MaxPoolGrad", "MaxPoolGradGrad"]),
    "MaxPoolV2": (X4, W4, ["MaxPoolGradV2", "MaxPoolGradGradV2", "MaxPoolGradV2"]),
    "MaxPool3D": (X5, W5, ["MaxPool3DGrad", "MaxPool3DGradGrad", "MaxPool3DGrad"]),
    "MaxPoolWithArgmax": (
        X4,
        {**W4, "include_batch_in_index": True},
        ["MaxPoolGradWithArgmax", "MaxPoolGradGradWithArgmax", "MaxPoolGradWithArgmax"],
    ),
    "AvgPool": (X4, W4, ["AvgPoolGrad", "AvgPool", "AvgPoolGrad"]),
    "AvgPool3D": (X5, W5, ["AvgPool3DGrad", "AvgPool3D", "AvgPool3DGrad"]),
    "FractionalMaxPool": (X4, DRAWN, ["FractionalMaxPoolGrad"]),
    "FractionalAvgPool": (X4, DRAWN, ["FractionalAvgPoolGrad"]),
}


def build(name: str) -> tuple[Scope, Operation, Operation]:
    array, words, _ = FORWARD[name]
    s = Scope.new_root_scope()
    x = ops.Const(s.with_op_name("x"), array)
    return s, x, getattr(ops, name)(s.with_op_name("y"), x, **words)


def op_of(output: Output) -> str:
    return output.scope.page.nodes[output.node].op


@pytest.mark.parametrize("name", FORWARD)
def test_each_order_is_the_block_of_that_order(name: str) -> None:
    s, x, y = build(name)
    target, source, found = y.outputs[0], x.outputs[0], []
    for _ in FORWARD[name][2]:
        seed = ops.Const(s.with_op_name("g"), "random(integers, 5)", shape=target.shape)
        target, source = gradients(target, source, seed), seed.outputs[0]
        found.append(op_of(target))
    assert found == FORWARD[name][2]
    assert s.problems == []
    assert Session(s).run(target).shape == target.shape


@pytest.mark.parametrize("name", FORWARD)
def test_the_first_derivative_is_the_adjoint_and_the_second_its_adjoint(name: str) -> None:
    s, x, y = build(name)
    g = ops.Const(s.with_op_name("g"), "random(integers, 5)", shape=y.outputs[0].shape)
    dx = gradients(y, x, g)
    values = dict(zip("xygd", Session(s).run([x, y, g, dx]), strict=True))
    if name.startswith("Fractional") or FORWARD[name][2][1:] == []:
        assert np.isclose(values["d"].sum(), values["g"].sum())
        return
    v = ops.Const(s.with_op_name("v"), "random(integers, 6)", shape=dx.shape)
    back = gradients(dx, g, v)
    tangent, forth = Session(s).run([v, back])
    assert np.isclose((values["d"] * tangent).sum(), (values["g"] * forth).sum())


def test_without_a_seed_it_is_the_derivative_of_the_sum() -> None:
    s, x, y = build("MaxPool")
    dx = Session(s).run(gradients(y, x))
    want = raw_ops.MaxPoolGrad(
        orig_input=X4, orig_output=raw_ops.MaxPool(input=X4, **W4), grad=np.ones((1, 3, 3, 2), np.float32), **W4
    )
    np.testing.assert_array_equal(dx, want)


def test_ways_that_meet_are_added_and_chains_are_followed() -> None:
    s = Scope.new_root_scope()
    x = ops.Const(s.with_op_name("x"), X4)
    a = ops.AvgPool(s.with_op_name("a"), x, **W4)
    b = ops.MaxPool(s.with_op_name("b"), x, **W4)
    z = ops.MaxPool(s.with_op_name("z"), ops.Add(s.with_op_name("sum"), a, b), **W4)
    dx = Session(s).run(gradients(z, x))
    eps, x64 = 1e-3, X4.astype(np.float64)

    def value(array: np.ndarray) -> float:
        total = raw_ops.AvgPool(value=array, **W4) + raw_ops.MaxPool(input=array, **W4)
        return float(raw_ops.MaxPool(input=total, **W4).sum())

    want = np.zeros_like(x64)
    for at in np.ndindex(*x64.shape):
        step = np.zeros_like(x64)
        step[at] = eps
        want[at] = (value(x64 + step) - value(x64 - step)) / (2 * eps)
    np.testing.assert_allclose(dx, want, atol=1e-6)  # distinct integers: no kink within eps


def test_nothing_flows_through_the_choice_of_a_maximum() -> None:
    s, x, y = build("MaxPool")
    dx = gradients(y, x)
    again = gradients(dx, x)
    assert op_of(again) == "Const"
    assert not Session(s).run(again).any()


def test_the_derivative_of_an_output_by_itself_is_one() -> None:
    s, x, _ = build("MaxPool")
    assert (Session(s).run(gradients(x, x)) == 1).all()


@pytest.mark.parametrize("name", ["FractionalMaxPool", "FractionalAvgPool"])
def test_where_there_is_no_block_the_error_says_so(name: str) -> None:
    s, x, y = build(name)
    g = ops.Const(s.with_op_name("g"), "ones", shape=y.output.shape)
    dx = gradients(y, x, g)
    with pytest.raises(
        GraphError, match=f"y_grad: {name}Grad has no derivative with respect to out_backprop: there is no block"
    ):
        gradients(dx, g)


def test_quantised_ops_explicit_padding_positions_and_strangers_are_clear_errors() -> None:
    s = Scope.new_root_scope()
    codes = ops.Const(s.with_op_name("codes"), np.arange(16, dtype=np.uint8).reshape(1, 4, 4, 1))
    pooled = ops.QuantizedMaxPool(s.with_op_name("q"), codes, "-1", "1", **W4)
    with pytest.raises(GraphError, match="q: QuantizedMaxPool has no derivative"):
        gradients(pooled, codes)
    x = ops.Const(s.with_op_name("x"), X4)
    padded = ops.MaxPool(
        s.with_op_name("p"), x, "1,2,2,1", "1,2,2,1", "EXPLICIT", explicit_paddings=[0, 0, 1, 1, 1, 1, 0, 0]
    )
    g = ops.Const(s.with_op_name("g"), "ones", shape=padded.shape)
    dx = gradients(padded, x, g)
    assert Session(s).run(dx).sum() == Session(s).run(g).sum()
    with pytest.raises(GraphError, match="MaxPoolGradGrad has no padding EXPLICIT"):
        gradients(dx, g)
    where = ops.MaxPoolWithArgmax(s.with_op_name("w"), x, **W4)
    with pytest.raises(GraphError, match="positions have no derivative"):
        gradients(where.argmax, x)
    with pytest.raises(GraphError, match="depends on"):
        gradients(padded, codes)
    with pytest.raises(GraphError, match="two pages"):
        gradients(padded, ops.Const(Scope.new_root_scope(), "1"))
    fed = ops.Placeholder(s.with_op_name("fed"))
    with pytest.raises(GraphError, match="shape that is not known yet"):
        gradients(ops.MaxPool(s, fed, **W4), fed)


def test_every_op_of_the_table_has_a_derivative_or_none_by_rule() -> None:
    none = {name for name, op in OPS.items() if linear_input(op) is None or derivative_of(op) is None}
    assert none == {"QuantizedAvgPool", "QuantizedMaxPool", "FractionalMaxPoolGrad", "FractionalAvgPoolGrad"}


def test_the_service_adds_the_blocks_to_a_page_and_places_them() -> None:
    graph = next(e["graph"] for e in service.examples() if e["name"] == "seed 003 repaired")
    made = service.gradients(graph, None, "y.output", "x.output")
    fresh = [n for n in made["pages"][0]["nodes"] if n["id"] not in {o["id"] for o in graph["pages"][0]["nodes"]}]
    assert {n["op"] for n in fresh} == {"Const", "MaxPool3DGrad"}
    assert all(n["at"][0] > 804 for n in fresh)
    assert service.run(made)["problems"] == []
    with pytest.raises(GraphError, match="wanted an output of a block"):
        service.gradients(graph, None, "nobody.output", "x.output")
