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
from contextlib import suppress
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
from ._windows.plan_cache import SHORT, entries, trim

__all__ = list(OPS)

_CACHE_SIZE = 1024
_LISTS = (list, tuple)
_NUMBERS = frozenset({int, float})
_INT64 = np.dtype(np.int64)
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
        self.places = [(i, p.kind is Kind.SOURCE) for i, p in enumerate(op.params) if p.kind.is_cells]
        self.key: Callable[..., Any] = lambda *args: None
        self.shapeless: Callable[..., Any] = lambda *args: None  # the key of calls that differ by shapes
        self.other_shapes: dict[Any, Callable[[Any], BoundCall | None]] = {}

    def __call__(self, *args: Any) -> Any:
        """Run a call that is not cached: check every argument, or its shapes alone."""
        try:
            run = self._reshaped(args)
            if run is not None:
                with suppress(Exception):  # the checks say why
                    return run(*[args[i] for i, _ in self.places])
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

    def _reshaped(self, args: tuple[Any, ...]) -> Run | None:
        """Return and cache the run of a call that differs from a checked one by its shapes; None if there is none, or it may fail."""
        try:
            again = self.other_shapes.get(self.shapeless(*args))
            if again is None:
                return None
            source = self._source_of(args)
            call = again(source)
            if call is None or any(
                args[i].shape != (source if is_source else call.dest) for i, is_source in self.places
            ):
                return None
        except Exception:  # an argument that must be checked
            return None
        run = self._run(call, {})
        self._keep(call, args, run)
        return run

    def _source_of(self, args: tuple[Any, ...]) -> tuple[int, ...]:
        """Return the shape of the input, from an array of that shape or from the vector that spells it."""
        param = self.op.param(Kind.SHAPE) or self.op.param(Kind.SOURCE)
        assert param is not None
        value = args[self.op.params.index(param)]
        if param.kind is Kind.SOURCE:
            return tuple(value.shape)
        return (
            tuple(np.frombuffer(_vector(value)[-1], param.dtype).tolist())
            if type(value) is np.ndarray
            else _vector(value)
        )

    def _keep(self, call: BoundCall, args: tuple[Any, ...], run: Run) -> None:
        """Cache the call if all its results come from the kernel; skip calls with many windows. Windows from sequences are made anew."""
        if call.again is None and not (self.whole and call.plan is not None and entries(call.plan) <= SHORT):
            return
        key = self.key(*args)
        if key is None:
            return
        self.runs[key] = run if call.again is None else self._run_again(call._replace(plan=None, drawn=()))
        trim(self.runs, _CACHE_SIZE)
        if call.reshaped is not None:
            self.other_shapes[self.shapeless(*args)] = call.reshaped
            trim(self.other_shapes, _CACHE_SIZE)

    def _run_again(self, call: BoundCall) -> Run:
        """Return the call as a function of the cells, and of the seeds or sequences; it keeps the newest windows of given sequences."""
        bind_again, cells, rule, verbs = call.again, len(self.cells), self.op.rule, self.verbs
        assert bind_again is not None
        if self.op.order == 0:

            def draw(*given: Any) -> Any:
                fresh = bind_again(*given[cells:])
                return self.result(bind_kernel(rule, verbs, fresh)(*given[:cells]), *fresh.drawn)

            return draw
        newest: tuple[Any, Run | None] = None, None

        def follow(*given: Any) -> Any:
            nonlocal newest
            sequences, run = newest
            if run is None or sequences != given[cells:]:
                fresh = bind_again(*given[cells:])
                assert fresh.plan is not None
                run = bind_kernel(rule, verbs, fresh)
                newest = (given[cells:], run) if entries(fresh.plan) <= SHORT else (None, None)
            return run(*given[:cells])

        return follow

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
            return lambda x: (np.zeros(shape, dtype), np.zeros(shape, call.index_type))
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


def _borders(value: Any) -> bytes:
    """Return a pooling sequence as bytes; raise TypeError if its call must be checked."""
    if value.__class__ is np.ndarray:
        if value.ndim == 1 and value.dtype == _INT64 and value.size <= _LONGEST_KEY:
            return value.tobytes()
        raise TypeError
    return np.array(_vector(value), _INT64).tobytes()


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
    shapeless = [part for p in op.params for part in p.kind.shapeless_key(p.name)]
    given = sorted((p.kind.run_argument(p.name) for p in op.params), key=lambda text: text not in runner.cells)
    source = f"""
def _key({names}):
    try:
        return ({", ".join(key)},) if {" and ".join(plain)} else None
    except Exception:
        return None

def _shapeless({names}):
    try:
        return ({", ".join(shapeless)},) if {" and ".join(plain)} else None
    except Exception:
        return None

def {op.name}(*, {", ".join(words)}):
    try:
        if {" and ".join(plain)}:
            return _runs[{", ".join(key)}]({", ".join(filter(None, given))})
    except Exception:
        pass
    return _runner({names})
"""
    scope: dict[str, Any] = {"_runner": runner, "_runs": runner.runs, "_array": np.ndarray, "__name__": __name__}
    scope |= {"_lists": _LISTS, "_numbers": _NUMBERS, "_vector": _vector, "_borders": _borders, "whole": whole}
    exec(source, scope)
    runner.key, runner.shapeless = scope["_key"], scope["_shapeless"]
    function: Callable[..., Any] = scope[op.name]
    function.__doc__ = DOCSTRINGS.get(op.name, op.summary)
    return function


for _op in OPS.values():
    globals()[_op.name] = make(_op)
