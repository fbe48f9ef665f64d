"""Every pool, its gradient and its tangent as blocks: the links add up to the result, and the page says what Python says."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_words import NODE, delivered, said_by_page

import poolgrad as pg
from poolgrad._pooling.named import POOLS
from poolgrad.graph import Scope, Session, ops
from poolgrad.graph.pool_calls import FORMS

SLIDING: list[dict[str, Any]] = [
    {"window": 2},
    {"window": 3, "stride": 2, "padding": 1},
    {"window": 2, "stride": 1, "padding": "same", "dilation": 2},
    {"window": 3, "stride": 2, "padding": "valid", "ceil_mode": True},
]
WINDOWS: dict[str, list[dict[str, Any]]] = {
    "sliding": SLIDING,
    "adaptive": [{"size": [3, 2]}],
    "global": [{}],
    "fractional": [{"ratio": 1.6, "seed": 3}, {"ratio": [1.3, 1.9], "seed": [1, 2], "overlapping": True}],
}
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "max": [{}, *({"ties": ties, "nan": nan} for ties, nan in product(("first", "last", "all", "split"), ("ignore", "tf", "propagate")))],
    "min": [{}, *({"ties": ties, "nan": nan} for ties, nan in product(("last", "split"), ("ignore", "tf", "propagate")))],
    "avg": [{}, {"nan": "ignore"}],
    "sum": [{}, {"nan": "ignore"}],
    "lp": [{"p": p} for p in (1, 1.5, 2, 3)],
}  # fmt: skip
PADDED: list[dict[str, Any]] = [
    {"count_include_pad": True},
    {"divisor": 3.0},
    {"count_include_pad": True, "nan": "ignore"},
]


def calls() -> list[tuple[str, dict[str, Any]]]:
    """Return pools with their arguments: every option once, with changing windows."""
    found = []
    for pool, (kind, how) in POOLS.items():
        options = OPTIONS[kind] + (PADDED if pool == "avg_pool" else [])
        for i, option in enumerate(options):
            found.append((pool, WINDOWS[how][i % len(WINDOWS[how])] | option))
    return found


CALLS = calls()


def drawn(pool: str, form: str, words: dict[str, Any], seed: int) -> Scope:
    """Return a page with the pool or its derivative as block `out`, over an array with ties, and with NaN where a rule for it is given."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, (5, 6)).astype(float)
    if "nan" in words:
        x[rng.random(x.shape) < 0.2] = np.nan
    scope = Scope.new_root_scope()
    given = {"x": ops.Const(scope.with_op_name("x"), x)}
    shape = getattr(pg, pool)(x, **words).shape
    for name in FORMS[f"{pool}{form}"].inputs:
        if name != "x":
            array = rng.integers(1, 9, shape if name == "g" else x.shape).astype(float)
            given[name] = ops.Const(scope.with_op_name(name), array)
    getattr(ops, f"{pool}{form}")(scope.with_op_name("out"), **given, **words)
    return scope


def result_of(pool: str, form: str, scope: Scope, words: dict[str, Any]) -> np.ndarray:
    """Return what the library gives for the page."""

    def pooled(a: Any) -> Any:
        return getattr(pg, pool)(a, **words)

    arrays = dict(zip("xgv", Session(scope).run([n for n in ("x", "g", "v") if n in scope.page.nodes]), strict=False))
    if form == "":
        return np.asarray(pooled(arrays["x"]))
    second = arrays["g"]  # g or v, whichever there is
    return np.asarray(
        pg.vjp(pooled, arrays["x"])[1](second) if form == "_grad" else pg.jvp(pooled, arrays["x"], second)[1]
    )


@pytest.mark.parametrize("form", ["", "_grad", "_tangent"])
def test_blocks_give_the_results_of_the_library_and_explanations_add_up(form: str) -> None:
    for seed, (pool, words) in enumerate(CALLS):
        scope = drawn(pool, form, words, seed)
        out = Session(scope).run("out")
        assert np.array_equal(out, result_of(pool, form, scope, words), equal_nan=True), (pool, words)
        if form != "_grad":
            continue
        for cell in np.ndindex(*out.shape):
            why = scope.explain("out", cell)
            total = sum(a.value / a.divisor * a.weight for a in why.arrived)
            assert np.isclose(total, out[cell], equal_nan=True) or np.isnan(out[cell]), (pool, words, str(why))
            assert str(why).startswith(f"out[{cell[0]},{cell[1]}] = "), str(why)


@pytest.mark.skipif(NODE is None, reason="node, which runs the page's module here, is not installed")
def test_the_page_says_the_same_about_every_cell_of_every_pool(tmp_path: Path) -> None:
    cases = [
        (pool, form, words, seed) for seed, (pool, words) in enumerate(CALLS) for form in ("", "_grad", "_tangent")
    ]
    found = [delivered(drawn(*case), "out") for case in cases]
    said, _ = said_by_page(tmp_path, [case for case, _ in found], np.zeros(1))
    for case, (_, wanted), page in zip(cases, found, said, strict=True):
        assert page == wanted, case
        for forms in wanted:
            sentence, heading, formula = ("".join(part.text for part in parts) for parts in forms)
            assert "{" not in sentence + heading + formula
            assert sentence.endswith("."), (case, sentence)
            assert heading, (case, sentence)
    assert sum(len(wanted) for _, wanted in found) > 5000


def test_norms_are_explained_with_their_numbers() -> None:
    x = np.array([3.0, -4.0])
    why = pg.explain("lp_pool", cell=(0,), x=x, window=2)
    assert "".join(p.text for p in why.formula) == "y[0] = √(3² + -4²) = 5"
    why = pg.explain("lp_pool", cell=(1,), x=x, g=[10.0], window=2)
    assert "".join(p.text for p in why.formula) == "dx[1] = 10·-4/5 = -8"
    assert "".join(p.text for p in why.heading) == "-8 is a part of one gradient"
    why = pg.explain("lp_pool", cell=(0,), x=x, v=[5.0, 0.0], window=2, p=3)
    assert str(why).startswith("dy[0] = 2.")
    assert str(pg.explain("min_pool", cell=(0,), x=[2.0, 1.0, 1.0], window=3, ties="last")) == (
        "y[0] = 1, the smallest of the 3 cells of x[0:3], found at x[2]. 2 cells are that small; the last one is the tap."
    )
