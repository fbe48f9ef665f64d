"""Adaptive pools, which divide axes into a number of windows; global pools, which have one window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .._common.arrays import Array
from .._common.errors import ArgumentErrors, short_repr
from .._windows.axis import Axis
from .._windows.sliding import adaptive_axis, whole
from .maxima import Best, Options, best_of
from .means import Division, folded
from .repeated import answer
from .sources import accept
from .tape import Result, Var
from .taps import Taps
from .types import (
    AdaptiveAvgOptions,
    AdaptiveMaxOptions,
    AdaptiveSize,
    F,
    FitsInt64,
    GlobalAvgOptions,
    GlobalMaxOptions,
    GlobalSumOptions,
    Int,
    IntOrBool,
    Ints,
    Nan,
    Numbers,
    Rounding,
    S,
    Ties,
)
from .window_args import (
    PooledAxes,
    afford_windows,
    checked_plan,
    flag,
    integer_list,
    is_several,
    list_at_most,
    pooled_axes,
)


def adaptive(n: Int, m: Int) -> Axis:
    """Make the axis of windows that divide a dimension as evenly as whole cells allow.

    Window i goes from floor(i * n / m) to ceil((i + 1) * n / m). Neighbours share a cell where m
    does not divide n. PyTorch's adaptive pools have the same windows.

    Parameters
    ----------
    n : int
        The number of cells along the dimension.
    m : int
        The number of windows. There may be more windows than cells.

    Returns
    -------
    Axis

    Raises
    ------
    TypeError
        If n or m is not an integer.
    ValueError
        If n or m is negative, or there are windows without a cell.
    MemoryError
        If memory cannot hold the windows.

    See Also
    --------
    adaptive_max_pool, adaptive_avg_pool : Pool over such windows.
    edges, whole, sliding_axis : Other windows.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> pg.adaptive(7, 3).pairs()
    [(0, 3), (2, 5), (4, 7)]
    """
    problems = ArgumentErrors("adaptive")
    (cells,), (many,) = (integer_list(problems, name, value, None, 0) for name, value in (("n", n), ("m", m)))
    if many and not cells:
        problems.fail("n", 0, "at least one cell")
    return _shares(problems, "m", cells, many)


def _shares(problems: ArgumentErrors, name: str, n: int, m: int) -> Axis:
    """Return the windows of `adaptive`; errors name the caller's op."""
    if m * max(n, 1) >= 2**62:
        problems.fail(name, m, f"at most {2**62 // max(n, 1)} windows over {n} cells")
    afford_windows(problems, name, m, f"over {n} cells")
    return adaptive_axis(n, m)


def adaptive_axes(
    problems: ArgumentErrors, shape: Sequence[int], size: Any, axes: Any, layout: str | None
) -> PooledAxes:
    """Return the windows of adaptive pooling: `size` per pooled axis; None leaves an axis unpooled."""
    several = is_several(size)
    found = pooled_axes(problems, len(shape), axes, layout, len(size) if several else None, "size")
    wanted = f"one size, or {len(found)}, one per pooled axis"
    sizes = list_at_most(problems, "size", size, len(found), wanted) if several else [size] * len(found)
    if len(sizes) != len(found):
        problems.fail("size", short_repr(size), wanted)
    pooled = {}
    for d, m in zip(found, sizes, strict=True):
        (m,) = (shape[d],) if m is None else integer_list(problems, "size", m, None, 0)
        if shape[d] == 0 and m:
            problems.fail("x", f"shape {list(shape)}", f"at least one cell along axis {d}")
        pooled[d] = _shares(problems, "size", shape[d], m)
    return PooledAxes(found, checked_plan(problems, shape, pooled))


def global_axes(problems: ArgumentErrors, shape: Sequence[int], axes: Any, layout: str | None) -> PooledAxes:
    """One window over each pooled axis."""
    found = pooled_axes(problems, len(shape), axes, layout, None)
    empty = [d for d in found if shape[d] == 0]
    if empty:
        problems.fail("x", f"shape {list(shape)}", f"at least one cell along axis {empty[0]}")
    return PooledAxes(found, checked_plan(problems, shape, {d: whole(shape[d]) for d in found}))


