"""Pool NumPy arrays of any rank over any axes: maximum, minimum, mean, sum and p-norm.

All pools share the arguments about windows: `window` (one for all pooled axes, or one each; an integer, or boundaries),
`stride` (default: the window), `padding` ("valid", "same", "same_lower", an integer, pairs), `dilation`, `ceil_mode`, and which
axes are pooled: `axes`, or `layout` such as "NHWC", or all of them. Windows are true windows: padding has no cells.
"""

from __future__ import annotations

from typing import Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .._common.arrays import Array
from .maxima import Best, Options, best_of
from .means import Division, folded
from .norms import check_power, norm_of
from .repeated import answer
from .sources import accept, geometry_of
from .tape import Result, Var
from .taps import Taps
from .types import (
    AvgOptions,
    F,
    FitsInt64,
    IntOrBool,
    Ints,
    LpOptions,
    MaxOptions,
    Nan,
    Numbers,
    Padding,
    Rounding,
    S,
    Stride,
    SumOptions,
    Ties,
    Windows,
)
from .window_args import WindowArgs


@overload
def max_pool(
    x: Var,
    window: Windows,
    stride: Stride = ...,
    *,
    return_taps: Literal[False] = ...,
    out: None = ...,
    **options: Unpack[MaxOptions],
) -> Var: ...
@overload
def max_pool(
    x: Var,
    window: Windows,
    stride: Stride = ...,
    *,
    return_taps: Literal[True],
    out: None = ...,
    **options: Unpack[MaxOptions],
) -> tuple[Var, Taps]: ...
@overload
def max_pool(
    x: NDArray[S],
    window: Windows,
    stride: Stride = ...,
    *,
    return_taps: Literal[False] = ...,
    out: None = ...,
    **options: Unpack[MaxOptions],
) -> NDArray[S]: ...
@overload
def max_pool(
    x: NDArray[S],
    window: Windows,
    stride: Stride = ...,
    *,
    return_taps: Literal[True],
    out: None = ...,
    **options: Unpack[MaxOptions],
) -> tuple[NDArray[S], Taps]: ...
@overload
def max_pool(
    x: ArrayLike,
    window: Windows,
    stride: Stride = ...,
    *,
    return_taps: Literal[False] = ...,
    out: NDArray[np.generic] | None = ...,
    **options: Unpack[MaxOptions],
) -> Numbers: ...
@overload
def max_pool(
    x: ArrayLike,
    window: Windows,
    stride: Stride = ...,
    *,
    return_taps: Literal[True],
    out: NDArray[np.generic] | None = ...,
    **options: Unpack[MaxOptions],
) -> tuple[Numbers, Taps]: ...
@overload
def max_pool(
    x: ArrayLike | Var,
    window: Windows,
    stride: Stride = ...,
    *,
    return_taps: bool,
    out: NDArray[np.generic] | None = ...,
    **options: Unpack[MaxOptions],
) -> Result | tuple[Result, Taps]: ...
def max_pool(
    x: ArrayLike | Var,
    window: Windows,
    stride: Stride = None,
    *,
    padding: Padding = "valid",
    dilation: Ints = 1,
    axes: Ints | None = None,
    layout: str | None = None,
    ceil_mode: bool = False,
    ties: Ties = "first",
    nan: Nan = "propagate",
    return_taps: bool = False,
    out: Array | None = None,
) -> Best:
    """Max pooling: the largest cell of each window.

    y[i] = max of x over window i. By default windows lie side by side and cover all axes.

    Parameters
    ----------
    x : array_like or Var
        The array to pool, of any rank: a NumPy array, a list, or anything with a buffer,
        `__array__` or DLPack. A `Var` if the pool is part of a function that is differentiated.
    window : int, Axis, or sequence of them
        The length of the windows: one for all pooled axes, or one for each. Boundaries may stand
        for a length: an `Axis`, or a list of pairs (start, stop); the other window arguments do not
        change them.
    stride : int or sequence of int, optional
        The step from one window to the next: one for all pooled axes, or one for each. Default: the
        window.
    padding : {"valid", "same", "same_lower"}, int, or sequence, optional
        The cells by which windows extend past the edges: one number, one per pooled axis, or a pair
        (before, after) per pooled axis. "valid" (default) is 0. "same" gives ceil(length / stride)
        windows; an odd cell goes after the array, with "same_lower" before it. Padding moves the
        windows and has no cells: no result depends on a padded value.
    dilation : int or sequence of int, optional
        The distance between neighbouring cells of a window. Default: 1.
    axes : int or sequence of int, optional
        The axes to pool, in ascending order. Default: all of them.
    layout : str, optional
        Names the axes instead of `axes`: a letter per axis, such as "NHWC". All but N and C are
        pooled.
    ceil_mode : bool, optional
        Round the number of windows up: the last one may extend past the end if it begins before it.
        Default: False.
    ties : {"first", "last", "all", "split"}, optional
        The cell that a derivative goes to if several cells of a window are the largest: the first
        (default), the last, all of them in full, or all of them in equal shares. The result does
        not depend on it.
    nan : {"propagate", "ignore", "tf"}, optional
        The rule for NaN. "propagate" (default): a window with NaN gives NaN. "ignore": NaN is left
        out, and a window of NaN alone gives NaN. "tf": NaN is left out, and a window of NaN alone
        gives the lowest finite number, as in TensorFlow.
    return_taps : bool, optional
        Return also which cell each window chose, as `Taps`. Needs ties "first" or "last". Default:
        False.
    out : ndarray, optional
        An array that receives the result: of its shape, and of a dtype that it can be cast to.

    Returns
    -------
    y : ndarray or Var
        The maxima, in a new array of the dtype of x; `out` if given; a `Var` if x is one.
    taps : Taps
        Only if `return_taps`: the cell that each window chose.

    Raises
    ------
    TypeError
        If an argument has a wrong type, or the dtype of x is not floating, integer or boolean.
    ValueError
        If the windows do not fit the array, or an option has an unknown value. The message names
        the argument, the value, and the values that are allowed.
    MemoryError
        If memory cannot hold the result.

    See Also
    --------
    min_pool, avg_pool, sum_pool, lp_pool : Other pools over the same windows.
    adaptive_max_pool, fractional_max_pool, global_max_pool : Other windows.
    unpool : Put the maxima back in place.
    max_operator : Return the pool as a linear operator, too.
    grad : Differentiate.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> x = np.array([[1, 2, 5, 0], [4, 3, 0, 6]])
    >>> pg.max_pool(x, 2).tolist()
    [[4, 6]]

    Overlapping windows, with as many results as cells:

    >>> pg.max_pool(np.array([1.0, 7.0, 3.0]), 3, stride=1, padding="same").tolist()
    [7.0, 7.0, 7.0]

    A batch of images with channels last; only height and width are pooled:

    >>> pg.max_pool(np.zeros((8, 28, 28, 3)), 2, layout="NHWC").shape
    (8, 14, 14, 3)

    The cell that each window chose:

    >>> y, taps = pg.max_pool(x, 2, return_taps=True)
    >>> pg.unpool(y, taps).tolist()
    [[0, 0, 0, 0], [4, 0, 0, 6]]
    """
    args = (window, stride, padding, dilation, axes, layout, ceil_mode, ties, nan, return_taps)
    known: Best | None = answer("max_pool", x, args) if out is None else None
    if known is not None:
        return known
    x = accept("max_pool", x)
    geometry = geometry_of("max_pool", x.shape, WindowArgs(*args[:7]))
    return best_of("max_pool", x, geometry, False, Options(ties, nan, return_taps, out), args)


