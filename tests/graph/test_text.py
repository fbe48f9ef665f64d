"""Text attributes: the reader understands everything that people type as they meant it, or refuses it at the character where it goes wrong."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolgrad.graph import literals, text
from poolgrad.graph.blocks import BLOCKS
from poolgrad.graph.text import TextError

FIVE = [1, 2, 2, 2, 1]
FORMATS = partial(text.word, words=("NDHWC", "NCDHW"))
READERS = {
    "data_format": FORMATS,
    "seed2": text.integer,
    "overlapping": text.boolean,
    "pads": text.ints,
    "Targmax": text.dtype,
}

ACCEPTED: list[tuple[Any, str, Any]] = [
    *[
        (text.ints, t, FIVE)
        for t in ("1,2,2,2,1", "1;2;2;2;1", "{1,2,2,2,1}", "1,2,2,2,1,", "[1,2,2,2,1]", "(1,2,2,2,1)")
    ],
    *[(text.ints, t, FIVE) for t in ("1 2 2 2 1", "  1,\n2, 2 ;2 1 ", "ex)1,2,2,2,1", "ex\\)1,2,2,2,1", "+1 2 2 2 1")],
    (text.ints, "", []),
    (text.ints, "{}", []),
    (text.floats, "1.0,1.44,1.73,1.0", [1.0, 1.44, 1.73, 1.0]),
    (text.floats, "1 .5 2.f 1e-3", [1.0, 0.5, 2.0, 0.001]),
    *[(FORMATS, t, "NDHWC") for t in ("NDHWC", " ndhwc ", '"NDHWC"', "'NdHwC'")],
    *[(text.boolean, t, True) for t in ("true", "TRUE", "True", "1", " true ")],
    *[(text.boolean, t, False) for t in ("false", "False", "0")],
    *[(text.dtype, t, "int64") for t in ("DT_INT64", "int64", "i64", "tf.int64", '"DT_INT64"')],
    *[(text.dtype, t, "float32") for t in ("DT_FLOAT", "float", "f32", "float32")],
    *[(text.dtype, t, "float64") for t in ("DT_DOUBLE", "double")],
    *[(text.shape, t, (2, 3)) for t in ("[2][3]", "{2,3}", "2,3", "[2] [3]", "2 3", "[2,3]")],
    *[(text.shape, t, ()) for t in ("", "[]", "{}")],
    *[
        (partial(text.attrs, readers=READERS, op="Op"), t, {"data_format": "NDHWC"})
        for t in (
            "data_format_ = NDHWC;",
            "data_format_=NDHWC;",
            "data_format_ = NDHWC",
            "data_format = NDHWC",
            'data_format_ = "NDHWC";',
            "\n data_format_ =\n ndhwc ;\n",
            "DataFormat(NDHWC)",
            'Op::DataFormat("NDHWC")',
            "Op::Attrs().DataFormat('NDHWC');",
            "ex)data_format_ = NDHWC;",
        )
    ],
    (partial(text.attrs, readers=READERS), "seed2_ = 7; overlapping_ = True;", {"seed2": 7, "overlapping": True}),
    (partial(text.attrs, readers=READERS), "pads_ = {0;0;1,1}; seed2 = 1", {"pads": [0, 0, 1, 1], "seed2": 1}),
    (partial(text.attrs, readers=READERS), "Targmax_ = DT_INT64;", {"Targmax": "int64"}),
    (partial(text.attrs, readers=READERS), " ;; ", {}),
]

REFUSED: list[tuple[Any, str, int, str | None]] = [
    (text.ints, "1,,2", 2, None),
    (text.ints, "1,x,2", 2, None),
    (text.ints, "2.9", 0, None),
    (text.ints, "3x", 0, None),
    (text.ints, "[1,2", 4, None),
    (text.ints, "(1,2]", 4, None),
    (text.ints, "1,2}", 3, None),
    (text.ints, "1,99999999999999999999", 2, None),
    (text.floats, "1.0,1.2.3", 4, None),
    (text.floats, "1,--2", 2, None),
    (FORMATS, "NHWC", 0, "NDHWC"),
    (FORMATS, ' "NHWC"', 2, ' "NDHWC"'),
    (FORMATS, "", 0, None),
    (text.boolean, "yes", 0, None),
    (text.dtype, "DT_FLOTA", 0, "DT_FLOAT"),
    (text.dtype, "complex64", 0, None),
    (text.shape, "[2][x]", 4, None),
    (text.shape, "[2][-3]", 4, None),
    (partial(text.attrs, readers=READERS), "data_fromat_ = NDHWC;", 0, "data_format_ = NDHWC;"),
    (partial(text.attrs, readers=READERS), "data_format_ = NHWC;", 15, "data_format_ = NDHWC;"),
    (partial(text.attrs, readers=READERS), "seed2_ = 0.5;", 9, None),
    (partial(text.attrs, readers=READERS), "overlapping_ = maybe;", 15, None),
    (partial(text.attrs, readers=READERS), "seed2=1; seed2_=2", 9, None),
    (partial(text.attrs, readers=READERS), "data_format_", 12, None),
    (partial(text.attrs, readers=READERS), "= NDHWC", 0, None),
    (partial(text.attrs, readers=READERS, op="Op"), "Other::DataFormat(NDHWC)", 0, "Op::DataFormat(NDHWC)"),
    (partial(text.attrs, readers=READERS), "DataFormat(NDHWC", 16, None),
    (partial(text.attrs, readers={}), "data_format_ = NHWC;", 0, None),
]  # fmt: skip


@pytest.mark.parametrize(("read", "given_text", "value"), ACCEPTED)
def test_what_people_type_is_read(read: Any, given_text: str, value: Any) -> None:
    assert read(given_text) == value


@pytest.mark.parametrize(("read", "given_text", "at", "fix"), REFUSED)
def test_an_error_is_at_the_character_and_suggests_what_was_meant(
    read: Any, given_text: str, at: int, fix: str | None
) -> None:
    with pytest.raises(TextError) as caught:
        read(given_text)
    assert (caught.value.at, caught.value.fix) == (at, fix)
    assert caught.value.got
    assert caught.value.wanted
    if fix is not None:
        read(fix)


# ---- arrays


def values(given_text: str, shape: Any = None, dtype: str = "float32") -> Any:
    return literals.parse(given_text, shape, dtype).tolist()


def test_arrays_are_nested_flat_or_made() -> None:
    assert (
        values("{{3.f, 2.f}, {-1.f, 0.f}}")
        == values("[[3,2],[-1,0]]")
        == values("3 2 -1 0", (2, 2))
        == [[3, 2], [-1, 0]]
    )
    assert values("{1,2},{3,4}") == [[1, 2], [3, 4]]
    assert values("arange(1,5)", (2, 2)) == [[1, 2], [3, 4]]
    assert values("fill(3)", (2,), "int8") == [3, 3]
    assert values("ones", (1, 2)) == [[1, 1]]
    assert values("zeros", ()) == 0
    assert values("7", ()) == 7
    assert values("", (0, 3)) == []
    assert values("nan,-inf")[1] == -np.inf
    assert values("inf,-inf", None, "float16") == [np.inf, -np.inf]
    assert (
        values("random(integers, 7)", (3,))
        == values("random(integers, 7)", (3,))
        != values("random(integers, 8)", (3,))
    )


@pytest.mark.parametrize(
    ("given_text", "shape", "dtype", "at"),
    [
        ("1,2,3", (2, 2), "float32", 0),
        ("1,2,3,4,5", (2, 2), "float32", 0),
        ("{{1,2},{3}}", None, "float32", 7),
        ("1,2.5", None, "int32", 2),
        ("1,300", None, "int8", 2),
        ("1,-1", None, "uint8", 2),
        ("ones", None, "float32", 0),
        ("fill(x)", (2,), "float32", 5),
        ("fill(1,2)", (2,), "float32", 5),
        ("arange(1,1e99)", None, "float32", 0),
        ("arange(1,5,0)", None, "float32", 0),
        ("{1,2", None, "float32", 4),
        ("1,2 foo", None, "float32", 4),
        ("", None, "float32", 0),
        ("{" * 99, None, "float32", 16),
        ("ones", (2**20, 2**20), "float32", 0),
        ("[[1,2],[3,4]]", (4,), "float32", 0),
        ("1,1e39", None, "float32", 2),
        ("1,1e400", None, "float64", 2),
        ("1,70000", None, "float16", 2),
        ("fill(1e39)", (2,), "float32", 5),
        ("fill(300)", (2,), "int8", 5),
        ("arange(0,300)", None, "uint8", 0),
        ("arange(0,1,.5)", None, "int32", 0),
        ("random(normal)", (2,), "int32", 0),
        ("random(gauss)", (2,), "float32", 0),
    ],
)
def test_a_wrong_array_is_an_error_at_the_character(given_text: str, shape: Any, dtype: str, at: int) -> None:
    with pytest.raises(TextError) as caught:
        literals.parse(given_text, shape, dtype)
    assert caught.value.at == at


# ---- round trips

LISTS = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=9)
BRACKETS = st.sampled_from([("", ""), ("{", "}"), ("[", "]"), ("(", ")")])
SEPARATORS = st.sampled_from([",", ";", " ", " , ", ";\n"])


@given(LISTS, BRACKETS, SEPARATORS)
def test_integers_survive_every_spelling(numbers: list[int], brackets: tuple[str, str], separator: str) -> None:
    typed = brackets[0] + separator.join(map(str, numbers)) + brackets[1]
    assert text.ints(typed) == text.ints(text.written(text.ints(typed))) == numbers


@given(st.lists(st.floats(allow_nan=False), max_size=9))
def test_floats_survive_text(numbers: list[float]) -> None:
    assert text.floats(text.written(numbers)) == numbers


@given(st.sampled_from(text.DTYPES), st.lists(st.integers(0, 255), min_size=2, max_size=40), st.booleans())
def test_arrays_survive_text_bit_by_bit(name: str, raw: list[int], nested: bool) -> None:
    kind = literals.numpy_type(name)
    size = max(len(raw) // kind.itemsize, 1)
    bits = np.resize(np.array(raw, np.uint8), size * kind.itemsize).view(kind)
    if kind.kind not in "iu":
        with np.errstate(invalid="ignore"):  # signalling NaN
            bits = np.where(bits != bits, np.asarray(0, kind), bits)
    again = literals.parse(literals.flat(bits), (1, size) if nested else None, name)
    assert again.dtype == kind
    assert again.tobytes() == bits.tobytes()


@st.composite
def attributes(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Return a block of the table and values for some of its optional attributes."""
    block = draw(st.sampled_from([b for b in BLOCKS.values() if b.row and b.pin("attrs")]))
    row = block.row
    assert row is not None
    choices = {
        "a bool": st.booleans(),
        "a 64-bit integer": st.integers(0, 2**63 - 1),
        "int32 or int64": st.sampled_from(["int32", "int64"]),
        "the order of the dimensions": st.sampled_from(row.formats),
        "a pair of integers per dimension": st.lists(st.integers(0, 9), min_size=8, max_size=8),
    }
    names = [p for p in row.params if p.default is not ... and p.kind.doc in choices]
    chosen = draw(st.lists(st.sampled_from(names), unique_by=lambda p: p.name))
    return block.op, {p.name: draw(choices[p.kind.doc]) for p in chosen}


