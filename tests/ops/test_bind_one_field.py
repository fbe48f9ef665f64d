"""Quantised arrays in a dtype of one field, with or without padding around it."""

import numpy as np
import pytest
from support import Case, arguments

from poolgrad import raw_ops

WORDS = {
    "min_input": np.float32(0),
    "max_input": np.float32(1),
    "ksize": [1, 2, 2, 1],
    "strides": [1, 2, 2, 1],
    "padding": "VALID",
}
DTYPES = {
    "plain": np.dtype([("quint8", "u1")]),
    "padded": np.dtype({"names": ["quint8"], "formats": ["u1"], "itemsize": 4}),
    "behind padding": np.dtype({"names": ["quint8"], "formats": ["u1"], "offsets": [3], "itemsize": 5}),
    "wide": np.dtype({"names": ["qint32"], "formats": ["i1"], "offsets": [1], "itemsize": 16}),
}


@pytest.mark.parametrize("op", ["QuantizedMaxPool", "QuantizedAvgPool"])
@pytest.mark.parametrize("kind", DTYPES)
def test_a_wrapped_array_gives_what_its_field_gives_in_the_same_dtype(op, kind):
    dtype = DTYPES[kind]
    (name,) = dtype.names
    codes = np.arange(2 * 4 * 4 * 4).reshape(2, 4, 4, 4).astype(dtype[name])
    x = np.zeros(codes.shape, dtype)
    x[name] = codes
    got = getattr(raw_ops, op)(input=x, **WORDS).output
    want = getattr(raw_ops, op)(input=codes, **WORDS).output
    assert got.dtype == dtype
    assert got.shape == want.shape == (2, 2, 2, 4)
    np.testing.assert_array_equal(got[name], want)


def test_a_field_that_is_an_array_is_no_code():
    x = np.zeros((1, 4, 4), [("quint8", "u1", (4,))])
    with pytest.raises(TypeError, match=r"^QuantizedMaxPool: input: got dtype "):
        raw_ops.QuantizedMaxPool(input=x, **WORDS)


def test_quantised_codes_in_a_one_field_type_come_back_in_it():
    kind = np.dtype([("quint8", "u1")])
    args = arguments(Case("QuantizedMaxPool", "uint8"))
    want = raw_ops.QuantizedMaxPool(**args).output
    got = raw_ops.QuantizedMaxPool(**{**args, "input": args["input"].view(kind)}).output
    assert got.dtype == kind
    assert np.array_equal(got["quint8"], want)
