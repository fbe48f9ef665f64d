"""Explanations of the pythonic pools: the same questions, asked of a pool instead of an operator of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .arrays import Array, as_array
from .choice import Nan, has_nan, judge, keys
from .errors import Problems
from .families import averaging, maximum
from .functional import array_of
from .geometry import Geometry, Words, everything, share_out, understand
from .rules import Rule, Verb, Windows
from .why import DEST, SOURCE, Explanation, Part, Subject, ask
from .windows import Plan

POOLS = ("max_pool", "avg_pool", "adaptive_max_pool", "adaptive_avg_pool", "global_max_pool", "global_avg_pool")


def _geometry(name: str, shape: tuple[int, ...], words: dict[str, Any]) -> Geometry:
    problems = Problems(name)
    if name.startswith("adaptive"):
        return share_out(problems, shape, words.pop("size", None), words.pop("axes", None), words.pop("layout", None))
    if name.startswith("global"):
        return everything(problems, shape, words.pop("axes", None), words.pop("layout", None))
    made = Words(words.pop("window", None), **{k: words.pop(k) for k in Words._fields[1:] if k in words})
    return understand(problems, shape, made)


def _ranks(x: Array, plan: Plan, nan: Nan) -> dict[str, Array]:
    """Return integers in the order in which the pool ranks the cells of x, and the largest of each window; nothing if x has no NaN."""
    x = np.ascontiguousarray(x)
    if nan == "tf" or not has_nan(x):
        return {}
    ranks = keys(x, False, nan == "propagate")
    return {"x": ranks, "y": maximum(ranks, plan)[0]}


def explain_pool(name: str, cell: Sequence[int], pin: str | None, x: Any, g: Any = None, **words: Any) -> Explanation:
    """Why a cell of y, or of x, or with g of the gradient dx, has its value.

    >>> import numpy as np
    >>> print(explain_pool("max_pool", (0,), None, np.array([1.0, 3.0, 2.0]), window=2, stride=1))
    y[0] = 3, the largest of the 2 cells of x[0:2], found at x[1].
    >>> print(explain_pool("max_pool", (0,), None, np.array([1.0, 3.0, 2.0]), np.ones(2), window=2, stride=1))
    dx[0] = 0: 1 window reaches this cell, but the gradient goes elsewhere: x[1] = 3 for g[0].
    """
    problems = Problems(f"explain {name}")
    array = array_of(problems, x)
    best = "max" in name
    nan: Nan = words.pop("nan", "propagate") if best else "propagate"
    judge(problems, "first", nan)
    plan = _geometry(name, array.shape, words).plan
    if words:
        problems.fail(
            next(iter(words)), "an argument that does not decide about windows", "window, stride, padding, axes ..."
        )
    y, operator = maximum(array, plan, nan=nan) if best else (averaging(plan)(array), averaging(plan))
    held = {"x": array, "y": y}
    parts = [Part("x", "x", SOURCE), Part("out", "y", DEST)]
    verb = Verb.SELECT if best else Verb.FOLD
    if g is not None:
        grad = as_array(problems, "g", g)
        problems.settle()
        assert grad is not None
        if grad.shape != y.shape:
            problems.fail("g", f"shape {list(grad.shape)}", list(y.shape))
        held = {"x": array, "g": grad, "dx": operator.T(grad)}
        parts = [Part("x", "x", SOURCE), Part("g", "g", DEST), Part("dx", "dx", SOURCE)]
        verb = Verb.ROUTE if best else Verb.SPREAD
    ranks = _ranks(array, plan, nan) if best else {}
    made = Subject(name, plan, Rule(Windows.CLIP, verb), tuple(parts), held, ranks=ranks)
    return ask(name, made, pin or ("y" if g is None else "dx"), cell)
