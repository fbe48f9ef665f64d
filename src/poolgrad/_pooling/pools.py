"""The pythonic API: pools of NumPy arrays of any rank over any axes, their operators, their derivatives.

All pools share the words about windows: `window` (one for all pooled axes, or one each; an integer, or boundaries),
`stride` (default: the window), `padding` ("valid", "same", "same_lower", an integer, pairs), `dilation`, `ceil_mode`, and which
axes are pooled: `axes`, or `layout` such as "NHWC", or all of them. Windows are true windows: padding has no cells.
"""

from __future__ import annotations

from math import prod
from typing import Any, Literal, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .._common.arrays import Array, afford, as_array, ready
from .._common.errors import ArgumentErrors, names_memory, short_repr
from .._common.integers import (
    ROUNDINGS,
    WHOLE,
    Ratio,
    float_cast,
    float_means,
    narrow_sums,
    ratio_of,
    sum_type,
    whole_cast,
    whole_means,
)
from .._windows.axis import Axis
from .._windows.plan import MOST_AXES, Plan
from .._windows.plan_cache import SHORT, cache_plan
from .norms import check_power, norms, traced_norms
from .operators import Linear, Masked, TapGather, WindowSum, exact_sums, inverse, per_window, put
from .selection import Nan, Ties, best_values, extreme, has_nan, judge
from .tape import Var, lift
from .taps import Taps
from .window_args import Ints, Padding, PooledAxes, WindowArgs, Windows, flag, resolve

Rounding: TypeAlias = Literal["nearest", "floor", "ceil", "toward_zero"]


class Source(NamedTuple):
    """An array as the core reads it, and how it came."""

    array: Array
    plan: Plan
    order: tuple[int, ...]
    axes: tuple[int, ...]


def accept(op: str, x: Any) -> Any:
    """Return x as a plain array, or as the variable that it is: the one place where a pool converts its argument."""
    if (type(x) is np.ndarray and x.dtype.isnative) or isinstance(x, Var):
        return x
    return array_of(ArgumentErrors(op), x)


def array_of(problems: ArgumentErrors, x: Any) -> Array:
    """Return the array of anything that can be pooled."""
    array = as_array(problems, "x", x.value if isinstance(x, Var) else x)
    if array is None:
        problems.raise_if_any()
    assert array is not None
    return array