@overload
def min_pool(
    x: Var,
    window: Windows,
    stride: Stride = ...,
    *,
    return_taps: Literal[False] = ...,
    out: None = ...,
    **options: Unpack[MaxOptions],
) -> Var: ...
@overload
def min_pool(
    x: Var,
    window: Windows,
    stride: Stride = ...,
    *,
    return_taps: Literal[True],
    out: None = ...,
    **options: Unpack[MaxOptions],
) -> tuple[Var, Taps]: ...
@overload
def min_pool(
    x: NDArray[S],
    window: Windows,
    stride: Stride = ...,
    *,
    return_taps: Literal[False] = ...,
    out: None = ...,
    **options: Unpack[MaxOptions],
) -> NDArray[S]: ...
@overload
def min_pool(
    x: NDArray[S],
    window: Windows,
    stride: Stride = ...,
    *,
    return_taps: Literal[True],
    out: None = ...,
    **options: Unpack[MaxOptions],
) -> tuple[NDArray[S], Taps]: ...
@overload
def min_pool(
    x: ArrayLike,
    window: Windows,
    stride: Stride = ...,
    *,
    return_taps: Literal[False] = ...,
    out: NDArray[np.generic] | None = ...,
    **options: Unpack[MaxOptions],
) -> Numbers: ...
@overload
def min_pool(
    x: ArrayLike,
    window: Windows,
    stride: Stride = ...,
    *,
    return_taps: Literal[True],
    out: NDArray[np.generic] | None = ...,
    **options: Unpack[MaxOptions],
) -> tuple[Numbers, Taps]: ...
@overload
def min_pool(
    x: ArrayLike | Var,
    window: Windows,
    stride: Stride = ...,
    *,
    return_taps: bool,
    out: NDArray[np.generic] | None = ...,
    **options: Unpack[MaxOptions],
) -> Result | tuple[Result, Taps]: ...
def min_pool(
    x: ArrayLike | Var,
    window: Windows,
    stride: Stride = None,
    *,
    padding: Padding = "valid",
    dilation: Ints = 1,
    axes: Ints | None = None,
    layout: str | None = None,
    ceil_mode: bool = False,
    ties: Ties = "first",
    nan: Nan = "propagate",
    return_taps: bool = False,
    out: Array | None = None,
) -> Best:
    """Min pooling: the least cell of each window.

    y[i] = min of x over window i. By default windows lie side by side and cover all axes.

    Parameters
    ----------
    x : array_like or Var
        The array to pool, of any rank: a NumPy array, a list, or anything with a buffer,
        `__array__` or DLPack. A `Var` if the pool is part of a function that is differentiated.
    window : int, Axis, or sequence of them
        The length of the windows: one for all pooled axes, or one for each. Boundaries may stand
        for a length: an `Axis`, or a list of pairs (start, stop); the other window arguments do not
        change them.
    stride : int or sequence of int, optional
        The step from one window to the next: one for all pooled axes, or one for each. Default: the
        window.
    padding : {"valid", "same", "same_lower"}, int, or sequence, optional
        The cells by which windows extend past the edges: one number, one per pooled axis, or a pair
        (before, after) per pooled axis. "valid" (default) is 0. "same" gives ceil(length / stride)
        windows; an odd cell goes after the array, with "same_lower" before it. Padding moves the
        windows and has no cells: no result depends on a padded value.
    dilation : int or sequence of int, optional
        The distance between neighbouring cells of a window. Default: 1.
    axes : int or sequence of int, optional
        The axes to pool, in ascending order. Default: all of them.
    layout : str, optional
        Names the axes instead of `axes`: a letter per axis, such as "NHWC". All but N and C are
        pooled.
    ceil_mode : bool, optional
        Round the number of windows up: the last one may extend past the end if it begins before it.
        Default: False.
    ties : {"first", "last", "all", "split"}, optional
        The cell that a derivative goes to if several cells of a window are the least: the first
        (default), the last, all of them in full, or all of them in equal shares. The result does
        not depend on it.
    nan : {"propagate", "ignore", "tf"}, optional
        The rule for NaN. "propagate" (default): a window with NaN gives NaN. "ignore": NaN is left
        out, and a window of NaN alone gives NaN. "tf": NaN is left out, and a window of NaN alone
        gives the largest finite number, as in TensorFlow.
    return_taps : bool, optional
        Return also which cell each window chose, as `Taps`. Needs ties "first" or "last". Default:
        False.
    out : ndarray, optional
        An array that receives the result: of its shape, and of a dtype that it can be cast to.

    Returns
    -------
    y : ndarray or Var
        The minima, in a new array of the dtype of x; `out` if given; a `Var` if x is one.
    taps : Taps
        Only if `return_taps`: the cell that each window chose.

    Raises
    ------
    TypeError
        If an argument has a wrong type, or the dtype of x is not floating, integer or boolean.
    ValueError
        If the windows do not fit the array, or an option has an unknown value. The message names
        the argument, the value, and the values that are allowed.
    MemoryError
        If memory cannot hold the result.

    See Also
    --------
    max_pool : The largest cells, with more examples.
    global_min_pool : One window over whole axes.
    min_operator : Return the pool as a linear operator, too.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> pg.min_pool(np.array([[1, 2, 5, 0], [4, 3, 0, 6]]), 2).tolist()
    [[1, 0]]
    """
    args = (window, stride, padding, dilation, axes, layout, ceil_mode, ties, nan, return_taps)
    known: Best | None = answer("min_pool", x, args) if out is None else None
    if known is not None:
        return known
    x = accept("min_pool", x)
    geometry = geometry_of("min_pool", x.shape, WindowArgs(*args[:7]))
    return best_of("min_pool", x, geometry, True, Options(ties, nan, return_taps, out), args)


