"""Call the verbs of a native core directly: of this build or another, with a new result or an existing one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from poolgrad import _core
from poolgrad._kernels.native import tap_type
from poolgrad._ops.semantics import OpSemantics
from poolgrad.windows import Plan

from .cells import Cell
from .data import Array, Arrays, call_of, dtype_of

WITH_TAPS = ("choose", "place", "pick")  # by order: the maximum and its taps, then both derivatives from given taps


@dataclass(frozen=True)
class Task:
    """A verb on a cell's arrays, ready for any core."""

    verb: str
    plan: Plan
    rule: OpSemantics
    start: int
    arrays: Arrays

    @staticmethod
    def of(cell: Cell, arrays: Arrays, verb: str = "") -> Task:
        """Return the task of a cell: the verb of its op, or another over the same windows."""
        call, rule = call_of(cell, arrays), cell.op.rule
        assert call.plan is not None
        return Task(verb or rule.verb.value, call.plan, rule, call.start, arrays)

    def on(self, core: Any, out: Array | None = None) -> Callable[[], Any]:
        """Return the call of this verb in `core`, which returns all its results; it writes the first into `out`, if given."""
        plan, rule, a = plan_of(core, self.plan), self.rule, self.arrays
        taps = self._choose(core, plan)[1] if self.verb in ("place", "pick") else None
        made: dict[str, Callable[[], Any]] = {
            "fold": lambda: core.fold(plan, rule.mean, a.x, out),
            "select": lambda: core.select(plan, self.start, a.x, out),
            "spread": lambda: core.spread(plan, rule.share, rule.reversed, a.g, out),
            "route": lambda: core.route(plan, a.x, a.y if rule.verify else None, a.g, out),
            "recall": lambda: core.recall(plan, a.x, a.y, a.v, out),
            "near": lambda: core.near(plan, rule.eps, a.x, a.y, a.g, out),
            "choose": lambda: self._choose(core, plan, out),
            "argmax": lambda: self._argmax(core, plan, out),
            "place": lambda: core.place(plan, a.g, taps, out),
            "pick": lambda: core.pick(plan, a.v, taps, out),
        }
        return made[self.verb]

    def _choose(self, core: Any, plan: Any, out: Array | None = None) -> tuple[Array, Array]:
        x, dest = self.arrays.x, self.plan.dest
        y, taps = core.empty(dest, x) if out is None else out, np.empty(dest, tap_type(self.plan))
        core.choose(plan, x, y, taps, False)
        return y, taps

    def _argmax(self, core: Any, plan: Any, out: Array | None) -> tuple[Array, Array]:
        x, dest = self.arrays.x, self.plan.dest
        y, where = core.empty(dest, x) if out is None else out, np.empty(dest, np.int64)
        core.argmax(plan, math.prod(self.plan.source[1:]), x, y, where)
        return y, where


def plan_of(core: Any, plan: Plan) -> Any:
    """Return the windows as a plan of `core`, which chooses how to run them."""
    axes = [(axis.length, axis.start, axis.stop, axis.span) for axis in plan.axes]
    return core.Plan(plan.source, plan.dest, plan.outer, plan.inner, axes)


def result_of(cell: Cell) -> Array:
    """Return an array for the cell's result, with every memory page touched."""
    return np.zeros(cell.shape if cell.op.order == 1 else cell.dest, dtype_of(cell))


def filling(cell: Cell, arrays: Arrays, out: Array) -> Callable[[], Any]:
    """Return a call of the cell's verb that writes into `out`."""
    return Task.of(cell, arrays).on(_core, out)


def same_bits(one: Array, other: Array) -> bool:
    """Return True if two contiguous arrays of one type have the same bits."""
    word = f"u{one.dtype.itemsize}"
    return one.shape == other.shape and bool((one.view(word) == other.view(word)).all())
