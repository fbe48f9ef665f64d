"""Links: their sums are the kernels' results, for every op; and windows are where the plan has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from graph_pages import CASES
from hypothesis import given
from hypothesis import strategies as st
from support import FAST, Case, arguments, outputs

from poolgrad._common.errors import ArgumentErrors
from poolgrad._explain.op_calls import subject
from poolgrad._explain.subject import Subject, cuts
from poolgrad._ops.bind import bind
from poolgrad._ops.table import ARRAYS, OPS, Kind
from poolgrad._windows.cells import cell_pairs, count_cells, covering_windows
from poolgrad.windows import Plan, edges, sliding_axis


def asked(case: Case) -> tuple[Subject, np.ndarray]:
    """Return a case as the subject of explanations, and the kernel's first result."""
    given_args = arguments(case)
    result = outputs(FAST[case.op](**given_args))
    arrays = {
        p.name: np.asarray(given_args[p.name]) for p in case.row.params if p.kind in ARRAYS and p.name in given_args
    }
    attrs = {name: value for name, value in given_args.items() if name not in arrays}
    call = bind(case.row, arrays, attrs, ArgumentErrors(case.op))
    made = subject(case.row, call, arrays, attrs, dict(zip(case.row.outputs, result, strict=True)))
    assert made is not None
    return made, result[0]


def summed(made: Subject) -> np.ndarray:
    """Return the op's result, computed from its links alone."""
    links, part = made.links(), made.of
    for name, act in (("g", links.push), ("v", links.pull), ("x", links.pull)):
        found = part(name)
        if found is not None:
            return act(made.arrays[found.pin])
    raise AssertionError("an op without arrays")


def assert_links_are_the_kernel(case: Case) -> None:
    made, want = asked(case)
    got = summed(made)
    if case.row.rule.mean.name == "WIDE" and case.row.family.startswith("q"):
        got = np.trunc(got)
    if made.links().taken == "share":
        np.testing.assert_allclose(got, want.astype(np.float64), rtol=1e-6, atol=1e-6)  # a float32 mean is rounded
    else:
        np.testing.assert_array_equal(got, want.astype(np.float64))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.op)
def test_links_summed_are_the_kernels_result(case: Case) -> None:
    assert_links_are_the_kernel(case)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    op = OPS[draw(st.sampled_from(sorted(OPS)))]
    sizes = st.integers(1, 5)
    n = op.spatial
    x = (draw(st.integers(1, 2)), *(draw(st.integers(3, 6)) for _ in range(n)), draw(st.integers(1, 2)))
    fractional = op.family.startswith("f")
    return Case(
        op.name,
        dtype="uint8" if op.family.startswith("q") else "float32",
        x=x,
        k=tuple(draw(st.integers(1, 3)) for _ in range(n)),
        s=tuple(draw(sizes) for _ in range(n)),
        pad="VALID" if fractional else draw(st.sampled_from(["VALID", "SAME"])),
        overlapping=draw(st.booleans()),
        batched=draw(st.booleans()),
        first=bool(op.param(Kind.FORMAT)) and draw(st.booleans()),
        data=draw(st.sampled_from(["ties", "distinct"])),
    )


@given(cases())
def test_links_summed_are_the_kernels_result_whatever_the_windows(case: Case) -> None:
    assert_links_are_the_kernel(case)


def test_every_channel_window_is_linked_too() -> None:
    for name, op in OPS.items():
        if op.depthwise:
            dtype = "uint8" if op.family.startswith("q") else "float32"
            assert_links_are_the_kernel(Case(name, dtype=dtype, x=(2, 3, 2, 6), depth=3))


def test_links_of_some_windows_are_those_of_all() -> None:
    for case in CASES:
        made, _ = asked(case)
        every, some = made.links(), made.links(np.array([3, 1]))
        if every.ptr is None:
            continue
        assert [some.hits(0), some.hits(1)] == [every.hits(3), every.hits(1)]


