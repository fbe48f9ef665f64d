"""Define the kernels and the random windows in plain NumPy: the specification, and the oracle in the tests. Slow, written to be read.

Each array is viewed as (outer, cells, inner). Cells are numbered in row-major order: i in the result, j in the source.
"""

from __future__ import annotations

from functools import reduce
from itertools import pairwise, product, starmap
from math import ceil, prod
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ._kernels.native import Array, Astray, tap_type
from ._ops.dtypes import HALVES
from ._ops.semantics import Mean, Share, Start
from ._windows.axis import Axis, parent_of
from ._windows.plan import Plan


def _view(array: Array, plan: Plan) -> Array:
    cells = prod(len(axis) if array.shape == plan.dest else axis.length for axis in plan.axes)
    return array.reshape(plan.outer, cells, plan.inner)


def _windows(axes: tuple[Axis, ...], reversed: bool = False) -> list[list[int]]:
    """Return, for every cell of the result, the cells that it reads; if reversed, the first axis varies fastest."""
    lengths = [axis.length for axis in axes]
    cells = np.arange(prod(lengths)).reshape(lengths)
    return [cells[tuple(starmap(slice, pairs))].ravel("F" if reversed else "C").tolist() for pairs in product(*axes)]


def _info(dtype: np.dtype[Any]) -> Any:
    return np.iinfo(dtype) if dtype.kind in "iu" else ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def _cast(value: Any, dtype: np.dtype[Any]) -> Any:
    """Cast to a half type through float32; cast a number that an integer dtype cannot hold to its lowest value."""
    if dtype.kind in "iu":
        value = np.where(np.abs(np.trunc(value)) < 2.0 ** (8 * dtype.itemsize - 1), value, _info(dtype).min)
    return (value.astype(np.float32) if dtype.name in HALVES else value).astype(dtype)


_ROUND_ONCE = (Mean.TOTAL, Mean.ONCE, Mean.SPANNED)  # the rules of pools: halves are summed in float64


def _sum_type(dtype: np.dtype[Any], terms: int, rule: Mean | Share) -> Any:
    """Return the dtype of a sum: that of the terms, or a wider one if the rule says so or there are more than 64 terms."""
    half = dtype.name in HALVES
    if half and (rule in _ROUND_ONCE or rule is Share.WHOLE):
        return np.float64
    if rule is Mean.WIDE or rule is Share.QUOTIENT:
        return np.int64 if rule is Mean.WIDE else np.float64
    long = terms > 64 and rule is not Mean.STRICT and dtype.kind not in "iu"
    return np.float64 if long else dtype


class _Place(NamedTuple):
    """The lengths and the longest window of the axis that an axis was cut from, and the cell at which the part begins."""

    length: int
    windows: int
    widest: int
    first: int
    fits: int


def _slides(places: list[_Place]) -> bool:
    """Return True if long sums are composed axis by axis: passes over the axes cost less than a sixteenth of visits to all cells."""
    pooled = [p for p in places if p.length != p.windows or p.widest != 1]
    read, left = [p.length for p in pooled], [p.windows for p in pooled]
    passes = sum(prod(read[: k + 1]) * prod(left[k + 1 :]) for k in range(len(pooled)))
    visits = prod(p.windows * p.widest for p in pooled)
    return all(p.fits for p in places) and bool(pooled) and visits > 16 * max(passes, prod(left))


def _from_left(cells: Array) -> Any:
    return reduce(np.add, cells)


def _from_right(cells: Array) -> Any:
    return reduce(np.add, cells[::-1])


def _by_blocks(place: _Place, cells: Array, start: int, stop: int) -> Any:
    """Add up a window: blocks of `widest` cells, counted from the begin of the whole axis, meet inside it or at one of its ends."""
    end = start + place.widest - (start + place.first) % place.widest  # of the block that the window begins in
    if stop > end:
        return _from_right(cells[start:end]) + _from_left(cells[end:stop])
    begins = start + place.first == 0 or end - start == place.widest
    return _from_left(cells[start:stop]) if begins or stop < min(end, len(cells)) else _from_right(cells[start:stop])


