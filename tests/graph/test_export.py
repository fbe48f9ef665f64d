"""Exports: Python that runs in a process of its own and gives the same bits, JSON that comes back the same, npz, HTML."""

from __future__ import annotations

import ast
import base64
import builtins
import hashlib
import io
import json
import keyword
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_pages import CASES, cells, page_of
from support import PACKAGE, Case, difference, python

from poolgrad._common import png
from poolgrad.graph import Graph, GraphError, Scope, Session, ops, service
from poolgrad.graph.blocks import BLOCKS
from poolgrad.graph.export import fetched


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.op)
def test_exported_python_run_by_itself_gives_the_same_bits(case: Case, tmp_path: Path) -> None:
    scope, _, _ = page_of(case)
    names = fetched(scope.page)
    want = Session(scope).run(names)
    script = tmp_path / "page.py"
    script.write_text(scope.to_python(), "utf-8")
    done = python(str(script), str(tmp_path / "arrays.npz"))
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "arrays.npz") as got:
        assert sorted(got) == sorted(names)
        for name, array in zip(names, want, strict=True):
            assert difference(got[name], array) == ""


def test_exported_python_prints_when_it_is_given_no_file(tmp_path: Path) -> None:
    graph = next(e["graph"] for e in service.examples() if e["name"] == "seed 003 repaired")
    script = tmp_path / "page.py"
    script.write_bytes(service.export(graph, kind="python")[0])
    done = python(str(script))
    assert done.returncode == 0, done.stderr
    assert "dx.output: float32 [2, 2, 2, 2, 2]" in done.stdout


def test_every_example_without_problems_runs_as_python_with_its_data_inside(tmp_path: Path) -> None:
    for example in service.examples():
        if "as pictured" in example["name"]:
            continue
        script = tmp_path / "page.py"
        script.write_bytes(service.export(example["graph"], kind="python")[0])
        done = python(str(script), str(tmp_path / "arrays.npz"))
        assert done.returncode == 0, done.stderr


def test_a_page_as_pictured_fails_as_python_at_the_wrong_line(tmp_path: Path) -> None:
    graph = next(e["graph"] for e in service.examples() if e["name"] == "seed 003 as pictured")
    script = tmp_path / "page.py"
    script.write_bytes(service.export(graph, kind="python")[0])
    done = python(str(script))
    assert done.returncode == 1
    assert "dx = ops.MaxPool3DGrad(" in done.stderr
    assert (
        "GraphError: MaxPool3DGrad: dx: orig_output: got shape [2, 2, 2, 2, 2], wanted [2, 1, 1, 1, 2]" in done.stderr
    )


def test_names_that_python_keeps_for_itself_are_changed(tmp_path: Path) -> None:
    s = Scope.new_root_scope("class")
    lam = ops.Const(s.with_op_name("lambda"), "arange(1,5)", shape="1,2,2,1")
    ops.MaxPool(s.with_op_name("s"), lam, "1,2,2,1", "1,2,2,1", "SAME")
    script = tmp_path / "page.py"
    script.write_text(s.to_python(), "utf-8")
    done = python(str(script))
    assert done.returncode == 0, done.stderr
    assert "s.output: float32 [1, 1, 1, 1]" in done.stdout


@pytest.mark.parametrize("name", ['a """ b', "a ''' b", "back\\slash\\", "{page}", "ä 日本"])
def test_any_name_and_any_text_can_be_exported(name: str) -> None:
    odd = "1\n,2 '\" \\ {x} \ud800"
    nodes = [{"id": "x", "op": "Const", "text": {"val": odd}}]
    graph = {"format": "poolgrad-graph", "version": 1, "pages": [{"name": name, "nodes": nodes}]}
    source = service.export(graph, kind="python")[0].decode()
    literals = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    assert name in literals
    assert odd in literals
    for kind in ("json", "html", "npz"):
        assert service.export(graph, kind=kind)[0]


def test_an_empty_page_can_be_exported_too() -> None:
    scope: dict[str, Any] = {"__name__": "page"}
    exec(compile(service.export(service.new_graph(), kind="python")[0], "page.py", "exec"), scope)
    assert scope["result_output"] == []


