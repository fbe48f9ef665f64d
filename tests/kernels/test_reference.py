"""Kernels equal the reference, to the bit, on both of their paths."""

import pytest
from geometry import cases
from support import Case, none_wrong

from poolgrad._ops.table import OPS

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
