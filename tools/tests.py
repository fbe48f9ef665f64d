"""Runs all tests: first those that only compute, two groups of them at a time, then alone those that watch the clock or the machine.

    python tools/tests.py [pytest arguments]

Every test file is run; one that is named in no group is run alone.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
COMPUTING = (  # the longest first, so that both processes end at about the same time
    ("robustness/", "studio/", "graph/", "meta/"),
    ("conformance/", "torch/"),  # frameworks apart: their threads do not survive a fork
    ("frameworks/", "jax/", "keras/", "public/"),
    ("kernels/", "pooling/", "windows/", "ops/"),
    ("benchmarks/", "cli/", "common/", "explain/"),
)
WATCHING = {
    "benchmarks/test_benchmarks.py",
    "ops/test_bind.py",
    "robustness/test_interrupt.py",
    "robustness/test_memory.py",
    "studio/test_speed.py",
}


def groups() -> tuple[list[list[str]], list[str]]:
    """Return the test files of each group that only computes, and those to run alone."""
    files = sorted(path.relative_to(TESTS).as_posix() for path in TESTS.glob("*/test_*.py"))
    computing: list[list[str]] = [[] for _ in COMPUTING]
    alone: list[str] = []
    for file in files:
        where = next((k for k, names in enumerate(COMPUTING) if file.startswith(names)), None)
        (alone if where is None or file in WATCHING else computing[where]).append(file)
    return computing, alone


def run(what: str, files: Iterable[str], more: list[str]) -> int:
    """Run some files in a process of their own and print what it said; 5, no tests, is no failure if arguments chose others."""
    start = time.monotonic()
    command = [sys.executable, "-u", "-m", "pytest", "--durations=8", *more, *(f"tests/{file}" for file in files)]
    with tempfile.TemporaryFile("w+") as said:  # which two processes would say at once
        status = subprocess.run(command, cwd=ROOT, stdout=said, stderr=subprocess.STDOUT).returncode
        said.seek(0)
        verdict = "passed" if status in (0, 5) else "FAILED"
        print(f"{said.read()}=== {what}: {verdict} in {time.monotonic() - start:.0f} s", flush=True)
    return status if status != 5 else 0


def main() -> int:
    """Run all groups; return 1 if any failed."""
    more = sys.argv[1:]
    computing, alone = groups()
    print(f"=== two groups at a time: {'; '.join(map(' '.join, COMPUTING))}", flush=True)
    with ThreadPoolExecutor(2) as pool:
        failed = any(list(pool.map(lambda names, files: run(" ".join(names), files, more), COMPUTING, computing)))
    return int(run(f"alone: {' '.join(alone)}", alone, more) != 0 or failed)


if __name__ == "__main__":
    sys.exit(main())