def _by_doubling(place: _Place, cells: Array, start: int, stop: int) -> Any:
    """Add up a window along the last axis: cell by cell if `widest` is at most 6, else by a power of two for each bit of its length.

    In a line of at least 64 cells, or of two longest windows, a window at an edge counts as `widest` cells long, with zeros beyond
    the edge.
    """
    window = cells[start:stop]
    if place.widest <= 6:
        return _from_left(window)
    zeros = np.zeros((place.widest - len(window), *window.shape[1:]))
    extends = place.length >= min(64, 2 * place.widest)
    if extends and start + place.first == 0:
        window = np.concatenate([zeros, window])
    elif extends and stop + place.first == place.length:
        window = np.concatenate([window, zeros])
    sums, at = [], 0
    for span in (2**k for k in range(len(window).bit_length()) if len(window) & 2**k):
        part, at = window[at : at + span], at + span
        while len(part) > 1:
            part = part[0::2] + part[1::2]
        sums.append(part[0])
    return reduce(np.add, sums)


def _long_sums(plan: Plan, back: bool, terms: Array) -> Array | None:
    """Return the sums of all windows as the core composes long ones, (outer, cells, inner); None if it adds tap after tap."""
    facts = [parent_of(axis) for axis in plan.axes]
    axes = [axis.transpose() for axis in plan.axes] if back else plan.axes
    places = [
        _Place(p.windows, p.length, p.overlap, p.first, p.fits_back)
        if back
        else _Place(p.length, p.windows, p.widest, p.origin, p.fits)
        for p in facts
    ]
    if not terms.size or not _slides(places):
        return None
    sums = terms.reshape(plan.outer, *(axis.length for axis in axes), plan.inner).astype(np.float64)
    for d, (axis, place) in reversed(list(enumerate(zip(axes, places, strict=True), 1))):
        add, cells = _by_doubling if d == len(axes) else _by_blocks, np.moveaxis(sums, d, 0)
        sums = np.moveaxis(np.array([add(place, cells, start, stop) for start, stop in axis]), 0, d)
    return sums.reshape(plan.outer, prod(map(len, axes)), plan.inner) + 0.0


def _by_columns(terms: Array, columns: int) -> Any:
    """Add up the cells of a window: column c along the last axis belongs to partial sum c % 32, and these are added in order."""
    total = np.zeros(terms.shape[::2], np.float64)
    for first in range(min(columns, 32)):
        part = np.zeros_like(total)
        for cell in range(terms.shape[1]):
            if cell % columns % 32 == first:
                part += terms[:, cell]
        total += part
    return total


@np.errstate(all="ignore")
def fold(plan: Plan, mean: Mean, x: Array) -> Array:
    """Compute the sum or mean of each window: y[i] = mean of x over window i.

    Cells are added one by one, in row-major order; integers are divided toward zero. Windows of more than 64 cells are summed in
    float64: if they overlap so much that it saves work, axis by axis, in blocks that begin at multiples of the longest window;
    else, with Mean.TOTAL, ONCE and SPANNED, by columns, in 32 partial sums.

    Parameters
    ----------
    plan : Plan
        The windows.
    mean : Mean
        The rule that turns a sum into a mean, and the dtype of the sum.
    x : ndarray
        The array to pool, of shape `plan.source`.

    Returns
    -------
    ndarray
        The result, of shape `plan.dest`.

    Examples
    --------
    >>> import numpy as np
    >>> from poolgrad.reference import Mean, fold
    >>> from poolgrad.windows import Axis, Plan
    >>> plan = Plan((5,), {0: Axis(5, [0, 2], [3, 5])})  # two windows: cells 0 to 2, cells 2 to 4
    >>> fold(plan, Mean.EXACT, np.array([1.0, 4, 1, 4, 4])).tolist()
    [2.0, 3.0]
    """
    y, sums = np.empty(plan.dest, x.dtype), None
    spans = [prod(cells) for cells in product(*(axis.span.tolist() for axis in plan.axes))]
    if x.dtype.kind not in "iu" and mean is not Mean.STRICT:
        sums = _long_sums(plan, False, x)
    for i, cells in enumerate(_windows(plan.axes)):
        count, total = len(cells), np.zeros((plan.outer, plan.inner), _sum_type(x.dtype, len(cells), mean))
        if sums is not None and count > 64:
            total += sums[:, i]
        elif count > 64 and mean in _ROUND_ONCE and x.dtype.kind not in "iu":
            total += _by_columns(_view(x, plan)[:, cells], int(plan.axes[-1].count[i % len(plan.axes[-1])]))
        else:
            for j in cells:
                total += _view(x, plan)[:, j]
        if mean is Mean.TOTAL:
            _view(y, plan)[:, i] = total if x.dtype.kind in "iu" else _cast(total, x.dtype)
            continue
        by = spans[i] if mean is Mean.SPANNED else count
        if x.dtype.kind in "iu":
            _view(y, plan)[:, i] = total // by + ((total < 0) & (total // by * by != total))
        else:
            if mean is Mean.COUNTED:  # a count in the dtype stops growing when the dtype runs out of digits
                by = min(by, 2 ** (_info(total.dtype).nmant + 1))
            _view(y, plan)[:, i] = _cast(total / total.dtype.type(by), x.dtype)
    return y


