"""`poolgrad.jax` against `lax.reduce_window`, forward and gradient, compiled by jit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ..peers.base import load
from .contest import OURS, Call, Cell, Contest, Found

SHAPES = {"tiny": (1, 8, 8, 4), "small": (1, 56, 56, 64), "large": (16, 112, 112, 64)}
WINDOWS = {"2/2": (2, 2, "valid"), "3/2 same": (3, 2, "same"), "3/1 same": (3, 1, "same")}
TOLERANCE = {"float32": 1e-5, "bfloat16": 2e-2}


def cells(found: Found, quick: bool) -> Iterator[Cell]:
    """Return the cells, if JAX is installed."""
    jax = found.load("jax", lambda: load("jax"), lambda jax: str(jax.__version__))
    if jax is None:
        return
    for size, shape in list(SHAPES.items())[: 1 if quick else 3]:
        for layout in ("NHWC", "NCHW"):
            for dtype in TOLERANCE:
                for verb in ("max", "avg"):
                    for words, (k, s, padding) in WINDOWS.items():
                        for back in (False, True):
                            name = f"{verb} {words}, {size}, {layout}, {dtype}, {'gradient' if back else 'forward'}"
                            made = partial(_contest, jax, verb, shape, layout, dtype, (k, s, padding), back)
                            yield Cell("jax", name, made)


def _contest(
    jax: Any,
    verb: str,
    shape: tuple[int, ...],
    layout: str,
    dtype: str,
    window: tuple[int, int, str],
    back: bool,
) -> Contest:
    pool, (k, s, padding) = getattr(load("poolgrad.jax"), f"{verb}_pool"), window
    first = layout == "NCHW"
    shape = (shape[0], shape[3], shape[1], shape[2]) if first else shape
    rng = np.random.default_rng(1)
    x = jax.numpy.asarray(rng.permutation(int(np.prod(shape))).reshape(shape) % 251 / 64.0, dtype)
    sizes, steps = ((1, 1, n, n) if first else (1, n, n, 1) for n in (k, s))

    def ours(x: Any) -> Any:
        return pool(x, k, s, padding=padding, layout=layout)

    def theirs(x: Any) -> Any:
        if verb == "max":
            return jax.lax.reduce_window(x, -np.inf, jax.lax.max, sizes, steps, padding.upper())
        one = np.array(0, x.dtype)
        total = jax.lax.reduce_window(x, one, jax.lax.add, sizes, steps, padding.upper())
        if padding == "valid":
            return total / (k * k)
        ones = jax.numpy.ones((1, 1, *x.shape[2:]) if first else (1, *x.shape[1:3], 1), x.dtype)  # XLA folds their sums
        return total / jax.lax.reduce_window(ones, one, jax.lax.add, sizes, steps, "SAME")

    g = jax.numpy.asarray(rng.integers(1, 9, ours(x).shape), dtype)  # an argument: XLA must not fold it

    def weighted(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
        return lambda x, g: (function(x) * g).astype("float32").sum()

    def compiled(function: Callable[[Any], Any]) -> Call:
        if back:
            slope = jax.jit(jax.grad(weighted(function)))
            return lambda: slope(x, g).block_until_ready()
        made = jax.jit(function)
        return lambda: made(x).block_until_ready()

    def result(value: Any) -> Any:
        return np.asarray(value).astype(np.float32)

    calls = {OURS: (compiled(ours), result), "lax.reduce_window": (compiled(theirs), result)}
    return Contest(calls, TOLERANCE[dtype] * (10 if back else 1))
