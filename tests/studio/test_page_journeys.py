"""The ten journeys of a person who uses the studio, from the first screen to the answer."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from browsing import Watch
from hands import (
    everything,
    export,
    in_block,
    marks,
    open_files,
    place,
    select,
    sentence,
    settled,
    shown,
    tab_to,
    turn,
    wire,
    write,
)
from support import python

from poolgrad.studio.command import door

REPAIRED = {"0,1,1,1,0": "3", "0,1,1,1,1": "4", "1,1,1,1,0": "5", "1,1,1,1,1": "6"}
INSERT = "Insert MaxPool3D and connect it"


def nonzero(cells: dict[str, str]) -> dict[str, str]:
    return {cell: text for cell, text in cells.items() if text != "0"}


def test_1_seed_003_as_pictured_is_explained_and_repaired_by_one_press(page):
    turn(page, "seed 003 as pictured")
    problem = page.get_by_label("problem dx · orig_output", exact=True)
    said = problem.inner_text()
    assert "got shape [2, 2, 2, 2, 2]" in said.lower()
    assert "[2, 1, 1, 1, 2]" in said
    pin = page.get_by_label("dx input orig_output", exact=True)
    assert "[2, 1, 1, 1, 2]" in pin.get_attribute("aria-description")
    assert page.locator('.block[data-id="dx"]').get_attribute("data-status") == "failed"
    problem.get_by_role("button", name=INSERT).click()
    settled(page)
    assert problem.count() == 0
    assert nonzero(in_block(page, "dx.output")) == REPAIRED
    select(page, "dx")
    everything(page)
    right = np.zeros((2, 2, 2, 2, 2))
    right[0, 1, 1, 1], right[1, 1, 1, 1] = (3, 4), (5, 6)
    assert np.array_equal(shown(page, "dx.output", right.shape), right)
    page.keyboard.press("Control+z")
    problem.wait_for()


def test_2_seed_004_has_two_problems_at_once_and_a_repair_for_each(page):
    turn(page, "seed 004 as pictured")
    problems = page.get_by_role("article")
    assert [p.get_attribute("aria-label") for p in problems.all()] == [
        "problem ddy · orig_output",
        "problem ddy · grad",
    ]
    assert page.get_by_label("Page seed 004 as pictured", exact=True).inner_text().split()[4] == "2"
    for pin in ("orig_output", "grad"):
        page.get_by_label(f"problem ddy · {pin}", exact=True).get_by_role("button").last.click()
        settled(page)
    assert problems.count() == 0
    select(page, "ddy")
    everything(page)
    assert shown(page, "ddy.output", (2, 1, 1, 2)).ravel().tolist() == [7, 8, 15, 16]


def test_3_pointing_at_a_gradient_cell_shows_its_window_and_its_tap_and_says_why(page):
    select(page, "dx")
    page.get_by_label("dx[0,1,1,1,0] = 3", exact=True).hover()
    window = {f"0,{d},{h},{w},0": "window" for d in (0, 1) for h in (0, 1) for w in (0, 1)}
    lit = marks(page, "x.output")
    assert set(lit) == set(window)
    assert lit["0,1,1,1,0"] == "tap"
    assert marks(page, "dx.output")["0,1,1,1,0"] == "self"
    assert marks(page, "g.output") == {"0,0,0,0,0": "arrived"}
    said = sentence(page)
    assert said.startswith("dx[0,1,1,1,0] = 3")
    assert "g[0,0,0,0,0]" in said
    assert "x[0,1,1,1,0] = 15" in said
    zero = page.get_by_label("dx[0,0,0,0,0] = 0", exact=True)
    zero.hover()
    assert "15" in sentence(page), "why it is zero: another cell is larger"
    zero.click()
    page.get_by_label("dx[0,1,1,1,0] = 3", exact=True).hover()
    assert sentence(page).startswith("dx[0,0,0,0,0]"), "a click pins"
    page.keyboard.press("Escape")
    page.get_by_label("x[0,1,1,1,0] = 15", exact=True).hover()
    assert sentence(page).startswith("x[0,1,1,1,0] = 15")
    assert "18" in page.get_by_label("Conservation").inner_text()


def test_3_a_cell_that_the_sentence_names_can_be_followed(page):
    select(page, "dx")
    page.get_by_label("dx[0,0,0,0,0] = 0", exact=True).click()
    assert page.get_by_label("Explanation").locator("strong").inner_text() == "dx[0,0,0,0,0] = 0"
    page.get_by_label("Explanation").get_by_text("x[0,1,1,1,0]", exact=True).click()
    assert sentence(page).startswith("x[0,1,1,1,0] = 15")
    assert marks(page, "x.output")["0,1,1,1,0"] == "self"


def test_3_the_pinned_cell_is_explained_anew_when_its_input_changes(page):
    page.get_by_label("dx[0,0,0,1,0] = 0", exact=True).click()
    assert "the gradient goes elsewhere" in sentence(page)
    field = page.get_by_label("x val", exact=True)
    field.fill(field.input_value().replace("1,2,1,", "1,2,99,", 1))
    settled(page)
    assert sentence(page).startswith("dx[0,0,0,1,0] = 3")
    assert "x[0,0,0,1,0] = 99" in sentence(page)
    assert in_block(page, "y.output")["0,0,0,0,0"] == "99"


def test_3_results_that_did_not_change_are_not_sent_again_and_stay_explained(page):
    with page.expect_response("**/api/run") as answered:
        page.get_by_label("g val", exact=True).fill("7,8,9,10")
    settled(page)
    nodes = answered.value.json()["nodes"]
    assert nodes["x"]["outputs"]["output"]["values"] is None
    assert "ptr" not in nodes["y"]["links"]["hits"]
    assert nodes["g"]["outputs"]["output"]["values"]
    select(page, "y")
    page.get_by_label("y[0,0,0,0,0] = 15", exact=True).hover()
    assert "found at x[0,1,1,1,0]" in sentence(page)
    assert marks(page, "x.output")["0,1,1,1,0"] == "tap"
    select(page, "dx")
    page.get_by_label("dx[0,1,1,1,0] = 7", exact=True).hover()
    assert sentence(page).startswith("dx[0,1,1,1,0] = 7 = g[0,0,0,0,0] (7), because x[0,1,1,1,0] = 15")


@pytest.mark.parametrize("name", ["seed 003 repaired", "Your picture"])
def test_4_the_exported_python_gives_the_same_arrays(page, tmp_path, name):
    turn(page, name)
    script = export(page, "Python", tmp_path)
    with np.load(export(page, ".npz", tmp_path)) as saved:
        arrays = dict(saved)
    code = (
        "import json, runpy, sys, numpy as np\n"
        "found = runpy.run_path(sys.argv[1])\n"
        "print(json.dumps([np.asarray(r).tobytes().hex() for r in found['result_output']]))\n"
    )
    done = python("-c", code, str(script))
    assert done.returncode == 0, done.stderr
    fetched = page.evaluate("() => studio.store.page.fetch")
    assert fetched
    assert json.loads(done.stdout) == [arrays[end].tobytes().hex() for end in fetched]


def test_5_an_exported_document_opens_again_as_the_same_file(page, tmp_path):
    first = export(page, "JSON", tmp_path)
    before = first.read_bytes()
    page.get_by_label("New page").click()
    open_files(page, first)
    again = export(page, "JSON", tmp_path)
    assert again.read_bytes() == before
    assert [p["name"] for p in json.loads(before)["pages"]] == page.evaluate(
        "() => studio.store.doc.pages.map(p => p.name)"
    )
    page.get_by_label("New page").click()
    whole = export(page, "Save", tmp_path)
    assert [p["name"] for p in json.loads(whole.read_bytes())["pages"]] == page.evaluate(
        "() => studio.store.doc.pages.map(p => p.name)"
    )


def test_6_the_exported_html_explains_cells_without_a_network(page, watch, tmp_path):
    target = export(page, "HTML", tmp_path)
    text = target.read_text("utf-8")
    assert "https://" not in text
    watch.context.set_offline(True)
    alone = watch.context.new_page()
    watch.follow(alone)
    alone.goto(target.as_uri())
    alone.get_by_label("dx[0,1,1,1,0] = 3", exact=True).hover()
    assert sentence(alone).startswith("dx[0,1,1,1,0] = 3")
    assert marks(alone, "x.output")["0,1,1,1,0"] == "tap"
    assert nonzero(in_block(alone, "dx.output")) == REPAIRED
    watch.context.set_offline(False)


def test_7_seed_003_is_repaired_and_read_with_the_keyboard_alone(page):
    tab_to(page, f"Page {page.evaluate('() => studio.store.page.name')}")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("() => studio.store.page.name") == "seed 003 as pictured"
    page.get_by_role("button", name=INSERT).wait_for()
    tab_to(page, INSERT)
    page.keyboard.press("Enter")
    settled(page)
    tab_to(page, "dx MaxPool3DGrad block")
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.getAttribute('aria-label')") == "dx[0,0,0,0,0] = 0"
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    page.wait_for_function("() => document.activeElement.dataset.cell === '0,1,1,0,0'")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("() => document.activeElement.getAttribute('aria-label')") == "dx[0,1,1,1,0] = 3"
    assert sentence(page).startswith("dx[0,1,1,1,0] = 3")
    assert nonzero(in_block(page, "dx.output")) == REPAIRED


def test_8_a_request_to_another_host_is_blocked_and_seen(chromium, address):
    context = chromium.new_context()
    watch = Watch(context, "127.0.0.1:1")  # as if the studio were elsewhere: every request is then foreign
    page = context.new_page()
    with pytest.raises(Exception, match="ERR_FAILED"):
        page.goto(address)
    context.close()
    assert watch.foreign
    with pytest.raises(AssertionError, match="other hosts"):
        watch.clean()


def test_8_the_policy_of_the_page_forbids_what_the_page_does_not_need(page, watch):
    blocked = page.evaluate(
        """async () => {
          const seen = [];
          document.addEventListener('securitypolicyviolation', (e) => seen.push(e.effectiveDirective));
          await fetch('http://127.0.0.2:9/').catch(() => 0);
          const script = document.createElement('script');
          script.textContent = 'window.injected = 1';
          document.body.append(script);
          await new Promise((done) => setTimeout(done));
          return [seen, window.injected ?? null];
        }"""
    )
    watch.errors.clear()  # the browser reports both as errors, as it should
    assert blocked[1] is None
    assert {"connect-src", "script-src-elem"} <= set(blocked[0])


X4, X5 = ("arange(1,17)", "2,2,2,2"), ("arange(1,33)", "2,2,2,2,2")
FORWARD: dict[str, tuple[tuple[str, str], dict[str, str], dict[str, list[int]]]] = {
    "MaxPool": (X4, {"ksize": "1,1,1,1", "strides": "1,3,2,1"}, {"output": [1, 2, 9, 10]}),
    "AvgPool": (X4, {"ksize": "1,3,2,1", "strides": "1,3,2,1"}, {"output": [4, 5, 12, 13]}),
    "MaxPool3D": (X5, {"ksize": "1,2,2,2,1", "strides": "1,4,3,2,1"}, {"output": [15, 16, 31, 32]}),
    "AvgPool3D": (X5, {"ksize": "1,4,3,2,1", "strides": "1,4,3,2,1"}, {"output": [8, 9, 24, 25]}),
    "MaxPoolWithArgmax": (X4, {"ksize": "1,3,2,1", "strides": "1,3,2,1", "attrs": "Targmax_ = DT_INT64;"},
                          {"output": [7, 8, 15, 16], "argmax": [6, 7, 6, 7]}),
    "FractionalMaxPool": (X4, {"pooling_ratio": "1.0,1.44,1.73,1.0"},
                          {"output": [7, 8, 15, 16], "row_pooling_sequence": [0, 2], "col_pooling_sequence": [0, 2]}),
    "FractionalAvgPool": (X4, {"pooling_ratio": "1.0,1.44,1.73,1.0"},
                          {"output": [4, 5, 12, 13], "row_pooling_sequence": [0, 2], "col_pooling_sequence": [0, 2]}),
}  # fmt: skip


@pytest.mark.parametrize("op", FORWARD)
def test_9_the_forward_pictures_come_out_when_they_are_drawn_by_hand(page, op):
    (values, shape), texts, results = FORWARD[op]
    page.get_by_label("New page").click()
    x = place(page, "Const")
    write(page, x, val=values, shape=shape)
    y = place(page, op)
    write(page, y, **texts)
    wire(
        page,
        f"{x}.output",
        f"{y}.{'value' if op[0] == 'F' else 'input'}" if op != "AvgPool" and op[0] != "F" else f"{y}.value",
    )
    settled(page)
    select(page, y)
    everything(page)
    for pin, wanted in results.items():
        values_of: Any = page.evaluate(
            "key => { const t = studio.store.tensors.get(key); return [t.shape, [...t.values]]; }", f"{y}.{pin}"
        )
        assert values_of[1] == wanted
        assert sorted(shown(page, f"{y}.{pin}", tuple(values_of[0])).ravel().tolist()) == sorted(wanted)


PAGE_OF_ENUSPACE = """<?xml version="1.0" encoding="utf-16"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">
<use id="ID_X" xlink:href="#Const" x="10" y="20">
 <pg-set-pin variable="#val" value="1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"/><pg-set-pin variable="#shape" value="[2][2][2][2]"/></use>
