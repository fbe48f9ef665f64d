"""Sizes at the ends of their range: nothing at all, more than 31 bits, more than memory, more than 63 bits."""

import os
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
from support import FAST, PLAIN, SLOW, Case, arguments, difference, outputs

from poolgrad import _core, raw_ops
from poolgrad._ops.table import OPS, Kind

REFUSALS = (ValueError, TypeError, MemoryError)


def case_of(name: str, dtype: str, pad: str) -> Case:
    spatial = OPS[name].spatial
    return Case(name, dtype, x=(2, *(4,) * spatial, 3), k=(2,) * spatial, s=(1,) * spatial, pad=pad)


SIZED = [name for name, op in OPS.items() if op.param(Kind.PADDING)]


@pytest.mark.parametrize("pad", ["SAME", "VALID"])
@pytest.mark.parametrize("name", SIZED)
def test_no_cells_in_any_dimension_gives_what_the_reference_gives(name, pad):
    """No images, no channels, or nothing along an axis: an empty result or one of zeros, of the shape the formulas say."""
    for dtype in OPS[name].dtypes:
        case = case_of(name, dtype, pad)
        for d in range(len(case.x)):
            empty = replace(case, x=tuple(0 if i == d else n for i, n in enumerate(case.x)))
            if min(empty.dest) < 0:
                continue
            args = arguments(empty)
            want = SLOW[name](**args)
            for run in (FAST, PLAIN):
                text = difference(run[name](**args), want)
                assert not text, f"{text}\n    {empty!r}"
            shape = empty.source if OPS[name].order == 1 else empty.dest
            assert outputs(want)[0].shape == shape, empty


@pytest.mark.parametrize("name", [name for name in OPS if name not in SIZED])
def test_fractional_ops_refuse_an_axis_without_cells(name):
    args = arguments(Case(name, x=(2, 6, 6, 3), ratio=(1.5, 1.5)))
    source = next(p.name for p in OPS[name].params if p.kind in (Kind.SOURCE, Kind.SHAPE))
    for d in range(4):
        if OPS[name].param(Kind.SHAPE):
            empty = np.array([0 if i == d else n for i, n in enumerate(args[source])])
        else:
            empty = args[source].take([], d)
        with pytest.raises(ValueError, match=rf"{name}: .*{source}: got"):
            FAST[name](**{**args, source: empty})


def test_many_dimensions_of_zero_and_enormous_others():
    """The product is zero, yet no part of it may overflow."""
    x = np.zeros((0, 2**20, 2**20, 2**20), np.float32)
    sizes = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    assert raw_ops.MaxPool(input=x, **sizes).shape == (0, 2**19, 2**19, 2**20)


# ---- more than memory, more than 63 bits


@pytest.mark.parametrize("name", SIZED)
def test_an_array_that_repeats_one_cell_beyond_memory_is_refused_at_once(name):
    """A view of stride 0 costs nothing; the copy that the core would need does."""
    case = case_of(name, OPS[name].dtypes[0], "VALID")
    args = arguments(case)
    for p in OPS[name].params:
        if p.kind is Kind.SOURCE:
            one = args[p.name].reshape(-1)[:1].reshape((1,) * (len(case.x)))
            huge = np.broadcast_to(one, (2**20, *(2**12,) * (len(case.x) - 2), 8))
            with pytest.raises(REFUSALS, match=rf"^{name}: "):
                FAST[name](**{**args, p.name: huge})


SHAPED = [name for name, op in OPS.items() if op.param(Kind.SHAPE)]


@pytest.mark.parametrize("size", [2**15, 2**16, 2**20, 2**31 - 1])
@pytest.mark.parametrize("name", SHAPED)
def test_a_shape_whose_product_overflows_is_refused(name, size):
    case = case_of(name, "float32", "VALID") if name in SIZED else Case(name, x=(2, 6, 6, 3))
    args = arguments(case)
    vector = OPS[name].param(Kind.SHAPE)
    assert vector is not None
    shape = np.full(len(case.x), size, vector.dtype)
    with pytest.raises(REFUSALS, match=rf"^{name}: "):
        FAST[name](**{**args, vector.name: shape})


START, STOP = np.array([0]), np.array([1])
HUGE_PLANS: list[tuple[Any, ...]] = [
    ((2**40, 2**40, 1), (2**40, 2**40, 1), 2**40, 2**40, [(1, START, STOP, None)]),
    ((2**62, 4), (2**62, 1), 2**62, 1, [(4, START, STOP, None)]),
    ((2**63 - 1, 2), (2**63 - 1, 1), 2**63 - 1, 1, [(2, START, STOP, None)]),
]


@pytest.mark.parametrize("words", HUGE_PLANS, ids=lambda w: str(w[0]))
def test_a_plan_of_more_cells_than_64_bits_count_is_refused(words):
    with pytest.raises((ValueError, OverflowError)):
        _core.Plan(*words)


@pytest.mark.parametrize("outer", [2**40, 2**58, 2**60, 2**61, 2**62])
@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_a_plan_far_beyond_memory_does_no_harm(outer, dtype):
    def call(*out):
        plan = _core.Plan((outer, 1), (outer, 1), outer, 1, [(1, START, STOP, None)])
        _core.select(plan, 0, np.zeros(8, dtype), *out)

    with pytest.raises(REFUSALS):
        call()
    with pytest.raises(REFUSALS):
        call(np.zeros(8, dtype))


