"""Between tensors and arrays: shared memory, two layouts, and windows as numbers that an operator of torch can take."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np
import torch

import poolgrad as pg

Sizes: TypeAlias = Sequence[int]
Tensor: TypeAlias = torch.Tensor

SAME = {"same": (-1,), "same_lower": (-2,)}  # paddings that depend on lengths, as numbers


class Geometry(NamedTuple):
    """Where windows lie along the last axes. Sliding ones have a kernel, adaptive ones only sizes, given ones come as a tensor.

    `padding` has two numbers per axis. With `last` the channels, which come before the pooled axes, lie behind them in memory.
    """

    rank: int
    kernel: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    ceil_mode: bool = False
    sizes: tuple[int, ...] = ()
    last: bool = False
    wide: bool = False  # whether taps need more than a byte

    def pooled(self, source: Sizes) -> list[int]:
        """The shape of what is pooled; symbols may stand for lengths."""
        lengths = source[len(source) - self.rank :]
        return [*source[: len(source) - self.rank], *(self.sizes or map(self._count, range(self.rank), lengths))]

    def _count(self, i: int, n: int) -> int:
        k, s, d = self.kernel[i], self.stride[i], self.dilation[i]
        if self.padding in SAME.values():
            return -(-n // s)
        before, after = self.padding[2 * i : 2 * i + 2]
        over = n + before + after - d * (k - 1) - 1
        m = torch.sym_max((-(-over // s) if self.ceil_mode else over // s) + 1, 0)
        return m - 1 if self.ceil_mode and m > 0 and (m - 1) * s >= n + before else m


def channels_last(x: Tensor, rank: int) -> bool:
    """Whether the memory of x has the channels behind the pooled axes."""
    return x.ndim > rank and not x.is_contiguous() and x.movedim(-rank - 1, -1).is_contiguous()


def view(x: Tensor, geometry: Geometry) -> Any:
    """The memory of x as an array; a copy only where x is in another layout than the windows."""
    laid = x.detach().resolve_neg()
    laid = (laid.movedim(-geometry.rank - 1, -1) if geometry.last else laid).contiguous()
    half = laid.dtype == torch.bfloat16  # which NumPy knows by its bits alone
    array = laid.view(torch.uint16).numpy().view(ml_dtypes.bfloat16) if half else laid.numpy()
    return array.reshape(-1).reshape(laid.shape)  # torch may give an axis of one cell any stride


def tensor(array: Any, geometry: Geometry) -> Tensor:
    """The array as a tensor over the same memory, its axes in the caller's order."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype == ml_dtypes.bfloat16:
        made = torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
    else:
        made = torch.from_numpy(array.view(np.int32) if array.dtype == np.uint32 and geometry.wide else array)
    return made.movedim(-1, -geometry.rank - 1) if geometry.last else made


def blank(like: Tensor, shape: Sizes, geometry: Geometry, dtype: Any = None) -> Tensor:
    """A tensor of that shape in the layout of the windows, its cells unwritten."""
    if not geometry.last:
        return like.new_empty(shape, dtype=dtype or like.dtype)
    at = len(shape) - geometry.rank - 1
    laid = [*shape[:at], *shape[at + 1 :], shape[at]]
    return like.new_empty(laid, dtype=dtype or like.dtype).movedim(-1, at)


def plan(source: Sizes, geometry: Geometry, windows: Tensor | None) -> pg.Plan:
    """The windows for an array of that shape, its axes in the order of memory."""
    shape = tuple(int(n) for n in source)
    at = len(shape) - geometry.rank - 1
    if geometry.last:
        shape = (*shape[:at], *shape[at + 1 :], shape[at])
    return _plan(shape, geometry) if windows is None else _given(shape, geometry, windows.numpy())


def axes_in_memory(ndim: int, geometry: Geometry) -> tuple[int, ...]:
    """Where the pooled axes are in memory."""
    first = ndim - geometry.rank - geometry.last
    return tuple(range(first, first + geometry.rank))


@lru_cache(1024)
def _plan(shape: tuple[int, ...], geometry: Geometry) -> pg.Plan:
    axes = axes_in_memory(len(shape), geometry)
    if geometry.sizes:
        return pg.plan(shape, [pg.adaptive(shape[d], m) for d, m in zip(axes, geometry.sizes, strict=True)], axes=axes)
    pads = geometry.padding
    word = next((word for word, number in SAME.items() if number == pads), None)
    return pg.plan(
        shape,
        geometry.kernel,
        geometry.stride,
        padding=word or list(zip(pads[::2], pads[1::2], strict=True)),
        dilation=geometry.dilation,
        ceil_mode=geometry.ceil_mode,
        axes=axes,
    )


def _given(shape: tuple[int, ...], geometry: Geometry, windows: Any) -> pg.Plan:
    axes, made, begin = axes_in_memory(len(shape), geometry), [], 0
    steps = geometry.dilation or (1,) * geometry.rank
    for d, m, step in zip(axes, geometry.sizes, steps, strict=True):
        start, stop = windows[begin : begin + m].T
        made.append(pg.Axis(shape[d], start, stop, step=step))
        begin += m
    return pg.plan(shape, made, axes=axes)