@np.errstate(all="ignore")
def spread(plan: Plan, share: Share, reversed: bool, g: Array) -> Array:
    """Transpose `fold`: dx[j] = sum of g[i] / count[i] over the windows i that cover j.

    Parameters
    ----------
    plan : Plan
        The windows.
    share : Share
        The weight that a window gives each of its cells.
    reversed : bool
        True: the last axis is the outermost loop of a sum.
    g : ndarray
        One number per window, of shape `plan.dest`.

    Returns
    -------
    ndarray
        The result, of shape `plan.source`.

    Examples
    --------
    >>> import numpy as np
    >>> from poolgrad.reference import Share, spread
    >>> from poolgrad.windows import Axis, Plan
    >>> plan = Plan((5,), {0: Axis(5, [0, 2], [3, 5])})  # two windows: cells 0 to 2, cells 2 to 4
    >>> spread(plan, Share.QUOTIENT, False, np.array([3.0, 6])).tolist()
    [1.0, 1.0, 3.0, 2.0, 2.0]
    """
    dx, counts = np.empty(plan.source, g.dtype), [len(cells) for cells in _windows(plan.axes)]
    kind = np.dtype(np.float64) if share is Share.QUOTIENT else g.dtype
    real = np.float32 if share is Share.SHORT_RECIPROCAL else np.float64
    terms = np.empty((plan.outer, len(counts), plan.inner), kind)
    for i, count in enumerate(counts):
        add, weight = _view(g, plan)[:, i].astype(kind), 1 if share is Share.WHOLE else _cast(1 / real(count), kind)
        terms[:, i] = add / count if share is Share.QUOTIENT else add * kind.type(weight)
    sums = None if share is Share.QUOTIENT else _long_sums(plan, True, terms)
    for j, covering in enumerate(_windows(tuple(axis.transpose() for axis in plan.axes), reversed)):
        total = np.zeros((plan.outer, plan.inner), _sum_type(g.dtype, len(covering), share))
        if sums is not None and len(covering) > 64:
            total += sums[:, j]
        else:
            for i in covering:
                total += terms[:, i]
        _view(dx, plan)[:, j] = _cast(total, g.dtype)
    return dx


@np.errstate(all="ignore")
def near(plan: Plan, eps: float, x: Array, y: Array, g: Array) -> Array:
    """Spread gradients to all near maxima: dx[j] = sum of g[i] over the windows i that cover j and have abs(x[j] - y[i]) < eps.

    Integers must be equal.

    Parameters
    ----------
    plan : Plan
        The windows.
    eps : float
        The distance from the maximum below which a cell gets the gradient.
    x : ndarray
        The array to pool, of shape `plan.source`.
    y : ndarray
        The maximum of each window, of shape `plan.dest`.
    g : ndarray
        One number per window, of shape `plan.dest`.

    Returns
    -------
    ndarray
        The result, of shape `plan.source`.

    Examples
    --------
    >>> import numpy as np
    >>> from poolgrad.reference import near
    >>> from poolgrad.windows import Axis, Plan
    >>> plan = Plan((5,), {0: Axis(5, [0, 2], [3, 5])})  # two windows: cells 0 to 2, cells 2 to 4
    >>> x = np.array([1.0, 4, 2, 4, 3])
    >>> near(plan, 1e-5, x, np.array([4.0, 4]), np.array([3.0, 6])).tolist()
    [0.0, 3.0, 0.0, 6.0, 0.0]
    """
    dx, limit = np.zeros(plan.source, x.dtype), np.float32(eps).astype(x.dtype)
    for j, covering in enumerate(_windows(tuple(axis.transpose() for axis in plan.axes), reversed=True)):
        for i in covering:
            cell, best, add = _view(x, plan)[:, j], _view(y, plan)[:, i], _view(g, plan)[:, i]
            hit = cell == best if x.dtype.kind in "iu" else np.abs(cell - best) < limit
            _view(dx, plan)[:, j] += np.where(hit, add, np.zeros_like(add))
    return dx


