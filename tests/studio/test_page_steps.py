"""Explanations on the page: the heading, the formula with links to its cells, and the steps through the windows."""

from __future__ import annotations

from typing import Any

from hands import export, marks, reason, select, sentence, turn


def first(page: Any) -> None:
    turn(page, "seed 003 repaired")
    select(page, "dx")


def numbers(page: Any, key: str) -> dict[str, str]:
    """Return the numbers that the inspector shows in the cells of a tensor, without zeros."""
    pairs = page.locator(f'.inspector [data-tensor="{key}"] [data-cell]').evaluate_all(
        "cells => cells.map(c => [c.dataset.cell, c.firstChild?.nodeValue ?? ''])"
    )
    return {cell: text for cell, text in pairs if text not in ("0", "")}


def test_a_zero_has_a_reason_a_formula_and_a_sentence(page):
    first(page)
    page.get_by_label("dx[0,0,1,1,0] = 0", exact=True).click()
    box = page.get_by_label("Explanation")
    assert box.locator(".reason").inner_text() == "0 because 7 < 15"
    assert box.locator(".formula").inner_text() == "dx[0,0,1,1,0] = 3·0 = 0"
    assert box.locator(".said").inner_text().startswith("dx[0,0,1,1,0] = 0: 1 window reaches this cell")


def test_a_number_of_a_formula_shows_its_cell_and_leads_to_it(page):
    first(page)
    page.get_by_label("dx[0,0,1,1,0] = 0", exact=True).click()
    fifteen = page.get_by_label("Explanation").locator(".reason").get_by_role("button", name="15")
    fifteen.hover()
    named = page.locator(".inspector .cell.named")
    assert named.get_attribute("aria-label") == "y[0,0,0,0,0] = 15"
    fifteen.focus()
    page.keyboard.press("Enter")
    assert sentence(page).startswith("y[0,0,0,0,0] = 15")
    assert marks(page, "y.output")["0,0,0,0,0"] == "self"


def walk(page: Any) -> None:
    """Step through all windows of dx, and check what each step shows."""
    steps = page.get_by_role("group", name="Step through windows")
    page.get_by_label("batch all", exact=True).click()
    page.get_by_label("channel all", exact=True).click()
    wanted = {"0,1,1,1,0": "3", "0,1,1,1,1": "4", "1,1,1,1,0": "5", "1,1,1,1,1": "6"}
    for count, (cell, amount) in enumerate(wanted.items(), 1):
        steps.get_by_label("Next window").click()
        assert numbers(page, "dx.output") == dict(list(wanted.items())[:count]), "sums so far"
        assert marks(page, "x.output")[cell] == "tap"
        assert list(marks(page, "x.output").values()).count("window") == 7
        assert reason(page) == f"{amount} goes to one cell"
        total = sum(int(v) for v in list(wanted.values())[:count])
        assert f"{count} of 4 · Σ {total}" in steps.inner_text()
    steps.get_by_label("Previous window").click()
    assert len(numbers(page, "dx.output")) == 3
    steps.get_by_label("Window", exact=True).fill("0")
    assert numbers(page, "dx.output") == {"0,1,1,1,0": "3"}
    page.keyboard.press("Escape")
    page.get_by_label("dx[0,1,1,1,0] = 3", exact=True).hover()
    assert numbers(page, "dx.output") == wanted, "pointing elsewhere shows the whole result again"


def test_steps_add_the_gradient_of_one_window_after_the_other(page):
    first(page)
    walk(page)


def test_steps_work_in_the_exported_file_without_a_network(page, watch, tmp_path):
    first(page)
    target = export(page, "HTML", tmp_path)
    watch.context.set_offline(True)
    alone = watch.context.new_page()
    watch.follow(alone)
    alone.goto(target.as_uri())
    walk(alone)
    watch.context.set_offline(False)


def test_play_goes_on_by_itself_pauses_and_ends(page):
    first(page)
    page.clock.install()
    steps = page.get_by_role("group", name="Step through windows")
    steps.get_by_label("Play windows").click()
    assert "1 of 4" in steps.inner_text()
    page.clock.run_for(950)
    assert "2 of 4" in steps.inner_text()
    steps.get_by_label("Pause").click()
    page.clock.run_for(3000)
    assert "2 of 4" in steps.inner_text()
    steps.get_by_label("Play windows").click()
    page.clock.run_for(5000)
    assert "4 of 4 · Σ 18" in steps.inner_text()
    assert steps.get_by_label("Play windows").count() == 1


def test_a_forward_pool_fills_its_result_step_by_step(page):
    turn(page, "seed 003 repaired")
    select(page, "y")
    page.get_by_label("batch all", exact=True).click()
    page.get_by_label("channel all", exact=True).click()
    steps = page.get_by_role("group", name="Step through windows")
    steps.get_by_label("Next window").click()
    assert numbers(page, "y.output") == {"0,0,0,0,0": "15"}
    steps.get_by_label("Next window").click()
    assert numbers(page, "y.output") == {"0,0,0,0,0": "15", "0,0,0,0,1": "16"}
