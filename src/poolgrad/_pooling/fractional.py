"""Fractional pooling: pools over windows that are drawn at random."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Literal, NamedTuple, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .._common.arrays import Array
from .._common.errors import ArgumentErrors, short_repr
from .._common.integers import WHOLE
from .._kernels import native
from .._ops.semantics import Mean
from .._windows.axis import Axis
from .._windows.fractional import draw as draw_axes
from .._windows.plan import Plan
from .maxima import Best, Options, best_of
from .means import Division, folded
from .repeated import known, remember
from .selection import value_finder
from .sources import accept
from .tape import Result, Var
from .taps import Taps
from .types import (
    DrawOptions,
    F,
    FractionalAvgOptions,
    FractionalMaxOptions,
    Int,
    IntOrBool,
    Ints,
    Nan,
    Numbers,
    Ratio,
    Rounding,
    S,
    Seed,
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

_DRAWN = 256  # bytes that a window takes, with room for the core's tables
_MOST = 2**62  # the largest seed


@overload
def fractional_windows(n: Int, ratio: Ratio = ..., **options: Unpack[DrawOptions]) -> Axis: ...
@overload
def fractional_windows(n: Sequence[Int], ratio: Ratio = ..., **options: Unpack[DrawOptions]) -> tuple[Axis, ...]: ...
def fractional_windows(
    n: Int | Sequence[Int],
    ratio: Ratio = None,
    *,
    size: Ints | None = None,
    seed: Seed = None,
    pseudo_random: bool = False,
    overlapping: bool = False,
) -> Axis | tuple[Axis, ...]:
    """Draw random windows for fractional pooling.

    The same seeds give the windows of TensorFlow's FractionalMaxPool(seed=seed[0], seed2=seed[1]).

    Parameters
    ----------
    n : int or sequence of int
        The number of cells along the dimension, or along each of several.
    ratio : float or sequence of float, optional
        The mean length of the windows, at least 1: one for all dimensions, or one for each. A
        dimension of n cells gets floor(n / ratio) windows. Give either `ratio` or `size`.
    size : int or sequence of int, optional
        The number of windows instead of `ratio`: one for all dimensions, or one for each.
    seed : int or (int, int), optional
        The seed of the windows: an integer, or TensorFlow's pair (seed, seed2). The same seed gives
        the same windows. Default: fresh windows at each call.
    pseudo_random : bool, optional
        Draw windows of TensorFlow's pseudo-random kind, whose boundaries follow the ratio evenly,
        instead of lengths in random order. Default: False.
    overlapping : bool, optional
        Let neighbouring windows share the cell at their boundary. Default: False.

    Returns
    -------
    Axis or tuple of Axis
        The windows: an axis for one length, a tuple of them for several, drawn in that order.

    Raises
    ------
    TypeError
        If an argument has a wrong type.
    ValueError
        If there would be less than one window, or more windows than cells.

    See Also
    --------
    fractional_max_pool, fractional_avg_pool : Draw and pool.
    max_pool : Takes the windows as `window`.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> rows, cols = pg.fractional_windows((10, 7), (1.5, 1.6), seed=(1, 2))
    >>> rows.pairs()
    [(0, 1), (1, 3), (3, 4), (4, 6), (6, 8), (8, 10)]
    >>> pg.max_pool(np.zeros((10, 7)), (rows, cols)).shape
    (6, 4)
    """
    problems = ArgumentErrors("fractional_windows")
    drawing = checked_drawing(problems, n, ratio, size, pseudo_random, overlapping)
    made = drawing.draw(seeds_of(problems, seed))
    return made if is_several(n) else made[0]


class Drawing(NamedTuple):
    """The checked arguments about random windows: everything but the seeds."""

    lengths: tuple[int, ...]
    sizes: tuple[int, ...]
    pseudo_random: bool
    overlapping: bool

    def draw(self, seeds: tuple[int, int]) -> tuple[Axis, ...]:
        """Return the windows of these seeds, an axis for each length."""
        return tuple([axis for _, axis in draw_axes(*self, seeds)])


def checked_drawing(
    problems: ArgumentErrors, n: Any, ratio: Any, size: Any, pseudo_random: bool, overlapping: bool
) -> Drawing:
    """Return the arguments of `fractional_windows`; errors name the caller's op."""
    flag(problems, "pseudo_random", pseudo_random)
    flag(problems, "overlapping", overlapping)
    lengths = integer_list(problems, "n", n, None, 1)
    sizes = _fraction_sizes(problems, lengths, ratio, size)
    for length, m in zip(lengths, sizes, strict=True):
        if not 1 <= m <= length:
            name = "size" if ratio is None else "ratio"
            problems.fail(name, f"{m} windows over {length} cells", f"1 to {length} windows")
        afford_windows(problems, "ratio" if size is None else "size", m, f"over {length} cells", _DRAWN)
    return Drawing(lengths, sizes, bool(pseudo_random), bool(overlapping))


