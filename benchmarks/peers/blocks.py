"""Shared by skimage and xarray, which reduce blocks that tile the array."""

from __future__ import annotations

from ..cells import Cell


def refusal(cell: Cell) -> str | None:
    """Return the reason why a cell is no reduction over whole blocks, or None."""
    if cell.op.order or cell.fractional:
        return "forward blocks only"
    if cell.ksize != cell.strides or any(e.before or e.after or e.n % e.k for e in cell.extents):
        return "blocks have to tile the array"
    return "no bfloat16" if cell.dtype == "bfloat16" else None
