"""Pools with torch's names, arguments and defaults, for one, two and three axes, and with every derivative.

Beyond torch's words: `padding` may be "same", "valid" or pairs (before, after). Each function below resolves the arguments of a pool
over any number of axes; `ranks` makes three public functions of it, as `max_pool1d`, `max_pool2d` and `max_pool3d`. `_signatures` has
their documentation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .._common.errors import ArgumentErrors, short_repr
from ._arguments import affordable, checked, filled, flag, integers, number, ranks, sharing, sliding
from ._deployment import Graph
from ._resolved import Best, Kind, Lesson, Means, Pool, Unpooling
from ._signatures import (
    AdaptiveAvgPoolFunction,
    AdaptiveMaxPoolFunction,
    AvgPoolFunction,
    LpPoolFunction,
    MaxPoolFunction,
    MaxUnpoolFunction,
    MinPoolFunction,
)
from ._tensors import Tensor, TorchWindows, Windows


def best(x: Tensor, windows: Windows, least: bool, geometry: TorchWindows, return_indices: Any) -> Best:
    """Return the pool that finds the best cell of each window, with its index if `return_indices`."""
    return Best(x, geometry, windows, least, flag("return_indices", return_indices))


def mean(x: Tensor, windows: Windows, kind: str, divisor: float, geometry: TorchWindows) -> Means:
    """Return the pool that takes sums over windows, divided."""
    if x.dtype is torch.bool:
        ArgumentErrors("pool").fail(
            "input", "dtype torch.bool", "numbers: a mean of truth values is x.float()'s", TypeError
        )
    return Means(x, geometry, windows, kind, divisor)


def _max_pool(
    rank: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Pool:
    """Resolve max pooling."""
    x = checked(input, rank)
    return best(x, None, False, sliding(x, rank, kernel_size, stride, padding, dilation, ceil_mode), return_indices)


def _min_pool(
    rank: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Pool:
    """Resolve min pooling."""
    x = checked(input, rank)
    return best(x, None, True, sliding(x, rank, kernel_size, stride, padding, dilation, ceil_mode), return_indices)


def _avg_pool(
    rank: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: float | None = None,
) -> Pool:
    """Resolve average pooling."""
    x = checked(input, rank)
    geometry = sliding(x, rank, kernel_size, stride, padding, 1, ceil_mode)
    padded = flag("count_include_pad", count_include_pad) and any(geometry.padding)
    if divisor_override is not None:
        return mean(x, None, "sum", _divisor(number(divisor_override)), geometry)
    return mean(x, None, "padded" if padded else "mean", 1.0, geometry)


def _divisor(value: Any) -> float:
    """Return a divisor as the float that the operator takes."""
    if type(value) in (int, float) and value and abs(value) < 2**1023 and float(value) == value:
        return float(value)
    kind = ValueError if isinstance(value, (int, float)) else TypeError
    return ArgumentErrors("pool").fail(
        "divisor", short_repr(value), "a finite number other than 0 that float64 holds exactly", kind
    )


def _lp_pool(
    rank: int, input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Pool:
    """Resolve power-average pooling."""
    x, norm_type = checked(input, rank), number(norm_type)
    if isinstance(norm_type, bool) or not isinstance(norm_type, (int, float)) or not 0 < norm_type < float("inf"):
        ArgumentErrors("pool").fail("norm_type", short_repr(norm_type), "a positive number; max_pool is its limit")
    if not x.dtype.is_floating_point:
        ArgumentErrors("pool").fail("input", f"dtype {x.dtype}", "a floating dtype", TypeError)
    geometry = sliding(x, rank, kernel_size, stride, 0, 1, ceil_mode)
    return _Norm(x, norm_type, geometry)


class _Norm(Pool):
    """The p-norm of each window, from sums of powers."""

    def __init__(self, x: Tensor, p: float, geometry: TorchWindows) -> None:
        self.p, self.dtype = p, x.dtype
        self.wide = (
            torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype
        )  # a half has too few powers
        self.sums = Means(x, geometry, None, "sum", dtype=self.wide)

    def short(self) -> bool:
        """Return True if the tables of the windows are short enough to keep."""
        return self.sums.short()

    def lesson(self) -> Lesson | None:
        """Return what the compiled part must know to run the pool."""
        sums = self.sums.lesson()
        return None if sums is None else sums._replace(kind=Kind.NORM, power=float(self.p))

    def backward(self, g: Tensor, x: Tensor, _: Tensor | None = None) -> Tensor:
        """Return the gradient with respect to x, by operations that can be differentiated again."""
        wide = x.to(self.wide)
        base = wide if self.p == 2 else wide.abs()
        total = self.sums.run(base.pow(self.p))
        empty = (total == 0).to(total.dtype)
        slope = (total + empty).pow(1 / self.p - 1) * (1 / self.p)
        share = self.sums.backward(g.to(self.wide) * (1 - empty) * slope) * (base.pow(self.p - 1) * self.p)
        return (share if self.p == 2 else share * wide.sgn()).to(self.dtype)

    def traced(self, x: Tensor) -> Tensor:
        """Return the norms."""
        return self._norms(x, self.sums.run)

    def written(self, x: Tensor, graph: Graph) -> Tensor:
        """Return the norms."""
        return self._norms(x, lambda powers: self.sums.written(powers, graph))

    def _norms(self, x: Tensor, sums: Callable[[Tensor], Tensor]) -> Tensor:
        wide = x.to(self.wide)
        total = sums((wide if self.p == 2 else wide.abs()).pow(self.p))
        empty = (total == 0).to(total.dtype)
        y = (total + empty).pow(1 / self.p) * (1 - empty)
        return y.to(self.dtype)


def _adaptive_max_pool(rank: int, input: Tensor, output_size: Any, return_indices: bool = False) -> Pool:
    """Resolve adaptive max pooling."""
    x = checked(input, rank)
    return best(x, None, False, sharing(x, rank, output_size, 1), return_indices)


def _adaptive_avg_pool(rank: int, input: Tensor, output_size: Any) -> Pool:
    """Resolve adaptive average pooling."""
    x = checked(input, rank)
    first = 1 if rank == 3 else x.ndim - rank  # the rules of torch
    return mean(x, None, "mean", 1.0, sharing(x, rank, output_size, first))


def _max_unpool(
    rank: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
    *,
    reduce: str = "sum",
) -> Pool:
    """Resolve unpooling."""
    y, where = checked(input, rank), checked(indices, rank, "indices")
    filled(y.shape, 1)
    if where.shape != y.shape or where.dtype.is_floating_point or where.dtype == torch.bool:
        ArgumentErrors("pool").fail(
            "indices", f"{where.dtype} of shape {list(where.shape)}", f"integers of shape {list(y.shape)}"
        )
    if where.device != y.device:
        ArgumentErrors("pool").fail("indices", f"a tensor on {where.device}", f"one on {y.device}, as the input")
    if reduce not in ("sum", "assign"):
        ArgumentErrors("pool").fail("reduce", short_repr(reduce), "'sum' or 'assign'")
    source = (*y.shape[: y.ndim - rank], *_unpooled(y, rank, kernel_size, stride, padding, output_size))
    kind = "add" if reduce == "sum" else "assign"
    return Unpooling(y, where, kind, source, rank)


def _unpooled(y: Tensor, rank: int, kernel_size: Any, stride: Any, padding: Any, output_size: Any) -> tuple[int, ...]:
    """Return the lengths of the planes that an unpooling fills: by default the shortest that have such windows."""
    kernel, pads = integers("kernel_size", kernel_size, rank, 1), integers("padding", padding, rank, 0)
    strides = kernel if stride is None or stride in ([], ()) else integers("stride", stride, rank, 1)
    lengths = y.shape[y.ndim - rank :]
    sizes = tuple((n - 1) * s + k - 2 * p for n, s, k, p in zip(lengths, strides, kernel, pads, strict=True))
    if output_size is None:
        if any(type(m) is int and m < 0 for m in sizes):
            ArgumentErrors("pool").fail(
                "padding", short_repr(padding), f"an output of at least 0 cells per axis; this one has {list(sizes)}"
            )
        affordable("kernel_size", kernel_size, [*y.shape[: y.ndim - rank], *sizes])
        return sizes
    given = tuple(output_size) if isinstance(output_size, (list, tuple, torch.Size)) else ()
    given = given[2:] if len(given) == rank + 2 else given
    chosen = integers("output_size", given, rank, 0) if len(given) == rank else ()
    if not chosen or any(abs(m - n) >= s for m, n, s in zip(chosen, sizes, strides, strict=True)):
        wanted = f"{rank} sizes, less than the stride {list(strides)} away from {list(sizes)}"
        ArgumentErrors("pool").fail("output_size", short_repr(output_size), wanted, ValueError if given else TypeError)
    affordable("output_size", output_size, [*y.shape[: y.ndim - rank], *chosen])
    return chosen


max_pool1d: MaxPoolFunction
max_pool2d: MaxPoolFunction
max_pool3d: MaxPoolFunction
max_pool1d, max_pool2d, max_pool3d = ranks(_max_pool, MaxPoolFunction)
min_pool1d: MinPoolFunction
min_pool2d: MinPoolFunction
min_pool3d: MinPoolFunction
min_pool1d, min_pool2d, min_pool3d = ranks(_min_pool, MinPoolFunction)
avg_pool1d: AvgPoolFunction
avg_pool2d: AvgPoolFunction
avg_pool3d: AvgPoolFunction
avg_pool1d, avg_pool2d, avg_pool3d = ranks(_avg_pool, AvgPoolFunction)
lp_pool1d: LpPoolFunction
lp_pool2d: LpPoolFunction
lp_pool3d: LpPoolFunction
lp_pool1d, lp_pool2d, lp_pool3d = ranks(_lp_pool, LpPoolFunction)
adaptive_max_pool1d: AdaptiveMaxPoolFunction
adaptive_max_pool2d: AdaptiveMaxPoolFunction
adaptive_max_pool3d: AdaptiveMaxPoolFunction
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = ranks(_adaptive_max_pool, AdaptiveMaxPoolFunction)
adaptive_avg_pool1d: AdaptiveAvgPoolFunction
adaptive_avg_pool2d: AdaptiveAvgPoolFunction
adaptive_avg_pool3d: AdaptiveAvgPoolFunction
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = ranks(_adaptive_avg_pool, AdaptiveAvgPoolFunction)
max_unpool1d: MaxUnpoolFunction
max_unpool2d: MaxUnpoolFunction
max_unpool3d: MaxUnpoolFunction
max_unpool1d, max_unpool2d, max_unpool3d = ranks(_max_unpool, MaxUnpoolFunction, remember=False)