@overload
def adaptive_max_pool(
    x: Var,
    size: AdaptiveSize,
    *,
    return_taps: Literal[False] = ...,
    out: None = ...,
    **options: Unpack[AdaptiveMaxOptions],
) -> Var: ...
@overload
def adaptive_max_pool(
    x: Var, size: AdaptiveSize, *, return_taps: Literal[True], out: None = ..., **options: Unpack[AdaptiveMaxOptions]
) -> tuple[Var, Taps]: ...
@overload
def adaptive_max_pool(
    x: NDArray[S],
    size: AdaptiveSize,
    *,
    return_taps: Literal[False] = ...,
    out: None = ...,
    **options: Unpack[AdaptiveMaxOptions],
) -> NDArray[S]: ...
@overload
def adaptive_max_pool(
    x: NDArray[S],
    size: AdaptiveSize,
    *,
    return_taps: Literal[True],
    out: None = ...,
    **options: Unpack[AdaptiveMaxOptions],
) -> tuple[NDArray[S], Taps]: ...
@overload
def adaptive_max_pool(
    x: ArrayLike,
    size: AdaptiveSize,
    *,
    return_taps: Literal[False] = ...,
    out: NDArray[np.generic] | None = ...,
    **options: Unpack[AdaptiveMaxOptions],
) -> Numbers: ...
@overload
def adaptive_max_pool(
    x: ArrayLike,
    size: AdaptiveSize,
    *,
    return_taps: Literal[True],
    out: NDArray[np.generic] | None = ...,
    **options: Unpack[AdaptiveMaxOptions],
) -> tuple[Numbers, Taps]: ...
@overload
def adaptive_max_pool(
    x: ArrayLike | Var,
    size: AdaptiveSize,
    *,
    return_taps: bool,
    out: NDArray[np.generic] | None = ...,
    **options: Unpack[AdaptiveMaxOptions],
) -> Result | tuple[Result, Taps]: ...
def adaptive_max_pool(
    x: ArrayLike | Var,
    size: AdaptiveSize,
    *,
    axes: Ints | None = None,
    layout: str | None = None,
    ties: Ties = "first",
    nan: Nan = "propagate",
    return_taps: bool = False,
    out: Array | None = None,
) -> Best:
    """Max pooling to a given number of windows per axis.

    The windows divide each pooled axis as evenly as whole cells allow; neighbours may share a cell.

    Parameters
    ----------
    x : array_like or Var
        The array to pool, of any rank: a NumPy array, a list, or anything with a buffer,
        `__array__` or DLPack. A `Var` if the pool is part of a function that is differentiated.
    size : int, sequence of int or None, or None
        The number of windows: one for all pooled axes, or one for each. None leaves an axis
        unpooled.
    axes : int or sequence of int, optional
        The axes to pool, in ascending order. Default: all of them.
    layout : str, optional
        Names the axes instead of `axes`: a letter per axis, such as "NHWC". All but N and C are
        pooled.
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
    adaptive : The windows along one dimension.
    adaptive_avg_pool : The means.
    max_pool : Windows of one length.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> pg.adaptive_max_pool(np.arange(7), 3).tolist()
    [2, 4, 6]
    >>> pg.adaptive_max_pool(np.zeros((8, 30, 40, 3)), 7, layout="NHWC").shape
    (8, 7, 7, 3)
    """
    args = (size, axes, layout, ties, nan, return_taps)
    known: Best | None = answer("adaptive_max_pool", x, args) if out is None else None
    if known is not None:
        return known
    x = accept("adaptive_max_pool", x)
    geometry = adaptive_axes(ArgumentErrors("adaptive_max_pool"), x.shape, size, axes, layout)
    return best_of("adaptive_max_pool", x, geometry, False, Options(ties, nan, return_taps, out), args)


