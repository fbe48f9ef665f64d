"""Run the operators on the memory of tensors, through the NumPy API; torch cannot trace this code.

The functions take tensors and check everything. `choice`, `average` and `places` return fast functions of arrays, for some
plans and dtypes. If one of these raises `UNREADABLE`, the caller uses `choose`, `apply` or `positions` instead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch

import poolgrad as pg

from .._kernels import native
from .._kernels.native import PlaneWindows as PlaneWindows
from .._kernels.native import choose_planes as choose_planes
from .._kernels.native import place_planes as place_planes
from .._ops.semantics import Mean, Share, Start
from .._pooling.operators import dilated as dilated
from .._pooling.operators import per_window
from .._windows.plan import uncut
from .._windows.plan_cache import SHORT, cache_plan
from ._tensors import Sizes, Tensor, TorchWindows, axes_in_memory, plan, rows_of, tensor, view


def choose(x: Tensor, windows: Tensor | None, least: bool, geometry: TorchWindows) -> tuple[Tensor, Tensor]:
    """Return the best cell of each window, and its number in the window."""
    operator: Any
    y, operator = (pg.min_operator if least else pg.max_operator)(view(x, geometry), plan(x.shape, geometry, windows))
    taps = operator.taps.astype(np.uint32 if geometry.wide else np.uint8, copy=False)
    taps = taps.view(np.int32) if geometry.wide else taps  # of which torch has all operators
    return tensor(y, geometry), tensor(taps, geometry)


def apply(
    v: Tensor,
    index: Tensor | None,
    windows: Tensor | None,
    kind: str,
    divisor: float,
    transposed: bool,
    source: Sizes,
    geometry: TorchWindows,
) -> Tensor:
    """Apply a linear operator from tensors of shape `source` to pooled ones, or its transpose, to v.

    The operator picks cells by "taps" or by positions ("add", "assign": what becomes of repeated ones in the transpose), or takes
    the mean over true cells ("mean"), over cells and padding ("padded"), or the sum over a number ("sum").
    """
    array = view(v, geometry)
    if kind in ("add", "assign"):
        assert index is not None
        if not array.size:  # no planes
            return v.new_zeros(tuple(source if transposed else index.shape))
        positions, items = index.contiguous().numpy(), int(np.prod(source[: len(source) - geometry.rank]))
        operator = pg.unpooling(positions, tuple(source), "sum" if kind == "add" else "assign", items).T
    elif kind == "taps":
        operator = _picking(index, windows, source, geometry)
    elif array.dtype.kind in "iub":
        return tensor(_whole_means(array, plan(source, geometry, windows), kind, divisor), geometry)
    else:
        operator = mean(tuple(source), windows, kind, divisor, geometry)
    return tensor((operator.T if transposed else operator)(array), geometry)


UNREADABLE = (ValueError, TypeError)  # NaN, memory that is not aligned, taps of another dtype or outside their windows

Kernel = Callable[[Any], Any]


class Choice(NamedTuple):
    """The shortest way to the best cells, to them and their taps, and to add numbers at their taps."""

    select: Kernel
    choose: Callable[[Any], tuple[Any, Any]]
    place: Callable[[Any, Any], Any]


def choice(windows: pg.Plan, dtype: torch.dtype, least: bool, geometry: TorchWindows) -> Choice | None:
    """Return the kernels of `choose` and of its transpose; None for windows or results that need the checks of the NumPy API."""
    cells = prod(windows.dest)
    if not chooses(dtype) or dilated(windows) or (cells > prod(windows.source) and cells > 2**24):
        return None
    flip = np.negative if dtype.is_floating_point else np.invert  # which turns the least into the best, and back
    select = partial(native.select, uncut(windows), Start.INFINITY, whole=True)

    def choose(array: Any) -> tuple[Any, Any]:
        y, taps = native.choose(windows, array, True)
        return y, taps.astype(np.uint32, copy=False).view(np.int32) if geometry.wide else taps

    def select_least(array: Any) -> Any:
        y = select(flip(array))
        return flip(y, y)

    def choose_least(array: Any) -> tuple[Any, Any]:
        y, taps = choose(flip(array))
        return flip(y, y), taps

    def place(g: Any, taps: Any) -> Any:
        own = taps.view(np.uint32).astype(native.tap_type(windows), copy=False) if geometry.wide else taps
        return native.place(windows, g, own)

    return Choice(select_least, choose_least, place) if least else Choice(select, choose, place)


def _pooled(windows: pg.Plan) -> list[tuple[int, pg.Axis]]:
    return [(d, axis) for d, axis in enumerate(windows.by_dimension) if axis is not None]


def chooses(dtype: torch.dtype) -> bool:
    """Return whether the core has maxima of a dtype."""
    return dtype is not torch.bool


def number(dtype: torch.dtype) -> np.dtype[Any]:
    """Return NumPy's name of a dtype."""
    return np.dtype(str(dtype).removeprefix("torch."))


