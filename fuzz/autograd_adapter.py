"""Compare random calls of `poolgrad.autograd` with the meaning of each call: values, both derivatives, the second order, taps.

python fuzz/autograd_adapter.py --seconds 60 [--jobs 2] [--seed 1] [--calls 5000]
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "fuzz" / "helpers")]

import adapters
import autograd
import autograd.numpy as anp
import numpy as np
import pooled
from differential import Call, Rng, main

import poolgrad.autograd as pool

Array = np.ndarray[Any, Any]
DTYPES = ("float16", "float32", "float64", "float64", "int8", "uint8", "int32", "int64", "bool")


class Autograd(adapters.Runner):
    """The pools of autograd; `traced` takes each derivative inside another function's derivative."""

    def _run(self, call: Call, x: Any, **more: Any) -> Any:
        return getattr(pool, call.name)(x, **adapters.words(call), **more)

    def value(self, call: Call, x: Array, traced: bool) -> Array:
        """Return the pooled array."""
        return np.asarray(self._run(call, x))

    def pull(self, call: Call, x: Array, g: Array, traced: bool) -> Array:
        """Return the gradient; change the array before the gradient is taken."""
        mine = x.copy()
        back, _ = autograd.make_vjp(lambda a: self._run(call, a))(mine)
        mine[...] = 0
        return np.asarray(back(g))

    def push(self, call: Call, x: Array, v: Array, traced: bool) -> Array:
        """Return the tangent."""
        return np.asarray(autograd.make_jvp(lambda a: self._run(call, a))(x)(v)[1])

    def second(self, call: Call, x: Array, h: Array, v: Array, traced: bool) -> Array:
        """Return the derivative along v of a gradient, through a closure if traced: h times y squared, y once from outside."""

        def loss(a: Any) -> Any:
            return anp.sum(h * self._run(call, a) ** 2)

        def closed(a: Any) -> Any:
            y = self._run(call, a)
            return anp.sum(2 * autograd.grad(lambda b: anp.sum(h * y * self._run(call, b)))(x) * v)

        if not traced:
            return np.asarray(autograd.make_jvp(autograd.grad(loss))(x)(v)[1])
        return np.asarray(autograd.grad(closed)(x))

    def mapped(self, call: Call, xs: Array, axis: int, grad: bool) -> Array:
        """Raise: autograd has no map."""
        raise NotImplementedError

    def taps(self, call: Call, x: Array, traced: bool) -> list[Array]:
        """Return maxima, positions, and the maxima put back."""
        y, chosen = self._run(call, x, return_taps=True)
        return [np.asarray(a) for a in (y, chosen.flat(), pool.unpool(y, chosen))]


RUNNER = Autograd()


def draw(rng: Rng) -> Call:
    """Return a call of a pool."""
    call = pooled.draw(rng, DTYPES, ("value", "pull", "push", "second", "taps"))
    return call.but(traced=True) if rng.random() < 0.5 else call


def compare(call: Call, counts: Counter[str]) -> str:
    """Return how the pool and its meaning differ."""
    return adapters.check(call, RUNNER, counts)


if __name__ == "__main__":
    sys.exit(main("autograd", __doc__ or "", draw, compare))
