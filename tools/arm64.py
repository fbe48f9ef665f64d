"""The library on arm64, by a cross compiler and QEMU: right results, and the same bits as on this machine.

    python tools/arm64.py                     # everything: about 12 minutes, after minutes of compilation
    python tools/arm64.py programs            # the core's programs, without Python
    python tools/arm64.py python --seconds 10

`programs` compiles `fuzz/simd.cpp`, `fuzz/replay.cpp` and `fuzz/stress.cpp` twice, for arm64 and for this machine, and compares their
results. `python` fetches an arm64 Python from this machine's Debian sources into `build/arm64` (no root, no change of the
system), builds the module for it, and runs hashes, tests and random calls. On Debian it needs g++-aarch64-linux-gnu and qemu-user.
"""

from __future__ import annotations

import argparse
import getpass
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pip
from emulate import Failure, compare

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "fuzz" / "helpers"))

from build import ARM64, ARM64_COMPILER, OF_ANY_BUILD, Missing, build, configure_and_build, package, tool  # noqa: E402

FOLDER = ROOT / "build" / "arm64"
PACKAGES = ("python3", "libpython3-dev", "libstdc++6")
WHEELS = (
    "hypothesis",
    "iniconfig",
    "ml-dtypes",
    "nanobind",
    "numpy",
    "packaging",
    "pluggy",
    "pygments",
    "pytest",
    "sortedcontainers",
)
# Tests of other machines' instructions skip; those that take long natively are left out.
TESTS = [
    "tests/conformance/test_seeds.py",
    "tests/kernels",
    *(f"--ignore=tests/kernels/test_{name}.py" for name in ("images", "independence", "reference", "tap_verbs")),
    *OF_ANY_BUILD,
]
DIGEST = re.compile(r"core: (\d+) calls of verbs, .* digest ([0-9a-f]{16})")
ABOUT = "import sysconfig, numpy; print(sysconfig.get_path('include'), numpy.get_include(), sep='\\n')"


def say(text: str) -> None:
    """Print a line at once."""
    print(f"arm64: {text}", flush=True)


def finished(words: list[str | Path], what: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command; fail if it does."""
    done = subprocess.run(words, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"{what}: status {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done


def emulator() -> str:
    """Return QEMU's path."""
    return tool("qemu-aarch64", "qemu-aarch64-static")


# ---- the core without Python


def programs(seconds: float, inputs: int) -> None:
    """Check vectors lane by lane, replay inputs here and there, and call from many threads."""
    qemu, compiler = emulator(), tool(ARM64_COMPILER)
    system = Path(finished([compiler, "-print-file-name=libc.so.6"], "libc").stdout.strip()).resolve().parents[1]
    here, there = build("plain"), build("arm64")
    emulated: list[str | Path] = [qemu, "-L", system]
    say(finished([*emulated, there / "simd"], "simd").stderr.strip())
    corpus = [ROOT / "fuzz" / "corpus" / "core.txt", str(inputs)]
    theirs = DIGEST.search(finished([*emulated, there / "replay", *corpus], "replay").stderr)
    ours = DIGEST.search(finished([here / "replay", *corpus], "replay on this machine").stderr)
    if not ours or not theirs or ours[0] != theirs[0]:
        raise Failure(f"replay: this machine printed {ours and ours[0]}, arm64 {theirs and theirs[0]}")
    say(f"replay: {int(ours[1]):,} calls of verbs, digest {ours[2]}, as on this machine")
    stress = finished([*emulated, there / "stress", str(seconds), "2"], "stress")
    say(f"stress: {stress.stderr.strip().splitlines()[-1]}")


# ---- an arm64 Python


def fetched(folder: Path) -> Path:
    """Unpack an arm64 Python from the machine's Debian sources, with apt's own files in this folder; return its root."""
    root = folder / "root"
    apt, dpkg = tool("apt-get"), tool("dpkg")
    for name in ("state/lists/partial", "cache/archives/partial", "root"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "state" / "status").touch()
    settings = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Sandbox::User": getpass.getuser(),
        "Dir::State": str(folder / "state"),
        "Dir::State::status": str(folder / "state" / "status"),
        "Dir::Cache": str(folder / "cache"),
    }
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    try:
        finished([apt, *options, "update"], "apt-get update")
        words = ["install", "--download-only", "--yes", "--no-install-recommends"]
        finished([apt, *options, *words, *PACKAGES], "apt-get install")
    except Failure as failure:
        raise Missing(f"needs Debian sources with arm64 packages; {failure}") from failure
    for archive in sorted((folder / "cache" / "archives").glob("*.deb")):
        finished([dpkg, "-x", archive, root], archive.name)
    return root


def locked() -> str:
    """Return the locked requirements of these tests, with their hashes."""
    lines = (ROOT / "requirements" / "test.txt").read_text()
    found = re.findall(r"^\w.*\n(?: .*\n)*", lines, re.MULTILINE)
    return "".join(block for block in found if block.split("==")[0] in WHEELS)


