"""More pools over the same operators: fractional, adaptive, global; operators by themselves; other libraries' conventions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array
from .._common.errors import ArgumentErrors, short_repr
from ..windows import Axis, Plan
from . import pools
from .operators import Linear
from .pools import Division, Options, Rounding, accept, array_of, best_of, folded, folding, source_of
from .selection import Nan, Ties, extreme, judge
from .tape import Var, lift
from .window_args import (
    Ints,
    PooledAxes,
    WindowArgs,
    Windows,
    adaptive_axes,
    draw,
    flag,
    global_axes,
    is_several,
    pooled_axes,
    resolve,
    sizes,
)


def plan(shape: Sequence[int], window: Windows, stride: Ints | None = None, **words: Any) -> Plan:
    """Return the windows for an array of that shape; arguments as in the pools.

    >>> plan((4, 4), 2).dest
    (2, 2)
    """
    return resolve(
        ArgumentErrors("plan"), sizes(ArgumentErrors("plan"), shape), WindowArgs(window, stride, **words)
    ).plan


def _of(op: str, windows: Plan) -> PooledAxes:
    if not isinstance(windows, Plan):
        ArgumentErrors(op).fail("windows", short_repr(windows), "a Plan, as poolgrad.plan makes", TypeError)
    return PooledAxes(tuple(d for d, axis in enumerate(windows.by_dimension) if axis is not None), windows)


def _selecting(op: str, x: Any, windows: Plan, least: bool, ties: Ties, nan: Nan) -> tuple[Any, Linear]:
    problems = ArgumentErrors(op)
    judge(problems, ties, nan)
    array, geometry = array_of(problems, x), _of(op, windows)
    if array.shape != windows.source:
        problems.fail("x", f"shape {list(array.shape)}", f"{list(windows.source)}, as the windows")
    source = source_of(problems, array, geometry)
    y, operator = extreme(source.plan, source.array, source.order, least, ties, nan)
    operator.name = op
    y = operator.restore(y)
    y = y.view(np.bool_) if array.dtype == np.bool_ else y
    return (lift(operator, x, y) if isinstance(x, Var) else y), operator


def maximum(x: Any, windows: Plan, *, ties: Ties = "first", nan: Nan = "propagate") -> tuple[Any, Linear]:
    """Return the maxima of x, and the linear operator that picks the cells that x chose.

    >>> y, P = maximum(np.array([1.0, 3.0, 2.0, 0.0]), plan((4,), 2))
    >>> y.tolist(), P(np.array([5.0, 6.0, 7.0, 8.0])).tolist(), P.T(np.array([1.0, 2.0])).tolist()
    ([3.0, 2.0], [6.0, 7.0], [0.0, 1.0, 2.0, 0.0])
    """
    return _selecting("maximum", x, windows, False, ties, nan)


def minimum(x: Any, windows: Plan, *, ties: Ties = "first", nan: Nan = "propagate") -> tuple[Any, Linear]:
    """Return the minima of x, and the linear operator that picks them.

    >>> minimum(np.array([1.0, 3.0, 2.0, 0.0]), plan((4,), 2))[0].tolist()
    [1.0, 0.0]
    """
    return _selecting("minimum", x, windows, True, ties, nan)


def averaging(windows: Plan, *, count_include_pad: bool = False, divisor: float | None = None) -> Linear:
    """Return the operator that takes means over windows.

    >>> averaging(plan((4,), 2))(np.array([1.0, 3.0, 2.0, 0.0])).tolist()
    [2.0, 1.0]
    """
    return _folding("averaging", windows, Division(True, count_include_pad, divisor))


def summing(windows: Plan) -> Linear:
    """Return the operator that takes sums over windows.

    >>> summing(plan((4,), 2)).T(np.array([1.0, 2.0])).tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    return _folding("summing", windows, Division(False))


def _folding(op: str, windows: Plan, how: Division) -> Linear:
    plan = _of(op, windows).plan
    blank = np.broadcast_to(np.zeros((), np.float32), plan.source)
    return folding(op, pools.Source(blank, plan, tuple(range(blank.ndim)), ()), how)


def drawn_windows(
    op: str,
    shape: tuple[int, ...],
    ratio: Any,
    size: Any,
    how: dict[str, Any],
    axes: Any,
    layout: Any,
    return_windows: bool = False,
) -> tuple[WindowArgs, Any]:
    """Draw fractional windows over the pooled axes of an array of that shape."""
    problems = ArgumentErrors(op)
    name, given = ("ratio", ratio) if is_several(ratio) else ("size", size)
    found = pooled_axes(problems, len(shape), axes, layout, len(given) if is_several(given) else None, name)
    flag(problems, "return_windows", return_windows)
    empty = [d for d in found if shape[d] == 0]
    if empty:
        problems.fail("x", f"shape {list(shape)}", f"at least one cell along axis {empty[0]}")
    made = draw(problems, tuple(shape[d] for d in found), ratio, size, **how)
    return WindowArgs(list(made), axes=found), made


