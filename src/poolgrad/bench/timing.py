"""The clock: rounds in which every contestant has a turn, until the time is used up."""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

BURST = 0.03  # seconds that a contestant's turn takes, or one call;
CALLS = 8  # or so many calls, if those take no more than
LONGEST = 0.08  # seconds: the first calls of a turn find the arrays of the one before in the caches
SLICE = 2e-3  # seconds of calls that are timed at once,
BATCHED = 1e-4  # if one is shorter than this: below it the clock's own cost would show
SETTLE = 0.003  # seconds after which it is looked whether threads of the one before still spin:
SPINS = 0.1  # OpenMP's do for up to 10 ms, onnxruntime's for 50; after so many seconds the turn begins all the same
SLOW = 4.0  # a contestant this many times slower than the fastest has enough turns after LEAST,
COSTLY = 0.03  # if a turn of it takes more than this share of the budget
LEAST = 1  # rounds; with the first call that makes two times of each


@dataclass
class Entry:
    """A contestant in a race: its call and every time it took, in seconds."""

    name: str
    call: Callable[[], Any]
    first: float
    times: list[float] = field(default_factory=list)
    error: str = ""

    @property
    def best(self) -> float:
        """The shortest time so far."""
        return min(self.times, default=self.first)


def once(call: Callable[[], Any]) -> tuple[Any, float]:
    """The value of a call and the seconds it took."""
    began = time.perf_counter()
    value = call()
    return value, time.perf_counter() - began


def settle() -> None:
    """Waits until no thread of this process is busy: whoever comes next shall have all processors."""
    end = time.perf_counter() + SPINS
    while time.perf_counter() < end:
        before = time.process_time()
        time.sleep(SETTLE)
        if time.process_time() - before < SETTLE / 4:
            return


def turn(entry: Entry) -> None:
    """One burst of calls, as many as fit; how many are timed at once follows the best so far, not the first."""
    settle()
    call, start = entry.call, time.perf_counter()
    for calls in itertools.count(1):
        best = entry.best
        count = 1 if best >= BATCHED else max(1, int(SLICE / max(best, 1e-7)))
        began = time.perf_counter()
        for _ in range(count):
            call()
        now = time.perf_counter()
        entry.times.append((now - began) / count)
        if now - start >= (BURST if calls >= CALLS else LONGEST):
            return


def race(entries: list[Entry], budget: float, patience: float = 2.0) -> None:
    """Lets all run in turns for `budget` seconds, at least once each; a first call beyond `patience` is enough."""
    end = time.perf_counter() + budget
    collecting = gc.isenabled()
    gc.disable()
    try:
        rounds = 0
        while rounds < LEAST or time.perf_counter() < end:
            _round(entries, rounds, patience, end, budget)
            rounds += 1
            if not any(e.first <= patience and not e.error for e in entries):
                return
    finally:
        if collecting:
            gc.enable()


def _round(entries: list[Entry], rounds: int, patience: float, end: float, budget: float) -> None:
    running = [e for e in entries if not e.error and e.first <= patience]
    fastest = min((e.best for e in running), default=0.0)
    for entry in running:
        slow = entry.best > SLOW * fastest and entry.best > COSTLY * budget
        if rounds >= LEAST and (slow or time.perf_counter() + entry.best > end + BURST):
            continue
        try:
            turn(entry)
        except Exception as error:  # a peer's failure is a finding, not ours
            entry.error = f"{type(error).__name__}: {error}"
