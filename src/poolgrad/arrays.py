"""From whatever a caller has to a NumPy array that the core can read: contiguous, aligned, in native byte order."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import Problems, brief

Array = npt.NDArray[Any]

_STEP = 2**24  # bytes that are copied at a time

_ARRAYS = "an array (NumPy, buffer, DLPack or __array__)"


def as_array(problems: Problems, name: str, value: object, like: np.dtype[Any] | None = None) -> Array | None:
    """The value as an array, its memory shared where possible; None if it is none, and the problem noted.

    Lists and scalars become `like`, or, as in TensorFlow, float32 and int32.
    """
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        problems.add(name, "an array with masked cells", "an array without them: pooling would read what they hide")
        return None
    if isinstance(value, np.ndarray):
        return np.asarray(value)
    try:
        return _convert(value, like)
    except Exception as error:
        kind = MemoryError if isinstance(error, MemoryError) else TypeError
        problems.add(name, f"{brief(value)} ({type(error).__name__}: {brief(str(error), 120)})", _ARRAYS, kind)
        return None


def _convert(value: object, like: np.dtype[Any] | None) -> Array:
    if value is None or isinstance(value, (str, bytes, set, dict)):
        raise TypeError(f"a {type(value).__name__} is no array")
    if hasattr(value, "__array__"):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    if not isinstance(value, (list, tuple, range, int, float)):  # nor any other sequence, which may have no end
        interface = hasattr(value, "__array_interface__") or hasattr(value, "__array_struct__")
        return np.asarray(value if interface else memoryview(value))  # type: ignore[arg-type]  # which refuses what is no buffer
    if isinstance(value, (list, tuple)):  # what it holds, whatever methods of its own say
        value = list.copy(value) if isinstance(value, list) else tuple.__getitem__(value, slice(None))
    array = np.asarray(value)
    if like is not None and (array.dtype.kind in "iu" or (array.dtype.kind == "f" and like.kind not in "iu")):
        return np.asarray(value, like)  # which refuses integers that do not fit
    return array.astype({"f": np.float32, "i": np.int32}.get(array.dtype.kind, array.dtype))


def whole(array: Array) -> bool:
    """Contiguous and aligned; `flags.carray`, which is quicker, says so of arrays that may be written."""
    return array.flags.c_contiguous and array.flags.aligned


def ready(problems: Problems, name: str, array: Array) -> Array:
    """The array itself, or a copy where the core could not read it as it lies."""
    if whole(array) and array.dtype.isnative:
        return array
    afford(problems, name, array.nbytes, f"an array of shape {list(array.shape)} that is not contiguous")
    return _copy(array)


def _copy(array: Array) -> Array:
    """A contiguous copy in native byte order, in steps between which Python can handle signals."""
    copy = np.empty(array.shape, array.dtype.newbyteorder("="))
    if array.nbytes <= _STEP:
        copy[...] = array
        return copy
    axis = int(np.argmax(array.shape))
    step = max(array.shape[axis] * _STEP // array.nbytes, 1)
    for i in range(0, array.shape[axis], step):
        part = (slice(None),) * axis + (slice(i, i + step),)
        copy[part] = array[part]
    return copy


def afford(problems: Problems, name: str, nbytes: int, what: str) -> None:
    """Refuses at once what could not be allocated anyway: more bytes than this machine, or this process, may have."""
    if nbytes > 2**28 and nbytes > _memory():
        problems.fail(
            name, f"{what}: {nbytes} bytes", f"at most the {_memory()} bytes of memory there are", MemoryError
        )


def _memory() -> int:
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 2**47]
    with suppress(ImportError):
        import resource

        soft = resource.getrlimit(resource.RLIMIT_AS)[0]
        if soft != resource.RLIM_INFINITY:
            limits.append(soft)
    return min(limits)
