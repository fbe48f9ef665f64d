"""The worked examples of the ops' pages as graphs: the pictured graph has the exact problem at the right pin, the repaired one the right numbers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from graph_pages import array, cells
from support import ROOT

from poolgrad.graph import Scope, ops, service

CASES = json.loads((ROOT / "tests" / "data" / "acceptance.json").read_text("utf-8"))["cases"]


def graph_of(case: dict[str, Any]) -> dict[str, Any]:
    scope = Scope.new_root_scope("page", collect=True)
    wires = {pin: ops.Const(scope.with_op_name(pin), array(spec)) for pin, spec in case["arrays"].items()}
    scope.with_op_name("out").add(case["op"], wires, case["text"])
    return json.loads(scope.to_json())


def mended(graph: dict[str, Any]) -> dict[str, Any]:
    """Return the graph after all repairs, one after the other."""
    for _ in range(9):
        offered = [p["repair"] for p in service.check(graph)["problems"] if p["repair"]]
        if not offered:
            return graph
        graph = service.repair(graph, "page", offered[0]["edits"])
    raise AssertionError("repairs that never end")


def assert_result(graph: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    ran = service.run(graph)
    assert ran["problems"] == []
    for pin, spec in wanted.items():
        got = cells(ran["nodes"]["out"]["outputs"][pin])
        assert list(got.shape) == spec["shape"]
        if "values" in spec:
            assert got.ravel().tolist() == spec["values"]
        else:
            assert {str(i): got.ravel()[i] for i in np.flatnonzero(got)} == spec["nonzero"]
    return ran


@pytest.mark.parametrize("case", [c for c in CASES if "errors" in c], ids=lambda c: c["name"])
def test_a_page_as_pictured_has_exactly_these_problems(case: dict[str, Any]) -> None:
    found = service.check(graph_of(case))
    assert [p["pin"] for p in found["problems"]] == [e["pin"] for e in case["errors"]]
    assert found["nodes"]["out"]["status"] == "failed"
    for got, wanted in zip(found["problems"], case["errors"], strict=True):
        assert got["node"] == "out"
        for key in ("expected_shape", "got_shape", "at"):
            assert got[key] == wanted[key] if key in wanted else True
        assert (got["repair"] or {}).get("label") == wanted.get("repair")
    assert service.run(graph_of(case))["nodes"]["out"]["status"] == "failed"


@pytest.mark.parametrize("case", [c for c in CASES if "repaired" in c], ids=lambda c: c["name"])
def test_repaired_it_gives_the_right_numbers(case: dict[str, Any]) -> None:
    assert_result(mended(graph_of(case)), case["repaired"])


@pytest.mark.parametrize("case", [c for c in CASES if "result" in c], ids=lambda c: c["name"])
def test_a_right_page_gives_the_pictured_numbers(case: dict[str, Any]) -> None:
    ran = assert_result(graph_of(case), case["result"])
    said = [w["sentence"] for w in ran["warnings"]]
    if "warning" in case:
        assert len(said) == 1
        assert case["warning"] in said[0]
    else:
        assert said == []


def test_the_warning_is_also_in_check_when_it_may_run() -> None:
    case = next(c for c in CASES if c["name"] == "seed003-orig-output-ones")
    assert service.check(graph_of(case))["warnings"] == []
    (warned,) = service.check(graph_of(case), cache=service.Cache())["warnings"]
    assert (warned["pin"], warned["repair"]["label"]) == ("orig_output", "Insert MaxPool3D and connect it")
    repaired = next(c for c in CASES if c["name"] == "seed003-as-pictured")["repaired"]
    ran = assert_result(service.repair(graph_of(case), "page", warned["repair"]["edits"]), repaired)
    assert ran["warnings"] == []


def test_the_picture_lost_fifteen_of_eighteen_and_now_it_is_said() -> None:
    case = next(c for c in CASES if c["name"] == "seed003-orig-output-ones")
    kept = service.run(graph_of(case))["nodes"]["out"]["conservation"]
    assert (kept["in"]["sum"], kept["out"]["sum"], kept["equal"]) == (18, 6, False)
    assert (kept["lost"], kept["extra"]) == (15, 3)
    assert [w["why"] for w in kept["windows"]] == ["repeated", "lost", "lost", "lost"]
    assert kept["where"].startswith("windows: [0,0,0,0,0] repeated 3; [0,0,0,0,1] lost 4; ")
    assert "3 of 4 windows lose theirs" in kept["sentence"]


def test_a_tie_that_only_one_cell_takes_loses_and_repeats_nothing() -> None:
    s = Scope.new_root_scope()
    x = ops.Const(s.with_op_name("x"), "ones", shape="[1][2][4][1]")
    sizes = ("1,2,2,1", "1,2,2,1", "SAME")
    y = ops.MaxPool(s.with_op_name("y"), x, *sizes)
    ops.MaxPoolGrad(s.with_op_name("dx"), x, y, ops.Const(s.with_op_name("g"), "3,4", shape="[1][1][2][1]"), *sizes)
    kept = service.run(s.graph)["nodes"]["dx"]["conservation"]
    assert (kept["equal"], kept["lost"], kept["extra"], kept["windows"]) == (True, 0, 0, [])


def test_repaired_seed_003_keeps_all_of_the_gradient_and_gives_it_back() -> None:
    graph = next(e["graph"] for e in service.examples() if e["name"] == "seed 003 repaired")
    ran = service.run(graph)
    assert cells(ran["nodes"]["y"]["outputs"]["output"]).ravel().tolist() == [15, 16, 31, 32]
    assert cells(ran["nodes"]["ddy"]["outputs"]["output"]).ravel().tolist() == [3, 4, 5, 6]
    assert ran["nodes"]["dx"]["conservation"]["sentence"] == "sum of grad 18 = sum of output 18"


def test_repaired_seed_004_is_an_example_too() -> None:
    graph = next(e["graph"] for e in service.examples() if e["name"] == "seed 004 repaired")
    assert cells(service.run(graph)["nodes"]["ddy"]["outputs"]["output"]).ravel().tolist() == [7, 8, 15, 16]


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("seed 003 as pictured", ["Insert MaxPool3D and connect it"]),
        ("seed 004 as pictured", ["Insert MaxPool and connect it", "Fill g with 1, 2, 3, ... of shape [2][2][2][2]"]),
    ],
)
def test_the_examples_as_pictured_are_wrong_as_the_pages_were(name: str, labels: list[str]) -> None:
    graph = next(e["graph"] for e in service.examples() if e["name"] == name)
    assert [p["repair"]["label"] for p in service.check(graph)["problems"]] == labels


def test_the_other_examples_have_no_problem_and_no_warning() -> None:
    for example in service.examples():
        if "as pictured" not in example["name"]:
            found = service.check(example["graph"], cache=service.Cache())
            assert found["problems"] == found["warnings"] == []
            assert all(node["status"] == "ok" for node in found["nodes"].values())


def test_the_seven_forward_pictures_are_an_example() -> None:
    graph = next(e["graph"] for e in service.examples() if e["name"] == "seven forward pictures")
    nodes = service.run(graph)["nodes"]
    forward = [c for c in CASES if c["name"].startswith("picture-") and "Grad" not in c["op"]]
    assert len(forward) == 7
    ops_of = {node["id"]: node["op"] for node in graph["pages"][0]["nodes"]}
    for case in forward:
        wanted = case.get("result") or case["repaired"]
        node = next(name for name, op in ops_of.items() if op == case["op"])
        for pin, spec in wanted.items():
            assert cells(nodes[node]["outputs"][pin]).ravel().tolist() == spec["values"]
