"""Convert taps to the positions that other libraries use, and back; unpool by either."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._common.arrays import Array, afford, as_array
from .._common.errors import ArgumentErrors, short_repr
from .._kernels.native import tap_type
from .._windows.plan import Plan
from .operators import Indexing, Linear, Masked, TapGather, along, apply
from .tape import Result, Var
from .types import Int, Numbers, Reduce, S

Positions = NDArray[np.int64]
Shape = Sequence[Int] | NDArray[np.integer[Any]]


class Taps:
    """The cell that each window of a max or min pool chose.

    A tap is the number of the chosen cell within its window, counted row by row from 0. It takes one byte where windows have at most
    256 cells, else four. Pools return taps with ``return_taps=True``; `from_flat` and `from_plane` make them from other libraries'
    positions.

    Parameters
    ----------
    operator : Linear
        The operator that reads the chosen cells, as a pool makes it.
    axes : sequence of int
        The pooled axes.

    Attributes
    ----------
    operator : Linear
        The operator P: ``P(v)`` reads the chosen cells of any array v, and ``P.T(g)`` adds g at these cells.
    axes : tuple of int
        The pooled axes.

    See Also
    --------
    max_pool, min_pool : Return taps with ``return_taps=True``.
    unpool : Put values back at the taps.
    picking : Make the operator from stored taps.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> y, taps = pg.max_pool(np.array([[1, 5, 2, 0], [3, 4, 2, 7]]), 2, return_taps=True)
    >>> y.tolist(), taps.values.tolist(), taps.flat().tolist()
    ([[5, 7]], [[1, 3]], [[1, 7]])
    """

    def __init__(self, operator: TapGather, axes: Sequence[int]) -> None:
        self.operator, self.axes = operator, tuple(axes)
        operator.taps.setflags(write=False)

    @property
    def values(self) -> NDArray[np.unsignedinteger[Any]]:
        """The taps, in the shape of the pooled array; read-only."""
        return self.operator.restore(self.operator.taps)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array before pooling, which `unpool` restores."""
        return self.operator.source

    @property
    def nbytes(self) -> int:
        """The size of the taps in bytes."""
        return self.operator.taps.nbytes

    def __repr__(self) -> str:
        return f"<Taps: {list(self.operator.dest)} of {list(self.shape)}, {self.operator.taps.dtype}>"

    def coordinates(self) -> dict[int, Positions]:
        """Return the coordinates of the chosen cells along each pooled axis.

        Returns
        -------
        dict of int to ndarray of int64
            For each pooled axis, the index of the chosen cell along it, in the shape of the pooled array.

        Examples
        --------
        >>> import numpy as np
        >>> import poolgrad as pg
        >>> _, taps = pg.max_pool(np.array([[1, 5, 2, 0], [3, 4, 2, 7]]), 2, return_taps=True)
        >>> {axis: cells.tolist() for axis, cells in taps.coordinates().items()}
        {0: [[0, 1]], 1: [[1, 3]]}
        """
        plan, order = self.operator.plan, self.operator.order
        rest = self.operator.taps.astype(np.int64)
        found: dict[int, Positions] = {}
        for d in reversed(range(len(order))):
            axis = plan.by_dimension[d]
            if axis is None:
                continue
            rest, digit = np.divmod(rest, along(axis.count, d, len(order)))
            found[order[d]] = self.operator.restore(along(axis.start, d, len(order)) + digit * axis.step)
        return {axis: found[axis] for axis in sorted(found)}

    def _position(self, axes: Sequence[int]) -> Positions:
        """Return row-major positions over the given axes of the source."""
        chosen, total = self.coordinates(), np.zeros(self.operator.dest, np.int64)
        for d in axes:
            own = along(np.arange(self.operator.dest[d]), d, len(self.shape))
            total = total * self.shape[d] + chosen.get(d, own)
        return total

    def flat(self, batch: bool = True) -> Positions:
        """Return the positions of the chosen cells in the flattened array, as TensorFlow's argmax counts.

        Parameters
        ----------
        batch : bool, optional
            Count from the beginning of the array (default), or from that of the image: axis 0 is left out then. TensorFlow calls it
            `include_batch_in_index`.

        Returns
        -------
        ndarray of int64
            One position per window, in the shape of the pooled array.

        See Also
        --------
        plane, onnx : The conventions of PyTorch and ONNX.
        from_flat : The way back.

        Examples
        --------
        >>> import numpy as np
        >>> import poolgrad as pg
        >>> _, taps = pg.max_pool(np.array([[3, 1], [2, 4]]), 2, axes=1, return_taps=True)
        >>> taps.flat().tolist(), taps.flat(batch=False).tolist()
        ([[0], [3]], [[0], [1]])
        """
        return self._position(range(0 if batch else 1, len(self.shape)))

    def plane(self) -> Positions:
        """Return the positions of the chosen cells within the pooled axes alone, as PyTorch's indices.

        Returns
        -------
        ndarray of int64
            One position per window, in the shape of the pooled array.

        See Also
        --------
        flat, onnx : The conventions of TensorFlow and ONNX.
        from_plane : The way back.

        Examples
        --------
        >>> import numpy as np
        >>> import poolgrad as pg
        >>> x = np.array([[[1, 5], [3, 4]], [[1, 2], [9, 4]]])  # two channels
        >>> _, taps = pg.max_pool(x, 2, axes=(1, 2), return_taps=True)
        >>> taps.plane().ravel().tolist()
        [1, 2]
        """
        return self._position(sorted(self.axes))

    def onnx(self, storage_order: int = 0) -> Positions:
        """Return the positions of the chosen cells in the flattened array, as the indices of ONNX's MaxPool.

        Parameters
        ----------
        storage_order : {0, 1}, optional
            Count the pooled axes row by row (0, default), or column by column (1).

        Returns
        -------
        ndarray of int64
            One position per window, in the shape of the pooled array.

        Raises
        ------
        ValueError
            If `storage_order` is neither 0 nor 1.

        See Also
        --------
        flat, plane : The conventions of TensorFlow and PyTorch.

        Examples
        --------
        >>> import numpy as np
        >>> import poolgrad as pg
        >>> _, taps = pg.max_pool(np.array([[1, 5], [3, 4]]), 2, return_taps=True)
        >>> taps.onnx().tolist(), taps.onnx(storage_order=1).tolist()
        ([[1]], [[2]])
        """
        if storage_order not in (0, 1):
            ArgumentErrors("Taps.onnx").fail("storage_order", short_repr(storage_order), "0 or 1")
        if storage_order == 0:
            return self.flat()
        axes = sorted(self.axes)
        rest = [d for d in range(len(self.shape)) if d not in axes]
        size = int(np.prod([self.shape[d] for d in axes]))
        return self._position(rest) * size + self._position(axes[::-1])

    @classmethod
    def from_flat(cls, index: ArrayLike, plan: Plan, batch: bool = True) -> Taps:
        """Make taps from positions in the flattened array, such as TensorFlow's argmax.

        Parameters
        ----------
        index : array_like of int
            One position per window, in the shape of the pooled array.
        plan : Plan
            The windows, as `plan` makes them.
        batch : bool, optional
            Positions count from the beginning of the array (default), or from that of the image: axis 0 is left out then.

        Returns
        -------
        Taps

        Raises
        ------
        TypeError
            If `index` holds no integers, or `plan` is not a Plan.
        ValueError
            If `index` has another shape, or a position is outside its window.

        See Also
        --------
        from_plane : The same for PyTorch's positions.

        Examples
        --------
        >>> import numpy as np
        >>> import poolgrad as pg
        >>> pg.Taps.from_flat([1, 2], pg.plan((4,), 2)).values.tolist()
        [1, 0]
        """
        problems, shape = _of("Taps.from_flat", plan), plan.source
        if not isinstance(batch, (bool, np.bool_, int)):
            problems.fail("batch", short_repr(batch), "True or False", TypeError)
        first = plan.by_dimension[0]
        if not batch and shape[0] != 1 and first is not None and not first.identity:
            problems.fail("batch", batch, "True where axis 0 is pooled: positions in an image do not tell which image")
        part = prod(shape[0 if batch else 1 :])
        flat = _positions(problems, index, plan, part)
        if not batch and shape[0] != 1:
            flat += np.arange(plan.dest[0]).reshape(-1, *[1] * (len(shape) - 1)) * part
        where = digits(flat, shape)
        own = np.indices(plan.dest, sparse=True)
        for d, axis in enumerate(plan.by_dimension):
            if axis is None and not np.array_equal(np.broadcast_to(own[d], plan.dest), where[d]):
                problems.fail("index", f"a position in another place along axis {d}", "its own")
        return cls._at(plan, dict(enumerate(where)), "Taps.from_flat")

    @classmethod
    def from_plane(cls, index: ArrayLike, plan: Plan) -> Taps:
        """Make taps from positions within the pooled axes, such as PyTorch's indices.

        Parameters
        ----------
        index : array_like of int
            One position per window, in the shape of the pooled array.
        plan : Plan
            The windows, as `plan` makes them.

        Returns
        -------
        Taps

        Raises
        ------
        TypeError
            If `index` holds no integers, or `plan` is not a Plan.
        ValueError
            If `index` has another shape, or a position is outside its window.

        See Also
        --------
        from_flat : The same for TensorFlow's positions.

        Examples
        --------
        >>> import numpy as np
        >>> import poolgrad as pg
        >>> pg.Taps.from_plane([[1], [2]], pg.plan((2, 4), 4, axes=1)).values.tolist()
        [[1], [2]]
        """
        problems = _of("Taps.from_plane", plan)
        axes = [d for d, axis in enumerate(plan.by_dimension) if axis is not None]
        sizes = [plan.source[d] for d in axes]
        where = digits(_positions(problems, index, plan, prod(sizes)), sizes)
        return cls._at(plan, dict(zip(axes, where, strict=True)), "Taps.from_plane")

    @classmethod
    def _at(cls, plan: Plan, where: dict[int, Any], op: str) -> Taps:
        total, fine = np.zeros(plan.dest, np.int64), np.ones(plan.dest, bool)
        for d, axis in enumerate(plan.by_dimension):
            if axis is None:
                continue
            digit, rest = np.divmod(where[d] - along(axis.start, d, len(plan.dest)), axis.step)
            count = along(axis.count, d, len(plan.dest))
            fine &= (digit >= 0) & (digit < count) & (rest == 0)
            total = total * count + digit
        if not fine.all():
            at = [int(i) for i in np.argwhere(~fine)[0]]
            ArgumentErrors(op).fail("index", f"a position outside its window at {at}", "a cell of the window")
        axes = [d for d, axis in enumerate(plan.by_dimension) if axis is not None]
        return cls(TapGather(plan, total.astype(tap_type(plan)), range(len(plan.dest))), axes)


