"""Maxima start from minus infinity, or from the lowest finite value where padding cuts the window."""

import numpy as np
import pytest
from support import plain_verbs

from poolgrad import reference
from poolgrad._kernels import native
from poolgrad._ops.semantics import Start
from poolgrad.windows import Axis, Plan, sliding_axis


@pytest.mark.parametrize("inner", [1, 3, 40])
def test_a_window_that_was_cut_among_others_that_were_not_starts_from_the_lowest_value(inner):
    axis = Axis(24, np.arange(0, 22, 2), np.arange(3, 25, 2).clip(max=24), span=[3, 3, 3, 5, 3, 3, 4, 3, 3, 3, 3])
    plan = Plan((2, 24, inner), {1: axis})
    x = np.full(plan.source, -np.inf, np.float32)
    want = reference.select(plan, Start.INFINITY, x)
    assert set(np.unique(want).tolist()) == {-np.inf, float(np.finfo(np.float32).min)}
    assert (native.select(plan, Start.INFINITY, x) == want).all()
    assert (plain_verbs().select(plan, Start.INFINITY, x) == want).all()


@pytest.mark.parametrize("inner", [1, 3, 40])
def test_a_window_that_was_cut_along_another_axis_than_the_last_starts_from_the_lowest_value(inner):
    plan = Plan((2, 9, 8, inner), {1: sliding_axis(9, 3, 2, 1, 5), 2: sliding_axis(8, 2, 2, 0, 4)})
    x = np.full(plan.source, -np.inf, np.float32)
    want = reference.select(plan, Start.INFINITY, x)
    assert np.isfinite(want).all((0, 2, 3)).tolist() == [True, False, False, False, True]
    assert (native.select(plan, Start.INFINITY, x) == want).all()
    assert (plain_verbs().select(plan, Start.INFINITY, x) == want).all()


@pytest.mark.parametrize(("step", "rows"), [(1, 7), (2, 8), (3, 9)])
def test_a_window_that_sticks_out_without_being_cut_starts_from_minus_infinity_whatever_other_axes_do(step, rows):
    start = np.array([rows - 2 * step, rows - step, rows])
    columns = Axis(16, [0, *range(16)], np.arange(1, 18).clip(max=16), span=[2] * 17)
    plan = Plan((1, rows, 16), {1: Axis(rows, start, (start + step).clip(max=rows)), 2: columns})
    x = np.full(plan.source, -np.inf)
    want = reference.select(plan, Start.INFINITY, x)
    assert set(np.unique(want).tolist()) == {-np.inf, float(np.finfo(np.float64).min)}
    assert (native.select(plan, Start.INFINITY, x) == want).all()


@pytest.mark.parametrize("span", [None, 5])
@pytest.mark.parametrize("start", [Start.INFINITY, Start.LOWEST])
def test_rows_start_from_what_their_windows_say(start, span):
    """Windows marked as cut, although none sticks out, start from the lowest finite value."""
    rows, cols = sliding_axis(40, 3, 2, 0, 19), sliding_axis(700, 3, 2, 0, 349)
    cols = Axis(700, cols.start, cols.stop, span)
    x = np.full((2, 40, 700), -np.inf, np.float32)
    x[:, ::7, ::5] = 1
    fast, plain = Plan(x.shape, {1: rows, 2: cols}), Plan(x.shape, {1: rows, 2: cols})
    native.native(plain, plain=True)
    assert native.select(fast, start, x).tobytes() == native.select(plain, start, x).tobytes()
