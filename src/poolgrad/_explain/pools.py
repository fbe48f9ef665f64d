"""Explain cells of the pools for NumPy users: turn a call into a subject."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._common.arrays import Array, as_array
from .._common.errors import ArgumentErrors
from .._ops.semantics import Kernel, OpSemantics, WindowRule
from .._pooling.adaptive_global import adaptive_axes, global_axes
from .._pooling.plan_operators import averaging, max_operator
from .._pooling.selection import has_nan, judge, ranks
from .._pooling.sources import array_of
from .._pooling.types import Nan
from .._pooling.window_args import PooledAxes, WindowArgs, resolve
from .._windows.plan import Plan
from .subject import DEST, SOURCE, Explanation, Operand, Subject, ask

POOLS = ("max_pool", "avg_pool", "adaptive_max_pool", "adaptive_avg_pool", "global_max_pool", "global_avg_pool")


def _geometry(name: str, shape: tuple[int, ...], words: dict[str, Any]) -> PooledAxes:
    problems = ArgumentErrors(name)
    if name.startswith("adaptive"):
        return adaptive_axes(
            problems, shape, words.pop("size", None), words.pop("axes", None), words.pop("layout", None)
        )
    if name.startswith("global"):
        return global_axes(problems, shape, words.pop("axes", None), words.pop("layout", None))
    made = WindowArgs(words.pop("window", None), **{k: words.pop(k) for k in WindowArgs._fields[1:] if k in words})
    return resolve(problems, shape, made)


def _ranks(x: Array, plan: Plan, nan: Nan) -> dict[str, Array]:
    """Return integers that rank the cells of x as the pool does, and the largest of each window; empty if x has no NaN."""
    x = np.ascontiguousarray(x)
    if nan == "tf" or not has_nan(x):
        return {}
    made = ranks(x, nan == "propagate")
    return {"x": made, "y": max_operator(made, plan)[0]}


def explain_pool(name: str, cell: Sequence[int], pin: str | None, x: Any, g: Any = None, **words: Any) -> Explanation:
    """Explain the value of a cell of y, of x, or with g of the gradient dx.

    >>> import numpy as np
    >>> print(explain_pool("max_pool", (0,), None, np.array([1.0, 3.0, 2.0]), window=2, stride=1))
    y[0] = 3, the largest of the 2 cells of x[0:2], found at x[1].
    >>> print(explain_pool("max_pool", (0,), None, np.array([1.0, 3.0, 2.0]), np.ones(2), window=2, stride=1))
    dx[0] = 0: 1 window reaches this cell, but the gradient goes elsewhere: x[1] = 3 for g[0].
    """
    problems = ArgumentErrors(f"explain {name}")
    array = array_of(problems, x)
    best = "max" in name
    nan: Nan = words.pop("nan", "propagate") if best else "propagate"
    judge(problems, "first", nan)
    plan = _geometry(name, array.shape, words).plan
    if words:
        problems.fail(
            next(iter(words)), "an argument that does not decide about windows", "window, stride, padding, axes ..."
        )
    y, operator = max_operator(array, plan, nan=nan) if best else (averaging(plan)(array), averaging(plan))
    held = {"x": array, "y": y}
    operands = [Operand("x", "x", SOURCE), Operand("out", "y", DEST)]
    verb = Kernel.SELECT if best else Kernel.FOLD
    if g is not None:
        grad = as_array(problems, "g", g)
        problems.raise_if_any()
        assert grad is not None
        if grad.shape != y.shape:
            problems.fail("g", f"shape {list(grad.shape)}", list(y.shape))
        held = {"x": array, "g": grad, "dx": operator.T(grad)}
        operands = [Operand("x", "x", SOURCE), Operand("g", "g", DEST), Operand("dx", "dx", SOURCE)]
        verb = Kernel.ROUTE if best else Kernel.SPREAD
    ranks = _ranks(array, plan, nan) if best else {}
    made = Subject(name, plan, OpSemantics(WindowRule.CLIP, verb), tuple(operands), held, ranks=ranks)
    return ask(name, made, pin or ("y" if g is None else "dx"), cell)