def _with_windows(result: Any, windows: tuple[Axis, ...], wanted: bool) -> Any:
    if not wanted:
        return result
    return (*result, windows) if isinstance(result, tuple) else (result, windows)


def fractional_max_pool(
    x: Any,
    ratio: float | Sequence[float] | None = None,
    *,
    size: Ints | None = None,
    seed: int | tuple[int, int] | None = None,
    pseudo_random: bool = False,
    overlapping: bool = False,
    axes: Ints | None = None,
    layout: str | None = None,
    ties: Ties = "first",
    nan: Nan = "propagate",
    return_taps: bool = False,
    return_windows: bool = False,
    out: Array | None = None,
) -> Any:
    """Max pooling over random windows of about `ratio` cells; return y, then taps and windows if requested.

    Pass the returned windows to max_pool as `window` to pool again with the same windows.

    >>> x = np.arange(10.0)
    >>> y, windows = fractional_max_pool(x, 1.5, seed=(1, 2), return_windows=True)
    >>> y.tolist(), np.array_equal(y, pools.max_pool(x, windows))
    ([0.0, 2.0, 3.0, 5.0, 7.0, 9.0], True)
    """
    drawing = {"seed": seed, "pseudo_random": pseudo_random, "overlapping": overlapping}
    x = accept("fractional_max_pool", x)
    words, made = drawn_windows("fractional_max_pool", x.shape, ratio, size, drawing, axes, layout, return_windows)
    geometry = resolve(ArgumentErrors("fractional_max_pool"), x.shape, words)
    best = best_of("fractional_max_pool", x, geometry, False, Options(ties, nan, return_taps, out))
    return _with_windows(best, made, return_windows)


def fractional_avg_pool(
    x: Any,
    ratio: float | Sequence[float] | None = None,
    *,
    size: Ints | None = None,
    seed: int | tuple[int, int] | None = None,
    pseudo_random: bool = False,
    overlapping: bool = False,
    axes: Ints | None = None,
    layout: str | None = None,
    nan: Nan = "propagate",
    dtype: npt.DTypeLike | None = None,
    rounding: Rounding = "nearest",
    return_windows: bool = False,
    out: Array | None = None,
) -> Any:
    """Average pooling over random windows, drawn as in fractional_max_pool.

    >>> fractional_avg_pool(np.arange(4.0), size=2, seed=1).tolist()
    [0.5, 2.5]
    """
    drawing = {"seed": seed, "pseudo_random": pseudo_random, "overlapping": overlapping}
    x = accept("fractional_avg_pool", x)
    words, made = drawn_windows("fractional_avg_pool", x.shape, ratio, size, drawing, axes, layout, return_windows)
    geometry = resolve(ArgumentErrors("fractional_avg_pool"), x.shape, words)
    how = Division(True, nan=nan, dtype=dtype, rounding=rounding, out=out)
    return _with_windows(folded("fractional_avg_pool", x, geometry, how), made, return_windows)


def adaptive_max_pool(
    x: Any,
    size: int | Sequence[int | None] | None,
    *,
    axes: Ints | None = None,
    layout: str | None = None,
    ties: Ties = "first",
    nan: Nan = "propagate",
    return_taps: bool = False,
    out: Array | None = None,
) -> Any:
    """Max pooling over `size` windows per pooled axis that divide it evenly; None leaves an axis unpooled.

    >>> adaptive_max_pool(np.arange(7), 3).tolist()
    [2, 4, 6]
    """
    x = accept("adaptive_max_pool", x)
    geometry = adaptive_axes(ArgumentErrors("adaptive_max_pool"), x.shape, size, axes, layout)
    return best_of("adaptive_max_pool", x, geometry, False, Options(ties, nan, return_taps, out))


def adaptive_avg_pool(
    x: Any,
    size: int | Sequence[int | None] | None,
    *,
    axes: Ints | None = None,
    layout: str | None = None,
    nan: Nan = "propagate",
    dtype: npt.DTypeLike | None = None,
    rounding: Rounding = "nearest",
    out: Array | None = None,
) -> Any:
    """Average pooling over `size` windows per pooled axis that divide it evenly; None leaves an axis unpooled.

    >>> adaptive_avg_pool(np.arange(7.0), 3).tolist()
    [1.0, 3.0, 5.0]
    """
    x = accept("adaptive_avg_pool", x)
    geometry = adaptive_axes(ArgumentErrors("adaptive_avg_pool"), x.shape, size, axes, layout)
    return folded("adaptive_avg_pool", x, geometry, Division(True, nan=nan, dtype=dtype, rounding=rounding, out=out))


