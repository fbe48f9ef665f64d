"""The ops on arrays that end, or begin, where no memory is: one cell too many and the process is gone.

A module like `poolgrad.raw_ops`, so that whatever calls that can call this: inputs are copied to such places, and results
are made in them.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from poolgrad import _core, raw_ops
from poolgrad._kernels import native
from poolgrad._ops.table import OPS

__all__ = list(OPS)

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class _Pages:
    """Memory between two pages that may not be touched."""

    def __init__(self, nbytes: int) -> None:
        self.size = -(-nbytes // PAGE) * PAGE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self.base = _libc.mmap(None, self.size + 2 * PAGE, 0, flags, -1, 0)
        if self.base in (None, ctypes.c_void_p(-1).value):
            raise MemoryError(f"mmap: {nbytes} bytes")
        if _libc.mprotect(self.base + PAGE, self.size, mmap.PROT_READ | mmap.PROT_WRITE):
            raise MemoryError(f"mprotect: {nbytes} bytes")

    def __del__(self) -> None:
        _libc.munmap(self.base, self.size + 2 * PAGE)


def guarded(shape: tuple[int, ...], dtype: Any, at_end: bool = True) -> np.ndarray:
    """Return an array whose last cell ends at a page that may not be touched, or whose first cell begins after one."""
    dtype = np.dtype(dtype)
    nbytes = prod(shape) * dtype.itemsize
    if nbytes == 0:
        return np.empty(shape, dtype)
    pages = _Pages(nbytes)
    address = pages.base + PAGE + (pages.size - nbytes if at_end else 0)
    memory = (ctypes.c_char * nbytes).from_address(address)
    memory.pages = pages  # keep the pages as long as the array
    array: np.ndarray = np.ndarray(shape, dtype, memory)
    array.view(np.uint8).reshape(-1)[:] = 0xA5 if dtype.isbuiltin == 1 else 0
    return array


def moved(array: np.ndarray, at_end: bool = True) -> np.ndarray:
    """Return a read-only copy of an array in guarded memory."""
    copy = guarded(array.shape, array.dtype, at_end)
    copy[...] = array
    copy.flags.writeable = False
    return copy


def guarded_verbs(at_end: bool = True) -> SimpleNamespace:
    """Return the native verbs; each array that they read or write is in guarded memory."""

    def simple(name: str, to_source: bool = False) -> Any:
        def run(plan: Any, *args: Any) -> Any:
            arrays = [moved(a, at_end) if isinstance(a, np.ndarray) else a for a in args]
            like = next(a for a in arrays if isinstance(a, np.ndarray))
            out = guarded(plan.source if to_source else plan.dest, like.dtype, at_end)
            return getattr(native, name)(plan, *arrays, out=out)

        return run

    def argmax(plan: Any, modulo: int, index: Any, x: Any) -> Any:
        y, where = guarded(plan.dest, x.dtype, at_end), guarded(plan.dest, index, at_end)
        _core.argmax(native.native(plan), modulo, moved(x, at_end), y, where)
        return y, where

    def choose(plan: Any, x: Any) -> Any:
        y, taps = guarded(plan.dest, x.dtype, at_end), guarded(plan.dest, native.tap_type(plan), at_end)
        _core.choose(native.native(plan), moved(x, at_end), y, taps)
        return y, taps

    def by_index(name: str, to_source: bool) -> Any:
        def run(plan: Any, items: int, absolute: bool, v: Any, index: Any) -> Any:
            out = guarded(plan.source if to_source else plan.dest, v.dtype, at_end)
            wrong = getattr(_core, name)(items, absolute, moved(v, at_end), moved(index, at_end), out)
            if wrong >= 0:
                raise native.Astray(wrong)
            return out

        return run

    found = {name: simple(name) for name in ("fold", "select", "recall", "pick")}
    found |= {name: simple(name, to_source=True) for name in ("spread", "near", "place")}
    return SimpleNamespace(
        **found,
        # y may be None, which has no memory to guard.
        route=lambda plan, x, g, y=None: simple("route", to_source=True)(plan, x, g, y),
        argmax=argmax,
        choose=choose,
        scatter=by_index("scatter", True),
        gather=by_index("gather", False),
    )


AT_END = {name: raw_ops.make(op, guarded_verbs()) for name, op in OPS.items()}
AT_BEGIN = {name: raw_ops.make(op, guarded_verbs(at_end=False)) for name, op in OPS.items()}
for _name, _function in AT_END.items():
    setattr(sys.modules[__name__], _name, _function)
