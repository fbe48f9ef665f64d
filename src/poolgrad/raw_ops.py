"""TensorFlow's pooling ops by their own names and signatures, made from the table.

Every function takes keyword arguments only, and NumPy arrays or anything that can become one.

>>> import numpy as np
>>> x = np.array([[1, 2, 5], [4, 3, 0]], np.float32).reshape(1, 2, 3, 1)
>>> MaxPool(input=x, ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="VALID").ravel().tolist()
[4.0, 5.0]
"""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

from . import verbs as native_verbs
from .arrays import Array, as_array, ready
from .bind import Call, bind
from .errors import Problems
from .rules import Rule, Verb
from .table import ARRAYS, OPS, REQUIRED, Kind, Op
from .verbs import Astray

__all__ = list(OPS)

_CACHE_SIZE = 1024
_LONGEST_KEY = 65536  # elements of a shape or sequence that may be part of a key
_ELEMENTS = (Kind.SOURCE, Kind.DEST, Kind.INDEX, Kind.RANGE)  # arrays of which only shape and dtype matter to bind


class _Runner:
    """One op: arguments in, arrays out. Checked calls are kept, so that the same shapes are checked once."""

    def __init__(self, op: Op, verbs: Any = native_verbs) -> None:
        self.op, self.verbs = op, verbs
        self.result = namedtuple(op.name, op.outputs) if len(op.outputs) > 1 else None
        self.calls: OrderedDict[Any, Call] = OrderedDict()
        self.arrays = [(i, p) for i, p in enumerate(op.params) if p.kind in ARRAYS]
        self.random = op.param(Kind.SEED) is not None

    def __call__(self, *args: Any) -> Any:
        key = self._key(args)
        call = self.calls.get(key) if key is not None else None
        if call is None:
            return self._first(key, args)
        problems = Problems(self.op.name)
        arrays = {p.name: ready(problems, p.name, args[i]) for i, p in self.arrays if p.kind in _ELEMENTS}
        return self._execute(call, arrays, None)

    def _key(self, args: tuple[Any, ...]) -> Any:
        """What decides about a call: shapes, dtypes and attributes; None if that cannot be said cheaply."""
        key: list[Any] = []
        for param, value in zip(self.op.params, args, strict=True):
            kind = param.kind
            if kind in ARRAYS:
                if type(value) is not np.ndarray or value.dtype.names:
                    return None
                key += (value.shape, value.dtype)
                if kind not in _ELEMENTS:
                    if value.size > _LONGEST_KEY:
                        return None
                    key.append(value.tobytes())
            elif kind is Kind.SIZES or kind is Kind.PADS:
                try:
                    key.append(tuple(map(index, value)))
                except TypeError:
                    return None
            elif kind is Kind.SIZES_TENSOR:
                if type(value) is not np.ndarray or value.size > 64:
                    return None
                key += (value.shape, value.dtype, value.tobytes())
            elif kind is not Kind.NAME:
                if type(value) not in (str, bool, int):
                    return None
                key += (type(value), value)
        return tuple(key)

    def _first(self, key: Any, args: tuple[Any, ...]) -> Any:
        op, problems = self.op, Problems(self.op.name)
        given = {p.name: value for p, value in zip(op.params, args, strict=True)}
        arrays, wrapped = self._as_arrays(given, problems)
        attrs = {p.name: given[p.name] for p in op.params if p.kind not in ARRAYS}
        for param in op.params:
            if param.kind is Kind.SIZES_TENSOR and hasattr(given[param.name], "__array__"):
                attrs[param.name] = np.asarray(given[param.name])
        call = bind(op, arrays, attrs, problems)
        if key is not None and not self.random:
            self.calls[key] = call
            while len(self.calls) > _CACHE_SIZE:
                self.calls.popitem(last=False)
        arrays = {name: ready(problems, name, array) for name, array in arrays.items()}
        return self._execute(call, arrays, wrapped)

    def _as_arrays(self, given: dict[str, Any], problems: Problems) -> tuple[dict[str, Array], np.dtype[Any] | None]:
        """All array arguments; quantised ones that come in a one-field dtype are unwrapped."""
        like = next((given[p.name].dtype for _, p in self.arrays
                     if p.kind in (Kind.SOURCE, Kind.DEST) and isinstance(given[p.name], np.ndarray)), None)  # fmt: skip
        arrays: dict[str, Array] = {}
        wrapped = None
        for _, param in self.arrays:
            wanted = {
                Kind.SOURCE: like,
                Kind.DEST: like,
                Kind.RANGE: np.dtype(np.float32),
                Kind.INDEX: np.dtype(np.int64),
            }
            array = as_array(
                problems, param.name, given[param.name], wanted.get(param.kind, np.dtype(param.dtype or "int64"))
            )
            if array is None:
                continue
            if array.dtype.names and len(array.dtype.names) == 1 and self.op.family.startswith("q"):
                wrapped = array.dtype
                array = array[array.dtype.names[0]]
            arrays[param.name] = array
        return arrays, wrapped

    def _execute(self, call: Call, arrays: dict[str, Array], wrapped: np.dtype[Any] | None) -> Any:
        if call.plan is None:
            outs = self._nothing(call, arrays)
        else:
            try:
                outs = _compute(self.op.rule, self.verbs, call, self._roles(arrays))
            except Astray as astray:
                self._blame(call, arrays, astray.at)
                raise
        outs = [outs[0].view(wrapped), *outs[1:]] if wrapped is not None else outs
        outs += [np.array(arrays[p.name]) for _, p in self.arrays if p.kind is Kind.RANGE]
        outs += [s.copy() for s in call.drawn] if len(self.op.outputs) == 3 and call.drawn else []
        return self.result(*outs) if self.result else outs[0]

    def _nothing(self, call: Call, arrays: dict[str, Array]) -> list[Array]:
        """The result where there is nothing to compute: empty, or zeros."""
        dtype = next(arrays[p.name].dtype for _, p in self.arrays if p.kind in (Kind.SOURCE, Kind.DEST))
        forward = self.op.order != 1
        out = np.zeros(call.dest if forward else call.source, dtype)
        return [out, np.zeros(call.dest, call.index)] if self.op.rule.verb is Verb.ARGMAX else [out]

    def _roles(self, arrays: dict[str, Array]) -> dict[str, Array]:
        """Arguments by what they mean: x and v have the input's shape, y and g the output's."""
        roles: dict[str, Array] = {}
        for _, p in self.arrays:
            if p.kind is Kind.INDEX:
                roles["index"] = arrays[p.name]
            elif p.kind is Kind.SOURCE:
                roles["v" if "x" in roles else "x"] = arrays[p.name]
            elif p.kind is Kind.DEST:
                roles["y" if p.name == "orig_output" else "g"] = arrays[p.name]
        return roles

    def _blame(self, call: Call, arrays: dict[str, Array], at: int) -> None:
        """Says which element was wrong, and why."""
        place = tuple(int(i) for i in np.unravel_index(at, call.dest))
        where = self.op.param(Kind.INDEX)
        problems = Problems(self.op.name)
        if where is not None:
            value = arrays[where.name].reshape(-1)[at]
            problems.fail(
                where.name,
                f"{value} at {list(place)}",
                f"a flat position inside the input of shape {list(call.source)}",
            )
        value = arrays["orig_output"].reshape(-1)[at]
        problems.fail(
            "orig_output",
            f"{value} at {list(place)}",
            "the maximum of orig_input over that window of row_pooling_sequence and col_pooling_sequence",
        )