@overload
def adaptive_avg_pool(
    x: Var, size: AdaptiveSize, *, dtype: None = ..., out: None = ..., **options: Unpack[AdaptiveAvgOptions]
) -> Var: ...
@overload
def adaptive_avg_pool(
    x: ArrayLike,
    size: AdaptiveSize,
    *,
    dtype: type[S] | np.dtype[S],
    out: None = ...,
    **options: Unpack[AdaptiveAvgOptions],
) -> NDArray[S]: ...
@overload
def adaptive_avg_pool(
    x: NDArray[F], size: AdaptiveSize, *, dtype: None = ..., out: None = ..., **options: Unpack[AdaptiveAvgOptions]
) -> NDArray[F]: ...
@overload
def adaptive_avg_pool(
    x: NDArray[IntOrBool],
    size: AdaptiveSize,
    *,
    dtype: None = ...,
    out: None = ...,
    **options: Unpack[AdaptiveAvgOptions],
) -> NDArray[np.float64]: ...
@overload
def adaptive_avg_pool(
    x: ArrayLike,
    size: AdaptiveSize,
    *,
    dtype: DTypeLike | None = ...,
    out: NDArray[np.generic] | None = ...,
    **options: Unpack[AdaptiveAvgOptions],
) -> Numbers: ...
def adaptive_avg_pool(
    x: ArrayLike | Var,
    size: AdaptiveSize,
    *,
    axes: Ints | None = None,
    layout: str | None = None,
    nan: Nan = "propagate",
    dtype: DTypeLike | None = None,
    rounding: Rounding = "nearest",
    out: Array | None = None,
) -> Result:
    """Average pooling to a given number of windows per axis.

    The windows divide each pooled axis as evenly as whole cells allow; neighbours may share a cell.

    Parameters
    ----------
    x : array_like or Var
        The array to pool, of any rank: a NumPy array, a list, or anything with a buffer,
        `__array__` or DLPack. A `Var` if the pool is part of a function that is differentiated.
    size : int, sequence of int or None, or None
        The number of windows: one for all pooled axes, or one for each. None leaves an axis
        unpooled.
    axes : int or sequence of int, optional
        The axes to pool, in ascending order. Default: all of them.
    layout : str, optional
        Names the axes instead of `axes`: a letter per axis, such as "NHWC". All but N and C are
        pooled.
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
    adaptive : The windows along one dimension.
    adaptive_max_pool : The maxima.
    avg_pool : Windows of one length.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> pg.adaptive_avg_pool(np.arange(7.0), 3).tolist()
    [1.0, 3.0, 5.0]
    """
    args = (size, axes, layout, nan, dtype, rounding)
    known: Result | None = answer("adaptive_avg_pool", x, args) if out is None else None
    if known is not None:
        return known
    x = accept("adaptive_avg_pool", x)
    geometry = adaptive_axes(ArgumentErrors("adaptive_avg_pool"), x.shape, size, axes, layout)
    how = Division(True, nan=nan, dtype=dtype, rounding=rounding, out=out)
    return folded("adaptive_avg_pool", x, geometry, how, args)


def _over_all(op: str, x: Any, args: tuple[Any, ...], keepdims: bool, run: Callable[..., Any]) -> Result:
    """Run a pool over whole axes; the first two arguments are `axes` and `layout`."""
    flag(ArgumentErrors(op), "keepdims", keepdims)
    axes, layout = args[:2]
    y: Result | None = answer(op, x, args)
    if y is None:
        x = accept(op, x)
        y = run(op, x, global_axes(ArgumentErrors(op), x.shape, axes, layout), args=args)
    if keepdims:
        return y
    pooled = pooled_axes(ArgumentErrors(op), x.ndim, axes, layout, None)
    return y.reshape(tuple(n for d, n in enumerate(x.shape) if d not in pooled))


@overload
def global_max_pool(x: Var, **options: Unpack[GlobalMaxOptions]) -> Var: ...
@overload
def global_max_pool(x: NDArray[S], **options: Unpack[GlobalMaxOptions]) -> NDArray[S]: ...
@overload
def global_max_pool(x: ArrayLike, **options: Unpack[GlobalMaxOptions]) -> Numbers: ...
def global_max_pool(
    x: ArrayLike | Var,
    *,
    axes: Ints | None = None,
    layout: str | None = None,
    ties: Ties = "first",
    nan: Nan = "propagate",
    keepdims: bool = True,
) -> Result:
    """Max pooling over whole axes.

    Each pooled axis has one window, which covers it.

    Parameters
    ----------
    x : array_like or Var
        The array to pool, of any rank: a NumPy array, a list, or anything with a buffer,
        `__array__` or DLPack. A `Var` if the pool is part of a function that is differentiated.
    axes : int or sequence of int, optional
        The axes to pool, in ascending order. Default: all of them.
    layout : str, optional
        Names the axes instead of `axes`: a letter per axis, such as "NHWC". All but N and C are
        pooled.
    ties : {"first", "last", "all", "split"}, optional
        The cell that a derivative goes to if several cells of a window are the largest: the first
        (default), the last, all of them in full, or all of them in equal shares. The result does
        not depend on it.
    nan : {"propagate", "ignore", "tf"}, optional
        The rule for NaN. "propagate" (default): a window with NaN gives NaN. "ignore": NaN is left
        out, and a window of NaN alone gives NaN. "tf": NaN is left out, and a window of NaN alone
        gives the lowest finite number, as in TensorFlow.
    keepdims : bool, optional
        Keep the pooled axes, with length 1. Default: True.

    Returns
    -------
    ndarray or Var
        The maxima, in an array of the dtype of x; a `Var` if x is one.

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
    global_min_pool, global_avg_pool, global_sum_pool : Other pools over whole axes.
    max_pool : Smaller windows.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> pg.global_max_pool(np.array([[1, 5], [7, 2]]), axes=1).tolist()
    [[5], [7]]
    >>> pg.global_max_pool(np.zeros((8, 28, 28, 3)), layout="NHWC", keepdims=False).shape
    (8, 3)
    """
    run = partial(best_of, least=False, options=Options(ties, nan))
    return _over_all("global_max_pool", x, (axes, layout, ties, nan), keepdims, run)


