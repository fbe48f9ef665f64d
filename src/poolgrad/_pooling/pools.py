"""Pool NumPy arrays of any rank over any axes: maximum, minimum, mean, sum and p-norm.

All pools share the arguments about windows: `window` (one for all pooled axes, or one each; an integer, or boundaries),
`stride` (default: the window), `padding` ("valid", "same", "same_lower", an integer, pairs), `dilation`, `ceil_mode`, and which
axes are pooled: `axes`, or `layout` such as "NHWC", or all of them. Windows are true windows: padding has no cells.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from .._common.arrays import Array
from .maxima import Options, best_of
from .means import Division, Rounding, folded
from .norms import check_power, norm_of
from .repeated import answer
from .selection import Nan, Ties
from .sources import accept, geometry_of
from .window_args import Ints, Padding, WindowArgs, Windows


def max_pool(
    x: Any,
    window: Windows,
    stride: Ints | None = None,
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
) -> Any:
    """y[i] = the largest x[j] of window i.

    `ties` says which of equal cells a derivative goes to: the first, the last, all of them in full, or all in equal shares.
    `nan`: "propagate" (a window with NaN is NaN), "ignore" (NaN only where there is nothing else), or "tf" (TensorFlow's).

    >>> import numpy as np
    >>> max_pool(np.array([[1, 2, 5, 0], [4, 3, 0, 6]]), 2).tolist()
    [[4, 6]]
    >>> max_pool(np.array([1.0, 7.0, 3.0]), 3, stride=1, padding="same").tolist()
    [7.0, 7.0, 7.0]
    """
    args = (window, stride, padding, dilation, axes, layout, ceil_mode, ties, nan, return_taps)
    known = answer("max_pool", x, args) if out is None else None
    if known is not None:
        return known
    x = accept("max_pool", x)
    geometry = geometry_of("max_pool", x.shape, WindowArgs(*args[:7]))
    return best_of("max_pool", x, geometry, False, Options(ties, nan, return_taps, out), args)


def min_pool(
    x: Any,
    window: Windows,
    stride: Ints | None = None,
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
) -> Any:
    """y[i] = the least x[j] of window i; options as in max_pool.

    >>> import numpy as np
    >>> min_pool(np.array([[1, 2, 5, 0], [4, 3, 0, 6]]), 2).tolist()
    [[1, 0]]
    """
    args = (window, stride, padding, dilation, axes, layout, ceil_mode, ties, nan, return_taps)
    known = answer("min_pool", x, args) if out is None else None
    if known is not None:
        return known
    x = accept("min_pool", x)
    geometry = geometry_of("min_pool", x.shape, WindowArgs(*args[:7]))
    return best_of("min_pool", x, geometry, True, Options(ties, nan, return_taps, out), args)


def avg_pool(
    x: Any,
    window: Windows,
    stride: Ints | None = None,
    *,
    padding: Padding = "valid",
    dilation: Ints = 1,
    axes: Ints | None = None,
    layout: str | None = None,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    divisor: float | None = None,
    nan: Nan = "propagate",
    dtype: npt.DTypeLike | None = None,
    rounding: Rounding = "nearest",
    out: Array | None = None,
) -> Any:
    """y[i] = the mean of x over window i: over its true cells, or by another divisor.

    Half types are summed in a wider type and rounded once. Integers give float64, each mean rounded once. With an integer
    `dtype`, means of floats, too, are rounded as `rounding` says; those that `dtype` does not hold are refused.
    `nan="ignore"` leaves NaN out of sum and count.

    >>> import numpy as np
    >>> avg_pool(np.array([[1.0, 2.0], [3.0, 6.0]]), 2).tolist()
    [[3.0]]
    >>> avg_pool(np.array([4.0, 8.0, 3.0]), 2, padding="same").tolist()
    [6.0, 3.0]
    >>> avg_pool(np.array([1, 2, 4, 4], np.uint8), 2, dtype=np.uint8, rounding="floor").tolist()
    [1, 4]
    """
    how = (count_include_pad, divisor, nan, dtype, rounding)
    args = (window, stride, padding, dilation, axes, layout, ceil_mode, *how)
    known = answer("avg_pool", x, args) if out is None else None
    if known is not None:
        return known
    x = accept("avg_pool", x)
    geometry = geometry_of("avg_pool", x.shape, WindowArgs(*args[:7]))
    return folded("avg_pool", x, geometry, Division(True, *how, out), args)


def sum_pool(
    x: Any,
    window: Windows,
    stride: Ints | None = None,
    *,
    padding: Padding = "valid",
    dilation: Ints = 1,
    axes: Ints | None = None,
    layout: str | None = None,
    ceil_mode: bool = False,
    nan: Nan = "propagate",
    dtype: npt.DTypeLike | None = None,
    out: Array | None = None,
) -> Any:
    """y[i] = the sum of x over window i; sums of integers are int64 (uint64 for uint64), exact or refused.

    An integer `dtype` must hold the sums, which are rounded to nearest if they are floats.

    >>> import numpy as np
    >>> sum_pool(np.array([1, 2, 3, 4]), 3, stride=1).tolist()
    [6, 9]
    """
    args = (window, stride, padding, dilation, axes, layout, ceil_mode, nan, dtype)
    known = answer("sum_pool", x, args) if out is None else None
    if known is not None:
        return known
    x = accept("sum_pool", x)
    geometry = geometry_of("sum_pool", x.shape, WindowArgs(*args[:7]))
    return folded("sum_pool", x, geometry, Division(False, nan=nan, dtype=dtype, out=out), args)


def lp_pool(
    x: Any,
    window: Windows,
    stride: Ints | None = None,
    *,
    p: float = 2,
    padding: Padding = "valid",
    dilation: Ints = 1,
    axes: Ints | None = None,
    layout: str | None = None,
    ceil_mode: bool = False,
    out: Array | None = None,
) -> Any:
    """y[i] = (sum of abs(x)**p over window i)**(1/p); its derivative is 0 where a window holds nothing but zeros.

    Powers that leave the range of the dtype do no harm: such windows are scaled. Half types are rounded once.

    >>> import numpy as np
    >>> lp_pool(np.array([3.0, -4.0, 0.0, 0.0]), 2).tolist()
    [5.0, 0.0]
    """
    args = (window, stride, padding, dilation, axes, layout, ceil_mode, p)
    known = answer("lp_pool", x, args) if out is None else None
    if known is not None:
        return known
    x = accept("lp_pool", x)
    power = check_power("lp_pool", p, x.dtype)
    return norm_of("lp_pool", x, geometry_of("lp_pool", x.shape, WindowArgs(*args[:7])), power, args, out)