def select(plan: Plan, start: Start, x: Array) -> Array:
    """Compute the maximum of each window.

    The first of equal cells wins; NaN is never greater.

    Parameters
    ----------
    plan : Plan
        The windows.
    start : Start
        The value that a maximum starts from; only a greater cell replaces it.
    x : ndarray
        The array to pool, of shape `plan.source`.

    Returns
    -------
    ndarray
        The result, of shape `plan.dest`.

    Examples
    --------
    >>> import numpy as np
    >>> from poolgrad.reference import Start, select
    >>> from poolgrad.windows import Axis, Plan
    >>> plan = Plan((5,), {0: Axis(5, [0, 2], [3, 5])})  # two windows: cells 0 to 2, cells 2 to 4
    >>> x = np.array([1.0, 4, 2, 4, 3])
    >>> select(plan, Start.LOWEST, x).tolist()
    [4.0, 4.0]
    """
    return argmax(plan, x.size, np.int64, x, start)[0]


@np.errstate(all="ignore")
def argmax(plan: Plan, modulo: int, index: npt.DTypeLike, x: Array, start: Start = Start.FIRST) -> tuple[Array, Array]:
    """Compute the maximum of each window and its flat position modulo `modulo`.

    If no cell exceeds the start, the position is that of the first cell.

    Parameters
    ----------
    plan : Plan
        The windows.
    modulo : int
        The number of elements after which positions start again at 0: of an image, or of the array.
    index : dtype_like
        The dtype of the positions.
    x : ndarray
        The array to pool, of shape `plan.source`.
    start : Start, default Start.FIRST
        The value that a maximum starts from; only a greater cell replaces it.

    Returns
    -------
    y : ndarray
        The maxima, of shape `plan.dest`.
    where : ndarray
        Their positions.

    Examples
    --------
    >>> import numpy as np
    >>> from poolgrad.reference import argmax
    >>> from poolgrad.windows import Axis, Plan
    >>> plan = Plan((5,), {0: Axis(5, [0, 2], [3, 5])})  # two windows: cells 0 to 2, cells 2 to 4
    >>> x = np.array([1.0, 4, 2, 4, 3])
    >>> y, where = argmax(plan, x.size, np.int64, x)
    >>> y.tolist(), where.tolist()
    ([4.0, 4.0], [1, 3])
    """
    y, where, flat = np.empty(plan.dest, x.dtype), np.zeros(plan.dest, np.int64), np.arange(x.size).reshape(x.shape)
    whole = [all(axes) for axes in product(*(axis.count == axis.span for axis in plan.axes))]
    for i, cells in enumerate(_windows(plan.axes)):
        best, at = _view(y, plan)[:, i], _view(where, plan)[:, i]
        best[:] = -np.inf if start is Start.INFINITY and whole[i] and x.dtype.kind not in "iu" else _info(x.dtype).min
        for j in cells:
            cell, first = _view(x, plan)[:, j], j == cells[0]
            better = (best < cell) | (first and start is Start.FIRST)
            best[:], at[:] = np.where(better, cell, best), np.where(better | first, _view(flat, plan)[:, j], at)
    return y, (where % modulo).astype(index)


@np.errstate(all="ignore")
def choose(plan: Plan, x: Array) -> tuple[Array, Array]:
    """Compute the maximum of each window and its tap.

    The first of equal cells wins; NaN wins only if it comes first.

    Parameters
    ----------
    plan : Plan
        The windows.
    x : ndarray
        The array to pool, of shape `plan.source`.

    Returns
    -------
    y : ndarray
        The maxima, of shape `plan.dest`.
    taps : ndarray
        The number of each maximum within its window.

    Examples
    --------
    >>> import numpy as np
    >>> from poolgrad.reference import choose
    >>> from poolgrad.windows import Axis, Plan
    >>> plan = Plan((5,), {0: Axis(5, [0, 2], [3, 5])})  # two windows: cells 0 to 2, cells 2 to 4
    >>> x = np.array([1.0, 4, 2, 4, 3])
    >>> y, taps = choose(plan, x)
    >>> y.tolist(), taps.tolist()
    ([4.0, 4.0], [1, 1])
    """
    y, taps = np.empty(plan.dest, x.dtype), np.zeros(plan.dest, tap_type(plan))
    y[:] = _info(x.dtype).min  # the value of an empty window
    for i, cells in enumerate(_windows(plan.axes)):
        best, at = _view(y, plan)[:, i], _view(taps, plan)[:, i]
        for tap, j in enumerate(cells):
            cell = _view(x, plan)[:, j]
            better = (best < cell) | (tap == 0)
            best[:], at[:] = np.where(better, cell, best), np.where(better, tap, at)
    return y, taps


