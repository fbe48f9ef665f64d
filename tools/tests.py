"""Runs all tests: two processes side by side for those that only compute, then alone those that watch the clock or the machine.

    python tools/tests.py [pytest arguments]

Every folder of tests is run; one that is named in no group is run alone.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SIDE_BY_SIDE = (
    ("oracle", "golden", "pools", "windows", "gradient", "property", "meta", "graph", "hostile", "studio"),
    ("frameworks",),  # by themselves: what they start does not like to be forked
)
ALONE = ("studio/test_speed.py",)  # though the rest of its folder is not


def folders() -> list[str]:
    """The folders that have tests."""
    return sorted(path.name for path in (ROOT / "tests").iterdir() if any(path.glob("test_*.py")))


def command(names: list[str], more: list[str]) -> list[str]:
    """The pytest call for some folders."""
    apart = (f"--ignore=tests/{name}" for name in ALONE if name not in names)
    return [sys.executable, "-u", "-m", "pytest", "--durations=8", *more, *apart, *(f"tests/{name}" for name in names)]


def report(what: str, status: int, start: float, text: str = "") -> int:
    """Prints how a group ended; 5, no tests, is no failure if arguments chose others."""
    print(text, end="", flush=True)
    print(f"=== {what}: {'passed' if status in (0, 5) else 'FAILED'} in {time.monotonic() - start:.0f} s", flush=True)
    return 0 if status in (0, 5) else 1


def main() -> int:
    """All groups; 1 if any failed."""
    more, start = sys.argv[1:], time.monotonic()
    known = folders()
    groups = [[name for name in group if name in known] for group in SIDE_BY_SIDE]
    alone = [*(name for name in known if not any(name in group for group in groups)), *ALONE]
    with tempfile.TemporaryFile("w+") as said:  # a pipe that nobody reads would stop it
        second = subprocess.Popen(command(groups[1], more), cwd=ROOT, stdout=said, stderr=subprocess.STDOUT)
        status = report(" ".join(groups[0]), subprocess.run(command(groups[0], more), cwd=ROOT).returncode, start)
        second.wait()
        said.seek(0)
        status |= report(" ".join(groups[1]), second.returncode, start, said.read())
    start = time.monotonic()
    return status | report(" ".join(alone), subprocess.run(command(alone, more), cwd=ROOT).returncode, start)


if __name__ == "__main__":
    sys.exit(main())
