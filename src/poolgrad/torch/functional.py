"""Pools with torch's names, arguments and defaults, for one, two and three axes, and with every derivative.

Beyond torch's words: `padding` may be "same", "valid" or pairs (before, after). Each function below is written for any number of
pooled axes and exported under three names, as `max_pool1d`, `max_pool2d` and `max_pool3d`.
"""

from __future__ import annotations

from typing import Any

import torch

from ..errors import Problems, brief
from . import eager, ops
from .bridge import Geometry, Tensor, unwatched
from .derive import Apply, Choose, run
from .words import checked, each, number, ranks, sharing, sliding


def extreme(x: Tensor, windows: Tensor | None, least: bool, geometry: Geometry, return_indices: bool) -> Any:
    """The best cell of each window, and where it is if that is asked for."""
    y, taps = run(Choose, x, windows, least, geometry)
    if not return_indices:
        return y
    if unwatched(taps):
        return y, eager.positions(taps, windows, x.shape, geometry)
    return y, ops.positions(taps, windows, x.shape, *geometry)


def fold(x: Tensor, windows: Tensor | None, kind: str, divisor: float, geometry: Geometry) -> Tensor:
    """Sums over windows, divided."""
    return run(Apply, x, None, windows, kind, divisor, False, x.shape, geometry)


def _max_pool(
    rank: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """y[i] = the largest x[j] of window i; with return_indices also where it is in its plane.

    >>> x = torch.tensor([[[1.0, 3.0, 2.0, 0.0]]])
    >>> max_pool1d(x, 2).tolist(), max_pool1d(x, 3, 1, padding="same").tolist()
    ([[[3.0, 2.0]]], [[[3.0, 3.0, 3.0, 2.0]]])
    """
    x = checked(input, rank)
    return extreme(x, None, False, sliding(x, rank, kernel_size, stride, padding, dilation, ceil_mode), return_indices)


def _min_pool(
    rank: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """y[i] = the least x[j] of window i; otherwise as max_pool.

    >>> min_pool1d(torch.tensor([[[1.0, 3.0, 2.0, 0.0]]]), 2).tolist()
    [[[1.0, 0.0]]]
    """
    x = checked(input, rank)
    return extreme(x, None, True, sliding(x, rank, kernel_size, stride, padding, dilation, ceil_mode), return_indices)


def _avg_pool(
    rank: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: float | None = None,
) -> Tensor:
    """y[i] = the sum of x over window i, divided by its cells and padding, by its cells alone, or by a number.

    >>> x = torch.tensor([[[1.0, 3.0, 2.0, 0.0]]])
    >>> avg_pool1d(x, 2).tolist(), avg_pool1d(x, 2, 1, padding="same", count_include_pad=False).tolist()
    ([[[2.0, 1.0]]], [[[2.0, 2.5, 1.0, 0.0]]])
    """
    x = checked(input, rank)
    geometry = sliding(x, rank, kernel_size, stride, padding, 1, ceil_mode)
    divisor_override = number(divisor_override)
    if divisor_override is not None:
        if not isinstance(divisor_override, (int, float)) or not divisor_override:
            Problems("pool").fail("divisor", brief(divisor_override), "a number other than 0")
        return fold(x, None, "sum", float(divisor_override), geometry)
    padded = count_include_pad and any(geometry.padding)
    return fold(x, None, "padded" if padded else "mean", 1.0, geometry)


def _lp_pool(
    rank: int, input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """y[i] = (sum of abs(x)**p over window i)**(1/p); its derivative is 0 where a window holds nothing but zeros.

    >>> lp_pool1d(torch.tensor([[[3.0, -4.0, 0.0, 0.0]]]), 2, 2).tolist()
    [[[5.0, 0.0]]]
    """
    x, norm_type = checked(input, rank), number(norm_type)
    if isinstance(norm_type, bool) or not isinstance(norm_type, (int, float)) or not 0 < norm_type < float("inf"):
        Problems("pool").fail("norm_type", brief(norm_type), "a positive number; max_pool is its limit")
    if not x.dtype.is_floating_point:
        Problems("pool").fail("input", f"dtype {x.dtype}", "a floating dtype", TypeError)
    geometry = sliding(x, rank, kernel_size, stride, 0, 1, ceil_mode)
    total = fold(x.abs().pow(norm_type), None, "sum", 1.0, geometry)
    empty = (total == 0).to(total.dtype)
    return (total + empty).pow(1 / norm_type) * (1 - empty)


def _adaptive_max_pool(rank: int, input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The largest cell of each of `output_size` windows that share an axis evenly; None leaves an axis as it is.

    >>> adaptive_max_pool1d(torch.arange(7.0).reshape(1, 1, 7), 3).tolist()
    [[[2.0, 4.0, 6.0]]]
    """
    x = checked(input, rank)
    return extreme(x, None, False, sharing(x, rank, output_size), return_indices)


def _adaptive_avg_pool(rank: int, input: Tensor, output_size: Any) -> Tensor:
    """The mean over each of `output_size` windows that share an axis evenly; None leaves an axis as it is.

    >>> adaptive_avg_pool1d(torch.arange(7.0).reshape(1, 1, 7), 3).tolist()
    [[[1.0, 3.0, 5.0]]]
    """
    x = checked(input, rank)
    return fold(x, None, "mean", 1.0, sharing(x, rank, output_size))


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
) -> Tensor:
    """Each cell goes to its index in a plane of zeros; where indices repeat, "sum" adds up, "assign" keeps the last.

    >>> y, where = max_pool1d(torch.tensor([[[1.0, 3.0, 2.0]]]), 2, 1, return_indices=True)
    >>> max_unpool1d(y, where, 2, 1).tolist(), max_unpool1d(y, where, 2, 1, reduce="assign").tolist()
    ([[[0.0, 6.0, 0.0]]], [[[0.0, 3.0, 0.0]]])
    """
    y, where = checked(input, rank), checked(indices, rank, "indices")
    if where.shape != y.shape or where.dtype.is_floating_point:
        Problems("pool").fail(
            "indices", f"{where.dtype} of shape {list(where.shape)}", f"integers of shape {list(y.shape)}"
        )
    if reduce not in ("sum", "assign"):
        Problems("pool").fail("reduce", brief(reduce), "'sum' or 'assign'")
    kernel, pads = each(kernel_size, rank), each(padding, rank)
    strides = kernel if stride in (None, [], ()) else each(stride, rank)
    lengths = y.shape[y.ndim - rank :]
    sizes = tuple((n - 1) * s + k - 2 * p for n, s, k, p in zip(lengths, strides, kernel, pads, strict=True))
    if output_size is not None:
        sizes = tuple(output_size)[-rank:]
    source = (*y.shape[: y.ndim - rank], *sizes)
    kind = "add" if reduce == "sum" else "assign"
    return run(Apply, y, where.to(torch.int64), None, kind, 1.0, True, source, Geometry(rank))


max_pool1d, max_pool2d, max_pool3d = ranks(_max_pool)
min_pool1d, min_pool2d, min_pool3d = ranks(_min_pool)
avg_pool1d, avg_pool2d, avg_pool3d = ranks(_avg_pool)
lp_pool1d, lp_pool2d, lp_pool3d = ranks(_lp_pool)
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = ranks(_adaptive_max_pool)
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = ranks(_adaptive_avg_pool)
max_unpool1d, max_unpool2d, max_unpool3d = ranks(_max_unpool)