def _compute(rule: Rule, verbs: Any, call: Call, a: dict[str, Array]) -> list[Array]:
    """The row's verb on the arrays."""
    plan, verb = call.plan, rule.verb
    if verb is Verb.FOLD:
        return [verbs.fold(plan, rule.mean, a["x"])]
    if verb is Verb.SELECT:
        return [verbs.select(plan, call.start, a["x"])]
    if verb is Verb.SPREAD:
        return [verbs.spread(plan, rule.share, rule.reversed, a["g"])]
    if verb is Verb.ROUTE:
        return [verbs.route(plan, a["x"], a["g"], a["y"] if rule.verify else None)]
    if verb is Verb.RECALL:
        return [verbs.recall(plan, a["x"], a["y"], a["v"])]
    if verb is Verb.NEAR:
        return [verbs.near(plan, rule.eps, a["x"], a["y"], a["g"])]
    if verb is Verb.SCATTER:
        return [verbs.scatter(plan, call.items, call.absolute, a["g"], a["index"])]
    if verb is Verb.GATHER:
        return [verbs.gather(plan, call.items, call.absolute, a["v"], a["index"])]
    size = int(np.prod(call.source, dtype=np.int64))
    return list(verbs.argmax(plan, size if call.absolute else size // call.items, call.index, a["x"]))


def make(op: Op, verbs: Any = native_verbs) -> Callable[..., Any]:
    """A function with the op's signature, over the native verbs or over those of `reference`."""
    words = [p.name if p.default is REQUIRED else f"{p.name}={_default(p.default)!r}" for p in op.params]
    source = f"def {op.name}(*, {', '.join(words)}):\n    return _run({', '.join(p.name for p in op.params)})\n"
    scope: dict[str, Any] = {"_run": _Runner(op, verbs), "__name__": __name__}
    exec(source, scope)  # as namedtuple does: a true signature, and no cost per call
    function: Callable[..., Any] = scope[op.name]
    function.__doc__ = _doc(op)
    return function


def _default(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _doc(op: Op) -> str:
    lines = [op.summary, "", f"dtypes: {', '.join(op.dtypes)}", f"layouts: {', '.join(op.formats)}", ""]
    lines += [f"{p.name}: {p.kind.value}" for p in op.params]
    lines += ["", f"Against TensorFlow 2.21 on CPU: {op.promise}, except:", *(f"- {d}" for d in op.promise.deviations)]
    return "\n".join(lines)


for _op in OPS.values():
    globals()[_op.name] = make(_op)
