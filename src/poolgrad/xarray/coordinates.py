"""Compute the coordinates of a pooled array from the coordinates of the cells of each window."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from .._common.errors import ArgumentErrors, short_repr
from .windows import Along, Cells, Named, arguments

Rule = str | Callable[..., Any]
PLACES: dict[str, Callable[[Along], Cells]] = {
    "left": lambda windows: windows.axis.start,
    "right": lambda windows: windows.last,
    "middle": lambda windows: windows.middle,
}
COORDS = ("center", *PLACES)
SYNONYMS = {"center": "mean", "first": "left", "last": "right"}
REPEATABLE = ("min", "max", "any", "all")  # to take a cell twice changes nothing
FUNCTIONS = ("mean", "median", "sum", "prod", "std", "var", "count", *REPEATABLE)
_MANY = 1 << 24  # cells of windows that are laid out at once


def is_lazy(data: Any) -> bool:
    """Return True for a Dask array; does not import Dask."""
    return hasattr(data, "__dask_graph__")


def rules(problems: ArgumentErrors, obj: Any, coords: Any, coord_func: Any) -> dict[Hashable, Rule]:
    """Return the rule of each coordinate: that of `coord_func`, which is read as coarsen reads it, else that of `coords`."""
    if not isinstance(coords, str) or coords not in COORDS:
        problems.fail("coords", short_repr(coords), " or ".join(map(repr, COORDS)))
    found: dict[Hashable, Rule] = dict.fromkeys(obj.coords, SYNONYMS.get(coords, coords))
    if coord_func is None:
        return found
    if not isinstance(coord_func, Mapping):
        coord_func = dict.fromkeys(obj.dims, coord_func)
    for name, given in coord_func.items():
        rule = SYNONYMS.get(given, given) if isinstance(given, str) else given
        if not callable(rule) and not (isinstance(rule, str) and rule in (*FUNCTIONS, *PLACES)):
            words = ", ".join(map(repr, (*FUNCTIONS, *SYNONYMS, *PLACES)))
            problems.fail("coord_func", short_repr(given), f"a function f(cells, axis=...), or one of {words}")
        if name not in obj.coords and name not in obj.dims:
            problems.fail("coord_func", f"the coordinate {short_repr(name)}", f"some of {short_repr(list(obj.coords))}")
        found[name] = rule
    return found


def pooled_coordinate(problems: ArgumentErrors, name: Hashable, variable: Any, windows: Named, rule: Rule) -> Any:
    """Return a coordinate of a pooled array, without attributes."""
    along = {dim: windows[dim] for dim in variable.dims if dim in windows}
    variable = variable.isel({dim: slice(w.skip, None) for dim, w in along.items() if w.skip})
    if variable.size == 0 or not all(len(w.axis) for w in along.values()):
        rule = "left"  # there is no cell to compute a label from
    if isinstance(rule, str) and rule in PLACES:
        return variable.isel({dim: PLACES[rule](w) for dim, w in along.items()})
    try:
        return _reduced(variable.to_base_variable(), along, rule)
    except Exception as error:
        word = rule if isinstance(rule, str) else getattr(rule, "__name__", short_repr(rule))
        got = f"{word} for coordinate {name!r} of dtype {variable.dtype} ({type(error).__name__}: {error})"
        wanted = f"a function of such cells, or coord_func={{{name!r}: 'left'}}, the first cell of each window"
        problems.fail("coord_func", got, wanted, TypeError)


class _Windows(NamedTuple):
    """Some windows along one dimension: their cells, and the cells of a whole window that the left edge cut off."""

    start: Cells
    counts: Cells
    cut: Cells
    step: int
    widest: int  # the number of cells of the longest of all windows

    @classmethod
    def of(cls, along: Along) -> _Windows:
        axis = along.axis
        widest = int(axis.count.max(initial=1))
        return cls(axis.start, axis.count, np.minimum(along.cut, widest - axis.count), axis.step, widest)

    def part(self, some: slice) -> _Windows:
        return self._replace(start=self.start[some], counts=self.counts[some], cut=self.cut[some])

    def _numbers(self) -> Cells:
        """Return a row per window: the numbers of its cells, where cells that edges cut off have numbers outside it."""
        return np.arange(self.widest) - self.cut[:, None]

    def cells(self) -> Cells:
        """Return the cells of each window, one row per window; the nearest cell of the window stands for those cut off."""
        return self.start[:, None] + np.clip(self._numbers(), 0, self.counts[:, None] - 1) * self.step

    def true(self) -> Any:
        """Return which entries of `cells` are cells of the window; None if all are."""
        if (self.counts == self.widest).all():
            return None
        numbers = self._numbers()
        return (numbers >= 0) & (numbers < self.counts[:, None])


def _reduced(variable: Any, along: Named, rule: Rule) -> Any:
    """Return rule(cells) for each window."""
    if rule == "mean" and is_lazy(variable.data) and variable.dtype.kind in "iuf":
        from .. import dask as lazy

        return xr.Variable(variable.dims, lazy.avg_pool(variable.data, **arguments(along, variable.dims), nan="ignore"))
    return _in_parts(variable, {dim: _Windows.of(w) for dim, w in along.items()}, rule)


def _in_parts(variable: Any, windows: Mapping[Hashable, _Windows], rule: Rule) -> Any:
    """Return rule(cells) for each window; take as many windows at once as memory is meant for, if they overlap."""
    sizes = [len(windows[d].start) * windows[d].widest if d in windows else variable.sizes[d] for d in variable.dims]
    longest = max(windows, key=lambda dim: len(windows[dim].start))
    many = len(windows[longest].start)
    if prod(sizes) <= max(_MANY, 2 * variable.size) or many < 2 or is_lazy(variable.data):
        return _laid_out(variable, windows, rule)
    halves = slice(0, many // 2), slice(many // 2, many)
    parts = [_in_parts(variable, {**windows, longest: windows[longest].part(half)}, rule) for half in halves]
    axis = variable.dims.index(longest)
    return xr.Variable(variable.dims, np.concatenate([part.data for part in parts], axis))


def _laid_out(variable: Any, windows: Mapping[Hashable, _Windows], rule: Rule) -> Any:
    """Return rule(cells), with the cells of each window along an axis of their own, as coarsen lays them out."""
    cells = {dim: some.cells() for dim, some in windows.items()}
    taken = {dim: _consecutive(rows.ravel()) for dim, rows in cells.items()}
    laid = variable.isel(taken)
    if not is_lazy(laid.data) and not all(isinstance(some, slice) for some in taken.values()):
        order: Any = "F" if variable.data.flags.fnc else "C"  # the order of a sum depends on the layout
        laid = xr.Variable(laid.dims, np.asarray(laid.data, order=order))
    for dim, some in windows.items():
        true = None if rule in REPEATABLE else some.true()
        laid = laid if true is None else laid.where(xr.Variable(dim, true.ravel()))
    shape: list[int] = []
    dims: list[Hashable] = []
    for dim in variable.dims:
        shape.extend(cells[dim].shape if dim in cells else (laid.sizes[dim],))
        dims.extend((dim, ("cells of", dim)) if dim in cells else (dim,))
    data = laid.data.reshape(shape)
    inner = [axis for axis, dim in enumerate(dims) if dim not in variable.dims]
    if isinstance(rule, str):
        return getattr(xr.Variable(dims, data), rule)([dims[axis] for axis in inner])
    return xr.Variable(variable.dims, rule(data, axis=tuple(inner)))


def _consecutive(cells: Cells) -> Cells | slice:
    """Return cells that follow each other as a slice, which takes no copy."""
    first = int(cells[0])
    return slice(first, first + len(cells)) if (np.diff(cells) == 1).all() else cells