def test_positions_of_32_bits_are_refused_where_they_would_overflow():
    plan = _core.Plan((1, 1), (1, 1), 1, 1, [(1, START, STOP, None)])
    x, y, where = np.zeros(1, np.int8), np.zeros(1, np.int8), np.zeros(1, np.int32)
    _core.argmax(plan, 2**31, x, y, where)
    with pytest.raises(ValueError, match="int32"):
        _core.argmax(plan, 2**31 + 1, x, y, where)
    _core.argmax(plan, 2**31 + 1, x, y, np.zeros(1, np.int64))


# ---- more than 2^31 elements, on memory that is mostly not there

SIDE = 46400  # SIDE² is 2^31 and a little
HERE = (46397, 46391)  # a place beyond 2^31

slow = pytest.mark.skipif(
    "POOLGRAD_SLOW" not in os.environ, reason="takes some GiB and some seconds: set POOLGRAD_SLOW=1"
)


def large(dtype: Any) -> np.ndarray:
    """Return zeros that no page holds, except one cell beyond the 2^31st."""
    x = np.zeros((1, SIDE, SIDE, 1), dtype)
    x[0, *HERE, 0] = 7
    assert x.size > 2**31
    assert np.ravel_multi_index((0, *HERE, 0), x.shape) > 2**31
    return x


def coarse(k: int = 64) -> dict[str, Any]:
    return {"ksize": [1, k, k, 1], "strides": [1, k, k, 1], "padding": "VALID"}


def only(y: np.ndarray, place: tuple[int, ...], value: float) -> None:
    """Check that y is zero except for one cell."""
    assert y[place] == value
    y[place] = 0
    assert not y.any()


CELL = (0, HERE[0] // 64, HERE[1] // 64, 0)


def test_a_maximum_beyond_31_bits_is_found():
    only(raw_ops.MaxPool(input=large(np.int8), **coarse()), CELL, 7)


@slow
def test_its_position_is_right_and_does_not_fit_32_bits():
    x = large(np.int8)
    y, where = raw_ops.MaxPoolWithArgmax(input=x, Targmax="int64", **coarse())
    only(y, CELL, 7)
    assert where[CELL] == np.ravel_multi_index((0, *HERE, 0), x.shape)
    assert where.flat[0] == 0
    with pytest.raises(ValueError, match=r"Targmax: got int32, wanted int64"):
        raw_ops.MaxPoolWithArgmax(input=x, Targmax="int32", **coarse())


@slow
def test_a_mean_beyond_31_bits_is_right():
    only(raw_ops.AvgPool(value=large(np.float16), **coarse(2)), (0, HERE[0] // 2, HERE[1] // 2, 0), 1.75)


@slow
def test_a_gradient_goes_to_a_cell_beyond_31_bits():
    x = large(np.int8)
    y = raw_ops.MaxPool(input=x, **coarse())
    g = np.zeros_like(y)
    g[CELL] = 3
    dx = raw_ops.MaxPoolGrad(orig_input=x, orig_output=y, grad=g, **coarse())
    assert dx[0, *HERE, 0] == 3
    assert np.count_nonzero(dx) == 1


@slow
def test_positions_beyond_31_bits_are_followed_both_ways():
    x = large(np.int8)
    at = int(np.ravel_multi_index((0, *HERE, 0), x.shape))
    where = np.full((1, 725, 725, 1), at)
    g = np.zeros(where.shape, np.int8)
    g[0, 3, 4, 0] = 5
    dx = raw_ops.MaxPoolGradWithArgmax(input=x, grad=g, argmax=where, **coarse())
    assert dx[0, *HERE, 0] == 5
    assert np.count_nonzero(dx) == 1
    v = raw_ops.MaxPoolGradGradWithArgmax(input=x, grad=x, argmax=where, **coarse())
    assert (v == 7).all()
    for bad in (x.size, -1, 2**62):
        where[0, 9, 9, 0] = bad
        with pytest.raises(ValueError, match=rf"argmax: got {bad} at \[0, 9, 9, 0\]"):
            raw_ops.MaxPoolGradWithArgmax(input=x, grad=g, argmax=where, **coarse())


@slow
def test_a_row_of_more_than_31_bits_is_refused():
    """One axis that long needs tables of 80 GB: refused, not tried."""
    x = np.broadcast_to(np.int8(1), (1, 1, 2**31 + 64, 1))
    with pytest.raises(MemoryError, match=r"^MaxPool: "):
        raw_ops.MaxPool(input=x, ksize=[1, 1, 64, 1], strides=[1, 1, 64, 1], padding="VALID")


@slow
def test_a_file_mapped_into_memory_is_pooled(tmp_path):
    """A sparse file: 2 GiB to look at, 4 KiB on the disk. It is only read."""
    path = tmp_path / "sparse"
    with open(path, "wb") as file:
        file.truncate(SIDE * SIDE)
        file.seek(HERE[0] * SIDE + HERE[1])
        file.write(b"\x07")
    x = np.memmap(path, np.int8, "r", shape=(1, SIDE, SIDE, 1))
    only(raw_ops.MaxPool(input=x, **coarse()), CELL, 7)
    assert prod(x.shape) == path.stat().st_size


@slow
def test_images_beyond_31_bits_in_all_are_pooled_one_by_one():
    x = np.broadcast_to(np.arange(9, dtype=np.int8).reshape(1, 3, 3, 1), (2**28, 3, 3, 1))
    y = raw_ops.MaxPool(input=x, ksize=[1, 3, 3, 1], strides=[1, 1, 1, 1], padding="VALID")
    assert y.shape == (2**28, 1, 1, 1)
    assert (y == 8).all()
