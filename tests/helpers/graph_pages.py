"""Pages for tests: any op's case as a scope, and readers of the service's results."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from support import Case, arguments, dtype_of

from poolgrad._ops.table import ARRAYS, OPS, REQUIRED, Kind
from poolgrad.graph import Operation, Scope, ops
from poolgrad.graph.text import written_attrs

CASES = [
    Case(
        name,
        dtype="uint8" if op.family.startswith("q") else "float32",
        x=(2, 5, 4, 2) if op.spatial == 2 else (1, 4, 3, 5, 2),
        k=(3, 2) if op.spatial == 2 else (2, 2, 3),
        s=(2, 1) if op.spatial == 2 else (2, 1, 2),
        pad="VALID" if op.family.startswith("f") else "SAME",
        overlapping=True,
        batched=True,
    )
    for name, op in OPS.items()
]


def page_of(case: Case, collect: bool = False) -> tuple[Scope, Operation, dict[str, Any]]:
    """Return a page with the case's op, its arrays as Const blocks, everything else as text."""
    given = arguments(case)
    scope = Scope.new_root_scope(case.op, collect)
    words: dict[str, Any] = {}
    optional = {}
    for p in case.row.params:
        if p.name not in given:
            continue
        if p.kind in ARRAYS and p.kind is not Kind.RANGE:
            words[p.name] = ops.Const(scope.with_op_name(p.name), given[p.name])
        elif p.kind is Kind.RANGE:
            words[p.name] = repr(float(given[p.name]))
        elif p.default is REQUIRED:
            words[p.name] = given[p.name]
        else:
            optional[p.name] = given[p.name]
    made = getattr(ops, case.op)(scope.with_op_name("out"), **words, attrs=written_attrs(optional))
    return scope, made, given


def cells(tensor: dict[str, Any]) -> np.ndarray:
    """Return the array that a tensor in JSON holds."""
    values = tensor["values"]
    return np.frombuffer(base64.b64decode(values["b64"]), values["type"]).reshape(tensor["shape"])


def array(spec: dict[str, Any]) -> np.ndarray:
    """Return an array of the acceptance cases: arange, fill or values, a shape, and cells that are set."""
    if "arange" in spec:
        flat = np.arange(*spec["arange"])
    elif "fill" in spec:
        flat = np.full(np.prod(spec["shape"]), spec["fill"])
    else:
        flat = np.array(spec["values"])
    flat = flat.astype(dtype_of(spec.get("dtype", "float32")))
    for at, value in spec.get("set", {}).items():
        flat[int(at)] = value
    return flat.reshape(spec["shape"])
