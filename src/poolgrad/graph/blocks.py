"""Define the blocks that a page may hold: one per row of the op table, one per pool and derivative, and a few that supply arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from .._explain.pools import GRADIENT, POOL, TANGENT
from .._ops.kinds import EITHER, REQUIRED, TYPED, WIRED, Kind, Param
from .._ops.table import OPS, Op
from . import literals, text
from .pool_calls import ARGUMENTS, FORMS, SECOND, PoolForm

__all__ = ["BLOCKS", "EITHER", "GROUPS", "TYPED", "WIRED", "Block", "Pin", "optional"]

GROUPS = (
    "input",
    "pool",
    "gradient",
    "second order",
    "quantised",
    "array pool",
    "array gradient",
    "array tangent",
    "help",
)


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
    unset: str | None = None  # shown where nothing is typed; None: the default, or an example


@dataclass(frozen=True)
class Block:
    """A kind of block: its name, pins and outputs."""

    op: str
    group: str
    doc: str
    pins: tuple[Pin, ...]
    outputs: tuple[str, ...] = ("output",)
    row: Op | None = None
    pool: PoolForm | None = None

    @property
    def windowed(self) -> bool:
        """Return True if the block pools, or derives a pool."""
        return self.row is not None or self.pool is not None

    @property
    def attributes(self) -> tuple[str, ...]:
        """Return the arguments that the text pin `attrs` holds."""
        if self.pool is not None:
            return self.pool.attributes
        return () if self.row is None else tuple(optional(self.row))

    def pin(self, name: str) -> Pin | None:
        """Return the pin of that name."""
        return next((pin for pin in self.pins if pin.name == name), None)


# ---- from the table


def optional(op: Op) -> dict[str, Param]:
    """Return the arguments that the text pin `attrs` holds."""
    return {p.name: p for p in op.params if p.default is not REQUIRED and p.kind is not Kind.NAME}


def _pin(op: Op, param: Param) -> Pin:
    kind = param.kind
    if kind.entry == WIRED:
        return Pin(param.name, WIRED, kind.field, kind.doc, dtypes=kind.dtypes(op, param), rank=kind.rank(op))
    sample = kind.sample(op, param)
    read = partial(kind.parse, op=op, param=param)
    default = "" if kind.starts_empty else sample
    return Pin(param.name, kind.entry, kind.field, kind.doc, read, True, default, sample, kind.choices(op),
               kind.dtypes(op, param), kind.rank(op))  # fmt: skip


def _attrs(op: Op) -> Pin | None:
    params = optional(op)
    if not params:
        return None
    readers = {name: partial(param.kind.parse, op=op, param=param) for name, param in params.items()}
    default = text.written_attrs({name: p.show_default() for name, p in params.items() if p.kind.in_attrs})
    doc = "optional attributes: " + ", ".join(f"{name}_" for name in params)
    return Pin("attrs", TYPED, "attrs", doc, partial(text.attrs, readers=readers, op=op.name), False, default, default)


def _from_row(op: Op) -> Block:
    group = "quantised" if op.family.startswith("q") else GROUPS[1:][op.order]
    pins = [_pin(op, p) for p in op.params if p.default is REQUIRED]
    attrs = _attrs(op)
    return Block(op.name, group, op.summary, tuple([*pins, attrs] if attrs else pins), op.outputs, op)


# ---- pools for NumPy users

_ARRAY_GROUPS = {POOL: "array pool", GRADIENT: "array gradient", TANGENT: "array tangent", SECOND: "array tangent"}


def _argument_pin(name: str) -> Pin:
    found = ARGUMENTS[name]
    return Pin(
        name, TYPED, found.type, found.doc, found.read, found.required, found.default, found.example, found.words,
        unset=None if found.required else found.unset,
    )  # fmt: skip


def _from_pool(name: str, form: PoolForm) -> Block:
    pins = [Pin(pin, WIRED, "tensor", doc) for pin, doc in form.inputs.items()]
    pins += [_argument_pin(pin) for pin in form.pins]
    readers = {word: ARGUMENTS[word].read for word in form.attributes}
    doc, example = (
        "other arguments: " + ", ".join(readers),
        f"{form.attributes[0]} = {ARGUMENTS[form.attributes[0]].example};",
    )
    pins.append(
        Pin("attrs", TYPED, "attrs", doc, partial(text.attrs, readers=readers, op=name), False, "", example, unset="")
    )
    return Block(name, _ARRAY_GROUPS[form.form], form.doc, tuple(pins), pool=form)


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

BLOCKS: dict[str, Block] = {block.op: block for block in (*_OTHERS, *map(_from_row, OPS.values()))} | {
    name: _from_pool(name, form) for name, form in FORMS.items()
}