<use id="ID_Y" xlink:href="#MaxPool" x="300" y="20"><pg-set-pin variable="#ksize" value="{1,3,2,1}"/>
 <pg-set-pin variable="#strides" value="{1,3,2,1}"/><pg-set-pin variable="#padding" value="SAME"/>
 <pg-set-pin variable="#attrs" value="data_format_ = NHWC;"/></use>
<polyline id="w"><pg-link from-id="ID_X" param-from="output" to-id="ID_Y" param-to="input"/></polyline>
</svg>
"""


def test_10_an_enuspace_page_opens_and_runs(page, tmp_path):
    path = tmp_path / "flow.svg"
    path.write_text(PAGE_OF_ENUSPACE, "utf-16")
    open_files(page, path)
    ids = {n["op"]: n["id"] for n in page.evaluate("() => studio.store.page.nodes")}
    assert {"Const", "MaxPool"} <= set(ids)
    select(page, ids["MaxPool"])
    everything(page)
    assert shown(page, f"{ids['MaxPool']}.output", (2, 1, 1, 2)).ravel().tolist() == [7, 8, 15, 16]


def test_9_the_file_that_a_browser_is_opened_with_leads_to_the_studio(watch, address):
    page = watch.context.new_page()
    watch.follow(page)
    with door(address) as path:
        page.goto(path.as_uri())
        page.get_by_label("Status").get_by_text("ran").wait_for()
    assert page.url == address
