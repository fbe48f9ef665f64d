"""Arrays and lists that threads, or another process through a mapped file, overwrite during a call."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from guarded_ops import guarded

Rng = np.random.Generator
GUARD = 128  # bytes on each side of a result


def pick(rng: Rng, values: Any) -> Any:
    """Return one of the values."""
    return values[int(rng.integers(len(values)))]


class Mapped:
    """A file in memory; another process switches the bytes in `live` between those in `good` and noise."""

    HEAD, ROOM = 64, 1 << 22

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = tempfile.TemporaryDirectory(dir=folder)
        path = Path(self.folder.name) / "mapped"
        path.write_bytes(bytes(self.HEAD + 2 * self.ROOM))
        self.head, self.live, self.good = parts(path)
        search = os.pathsep.join(filter(None, sys.path))
        command = [sys.executable, str(Path(__file__).resolve()), str(path), str(os.getpid())]
        # The child must not inherit this process's output: a reader of that output would wait for both processes to end.
        self.writer = subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": search}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.used = 0

    def take(self, nbytes: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return room for an array and for its true values; None if the file is full."""
        begin = -(-self.used // 64) * 64
        if begin + nbytes > self.ROOM:
            return None
        self.used = begin + nbytes
        return self.live[begin : self.used], self.good[begin : self.used]

    def rest(self) -> None:
        """Let the other process pause, and free the room."""
        self.head[0] = self.used = 0
        self.live[:] = 0

    def close(self) -> None:
        """End the other process."""
        self.head[1] = 1
        self.writer.wait(10)
        self.folder.cleanup()


def parts(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the parts of a mapped file: two numbers (bytes to write, 1 to end), the bytes that change, the true bytes."""
    head = np.memmap(path, np.int64, "r+", shape=(2,))
    whole = np.memmap(path, np.uint8, "r+", offset=0)
    live = whole[Mapped.HEAD : Mapped.HEAD + Mapped.ROOM]
    return head, live, whole[Mapped.HEAD + Mapped.ROOM :]


def write_forever(path: Path, parent: int) -> None:
    """Run the other process: overwrite the bytes in use until told to end, or until the parent is gone."""
    head, live, good = parts(path)
    rng = np.random.default_rng()
    noise = [
        rng.integers(0, 256, Mapped.ROOM, np.uint8),
        np.zeros(Mapped.ROOM, np.uint8),
        np.full(Mapped.ROOM, 255, np.uint8),
    ]
    turn = 0
    while not head[1] and os.getppid() == parent:
        used = int(head[0])
        if not used:
            time.sleep(0.001)
            continue
        live[:used] = noise[turn % 3][:used]
        live[:used] = good[:used]
        turn += 1


@dataclass
class Racing:
    """An array or list that is overwritten, its true values, and the wrong values that it may hold."""

    live: Any
    good: Any
    bad: list[Any]

    def write(self, turn: int) -> None:
        """Write wrong values, then the true ones again."""
        self.live[...] = self.bad[turn % len(self.bad)]
        time.sleep(0)  # hand over Python's lock, so that other threads see the wrong values
        self.live[...] = self.good


class RacingList(Racing):
    """A list that is overwritten; its length may change, too."""

    def write(self, turn: int) -> None:
        """Write wrong values, then the true ones again."""
        self.live[:] = self.bad[turn % len(self.bad)]
        time.sleep(0)
        self.live[:] = self.good


@dataclass
class Case:
    """A function, its arguments, and the arrays that it may write."""

    name: str
    run: Callable[[], Any]
    racing: list[Racing] = field(default_factory=list)
    results: list[np.ndarray] = field(default_factory=list)  # each between guard bytes
    quiet: Callable[[], str] = lambda: ""  # a text if the answer is wrong when nobody writes

    def spilt(self) -> str:
        """Return a text if guard bytes were written, else an empty one."""
        for i, memory in enumerate(self.results):
            if (memory[:GUARD] != 0xA5).any() or (memory[-GUARD:] != 0xA5).any():
                return f"result {i}: something was written outside it"
        return ""


class Maker:
    """A maker of a case's arrays, in memory that threads write or in the mapped file."""

    def __init__(self, rng: Rng, mapped: Mapped | None) -> None:
        self.rng, self.mapped = rng, mapped
        self.racing: list[Racing] = []
        self.results: list[np.ndarray] = []

    def input(self, truth: np.ndarray) -> np.ndarray:
        """Return an array that is overwritten during the call."""
        truth = np.ascontiguousarray(truth)
        room = self.mapped.take(truth.nbytes) if self.mapped else None
        if room is not None:
            room[1][:] = room[0][:] = truth.view(np.uint8).reshape(-1)
            return np.asarray(room[0]).view(truth.dtype).reshape(truth.shape)
        live = guarded(truth.shape, truth.dtype, at_end=bool(self.rng.random() < 0.7))
        live[...] = truth
        noise = np.frombuffer(self.rng.bytes(truth.nbytes), np.uint8)
        bad: list[Any] = [noise.view(truth.dtype).reshape(truth.shape)]
        if truth.dtype.kind in "iu":
            bad += [truth.dtype.type(pick(self.rng, (np.iinfo(truth.dtype).max, np.iinfo(truth.dtype).min)))]
            bad += [truth + truth.dtype.type(1)]
        self.racing.append(Racing(live, truth.copy(), bad))
        return live

    def list(self, truth: list[int]) -> list[int]:
        """Return a list that is overwritten during the call."""
        live = list(truth)
        self.racing.append(RacingList(live, list(truth), [[2**62] * len(truth), [], [-1], [*truth, 1], ["x"], [2**70]]))
        return live

    def data(self, shape: Any, dtype: Any) -> np.ndarray:
        """Return numbers, some of them equal, some NaN if the type has NaN; they are overwritten during the call."""
        dtype = np.dtype(dtype)
        values = self.rng.integers(0, 5, shape)
        array = values.astype(dtype)
        if dtype.kind not in "iu" and array.size:
            array.reshape(-1)[:: int(self.rng.integers(50, 500))] = np.nan
        return self.input(array)

    def result(self, shape: Any, dtype: Any) -> np.ndarray:
        """Return an array for a result, between guard bytes."""
        nbytes = prod(shape) * np.dtype(dtype).itemsize
        memory = np.full(nbytes + 2 * GUARD, 0xA5, np.uint8)
        self.results.append(memory)
        return memory[GUARD:-GUARD].view(dtype).reshape(shape)

    def case(self, name: str, run: Callable[[], Any], quiet: Callable[[], str] = lambda: "") -> Case:
        """Return the case, once all its arrays are made."""
        return Case(name, run, self.racing, self.results, quiet)


@contextmanager
def overwriting(racing: list[Racing], mapped: Mapped | None) -> Iterator[None]:
    """Let threads, or the other process, write while this is open; threads end with the true values."""
    done = threading.Event()

    def write() -> None:
        turn = 0
        while not done.is_set():
            for entry in racing:
                entry.write(turn)
            turn += 1

    threads = [threading.Thread(target=write) for _ in range(2 if racing else 0)]
    for thread in threads:
        thread.start()
    if mapped:
        mapped.head[0] = mapped.used
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()
        if mapped:
            mapped.rest()


if __name__ == "__main__":
    write_forever(Path(sys.argv[1]), int(sys.argv[2]))
