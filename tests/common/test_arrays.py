"""Rare paths through the Python code: each refuses, or works, as documented."""

import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from support import Case, arguments

from poolgrad import raw_ops
from poolgrad._common import png
from poolgrad._common.errors import short_repr
from poolgrad._ops.table import OPS
from poolgrad.cli import main
from poolgrad.config import set_kept_memory


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def picture(header: tuple[int, ...] = (2, 1, 8, 0, 0, 0, 0), body: bytes = b"\0ab", *more: bytes) -> bytes:
    head = b"" if not header else chunk(b"IHDR", struct.pack(">IIBBBBB", *header))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(more) + chunk(b"IDAT", zlib.compress(body)) + chunk(b"IEND", b"")


STRANGE = {
    "no header": (picture(()), "no header"),
    "a palette": (picture((2, 1, 8, 0, 0, 0, 0), b"\0ab", chunk(b"PLTE", b"abc")), "PLTE"),
    "16 bits": (picture((2, 1, 16, 0, 0, 0, 0)), "depth 16"),
    "no pixels": (picture((0, 1, 8, 0, 0, 0, 0)), "0 x 1 pixels"),
    "too many pixels": (picture((2**31, 2**31, 8, 0, 0, 0, 0)), "pixels"),
    "too few bytes": (picture(body=b"\0a"), "2 bytes of pixels, wanted 3"),
    "too many bytes": (picture(body=b"\0abc"), "4 bytes of pixels, wanted 3"),
    "an unknown filter": (picture(body=b"\7ab"), "filter 7"),
    "pixels that do not inflate": (
        picture().replace(zlib.compress(b"\0ab"), b"x" * len(zlib.compress(b"\0ab"))),
        "png",
    ),
}


@pytest.mark.parametrize("what", STRANGE)
def test_a_strange_png_is_refused(what):
    data, words = STRANGE[what]
    with pytest.raises(ValueError, match=words):
        png.decode(data)


def test_chunks_that_may_be_ignored_are():
    data = picture((2, 1, 8, 0, 0, 0, 0), b"\0ab", chunk(b"tEXt", b"hello"))
    assert png.decode(data).tolist() == [[97, 98]]


class Silent:
    """An object that raises when it is shown or converted."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    def __array__(self, *args: object, **kwargs: object) -> np.ndarray:
        raise RuntimeError("no")


def test_a_value_that_cannot_be_shown_is_named_by_its_type():
    assert short_repr(Silent()) == "<Silent>"
    with pytest.raises(TypeError, match=r"MaxPool: input: got <Silent>"):
        raw_ops.MaxPool(input=Silent(), ksize=[1, 1, 1, 1], strides=[1, 1, 1, 1], padding="SAME")


class Hungry:
    """An object that asks for more memory than there is."""

    def __array__(self, *args: object, **kwargs: object) -> np.ndarray:
        raise MemoryError("hungry")


def test_memory_that_runs_out_is_no_wrong_argument():
    with pytest.raises(MemoryError, match="hungry"):
        raw_ops.MaxPool(input=Hungry(), ksize=[1, 1, 1, 1], strides=[1, 1, 1, 1], padding="SAME")


@pytest.mark.parametrize("megabytes", [-1, float("nan"), 2**21])
def test_kept_memory_has_limits(megabytes):
    with pytest.raises(ValueError, match="megabytes"):
        set_kept_memory(megabytes)


LIMITED = """
import resource, numpy as np
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
from poolgrad import raw_ops
x = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (1, 40000, 40000, 1), (0, 0, 0, 0))
try:
    raw_ops.MaxPool(input=x, ksize=[1, 1, 1, 1], strides=[1, 1, 1, 1], padding="SAME")
except MemoryError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="address spaces are limited on Linux")
def test_a_limit_of_the_process_counts_as_its_memory():
    from support import python

    done = python("-c", LIMITED, POOLGRAD_NUM_THREADS="1")
    assert "at most the 4294967296 bytes" in done.stdout, done.stderr


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


def test_quantised_codes_in_a_one_field_type_come_back_in_it():
    kind = np.dtype([("quint8", "u1")])
    args = arguments(Case("QuantizedMaxPool", "uint8"))
    want = raw_ops.QuantizedMaxPool(**args).output
    got = raw_ops.QuantizedMaxPool(**{**args, "input": args["input"].view(kind)}).output
    assert got.dtype == kind
    assert np.array_equal(got["quint8"], want)


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


def test_the_command_line_shows_an_empty_result(capsys):
    assert main(["try", "max x=0x4x4x2 k=2x2"]) == 0
    assert capsys.readouterr().out


def test_the_module_runs_as_a_program():
    done = subprocess.run(
        [sys.executable, "-c", "import poolgrad.cli as c; c.main(['--version'])"], capture_output=True, text=True
    )
    assert "poolgrad" in done.stdout
