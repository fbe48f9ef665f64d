"""Properties of every axis and plan, and the arguments that the core refuses for them."""

import inspect
import timeit
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolgrad import _core, reference, windows
from poolgrad._kernels import native
from poolgrad._ops.semantics import Mean, Share, Start
from poolgrad._pooling.adaptive_global import adaptive
from poolgrad._windows import axis as axis_module
from poolgrad._windows.sliding import slide
from poolgrad.windows import Axis, Plan, itself, sliding_axis, whole


@st.composite
def axes(draw, longest=9):
    """Draw any monotone intervals, empty ones among them."""
    n = draw(st.integers(1, longest))
    m = draw(st.integers(1, longest))
    start = sorted(draw(st.lists(st.integers(0, n), min_size=m, max_size=m)))
    stop = sorted(draw(st.lists(st.integers(0, n), min_size=m, max_size=m)))
    return Axis(n, start, np.maximum(start, stop))


@st.composite
def covered(draw):
    """Draw windows that hold a cell each, every cell in one of them."""
    n = draw(st.integers(1, 9))
    k = draw(st.integers(1, 9))
    s = draw(st.integers(1, k))
    m = -(-n // s)
    return sliding_axis(n, k, s, max(0, ((m - 1) * s + k - n) // 2), m)


def matrix(axis: Axis) -> np.ndarray:
    """Return a matrix of windows by cells: True where the window has the cell."""
    cells = np.arange(axis.length)
    return (axis.start[:, None] <= cells) & (cells < axis.stop[:, None])


@given(axes())
def test_transpose_is_the_transposed_membership(axis):
    filled = axis.count > 0
    if filled.all():
        assert (matrix(axis.transpose()) == matrix(axis).T).all()
    else:
        assert (matrix(axis.transpose()) >= matrix(axis).T).all()


@given(covered())
def test_transpose_of_transpose_is_the_plan(axis):
    assert axis.transpose().transpose().pairs() == axis.pairs()


@given(axes(), st.data())
def test_a_cut_reads_the_same_cells_from_its_slice(axis, data):
    i0 = data.draw(st.integers(0, len(axis)))
    i1 = data.draw(st.integers(i0, len(axis)))
    part, rebased = axis.cut(i0, i1)
    cells = np.arange(axis.length)
    assert [cells[part][a:b].tolist() for a, b in rebased] == [cells[a:b].tolist() for a, b in axis.pairs()[i0:i1]]
    assert rebased.length == part.stop - part.start
    assert rebased.span.tolist() == axis.span[i0:i1].tolist()


@given(covered(), covered(), st.integers(1, 3), st.integers(1, 3))
def test_cutting_and_concatenating_gives_the_same_bits(rows, cols, outer, inner):
    plan = Plan((outer, rows.length, cols.length, inner), {1: rows, 2: cols})
    x = np.random.default_rng(0).standard_normal(plan.source).astype(np.float32)
    half = len(rows) // 2
    parts = []
    for i0, i1 in ((0, half), (half, len(rows))):
        if i1 > i0:
            part, axis = rows.cut(i0, i1)
            piece = Plan((outer, axis.length, cols.length, inner), {1: axis, 2: cols})
            parts.append(native.fold(piece, Mean.EXACT, np.ascontiguousarray(x[:, part])))
    assert np.concatenate(parts, 1).tobytes() == native.fold(plan, Mean.EXACT, x).tobytes()


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.data())
def test_a_plan_is_its_dimensions_as_outer_pooled_inner(shape, data):
    pooled = {
        d: data.draw(st.sampled_from([sliding_axis(n, 2, 1, 0, n), itself(n)]))
        for d, n in enumerate(shape)
        if data.draw(st.booleans())
    }
    plan = Plan(shape, pooled)
    lengths = [axis.length for axis in plan.axes]
    assert plan.outer * prod(lengths) * plan.inner == prod(shape)
    assert plan.outer * prod(map(len, plan.axes)) * plan.inner == prod(plan.dest)
    assert all(not axis.identity for axis in (plan.axes[0], plan.axes[-1])) or len(plan.axes) == 1
    kept = [pooled[d].pairs() for d in sorted(pooled) if not pooled[d].identity]
    assert kept == [axis.pairs() for axis in plan.axes if not axis.identity]


@given(axes(), st.integers(1, 3), st.integers(1, 3))
def test_layout_is_only_a_matter_of_outer_and_inner(axis, outer, inner):
    x = np.random.default_rng(1).integers(-9, 9, (outer, axis.length, inner)).astype(np.float32)
    last = native.select(Plan(x.shape, {1: axis}), Start.LOWEST, x)
    moved = np.ascontiguousarray(x.transpose(0, 2, 1))
    first = native.select(Plan(moved.shape, {2: axis}), Start.LOWEST, moved)
    assert (first.transpose(0, 2, 1) == last).all()


@given(axes(), axes(), st.integers(1, 3))
def test_windows_need_neither_overlap_nor_touch_nor_hold_anything(rows, cols, inner):
    plan = Plan((1, rows.length, cols.length, inner), {1: rows, 2: cols})
    rng = np.random.default_rng(2)
    x, g = (rng.integers(-3, 4, shape).astype(np.float32) for shape in (plan.source, plan.dest))
    for make in (lambda: plan, lambda: Plan((1, rows.length, cols.length, inner), {1: rows, 2: cols})):
        p = make()
        if p is not plan:
            native.native(p, plain=True)
        assert native.select(p, Start.INFINITY, x).tobytes() == reference.select(p, Start.INFINITY, x).tobytes()
        if (rows.count > 0).all() and (cols.count > 0).all():
            got, want = (v.spread(p, Share.RECIPROCAL, False, g) for v in (native, reference))
            assert got.tobytes() == want.tobytes()
            assert native.route(p, x, g).tobytes() == reference.route(p, x, g).tobytes()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (3, 1, 4, 2), (2, 2, 1, 1)])
