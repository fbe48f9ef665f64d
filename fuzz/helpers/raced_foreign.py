"""Races of the table of plain functions (poolgrad.h), which extensions call: by address, without Python's lock."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from overwritten import Case, Maker, Rng, pick
from raced_windows import DTYPES, Windows, dtype_of, true_taps, windows

from poolgrad import _core

_P, _I, _L, _D = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64, ctypes.c_double


class Axis(ctypes.Structure):
    """A pg_axis."""

    _fields_ = (
        *((name, _I) for name in ("kind", "padding", "flags", "unused")),
        *((name, _L) for name in ("cells", "windows", "window", "stride", "dilation", "before", "after")),
        *((name, _P) for name in ("start", "stop", "span")),
        ("offset", _D),
    )


class Info(ctypes.Structure):
    """A pg_plan_info."""

    _fields_ = (("source", _L), ("dest", _L), ("taps", _I), ("rank", _I), ("cells", _L * 16), ("windows", _L * 16))


class Array(ctypes.Structure):
    """A pg_input or pg_output."""

    _fields_ = (("data", _P), ("size", _L))


class Error(ctypes.Structure):
    """A pg_error."""

    _fields_ = (("code", _I), ("at", _L), ("text", ctypes.c_char * 320))


WINDOWS = 1  # PG_AXIS_WINDOWS
_OVER = (_I, _P, _P, _I)  # a code, the plan, the run, the dtype
TABLE = {  # in the order of pg_table: the types that each function returns and takes, without the error at the end
    "get_abi": (_I,),
    "version": (ctypes.c_char_p,),
    "isa": (ctypes.c_char_p,),
    "threads": (_I, _I),
    "plan_new": (_I, _L, _L, _I, _P, _P),
    "plan_drop": (None, _P),
    "plan_describe": (_I, _P, _P),
    "draw": (_I, _I, _P, _P, _I, ctypes.c_uint64, ctypes.c_uint64, _P, _L),
    "fold": (*_OVER, _I, Array, Array),
    "spread": (*_OVER, _I, _I, Array, Array),
    "select": (*_OVER, _I, _I, Array, Array),
    "choose": (*_OVER, _I, _I, Array, Array, Array),
    "argmax": (*_OVER, _I, _L, Array, Array, Array),
    "pick": (*_OVER, Array, Array, Array),
    "place": (*_OVER, Array, Array, Array),
    "route": (*_OVER, Array, Array, Array, Array),
    "recall": (*_OVER, Array, Array, Array, Array),
    "near": (*_OVER, _D, Array, Array, Array, Array),
    "gather": (_I, _P, _I, _I, _L, _I, Array, Array, Array),
    "scatter": (_I, _P, _I, _I, _L, _I, _I, Array, Array, Array),
    "average": (*_OVER, _I, _D, Array, Array),
    "squares": (*_OVER, Array, Array),
}
PLAIN = ("get_abi", "version", "isa", "threads", "plan_drop")  # without an error
OVER_CELLS = tuple(name for name, types in TABLE.items() if Array in types)


def foreign() -> dict[str, Any]:
    """Return the functions of the table."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = _P, (ctypes.py_object, ctypes.c_char_p)
    address = pointer(_core.foreign(), b"poolgrad.table.2")
    entries = ctypes.cast(address + 8, ctypes.POINTER(_P * len(TABLE))).contents
    typed = {name: types if name in PLAIN else (*types, _P) for name, types in TABLE.items()}
    return {name: ctypes.CFUNCTYPE(*types)(at) for (name, types), at in zip(typed.items(), entries, strict=True)}


FOREIGN = foreign()


def call(name: str, *arguments: Any) -> None:
    """Call a function of the table; raise ValueError with the text of its error."""
    error = Error()
    if FOREIGN[name](*arguments, ctypes.addressof(error)):
        raise ValueError(error.text.decode())


def held(array: np.ndarray) -> Array:
    """Return an array as its address and its size."""
    return Array(array.ctypes.data, array.size)


