"""Measure the peak memory of a call beyond its inputs and result, in a separate process."""

from __future__ import annotations

import ctypes
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from . import data
from .cells import Cell, small
from .data import Arrays
from .peers.ours import Ours

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
M_MMAP_THRESHOLD = -3


def supported() -> bool:
    """Return True if this system can tell the peak memory of a call."""
    return STATUS.exists() and CLEAR.exists()


def extra(cell: Cell) -> int:
    """Return the peak bytes of the first call of this size beyond its inputs and result; Linux only.

    The inputs come from another process, so that the core holds no buffers of earlier calls.
    """
    return int(_alone(_measure, cell, _alone(data.make, cell)))


def _alone(function: Callable[..., Any], *args: Any) -> Any:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(function, *args).result()


def _measure(cell: Cell, arrays: Arrays) -> int:
    tiny = small(cell, 1)
    Ours().prepare(tiny, data.make(tiny)).call()  # a first call starts the threads and their stacks
    return growth(Ours().prepare(cell, arrays).call)


def growth(call: Callable[[], Any]) -> int:
    """Return the peak bytes of a call beyond its result, an array or a tuple of arrays."""
    _return_memory_at_once()
    CLEAR.write_text("5")  # reset the kernel's record of the peak; it needs no sampling and misses nothing
    before = _kib("VmRSS")
    value = call()
    peak = _kib("VmHWM")
    outs = value if isinstance(value, tuple) else (value,)
    return (peak - before) * 1024 - sum(int(out.nbytes) for out in outs)


def _return_memory_at_once() -> None:
    """Fix malloc's threshold. If it grew, malloc would keep freed arrays, which would hide the need of a call."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_MMAP_THRESHOLD, 2**16)


def _kib(key: str) -> int:
    return next(int(line.split()[1]) for line in STATUS.read_text().splitlines() if line.startswith(key))