def _of(op: str, plan: Any) -> ArgumentErrors:
    problems = ArgumentErrors(op)
    if not isinstance(plan, Plan):
        problems.fail("plan", short_repr(plan), "a Plan, as poolgrad.plan makes", TypeError)
    return problems


def _integers(problems: ArgumentErrors, name: str, value: Any, wanted: str = "integers") -> Array:
    array = as_array(problems, name, value)
    problems.raise_if_any()
    assert array is not None
    if array.dtype.kind not in "iu":
        problems.fail(name, f"dtype {array.dtype}", wanted, TypeError)
    return array


def _inside(problems: ArgumentErrors, name: str, index: Array, cells: int) -> None:
    """Refuse positions that are negative or beyond the last cell, in any integer dtype."""
    if index.size and not (int(index.min()) >= 0 and int(index.max()) < cells):
        own = index.copy()  # another thread may change the array, even back to positions that are fine
        wrong = np.argwhere((own < 0) | (own >= cells)).tolist()
        wanted = f"positions from 0 to {cells - 1}" if cells else "no positions, as there are no cells"
        problems.fail(name, f"{own[tuple(wrong[0])]} at {wrong[0]}" if wrong else "positions that change", wanted)


def _positions(problems: ArgumentErrors, index: Any, plan: Plan, cells: int) -> Positions:
    array = _integers(problems, "index", index)
    if array.shape != plan.dest:
        problems.fail("index", f"shape {list(array.shape)}", f"{list(plan.dest)}, one position per window")
    _inside(problems, "index", array, cells)
    return array.astype(np.int64)


