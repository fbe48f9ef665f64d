"""Each kind of argument parses its own text and accepts the parsed value; a new kind needs one class."""

from __future__ import annotations

import importlib.util
import inspect
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support import ROOT

from poolgrad import raw_ops
from poolgrad._common.errors import ArgumentErrors
from poolgrad._ops import files
from poolgrad._ops.kinds import EITHER, KINDS, REQUIRED, WIRED, Kind, Param
from poolgrad._ops.table import OPS, Op
from poolgrad._ops.text import TextError
from poolgrad.graph import blocks

TYPED = [(op, p) for op in OPS.values() for p in op.params if p.kind.entry != WIRED and p.kind is not Kind.NAME]
NAMES = [f"{op.name}.{p.name}" for op, p in TYPED]


def text_of(op: Op, param: Param) -> str:
    return param.kind.sample(op, param) if param.default is REQUIRED else param.show_default()


@pytest.mark.parametrize(("op", "param"), TYPED, ids=NAMES)
def test_a_kind_reads_what_it_writes_and_accepts_what_it_reads(op: Op, param: Param) -> None:
    kind, errors = param.kind, ArgumentErrors(op.name)
    value = kind.parse(text_of(op, param), op, param)
    assert kind.parse(kind.show(value), op, param) == value
    if not kind.is_array and kind is not Kind.PADS:  # its default is no padding at all
        checked = kind.validate(errors, op, param, kind.convert(value, param))
        errors.raise_if_any()
        assert np.allclose(checked, value) if isinstance(value, list) else checked == value
    elif kind.is_array:
        array = kind.convert(value, param)
        assert array.dtype.name in (kind.dtypes(op, param) or ())
        assert array.ndim == kind.rank(op)


@pytest.mark.parametrize(("op", "param"), TYPED, ids=NAMES)
def test_a_kind_refuses_a_wrong_text_and_a_wrong_value(op: Op, param: Param) -> None:
    with pytest.raises(TextError):
        param.kind.parse("?", op, param)
    if not param.kind.is_array:
        errors = ArgumentErrors(op.name)
        param.kind.validate(errors, op, param, object())
        assert errors.blames(param.name)


def test_every_kind_is_used_by_some_op_and_survives_a_pickle() -> None:
    used = {p.kind for op in OPS.values() for p in op.params}
    assert set(KINDS) == used
    assert all(pickle.loads(pickle.dumps(kind)) is kind for kind in KINDS)
    assert repr(Kind.SIZES) == "Kind.SIZES"


class Factor(Kind):
    """A kind that no op has: a power of two, written as its exponent."""

    doc = "a power of two"
    like = "an exponent like 3"

    def parse(self, given: str, op: Any, param: Param) -> int:
        if not given.isdecimal():
            raise TextError(0, len(given), repr(given), "an exponent")
        return int(2 ** int(given))

    def show(self, value: Any) -> str:
        return str(value.bit_length() - 1)

    def sample(self, op: Any, param: Param) -> str:
        return "3"

    def annotation(self, op: Any) -> str:
        return "Power"

    def cache_key(self, name: str) -> tuple[str, list[str]]:
        return f"{name}.__class__ is int", [name]


def with_factor(default: Any) -> Op:
    row = OPS["MaxPool"]
    return replace(row, params=(*row.params[:4], Param("factor", Factor(), default), *row.params[4:]))


def test_a_new_kind_needs_no_other_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions, the command line, blocks, the stub and the pages of the docs take a kind that they never heard of."""
    op = with_factor(8)
    function = raw_ops.make(op)
    assert "factor=8" in str(inspect.signature(function))
    x = np.arange(4, dtype=np.float32).reshape(1, 2, 2, 1)
    sizes: dict[str, Any] = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    assert [function(input=x, **sizes, factor=n).item() for n in (4, 4, 8)] == [3, 3, 3]
    with pytest.raises(ValueError, match="MaxPool: factor: got 'x', wanted an exponent like 3"):
        files.arguments(op, ["factor=x"])
    block = blocks._from_row(op)
    attrs = block.pin("attrs")
    assert attrs is not None
    assert attrs.read is not None
    assert "factor_ = 3;" in attrs.default
    assert attrs.read("factor_ = 5;") == {"factor": 32}
    pin = blocks._from_row(with_factor(REQUIRED)).pin("factor")
    assert pin is not None
    assert (pin.kind, pin.doc, pin.example) == ("text", "a power of two", "3")
    spec = importlib.util.spec_from_file_location("docs", ROOT / "tools" / "docs.py")
    assert spec is not None
    assert spec.loader is not None
    docs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(docs)
    assert docs.argument(Param("factor", Factor(), 8)) == "| `factor` | a power of two | `8` |"
    monkeypatch.setattr(docs, "OPS", {op.name: op})
    assert "    factor: Power = ...,\n" in docs.stub()


def test_texts_that_wires_can_replace_are_those_of_vectors() -> None:
    assert {kind for kind in KINDS if kind.entry == EITHER} == {
        Kind.SHAPE,
        Kind.SEQUENCE,
        Kind.RANGE,
        Kind.SIZES_TENSOR,
    }