def _fraction_sizes(problems: ArgumentErrors, lengths: tuple[int, ...], ratio: Any, size: Any) -> tuple[int, ...]:
    if (ratio is None) == (size is None):
        problems.fail("ratio", short_repr(ratio), "either ratio or size")
    if ratio is None:
        return integer_list(problems, "size", size, len(lengths), 1)
    wanted = f"a number from 1 to 2**64, or {len(lengths)} of them"
    ratios = [ratio] * len(lengths)
    if is_several(ratio):
        ratios = list_at_most(problems, "ratio", ratio, len(lengths), wanted)
    real = all(isinstance(r, (int, float, np.integer, np.floating)) and not isinstance(r, bool) for r in ratios)
    if not real or len(ratios) != len(lengths) or not all(1 <= r <= 2.0**64 for r in ratios):
        problems.fail("ratio", short_repr(ratio), wanted)
    return tuple(int(length / float(r)) for length, r in zip(lengths, ratios, strict=True))


def seeds_of(problems: ArgumentErrors, seed: Any) -> tuple[int, int]:
    """Return TensorFlow's pair of seeds; draw one if the caller has none."""
    if seed is None:
        high, low = divmod(secrets.randbits(64), 2**32)
        return high, low
    if type(seed) is int and -_MOST <= seed <= _MOST:
        return seed, 0
    if is_several(seed) and len(seed) != 2:
        problems.fail("seed", short_repr(seed), "an integer, or a pair (seed, seed2)")
    first, second = integer_list(problems, "seed", seed if is_several(seed) else (seed, 0), 2)
    return first, second


def drawing_over(
    problems: ArgumentErrors,
    shape: tuple[int, ...],
    ratio: Any,
    size: Any,
    how: tuple[bool, bool],
    axes: Any,
    layout: Any,
) -> tuple[tuple[int, ...], Drawing]:
    """Return the pooled axes of an array of that shape, and the arguments of the windows over them."""
    name, given = ("ratio", ratio) if is_several(ratio) else ("size", size)
    found = pooled_axes(problems, len(shape), axes, layout, len(given) if is_several(given) else None, name)
    empty = [d for d in found if shape[d] == 0]
    if empty:
        problems.fail("x", f"shape {list(shape)}", f"at least one cell along axis {empty[0]}")
    return found, checked_drawing(problems, tuple(shape[d] for d in found), ratio, size, *how)


