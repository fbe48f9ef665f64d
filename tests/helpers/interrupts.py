"""Interrupts long calls at random moments and prints how long each took to give up.

    python tests/helpers/interrupts.py [rounds] [threads ...]

Each line: case, threads, milliseconds from the signal to the exception, growth of the resident size in MiB. A call that was
done before its signal came is tried again with a shorter delay.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from support import rss

import poolgrad
from poolgrad import _core, raw_ops
from poolgrad._kernels.native import native
from poolgrad._pooling.adaptive_global import adaptive
from poolgrad.windows import Plan

Call = Callable[[], Any]


def pool(op: str, x: np.ndarray, k: tuple[int, ...], s: tuple[int, ...], **more: Any) -> Call:
    """Return a call of a forward op with VALID padding."""
    name = "value" if op == "AvgPool" else "input"
    return lambda: getattr(raw_ops, op)(**{name: x}, ksize=[1, *k, 1], strides=[1, *s, 1], padding="VALID", **more)


def grad(x: np.ndarray, k: int) -> Call:
    """Return a gradient by windows of k by k, one step apart."""
    sizes = {"ksize": [1, k, k, 1], "strides": [1, 1, 1, 1], "padding": "SAME"}
    return lambda: raw_ops.MaxPoolGrad(orig_input=x, orig_output=x, grad=x, **sizes)


def scattered(cells: int) -> Call:
    """Return a call that puts gradients at random places of one image."""
    x = np.zeros((1, 1, cells, 1), np.float32)
    where = np.random.default_rng(0).integers(0, cells, x.shape)
    sizes = {"ksize": [1, 1, 1, 1], "strides": [1, 1, 1, 1], "padding": "SAME"}
    return lambda: raw_ops.MaxPoolGradWithArgmax(input=x, grad=x, argmax=where, **sizes)


def plan(cells: int) -> Call:
    """Return a call that makes the core's plan of windows of three cells, one step apart."""
    at = np.arange(cells)
    axis = (cells, np.maximum(at - 1, 0), np.minimum(at + 2, cells), None)
    return lambda: _core.Plan((cells,), (cells,), 1, 1, (axis,), False)


def tables(cells: int) -> Call:
    """Return a call that makes windows of two cells and the core's plan of them: the first call over a long axis."""
    return lambda: native(Plan((cells,), {0: adaptive(cells, cells // 2)}))


def image(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Return zeros, all of which tie."""
    return np.zeros(shape, dtype)


def turned(*shape: int) -> np.ndarray:
    """Return an array that has to be copied first."""
    return image(*shape[::-1]).T


RANGES = {"min_input": np.float32(0), "max_input": np.float32(1)}

# In each case one thing is long: the window, the plan, the row, the one cell, the waits for memory, or the copy.
CASES: dict[str, Callable[[], Call]] = {
    "31x31 mean": lambda: pool("AvgPool", image(1, 1024, 1024, 8), (31, 31), (1, 1)),
    "31x31 mean of integers": lambda: pool(
        "QuantizedAvgPool", image(1, 256, 256, 32, dtype=np.uint8), (31, 31), (1, 1), **RANGES
    ),
    "31x31 argmax": lambda: pool("MaxPoolWithArgmax", image(1, 256, 256, 16), (31, 31), (1, 1)),
    "31x31 gradient": lambda: grad(image(1, 512, 512, 8), 31),
    "3x3 gradient": lambda: grad(image(32, 256, 256, 8), 3),
    "5x5x5 mean": lambda: pool("AvgPool3D", image(1, 64, 64, 64, 16), (5, 5, 5), (1, 1, 1)),
    "5x5x5 maximum of halves": lambda: pool(
        "MaxPool3D", image(1, 64, 64, 64, 8, dtype=np.float16), (5, 5, 5), (1, 1, 1)
    ),
    "one row": lambda: pool("AvgPool", image(1, 1, 1 << 20, 1), (1, 250), (1, 1)),
    "one cell of many lanes": lambda: pool("AvgPool", image(1, 2, 1 << 25, 1), (2, 1), (1, 1)),
    "positions": lambda: scattered(1 << 23),
    "a plan": lambda: plan(1 << 23),
    "tables and a plan": lambda: tables(1 << 23),
    "a copy": lambda: pool("MaxPool", turned(8, 512, 512, 32), (2, 2), (2, 2)),
}
SMALL = np.arange(1 << 17, dtype=np.float32).reshape(1, 64, 64, 32)


def right_again() -> bool:
    """Return True if the pool still works, on all its threads."""
    got = raw_ops.MaxPool(input=SMALL, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    return bool((got == SMALL[:, 1::2, 1::2]).all())


def interrupt(call: Call, delay: float) -> float | None:
    """Return the seconds from the signal to KeyboardInterrupt, or None if the call was done before the signal."""
    sent: list[float] = []
    begun: list[bool] = []  # not an Event: the signal must not interrupt its locks
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell does not have this handler

    def send() -> None:
        while not begun:
            time.sleep(0.0005)
        time.sleep(delay)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    sender, done = threading.Thread(target=send), False
    try:
        sender.start()
        begun.append(True)
        call()
        done = True
        sender.join()
        time.sleep(1)  # the signal is handled here at the latest
    except KeyboardInterrupt:
        now = time.perf_counter()
        sender.join()
        return None if done else now - sent[0]
    raise AssertionError("the signal was lost")


def measure(name: str, rounds: int, threads: int) -> list[tuple[float, float]]:
    """Return latency in ms and growth in MiB, for so many interrupted calls."""
    call, found = CASES[name](), []
    with poolgrad.threads(threads):
        call()
        assert right_again()
        begun = time.perf_counter()
        call()
        longest = time.perf_counter() - begun
        while len(found) < rounds:
            before = rss()
            took = interrupt(call, random.uniform(0.05, 0.9) * longest)
            assert right_again(), "the call after an interrupt is wrong"
            if took is None:
                longest *= 0.8
            else:
                found.append((1000 * took, (rss() - before) / 2**20))
    return found


def main() -> None:
    """Measure all cases."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    poolgrad.set_kept_memory(0)
    for name in CASES:
        for threads in map(int, sys.argv[2:] or ["1", "2"]):
            for milliseconds, grown in measure(name, rounds, threads):
                print(f"{name}\t{threads}\t{milliseconds:.1f}\t{grown:.1f}", flush=True)


if __name__ == "__main__":
    main()