def foreign_plan(w: Windows, start: np.ndarray, stop: np.ndarray) -> Any:
    """Return a plan of the table, from boundaries one after the other."""
    axes, at = (Axis * len(w.axes))(), 0
    for axis, (cells, starts, *_) in zip(axes, w.axes, strict=True):
        axis.kind, axis.cells, axis.windows = WINDOWS, cells, len(starts)
        axis.start, axis.stop = (a.ctypes.data + 8 * at for a in (start, stop))
        at += len(starts)
    made = _P()
    call("plan_new", w.outer, w.inner, len(axes), ctypes.addressof(axes), ctypes.addressof(made))
    return made


def foreign_case(rng: Rng, make: Maker, name: str) -> Case:
    """Return a case of the table: a plan from boundaries that are overwritten, or another function with a right plan."""
    name = name.removeprefix("foreign.")
    w = windows(rng)
    dtype = int(rng.integers(4 if name in ("fold", "spread", "near", "average", "squares") else len(DTYPES)))
    start, stop = (np.concatenate([a[i] for a in w.axes]).astype(np.int64) for i in (1, 2))
    if name not in OVER_CELLS:
        start, stop = make.input(start), make.input(stop)

        def run() -> None:
            made, info = foreign_plan(w, start, stop), Info()
            call("plan_describe", made, ctypes.addressof(info))
            FOREIGN["plan_drop"](made)
            assert [info.source, info.dest] == [prod(w.source), prod(w.dest)]

        return make.case(f"foreign.{name}", run)
    kind = dtype_of(DTYPES[dtype])

    def over(shape: list[int]) -> np.ndarray:
        return make.data(shape, kind)

    def new(shape: list[int]) -> np.ndarray:
        return make.result(shape, kind)

    def taps() -> np.ndarray:
        return make.input(true_taps(rng, w))

    def index() -> np.ndarray:
        return make.input(rng.integers(0, max(prod(w.source), 1), w.dest))

    n, m, flip = w.source, w.dest, int(rng.random() < 0.5)
    arrays: dict[str, tuple[tuple[Any, ...], Callable[[], tuple[np.ndarray, ...]]]] = {  # rules, then arrays
        "fold": ((int(pick(rng, (4, 5))),), lambda: (over(n), new(m))),
        "spread": ((int(pick(rng, (0, 2, 3))), 0), lambda: (over(m), new(n))),
        "select": ((int(pick(rng, (0, 1, 2, 3, 4))), 0), lambda: (over(n), new(m))),
        "choose": ((flip, flip), lambda: (over(n), new(m), make.result(m, w.tap))),
        "argmax": ((10, 0), lambda: (over(n), new(m), make.result(m, np.int64))),
        "pick": ((), lambda: (over(n), taps(), new(m))),
        "place": ((), lambda: (over(m), taps(), new(n))),
        "route": ((), lambda: (over(n), over(m), over(m), new(n))),
        "recall": ((), lambda: (over(n), over(m), over(n), new(m))),
        "near": ((1e-5,), lambda: (over(n), over(m), over(m), new(n))),
        "gather": ((10, 1, 1), lambda: (over(n), index(), new(m))),
        "average": ((flip, 3.0), lambda: (over(n), new(m))),
        "squares": ((), lambda: (over(n), make.result(m, kind if kind.itemsize > 2 else np.float32))),  # sums of halves
        "scatter": ((10, 1, 1, flip), lambda: (over(m), index(), new(n))),
    }
    rules, given = arrays[name][0], arrays[name][1]()

    def run_verb() -> None:
        if name in ("gather", "scatter"):
            return call(name, None, dtype, *rules, *map(held, given))
        made = foreign_plan(w, start, stop)
        try:
            call(name, made, None, dtype, *rules, *map(held, given))
        finally:
            FOREIGN["plan_drop"](made)

    return make.case(f"foreign.{name}", run_verb)
