"""Explain the value of a cell of an operator or a pool."""

from __future__ import annotations

from collections.abc import Sequence

from .._common.errors import ArgumentErrors, short_repr
from .._ops.table import OPS
from .._pooling.named import POOLS
from .op_calls import explain_op
from .pools import explain_pool
from .subject import Explanation


def explain(op: str, /, *, cell: Sequence[int], pin: str | None = None, **given: object) -> Explanation:
    """Explain the value of one cell of a pooling, in a sentence and as data.

    Runs the operator or the pool, then says which windows read the cell, which cell of each window is its tap, and which
    values arrived.

    Parameters
    ----------
    op : str
        Name of an operator of `poolgrad.raw_ops`, such as ``"MaxPoolGrad"``, or of a pool, such as ``"max_pool"``,
        ``"lp_pool"``, ``"adaptive_avg_pool"`` or ``"fractional_max_pool"``.
    cell : sequence of int
        Index of the cell, one integer per dimension of the array that `pin` names. Negative integers are refused.
    pin : str, optional
        Array that holds the cell: an array argument or a result, by its name. Default: the first result, which is ``"output"``
        for operators; for pools it is ``"y"``, ``"dx"`` if you pass `g`, or ``"dy"`` if you pass `v`.
    **given
        Arguments of the operator or the pool, by name. For pools also `g`, a gradient at y, or `v`, a direction of x: with
        these, the gradient of x or the derivative along v is explained. A fractional pool needs a `seed`.

    Returns
    -------
    Explanation
        ``str()`` of it is the sentence. Its attributes are `value`; `windows`, each with its start and stop per dimension and
        its `hits` (the first one is the tap); `arrived`, the values that make up a gradient; and `parts`, the sentence with
        its cells and values marked.

    Raises
    ------
    ValueError
        If the op, the pin or the cell does not exist, if the result has no cells, or if the op refuses an argument.
    TypeError
        If the op refuses the type of an argument.

    See Also
    --------
    show : Draw the windows, the taps and the gradient of a pool.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> x = np.array([[1.0, 2.0], [4.0, 3.0]])
    >>> why = pg.explain("max_pool", cell=(0, 0), x=x, window=2)
    >>> print(why)
    y[0,0] = 4, the largest of the 4 cells of x[0:2,0:2], found at x[1,0].
    >>> why.windows[0].hits
    ((1, 0),)
    >>> print(pg.explain("max_pool", cell=(0, 1), x=x, window=2, g=[[7.0]]))
    dx[0,1] = 0: 1 window reaches this cell, but the gradient goes elsewhere: x[1,0] = 4 for g[0,0].
    """
    if op not in OPS and op not in POOLS:
        ArgumentErrors("explain").fail("op", short_repr(op), f"one of {', '.join((*OPS, *POOLS))}")
    if op in POOLS:
        return explain_pool(op, cell, pin, **given)
    return explain_op(op, cell, pin, given)
