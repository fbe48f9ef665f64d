"""TensorFlow's pooling ops by their own names and signatures, made from the table.

Every function takes keyword arguments only, and NumPy arrays or anything that can become one.

>>> import numpy as np
>>> x = np.array([[1, 2, 5], [4, 3, 0]], np.float32).reshape(1, 2, 3, 1)
>>> MaxPool(input=x, ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="VALID").ravel().tolist()
[4.0, 5.0]
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from ._common.arrays import Array, ready, whole
from ._common.errors import ArgumentErrors, out_of_memory
from ._kernels import native as native_verbs
from ._kernels.bind_kernel import bind_kernel
from ._kernels.native import Astray
from ._ops.bind import BoundCall, arrays_of, bind
from ._ops.docstrings import DOCSTRINGS
from ._ops.semantics import Kernel
from ._ops.table import ARRAYS, OPS, REQUIRED, Kind, Op
from ._windows.plan_cache import SHORT, entries

__all__ = list(OPS)

_CACHE_SIZE = 1024
_LISTS = (list, tuple)
_LONGEST_KEY = 65536  # elements of a shape or sequence that may be part of a key
_LONGEST_COPY = 2**24  # bytes of one that are copied before it is looked at

Run = Callable[..., Any]


class _Runner:
    """A runner of one op. It caches checked calls by everything that the check depends on."""

    def __init__(self, op: Op, verbs: Any) -> None:
        self.op, self.verbs = op, verbs
        if len(op.outputs) > 1:
            self.result: Callable[..., Any] = namedtuple(op.name, op.outputs)  # type: ignore[misc]  # named by the table
        self.whole = len(op.outputs) == (2 if op.rule.verb is Kernel.ARGMAX else 1)  # results are the verb's alone
        self.runs: dict[Any, Run] = {}  # the oldest first
        self.arrays = [p for p in op.params if p.kind in ARRAYS]
        self.cells = [p.name for p in op.params if p.kind.is_cells]
        self.key: Callable[..., Any] = lambda *args: None

    def __call__(self, *args: Any) -> Any:
        """Run a call that is not cached: check every argument."""
        try:
            return self._checked(*args)
        except MemoryError as error:
            out_of_memory(self.op.name, self.op.params[0].name, error)

    def _checked(self, *args: Any) -> Any:
        op, problems = self.op, ArgumentErrors(self.op.name)
        args = tuple(_own(value) if p.kind.by_value else value for p, value in zip(op.params, args, strict=True))
        given = {p.name: value for p, value in zip(op.params, args, strict=True)}
        arrays, wrapped = arrays_of(op, given, problems)
        attrs = {p.name: given[p.name] for p in op.params if p.kind not in ARRAYS}
        call = bind(op, arrays, attrs, problems)
        arrays = {name: ready(problems, name, array) for name, array in arrays.items()}
        run = self._run(call, arrays)
        self._keep(call, args, run)
        try:
            outs = run(*(arrays[name] for name in self.cells))
        except Astray as astray:
            self._blame(call, arrays, astray.at)
            raise
        if self.whole:
            return outs
        outs = list(outs) if isinstance(outs, tuple) else [outs]
        outs = [_wrap(outs[0], wrapped), *outs[1:]] if wrapped is not None else outs
        outs += [np.array(arrays[p.name]) for p in self.arrays if p.kind is Kind.RANGE]
        outs += [s.copy() for s in call.drawn] if op.order == 0 else []
        return self.result(*outs)

    def _keep(self, call: BoundCall, args: tuple[Any, ...], run: Run) -> None:
        """Cache the call if all its results come from the kernel; skip calls with many windows or random draws."""
        key = self.key(*args) if self.whole and call.plan is not None and entries(call.plan) <= SHORT else None
        if key is None:
            return
        self.runs[key] = run
        for old in list(self.runs)[:-_CACHE_SIZE]:
            self.runs.pop(old, None)

    def _run(self, call: BoundCall, arrays: dict[str, Array]) -> Run:
        """Return the checked call as a function of the cells alone."""
        if self.op.rule.verb is Kernel.ARGMAX:
            find = self._found(call, arrays)
            return lambda x: self.result(*find(x))
        return self._found(call, arrays)

    def _found(self, call: BoundCall, arrays: dict[str, Array]) -> Run:
        """Return a function that computes the kernel's results, not yet named."""
        if call.plan is not None:
            return bind_kernel(self.op.rule, self.verbs, call)
        dtype = next(arrays[p.name].dtype for p in self.arrays if p.kind in (Kind.SOURCE, Kind.DEST))
        shape = call.source if self.op.order == 1 else call.dest
        if self.op.rule.verb is Kernel.ARGMAX:
            return lambda x: (np.zeros(shape, dtype), np.zeros(shape, call.index))
        return lambda *cells: np.zeros(shape, dtype)

    def _blame(self, call: BoundCall, arrays: dict[str, Array], at: int) -> None:
        """Raise an error that names the wrong element and the reason."""
        place = [int(i) for i in np.unravel_index(at, call.dest)]
        where = self.op.param(Kind.INDEX)
        problems = ArgumentErrors(self.op.name)
        if where is not None:
            value = arrays[where.name].reshape(-1)[at]
            problems.fail(
                where.name, f"{value} at {place}", f"a flat position inside the input of shape {list(call.source)}"
            )
        value = arrays["orig_output"].reshape(-1)[at]
        wanted = "the maximum of orig_input over that window of row_pooling_sequence and col_pooling_sequence"
        problems.fail("orig_output", f"{value} at {place}", wanted)


