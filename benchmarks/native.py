"""Call the native functions on an existing result, to time a call without its allocation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from poolgrad import _core
from poolgrad._kernels.native import native
from poolgrad._ops.semantics import Kernel

from .cells import Cell
from .data import Array, Arrays, call_of, dtype_of


def result_of(cell: Cell) -> Array:
    """Return an array for the cell's result, with every memory page touched."""
    return np.zeros(cell.shape if cell.op.order == 1 else cell.dest, dtype_of(cell))


def filling(cell: Cell, arrays: Arrays, out: Array) -> Callable[[], Any]:
    """Return a call of the cell's verb that writes into `out`."""
    call, rule, a = call_of(cell, arrays), cell.op.rule, arrays
    assert call.plan is not None
    plan, verb = native(call.plan), rule.verb
    made: dict[Kernel, Callable[[], Any]] = {
        Kernel.FOLD: lambda: _core.fold(plan, rule.mean, a.x, out),
        Kernel.SELECT: lambda: _core.select(plan, call.start, a.x, out),
        Kernel.SPREAD: lambda: _core.spread(plan, rule.share, rule.reversed, a.g, out),
        Kernel.ROUTE: lambda: _core.route(plan, a.x, a.y if rule.verify else None, a.g, out),
        Kernel.RECALL: lambda: _core.recall(plan, a.x, a.y, a.v, out),
        Kernel.NEAR: lambda: _core.near(plan, rule.eps, a.x, a.y, a.g, out),
    }
    return made[verb]
