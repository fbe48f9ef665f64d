"""Take sums and means over windows: by the number of cells or another divisor, with or without NaN, in any dtype."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array
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
from .._windows.plan import Plan
from .operators import Linear, Masked, MeanOfSome, WindowSum, exact_sums, inverse, per_window
from .repeated import Run
from .selection import has_nan, judge
from .sources import DTYPES, Layout, array_of, finish, lay_out
from .tape import Result, Var, lift
from .types import Nan, Rounding
from .window_args import PooledAxes, flag


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


def folding(op: str, layout: Layout, how: Division, cells: Array | None = None) -> Linear:
    """Return the operator of a sum or mean; with nan="ignore" it depends on the cells."""
    problems = ArgumentErrors(op)
    judge(problems, "first", how.nan)
    by = divisor_of(problems, layout.plan, how)
    exact = by if isinstance(by, Ratio) and how.by_count else None
    divisor = by.top / by.bottom if isinstance(by, Ratio) else by
    operator: Linear = WindowSum(layout.plan, divisor, layout.order, exact, spans=isinstance(by, np.ndarray))
    if how.nan == "ignore" and cells is not None and has_nan(cells):
        there = ~np.isnan(cells)
        if how.divisor is None and how.by_count:
            counts = WindowSum(layout.plan, 1.0, range(len(layout.order))).carry(there)
            if how.count_include_pad:  # the padding stays in the count
                counts = counts + (per_window(layout.plan, "span") - per_window(layout.plan, "count"))
                operator = WindowSum(layout.plan, counts, layout.order)
            else:
                operator = MeanOfSome(layout.plan, counts, layout.order)
        operator = Masked(operator, there.transpose(inverse(layout.order)))
    operator.name = f"{op} operator"
    return operator


def dtype_of(problems: ArgumentErrors, value: Any) -> np.dtype[Any]:
    """Return the dtype that a caller asked for, in native byte order; refuse what cannot be pooled to."""
    try:
        dtype: np.dtype[Any] = np.dtype(getattr(value, "as_numpy_dtype", value))
    except Exception:  # NumPy raises various errors for unknown names
        problems.fail("dtype", short_repr(value), "the name of a dtype", TypeError)
    dtype = dtype.newbyteorder("=")
    if dtype not in DTYPES:
        problems.fail("dtype", short_repr(value), "a real floating or integer dtype", TypeError)
    return dtype


@names_memory
def folded(op: str, x: Any, geometry: PooledAxes, how: Division, args: tuple[Any, ...] | None = None) -> Result:
    """Return the sum or mean of each window; remember the call if `args` are given."""
    problems, out = ArgumentErrors(op), how.out
    array = array_of(problems, x)
    if how.rounding not in ROUNDINGS:
        problems.fail("rounding", short_repr(how.rounding), "'nearest', 'floor', 'ceil' or 'toward_zero'")
    dtype = None if how.dtype is None else dtype_of(problems, how.dtype)
    judge(problems, "first", how.nan)
    cells, layout = lay_out(problems, array, geometry)
    if array.dtype.kind in WHOLE:
        how, by = how._replace(out=None), _per_result(problems, layout, how)
        exact: Array = finish(op, x, cells, layout, lambda x: _whole_fold(op, layout, x, by, how, dtype), args, out)
        return exact
    if isinstance(x, Var):
        if dtype is not None:
            problems.fail("dtype", dtype, "None where x is differentiated: a derivative has the dtype of x")
        return lift(folding(op, layout, how, cells), x)
    if how.nan == "ignore":  # the divisor depends on the cells
        args = None
    found: Array = finish(op, x, cells, layout, _fold_run(op, layout, how._replace(out=None), dtype, cells), args, out)
    return found


def _fold_run(op: str, layout: Layout, how: Division, dtype: np.dtype[Any] | None, cells: Array) -> Run:
    """Return the function that takes the sum or mean of floats."""
    operator = folding(op, layout, how, cells)
    if dtype is None and layout.plain and isinstance(operator, WindowSum):
        quick = operator.native_sum(cells.dtype)
        if quick is not None:
            return quick

    def fold(x: Array) -> Array:
        with np.errstate(invalid="ignore"):  # a window with only NaN has no mean
            result = operator.forth(layout.seen(x))
        return result if dtype is None else cast(ArgumentErrors(op), result, dtype, how)

    return fold


def cast(problems: ArgumentErrors, result: Array, dtype: np.dtype[Any], how: Division) -> Array:
    """Return floats in the dtype that was asked for: rounded, and refused where an integer dtype does not hold them."""
    if dtype.kind in "iu":
        return whole_cast(problems, how.what, result, dtype, how.rounding)
    return float_cast(result, dtype)


def _per_result(problems: ArgumentErrors, layout: Layout, how: Division) -> Array | Ratio:
    """Return the exact divisor of integer sums: a number, or one per window as the caller sees them."""
    by = divisor_of(problems, layout.plan, how)
    by = per_window(layout.plan, "count") if by is None else by
    return by if isinstance(by, Ratio) else layout.seen(by)


def _whole_fold(
    op: str, layout: Layout, x: Array, by: Array | Ratio, how: Division, dtype: np.dtype[Any] | None
) -> Array:
    """Return the sum or mean of integers, by the integer policy."""
    problems = ArgumentErrors(op)
    sums = exact_sums(problems, "x", layout.plan, x).turned(inverse(layout.order))
    if not how.by_count and by == Ratio(1) and (dtype is None or dtype.kind in "iu"):
        hint = "dtype=float64 gives the nearest float"
        return narrow_sums(problems, "x", sums, sum_type(x.dtype) if dtype is None else dtype, hint)
    if dtype is not None and dtype.kind in "iu":
        return whole_means(problems, how.what, sums, by, dtype, how.rounding)
    return float_means(sums, by, np.dtype(np.float64) if dtype is None else dtype)
