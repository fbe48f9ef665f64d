"""Scope, ops, Session: C++'s shape in Python, shapes while building, errors at the line, the rest still runs."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_pages import CASES, page_of
from support import FAST, Case, difference, outputs

from poolgrad._ops.table import OPS
from poolgrad.graph import Graph, GraphError, Scope, Session, embedded_files, ops, service
from poolgrad.graph.blocks import BLOCKS

X = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
W = ("1,2,2,1", "1,2,2,1", "SAME")


def small(collect: bool = False) -> tuple[Scope, object]:
    s = Scope.new_root_scope("page", collect)
    return s, ops.Const(s.with_op_name("x"), X)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.op)
def test_every_op_of_the_table_builds_infers_and_runs(case: Case) -> None:
    scope, made, given = page_of(case)
    want = outputs(FAST[case.op](**given))
    assert [out.pin for out in made] == list(OPS[case.op].outputs)
    for out, array in zip(made, want, strict=True):
        assert (out.shape, out.dtype) == (array.shape, array.dtype.name)
    got = Session(scope).run(list(made))
    assert difference(tuple(got), tuple(want)) == ""


def test_attributes_come_as_text_as_setters_as_keywords_or_as_a_dictionary() -> None:
    s = Scope.new_root_scope()
    x = ops.Const(s, X.reshape(1, 1, 4, 4))
    made = [
        ops.MaxPool(s, x, "1,1,2,2", [1, 1, 2, 2], "VALID", attrs="data_format_ = NCHW;"),
        ops.MaxPool(s, x, (1, 1, 2, 2), np.array([1, 1, 2, 2]), "valid", ops.MaxPool.Attrs().DataFormat("NCHW")),
        ops.MaxPool(s, x, "1,1,2,2", "1,1,2,2", "VALID", ops.MaxPool.DataFormat("NCHW")),
        ops.MaxPool(s, x, "1,1,2,2", "1,1,2,2", "VALID", data_format="NCHW"),
        ops.MaxPool(s, input=x, ksize="1,1,2,2", strides="1,1,2,2", padding="VALID", attrs={"data_format": "NCHW"}),
    ]
    first, *others = Session(s).run(made)
    assert first.tolist() == [[[[5, 7], [13, 15]]]]
    assert all((other == first).all() for other in others)


def test_a_wrong_line_raises_there_and_leaves_the_page_as_it_was() -> None:
    s, x = small()
    before = s.to_json()
    with pytest.raises(GraphError, match=r"^MaxPool: MaxPool: ksize, character 1: got \[1, 2\]"):
        ops.MaxPool(s, x, "1,2", "1,2,2,1", "SAME")
    assert s.to_json() == before
    assert ops.MaxPool(s, x, *W).shape == (1, 2, 2, 1)


def test_a_collecting_scope_goes_on_and_has_all_problems_of_all_blocks() -> None:
    s, x = small(collect=True)
    bad = ops.MaxPool(s.with_op_name("bad"), x, "1,2,x,1", "0,2,2,1", "SAM", attrs="data_formt = NHWC;")
    ops.AvgPool(s.with_op_name("after"), bad, *W)
    ops.AvgPool(s.with_op_name("fine"), x, *W)
    assert [(p.node, p.pin, p.at) for p in s.problems] == [
        ("bad", "ksize", 4),
        ("bad", "padding", 0),
        ("bad", "attrs", 0),
    ]
    assert [p.repair.label if p.repair else None for p in s.problems] == [
        None,
        "Change to SAME",
        "Change to data_format_ = NHWC;",
    ]
    for answer in (service.check(s.graph), service.run(s.graph)):
        assert {name: node["status"] for name, node in answer["nodes"].items()} == {
            "x": "ok", "bad": "failed", "after": "blocked", "fine": "ok",
        }  # fmt: skip


def test_wrong_calls_are_type_errors_that_name_the_argument() -> None:
    s, x = small()
    for call, wanted in [
        (lambda: ops.MaxPool("s", x, *W), "scope: got 's', wanted a Scope"),
        (lambda: ops.MaxPool(s, x, *W, 1, 2), "after scope, wanted at most"),
        (lambda: ops.MaxPool(s, x, *W, padding="SAME"), "padding: got it twice"),
        (lambda: ops.MaxPool(s, x, *W, colour="red"), "colour: got it unasked"),
        (lambda: ops.MaxPool(s, x, x, "1,2,2,1", "SAME"), "ksize: got"),
    ]:
        with pytest.raises(TypeError, match=wanted):
            call()
    with pytest.raises(AttributeError, match="there is no op 'MaxPol'"):
        ops.MaxPol  # noqa: B018
    with pytest.raises(AttributeError, match="MaxPool has no attribute 'Sead'; it has explicit_paddings, data_format"):
        ops.MaxPool.Attrs().Sead(1)
    with pytest.raises(GraphError, match="output of another page"):
        ops.MaxPool(Scope.new_root_scope(), x, *W)
    for call, wanted in [
        (lambda: ops.Const(s, np.array([1j])), "Const: val: got dtype complex128"),
        (lambda: ops.Const(s, [1.5], dtype="int32"), "numbers that are not of dtype int32"),
        (lambda: ops.Const(s, np.array([300]), dtype=np.int8), "numbers that are not of dtype int8"),
        (lambda: ops.Const(s, [1, 2, 3], shape=[2, 2]), "Const: cannot reshape"),
        (lambda: ops.Const(s, [1], dtype="flaot"), "Const: at character 1: got 'flaot'"),
        (lambda: ops.Const(s, {"a": 1}), "^Const: val: got"),
    ]:
        with pytest.raises(GraphError, match=wanted):
            call()


def test_names_are_given_and_kept_apart() -> None:
    s, x = small()
    names = [ops.MaxPool(s, x, *W).name for _ in range(3)] + [ops.Const(s.with_op_name("x"), "1").name]
    assert names == ["MaxPool", "MaxPool_1", "MaxPool_2", "x_1"]
    assert ops.Const(s.with_op_name("1 strange/näme"), "1").name == "n1_strange_n_me"


def test_arrays_where_wires_are_wanted_become_const_blocks() -> None:
    s = Scope.new_root_scope()
    y = ops.MaxPool(s, X, *W)
    assert [node.op for node in s.page.nodes.values()] == ["Const", "MaxPool"]
    assert Session(s).run(y).ravel().tolist() == [5, 7, 13, 15]


# ---- running


def test_placeholders_are_fed_by_either_order_by_text_or_refused() -> None:
    s = Scope.new_root_scope()
    x = ops.Placeholder(s.with_op_name("x"), shape=[1, 4, 4, 1])
    y = ops.MaxPool(s.with_op_name("y"), x, *W)
    session = Session(s)
    assert (
        session.run([y], {x: X})[0].tolist()
        == session.run({x: X}, [y])[0].tolist()
        == session.run("y", {"x": X}).tolist()
    )
    with pytest.raises(GraphError, match="x: feed: got nothing, wanted an array"):
        session.run(y)
    with pytest.raises(GraphError, match=r"an array of shape \[1, 2\], wanted \[1, 4, 4, 1\]"):
        session.run(y, {x: X[0, :1, :2, 0]})
    with pytest.raises(GraphError, match="an array of dtype float64, wanted float32"):
        session.run(y, {x: X.astype(np.float64)})
    with pytest.raises(GraphError, match="y: got a value to feed, wanted a Placeholder"):
        session.run(y, {y: X})
    s.page.nodes["x"].text["feed"] = "arange(0,16)"
    assert session.run(y).ravel().tolist() == [5, 7, 13, 15]


def test_a_placeholder_without_a_shape_is_known_when_it_is_fed() -> None:
    s = Scope.new_root_scope()
    x = ops.Placeholder(s.with_op_name("x"))
    y = ops.MaxPool(s.with_op_name("y"), x, *W)
    assert (x.shape, y.shape) == (None, None)
    assert Session(s).run(y, {x: X}).shape == (1, 2, 2, 1)
    with pytest.raises(GraphError, match="y: input: got 2 dimensions"):
        Session(s).run(y, {x: X[0, :, :, 0]})


def test_only_what_changed_runs_again() -> None:
    s, x = small()
    y = ops.MaxPool(s.with_op_name("y"), x, *W)
    ops.AvgPool(s.with_op_name("z"), y, *W)
    cache = service.Cache()

    def again() -> tuple[int, int]:
        ran = service.run(s.graph, cache=cache)
        return ran["ran"], ran["cached"]

    assert again() == (3, 0)
    assert again() == (0, 3)
    s.page.nodes["z"].text["padding"] = "VALID"
    assert again() == (1, 2)
    s.page.nodes["z"].text["padding"] = " valid "  # another text with the same meaning
    assert again() == (0, 3)


def test_a_pooling_that_draws_anew_is_never_kept_and_one_with_a_seed_is() -> None:
    s = Scope.new_root_scope()
    x = ops.Const(s.with_op_name("x"), "random(normal, 1)", shape=[1, 40, 40, 1])
    free = ops.FractionalMaxPool(s, x, [1, 1.5, 1.5, 1])
    session = Session(s)
    drawn = {tuple(session.run(free.row_pooling_sequence).tolist()) for _ in range(6)}
    assert len(drawn) > 1
    fixed = ops.FractionalMaxPool(s, x, [1, 1.5, 1.5, 1], deterministic=True, seed=5)
    assert len({session.run(fixed).tobytes() for _ in range(3)}) == 1


def test_the_cache_forgets_the_oldest_when_it_is_full() -> None:
    cache = service.Cache(nbytes=30_000)
    for i in range(20):
        s = Scope.new_root_scope()
        ops.Const(s, np.full((1, 10, 10, 1), i, np.float32))
        service.run(s.graph, cache=cache)
    assert cache.held <= 30_000
    assert len(cache.results) >= 2


def test_results_are_copies_and_what_is_kept_cannot_be_changed() -> None:
    s, x = small()
    session = Session(s)
    first = session.run(x)
    first[:] = 0
    assert session.run(x).sum() == X.sum()


def test_what_only_the_elements_show_is_a_problem_at_the_pin() -> None:
    s, x = small()
    y = ops.MaxPoolWithArgmax(s.with_op_name("y"), x, *W)
    wrong = ops.Const(s.with_op_name("wrong"), "fill(99)", shape="[1][2][2][1]", dtype="DT_INT64")
    dx = ops.MaxPoolGradWithArgmax(s.with_op_name("dx"), x, y, wrong, *W)
    with pytest.raises(GraphError, match=r"dx: argmax: got 99 at \[0, 0, 0, 0\], wanted a flat position inside"):
        Session(s).run(dx)
    ran = service.run(s.graph)
    assert [(p["node"], p["pin"]) for p in ran["problems"]] == [("dx", "argmax")]
    assert ran["nodes"]["y"]["status"] == "ok"


def test_files_are_read_and_pickles_are_not(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "bad.npy", np.array([{"a": 1}], object), allow_pickle=True)
    s = Scope.new_root_scope()
    y = ops.MaxPool(s, ops.File(s.with_op_name("f"), tmp_path / "x.npy"), *W)
    assert Session(s).run(y).ravel().tolist() == [5, 7, 13, 15]
    with pytest.raises(GraphError, match="pickled Python objects, which are never loaded"):
        ops.File(s, tmp_path / "bad.npy")
    with pytest.raises(GraphError, match="no such file"):
        ops.File(s, tmp_path / "none.npy")
    graph = Graph.from_json(s.to_json())
    assert "wanted data that the page holds" in service.check(graph)["problems"][0]["sentence"]


def test_progress_is_told_block_by_block() -> None:
    s, x = small()
    y = ops.MaxPool(s.with_op_name("y"), x, *W)
    ops.MaxPool(s.with_op_name("aside"), x, *W)
    told: list[tuple[int, int, str]] = []
    Session(s).run(y, progress=lambda *step: told.append(step))
    assert told == [(0, 2, "x"), (1, 2, "y")]


def test_repairs_of_types_sequences_and_sizes() -> None:
    s, x = small(collect=True)
    y = ops.FractionalMaxPool(s.with_op_name("y"), x, [1, 1.5, 1.5, 1], deterministic=True, seed=1)
    ops.FractionalMaxPoolGrad(s.with_op_name("dx"), x, y, y)
    g = ops.Const(s.with_op_name("g"), "ones", shape="[1][2][2][1]", dtype="DT_DOUBLE")
    z = ops.MaxPool(s.with_op_name("z"), x, *W)
    ops.MaxPoolGrad(s.with_op_name("dz"), x, z, g, *W)
    ops.MaxPool(s.with_op_name("five"), x, "1,2,2,2,1", "1,2,2,1", "SAME")
    graph = Graph.from_json(s.to_json()).to_dict()
    labels = {(p["node"], p["pin"]): (p["repair"] or {}).get("label") for p in service.check(graph)["problems"]}
    assert labels == {
        ("dx", "row_pooling_sequence"): "Connect row_pooling_sequence of y",
        ("dx", "col_pooling_sequence"): "Connect col_pooling_sequence of y",
        ("dz", "grad"): "Make g DT_FLOAT",
        ("five", "ksize"): "Change to 1,2,2,1",
    }
    for _ in labels:
        first = service.check(graph)["problems"][0]
        graph = service.repair(graph, None, first["repair"]["edits"])
    assert service.run(graph)["problems"] == []


@pytest.mark.parametrize("fractional", [False, True])
def test_a_missing_input_shape_is_measured_where_the_forward_block_is(fractional: bool) -> None:
    s, x = small(collect=True)
    if fractional:
        y = ops.FractionalAvgPool(s.with_op_name("y"), x, [1, 1.5, 1.5, 1], deterministic=True, seed=1)
        rows, cols = y.row_pooling_sequence, y.col_pooling_sequence
        ops.FractionalAvgPoolGrad(s.with_op_name("dx"), None, y, rows, cols)
    else:
        y = ops.AvgPool(s.with_op_name("y"), x, *W)
        ops.AvgPoolGrad(s.with_op_name("dx"), None, y, *W)
    (problem,) = s.problems
    assert problem.repair is not None
    assert problem.repair.label == "Insert Shape of x and connect it"
    mended = service.repair(Graph.from_json(s.to_json()).to_dict(), None, list(problem.repair.edits))
    ran = service.run(mended)
    assert ran["problems"] == []
    assert ran["nodes"]["dx"]["outputs"]["output"]["shape"] == [1, 4, 4, 1]


def test_an_existing_forward_block_is_connected_rather_than_a_new_one() -> None:
    s, x = small(collect=True)
    ops.MaxPool(s.with_op_name("y"), x, *W)
    ops.MaxPoolGrad(s.with_op_name("dx"), x, x, ops.Const(s, "ones", shape="1,2,2,1"), *W)
    assert [p.repair.label for p in s.problems if p.repair] == ["Connect y"]


# ---- as data


def test_the_palette_has_every_op_and_says_what_the_table_says() -> None:
    made = service.ops()
    found = {block["op"]: block for block in made["blocks"]}
    assert set(OPS) <= set(found) == set(BLOCKS)
    for name, op in OPS.items():
        block = found[name]
        assert (block["doc"], block["order"], block["rank"]) == (op.summary, op.order, op.spatial + 2)
        named = {pin["name"] for pin in block["pins"]} - {"attrs"}
        assert named == {p.name for p in op.params if p.default is ...}
        assert block["group"] in made["groups"]
    assert "NDHWC" in next(p["default"] for p in found["MaxPool3DGrad"]["pins"] if p["name"] == "attrs")


def test_one_text_alone_is_judged_as_it_is_typed() -> None:
    assert service.parse("MaxPool", "ksize", "1,2,2,1") == {"value": [1, 2, 2, 1], "problem": None}
    wrong = service.parse("MaxPool", "ksize", "1,,2")["problem"]
    assert (wrong["at"], wrong["got"]) == (2, "','")
    with pytest.raises(GraphError):
        service.parse("MaxPool", "input", "1")


def test_roles_and_axes_follow_the_ops_that_use_an_array() -> None:
    graph = next(e["graph"] for e in service.examples() if e["name"] == "seed 003 repaired")
    nodes = service.check(graph)["nodes"]
    assert {name: node["outputs"]["output"]["role"] for name, node in nodes.items()} == {
        "x": "value", "g": "gradient", "y": "value", "dx": "gradient", "ddy": "gradient",
    }  # fmt: skip
    assert nodes["g"]["outputs"]["output"]["axes"] == list("NDHWC")


def test_tensors_are_sliced_and_saved_by_their_ref() -> None:
    s, _ = small()
    cache = service.Cache()
    ref = service.run(s.graph, cache=cache, limit=3)["nodes"]["x"]["outputs"]["output"]
    assert ref["values"] is None
    part = service.tensor(cache, ref["ref"], [[0, 1], [1, 3], [0, 2], [0, 1]])
    assert part["shape"] == [1, 2, 2, 1]
    assert service.tensor_npy(cache, ref["ref"])[:6] == b"\x93NUMPY"
    for wrong in ("", "abc.output", 7):
        with pytest.raises(GraphError):
            service.tensor(cache, wrong)
    for cut in ([[0, 1]], "x", [[0, 1]] * 3 + [[-1, 1]], [[0, True]] * 4):
        with pytest.raises(GraphError):
            service.tensor(cache, ref["ref"], cut)


def test_a_picture_of_64_by_64_goes_through_and_back_quickly() -> None:
    graph = next(e["graph"] for e in service.examples() if e["key"] == "picture")
    cache = service.Cache()
    took = []
    for i in range(10):
        y = next(n for n in graph["pages"][0]["nodes"] if n["id"] == "y")
        y["text"]["pooling_ratio"] = f"1.0,1.5{i},1.7,1.0"
        begin = time.process_time()  # time of this process alone: other work on the machine does not count
        ran = service.run(graph, cache=cache)
        took.append(time.process_time() - begin)
        assert ran["problems"] == []
        assert ran["nodes"]["dx"]["links"] is not None
    assert min(took) < 0.1


def test_decoded_files_are_kept_while_there_is_room_the_newest_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_files, "_KEPT", {})
    monkeypatch.setattr(embedded_files, "_MOST_KEPT", 100)

    def decoded(value: float, count: int) -> Any:
        file = io.BytesIO()
        np.save(file, np.full(count, value))
        return embedded_files.decode(file.getvalue(), ".npy")

    first = decoded(1, 6)
    assert decoded(1, 6) is first
    second = decoded(2, 6)
    assert decoded(1, 6) is first  # now this one is the last used
    decoded(3, 6)
    assert decoded(1, 6) is first
    assert decoded(2, 6) is not second
    large = decoded(4, 60)
    assert decoded(4, 60) is large
    assert len(embedded_files._KEPT) == 1


def test_numbers_that_are_ignored_and_deviations_below_zero_are_said() -> None:
    graph = service.new_graph()
    attrs = "explicit_paddings_ = 0,0,1,1,1,1,0,0;"
    graph["pages"][0] |= {
        "nodes": [
            {"id": "x", "op": "Const", "text": {"val": "arange(1,17)", "shape": "1,4,4,1"}},
            {"id": "y", "op": "MaxPool", "text": {"ksize": "1,2,2,1", "strides": "1,2,2,1", "padding": "SAME", "attrs": attrs}},
            {"id": "r", "op": "Random", "text": {"shape": "2,2", "dist": "normal(1,-1)"}},
        ],
        "wires": [["x.output", "y.input"]],
    }  # fmt: skip
    ran = service.run(graph)
    assert [(w["node"], w["pin"], w["got"]) for w in ran["warnings"]] == [
        ("y", "attrs", "explicit_paddings with padding SAME")
    ]
    assert [(p["node"], p["pin"], p["expected"]) for p in ran["problems"]] == [
        ("r", "dist", "a deviation of at least 0")
    ]


def test_sums_of_cells_that_are_not_finite_are_not_compared() -> None:
    s = Scope.new_root_scope()
    x = ops.Const(s.with_op_name("x"), "1,2,3,4", shape="1,2,2,1")
    g = ops.Const(s.with_op_name("g"), "nan", shape="1,1,1,1")
    y = ops.MaxPool(s.with_op_name("y"), x, "1,2,2,1", "1,2,2,1", "VALID")
    ops.MaxPoolGrad(s.with_op_name("dx"), x, y, g, "1,2,2,1", "1,2,2,1", "VALID")
    found = service.run(s.graph)["nodes"]["dx"]["conservation"]
    assert found["comparable"] is False
    assert "≠" not in found["sentence"]
    assert "not finite" in found["sentence"]


def test_a_missing_wire_is_repaired_by_the_only_output_that_fits() -> None:
    graph = service.new_graph()
    graph["pages"][0]["nodes"] = [
        {"id": "x", "op": "Const", "text": {"val": "arange(1,17)", "shape": "1,4,4,1"}},
        {"id": "v", "op": "Const", "text": {"val": "1,2", "shape": "2"}},
        {"id": "y", "op": "MaxPool", "text": {"ksize": "1,2,2,1", "strides": "1,2,2,1", "padding": "SAME"}},
    ]
    (problem,) = service.check(graph)["problems"]
    assert problem["repair"]["label"] == "Connect x"
    mended = service.repair(graph, None, problem["repair"]["edits"])
    assert service.check(mended)["problems"] == []
    graph["pages"][0]["nodes"] = graph["pages"][0]["nodes"][1:]
    (problem,) = service.check(graph)["problems"]
    assert problem["repair"]["label"] == "Insert a Const and connect it"
    assert service.check(service.repair(graph, None, problem["repair"]["edits"]))["problems"] == []
