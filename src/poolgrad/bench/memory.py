"""Peak memory of a call above its inputs and result, measured in a process of its own."""

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
    """Whether this system can say how much memory a call took at its peak."""
    return STATUS.exists() and CLEAR.exists()


def extra(cell: Cell) -> int:
    """Bytes that the first call of this size needs at its peak besides inputs and result; Linux only.

    The inputs come from another process, so that no buffer that the core keeps for later calls is there before.
    """
    return int(_alone(_measure, cell, _alone(data.make, cell)))


def _alone(function: Callable[..., Any], *args: Any) -> Any:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(function, *args).result()


def _measure(cell: Cell, arrays: Arrays) -> int:
    tiny = small(cell, 1)
    Ours().prepare(tiny, data.make(tiny)).call()  # threads and their stacks are there from the first call on
    return growth(Ours().prepare(cell, arrays).call)


def growth(call: Callable[[], Any]) -> int:
    """Bytes that a call needs at its peak besides what it returns, an array or a tuple of them."""
    _return_memory_at_once()
    CLEAR.write_text("5")  # the kernel forgets the peak, and keeps it itself: nothing is sampled, nothing is missed
    before = _kib("VmRSS")
    value = call()
    peak = _kib("VmHWM")
    outs = value if isinstance(value, tuple) else (value,)
    return (peak - before) * 1024 - sum(int(out.nbytes) for out in outs)


def _return_memory_at_once() -> None:
    """Fixes malloc's threshold: it would grow, and freed arrays would stay and hide what a call needs."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_MMAP_THRESHOLD, 2**16)


def _kib(key: str) -> int:
    return next(int(line.split()[1]) for line in STATUS.read_text().splitlines() if line.startswith(key))
