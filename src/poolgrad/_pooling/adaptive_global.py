"""Adaptive pools, which divide axes into a number of windows; global pools, which have one window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array
from .._common.errors import ArgumentErrors, short_repr
from .._windows.axis import Axis, table
from .._windows.sliding import whole
from .pools import Division, Options, Rounding, accept, best_of, folded
from .selection import Nan, Ties
from .window_args import (
    Ints,
    PooledAxes,
    afford_windows,
    checked_plan,
    flag,
    integer_list,
    is_several,
    list_at_most,
    pooled_axes,
)


def adaptive(n: int, m: int) -> Axis:
    """m windows that share n cells as evenly as whole cells allow; neighbours may overlap by one.

    >>> adaptive(7, 3).pairs()
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
    start = table(m, lambda a, b: np.arange(a, b) * n // m)
    return Axis(n, start, table(m, lambda a, b: -(-np.arange(a + 1, b + 1) * n // m)))


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
