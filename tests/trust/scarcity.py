"""Each request for memory of the native module fails, alone or with all that follow; prints the op and what came of it where that is not fine.

    LD_PRELOAD=scarce.so python tests/trust/scarcity.py

A call with a failing request raises MemoryError or, where it can do without, gives the right bits; the next call works.
"""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jobs

import poolgrad
from poolgrad import _core, raw_ops, windows

scarce = ctypes.CDLL(None)
MOST = 1000  # requests of one call


def find_module() -> None:
    """Tells the shim where the native module lies."""
    with open("/proc/self/maps") as file:
        spans = [line.split()[0].split("-") for line in file if line.rstrip().endswith(_core.__file__)]
    scarce.module(ctypes.c_void_p(int(spans[0][0], 16)), ctypes.c_void_p(int(spans[-1][1], 16)))


def attempt(job: Any, n: int, lasting: bool) -> tuple[bool, str]:
    """Whether there was an n-th request, and what is wrong with its failing, or with that of all from it on."""
    getattr(raw_ops, job[0]).__globals__["_runs"].clear()  # so that the plan is made anew
    windows.clip.__wrapped__.cache_clear()
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
    """An attempt by a thread that has no working memory yet, and so has to ask for it."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(attempt, *args).result()


def main() -> None:
    """All jobs, on one thread and on two, and on a new one from whose n-th request on there is no memory at all."""
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
