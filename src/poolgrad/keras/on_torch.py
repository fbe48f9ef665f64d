"""The pools on torch tensors, as far as the layers need them: reverse and forward mode, to any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import torch

from .._common.errors import ArgumentErrors
from .._frameworks.pools import Chosen, pool
from .._frameworks.spec import Frame, PoolSpec, carry, select


def _array(tensor: Any) -> Any:
    """View the memory of a tensor as a NumPy array; torch exposes bfloat16 only as integers."""
    tensor = tensor.detach().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def _tensor(array: Any) -> Any:
    array = np.ascontiguousarray(array)
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


class _Carry(torch.autograd.Function):
    """An operator on a tensor; its derivative is its transpose, which is again one of these."""

    @staticmethod
    def forward(ctx: Any, v: Any, rule: PoolSpec, back: bool, *arrays: Any) -> Any:
        ctx.rest = (rule, back, *arrays)
        return _tensor(carry(rule, back, _array(v), *arrays))

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        rule, back, *arrays = ctx.rest
        return _Carry.apply(g, rule, not back, *arrays), None, None, *(None for _ in arrays)

    @staticmethod
    def jvp(ctx: Any, dv: Any, *_: Any) -> Any:
        return _Carry.apply(dv, *ctx.rest)


class _Known(torch.autograd.Function):
    """A result y already pooled from x; the operator of the spec gives its derivative."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, rule: PoolSpec, *arrays: Any) -> Any:
        ctx.rest = (rule, *arrays)
        return _tensor(y)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        rule, *arrays = ctx.rest
        return _Carry.apply(g, rule, True, *arrays), None, None, *(None for _ in arrays)

    @staticmethod
    def jvp(ctx: Any, dx: Any, *_: Any) -> Any:
        rule, *arrays = ctx.rest
        return _Carry.apply(dx, rule, False, *arrays)


class _Torch:
    """The torch backend of the pools; every number is known when a pool runs, and windows and taps stay in NumPy."""

    def describe(self, op: str, x: Any) -> tuple[Any, tuple[int, ...], np.dtype[Any]]:
        if isinstance(x, np.ndarray):
            return x, x.shape, x.dtype
        if x.device.type != "cpu":
            wanted = "one on the CPU: x.cpu(), or KERAS_TORCH_DEVICE=cpu before Keras is imported"
            ArgumentErrors(op).fail("x", f"a tensor on {x.device}", wanted)
        return x, tuple(x.shape), _array(x[:0] if x.ndim else x).dtype

    def accept(self, op: str, x: Any, frame: Frame) -> None:
        pass

    def constant(self, values: Any) -> Any:
        return values

    def seed(self, op: str, seed: Any) -> Any:
        return _array(seed) if isinstance(seed, torch.Tensor) else None

    def select(self, rule: PoolSpec, x: Any, windows: Any) -> tuple[Any, Any]:
        array = _array(x)
        y, taps = select(rule, array, windows)
        return _Known.apply(x, y, rule, windows, array if taps is None else taps), taps

    def linear(self, rule: PoolSpec, back: bool, v: Any, windows: Any, *state: Any) -> Any:
        return _Carry.apply(v, rule, back, windows, *state)

    def compute(self, function: Callable[..., Any], shape: tuple[Any, ...], dtype: Any, *arrays: Any) -> Any:
        return function(*arrays)

    def constant_of(self, x: Any) -> Any:
        return _array(x)

    def cast(self, x: Any, dtype: Any) -> Any:
        return x.to(dtype)

    def squeeze(self, x: Any, axes: tuple[int, ...]) -> Any:
        return x.squeeze(axes)

    def chosen(self, values: Any, windows: Any, rule: PoolSpec) -> Chosen[Any]:
        return Taps(values, windows, rule)


_BACKEND = _Torch()


class Taps(Chosen[Any]):
    """The cells that a pool chose."""

    backend = _BACKEND


max_pool = pool(_BACKEND, "max_pool")
fractional_max_pool = pool(_BACKEND, "fractional_max_pool")
fractional_avg_pool = pool(_BACKEND, "fractional_avg_pool")
unpool = pool(_BACKEND, "unpool")
