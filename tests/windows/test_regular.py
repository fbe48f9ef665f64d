"""Sliding windows as a formula give the parts of their tables, and cost nothing however many they are."""

import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from poolgrad._windows import regular as module
from poolgrad._windows.regular import EmptyWindow, Regular
from poolgrad._windows.sliding import regular, slide, sliding_axis


@pytest.fixture(autouse=True)
def formulas(monkeypatch):
    """Use formulas for few windows too."""
    monkeypatch.setattr(module, "SHORT", 0)


@st.composite
def windows(draw):
    """Draw sliding windows: dilated or not, with any padding that leaves each window a cell."""
    d, k, s = draw(st.integers(1, 5)), draw(st.integers(1, 7)), draw(st.integers(1, 6))
    n = draw(st.integers(d, 40))
    pads = draw(st.integers(0, d * (k - 1))), draw(st.integers(0, d * (k - 1)))
    made = regular(n, k, s, d, pads, draw(st.booleans()))
    assume(len(made))
    try:
        made.axis()
    except EmptyWindow:
        assume(False)
    return made


def facts(axis):
    return axis.length, axis.pairs(), axis.span.tolist(), axis.step, dict(axis.parents)


def used(axis):
    """Return a part's facts without the parents of residues that none of its windows has."""
    length, pairs, span, step, parents = facts(axis)
    return (length, pairs, span, step), {r: p for r, p in parents.items() if any(a % step == r for a, _ in pairs)}


def alike(part, want):
    """Return True if two parts are the same, but that the first may count from some blocks nearer to the start if it is no end."""
    (windows, parents), (same, true) = used(part), used(want)

    def moved(parent, q):
        if parent == q:
            return True
        cells, many = len(range(0, part.length, part.step)), len(part)
        inside = q.origin + cells <= q.length and q.first + many <= q.windows
        by_blocks = (q.origin - parent.origin) % q.widest == 0 == (q.first - parent.first) % q.overlap
        return (
            inside
            and by_blocks
            and parent.origin >= min(q.origin, q.widest)
            and parent == q._replace(origin=parent.origin, first=parent.first)
        )

    return windows == same and parents.keys() == true.keys() and all(moved(p, true[r]) for r, p in parents.items())


@given(windows(), st.data())
def test_a_part_is_that_of_the_tables(made, data):
    axis = made.axis()
    i0 = data.draw(st.integers(0, len(axis)))
    i1 = data.draw(st.integers(i0, len(axis)))
    source, part = made.cut(i0, i1)
    same, want = axis.cut(i0, i1)
    assert source == same
    if want is not axis:
        assert alike(part, want)


@given(windows(), st.data())
def test_a_part_for_gradients_is_that_of_the_tables(made, data):
    axis = made.axis()
    j0 = data.draw(st.integers(0, axis.length))
    j1 = data.draw(st.integers(j0, axis.length))
    dest, source, part = made.cut_back(j0, j1)
    want_dest, want_source, want = axis.cut_back(j0, j1)
    if j0 == j1:
        assert len(part) == len(want) == 0
    elif made.d == 1 and len(want):
        assert (dest, source) == (want_dest, want_source)
        if want is not axis:
            assert alike(part, want)
    else:  # windows before the first that reads a cell may be among them
        assert dest.start <= want_dest.start <= want_dest.stop <= dest.stop or not len(want)
        assert source.start <= want_source.start <= want_source.stop <= source.stop or not len(want)


@given(windows())
def test_the_longest_window_is_that_of_the_tables(made):
    assert made.widest == made.axis().widest
    assert len(made) == len(made.axis())


@given(st.integers(1, 40), st.integers(1, 7), st.integers(1, 6), st.integers(-3, 6), st.data())
def test_windows_of_tensorflow_are_windows_too(n, k, s, pad, data):
    assume(pad < k)
    m = data.draw(st.integers(1, max((n + pad - 1) // s + 1, 1)))
    assume((m - 1) * s - pad < n)
    made, axis = Regular(n, k, s, 1, pad, None, m), sliding_axis(n, k, s, pad, m)
    assert (made.axis().pairs(), made.axis().span.tolist()) == (axis.pairs(), axis.span.tolist())
    i = data.draw(st.integers(0, m - 1))
    if m > 1:
        assert alike(made.cut(i, i + 1)[1], axis.cut(i, i + 1)[1])


@given(
    st.integers(1, 40), st.integers(1, 6), st.integers(1, 6), st.integers(1, 4), st.integers(0, 30), st.integers(0, 30)
)
def test_a_window_without_a_cell_is_refused_by_its_number(n, k, s, d, before, after):
    assume(n >= d)
    made = regular(n, k, s, d, (before, after), False)
    empty = np.flatnonzero(made.start(0, len(made)) >= made.stop(0, len(made)))
    if not len(empty):
        made.check()
        return
    with pytest.raises(EmptyWindow, match=f"window {empty[0]} has no cell"):
        made.check()


def test_parts_that_differ_by_whole_blocks_are_one_part():
    made = regular(10**9, 4, 2, 1, (1, 1), False)
    assert made.cut(10**6, 10**6 + 5000)[1] is made.cut(2 * 10**6, 2 * 10**6 + 5000)[1]
    assert made.cut(10**6, 10**6 + 5000)[1] is not made.cut(10**6 + 1, 10**6 + 5001)[1]  # half a block further
    last = made.cut(len(made) - 5000, len(made))[1]
    assert last.parents[0].origin == len(made) * 2 - 10_001


def test_many_windows_cost_nothing():
    made = regular(10**15, 5, 2, 3, (4, 4), False)
    made.check()
    source, part = made.cut(10**14, 10**14 + 3)
    assert (source.start, len(part)) == (2 * 10**14 - 4, 3)
    assert made.cut_back(10**13, 10**13 + 1)[1].start < 10**13
    assert len(pickle.dumps(made)) < 200
    assert pickle.loads(pickle.dumps(made)) == made


def test_slide_has_the_windows_of_the_formula():
    assert facts(slide(9, 3, 2, 2, (1, 2), True)) == facts(regular(9, 3, 2, 2, (1, 2), True).axis())
