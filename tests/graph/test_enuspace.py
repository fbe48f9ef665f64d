"""Pages of enuSpace come in as graphs. The fixtures were written from the format's description; no original page is among them."""

from __future__ import annotations

import json

import pytest
from graph_pages import cells
from support import ROOT

from poolgrad.graph import GraphError, service

DATA = ROOT / "tests" / "data" / "enuspace"


def read(*names: str) -> dict[str, bytes]:
    return {name: (DATA / name).read_bytes() for name in names}


def test_a_page_with_its_data_runs_and_its_session_is_what_is_fetched() -> None:
    made = service.import_(read("seed004.svg", "seed004.dat"))
    page = made["graph"]["pages"][0]
    assert (page["name"], page["fetch"], made["notes"]) == ("seed004", ["ID_dx.output"], [])
    nodes = {node["id"]: node for node in page["nodes"]}
    assert {name: node["op"] for name, node in nodes.items()} == {
        "ID_x": "Const", "ID_y": "MaxPool", "ID_g": "Const", "ID_dx": "MaxPoolGradGrad",
    }  # fmt: skip
    assert nodes["ID_y"]["text"]["ksize"] == "{1,3,2,1}", "the text as it was typed"
    assert nodes["ID_y"]["at"] == [300, 40]
    ran = service.run(made["graph"])
    assert ran["problems"] == []
    assert cells(ran["nodes"]["ID_x"]["outputs"]["output"]).ravel().tolist() == list(range(1, 17))
    assert cells(ran["nodes"]["ID_y"]["outputs"]["output"]).ravel().tolist() == [7, 8, 15, 16], "not the stale result"
    assert cells(ran["nodes"]["ID_dx"]["outputs"]["output"]).ravel().tolist() == [7, 8, 15, 16]


def test_without_its_data_the_page_comes_in_and_says_what_is_missing() -> None:
    made = service.import_(read("seed004.svg"))
    assert made["notes"] == ["ID_x: its cells, '[2][2][2][2]' at byte 8, are not in the 0 bytes of data"]
    assert service.check(made["graph"])["nodes"]["ID_x"]["status"] == "failed"


def test_a_run_file_comes_in_and_what_is_not_here_is_kept_and_said() -> None:
    made = service.import_(read("avgpool.json"))
    assert made["notes"] == ["ID_other: there is no block 'MatMul' here; it is kept, but does not run"]
    ran = service.run(made["graph"])
    assert cells(ran["nodes"]["ID_y"]["outputs"]["output"]).ravel().tolist() == [4, 5, 12, 13]
    assert cells(ran["nodes"]["ID_shape"]["outputs"]["output"]).dtype == "int32"
    assert [p["node"] for p in ran["problems"]] == ["ID_other"]


def test_our_own_json_comes_in_unchanged() -> None:
    graph = service.examples()[0]["graph"]
    made = service.import_({"page.json": service.export(graph)[0]})
    assert made == {"graph": graph, "notes": []}


def svg(body: str, code: str = "utf-16") -> dict[str, bytes]:
    text = f'<?xml version="1.0"?><svg xmlns:xlink="http://www.w3.org/1999/xlink">{body}</svg>'
    return {"p.svg": text.encode(code)}


def test_strange_pins_doubled_ids_and_loose_wires_are_said() -> None:
    made = service.import_(
        svg(
            '<use id="a" xlink:href="#MaxPool"><pg-set-pin variable="#colour" value="red"/></use><use id="a" xlink:href="#MaxPool"/>'
            '<polyline><pg-link from-id="q" param-from="output" to-id="a" param-to="input"/></polyline>',
            "utf-8",
        )
    )
    assert made["notes"] == [
        "a: colour: MaxPool has no such pin; 'red' is left out",
        "a: two blocks have this id; the second is a_1",
        "a wire from 'q' to 'a' ends at no block; it is left out",
    ]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"a.txt": b"x"},
        {"a.svg": b""},
        {"a.svg": b"<svg"},
        {"a.svg": b"\xff\xfe\x00"},
        {"a.svg": b"<svg/>"},
        {"a.svg": b'<!DOCTYPE a [<!ENTITY b "c">]><svg>&b;</svg>'},
        {"a.json": b"{}"},
        {"a.json": b"["},
        {"a.json": b"[" * 99999},
        {"a.json": b'{"object": [1]}'},
        {"a.json": b'{"object": [{"input": 3}]}'},
        {"a.json": b'{"object": [{"input": [3]}]}'},
        {"a.json": b'{"object": []}'},
        {"a.svg": b"<svg/>", "b.svg": b"<svg/>"},
        {"a.svg": b"<svg/>", "b.dat": b"", "c.dat": b""},
    ],
    ids=repr,
)
def test_files_that_are_no_page_are_refused(given: dict[str, bytes]) -> None:
    with pytest.raises(GraphError):
        service.import_(given)