def _pool_drawn(
    op: str,
    x: Any,
    seed: Any,
    args: tuple[Any, ...],
    out: Any,
    pool: Callable[[Any, PooledAxes, Any], Any],
    kernel: Callable[[Plan, np.dtype[Any]], Callable[[Array], Any] | None],
) -> Any:
    """Draw windows and call pool(x, windows, out); remember the call, which draws anew each time.

    `args` begin with ratio, size, pseudo_random, overlapping, axes, layout and return_windows. `kernel` returns the function that
    pools cells without a check, or None.
    """
    run = known(op, x, args) if out is None else None
    if run is not None:
        return run(x, seed)
    x, problems = accept(op, x), ArgumentErrors(op)
    ratio, size, pseudo_random, overlapping, axes, layout, return_windows = args[:7]
    shape = x.shape
    flag(problems, "return_windows", return_windows)
    found, drawing = drawing_over(problems, shape, ratio, size, (pseudo_random, overlapping), axes, layout)

    def draw(x: Any, seed: Any, out: Any = None, known: bool = True) -> Any:
        made = drawing.draw(seeds_of(ArgumentErrors(op), seed))
        plan = checked_plan(ArgumentErrors(op), shape, dict(zip(found, made, strict=True)))
        quick = kernel(plan, x.dtype) if known else None
        y = pool(x, PooledAxes(found, plan), out) if quick is None else quick(x)
        if not return_windows:
            return y
        return (*y, made) if isinstance(y, tuple) else (y, made)

    result = draw(x, seed, out, False)
    left = prod(n for d, n in enumerate(shape) if d not in found)
    remember(op, x, args, left * prod(drawing.sizes), draw)
    return result


