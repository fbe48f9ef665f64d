"""Make the linear operator of a pool from a plan: sums and means, and the maxima that an array chooses."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.errors import ArgumentErrors, short_repr
from .._windows.plan import Plan
from .means import Division, folding
from .operators import Linear
from .selection import extreme, judge
from .sources import Layout, array_of, lay_out
from .tape import Var, lift
from .types import Nan, Ties
from .window_args import PooledAxes


def _of(op: str, windows: Plan) -> PooledAxes:
    if not isinstance(windows, Plan):
        ArgumentErrors(op).fail("windows", short_repr(windows), "a Plan, as poolgrad.plan makes", TypeError)
    return PooledAxes(tuple(d for d, axis in enumerate(windows.by_dimension) if axis is not None), windows)


def selecting(op: str, x: Any, windows: Plan, least: bool, ties: Ties, nan: Nan) -> tuple[Any, Linear]:
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


def maximum(x: Any, windows: Plan, *, ties: Ties = "first", nan: Nan = "propagate") -> tuple[Any, Linear]:
    """Return the maxima of x, and the linear operator that picks the cells that x chose.

    >>> import numpy as np
    >>> import poolgrad as pg
    >>> y, P = maximum(np.array([1.0, 3.0, 2.0, 0.0]), pg.plan((4,), 2))
    >>> y.tolist(), P(np.array([5.0, 6.0, 7.0, 8.0])).tolist(), P.T(np.array([1.0, 2.0])).tolist()
    ([3.0, 2.0], [6.0, 7.0], [0.0, 1.0, 2.0, 0.0])
    """
    return selecting("maximum", x, windows, False, ties, nan)


def minimum(x: Any, windows: Plan, *, ties: Ties = "first", nan: Nan = "propagate") -> tuple[Any, Linear]:
    """Return the minima of x, and the linear operator that picks them.

    >>> import numpy as np
    >>> import poolgrad as pg
    >>> minimum(np.array([1.0, 3.0, 2.0, 0.0]), pg.plan((4,), 2))[0].tolist()
    [1.0, 0.0]
    """
    return selecting("minimum", x, windows, True, ties, nan)


def averaging(windows: Plan, *, count_include_pad: bool = False, divisor: float | None = None) -> Linear:
    """Return the operator that takes means over windows.

    >>> import numpy as np
    >>> import poolgrad as pg
    >>> averaging(pg.plan((4,), 2))(np.array([1.0, 3.0, 2.0, 0.0])).tolist()
    [2.0, 1.0]
    """
    return _folding("averaging", windows, Division(True, count_include_pad, divisor))


def summing(windows: Plan) -> Linear:
    """Return the operator that takes sums over windows.

    >>> import numpy as np
    >>> import poolgrad as pg
    >>> summing(pg.plan((4,), 2)).T(np.array([1.0, 2.0])).tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    return _folding("summing", windows, Division(False))


def _folding(op: str, windows: Plan, how: Division) -> Linear:
    plan = _of(op, windows).plan
    return folding(op, Layout(plan, tuple(range(len(plan.source))), (), np.dtype(np.float32)), how)
