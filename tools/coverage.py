"""Branch coverage of the C++ core and of the Python, by the tests and the kept inputs of the fuzzer.

    python tools/coverage.py [--least 95]

The core is built with Clang's counters and one ISA level; of a template, the instantiation that is covered best counts. Writes
build/coverage/core.txt and python.txt, line by line; fails if a percentage is less than asked for.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "fuzz"), str(ROOT / "fuzz" / "helpers")]

from build import OF_ANY_BUILD, Missing, build, package, tool  # noqa: E402
from run import unpacked  # noqa: E402

# Faults are about other processes; children forked beside traced threads may wait forever for a lock of the tracer's.
SOAK = "--deselect=tests/robustness/test_memory.py::test_a_soak_of_some_seconds_passes_unless_memory_is_lost"
TESTS = ["tests", "--ignore=tests/meta", SOAK, *OF_ANY_BUILD]
APART = [
    f"tests/{name}" for name in ("frameworks", "jax", "keras", "public", "torch")
]  # their threads do not like to be forked
CONFIG = """[run]
branch = true
parallel = true
source_pkgs = poolgrad
data_file = {folder}/python/data
patch = subprocess
disable_warnings = no-data-collected,couldnt-parse,module-not-measured
[report]
exclude_also =
    if TYPE_CHECKING:
    raise AssertionError
[json]
output = {folder}/python.json
"""


def run(folder: Path, tests: list[str]) -> int:
    """Tests and kept inputs, counted; the tests' status."""
    for name in ("raw", "python"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir()
    config = folder / "coveragerc"
    config.write_text(CONFIG.format(folder=folder))
    counted = {**os.environ, "LLVM_PROFILE_FILE": f"{folder}/raw/%4m.profraw", "PYTHONPATH": str(package(folder))}
    measure = [sys.executable, "-m", "coverage", "run", f"--rcfile={config}"]
    groups = [[*tests, *(f"--ignore={name}" for name in APART)], APART] if tests is TESTS else [tests]
    status = 0
    for group in groups:
        done = subprocess.run([*measure, "-m", "pytest", "-p", "no:cacheprovider", *group], cwd=ROOT, env=counted)
        status |= done.returncode
    inputs = [folder / "fuzz_core", "-runs=0", unpacked(folder)]
    subprocess.run(inputs, env=counted, check=True, stderr=subprocess.DEVNULL)
    return status


def core(folder: Path) -> float:
    """Per cent of the core's branches; the report goes to core.txt."""
    profile = folder / "core.profdata"
    merge = [
        tool("llvm-profdata", "llvm-profdata-14"),
        "merge",
        "-sparse",
        "-o",
        profile,
        *(folder / "raw").glob("*.profraw"),
    ]
    subprocess.run(merge, check=True)
    module = next(folder.glob("_core*.so"))
    sources = sorted((ROOT / "src" / "core").rglob("*.[ch]pp"))
    about = [f"-instr-profile={profile}", module, f"-object={folder / 'fuzz_core'}"]
    cov = tool("llvm-cov", "llvm-cov-14")
    text = subprocess.check_output([cov, "report", "--show-branch-summary", *about, *sources], text=True)
    lines = subprocess.check_output(
        [cov, "show", "--show-branches=count", "--show-instantiations=false", *about, *sources], text=True
    )
    (folder / "core.txt").write_text(f"{text}\n{lines}")
    totals = json.loads(subprocess.check_output([cov, "export", "--summary-only", *about, *sources]))
    print(text)
    return float(totals["data"][0]["totals"]["branches"]["percent"])


def python(folder: Path) -> float:
    """Per cent of Python's branches; the report goes to python.txt."""
    config = f"--rcfile={folder / 'coveragerc'}"
    cover = [sys.executable, "-m", "coverage"]
    subprocess.run([*cover, "combine", config, "-q"], check=True, cwd=ROOT)
    text = subprocess.check_output([*cover, "report", config, "-m", "--skip-covered"], text=True, cwd=ROOT)
    (folder / "python.txt").write_text(text)
    print(text)
    subprocess.run([*cover, "json", config, "-q"], check=True, cwd=ROOT)
    totals = json.loads((folder / "python.json").read_text())["totals"]
    return 100 * float(totals["covered_branches"]) / max(float(totals["num_branches"]), 1)


def main() -> int:
    """Print both percentages; return 1 if one is too low or a test failed, 2 if a compiler is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--least", type=float, default=95)
    parser.add_argument("tests", nargs="*", default=TESTS)
    given = parser.parse_args()
    try:
        folder = build("coverage")
    except Missing as missing:
        print(f"coverage: {missing}")
        return 2
    status = run(folder, given.tests)
    found = {"C++ core": core(folder), "Python": python(folder)}
    for what, percent in found.items():
        print(f"coverage: {percent:.1f} % of the branches of the {what}" + (" LOW" if percent < given.least else ""))
    return 1 if status or min(found.values()) < given.least else 0


if __name__ == "__main__":
    sys.exit(main())