def test_a_circle_or_an_unknown_block_cannot_become_python() -> None:
    nodes = [{"id": "a", "op": "Add"}, {"id": "b", "op": "Add"}]
    wires = [["a.output", "b.x"], ["b.output", "a.x"]]
    base = {"format": "poolgrad-graph", "version": 1}
    with pytest.raises(GraphError, match="wires in a circle"):
        service.export({**base, "pages": [{"name": "p", "nodes": nodes, "wires": wires}]}, kind="python")
    with pytest.raises(GraphError, match="no name for: a"):
        service.export({**base, "pages": [{"name": "p", "nodes": [{"id": "a", "op": "MatMul"}]}]}, kind="python")


# ---- JSON


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.op)
def test_json_comes_back_the_same_and_runs_the_same(case: Case) -> None:
    scope, made, _ = page_of(case)
    text = scope.to_json()
    again = Graph.from_json(text)
    assert again.to_json() == text
    assert difference(Session(Scope.of(again)).run("out"), Session(scope).run(made)) == ""


def test_json_has_sorted_keys_and_a_block_per_line() -> None:
    text = page_of(CASES[0])[0].to_json()
    assert sum(line.strip().startswith('{"id"') for line in text.splitlines()) == 2
    keys = re.findall(r'^ ?\{?"(\w+)":', text, re.MULTILINE)
    assert keys == sorted(keys)


def test_strange_fields_are_kept_where_they_are() -> None:
    given = {"format": "poolgrad-graph", "version": 1, "author": "me", "data": {"note": {"x": 1}},
             "pages": [{"name": "p", "zoom": 2, "nodes": [{"id": "a", "op": "Const", "text": {}, "colour": [1, 2]}],
                        "wires": [], "fetch": []}]}  # fmt: skip
    assert Graph.from_json(given).to_dict() == given
    assert json.loads(Graph.from_json(json.dumps(given)).to_json()) == given


def test_the_shipped_examples_are_written_as_they_would_be_saved() -> None:
    found = sorted((PACKAGE / "data" / "examples").glob("*.json"))
    assert len(found) >= 4
    for path in found:
        assert Graph.from_json(path.read_text("utf-8")).to_json() == path.read_text("utf-8"), path.name


def test_the_schema_names_what_the_reader_reads_and_accepts_the_examples() -> None:
    schema = json.loads((PACKAGE / "data" / "graph.schema.json").read_text("utf-8"))
    for example in service.examples():
        assert violations(schema, example["graph"], schema) == []
    for wrong in (
        {},
        {"format": "poolgrad-graph", "version": 2, "pages": []},
        {"format": "x", "version": 1, "pages": [{}]},
    ):
        assert violations(schema, wrong, schema) != []
    node = {"format": "poolgrad-graph", "version": 1, "pages": [{"name": "p", "nodes": [{"id": "1x", "op": "Const"}]}]}
    assert violations(schema, node, schema) != []