@overload
def avg_pool(
    x: Var, window: Windows, stride: Stride = ..., *, dtype: None = ..., out: None = ..., **options: Unpack[AvgOptions]
) -> Var: ...
@overload
def avg_pool(
    x: ArrayLike,
    window: Windows,
    stride: Stride = ...,
    *,
    dtype: type[S] | np.dtype[S],
    out: None = ...,
    **options: Unpack[AvgOptions],
) -> NDArray[S]: ...
@overload
def avg_pool(
    x: NDArray[F],
    window: Windows,
    stride: Stride = ...,
    *,
    dtype: None = ...,
    out: None = ...,
    **options: Unpack[AvgOptions],
) -> NDArray[F]: ...
@overload
def avg_pool(
    x: NDArray[IntOrBool],
    window: Windows,
    stride: Stride = ...,
    *,
    dtype: None = ...,
    out: None = ...,
    **options: Unpack[AvgOptions],
) -> NDArray[np.float64]: ...
@overload
def avg_pool(
    x: ArrayLike,
    window: Windows,
    stride: Stride = ...,
    *,
    dtype: DTypeLike | None = ...,
    out: NDArray[np.generic] | None = ...,
    **options: Unpack[AvgOptions],
) -> Numbers: ...
def avg_pool(
    x: ArrayLike | Var,
    window: Windows,
    stride: Stride = None,
    *,
    padding: Padding = "valid",
    dilation: Ints = 1,
    axes: Ints | None = None,
    layout: str | None = None,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    divisor: float | None = None,
    nan: Nan = "propagate",
    dtype: DTypeLike | None = None,
    rounding: Rounding = "nearest",
    out: Array | None = None,
) -> Result:
    """Average pooling: the mean of each window.

    y[i] = mean of x over window i. A window at the edge is divided by its cells inside the array,
    unless `count_include_pad` or `divisor` says otherwise.

    Half types (float16, bfloat16) are summed in a wider type and rounded once. Means of integers
    are exact fractions, rounded once.

    Parameters
    ----------
    x : array_like or Var
        The array to pool, of any rank: a NumPy array, a list, or anything with a buffer,
        `__array__` or DLPack. A `Var` if the pool is part of a function that is differentiated.
    window : int, Axis, or sequence of them
        The length of the windows: one for all pooled axes, or one for each. Boundaries may stand
        for a length: an `Axis`, or a list of pairs (start, stop); the other window arguments do not
        change them.
    stride : int or sequence of int, optional
        The step from one window to the next: one for all pooled axes, or one for each. Default: the
        window.
    padding : {"valid", "same", "same_lower"}, int, or sequence, optional
        The cells by which windows extend past the edges: one number, one per pooled axis, or a pair
        (before, after) per pooled axis. "valid" (default) is 0. "same" gives ceil(length / stride)
        windows; an odd cell goes after the array, with "same_lower" before it. Padding moves the
        windows and has no cells: no result depends on a padded value.
    dilation : int or sequence of int, optional
        The distance between neighbouring cells of a window. Default: 1.
    axes : int or sequence of int, optional
        The axes to pool, in ascending order. Default: all of them.
    layout : str, optional
        Names the axes instead of `axes`: a letter per axis, such as "NHWC". All but N and C are
        pooled.
    ceil_mode : bool, optional
        Round the number of windows up: the last one may extend past the end if it begins before it.
        Default: False.
    count_include_pad : bool, optional
        Divide by the length of the window, padding included, instead of the cells inside the array.
        Default: False.
    divisor : float, optional
        Divide every sum by this number instead, which is not 0.
    nan : {"propagate", "ignore", "tf"}, optional
        The rule for NaN. "propagate" (default) and "tf": a window with NaN gives NaN. "ignore": NaN
        is left out of sum and count, and a window of NaN alone gives NaN.
    dtype : dtype, optional
        The dtype of the result. Default: that of x if it is a float, else float64. Means are
        rounded to an integer dtype by `rounding`, and refused if it cannot hold them. Not for a
        `Var`.
    rounding : {"nearest", "floor", "ceil", "toward_zero"}, optional
        The rule by which means are rounded to an integer `dtype`. "nearest" (default) rounds halves
        to the even number.
    out : ndarray, optional
        An array that receives the result: of its shape, and of a dtype that it can be cast to.

    Returns
    -------
    y : ndarray or Var
        The means, in a new array; `out` if given; a `Var` if x is one. Floats keep their dtype;
        integers and booleans give float64.

    Raises
    ------
    TypeError
        If an argument has a wrong type, or the dtype of x is not floating, integer or boolean.
    ValueError
        If the windows do not fit the array, an option has an unknown value, or a dtype cannot hold
        the results. The message names the argument, the value, and the values that are allowed.
    MemoryError
        If memory cannot hold the result.

    See Also
    --------
    sum_pool, max_pool, lp_pool : Other pools over the same windows.
    adaptive_avg_pool, fractional_avg_pool, global_avg_pool : Other windows.
    averaging : The pool as a linear operator.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> pg.avg_pool(np.array([[1.0, 2.0], [3.0, 6.0]]), 2).tolist()
    [[3.0]]

    Padding is not part of a mean, unless you count it:

    >>> x = np.array([4.0, 8.0, 3.0])
    >>> pg.avg_pool(x, 2, padding="same").tolist()
    [6.0, 3.0]
    >>> pg.avg_pool(x, 2, padding="same", count_include_pad=True).tolist()
    [6.0, 1.5]

    Integers give float64, or an integer dtype by a rounding rule:

    >>> pixels = np.array([1, 2, 4, 4], np.uint8)
    >>> pg.avg_pool(pixels, 2).tolist()
    [1.5, 4.0]
    >>> pg.avg_pool(pixels, 2, dtype=np.uint8, rounding="floor").tolist()
    [1, 4]
    """
    how = (count_include_pad, divisor, nan, dtype, rounding)
    args = (window, stride, padding, dilation, axes, layout, ceil_mode, *how)
    known: Result | None = answer("avg_pool", x, args) if out is None else None
    if known is not None:
        return known
    x = accept("avg_pool", x)
    geometry = geometry_of("avg_pool", x.shape, WindowArgs(*args[:7]))
    return folded("avg_pool", x, geometry, Division(True, *how, out), args)


