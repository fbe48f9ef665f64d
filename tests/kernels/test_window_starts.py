"""Corners of the core that no test covered, as deliberate faults (`make mutate`) showed: each has its claim here."""

import numpy as np
import pytest
from support import plain_verbs

import poolgrad
from poolgrad import _core, reference
from poolgrad._kernels import native
from poolgrad._ops.semantics import Mean, Start
from poolgrad.windows import Axis, Plan, clip


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
    plan = Plan((2, 9, 8, inner), {1: clip(9, 3, 2, 1, 5), 2: clip(8, 2, 2, 0, 4)})
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


def test_the_first_wrong_position_is_named_whoever_finds_his_first():
    """The wrong positions are the last cell of one task and the first of the next: the second is found long before."""
    index = np.zeros(1 << 17, np.int64)
    index[[(1 << 15) - 1, 1 << 15]] = -1
    v, out = np.zeros(1 << 17, np.float32), np.zeros(1 << 17, np.float32)
    with poolgrad.threads(2):
        found = {_core.gather(1, True, v, index, out) for _ in range(300)}
    assert found == {(1 << 15) - 1}


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_scatter_whose_positions_leave_their_images_is_done_once_more(threads):
    images, cells = 6, 20_000
    rng = np.random.default_rng(0)
    g, index = rng.integers(0, 9, images * cells).astype(np.float32), rng.integers(0, images * cells, images * cells)
    want = np.bincount(index, g, images * cells).astype(np.float32)
    out = np.full(images * cells, 7, np.float32)
    with poolgrad.threads(threads):
        assert _core.scatter(images, True, g, index, out) == -1
    assert (out == want).all()


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("follow", [_core.scatter, _core.gather])
def test_positions_are_followed_up_to_the_last_cell_whatever_number_divides_them(follow, threads):
    cells = 100_003
    index = np.arange(cells)[::-1].copy()
    v, out = np.arange(cells, dtype=np.float32), np.full(cells, -7, np.float32)
    with poolgrad.threads(threads):
        assert follow(1, True, v, index, out) == -1
    assert (out == v[::-1]).all()


LARGE = {  # enough bytes for several threads
    "one image, cut between its rows": Plan((1, 67, 64, 32), {1: clip(67, 2, 1, 0, 66), 2: clip(64, 2, 2, 0, 32)}),
    "images that no number of threads divides": Plan((11, 8, 8, 128), {1: clip(8, 2, 2, 0, 4), 2: clip(8, 2, 2, 0, 4)}),
}


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("what", LARGE)
def test_a_result_is_whole_however_it_is_cut(what, threads):
    plan = LARGE[what]
    x = np.random.default_rng(0).integers(0, 9, plan.source).astype(np.float32)
    out = np.full(plan.dest, -7, np.float32)
    with poolgrad.threads(threads):
        native.select(plan, Start.LOWEST, x, out)
    assert (out == reference.select(plan, Start.LOWEST, x)).all()


def test_windows_that_neither_begin_nor_end_with_a_block_do_not_slide():
    """Blocks are as long as the longest window; the first window lies inside one."""
    start = np.arange(3, 41)
    rows = Axis(60, start, np.where(start == 3, 9, start + 20))
    plan = Plan((1, 60, 40, 3), {1: rows, 2: clip(40, 20, 1, 0, 21)})
    x = np.random.default_rng(0).integers(-99, 99, plan.source).astype(np.float32)
    got = native.select(plan, Start.LOWEST, x)
    assert (got == plain_verbs().select(plan, Start.LOWEST, x)).all()


@pytest.mark.parametrize("mean", [mean for mean in Mean if mean is not Mean.WIDE])
@pytest.mark.parametrize("window", [(7, 9), (8, 8), (5, 13)])
def test_sums_of_up_to_64_cells_and_of_more_are_added_up_as_the_reference_does(window, mean):
    plan = Plan(
        (2, 9, 14, 5), {a: clip(n, k, 1, 0, n - k + 1) for a, n, k in zip((1, 2), (9, 14), window, strict=True)}
    )
    x = np.random.default_rng(0).standard_normal(plan.source).astype(np.float32)
    want = reference.fold(plan, mean, x).tobytes()
    assert native.fold(plan, mean, x).tobytes() == want
    assert plain_verbs().fold(plan, mean, x).tobytes() == want


def test_nan_may_be_the_maximum_of_a_window_that_begins_with_it():
    plan = Plan((6,), {0: clip(6, 2, 2, 0, 3)})
    x, y, g = np.array([np.nan, 1, 2, 3, 5, 4]), np.array([np.nan, 3, 5]), np.array([10.0, 20, 30])
    assert np.array_equal(native.select(plan, Start.FIRST, x), y, equal_nan=True)
    assert native.route(plan, x, g, y).tolist() == [10, 0, 0, 20, 30, 0]
    with pytest.raises(native.Astray, match="at flat position 1"):
        native.route(plan, x, g, np.array([np.nan, np.nan, 5]))


def test_an_output_that_was_flushed_to_zero_still_is_the_maximum():
    plan = Plan((4,), {0: clip(4, 2, 2, 0, 2)})
    x, g = np.array([1e-40, 0, 3, 2], np.float32), np.array([10, 20], np.float32)
    assert native.route(plan, x, g, np.array([0, 3], np.float32)).tolist() == [10, 0, 20, 0]
    with pytest.raises(native.Astray, match="at flat position 0"):
        native.route(plan, x, g, np.array([1e-30, 3], np.float32))


@pytest.mark.parametrize("which", [0, 50, -1])
def test_a_window_that_ends_before_its_neighbours_do_reads_no_further(which):
    start = np.arange(0, 196, 2)
    stop = start + 3
    stop[which] -= 1
    plan = Plan((2, 6, 200), {1: clip(6, 2, 2, 0, 3), 2: Axis(200, start, stop)})
    x = np.random.default_rng(0).permutation(2400).reshape(plan.source).astype(np.float32)
    assert (native.select(plan, Start.LOWEST, x) == reference.select(plan, Start.LOWEST, x)).all()
    assert (native.fold(plan, Mean.EXACT, x) == reference.fold(plan, Mean.EXACT, x)).all()
