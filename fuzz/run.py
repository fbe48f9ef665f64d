"""All random tests, one after the other: the core under libFuzzer, the native border, verbs and raw_ops against the reference, races.

    python fuzz/run.py --seconds 60 [--jobs 2] [core] [border] [verbs] [ops] [races]

Each runs that long on that many processes. Counts come at the end; any crash or difference makes it fail. New inputs of the
core that reach something new stay in build/fuzz/corpus; `--keep` takes the smallest set that reaches as much into fuzz/corpus.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "fuzz" / "helpers"))

from build import Missing, build

CORPUS = ROOT / "fuzz" / "corpus"
LATE = 300  # seconds until a process that should have ended is killed
LONGEST = 64  # bytes; what follows is noise that they decide
ENVIRONMENT = {
    **os.environ,
    "ASAN_OPTIONS": "malloc_context_size=4:detect_leaks=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


def unpacked(folder: Path) -> Path:
    """Write the kept inputs into the build folder, beside those that earlier runs found; return the folder."""
    corpus = folder / "corpus"
    corpus.mkdir(exist_ok=True)
    for number, line in enumerate(kept()):
        (corpus / f"kept-{number:04}").write_bytes(bytes.fromhex(line))
    return corpus


def kept() -> list[str]:
    """Return the kept inputs, one line each."""
    path = CORPUS / "core.txt"
    return path.read_text().split() if path.exists() else []


def core(seconds: float, jobs: int) -> int:
    """Run libFuzzer on the core; fail on a crash, a report, or two paths that differ."""
    folder = build("fuzz")
    corpus = unpacked(folder)
    limit = [f"-max_total_time={max(int(seconds), 1)}", f"-max_len={LONGEST}", "-timeout=60", "-rss_limit_mb=4096"]
    limit += ["-entropic=0"]  # libFuzzer takes longer to weigh inputs by rarity than to run them
    found = []
    for job in range(jobs):
        log = folder / f"log-{job}"
        command = [folder / "fuzz_core", *limit, f"-artifact_prefix={folder}/", "-reload=0", corpus]
        with open(log, "w") as out:
            found.append((log, subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=ENVIRONMENT)))
    start = shown = time.monotonic()
    while any(p.poll() is None for _, p in found):
        time.sleep(0.2)
        if time.monotonic() - start > seconds + LATE:  # the process hangs, or was stopped: a failure either way
            for _, process in found:
                process.kill()
        if time.monotonic() - shown >= 30:
            shown = time.monotonic()
            print(f"core: {sum(so_far(log) for log, _ in found):,} inputs in {shown - start:.0f} s", flush=True)
    return settle(found, time.monotonic() - start)


def so_far(log: Path) -> int:
    """Return the number of inputs that a process has run, from its last line."""
    numbers = re.findall(r"^#(\d+)", log.read_text("utf-8", "replace"), re.MULTILINE)
    return int(numbers[-1]) if numbers else 0


def settle(found: list[tuple[Path, subprocess.Popen[bytes]]], seconds: float) -> int:
    """Add up the counts of all processes; show the failures."""
    total, failed = [0, 0, 0], 0
    for log, process in found:
        text = log.read_text("utf-8", "replace")
        counts = re.search(r"core: (\d+) calls of verbs, (\d+) inputs, (\d+) plans refused", text)
        if counts:
            total = [a + int(b) for a, b in zip(total, counts.groups(), strict=True)]
        if process.returncode or not counts:
            failed += 1
            print(text[-5000:], flush=True)
    calls, inputs, refused = total
    rate = calls / max(seconds, 1e-9)
    print(
        f"core: {calls:,} calls ({rate:,.0f} a second), {inputs:,} inputs, {refused:,} plans refused, {failed} failed",
        flush=True,
    )
    return 1 if failed else 0


def keep() -> int:
    """Put the smallest set of inputs that reaches as much into fuzz/corpus."""
    folder = build("fuzz")
    small = folder / "smallest"
    shutil.rmtree(small, ignore_errors=True)
    small.mkdir()
    command = [folder / "fuzz_core", "-merge=1", f"-max_len={LONGEST}", small, unpacked(folder)]
    subprocess.run(command, check=True, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    lines = sorted({path.read_bytes().hex() for path in small.iterdir()} - {""}, key=lambda line: (len(line), line))
    CORPUS.mkdir(exist_ok=True)
    (CORPUS / "core.txt").write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} inputs, {(CORPUS / 'core.txt').stat().st_size} bytes")
    return 0


def script(name: str, seconds: float, jobs: int, *more: str) -> int:
    """Run one of the Python tests."""
    command = [sys.executable, str(ROOT / "fuzz" / name), "--seconds", str(seconds), "--jobs", str(jobs), *more]
    return subprocess.run(command, check=False).returncode


def main() -> int:
    """Run the tests asked for; return 1 if any failed, 2 if a compiler is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "what",
        nargs="*",
        help="core, border, verbs, ops, races, pages, which run unless others are given; or a generator, such as jax_adapter",
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--tensorflow", default="", help="a Python that has it, for tensorflow_ops")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    status = 0
    try:
        if given.keep:
            return keep()
        for what in given.what or ["core", "border", "verbs", "ops", "races", "pages"]:
            if what == "core":
                status |= core(given.seconds, given.jobs)
            else:
                more = ("--tensorflow", given.tensorflow) if given.tensorflow and what == "tensorflow_ops" else ()
                status |= script(f"{what}.py", given.seconds, given.jobs, *more)
    except Missing as missing:
        print(f"fuzz: {missing}")
        return 2
    return status


if __name__ == "__main__":
    sys.exit(main())
