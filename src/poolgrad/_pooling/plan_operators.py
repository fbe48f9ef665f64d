"""Make the linear operator of a pool from a plan: sums and means, and the maxima that an array chooses."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._common.errors import ArgumentErrors, short_repr
from .._windows.plan import Plan
from .means import Division, folding
from .operators import Linear
from .selection import extreme, judge
from .sources import Layout, array_of, lay_out
from .tape import Result, Var, lift
from .types import Nan, Numbers, S, Ties
from .window_args import PooledAxes


def _of(op: str, windows: Plan) -> PooledAxes:
    if not isinstance(windows, Plan):
        ArgumentErrors(op).fail("windows", short_repr(windows), "a Plan, as poolgrad.plan makes", TypeError)
    return PooledAxes(tuple(d for d, axis in enumerate(windows.by_dimension) if axis is not None), windows)


def selecting(op: str, x: Any, windows: Plan, least: bool, ties: Ties, nan: Nan) -> tuple[Result, Linear]:
    """Return the best of each window of x, and the operator that picks it."""
    problems = ArgumentErrors(op)
    judge(problems, ties, nan)
    array, geometry = array_of(problems, x), _of(op, windows)
    if array.shape != windows.source:
        problems.fail("x", f"shape {list(array.shape)}", f"{list(windows.source)}, as the windows")
    cells, layout = lay_out(problems, array, geometry)
    y, operator = extreme(layout.plan, cells, layout.order, least, ties, nan)
    operator.name = op
    y = operator.restore(y)
    y = y.view(np.bool_) if array.dtype == np.bool_ else y
    return (lift(operator, x, y) if isinstance(x, Var) else y), operator


@overload
def max_operator(x: Var, windows: Plan, *, ties: Ties = ..., nan: Nan = ...) -> tuple[Var, Linear]: ...
@overload
def max_operator(x: NDArray[S], windows: Plan, *, ties: Ties = ..., nan: Nan = ...) -> tuple[NDArray[S], Linear]: ...
@overload
def max_operator(x: ArrayLike, windows: Plan, *, ties: Ties = ..., nan: Nan = ...) -> tuple[Numbers, Linear]: ...
def max_operator(
    x: ArrayLike | Var, windows: Plan, *, ties: Ties = "first", nan: Nan = "propagate"
) -> tuple[Result, Linear]:
    """Choose the largest cell of each window, and make the linear operator that picks these cells.

    P is the derivative of `max_pool` at x, and ``P.T`` is its gradient. P does not change if x
    does.

    Parameters
    ----------
    x : array_like or Var
        The array to pool, of any rank: a NumPy array, a list, or anything with a buffer,
        `__array__` or DLPack. A `Var` if the pool is part of a function that is differentiated. Its
        shape is that of the windows' source.
    windows : Plan
        The windows, as `plan` makes them.
    ties : {"first", "last", "all", "split"}, optional
        The cell that a derivative goes to if several cells of a window are the largest: the first
        (default), the last, all of them in full, or all of them in equal shares. The result does
        not depend on it.
    nan : {"propagate", "ignore", "tf"}, optional
        The rule for NaN. "propagate" (default): a window with NaN gives NaN. "ignore": NaN is left
        out, and a window of NaN alone gives NaN. "tf": NaN is left out, and a window of NaN alone
        gives the lowest finite number, as in TensorFlow.

    Returns
    -------
    y : ndarray or Var
        The maxima, in an array of the dtype of x; a `Var` if x is one.
    P : Linear
        The operator: ``P(v)`` picks the chosen cells of v, and ``P.T(g)`` adds g at these cells.

    Raises
    ------
    TypeError
        If `windows` is not a Plan, or the dtype of x is not floating, integer or boolean.
    ValueError
        If x has another shape than the windows, or an option has an unknown value.

    See Also
    --------
    max_pool : The maxima alone, without a plan.
    min_operator : The other end.
    picking : Make the operator from stored taps.
    averaging, summing : Operators that depend on no array.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> y, P = pg.max_operator(np.array([1.0, 3.0, 2.0, 0.0]), pg.plan((4,), 2))
    >>> y.tolist()
    [3.0, 2.0]
    >>> P(np.array([5.0, 6.0, 7.0, 8.0])).tolist(), P.T(np.array([1.0, 2.0])).tolist()
    ([6.0, 7.0], [0.0, 1.0, 2.0, 0.0])
    """
    return selecting("max_operator", x, windows, False, ties, nan)


@overload
def min_operator(x: Var, windows: Plan, *, ties: Ties = ..., nan: Nan = ...) -> tuple[Var, Linear]: ...
@overload
def min_operator(x: NDArray[S], windows: Plan, *, ties: Ties = ..., nan: Nan = ...) -> tuple[NDArray[S], Linear]: ...
@overload
def min_operator(x: ArrayLike, windows: Plan, *, ties: Ties = ..., nan: Nan = ...) -> tuple[Numbers, Linear]: ...
def min_operator(
    x: ArrayLike | Var, windows: Plan, *, ties: Ties = "first", nan: Nan = "propagate"
) -> tuple[Result, Linear]:
    """Choose the least cell of each window, and make the linear operator that picks these cells.

    P is the derivative of `min_pool` at x, and ``P.T`` is its gradient. P does not change if x
    does.

    Parameters
    ----------
    x : array_like or Var
        The array to pool, of any rank: a NumPy array, a list, or anything with a buffer,
        `__array__` or DLPack. A `Var` if the pool is part of a function that is differentiated. Its
        shape is that of the windows' source.
    windows : Plan
        The windows, as `plan` makes them.
    ties : {"first", "last", "all", "split"}, optional
        The cell that a derivative goes to if several cells of a window are the least: the first
        (default), the last, all of them in full, or all of them in equal shares. The result does
        not depend on it.
    nan : {"propagate", "ignore", "tf"}, optional
        The rule for NaN. "propagate" (default): a window with NaN gives NaN. "ignore": NaN is left
        out, and a window of NaN alone gives NaN. "tf": NaN is left out, and a window of NaN alone
        gives the largest finite number, as in TensorFlow.

    Returns
    -------
    y : ndarray or Var
        The minima, in an array of the dtype of x; a `Var` if x is one.
    P : Linear
        The operator: ``P(v)`` picks the chosen cells of v, and ``P.T(g)`` adds g at these cells.

    Raises
    ------
    TypeError
        If `windows` is not a Plan, or the dtype of x is not floating, integer or boolean.
    ValueError
        If x has another shape than the windows, or an option has an unknown value.

    See Also
    --------
    min_pool : The minima alone, without a plan.
    max_operator : The other end.
    picking : Make the operator from stored taps.
    averaging, summing : Operators that depend on no array.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> y, P = pg.min_operator(np.array([1.0, 3.0, 2.0, 0.0]), pg.plan((4,), 2))
    >>> y.tolist(), P.T(np.array([1.0, 2.0])).tolist()
    ([1.0, 0.0], [1.0, 0.0, 0.0, 2.0])
    """
    return selecting("min_operator", x, windows, True, ties, nan)


def averaging(windows: Plan, *, count_include_pad: bool = False, divisor: float | None = None) -> Linear:
    """Make the linear operator that takes means over windows.

    Parameters
    ----------
    windows : Plan
        The windows, as `plan` makes them.
    count_include_pad : bool, optional
        Divide by the length of the window, padding included, instead of the cells inside the array.
        Default: False.
    divisor : float, optional
        Divide every sum by this number instead, which is not 0.

    Returns
    -------
    Linear
        The operator P: ``P(v)`` gives the means of v, and ``P.T(g)`` spreads g over the windows.

    Raises
    ------
    TypeError
        If `windows` is not a Plan.
    ValueError
        If `divisor` is 0 or not finite.

    See Also
    --------
    avg_pool : The means alone, without a plan.
    summing, max_operator, min_operator : Other operators.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> P = pg.averaging(pg.plan((4,), 2))
    >>> P(np.array([1.0, 3.0, 2.0, 0.0])).tolist()
    [2.0, 1.0]
    >>> P.T(np.array([1.0, 2.0])).tolist()
    [0.5, 0.5, 1.0, 1.0]
    """
    return _folding("averaging", windows, Division(True, count_include_pad, divisor))


def summing(windows: Plan) -> Linear:
    """Make the linear operator that takes sums over windows.

    Parameters
    ----------
    windows : Plan
        The windows, as `plan` makes them.

    Returns
    -------
    Linear
        The operator P: ``P(v)`` gives the sums of v, and ``P.T(g)`` gives each cell the sum over
        its windows.

    Raises
    ------
    TypeError
        If `windows` is not a Plan.

    See Also
    --------
    sum_pool : The sums alone, without a plan.
    averaging, max_operator, min_operator : Other operators.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> P = pg.summing(pg.plan((4,), 2))
    >>> P(np.array([1.0, 3.0, 2.0, 0.0])).tolist(), P.T(np.array([1.0, 2.0])).tolist()
    ([4.0, 2.0], [1.0, 1.0, 2.0, 2.0])
    """
    return _folding("summing", windows, Division(False))


def _folding(op: str, windows: Plan, how: Division) -> Linear:
    plan = _of(op, windows).plan
    return folding(op, Layout(plan, tuple(range(len(plan.source))), (), np.dtype(np.float32)), how)
