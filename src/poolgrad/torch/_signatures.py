"""Signatures and documentation of the public functions, one class for the three functions of a family.

`_arguments.ranks` gives each function the docstring of its class; a test compares the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias, overload

import numpy as np
import torch

from ..windows import Axis

Tensor: TypeAlias = torch.Tensor
Size: TypeAlias = int | Sequence[int]
Padding: TypeAlias = Literal["valid", "same", "same_lower"] | int | Sequence[int | tuple[int, int]]
WindowsOfAxis: TypeAlias = Axis | Sequence[tuple[int, int]] | np.ndarray
Both: TypeAlias = tuple[Tensor, Tensor]


class MaxPoolFunction(Protocol):
    """Max pooling over sliding windows.

    Parameters
    ----------
    input : Tensor
        Shape (N, C, ...) or (C, ...) with one, two or three pooled axes at the end. Any real dtype, on any device.
    kernel_size : int or sequence of int
        Cells of a window: one number for all pooled axes, or one each.
    stride : int or sequence of int, optional
        Step between windows. Default: `kernel_size`.
    padding : int, sequence, or {"valid", "same", "same_lower"}
        Moves the windows beyond the edge: one number, one per axis, or pairs (before, after). Cells of padding are never chosen.
    dilation : int or sequence of int
        Step between the cells of a window.
    ceil_mode : bool
        If True, a window that extends past the end counts, too.
    return_indices : bool
        If True, return the position of each chosen cell in its plane, too.

    Returns
    -------
    Tensor, or (Tensor, Tensor) if `return_indices`
        The largest cell of each window, the first of equal ones; NaN if a cell is NaN. It has the dtype and the memory format of
        `input`. The positions are int64.

    Raises
    ------
    ValueError, TypeError, NotImplementedError, MemoryError
        The message names the function, the argument, the value that came and the values that are wanted.

    See Also
    --------
    torch.nn.functional.max_pool2d : the same arguments without "same" and pairs.
    max_unpool2d : puts values back at the positions.
    poolgrad.max_pool : the pool of NumPy arrays.

    Examples
    --------
    >>> x = torch.tensor([[[1.0, 3.0, 2.0, 0.0]]])
    >>> max_pool1d(x, 2).tolist(), max_pool1d(x, 3, 1, padding="same").tolist()
    ([[[3.0, 2.0]]], [[[3.0, 3.0, 3.0, 2.0]]])
    >>> max_pool1d(x, 2, return_indices=True)[1].tolist()
    [[[1, 2]]]
    """

    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Padding = 0,
        dilation: Size = 1,
        ceil_mode: bool = False,
        return_indices: Literal[False] = False,
    ) -> Tensor: ...
    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Padding = 0,
        dilation: Size = 1,
        ceil_mode: bool = False,
        *,
        return_indices: Literal[True],
    ) -> Both: ...
    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Size,
        stride: Size | None,
        padding: Padding,
        dilation: Size,
        ceil_mode: bool,
        return_indices: Literal[True],
    ) -> Both: ...
    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Padding = 0,
        dilation: Size = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Tensor | Both: ...


class MinPoolFunction(MaxPoolFunction, Protocol):
    """Min pooling over sliding windows.

    Parameters
    ----------
    input : Tensor
        Shape (N, C, ...) or (C, ...) with one, two or three pooled axes at the end. Any real dtype, on any device.
    kernel_size : int or sequence of int
        Cells of a window: one number for all pooled axes, or one each.
    stride : int or sequence of int, optional
        Step between windows. Default: `kernel_size`.
    padding : int, sequence, or {"valid", "same", "same_lower"}
        Moves the windows beyond the edge: one number, one per axis, or pairs (before, after). Cells of padding are never chosen.
    dilation : int or sequence of int
        Step between the cells of a window.
    ceil_mode : bool
        If True, a window that extends past the end counts, too.
    return_indices : bool
        If True, return the position of each chosen cell in its plane, too.

    Returns
    -------
    Tensor, or (Tensor, Tensor) if `return_indices`
        The least cell of each window, the first of equal ones; NaN if a cell is NaN. The positions are int64.

    Raises
    ------
    ValueError, TypeError, NotImplementedError, MemoryError
        The message names the function, the argument, the value that came and the values that are wanted.

    See Also
    --------
    max_pool2d : the largest cell of each window.

    Examples
    --------
    >>> min_pool1d(torch.tensor([[[1.0, 3.0, 2.0, 0.0]]]), 2).tolist()
    [[[1.0, 0.0]]]
    """


class AvgPoolFunction(Protocol):
    """Average pooling over sliding windows.

    Parameters
    ----------
    input : Tensor
        Shape (N, C, ...) or (C, ...) with one, two or three pooled axes at the end. Any real dtype but bool, on any device.
    kernel_size : int or sequence of int
        Cells of a window: one number for all pooled axes, or one each.
    stride : int or sequence of int, optional
        Step between windows. Default: `kernel_size`.
    padding : int, sequence, or {"valid", "same", "same_lower"}
        Moves the windows beyond the edge: one number, one per axis, or pairs (before, after).
    ceil_mode : bool
        If True, a window that extends past the end counts, too.
    count_include_pad : bool
        If True, divide by the cells and the padding of a window; if False, by its cells.
    divisor_override : float, optional
        Divide by this number instead.

    Returns
    -------
    Tensor
        The mean of each window, in the dtype and the memory format of `input`. Means of integers are exact, cut off toward zero.

    Raises
    ------
    ValueError, TypeError, NotImplementedError, MemoryError
        The message names the function, the argument, the value that came and the values that are wanted.

    See Also
    --------
    torch.nn.functional.avg_pool2d : the same arguments without "same" and pairs.
    adaptive_avg_pool2d : by the number of windows.
    poolgrad.avg_pool : the pool of NumPy arrays.

    Examples
    --------
    >>> x = torch.tensor([[[1.0, 3.0, 2.0, 0.0]]])
    >>> avg_pool1d(x, 2).tolist(), avg_pool1d(x, 2, 1, padding="same", count_include_pad=False).tolist()
    ([[[2.0, 1.0]]], [[[2.0, 2.5, 1.0, 0.0]]])
    """

    def __call__(
        self,
        input: Tensor,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Padding = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: float | None = None,
    ) -> Tensor: ...


class LpPoolFunction(Protocol):
    """Power-average pooling: the p-norm of each sliding window, (sum of abs(x)**p)**(1/p).

    Parameters
    ----------
    input : Tensor
        Shape (N, C, ...) or (C, ...) with one, two or three pooled axes at the end. A floating dtype, on any device.
    norm_type : float
        The power p, above 0.
    kernel_size : int or sequence of int
        Cells of a window: one number for all pooled axes, or one each.
    stride : int or sequence of int, optional
        Step between windows. Default: `kernel_size`.
    ceil_mode : bool
        If True, a window that extends past the end counts, too.

    Returns
    -------
    Tensor
        The norm of each window. Its derivative is 0 where a window holds only zeros.

    Raises
    ------
    ValueError, TypeError, NotImplementedError, MemoryError
        The message names the function, the argument, the value that came and the values that are wanted.

    See Also
    --------
    torch.nn.functional.lp_pool2d : the same arguments.

    Examples
    --------
    >>> lp_pool1d(torch.tensor([[[3.0, -4.0, 0.0, 0.0]]]), 2, 2).tolist()
    [[[5.0, 0.0]]]
    """

    def __call__(
        self,
        input: Tensor,
        norm_type: float,
        kernel_size: Size,
        stride: Size | None = None,
        ceil_mode: bool = False,
    ) -> Tensor: ...


class AdaptiveMaxPoolFunction(Protocol):
    """Max pooling over a given number of windows that divide an axis evenly.

    Parameters
    ----------
    input : Tensor
        Shape (N, C, ...) or (C, ...) with one, two or three pooled axes at the end. Any real dtype, on any device.
    output_size : int, None, or sequence of them
        Windows along each pooled axis; None: one window per cell.
    return_indices : bool
        If True, return the position of each chosen cell in its plane, too.

    Returns
    -------
    Tensor, or (Tensor, Tensor) if `return_indices`
        The largest cell of each window, the first of equal ones; NaN if a cell is NaN. The positions are int64.

    Raises
    ------
    ValueError, TypeError, NotImplementedError, MemoryError
        The message names the function, the argument, the value that came and the values that are wanted.

    See Also
    --------
    torch.nn.functional.adaptive_max_pool2d : the same arguments.

    Examples
    --------
    >>> adaptive_max_pool1d(torch.arange(7.0).reshape(1, 1, 7), 3).tolist()
    [[[2.0, 4.0, 6.0]]]
    """

    @overload
    def __call__(
        self, input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: Literal[False] = False
    ) -> Tensor: ...
    @overload
    def __call__(
        self, input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: Literal[True]
    ) -> Both: ...
    @overload
    def __call__(
        self, input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
    ) -> Tensor | Both: ...


class AdaptiveAvgPoolFunction(Protocol):
    """Average pooling over a given number of windows that divide an axis evenly.

    Parameters
    ----------
    input : Tensor
        Shape (N, C, ...) or (C, ...) with one, two or three pooled axes at the end. Any real dtype but bool, on any device.
    output_size : int, None, or sequence of them
        Windows along each pooled axis; None: one window per cell.

    Returns
    -------
    Tensor
        The mean of each window, in the dtype and the memory format of `input`.

    Raises
    ------
    ValueError, TypeError, NotImplementedError, MemoryError
        The message names the function, the argument, the value that came and the values that are wanted.

    See Also
    --------
    torch.nn.functional.adaptive_avg_pool2d : the same arguments.

    Examples
    --------
    >>> adaptive_avg_pool1d(torch.arange(7.0).reshape(1, 1, 7), 3).tolist()
    [[[1.0, 3.0, 5.0]]]
    """

    def __call__(self, input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor: ...


class MaxUnpoolFunction(Protocol):
    """Put each cell at its position in a plane of zeros.

    Parameters
    ----------
    input : Tensor
        Values, as `max_pool2d` returns them.
    indices : Tensor
        Integers of the shape of `input`: positions in the planes of the result, as `max_pool2d` returns them.
    kernel_size : int or sequence of int
        Cells of a window of the pool.
    stride : int or sequence of int, optional
        Step between windows of the pool. Default: `kernel_size`.
    padding : int or sequence of int
        Padding of the pool.
    output_size : sequence of int, optional
        Lengths of the result along the pooled axes, less than the stride away from the default: the shortest axes with such windows.
    reduce : {"sum", "assign"}
        Add up values at the same position, or keep the last of them.

    Returns
    -------
    Tensor
        The planes, in the dtype of `input`.

    Raises
    ------
    ValueError, TypeError, NotImplementedError, MemoryError
        The message names the function, the argument, the value that came and the values that are wanted.

    See Also
    --------
    torch.nn.functional.max_unpool2d : the same arguments without `reduce`.
    poolgrad.unpool : the same for NumPy arrays.

    Examples
    --------
    >>> y, where = max_pool1d(torch.tensor([[[1.0, 3.0, 2.0]]]), 2, 1, return_indices=True)
    >>> max_unpool1d(y, where, 2, 1).tolist(), max_unpool1d(y, where, 2, 1, reduce="assign").tolist()
    ([[[0.0, 6.0, 0.0]]], [[[0.0, 3.0, 0.0]]])
    """

    def __call__(
        self,
        input: Tensor,
        indices: Tensor,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        output_size: Sequence[int] | None = None,
        *,
        reduce: Literal["sum", "assign"] = "sum",
    ) -> Tensor: ...


class FractionalMaxPoolFunction(Protocol):
    """Max pooling over windows drawn at random for this call.

    Without `kernel_size`, windows cover each axis (Graham's); with it, all have that size (torch's). One set of windows serves all
    planes, unless `_random_samples` has a sample for each.

    Parameters
    ----------
    input : Tensor
        Shape (N, C, ...) or (C, ...) with one, two or three pooled axes at the end. Any real dtype, on any device.
    kernel_size : int or sequence of int, optional
        Cells of each window.
    output_size : int or sequence of int, optional
        Windows along each pooled axis. Give either this or `output_ratio`.
    output_ratio : float or sequence of float, optional
        Windows per cell, above 0 and at most 1.
    return_indices : bool
        If True, return the position of each chosen cell in its plane, too.
    _random_samples : Tensor, optional
        torch's samples: a number for each plane and pooled axis. Needs `kernel_size`.
    windows : sequence of windows, optional
        Per pooled axis an `Axis`, or pairs (start, stop); nothing is drawn.
    seed : int or pair of int, optional
        The same seed gives the same windows. Default: torch's generator decides.
    pseudo_random : bool
        Spread the windows more evenly.
    overlapping : bool
        Let neighbours share the cell at their border.

    Returns
    -------
    Tensor, or (Tensor, Tensor) if `return_indices`
        The largest cell of each window, the first of equal ones; NaN if a cell is NaN. The positions are int64.

    Raises
    ------
    ValueError, TypeError, NotImplementedError, MemoryError
        The message names the function, the argument, the value that came and the values that are wanted.

    See Also
    --------
    torch.nn.functional.fractional_max_pool2d : the arguments up to `_random_samples`.
    poolgrad.fractional_max_pool : the pool of NumPy arrays.

    Examples
    --------
    >>> fractional_max_pool1d(torch.arange(10.0).reshape(1, 1, 10), output_ratio=0.6, seed=(1, 2)).tolist()
    [[[0.0, 2.0, 3.0, 5.0, 7.0, 9.0]]]
    """

    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Size | None = None,
        output_size: Size | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: Literal[False] = False,
        _random_samples: Tensor | None = None,
        *,
        windows: Sequence[WindowsOfAxis] | None = None,
        seed: int | tuple[int, int] | None = None,
        pseudo_random: bool = False,
        overlapping: bool = False,
    ) -> Tensor: ...
    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Size | None = None,
        output_size: Size | None = None,
        output_ratio: float | Sequence[float] | None = None,
        *,
        return_indices: Literal[True],
        _random_samples: Tensor | None = None,
        windows: Sequence[WindowsOfAxis] | None = None,
        seed: int | tuple[int, int] | None = None,
        pseudo_random: bool = False,
        overlapping: bool = False,
    ) -> Both: ...
    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Size | None,
        output_size: Size | None,
        output_ratio: float | Sequence[float] | None,
        return_indices: Literal[True],
        _random_samples: Tensor | None = None,
        *,
        windows: Sequence[WindowsOfAxis] | None = None,
        seed: int | tuple[int, int] | None = None,
        pseudo_random: bool = False,
        overlapping: bool = False,
    ) -> Both: ...
    @overload
    def __call__(
        self,
        input: Tensor,
        kernel_size: Size | None = None,
        output_size: Size | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
        *,
        windows: Sequence[WindowsOfAxis] | None = None,
        seed: int | tuple[int, int] | None = None,
        pseudo_random: bool = False,
        overlapping: bool = False,
    ) -> Tensor | Both: ...


class FractionalAvgPoolFunction(Protocol):
    """Average pooling over windows drawn at random for this call.

    Parameters
    ----------
    input : Tensor
        Shape (N, C, ...) or (C, ...) with one, two or three pooled axes at the end. Any real dtype but bool, on any device.
    kernel_size : int or sequence of int, optional
        Cells of each window. Without it, windows cover each axis.
    output_size : int or sequence of int, optional
        Windows along each pooled axis. Give either this or `output_ratio`.
    output_ratio : float or sequence of float, optional
        Windows per cell, above 0 and at most 1.
    windows : sequence of windows, optional
        Per pooled axis an `Axis`, or pairs (start, stop); nothing is drawn.
    seed : int or pair of int, optional
        The same seed gives the same windows. Default: torch's generator decides.
    pseudo_random : bool
        Spread the windows more evenly.
    overlapping : bool
        Let neighbours share the cell at their border.

    Returns
    -------
    Tensor
        The mean of each window, in the dtype and the memory format of `input`.

    Raises
    ------
    ValueError, TypeError, NotImplementedError, MemoryError
        The message names the function, the argument, the value that came and the values that are wanted.

    See Also
    --------
    fractional_max_pool2d : draws the same windows from the same seed.
    poolgrad.fractional_avg_pool : the pool of NumPy arrays.

    Examples
    --------
    >>> fractional_avg_pool1d(torch.arange(4.0).reshape(1, 1, 4), output_size=2, seed=1).tolist()
    [[[0.5, 2.5]]]
    """

    def __call__(
        self,
        input: Tensor,
        kernel_size: Size | None = None,
        output_size: Size | None = None,
        output_ratio: float | Sequence[float] | None = None,
        *,
        windows: Sequence[WindowsOfAxis] | None = None,
        seed: int | tuple[int, int] | None = None,
        pseudo_random: bool = False,
        overlapping: bool = False,
    ) -> Tensor: ...