def _over_all(op: str, x: Any, axes: Any, layout: Any, keepdims: bool, run: Callable[[Any, PooledAxes], Any]) -> Any:
    flag(ArgumentErrors(op), "keepdims", keepdims)
    x = accept(op, x)
    geometry = global_axes(ArgumentErrors(op), x.shape, axes, layout)
    y = run(x, geometry)
    kept = tuple(n for d, n in enumerate(x.shape) if d not in geometry.axes)
    return y if keepdims else y.reshape(kept)


def global_max_pool(
    x: Any,
    *,
    axes: Ints | None = None,
    layout: str | None = None,
    ties: Ties = "first",
    nan: Nan = "propagate",
    keepdims: bool = True,
) -> Any:
    """Return the largest cell over whole axes.

    >>> global_max_pool(np.array([[1, 5], [7, 2]]), axes=1).tolist()
    [[5], [7]]
    """
    run = partial(best_of, "global_max_pool", least=False, options=Options(ties, nan))
    return _over_all("global_max_pool", x, axes, layout, keepdims, run)


def global_min_pool(
    x: Any,
    *,
    axes: Ints | None = None,
    layout: str | None = None,
    ties: Ties = "first",
    nan: Nan = "propagate",
    keepdims: bool = True,
) -> Any:
    """Return the least cell over whole axes.

    >>> global_min_pool(np.array([[1, 5], [7, 2]]), axes=1, keepdims=False).tolist()
    [1, 2]
    """
    run = partial(best_of, "global_min_pool", least=True, options=Options(ties, nan))
    return _over_all("global_min_pool", x, axes, layout, keepdims, run)


def global_avg_pool(
    x: Any,
    *,
    axes: Ints | None = None,
    layout: str | None = None,
    nan: Nan = "propagate",
    dtype: npt.DTypeLike | None = None,
    rounding: Rounding = "nearest",
    keepdims: bool = True,
) -> Any:
    """Return the mean over whole axes.

    >>> global_avg_pool(np.array([[1.0, 5.0], [7.0, 2.0]]), axes=1).tolist()
    [[3.0], [4.5]]
    """
    how = Division(True, nan=nan, dtype=dtype, rounding=rounding)
    return _over_all("global_avg_pool", x, axes, layout, keepdims, partial(folded, "global_avg_pool", how=how))


def global_sum_pool(
    x: Any,
    *,
    axes: Ints | None = None,
    layout: str | None = None,
    nan: Nan = "propagate",
    dtype: npt.DTypeLike | None = None,
    keepdims: bool = True,
) -> Any:
    """Return the sum over whole axes.

    >>> global_sum_pool(np.array([[1, 5], [7, 2]]), axes=1, keepdims=False).tolist()
    [6, 9]
    """
    how = Division(False, nan=nan, dtype=dtype)
    return _over_all("global_sum_pool", x, axes, layout, keepdims, partial(folded, "global_sum_pool", how=how))


_POOLS = ("max_pool", "min_pool", "avg_pool", "sum_pool", "lp_pool")
_CONVENTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "tensorflow": {"max_pool": {"nan": "tf"}},
    "torch": {"avg_pool": {"count_include_pad": True}},
    "onnx": {},
}


def like(library: str) -> Any:
    """Return the pools with another library's defaults, under the same names.

    "tensorflow": channels last, means over true cells, TensorFlow's NaN rule. "torch": channels first after the batch, padding
    counted in means. "onnx": channels first, stride 1, means over true cells.

    >>> like("torch").avg_pool(np.ones((1, 1, 2, 2)), 2, 1, padding=1)[0, 0, 0].tolist()
    [0.25, 0.5, 0.25]
    """
    if library not in _CONVENTIONS:
        ArgumentErrors("like").fail("library", short_repr(library), "'tensorflow', 'torch' or 'onnx'")

    def convention(name: str) -> Callable[..., Any]:
        pool, extra = getattr(pools, name), _CONVENTIONS[library].get(name, {})

        def pooled(x: Any, window: Windows, stride: Ints | None = None, **words: Any) -> Any:
            x = accept(name, x)
            rank = x.ndim
            if "axes" not in words and "layout" not in words:
                words["axes"] = tuple(range(1, rank - 1) if library == "tensorflow" else range(2, rank))
            stride = 1 if stride is None and library == "onnx" else stride
            return pool(x, window, stride, **{**extra, **words})

        pooled.__name__, pooled.__doc__ = name, pool.__doc__
        return pooled

    return SimpleNamespace(**{name: convention(name) for name in _POOLS})
