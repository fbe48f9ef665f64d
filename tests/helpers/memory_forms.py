"""Ways in which an array may lie in memory: each gives the same elements elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray


def _reversed(a: Array) -> Array:
    flip = (slice(None, None, -1),) * a.ndim
    return np.ascontiguousarray(a[flip])[flip]


def _with_gaps(a: Array) -> Array:
    room = np.zeros((*a.shape[:-1], 2 * a.shape[-1] + 1), a.dtype)
    room[..., 1::2] = a
    return room[..., 1::2]


def _unaligned(a: Array) -> Array:
    view = np.zeros(a.nbytes + 1, np.uint8)[1:].view(a.dtype).reshape(a.shape)
    view[...] = a
    return view


def _read_only(a: Array) -> Array:
    a = np.array(a)
    a.flags.writeable = False
    return a


MEMORY: dict[str, Callable[[Array], Array]] = {
    "plain": lambda a: a,
    "fortran": np.asfortranarray,
    "reversed": lambda a: _reversed(a) if a.ndim else a,
    "gaps": lambda a: _with_gaps(a) if a.ndim else a,
    "unaligned": _unaligned,
    "swapped": lambda a: a.astype(a.dtype.newbyteorder("S")) if a.dtype.kind in "iuf" else a,
    "read_only": _read_only,
}
