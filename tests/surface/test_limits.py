"""Limits and checks that no test covered, as deliberate faults (`make mutate`) showed: each has its claim here."""

import contextlib

import numpy as np
import pytest
from support import python

from poolgrad import raw_ops, windows
from poolgrad._common import arrays
from poolgrad._common.errors import ArgumentErrors
from poolgrad._ops.bind import bind
from poolgrad._ops.table import OPS

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


@pytest.mark.parametrize(("shape", "fits"), [((2**16, 2**15, 1, 1), True), ((3, 715827883, 1, 1), False)])
def test_int32_holds_positions_among_2_to_the_31_elements_and_no_more(shape, fits):
    x = np.broadcast_to(np.int8(0), shape)
    attrs = {"ksize": [1, 2**15, 1, 1], "strides": [1, 2**15, 1, 1], "padding": "VALID", "Targmax": "int32"}
    problems = ArgumentErrors("MaxPoolWithArgmax")
    with contextlib.nullcontext() if fits else pytest.raises(ValueError, match="Targmax: got int32, wanted int64"):
        assert bind(OPS["MaxPoolWithArgmax"], {"input": x}, attrs, problems).index == "int32"


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


@pytest.mark.parametrize("dtype", ["uint32", "uint64", "int16", "float32"])
def test_positions_of_another_type_are_refused_by_name(dtype):
    x, grad = np.zeros((1, 2, 2, 1), np.float32), np.ones((1, 1, 1, 1), np.float32)
    sizes = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    with pytest.raises(TypeError, match=f"MaxPoolGradWithArgmax: argmax: got dtype {dtype}, wanted int32 or int64"):
        raw_ops.MaxPoolGradWithArgmax(input=x, grad=grad, argmax=np.zeros(grad.shape, dtype), **sizes)


SPELLED = {"grad": np.ones((1, 2, 2, 1), np.float32), "ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}


@pytest.mark.parametrize("dtype", ["int64", "int16", "uint32"])
def test_a_shape_of_another_integer_type_is_refused_by_name(dtype):
    with pytest.raises(TypeError, match=f"AvgPoolGrad: orig_input_shape: got dtype {dtype}, wanted int32"):
        raw_ops.AvgPoolGrad(orig_input_shape=np.array([1, 4, 4, 1], dtype), **SPELLED)


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [([1, -1, 4, 1], "no negative size"), ([2**30, 2**30, 8, 1], "a number of elements that fits 64 bits")],
)
def test_a_shape_that_no_array_has_is_refused_by_name(shape, wanted):
    with pytest.raises(ValueError, match=rf"AvgPoolGrad: orig_input_shape: got \[.*\], wanted {wanted}"):
        raw_ops.AvgPoolGrad(orig_input_shape=np.array(shape, np.int32), **SPELLED)


def test_a_result_that_no_memory_holds_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr(arrays, "_memory", lambda: 2**28)
    n = 2**13 + 8
    grad = np.ones((1, 1, 1, 1), np.float32)
    sizes = {"ksize": [1, n, n, 1], "strides": [1, n, n, 1], "padding": "VALID"}
    with pytest.raises(MemoryError, match="AvgPoolGrad: orig_input_shape: got a call whose result has shape"):
        raw_ops.AvgPoolGrad(orig_input_shape=[1, n, n, 1], grad=grad, **sizes)


def test_maxima_over_channels_start_from_minus_infinity():
    x = np.full((1, 2, 2, 4), -np.inf, np.float32)
    y = raw_ops.MaxPool(input=x, ksize=[1, 1, 1, 2], strides=[1, 1, 1, 2], padding="SAME")
    assert (y == -np.inf).all()


def test_a_sequence_of_one_border_has_no_window():
    """Also where the dimension has one cell and the gradient none, so that everything else fits."""
    with pytest.raises(ValueError, match=r"row_pooling_sequence: got shape \[1\], wanted a vector of at least 2"):
        raw_ops.FractionalAvgPoolGrad(
            orig_input_tensor_shape=[1, 1, 1, 1],
            out_backprop=np.ones((1, 0, 1, 1), np.float32),
            row_pooling_sequence=[0],
            col_pooling_sequence=[0, 1],
        )


