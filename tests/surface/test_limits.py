"""Limits and checks that faults on purpose (`make mutate`) showed to be nobody's: each has its claim here."""

import numpy as np
import pytest
from support import python

from poolgrad import arrays, raw_ops, windows
from poolgrad.attributes import Attributes
from poolgrad.errors import Problems

SIZES = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "SAME"}


def test_at_most_1024_calls_are_kept():
    kept = raw_ops.AvgPool.__globals__["_runs"]
    for n in range(1100):
        raw_ops.AvgPool(value=np.zeros((1, 1, 2 + n, 1), np.float32), **SIZES)
    assert len(kept) == 1024


def test_a_kept_call_does_not_serve_a_dtype_that_the_op_does_not_take():
    x = np.ones((1, 3, 5, 2), np.float32)
    for _ in range(2):
        raw_ops.AvgPool(value=x, **SIZES)
        with pytest.raises(TypeError, match="AvgPool: value: got dtype int8"):
            raw_ops.AvgPool(value=x.astype(np.int8), **SIZES)


@pytest.mark.parametrize("turn", [lambda a: a.T, lambda a: a[::-1], lambda a: a.astype(">f8")])
def test_large_copies_are_whole(turn):
    given = turn(np.arange(2**22, dtype=np.float64).reshape(2**10, 2**12))
    copy = arrays._copy(given)
    assert copy.nbytes > arrays._STEP
    assert copy.flags.c_contiguous
    assert copy.dtype.isnative
    assert (copy == given).all()


KEPT = """
import numpy as np, poolgrad
from support import rss
from poolgrad import raw_ops
poolgrad.set_kept_memory(8)
x = np.ones((1, 1024, 1024, 1), np.float32)
call = lambda: raw_ops.MaxPool(input=x, ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="SAME")
before = [call()] and rss()
many = [call() for _ in range(32)]
del many
print((rss() - before) >> 20)
"""


def test_no_more_memory_is_kept_than_was_allowed():
    done = python("-c", KEPT)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 16


@pytest.mark.parametrize(("elements", "fits"), [(2**31, True), (2**31 + 1, False)])
def test_int32_holds_positions_among_so_many_elements(elements, fits):
    problems = Problems("MaxPoolWithArgmax")
    assert Attributes({"Targmax": "int32"}, problems).index_type("Targmax", elements) == "int32"
    assert bool(problems) is not fits


def test_a_window_cut_down_to_the_cell_itself_still_was_cut():
    assert not windows.clip(1, 3, 1, 1, 1).identity
    assert windows.clip(1, 1, 1, 0, 1).identity
    x = np.full((1, 1, 1, 1, 2), -np.inf, np.float32)
    sizes = {"ksize": [1, 1, 3, 1, 1], "strides": [1, 1, 1, 1, 1], "padding": "SAME"}
    lowest = float(np.finfo(np.float32).min)
    assert raw_ops.MaxPool3D(input=x, **sizes).ravel().tolist() == [lowest, lowest]


def test_output_lengths_of_a_fractional_pool_are_divided_in_float32():
    """11 over float32(1.1) is 10 in float32 and a little less in float64."""
    x = np.zeros((1, 11, 11, 1), np.float32)
    assert raw_ops.FractionalMaxPool(value=x, pooling_ratio=[1, 1.1, 1.1, 1]).output.shape == (1, 10, 10, 1)
