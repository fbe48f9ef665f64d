"""The pools of Dask arrays and of stores, by their names."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import Any

import numpy as np

from .._common.errors import ArgumentErrors, short_repr
from ..jobs.job import Job
from .arrays import check_array, run, run_tree
from .traced import Traced, dropped


def _pooled(op: str, x: Any, args: tuple[Any, ...], words: dict[str, Any]) -> Any:
    chunks, memory = words.pop("chunks", None), words.pop("memory", None)
    taps = words.pop("return_taps", False)
    keep = words.pop("keepdims", True) if op.startswith("global") else True
    tree = words.pop("tree", False)
    if isinstance(x, Traced):
        if taps:
            ArgumentErrors(op).fail("return_taps", True, "False where x is differentiated")
        job = Job(op, x.value.shape, x.value.dtype, *args, **words)
        return _drop(job, x.through(job, chunks, memory), keep)
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        ArgumentErrors(op).fail("x", short_repr(x), "a Dask array, or a store with a shape and a dtype", TypeError)
    if any(isinstance(n, float) and isnan(n) for n in x.shape):
        check_array(ArgumentErrors(op), "x", x, (), np.dtype("u1"))
    job = Job(op, x.shape, x.dtype, *args, returns=("values", "taps") if taps else None, **words)
    return _drop(job, run_tree(job, x, memory) if tree else run(job, x, chunks=chunks, memory=memory), keep)


def _drop(job: Job, y: Any, keep: bool) -> Any:
    """Drop the axes that were pooled, unless they are kept."""
    if keep:
        return y
    axes = tuple(d for d, windows in enumerate(job.windows) if windows is not None)
    if isinstance(y, tuple):
        return tuple(dropped(part, axes) for part in y)
    return y.squeeze(axes) if isinstance(y, Traced) else dropped(y, axes)


def _pool(op: str, doc: str) -> Callable[..., Any]:
    def pool(x: Any, *args: Any, **options: Any) -> Any:
        return _pooled(op, x, args, options)

    pool.__name__ = pool.__qualname__ = op
    pool.__doc__ = f"""{doc} of a Dask array or a store: `poolgrad.{op}`, lazily.

    Parameters
    ----------
    x : dask.array.Array or store
        The array, or a store that tasks read: Zarr, HDF5, a memory map.
    *args, **options
        The arguments of `poolgrad.{op}`, and ``chunks`` and ``memory`` of `run`. Pools over whole axes take ``tree=True`` too: as in
        `poolgrad.pool`, windows may be larger than memory then.

    Returns
    -------
    dask.array.Array
        The result, with the bits of ``poolgrad.{op}``; with ``return_taps=True``, a pair of arrays: values and taps.
    """
    return pool


max_pool = _pool("max_pool", "Largest cells")
min_pool = _pool("min_pool", "Least cells")
avg_pool = _pool("avg_pool", "Means")
sum_pool = _pool("sum_pool", "Sums")
lp_pool = _pool("lp_pool", "Norms")
adaptive_max_pool = _pool("adaptive_max_pool", "Largest cells")
adaptive_avg_pool = _pool("adaptive_avg_pool", "Means")
fractional_max_pool = _pool("fractional_max_pool", "Largest cells")
fractional_avg_pool = _pool("fractional_avg_pool", "Means")
global_max_pool = _pool("global_max_pool", "Largest cells")
global_min_pool = _pool("global_min_pool", "Least cells")
global_avg_pool = _pool("global_avg_pool", "Means")
global_sum_pool = _pool("global_sum_pool", "Sums")
