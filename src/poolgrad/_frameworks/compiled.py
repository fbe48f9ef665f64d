"""Compile a framework's extension from the package's sources into the user's cache, and find it there again."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

FLAGS = ("-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wconversion", "-Werror")
PACKAGE = Path(__file__).parents[1]


def core_header() -> Path:
    """Return the header of the core's function table: in the installed package, or in a checkout beside the core."""
    installed = PACKAGE / "jax" / "foreign.hpp"
    return installed if installed.exists() else PACKAGE.parent / "core" / "api" / "foreign.hpp"


def cached(name: str, sources: Sequence[Path], *versions: str) -> Path:
    """Return the path of a library built after installation; it depends on the sources, the machine and the versions."""
    text = b"".join(path.read_bytes() for path in sources)
    key = hashlib.sha256(text + " ".join((platform.system(), platform.machine(), *versions)).encode())
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "poolgrad" / key.hexdigest()[:16] / name


def compile_library(who: str, target: Path, source: Path, includes: Sequence[str], words: Sequence[str] = ()) -> Path:
    """Compile a source into the library `target`, with system headers from `includes`; return its path."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        raise RuntimeError(f"{who}: build: got no C++ compiler, wanted one in CXX or on the path")
    target.parent.mkdir(parents=True, exist_ok=True)
    made = target.with_name(f"{target.name}.{os.getpid()}")
    paths = [word for path in includes for word in ("-isystem", path)]
    line = [*compiler.split(), *FLAGS, *paths, f"-I{core_header().parent}", str(source), "-o", str(made), *words]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{who}: build: the compiler failed:\n{done.stderr[-4000:]}")
    made.replace(target)
    return target