def _own(value: Any) -> Any:
    """Copy a list or a vector: another thread may change it between the check, its use, and the key that it is kept under."""
    if value.__class__ is np.ndarray and value.nbytes <= _LONGEST_COPY:
        return value.copy()
    return value[:] if value.__class__ is list and len(value) <= _LONGEST_COPY else value


def _wrap(array: Array, dtype: np.dtype[Any]) -> Array:
    """Return the array as the one field of a dtype, which may have padding around it."""
    if dtype.itemsize == array.dtype.itemsize:
        return array.view(dtype)
    wrapped = np.zeros(array.shape, dtype)
    wrapped[wrapped.dtype.names[0]] = array
    return wrapped


def _vector(value: Any) -> tuple[Any, ...]:
    """Return a cache key for a shape or sequence; raise TypeError if its call must be checked each time."""
    if value.__class__ is np.ndarray:
        if whole(value) and value.size <= _LONGEST_KEY:
            return value.shape, value.dtype, value.tobytes()
    elif value.__class__ in _LISTS and len(value) <= _LONGEST_KEY and set(map(type, value)) == {int}:
        return tuple(value)
    raise TypeError


def _key_words(op: Op) -> tuple[list[str], list[str]]:
    """Return Python text: the conditions under which a call may be cached, and the parts of its key."""
    parts = [p.kind.cache_key(p.name) for p in op.params]
    return [plain for plain, _ in parts if plain], [part for _, key in parts for part in key]


def make(op: Op, verbs: Any = native_verbs) -> Callable[..., Any]:
    """Return a function with the op's signature, over the native verbs or over those of `reference`.

    As namedtuple does, it is written out as text: a true signature, and a short way at no cost for calls seen before.
    """
    words = [p.name if p.default is REQUIRED else f"{p.name}={p.plain_default!r}" for p in op.params]
    names = ", ".join(p.name for p in op.params)
    runner = _Runner(op, verbs)
    plain, key = _key_words(op)
    source = f"""
def _key({names}):
    try:
        return ({", ".join(key)},) if {" and ".join(plain)} else None
    except Exception:
        return None

def {op.name}(*, {", ".join(words)}):
    try:
        if {" and ".join(plain)}:
            return _runs[{", ".join(key)}]({", ".join(runner.cells)})
    except Exception:
        pass
    return _runner({names})
"""
    scope: dict[str, Any] = {"_runner": runner, "_runs": runner.runs, "_array": np.ndarray, "__name__": __name__}
    scope |= {"_lists": _LISTS, "_vector": _vector, "whole": whole}
    exec(source, scope)
    runner.key = scope["_key"]
    function: Callable[..., Any] = scope[op.name]
    function.__doc__ = DOCSTRINGS.get(op.name, op.summary)
    return function


for _op in OPS.values():
    globals()[_op.name] = make(_op)
