"""Kernels equal the reference, to the bit, on both of their paths."""

import numpy as np
import pytest
from geometry import cases
from support import Case, none_wrong, plain_verbs

from poolgrad import reference
from poolgrad._kernels import native
from poolgrad._ops.semantics import Mean, Start
from poolgrad._ops.table import OPS
from poolgrad.windows import Axis, Plan, sliding_axis

PAIRS = [(name, dtype) for name, op in OPS.items() for dtype in op.dtypes]


@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_kernels_equal_the_reference_on_ties(name, dtype):
    none_wrong(cases(name, dtype, "ties"))


@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_kernels_equal_the_reference_on_any_values(name, dtype):
    none_wrong(cases(name, dtype, "wild"))


TAPS = ("MaxPoolGrad", "MaxPoolWithArgmax", "MaxPoolGradGrad", "MaxPool")
NARROW = ("int8", "uint8", "int16", "uint16", "float16", "bfloat16")


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", TAPS)
def test_windows_of_more_than_256_cells_do_not_overflow_a_tap(name, dtype):
    shapes = [((1, 17, 18, 3), (17, 16), (1, 1)), ((1, 20, 40, 1), (16, 33), (4, 7))]
    none_wrong([Case(name, dtype, x=x, k=k, s=s, data=data) for x, k, s in shapes for data in ("ties", "wild")])


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16"])
@pytest.mark.parametrize("name", TAPS)
def test_windows_of_more_than_65536_cells_do_not_overflow_a_tap(name, dtype):
    none_wrong([Case(name, dtype, x=(1, 258, 257, 1), k=(258, 256), s=(1, 1), data="wild")])


@pytest.mark.parametrize("at", [255, 256, 257, 65535, 65536, 65537, 66047])
def test_a_tap_beyond_a_byte_or_two_is_found_where_it_is(at):
    import numpy as np

    from poolgrad import raw_ops

    x = np.zeros((1, 258, 256, 1), np.int8)
    x.reshape(-1)[at] = 5
    sizes = {"ksize": [1, 258, 256, 1], "strides": [1, 1, 1, 1], "padding": "VALID"}
    y, where = raw_ops.MaxPoolWithArgmax(input=x, **sizes)
    dx = raw_ops.MaxPoolGrad(orig_input=x, orig_output=y, grad=np.full_like(y, 3), **sizes)
    assert where.ravel().tolist() == [at]
    assert np.flatnonzero(dx).tolist() == [at]


@pytest.mark.parametrize("mean", [mean for mean in Mean if mean is not Mean.WIDE])
@pytest.mark.parametrize("window", [(7, 9), (8, 8), (5, 13)])
def test_sums_of_up_to_64_cells_and_of_more_are_added_up_as_the_reference_does(window, mean):
    plan = Plan(
        (2, 9, 14, 5), {a: sliding_axis(n, k, 1, 0, n - k + 1) for a, n, k in zip((1, 2), (9, 14), window, strict=True)}
    )
    x = np.random.default_rng(0).standard_normal(plan.source).astype(np.float32)
    want = reference.fold(plan, mean, x).tobytes()
    assert native.fold(plan, mean, x).tobytes() == want
    assert plain_verbs().fold(plan, mean, x).tobytes() == want


@pytest.mark.parametrize("which", [0, 50, -1])
def test_a_window_that_ends_before_its_neighbours_do_reads_no_further(which):
    start = np.arange(0, 196, 2)
    stop = start + 3
    stop[which] -= 1
    plan = Plan((2, 6, 200), {1: sliding_axis(6, 2, 2, 0, 3), 2: Axis(200, start, stop)})
    x = np.random.default_rng(0).permutation(2400).reshape(plan.source).astype(np.float32)
    assert (native.select(plan, Start.LOWEST, x) == reference.select(plan, Start.LOWEST, x)).all()
    assert (native.fold(plan, Mean.EXACT, x) == reference.fold(plan, Mean.EXACT, x)).all()
