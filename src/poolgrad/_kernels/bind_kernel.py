"""Bind the kernel of an op's row to a checked call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._ops.bind import BoundCall
from .._ops.semantics import Kernel, OpSemantics


def bind_kernel(rule: OpSemantics, verbs: Any, call: BoundCall) -> Callable[..., Any]:
    """Bind the row's kernel to everything but its arrays, which it takes in the order of the signature."""
    plan, verb, start = call.plan, rule.verb, call.start
    items, absolute = call.items, call.absolute
    if verb is Kernel.FOLD:
        return lambda x: verbs.fold(plan, rule.mean, x)
    if verb is Kernel.SELECT:
        return lambda x: verbs.select(plan, start, x)
    if verb is Kernel.SPREAD:
        return lambda g: verbs.spread(plan, rule.share, rule.reversed, g)
    if verb is Kernel.ROUTE and rule.verify:
        return lambda x, y, g: verbs.route(plan, x, g, y)
    if verb is Kernel.ROUTE:
        return lambda x, y, g: verbs.route(plan, x, g)
    if verb is Kernel.RECALL:
        return lambda x, y, v: verbs.recall(plan, x, y, v)
    if verb is Kernel.NEAR:
        return lambda x, y, g: verbs.near(plan, rule.eps, x, y, g)
    if verb is Kernel.SCATTER:
        return lambda x, g, index: verbs.scatter(plan, items, absolute, g, index)
    if verb is Kernel.GATHER:
        return lambda x, v, index: verbs.gather(plan, items, absolute, v, index)
    size = int(np.prod(call.source, dtype=np.int64))
    return lambda x: verbs.argmax(plan, size if absolute else size // items, call.index_type, x)