@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.integers(0, 3), st.integers(1, 4))
def test_pairs_are_the_windows_cell_by_cell(n: int, k: int, s: int, pad: int, m: int) -> None:
    axis = sliding_axis(n, k, s, min(pad, k - 1), m)
    plan = Plan((2, n, 3), {1: axis})
    window, cell = cell_pairs(plan, np.arange(2 * m * 3))
    assert len(cell) == count_cells(plan)
    want = [
        (np.ravel_multi_index((b, i, c), plan.dest), np.ravel_multi_index((b, j, c), plan.source))
        for b in range(2)
        for i in range(m)
        for c in range(3)
        for j in range(axis.start[i], axis.stop[i])
    ]
    assert list(zip(window.tolist(), cell.tolist(), strict=True)) == want
    for at in range(n):
        found = covering_windows(plan, (1, at, 2))
        want_cover = [i for i in range(m) if axis.start[i] <= at < axis.stop[i]]
        assert found.tolist() == [np.ravel_multi_index((1, i, 2), plan.dest) for i in want_cover]


def test_cells_that_are_cut_off_are_counted_on_their_side() -> None:
    before, after = cuts(sliding_axis(5, k=3, s=2, pad=1, m=3))
    assert (before.tolist(), after.tolist()) == ([1, 0, 0], [0, 0, 1])
    before, after = cuts(sliding_axis(2, k=3, s=3, pad=0, m=1))
    assert (before.tolist(), after.tolist()) == ([0], [1])
    before, after = cuts(edges(5, [0, 2, 4], overlapping=True))
    assert (before.tolist(), after.tolist()) == ([0, 0], [0, 0])


NAN, INF = np.nan, np.inf


@pytest.mark.parametrize("op", ["MaxPool", "MaxPoolGrad", "MaxPoolWithArgmax", "MaxPool3D", "MaxPool3DGrad"])
def test_nan_and_infinity_win_where_the_kernel_lets_them(op: str) -> None:
    row = OPS[op]
    case = replace(
        CASES[list(OPS).index(op)], x=(1, *(4,) * row.spatial, 1), k=(2,) * row.spatial, s=(2,) * row.spatial
    )
    rng = np.random.default_rng(5)
    for _ in range(20):
        args = arguments(case)
        x = rng.choice(np.array([NAN, INF, -INF, 0.0, -0.0, 1.0, 3.0], np.float32), case.source)
        args[row.params[0].name] = x
        if "orig_output" in args:
            forward = {p.name: args[p.name] for p in OPS[op.replace("Grad", "")].params if p.name in args}
            args["orig_output"] = outputs(FAST[op.replace("Grad", "")](input=x, **forward))[0]
        check_special(op, args)


def check_special(op: str, args: dict[str, Any]) -> None:
    row = OPS[op]
    result = outputs(FAST[op](**args))
    arrays = {p.name: np.asarray(args[p.name]) for p in row.params if p.kind in ARRAYS}
    attrs = {name: value for name, value in args.items() if name not in arrays}
    call = bind(row, arrays, attrs, ArgumentErrors(row.name))
    made = subject(row, call, arrays, attrs, dict(zip(row.outputs, result, strict=True)))
    assert made is not None
    links = made.links()
    x = made.arrays[row.params[0].name].reshape(-1)
    if row.order == 1:
        g = made.of("g")
        assert g is not None
        np.testing.assert_array_equal(links.push(made.arrays[g.pin]), result[0])
        return
    for i, best in enumerate(result[0].reshape(-1)):
        hits = links.hits(i)
        if hits:
            assert x[hits[0]] == best or (best != best and x[hits[0]] != x[hits[0]])
        else:  # no cell exceeded the start: each is NaN or the lowest value
            assert op == "MaxPool" or op == "MaxPool3D"
        if op == "MaxPoolWithArgmax":
            assert hits[0] == result[1].reshape(-1)[i]
