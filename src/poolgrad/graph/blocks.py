"""Define the blocks that a page may hold: one per row of the op table, and a few that supply arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from .._ops.table import OPS, REQUIRED, Kind, Op, Param
from . import literals, text

WIRED, TYPED, EITHER = "input", "text", "either"
GROUPS = ("input", "pool", "gradient", "second order", "quantised", "help")

_INPUTS = (Kind.SOURCE, Kind.DEST, Kind.INDEX)
_VECTORS = (Kind.SHAPE, Kind.SEQUENCE, Kind.RANGE, Kind.SIZES_TENSOR)
_TYPES = {Kind.SHAPE: "ints", Kind.SEQUENCE: "ints", Kind.RANGE: "floats", Kind.SIZES_TENSOR: "ints", Kind.SIZES: "ints",
          Kind.RATIO: "floats", Kind.PADDING: "word"}  # fmt: skip


@dataclass(frozen=True)
class Pin:
    """An input of a block: takes a wire, a text, or either."""

    name: str
    kind: str
    type: str
    doc: str
    read: Callable[[str], Any] | None = None
    required: bool = True
    default: str = ""  # the pin's text in a new block
    example: str = ""
    words: tuple[str, ...] | None = None
    dtypes: tuple[str, ...] | None = None
    rank: int | None = None
    blank: str = ""  # the meaning of an empty text, if the pin allows one


@dataclass(frozen=True)
class Block:
    """A kind of block: its name, pins and outputs."""

    op: str
    group: str
    doc: str
    pins: tuple[Pin, ...]
    outputs: tuple[str, ...] = ("output",)
    row: Op | None = None

    def pin(self, name: str) -> Pin | None:
        """Return the pin of that name."""
        return next((pin for pin in self.pins if pin.name == name), None)


# ---- from the table


def optional(op: Op) -> dict[str, Param]:
    """Return the arguments that the text pin `attrs` holds."""
    return {p.name: p for p in op.params if p.default is not REQUIRED and p.kind is not Kind.NAME}


def _reader(op: Op, param: Param) -> Callable[[str], Any]:
    """Return the function that parses the text of this argument."""
    kind = param.kind
    if kind in (Kind.SIZES, Kind.SIZES_TENSOR, Kind.PADS):
        return partial(text.ints, low=-(2**31), high=2**31 - 1)
    if kind in (Kind.SHAPE, Kind.SEQUENCE):
        bits = 31 if param.dtype == "int32" else 63
        return partial(text.ints, low=-(2**bits), high=2**bits - 1)
    if kind in (Kind.RATIO, Kind.RANGE):
        return text.floats
    if kind is Kind.PADDING:
        return partial(text.word, words=op.paddings)
    if kind is Kind.FORMAT:
        return partial(text.word, words=op.formats)
    if kind is Kind.FLAG:
        return text.boolean
    return text.integer if kind is Kind.SEED else partial(text.dtype, among=("int32", "int64"))


def _sample(op: Op, param: Param) -> str:
    """Return an example text that fits the op's rank."""
    sizes = [1, *[2] * op.spatial, 1]
    if param.kind in (Kind.SIZES, Kind.SIZES_TENSOR):
        return text.written(sizes)
    if param.kind is Kind.RATIO:
        return text.written([1.0, *[1.44, 1.73][: op.spatial], 1.0])
    if param.kind is Kind.RANGE:
        return "-1" if param.name.startswith("min") else "1"
    if param.kind is Kind.SHAPE:
        return text.written([1, *[4] * op.spatial, 1])
    return "0,2,4" if param.kind is Kind.SEQUENCE else op.paddings[0]


def _pin(op: Op, param: Param) -> Pin:
    rank = op.spatial + 2
    if param.kind in _INPUTS:
        among = ("int32", "int64") if param.kind is Kind.INDEX else op.dtypes
        return Pin(param.name, WIRED, "tensor", param.kind.value, dtypes=among, rank=rank)
    sample = _sample(op, param)
    kind = EITHER if param.kind in _VECTORS else TYPED
    words = op.paddings if param.kind is Kind.PADDING else None
    dtypes = (param.dtype or {Kind.RANGE: "float32"}.get(param.kind, "int32"),) if kind == EITHER else None
    default = "" if param.kind in (Kind.SHAPE, Kind.SEQUENCE) else sample
    return Pin(param.name, kind, _TYPES[param.kind], param.kind.value, _reader(op, param), True, default, sample, words,
               dtypes, {Kind.RANGE: 0}.get(param.kind, 1) if kind == EITHER else None)  # fmt: skip


