"""Time contestants in rounds: each has a turn per round, until the time is used up."""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

BURST = 0.03  # seconds of a contestant's turn, at least one call;
CALLS = 8  # or this many calls, if they take no more than
LONGEST = 0.08  # seconds: in the first calls of a turn the caches hold the arrays of the turn before
SLICE = 2e-3  # seconds of calls timed together,
BATCHED = 1e-4  # if a call is shorter than this: else the clock's own cost would show
SETTLE = 0.003  # seconds between checks if threads of the contestant before still spin:
SPINS = 0.1  # OpenMP's spin up to 10 ms, onnxruntime's 50; start the turn after this many seconds in any case
SLOW = 4.0  # a contestant this many times slower than the fastest stops after LEAST turns,
COSTLY = 0.03  # if its turn takes more than this share of the budget
LEAST = 1  # rounds; with the first call, two times of each
TURNS = 16  # of both sides of a duel in its seconds, at least two each;
AGAIN, LONGER = 3, 2  # so many more tries if the outcome is doubtful, each so many times longer


@dataclass
class Entry:
    """A contestant in a race: its call and all its times, in seconds."""

    name: str
    call: Callable[[], Any]
    first: float
    times: list[float] = field(default_factory=list)
    error: str = ""

    @property
    def best(self) -> float:
        """Return the shortest time so far."""
        return min(self.times, default=self.first)


@dataclass(frozen=True)
class Duel:
    """The best times of two calls that took turns, in seconds; how many times each has, and how often they were timed again."""

    one: float
    other: float
    times: int
    again: int

    @property
    def ratio(self) -> float:
        """Return the first call's time over the second's."""
        return self.one / self.other


def once(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return the value of a call and the seconds it took."""
    began = time.perf_counter()
    value = call()
    return value, time.perf_counter() - began


def settle() -> None:
    """Wait until no thread of this process is busy, so that the next contestant has all processors."""
    end = time.perf_counter() + SPINS
    while time.perf_counter() < end:
        before = time.process_time()
        time.sleep(SETTLE)
        if time.process_time() - before < SETTLE / 4:
            return


def turn(entry: Entry, burst: float = BURST) -> None:
    """Time calls for `burst` seconds, at least one. The best time so far, not the first, sets how many to time together."""
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
        if now - start >= (burst if calls >= CALLS else burst * (LONGEST / BURST)):
            return


def race(entries: list[Entry], budget: float, patience: float = 2.0) -> None:
    """Run all in turns for `budget` seconds, at least once each; stop a contestant whose first call exceeds `patience`."""
    end = time.perf_counter() + budget
    with without_collector():
        rounds = 0
        while rounds < LEAST or time.perf_counter() < end:
            _round(entries, rounds, patience, end, budget)
            rounds += 1
            if not any(e.first <= patience and not e.error for e in entries):
                return


@contextmanager
def without_collector() -> Iterator[None]:
    """Switch the garbage collector off for a block: it would run in somebody's turn."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
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


def duel(one: Callable[[], Any], other: Callable[[], Any], seconds: float, doubtful: Callable[[float], bool]) -> Duel:
    """Time two calls in turns, who begins changing each round; go on, longer, while the ratio of their times is doubtful."""
    entries = [Entry(name, call, min(once(call)[1], once(call)[1])) for name, call in (("one", one), ("other", other))]
    first, second = entries
    burst = min(BURST, seconds / TURNS)
    with without_collector():
        for again in range(AGAIN + 1):
            end, rounds = time.perf_counter() + seconds * (LONGER if again else 1), 0
            while rounds < 2 or time.perf_counter() < end:
                for entry in entries if rounds % 2 == 0 else reversed(entries):
                    turn(entry, burst)
                rounds += 1
            if not doubtful(first.best / second.best):
                break
    return Duel(first.best, second.best, min(len(first.times), len(second.times)), again)
