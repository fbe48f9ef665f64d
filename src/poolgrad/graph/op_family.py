"""Find the derivative of an op in the table: relatives share family, dimensions and kinds of arguments."""

from __future__ import annotations

from .._ops.table import OPS, Kind, Op


def _traits(op: Op) -> tuple[object, ...]:
    kinds = {p.kind for p in op.params}
    return op.family, op.spatial, bool(kinds & {Kind.INDEX, Kind.INDEX_TYPE}), Kind.SIZES_TENSOR in kinds


def relative(op: Op, order: int) -> Op | None:
    """Return the op of another order in the same family, or None.

    >>> [relative(OPS["MaxPoolGradV2"], order).name for order in (0, 1, 2)]
    ['MaxPoolV2', 'MaxPoolGradV2', 'MaxPoolGradGradV2']
    >>> relative(OPS["QuantizedMaxPool"], 1)
    """
    return next((row for row in OPS.values() if row.order == order and _traits(row) == _traits(op)), None)


def forward_of(op: Op) -> Op | None:
    """Return the forward op of a gradient op."""
    return relative(op, 0) if op.order else None
