"""oneDNN: primitives made in advance, results in existing arrays; built with the system compiler.

The newest library is that of the package `onednn-devel`, which lies in the environment's `include` and `lib`; else the system's is used.
"""

from __future__ import annotations

import atexit
import ctypes
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..cells import Cell
from ..data import Array, Arrays, dtype_of
from .base import Peer, Run

SOURCE = Path(__file__).with_name("onednn.cpp")
TYPES = {"float32": 0, "bfloat16": 1, "float16": 2, "uint8": 3, "int8": 4}


def build() -> Any:
    """Compile the library into a separate directory; raise if the compiler or oneDNN is missing."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise FileNotFoundError("no C++ compiler")
    folder = tempfile.mkdtemp(prefix="poolgrad-onednn-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    failures = []
    for number, places in enumerate((_environment(), ())):
        target = Path(folder, f"libpool{number}.so")
        command = [compiler, "-std=c++17", "-O1", "-shared", "-fPIC", *places, str(SOURCE), "-o", str(target), "-ldnnl"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            failures.append(done.stderr.strip().split("\n")[0])
            continue
        try:
            return _declared(ctypes.CDLL(str(target)))
        except OSError as error:
            failures.append(str(error))
    raise FileNotFoundError("cannot build against onednn-devel or libdnnl-dev: " + "; ".join(failures))


def _environment() -> tuple[str, ...]:
    """Return the compiler's options for the headers and libraries of this environment, which the libraries need, too."""
    include, lib = Path(sys.prefix, "include"), Path(sys.prefix, "lib")
    if not (lib / "libdnnl.so").exists():
        return ()
    return f"-I{include}", f"-L{lib}", f"-Wl,-rpath,{lib}", "-Wl,--disable-new-dtags"


def _declared(library: Any) -> Any:
    library.pool_make.restype = ctypes.c_void_p
    library.pool_failure.restype = library.pool_version.restype = ctypes.c_char_p
    library.pool_forward.argtypes = library.pool_backward.argtypes = [ctypes.c_void_p] * 3
    library.pool_free.argtypes = [ctypes.c_void_p]
    return library


class OneDnn:
    """Pooling primitives; `given` times only the backward primitive, with its workspace filled before."""

    name = "onednn"

    def __init__(self, library: Any, given: bool) -> None:
        self.library, self.given = library, given

    def version(self) -> str:
        """Return the library's version."""
        return str(self.library.pool_version().decode())

    def can(self, cell: Cell) -> str | None:
        """Accept all but fractional windows and second order."""
        if cell.fractional:
            return "no fractional pooling"
        if cell.op.order == 2:
            return "no second order"
        if self.given and not (cell.maximal and cell.op.order):
            return "needs no workspace"
        return None if cell.dtype in TYPES else f"no {cell.dtype}"

    def prepare(self, cell: Cell, arrays: Arrays) -> Run:
        """Make the primitives, and one result that every call fills."""
        pool = self._make(cell)
        forward = self._step(self.library.pool_forward, pool, arrays.x, y := np.empty(cell.dest, dtype_of(cell)))
        if cell.op.order == 0:
            return Run(self._chain(y, forward))
        dx = np.empty(cell.shape, dtype_of(cell))
        backward = self._step(self.library.pool_backward, pool, arrays.g, dx)
        if self.given:
            forward()
        return Run(self._chain(dx, backward) if self.given or not cell.maximal else self._chain(dx, forward, backward))

    def _make(self, cell: Cell) -> _Handle:
        def longs(values: Any) -> Any:
            values = list(values)
            return (ctypes.c_int64 * len(values))(*values)

        def planar(shape: tuple[int, ...]) -> Any:
            return longs(shape if cell.first else (shape[0], shape[-1], *shape[1:-1]))

        extents = cell.extents
        pool = self.library.pool_make(
            cell.op.spatial, int(cell.maximal), TYPES[cell.dtype], int(not cell.first), int(cell.op.order > 0),
            planar(cell.shape), planar(cell.dest), longs(cell.ksize), longs(cell.strides),
            longs(e.before for e in extents), longs(e.after for e in extents),
        )  # fmt: skip
        if not pool:
            raise NotImplementedError(self.library.pool_failure().decode())
        return _Handle(self.library, pool)

    def _step(self, function: Any, pool: _Handle, source: Array, dest: Array) -> Callable[[], None]:
        read, written = source.ctypes.data, dest.ctypes.data
        kept = (pool, source, dest)  # keeps the pointed-to arrays alive

        def step() -> None:
            if not function(kept[0].pool, read, written):
                raise RuntimeError(self.library.pool_failure().decode())

        return step

    def _chain(self, out: Array, *steps: Callable[[], None]) -> Callable[[], Array]:
        if len(steps) == 1:
            only = steps[0]

            def one() -> Array:
                only()
                return out

            return one

        def all_steps() -> Array:
            for step in steps:
                step()
            return out

        return all_steps


class _Handle:
    """A pool of the library, freed with this object."""

    def __init__(self, library: Any, pool: int) -> None:
        self.pool = pool
        weakref.finalize(self, library.pool_free, pool)


def peers() -> list[Peer]:
    """Return both forms, if the library can be built."""
    library = build()
    return [OneDnn(library, given) for given in (False, True)]