@overload
def sum_pool(
    x: Var, window: Windows, stride: Stride = ..., *, dtype: None = ..., out: None = ..., **options: Unpack[SumOptions]
) -> Var: ...
@overload
def sum_pool(
    x: ArrayLike,
    window: Windows,
    stride: Stride = ...,
    *,
    dtype: type[S] | np.dtype[S],
    out: None = ...,
    **options: Unpack[SumOptions],
) -> NDArray[S]: ...
@overload
def sum_pool(
    x: NDArray[F],
    window: Windows,
    stride: Stride = ...,
    *,
    dtype: None = ...,
    out: None = ...,
    **options: Unpack[SumOptions],
) -> NDArray[F]: ...
@overload
def sum_pool(
    x: NDArray[FitsInt64],
    window: Windows,
    stride: Stride = ...,
    *,
    dtype: None = ...,
    out: None = ...,
    **options: Unpack[SumOptions],
) -> NDArray[np.int64]: ...
@overload
def sum_pool(
    x: ArrayLike,
    window: Windows,
    stride: Stride = ...,
    *,
    dtype: DTypeLike | None = ...,
    out: NDArray[np.generic] | None = ...,
    **options: Unpack[SumOptions],
) -> Numbers: ...
def sum_pool(
    x: ArrayLike | Var,
    window: Windows,
    stride: Stride = None,
    *,
    padding: Padding = "valid",
    dilation: Ints = 1,
    axes: Ints | None = None,
    layout: str | None = None,
    ceil_mode: bool = False,
    nan: Nan = "propagate",
    dtype: DTypeLike | None = None,
    out: Array | None = None,
) -> Result:
    """Sum pooling: the sum of each window.

    y[i] = sum of x over window i. Half types (float16, bfloat16) are summed in a wider type and
    rounded once. Sums of integers are exact; a sum that the dtype cannot hold is refused.

    Parameters
    ----------
    x : array_like or Var
        The array to pool, of any rank: a NumPy array, a list, or anything with a buffer,
        `__array__` or DLPack. A `Var` if the pool is part of a function that is differentiated.
    window : int, Axis, or sequence of them
        The length of the windows: one for all pooled axes, or one for each. Boundaries may stand
        for a length: an `Axis`, or a list of pairs (start, stop); the other window arguments do not
        change them.
    stride : int or sequence of int, optional
        The step from one window to the next: one for all pooled axes, or one for each. Default: the
        window.
    padding : {"valid", "same", "same_lower"}, int, or sequence, optional
        The cells by which windows extend past the edges: one number, one per pooled axis, or a pair
        (before, after) per pooled axis. "valid" (default) is 0. "same" gives ceil(length / stride)
        windows; an odd cell goes after the array, with "same_lower" before it. Padding moves the
        windows and has no cells: no result depends on a padded value.
    dilation : int or sequence of int, optional
        The distance between neighbouring cells of a window. Default: 1.
    axes : int or sequence of int, optional
        The axes to pool, in ascending order. Default: all of them.
    layout : str, optional
        Names the axes instead of `axes`: a letter per axis, such as "NHWC". All but N and C are
        pooled.
    ceil_mode : bool, optional
        Round the number of windows up: the last one may extend past the end if it begins before it.
        Default: False.
    nan : {"propagate", "ignore", "tf"}, optional
        The rule for NaN. "propagate" (default) and "tf": a window with NaN gives NaN. "ignore": NaN
        counts as 0.
    dtype : dtype, optional
        The dtype of the result. Default: that of x if it is a float; int64 for integers, and uint64
        for uint64. Sums are rounded to an integer dtype, and refused if it cannot hold them. Not
        for a `Var`.
    out : ndarray, optional
        An array that receives the result: of its shape, and of a dtype that it can be cast to.

    Returns
    -------
    y : ndarray or Var
        The sums, in a new array; `out` if given; a `Var` if x is one. Floats keep their dtype;
        integers and booleans give int64, uint64 gives uint64.

    Raises
    ------
    TypeError
        If an argument has a wrong type, or the dtype of x is not floating, integer or boolean.
    ValueError
        If the windows do not fit the array, an option has an unknown value, or a dtype cannot hold
        the results. The message names the argument, the value, and the values that are allowed.
    MemoryError
        If memory cannot hold the result.

    See Also
    --------
    avg_pool : The means.
    global_sum_pool : One window over whole axes.
    summing : The pool as a linear operator.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> pg.sum_pool(np.array([1, 2, 3, 4]), 3, stride=1).tolist()
    [6, 9]
    """
    args = (window, stride, padding, dilation, axes, layout, ceil_mode, nan, dtype)
    known: Result | None = answer("sum_pool", x, args) if out is None else None
    if known is not None:
        return known
    x = accept("sum_pool", x)
    geometry = geometry_of("sum_pool", x.shape, WindowArgs(*args[:7]))
    return folded("sum_pool", x, geometry, Division(False, nan=nan, dtype=dtype, out=out), args)


