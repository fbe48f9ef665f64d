"""Find kernels that poolgrad wrote for a kind of device: those in Triton, for CUDA and ROCm, if triton can be imported.

They are loaded at the first tensor on such a device. `POOLGRAD_TRITON=0` leaves every pool to torch's own operations (`_portable`).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from typing import Any

import torch

from ._tensors import Tensor, traced

_served = {"cuda"}  # torch's name of ROCm's devices, too
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def kernels(x: Tensor) -> Any:
    """Return the module whose kernels can read a tensor; None if there is none, or if a trace or a mode watches."""
    if x.device.type not in _served or type(x) not in _PLAIN or traced():
        return None
    return _loaded()


@lru_cache(1)
def _loaded() -> Any:
    if os.environ.get("POOLGRAD_TRITON") == "0":
        return None
    try:
        return import_module("._triton", __package__)
    except ImportError:
        return None


def give_up(reason: Exception) -> None:
    """Use no more kernels in this process; say why. Triton needs a driver, a C compiler and a device that it knows."""
    warnings.warn(
        f"poolgrad: Triton does not compile or start kernels here ({type(reason).__name__}: {reason}); pools run by torch's own "
        "operations instead. POOLGRAD_TRITON=0 does so without this warning.",
        RuntimeWarning,
        stacklevel=2,
    )
    _served.clear()


@contextmanager
def interpreted() -> Iterator[None]:
    """Run the kernels for CPU tensors, too, where `_portable` pools them: for tests, in Triton's interpreter."""
    global _served
    before = _served
    _served = {*before, "cpu"}
    try:
        yield
    finally:
        _served = before
