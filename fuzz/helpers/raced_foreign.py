"""Races of the table of plain functions, which XLA calls: by address, without Python's lock."""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

import numpy as np
from overwritten import Case, Maker, Rng, pick
from raced_windows import DTYPES, Windows, dtype_of, true_taps, windows

from poolgrad import _core


class Choice(ctypes.Structure):
    """The options of a maximum."""

    _fields_ = (("least", ctypes.c_bool), ("nan_wins", ctypes.c_bool))


_P, _I, _L = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
TABLE = {  # in the order of the table: the types that each function returns and takes, without the reason at the end
    "plan": (_P, _L, _L, _I, _P, _P, _P, _P, _P),
    "drop": (None, _P),
    "sizes": (None, _P, _P, _P, _P),
    "fold": (ctypes.c_bool, _P, _I, _I, _P, _P, _P),
    "spread": (ctypes.c_bool, _P, _I, _I, _P, _P, _P),
    "choose": (ctypes.c_bool, _P, _I, Choice, _P, _P, _P, _P),
    "pick": (ctypes.c_bool, _P, _I, _P, _P, _P, _P),
    "place": (ctypes.c_bool, _P, _I, _P, _P, _P, _P),
}


def foreign() -> dict[str, Any]:
    """Return the functions of the table."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = _P, (ctypes.py_object, ctypes.c_char_p)
    address = pointer(_core.foreign(), b"poolgrad.foreign.1")
    entries = ctypes.cast(address, ctypes.POINTER(_P * len(TABLE))).contents
    return {name: ctypes.CFUNCTYPE(*types)(at) for (name, types), at in zip(TABLE.items(), entries, strict=True)}


FOREIGN = foreign()


def checked(fine: Any, reason: Any) -> None:
    """Raise ValueError with the reason of a call that failed."""
    if not fine:
        raise ValueError(reason.value.decode())


def foreign_plan(w: Windows, start: np.ndarray, stop: np.ndarray) -> Any:
    """Return a plan of the table, from boundaries one after the other."""
    reason = ctypes.create_string_buffer(256)
    n, m = (np.array([f(a) for a in w.axes], np.int64) for f in (lambda a: a[0], lambda a: len(a[1])))
    data = (a.ctypes.data for a in (n, m, start, stop))
    made = FOREIGN["plan"](w.outer, w.inner, len(w.axes), *data, ctypes.addressof(reason))
    checked(made, reason)
    return made


def foreign_case(rng: Rng, make: Maker, name: str) -> Case:
    """Return a case of the table: a plan from boundaries that are overwritten, or another function with a right plan."""
    name = name.removeprefix("foreign.")
    w, dtype = windows(rng), int(rng.integers(len(DTYPES) if name in ("choose", "pick", "place") else 4))
    start, stop = (np.concatenate([a[i] for a in w.axes]).astype(np.int64) for i in (1, 2))
    if name in ("plan", "sizes", "drop"):
        start, stop = make.input(start), make.input(stop)
        sizes = np.zeros(3, np.int64)

        def run() -> None:
            made = foreign_plan(w, start, stop)
            FOREIGN["sizes"](made, *(sizes[i:].ctypes.data for i in range(3)))
            FOREIGN["drop"](made)
            assert sizes[:2].tolist() == [prod(w.source), prod(w.dest)]

        return make.case(f"foreign.{name}", run)
    kind, back = dtype_of(DTYPES[dtype]), name in ("spread", "place")
    v = make.data(w.dest if back else w.source, kind)
    out = make.result(w.source if back else w.dest, kind)
    taps = make.result(w.dest, w.tap) if name == "choose" else make.input(true_taps(rng, w))
    given = {"fold": (int(pick(rng, (4, 5))),), "spread": (int(pick(rng, (0, 2, 3))),)}.get(name, ())
    held = (v, out, taps) if name == "choose" else (v, taps, out) if name in ("pick", "place") else (v, out)
    more = (Choice(bool(rng.random() < 0.5), bool(rng.random() < 0.5)),) if name == "choose" else given

    def call() -> None:
        made, reason = foreign_plan(w, start, stop), ctypes.create_string_buffer(256)
        data = (a.ctypes.data for a in held)
        fine = FOREIGN[name](made, dtype, *more, *data, ctypes.addressof(reason))
        FOREIGN["drop"](made)
        checked(fine, reason)

    return make.case(f"foreign.{name}", call)