def test_what_one_window_shares_out_by_copying_has_the_bits_of_spread(dtype, shape):
    g = np.random.default_rng(3).normal(size=(shape[0], 1, 1, shape[3])).astype(np.dtype(dtype))
    g[0], g[-1, 0, 0, -1] = -0.0, np.inf
    plan = Plan(shape, {1: whole(shape[1]), 2: whole(shape[2])})
    assert plan.whole
    for share in (Share.QUOTIENT, Share.RECIPROCAL):
        if share is Share.QUOTIENT or dtype.startswith("float"):
            got, want = native.spread_whole(plan, share, g), native.spread(plan, share, False, g)
            assert got.tobytes() == want.tobytes()


def test_a_plan_is_whole_only_where_its_one_window_covers_all_and_there_is_something():
    for axis in (Axis(3, [0], [2]), Axis(3, [0, 2], [2, 3]), whole(0)):
        assert not Plan((2, axis.length), {1: axis}).whole


BAD_AXES = {
    "before the axis": (5, [-1], [2]),
    "behind the axis": (5, [3], [6]),
    "backwards": (5, [3], [2]),
    "starts fall": (5, [2, 1], [3, 4]),
    "stops fall": (5, [1, 2], [4, 3]),
    "of a negative length": (-1, [], []),
    "more starts than stops": (5, [0, 1], [2]),
}


@pytest.mark.parametrize("why", BAD_AXES)
def test_an_axis_that_exists_is_valid(why):
    with pytest.raises(ValueError, match=r"^Axis: start"):
        Axis(*BAD_AXES[why])


@pytest.mark.parametrize("why", BAD_AXES)
def test_the_core_takes_no_windows(why):
    n, start, stop = BAD_AXES[why]
    with pytest.raises(ValueError, match=r"^plan: "):
        _core.Plan((1,), (1,), 1, 1, [(n, np.array(start, np.int64), np.array(stop, np.int64), None)])


def good(n=4):
    axis = itself(n)
    return axis.length, axis.start, axis.stop, axis.span


