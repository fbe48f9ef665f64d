"""Repeated calls of raw_ops reuse the bound call, and never that of another call."""

import numpy as np
import pytest

from poolgrad import raw_ops

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
