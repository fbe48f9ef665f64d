"""Make the numbers of a cell: random, without ties inside a window, small enough that sums in any order agree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from poolgrad import raw_ops
from poolgrad._common.errors import ArgumentErrors
from poolgrad._kernels import native
from poolgrad._ops.bind import BoundCall, bind
from poolgrad._ops.problem import forward as forward_of
from poolgrad._ops.table import ARRAYS, OPS, Kind

from .cells import Cell

Array = npt.NDArray[Any]

EXACT = {"float16": 2**11, "bfloat16": 2**8, "float32": 2**15, "float64": 2**15, "uint8": 2**8, "int8": 2**8}


@dataclass(frozen=True)
class Arrays:
    """A cell's input, output, cotangent, tangent; flat positions of the maxima in their image and the sequences, if any."""

    x: Array
    y: Array
    g: Array
    v: Array
    index: Array | None = None
    rows: Array | None = None
    cols: Array | None = None


def dtype_of(cell: Cell) -> np.dtype[Any]:
    """Return the cell's element type."""
    return np.dtype(ml_dtypes.bfloat16) if cell.dtype == "bfloat16" else np.dtype(cell.dtype)


def make(cell: Cell) -> Arrays:
    """Make the arrays that any form of the op may need, in the cell's layout."""
    rng = np.random.default_rng(7)
    x = _distinct(cell, rng)
    g = _little(cell, rng, cell.dest)
    v = _little(cell, rng, cell.shape)
    half = Arrays(x, g, g, v)
    forward = forward_of(cell.op)
    with np.errstate(all="ignore"):
        result = getattr(raw_ops, forward.name)(**arguments(cell, half, forward.name))
    if cell.fractional:
        y, rows, cols = result
        full = Arrays(x, y, g, v, None, rows, cols)
    else:
        full = Arrays(x, result, g, v)
    return Arrays(**{**full.__dict__, "index": argmax(cell, full)}) if cell.maximal else full


def arguments(cell: Cell, arrays: Arrays, kind: str = "") -> dict[str, Any]:
    """Return the keyword arguments of the op under TensorFlow's names."""
    filled: dict[str, Any] = {
        "pseudo_random": cell.pseudo, "overlapping": cell.overlapping, "deterministic": True,
        "seed": cell.seeds[0], "seed2": cell.seeds[1],
        "row_pooling_sequence": arrays.rows, "col_pooling_sequence": arrays.cols, "orig_output": arrays.y,
        "pooling_ratio": list(cell.ratio), "padding": cell.padding, "data_format": cell.layout,
    }  # fmt: skip
    if not cell.fractional:
        filled |= {"ksize": cell.every(cell.ksize), "strides": cell.every(cell.strides)}
    given: dict[str, Any] = {}
    seen_x = False
    for param in OPS[kind or cell.kind].params:
        if param.name in filled:
            given[param.name] = filled[param.name]
        elif param.kind is Kind.SOURCE:
            given[param.name] = arrays.v if seen_x else arrays.x
            seen_x = True
        elif param.kind is Kind.DEST:
            given[param.name] = arrays.g
        elif param.kind is Kind.SHAPE:
            given[param.name] = np.array(cell.shape, param.dtype)
    return given


def call_of(cell: Cell, arrays: Arrays, kind: str = "") -> BoundCall:
    """Return the checked call, whose plan the native functions take."""
    op = OPS[kind or cell.kind]
    given = arguments(cell, arrays, op.name)
    names = [p.name for p in op.params if p.kind in ARRAYS]
    attrs = {name: value for name, value in given.items() if name not in names}
    return bind(op, {name: given[name] for name in names}, attrs, ArgumentErrors(op.name))


def windows_of(cell: Cell, arrays: Arrays) -> BoundCall:
    """Return the call that has the windows of the cell's forward op."""
    if cell.fractional:
        return call_of(cell, arrays, "FractionalMaxPoolGrad")
    return call_of(cell, arrays, "MaxPool" if cell.op.spatial == 2 else "MaxPool3D")


def argmax(cell: Cell, arrays: Arrays) -> Array:
    """Return the flat position of each maximum in its image, in the smallest type that the core takes."""
    plan = windows_of(cell, arrays).plan
    assert plan is not None
    size = math.prod(cell.shape[1:])
    return native.argmax(plan, size, np.int32 if size < 2**31 else np.int64, arrays.x)[1]


def in_other_layout(cell: Cell, arrays: Arrays) -> Arrays:
    """Return the arrays of the cell's twin: the same numbers, copied to the other layout; flat positions are left out."""

    def moved(array: Array) -> Array:
        return np.ascontiguousarray(np.moveaxis(array, 1, -1) if cell.first else np.moveaxis(array, -1, 1))

    x, y, g, v = map(moved, (arrays.x, arrays.y, arrays.g, arrays.v))
    return Arrays(x, y, g, v, None, arrays.rows, arrays.cols)


def planes(cell: Cell, arrays: Arrays) -> Array:
    """Return the positions of the maxima within their channel, as PyTorch counts them."""
    assert arrays.index is not None
    channels, pixels = cell.x[-1], math.prod(cell.x[1:-1])
    index = arrays.index.astype(np.int64)
    return index % pixels if cell.first else index // channels


def _distinct(cell: Cell, rng: np.random.Generator) -> Array:
    """Draw integers whose remainders number the places in a window, so that no window has equal cells."""
    longest = cell.ksize or tuple(math.ceil(r) + 1 for r in cell.ratio[1:-1])
    places = np.zeros((1,) * len(cell.shape), np.int64)
    for d, k in zip(cell.space, longest, strict=True):
        axis = [1] * len(cell.shape)
        axis[d] = cell.shape[d]
        places = places * k + (np.arange(cell.shape[d]) % k).reshape(axis)
    period = math.prod(longest)
    # If a window has more places than the type has exact integers, ties occur; all contestants take the first.
    levels = max(EXACT.get(cell.dtype, 2**15) // period, 1)
    x = rng.integers(0, levels, cell.shape, np.uint16).astype(np.int32)
    x *= period
    x += places.astype(np.int32)
    if cell.dtype not in ("uint8", "uint16", "uint32", "uint64"):
        x -= levels * period // 2
    return x.astype(dtype_of(cell))


def _little(cell: Cell, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    low = 0 if cell.dtype.startswith("u") else -4
    return rng.integers(low, 5, shape, np.int8).astype(dtype_of(cell))
