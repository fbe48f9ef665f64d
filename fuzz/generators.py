"""Run all differential generators, one after the other, and print one line for each at the end.

    python fuzz/generators.py --calls 20000 [--jobs 2] [--seed 0] [--required] [pools] [torch] [accelerate] [jax] [tensorflow] [autograd] [jobs]

JAX, which compiles every call, gets a quarter of the calls. A generator whose framework is not installed is skipped, and with
`--required` fails. The exit code is 1 if any failed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Generator(NamedTuple):
    """A script in this folder, the modules that it needs to compare anything, and its share of the calls."""

    script: str
    needs: tuple[str, ...]
    share: float = 1.0


GENERATORS = {
    "pools": Generator("pools.py", ("scipy", "skimage", "xarray")),
    "torch": Generator("torch_adapter.py", ("torch",)),
    "accelerate": Generator("torch_accelerate.py", ("torch",)),
    "jax": Generator("jax_adapter.py", ("jax",), 0.25),
    "tensorflow": Generator("tensorflow_ops.py", ("tensorflow",)),
    "autograd": Generator("autograd_adapter.py", ("autograd",)),
    "jobs": Generator("jobs.py", ("dask", "zarr", "cubed")),
}
WITHOUT = ("pools", "jobs")  # these compare with exact numbers, even where no other library is installed


def missing(generator: Generator) -> list[str]:
    """Return the modules that are not installed."""
    return [name for name in generator.needs if importlib.util.find_spec(name) is None]


def run(name: str, generator: Generator, given: argparse.Namespace) -> tuple[bool, str]:
    """Run one generator; return True if it passed, and its last line."""
    script = ROOT / "fuzz" / generator.script
    if not script.exists():
        return False, f"{name}: FAILED, there is no fuzz/{generator.script}"
    absent = missing(generator)
    if absent and (given.required or name not in WITHOUT):
        text = f"without {', '.join(absent)}"
        return not given.required, f"{name}: {'FAILED' if given.required else 'skipped'}, {text}"
    calls = max(int(given.calls * generator.share), 1)
    command = [sys.executable, str(script), "--calls", str(calls), "--jobs", str(given.jobs)]
    command += ["--seconds", str(given.seconds), "--seed", str(given.seed)]
    print(f"=== {name}: {' '.join(command[1:])}", flush=True)
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        last = ""
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    counted = re.search(r"([\d,]+) calls", last)
    made = int(counted[1].replace(",", "")) if counted else 0
    passed = process.returncode == 0 and made >= calls
    reason = "" if process.returncode else f": {made:,} of {calls:,} calls in {given.seconds:.0f} s"
    verdict = "passed" if passed else f"FAILED{reason}"
    return passed, f"{name}: {verdict} in {time.monotonic() - start:.0f} s; {last}"


def main() -> int:
    """Run the generators asked for; return 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *GENERATORS], metavar="generator")
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=7200, help="for each generator, at most")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    parser.add_argument("--required", action="store_true", help="fail where a framework is missing")
    given = parser.parse_args()
    found = [run(name, GENERATORS[name], given) for name in given.names or GENERATORS]
    print("\n" + "\n".join(line for _, line in found), flush=True)
    return int(not all(passed for passed, _ in found))


if __name__ == "__main__":
    sys.exit(main())