def _followed(plan: Plan, taps: Array) -> Array:
    """Return the flat source position of each tap, -1 for an empty window; raise Astray at the first tap outside its window."""
    flat = np.arange(prod(plan.source)).reshape(plan.source)
    where = np.full(plan.dest, -1)
    for i, cells in enumerate(_windows(plan.axes)):
        if cells:
            here = np.array(cells)[np.minimum(_view(taps, plan)[:, i], len(cells) - 1)]
            outer, inner = np.indices(here.shape)
            _view(where, plan)[:, i] = _view(flat, plan)[outer, here, inner]
            _view(where, plan)[:, i][_view(taps, plan)[:, i] >= len(cells)] = -2
    if (where == -2).any():
        raise Astray(int(np.argmax(where == -2)))
    return where


def pick(plan: Plan, v: Array, taps: Array) -> Array:
    """Read at the taps: out[i] = v at tap i of window i; 0 for an empty window.

    Parameters
    ----------
    plan : Plan
        The windows.
    v : ndarray
        The array to read, of shape `plan.source`.
    taps : ndarray of unsigned int
        The number of the chosen cell within its window, of shape `plan.dest`.

    Returns
    -------
    ndarray
        The result, of shape `plan.dest`.

    Raises
    ------
    Astray
        If a tap lies outside its window.

    Examples
    --------
    >>> import numpy as np
    >>> from poolgrad.reference import pick
    >>> from poolgrad.windows import Axis, Plan
    >>> plan = Plan((5,), {0: Axis(5, [0, 2], [3, 5])})  # two windows: cells 0 to 2, cells 2 to 4
    >>> v = np.array([10.0, 20, 30, 40, 50])
    >>> pick(plan, v, np.array([1, 1], np.uint8)).tolist()
    [20.0, 40.0]
    """
    where = _followed(plan, taps)
    return np.where(where < 0, np.zeros((), v.dtype), v.reshape(-1)[where] if v.size else np.zeros((), v.dtype))


def _add_at(shape: tuple[int, ...], where: Array, g: Array, once: bool) -> Array:
    """Add g at flat positions of an array of that shape, in order; with `once`, sum half types in float32."""
    wide = once and g.dtype.name in HALVES
    dx = np.zeros(prod(shape), np.float32 if wide else g.dtype)
    np.add.at(dx, where, g.astype(dx.dtype))
    return dx.astype(g.dtype).reshape(shape)


@np.errstate(all="ignore")
def place(plan: Plan, g: Array, taps: Array) -> Array:
    """Transpose `pick`: dx[j] = sum of g[i] over the windows i whose tap is j.

    Half types are summed in float32 and rounded once.

    Parameters
    ----------
    plan : Plan
        The windows.
    g : ndarray
        One number per window, of shape `plan.dest`.
    taps : ndarray of unsigned int
        The number of the chosen cell within its window, of shape `plan.dest`.

    Returns
    -------
    ndarray
        The result, of shape `plan.source`.

    Raises
    ------
    Astray
        If a tap lies outside its window.

    Examples
    --------
    >>> import numpy as np
    >>> from poolgrad.reference import place
    >>> from poolgrad.windows import Axis, Plan
    >>> plan = Plan((5,), {0: Axis(5, [0, 2], [3, 5])})  # two windows: cells 0 to 2, cells 2 to 4
    >>> place(plan, np.array([3.0, 6]), np.array([1, 1], np.uint8)).tolist()
    [0.0, 3.0, 0.0, 6.0, 0.0]
    """
    where = _followed(plan, taps)
    return _add_at(plan.source, where[where >= 0], g[where >= 0], once=True)


