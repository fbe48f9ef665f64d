"""The canvas: place, wire, move, delete, undo, copy, look around; by pointer and by keyboard."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hands import export, in_block, open_files, place, rename, select, settled, turn, wire, write

from poolgrad._cli.demo import picture
from poolgrad._common import png


@pytest.fixture
def sheet(page: Any) -> Any:
    """Open and return an empty page."""
    page.get_by_label("New page").click()
    return page


def nodes(page: Any) -> dict[str, Any]:
    return {node["id"]: node for node in page.evaluate("() => studio.store.page.nodes")}


def wires(page: Any) -> list[list[str]]:
    found: list[list[str]] = page.evaluate("() => studio.store.page.wires")
    return found


def drag(page: Any, start: Any, end: Any) -> None:
    """Press on one thing, move to another, let go."""
    start.hover()
    page.mouse.down()
    end.hover()
    page.mouse.up()


def two(page: Any) -> None:
    """Place a constant and a pooling, not connected."""
    rename(page, place(page, "Const"), "a")
    write(page, "a", val="1,2,3,4", shape="1,2,2,1")
    rename(page, place(page, "MaxPool"), "b")


def test_the_palette_finds_blocks_by_any_part_of_their_name(page):
    page.keyboard.press("/")
    page.keyboard.type("argmax")
    names = page.get_by_role("option").all_inner_texts()
    assert names
    assert all("Argmax" in name for name in names)
    page.get_by_label("Search blocks").fill("mp3gg")
    assert page.get_by_role("option").first.inner_text() == "MaxPool3DGradGrad"
    page.get_by_label("Search blocks").fill("zzz")
    assert page.get_by_role("option").count() == 0
    page.keyboard.press("Escape")
    assert page.get_by_role("option").count() == len(
        page.evaluate("() => [...studio.store.ops.values()].filter((b) => !/^array (gradient|tangent)/.test(b.group))")
    ), "derivatives of array pools are searched for"


def test_a_block_is_placed_by_a_click_and_by_a_drag(sheet):
    sheet.get_by_label("Add MaxPool3D", exact=True).click()
    sheet.get_by_label("Add Const", exact=True).drag_to(
        sheet.get_by_label("Canvas", exact=True), target_position={"x": 60, "y": 60}
    )
    assert {node["op"] for node in nodes(sheet).values()} == {"MaxPool3D", "Const"}


def test_a_wire_is_drawn_by_dragging_from_pin_to_pin_and_taken_off_again(sheet):
    two(sheet)
    out, into = sheet.get_by_label("a output output"), sheet.get_by_label("b input input")
    drag(sheet, out, into)
    assert wires(sheet) == [["a.output", "b.input"]]
    settled(sheet)
    assert in_block(sheet, "b.output") == {"0,0,0,0": "4"}
    assert sheet.get_by_label("wire a.output to b.input").get_attribute("aria-description") == "1,2,2,1"
    drag(sheet, into, sheet.get_by_label("Fit page"))
    assert wires(sheet) == []


def test_a_wire_is_drawn_backwards_and_by_two_clicks(sheet):
    two(sheet)
    drag(sheet, sheet.get_by_label("b input input"), sheet.get_by_label("a output output"))
    assert wires(sheet) == [["a.output", "b.input"]]
    sheet.keyboard.press("Control+z")
    sheet.get_by_label("a output output").click()
    sheet.get_by_label("b input input").click()
    assert wires(sheet) == [["a.output", "b.input"]]


def test_wires_that_make_no_sense_are_refused_with_a_reason(sheet):
    two(sheet)
    rename(sheet, place(sheet, "MaxPool"), "c")
    wire(sheet, "b.output", "c.input")
    sheet.get_by_label("c output output").press("Enter")
    sheet.get_by_label("b input input").press("Enter")
    assert "circle" in sheet.get_by_label("Status").inner_text()
    sheet.evaluate("() => studio.runner.run()")
    assert "circle" in sheet.get_by_label("Status").inner_text(), "a run that ends does not cover the reason"
    sheet.get_by_label("a output output").press("Enter")
    sheet.get_by_label("b output output").press("Enter")
    assert "both outputs" in sheet.get_by_label("Status").inner_text()
    assert wires(sheet) == [["b.output", "c.input"]]


def test_a_focused_wire_and_a_selected_block_are_deleted_and_come_back(sheet):
    two(sheet)
    wire(sheet, "a.output", "b.input")
    sheet.get_by_label("wire a.output to b.input").focus()
    sheet.keyboard.press("Delete")
    assert wires(sheet) == []
    sheet.keyboard.press("Control+z")
    select(sheet, "a")
    sheet.keyboard.press("Delete")
    assert set(nodes(sheet)) == {"b"}
    assert wires(sheet) == []
    sheet.keyboard.press("Control+z")
    assert set(nodes(sheet)) == {"a", "b"}
    assert wires(sheet) == [["a.output", "b.input"]]
    sheet.keyboard.press("Control+y")
    assert set(nodes(sheet)) == {"b"}


def test_blocks_move_by_drag_and_by_arrow_keys_and_a_drag_is_one_step_to_undo(sheet):
    two(sheet)
    before = nodes(sheet)["b"]["at"]
    title = sheet.locator('.block[data-id="b"] .op')
    box = title.bounding_box()
    title.hover()
    sheet.mouse.down()
    for step in range(1, 6):
        sheet.mouse.move(box["x"] + 20 * step, box["y"] + 10 * step)
    sheet.mouse.up()
    moved = nodes(sheet)["b"]["at"]
    assert moved[0] > before[0]
    assert moved[1] > before[1]
    sheet.keyboard.press("Control+z")
    assert nodes(sheet)["b"]["at"] == before
    select(sheet, "b")
    sheet.keyboard.press("ArrowRight")
    sheet.keyboard.press("Shift+ArrowDown")
    assert nodes(sheet)["b"]["at"] == [before[0] + 12, before[1] + 48]


def test_typing_in_a_field_is_one_step_to_undo(sheet):
    two(sheet)
    field = sheet.get_by_label("b ksize", exact=True)
    before = field.input_value()
    field.press("Control+a")
    sheet.keyboard.type("1,3,3,1")
    sheet.keyboard.press("Control+z")
    assert field.input_value() == before
    sheet.keyboard.press("Control+Shift+z")
    assert field.input_value() == "1,3,3,1"


def test_blocks_are_copied_as_json_and_pasted_under_free_names(sheet):
    two(sheet)
    wire(sheet, "a.output", "b.input")
    sheet.get_by_label("Canvas", exact=True).focus()
    sheet.keyboard.press("Control+a")
    sheet.keyboard.press("Control+c")
    sheet.keyboard.press("Control+v")
    assert set(nodes(sheet)) == {"a", "b", "a2", "b2"}
    assert ["a2.output", "b2.input"] in wires(sheet)
    assert nodes(sheet)["a2"]["text"] == nodes(sheet)["a"]["text"]


def test_a_wrong_text_is_marked_at_its_character_and_a_right_one_shows_the_shape_at_once(sheet):
    two(sheet)
    wire(sheet, "a.output", "b.input")
    settled(sheet)
    block = sheet.locator('.block[data-id="b"]')
    assert block.locator(".shape").inner_text() == "[1,1,1,1]"
    field = sheet.get_by_label("b ksize", exact=True)
    field.fill("1,2,x,1")
    block.locator(".mark i").wait_for()
    assert block.locator(".mark i").inner_text() == "x"
    assert field.get_attribute("aria-invalid") == "true"
    assert "character 5" in block.locator(".row.bad .bubble").inner_text()
    write(sheet, "b", ksize="1,1,1,1", strides="1,1,1,1")
    settled(sheet)
    assert block.locator(".shape").inner_text() == "[1,2,2,1]"
    assert block.locator(".mark i").count() == 0


def test_without_auto_run_a_change_is_outlined_until_it_is_run(page):
    page.get_by_label("auto-run").uncheck()
    write(page, "g", val="30,4,5,6")
    stale = page.locator(".block.stale").evaluate_all("blocks => blocks.map(b => b.dataset.id).sort()")
    assert stale == ["ddy", "dx", "g"]
    assert in_block(page, "dx.output")["0,1,1,1,0"] == "3"
    page.keyboard.press("Control+Enter")
    settled(page)
    assert in_block(page, "dx.output")["0,1,1,1,0"] == "30"
    assert page.locator(".block.stale").count() == 0


def test_a_name_that_is_taken_or_strange_is_refused(sheet):
    two(sheet)
    for wrong in ("a", "1b", "b c", ""):
        sheet.get_by_label("b name", exact=True).fill(wrong)
        sheet.keyboard.press("Enter")
        assert set(nodes(sheet)) == {"a", "b"}


def test_pages_are_scopes_with_their_own_names(page):
    page.get_by_label("New page").click()
    first = place(page, "Const")
    page.get_by_label("New page").click()
    assert place(page, "Const") == first, "the same name, in another scope"
    page.get_by_role("tab", selected=True).first.press("F2")
    page.evaluate("() => { studio.pages.drawn = ''; studio.store.tell('run'); }")
    page.get_by_label("Page name").fill("mine")
    page.keyboard.press("Enter")
    page.get_by_label("Page mine", exact=True).wait_for()
    page.get_by_label("Close mine").click()
    assert page.get_by_label("Page mine", exact=True).count() == 0
    page.keyboard.press("Control+z")
    page.get_by_label("Page mine", exact=True).wait_for()


def test_zoom_and_pan_change_the_view_and_nothing_else(page):
    before = page.evaluate("() => JSON.stringify(studio.store.doc)")
    view = lambda: page.evaluate("() => ({...studio.flow.view})")  # noqa: E731
    start = view()
    page.get_by_label("Zoom in").click()
    assert view()["zoom"] == pytest.approx(start["zoom"] * 1.2)
    page.get_by_label("Zoom to 100%").click()
    assert view()["zoom"] == pytest.approx(1)
    page.get_by_label("Fit page").click()
    assert view() == pytest.approx(start)
    box = page.get_by_label("Canvas", exact=True).bounding_box()
    corner = (box["x"] + 8, box["y"] + box["height"] - 8)
    page.mouse.move(*corner)
    page.mouse.down()
    page.mouse.move(corner[0] + 50, corner[1] - 30)
    page.mouse.up()
    assert view()["x"] == pytest.approx(start["x"] + 50)
    assert view()["y"] == pytest.approx(start["y"] - 30)
    assert page.evaluate("() => JSON.stringify(studio.store.doc)") == before


def test_the_keys_are_shown_and_closed_by_keys(page):
    page.get_by_label("Canvas", exact=True).focus()
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keys")
    sheet.wait_for()
    assert "draws a wire" in sheet.inner_text()
    page.keyboard.press("Escape")
    sheet.wait_for(state="hidden")


def test_light_and_dark_follow_the_system_and_the_button(page):
    ground = lambda: page.evaluate("() => getComputedStyle(document.body).backgroundColor")  # noqa: E731
    page.emulate_media(color_scheme="light")
    light = ground()
    page.emulate_media(color_scheme="dark")
    dark = ground()
    assert dark != light
    page.get_by_label("Light or dark").click()
    assert ground() == light


def test_an_uploaded_picture_becomes_a_block_and_runs(page, tmp_path):
    path = tmp_path / "small.png"
    small = (picture()[0, ::12, ::12] * 255).astype("uint8")
    png.write(path, small)
    page.get_by_label("New page").click()
    with page.expect_file_chooser() as waiting:
        page.get_by_role("button", name="Open").click()
    waiting.value.set_files(str(path))
    page.wait_for_function("() => document.querySelectorAll('.block').length === 1")  # the first page's are gone
    settled(page)
    (node,) = nodes(page).values()
    assert node["op"] == "Image"
    got = page.evaluate("id => studio.store.tensors.get(`${id}.output`).shape", node["id"])
    assert got == [1, *small.shape]


def test_a_file_that_is_none_is_refused_and_the_page_goes_on(page, watch, tmp_path):
    path = tmp_path / "x.npy"
    path.write_bytes(b"nothing of the kind")
    with page.expect_file_chooser() as waiting:
        page.get_by_role("button", name="Open").click()
    waiting.value.set_files(str(path))
    page.locator(".status.bad").wait_for()
    assert "x.npy" in page.get_by_label("Status").inner_text()
    watch.errors.clear()  # the browser reports the refusal
    turn(page, "seed 003 as pictured")


def test_the_page_exports_itself_as_a_picture(page, tmp_path):
    target = export(page, "PNG", tmp_path)
    assert target.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert target.stat().st_size > 10_000


def test_every_example_of_the_package_opens_as_a_page_and_runs(page):
    page.get_by_role("button", name="Examples").click()
    names = page.get_by_role("menuitem").all_inner_texts()
    page.keyboard.press("Escape")
    assert len(names) > 4
    for name in names:
        page.get_by_role("button", name="Examples").click()
        page.get_by_role("menuitem", name=f"Example {name}", exact=True).click()
        settled(page)
        assert page.get_by_role("tab", selected=True).first.get_attribute("aria-label") == f"Page {name}"
        assert page.locator('.block[data-status="ok"]').count() > 0
    assert page.get_by_role("tablist", name="Pages").get_by_role("tab").count() == len(names)


def test_another_document_replaces_this_one(page, tmp_path):
    path = export(page, "JSON", tmp_path)
    page.get_by_label("Close seed 003 repaired").click()
    open_files(page, path)
    page.get_by_label("Page seed 003 repaired", exact=True).wait_for()


def test_the_gradient_of_a_block_is_added_by_one_press(sheet):
    two(sheet)
    wire(sheet, "a.output", "b.input")
    settled(sheet)
    select(sheet, "b")
    sheet.get_by_role("button", name="Add gradient db/da").click()
    sheet.locator('.block[data-group="gradient"]').wait_for()
    settled(sheet)
    (gradient,) = (node for node in nodes(sheet).values() if node["op"] == "MaxPoolGrad")
    assert in_block(sheet, f"{gradient['id']}.output") == {
        "0,0,0,0": "0",
        "0,0,1,0": "0",
        "0,1,0,0": "0",
        "0,1,1,0": "1",
    }
    sheet.keyboard.press("Control+z")
    assert set(nodes(sheet)) == {"a", "b"}


def test_the_button_of_a_file_block_takes_an_array(sheet, tmp_path):
    np.save(tmp_path / "small.npy", np.arange(4, dtype=np.float32).reshape(1, 2, 2, 1))
    block = place(sheet, "File")
    with sheet.expect_file_chooser() as waiting:
        sheet.get_by_label(f"{block} choose file").click()
    waiting.value.set_files(str(tmp_path / "small.npy"))
    sheet.locator('.block[data-status="ok"]').wait_for()
    settled(sheet)
    assert in_block(sheet, f"{block}.output") == {"0,0,0,0": "0", "0,0,1,0": "1", "0,1,0,0": "2", "0,1,1,0": "3"}


def test_a_press_is_not_lost_when_tabs_are_drawn_anew_meanwhile(page):
    turned = "p => ({ ...p, name: [...p.name].reverse().join('') })"
    before = page.evaluate("() => studio.store.doc.pages.length")
    page.get_by_label("New page").hover()
    page.mouse.down()
    page.evaluate(
        f"() => {{ const {{ doc }} = studio.store; studio.store.edit({{ ...doc, pages: doc.pages.map({turned}) }}); }}"
    )
    page.mouse.up()
    assert page.evaluate("() => studio.store.doc.pages.length") == before + 1
