"""Mixed ops from 8 threads for a long time, with forks, random sizes and random interrupts: no wrong bit, no leak, no hang.

    python tools/soak.py --minutes 30 [--threads 8] [--seed 0]

Threads repeat calls whose results are known: computed beforehand on one thread by the core's generic path, the smaller ones
compared with the reference. Meanwhile the main thread forks children that do the same, changes the number of threads, and
interrupts calls of its own. Every so often all stop, memory that is kept for results is dropped, and the resident size is
noted; after a quarter of the time it must stay within 2 %. Exit code 0 if all held, else 1.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "helpers")]

from interrupts import interrupt  # noqa: E402
from jobs import raw, right, sized  # noqa: E402
from support import PLAIN, SLOW, arguments, outputs, rss  # noqa: E402

import poolgrad  # noqa: E402
from poolgrad import raw_ops  # noqa: E402
from poolgrad._ops.table import OPS  # noqa: E402

KEPT_MB = 64
HANG = 60  # seconds after which a child counts as stuck


def prepare(seed: int, count: int) -> list[Any]:
    """Jobs of random ops, dtypes and sizes; those of few cells are checked against the reference."""
    rng, made, checked = random.Random(seed), [], 0
    with poolgrad.threads(1):
        for i in range(count):
            name = list(OPS)[i % len(OPS)]
            n, c = rng.choice([(5, 3), (23, 1), (40, 17), (150, 32), (300, rng.randint(1, 90))])
            case = sized(name, n + rng.randint(0, 9), c, rng.choice(OPS[name].dtypes))
            args = arguments(case)
            want = outputs(PLAIN[name](**args))
            if n < 30:
                checked += 1
                reference = outputs(SLOW[name](**args))
                if not all(np.array_equal(raw(a), raw(b)) for a, b in zip(want, reference, strict=True)):
                    raise SystemExit(f"soak: the generic path is not the reference: {case!r}")
            made.append((name, args, want))
    print(f"soak: {count} jobs, {checked} of them checked against the reference", flush=True)
    return made


@dataclass
class Soak:
    """A soak run: the state that all threads share."""

    jobs: list[Any]
    rng: random.Random
    leak: int = 0  # bytes to lose at every interrupt: a planted fault
    lost: list[bytes] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    sizes: list[tuple[float, int]] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)
    resting: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def work(self, seed: int) -> None:
        """Run random jobs in one thread; rest when asked to."""
        rng = random.Random(seed)
        while not self.stop.is_set():
            if not self.go.is_set():
                self.resting.release()
                self.go.wait()
            job = rng.choice(self.jobs)
            try:
                if not right(job):
                    self.wrong.append(f"{job[0]} in a thread")
            except BaseException as error:
                self.wrong.append(f"{job[0]} in a thread: {error!r}")
            self.counts["calls"] += 1

    def fork(self) -> None:
        """Fork a child that does a few jobs while the threads go on."""
        chosen = self.rng.sample(self.jobs, 6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            code = 99
            try:
                code = sum(not right(job) for job in chosen)
            finally:
                os._exit(code)
        end = time.monotonic() + HANG
        while (found := os.waitpid(child, os.WNOHANG))[0] == 0:
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                self.wrong.append("a child hangs")
                return
            time.sleep(0.005)
        if found[1]:
            self.wrong.append(f"a child ended with status {found[1]}")
        self.counts["forks"] += 1

    def interrupt(self, x: np.ndarray) -> None:
        """Interrupt a long call of the main thread at a random moment."""
        k = self.rng.choice([3, 31])
        sizes = {"ksize": [1, k, k, 1], "strides": [1, 1, 1, 1], "padding": "SAME"}
        call = self.rng.choice(
            [
                lambda: raw_ops.MaxPoolWithArgmax(input=x, **sizes),
                lambda: raw_ops.MaxPoolGrad(orig_input=x, orig_output=x, grad=x, **sizes),
                lambda: raw_ops.AvgPool(value=x, **sizes),
            ]
        )
        took = interrupt(call, self.rng.uniform(0, 0.3))
        self.counts["interrupts"] += 1
        if self.leak:
            self.lost.append(os.urandom(1) * self.leak)
        if took is not None:
            self.latencies.append(took)

    def weigh(self, threads: int, at: float) -> None:
        """Return the resident size while nothing runs and no memory is cached."""
        self.go.clear()
        for _ in range(threads):
            self.resting.acquire()
        poolgrad.set_kept_memory(0)
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        self.sizes.append((at, rss()))
        poolgrad.set_kept_memory(KEPT_MB)
        self.go.set()

    def growth(self, seconds: float) -> float:
        """Return the growth after the warm-up: median of the last three sizes at most over that of as many first ones, minus 1."""
        settled = [size for at, size in self.sizes if at > seconds / 4]
        few = min(len(settled) // 2, 3)
        if not few:
            return float("nan")
        first, last = (float(np.median(part)) for part in (settled[:few], settled[-few:]))
        return last / first - 1

    def line(self, at: float) -> str:
        """Progress in a line."""
        late = sorted(self.latencies) or [0.0]
        return (
            f"soak: {at / 60:5.1f} min  calls {self.counts['calls']}  forks {self.counts['forks']}  "
            f"interrupts {self.counts['interrupts']} (ended {len(self.latencies)}, median {1000 * late[len(late) // 2]:.0f} ms, "
            f"longest {1000 * late[-1]:.0f} ms)  rss {self.sizes[-1][1] / 2**20:.1f} MiB  wrong {len(self.wrong)}"
        )


def run(soak: Soak, seconds: float, threads: int) -> None:
    """The main thread's part."""
    x = np.random.default_rng(0).standard_normal((2, 256, 256, 32)).astype(np.float32)
    begun = told = weighed = time.monotonic()
    soak.go.set()
    workers = [threading.Thread(target=soak.work, args=(seed,), daemon=True) for seed in range(threads)]
    for worker in workers:
        worker.start()
    soak.weigh(threads, 0)
    while (at := time.monotonic() - begun) < seconds and not soak.wrong:
        poolgrad.set_num_threads(soak.rng.choice([1, 2, 3, 8]))
        soak.rng.choice([soak.fork, lambda: soak.interrupt(x), lambda: time.sleep(0.05)])()
        if time.monotonic() - weighed > max(seconds / 60, 1):
            weighed = time.monotonic()
            soak.weigh(threads, at)
        if time.monotonic() - told > max(seconds / 30, 5):
            told = time.monotonic()
            print(soak.line(at), flush=True)
    soak.weigh(threads, time.monotonic() - begun)
    soak.stop.set()
    for worker in workers:
        worker.join()


def main() -> int:
    """Run the soak; return 0 if nothing was wrong and memory stayed flat."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--flat", type=float, default=0.02, help="by how much the resident size may change")
    parser.add_argument("--leak", type=int, default=0, help="bytes to lose at every interrupt, to see the verdict turn")
    options = parser.parse_args()
    poolgrad.set_kept_memory(KEPT_MB)
    soak = Soak(prepare(options.seed, 220), random.Random(options.seed), options.leak)
    seconds = 60 * options.minutes
    run(soak, seconds, options.threads)
    print(soak.line(seconds))
    grown = soak.growth(seconds)
    for text in soak.wrong[:10]:
        print("soak: wrong:", text)
    passed = abs(grown) <= options.flat and not soak.wrong
    word = "PASS" if passed else "FAIL"
    print(f"soak: {word}: {len(soak.wrong)} wrong, resident size {grown:+.2%} after warm-up")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
