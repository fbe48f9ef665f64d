"""The pools as calls that XLA makes by itself, where the library for them is there; else None, and the caller calls Python.

The library needs XLA's headers, which are part of jaxlib. It is built with the package where jaxlib is installed, or later by
`python -m poolgrad.jax build`, into the user's cache.
"""

from __future__ import annotations

import os
import sys
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import jax.ffi
import numpy as np

from .._frameworks import compiled
from .._frameworks.build import Extension
from .._frameworks.spec import PoolSpec

HERE = Path(__file__).parent
TARGETS = ("poolgrad_select", "poolgrad_follow", "poolgrad_fold", "poolgrad_address")
EXTENSION = Extension(
    "poolgrad.jax",
    HERE / "xla.cpp",
    "_xla.so",
    jax.lib.__version__,
    lambda: ("-isystem", jax.ffi.include_dir()),
)


MODES = ("", "compiled", "callback", "portable")


def mode() -> str:
    """Return how pools run on the CPU, if the environment says it."""
    asked = os.environ.get("POOLGRAD_JAX", "").strip()
    if asked not in MODES:
        raise ValueError(f"POOLGRAD_JAX: got {asked!r}, wanted 'compiled', 'callback' or 'portable'")
    return asked


def library() -> Path | None:
    """Return the path of the library to load, or None."""
    return None if mode() == "callback" else EXTENSION.find()


@lru_cache(1)
def available() -> bool:
    """Return True if pools are compiled in; load and register the library at the first call."""
    path = library()
    if path is None:
        if not mode():
            warnings.warn(
                "poolgrad.jax: pools are called through Python, which takes longer: python -m poolgrad.jax build compiles "
                "them in; POOLGRAD_JAX=callback keeps them and this warning away",
                RuntimeWarning,
                stacklevel=2,
            )
        return False
    try:
        loaded = EXTENSION.load(path)
        for name in TARGETS:
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(loaded, name)), platform="cpu")
    except Exception as error:
        warnings.warn(
            f"poolgrad.jax: pools are called through Python, since {path} cannot be used: {error}", stacklevel=2
        )
        return False
    return True


def _axes(rule: PoolSpec) -> Any:
    return np.array(compiled.axes_of(rule.frame), np.int64)


def compiles(rule: PoolSpec, dtype: Any, back: bool | None = None) -> bool:
    """Return True if XLA can make the choice of a spec, or apply its operator if `back` is given, without Python."""
    known = compiled.chooses if back is None else compiled.applies
    return known(rule, np.dtype(dtype)) and available()


def select(rule: PoolSpec, shapes: Any, x: Any, windows: Any) -> list[Any] | None:
    """Return the best cells and their taps, or None if XLA cannot find them."""
    if not compiles(rule, x.dtype):
        return None
    call = jax.ffi.ffi_call("poolgrad_select", shapes)
    found = call(x, windows, axes=_axes(rule), least=rule.least, nan_wins=rule.nan == "propagate")
    return list(found)


def linear(rule: PoolSpec, back: bool, shape: Any, v: Any, windows: Any, *state: Any) -> Any:
    """Apply the operator to v, or return None if XLA cannot."""
    if not compiles(rule, v.dtype, back):
        return None
    if rule.kind == "pick":
        return jax.ffi.ffi_call("poolgrad_follow", shape)(v, windows, *state, axes=_axes(rule), back=back)
    how = compiled.division(rule)
    words = {**how, "factor": np.float64(how["factor"])}
    return jax.ffi.ffi_call("poolgrad_fold", shape)(v, windows, axes=_axes(rule), back=back, **words)


def main(arguments: list[str]) -> int:
    """Build the library, or print which one is used."""
    if arguments == ["build"]:
        print(f"poolgrad.jax: compiling with the headers of jaxlib {jax.lib.__version__} ...", flush=True)
        print(f"poolgrad.jax: built {EXTENSION.build()}")
        return 0
    if arguments:
        print("usage: python -m poolgrad.jax [build]", file=sys.stderr)
        return 2
    path = library()
    if path is not None and available():
        print(f"pools are XLA calls, by {path}")
    else:
        print("pools are called through Python; to compile them in: python -m poolgrad.jax build")
    return 0
