"""The pools of the layers on torch tensors: axes and windows as Keras has them, over the derivatives of `poolgrad.torch`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from .._common.errors import ArgumentErrors
from .._frameworks.pools import Chosen, pool
from .._frameworks.spec import Frame, PoolSpec
from ..torch._autograd import Apply, Choose, run
from ..torch._tensors import TorchWindows, channels_last, tensor, view

_ARRAY = TorchWindows(0)  # no windows: the axes of an array are those of its tensor


class _Torch:
    """The torch backend of the pools. Windows stay in NumPy; taps are tensors, as `poolgrad.torch` has them."""

    chosen: Any

    def describe(self, op: str, x: Any) -> tuple[Any, tuple[int, ...], np.dtype[Any]]:
        if isinstance(x, np.ndarray):
            return x, x.shape, x.dtype
        if x.device.type != "cpu":
            wanted = "one on the CPU: x.cpu(), or KERAS_TORCH_DEVICE=cpu before Keras is imported"
            ArgumentErrors(op).fail("x", f"a tensor on {x.device}", wanted)
        return x, tuple(x.shape), np.dtype(str(x.dtype).removeprefix("torch."))

    def accept(self, op: str, x: Any, frame: Frame) -> None:
        pass

    def constant(self, values: Any) -> Any:
        return values

    def seed(self, op: str, seed: Any) -> Any:
        return view(seed, _ARRAY) if isinstance(seed, torch.Tensor) else None

    def select(self, rule: PoolSpec, x: Any, windows: Any) -> tuple[Any, Any]:
        moved, geometry, rows = _moved(rule.frame, x, windows)
        y, taps = run(Choose, moved, rows, rule.least, geometry)
        return _back(rule.frame, y), _back(rule.frame, taps)

    def linear(self, rule: PoolSpec, back: bool, v: Any, windows: Any, *state: Any) -> Any:
        moved, geometry, rows = _moved(rule.frame, v, windows)
        index = _moved(rule.frame, state[0], windows)[0] if rule.kind == "pick" else None
        shape = moved.shape[: moved.ndim - geometry.rank]
        source = (*shape, *(n for _, n, _, _ in rule.frame.axes)) if back else moved.shape
        kind = "mean" if index is None else "taps"
        return _back(rule.frame, run(Apply, moved, index, rows, kind, 1.0, back, source, geometry))

    def compute(self, function: Callable[..., Any], shape: tuple[Any, ...], dtype: Any, *arrays: Any) -> Any:
        known = [view(a, _ARRAY) if isinstance(a, torch.Tensor) else a for a in arrays]
        made = function(*known)
        return tensor(made, _ARRAY) if any(isinstance(a, torch.Tensor) for a in arrays) else made

    def constant_of(self, x: Any) -> Any:
        return x.detach()

    def cast(self, x: Any, dtype: Any) -> Any:
        return x.to(dtype)

    def squeeze(self, x: Any, axes: tuple[int, ...]) -> Any:
        return x.squeeze(axes)


def _moved(frame: Frame, x: Any, windows: Any) -> tuple[Any, TorchWindows, Any]:
    """Return x with its pooled axes at the end, and the windows along them as `poolgrad.torch` has them."""
    dims = [d for d, _, _, _ in frame.axes]
    moved = x.movedim(dims, list(range(x.ndim - len(dims), x.ndim)))
    steps, sizes = tuple(step for _, _, _, step in frame.axes), tuple(m for _, _, m, _ in frame.axes)
    last = channels_last(moved, len(dims))
    geometry = TorchWindows(len(dims), dilation=steps, sizes=sizes, last=last, wide=frame.cells > 256)
    return moved, geometry, torch.from_numpy(np.ascontiguousarray(windows[:2].T, np.int64))


def _back(frame: Frame, y: Any) -> Any:
    """Return y with its pooled axes where Keras has them."""
    dims = [d for d, _, _, _ in frame.axes]
    return y.movedim(list(range(y.ndim - len(dims), y.ndim)), dims)


_BACKEND = _Torch()


class Taps(Chosen[Any]):
    backend = _BACKEND


max_pool = pool(_BACKEND, "max_pool")
fractional_max_pool = pool(_BACKEND, "fractional_max_pool")
fractional_avg_pool = pool(_BACKEND, "fractional_avg_pool")
unpool = pool(_BACKEND, "unpool")
