"""The accessor `pool` of DataArrays and Datasets: every pool, by the names of dimensions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Generic, TypeVar

import xarray as xr
from numpy.typing import DTypeLike

from .._common.errors import ArgumentErrors, short_repr
from .._pooling.fractional import fractional_windows
from .._pooling.types import Nan, Rounding, Ties
from .coordinates import rules
from .results import Pooling
from .windows import Along, by_name, dims_of, everything, shares, sliding

Labelled = TypeVar("Labelled", xr.DataArray, xr.Dataset)
Method = TypeVar("Method", bound=Callable[..., Any])

_WINDOWS = """window : mapping of dimension to int, Axis or pairs, optional
            The length of the windows along each pooled dimension, or their boundaries: an `Axis`, or pairs (start, stop).
        stride : int or mapping, optional
            The step from one window to the next. Default: the window.
        padding : {"valid", "same", "same_lower"}, int, pair or mapping, optional
            The cells by which windows extend past both edges, or a pair (before, after). Padding moves the windows and has no
            cells. Default: "valid", which is 0.
        dilation : int or mapping, optional
            The distance between neighbouring cells of a window. Default: 1.
        boundary : {"exact", "trim", "pad"} or mapping, optional
            The rule for cells that the last whole window does not reach: raise an error (default), leave them out, or add a window
            over them that the edge cuts. "same" padding needs no rule.
        side : {"left", "right"} or mapping, optional
            The end of the dimension at which the first window begins. Default: "left"."""

_LABELS = """coords : {"center", "left", "right", "middle"}, optional
            The coordinates of the result: the mean of those of the cells of a window (default), that of its first, last or middle
            cell. "middle" ignores cuts at edges: windows of stride 1 with "same" padding keep all coordinates.
        coord_func : str, callable, or mapping of coordinate to them, optional
            The function of single coordinates instead of `coords`, as `DataArray.coarsen` has it: the name of a reduction, one of
            the words of `coords`, or a function f(cells, axis=...). One for all goes to the coordinates of dimensions.
        keep_attrs : bool, optional
            Keep attributes. Default: True."""

_NAN = """nan : {"ignore", "propagate", "tf"}, optional
            The rule for NaN, as in `poolgrad.max_pool`. Default: "ignore", as xarray skips NaN."""

_MORE = """**window_kwargs
            The windows by keywords instead of `window`."""

_RETURNS = """Returns
        -------
        DataArray or Dataset
            The pooled object. Dask arrays stay lazy. A variable of a Dataset is pooled over those of the dimensions that it has.

        Raises
        ------
        TypeError
            If an argument or the dtype of a variable has a wrong type, or a coordinate has no such function.
        ValueError
            If a dimension is not there, windows do not fit, or an option has an unknown value."""


def _documented(method: Method) -> Method:
    """Insert the texts that docstrings share."""
    text = method.__doc__ or ""
    for word, shared in (
        ("WINDOWS", _WINDOWS),
        ("LABELS", _LABELS),
        ("NAN", _NAN),
        ("MORE", _MORE),
        ("RETURNS", _RETURNS),
    ):
        text = text.replace(f"<{word}>", shared)
    method.__doc__ = text
    return method


class _Pools(Generic[Labelled]):
    """The pools of a labelled object."""

    def __init__(self, obj: Labelled) -> None:
        self._obj = obj

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {dict(self._obj.sizes)}>"

    def _finish(self, pooling: Pooling) -> Labelled:
        raise NotImplementedError

    def _pool(
        self,
        op: str,
        problems: ArgumentErrors,
        windows: Mapping[Hashable, Along],
        labels: tuple[Any, Any, Any],
        options: Mapping[str, Any],
        **more: Any,
    ) -> Labelled:
        coords, coord_func, keep_attrs = labels
        if not isinstance(keep_attrs, bool):
            problems.fail("keep_attrs", short_repr(keep_attrs), "True or False", TypeError)
        found = rules(problems, self._obj, coords, coord_func)
        return self._finish(Pooling(op, windows, found, problems, options, keep_attrs, **more))

    def _slide(
        self,
        name: str,
        op: str,
        window: Any,
        window_kwargs: Mapping[str, Any],
        geometry: tuple[Any, ...],
        labels: tuple[Any, Any, Any],
        **options: Any,
    ) -> Labelled:
        problems = ArgumentErrors(f"pool.{name}")
        lengths = by_name(problems, "window", self._obj.sizes, window, window_kwargs)
        stride, padding, dilation, boundary, side = geometry
        windows = sliding(
            problems,
            self._obj.sizes,
            lengths,
            stride=stride,
            padding=padding,
            dilation=dilation,
            boundary=boundary,
            side=side,
        )
        return self._pool(op, problems, windows, labels, options)

    # ---- windows that slide

    @_documented
    def max(
        self,
        window: Mapping[Any, Any] | None = None,
        *,
        stride: Any = None,
        padding: Any = "valid",
        dilation: Any = 1,
        boundary: Any = "exact",
        side: Any = "left",
        coords: str = "center",
        coord_func: Any = None,
        nan: Nan = "ignore",
        ties: Ties = "first",
        return_taps: bool = False,
        keep_attrs: bool = True,
        **window_kwargs: Any,
    ) -> Any:
        """Max pooling: the largest cell of each window.

        Parameters
        ----------
        <WINDOWS>
        <LABELS>
        <NAN>
        ties : {"first", "last"}, optional
            The cell that taps name if several are the largest. Default: "first".
        return_taps : bool, optional
            Return a pair: the pooled DataArray, and a DataArray with the number of the chosen cell of each window, counted row by
            row. Not for Datasets. Default: False.
        <MORE>

        <RETURNS>

        Examples
        --------
        >>> import xarray as xr
        >>> import poolgrad.xarray
        >>> x = xr.DataArray([[1, 2, 5, 0], [4, 3, 0, 6]], dims=("y", "x"), coords={"x": [0.5, 1.5, 2.5, 3.5]})
        >>> y = x.pool.max({"x": 2})
        >>> y.values.tolist(), y.x.values.tolist()
        ([[2, 5], [4, 6]], [1.0, 3.0])
        """
        geometry, labels = (stride, padding, dilation, boundary, side), (coords, coord_func, keep_attrs)
        return self._slide(
            "max", "max_pool", window, window_kwargs, geometry, labels, nan=nan, ties=ties, return_taps=return_taps
        )

    @_documented
    def min(
        self,
        window: Mapping[Any, Any] | None = None,
        *,
        stride: Any = None,
        padding: Any = "valid",
        dilation: Any = 1,
        boundary: Any = "exact",
        side: Any = "left",
        coords: str = "center",
        coord_func: Any = None,
        nan: Nan = "ignore",
        ties: Ties = "first",
        return_taps: bool = False,
        keep_attrs: bool = True,
        **window_kwargs: Any,
    ) -> Any:
        """Min pooling: the least cell of each window.

        Parameters
        ----------
        <WINDOWS>
        <LABELS>
        <NAN>
        ties : {"first", "last"}, optional
            The cell that taps name if several are the least. Default: "first".
        return_taps : bool, optional
            Return a pair: the pooled DataArray, and a DataArray with the number of the chosen cell of each window, counted row by
            row. Not for Datasets. Default: False.
        <MORE>

        <RETURNS>
        """
        geometry, labels = (stride, padding, dilation, boundary, side), (coords, coord_func, keep_attrs)
        return self._slide(
            "min", "min_pool", window, window_kwargs, geometry, labels, nan=nan, ties=ties, return_taps=return_taps
        )

    @_documented
    def mean(
        self,
        window: Mapping[Any, Any] | None = None,
        *,
        stride: Any = None,
        padding: Any = "valid",
        dilation: Any = 1,
        boundary: Any = "exact",
        side: Any = "left",
        coords: str = "center",
        coord_func: Any = None,
        nan: Nan = "ignore",
        count_include_pad: bool = False,
        divisor: float | None = None,
        dtype: DTypeLike | None = None,
        rounding: Rounding = "nearest",
        keep_attrs: bool = True,
        **window_kwargs: Any,
    ) -> Labelled:
        """Average pooling: the mean of each window. `avg` is the same.

        Parameters
        ----------
        <WINDOWS>
        <LABELS>
        <NAN>
        count_include_pad, divisor, dtype, rounding : optional
            As in `poolgrad.avg_pool`.
        <MORE>

        <RETURNS>
        """
        geometry, labels = (stride, padding, dilation, boundary, side), (coords, coord_func, keep_attrs)
        options = {"count_include_pad": count_include_pad, "divisor": divisor, "dtype": dtype, "rounding": rounding}
        return self._slide("mean", "avg_pool", window, window_kwargs, geometry, labels, nan=nan, **options)

    avg = mean

    @_documented
    def sum(
        self,
        window: Mapping[Any, Any] | None = None,
        *,
        stride: Any = None,
        padding: Any = "valid",
        dilation: Any = 1,
        boundary: Any = "exact",
        side: Any = "left",
        coords: str = "center",
        coord_func: Any = None,
        nan: Nan = "ignore",
        dtype: DTypeLike | None = None,
        keep_attrs: bool = True,
        **window_kwargs: Any,
    ) -> Labelled:
        """Sum pooling: the sum of each window.

        Parameters
        ----------
        <WINDOWS>
        <LABELS>
        <NAN>
        dtype : optional
            As in `poolgrad.sum_pool`.
        <MORE>

        <RETURNS>
        """
        geometry, labels = (stride, padding, dilation, boundary, side), (coords, coord_func, keep_attrs)
        return self._slide("sum", "sum_pool", window, window_kwargs, geometry, labels, nan=nan, dtype=dtype)

    @_documented
    def lp(
        self,
        window: Mapping[Any, Any] | None = None,
        *,
        p: float = 2,
        stride: Any = None,
        padding: Any = "valid",
        dilation: Any = 1,
        boundary: Any = "exact",
        side: Any = "left",
        coords: str = "center",
        coord_func: Any = None,
        keep_attrs: bool = True,
        **window_kwargs: Any,
    ) -> Labelled:
        """Norm pooling: the p-norm of each window. NaN propagates.

        Parameters
        ----------
        <WINDOWS>
        <LABELS>
        p : float, optional
            The power. Default: 2.
        <MORE>

        <RETURNS>
        """
        geometry, labels = (stride, padding, dilation, boundary, side), (coords, coord_func, keep_attrs)
        return self._slide("lp", "lp_pool", window, window_kwargs, geometry, labels, p=p)

    # ---- a given number of windows

    def _share(self, name: str, op: str, size: Any, given: Mapping[str, Any], labels: Any, **options: Any) -> Labelled:
        problems = ArgumentErrors(f"pool.{name}")
        sizes = by_name(problems, "size", self._obj.sizes, size, given)
        windows = shares(problems, self._obj.sizes, sizes)
        return self._pool(op, problems, windows, labels, options, sizes=sizes)

    @_documented
    def adaptive_max(
        self,
        size: Mapping[Any, int] | None = None,
        *,
        coords: str = "center",
        coord_func: Any = None,
        nan: Nan = "ignore",
        ties: Ties = "first",
        return_taps: bool = False,
        keep_attrs: bool = True,
        **size_kwargs: int,
    ) -> Any:
        """Max pooling to a given number of windows per dimension.

        Parameters
        ----------
        size : mapping of dimension to int, optional
            The number of windows along each pooled dimension.
        <LABELS>
        <NAN>
        ties, return_taps : optional
            As in `max`.
        **size_kwargs
            The numbers by keywords instead of `size`.

        <RETURNS>
        """
        options = {"nan": nan, "ties": ties, "return_taps": return_taps}
        labels = (coords, coord_func, keep_attrs)
        return self._share("adaptive_max", "adaptive_max_pool", size, size_kwargs, labels, **options)

    @_documented
    def adaptive_mean(
        self,
        size: Mapping[Any, int] | None = None,
        *,
        coords: str = "center",
        coord_func: Any = None,
        nan: Nan = "ignore",
        dtype: DTypeLike | None = None,
        rounding: Rounding = "nearest",
        keep_attrs: bool = True,
        **size_kwargs: int,
    ) -> Labelled:
        """Average pooling to a given number of windows per dimension. `adaptive_avg` is the same.

        Parameters
        ----------
        size : mapping of dimension to int, optional
            The number of windows along each pooled dimension.
        <LABELS>
        <NAN>
        dtype, rounding : optional
            As in `poolgrad.avg_pool`.
        **size_kwargs
            The numbers by keywords instead of `size`.

        <RETURNS>
        """
        options = {"nan": nan, "dtype": dtype, "rounding": rounding}
        labels = (coords, coord_func, keep_attrs)
        return self._share("adaptive_mean", "adaptive_avg_pool", size, size_kwargs, labels, **options)

    adaptive_avg = adaptive_mean

    # ---- windows drawn at random

    def _draw(
        self, name: str, op: str, ratio: Any, given: Mapping[str, Any], drawing: Any, labels: Any, **options: Any
    ) -> Labelled:
        problems = ArgumentErrors(f"pool.{name}")
        ratios = by_name(problems, "ratio", self._obj.sizes, ratio, given)
        dims = [dim for dim in self._obj.sizes if dim in ratios]
        lengths = [self._obj.sizes[dim] for dim in dims]
        axes = fractional_windows(lengths, [ratios[dim] for dim in dims], **drawing)
        windows = {dim: Along(axis.length, axis) for dim, axis in zip(dims, axes, strict=True)}
        return self._pool(op, problems, windows, labels, options)

    @_documented
    def fractional_max(
        self,
        ratio: Mapping[Any, float] | None = None,
        *,
        seed: Any = None,
        pseudo_random: bool = False,
        overlapping: bool = False,
        coords: str = "center",
        coord_func: Any = None,
        nan: Nan = "ignore",
        ties: Ties = "first",
        return_taps: bool = False,
        keep_attrs: bool = True,
        **ratio_kwargs: float,
    ) -> Any:
        """Max pooling over windows that are drawn at random, the same for all variables.

        Parameters
        ----------
        ratio : mapping of dimension to float, optional
            The mean length of the windows along each pooled dimension, at least 1.
        seed, pseudo_random, overlapping : optional
            As in `poolgrad.fractional_windows`, which draws the windows in the order of the dimensions.
        <LABELS>
        <NAN>
        ties, return_taps : optional
            As in `max`.
        **ratio_kwargs
            The ratios by keywords instead of `ratio`.

        <RETURNS>
        """
        drawing = {"seed": seed, "pseudo_random": pseudo_random, "overlapping": overlapping}
        options = {"nan": nan, "ties": ties, "return_taps": return_taps}
        labels = (coords, coord_func, keep_attrs)
        return self._draw("fractional_max", "max_pool", ratio, ratio_kwargs, drawing, labels, **options)

    @_documented
    def fractional_mean(
        self,
        ratio: Mapping[Any, float] | None = None,
        *,
        seed: Any = None,
        pseudo_random: bool = False,
        overlapping: bool = False,
        coords: str = "center",
        coord_func: Any = None,
        nan: Nan = "ignore",
        dtype: DTypeLike | None = None,
        rounding: Rounding = "nearest",
        keep_attrs: bool = True,
        **ratio_kwargs: float,
    ) -> Labelled:
        """Average pooling over windows that are drawn at random, the same for all variables. `fractional_avg` is the same.

        Parameters
        ----------
        ratio : mapping of dimension to float, optional
            The mean length of the windows along each pooled dimension, at least 1.
        seed, pseudo_random, overlapping : optional
            As in `poolgrad.fractional_windows`, which draws the windows in the order of the dimensions.
        <LABELS>
        <NAN>
        dtype, rounding : optional
            As in `poolgrad.avg_pool`.
        **ratio_kwargs
            The ratios by keywords instead of `ratio`.

        <RETURNS>
        """
        drawing = {"seed": seed, "pseudo_random": pseudo_random, "overlapping": overlapping}
        options = {"nan": nan, "dtype": dtype, "rounding": rounding}
        labels = (coords, coord_func, keep_attrs)
        return self._draw("fractional_mean", "avg_pool", ratio, ratio_kwargs, drawing, labels, **options)

    fractional_avg = fractional_mean

    # ---- one window

    def _whole(self, name: str, op: str, dims: Any, keepdims: bool, labels: Any, **options: Any) -> Labelled:
        problems = ArgumentErrors(f"pool.{name}")
        if not isinstance(keepdims, bool):
            problems.fail("keepdims", short_repr(keepdims), "True or False", TypeError)
        windows = everything(problems, self._obj.sizes, dims_of(problems, self._obj.sizes, dims))
        return self._pool(op, problems, windows, labels, options, keep_dims=keepdims)

    @_documented
    def global_max(
        self,
        dims: Hashable | Iterable[Hashable] | None = None,
        *,
        keepdims: bool = True,
        coords: str = "center",
        coord_func: Any = None,
        nan: Nan = "ignore",
        keep_attrs: bool = True,
    ) -> Labelled:
        """Max pooling over whole dimensions.

        Parameters
        ----------
        dims : name or names of dimensions, optional
            The pooled dimensions. Default: all of them.
        keepdims : bool, optional
            Keep the pooled dimensions, with length 1 (default); else drop them and their coordinates.
        <LABELS>
        <NAN>

        <RETURNS>
        """
        labels = (coords, coord_func, keep_attrs)
        return self._whole("global_max", "global_max_pool", dims, keepdims, labels, nan=nan)

    @_documented
    def global_min(
        self,
        dims: Hashable | Iterable[Hashable] | None = None,
        *,
        keepdims: bool = True,
        coords: str = "center",
        coord_func: Any = None,
        nan: Nan = "ignore",
        keep_attrs: bool = True,
    ) -> Labelled:
        """Min pooling over whole dimensions.

        Parameters
        ----------
        dims : name or names of dimensions, optional
            The pooled dimensions. Default: all of them.
        keepdims : bool, optional
            Keep the pooled dimensions, with length 1 (default); else drop them and their coordinates.
        <LABELS>
        <NAN>

        <RETURNS>
        """
        labels = (coords, coord_func, keep_attrs)
        return self._whole("global_min", "global_min_pool", dims, keepdims, labels, nan=nan)

    @_documented
    def global_mean(
        self,
        dims: Hashable | Iterable[Hashable] | None = None,
        *,
        keepdims: bool = True,
        coords: str = "center",
        coord_func: Any = None,
        nan: Nan = "ignore",
        dtype: DTypeLike | None = None,
        rounding: Rounding = "nearest",
        keep_attrs: bool = True,
    ) -> Labelled:
        """Average pooling over whole dimensions. `global_avg` is the same.

        Parameters
        ----------
        dims : name or names of dimensions, optional
            The pooled dimensions. Default: all of them.
        keepdims : bool, optional
            Keep the pooled dimensions, with length 1 (default); else drop them and their coordinates.
        <LABELS>
        <NAN>
        dtype, rounding : optional
            As in `poolgrad.avg_pool`.

        <RETURNS>
        """
        labels = (coords, coord_func, keep_attrs)
        options = {"nan": nan, "dtype": dtype, "rounding": rounding}
        return self._whole("global_mean", "global_avg_pool", dims, keepdims, labels, **options)

    global_avg = global_mean

    @_documented
    def global_sum(
        self,
        dims: Hashable | Iterable[Hashable] | None = None,
        *,
        keepdims: bool = True,
        coords: str = "center",
        coord_func: Any = None,
        nan: Nan = "ignore",
        dtype: DTypeLike | None = None,
        keep_attrs: bool = True,
    ) -> Labelled:
        """Sum pooling over whole dimensions.

        Parameters
        ----------
        dims : name or names of dimensions, optional
            The pooled dimensions. Default: all of them.
        keepdims : bool, optional
            Keep the pooled dimensions, with length 1 (default); else drop them and their coordinates.
        <LABELS>
        <NAN>
        dtype : optional
            As in `poolgrad.sum_pool`.

        <RETURNS>
        """
        labels = (coords, coord_func, keep_attrs)
        return self._whole("global_sum", "global_sum_pool", dims, keepdims, labels, nan=nan, dtype=dtype)


class DataArrayPools(_Pools[xr.DataArray]):
    """The pools of a DataArray: ``da.pool``."""

    def _finish(self, pooling: Pooling) -> Any:
        return pooling.data_array(self._obj)


class DatasetPools(_Pools[xr.Dataset]):
    """The pools of a Dataset: ``ds.pool``."""

    def _finish(self, pooling: Pooling) -> xr.Dataset:
        if pooling.options.get("return_taps"):
            pooling.problems.fail("return_taps", True, "False for a Dataset: pool its variables one by one")
        made: xr.Dataset = pooling.dataset(self._obj)
        return made
