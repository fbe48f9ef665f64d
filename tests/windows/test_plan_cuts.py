"""Parts of axes and plans: their cells, their windows, their pickles, and pools over them."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from regions import assembled, assembled_back, random_plan

import poolgrad as pg
from poolgrad._windows.axis import parent_of
from poolgrad._windows.sliding import slide
from poolgrad.windows import Axis, Plan, itself, sliding_axis, whole


def cells_of(axis: Axis) -> list[list[int]]:
    return [list(range(a, b, axis.step)) for a, b in axis]


@st.composite
def slides(draw):
    """Draw windows of one size, dilated or not, with padding."""
    d, k, s = draw(st.integers(1, 4)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    n = draw(st.integers(d * (k - 1) + 1, 24))
    pads = st.integers(0, max(d * (k - 1), 0) // 2 if k > 1 else 0)
    return slide(n, k, s, d, (draw(pads), draw(pads)), False)


@given(slides(), st.data())
def test_a_cut_of_dilated_and_padded_windows_reads_the_same_cells(axis, data):
    i0 = data.draw(st.integers(0, len(axis)))
    i1 = data.draw(st.integers(i0, len(axis)))
    source, part = axis.cut(i0, i1)
    assert [[c + source.start for c in cells] for cells in cells_of(part)] == cells_of(axis)[i0:i1]
    assert part.length == source.stop - source.start
    assert part.span.tolist() == axis.span[i0:i1].tolist()


@given(slides(), st.data())
def test_a_cut_back_has_every_window_that_reads_the_cells(axis, data):
    j0 = data.draw(st.integers(0, axis.length))
    j1 = data.draw(st.integers(j0, axis.length))
    dest, source, part = axis.cut_back(j0, j1)
    wanted = set(range(j0, j1))
    assert source.start <= j0 <= j1 <= source.stop or j0 == j1
    assert [[c + source.start for c in cells] for cells in cells_of(part)] == cells_of(axis)[dest]
    others = [*cells_of(axis)[: dest.start], *cells_of(axis)[dest.stop :]]
    assert not any(wanted & set(cells) for cells in others)


@given(slides(), st.data())
def test_a_part_of_a_part_knows_the_place_of_both(axis, data):
    i0 = data.draw(st.integers(0, len(axis) - 1))
    i1 = data.draw(st.integers(i0 + 1, len(axis)))
    source, part = axis.cut(i0, i1)
    k0 = data.draw(st.integers(0, i1 - i0 - 1))
    k1 = data.draw(st.integers(k0 + 1, i1 - i0))
    again, twice = part.cut(k0, k1)
    once_source, once = axis.cut(i0 + k0, i0 + k1)
    assert (again.start + source.start, again.stop + source.start) == (once_source.start, once_source.stop)
    for residue in set((once.start % once.step).tolist()) if (k1 - k0, i1 - i0) != (len(axis), len(axis)) else ():
        assert twice.parents.get(residue) == once.parents.get(residue)


@pytest.mark.parametrize("axis", [itself(6), whole(6), sliding_axis(6, 3, 1, 1, 6)], ids=["itself", "whole", "slid"])
def test_a_cut_of_everything_is_the_axis(axis):
    assert axis.cut(0, len(axis))[1] is axis
    assert axis.cut_back(0, axis.length)[2] is axis


def test_parts_of_axes_that_are_not_pooled_have_no_parent():
    assert itself(6).cut(2, 4)[1].identity
    assert not itself(6).cut(2, 4)[1].parents


def test_a_part_is_pooled_even_if_each_of_its_windows_is_a_cell():
    source, part = sliding_axis(9, 1, 2, 0, 5).cut(1, 2)
    assert (source, part.length, len(part)) == (slice(2, 3), 1, 1)
    assert not part.identity
    assert not whole(4).cut_back(1, 2)[2].parents  # the whole axis again
    assert not sliding_axis(9, 4, 3, 0, 2).cut(1, 2)[1].covers


@given(slides())
def test_transposing_dilated_windows_is_the_transposed_membership(axis):
    want = [[i for i, cells in enumerate(cells_of(axis)) if c in cells] for c in range(axis.length)]
    if set((axis.start % axis.step).tolist()) == set(range(min(axis.step, axis.length))):
        assert cells_of(axis.transpose()) == want
    else:
        with pytest.raises(ValueError, match="Axis: step: got"):
            axis.transpose()


def test_transposing_dilated_windows_that_miss_cells_is_refused():
    with pytest.raises(ValueError, match="Axis: step: got 2 with starts"):
        slide(9, 2, 2, 2, (0, 0), False).transpose()


@pytest.mark.parametrize("seed", range(20))
def test_pools_over_parts_of_dilated_windows_have_the_bits_of_the_whole(seed):
    plan, rng = random_plan(seed, 1 + seed % 3, bool(seed % 2), dilated=True), np.random.default_rng(seed)
    x, g = rng.standard_normal(plan.source), rng.standard_normal(plan.dest)
    for make in (pg.averaging, pg.summing):
        got = assembled(rng, plan, lambda part, source, _: make(part)(x[source]))  # noqa: B023
        assert got.tobytes() == make(plan)(x).tobytes()
        got = assembled_back(rng, plan, lambda part, _, dest: make(part).T(g[dest]))  # noqa: B023
        assert got.tobytes() == np.ascontiguousarray(make(plan).T(g)).tobytes()
    y, P = pg.max_operator(x, plan)
    got = assembled(rng, plan, lambda part, source, _: pg.max_operator(x[source], part)[0])
    assert got.tobytes() == y.tobytes()
    got = assembled_back(rng, plan, lambda part, source, dest: pg.max_operator(x[source], part)[1].T(g[dest]))
    assert got.tobytes() == P.T(g).tobytes()


def test_a_pickled_part_gives_the_bits_of_the_whole():
    plan = Plan((60, 70), {0: sliding_axis(60, 31, 1, 15, 60), 1: sliding_axis(70, 31, 1, 15, 70)})
    x = np.random.default_rng(0).standard_normal(plan.source)
    source, part = plan.cut([slice(7, 31), slice(20, 70)])
    again = pickle.loads(pickle.dumps(part))
    assert [a.parents for a in again.axes] == [a.parents for a in part.axes]
    assert pg.averaging(again)(x[source]).tobytes() == pg.averaging(plan)(x)[7:31, 20:].tobytes()
    assert len(pickle.dumps(part)) < 1000


def test_a_part_of_an_axis_passed_as_a_window_gives_the_bits_of_the_whole():
    rows, cols = sliding_axis(60, 31, 1, 15, 60), sliding_axis(70, 31, 1, 15, 70)
    x = np.random.default_rng(1).standard_normal((60, 70))
    source, part = rows.cut(11, 29)
    assert pg.avg_pool(x[source], (part, cols)).tobytes() == pg.avg_pool(x, (rows, cols))[11:29].tobytes()


def test_the_facts_of_an_axis():
    assert parent_of(sliding_axis(9, 4, 2, 1, 4)) == (9, 4, 0, 0, 4, 2, 1, 1)
    assert parent_of(Axis(60, [3, 4], [9, 24])).fits == 0  # the first window lies inside a block of 20
    assert parent_of(sliding_axis(9, 2, 4, 0, 2)).fits_back == 0  # cells 2 and 3 have no window


@pytest.mark.parametrize(
    "region", [[slice(0, 1)], [slice(0, 4, 2)] * 2, [0, slice(0, 1)], [slice(0, 1)] * 3, []], ids=str
)
def test_a_region_that_is_none_is_refused(region):
    plan = pg.plan((8, 8), 2)
    with pytest.raises(ValueError, match=r"Plan: region: got .* wanted 2 slices without a step"):
        plan.cut(region)
    with pytest.raises(ValueError, match=r"Plan: cells: got .* wanted 2 slices without a step"):
        plan.cut_back(region)


def test_regions_count_as_slices_do():
    plan = pg.plan((3, 8), 2, axes=1)
    source, part = plan.cut([slice(None), slice(-2, None)])
    assert (source, part.source, part.dest) == ((slice(0, 3), slice(4, 8)), (3, 4), (3, 2))
    source, part = plan.cut([slice(2, 1), slice(3, 99)])
    assert (part.source, part.dest) == ((0, 2), (0, 1))
    _, _, part = plan.cut_back([slice(1, 2), slice(5, 5)])
    assert (part.source, part.dest) == ((1, 0), (1, 0))
