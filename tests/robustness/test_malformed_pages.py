"""Malformed graphs, texts, files and edits: 200 generated cases and the known ones end in a clear refusal, never in another error."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import twisted

from poolgrad._common import png
from poolgrad._ops.files import load
from poolgrad.graph import Graph, GraphError, service


@pytest.mark.parametrize("seed", range(200))
def test_a_spoiled_graph_is_refused_or_its_problems_are_listed(seed: int) -> None:
    draw = random.Random(seed)
    # Replace mostly texts by texts: a value of the right type gets past the reader, so that the checks must find the fault.
    graph = twisted(draw, draw.choice(service.examples())["graph"], mild=0.7)
    calls = [lambda: service.check(graph), lambda: service.run(graph), lambda: service.export(graph, kind="python"),
             lambda: service.gradients(graph, None, "y.output", "x.output")]  # fmt: skip
    for call in calls:
        try:
            made = call()
        except GraphError as error:
            refused = str(error)
        else:
            refused = ""
        if refused:
            assert "\n" not in refused
            continue
        json.dumps(made if isinstance(made, dict) else made[1], allow_nan=False)
    try:
        text = Graph.from_json(graph).to_json()
    except GraphError:
        return
    assert Graph.from_json(text).to_json() == text


def base(**more: Any) -> dict[str, Any]:
    return {"format": "poolgrad-graph", "version": 1, "pages": [{"name": "p"}], **more}


def page(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return base(pages=[{"name": "p", "nodes": list(nodes), **more}])


X = {"id": "x", "op": "Const", "text": {"val": "1"}}


@pytest.mark.parametrize(
    ("graph", "wanted"),
    [
        ({}, "format: got None, wanted 'poolgrad-graph'"),
        (base(version=2), "version: got 2, wanted 1"),
        (base(version=True), "version: got True"),
        (base(pages=[]), "pages: got [], wanted at least one page"),
        (base(pages={}), "pages: got {}"),
        (base(pages=[{"name": ""}]), "pages[0].name"),
        (base(pages=[{"name": "a\nb"}]), "pages[0].name"),
        (base(pages=[{"name": "a"}, {"name": "a"}]), "the name 'a' twice"),
        (page(X, X), "pages[0].nodes[1].id: got 'x' again"),
        (page({"id": "1", "op": "Const"}), "pages[0].nodes[0].id"),
        (page({"id": "x"}), "pages[0].nodes[0].op"),
        (page({**X, "text": {"val": 1}}), "pages[0].nodes[0].text.'val': got 1, wanted a text"),
        (page({**X, "at": [1]}), "pages[0].nodes[0].at"),
        (page({**X, "at": [1, 1e300]}), "pages[0].nodes[0].at"),
        (page(X, wires=[["x.output"]]), "pages[0].wires[0]"),
        (page(X, wires=[["x", "y.input"]]), "pages[0].wires[0][0]: got 'x'"),
        (page(X, fetch=["x"]), "pages[0].fetch[0]"),
        (base(data=[]), "data: got []"),
        (base(data={"k": 1}), "data['k']"),
    ],
)
def test_a_malformed_field_is_named(graph: dict[str, Any], wanted: str) -> None:
    with pytest.raises(GraphError) as caught:
        Graph.from_json(graph)
    assert wanted in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "[" * 100_000, '{"format": NaN}', b"\xff\xfe\x00", "\x00", '{"a": 1}{"b": 2}']
)
def test_text_that_is_no_graph_is_refused(text: str | bytes) -> None:
    with pytest.raises(GraphError, match=r"^graph: "):
        Graph.from_json(text)


def problems(graph: dict[str, Any]) -> list[str]:
    return [p["sentence"] for p in service.check(graph)["problems"]]


def test_what_is_wrong_with_wires_and_blocks_is_a_problem_not_a_refusal() -> None:
    y = {"id": "y", "op": "MaxPool", "text": {"ksize": "1,1,1,1", "strides": "1,1,1,1", "padding": "SAME"}}
    assert problems(page({"id": "a", "op": "MaxPol"})) == [
        "a: got op 'MaxPol', wanted the name of a block; did you mean 'MaxPool'?"
    ]
    assert problems(page(y)) == ["y: input: got no wire, wanted a wire: an array with the shape of the input"]
    for wires, wanted in [
        ([["x.output", "z.input"]], "page: got a wire to z.input, wanted a block on the page"),
        ([["z.output", "y.input"]], "y: input: got a wire from z.output, wanted a wire from a block on the page"),
        ([["x.nothing", "y.input"]], "y: input: got a wire from x.nothing, wanted one of x's outputs: output"),
        ([["x.output", "y.ksize"]], "y: ksize: got a wire from x.output, wanted a wire to one of input"),
        (
            [["x.output", "y.input"], ["x.output", "y.input"]],
            "y: input: got a second wire, from x.output, wanted one wire",
        ),
    ]:
        assert wanted in problems(page(X, y, wires=wires))
    ring = page({"id": "a", "op": "Add"}, {"id": "b", "op": "Add"}, wires=[["a.output", "b.x"], ["b.output", "a.x"]])
    assert "a: got wires in a circle, by way of b, wanted blocks that do not wait for themselves" in problems(ring)
    assert service.run(ring)["nodes"]["a"]["status"] == "failed"
    assert problems(page({**X, "text": {"val": "1", "vall": "2"}})) == [
        "x: vall: got a text, wanted no such text; did you mean 'val'?"
    ]
    assert problems(page(X, fetch=["z.output"])) == ["fetch: got 'z.output', wanted an output of a block on the page"]


def test_a_pin_that_is_blamed_for_its_wire_is_not_blamed_for_having_none() -> None:
    y = {"id": "y", "op": "Shape", "text": {}}
    assert len(problems(page(X, y, wires=[["z.output", "y.input"]]))) == 1


@pytest.mark.parametrize("name", ["x.npy", "x.png", "x.txt", "", "x.npy.png"])
@pytest.mark.parametrize("raw", [b"", b"\x93NUMPY", b"\x89PNG\r\n\x1a\n", b"junk" * 99, bytes(range(256))])
def test_uploads_that_are_nothing_are_refused(name: str, raw: bytes) -> None:
    with pytest.raises(GraphError, match=r"^upload: "):
        service.embed(name, raw)


def saved(array: np.ndarray, **more: Any) -> bytes:
    import io

    stream = io.BytesIO()
    np.save(stream, array, **more)
    return stream.getvalue()


def test_pickles_strings_structures_and_complex_numbers_are_refused_as_uploads() -> None:
    with pytest.raises(GraphError, match="pickled Python objects, which are never loaded"):
        service.embed("x.npy", saved(np.array([{}], object), allow_pickle=True))
    for array in (
        np.array(["a"]),
        np.zeros(2, [("a", "i4"), ("b", "f4")]),
        np.zeros(2, complex),
        np.zeros(2, "M8[s]"),
        np.zeros(2, bool),
    ):
        with pytest.raises(GraphError, match="wanted numbers"):
            service.embed("x.npy", saved(array))
    assert service.embed("x.npy", saved(np.zeros((2, 3), ">f4")))["dtype"] == "float32"


@pytest.mark.parametrize("seed", range(100))
def test_a_damaged_array_file_is_refused_or_read(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    raw = bytearray(saved(np.arange(6, dtype=np.float32)))
    for _ in range(rng.randint(1, 4)):
        raw[rng.randrange(90)] = rng.randrange(256)
    damaged = bytes(raw[: rng.choice([len(raw), rng.randrange(len(raw))])])
    with contextlib.suppress(GraphError):
        service.embed("x.npy", damaged)
    (tmp_path / "x.npy").write_bytes(damaged)
    with contextlib.suppress(ValueError):
        load("x", str(tmp_path / "x.npy"))


def test_a_header_that_is_no_python_is_refused() -> None:
    with pytest.raises(GraphError, match=r"not a \.npy file that can be read"):
        service.embed("x.npy", b"\x93NUMPY\x01\x00\x16\x00{'descr': '<f8', ('sha\n")


def test_data_whose_bytes_are_not_those_of_its_hash_is_a_problem() -> None:
    made = service.embed("x.npy", saved(np.zeros(2, np.float32)))
    other = service.embed("y.npy", saved(np.ones(2, np.float32)))
    (ref,), (entry,) = made["data"], other["data"].values()
    graph = page({"id": "f", "op": "File", "text": {"file": ref}})
    assert "wanted the hash of a .npy file that the graph holds" in problems(graph)[0]
    assert "another hash" in problems({**graph, "data": {ref: entry}})[0]
    assert "wanted a .npy file" in problems({**graph, "data": {ref: {"npy_base64": "%%%"}}})[0]
    assert problems({**graph, "data": made["data"]}) == []


@pytest.mark.parametrize(
    "changes",
    [
        None, {}, [1], [{"do": "explode"}], [{"do": "add_node"}], [{"do": "add_node", "node": {"id": "x", "op": "Const"}}],
        [{"do": "remove_node", "id": "zz"}], [{"do": "set_text", "id": "x", "pin": "val"}], [{"do": "set_text", "id": [], "pin": 1, "text": 1}],
        [{"do": "add_wire", "wire": "ab"}], [{"do": "add_wire", "wire": ["x.output", "y"]}], [{"do": "add_wire", "wire": ["x.o.p", "y.i"]}],
        [{"do": "remove_wire", "wire": ["x.output", "y.input"]}], [{"do": []}],
    ],
)  # fmt: skip
def test_edits_that_do_not_fit_are_refused(changes: Any) -> None:
    with pytest.raises(GraphError, match=r"^graph: edits"):
        service.repair(page(X), None, changes)


def test_a_wish_for_more_memory_than_there_is_is_a_problem() -> None:
    for op, text in [
        ("Const", {"val": "ones", "shape": "[999999][999999]"}),
        ("Random", {"shape": "[99999999][99999999][99]"}),
    ]:
        assert "cells" in problems(page({"id": "x", "op": op, "text": text}))[0]


def test_numbers_that_do_not_suit_the_type_are_problems_with_a_repair() -> None:
    for dist, dtype, repair in [
        ("normal(0,1)", "DT_INT32", "Change to integers(0,9)"),
        ("integers(-9,9)", "DT_UINT8", "Change to integers(0,9)"),
        ("integers(0,300)", "DT_INT8", "Change to integers(0,9)"),
        ("uniform(0,1e38)", "DT_FLOAT", None),
    ]:
        node = {"id": "r", "op": "Random", "text": {"shape": "2", "dist": dist, "dtype": dtype}}
        (problem,) = service.check(page(node))["problems"]
        assert (problem["pin"], (problem["repair"] or {}).get("label")) == ("dist", repair)
    picture = service.embed("a.png", png.encode(np.zeros((2, 2), np.uint8)))
    node = {"id": "p", "op": "Image", "text": {**picture["node"]["text"], "dtype": "DT_INT8"}}
    (problem,) = service.check({**page(node), "data": picture["data"]})["problems"]
    assert (problem["pin"], problem["repair"]["label"]) == ("dtype", "Change to DT_UINT8")


def test_kinds_and_pages_that_do_not_exist_are_refused() -> None:
    for call in (
        lambda: service.export(page(X), kind="exe"),
        lambda: service.run(page(X), page="q"),
        lambda: service.check(page(X), page="q"),
    ):
        with pytest.raises(GraphError):
            call()
