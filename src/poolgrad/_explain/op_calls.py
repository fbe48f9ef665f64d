"""Explain cells of the operators of the table: turn a call that ran into a subject."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from .. import raw_ops
from .._common.errors import ArgumentErrors
from .._ops.bind import FORWARD, BoundCall, arrays_of, bind
from .._ops.semantics import Kernel, WindowRule
from .._ops.table import OPS, Kind, Op
from .._windows.plan import Plan
from .._windows.sliding import edges
from .subject import DEST, SOURCE, Explanation, Operand, Subject, ask

Array = npt.NDArray[Any]


def operands_of(op: Op) -> tuple[Operand, ...]:
    """Return the arrays of an op with their symbols, results last."""
    found, sources, dests = [], 0, 0
    ys = [p for p in op.params if p.kind is Kind.DEST]
    for p in op.params:
        if p.kind is Kind.SOURCE:
            found.append(Operand("x" if not sources else "v", p.name, SOURCE))
            sources += 1
        elif p.kind is Kind.DEST:
            found.append(Operand("y" if len(ys) > dests + 1 or op.order == 2 else "g", p.name, DEST))
            dests += 1
        elif p.kind is Kind.INDEX:
            found.append(Operand("index", p.name, DEST))
    forward = op.rule.verb in FORWARD
    found.append(Operand("out" if forward else "dx", op.outputs[0], DEST if forward else SOURCE))
    if op.rule.verb is Kernel.ARGMAX:
        found.append(Operand("index", op.outputs[1], DEST))
    return tuple(found)


def subject(
    op: Op, call: BoundCall, arrays: Mapping[str, Array], attrs: Mapping[str, Any], outputs: Mapping[str, Array]
) -> Subject | None:
    """Return the subject for a bound call that ran, or None if the call has no cells."""
    plan = call.plan
    if plan is None:
        return None
    if op.rule.windows is WindowRule.EDGES and op.order == 0:
        # Use the windows in the outputs: drawing again would give others.
        drawn = [outputs[name] for name in op.outputs[1:]]
        overlapping = bool(attrs.get("overlapping"))
        pooled = {1 + d: edges(plan.source[1 + d], s, overlapping) for d, s in enumerate(drawn)}
        plan = Plan(plan.source, pooled)
    operands = operands_of(op)
    held = {p.pin: outputs[p.pin] if p.pin in outputs else arrays[p.pin] for p in operands}
    return Subject(op.name, plan, op.rule, operands, held, call.items, call.absolute)


def named(made: Subject, names: Mapping[str, str]) -> Subject:
    """Return the subject with other names of its arrays in sentences, by pin."""
    return replace(made, operands=tuple(replace(p, name=names.get(p.pin, "")) for p in made.operands))


def explain_op(name: str, cell: Sequence[int], pin: str | None, given: Mapping[str, Any]) -> Explanation:
    """Run an op and explain a cell of its result or of an argument.

    >>> import numpy as np
    >>> x = np.array([[1, 2], [4, 3]], np.float32).reshape(1, 2, 2, 1)
    >>> given = {"input": x, "ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    >>> print(explain_op("MaxPool", (0, 0, 0, 0), "output", given))
    output[0,0,0,0] = 4, the largest of the 4 cells of input[0,0:2,0:2,0], found at input[0,1,0,0].
    """
    op, problems = OPS[name], ArgumentErrors(name)
    arrays = arrays_of(op, given, problems)[0]
    problems.raise_if_any()
    result = getattr(raw_ops, name)(**{**given, **arrays})
    outputs = dict(zip(op.outputs, result if len(op.outputs) > 1 else (result,), strict=True))
    attrs = {key: value for key, value in given.items() if key not in arrays}
    call = bind(op, arrays, attrs, ArgumentErrors(name))
    return ask(name, subject(op, call, arrays, attrs, outputs), pin or "output", cell)
