"""Build the instrumented core, and prepare Python to run with it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ARM64_COMPILER = "aarch64-linux-gnu-g++"
ARM64 = ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64"]
C_COMPILERS = {"c++": "cc", "clang++": "clang", ARM64_COMPILER: "aarch64-linux-gnu-gcc"}  # for the programs in C
KINDS = {
    "asan": ("address,undefined", "c++"),
    "tsan": ("thread", "c++"),
    "msan": ("memory", "clang++"),
    "fuzz": ("fuzzer", "clang++"),
    "coverage": ("coverage", "clang++"),
    "faults": ("faults", "c++"),
    "plain": ("plain", "c++"),
    "arm64": ("plain", ARM64_COMPILER),
}

# Tests of the shipped build: its speed, its size, the names that it exports. Instrumented builds differ in all three.
SHIPPED = ("not_slower", "costs_at_most", "nothing_but_its_entry", "takes_less_than")
OF_ANY_BUILD = ["-k", " and ".join(f"not {name}" for name in SHIPPED)]


class Missing(RuntimeError):
    """A required program is not installed."""


def tool(*names: str) -> str:
    """Return the first of these programs that is installed."""
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise Missing(f"needs {' or '.join(names)}, which is not installed")
    return found


def build(kind: str, root: Path = ROOT) -> Path:
    """Build what has changed, in a folder of its own; return the folder. `root` may be a copy of this tree."""
    flags, compiler = KINDS[kind]
    options = [f"-DPOOLGRAD_INSTRUMENT={flags}", *(ARM64 if kind == "arm64" else [])]
    return configure_and_build(root / "fuzz", ROOT / "build" / kind, compiler, sys.executable, options)


def configure_and_build(source: Path, folder: Path, compiler: str, python: str, options: list[str]) -> Path:
    """Run CMake on a folder of sources; return the folder of what it built."""
    cmake, made = tool("cmake"), tool("ninja", "make")
    generator = "Ninja" if made.endswith("ninja") else "Unix Makefiles"
    setup = [cmake, "-S", source, "-B", folder, "-G", generator, *options]
    setup += [f"-DCMAKE_CXX_COMPILER={tool(compiler)}", f"-DPython_EXECUTABLE={python}"]
    setup += [f"-DCMAKE_C_COMPILER={tool(C_COMPILERS[compiler])}"] if compiler in C_COMPILERS else []
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(os.cpu_count() or 1)
    for command in (setup, [cmake, "--build", folder, "--parallel", jobs]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}")
    return folder


def package(folder: Path) -> Path:
    """Copy the Python package, with the folder's core in place of the installed one; return the entry for PYTHONPATH."""
    home = (folder if ROOT / "build" in folder.parents else ROOT / "build" / "plain") / "package"
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(ROOT / "src" / "poolgrad", home / "poolgrad", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    module = next(folder.glob("_core*.so"))
    shutil.copy2(module, home / "poolgrad")
    (home / "poolgrad" / "include").mkdir()
    shutil.copy2(ROOT / "src" / "core" / "api" / "poolgrad.h", home / "poolgrad" / "include")  # as installed
    return home


def installed() -> Path:
    """Return the folder of the core that Python finds without help."""
    found = importlib.util.find_spec("poolgrad")  # to find the core would import the package
    if found is None or found.origin is None:
        raise Missing("needs poolgrad, which is not installed")
    return Path(found.origin).parent


def runtime(*names: str) -> str:
    """Return the compiler's libraries that must be loaded before Python."""
    compiler = tool("c++")
    paths = [subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip() for name in names]
    return " ".join(str(Path(path).resolve()) for path in paths)
