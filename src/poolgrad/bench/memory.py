"""Peak memory of a call above its inputs and result, measured in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from .. import get_num_threads
from . import data
from .cells import Cell, read
from .peers.ours import Ours

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def _kib(key: str) -> int:
    return next(int(line.split()[1]) for line in STATUS.read_text().splitlines() if line.startswith(key))


def extra(cell: Cell) -> int:
    """Bytes that one call needs at its peak besides inputs and result; Linux only.

    The peak is reset by the kernel itself, so nothing is sampled and nothing is missed.
    """
    arrays = data.make(cell)
    prepared = Ours().prepare(cell, arrays)
    prepared.call()  # threads, their stacks and cached plans are there from the first call on
    CLEAR.write_text("5")
    before = _kib("VmRSS")
    value = prepared.call()
    peak = _kib("VmHWM")
    outs = value if isinstance(value, tuple) else (value,)
    # Plans and code may have grown by a page or two; a negative figure means that freed memory was used again.
    return (peak - before) * 1024 - sum(int(out.nbytes) for out in outs)


def measure(lines: list[str]) -> dict[str, int]:
    """The figures of problem lines, from a fresh process."""
    command = [sys.executable, "-m", "poolgrad.bench.memory", *lines]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, int] = json.loads(done.stdout)
    return found


def supported() -> bool:
    """Whether this system can say how much memory a call took at its peak."""
    return STATUS.exists() and CLEAR.exists()


if __name__ == "__main__":
    found = {cell.name: extra(cell) for cell in read(sys.argv[1:])}
    print(json.dumps({**found, "threads": get_num_threads()}))
