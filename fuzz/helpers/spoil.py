"""Ways to make a right call wrong, one argument at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from support import Case

from poolgrad._ops.table import Kind, Param

DATA = ("ties", "wild", "wild", "bits")
Change = Callable[[np.random.Generator, Any], Any]


def _resized(rng: np.random.Generator, a: np.ndarray) -> np.ndarray:
    """Return the array with one cell more or less along a dimension."""
    axis = int(rng.integers(a.ndim)) if a.ndim else 0
    return np.concatenate([a, a], axis) if a.ndim and rng.random() < 0.5 else a.take([], axis) if a.ndim else a[None]


def _strange(rng: np.random.Generator, a: np.ndarray) -> Any:
    """Return a value that is no array, or an array of another type."""
    strange = (
        None,
        "text",
        b"bytes",
        {},
        object(),
        [[1, 2], [3]],
        a.tolist(),
        float("nan"),
        2**70,
        a > a,
        [],
        np.float64(1),
    )
    return strange[int(rng.integers(len(strange)))]


def _other_dtype(rng: np.random.Generator, a: np.ndarray) -> np.ndarray:
    names = (
        "float16",
        "float32",
        "float64",
        "int8",
        "uint8",
        "int32",
        "int64",
        "uint64",
        "bool",
        "complex64",
        "S3",
        "O",
    )
    with np.errstate(all="ignore"):
        return a.astype(np.float32).astype(names[int(rng.integers(len(names)))])


ARRAY: dict[str, Change] = {
    "dtype": _other_dtype,
    "resized": _resized,
    "no array": _strange,
    "rank": lambda rng, a: a[None] if rng.random() < 0.5 else a.reshape(-1),
    "masked": lambda rng, a: np.ma.masked_array(a, rng.random(a.shape) < 0.1),
}


def _one(rng: np.random.Generator, values: Any, new: Any) -> list[Any]:
    changed = list(values)
    if changed:
        changed[int(rng.integers(len(changed)))] = new
    return changed


NUMBERS = (
    0,
    -1,
    1,
    2,
    3,
    7,
    2**31 - 1,
    2**31,
    -(2**31),
    2**63,
    10**30,
    1.0,
    2.5,
    True,
    None,
    "2",
    np.int64(2),
    np.float32(2),
)
SMALL = tuple(n for n in NUMBERS if not isinstance(n, int) or n <= 7)  # an op computes enormous paddings
LIST: dict[str, Change] = {
    "number": lambda rng, v: _one(rng, v, NUMBERS[int(rng.integers(len(NUMBERS)))]),
    "length": lambda rng, v: list(v)[:-1] if rng.random() < 0.5 else [*v, 1],
    "as tuple": lambda rng, v: tuple(v),
    "as array": lambda rng, v: np.array(v, ("int32", "int64", "uint8", "float32")[int(rng.integers(4))]),
    "no list": lambda rng, v: (None, 2, "1221", {}, np.zeros((2, 2)), iter([1, 2, 2, 1]))[int(rng.integers(6))],
}
WORDS = ("same", "VALID ", "", "NHWC", "NCHW", "EXPLICIT", "SAME", "VALID", b"SAME", None, 1, ["SAME"], "NCDHW", "\0")


def _positions(rng: np.random.Generator, a: np.ndarray) -> np.ndarray:
    """Return the array with one position, or border, moved."""
    a = a.copy()
    if a.size:
        a.reshape(-1)[int(rng.integers(a.size))] = (
            -1,
            0,
            1,
            5,
            a.max() + 1,
            np.iinfo(a.dtype).max,
            np.iinfo(a.dtype).min,
        )[int(rng.integers(7))]
    return a


def _shape(rng: np.random.Generator, a: np.ndarray) -> np.ndarray:
    a = a.copy()
    a[int(rng.integers(a.size))] = (-1, 0, 1, 2, 3, np.iinfo(a.dtype).max)[int(rng.integers(6))]
    return a


def changes(p: Param) -> dict[str, Change]:
    """Return the ways to spoil an argument, by name."""
    match p.kind:
        case Kind.SOURCE | Kind.DEST | Kind.RANGE:
            return ARRAY
        case Kind.INDEX | Kind.SEQUENCE:
            return {**ARRAY, "position": _positions}
        case Kind.SHAPE:
            return {**ARRAY, "size": _shape}
        case Kind.PADS:
            return {**LIST, "number": lambda rng, v: _one(rng, v, SMALL[int(rng.integers(len(SMALL)))])}
        case Kind.SIZES | Kind.SIZES_TENSOR | Kind.RATIO:
            return LIST
        case Kind.PADDING | Kind.FORMAT:
            return {"word": lambda rng, v: WORDS[int(rng.integers(len(WORDS)))]}
        case Kind.FLAG:
            return {"flag": lambda rng, v: (0, 1, "no", None, 2.5, np.bool_(True))[int(rng.integers(6))]}
        case Kind.SEED:
            return {"seed": lambda rng, v: (0, 1, -5, 2**63, -(2**63), 1.5, "7", True, 2**63 - 1)[int(rng.integers(9))]}
        case Kind.INDEX_TYPE:
            return {
                "type": lambda rng, v: ("int32", "int64", "int16", np.int32, "float32", None, 5, "x")[
                    int(rng.integers(8))
                ]
            }
    return {}


def spoilt(rng: np.random.Generator, case: Case, args: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Spoil one argument; return the name of the change and the arguments. Some of these calls are still right."""
    able = [p for p in case.row.params if p.name in args and changes(p)]
    p = able[int(rng.integers(len(able)))]
    ways = changes(p)
    way = list(ways)[int(rng.integers(len(ways)))]
    value = args[p.name]
    value = np.asarray(value) if p.kind in (Kind.RANGE, Kind.INDEX, Kind.SEQUENCE, Kind.SHAPE) else value
    return f"{p.name} ({way})", {**args, p.name: ways[way](rng, value)}
