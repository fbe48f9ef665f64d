"""The core under AddressSanitizer and UndefinedBehaviorSanitizer, its threads under ThreadSanitizer, its memory under MemorySanitizer.

    python tools/sanitize.py [--seconds 20] [--quick] [address] [thread] [memory]

Any report, from any process of the run, makes it fail. Before that, faults on purpose must be reported.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "fuzz" / "helpers"))

from build import OF_ANY_BUILD, Missing, build, package, runtime  # noqa: E402

# Tests that reach the kernels; those of documents, the command line and the tests themselves add nothing.
# Random comparisons follow the tests, for `--seconds`.
TESTS = [
    "--ignore=tests/robustness/test_fuzz.py",
    "tests/robustness",
    "tests/kernels",
    "tests/public/test_raw_ops_gradients.py",
    "tests/public/test_raw_ops_properties.py",
    "tests/conformance/test_seeds.py",
    *OF_ANY_BUILD,
]
# Tests that CI has time for: refusals, the hostile set, every verb once; random calls do the rest.
QUICK = [
    "tests/robustness/test_native_border.py",
    "tests/robustness/test_wrong_calls.py",
    "tests/kernels/test_tap_verbs.py",
    "tests/conformance/test_seeds.py",
]
UNDEFINED = "runtime error: "
ON_PURPOSE = {"tsan": ("--race", "data race"), "msan": ("--unwritten", "use-of-uninitialized-value")}
# Programs that use the C interface alone. MemorySanitizer takes an exception for unwritten, and the first causes many.
C_PROGRAMS = ("hostile", "max_pool3d_grad", "max_pool_grad_grad")
PLANTED = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).__getattr__(sys.argv[2])(16)"


class Failure(Exception):
    """A sanitizer report, or a planted fault without a report."""


def say(text: str) -> None:
    """Print a line at once."""
    print(f"sanitize: {text}", flush=True)


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of Python with the instrumented core, with a file per report."""
    log = f"log_path={folder / 'report'}"
    return {
        **os.environ,
        "LD_PRELOAD": runtime("libasan.so", "libubsan.so", "libstdc++.so"),
        "ASAN_OPTIONS": f"{log}:detect_leaks=0:allocator_may_return_null=1:detect_odr_violation=0",
        "UBSAN_OPTIONS": f"{log}:print_stacktrace=1:halt_on_error=1:abort_on_error=1",
        "PYTHONPATH": str(folder / "package"),
        "PYTHONMALLOC": "malloc",
        "POOLGRAD_KEPT_MB": "0",  # cached memory would hide a use after free
    }


def reports(folder: Path) -> list[Path]:
    """Return the reports written so far."""
    return sorted(folder.glob("report.*"))


def python(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the instrumented core."""
    return subprocess.run([sys.executable, *args], env=environment(folder), cwd=ROOT, text=True, capture_output=True)


def notices(folder: Path) -> None:
    """Check that planted faults end the process and leave a report."""
    library = str(next(folder.glob("libplanted*")))
    for fault in ("overflow_heap", "overflow_int"):
        done = python(folder, "-c", PLANTED, library, fault)
        if done.returncode == 0 or not (reports(folder) or UNDEFINED in done.stderr):
            raise Failure(f"{fault}: nothing was reported\n{done.stdout}{done.stderr}")
        for path in reports(folder):
            path.unlink()
    say("faults on purpose are reported")


def clean(folder: Path, done: subprocess.CompletedProcess[str], what: str) -> None:
    """Fail if there is a report, or if the run itself failed."""
    found = reports(folder)
    if UNDEFINED in done.stdout + done.stderr:  # GCC's runtime knows no log_path
        raise Failure(f"{what}: {done.stdout[-4000:]}{done.stderr[-4000:]}")
    if found:
        raise Failure(f"{what}: {len(found)} reports in {folder}\n{found[0].read_text('utf-8', 'replace')[:4000]}")
    if done.returncode:
        raise Failure(f"{what}: status {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-2000:]}")


def address(seconds: float, tests: list[str]) -> None:
    """Tests and random comparisons under ASan and UBSan."""
    folder = build("asan")
    package(folder)
    for path in reports(folder):
        path.unlink()
    where = python(folder, "-c", "from poolgrad import _core; print(_core.__file__, _core.isa_levels())")
    if str(folder) not in where.stdout:
        raise Failure(f"the instrumented core is not the one that is loaded: {where.stdout}{where.stderr}")
    notices(folder)
    start = time.monotonic()
    done = python(folder, "-m", "pytest", "-x", "-p", "no:cacheprovider", *tests)
    clean(folder, done, "tests")
    say(f"tests: {done.stdout.strip().splitlines()[-1]} ({time.monotonic() - start:.0f} s)")
    for script in ("ops.py", "verbs.py", "border.py"):
        done = python(folder, str(ROOT / "fuzz" / script), "--seconds", str(seconds), "--seed", "7")
        clean(folder, done, script)
        say(f"{script}: {done.stdout.strip().splitlines()[-1]}")
    stress(folder, seconds / 2)


def stress(folder: Path, seconds: float) -> None:
    """Run the programs without Python, which is not instrumented: the C interface, then many callers at once.

    First comes the fault on purpose that this build is to find.
    """
    quiet = {
        **os.environ,
        "ASAN_OPTIONS": "detect_leaks=0",
    }  # the pool is never freed, and the search for leaks may hang

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([folder / "stress", *words], text=True, capture_output=True, env=quiet)

    if folder.name in ON_PURPOSE:
        flag, report = ON_PURPOSE[folder.name]
        done = run("0.1", "1", flag)
        if report not in done.stderr or done.returncode == 0:
            raise Failure(f"{flag[2:]} on purpose: nothing was reported\n{done.stderr[-2000:]}")
        say(f"{folder.name}: {flag[2:]} on purpose is reported")
    for program in C_PROGRAMS[folder.name == "msan" :]:
        done = subprocess.run([folder / program], text=True, capture_output=True, env=quiet)
        if done.returncode or "Sanitizer" in done.stderr or UNDEFINED in done.stderr:
            raise Failure(f"{program}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[:6000]}")
        say(f"{folder.name}, C interface, {program}: {done.stdout.strip().splitlines()[0]}")
    done = run(str(seconds), "4")
    if done.returncode or "Sanitizer" in done.stderr or "runtime error" in done.stderr:
        raise Failure(f"stress: status {done.returncode}\n{done.stderr[:6000]}")
    say(f"{folder.name}, stress: {done.stderr.strip().splitlines()[-1]}")


def thread(seconds: float, _: list[str]) -> None:
    """Threads under TSan."""
    stress(build("tsan"), seconds)


def memory(seconds: float, _: list[str]) -> None:
    """Memory that is read before it is written, under MSan."""
    stress(build("msan"), seconds)


def main() -> int:
    """Run what was asked for; return 1 if anything was reported, 2 if a compiler is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help="address, thread, memory; all unless given")
    parser.add_argument("--seconds", type=float, default=20, help="how long each of the random comparisons runs")
    parser.add_argument("--quick", action="store_true", help="fewer tests")
    given = parser.parse_args()
    start = time.monotonic()
    try:
        for what, check in {"address": address, "thread": thread, "memory": memory}.items():
            if not given.what or what in given.what:
                check(given.seconds, QUICK if given.quick else TESTS)
    except Missing as missing:
        say(str(missing))
        return 2
    except Failure as failure:
        say(f"FAILED: {failure}")
        return 1
    say(f"no report ({time.monotonic() - start:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