def _attrs(op: Op) -> Pin | None:
    params = optional(op)
    if not params:
        return None
    readers = {name: _reader(op, param) for name, param in params.items()}
    shown = {n: text.enumerator(p.default) if p.kind is Kind.INDEX_TYPE else p.default
             for n, p in params.items() if p.kind is not Kind.PADS}  # fmt: skip
    default = text.written_attrs(shown)
    doc = "optional attributes: " + ", ".join(f"{name}_" for name in params)
    return Pin("attrs", TYPED, "attrs", doc, partial(text.attrs, readers=readers, op=op.name), False, default, default)


def _from_row(op: Op) -> Block:
    group = "quantised" if op.family.startswith("q") else GROUPS[1:][op.order]
    pins = [_pin(op, p) for p in op.params if p.default is REQUIRED]
    attrs = _attrs(op)
    return Block(op.name, group, op.summary, tuple([*pins, attrs] if attrs else pins), op.outputs, op)


# ---- blocks that supply arrays

_SHAPE = Pin("shape", TYPED, "shape", "the sizes of the array", text.shape, True, "[1][4][4][1]", "[2][2][2][2]")
_DTYPE = Pin("dtype", TYPED, "dtype", "the element type", text.dtype, False, "DT_FLOAT", "DT_DOUBLE", None, text.DTYPES,
             blank="DT_FLOAT")  # fmt: skip
_FILE = Pin("file", TYPED, "path", "a path, or the hash of data that the page holds", lambda t: text.quoted(t)[0])
_OPEN_SHAPE = Pin("shape", TYPED, "shape", "the sizes, if they are known before it is fed",
                  lambda t: text.shape(t) if t.strip() else None, False, "", "[1][4][4][1]")  # fmt: skip

_OTHERS = (
    Block("Const", "input", "An array that is typed.", (
        Pin("val", TYPED, "tensor", "the cells: a list, arange(1,9), fill(3), ones, zeros, random(normal, 7)",
            lambda t: t, True, "arange(1,17)", "1,2,3,4"), Pin("shape", TYPED, "shape",
            "the sizes of the array; nothing: those of the brackets", _OPEN_SHAPE.read, False, "[1][4][4][1]",
            "[2][2]"), _DTYPE)),
    Block("Random", "input", "An array of random numbers; the same seed gives the same numbers.", (
        _SHAPE, Pin("dist", TYPED, "dist", "normal(mean,deviation), uniform(low,high) or integers(low,high)",
                    lambda t: (literals.distribution(t), t)[1], False, "normal(0,1)", "uniform(-1,1)",
                    blank="normal(0,1)"),
        Pin("seed", TYPED, "int", "an integer", partial(text.integer, low=0), False, "0", "7", blank="0"), _DTYPE)),
    Block("File", "input", "The array in a .npy file; pickled objects are refused.", (_FILE,)),
    Block("Image", "input", "A .png file as [1, height, width, channels]; floats go from 0 to 1.", (_FILE, _DTYPE)),
    Block("Placeholder", "input", "An array that a run is fed with.", (
        _OPEN_SHAPE, _DTYPE, Pin("feed", TYPED, "tensor", "what it is fed with unless a run says otherwise",
                                 lambda t: t, False, "", "arange(1,17)"))),
    Block("Shape", "help", "The sizes of an array, as a vector.", (
        Pin("input", WIRED, "tensor", "any array"),
        Pin("out_type", TYPED, "dtype", "int32 or int64", partial(text.dtype, among=("int32", "int64")), False,
            "DT_INT32", "DT_INT64", None, ("int32", "int64"), blank="DT_INT32"))),
    Block("Add", "help", "The sum of two arrays of one shape, cell by cell.", (
        Pin("x", WIRED, "tensor", "an array"), Pin("y", WIRED, "tensor", "an array of the same shape and type"))),
)  # fmt: skip

BLOCKS: dict[str, Block] = {block.op: block for block in (*_OTHERS, *map(_from_row, OPS.values()))}