def violations(schema: dict[str, Any], value: Any, root: dict[str, Any]) -> list[str]:
    """Return the violations of a schema; know only the words that this schema uses."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    kinds = {"object": dict, "array": list, "string": str, "number": (int, float), "integer": int}
    known = {"type", "const", "required", "properties", "additionalProperties", "items", "minItems", "maxItems", "pattern",
             "propertyNames", "minLength", "maxLength", "description", "title", "$schema", "$id", "$defs", "default"}  # fmt: skip
    assert set(schema) <= known, "a word that this reader does not know"
    wrong = []
    if "const" in schema and value != schema["const"]:
        wrong.append(f"{value!r} is not {schema['const']!r}")
    if "type" in schema and not isinstance(value, kinds[schema["type"]]):
        return [*wrong, f"{value!r} is no {schema['type']}"]
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        wrong.append(f"{value!r} does not match")
    if isinstance(value, list):
        wrong += ["too few"] if len(value) < schema.get("minItems", 0) else []
        wrong += [w for v in value for w in violations(schema.get("items", {}), v, root)]
    if isinstance(value, dict):
        wrong += [f"no {key}" for key in schema.get("required", []) if key not in value]
        rest = schema.get("additionalProperties", {})
        for key, v in value.items():
            inner = schema.get("properties", {}).get(key, rest)
            wrong += violations(inner, v, root) if isinstance(inner, dict) else []
    return wrong


# ---- npz, HTML


def test_npz_holds_every_array_by_block_and_pin() -> None:
    graph = next(e["graph"] for e in service.examples() if e["name"] == "seven forward pictures")
    made, name, _ = service.export(graph, kind="npz")
    assert name == "seven-forward-pictures.npz"
    with np.load(io.BytesIO(made), allow_pickle=False) as arrays:
        assert arrays["argmax.argmax"].tolist() == [[[[6, 7]]], [[[6, 7]]]]
        assert len(arrays.files) == sum(len(BLOCKS[n["op"]].outputs) for n in graph["pages"][0]["nodes"])


def test_html_is_one_file_that_names_no_other_place() -> None:
    graph = next(e["graph"] for e in service.examples() if e["name"] == "seed 003 repaired")
    graph["pages"][0]["nodes"][0]["note"] = "</script><script>alert(1)</script>"
    made = service.export(graph, kind="html")[0].decode()
    assert "</script><script>alert" not in made
    assert "/*DATA*/" not in made
    assert "<!--TITLE-->" not in made
    maps = json.loads(re.search(r'<script type="importmap">(.*?)</script>', made, re.DOTALL).group(1))  # type: ignore[union-attr]
    assert {"poolgrad/viewer", "poolgrad/explain"} <= set(maps["imports"])
    modules = {name: base64.b64decode(url.partition(",")[2]).decode() for name, url in maps["imports"].items()}
    for source in modules.values():
        assert set(re.findall(r"from '(poolgrad/[\w-]+)'", source)) <= set(modules)
    addresses = set(re.findall(r"https?://[^\"'\s)]+", made + "".join(modules.values())))
    assert all(a.startswith("http://www.w3.org/") for a in addresses), addresses
    content = re.search(r'id="poolgrad-data">(.*?)</script>', made, re.DOTALL).group(1)  # type: ignore[union-attr]
    data = json.loads(content)
    assert set(data) == {"ops", "pages"}
    (only,) = data["pages"]
    assert set(only) == {"graph", "run"}
    assert cells(only["run"]["nodes"]["y"]["outputs"]["output"]).ravel().tolist() == [15, 16, 31, 32]


def test_a_notebook_gets_a_frame_with_a_table_for_where_frames_are_not_shown() -> None:
    scope, _, _ = page_of(CASES[0])
    shown = scope._repr_html_()
    assert shown.startswith("<iframe ")
    assert 'sandbox="allow-scripts"' in shown
    assert "<td>out.output</td>" in shown


# ---- data inside a graph


def test_large_arrays_and_half_types_travel_as_data_by_their_hash() -> None:
    import ml_dtypes

    x = np.arange(600, dtype=np.float32).astype(ml_dtypes.bfloat16).reshape(1, 20, 30, 1)
    s = Scope.new_root_scope()
    y = ops.MaxPool(s.with_op_name("y"), x, "1,2,2,1", "1,2,2,1", "VALID")
    (ref,) = s.graph.data
    raw = base64.b64decode(s.graph.data[ref]["npy_base64"])
    assert ref == f"sha256:{hashlib.sha256(raw).hexdigest()}"
    again = Scope.of(Graph.from_json(s.to_json()))
    assert difference(Session(again).run("y"), Session(s).run(y)) == ""


def test_a_picture_comes_in_as_floats_from_0_to_1_or_as_codes() -> None:
    raw = png.encode(np.array([[0, 255], [51, 102]], np.uint8))
    made = service.embed("a.PNG", raw)
    assert (made["node"]["op"], made["shape"], made["dtype"]) == ("Image", [1, 2, 2, 1], "float32")
    graph = service.new_graph()
    graph["data"] = made["data"]
    graph["pages"][0]["nodes"] = [{"id": "p", **made["node"]}]
    out = service.run(graph)["nodes"]["p"]["outputs"]["output"]
    np.testing.assert_array_equal(cells(out).ravel(), np.array([0, 1, 0.2, 0.4], np.float32))
    graph["pages"][0]["nodes"][0]["text"]["dtype"] = "DT_UINT8"
    assert cells(service.run(graph)["nodes"]["p"]["outputs"]["output"]).ravel().tolist() == [0, 255, 51, 102]


NAMES = sorted(
    name
    for name in {
        *dir(builtins), *keyword.kwlist, *keyword.softkwlist, *dir(Scope), *dir(ops),
        "s", "np", "sys", "ops", "Scope", "Session", "names", "result_output", "name", "array", "poolgrad", "graph",
        "__file__", "__builtins__", "__name__", "__debug__", "__annotations__", "__dict__", "print_", "print__", "block__name__",
    }
    if re.fullmatch("[A-Za-z_][A-Za-z0-9_]{0,99}", name)
)  # fmt: skip


def test_blocks_of_any_name_are_exported_as_python_that_gives_the_same_numbers(tmp_path: Path) -> None:
    scope = Scope.new_root_scope()
    made = [ops.Const(scope.with_op_name(name), f"{i},{i + 1}") for i, name in enumerate(NAMES)]
    for i, first in enumerate(made[:-1]):  # so that the exported code reads each name, too
        ops.Add(scope.with_op_name(f"added_{i}"), first, made[i + 1])
    assert [node for node in scope.page.nodes if not node.startswith("added_")] == NAMES
    names = [f"{name}.output" for name in scope.page.nodes]
    scope.page.fetch = names
    script = tmp_path / "page.py"
    script.write_text(scope.to_python(), "utf-8")
    done = python(str(script), str(tmp_path / "arrays.npz"))
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "arrays.npz") as got:
        assert sorted(got) == sorted(names)
        for i, name in enumerate(NAMES):
            assert got[f"{name}.output"].tolist() == [i, i + 1]
        assert got["added_3.output"].tolist() == [7, 9]
    shown = python(str(script))
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count("float32 [2]") == len(names)


@pytest.mark.parametrize(
    "name", ["print", "zip", "len", "dict", "list", "__name__", "sys", "np", "class", "match", "type"]
)
def test_a_single_block_of_a_name_that_the_script_uses_prints_its_array(name: str, tmp_path: Path) -> None:
    scope = Scope.new_root_scope()
    ops.Const(scope.with_op_name(name), "7,8")
    script = tmp_path / "page.py"
    script.write_text(scope.to_python(), "utf-8")
    done = python(str(script))
    assert (done.returncode, done.stdout) == (0, f"{name}.output: float32 [2]\n[7. 8.]\n"), done.stderr


def test_data_that_a_quoted_text_names_is_exported_too(tmp_path: Path) -> None:
    made = service.embed("a.png", png.encode(np.full((2, 3), 5, np.uint8)))
    (ref,) = made["data"]
    graph = service.new_graph() | {"data": made["data"]}
    graph["pages"][0]["nodes"] = [{"id": "x", "op": "Image", "text": {"file": f' "{ref}" ', "dtype": "DT_UINT8"}}]
    script = tmp_path / "page.py"
    script.write_bytes(service.export(graph, kind="python")[0])
    done = python(str(script))
    assert done.returncode == 0, done.stderr
    assert "uint8 [1, 2, 3, 1]" in done.stdout


# ---- one page alone


def test_an_export_holds_one_page_and_the_files_that_its_blocks_name() -> None:
    made = {
        name: service.embed(f"{name}.png", png.encode(np.full((2, 2), i, np.uint8))) for i, name in enumerate("abc")
    }
    graph = service.new_graph()
    graph["pages"] = [{"name": name, "nodes": [{"id": "x", **made[name]["node"]}]} for name in "ab"]
    graph["data"] = {key: entry for one in made.values() for key, entry in one["data"].items()}
    for kind in ("json", "html", "python"):
        content = service.export(graph, "b", kind)[0].decode()
        assert next(iter(made["b"]["data"])) in content, kind
        assert not any(next(iter(made[name]["data"])) in content for name in "ac"), kind
    alone = Graph.from_json(graph).only("b")
    assert [page.name for page in alone.pages] == ["b"]
    assert list(alone.data) == list(made["b"]["data"])
    with pytest.raises(GraphError, match="page: got 'z'"):
        Graph.from_json(graph).only("z")
