"""Let each memory request of the native module fail, alone or with every later one; print the op and the outcome if it is wrong.

    LD_PRELOAD=scarce.so python tests/robustness/scarcity.py

A call with a failing request raises MemoryError or, where it can do without, gives the right bits; the next call works.
"""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jobs

import poolgrad
from poolgrad import _core, raw_ops
from poolgrad._windows import sliding

scarce = ctypes.CDLL(None)
MOST = 1000  # requests of one call


def find_module() -> None:
    """Tell the shim where the native module lies."""
    with open("/proc/self/maps") as file:
        spans = [line.split()[0].split("-") for line in file if line.rstrip().endswith(_core.__file__)]
    scarce.module(ctypes.c_void_p(int(spans[0][0], 16)), ctypes.c_void_p(int(spans[-1][1], 16)))


def attempt(job: Any, n: int, lasting: bool) -> tuple[bool, str]:
    """Let the n-th request fail, or all from it on; return True if there was one, and a text if the outcome is wrong."""
    getattr(raw_ops, job[0]).__globals__["_runs"].clear()  # so that the call makes its plan anew
    sliding.checked_sliding_axis.cache_clear()
    text = ""
    scarce.fail_at(ctypes.c_long(n), lasting)
    try:
        fine = jobs.right(job)
        reached = bool(scarce.failed())
        text = "" if fine else "wrong bits"
    except BaseException as error:
        reached = bool(scarce.failed())
        text = "" if isinstance(error, MemoryError) and reached else repr(error)
    scarce.fail_at(ctypes.c_long(0), False)
    if not text and not jobs.right(job):
        text = "the next call is wrong"
    return reached, text


def on_a_new_thread(*args: Any) -> tuple[bool, str]:
    """Attempt on a thread that has no working memory yet, and so has to ask for it."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(attempt, *args).result()


def main() -> None:
    """Attempt all jobs on one thread, on two, and on a new one that gets no memory at all from its n-th request on."""
    made, failed = jobs.jobs(), 0
    find_module()
    poolgrad.set_kept_memory(0)
    for threads, lasting in ((1, False), (2, False), (1, True)):
        poolgrad.set_num_threads(threads)
        for job in made:
            for n in range(1, MOST):
                reached, text = (on_a_new_thread if lasting else attempt)(job, n, lasting)
                if text:
                    print(f"{job[0]}, request {n}{' and all after it' * lasting}, {threads} threads: {text}")
                if not reached:
                    break
                failed += 1
    print(failed)


if __name__ == "__main__":
    main()