def test_a_run_file_full_of_wrong_types_is_read_or_refused() -> None:
    base = json.loads((DATA / "avgpool.json").read_text("utf-8"))
    for junk in (None, 7, [], {}, "x" * 300, True):
        for key in ("symbol-name", "id"):
            wrong = json.loads(json.dumps(base))
            wrong["object"][0][key] = junk
            service.check(service.import_({"p.json": json.dumps(wrong).encode()})["graph"])
        wrong = json.loads(json.dumps(base))
        wrong["object"][0]["input"][1]["pin-initial"] = junk
        service.check(service.import_({"p.json": json.dumps(wrong).encode()})["graph"])


WRONG_PLACES = ["1.2.3,4", "1,2.3.4", ".,1", "1,-", "--1,2", "1e,2", "1e999,2", "1e9,0", "nan,1", "inf,1", "1,2,3", "", ",", "1,",
                "a,b", "\u0661,\u00b2", "1px,2px", "1_0,2", "0x1,2", "1" * 400 + ",2"]  # fmt: skip


@pytest.mark.parametrize("words", WRONG_PLACES, ids=lambda w: w[:12])
def test_a_place_that_is_no_pair_of_numbers_is_refused_by_name(words: str) -> None:
    with pytest.raises(GraphError, match=r"^import: 'b': transform: got 'translate\(.*, wanted translate\(x, y\)"):
        service.import_(svg(f'<use id="b" transform="translate({words})" xlink:href="#Const"/>'))


@pytest.mark.parametrize(
    ("words", "at"),
    [("24.00,40.00", [24, 40]), (" 1 , 2 ", [1, 2]), ("1 2", [1, 2]), ("-1.5e1,.5", [-15, 0.5]), ("7", [7, 0]), ("+3.,4", [3, 4])],
)  # fmt: skip
def test_a_place_is_read_as_svg_writes_it(words: str, at: list[float]) -> None:
    made = service.import_(
        svg(f'<use id="b" transform="rotate(3) translate({words}) scale(1,1)" xlink:href="#Const"/>')
    )
    assert made["graph"]["pages"][0]["nodes"][0]["at"] == at


def test_a_transform_without_translate_has_no_place() -> None:
    made = service.import_(svg('<use id="b" transform="rotate(1.2.3)" xlink:href="#Const"/>'))
    assert "at" not in made["graph"]["pages"][0]["nodes"][0]


@pytest.mark.parametrize("word", ["x", "-1", "1.5", "\u00b2", "\u0661", "1e3", "9" * 12, "0x10", "1 2"])
def test_a_position_in_the_data_that_is_no_number_is_refused_by_name(word: str) -> None:
    pin = f'<pg-set-pin variable="#val" shape="[2]" var-type="float" value="" data-position="{word}"/>'
    with pytest.raises(GraphError, match=r"^import: 'b': 'val': 'data-position': got .*, wanted a number of bytes"):
        service.import_(svg(f'<use id="b" xlink:href="#Const">{pin}</use>'))


@pytest.mark.parametrize(
    "shape", ["[9999999999][9999999999][9999999999]", "[-1]", "[1.5]", "[x]", "[2" * 99, "[1]" * 99]
)
def test_cells_of_a_shape_that_is_none_are_said_to_be_missing(shape: str) -> None:
    pin = f'<pg-set-pin variable="#val" shape="{shape}" var-type="float" value="" data-position="0"/>'
    made = service.import_({**svg(f'<use id="b" xlink:href="#Const">{pin}</use>'), "p.dat": bytes(64)})
    assert made["notes"][0].startswith("b: its cells, ")
    assert service.check(made["graph"])["nodes"]["b"]["status"] == "failed"
