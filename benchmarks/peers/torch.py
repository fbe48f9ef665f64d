"""PyTorch: aten calls without autograd, in both memory formats; from the same inputs, and with indices given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ..cells import Cell
from ..data import Array, Arrays, planes
from .base import Peer, Run, installed, load, version_of


def geometry(cell: Cell) -> tuple[list[int], bool] | None:
    """Return the symmetric padding and ceil_mode that give the cell's windows, or None."""
    extents = cell.extents
    pads = [e.before for e in extents]
    if any(2 * e.before > e.k for e in extents):
        return None
    for ceil in (False, True):
        if all(_length(e.n, e.k, e.s, e.before, ceil) == e.m for e in extents):
            return pads, ceil
    return None


def _length(n: int, k: int, s: int, pad: int, ceil: bool) -> int:
    m = (n + 2 * pad - k + (s - 1 if ceil else 0)) // s + 1
    return m - 1 if ceil and (m - 1) * s >= n + pad else m


class Torch:
    """One memory format, one kind of input."""

    def __init__(self, last: bool, given: bool) -> None:
        self.torch = load("torch")
        self.last, self.given = last, given
        self.name = f"torch {'channels_last' if last else 'contiguous'}"

    def version(self) -> str:
        """The version and the threads."""
        return f"{version_of('torch')} ({self.torch.get_num_threads()} threads)"

    def can(self, cell: Cell) -> str | None:
        """Accept every cell whose windows aten supports."""
        if cell.first and self.last:
            return "the cell's data is contiguous"
        if self.given and (not cell.maximal or not cell.op.order):
            return "needs no indices"
        if cell.fractional:
            if not self.given:
                return "fractional_max_pool2d draws windows of one size: other windows, other numbers"
            return "its kernel wants contiguous planes" if self.last else None
        return None if geometry(cell) else "no symmetric padding with or without ceil_mode gives these windows"

    def prepare(self, cell: Cell, arrays: Arrays) -> Run:
        """Make the aten call of the cell."""
        x, g, v = (self._tensor(cell, a) for a in (arrays.x, arrays.g, arrays.v))
        if cell.fractional:
            return Run(self._fractional(cell, arrays, x, g), lambda out: self._array(cell, out))
        call = self._maximum(cell, x, g, v) if cell.maximal else self._average(cell, x, g)
        return Run(call, lambda out: self._array(cell, out))

    def _tensor(self, cell: Cell, array: Array) -> Any:
        """Return the array as N, C, space in this memory format; copy only if needed."""
        raw = array.view(np.int16) if array.dtype == ml_dtypes.bfloat16 else array
        tensor = self.torch.from_numpy(raw)
        tensor = tensor.view(self.torch.bfloat16) if raw is not array else tensor
        if not cell.first:
            tensor = tensor.movedim(-1, 1)
        return tensor if self.last else tensor.contiguous()

    def _array(self, cell: Cell, tensor: Any) -> Array:
        tensor = tensor if cell.first else tensor.movedim(1, -1)
        if tensor.dtype is self.torch.bfloat16:
            return np.asarray(tensor.contiguous().view(self.torch.int16).numpy()).view(ml_dtypes.bfloat16)
        return np.asarray(tensor.numpy())

    def _aten(self, name: str) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(self.torch.ops.aten, name).default
        return function

    def _average(self, cell: Cell, x: Any, g: Any) -> Callable[[], Any]:
        pads, ceil = geometry(cell) or ([], False)
        k, s = list(cell.ksize), list(cell.strides)
        if cell.op.order == 0:
            forward = self._aten(f"avg_pool{cell.op.spatial}d")
            return lambda: forward(x, k, s, pads, ceil, False)
        backward = self._aten(f"avg_pool{cell.op.spatial}d_backward")
        return lambda: backward(g, x, k, s, pads, ceil, False, None)

    def _maximum(self, cell: Cell, x: Any, g: Any, v: Any) -> Callable[[], Any]:
        pads, ceil = geometry(cell) or ([], False)
        k, s, ones = list(cell.ksize), list(cell.strides), [1] * cell.op.spatial
        forward = self._aten(f"max_pool{cell.op.spatial}d_with_indices")
        backward = self._aten(f"max_pool{cell.op.spatial}d_with_indices_backward")
        if cell.op.order == 0:
            values = getattr(self.torch, f"max_pool{cell.op.spatial}d")
            return lambda: values(x, k, s, pads, ones, ceil)
        indices = forward(x, k, s, pads, ones, ceil)[1] if self.given else None

        def known() -> Any:
            return forward(x, k, s, pads, ones, ceil)[1] if indices is None else indices

        if cell.op.order == 1:
            return lambda: backward(g, x, k, s, pads, ones, ceil, known())
        flat = v.flatten(2)

        def second() -> Any:
            where = known()
            return (
                flat.gather(2, where.flatten(2)).view_as(where)
                if not self.last
                else flat.gather(2, where.flatten(2)).unflatten(2, where.shape[2:])
            )

        return second

    def _fractional(self, cell: Cell, arrays: Arrays, x: Any, g: Any) -> Callable[[], Any]:
        """Time the scatter only, with our positions: torch would draw other windows."""
        backward = self._aten("fractional_max_pool2d_backward")
        indices = self._tensor(cell, planes(cell, arrays))
        out = list(g.shape[2:])
        return lambda: backward(g, x, [2, 2], out, indices)


def peers() -> list[Peer]:
    """Return both memory formats, with and without indices."""
    return [Torch(last, given) for given in (False, True) for last in (True, False)] if installed("torch") else []