BAD_PLANS = {
    "negative outer": (lambda: _core.Plan((1,), (1,), -1, 1, [good()]), ValueError, "a negative size"),
    "negative inner": (lambda: _core.Plan((1,), (1,), 1, -1, [good()]), ValueError, "a negative size"),
    "no axis": (lambda: _core.Plan((1,), (1,), 1, 1, []), ValueError, "wanted 1 to 16"),
    "seventeen axes": (lambda: _core.Plan((1,), (1,), 1, 1, [good(1)] * 17), ValueError, "more than 16"),
    "too many elements": (lambda: _core.Plan((1,), (1,), 2**62, 2**62, [good()]), ValueError, "overflows 64 bits"),
    "sizes that wrap to small": (
        lambda: _core.Plan((1,), (1,), 2**33, 2**33, [good()]),
        ValueError,
        "overflows 64 bits",
    ),
    "int32 windows": (
        lambda: _core.Plan((1,), (1,), 1, 1, [(4, np.zeros(1, np.int32), np.ones(1, np.int32), None)]),
        TypeError,
        "must be int64",
    ),
    "windows in a table": (
        lambda: _core.Plan((1,), (1,), 1, 1, [(4, np.zeros((1, 1), int), np.ones((1, 1), int), None)]),
        ValueError,
        "must have one dimension",
    ),
    "strided windows": (
        lambda: _core.Plan((1,), (1,), 1, 1, [(9, np.arange(8)[::2], np.arange(8)[::2] + 1, None)]),
        ValueError,
        "must be C-contiguous",
    ),
    "a list for an array": (
        lambda: _core.Plan((1,), (1,), 1, 1, [(4, [0], [1], None)]),
        TypeError,
        "not a NumPy array",
    ),
    "a triple": (lambda: _core.Plan((1,), (1,), 1, 1, [good()[:3]]), TypeError, "each must be"),
    "a span too short": (
        lambda: _core.Plan((1,), (1,), 1, 1, [(4, np.zeros(2, int), np.ones(2, int), np.ones(1, int))]),
        ValueError,
        "differ in length",
    ),
}


@pytest.mark.parametrize("why", BAD_PLANS)
def test_the_core_takes_no_plan_with(why):
    make, error, words = BAD_PLANS[why]
    with pytest.raises(error, match=words):  # not because its shapes do not fit, either
        make()


def test_a_plan_refuses_an_axis_of_another_length():
    with pytest.raises(ValueError, match="got length 5 in dimension 1, wanted 4"):
        Plan((1, 5), {1: itself(4)})


def test_a_native_plan_refuses_shapes_of_other_sizes():
    with pytest.raises(ValueError, match="source"):
        _core.Plan((5,), (4,), 1, 1, [good()])
    with pytest.raises(ValueError, match="dest"):
        _core.Plan((4,), (-1, -4), 1, 1, [good()])


def test_a_cut_keeps_lengths_before_edges_and_step():
    _, part = sliding_axis(5, 3, 2, 1, 3).cut(0, 2)
    assert part.span.tolist() == [3, 3]
    assert part.count.tolist() == [2, 3]
    _, part = Axis(9, [0, 1, 2], [5, 6, 7], step=2).cut(1, 3)
    assert (part.step, part.count.tolist()) == (2, [3, 3])


def test_windows_whose_cells_lie_apart_do_not_reach_the_core_as_if_they_did_not():
    plan = Plan((5,), {0: Axis(5, [0, 1, 2], [3, 4, 5], step=2)})
    with pytest.raises(ValueError, match="Plan: step: got windows whose cells lie apart"):
        native.native(plan)


def test_a_plan_of_long_windows_takes_no_longer_than_one_of_short_ones():
    """An earlier version looked at each cell under every window that covers it: 17 seconds instead of some 60 ms."""
    n = 1 << 18
    at = np.arange(n)

    def seconds(width: int) -> float:
        axis = (n, np.maximum(at - width, 0), np.minimum(at + width, n), None)
        return min(timeit.repeat(lambda: _core.Plan((n,), (n,), 1, 1, (axis,), False), number=1, repeat=5))

    assert seconds(1 << 12) < 5 * seconds(2)


def made(n: int, k: int, s: int) -> list[Axis]:
    """Return an axis of each kind, none from the store."""
    pad, m = k // 2, -(-n // s)
    makers = [
        (sliding_axis, (n, k, s, pad, m)),
        (windows.reach, (n, k, s, pad, m)),
        (slide, (n, k, s, 2, (pad, pad), True)),
        (slide, (n, k, s, 1, (pad, pad), False)),
        (adaptive, (n, m)),
        (itself, (n,)),
    ]
    return [inspect.unwrap(maker)(*args) for maker, args in makers]


@pytest.mark.parametrize("step", [1, 2, 5])
@pytest.mark.parametrize("size", [(13, 3, 1), (13, 4, 2), (9, 20, 1), (1, 1, 1)])
def test_tables_that_are_made_in_steps_are_those_that_are_made_at_once(size, step, monkeypatch):
    want = made(*size)
    monkeypatch.setattr(axis_module, "_STEP", step)
    for axis, other in zip(made(*size), want, strict=True):
        for name in ("start", "stop", "span", "count"):
            np.testing.assert_array_equal(getattr(axis, name), getattr(other, name), name)
            assert not getattr(axis, name).flags.writeable
