"""Explain cells of the pools for NumPy users: turn a call that ran into a subject."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._common.arrays import Array, as_array
from .._common.errors import ArgumentErrors, short_repr
from .._ops.semantics import Kernel
from .._pooling.named import POOLS, WORDS, function_of, options_of, windows_of
from .._pooling.plan_operators import max_operator
from .._pooling.selection import has_nan, judge, ranks
from .._pooling.sources import array_of
from .._pooling.tape import jvp, vjp
from .._windows.plan import Plan
from .links import PoolRule, PoolVerb, Weighing
from .subject import DEST, SOURCE, Explanation, Operand, Subject, ask

POOL, GRADIENT, TANGENT = "pool", "gradient", "tangent"
_VERBS: dict[str, tuple[Kernel | PoolVerb, ...]] = {  # by the kind of pool: itself, its gradient, its tangent
    "max": (Kernel.SELECT, Kernel.ROUTE, PoolVerb.CARRY),
    "avg": (Kernel.FOLD, Kernel.SPREAD, Kernel.FOLD),
    "lp": (PoolVerb.NORM, PoolVerb.PUSH, PoolVerb.PULL),
}
_ALIKE = {"min": "max", "sum": "avg"}


def pool_subject(name: str, form: str, plan: Plan, words: Mapping[str, Any], arrays: Mapping[str, Array]) -> Subject:
    """Return the subject of a pool that ran, of its gradient or its tangent.

    `form` is POOL, GRADIENT or TANGENT. `arrays` holds x, g or v, and the result under "output"; `words` are the arguments of the pool.
    """
    kind = POOLS[name][0]
    family = _ALIKE.get(kind, kind)
    verb = _VERBS[family][(POOL, GRADIENT, TANGENT).index(form)]
    how = _weighing(kind, words)
    x, out = arrays["x"], Operand("out", "output", DEST)
    if form == POOL:
        operands = [Operand("x", "x", SOURCE), out]
    elif form == GRADIENT:
        operands = [Operand("x", "x", SOURCE), Operand("g", "g", DEST), Operand("dx", "output", SOURCE)]
    elif verb is Kernel.FOLD:  # x decides only which cells are NaN
        operands = [Operand("x", "v", SOURCE), Operand("mask", "x", SOURCE), out]
    else:
        operands = [Operand("x", "x", SOURCE), Operand("v", "v", SOURCE), out]
    held = dict(arrays)
    if verb in (PoolVerb.PUSH, PoolVerb.PULL):
        held["norm"] = function_of(name)(x, **words)
        operands.append(Operand("y", "norm", DEST))
    order = _order(held, plan, how, words.get("nan", "propagate")) if family == "max" else {}
    return Subject(name, plan, PoolRule(verb), tuple(operands), held, ranks=order, how=how)


def _weighing(kind: str, words: Mapping[str, Any]) -> Weighing:
    if kind in ("max", "min"):
        ties = words.get("ties", "first")
        rule = {"all": "every", "split": "split"}.get(ties, "first")
        return Weighing(least=kind == "min", last=ties == "last", ties=rule)
    if kind == "lp":
        return Weighing(p=float(words.get("p", 2)))
    divide: str | float = "span" if words.get("count_include_pad") else "cells"
    if kind == "sum":
        divide = 1.0
    elif words.get("divisor") is not None:
        divide = float(words["divisor"])
    return Weighing(divide, skip=words.get("nan") == "ignore")


def _order(arrays: Mapping[str, Array], plan: Plan, how: Weighing, nan: str) -> dict[str, Array]:
    """Return the cells of x in the order of the pool, and the largest of each window; without the latter, TensorFlow's search decides."""
    x = np.ascontiguousarray(arrays["x"])
    if nan == "tf" and how.ties == "first" and has_nan(x):
        if "g" in arrays or "v" in arrays:
            return {"x": -x} if how.least else {}
        return {"x": -x, "y": -arrays["output"]} if how.least else {}
    if x.dtype.kind == "b":
        made = x.astype(np.int8)
    elif x.dtype.kind in "iu":
        made = x
    else:
        made = ranks(x, (nan == "propagate") != how.least)
    made = ~made if how.least else made
    best = max_operator(made, plan)[0]
    if nan == "tf" and has_nan(x):  # a window of NaN alone has no tap
        lost = max_operator(np.isnan(x).astype(np.int8) ^ 1, plan)[0] == 0
        best = np.where(lost, np.iinfo(np.int64).max, best.astype(np.int64))
        made = made.astype(np.int64)
    return {"x": made, "y": best}


def explain_pool(
    name: str, cell: Sequence[int], pin: str | None, x: Any, g: Any = None, v: Any = None, **words: Any
) -> Explanation:
    """Explain the value of a cell of y or of x; with g, of the gradient dx; with v, of the tangent dy.

    >>> import numpy as np
    >>> print(explain_pool("max_pool", (0,), None, np.array([1.0, 3.0, 2.0]), window=2, stride=1))
    y[0] = 3, the largest of the 2 cells of x[0:2], found at x[1].
    >>> print(explain_pool("max_pool", (0,), None, np.array([1.0, 3.0, 2.0]), np.ones(2), window=2, stride=1))
    dx[0] = 0: 1 window reaches this cell, but the gradient goes elsewhere: x[1] = 3 for g[0].
    >>> print(explain_pool("lp_pool", (0,), None, np.array([3.0, 4.0]), np.array([10.0]), window=2))
    dx[0] = 6 = g[0] (10) · 0.6: the weight of this cell is x / norm in 1 window.
    """
    problems = ArgumentErrors(f"explain {name}")
    array = array_of(problems, x)
    known = (*WORDS[POOLS[name][1]], *options_of(name))
    for word, value in words.items():
        if word not in known:
            problems.fail(word, short_repr(value), f"an argument of {name}: {', '.join(known)}")
    judge(problems, words.get("ties", "first"), words.get("nan", "propagate"))
    if g is not None and v is not None:
        problems.fail("v", short_repr(v), "g or v, not both")
    if POOLS[name][1] == "fractional" and words.get("seed") is None:
        problems.fail("seed", "nothing", "an integer: without a seed, every call draws other windows")
    plan = windows_of(name, array.shape, words).plan
    pool, smooth = function_of(name), array.astype(np.float64) if array.dtype.kind in "iub" else array
    form, result = POOL, "y"
    if g is not None:
        form, result = GRADIENT, "dx"
        grad = _of_shape(problems, "g", g, plan.dest).astype(smooth.dtype)
        held = {"x": array, "g": grad, "output": vjp(lambda a: pool(a, **words), smooth)[1](grad)}
    elif v is not None:
        form, result = TANGENT, "dy"
        tangent = _of_shape(problems, "v", v, plan.source).astype(smooth.dtype)
        held = {"x": array, "v": tangent, "output": jvp(lambda a: pool(a, **words), smooth, tangent)[1]}
    else:
        held = {"x": array, "output": pool(array, **words)}
    made = pool_subject(name, form, plan, words, held)
    called = tuple(Operand(p.symbol, result if p.pin == "output" else p.pin, p.side) for p in made.operands)
    arrays = {result if pin == "output" else pin: values for pin, values in made.arrays.items()}
    made = Subject(name, plan, made.rule, called, arrays, ranks=made.ranks, how=made.how)
    return ask(name, made, pin or result, cell)


def _of_shape(problems: ArgumentErrors, name: str, value: Any, shape: tuple[int, ...]) -> Array:
    array = as_array(problems, name, value)
    problems.raise_if_any()
    assert array is not None
    if array.shape != shape:
        problems.fail(name, f"shape {list(array.shape)}", list(shape))
    return array
