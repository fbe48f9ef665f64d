"""Heat-maps: their numbers, shares, ties, padding, odd values and large tensors; and the view in a notebook."""

from __future__ import annotations

import html
import re
from typing import Any

import numpy as np
from hands import in_block, marks, place, rename, select, sentence, settled, shown, turn, wire, write

from poolgrad.graph import Scope, ops


def chain(page: Any, op: str, shape: str, values: str, **texts: str) -> None:
    """Wire a constant `x` to the first pin of an op `y`, on a page of their own."""
    page.get_by_label("New page").click()
    rename(page, place(page, "Const"), "x")
    write(page, "x", val=values, shape=shape)
    name = place(page, op)
    if name != "y":
        rename(page, name, "y")
    write(page, "y", **texts)
    pin = page.locator('.block[data-id="y"] .pin.in').first.get_attribute("data-end")
    wire(page, "x.output", pin)
    settled(page)
    select(page, "y")


def test_the_shares_of_a_mean_are_fractions_on_the_cells(page):
    chain(page, "AvgPool", "1,2,4,1", "1,2,3,4,5,6,7,8", ksize="1,2,2,1", strides="1,2,2,1")
    page.get_by_label("y[0,0,0,0] = 3.5", exact=True).hover()
    shares = page.locator('.inspector [data-tensor="x.output"] .share').all_inner_texts()
    assert shares == ["1/4"] * 4
    assert marks(page, "x.output") == {f"0,{h},{w},0": "window" for h in (0, 1) for w in (0, 1)}
    assert "3.5" in sentence(page)


def test_ties_are_marked_and_named(page):
    chain(page, "MaxPool", "1,2,2,1", "7,7,1,7", ksize="1,2,2,1", strides="1,2,2,1")
    page.get_by_label("y[0,0,0,0] = 7", exact=True).hover()
    assert marks(page, "x.output") == {"0,0,0,0": "tap", "0,0,1,0": "tie", "0,1,0,0": "window", "0,1,1,0": "tie"}
    assert "3 cells are that large" in sentence(page)


def test_padding_is_drawn_and_lit_with_the_window_that_has_it(page):
    chain(page, "MaxPool", "1,3,3,1", "arange(1,10)", ksize="1,2,2,1", strides="1,2,2,1", padding="SAME")
    pads = page.locator('.inspector [data-tensor="x.output"] .pad')
    assert pads.count() == 7  # a row below, a column on the right, and their corner
    page.get_by_label("y[0,0,0,0] = 5", exact=True).hover()
    assert page.locator('.inspector [data-tensor="x.output"] .pad[data-mark]').count() == 0
    page.get_by_label("y[0,1,1,0] = 9", exact=True).hover()
    assert page.locator('.inspector [data-tensor="x.output"] .pad[data-mark]').count() == 3


def test_numbers_that_are_none_are_flagged(page):
    chain(page, "MaxPool", "1,2,2,1", "nan,inf,1,2", ksize="1,1,1,1", strides="1,1,1,1")
    card = page.get_by_label("Tensor input · x", exact=True)
    assert card.locator(".flag").inner_text() == "1 NaN, 1 infinite"
    assert "min 1" in card.inner_text()
    assert "max 2" in card.inner_text()
    assert card.locator(".cell.odd").all_inner_texts() == ["NaN", "∞"]
    assert in_block(page, "x.output")["0,0,0,0"] == "NaN"


def test_nan_that_was_passed_over_is_named_and_sums_with_nan_are_not_called_wrong(page):
    chain(page, "MaxPool", "1,2,2,1", "nan,1,2,3", ksize="1,2,2,1", strides="1,2,2,1")
    page.get_by_label("y[0,0,0,0] = 3", exact=True).hover()
    assert sentence(page).endswith("NaN cells that were passed over: 1.")
    turn(page, "seed 003 repaired")
    write(page, "g", val="nan,4,5,6")
    settled(page)
    select(page, "dx")
    line = page.get_by_label("Conservation")
    line.get_by_text("not finite").wait_for()
    assert "≠" not in line.inner_text()
    assert line.locator(".lost").count() == 0


def test_paddings_that_are_ignored_and_deviations_below_zero_are_said_at_their_fields(page):
    attrs = "explicit_paddings_ = 0,0,1,1,1,1,0,0;"
    chain(page, "MaxPool", "1,2,2,1", "1,2,3,4", ksize="1,2,2,1", strides="1,2,2,1", padding="SAME", attrs=attrs)
    assert (
        "other paddings ignore these numbers"
        in page.locator('.block[data-id="y"].warned .bubble').all_inner_texts()[-1]
    )
    r = place(page, "Random")
    write(page, r, dist="normal(1,-1)")
    settled(page)
    assert page.get_by_label(f"{r} dist", exact=True).get_attribute("aria-invalid") == "true"
    assert "wanted a deviation of at least 0" in page.get_by_role("article", name=f"problem {r} · dist").inner_text()


def test_a_gradient_that_loses_something_says_how_much_and_where(page):
    turn(page, "seed 003 repaired")
    write(page, "y", ksize="1,1,1,1,1")
    settled(page)
    select(page, "dx")
    line = page.get_by_label("Conservation")
    assert "≠" in line.inner_text() or "lost" in line.inner_text()
    assert line.locator(".lost").count() == 1


def test_many_cells_go_to_a_canvas_with_a_slider_and_answer_the_arrow_keys(page):
    chain(page, "MaxPool", "1,40,40,2", "arange(0,3200)", ksize="1,2,2,1", strides="1,2,2,1")
    picture = page.get_by_label(re.compile(r"^x\.output picture"))
    assert page.locator('.inspector [data-tensor="x.output"] [data-cell]').count() == 0
    picture.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert picture.get_attribute("aria-label").endswith("x[0,1,1,0] = 82")
    assert sentence(page).startswith("x[0,1,1,0] = 82")
    assert set(marks(page, "y.output")) == {"0,0,0,0"}
    assert page.locator(".loupe .cell[data-mark]").count() >= 4
    page.get_by_label("x.output channel").fill("1")
    assert picture.get_attribute("aria-label").endswith(" = 1")


def test_a_tensor_that_is_too_large_to_come_with_the_run_is_fetched_when_looked_at(page):
    chain(page, "MaxPool", "1,160,160,1", "arange(0,25600)", ksize="1,160,160,1", strides="1,160,160,1")
    page.get_by_label(re.compile(r"^x\.output picture")).wait_for()
    assert shown(page, "y.output", (1, 1, 1, 1)).item() == 25599
    assert page.evaluate("() => studio.store.tensors.get('x.output').values[25599]") == 25599


def test_a_notebook_shows_the_same_view_without_a_server(watch):
    scope = Scope.new_root_scope("page")
    x = ops.Const(scope.with_op_name("x"), np.float32([[1, 5], [4, 3]]).reshape(1, 2, 2, 1))
    ops.MaxPool(scope.with_op_name("y"), x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    watch.context.set_offline(True)
    notebook = watch.context.new_page()
    watch.follow(notebook)
    notebook.set_content(f"<!doctype html><title>{html.escape('notebook')}</title>{scope._repr_html_()}")
    frame = notebook.frame_locator("iframe")
    frame.get_by_label("y[0,0,0,0] = 5", exact=True).hover()
    assert "5" in frame.get_by_label("Explanation").inner_text()
    assert frame.locator('[data-cell="0,0,1,0"][data-mark="tap"]').count() >= 1
