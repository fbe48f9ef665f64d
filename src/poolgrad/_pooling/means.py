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
from .._kernels import native
from .._ops.dtypes import HALVES
from .._windows.plan import Plan
from .operators import (
    Linear,
    Masked,
    MeanOfSome,
    WindowSum,
    dilated,
    exact_sums,
    forth_by,
    inverse,
    limits,
    per_window,
    sum_rule,
    widest,
)
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


def divisor_of(problems: ArgumentErrors, how: Division) -> Ratio | None:
    """Return the exact divisor of sums, or None if it depends on the window: on its cells, perhaps with those of the padding."""
    flag(problems, "count_include_pad", how.count_include_pad)
    if how.divisor is not None:
        return ratio_of(problems, how.divisor)
    return None if how.by_count else Ratio(1)


def folding(op: str, layout: Layout, how: Division, cells: Array | None = None) -> Linear:
    """Return the operator of a sum or mean; with nan="ignore" it depends on the cells."""
    problems = ArgumentErrors(op)
    judge(problems, "first", how.nan)
    ratio = divisor_of(problems, how)
    divisor: Array | float | None = None if ratio is None else ratio.top / ratio.bottom
    spans = ratio is None and how.count_include_pad
    if spans:
        divisor = per_window(layout.plan, "span")
    operator: Linear = WindowSum(layout.plan, divisor, layout.order, ratio if how.by_count else None, spans)
    if how.nan == "ignore" and cells is not None and has_nan(cells):
        there = ~np.isnan(cells)
        if ratio is None:
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
    if array.dtype.kind not in WHOLE and isinstance(x, Var):
        if dtype is not None:
            problems.fail("dtype", dtype, "None where x is differentiated: a derivative has the dtype of x")
        return lift(folding(op, layout, how, cells), x)
    make = _whole_run if array.dtype.kind in WHOLE else _fold_run
    run = make(op, layout, how._replace(out=None), dtype, cells.dtype)
    found: Array = finish(op, x, cells, layout, run, args, out)
    return found


def _fold_run(op: str, layout: Layout, how: Division, dtype: np.dtype[Any] | None, kind: np.dtype[Any]) -> Run:
    """Return the function that takes the sum or mean of floats."""
    kernel = _float_kernel(op, layout, how, kind)
    if dtype is None:
        return kernel if layout.plain else lambda x: layout.seen(kernel(x))
    return lambda x: cast(ArgumentErrors(op), layout.seen(kernel(x)), dtype, how)


def _float_kernel(op: str, layout: Layout, how: Division, kind: np.dtype[Any]) -> Run:
    """Return the function that takes the sum or mean of floats in memory order."""
    plan, ignore = layout.plan, how.nan == "ignore"
    by = _divisor(ArgumentErrors(op), how)
    if by == "span" and limits(plan, "span")[1] > 2**53:  # more than float64 counts
        return lambda x: folding(op, layout, how, x).forth(layout.seen(x)).transpose(layout.order)
    if dilated(plan):
        return lambda x: forth_by(plan, lambda part, v: native.averager(part, by, ignore)(v), x)
    rule = None if ignore else sum_rule(plan, by, kind)
    if rule is not None:
        return native.folder(plan, rule)
    return native.averager(plan, by, ignore)


def _divisor(problems: ArgumentErrors, how: Division) -> float | str | None:
    """Return the divisor of sums as the kernel takes it."""
    ratio = divisor_of(problems, how)
    if ratio is not None:
        return ratio.top / ratio.bottom
    return "span" if how.count_include_pad else None


def cast(problems: ArgumentErrors, result: Array, dtype: np.dtype[Any], how: Division) -> Array:
    """Return floats in the dtype that was asked for: rounded, and refused where an integer dtype does not hold them."""
    if dtype.kind in "iu":
        return whole_cast(problems, how.what, result, dtype, how.rounding)
    return float_cast(result, dtype)


def in_one_pass(op: str, plan: Plan, how: Division, kind: np.dtype[Any]) -> bool:
    """Return True if the core takes these sums or means of integers of that kind at once, without sums in memory."""
    problems = ArgumentErrors(op)
    dtype = None if how.dtype is None else dtype_of(problems, how.dtype)
    ratio = divisor_of(problems, how)
    return _has_kernel(plan, how, ratio, kind, _whole_type(how, ratio, dtype, kind))


def _whole_type(how: Division, ratio: Ratio | None, dtype: np.dtype[Any] | None, kind: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of sums or means of integers of that kind."""
    return dtype or (sum_type(kind) if _sums_only(how, ratio, dtype) else np.dtype(np.float64))


def _sums_only(how: Division, ratio: Ratio | None, dtype: np.dtype[Any] | None) -> bool:
    return not how.by_count and ratio == Ratio(1) and (dtype is None or dtype.kind in "iu")


def _whole_run(op: str, layout: Layout, how: Division, dtype: np.dtype[Any] | None, kind: np.dtype[Any]) -> Run:
    """Return the function that takes the sum or mean of integers of that kind, by the integer policy."""
    problems = ArgumentErrors(op)
    ratio = divisor_of(problems, how)
    sums_only, result = _sums_only(how, ratio, dtype), _whole_type(how, ratio, dtype, kind)
    kernel = None
    if _has_kernel(layout.plan, how, ratio, kind, result):
        by = _divisor(problems, how)
        kernel = native.integer_averager(layout.plan, by, result, how.rounding)

    def run(x: Array) -> Array:
        found = None if kernel is None else kernel(x)
        return _by_policy(x) if found is None else layout.seen(found)

    def _by_policy(x: Array) -> Array:
        sums = exact_sums(problems, "x", layout.plan, x).turned(inverse(layout.order))
        if sums_only:
            return narrow_sums(problems, "x", sums, result, "dtype=float64 gives the nearest float")
        by = per_result(layout, how) if ratio is None else ratio
        if result.kind in "iu":
            return whole_means(problems, how.what, sums, by, result, how.rounding)
        return float_means(sums, by, result)

    return run


def per_result(layout: Layout, how: Division) -> Array:
    """Return the cells of each window that its sum is divided by, as the caller sees them."""
    return layout.seen(per_window(layout.plan, "span" if how.count_include_pad else "count"))


def _has_kernel(plan: Plan, how: Division, ratio: Ratio | None, kind: np.dtype[Any], result: np.dtype[Any]) -> bool:
    """Return True if the core takes exact sums of integers of that kind, and if a float64 quotient rounds to the result as the exact one.

    `float_means` and `whole_means` say when it does.
    """
    if kind.itemsize > 4 or dilated(plan) or result.name in HALVES or widest(plan) > 2 ** (51 - 8 * kind.itemsize):
        return False
    least, most = limits(plan, "span" if how.count_include_pad else "count") if ratio is None else (1, abs(ratio.top))
    if ratio is not None and (ratio.top / ratio.bottom).as_integer_ratio() != ratio:
        return False
    if ratio is not None and ratio.bottom != 1 and result != np.float64:
        return False
    return least > 0 and most < (2**27 if result == np.float32 else 2**53)
