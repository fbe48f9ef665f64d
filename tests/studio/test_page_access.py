"""Everyone can use the page: panels keep apart at every width, numbers and marks can be seen, keys reach everything."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from hands import place, select, settled, tab_to, turn, wire, write

WIDTHS = ((1600, 1000), (1280, 800), (1024, 768), (768, 1024), (390, 844))
LONG = "This refusal has two hundred characters, and more: " + "a long word and another one, " * 6
MOST_TABS = 15

PANELS = """(names) => names.map((name) => {
  const element = document.querySelector(name);
  const { left, top, right, bottom } = element.getBoundingClientRect();
  return { name, left, top, right, bottom };
}).filter((box) => box.right > box.left)"""

CONTRAST = """() => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => { const [x, y] = [light(parts(a)), light(parts(b))].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const behind = (element) => { const { backgroundColor } = getComputedStyle(element); return parts(backgroundColor)[3] === 0 ? behind(element.parentElement) : backgroundColor; };
  const tone = (name) => { const probe = document.body.appendChild(document.createElement('i')); probe.style.color = `var(${name})`; const found = getComputedStyle(probe).color; probe.remove(); return found; };
  const least = (selector) => Math.min(...[...document.querySelectorAll(selector)].filter((e) => e.textContent.trim()).map((e) => contrast(getComputedStyle(e).color, behind(e))));
  return {
    numbers: least('.cell:not(.pad), .cells > i'), indices: least('.index'), status: least('.status'), run: least('.primary'),
    wires: Math.min(...[...document.querySelectorAll('.wire:not(.draft)')].map((e) => contrast(getComputedStyle(e).stroke, tone('--ground')))),
    marks: Math.min(...['--window', '--tap', '--tie', '--ink'].map((name) => contrast(tone(name), tone('--halo')))),
  };
}"""

LINES = """() => Object.fromEntries([...document.querySelectorAll('.inspector .cell[data-mark]')].map((cell) => {
  const { borderTopStyle, borderTopWidth } = getComputedStyle(cell, '::before');
  return [cell.dataset.mark, [borderTopStyle, parseFloat(borderTopWidth)]];
}))"""


def focused(page: Any) -> str:
    return str(
        page.evaluate(
            "() => { const e = document.activeElement; return e.getAttribute('aria-label') ?? e.textContent; }"
        )
    )


def tie(page: Any) -> None:
    """Draw a page with a tie, and pin the cell whose window has it."""
    page.get_by_label("New page").click()
    x = place(page, "Const")
    write(page, x, val="7,7,1,7", shape="1,2,2,1")
    y = place(page, "MaxPool")
    wire(page, f"{x}.output", f"{y}.input")
    settled(page)
    select(page, y)
    page.get_by_label(f"{y}[0,0,0,0] = 7", exact=True).click()


def test_panels_never_intersect_at_any_width_with_a_long_status(page):
    for width, height in WIDTHS:
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("text => studio.say(text, true)", LONG)
        for names in ([".top", ".palette", "main", ".lower", ".inspector"], [".status", ".zoom"], [".brand", ".tools"]):
            boxes = page.evaluate(PANELS, names)
            for i, a in enumerate(boxes):
                assert a["right"] <= width + 0.5, f"{a} at {width}"
                assert a["bottom"] <= height + 0.5, f"{a} at {width}"
                for b in boxes[i + 1 :]:
                    apart = (
                        min(a["right"], b["right"]) - max(a["left"], b["left"]) < 0.5
                        or min(a["bottom"], b["bottom"]) - max(a["top"], b["top"]) < 0.5
                    )
                    assert apart or a["right"] - a["left"] <= 1, f"{a} and {b} at {width}"
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_the_palette_is_a_drawer_where_there_is_no_room(page):
    page.set_viewport_size({"width": 768, "height": 1024})
    before = page.locator(".block").count()
    assert page.locator(".palette").is_hidden()
    page.get_by_role("button", name="Blocks", exact=True).click()
    page.get_by_label("Add MaxPool", exact=True).click()
    assert page.locator(".block").count() == before + 1
    assert page.locator(".palette").is_hidden()


def test_the_inspector_is_widened_by_keys_and_keeps_its_width(page):
    width = lambda: page.locator(".inspector").bounding_box()["width"]  # noqa: E731
    before = width()
    page.get_by_label("Width of the inspector").focus()
    page.keyboard.press("ArrowLeft")
    assert width() == before + 24
    page.reload()
    page.get_by_label("Status").get_by_text("ran").wait_for()
    assert width() == before + 24


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_numbers_wires_and_marks_have_enough_contrast(page, scheme):
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # no colour on its way to another
    settled(page)
    page.evaluate("() => studio.redraw()")
    found = page.evaluate(CONTRAST)
    assert found["wires"] >= 3, found
    assert found["marks"] >= 3, found
    for name in ("numbers", "indices", "status", "run"):
        assert found[name] >= 4.5, found


def test_marks_differ_by_their_lines_also_in_forced_colours(page):
    tie(page)
    plain = page.evaluate(LINES)
    assert {mark: style for mark, (style, _) in plain.items()} == {
        "tap": "solid",
        "tie": "dashed",
        "window": "solid",
        "self": "double",
    }
    assert plain["tap"][1] > plain["window"][1]
    page.emulate_media(forced_colors="active")
    forced = page.evaluate(LINES)
    assert {mark: style for mark, (style, _) in forced.items()} == {mark: style for mark, (style, _) in plain.items()}
    assert all(width >= 2 for _, width in forced.values())


def test_nothing_moves_by_itself_if_motion_is_unwanted(page):
    page.emulate_media(reduced_motion="reduce")
    moving = page.evaluate(
        "() => [...document.querySelectorAll('*')].filter((e) => { const s = getComputedStyle(e); "
        "return s.transitionDuration !== '0s' && s.transitionProperty !== 'none' || s.animationName !== 'none'; }).length"
    )
    assert moving == 0


def test_few_presses_of_tab_lead_from_the_first_screen_to_a_repair(page):
    presses = 0
    while not focused(page).startswith("Page "):
        page.keyboard.press("Tab")
        presses += 1
        assert presses <= MOST_TABS
    page.keyboard.press("ArrowRight")
    settled(page)
    assert focused(page) == "Page seed 003 as pictured"
    while focused(page) != "Insert MaxPool3D and connect it":
        page.keyboard.press("Tab")
        presses += 1
        assert presses <= MOST_TABS
    page.keyboard.press("Enter")
    settled(page)
    assert page.get_by_role("article").count() == 0


def test_f8_goes_from_problem_to_problem(page):
    turn(page, "seed 004 as pictured")
    page.keyboard.press("F8")
    first = focused(page)
    page.keyboard.press("F8")
    assert {first, focused(page)} == {
        "Insert MaxPool and connect it",
        "Fill g with 1, 2, 3, ... of shape [2][2][2][2]",
    }
    page.keyboard.press("F8")
    assert focused(page) == first


def test_arrow_keys_go_through_slices_and_panels(page):
    select(page, "dx")
    page.get_by_label("depth all", exact=True).focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_label("depth 0", exact=True).get_attribute("aria-checked") == "true"
    assert focused(page) == "depth 0"
    tab_to(page, "Problems")
    page.keyboard.press("ArrowRight")
    page.get_by_label("python of this page").wait_for()


def test_the_theme_stays_after_a_reload(page):
    page.emulate_media(color_scheme="light")
    page.get_by_label("Light or dark").click()
    page.reload()
    page.get_by_label("Status").get_by_text("ran").wait_for()
    assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"


def test_axe_finds_nothing(watch, address):
    """The page has no inline script, so its policy is set aside while axe looks."""
    spec = importlib.util.find_spec("axe_playwright_python")
    if spec is None or spec.origin is None:
        pytest.skip("axe-playwright-python, which holds axe, is not installed here")
    script = (Path(spec.origin).parent / "axe.min.js").read_text("utf-8")
    page = watch.context.new_page()
    watch.follow(page)
    page.goto(address)
    page.get_by_label("Status").get_by_text("ran").wait_for()
    page.evaluate(script)
    report = []
    contrast = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}  # other rules do not depend on colours
    views = (
        ("light", "none", 1280, {}),
        ("dark", "none", 1280, contrast),
        ("light", "active", 1280, contrast),
        ("light", "none", 390, {}),
    )
    for scheme, forced, width, rules in views:
        page.emulate_media(color_scheme=scheme, forced_colors=forced, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": 844})
        names = page.evaluate("() => studio.store.doc.pages.map((p) => p.name)")
        for name in names if (forced, width) == ("none", 1280) else names[2:3]:  # the one with all kinds of parts
            page.evaluate("name => studio.store.show(studio.store.doc.pages.findIndex((p) => p.name === name))", name)
            settled(page)
            page.evaluate("() => studio.redraw()")
            found, passed = page.evaluate(
                "async (rules) => { const r = await axe.run({ resultTypes: ['violations'], preload: false, ...rules }); return [r.violations.map((v) => [v.id, v.nodes.map((n) => n.target.join(' ') + ': ' + n.failureSummary)]), r.passes.length]; }",
                rules,
            )
            assert found == [], f"{name}, {scheme}, forced colours {forced}, {width} px"
            report.append(f"{name}, {scheme}, forced colours {forced}, {width} px: 0 violations, {passed} rules passed")
    assert len(report) == 10
    page.get_by_role("button", name="Examples").click()
    page.get_by_role("menuitem", name="Example What does SAME padding do?", exact=True).click()
    settled(page)  # rows of padding are no rows of cells
    assert (
        page.evaluate(
            "async () => (await axe.run({ runOnly: ['wcag2a'], preload: false })).violations.map((v) => v.id)"
        )
        == []
    )
    print(*report, sep="\n")
