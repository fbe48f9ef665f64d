"""The cache of windows: it returns the same object for the same words, and its memory does not grow with the number of shapes."""

import time

import numpy as np
import pytest
from support import rss

import poolgrad
from poolgrad import raw_ops, windows
from poolgrad._windows import plan_cache
from poolgrad._windows.plan_cache import entries
from poolgrad._windows.regular import LONG as FORMULA
from poolgrad._windows.sliding import slide
from poolgrad.windows import planned, sliding_axis

LONG = plan_cache.SHORT


@pytest.fixture(autouse=True)
def empty():
    plan_cache._long.clear()
    yield
    plan_cache._long.clear()


@pytest.mark.parametrize("n", [5, LONG])
def test_the_same_words_give_the_same_axis_and_plan(n):
    axis = sliding_axis(n, 3, 1, 1, n)
    assert sliding_axis(n, 3, 1, 1, n) is axis
    assert sliding_axis(n, k=3, s=1, pad=1, m=n) is sliding_axis(n, k=3, s=1, pad=1, m=n)
    assert sliding_axis(n, 5, 1, 1, n) is not axis
    plan = planned((2, n), (1, axis))
    assert planned((2, n), (1, axis)) is plan
    assert planned((3, n), (1, axis)) is not plan


def test_only_long_ones_are_in_the_store():
    sliding_axis(LONG // 2, 2, 1, 0, LONG // 2)
    assert not plan_cache._long
    sliding_axis(LONG // 2 + 1, 2, 1, 0, LONG // 2)
    assert len(plan_cache._long) == 1


def test_the_oldest_leave_the_store_and_the_newest_stays(monkeypatch):
    monkeypatch.setattr(plan_cache, "STORE", 4 * LONG)
    first, _, third = [sliding_axis(LONG + i, 2, 1, 0, LONG) for i in range(3)]
    assert sliding_axis(LONG + 2, 2, 1, 0, LONG) is third
    assert sliding_axis(LONG, 2, 1, 0, LONG) is not first, "two fit"
    huge = sliding_axis(9 * LONG, 2, 1, 0, LONG)
    assert list(plan_cache._long.values()) == [huge]
    assert sliding_axis(9 * LONG, 2, 1, 0, LONG) is huge


def test_errors_are_said_each_time():
    for _ in range(2):
        with pytest.raises(ValueError, match="window 0 has no cell"):
            slide(1, 1, 1, 1, (2, 2), False)


@pytest.mark.parametrize("how", ["op", "pool"])
def test_signals_of_any_length_do_not_add_up(how, monkeypatch):
    monkeypatch.setattr(plan_cache, "STORE", 1 << 19)

    def pool(n: int) -> None:
        x = np.ones((1, 1, n, 1), np.float32)
        if how == "op":
            raw_ops.MaxPool(input=x, ksize=[1, 1, 3, 1], strides=[1, 1, 1, 1], padding="SAME")
        else:
            poolgrad.max_pool(x, 3, 1, axes=2, padding="same")

    for i in range(4):
        pool((1 << 17) + i)
    before = rss()
    for i in range(30):
        pool((1 << 17) + 100 + i)
    assert rss() - before < 120 << 20, "30 plans of 10 MB and more"


def test_a_native_plan_is_made_once_for_a_long_call(monkeypatch):
    x = np.ones((1, 1, LONG, 1), np.float32)
    call = {"ksize": [1, 1, 3, 1], "strides": [1, 1, 1, 1], "padding": "SAME"}
    want = raw_ops.MaxPool(input=x, **call)
    monkeypatch.setattr("poolgrad._windows.plan.Plan", lambda *_: pytest.fail("made again"))
    np.testing.assert_array_equal(raw_ops.MaxPool(input=x, **call), want)


def test_an_axis_has_arrays_that_its_maker_cannot_change():
    start, stop = np.array([0, 1]), np.array([2, 3])
    writable = start[:]
    start.flags.writeable = False
    view = stop[:]
    view.flags.writeable = False
    axis = windows.Axis(3, start, view)
    stop[0] = writable[0] = 1
    assert axis.pairs() == [(0, 2), (1, 3)]


def test_one_call_of_more_than_the_store_holds_finds_all_it_needs_again(monkeypatch):
    monkeypatch.setattr(plan_cache, "STORE", LONG)
    n = 4 * LONG

    def made() -> windows.Plan:
        return planned((n, n + 1), (0, sliding_axis(n, 3, 1, 1, n)), (1, sliding_axis(n + 1, 3, 1, 1, n)))

    plan = made()
    assert sliding_axis(n, 3, 1, 1, n) is not plan.axes[0], "axes come one after the other, so the first has left"
    long = planned((2, n), (1, sliding_axis(n, 3, 1, 1, n)))
    assert planned((2, n), (1, sliding_axis(n, 3, 1, 1, n))) is long


def test_thousands_of_long_ones_leave_at_once_within_a_moment(monkeypatch):
    monkeypatch.setattr(plan_cache, "STORE", 1 << 23)
    for i in range(500):
        sliding_axis(LONG + i, 2, LONG, 0, 1)
    assert len(plan_cache._long) == 500
    begun = time.perf_counter()
    sliding_axis(1 << 24, 2, 1 << 24, 0, 1)
    assert len(plan_cache._long) == 1
    assert time.perf_counter() - begun < 1


def formulas(first: int, many: int) -> list[windows.Axis]:
    found = [sliding_axis(n, 3, 1, 1, n) for n in range(first, first + many)]
    assert all(axis.formula is not None for axis in found)
    return found


def test_a_formula_leaves_room_for_others_until_its_tables_are_made():
    def large() -> windows.Axis:
        return sliding_axis(6 << 20, 2, 1, 0, LONG)

    kept, found = large(), formulas(FORMULA, 12)
    assert large() is kept, "tables that do not exist take no room"
    assert len(found[0].start) == FORMULA
    assert large() is kept, "there is room for one"
    for axis in found:
        assert axis.stop is not None
    assert large() is not kept
    del kept
    known = {axis for axis in plan_cache._long.values() if isinstance(axis, windows.Axis)}
    assert sum(axis.held for axis in known) <= plan_cache.STORE, "tables of known axes are counted when they are made"


def test_the_store_counts_the_tables_of_parts(monkeypatch):
    n = 4 * FORMULA
    poolgrad.sum_pool(np.ones(n, np.float32), 3, 1)
    (plan,) = [made.plan for made in plan_cache._long.values() if hasattr(made, "plan")]
    assert plan.axes[0].held == 0
    assert 0 < plan_cache._count(plan.tables_by_now) < entries(plan)
    shared = [
        made for made in plan_cache._long.values() if isinstance(made, windows.Axis) and "_lender" in made.__dict__
    ]
    assert shared
    assert all(plan_cache._count(part.tables_by_now) == part.held > 0 for part in shared)
    monkeypatch.setattr(plan_cache, "STORE", 2 * LONG)
    newest = sliding_axis(LONG + 1, 2, 1, 0, LONG)
    assert [made for made in plan_cache._long.values() if plan_cache._count(plan_cache._axes(made))] == [newest]


def test_plans_that_hang_on_a_plan_are_counted():
    x = np.ones(4 * FORMULA, np.float32)
    poolgrad.max_pool(x, 3, 1, padding="same")
    (plan,) = [made.plan for made in plan_cache._long.values() if hasattr(made, "plan")]
    assert plan_cache._count(plan.tables_by_now) > 0 == plan.axes[0].held