@overload
def global_min_pool(x: Var, **options: Unpack[GlobalMaxOptions]) -> Var: ...
@overload
def global_min_pool(x: NDArray[S], **options: Unpack[GlobalMaxOptions]) -> NDArray[S]: ...
@overload
def global_min_pool(x: ArrayLike, **options: Unpack[GlobalMaxOptions]) -> Numbers: ...
def global_min_pool(
    x: ArrayLike | Var,
    *,
    axes: Ints | None = None,
    layout: str | None = None,
    ties: Ties = "first",
    nan: Nan = "propagate",
    keepdims: bool = True,
) -> Result:
    """Min pooling over whole axes.

    Each pooled axis has one window, which covers it.

    Parameters
    ----------
    x : array_like or Var
        The array to pool, of any rank: a NumPy array, a list, or anything with a buffer,
        `__array__` or DLPack. A `Var` if the pool is part of a function that is differentiated.
    axes : int or sequence of int, optional
        The axes to pool, in ascending order. Default: all of them.
    layout : str, optional
        Names the axes instead of `axes`: a letter per axis, such as "NHWC". All but N and C are
        pooled.
    ties : {"first", "last", "all", "split"}, optional
        The cell that a derivative goes to if several cells of a window are the least: the first
        (default), the last, all of them in full, or all of them in equal shares. The result does
        not depend on it.
    nan : {"propagate", "ignore", "tf"}, optional
        The rule for NaN. "propagate" (default): a window with NaN gives NaN. "ignore": NaN is left
        out, and a window of NaN alone gives NaN. "tf": NaN is left out, and a window of NaN alone
        gives the largest finite number, as in TensorFlow.
    keepdims : bool, optional
        Keep the pooled axes, with length 1. Default: True.

    Returns
    -------
    ndarray or Var
        The minima, in an array of the dtype of x; a `Var` if x is one.

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
    global_max_pool, global_avg_pool, global_sum_pool : Other pools over whole axes.
    min_pool : Smaller windows.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> pg.global_min_pool(np.array([[1, 5], [7, 2]]), axes=1, keepdims=False).tolist()
    [1, 2]
    """
    run = partial(best_of, least=True, options=Options(ties, nan))
    return _over_all("global_min_pool", x, (axes, layout, ties, nan), keepdims, run)