@np.errstate(all="ignore")
def route(plan: Plan, x: Array, g: Array, y: Array | None = None) -> Array:
    """Send gradients to the first maxima: dx[tap] += g[i], tap being the first maximum of window i.

    Parameters
    ----------
    plan : Plan
        The windows.
    x : ndarray
        The array to pool, of shape `plan.source`.
    g : ndarray
        One number per window, of shape `plan.dest`.
    y : ndarray, optional
        If given, it must be the pooled x.

    Returns
    -------
    ndarray
        The result, of shape `plan.source`.

    Raises
    ------
    Astray
        If `y` is given and is not the pooled x.

    Examples
    --------
    >>> import numpy as np
    >>> from poolgrad.reference import route
    >>> from poolgrad.windows import Axis, Plan
    >>> plan = Plan((5,), {0: Axis(5, [0, 2], [3, 5])})  # two windows: cells 0 to 2, cells 2 to 4
    >>> x = np.array([1.0, 4, 2, 4, 3])
    >>> route(plan, x, np.array([3.0, 6])).tolist()
    [0.0, 3.0, 0.0, 6.0, 0.0]
    """
    best, where = argmax(plan, x.size, np.int64, x)
    if y is not None:
        fine = (y == best) | (y == select(plan, Start.LOWEST, x)) | ((y != y) & (best != best))
        if x.dtype.kind not in "iu":  # a pool that flushes subnormals treats them as 0
            fine |= np.maximum(np.abs(y), np.abs(best)) < _info(x.dtype).smallest_normal
        where = np.where(fine, where, -1)  # scatter refuses -1
    return scatter(plan, 1, True, g, where)


@np.errstate(all="ignore")
def recall(plan: Plan, x: Array, y: Array, v: Array) -> Array:
    """Read at the maxima: out[i] = v at the first cell of window i where x equals y[i], else 0.

    Parameters
    ----------
    plan : Plan
        The windows.
    x : ndarray
        The array to pool, of shape `plan.source`.
    y : ndarray
        The maximum of each window, of shape `plan.dest`.
    v : ndarray
        The array to read, of shape `plan.source`.

    Returns
    -------
    ndarray
        The result, of shape `plan.dest`.

    Examples
    --------
    >>> import numpy as np
    >>> from poolgrad.reference import recall
    >>> from poolgrad.windows import Axis, Plan
    >>> plan = Plan((5,), {0: Axis(5, [0, 2], [3, 5])})  # two windows: cells 0 to 2, cells 2 to 4
    >>> x = np.array([1.0, 4, 2, 4, 3])
    >>> v = np.array([10.0, 20, 30, 40, 50])
    >>> recall(plan, x, np.array([4.0, 4]), v).tolist()
    [20.0, 40.0]
    """
    out = np.zeros(plan.dest, x.dtype)
    for i, cells in enumerate(_windows(plan.axes)):
        for j in cells[::-1]:
            hit = _view(x, plan)[:, j] == _view(y, plan)[:, i]
            _view(out, plan)[:, i][hit] = _view(v, plan)[:, j][hit]
    return out


def _absolute(plan: Plan, items: int, absolute: bool, index: Array) -> Array:
    """Return positions from the beginning of the array; raise Astray at the first that is outside."""
    total, where = prod(plan.source), index.reshape(-1).astype(np.int64)
    base = 0 if absolute else np.arange(where.size) // max(where.size // items, 1) * (total // items)
    fine = (where >= 0) & (where < total - base)
    if not fine.all():
        raise Astray(int(np.argmin(fine)))
    return where + base


@np.errstate(all="ignore")
def scatter(plan: Plan, items: int, absolute: bool, g: Array, index: Array, once: bool = False) -> Array:
    """Add at flat positions: dx[index[k]] += g[k].

    Parameters
    ----------
    plan : Plan
        The windows.
    items : int
        The number of images.
    absolute : bool
        True: positions count from the start of the array. False: from the start of their image.
    g : ndarray
        One number per window, of shape `plan.dest`.
    index : ndarray of int
        Flat positions in the source, of shape `plan.dest`.
    once : bool, default False
        True: sum half types in float32 and round once. False: round after each addition, as TensorFlow does.

    Returns
    -------
    ndarray
        The result, of shape `plan.source`.

    Raises
    ------
    Astray
        If a position lies outside the source.

    Examples
    --------
    >>> import numpy as np
    >>> from poolgrad.reference import scatter
    >>> from poolgrad.windows import Axis, Plan
    >>> plan = Plan((5,), {0: Axis(5, [0, 2], [3, 5])})  # two windows: cells 0 to 2, cells 2 to 4
    >>> scatter(plan, 1, True, np.array([3.0, 6]), np.array([1, 3])).tolist()
    [0.0, 3.0, 0.0, 6.0, 0.0]
    """
    return _add_at(plan.source, _absolute(plan, items, absolute, index), g.reshape(-1), once)