@given(attributes())
def test_attributes_of_every_op_survive_text(case: tuple[str, dict[str, Any]]) -> None:
    op, wanted = case
    pin = BLOCKS[op].pin("attrs")
    assert pin is not None
    assert pin.read is not None
    once = pin.read(text.written_attrs(wanted))
    assert once == wanted
    assert pin.read(text.written_attrs(once)) == once


@given(st.text(max_size=40))
def test_any_text_at_all_is_read_or_refused_inside_it(typed: str) -> None:
    for block in BLOCKS.values():
        for pin in block.pins:
            if pin.read is None:
                continue
            wrong = refusal(pin.read, typed)
            assert wrong is None or 0 <= wrong.at <= len(typed)
            assert wrong is None or wrong.length >= 0


def refusal(read: Any, typed: str) -> TextError | None:
    try:
        read(typed)
    except TextError as error:
        return error
    return None


def test_every_blocks_own_defaults_and_examples_are_read() -> None:
    for block in BLOCKS.values():
        for pin in block.pins:
            for typed in (pin.default, pin.example, pin.blank):
                if typed and pin.read is not None:
                    pin.read(typed)


def test_every_type_of_the_table_has_a_name_in_c_that_is_read_back() -> None:
    for name in text.DTYPES:
        assert text.dtype(text.enumerator(name)) == name
        assert literals.numpy_type(name) == (ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name))
