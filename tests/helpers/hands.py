"""The actions of a person on the page; they find things by the names shown there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

MOST_TABS = 400
PATIENCE = 30_000  # ms; a step takes milliseconds, and seconds on a machine that compiles beside it


def turn(page: Any, name: str) -> None:
    """Go to a page of the document, and wait until it has run."""
    page.get_by_label(f"Page {name}", exact=True).click()
    settled(page)


def settled(page: Any) -> None:
    """Wait until the picture shows the current document: nothing stale, nothing under way."""
    page.wait_for_function(
        "() => { const { runner, store } = studio; return !runner.busy && runner.current && store.run?.page === store.page.name; }"
    )


def place(page: Any, op: str) -> str:
    """Add a block by the keyboard and return its name."""
    page.keyboard.press("Escape")
    page.get_by_label("Canvas", exact=True).focus()
    page.keyboard.press("/")
    page.keyboard.type(op)
    page.keyboard.press("Enter")
    name = page.evaluate("() => document.activeElement.dataset.id")
    assert name, "the new block has the focus"
    return str(name)


def rename(page: Any, old: str, new: str) -> None:
    """Give a block a name."""
    page.get_by_label(f"{old} name", exact=True).fill(new)
    page.keyboard.press("Enter")
    page.get_by_label(f"{new} name", exact=True).wait_for()


def write(page: Any, block: str, **texts: str) -> None:
    """Type texts into the fields of a block."""
    for pin, text in texts.items():
        page.get_by_label(f"{block} {pin}", exact=True).fill(text)


def wire(page: Any, output: str, into: str) -> None:
    """Draw a wire with Enter on one pin and Enter on another; ends are `node.pin`."""
    for end, side in ((output, "output"), (into, "input")):
        node, _, pin = end.rpartition(".")
        page.get_by_label(f"{node} {side} {pin}", exact=True).press("Enter")
    page.get_by_label(f"wire {output} to {into}", exact=True).wait_for(state="attached")


def select(page: Any, block: str) -> None:
    """Select a block, so that the inspector shows it."""
    page.locator(f'.block[data-id="{block}"]').focus()


def everything(page: Any) -> None:
    """Show all slices in the inspector."""
    for group in ("batch", "channel", "depth"):
        chip = page.get_by_label(f"{group} all", exact=True)
        if chip.count():
            chip.click()


def shown(page: Any, key: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return the numbers of a tensor as the inspector's cells name them."""
    found = np.full(shape, np.nan)
    labels = page.locator(f'.inspector [data-tensor="{key}"] [data-cell]').evaluate_all(
        "cells => cells.map(c => [c.dataset.cell, c.getAttribute('aria-label')])"
    )
    for cell, label in labels:
        found[tuple(map(int, filter(None, cell.split(","))))] = float(re.split(" = ", label)[1])
    return found


def in_block(page: Any, key: str) -> dict[str, str]:
    """Return the numbers drawn inside a block, by cell."""
    pairs = page.locator(f'.canvas [data-tensor="{key}"] [data-cell]').evaluate_all(
        "cells => cells.map(c => [c.dataset.cell, c.textContent])"
    )
    return dict(pairs)


def marks(page: Any, key: str) -> dict[str, str]:
    """Return the cells of a tensor that are lit in the inspector, and how."""
    pairs = page.locator(f'.inspector [data-tensor="{key}"] [data-cell][data-mark]').evaluate_all(
        "cells => cells.map(c => [c.dataset.cell, c.dataset.mark])"
    )
    return dict(pairs)


def sentence(page: Any) -> str:
    """Return the inspector's sentence about the cell under the pointer."""
    box = page.get_by_label("Explanation")
    said = box.locator(".said")
    return str((said if said.count() else box).inner_text())


def reason(page: Any) -> str:
    """Return the heading of the inspector's explanation."""
    return str(page.get_by_label("Explanation").locator(".reason").inner_text())


def export(page: Any, name: str, folder: Path) -> Path:
    """Export by the menu and return the file."""
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as waiting:
        page.get_by_role("menuitem", name=f"Export {name}", exact=True).click()
    target = folder / waiting.value.suggested_filename
    waiting.value.save_as(target)
    return target


def open_files(page: Any, *paths: Path) -> None:
    """Open files by the button."""
    page.evaluate("() => { window.docBefore = studio.store.doc; }")
    with page.expect_file_chooser() as waiting:
        page.get_by_role("button", name="Open", exact=True).click()
    waiting.value.set_files([str(path) for path in paths])
    page.wait_for_function("() => studio.store.doc !== window.docBefore")
    settled(page)


def tab_to(page: Any, label: str) -> None:
    """Press Tab until the thing of this name has the focus."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        name = page.evaluate(
            "() => { const e = document.activeElement; return e.getAttribute('aria-label') ?? e.textContent; }"
        )
        if name == label:
            return
    raise AssertionError(f"Tab never reaches {label!r}")
