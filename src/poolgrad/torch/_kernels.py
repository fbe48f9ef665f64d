"""Run the operators on the memory of tensors, through the NumPy API; torch cannot trace this code."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import poolgrad as pg

from .._windows.plan_cache import cache_plan
from ._tensors import Sizes, Tensor, TorchWindows, axes_in_memory, plan, tensor, view


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
    elif windows is None:
        operator = _known(tuple(source), geometry, kind, divisor)
    else:
        operator = _averaging(plan(source, geometry, windows), kind, divisor)
    return tensor((operator.T if transposed else operator)(array), geometry)


def _picking(taps: Any, windows: Tensor | None, source: Sizes, geometry: TorchWindows) -> Any:
    array = view(taps, geometry)
    return pg.picking(plan(source, geometry, windows), array.view(np.uint32) if geometry.wide else array)


def _averaging(windows: pg.Plan, kind: str, divisor: float) -> pg.Linear:
    return pg.averaging(windows, count_include_pad=kind == "padded", divisor=divisor if kind == "sum" else None)


@cache_plan(1024)
def _known(source: tuple[int, ...], geometry: TorchWindows, kind: str, divisor: float) -> pg.Linear:
    return _averaging(plan(source, geometry, None), kind, divisor)


def _whole_means(array: Any, made: pg.Plan, kind: str, divisor: float) -> Any:
    """Return means of integers, exact and cut off toward zero, as torch does."""
    pooled = {d: axis for d, axis in enumerate(made.by_dimension) if axis is not None}
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
    return torch.from_numpy(np.concatenate([np.stack([axis.start, axis.stop], 1) for axis in axes]))
