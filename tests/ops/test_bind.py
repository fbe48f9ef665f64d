"""Binding refuses arguments that do not fit an op, by name, and takes those at the edge that do."""

import numpy as np
import pytest
from support import Case, arguments

from poolgrad import raw_ops
from poolgrad._common.errors import ArgumentErrors
from poolgrad._ops.bind import bind
from poolgrad._ops.table import OPS

SIZES = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "SAME"}


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


DEEP = {
    "a window that does not divide": ({"ksize": [1, 1, 1, 2], "strides": [1, 1, 1, 2]}, ValueError, "ksize"),
    "explicit padding": (
        {"ksize": [1, 1, 1, 3], "strides": [1, 1, 1, 3], "padding": "EXPLICIT", "explicit_paddings": [0] * 8},
        NotImplementedError,
        "padding",
    ),
    "spatial strides": ({"ksize": [1, 1, 1, 3], "strides": [1, 2, 1, 3]}, ValueError, "strides"),
    "another stride": ({"ksize": [1, 1, 1, 3], "strides": [1, 1, 1, 1]}, NotImplementedError, "strides"),
    "space as well": ({"ksize": [1, 2, 1, 3], "strides": [1, 1, 1, 3]}, NotImplementedError, "ksize"),
}


@pytest.mark.parametrize("what", DEEP)
def test_channels_are_pooled_alone_or_not_at_all(what):
    wrong, kind, blamed = DEEP[what]
    with pytest.raises(kind, match=f"MaxPool: {blamed}: got"):
        raw_ops.MaxPool(**{**arguments(Case("MaxPool")), **wrong})


def test_a_seed_without_determinism_is_refused():
    for name in ("seed", "seed2"):
        with pytest.raises(ValueError, match=f"{name}: got 3"):
            raw_ops.FractionalMaxPool(value=np.zeros((1, 4, 4, 1)), pooling_ratio=[1, 1.5, 1.5, 1], **{name: 3})


@pytest.mark.parametrize("name", ["MaxPoolGrad", "MaxPoolWithArgmax", "AvgPool"])
def test_positions_and_zeros_of_nothing(name):
    case = Case(name, x=(0, 4, 4, 2), k=(2, 2), s=(2, 2))
    result = getattr(raw_ops, name)(**arguments(case))
    first = result[0] if isinstance(result, tuple) else result
    assert first.shape == ((0, 4, 4, 2) if OPS[name].order else (0, 2, 2, 2))


@pytest.mark.parametrize("targmax", ["int32", "int64"])
def test_positions_of_nothing_have_the_type_that_was_asked_for(targmax):
    result = raw_ops.MaxPoolWithArgmax(**arguments(Case("MaxPoolWithArgmax", x=(0, 4, 4, 2), index=targmax)))
    assert result.argmax.dtype == np.dtype(targmax)


def test_int32_positions_in_a_huge_input_are_refused():
    x = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), (1, 2**16, 2**16, 1), (0, 0, 0, 0))
    with pytest.raises(ValueError, match="Targmax: got int32, wanted int64"):
        raw_ops.MaxPoolWithArgmax(input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME", Targmax="int32")


@pytest.mark.parametrize(("columns", "fits"), [(2**15, True), (2**15 + 1, False)])
def test_int32_holds_the_positions_of_at_most_2_to_the_31_elements(columns, fits):
    x = np.broadcast_to(np.zeros((), np.float32), (1, 2**16, columns, 1))
    problems, sizes = ArgumentErrors("MaxPoolWithArgmax"), {"ksize": [1, 1, 1, 1], "strides": [1, 1024, 1024, 1]}
    words = {**sizes, "padding": "VALID", "Targmax": "int32", "include_batch_in_index": False}
    if fits:
        assert bind(OPS["MaxPoolWithArgmax"], {"input": x}, words, problems).index_type == "int32"
    else:
        with pytest.raises(ValueError, match="MaxPoolWithArgmax: Targmax: got int32, wanted int64"):
            bind(OPS["MaxPoolWithArgmax"], {"input": x}, words, problems)
