"""Deliberately wrong verbs, which the tests must notice. conftest.py plants one in a process that is meant to fail."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from poolgrad import reference
from poolgrad._kernels import native
from poolgrad._ops.semantics import Mean, Share, Start
from poolgrad.windows import Axis, Plan

Verb = Callable[..., Any]


def _moved(plan: Plan, change: Callable[[Axis], Axis]) -> Plan:
    """Return the plan with its last axis changed."""
    made = object.__new__(Plan)
    for name in ("source", "dest", "outer", "inner"):
        object.__setattr__(made, name, getattr(plan, name))
    object.__setattr__(made, "axes", (*plan.axes[:-1], change(plan.axes[-1])))
    return made


def _one_further(axis: Axis) -> Axis:
    stop = np.minimum(axis.stop + 1, axis.length)
    return Axis(axis.length, np.minimum(axis.start + 1, np.maximum(stop - 1, axis.start)), stop)


def _one_shorter(axis: Axis) -> Axis:
    return Axis(axis.length, axis.start, np.where(axis.count > 1, axis.stop - 1, axis.stop))


def shifted_window(true: Verb) -> Verb:
    """Take maxima one cell further on."""
    return lambda plan, start, x: true(_moved(plan, _one_further), start, x)


def dropped_tap(true: Verb) -> Verb:
    """Leave the last cell of each window out of its mean."""
    return lambda plan, mean, x: true(_moved(plan, _one_shorter), mean, x)


def last_tie(true: Verb) -> Verb:
    """Send the gradient to the last of equal maxima: read x and its windows backwards."""

    def route(plan: Plan, x: Any, g: Any, y: Any = None) -> Any:
        flip = (slice(None), *(slice(None, None, -1) for _ in plan.axes), slice(None))
        back = Plan(
            (plan.outer, *(a.length for a in plan.axes), plan.inner),
            {d + 1: Axis(a.length, a.length - a.stop[::-1], a.length - a.start[::-1]) for d, a in enumerate(plan.axes)},
        )
        seen = (x.reshape(back.source), g.reshape(back.dest))
        turned = [np.ascontiguousarray(v[flip]) for v in seen]
        return np.ascontiguousarray(true(back, *turned)[flip]).reshape(plan.source)

    return route


def swapped_order(true: Verb) -> Verb:
    """Add shares with the other axis outermost."""
    return lambda plan, share, reversed, g: true(plan, share, not reversed, g)


def count_with_padding(true: Verb) -> Verb:
    """Divide a mean at the edge by the whole window, padding included."""

    def fold(plan: Plan, mean: Mean, x: Any) -> Any:
        y = true(plan, mean, x)
        if y.dtype.kind == "f" and all(axis.span is not None for axis in plan.axes):
            for d, axis in enumerate(plan.axes):
                share = (axis.count / axis.span).astype(y.dtype)
                seen = y.reshape(plan.outer, *map(len, plan.axes), plan.inner)
                seen *= share.reshape([-1 if e == d + 1 else 1 for e in range(seen.ndim)])
        return y

    return fold


def contagious_nan(true: Verb) -> Verb:
    """Let a NaN anywhere in a window be its maximum."""

    def select(plan: Plan, start: Start, x: Any) -> Any:
        y = true(plan, start, x)
        if y.dtype.kind == "f":
            y[true(plan, start, np.where(x != x, np.ones_like(x), np.zeros_like(x))) > 0] = np.nan
        return y

    return select


def zero_start(true: Verb) -> Verb:
    """Start a maximum from 0."""
    return lambda plan, start, x: np.maximum(true(plan, start, x), np.zeros((), x.dtype))


def wrong_index_base(true: Verb) -> Verb:
    """Count positions from the first image where the call asks for positions by image."""
    return lambda plan, modulo, index, x: true(plan, prod(plan.source), index, x)


def one_based_index(true: Verb) -> Verb:
    """Count positions from 1."""

    def argmax(plan: Plan, modulo: int, index: Any, x: Any) -> Any:
        y, where = true(plan, modulo, index, x)
        return y, where + np.ones((), where.dtype)

    return argmax


def first_near_only(true: Verb) -> Verb:
    """Give the gradient to only one of several near ties."""
    return lambda plan, eps, x, y, g: native.route(plan, x, g)


def recall_of_maximum(true: Verb) -> Verb:
    """Compare with the maximum instead of orig_output, in second order."""
    return lambda plan, x, y, v: true(plan, x, native.select(plan, Start.LOWEST, x), v)


def overwriting_scatter(true: Verb) -> Verb:
    """Let the later of two gradients for one cell win, instead of adding them."""

    def scatter(plan: Plan, items: int, absolute: bool, g: Any, index: Any) -> Any:
        true(plan, items, absolute, g, index)
        dx = np.zeros(plan.source, g.dtype)
        dx.reshape(-1)[reference._absolute(plan, items, absolute, index)] = g.reshape(-1)
        return dx

    return scatter


def wide_accumulator(true: Verb) -> Verb:
    """Sum half types in float32 and round once."""

    def fold(plan: Plan, mean: Mean, x: Any) -> Any:
        return (
            true(plan, mean, x.astype(np.float32)).astype(x.dtype)
            if x.dtype.itemsize == 2 and x.dtype.kind != "i"
            else true(plan, mean, x)
        )

    return fold


def double_reciprocal(true: Verb) -> Verb:
    """Take the reciprocal in float64 where it should be rounded to float32."""
    return lambda plan, share, reversed, g: true(
        plan, Share.RECIPROCAL if share is Share.SHORT_RECIPROCAL else share, reversed, g
    )


VERB_OF: dict[Verb, str] = {
    shifted_window: "select",
    contagious_nan: "select",
    zero_start: "select",
    dropped_tap: "fold",
    count_with_padding: "fold",
    wide_accumulator: "fold",
    last_tie: "route",
    swapped_order: "spread",
    double_reciprocal: "spread",
    wrong_index_base: "argmax",
    one_based_index: "argmax",
    first_near_only: "near",
    recall_of_maximum: "recall",
    overwriting_scatter: "scatter",
}
FAULTS = {fault.__name__: fault for fault in VERB_OF}


def plant(name: str) -> None:
    """Make a verb wrong in this process."""
    verb = VERB_OF[FAULTS[name]]
    setattr(native, verb, FAULTS[name](getattr(native, verb)))
