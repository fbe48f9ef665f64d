"""Pool the variables of a DataArray or a Dataset, and give the result its labels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from .._common.errors import ArgumentErrors
from .._pooling import adaptive_global, pools
from .coordinates import Rule, is_lazy, pooled_coordinate
from .windows import Named, arguments


@dataclass(frozen=True)
class Pooling:
    """A call of a pool: its windows by dimension, its options, and how the result is labelled."""

    op: str
    windows: Named
    rules: Mapping[Hashable, Rule]
    problems: ArgumentErrors
    options: Mapping[str, Any] = field(default_factory=dict)
    keep_attrs: bool = True
    keep_dims: bool = True
    sizes: Mapping[Hashable, int] | None = None  # the numbers of windows of an adaptive pool

    # ---- arrays

    def _function(self, data: Any) -> Callable[..., Any]:
        if is_lazy(data):
            from .. import dask as lazy

            found: Callable[..., Any] = getattr(lazy, self.op)
            return found
        if not isinstance(data, np.ndarray):
            self.problems.fail("x", f"data of type {type(data).__name__}", "a NumPy or a Dask array", TypeError)
        return getattr(pools, self.op, None) or getattr(adaptive_global, self.op)

    def _arguments(self, dims: tuple[Hashable, ...]) -> dict[str, Any]:
        """Return the window arguments of the pool of an array with these dimensions."""
        words = arguments(self.windows, dims)
        if self.op.startswith("global_"):
            return {"axes": words["axes"]}
        if self.sizes is not None:
            return {"axes": words["axes"], "size": [self.sizes[dim] for dim in dims if dim in self.windows]}
        return words

    def applies(self, variable: Any) -> bool:
        """Return True if a variable has a pooled dimension."""
        return any(dim in self.windows for dim in variable.dims)

    def variables(self, variable: Any) -> list[Any]:
        """Return the pooled variable, and its taps if the options ask for them."""
        dims = tuple(variable.dims)
        skips = {dim: slice(w.skip, None) for dim in dims if (w := self.windows.get(dim)) and w.skip}
        data = (variable.isel(skips) if skips else variable).data
        made = self._function(data)(data, **self._arguments(dims), **self.options)
        if self.options.get("return_taps"):
            values, taps = made
            arrays = [values, taps if is_lazy(taps) else np.array(taps.values)]
        else:
            arrays = [made]
        found = [xr.Variable(dims, array) for array in arrays]
        if self.keep_attrs:
            found[0].attrs = dict(variable.attrs)
        gone = {dim: 0 for dim in dims if dim in self.windows}
        return found if self.keep_dims else [each.isel(gone) for each in found]

    # ---- labels

    def coordinates(self, obj: Any, own: Mapping[Hashable, Any]) -> Any:
        """Return the coordinates of the result; `own` are variables that are coordinates of themselves."""
        variables: dict[Hashable, Any] = {}
        given, renewed = dict(obj.xindexes.items()), []
        for name, variable in obj.coords.variables.items():
            if not self.applies(variable):
                variables[name] = variable
            elif self.keep_dims:
                self._check_index(given, name)
                made = own.get(name)
                if made is None:
                    made = pooled_coordinate(self.problems, name, variable, self.windows, self.rules[name])
                attrs = dict(variable.attrs) if self.keep_attrs else {}
                variables[name] = xr.Variable(made.dims, made, attrs)
                renewed += [name] if name in given else []
        fresh = xr.Coordinates({name: variables[name] for name in renewed})  # which makes indexes
        variables.update(fresh.variables)
        indexes = {name: index for name, index in given.items() if name in variables} | dict(fresh.xindexes.items())
        return xr.Coordinates({name: variables[name] for name in obj.coords if name in variables}, indexes=indexes)

    def _check_index(self, indexes: Mapping[Hashable, Any], name: Hashable) -> None:
        """Refuse an index over several coordinates: no function of labels makes one from its windows."""
        index = indexes.get(name)
        shared = [other for other in indexes if indexes[other] is index]
        if index is not None and len(shared) > 1:
            got = f"a {type(index).__name__} over {shared}"
            self.problems.fail("coords", got, f"an index per coordinate: reset_index or drop_indexes({shared}) first")

    # ---- objects

    def data_array(self, obj: Any) -> Any:
        """Return the pooled DataArray, or a pair of it and its taps."""
        found = self.variables(obj.variable)
        coords = self.coordinates(obj, {obj.name: found[0]} if obj.name in obj.coords else {})
        names = (obj.name, "taps" if obj.name is None else f"{obj.name}_taps")
        made = [
            xr.DataArray(each, coords, each.dims, name)  # from the array of a variable, xarray would take Dask's name
            for each, name in zip(found, names, strict=False)
        ]
        return made[0] if len(made) == 1 else tuple(made)

    def dataset(self, obj: Any) -> Any:
        """Return the Dataset of pooled variables; each is pooled over those pooled dimensions that it has."""
        made = {}
        for name, array in obj.data_vars.items():
            variable = array.variable
            if self.applies(variable):
                try:
                    variable = self.variables(variable)[0]
                except Exception as error:
                    error.add_note(f"This is about the variable {name!r} of a Dataset.")
                    raise
            elif not self.keep_attrs:
                variable = xr.Variable(variable.dims, variable.data)
            made[name] = variable
        return xr.Dataset(made, self.coordinates(obj, {}), obj.attrs if self.keep_attrs else None)
