"""Time jit(grad(...)) of a network with max pooling, by poolgrad and by lax.reduce_window in turn, in one run.

    python examples/jax_speed.py [--batch 8] [--seconds 20]

Two networks: the stem of a residual network (three times a convolution and max pooling of 3x3 cells every second one, on images
of 112x112), whose time is mostly that of its convolutions, and a spatial pyramid as detectors have it (three times max pooling
of 5x5 cells, all of them joined), which is a network of pools. Both versions have the same weights and must have the same
gradients, bit by bit.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import poolgrad.jax as pool
from poolgrad.jax import native

Pooling = Callable[[jax.Array, int, int], jax.Array]
Params = list[jax.Array]


def drawn(rng: np.random.Generator, *shapes: tuple[int, ...]) -> Params:
    """Draw weights of these shapes."""
    return [jnp.asarray(rng.standard_normal(s, np.float32) / np.sqrt(np.prod(s[:-1]))) for s in shapes]


def ours(x: jax.Array, k: int, s: int) -> jax.Array:
    """Max pooling by poolgrad."""
    return pool.max_pool(x, k, s, padding="same", layout="NHWC")


def theirs(x: jax.Array, k: int, s: int) -> jax.Array:
    """Max pooling by XLA."""
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, k, k, 1), (1, s, s, 1), "SAME")


def conv(x: jax.Array, w: jax.Array) -> jax.Array:
    """Convolve channels-last images; compute a 1x1 convolution as a matrix product, which XLA runs faster."""
    if w.ndim == 2:
        return x @ w
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def cost(x: jax.Array, w: jax.Array, label: jax.Array) -> jax.Array:
    """Means over the image, a linear layer, cross-entropy."""
    scores = jax.nn.log_softmax(x.mean((1, 2)) @ w)
    return -jnp.take_along_axis(scores, label[:, None], 1).mean()


def stem(max_pool: Pooling, params: Params, x: jax.Array, label: jax.Array) -> jax.Array:
    """Three times convolution, rectifier, pooling."""
    for w in params[:-1]:
        x = max_pool(jax.nn.relu(conv(x, w)), 3, 2)
    return cost(x, params[-1], label)


def pyramid(max_pool: Pooling, params: Params, x: jax.Array, label: jax.Array) -> jax.Array:
    """A 1x1 convolution, three poolings one after the other, all four joined, another 1x1 convolution."""
    levels = [jax.nn.relu(conv(x, params[0]))]
    for _ in range(3):
        levels.append(max_pool(levels[-1], 5, 1))
    return cost(jax.nn.relu(conv(jnp.concatenate(levels, -1), params[1])), params[2], label)


def in_turn(functions: dict[str, Callable[..., Any]], arguments: tuple[Any, ...], seconds: float) -> list[list[float]]:
    """Call the functions in turn until the time is over; return each one's median milliseconds, by clock and by processor."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in functions}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or min(map(len, times.values())) < 5:
        for name, function in functions.items():
            start, used = time.perf_counter(), time.process_time()
            jax.block_until_ready(function(*arguments))
            times[name].append((1e3 * (time.perf_counter() - start), 1e3 * (time.process_time() - used)))
        if sys.stderr.isatty():
            print(f"\r{max(end - time.perf_counter(), 0):5.0f} s left ", end="", file=sys.stderr, flush=True)
    return [list(map(statistics.median, zip(*pairs, strict=True))) for pairs in times.values()]


def main() -> int:
    """Print both times and their ratio, for each network."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20, help="for each of the two comparisons")
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    label = jnp.asarray(rng.integers(0, 10, given.batch))
    way = "XLA calls" if native.available() else "callbacks: `python -m poolgrad.jax build` compiles them in"
    print(f"jax {jax.__version__}, batch {given.batch}, pools as {way}")
    networks = {
        "stem": (stem, (112, 112, 3), [(3, 3, 3, 32), (32, 64), (64, 64), (64, 10)]),
        "pyramid": (pyramid, (40, 40, 128), [(128, 64), (256, 128), (128, 10)]),
    }
    for what, (network, shape, sizes) in networks.items():
        arguments = (drawn(rng, *sizes), jnp.asarray(rng.standard_normal((given.batch, *shape), np.float32)), label)
        pools = {"poolgrad": ours, "lax.reduce_window": theirs}
        both = {name: jax.jit(jax.grad(partial(network, f))) for name, f in pools.items()}
        grads = [jax.block_until_ready(f(*arguments)) for f in both.values()]
        same = all(jnp.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, grads), strict=True))
        fast, slow = in_turn(both, arguments, given.seconds)
        for unit, a, b in zip(("clock", "processor"), fast, slow, strict=True):
            print(f"{what:8} {unit:9}  poolgrad {a:7.1f} ms   lax.reduce_window {b:7.1f} ms   {b / a:.1f} times")
        print(f"{what:8} same bits: {same}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
