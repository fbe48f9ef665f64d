"""Graphs that ask for much: reading, checking, running and exporting take time in proportion to their size, and sizes have limits."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from poolgrad._common import png
from poolgrad.graph import Graph, GraphError, service
from poolgrad.graph.executor import BlockResult, Cache
from poolgrad.graph.model import MOST_MARKS, MOST_NODES, MOST_PAGES, MOST_TEXT, MOST_WIRES, Limits, Page

SMALL, LARGE = 200, 1600
SIZES = {"ksize": "1,2,2,1", "strides": "1,2,2,1", "padding": "VALID"}
X = {"id": "x", "op": "Const", "text": {"val": "arange(1,17)", "shape": "[1][4][4][1]"}}


def base(*pages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"format": "poolgrad-graph", "version": 1, "pages": list(pages), **more}


def page(nodes: list[dict[str, Any]], wires: Any = (), **more: Any) -> dict[str, Any]:
    return base({"name": "p", "nodes": nodes, "wires": [list(wire) for wire in wires], **more})


def copies(count: int, op: str, texts: dict[str, str], *pins: str, name: str = "a") -> dict[str, Any]:
    """Return a page of x and count - 1 blocks of an op, with x wired to these pins of each block."""
    names = [name, *(f"{name}_{i}" for i in range(1, count - 1))]
    nodes = [X, *({"id": n, "op": op, "text": texts} for n in names)]
    return page(nodes, [["x.output", f"{n}.{pin}"] for n in names for pin in pins])


def chain(count: int, close: bool = False) -> dict[str, Any]:
    ends = ["x", *(f"a{i}" for i in range(count - 1))]
    wires = [[f"{s}.output", f"{t}.{pin}"] for s, t in pairwise(ends) for pin in "xy"]
    if close:
        wires[0][0] = f"{ends[-1]}.output"
    return page([X, *({"id": n, "op": "Add"} for n in ends[1:])], wires)


def spread(count: int) -> dict[str, Any]:
    """Return a page whose blocks are half poolings of x, each with its own windows, and half gradients without orig_output."""
    nodes = [X]
    for i in range(count // 2):
        nodes.append({"id": f"y{i}", "op": "MaxPool", "text": {**SIZES, "ksize": f"1,{i % 3 + 1},1,1"}})
        nodes.append({"id": f"g{i}", "op": "MaxPoolGrad", "text": SIZES})
    wires = [["x.output", f"{n['id']}.{'input' if n['op'] == 'MaxPool' else 'orig_input'}"] for n in nodes[1:]]
    return page(nodes[: count - 1], wires)


GROWING: dict[str, Callable[[int], dict[str, Any]]] = {
    "pages": lambda n: base(*({"name": f"p{i}"} for i in range(4 * n))),
    "blocks of no kind": lambda n: page([{"id": f"a{i}", "op": f"MaxPol{i}"} for i in range(n)]),
    "texts of no pin": lambda n: page([{"id": f"a{i}", "op": "Const", "text": {f"vall{i}": "1"}} for i in range(n)]),
    "arrays": lambda n: page([{**X, "id": f"a{i}"} for i in range(n)]),
    "a chain": chain,
    "a circle": lambda n: chain(n, close=True),
    "poolings": lambda n: copies(n, "MaxPool", SIZES, "input"),
    "no orig_output": lambda n: copies(n, "MaxPoolGrad", SIZES, "orig_input", "grad"),
    "names that are taken": lambda n: copies(n, "MaxPoolGrad", SIZES, "orig_input", name="y"),
    "other windows": spread,
    "wrong shapes": lambda n: copies(n, "MaxPoolGrad", SIZES, "orig_input", "orig_output", "grad"),
    "no sequences": lambda n: copies(n, "FractionalMaxPoolGrad", {}, "orig_input", "orig_output"),
    "no shapes": lambda n: copies(n, "AvgPoolGrad", SIZES, "grad"),
    "wires to one pin": lambda n: page(
        [X, {"id": "y", "op": "MaxPoolGrad", "text": SIZES}], [["x.output", "y.orig_output"]] * (4 * n)
    ),
    "outputs of no block": lambda n: page([X], fetch=["z.output"] * (4 * n)),
    "data": lambda n: {**page([X]), "data": {f"k{i}": {"a": 1} for i in range(8 * n)}},
    "builtins": lambda n: page([{**X, "id": f"print{'_' * (i % 90)}{i if i > 89 else ''}"} for i in range(n)]),
}


def seconds(call: Callable[[], Any]) -> float:
    begin = time.process_time()  # time of this process alone: other work on the machine does not count
    with suppress(GraphError):
        call()
    return time.process_time() - begin


@pytest.mark.parametrize("name", GROWING)
def test_time_grows_with_the_size_of_a_graph_not_with_its_square(name: str) -> None:
    small, large = (GROWING[name](n) for n in (SMALL, LARGE))
    for call in (service.check, lambda g: service.export(g, kind="python"), service.run):
        before = min(seconds(partial(call, small)) for _ in range(2))
        limit = 3 * (LARGE // SMALL) * before + 0.1
        times = (seconds(partial(call, large)) for _ in range(3))  # other processes may slow down one measurement
        assert any(after < limit for after in times), f"{before:.3f} s, then never below {limit:.3f} s"


@pytest.mark.clock
def test_twenty_thousand_pages_are_read_in_a_second() -> None:
    text = json.dumps(GROWING["pages"](5000))
    assert seconds(lambda: Graph.from_json(text)) < 1


LONG_TEXTS: list[tuple[str, str, str]] = [
    ("Const", "val", "1" * 500_000 + "x"),
    ("Const", "val", "1" * 500_000),
    ("Const", "val", "ones" + " " * 500_000 + "x"),
    ("Const", "val", "fill(" + ")" * 500_000 + "x"),
    ("Const", "val", "1," * 500_000),
    ("Const", "val", "{" * 500_000),
    ("Const", "val", " " * 1_000_000),
    ("Const", "shape", "[1]" * 300_000),
    ("Const", "shape", "1," * 500_000),
    ("Const", "shape", "]" + " " * 900_000),
    ("Random", "dist", "normal(" + ")" * 900_000 + "x"),
    ("Random", "dtype", "f" * 1_000_000),
    ("MaxPool", "attrs", "Attrs()." * 100_000),
    ("MaxPool", "attrs", "MaxPool::" * 100_000),
    ("MaxPool", "attrs", ";" * 1_000_000),
    ("MaxPool", "attrs", "data_format_ = " + "(" * 1_000_000),
    ("MaxPool", "padding", "SA" * 500_000),
    ("MaxPool", "ksize", "1" * 1_000_000),
    ("FractionalMaxPool", "pooling_ratio", "." * 500_000),
    ("FractionalMaxPool", "pooling_ratio", "1" * 500_000 + "e" * 500_000),
]


@pytest.mark.parametrize(("op", "pin", "text"), LONG_TEXTS, ids=[f"{op}-{pin}-{t[:9]}" for op, pin, t in LONG_TEXTS])
def test_a_long_text_is_read_or_refused_in_time(op: str, pin: str, text: str) -> None:
    words = {"val": "1", "shape": "1"} if op in ("Const", "Random") else dict(SIZES)
    graph = page(
        [{"id": "x", "op": op, "text": {k: v for k, v in words.items() if op != "Random" or k != "val"} | {pin: text}}]
    )
    assert seconds(lambda: service.check(graph)) < 2.5


@pytest.mark.parametrize(
    ("graph", "wanted"),
    [
        (base(*({"name": f"p{i}"} for i in range(MOST_PAGES + 1))), f"pages: got {MOST_PAGES + 1} pages"),
        (page([{"id": f"a{i}", "op": "Const"} for i in range(MOST_NODES + 1)]), "pages[0].nodes: got 10001 blocks"),
        (page([X], [["x.output", "y.input"]] * (MOST_WIRES + 1)), f"pages[0].wires: got {MOST_WIRES + 1} wires"),
        (page([X], fetch=["x.output"] * (MOST_WIRES + 1)), f"pages[0].fetch: got {MOST_WIRES + 1} outputs"),
        (page([{**X, "text": {"val": "1" * (2**20 + 1)}}]), "pages[0].nodes[0].text.'val': got 1048577 characters"),
        (page([{**X, "id": f"a{i}", "text": {"val": "1" * 2**20}} for i in range(3)]), f"at most {MOST_TEXT}"),
    ],
    ids=["pages", "blocks", "wires", "fetch", "text", "texts"],
)  # fmt: skip
def test_what_is_too_large_is_refused_by_name(graph: dict[str, Any], wanted: str) -> None:
    with pytest.raises(GraphError) as caught:
        Graph.from_json(graph)
    assert wanted in str(caught.value)


@pytest.mark.parametrize("text", ["[" + "[]," * MOST_MARKS, '{"a":' * MOST_MARKS, "1," * (2 * MOST_MARKS)])
def test_json_of_too_many_values_is_not_even_parsed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json, "loads", None)
    for given in (text, text.encode()):
        with pytest.raises(GraphError, match=r"^graph: JSON: got \d+ commas, colons and brackets, wanted at most"):
            Graph.from_json(given)
    with pytest.raises(GraphError, match=r"^import: got \d+ commas, colons and brackets, wanted at most"):
        service.import_({"p.json": text.encode()})


def test_xml_of_too_many_elements_is_not_even_parsed() -> None:
    raw = b"<svg>" + b"<a/>" * 2**19 + b"</svg>"
    with pytest.raises(GraphError, match=r"^import: got \d+ elements and attributes, wanted at most"):
        service.import_({"p.svg": raw})


def test_ids_that_are_all_the_same_come_in_from_an_imported_page_in_time() -> None:
    raw = b"<svg>" + b'<use id="a" href="#Const"/>' * MOST_NODES + b"</svg>"
    assert seconds(lambda: service.import_({"p.svg": raw})) < 3
    with pytest.raises(GraphError, match=r"^import: got 10001 blocks, wanted at most 10000"):
        service.import_({"p.svg": raw.replace(b"</svg>", b'<use id="a" href="#Const"/></svg>')})


def test_shapes_of_too_many_dimensions_are_problems() -> None:
    for op in ("Const", "Random", "Placeholder"):
        text = {"shape": "1," * 65} | ({"val": "1"} if op == "Const" else {"feed": "1"} if op == "Placeholder" else {})
        (found,) = service.check(page([{"id": "x", "op": op, "text": text}]))["problems"]
        assert (found["pin"], found["got"], found["expected"]) == ("shape", "65 sizes", "at most 32")


def test_a_fresh_name_is_free_and_the_first_ones_count_up() -> None:
    made = Page()
    names = []
    for _ in range(3000):
        names.append(made.fresh("x"))
        made.nodes[names[-1]] = None  # type: ignore[assignment]
    assert len(set(names)) == 3000
    assert names[:4] == ["x", "x_1", "x_2", "x_3"]


def test_the_cache_counts_what_it_holds_and_a_result_that_is_too_large_costs_nobody_a_place() -> None:
    cache = Cache(100_000)
    for i in range(50):
        cache.put(str(i), BlockResult({"output": np.zeros(100)}))
        assert cache.held == sum(result.nbytes for result in cache.results.values()) <= 100_000
    before = list(cache.results)
    cache.put("large", BlockResult({"output": np.zeros(100_000)}))
    assert list(cache.results) == before
    cache.put(before[0], BlockResult({"output": np.zeros(1)}))
    assert cache.held == sum(result.nbytes for result in cache.results.values())


# ---- limits of a page's requests to the studio

LIMITS = Limits(nbytes=10_000, cells=1000, links=100)


def problems(graph: dict[str, Any], limits: Limits = LIMITS) -> list[str]:
    return [p["sentence"] for p in service.check(service.limited(graph, limits))["problems"]]


def test_arrays_of_a_page_have_a_limit_together_and_the_block_beyond_it_is_named() -> None:
    nodes = [{"id": f"r{i}", "op": "Random", "text": {"shape": "1000"}} for i in range(4)]
    wanted = "r2: got arrays of 4000 bytes, with 8000 bytes of other blocks, wanted at most 10000 bytes on a page"
    assert problems(page(nodes[:2])) == []
    assert problems(page(nodes[:3])) == [wanted]
    ran = service.run(service.limited(page(nodes), LIMITS))
    assert [node["status"] for node in ran["nodes"].values()] == ["ok", "ok", "failed", "failed"]
    assert service.run(page(nodes))["problems"] == [], "your own scripts have no such limit"


@pytest.mark.parametrize("text", [{"val": "ones", "shape": "[67108864]"}, {"val": "arange(0,67108864)"}])
def test_an_array_that_is_too_large_is_refused_before_it_is_made(text: dict[str, str]) -> None:
    graph = page([{"id": "x", "op": "Const", "text": {**text, "dtype": "DT_DOUBLE"}}])
    assert seconds(lambda: problems(graph)) < 0.1
    assert "at most 1250" in problems(graph)[0]


def test_a_picture_that_is_too_large_for_the_page_is_refused() -> None:
    made = service.embed("a.png", png.encode(np.zeros((60, 60), np.uint8)))
    graph = {**page([{"id": "x", **made["node"]}]), "data": made["data"]}
    assert "got a picture of 3600 cells, wanted at most 1250 cells" in problems(graph)[0]


def test_padding_that_makes_a_huge_result_is_refused_before_windows_are_counted() -> None:
    huge = 2**31 - 2
    text = {"ksize": f"1,{huge + 1},1,1", "strides": "1,1,1,1", "padding": "EXPLICIT"}
    text["attrs"] = f"explicit_paddings_ = {{0,0,{huge},{huge},0,0,0,0}};"
    graph = page([X, {"id": "y", "op": "MaxPool", "text": text}], [["x.output", "y.input"]])
    assert seconds(lambda: problems(graph)) < 0.5
    assert "explicit_paddings that make arrays of" in problems(graph)[0]


def test_windows_of_a_page_have_a_limit_together() -> None:
    text = {"ksize": "1,2,2,1", "strides": "1,1,1,1", "padding": "VALID"}
    graph = copies(40, "MaxPool", text, "input")  # 36 cells each
    assert "got windows of 36 cells, with 972 cells of other blocks, wanted at most 1000 cells" in problems(graph)[0]
    ran = service.run(service.limited(copies(4, "MaxPool", text, "input"), LIMITS))
    links = [node["links"] for node in ran["nodes"].values()]
    assert links[0] is None
    assert ["ask" in (made["hits"] or {}) for made in links[1:]] == [False, False, True]  # the last lists no hits


def test_random_numbers_do_not_depend_on_how_many_are_drawn_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from poolgrad.graph import literals

    for dist in ("normal(1,2)", "uniform(-1,3)", "integers(-5,5)"):
        whole = literals.random(dist, (11, 13), "float32", 7)
        monkeypatch.setattr(literals, "_STEP", 10)
        assert np.array_equal(whole, literals.random(dist, (11, 13), "float32", 7))
        monkeypatch.undo()
    rng = np.random.default_rng(7)
    assert np.array_equal(literals.random("normal(1,2)", (5,), "float64", 7), 1 + 2 * rng.standard_normal(5))


def test_numbers_between_commas_are_read_as_they_are_one_by_one() -> None:
    from poolgrad.graph import literals

    texts = ["1,2,3", "1,2,3,", "1.5,-2e3, 4", "1,,2", "1 2", "1e", "--1", "1e400", "1\n,2", "+1,.5,5.", "1e5,3e38", "127,128",
             "-129", "9223372036854775807", "9223372036854775808", "0" * 30 + "5", "9" * 5000]  # fmt: skip
    for text in texts:
        for name in ("float32", "float16", "int8", "int64"):
            kind = np.dtype(name)

            def read(nested: bool, text: str = text, kind: np.dtype[Any] = kind) -> Any:
                try:
                    made = literals.parse(f"{{{text}}}" if nested else text, None, kind.name)
                except ValueError as error:
                    return type(error)
                return made.tolist(), made.dtype

            assert read(False) == read(True), (text, name)


def test_an_array_file_that_claims_a_huge_shape_is_refused() -> None:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999999,), }"
    header += b" " * (118 - len(header) - 1) + b"\n"
    raw = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(16)
    with pytest.raises(GraphError, match=r"^upload: "):
        service.embed("x.npy", raw)