@overload
def global_avg_pool(x: Var, *, dtype: None = ..., **options: Unpack[GlobalAvgOptions]) -> Var: ...
@overload
def global_avg_pool(
    x: ArrayLike, *, dtype: type[S] | np.dtype[S], **options: Unpack[GlobalAvgOptions]
) -> NDArray[S]: ...
@overload
def global_avg_pool(x: NDArray[F], *, dtype: None = ..., **options: Unpack[GlobalAvgOptions]) -> NDArray[F]: ...
@overload
def global_avg_pool(
    x: NDArray[IntOrBool], *, dtype: None = ..., **options: Unpack[GlobalAvgOptions]
) -> NDArray[np.float64]: ...
@overload
def global_avg_pool(x: ArrayLike, *, dtype: DTypeLike | None = ..., **options: Unpack[GlobalAvgOptions]) -> Numbers: ...
def global_avg_pool(
    x: ArrayLike | Var,
    *,
    axes: Ints | None = None,
    layout: str | None = None,
    nan: Nan = "propagate",
    dtype: DTypeLike | None = None,
    rounding: Rounding = "nearest",
    keepdims: bool = True,
) -> Result:
    """Average pooling over whole axes.

    Each pooled axis has one window, which covers it.

    Parameters
    ----------
    x : array_like or Var
        The array to pool, of any rank: a NumPy array, a list, or anything with a buffer,
        `__array__` or DLPack. A `Var` if the pool is part of a function that is differentiated.
    axes : int or sequence of int, optional
        The axes to pool, in ascending order. Default: all of them.
    layout : str, optional
        Names the axes instead of `axes`: a letter per axis, such as "NHWC". All but N and C are
        pooled.
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
    keepdims : bool, optional
        Keep the pooled axes, with length 1. Default: True.

    Returns
    -------
    ndarray or Var
        The means; a `Var` if x is one. Floats keep their dtype; integers and booleans give float64.

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
    global_max_pool, global_min_pool, global_sum_pool : Other pools over whole axes.
    avg_pool : Smaller windows.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> pg.global_avg_pool(np.array([[1.0, 5.0], [7.0, 2.0]]), axes=1).tolist()
    [[3.0], [4.5]]
    """
    how = Division(True, nan=nan, dtype=dtype, rounding=rounding)
    args = (axes, layout, nan, dtype, rounding)
    return _over_all("global_avg_pool", x, args, keepdims, partial(folded, how=how))


@overload
def global_sum_pool(x: Var, *, dtype: None = ..., **options: Unpack[GlobalSumOptions]) -> Var: ...
@overload
def global_sum_pool(
    x: ArrayLike, *, dtype: type[S] | np.dtype[S], **options: Unpack[GlobalSumOptions]
) -> NDArray[S]: ...
@overload
def global_sum_pool(x: NDArray[F], *, dtype: None = ..., **options: Unpack[GlobalSumOptions]) -> NDArray[F]: ...
@overload
def global_sum_pool(
    x: NDArray[FitsInt64], *, dtype: None = ..., **options: Unpack[GlobalSumOptions]
) -> NDArray[np.int64]: ...
@overload
def global_sum_pool(x: ArrayLike, *, dtype: DTypeLike | None = ..., **options: Unpack[GlobalSumOptions]) -> Numbers: ...
def global_sum_pool(
    x: ArrayLike | Var,
    *,
    axes: Ints | None = None,
    layout: str | None = None,
    nan: Nan = "propagate",
    dtype: DTypeLike | None = None,
    keepdims: bool = True,
) -> Result:
    """Sum pooling over whole axes.

    Each pooled axis has one window, which covers it.

    Parameters
    ----------
    x : array_like or Var
        The array to pool, of any rank: a NumPy array, a list, or anything with a buffer,
        `__array__` or DLPack. A `Var` if the pool is part of a function that is differentiated.
    axes : int or sequence of int, optional
        The axes to pool, in ascending order. Default: all of them.
    layout : str, optional
        Names the axes instead of `axes`: a letter per axis, such as "NHWC". All but N and C are
        pooled.
    nan : {"propagate", "ignore", "tf"}, optional
        The rule for NaN. "propagate" (default) and "tf": a window with NaN gives NaN. "ignore": NaN
        counts as 0.
    dtype : dtype, optional
        The dtype of the result. Default: that of x if it is a float; int64 for integers, and uint64
        for uint64. Sums are rounded to an integer dtype, and refused if it cannot hold them. Not
        for a `Var`.
    keepdims : bool, optional
        Keep the pooled axes, with length 1. Default: True.

    Returns
    -------
    ndarray or Var
        The sums; a `Var` if x is one. Floats keep their dtype; integers and booleans give int64,
        uint64 gives uint64.

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
    global_max_pool, global_min_pool, global_avg_pool : Other pools over whole axes.
    sum_pool : Smaller windows.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> pg.global_sum_pool(np.array([[1, 5], [7, 2]]), axes=1, keepdims=False).tolist()
    [6, 9]
    """
    how = Division(False, nan=nan, dtype=dtype)
    return _over_all("global_sum_pool", x, (axes, layout, nan, dtype), keepdims, partial(folded, how=how))
