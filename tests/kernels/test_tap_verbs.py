"""Taps and the folds that round once: kernels equal the reference, to the bit, on both paths and any number of threads."""

import ml_dtypes
import numpy as np
import pytest

from poolgrad import _core, reference
from poolgrad._kernels import native
from poolgrad._ops.semantics import Mean, Share
from poolgrad.windows import Axis, Plan, edges, sliding_axis

DTYPES = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)] + ["float16", "float32", "float64"]
DTYPES.append("bfloat16")


def kind(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


PLANS = {
    "channels last": Plan((2, 7, 9, 33), {1: sliding_axis(7, 3, 2, 1, 4), 2: sliding_axis(9, 3, 2, 1, 5)}),
    "channels first, images side by side": Plan(
        (40, 9, 11), {1: sliding_axis(9, 3, 2, 1, 5), 2: sliding_axis(11, 2, 2, 0, 5)}
    ),
    "channels first, few": Plan((2, 9, 70), {1: sliding_axis(9, 3, 1, 1, 9), 2: sliding_axis(70, 3, 1, 1, 70)}),
    "windows apart": Plan((3, 10, 5), {1: sliding_axis(10, 2, 3, 0, 3)}),
    "more than 256 cells": Plan((1, 40, 30, 2), {1: sliding_axis(40, 20, 3, 2, 8), 2: sliding_axis(30, 17, 5, 0, 3)}),
    "just 256 cells": Plan((1, 20, 20, 3), {1: sliding_axis(20, 16, 2, 0, 3), 2: sliding_axis(20, 16, 2, 0, 3)}),
    "three axes": Plan(
        (1, 5, 6, 7, 4),
        {1: sliding_axis(5, 2, 2, 0, 2), 2: sliding_axis(6, 3, 1, 1, 6), 3: sliding_axis(7, 2, 1, 0, 6)},
    ),
    "irregular": Plan((2, 12, 3), {1: edges(12, [0, 1, 4, 5, 9, 12], overlapping=True)}),
    "some empty": Plan((2, 6, 5), {1: Axis(6, [0, 2, 2, 4], [2, 2, 5, 6])}),
    "channels last, many cells": Plan(
        (2, 12, 11, 20), {1: sliding_axis(12, 7, 1, 3, 12), 2: sliding_axis(11, 6, 2, 2, 5)}
    ),
    "small planes, many cells": Plan((37, 7, 6), {1: sliding_axis(7, 5, 1, 2, 7), 2: sliding_axis(6, 5, 1, 2, 6)}),
    "small boxes": Plan(
        (33, 4, 6, 7), {1: sliding_axis(4, 3, 1, 1, 4), 2: sliding_axis(6, 2, 2, 0, 3), 3: sliding_axis(7, 3, 2, 1, 4)}
    ),
    "four axes": Plan((5, 3, 4, 3, 5), {k + 1: sliding_axis(n, 2, 1, 0, n - 1) for k, n in enumerate((3, 4, 3, 5))}),
    "small planes, wide taps": Plan((17, 18, 18), {1: sliding_axis(18, 17, 2, 2, 3), 2: sliding_axis(18, 17, 2, 4, 4)}),
    "one line": Plan((130,), {0: sliding_axis(130, 5, 3, 2, 43)}),
}


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, ties: bool) -> np.ndarray:
    if ties or dtype.kind in "iu":
        return rng.integers(0, 5, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


@pytest.fixture(params=[1, 2, 7], ids=lambda n: f"{n} threads")
def threads(request):
    before = _core.get_num_threads()
    _core.set_num_threads(request.param)
    yield
    _core.set_num_threads(before)


def same(got: np.ndarray, want: np.ndarray) -> bool:
    return got.dtype == want.dtype and got.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
@pytest.mark.usefixtures("threads")
def test_taps_equal_the_reference(plan, dtype):
    compare(plan, dtype)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_taps_of_a_plane_too_large_for_one_table_equal_the_reference(dtype):
    compare(Plan((1, 91, 91), {1: sliding_axis(91, 3, 1, 1, 91), 2: sliding_axis(91, 2, 1, 0, 91)}), dtype)


def compare(plan: Plan, dtype: str) -> None:
    rng = np.random.default_rng(1)
    for ties in (True, False):
        x, g = (values(rng, shape, kind(dtype), ties) for shape in (plan.source, plan.dest))
        if x.dtype.kind not in "iu" and not ties:
            x.reshape(-1)[::7] = np.nan
        y, taps = native.choose(plan, x)
        wanted = reference.choose(plan, x)
        assert same(taps, wanted[1])
        assert np.array_equal(y.astype(float), wanted[0].astype(float), equal_nan=True)
        assert same(native.pick(plan, g_like(g, plan), taps), reference.pick(plan, g_like(g, plan), taps))
        assert same(native.place(plan, g, taps), reference.place(plan, g, taps))


def g_like(g: np.ndarray, plan: Plan) -> np.ndarray:
    """Return cells of the source with the values of g, over and over."""
    return np.resize(g, plan.source).astype(g.dtype)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32"])
def test_sums_that_round_once_equal_the_reference(plan, dtype):
    rng = np.random.default_rng(2)
    x, g = (values(rng, shape, kind(dtype), False) for shape in (plan.source, plan.dest))
    whole = x.dtype.kind in "iu"
    assert same(native.fold(plan, Mean.TOTAL, x), reference.fold(plan, Mean.TOTAL, x)) or adds_in_another_order(
        plan, dtype
    )
    if whole or any((axis.count == 0).any() for axis in plan.axes):
        return
    assert same(native.fold(plan, Mean.ONCE, x), reference.fold(plan, Mean.ONCE, x)) or adds_in_another_order(
        plan, dtype
    )
    assert same(
        native.spread(plan, Share.WHOLE, False, g), reference.spread(plan, Share.WHOLE, False, g)
    ) or adds_in_another_order(plan, dtype)


def adds_in_another_order(plan: Plan, dtype: str) -> bool:
    """Return True if sums of more than 64 float64 terms may be added in another order: LONG_SUMS in the table."""
    return dtype == "float64" and np.prod([axis.count.max() for axis in plan.axes]) > 64


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_a_tap_outside_its_window_is_refused_where_it_is(plan):
    rng = np.random.default_rng(3)
    x, g = rng.standard_normal(plan.source), rng.standard_normal(plan.dest)
    _, taps = native.choose(plan, x)
    sizes = np.ones((1,) * len(plan.dest), np.int64)
    for d, axis in enumerate(plan.by_dimension):
        if axis is not None:
            sizes = sizes * axis.count.reshape([-1 if k == d else 1 for k in range(len(plan.dest))])
    cells = np.broadcast_to(sizes, plan.dest).reshape(-1)
    for at in rng.integers(0, taps.size, 5):
        wrong = taps.copy()
        if not 0 < cells[at] <= np.iinfo(taps.dtype).max:
            continue
        wrong.reshape(-1)[at] = cells[at]
        for verb, array in ((native.pick, x), (native.place, g)):
            with pytest.raises(native.Astray) as error:
                verb(plan, array, wrong)
            assert error.value.at == at


def test_the_border_refuses_taps_of_another_type_or_size():
    plan = PLANS["channels last"]
    x = np.zeros(plan.source, np.float32)
    made = native.native(plan)
    for taps in (np.zeros(plan.dest, np.uint32), np.zeros(plan.dest, np.int8), np.zeros(3, np.uint8)):
        with pytest.raises((TypeError, ValueError), match="taps"):
            _core.pick(made, x, taps, None)
    with pytest.raises(ValueError, match="shares memory"):
        _core.choose(made, x, np.zeros(plan.dest, np.float32), x.reshape(-1).view(np.uint8)[: 2 * 4 * 5 * 33])
