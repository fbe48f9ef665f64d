"""JAX: jitted reduce_window, its vjp and its jvp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..cells import Cell
from ..data import Arrays, dtype_of
from .base import Peer, Run, installed, load, version_of


class Jax:
    """XLA on the CPU."""

    name = "jax"
    given = False

    def __init__(self) -> None:
        self.jax = load("jax")
        self.jax.config.update("jax_platforms", "cpu")
        self.jax.config.update("jax_enable_x64", True)

    def version(self) -> str:
        """Return the version of jaxlib, which computes."""
        return version_of("jaxlib", "jax")

    def can(self, cell: Cell) -> str | None:
        """Accept any window of reduce_window; derivatives of floats only."""
        if cell.fractional:
            return "no fractional pooling"
        if cell.op.order and not (cell.dtype.startswith("float") or cell.dtype == "bfloat16"):
            return "no derivatives of integers"
        return None

    def prepare(self, cell: Cell, arrays: Arrays) -> Run:
        """Compile the cell's function."""
        pool, jax = self._pool(cell), self.jax
        x, g, v = (jax.device_put(a) for a in (arrays.x, arrays.g, arrays.v))
        if cell.op.order == 0:
            forward = jax.jit(pool)
            return Run(lambda: forward(x).block_until_ready(), np.asarray)
        if cell.op.order == 1:
            backward = jax.jit(lambda x, g: jax.vjp(pool, x)[1](g)[0])
            return Run(lambda: backward(x, g).block_until_ready(), np.asarray)
        second = jax.jit(lambda x, v: jax.jvp(pool, (x,), (v,))[1])
        return Run(lambda: second(x, v).block_until_ready(), np.asarray)

    def _pool(self, cell: Cell) -> Callable[[Any], Any]:
        lax, dtype = self.jax.lax, dtype_of(cell)
        k, s = tuple(cell.every(cell.ksize)), tuple(cell.every(cell.strides))
        pads = [(0, 0)] * len(k)
        for d, extent in zip(cell.space, cell.extents, strict=True):
            pads[d] = (extent.before, extent.after)
        if cell.maximal:
            lowest = np.array(np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf, dtype)
            return lambda x: lax.reduce_window(x, lowest, lax.max, k, s, pads)
        count = np.ones((1,) * len(k), np.float64)
        for d, e in zip(cell.space, cell.extents, strict=True):
            first = np.arange(e.m) * e.s - e.before
            axis = [1] * len(k)
            axis[d] = e.m
            count = count * (np.minimum(first + e.k, e.n) - np.maximum(first, 0)).reshape(axis)
        zero, weight = np.array(0, dtype), count.astype(dtype)
        return lambda x: lax.reduce_window(x, zero, lax.add, k, s, pads) / weight


def peers() -> list[Peer]:
    """Return JAX, if installed."""
    return [Jax()] if installed("jax") else []
