"""Do the tests notice faults? Each of tools/mutants/*.toml is put into a copy of the sources, and the tests must fail.

    python tools/mutate.py [--only TEXT] [--near] [--list] [--again]

All faults of the C++ go into one build, in which an environment variable picks one; those of the Python are put into the
package one by one. Tests that are near the fault come first, then all others, until one fails; a crash or a hang counts as
failing. A fault that no longer fits its file is an error. Results are kept in build/mutants.json: a second run begins with the
test that noticed the fault before (`--again` forgets them). Fails if fewer than 95 % are noticed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import tempfile
import time
import tomllib
import traceback
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import hypothesis  # noqa: F401  so that children need not
import ml_dtypes  # noqa: F401
import numpy as np  # noqa: F401
import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "fuzz" / "helpers"))

from build import OF_ANY_BUILD, Missing, build, installed, package  # noqa: E402

TABLES = ROOT / "tools" / "mutants"
RESULTS = ROOT / "build" / "mutants.json"
LEAST = 95.0
VARIABLE = "POOLGRAD_MUTANT"
HEADER = f"""// Which fault is switched on, if any.
#pragma once
#include <cstdlib>
inline const int poolgrad_mutant = [] {{
  const char* number = std::getenv("{VARIABLE}");
  return number ? std::atoi(number) : 0;
}}();
"""

# Near to each file, the quick ones first; a file that is not named begins with those of the kernels.
KERNELS = [
    f"tests/kernels/test_{name}.py"
    for name in ("window_starts", "positions", "route", "tap_verbs", "halves", "long_windows", "reference")
]
BORDER = ["tests/robustness/test_native_border.py", "tests/windows/test_plan.py", *KERNELS[:4]]
THREADS = [
    "tests/public/test_config.py",
    "tests/public/test_raw_ops_cache.py",
    "tests/common/test_arrays.py",
    "tests/kernels/test_float_state.py",
    "tests/robustness",
]
CALLS = [
    "tests/windows",
    "tests/ops",
    "tests/public/test_raw_ops_cache.py",
    "tests/common",
    "tests/robustness/test_wrong_calls.py",
    "tests/conformance",
    # which takes long:
    "--deselect=tests/robustness/test_wrong_calls.py::test_the_hostile_set_is_answered_as_it_expects",
]
IMAGES = ["tests/kernels/test_images.py", "tests/kernels"]
NEAR = {
    **dict.fromkeys(("arrays.hpp", "indices.hpp", "first_wrong.hpp"), BORDER),
    "module.cpp": [*BORDER, "tests/robustness/test_exit.py", "tests/robustness/test_interrupt.py"],
    "owned_plan.cpp": [*BORDER, "tests/kernels/test_long_windows.py"],
    "plan.hpp": ["tests/kernels/test_schedules.py", *IMAGES],
    "foreign.cpp": ["tests/jax/test_jax_pools.py"],  # where JAX is installed
    "tasks.hpp": ["tests/pooling/test_taps.py", *BORDER],
    "stream.hpp": ["tests/kernels/test_independence.py"],
    "direct.hpp": ["tests/kernels/test_long_rows.py", *KERNELS],
    **dict.fromkeys(
        (
            "row_band.hpp",
            "by_row_band.hpp",
            "route_by_row_band.hpp",
            "tap_places.hpp",
            "divide.hpp",
            "max_grad.hpp",
        ),
        IMAGES,
    ),
    **dict.fromkeys(("threads.cpp", "gil.hpp", "memory.cpp"), THREADS),
}
# About files, other programs, and the tests themselves: they say nothing about a fault.
APART = (
    "meta",
    "studio",
    "benchmarks",
    "frameworks",
    "graph",
    "jax",
    "keras",
    "torch",
)
ALL = ["tests", *(f"--ignore=tests/{name}" for name in APART), *OF_ANY_BUILD]
LIMIT = 900  # seconds after which a run of tests hangs


@dataclass(frozen=True)
class Fault:
    """A text of a file, and what is put in its place."""

    file: str
    why: str
    text: str
    instead: str
    where: str = ""  # a longer text that has it, if it is there more than once

    @property
    def number(self) -> int:
        """Return the number that selects the fault. It is a hash, so adding a fault renumbers no other and rebuilds little."""
        return zlib.crc32(self.name.encode()) >> 1

    @property
    def whole(self) -> str:
        """Return a text that occurs once in the file."""
        return self.where or self.text

    @property
    def native(self) -> bool:
        """Return True if the environment variable switches the fault on."""
        return self.file.startswith("src/core/")

    @property
    def name(self) -> str:
        """Return file and reason."""
        return f"{Path(self.file).name}: {self.why}"

    def put(self, source: str, instead: str) -> str:
        """Return the source with another text in place of this one. Where texts overlap, the last one is the original."""
        at = source.rindex(self.whole) + self.whole.index(self.text)
        return source[:at] + instead + source[at + len(self.text) :]

    def switched(self, source: str) -> str:
        """Return the source with both texts; the variable picks one."""
        on = f"poolgrad_mutant == {self.number}"
        if self.text.endswith(";"):
            return self.put(source, f"{{ if ({on}) {{ {self.instead} }} else {{ {self.text} }} }}")
        return self.put(source, f"({on} ? ({self.instead}) : ({self.text}))")


def faults() -> list[Fault]:
    """Return all faults."""
    return [
        Fault(file, why, *texts)
        for table in sorted(TABLES.glob("*.toml"))
        for file, found in tomllib.loads(table.read_text("utf-8")).items()
        for why, texts in found.items()
    ]


def misfits(found: list[Fault]) -> Iterator[str]:
    """Return the faults whose text does not occur exactly once in its file, or changes nothing."""
    for fault in found:
        count = (ROOT / fault.file).read_text("utf-8").count(fault.whole)
        if count != 1 or fault.text == fault.instead or fault.text not in fault.whole:
            yield f"{fault.name}: its text is there {count} times: {fault.whole}"
    names = [fault.name for fault in found]
    yield from (f"{name}: named twice" for name in sorted({name for name in names if names.count(name) > 1}))


def prepare(found: list[Fault]) -> Path:
    """Build the core with all its faults, if any; return the folder for PYTHONPATH."""
    if not any(fault.native for fault in found):
        return package(installed())
    tree = ROOT / "build" / "mutants"
    written = {path.relative_to(ROOT): path.read_text("utf-8") for path in (ROOT / "src" / "core").rglob("*.*")}
    written |= {path.relative_to(ROOT): path.read_text("utf-8") for path in (ROOT / "fuzz").glob("*.*")}
    written[Path("src/core/fault.hpp")] = HEADER
    for fault in sorted((fault for fault in found if fault.native), key=lambda fault: -len(fault.whole)):
        written[Path(fault.file)] = fault.switched(written[Path(fault.file)])
    for name, text in written.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:  # unchanged files are not rebuilt
            path.write_text(text)
    return package(build("faults", tree))


def child(where: Path, number: int, what: list[str], out: int) -> NoReturn:
    """The process of one run of tests: what is not under test has been imported before it was made."""
    status = 3
    try:
        os.setsid()
        os.chdir(ROOT)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout = sys.stderr = os.fdopen(os.dup(out), "w", buffering=1)
        os.environ |= {"PYTHONPATH": str(where), VARIABLE: str(number)}
        sys.path.insert(0, str(where))
        sys.dont_write_bytecode = True  # a file may change twice within a second
        early = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        status = int(pytest.main(["-x", "-vv", "--tb=no", "-p", "no:cacheprovider", *early, *what]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def tests(where: Path, fault: Fault | None, what: list[str]) -> tuple[bool, str]:
    """Run tests up to the first failure; return True if one failed, and its name."""
    with tempfile.TemporaryFile("w+", errors="replace") as out:
        sys.stdout.flush()
        process = os.fork()
        if process == 0:
            child(where, fault.number if fault and fault.native else 0, what, out.fileno())
        status = awaited(process)
        out.seek(0)
        text = out.read()
    if status in (0, 5) or "ERROR: not found: " in text:  # the test no longer exists
        return False, ""
    if status in (3, 4):  # the tests could not run, so they noticed nothing
        raise RuntimeError(text[-2000:])
    failing = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", text, re.MULTILINE)
    running = re.findall(
        r"^(tests/\S+?::.+?)(?: (?:PASSED|SKIPPED|FAILED|ERROR|Fatal Python error).*)?$", text, re.MULTILINE
    )
    last = (failing or running or ["while tests were collected"])[-1]
    word = "" if status == 1 else " hangs" if status == -9 else f" ends with status {status}"
    return True, last + word


def awaited(process: int) -> int:
    """Return the exit code of a process; after LIMIT seconds, kill it and its children."""
    end = time.monotonic() + LIMIT
    while (found := os.waitpid(process, os.WNOHANG))[0] == 0:
        if time.monotonic() > end:
            os.killpg(process, signal.SIGKILL)
            return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        time.sleep(0.05)
    return os.waitstatus_to_exitcode(found[1])


def noticed(where: Path, fault: Fault, before: str, far: bool) -> str:
    """Return the test that fails with this fault, or ""."""
    file = where / Path(fault.file).relative_to("src")
    source = "" if fault.native else file.read_text("utf-8")
    if source:
        file.write_text(fault.put(source, fault.instead))
    try:
        near = NEAR.get(Path(fault.file).name, KERNELS) if fault.native else CALLS
        known = [[before.split(" hangs")[0].split(" ends with")[0]]] if "::" in before else []
        for what in (*known, near, *([ALL] if far else [])):
            bad, name = tests(where, fault, what)
            if bad:
                return name
        return ""
    finally:
        if source:
            file.write_text(source)


def run(found: list[Fault], where: Path, again: bool, far: bool) -> list[Fault]:
    """Try all faults and print each result; return those that no test noticed."""
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() and not again else {}
    start, missed = time.monotonic(), []
    for done, fault in enumerate(found, 1):
        begun = time.monotonic()
        name = noticed(where, fault, kept.get(fault.name, ""), far)
        kept[fault.name] = name
        RESULTS.write_text(json.dumps(kept, indent=1, sort_keys=True))
        if not name:
            missed.append(fault)
        now = time.monotonic()
        verdict = f"noticed by {name}" if name else "NOT NOTICED"
        print(f"{done:3}/{len(found)} {now - start:5.0f} s  {fault.name}: {verdict} ({now - begun:.0f} s)", flush=True)
    return missed


def main() -> int:
    """Print what was noticed and by what; return 1 if too little was, 2 if the table or the tree is not fit for it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="faults whose file or reason has this text")
    parser.add_argument("--list", action="store_true", help="print the faults")
    parser.add_argument("--near", action="store_true", help="only the tests that are near to each fault")
    parser.add_argument("--again", action="store_true", help="forget which test noticed what")
    parser.add_argument(
        "--trusting", action="store_true", help="do not first make sure that all tests pass without a fault"
    )
    given = parser.parse_args()
    found = faults()
    chosen = [fault for fault in found if given.only in fault.name]
    if given.list:
        print("\n".join(fault.name for fault in chosen))
        return 0
    if wrong := list(misfits(found)):
        print("\n".join(wrong))
        return 2
    try:
        where = prepare(found if any(fault.native for fault in chosen) else chosen)
    except Missing as missing:
        print(f"mutate: {missing}")
        return 2
    if not given.trusting and (bad := tests(where, None, ALL))[0]:
        print(f"mutate: without a fault, {bad[1]} fails")
        return 2
    missed = run(chosen, where, given.again, not given.near)
    share = 100 * (1 - len(missed) / max(len(chosen), 1))
    print(f"mutate: {len(chosen) - len(missed)} of {len(chosen)} faults noticed, {share:.1f} %")
    return 0 if share >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