def gather(plan: Plan, items: int, absolute: bool, v: Array, index: Array) -> Array:
    """Read at flat positions: out[k] = v[index[k]].

    Parameters
    ----------
    plan : Plan
        The windows.
    items : int
        The number of images.
    absolute : bool
        True: positions count from the start of the array. False: from the start of their image.
    v : ndarray
        The array to read, of shape `plan.source`.
    index : ndarray of int
        Flat positions in the source, of shape `plan.dest`.

    Returns
    -------
    ndarray
        The result, of shape `plan.dest`.

    Raises
    ------
    Astray
        If a position lies outside the source.

    Examples
    --------
    >>> import numpy as np
    >>> from poolgrad.reference import gather
    >>> from poolgrad.windows import Axis, Plan
    >>> plan = Plan((5,), {0: Axis(5, [0, 2], [3, 5])})  # two windows: cells 0 to 2, cells 2 to 4
    >>> v = np.array([10.0, 20, 30, 40, 50])
    >>> gather(plan, 1, True, v, np.array([1, 3])).tolist()
    [20.0, 40.0]
    """
    return v.reshape(-1)[_absolute(plan, items, absolute, index)].reshape(plan.dest)


_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


class Philox:
    """The generator of fractional pooling: a Philox-4x32-10 generator: a counter, encrypted in ten rounds. Each request starts at a new block of four words.

    >>> Philox(1, 2).words(5).tolist()
    [3878945999, 2364392915, 1057429302, 168492509, 3082076531]
    """

    def __init__(self, seed: int, seed2: int) -> None:
        self._key = seed % 2**64
        self._stream = seed2 % 2**64
        self._block = 0

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """Return the next `count` 32-bit words."""
        blocks = -(-count // 4)
        low = np.arange(self._block, self._block + blocks, dtype=np.uint64)
        self._block += blocks
        c = [low & _LOW, low >> _SHIFT, np.full_like(low, self._stream % 2**32), np.full_like(low, self._stream >> 32)]
        k0, k1 = self._key % 2**32, self._key >> 32
        for _ in range(10):
            p, q = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
            c = [(q >> _SHIFT) ^ c[1] ^ np.uint64(k0), q & _LOW, (p >> _SHIFT) ^ c[3] ^ np.uint64(k1), p & _LOW]
            k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
        return np.stack(c, axis=1).reshape(-1)[:count]


def sequence(n: int, m: int, pseudo_random: bool, source: Philox) -> npt.NDArray[np.int64]:
    """Draw the borders of m windows over n cells: the windows of fractional pooling.

    Windows have n//m or n//m + 1 cells, in random order; or their borders follow the ratio n/m from a random offset on.

    Parameters
    ----------
    n : int
        The number of cells.
    m : int
        The number of windows, 1 to n.
    pseudo_random : bool
        Let the borders follow the ratio.
    source : Philox
        The generator. Draw the axes of an array one after the other from one generator.

    Returns
    -------
    ndarray of int64
        The borders, from 0 to n.

    Examples
    --------
    >>> from poolgrad.reference import Philox, sequence
    >>> source = Philox(1, 2)
    >>> sequence(10, 6, False, source).tolist(), sequence(7, 4, False, source).tolist()
    ([0, 1, 3, 4, 6, 8, 10], [0, 2, 4, 6, 7])
    """
    lengths = _pseudo_random(n, m, source) if pseudo_random else _shuffled(n, m, source)
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _shuffled(n: int, m: int, source: Philox) -> list[int]:
    k, longer = divmod(n, m)
    lengths = [k + 1] * longer + [k] * (m - longer)
    for i, word in enumerate(source.words(m)[: m - 1].tolist()):
        j = i + word % (m - i)
        lengths[i], lengths[j] = lengths[j], lengths[i]
    return lengths


def _pseudo_random(n: int, m: int, source: Philox) -> list[int]:
    w0, w1 = source.words(2).tolist()
    r = ((w0 & 0xFFFFF) * 2**32 + w1) / 2**52
    k, alpha = n // m, n / m
    u = r * min((k + 2) / alpha - 1, (n + 1 - k) / alpha - (m - 1))
    borders = [1, *(ceil(alpha * (i + u)) for i in range(1, m)), n + 1]
    return [b - a for a, b in pairwise(borders)]
