"""Run random cases in processes of their own: a crash is a failure with a case number, and the run goes on."""

from __future__ import annotations

import argparse
import json
import mmap
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

STRIDE = 1 << 40  # distance between the first case numbers of two processes


class Progress:
    """The progress of a process, in memory that outlives the process."""

    SIZE = 16

    def __init__(self, path: str = "") -> None:
        self.memory: Any = bytearray(self.SIZE)
        if path:
            with open(path, "r+b") as file:
                self.memory = mmap.mmap(file.fileno(), self.SIZE)

    def at(self, number: int, calls: int) -> None:
        """Record the case that begins."""
        struct.pack_into("qq", self.memory, 0, number, calls)

    def read(self) -> tuple[int, int]:
        """Return the case and the number of calls so far."""
        number, calls = struct.unpack_from("qq", self.memory, 0)
        return number, calls


def options(doc: str) -> argparse.ArgumentParser:
    """Return a parser of the options that all random tests take."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    parser.add_argument("--first", type=int, default=0, help="the first case, as a failure names it")
    parser.add_argument("--calls", type=int, default=0, help="end after so many calls, if that is sooner")
    parser.add_argument("--op", action="append", help="only this op")
    parser.add_argument("--tensorflow", default="", help="a Python that has it, to compare with")
    parser.add_argument("--note", default="", help=argparse.SUPPRESS)
    return parser


def cases(given: Any, progress: Progress, counts: Counter[str], failures: int = 1) -> Iterator[int]:
    """Yield case numbers, recorded, until the time is over, enough calls are counted, or so many cases failed."""
    end, number = time.monotonic() + given.seconds, given.first
    while time.monotonic() < end and counts["failed"] < failures and not 0 < given.calls <= counts["calls"]:
        progress.at(number, counts["calls"])
        yield number
        number += 1
    progress.at(number, counts["calls"])


def main(what: str, doc: str, run: Callable[[Any, Progress], Counter[str]]) -> int:
    """Run cases, as a worker; else start workers and add up their counts. Return 1 if any failed."""
    given = options(doc).parse_args()
    given.seed = given.seed or int.from_bytes(os.urandom(4), "little")
    if given.note:
        counts = run(given, Progress(given.note))
        print("counts " + json.dumps(counts), flush=True)
        return 1 if counts["failed"] else 0
    return lead(what, given)


def lead(what: str, given: Any) -> int:
    """Start the workers, show their progress, add up their counts."""
    with tempfile.TemporaryDirectory() as folder:
        notes = [Path(folder) / str(i) for i in range(given.jobs)]
        found = []
        for i, note in enumerate(notes):
            note.write_bytes(bytes(Progress.SIZE))
            command = [
                sys.executable,
                "-X",
                "faulthandler",
                sys.argv[0],
                "--note",
                str(note),
                "--seed",
                str(given.seed),
            ]
            command += ["--seconds", str(given.seconds), "--first", str(given.first + i * STRIDE)]
            command += ["--calls", str(-(-given.calls // given.jobs))]
            command += [word for op in given.op or () for word in ("--op", op)]
            command += ["--tensorflow", given.tensorflow] if given.tensorflow else []
            found.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        watch(what, given, found, [Progress(str(note)) for note in notes])
        return settle(what, given, found, [Progress(str(note)) for note in notes])


def watch(what: str, given: Any, found: list[subprocess.Popen[str]], notes: list[Progress]) -> None:
    """Print a line every 30 seconds until all workers have ended; kill those that are two minutes late."""
    start = shown = time.monotonic()
    while any(p.poll() is None for p in found):
        time.sleep(0.1)
        now = time.monotonic()
        if now - shown >= 30:
            shown = now
            calls = sum(note.read()[1] for note in notes)
            print(f"{what}: {calls:,} calls in {now - start:.0f} s", flush=True)
        if now - start > given.seconds + 120:
            for p in found:
                p.kill()


def settle(what: str, given: Any, found: list[subprocess.Popen[str]], notes: list[Progress]) -> int:
    """Add up the counts; a process that ended without counts has failed at its current case."""
    total: Counter[str] = Counter()
    for p, note in zip(found, notes, strict=True):
        *lines, last = ((p.communicate()[0] or "") + "\n").splitlines() or [""]
        text = "\n".join([*lines, last]).strip()
        done = next((line for line in reversed(text.splitlines()) if line.startswith("counts ")), None)
        if done:
            total.update(json.loads(done.removeprefix("counts ")))
            text = text.replace(done, "").strip()
        else:
            total["failed"] += 1
            case = f"--seed {given.seed} --first {note.read()[0]}"
            text += f"\na process ended with status {p.returncode} at a case: python {sys.argv[0]} {case}"
        if text:
            print(text, flush=True)
    words = ", ".join(f"{n:,} {name}" for name, n in sorted(total.items()) if name != "failed")
    print(f"{what}: {words}, {total['failed']} failed (seed {given.seed})", flush=True)
    return 1 if total["failed"] else 0