@overload
def lp_pool(x: Var, window: Windows, stride: Stride = ..., *, out: None = ..., **options: Unpack[LpOptions]) -> Var: ...
@overload
def lp_pool(
    x: NDArray[F], window: Windows, stride: Stride = ..., *, out: None = ..., **options: Unpack[LpOptions]
) -> NDArray[F]: ...
@overload
def lp_pool(
    x: ArrayLike,
    window: Windows,
    stride: Stride = ...,
    *,
    out: NDArray[np.generic] | None = ...,
    **options: Unpack[LpOptions],
) -> Numbers: ...
def lp_pool(
    x: ArrayLike | Var,
    window: Windows,
    stride: Stride = None,
    *,
    p: float = 2,
    padding: Padding = "valid",
    dilation: Ints = 1,
    axes: Ints | None = None,
    layout: str | None = None,
    ceil_mode: bool = False,
    out: Array | None = None,
) -> Result:
    """Power-average pooling: the p-norm of each window.

    y[i] = (sum of abs(x)**p over window i)**(1/p). Powers that leave the range of the dtype do no
    harm: such windows are scaled. The derivative is 0 where a window holds nothing but zeros.

    Parameters
    ----------
    x : array_like or Var
        The array to pool, of any rank and of a floating dtype: a NumPy array, a list, or anything
        with a buffer, `__array__` or DLPack. A `Var` if the pool is part of a function that is
        differentiated.
    window : int, Axis, or sequence of them
        The length of the windows: one for all pooled axes, or one for each. Boundaries may stand
        for a length: an `Axis`, or a list of pairs (start, stop); the other window arguments do not
        change them.
    stride : int or sequence of int, optional
        The step from one window to the next: one for all pooled axes, or one for each. Default: the
        window.
    p : float, optional
        The power, positive and finite. Default: 2, the Euclidean norm.
    padding : {"valid", "same", "same_lower"}, int, or sequence, optional
        The cells by which windows extend past the edges: one number, one per pooled axis, or a pair
        (before, after) per pooled axis. "valid" (default) is 0. "same" gives ceil(length / stride)
        windows; an odd cell goes after the array, with "same_lower" before it. Padding moves the
        windows and has no cells: no result depends on a padded value.
    dilation : int or sequence of int, optional
        The distance between neighbouring cells of a window. Default: 1.
    axes : int or sequence of int, optional
        The axes to pool, in ascending order. Default: all of them.
    layout : str, optional
        Names the axes instead of `axes`: a letter per axis, such as "NHWC". All but N and C are
        pooled.
    ceil_mode : bool, optional
        Round the number of windows up: the last one may extend past the end if it begins before it.
        Default: False.
    out : ndarray, optional
        An array that receives the result: of its shape, and of a dtype that it can be cast to.

    Returns
    -------
    y : ndarray or Var
        The norms, in a new array of the dtype of x; `out` if given; a `Var` if x is one.

    Raises
    ------
    TypeError
        If an argument has a wrong type, or the dtype of x is not floating.
    ValueError
        If the windows do not fit the array, or an option has an unknown value. The message names
        the argument, the value, and the values that are allowed.
    MemoryError
        If memory cannot hold the result.

    See Also
    --------
    max_pool : The limit for large p.
    sum_pool : The sums.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> pg.lp_pool(np.array([3.0, -4.0, 0.0, 0.0]), 2).tolist()
    [5.0, 0.0]
    >>> pg.lp_pool(np.array([3.0, -4.0]), 2, p=1).tolist()
    [7.0]
    """
    args = (window, stride, padding, dilation, axes, layout, ceil_mode, p)
    known: Result | None = answer("lp_pool", x, args) if out is None else None
    if known is not None:
        return known
    x = accept("lp_pool", x)
    power = check_power("lp_pool", p, x.dtype)
    return norm_of("lp_pool", x, geometry_of("lp_pool", x.shape, WindowArgs(*args[:7])), power, args, out)
