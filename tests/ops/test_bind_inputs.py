"""The ops accept everything that can become an array, and keep its type."""

import array

import ml_dtypes
import numpy as np
import pytest
from support import Case, arguments

from poolgrad import raw_ops

SIZES = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
X = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
WANT = [5, 7, 13, 15]


class Arrayish:
    """An object with __array__ and nothing else."""

    def __init__(self, x: np.ndarray) -> None:
        self.x = x

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return self.x


class Tensor:
    """An object with DLPack and nothing else."""

    def __init__(self, x: np.ndarray) -> None:
        self.x = x

    def __dlpack__(self, **options):
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


FORMS = {
    "list": lambda: X.tolist(),
    "tuple": lambda: tuple(X.tolist()),
    "memoryview": lambda: memoryview(X),
    "__array__": lambda: Arrayish(X),
    "DLPack": lambda: Tensor(X),
    "big-endian": lambda: X.astype(">f4"),
    "unaligned": lambda: np.frombuffer(b"-" + X.tobytes(), np.uint8)[1:].view(np.float32).reshape(X.shape),
    "masked without a mask": lambda: np.ma.array(X),
    "matrix of a subclass": lambda: X.view(type("Sub", (np.ndarray,), {})),
    "memory-mapped": lambda: np.lib.stride_tricks.as_strided(X, writeable=False),
    "read-only": lambda: np.broadcast_to(X, X.shape),
    "list of arrays": lambda: [np.asarray(a) for a in X],
}


@pytest.mark.parametrize("form", FORMS)
def test_an_input_may_be_given_as(form):
    y = raw_ops.MaxPool(input=FORMS[form](), **SIZES)
    assert type(y) is np.ndarray
    assert y.ravel().tolist() == WANT
    assert y.dtype == np.float32
    assert y.dtype.isnative


def test_whole_numbers_in_lists_are_int32_and_others_float32_as_in_tensorflow():
    assert raw_ops.MaxPool(input=X.astype(int).tolist(), **SIZES).dtype == np.int32
    assert raw_ops.MaxPool(input=X.tolist(), **SIZES).dtype == np.float32


def test_lists_beside_an_array_take_its_type():
    x = X.astype(np.float64)
    dx = raw_ops.MaxPoolGrad(
        orig_input=x, orig_output=raw_ops.MaxPool(input=x, **SIZES), grad=[[[[1], [2]], [[3], [4]]]], **SIZES
    )
    assert dx.dtype == np.float64
    assert dx[dx != 0].tolist() == [1, 2, 3, 4]


def test_shapes_sequences_and_ranges_may_be_lists_and_scalars():
    dx = raw_ops.AvgPoolGrad(orig_input_shape=[1, 4, 4, 1], grad=np.ones((1, 2, 2, 1), np.float32), **SIZES)
    assert (dx == 0.25).all()
    grads = raw_ops.FractionalAvgPoolGrad(
        orig_input_tensor_shape=(1, 4, 4, 1),
        out_backprop=np.ones((1, 2, 2, 1), np.float32),
        row_pooling_sequence=[0, 2, 4],
        col_pooling_sequence=(0, 2, 4),
    )
    assert (grads == 0.25).all()
    y = raw_ops.QuantizedMaxPool(input=X.astype(np.uint8), min_input=0, max_input=255.0, **SIZES)
    assert y.output.ravel().tolist() == WANT
    assert (y.min_output, y.max_output) == (0, 255)
    assert y.min_output.dtype == y.max_output.dtype == np.float32


@pytest.mark.parametrize(
    "sizes",
    [(1, 2, 2, 1), np.array([1, 2, 2, 1]), np.array([1, 2, 2, 1], np.uint8), array.array("i", [1, 2, 2, 1])],
    ids=repr,
)
def test_sizes_may_be_any_list_of_integers(sizes):
    y = raw_ops.MaxPool(input=X, ksize=sizes, strides=sizes, padding="VALID")
    assert y.ravel().tolist() == WANT


def test_sizes_of_the_second_version_may_be_int32_arrays_or_lists():
    for sizes in ([1, 2, 2, 1], np.array([1, 2, 2, 1], np.int32), Arrayish(np.array([1, 2, 2, 1], np.int32))):
        assert raw_ops.MaxPoolV2(input=X, ksize=sizes, strides=sizes, padding="VALID").ravel().tolist() == WANT