class Average(NamedTuple):
    """The shortest way to take means, and to share numbers among the cells of their windows."""

    fold: Kernel
    spread: Kernel


def average(operator: Any, dtype: torch.dtype) -> Average | None:
    """Return the kernels of a mean and of its transpose; None for numbers or windows that need more than one call of the core."""
    made, by = operator.plan, operator.divisor
    half = dtype in (torch.float16, torch.bfloat16)
    if not dtype.is_floating_point or dilated(made) or (half and by is not None):  # halves are divided in a wider type
        return None
    if by is None:
        share = Share.QUOTIENT if half else Share.RECIPROCAL
        whole, parts = partial(native.spread_whole, made, share), partial(native.spread, made, share, False)
        return Average(partial(native.fold, made, Mean.ONCE), whole if made.whole else parts)
    total, spread = partial(native.fold, made, Mean.TOTAL), partial(native.spread, made, Share.WHOLE, False)
    own = number(dtype)
    rule, by = operator.rule(own), np.asarray(by, own)
    if rule is Mean.TOTAL:
        return Average(total, spread)

    def fold(v: Any) -> Any:
        sums = total(v)
        return np.divide(sums, by, sums)

    return Average(fold if rule is None else partial(native.fold, made, rule), lambda g: spread(g / by))


def places(windows: pg.Plan, geometry: TorchWindows) -> Kernel | None:
    """Return the function from taps to positions in their planes, from a table; None if the table is long."""
    axes = axes_in_memory(len(windows.source), geometry)
    pooled = dict(_pooled(windows))
    plane = pg.Plan([n if d in axes else 1 for d, n in enumerate(windows.source)], pooled)
    cells = prod(int(axis.count.max(initial=1)) for axis in pooled.values())
    if cells * prod(plane.dest) > SHORT:
        return None
    last = np.broadcast_to(per_window(plane, "count") - 1, plane.dest)
    taps = [np.minimum(t, last) for t in range(cells)]
    table = np.stack([pg.Taps(_picked(plane, t), axes).plane() for t in taps], -1)
    first = np.arange(0, table.size, cells).reshape(plane.dest)
    return lambda found: table.take(first + found)


def _picking(taps: Any, windows: Tensor | None, source: Sizes, geometry: TorchWindows) -> Any:
    array = view(taps, geometry)
    return _picked(plan(source, geometry, windows), array.view(np.uint32) if geometry.wide else array)


def _picked(windows: pg.Plan, taps: Any) -> Any:
    return pg.picking(windows, taps)


def mean(
    source: tuple[int, ...], windows: Tensor | None, kind: str, divisor: float, geometry: TorchWindows
) -> pg.Linear:
    """Return the operator of a mean or sum, as `apply` describes it."""
    if windows is None:
        return _known(source, geometry, kind, divisor)
    return averaging(plan(source, geometry, windows), kind, divisor)


def averaging(windows: pg.Plan, kind: str, divisor: float) -> pg.Linear:
    """Return the operator of a mean or sum over these windows."""
    return pg.averaging(windows, count_include_pad=kind == "padded", divisor=divisor if kind == "sum" else None)


@cache_plan(1024)
def _known(source: tuple[int, ...], geometry: TorchWindows, kind: str, divisor: float) -> pg.Linear:
    return averaging(plan(source, geometry, None), kind, divisor)


def _whole_means(array: Any, made: pg.Plan, kind: str, divisor: float) -> Any:
    """Return means of integers, exact and cut off toward zero, as torch does."""
    pooled = dict(_pooled(made))
    return pg.avg_pool(
        array,
        list(pooled.values()),
        axes=list(pooled),
        count_include_pad=kind == "padded",
        divisor=divisor if kind == "sum" else None,
        dtype=array.dtype,
        rounding="toward_zero",
    )


def positions(taps: Tensor, windows: Tensor | None, source: Sizes, geometry: TorchWindows) -> Tensor:
    """Return the positions of the taps in their planes: torch's indices."""
    picking = _picking(taps, windows, source, geometry)
    return tensor(pg.Taps(picking, axes_in_memory(len(source), geometry)).plane(), geometry)


def draw(seed: Tensor, lengths: Sizes, sizes: Sizes, pseudo_random: bool, overlapping: bool) -> Tensor:
    """Random windows for fractional pooling, as rows (start, stop), axis after axis."""
    pair = tuple(seed.tolist())
    axes = pg.fractional_windows(
        tuple(lengths), size=tuple(sizes), seed=pair, pseudo_random=pseudo_random, overlapping=overlapping
    )
    return rows_of(axes)
