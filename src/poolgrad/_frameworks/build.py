"""Compile, find and load the extensions that run pools inside a framework: C++ files over poolgrad.h, which the core's table serves.

An extension links to nothing of poolgrad. It exports `int poolgrad_connect(const void *table)`, which keeps the address of the
core's functions (`pg_table` in poolgrad.h) and returns 1 if it knows that version.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..config import foreign

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent
CAPSULE = b"poolgrad.table.2"
FLAGS = ("-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wconversion", "-Werror")


def header() -> Path:
    """Return the header of the core's functions: in the package, or in a checkout beside the core."""
    installed = PACKAGE / "include" / "poolgrad.h"
    return installed if installed.exists() else PACKAGE.parent / "core" / "api" / "poolgrad.h"


def table() -> int | None:
    """Return the address of the core's functions; Python raises ValueError if their version differs."""
    read = ctypes.pythonapi.PyCapsule_GetPointer
    read.restype, read.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address: int | None = read(foreign(), CAPSULE)
    return address


@dataclass(frozen=True)
class Extension:
    """One extension: its source, the framework that it is compiled for, and the compiler's options.

    Attributes
    ----------
    module : str
        The module that it belongs to, for messages: "poolgrad.jax".
    source : Path
        The C++ file.
    name : str
        The name of the library: "_xla.so".
    version : str
        The framework's version, if the library depends on it; else "".
    options : callable
        Returns more options of the compiler, such as those for the framework's headers. A build calls it, nothing else.
    links : callable
        Returns options that follow the source, such as libraries. A build calls it, nothing else.
    """

    module: str
    source: Path
    name: str
    version: str = ""
    options: Callable[[], tuple[str, ...]] = tuple
    links: Callable[[], tuple[str, ...]] = tuple

    @property
    def beside(self) -> Path:
        """Return the path of a library that was built with the package."""
        return self.source.parent / self.name

    @property
    def cached(self) -> Path:
        """Return the path of a library built after installation; it depends on the sources, the machine and the framework."""
        paths = (
            self.source,
            *(path for folder in (self.source.parent, HERE) for path in sorted(folder.glob("*.hpp"))),
            header(),
        )
        sources = b"".join(path.read_bytes() for path in paths)
        key = hashlib.sha256(sources + f"{platform.system()} {platform.machine()} {self.version}".encode())
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return root / "poolgrad" / key.hexdigest()[:16] / self.name

    def find(self) -> Path | None:
        """Return the path of the library, or None if it was not built."""
        return next((path for path in (self.beside, self.cached) if path.exists()), None)

    def build(self) -> Path:
        """Compile the library into the user's cache, and return its path."""
        compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
        if not compiler:
            raise RuntimeError(f"{self.module}: build: got no C++ compiler, wanted one in CXX or on the path")
        target = self.cached
        target.parent.mkdir(parents=True, exist_ok=True)
        made = target.with_name(f"{self.name}.{os.getpid()}")
        paths = (*self.options(), f"-I{header().parent}", f"-I{HERE}", str(self.source), "-o", str(made), *self.links())
        done = subprocess.run([*compiler.split(), *FLAGS, *paths], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{self.module}: build: the compiler failed:\n{done.stderr[-4000:]}")
        made.replace(target)
        return target

    def load(self, path: Path) -> ctypes.CDLL:
        """Load a library, and give it the core's functions."""
        library = ctypes.CDLL(str(path))
        library.poolgrad_connect.argtypes = [ctypes.c_void_p]
        if not library.poolgrad_connect(table()):
            raise RuntimeError(f"{self.module}: {path} was built for another version of poolgrad: build it again")
        return library
