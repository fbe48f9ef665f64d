"""Pools of Dask arrays and of stores: one task per region, and the bits that the whole array would give.

A pool of Dask arrays makes one task for each block of the result, and one for each slice of a neighbouring block that it needs. A pool of
a store (Zarr, HDF5, a memory map: anything with a shape, a dtype and slices) makes one task per region, which reads its part itself:
nothing passes between workers, and a graph of a million regions is made at once.

>>> import dask.array as da
>>> import poolgrad.dask as pgd
>>> x = da.arange(36, chunks=9).reshape(6, 6).rechunk(4)
>>> pgd.max_pool(x, 3, 1, padding="same").compute()[0].tolist()
[7, 8, 9, 10, 11, 11]
"""

from .arrays import run
from .pools import (
    adaptive_avg_pool,
    adaptive_max_pool,
    avg_pool,
    fractional_avg_pool,
    fractional_max_pool,
    global_avg_pool,
    global_max_pool,
    global_min_pool,
    global_sum_pool,
    lp_pool,
    max_pool,
    min_pool,
    sum_pool,
)
from .traced import jvp, vjp

__all__ = [
    "adaptive_avg_pool", "adaptive_max_pool", "avg_pool", "fractional_avg_pool", "fractional_max_pool", "global_avg_pool",
    "global_max_pool", "global_min_pool", "global_sum_pool", "jvp", "lp_pool", "max_pool", "min_pool", "run", "sum_pool", "vjp",
]  # fmt: skip