@pytest.mark.parametrize(
    ("tag", "kind"),
    [("qint8", np.int8), ("quint8", np.uint8), ("qint16", np.int16), ("quint16", np.uint16), ("qint32", np.int32)],
)
@pytest.mark.parametrize("name", ["QuantizedMaxPool", "QuantizedAvgPool"])
def test_a_quantised_type_of_one_field_goes_in_and_comes_out(name, tag, kind):
    wrapped = np.dtype([(tag, kind)])
    x = X.astype(kind)
    ranges = {"min_input": np.float32(-1), "max_input": np.float32(1)}
    y = getattr(raw_ops, name)(input=x.view(wrapped).reshape(x.shape), **ranges, **SIZES).output
    plain = getattr(raw_ops, name)(input=x, **ranges, **SIZES).output
    assert y.dtype == wrapped
    assert (y[tag] == plain).all()


@pytest.mark.parametrize("targmax", ["int32", np.int32, np.dtype("int32"), "int64", np.int64])
def test_positions_have_the_type_that_was_asked_for(targmax):
    assert raw_ops.MaxPoolWithArgmax(input=X, Targmax=targmax, **SIZES).argmax.dtype == np.dtype(targmax)


def test_bfloat16_is_that_of_ml_dtypes():
    y = raw_ops.AvgPool(value=X.astype(ml_dtypes.bfloat16), **SIZES)
    assert y.dtype == ml_dtypes.bfloat16
    assert y.astype(np.float32).ravel().tolist() == [2.5, 4.5, 10.5, 12.5]


def test_words_may_be_bytes():
    y = raw_ops.MaxPool(input=X, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding=b"VALID", data_format=b"NHWC")
    assert y.ravel().tolist() == WANT


def test_results_share_no_memory_with_arguments_or_each_other():
    y = raw_ops.MaxPool(input=X, ksize=[1, 1, 1, 1], strides=[1, 1, 1, 1], padding="VALID")
    again = raw_ops.MaxPool(input=X, ksize=[1, 1, 1, 1], strides=[1, 1, 1, 1], padding="VALID")
    assert not np.shares_memory(y, X)
    assert not np.shares_memory(y, again)
    assert y.flags.writeable


LISTS = {
    "orig_input": [[[[1], [2]], [[3], [4]]]],
    "orig_output": [[[[4]]]],
    "ksize": [1, 2, 2, 1],
    "strides": [1, 2, 2, 1],
    "padding": "VALID",
}


def test_lists_take_the_type_of_the_array_beside_them():
    grad = np.full((1, 1, 1, 1), 7, np.uint8)
    assert raw_ops.MaxPoolGrad(grad=grad, **LISTS).dtype == np.uint8


@pytest.mark.parametrize("value", [300, -1, 1.5, float("nan")])
def test_numbers_of_a_list_that_do_not_fit_the_type_beside_it_are_refused(value):
    grad = np.full((1, 1, 1, 1), 7, np.uint8)
    kind = ValueError if isinstance(value, int) else TypeError
    with pytest.raises(kind, match="orig_output: got"):
        raw_ops.MaxPoolGrad(grad=grad, **{**LISTS, "orig_output": [[[[value]]]]})


def test_sizes_may_be_integer_arrays_of_one_dimension_only():
    args = arguments(Case("MaxPool"))
    want = raw_ops.MaxPool(**args)
    for kind in (np.int32, np.int64, np.uint8):
        assert np.array_equal(raw_ops.MaxPool(**{**args, "ksize": np.array(args["ksize"], kind)}), want)
    with pytest.raises(ValueError, match=r"ksize: got an array of shape \[2, 2\]"):
        raw_ops.MaxPool(**{**args, "ksize": np.ones((2, 2), int)})
    with pytest.raises(TypeError, match="ksize: got an array of dtype float64"):
        raw_ops.MaxPool(**{**args, "ksize": np.ones(4)})
    args = arguments(Case("MaxPoolV2"))
    with pytest.raises(TypeError, match="ksize: got an array of dtype int64, wanted an int32 vector"):
        raw_ops.MaxPoolV2(**{**args, "ksize": np.ones(4, np.int64)})