def digits(flat: Positions, sizes: Sequence[int]) -> list[Positions]:
    """Return the coordinates of row-major positions."""
    found: list[Positions] = []
    for n in reversed(sizes):
        flat, digit = np.divmod(flat, max(n, 1))
        found.append(digit)
    return found[::-1]


def picking(windows: Plan, taps: ArrayLike) -> Linear:
    """Make the operator that picks one cell of each window, from stored taps.

    It is the operator that `max_operator` returns, made without the pooled array.

    Parameters
    ----------
    windows : Plan
        The windows, as `plan` makes them.
    taps : array_like of int
        The number of a cell within each window, counted row by row from 0, as `Taps.values`. Its shape is that of the pooled array.
        The operator keeps a copy.

    Returns
    -------
    Linear
        The operator P: ``P(v)`` reads the picked cells of v, and ``P.T(g)`` adds g at these cells.

    Raises
    ------
    TypeError
        If `windows` is not a Plan, or `taps` holds no integers.
    ValueError
        If `taps` has another shape, or a tap is outside its window.

    See Also
    --------
    max_operator, min_operator : Choose the cells by an array.
    unpooling : The transpose, made from taps or positions.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> P = pg.picking(pg.plan((4,), 2), np.array([1, 0], np.uint8))
    >>> P(np.array([5.0, 6.0, 7.0, 8.0])).tolist(), P.T(np.array([1.0, 2.0])).tolist()
    ([6.0, 7.0], [0.0, 1.0, 2.0, 0.0])
    """
    problems = ArgumentErrors("picking")
    if not isinstance(windows, Plan):
        problems.fail("windows", short_repr(windows), "a Plan, as poolgrad.plan makes", TypeError)
    array, wanted = _integers(problems, "taps", taps), np.dtype(tap_type(windows))
    if array.shape != windows.dest:
        problems.fail("taps", f"shape {list(array.shape)}", f"{list(windows.dest)}, one per window")
    array = array.copy()  # nobody changes it between the check and its use
    if array.dtype != wanted and array.size and not 0 <= array.min() <= array.max() <= np.iinfo(wanted).max:
        problems.fail("taps", "a tap outside its window", "the number of a cell of the window")
    operator = TapGather(windows, array.astype(wanted, copy=False), range(array.ndim))
    operator.name = "picking"
    return operator


