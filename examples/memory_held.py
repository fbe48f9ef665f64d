"""Measure the memory that a TensorFlow tape holds for backward, for its own pools and for poolgrad's.

    python examples/memory_held.py                        # about two minutes

Each pool runs in a separate process, which keeps the tapes and drops inputs and outputs. The growth of the resident size over
the last twelve tapes, divided by their outputs, is the cost of one output. The figure is exact to about a byte.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

FLAT, SOLID = (4, 128, 128, 64), (4, 16, 64, 64, 16)
POOLS: dict[str, tuple[tuple[int, ...], Callable[..., Any], Callable[..., Any]]] = {
    "max_pool 2x2": (
        FLAT,
        lambda tf, x: tf.nn.max_pool2d(x, 2, 2, "VALID"),
        lambda pool, x: pool.max_pool(x, 2, axes=(1, 2)),
    ),
    "avg_pool 2x2": (
        FLAT,
        lambda tf, x: tf.nn.avg_pool2d(x, 2, 2, "VALID"),
        lambda pool, x: pool.avg_pool(x, 2, axes=(1, 2)),
    ),
    "max_pool 2x2x2": (
        SOLID,
        lambda tf, x: tf.nn.max_pool3d(x, 2, 2, "VALID"),
        lambda pool, x: pool.max_pool(x, 2, axes=(1, 2, 3)),
    ),
    "fractional_max_pool by 1.5": (
        FLAT,
        lambda tf, x: tf.nn.fractional_max_pool(x, [1, 1.5, 1.5, 1], seed=1)[0],
        lambda pool, x: pool.fractional_max_pool(x, 1.5, axes=(1, 2), seed=1),
    ),
}
FIRST, TAPES = 3, 12  # tapes to warm up the allocators, and tapes that count


def resident() -> int:
    """Return the resident bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def held(name: str, whose: str) -> float:
    """Return the bytes per output that the tapes of a pool hold."""
    import tensorflow as tf

    import poolgrad.tensorflow as ours

    shape, theirs, mine = POOLS[name]
    tapes, outputs, before = [], 0, 0
    for k in range(FIRST + TAPES):
        if k == FIRST:
            gc.collect()
            outputs, before = 0, resident()
        x = tf.random.uniform(shape)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = mine(ours, x) if whose == "poolgrad" else theirs(tf, x)
        outputs += int(tf.size(y))
        tapes.append(tape)
        del x, y, tape
    gc.collect()
    return (resident() - before) / outputs


def main() -> None:
    """Measure each figure in a process, then print the table."""
    if len(sys.argv) == 3:
        print(held(sys.argv[1], sys.argv[2]))
        return
    print(f"{'bytes per output':28}{'poolgrad':>10}{'tf.nn':>10}")
    quiet = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    for name in POOLS:
        asked = [[sys.executable, __file__, name, whose] for whose in ("poolgrad", "tf.nn")]
        found = [subprocess.run(ask, capture_output=True, text=True, check=True, env=quiet).stdout for ask in asked]
        print(f"{name:28}" + "".join(f"{float(text):10.1f}" for text in found), flush=True)


if __name__ == "__main__":
    main()