@overload
def fractional_max_pool(
    x: Var,
    ratio: Ratio = ...,
    *,
    return_taps: Literal[False] = ...,
    return_windows: Literal[False] = ...,
    out: None = ...,
    **options: Unpack[FractionalMaxOptions],
) -> Var: ...
@overload
def fractional_max_pool(
    x: Var,
    ratio: Ratio = ...,
    *,
    return_taps: Literal[True],
    return_windows: Literal[False] = ...,
    out: None = ...,
    **options: Unpack[FractionalMaxOptions],
) -> tuple[Var, Taps]: ...
@overload
def fractional_max_pool(
    x: Var,
    ratio: Ratio = ...,
    *,
    return_taps: Literal[False] = ...,
    return_windows: Literal[True],
    out: None = ...,
    **options: Unpack[FractionalMaxOptions],
) -> tuple[Var, tuple[Axis, ...]]: ...
@overload
def fractional_max_pool(
    x: Var,
    ratio: Ratio = ...,
    *,
    return_taps: Literal[True],
    return_windows: Literal[True],
    out: None = ...,
    **options: Unpack[FractionalMaxOptions],
) -> tuple[Var, Taps, tuple[Axis, ...]]: ...
@overload
def fractional_max_pool(
    x: NDArray[S],
    ratio: Ratio = ...,
    *,
    return_taps: Literal[False] = ...,
    return_windows: Literal[False] = ...,
    out: None = ...,
    **options: Unpack[FractionalMaxOptions],
) -> NDArray[S]: ...
@overload
def fractional_max_pool(
    x: NDArray[S],
    ratio: Ratio = ...,
    *,
    return_taps: Literal[True],
    return_windows: Literal[False] = ...,
    out: None = ...,
    **options: Unpack[FractionalMaxOptions],
) -> tuple[NDArray[S], Taps]: ...
@overload
def fractional_max_pool(
    x: NDArray[S],
    ratio: Ratio = ...,
    *,
    return_taps: Literal[False] = ...,
    return_windows: Literal[True],
    out: None = ...,
    **options: Unpack[FractionalMaxOptions],
) -> tuple[NDArray[S], tuple[Axis, ...]]: ...
@overload
def fractional_max_pool(
    x: NDArray[S],
    ratio: Ratio = ...,
    *,
    return_taps: Literal[True],
    return_windows: Literal[True],
    out: None = ...,
    **options: Unpack[FractionalMaxOptions],
) -> tuple[NDArray[S], Taps, tuple[Axis, ...]]: ...
@overload
def fractional_max_pool(
    x: ArrayLike,
    ratio: Ratio = ...,
    *,
    return_taps: Literal[False] = ...,
    return_windows: Literal[False] = ...,
    out: NDArray[np.generic] | None = ...,
    **options: Unpack[FractionalMaxOptions],
) -> Numbers: ...
@overload
def fractional_max_pool(
    x: ArrayLike,
    ratio: Ratio = ...,
    *,
    return_taps: Literal[True],
    return_windows: Literal[False] = ...,
    out: NDArray[np.generic] | None = ...,
    **options: Unpack[FractionalMaxOptions],
) -> tuple[Numbers, Taps]: ...
@overload
def fractional_max_pool(
    x: ArrayLike,
    ratio: Ratio = ...,
    *,
    return_taps: Literal[False] = ...,
    return_windows: Literal[True],
    out: NDArray[np.generic] | None = ...,
    **options: Unpack[FractionalMaxOptions],
) -> tuple[Numbers, tuple[Axis, ...]]: ...
@overload
def fractional_max_pool(
    x: ArrayLike,
    ratio: Ratio = ...,
    *,
    return_taps: Literal[True],
    return_windows: Literal[True],
    out: NDArray[np.generic] | None = ...,
    **options: Unpack[FractionalMaxOptions],
) -> tuple[Numbers, Taps, tuple[Axis, ...]]: ...
@overload
def fractional_max_pool(
    x: ArrayLike | Var,
    ratio: Ratio = ...,
    *,
    return_taps: bool = ...,
    return_windows: bool = ...,
    out: NDArray[np.generic] | None = ...,
    **options: Unpack[FractionalMaxOptions],
) -> Best | tuple[Result, tuple[Axis, ...]] | tuple[Result, Taps, tuple[Axis, ...]]: ...
def fractional_max_pool(
    x: ArrayLike | Var,
    ratio: Ratio = None,
    *,
    size: Ints | None = None,
    seed: Seed = None,
    pseudo_random: bool = False,
    overlapping: bool = False,
    axes: Ints | None = None,
    layout: str | None = None,
    ties: Ties = "first",
    nan: Nan = "propagate",
    return_taps: bool = False,
    return_windows: bool = False,
    out: Array | None = None,
) -> Best | tuple[Result, tuple[Axis, ...]] | tuple[Result, Taps, tuple[Axis, ...]]:
    """Max pooling over windows that are drawn at random.

    An axis of n cells gets m = floor(n / ratio) windows of floor(n / m) or ceil(n / m) cells, in random
    order. The same seeds give the windows of TensorFlow's FractionalMaxPool.

    Parameters
    ----------
    x : array_like or Var
        The array to pool, of any rank: a NumPy array, a list, or anything with a buffer,
        `__array__` or DLPack. A `Var` if the pool is part of a function that is differentiated.
    ratio : float or sequence of float, optional
        The mean length of the windows, at least 1: one for all pooled axes, or one for each. An
        axis of n cells gets floor(n / ratio) windows. Give either `ratio` or `size`.
    size : int or sequence of int, optional
        The number of windows instead of `ratio`: one for all pooled axes, or one for each.
    seed : int or (int, int), optional
        The seed of the windows: an integer, or TensorFlow's pair (seed, seed2). The same seed gives
        the same windows. Default: fresh windows at each call.
    pseudo_random : bool, optional
        Draw windows of TensorFlow's pseudo-random kind, whose boundaries follow the ratio evenly,
        instead of lengths in random order. Default: False.
    overlapping : bool, optional
        Let neighbouring windows share the cell at their boundary. Default: False.
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
    return_windows : bool, optional
        Return also the windows, one `Axis` per pooled axis. Pass them as `window` to another pool.
        Default: False.
    out : ndarray, optional
        An array that receives the result: of its shape, and of a dtype that it can be cast to.

    Returns
    -------
    y : ndarray or Var
        The maxima, in a new array of the dtype of x; `out` if given; a `Var` if x is one.
    taps : Taps
        Only if `return_taps`: the cell that each window chose.
    windows : tuple of Axis
        Only if `return_windows`: the windows, one axis per pooled axis.

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
    fractional_windows : Draw the windows alone.
    fractional_avg_pool : The means.
    max_pool : Fixed windows, or windows that were drawn before.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> x = np.arange(10.0)
    >>> y, windows = pg.fractional_max_pool(x, 1.5, seed=(1, 2), return_windows=True)
    >>> y.tolist()
    [0.0, 2.0, 3.0, 5.0, 7.0, 9.0]

    Pool again with the same windows:

    >>> np.array_equal(y, pg.max_pool(x, windows))
    True
    """
    args = (ratio, size, pseudo_random, overlapping, axes, layout, return_windows, ties, nan, return_taps)

    def pool(x: Any, windows: PooledAxes, out: Any) -> Best:
        return best_of("fractional_max_pool", x, windows, False, Options(ties, nan, return_taps, out))

    def kernel(plan: Plan, dtype: np.dtype[Any]) -> Callable[[Array], Any] | None:
        return None if return_taps or dtype == np.bool_ else value_finder(plan, False, nan)

    pooled: Best = _pool_drawn("fractional_max_pool", x, seed, args, out, pool, kernel)
    return pooled