def test_bytes_are_no_list_of_sizes():
    with pytest.raises(TypeError, match=r"MaxPool: ksize: got .*, wanted a list of 4 integers"):
        raw_ops.MaxPool(input=np.zeros((1, 2, 2, 1), np.float32), **{**SIZES, "ksize": bytes([1, 2, 2, 1])})


X = np.arange(60, dtype=np.float32).reshape(1, 5, 6, 2)
FROZEN = np.frombuffer(X.tobytes(), np.float32).reshape(X.shape)
KEPT_CALLS = {
    "lists": lambda: raw_ops.MaxPool(input=X, ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="SAME"),
    "tuples": lambda: raw_ops.MaxPool(input=X, ksize=(1, 2, 3, 1), strides=(1, 1, 1, 1), padding="SAME"),
    "a shape of an array": lambda: raw_ops.AvgPoolGrad(orig_input_shape=X.shape, grad=X, **SIZES),
    "a shape as a list": lambda: raw_ops.AvgPoolGrad(orig_input_shape=[1, 5, 6, 2], grad=X, **SIZES),
    "a shape as a vector": lambda: raw_ops.AvgPoolGrad(orig_input_shape=np.array(X.shape, np.int32), grad=X, **SIZES),
    "sizes as vectors": lambda: raw_ops.MaxPoolV2(
        input=X, ksize=np.array([1, 2, 2, 1], np.int32), strides=[1, 1, 1, 1], padding="VALID"
    ),
    "sequences as lists": lambda: raw_ops.FractionalAvgPoolGrad(
        orig_input_tensor_shape=X.shape,
        out_backprop=X[:, :1, :6].reshape(1, 2, 3, 2),
        row_pooling_sequence=[0, 2, 5],
        col_pooling_sequence=(0, 2, 4, 6),
    ),
    "arrays that are not to be written": lambda: raw_ops.MaxPoolGrad(
        orig_input=FROZEN, orig_output=FROZEN, grad=FROZEN, ksize=[1] * 4, strides=[1] * 4, padding="VALID"
    ),
    "a shape that is not to be written": lambda: raw_ops.AvgPoolGrad(
        orig_input_shape=np.broadcast_to(np.int32([1, 5, 6, 2]), 4), grad=X, **SIZES
    ),
    "two results": lambda: raw_ops.MaxPoolWithArgmax(input=X, **SIZES),
}


@pytest.mark.parametrize("name", KEPT_CALLS)
def test_a_call_is_looked_at_only_once(name, monkeypatch):
    call = KEPT_CALLS[name]
    first = call()
    monkeypatch.setattr(raw_ops, "bind", lambda *args: pytest.fail("looked at again"))
    again = call()
    assert type(first) is type(again)
    np.testing.assert_equal(np.asarray(again), np.asarray(first))


@pytest.mark.parametrize("shape", [[True] * 4, (1.0, 1, 1, 1), [[1, 1, 1, 1]], "1111", b"\1\1\1\1", {1: 1}])
def test_a_kept_shape_does_not_serve_what_only_looks_like_it(shape):
    g = np.ones((1, 1, 1, 1), np.float32)
    raw_ops.AvgPoolGrad(orig_input_shape=[1, 1, 1, 1], grad=g, **SIZES)
    with pytest.raises((TypeError, ValueError), match="AvgPoolGrad: orig_input_shape: got"):
        raw_ops.AvgPoolGrad(orig_input_shape=shape, grad=g, **SIZES)


@pytest.mark.parametrize("make", [list, tuple, lambda shape: np.array(shape, np.int32)])
def test_a_kept_shape_serves_no_other_of_as_many_numbers(make):
    for shape in [(1, 5, 6, 2), (1, 6, 5, 2), (1, 5, 6, 2)]:
        sizes = {**SIZES, "strides": [1, 2, 2, 1]}
        got = raw_ops.AvgPoolGrad(orig_input_shape=make(shape), grad=np.ones((1, 3, 3, 2), np.float32), **sizes)
        assert got.shape == shape
