"""Derivatives of every order and direction: a linear operator and its transpose are each other's rules.

`torch.library` has no rule for tangents, so `autograd.Function` is what torch's transforms see. Its compiler cannot look into
one that has such a rule; it takes the public functions into its graph as they are, and traces what they do (`_arguments.ranks`).
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import forward_ad

from . import _custom_ops, _kernels
from ._tensors import Tensor, TorchWindows, unwatched


def run(function: Any, x: Tensor, *words: Any) -> Any:
    """Run `function.apply`; skip torch's dispatcher for plain tensors, and the graph if no derivative is wanted."""
    if not unwatched(x):
        return function.apply(x, *words)
    work, apply = _PLAIN[function]
    wanted = (x.requires_grad and torch.is_grad_enabled()) or forward_ad._current_level >= 0
    return (apply if wanted else work)(x, *words)


def _rows(tensor: Tensor | None, dim: int | None, size: int) -> Any:
    """Return one entry per element of a batch."""
    return (tensor,) * size if tensor is None or dim is None else tensor.unbind(dim)


def _first(tensor: Tensor, dim: int | None, size: int) -> Tensor:
    """Return the tensor with the batch as its first axis."""
    return tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


class Choose(torch.autograd.Function):
    """The best cell of each window, and its tap."""

    @staticmethod
    def forward(x: Tensor, windows: Tensor | None, least: bool, geometry: TorchWindows) -> tuple[Tensor, Tensor]:
        """Return the values and the taps."""
        return _custom_ops.choose(x, windows, least, *geometry)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Save the taps."""
        x, windows, _, ctx.geometry = inputs
        taps = output[1]
        ctx.source = x.shape
        ctx.mark_non_differentiable(taps)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(taps, windows)
        ctx.save_for_forward(taps, windows)

    @staticmethod
    def backward(ctx: Any, g: Tensor | None, _: Any) -> Any:
        """Apply the transpose of the operator that picks the taps."""
        taps, windows = ctx.saved_tensors
        if g is None:
            return None, None, None, None
        return run(Apply, g, taps, windows, "taps", 1.0, True, ctx.source, ctx.geometry), None, None, None

    @staticmethod
    def jvp(ctx: Any, dx: Tensor, *_: Any) -> Any:
        """Apply the operator that picks the taps."""
        taps, windows = ctx.saved_tensors
        return run(Apply, dx, taps, windows, "taps", 1.0, False, ctx.source, ctx.geometry), None

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor, windows: Tensor | None, least: bool, geometry: TorchWindows) -> Any:
        """Treat a batch as one more axis in front; for a batch of windows, make one call each."""
        if in_dims[1] is None:
            return run(Choose, _first(x, in_dims[0], info.batch_size), windows, least, geometry), (0, 0)
        size = info.batch_size
        pairs = zip(_rows(x, in_dims[0], size), _rows(windows, in_dims[1], size), strict=True)
        made = [run(Choose, part, each, least, geometry) for part, each in pairs]
        return tuple(torch.stack(column) for column in zip(*made, strict=True)), (0, 0)


class Apply(torch.autograd.Function):
    """A linear operator, as `_kernels.apply` describes it."""

    @staticmethod
    def forward(v: Tensor, *words: Any) -> Tensor:
        """Apply the operator to v."""
        return _custom_ops.apply(v, *words[:-1], *words[-1])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Save the arrays and arguments of the operator."""
        _, index, windows, *ctx.words = inputs
        ctx.save_for_backward(index, windows)
        ctx.save_for_forward(index, windows)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Apply the transpose."""
        kind, divisor, transposed, source, geometry = ctx.words
        dv = run(Apply, g, *ctx.saved_tensors, kind, divisor, not transposed, source, geometry)
        return dv, None, None, None, None, None, None, None

    @staticmethod
    def jvp(ctx: Any, dv: Tensor, *_: Any) -> Tensor:
        """Apply the operator itself."""
        return run(Apply, dv, *ctx.saved_tensors, *ctx.words)

    @staticmethod
    def vmap(info: Any, in_dims: Any, v: Tensor, index: Any, windows: Any, *words: Any) -> Any:
        """Treat a batch as one more axis in front; for a batch of windows, make one call each."""
        size = info.batch_size
        if in_dims[2] is not None:
            rows = zip(
                _rows(v, in_dims[0], size), _rows(index, in_dims[1], size), windows.unbind(in_dims[2]), strict=True
            )
            return torch.stack([run(Apply, *row, *words) for row in rows]), 0
        kind, divisor, transposed, source, geometry = words
        index = None if index is None else _first(index, in_dims[1], size)
        v = _first(v, in_dims[0], size)
        return run(Apply, v, index, windows, kind, divisor, transposed, (size, *source), geometry), 0


def _plain(function: Any, work: Any) -> Any:
    """Return an operator for plain tensors, without and with derivatives; both skip torch's code for transforms."""
    twin = type(function.__name__, (function,), {"forward": staticmethod(work)})
    return work, super(torch.autograd.Function, twin).apply


_PLAIN = {Choose: _plain(Choose, _kernels.choose), Apply: _plain(Apply, _kernels.apply)}
