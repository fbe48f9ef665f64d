"""Pools for NumPy users as blocks: from the palette to a gradient that explains itself, saved, opened, exported."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hands import export, open_files, place, reason, rename, select, settled, shown, wire, write
from support import python

import poolgrad as pg
from poolgrad._pooling.named import POOLS
from poolgrad.graph import service

X = np.float32([[3, 1, 4, 1], [5, 9, 2, 6], [5, 3, 5, 8], [9, 7, 9, 3]]).reshape(1, 4, 4, 1)
WORDS: dict[str, dict[str, Any]] = {
    "sliding": {"window": 2},
    "adaptive": {"size": 2},
    "global": {},
    "fractional": {"ratio": 1.5, "seed": 1},
}


def drawn(page: Any, pool: str) -> None:
    """Draw x and a pool of it on a new page."""
    page.get_by_label("New page").click()
    rename(page, place(page, "Const"), "x")
    write(page, "x", val=",".join(map(str, X.ravel().astype(int))), shape="1,4,4,1")
    name = place(page, pool)
    if name != "y":
        rename(page, name, "y")
    wire(page, "x.output", "y.x")
    settled(page)
    select(page, "y")


def derive(page: Any) -> None:
    """Add the gradient of y, and select it."""
    page.get_by_role("button", name="Add gradient dy/dx").click()
    page.locator('.block[data-id="y_grad"]').wait_for()
    settled(page)
    select(page, "y_grad")


def test_every_pool_is_in_the_palette_and_gives_the_library_s_result_and_gradient(page):
    for pool, (kind, how) in POOLS.items():
        drawn(page, pool)
        words = WORDS[how] | ({"p": 2} if kind == "lp" else {})
        y, back = pg.vjp(lambda a, pool=pool, words=words: getattr(pg, pool)(a, **words, layout="NHWC"), X)
        assert np.allclose(shown(page, "y.output", y.shape), y, rtol=1e-5), pool
        derive(page)
        assert np.allclose(shown(page, "y_grad.output", X.shape), back(np.ones_like(y)), rtol=1e-5, atol=1e-6), pool
        page.locator('.inspector [data-tensor="y_grad.output"] [data-cell="0,1,1,0"]').click()
        assert reason(page), pool
        steps = page.get_by_role("group", name="Step through windows")
        if y.size > 1:
            steps.get_by_label("Next window").click()
            assert f"1 of {y.size}" in steps.inner_text(), pool


def test_a_norm_is_stepped_through_saved_opened_and_exported(page, tmp_path: Path):
    drawn(page, "lp_pool")
    write(page, "y", stride="1", padding="same")
    settled(page)
    derive(page)
    steps = page.get_by_role("group", name="Step through windows")
    for _ in range(16):
        steps.get_by_label("Next window").click()
    y, back = pg.vjp(lambda a: pg.lp_pool(a, 2, 1, padding="same", layout="NHWC"), X)
    dx = back(np.ones_like(y))
    total = float(re.search(r"Σ ([-\d.]+)", steps.inner_text())[1])  # type: ignore[index]
    assert total == pytest.approx(float(dx.sum()), rel=1e-4), "the steps add up to the gradient"
    saved = export(page, "JSON", tmp_path)
    script = export(page, "Python", tmp_path)
    open_files(page, saved)
    select(page, "y_grad")
    assert np.allclose(shown(page, "y_grad.output", X.shape), dx, rtol=1e-4)
    python(script, tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as found:
        assert np.array_equal(found["y_grad.output"], dx)


def test_errors_stand_at_their_arguments_and_are_repaired_by_a_press(page):
    drawn(page, "max_pool")
    write(page, "y", window="0")
    assert "window" in page.locator("article").first.inner_text()
    write(page, "y", window="2", attrs="tyes = split;")
    page.get_by_role("button", name="Change to ties_ = split;").click()
    settled(page)
    assert page.locator("article").count() == 0
    write(page, "y", padding="sam")
    page.get_by_role("button", name="Change to same").click()
    settled(page)
    assert page.locator("article").count() == 0


def test_a_page_with_limits_refuses_windows_without_number():
    for words in ({"padding": "99999999"}, {"window": "3", "padding": "(1,1),(99999999,1)"}):
        text = {"window": "2", "layout": "NHWC"} | words
        graph = service.new_graph()
        graph["pages"][0] |= {"nodes": [{"id": "x", "op": "Const", "text": {"val": "ones", "shape": "[1][4][4][1]"}},
                                        {"id": "y", "op": "max_pool", "text": text}], "wires": [["x.output", "y.x"]]}  # fmt: skip
        found = service.check(service.limited(json.loads(json.dumps(graph)), pages_limits()))
        assert [(p["node"], p["pin"]) for p in found["problems"]] == [("y", "padding")]


def pages_limits() -> Any:
    from poolgrad.studio.routes import _LIMITS

    return _LIMITS