def arm64_python() -> Path:
    """Return a command that runs the arm64 Python, made unless it exists."""
    folder = FOLDER / "python"
    command, stamp = folder / "python", folder / "made"
    wanted = hashlib.sha256((locked() + Path(__file__).read_text()).encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return command
    shutil.rmtree(folder, ignore_errors=True)
    root = fetched(folder)
    command.write_text(f'#!/bin/sh\nexec "{emulator()}" -L "{root}" "{root}/usr/bin/python3" "$@"\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    site = root / "usr" / "lib" / "python3" / "dist-packages"
    (site / "emulated.pth").write_text(f"import sys; sys.executable = {str(command)!r}\n")  # for child processes
    (folder / "pip").mkdir()
    (folder / "pip" / "pip").symlink_to(Path(pip.__file__).parent)
    (folder / "requirements.txt").write_text(locked())
    words = [
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--require-hashes",
    ]
    words += ["--target", str(site), "-r", str(folder / "requirements.txt")]
    finished([command, "-m", "pip", *words], "pip install", PYTHONPATH=str(folder / "pip"))
    stamp.write_text(wanted)
    return command


def arm64_package(command: Path) -> Path:
    """Build the module with the shipped flags; return the entry for PYTHONPATH."""
    include, numpy = finished([command, "-c", ABOUT], "the arm64 Python").stdout.split()
    # Debian's pyconfig.h includes a file of this folder, whose other headers the compiler has.
    options = [*ARM64, f"-DCMAKE_CXX_FLAGS=-idirafter {Path(include).parent}"]
    options += [f"-DPython_INCLUDE_DIR={include}", f"-DPython_NumPy_INCLUDE_DIR={numpy}"]
    return package(configure_and_build(ROOT, FOLDER / "module", ARM64_COMPILER, str(command), options))


def python(seconds: float) -> None:
    """Compare hashes with those of this machine; run tests; compare random calls with the reference."""
    tool(ARM64_COMPILER)  # before the long download
    command = arm64_python()
    path = os.pathsep.join([str(arm64_package(command)), str(ROOT / "tests" / "helpers")])

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PYTHONPATH": path}
        return subprocess.run([command, *words], cwd=ROOT, env=env, capture_output=True, text=True, check=False)

    say(run("-c", "import poolgrad; print(poolgrad.config())").stdout.strip())
    same_output(command, path, "hashes", ["tests/kernels/hashes.py"])
    same_output(command, path, "bits", ["tools/bits.py", "--quick", "--no-adapters", "--as-json"])
    start = time.monotonic()
    tests = run("-m", "pytest", "-x", "-p", "no:cacheprovider", *TESTS)
    if tests.returncode:
        raise Failure(f"tests: status {tests.returncode}\n{tests.stdout[-4000:]}{tests.stderr[-2000:]}")
    say(f"tests: passed ({time.monotonic() - start:.0f} s)")
    for script in ("verbs.py", "ops.py"):
        say(f"{compare('arm64', run, script, seconds)}, all right")


def same_output(command: Path, path: str, what: str, words: list[str]) -> None:
    """Fail unless both Pythons print the same hashes."""
    helpers = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT / "tests" / "helpers")]))
    ours = hashes(finished([sys.executable, *words], f"{what} on this machine", PYTHONPATH=helpers).stdout)
    theirs = hashes(finished([command, *words], what, PYTHONPATH=path).stdout)
    differ = [key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)]
    if differ or not ours:
        raise Failure(f"{what}: {len(differ)} of {len(ours)} hashes differ\n    " + "\n    ".join(sorted(differ)[:8]))
    say(f"{what}: {len(ours):,} hashes, as on this machine")


def hashes(text: str) -> dict[str, str]:
    """Return what was hashed, and the hash: from JSON, or from lines that begin with the hash."""
    if text.startswith("{"):
        return {f"{name} {key}": value for name, rows in json.loads(text).items() for key, value in rows}
    lines = [line.split(" ", 1) for line in text.splitlines() if not line.startswith("level ")]
    return {f"{number}: {case}": value for number, (value, case) in enumerate(lines)}


def main() -> int:
    """Run what was asked for; return 1 if something failed, 2 if something is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help="programs, python; both unless given")
    parser.add_argument("--seconds", type=float, default=60, help="how long each of the random comparisons runs")
    parser.add_argument("--inputs", type=int, default=20000, help="random inputs of replay")
    given = parser.parse_args()
    if unknown := set(given.what) - {"programs", "python"}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    try:
        if not given.what or "programs" in given.what:
            programs(given.seconds, given.inputs)
        if not given.what or "python" in given.what:
            python(given.seconds)
    except Missing as missing:
        say(f"{missing} (on Debian: apt-get install g++-aarch64-linux-gnu qemu-user cmake ninja-build)")
        return 2
    except (Failure, RuntimeError) as failure:
        say(f"FAILED: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