@overload
def fractional_avg_pool(
    x: Var,
    ratio: Ratio = ...,
    *,
    dtype: None = ...,
    return_windows: Literal[False] = ...,
    out: None = ...,
    **options: Unpack[FractionalAvgOptions],
) -> Var: ...
@overload
def fractional_avg_pool(
    x: Var,
    ratio: Ratio = ...,
    *,
    dtype: None = ...,
    return_windows: Literal[True],
    out: None = ...,
    **options: Unpack[FractionalAvgOptions],
) -> tuple[Var, tuple[Axis, ...]]: ...
@overload
def fractional_avg_pool(
    x: ArrayLike,
    ratio: Ratio = ...,
    *,
    dtype: type[S] | np.dtype[S],
    return_windows: Literal[False] = ...,
    out: None = ...,
    **options: Unpack[FractionalAvgOptions],
) -> NDArray[S]: ...
@overload
def fractional_avg_pool(
    x: ArrayLike,
    ratio: Ratio = ...,
    *,
    dtype: type[S] | np.dtype[S],
    return_windows: Literal[True],
    out: None = ...,
    **options: Unpack[FractionalAvgOptions],
) -> tuple[NDArray[S], tuple[Axis, ...]]: ...
@overload
def fractional_avg_pool(
    x: NDArray[F],
    ratio: Ratio = ...,
    *,
    dtype: None = ...,
    return_windows: Literal[False] = ...,
    out: None = ...,
    **options: Unpack[FractionalAvgOptions],
) -> NDArray[F]: ...
@overload
def fractional_avg_pool(
    x: NDArray[F],
    ratio: Ratio = ...,
    *,
    dtype: None = ...,
    return_windows: Literal[True],
    out: None = ...,
    **options: Unpack[FractionalAvgOptions],
) -> tuple[NDArray[F], tuple[Axis, ...]]: ...
@overload
def fractional_avg_pool(
    x: NDArray[IntOrBool],
    ratio: Ratio = ...,
    *,
    dtype: None = ...,
    return_windows: Literal[False] = ...,
    out: None = ...,
    **options: Unpack[FractionalAvgOptions],
) -> NDArray[np.float64]: ...
@overload
def fractional_avg_pool(
    x: NDArray[IntOrBool],
    ratio: Ratio = ...,
    *,
    dtype: None = ...,
    return_windows: Literal[True],
    out: None = ...,
    **options: Unpack[FractionalAvgOptions],
) -> tuple[NDArray[np.float64], tuple[Axis, ...]]: ...
@overload
def fractional_avg_pool(
    x: ArrayLike,
    ratio: Ratio = ...,
    *,
    dtype: DTypeLike | None = ...,
    return_windows: Literal[False] = ...,
    out: NDArray[np.generic] | None = ...,
    **options: Unpack[FractionalAvgOptions],
) -> Numbers: ...
@overload
def fractional_avg_pool(
    x: ArrayLike,
    ratio: Ratio = ...,
    *,
    dtype: DTypeLike | None = ...,
    return_windows: Literal[True],
    out: NDArray[np.generic] | None = ...,
    **options: Unpack[FractionalAvgOptions],
) -> tuple[Numbers, tuple[Axis, ...]]: ...
@overload
def fractional_avg_pool(
    x: ArrayLike | Var,
    ratio: Ratio = ...,
    *,
    dtype: DTypeLike | None = ...,
    return_windows: bool = ...,
    out: NDArray[np.generic] | None = ...,
    **options: Unpack[FractionalAvgOptions],
) -> Result | tuple[Result, tuple[Axis, ...]]: ...
def fractional_avg_pool(
    x: ArrayLike | Var,
    ratio: Ratio = None,
    *,
    size: Ints | None = None,
    seed: Seed = None,
    pseudo_random: bool = False,
    overlapping: bool = False,
    axes: Ints | None = None,
    layout: str | None = None,
    nan: Nan = "propagate",
    dtype: DTypeLike | None = None,
    rounding: Rounding = "nearest",
    return_windows: bool = False,
    out: Array | None = None,
) -> Result | tuple[Result, tuple[Axis, ...]]:
    """Average pooling over windows that are drawn at random.

    The windows are those of `fractional_max_pool`.

    Parameters
    ----------
    x : array_like or Var
        The array to pool, of any rank: a NumPy array, a list, or anything with a buffer,
        `__array__` or DLPack. A `Var` if the pool is part of a function that is differentiated.
    ratio : float or sequence of float, optional
        The mean length of the windows, at least 1: one for all pooled axes, or one for each. An
        axis of n cells gets floor(n / ratio) windows. Give either `ratio` or `size`.
    size : int or sequence of int, optional
        The number of windows instead of `ratio`: one for all pooled axes, or one for each.
    seed : int or (int, int), optional
        The seed of the windows: an integer, or TensorFlow's pair (seed, seed2). The same seed gives
        the same windows. Default: fresh windows at each call.
    pseudo_random : bool, optional
        Draw windows of TensorFlow's pseudo-random kind, whose boundaries follow the ratio evenly,
        instead of lengths in random order. Default: False.
    overlapping : bool, optional
        Let neighbouring windows share the cell at their boundary. Default: False.
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
    return_windows : bool, optional
        Return also the windows, one `Axis` per pooled axis. Pass them as `window` to another pool.
        Default: False.
    out : ndarray, optional
        An array that receives the result: of its shape, and of a dtype that it can be cast to.

    Returns
    -------
    y : ndarray or Var
        The means, in a new array; `out` if given; a `Var` if x is one. Floats keep their dtype;
        integers and booleans give float64.
    windows : tuple of Axis
        Only if `return_windows`: the windows, one axis per pooled axis.

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
    fractional_windows : Draw the windows alone.
    fractional_max_pool : The maxima.
    avg_pool : Fixed windows, or windows that were drawn before.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> pg.fractional_avg_pool(np.arange(4.0), size=2, seed=1).tolist()
    [0.5, 2.5]
    """
    args = (ratio, size, pseudo_random, overlapping, axes, layout, return_windows, nan, dtype, rounding)

    def pool(x: Any, windows: PooledAxes, out: Any) -> Result:
        how = Division(True, nan=nan, dtype=dtype, rounding=rounding, out=out)
        return folded("fractional_avg_pool", x, windows, how)

    def kernel(plan: Plan, source: np.dtype[Any]) -> Callable[[Array], Any] | None:
        floats = dtype is None and source.kind not in WHOLE and nan != "ignore"
        return native.folder(plan, Mean.ONCE) if floats else None

    pooled: Result | tuple[Result, tuple[Axis, ...]] = _pool_drawn(
        "fractional_avg_pool", x, seed, args, out, pool, kernel
    )
    return pooled
