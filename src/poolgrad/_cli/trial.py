"""Draw the arguments of a problem line, so that a command, a test or a page of the docs can run it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

import poolgrad

from .. import raw_ops
from .._common.arrays import Array, afford
from .._common.errors import ArgumentErrors
from .._ops.files import find
from .._ops.problem import Problem, forward, parse
from .._ops.table import OPS, Kind, Op, Param


def draw_call(problem: Problem, data: int = 0, integers: bool = True) -> tuple[str, dict[str, Any]]:
    """Return the op's name and its arguments; draw arrays from the seed `data`: small integers, unless told otherwise.

    >>> from poolgrad._ops.problem import parse
    >>> name, arguments = draw_call(parse("avg f64 x=1x3x3x1 k=2x2 s=1x1 grad"))
    >>> name, arguments["grad"].ravel().tolist()
    ('AvgPoolGrad', [9.0, -8.0, -4.0, 4.0])
    """
    dtype = np.dtype(getattr(ml_dtypes, problem.dtype, problem.dtype))
    size = math.prod(problem.x) * (dtype.itemsize + 1)
    afford(ArgumentErrors("problem"), "x", size, f"an input of shape {list(problem.x)}")
    op, arrays = OPS[problem.op], _Arrays(data, integers)
    x = arrays.draw(problem.x, dtype)
    known = _forward(problem, forward(op), x) if op.order else {}
    return problem.op, _arguments(problem, op, x, known, arrays)


_ARRAYS = (Kind.SOURCE, Kind.DEST)


def _find_call(what: str, args: tuple[Any, ...], given: dict[str, Any]) -> Callable[[], Any]:
    """Return a call by its problem line, or by the name of an op or pool and its arguments.

    A shape stands for an array of zeros of float32.

    >>> _find_call("avg f64 x=1x3x3x1 k=2x2 s=1x1", (), {})().shape
    (1, 2, 2, 1)
    >>> _find_call("max_pool", ((4, 6),), {"window": 2})().shape
    (2, 3)
    """
    if "=" in what:
        name, drawn = draw_call(parse(what))
        return partial(getattr(raw_ops, name), **drawn)
    pool = getattr(poolgrad, what, None) if what.endswith("_pool") else None
    if pool:
        names: tuple[str, ...] = ("x",)
    else:
        op = find(what)
        pool, names = getattr(raw_ops, op.name), tuple(p.name for p in op.params if p.kind in _ARRAYS)
        args, given = (), dict(zip((p.name for p in op.params), args, strict=False)) | given
    first = [_zeros(what, "x", value) for value in args[:1]]
    return partial(pool, *first, *args[1:], **{n: _zeros(what, n, v) if n in names else v for n, v in given.items()})


def _zeros(what: str, name: str, given: Any) -> Any:
    """Return zeros of a shape; return any other argument unchanged."""
    if not isinstance(given, tuple) or not all(isinstance(n, int) and n >= 0 for n in given):
        return given
    afford(ArgumentErrors(what), name, math.prod(given) * 5, f"an input of shape {list(given)}")
    return np.zeros(given, np.float32)


def _forward(problem: Problem, op: Op, x: Array) -> dict[str, Any]:
    """Run the forward op on x; return its results by name, the pooled array as `orig_output`."""
    result = getattr(raw_ops, op.name)(**_arguments(problem, op, x, {}, _Arrays(0, True)))
    outputs = (result,) if len(op.outputs) == 1 else result
    return dict(zip(("orig_output", *op.outputs[1:]), outputs, strict=True))


def _arguments(problem: Problem, op: Op, x: Array, known: dict[str, Any], arrays: _Arrays) -> dict[str, Any]:
    """Return every argument: x first, then results of the forward op; draw the others."""
    first = op.param(Kind.SOURCE)
    known = {**known, "x": x, first.name if first else "x": x}
    return {p.name: _argument(problem, p, known, arrays) for p in op.params if p.kind is not Kind.NAME}


def _argument(problem: Problem, param: Param, known: dict[str, Any], arrays: _Arrays) -> Any:
    if param.name in known:
        return known[param.name]
    if param.kind is Kind.SOURCE:
        return arrays.draw(problem.x, known["x"].dtype)
    if param.kind is Kind.DEST:
        return arrays.draw(known["orig_output"].shape, known["x"].dtype)
    return param.kind.from_line(problem, param)


class _Arrays:
    """Random arrays, one after the other."""

    def __init__(self, seed: int, integers: bool) -> None:
        self.rng, self.integers = np.random.default_rng(seed), integers

    def draw(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return the next array."""
        if self.integers:
            low = 0 if dtype.kind == "u" else -9
            return self.rng.integers(low, low + 19, shape, np.int8).astype(dtype)
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            return self.rng.integers(info.min, info.max, shape, dtype.type, endpoint=True)
        return self.rng.standard_normal(shape, np.float64 if dtype.itemsize == 8 else np.float32).astype(dtype)