def _memory_order(x: Array, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes by falling stride if that makes the array contiguous and keeps the order of pooled axes, else unchanged."""
    if x.flags.c_contiguous or 2 * len(axes) > MOST_AXES:  # in another order more axes may lie between the pooled ones
        return tuple(range(x.ndim))
    order = tuple(sorted(range(x.ndim), key=lambda d: (-x.strides[d], d)))
    kept = [d for d in order if d in axes]
    return order if kept == sorted(kept) and x.transpose(order).flags.c_contiguous else tuple(range(x.ndim))


@cache_plan(1024)
def _ordered_plan(plan: Plan, order: tuple[int, ...]) -> Plan:
    pooled = {k: axis for k, d in enumerate(order) if (axis := plan.by_dimension[d]) is not None}
    return Plan([plan.source[d] for d in order], pooled)


@cache_plan(1024)
def _understood(op: str, shape: tuple[int, ...], words: WindowArgs) -> PooledAxes:
    return resolve(ArgumentErrors(op), shape, words)


def frozen(value: Any) -> Any:
    """Return a hashable cache key; raise TypeError for other types, such as bool, because `True == 1`."""
    if isinstance(value, np.ndarray) and value.size <= SHORT:
        value = value.tolist()
    if type(value) in (list, tuple):
        return tuple(map(frozen, value))
    if value is None or type(value) in (int, str, Axis):
        return value
    raise TypeError("no key")


@names_memory
def geometry_of(op: str, shape: tuple[int, ...], words: WindowArgs) -> PooledAxes:
    """Return the windows that the arguments describe over an array of that shape; cache them."""
    flag(ArgumentErrors(op), "ceil_mode", words.ceil_mode)
    try:
        key = WindowArgs(*map(frozen, words._replace(ceil_mode=None)))._replace(ceil_mode=bool(words.ceil_mode))
    except (TypeError, RecursionError):
        return resolve(ArgumentErrors(op), shape, words)
    return _understood(op, shape, key)


def source_of(problems: ArgumentErrors, array: Array, geometry: PooledAxes) -> Source:
    """Return the array with its axes in memory order, and the plan for it; refuse dtypes and sizes that cannot be pooled."""
    array = array.view(np.uint8) if array.dtype == np.bool_ else array
    order = _memory_order(array, geometry.axes)
    plan = geometry.plan if order == tuple(range(len(order))) else _ordered_plan(geometry.plan, order)
    needed = prod(plan.dest) * array.dtype.itemsize
    if needed > array.nbytes:
        afford(problems, "window", needed, f"a result of shape {list(geometry.plan.dest)}")
    if array.dtype not in _DTYPES:
        problems.fail("x", f"dtype {array.dtype}", "a real floating, integer or boolean dtype", TypeError)
    return Source(ready(problems, "x", array.transpose(order)), plan, order, geometry.axes)


_NAMES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
_DTYPES = {np.dtype(name) for name in _NAMES} | {np.dtype(ml_dtypes.bfloat16)}


class Options(NamedTuple):
    """The options of a max or min pool besides its windows."""

    ties: Ties = "first"
    nan: Nan = "propagate"
    return_taps: bool = False
    out: Array | None = None


@names_memory
def best_of(op: str, x: Any, geometry: PooledAxes, least: bool, options: Options) -> Any:
    """Return the largest or least of each window, with its taps if they are wanted."""
    problems = ArgumentErrors(op)
    judge(problems, options.ties, options.nan)
    flag(problems, "return_taps", options.return_taps)
    if options.return_taps and options.ties in ("all", "split"):
        problems.fail("return_taps", True, f"ties='first' or 'last': {options.ties!r} chooses no single cell")
    array = array_of(problems, x)
    source = source_of(problems, array, geometry)
    back = inverse(source.order)
    if not options.return_taps and not isinstance(x, Var):
        y = best_values(source.plan, source.array, least, options.nan).transpose(back)
        return put(problems, y.view(array.dtype), options.out)
    y, operator = extreme(source.plan, source.array, source.order, least, options.ties, options.nan)
    operator.name = f"{op} operator"
    result = y.transpose(back).view(array.dtype)
    pooled = lift(operator, x, result) if isinstance(x, Var) else put(problems, result, options.out)
    if not options.return_taps:
        return pooled
    assert isinstance(operator, TapGather)
    return pooled, Taps(operator, source.axes)


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

    >>> max_pool(np.array([[1, 2, 5, 0], [4, 3, 0, 6]]), 2).tolist()
    [[4, 6]]
    >>> max_pool(np.array([1.0, 7.0, 3.0]), 3, stride=1, padding="same").tolist()
    [7.0, 7.0, 7.0]
    """
    x = accept("max_pool", x)
    words = WindowArgs(window, stride, padding, dilation, axes, layout, ceil_mode)
    return best_of("max_pool", x, geometry_of("max_pool", x.shape, words), False, Options(ties, nan, return_taps, out))


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

    >>> min_pool(np.array([[1, 2, 5, 0], [4, 3, 0, 6]]), 2).tolist()
    [[1, 0]]
    """
    x = accept("min_pool", x)
    words = WindowArgs(window, stride, padding, dilation, axes, layout, ceil_mode)
    return best_of("min_pool", x, geometry_of("min_pool", x.shape, words), True, Options(ties, nan, return_taps, out))


class Division(NamedTuple):
    """The options of an average or sum pool besides its windows."""

    by_count: bool
    count_include_pad: bool = False
    divisor: float | None = None
    nan: Nan = "propagate"
    dtype: npt.DTypeLike | None = None
    rounding: Rounding = "nearest"
    out: Array | None = None

    @property
    def what(self) -> str:
        """The word for a result in errors."""
        return "mean" if self.by_count else "sum"


def divisor_of(problems: ArgumentErrors, plan: Plan, how: Division) -> Array | Ratio | None:
    """Return the exact divisor of sums: a number, one per window, or None for the cells that a window has."""
    flag(problems, "count_include_pad", how.count_include_pad)
    if how.divisor is not None:
        return ratio_of(problems, how.divisor)
    if not how.by_count:
        return Ratio(1)
    return per_window(plan, "span") if how.count_include_pad else None  # the cells of the padding included


def folding(op: str, source: Source, how: Division) -> Linear:
    """Return the operator of a sum or mean."""
    problems = ArgumentErrors(op)
    judge(problems, "first", how.nan)
    by = divisor_of(problems, source.plan, how)
    exact = by if isinstance(by, Ratio) and how.by_count else None
    divisor = by.top / by.bottom if isinstance(by, Ratio) else by
    operator: Linear = WindowSum(source.plan, divisor, source.order, exact)
    if how.nan == "ignore" and has_nan(source.array):
        there = ~np.isnan(source.array)
        if how.divisor is None and how.by_count:
            counts = WindowSum(source.plan, 1.0, range(len(source.order))).carry(there)
            if how.count_include_pad:  # the padding stays in the count
                counts = counts + (per_window(source.plan, "span") - per_window(source.plan, "count"))
            operator = WindowSum(source.plan, counts, source.order)
        operator = Masked(operator, there.transpose(inverse(source.order)))
    operator.name = f"{op} operator"
    return operator


def dtype_of(problems: ArgumentErrors, value: Any) -> np.dtype[Any]:
    """Return the dtype that a caller asked for, in native byte order; refuse what cannot be pooled to."""
    try:
        dtype: np.dtype[Any] = np.dtype(getattr(value, "as_numpy_dtype", value))
    except Exception:  # NumPy raises various errors for unknown names
        problems.fail("dtype", short_repr(value), "the name of a dtype", TypeError)
    dtype = dtype.newbyteorder("=")
    if dtype not in _DTYPES:
        problems.fail("dtype", short_repr(value), "a real floating or integer dtype", TypeError)
    return dtype


@names_memory
def folded(op: str, x: Any, geometry: PooledAxes, how: Division) -> Any:
    """Return the sum or mean of each window."""
    problems = ArgumentErrors(op)
    array = array_of(problems, x)
    if how.rounding not in ROUNDINGS:
        problems.fail("rounding", short_repr(how.rounding), "'nearest', 'floor', 'ceil' or 'toward_zero'")
    dtype = None if how.dtype is None else dtype_of(problems, how.dtype)
    if array.dtype.kind in WHOLE:
        judge(problems, "first", how.nan)
        return put(problems, _whole_fold(problems, source_of(problems, array, geometry), how, dtype), how.out)
    operator = folding(op, source_of(problems, array, geometry), how)
    if isinstance(x, Var):
        if dtype is not None:
            problems.fail("dtype", dtype, "None where x is differentiated: a derivative has the dtype of x")
        return lift(operator, x)
    with np.errstate(invalid="ignore"):  # a window with only NaN has no mean
        result = operator.forth(array)
    return put(problems, result if dtype is None else cast(problems, result, dtype, how), how.out)


def cast(problems: ArgumentErrors, result: Array, dtype: np.dtype[Any], how: Division) -> Array:
    """Return floats in the dtype that was asked for: rounded, and refused where an integer dtype does not hold them."""
    if dtype.kind in "iu":
        return whole_cast(problems, how.what, result, dtype, how.rounding)
    return float_cast(result, dtype)


def _whole_fold(problems: ArgumentErrors, source: Source, how: Division, dtype: np.dtype[Any] | None) -> Array:
    """Return the sum or mean of integers, by the integer policy."""
    back = inverse(source.order)
    sums = exact_sums(problems, "x", source.plan, source.array).turned(back)
    by = divisor_of(problems, source.plan, how)
    by = per_window(source.plan, "count") if by is None else by
    by = by if isinstance(by, Ratio) else by.transpose(back)
    if not how.by_count and by == Ratio(1) and (dtype is None or dtype.kind in "iu"):
        hint = "dtype=float64 gives the nearest float"
        return narrow_sums(problems, "x", sums, sum_type(source.array.dtype) if dtype is None else dtype, hint)
    if dtype is not None and dtype.kind in "iu":
        return whole_means(problems, how.what, sums, by, dtype, how.rounding)
    return float_means(sums, by, np.dtype(np.float64) if dtype is None else dtype)


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

    >>> avg_pool(np.array([[1.0, 2.0], [3.0, 6.0]]), 2).tolist()
    [[3.0]]
    >>> avg_pool(np.array([4.0, 8.0, 3.0]), 2, padding="same").tolist()
    [6.0, 3.0]
    >>> avg_pool(np.array([1, 2, 4, 4], np.uint8), 2, dtype=np.uint8, rounding="floor").tolist()
    [1, 4]
    """
    x = accept("avg_pool", x)
    geometry = geometry_of("avg_pool", x.shape, WindowArgs(window, stride, padding, dilation, axes, layout, ceil_mode))
    return folded("avg_pool", x, geometry, Division(True, count_include_pad, divisor, nan, dtype, rounding, out))


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

    >>> sum_pool(np.array([1, 2, 3, 4]), 3, stride=1).tolist()
    [6, 9]
    """
    x = accept("sum_pool", x)
    geometry = geometry_of("sum_pool", x.shape, WindowArgs(window, stride, padding, dilation, axes, layout, ceil_mode))
    return folded("sum_pool", x, geometry, Division(False, nan=nan, dtype=dtype, out=out))


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

    >>> lp_pool(np.array([3.0, -4.0, 0.0, 0.0]), 2).tolist()
    [5.0, 0.0]
    """
    problems, x = ArgumentErrors("lp_pool"), accept("lp_pool", x)
    power = check_power(problems, p, x.dtype)
    geometry = geometry_of("lp_pool", x.shape, WindowArgs(window, stride, padding, dilation, axes, layout, ceil_mode))
    source = source_of(problems, array_of(problems, x), geometry)
    operator = WindowSum(source.plan, 1.0, source.order)
    operator.name = "lp_pool operator"
    if isinstance(x, Var):
        return traced_norms(operator, x, power)
    return put(problems, norms(operator, source.array, power), out)
