"""From words to windows: every way to write them, against walking over the cells."""

import numpy as np
import pytest
from brute import axis_cells, same_pads
from hypothesis import given
from hypothesis import strategies as st

import poolgrad as pg


def cells_of(axis: pg.Axis) -> list[list[int]]:
    return [list(range(a, b, axis.step)) for a, b in axis.pairs()]


@given(
    n=st.integers(1, 14),
    k=st.integers(1, 5),
    s=st.integers(1, 4),
    d=st.integers(1, 3),
    pads=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    ceil_mode=st.booleans(),
)
def test_windows_read_the_cells_that_the_words_say(n, k, s, d, pads, ceil_mode):
    wanted = axis_cells(n, k, s, d, pads, ceil_mode)
    if any(not cells for cells in wanted):
        with pytest.raises(ValueError, match="plan: padding: got window"):
            pg.plan((n,), k, s, padding=[pads], dilation=d, ceil_mode=ceil_mode)
        return
    made = pg.plan((n,), k, s, padding=[pads], dilation=d, ceil_mode=ceil_mode)
    assert cells_of(made.axes[0]) == wanted


@given(n=st.integers(1, 20), k=st.integers(1, 6), s=st.integers(1, 6), d=st.integers(1, 3))
def test_same_has_a_window_per_step(n, k, s, d):
    cells = axis_cells(n, k, s, d, same_pads(n, k, s, d), False)
    if not all(cells):  # the cells of a dilated window may all lie in the padding
        with pytest.raises(ValueError, match="without a cell"):
            pg.plan((n,), k, s, padding="same", dilation=d)
        return
    made = pg.plan((n,), k, s, padding="same", dilation=d)
    assert made.dest == (-(-n // s),)
    assert cells_of(made.axes[0]) == cells


def test_the_odd_cell_of_same_lies_behind_or_before():
    assert pg.plan((4,), 2, 1, padding="same").axes[0].pairs() == [(0, 2), (1, 3), (2, 4), (3, 4)]
    assert pg.plan((4,), 2, 1, padding="same_lower").axes[0].pairs() == [(0, 1), (0, 2), (1, 3), (2, 4)]


def test_axes_layout_and_rank_say_the_same():
    x = np.random.default_rng(0).standard_normal((2, 6, 8, 3))
    want = pg.max_pool(x, 2, axes=(1, 2))
    assert np.array_equal(pg.max_pool(x, (2, 2), layout="NHWC"), want)
    assert np.array_equal(pg.max_pool(x, 2, axes=(-3, -2)), want)
    assert np.array_equal(pg.max_pool(x, (1, 2, 2, 1)), want)
    assert pg.max_pool(x, 1, axes=0).shape == x.shape


@given(n=st.integers(1, 30), m=st.integers(1, 30))
def test_adaptive_windows_cover_everything_and_are_as_even_as_can_be(n, m):
    pairs = pg.adaptive(n, m).pairs()
    assert pairs == [(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]
    assert {c for a, b in pairs for c in range(a, b)} == set(range(n))


def test_boundaries_are_values():
    rows, cols = pg.fractional_windows((10, 7), (1.5, 1.6), seed=(1, 2), overlapping=True)
    x = np.random.default_rng(0).standard_normal((10, 7))
    again = pg.Axis(rows.length, rows.start, rows.stop)
    assert np.array_equal(pg.max_pool(x, (again, cols)), pg.max_pool(x, (rows.pairs(), cols.pairs())))
    assert eval(repr(rows), {"Axis": pg.Axis}).pairs() == rows.pairs()


def test_fractional_windows_are_tensorflows():
    x = np.random.default_rng(0).standard_normal((1, 11, 13, 2)).astype(np.float32)
    for pseudo in (False, True):
        for overlapping in (False, True):
            raw = pg.raw_ops.FractionalMaxPool(
                value=x,
                pooling_ratio=[1, 1.4, 1.7, 1],
                pseudo_random=pseudo,
                overlapping=overlapping,
                deterministic=True,
                seed=3,
                seed2=9,
            )
            how = {
                "seed": (3, 9),
                "pseudo_random": pseudo,
                "overlapping": overlapping,
                "layout": "NHWC",
                "return_windows": True,
            }
            y, (rows, cols) = pg.fractional_max_pool(x, (1.4, 1.7), **how)
            assert np.array_equal(y, raw.output)
            assert rows.start.tolist() == raw.row_pooling_sequence[:-1].tolist()
            assert cols.start.tolist() == raw.col_pooling_sequence[:-1].tolist()


def test_without_a_seed_windows_differ_and_with_one_they_do_not():
    drawn = {tuple(pg.fractional_windows(100, 1.5).start.tolist()) for _ in range(4)}
    assert len(drawn) == 4
    assert pg.fractional_windows(100, 1.5, seed=7).pairs() == pg.fractional_windows(100, 1.5, seed=7).pairs()


def test_output_shape_says_what_the_pools_return():
    for words in ({}, {"padding": 1}, {"padding": "same"}, {"ceil_mode": True}, {"dilation": 2}):
        x = np.zeros((9, 10))
        assert pg.output_shape(x.shape, 3, 2, **words) == pg.avg_pool(x, 3, 2, **words).shape
