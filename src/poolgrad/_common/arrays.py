"""Convert arguments to NumPy arrays that the core can read: contiguous, aligned, in native byte order."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import integers
from .errors import ArgumentErrors, short_repr

Array = npt.NDArray[Any]

_STEP = 2**24  # bytes per step of a copy

_ARRAYS = "an array (NumPy, buffer, DLPack or __array__)"
_UNMASKED = "no masked cells: x.filled(np.nan) with nan='ignore' leaves them out of a pool; x.filled(number) fills them"


class _Masked(Exception):
    """A list holds arrays with masked cells."""


def as_array(
    problems: ArgumentErrors,
    name: str,
    value: object,
    like: np.dtype[Any] | None = None,
    tensorflow: bool = False,
) -> Array | None:
    """Return the value as a plain array in native byte order; record an error and return None if it is not an array.

    The result shares memory with the value where possible. Anything but an ndarray is converted exactly once. Lists and scalars get
    the dtype `like` if it is given; otherwise the dtype that NumPy, or with `tensorflow` TensorFlow, gives them (see `integers`).
    """
    if type(value) is np.ndarray and value.dtype.isnative:
        return value
    try:
        array = value if isinstance(value, np.ndarray) else _convert(value, like, tensorflow)
    except _Masked:
        problems.add(name, "a list of arrays with masked cells", _UNMASKED)
        return None
    except integers.Misfit as error:
        problems.add(name, short_repr(value), error)
        return None
    except Exception as error:
        kind = MemoryError if isinstance(error, MemoryError) else TypeError
        problems.add(
            name, f"{short_repr(value)} ({type(error).__name__}: {short_repr(str(error), 120)})", _ARRAYS, kind
        )
        return None
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        problems.add(name, "an array with masked cells", _UNMASKED)
        return None
    plain = np.asarray(array)
    return plain if plain.dtype.isnative else _native(problems, name, plain)


def _convert(value: object, like: np.dtype[Any] | None, tensorflow: bool) -> Array:
    if value is None or isinstance(value, (str, bytes, set, dict)):
        raise TypeError(f"a {type(value).__name__} is no array")
    if hasattr(value, "__array__"):
        return np.asanyarray(value)  # a lazy array may turn out to be a masked one
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    if not isinstance(value, (list, tuple, range, int, float)):  # no other sequence is read: it may be infinite
        interface = hasattr(value, "__array_interface__") or hasattr(value, "__array_struct__")
        return np.asarray(value if interface else memoryview(value))  # type: ignore[arg-type]  # which refuses what is no buffer
    if isinstance(value, (list, tuple)):  # copy the items past any overridden methods
        value = list.copy(value) if isinstance(value, list) else tuple.__getitem__(value, slice(None))
        if value and isinstance(value[0], np.ndarray) and any(map(np.ma.is_masked, value)):
            raise _Masked
    array = np.asarray(value)
    if like is not None:
        return integers.fit_list(array, like.newbyteorder("="))
    return integers.tensorflow_list(array, value) if tensorflow else array


def whole(array: Array) -> bool:
    """Return True if the array is contiguous and aligned; `flags.carray` is faster but also requires a writable array."""
    return array.flags.c_contiguous and array.flags.aligned


def ready(problems: ArgumentErrors, name: str, array: Array) -> Array:
    """Return the array, or a copy if the core cannot read its memory layout."""
    if whole(array) and array.dtype.isnative:
        return array
    afford(problems, name, array.nbytes, f"an array of shape {list(array.shape)} that is not contiguous")
    return _copy(array)


def _native(problems: ArgumentErrors, name: str, array: Array) -> Array:
    """Copy the array to native byte order; keep its memory order."""
    afford(problems, name, array.nbytes, f"an array of shape {list(array.shape)} in foreign byte order")
    return _copy(array, "K")


def _copy(array: Array, order: Literal["C", "K"] = "C") -> Array:
    """Copy the array to native byte order, in steps, so that Python can handle signals between them."""
    copy = np.empty_like(array, array.dtype.newbyteorder("="), order=order, subok=False)
    if array.nbytes <= _STEP:
        copy[...] = array
        return copy
    axis = int(np.argmax(array.shape))
    step = max(array.shape[axis] * _STEP // array.nbytes, 1)
    for i in range(0, array.shape[axis], step):
        part = (slice(None),) * axis + (slice(i, i + step),)
        copy[part] = array[part]
    return copy


def afford(problems: ArgumentErrors, name: str, nbytes: int, what: str) -> None:
    """Refuse an allocation of more bytes than the machine has, or than the process may use."""
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
