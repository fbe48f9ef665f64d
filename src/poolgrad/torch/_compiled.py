"""Build, find and load the compiled part of poolgrad.torch; without it everything runs through Python.

It needs torch's headers, which are part of torch, and fits one version of torch and of Python. So it is not in the wheel:
`python -m poolgrad.torch build` compiles it into the user's cache.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
import sysconfig
import time
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from .._frameworks.build import Extension
from ..config import foreign

HERE = Path(__file__).parent
KNOWN = ((2, 13),)  # versions of torch whose results the tests compare with ours

ADVICE = "python -m poolgrad.torch build"


def torch_version() -> tuple[int, int]:
    """Return the version of torch, without its patch number."""
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def _headers() -> tuple[str, ...]:
    root, own = Path(torch.__file__).parent / "include", Path(sysconfig.get_path("include"))
    if not (own / "Python.h").exists():
        raise RuntimeError("poolgrad.torch: build: got no Python.h, wanted Python's headers (package python3-dev)")
    paths = (root, root / "torch" / "csrc" / "api" / "include", own)
    return ("-ffp-contract=off", *(word for path in paths for word in ("-isystem", str(path))))


def _libraries() -> tuple[str, ...]:
    folder = Path(torch.__file__).parent / "lib"
    return (f"-L{folder}", "-ltorch_cpu", "-ltorch_python", "-lc10", f"-Wl,-rpath,{folder}", "-fopenmp", "-s")


EXTENSION = Extension(
    "poolgrad.torch",
    HERE / "extension.cpp",
    "_compiled_torch.so",
    f"{torch.__version__} {torch.version.git_version} {sysconfig.get_config_var('SOABI')}",
    _headers,
    _libraries,
)


def build() -> Path:
    """Compile the library into the user's cache, and return its path."""
    if torch_version() not in KNOWN:
        raise RuntimeError(f"poolgrad.torch: build: {unknown_version()}")
    return EXTENSION.build()


def unknown_version() -> str:
    """Say that this version of torch is not known."""
    wanted = ", ".join(f"{a}.{b}" for a, b in KNOWN)
    return (
        f"got torch {torch.__version__}, wanted {wanted}: the results of other versions were not compared; "
        "use poolgrad.torch's functions and modules, which work without the compiled part"
    )


@lru_cache(1)
def load() -> Any:
    """Return the loaded library, or None."""
    path = None if os.environ.get("POOLGRAD_TORCH") == "python" else EXTENSION.find()
    if path is None or torch_version() not in KNOWN:
        return None
    try:
        loader = importlib.machinery.ExtensionFileLoader("_compiled", str(path))
        spec = importlib.util.spec_from_file_location("_compiled", path, loader=loader)
        assert spec is not None
        made = importlib.util.module_from_spec(spec)
        loader.exec_module(made)
        made.connect(foreign())
    except Exception as error:
        warnings.warn(f"poolgrad.torch: pools run through Python, since {path} cannot be used: {error}", stacklevel=2)
        return None
    return made


def main(arguments: list[str]) -> int:
    """Build the library, or print whether it is there."""
    if arguments == ["build"]:
        print(f"poolgrad.torch: compiling with the headers of torch {torch.__version__} ...", flush=True)
        begin = time.perf_counter()
        try:
            made = build()
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
        seconds, size = time.perf_counter() - begin, made.stat().st_size
        print(f"poolgrad.torch: built {made} in {seconds:.0f} s, {size:,} bytes")
        return 0
    if arguments:
        print("usage: python -m poolgrad.torch [build | run script.py ... | run -m module ...]", file=sys.stderr)
        return 2
    if load() is not None:
        print(f"pools of plain tensors are compiled, by {EXTENSION.find()}")
    elif torch_version() not in KNOWN:
        print(f"pools run through Python: {unknown_version()}")
    else:
        print(f"pools run through Python; to compile them: {ADVICE}")
    return 0