def _sizes(problems: ArgumentErrors, shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of sizes; refuse anything but a list of sizes."""
    listed = shape.tolist() if isinstance(shape, np.ndarray) and shape.ndim == 1 else shape
    if not isinstance(listed, (list, tuple)) or not all(isinstance(n, (int, np.integer)) and n >= 0 for n in listed):
        problems.fail("shape", short_repr(shape), "a list of sizes", TypeError)
    if len(listed) > 64 or prod(max(int(n), 1) for n in listed) >= 2**59:
        problems.fail("shape", short_repr(shape), "a shape that an array can have")
    return tuple(map(int, listed))


def check_unpool(
    problems: ArgumentErrors, reduce: Any, shape: Sequence[int] | None, known: Sequence[int] | None
) -> None:
    """Refuse an unknown `reduce`, and a shape other than that of the taps."""
    if reduce not in ("sum", "assign"):
        problems.fail("reduce", short_repr(reduce), "'sum' or 'assign'")
    if known is not None and shape is not None and _sizes(problems, shape) != tuple(known):
        problems.fail("shape", list(shape), f"{list(known)}, which the taps know")


def unpooling(where: Taps | ArrayLike, shape: Shape | None = None, reduce: Reduce = "sum", items: int = 1) -> Linear:
    """Make the operator of `unpool`, which puts each value back at its chosen cell.

    Parameters
    ----------
    where : Taps or array_like of int
        The chosen cells: taps, or one position in the result per value. The operator keeps a copy of positions.
    shape : sequence of int, optional
        The shape of the result. Needed for positions; taps know it.
    reduce : {"sum", "assign"}, optional
        The rule for a cell that several windows chose: add their values up (default), or keep the last.
    items : int, optional
        Into how many equal parts the result is divided; positions count within their part. Default: 1, the whole result.

    Returns
    -------
    Linear
        The operator U: ``U(y)`` unpools y, and ``U.T(v)`` reads the chosen cells of v.

    Raises
    ------
    TypeError
        If `where` holds neither taps nor integers.
    ValueError
        If `shape` is missing or contradicts the taps, a position is outside the result, or `items` does not divide it.

    See Also
    --------
    unpool : Apply it once.
    picking : The operator that reads, from stored taps.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> U = pg.unpooling(np.array([1, 2]), (4,))
    >>> U(np.array([7.0, 8.0])).tolist(), U.T(np.arange(4.0)).tolist()
    ([0.0, 7.0, 8.0, 0.0], [1.0, 2.0])
    """
    return _unpooling(where, shape, reduce, items, True)


def _unpooling(where: Any, shape: Any, reduce: Any, items: Any, keep: bool) -> Linear:
    """As unpooling; keep says whether the operator outlives the call."""
    problems = ArgumentErrors("unpool")
    check_unpool(problems, reduce, shape, where.shape if isinstance(where, Taps) else None)
    if isinstance(where, Taps):
        picking: Linear = where.operator
        flat = where.flat() if reduce == "assign" else None
    else:
        picking = index = _indexing(problems, where, shape, items, keep or reduce == "assign")
        flat = _absolute(index) if reduce == "assign" else None
    if flat is None:
        return picking.T
    size = prod(picking.source)
    afford(problems, "shape", 8 * size, f"the last position of each cell of {list(picking.source)}")
    last = np.full(size, -1)
    last[flat.reshape(-1)] = np.arange(flat.size)  # of equal positions the last one stays
    return Masked(picking.T, last[flat] == np.arange(flat.size).reshape(flat.shape))


def _indexing(problems: ArgumentErrors, where: Any, shape: Any, items: Any, keep: bool) -> Indexing:
    index = _integers(problems, "taps", where, "Taps, or integer positions")
    index = np.array(index, order="C") if keep else index  # before it is checked: the array may be changed meanwhile
    if shape is None:
        problems.fail("shape", "None", "the shape of the result: positions alone do not tell it")
    shape = _sizes(problems, shape)
    size = prod(shape)
    if not isinstance(items, (int, np.integer)) or items < 1 or size % items or index.size % items:
        problems.fail("items", short_repr(items), "a number that divides both arrays")
    _inside(problems, "taps", index, size // int(items))
    afford(problems, "shape", size, f"a result of shape {list(shape)}, a byte per cell or more")
    return Indexing(shape, index.astype(np.int64, copy=False), int(items))


def _absolute(operator: Indexing) -> Array:
    """Return the operator's positions, counted from the beginning of the whole array."""
    index, items = operator.index, operator.items
    if items == 1 or not index.size:
        return index
    part = prod(operator.source) // items
    return index + np.arange(items).repeat(index.size // items).reshape(index.shape) * part


@overload
def unpool(
    y: Var,
    taps: Taps | ArrayLike,
    shape: Shape | None = ...,
    *,
    reduce: Reduce = ...,
    items: int = ...,
    out: None = ...,
) -> Var: ...
@overload
def unpool(
    y: ArrayLike,
    taps: Taps | ArrayLike,
    shape: Shape | None = ...,
    *,
    reduce: Reduce = ...,
    items: int = ...,
    out: NDArray[S],
) -> NDArray[S]: ...
@overload
def unpool(
    y: NDArray[S],
    taps: Taps | ArrayLike,
    shape: Shape | None = ...,
    *,
    reduce: Reduce = ...,
    items: int = ...,
    out: None = ...,
) -> NDArray[S]: ...
@overload
def unpool(
    y: ArrayLike,
    taps: Taps | ArrayLike,
    shape: Shape | None = ...,
    *,
    reduce: Reduce = ...,
    items: int = ...,
    out: None = ...,
) -> Numbers: ...
def unpool(
    y: ArrayLike | Var,
    taps: Taps | ArrayLike,
    shape: Shape | None = None,
    *,
    reduce: Reduce = "sum",
    items: int = 1,
    out: Array | None = None,
) -> Result:
    """Put each pooled value back at the cell that its window chose, and 0 elsewhere.

    Parameters
    ----------
    y : array_like or Var
        The values, one per window, such as the result of `max_pool`.
    taps : Taps or array_like of int
        The chosen cells: the taps that a pool returned, or one position in the result per value.
    shape : sequence of int, optional
        The shape of the result. Needed for positions; taps know it.
    reduce : {"sum", "assign"}, optional
        The rule for a cell that several windows chose. "sum" (default) adds their values up: it conserves the total, and is the
        transpose of pooling. "assign" keeps the last, as PyTorch's max_unpool.
    items : int, optional
        Into how many equal parts the result is divided; positions count within their part. Default: 1, the whole result.
    out : ndarray, optional
        An array that receives the result, of its shape and of a dtype that it can be cast to.

    Returns
    -------
    ndarray or Var
        An array of that shape and of the dtype of y; `out` if given; a `Var` if y is one.

    Raises
    ------
    TypeError
        If `taps` holds neither taps nor integers, or a dtype does not fit.
    ValueError
        If shapes do not fit, a position is outside the result, or a sum of integers does not fit their dtype.

    See Also
    --------
    max_pool, min_pool : Return taps with ``return_taps=True``.
    unpooling : The same as an operator.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> y, taps = pg.max_pool(np.array([1.0, 3.0, 2.0]), 2, stride=1, return_taps=True)
    >>> pg.unpool(y, taps).tolist(), pg.unpool(y, taps, reduce="assign").tolist()
    ([0.0, 6.0, 0.0], [0.0, 3.0, 0.0])
    """
    operator = _unpooling(taps, shape, reduce, items, isinstance(y, Var))
    operator.name = "unpool"
    result: Result = apply(operator, y, out)
    return result
