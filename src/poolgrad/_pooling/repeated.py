"""Answer a repeated call without checking its arguments again.

A pool has two halves. The first checks everything but the cells and returns a function of an array, the run; the second runs it.
`remember` caches the run under the op, the shape, the dtype and the arguments. `answer` runs it again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from .._common.arrays import Array
from .._windows.axis import Axis
from .._windows.plan_cache import trim

Run: TypeAlias = Callable[[Array], Any]

_MOST = 1024  # calls that are remembered
_NO_RISK = 1 << 28  # bytes of a result that memory need not be checked for
_PLAIN = frozenset({int, float, bool, str, type(None), type, Axis, *np.sctypeDict.values()})

_runs: dict[Any, Callable[..., Any]] = {}  # oldest first


def answer(op: str, x: Any, args: tuple[Any, ...]) -> Any:
    """Return the result of a call that was made before, else None."""
    try:
        if x.__class__ is np.ndarray and x.flags.carray:
            return _runs[_key(op, x, args)](x)
    except Exception:  # an unknown call, or one that fails: the long way says why
        pass
    return None


def known(op: str, x: Any, args: tuple[Any, ...]) -> Callable[..., Any] | None:
    """Return the run of a call that was made before, else None."""
    try:
        return _runs.get(_key(op, x, args)) if x.__class__ is np.ndarray and x.flags.carray else None
    except Exception:  # an argument that is no key
        return None


def remember(op: str, x: Any, args: tuple[Any, ...], cells: int, run: Callable[..., Any]) -> None:
    """Cache the run of a call on a writable C array. Skip results of many cells, and arguments that are no plain values."""
    if type(x) is not np.ndarray or not x.flags.carray or 8 * cells > _NO_RISK:
        return
    try:
        if not (_PLAIN.issuperset(map(type, args)) or all(map(_plain, args))):
            return
        _runs[_key(op, x, args)] = run
    except (TypeError, RecursionError):  # an argument that is no key
        return
    trim(_runs, _MOST)


def _key(op: str, x: Array, args: tuple[Any, ...]) -> Any:
    """Return a key that tells 2 from 2.0 and True: the arguments with their types."""
    kinds = tuple(map(type, args))
    if list in kinds:
        return op, x.shape, x.dtype, tuple(map(_typed, args))
    if tuple in kinds:
        inner = tuple([tuple(map(type, value)) for value in args if type(value) is tuple])
        if not all(map(_PLAIN.issuperset, inner)):
            return op, x.shape, x.dtype, tuple(map(_typed, args))
        return op, x.shape, x.dtype, args, kinds, inner
    return op, x.shape, x.dtype, args, kinds


def _typed(value: Any) -> Any:
    """Return a value with its type; of a list, those of its items."""
    kind = type(value)
    return (kind, *map(_typed, value)) if kind is tuple or kind is list else (kind, value)


def _plain(value: Any) -> bool:
    """Return True for values that are equal only to values that mean the same."""
    kind = type(value)
    if kind is tuple or kind is list:
        return all(map(_plain, value))
    return kind in _PLAIN or isinstance(value, np.dtype)
