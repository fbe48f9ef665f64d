"""Compare random calls of `poolgrad.jax` with the meaning of each call, and with lax.reduce_window where it has the same pool.

    python fuzz/jax_adapter.py --seconds 60 [--jobs 2] [--seed 1] [--calls 5000]

Values, both derivatives, the second order, vmap over every axis, taps; eager and under jit, compiled in and through Python.
"""

from __future__ import annotations

import logging
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "fuzz" / "helpers")]

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import adapters
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pooled
from differential import Call, Documented, Rng, main, pick

import poolgrad.jax as pool
from poolgrad.jax import native, primitives

Array = np.ndarray[Any, Any]
SUBNORMALS = "poolgrad keeps subnormals, XLA flushes some of them to zero"
WAYS = ("value", "pull", "push", "second", "taps", "map", "lax")
NARROW = ("float16", "bfloat16", "float32", "int8", "uint8", "int32", "bool")
WIDE = (*NARROW, "float64", "float64", "int64", "uint64")
FOUND = native.available
logging.getLogger("jax._src.callback").setLevel(logging.CRITICAL)  # which logs every error that it raises


class Jax(adapters.Runner):
    """The pools of JAX on NumPy arrays."""

    def _run(self, call: Call, x: Any, **more: Any) -> Any:
        return getattr(pool, call.name)(x, **adapters.words(call), **more)

    def value(self, call: Call, x: Array, traced: bool) -> Array:
        """Return the pooled array."""
        f = lambda a: self._run(call, a)  # noqa: E731
        if call.args["x"].memory != "plain":  # as it lies
            return np.asarray(f(x))
        return np.asarray(jax.jit(f)(x) if traced else f(jnp.asarray(x)))

    def pull(self, call: Call, x: Array, g: Array, traced: bool) -> Array:
        """Return the gradient."""
        f = lambda a, b: jax.vjp(lambda c: self._run(call, c), a)[1](b)[0]  # noqa: E731
        return np.asarray((jax.jit(f) if traced else f)(jnp.asarray(x), jnp.asarray(g)))

    def push(self, call: Call, x: Array, v: Array, traced: bool) -> Array:
        """Return the tangent."""
        f = lambda a, b: jax.jvp(lambda c: self._run(call, c), (a,), (b,))[1]  # noqa: E731
        return np.asarray((jax.jit(f) if traced else f)(jnp.asarray(x), jnp.asarray(v)))

    def second(self, call: Call, x: Array, h: Array, v: Array, traced: bool) -> Array:
        """Return the derivative along v of a gradient: forward over reverse, or reverse over reverse."""
        loss = lambda a: (h * self._run(call, a) ** 2).sum()  # noqa: E731
        if h.size % 2:
            f = lambda a: jax.jvp(jax.grad(loss), (a,), (jnp.asarray(v),))[1]  # noqa: E731
        else:
            f = jax.grad(lambda a: (jax.grad(loss)(a) * v).sum())
        return np.asarray((jax.jit(f) if traced else f)(jnp.asarray(x)))

    def mapped(self, call: Call, xs: Array, axis: int, grad: bool) -> Array:
        """Return pools or gradients of the arrays along an axis."""
        f = lambda a: self._run(call, a)  # noqa: E731
        f = jax.grad(lambda a: self._run(call, a).sum()) if grad else f
        return np.asarray(jax.vmap(f, in_axes=axis)(jnp.asarray(xs)))

    def taps(self, call: Call, x: Array, traced: bool) -> list[Array]:
        """Return maxima, positions, and the maxima put back."""

        def f(a: Any) -> Any:
            y, taps = self._run(call, a, return_taps=True)
            return y, taps.flat(), pool.unpool(y, taps)

        return [np.asarray(a) for a in (jax.jit(f) if traced else f)(jnp.asarray(x))]

    def dtype(self, op: str, dtype: Any) -> Any:
        """Return the dtype of the pooled array."""
        if np.dtype(dtype).kind not in "iub" or "max" in op or "min" in op:
            return np.dtype(dtype).newbyteorder("=")
        wide = "float64" if "avg" in op else "uint64" if jax.dtypes.canonicalize_dtype(dtype) == np.uint64 else "int64"
        return jax.dtypes.canonicalize_dtype(wide)


RUNNER = Jax()


def _lax(call: Call, x: Array) -> str:
    """Return how the pool and lax.reduce_window differ, values and gradients; "" where lax has no such pool."""
    given, axes = call.args, pooled.axes_of(call)
    plain = call.name in ("max_pool", "min_pool", "sum_pool") and all(
        isinstance(k, int) for k in given.get("window", ())
    )
    if not plain or set(given) & {"ceil_mode", "nan"} or given.get("ties", "first") != "first" or x.dtype.kind in "iub":
        return ""
    if not np.isfinite(x.astype(np.float64)).all() or given["x"].kind == "ties":
        return ""
    n = x.ndim
    size, step, apart, pads = [1] * n, [1] * n, [1] * n, [(0, 0)] * n
    for i, d in enumerate(axes):
        k = given["window"][i]
        size[d], step[d] = k, given["stride"][i] if "stride" in given else k
        apart[d] = given["dilation"][i] if "dilation" in given else 1
        padding = given.get("padding", "valid")
        if isinstance(padding, str):
            low, high = pooled.brute.same_pads(x.shape[d], k, step[d], apart[d])
            pads[d] = {"valid": (0, 0), "same": (low, high), "same_lower": (high, low)}[padding]
        else:
            pads[d] = (padding, padding) if isinstance(padding, int) else padding[i]
    lax = {"max_pool": (-jnp.inf, jax.lax.max), "min_pool": (jnp.inf, jax.lax.min), "sum_pool": (0.0, jax.lax.add)}
    start, reduce = lax[call.name]

    def theirs(a: Any) -> Any:
        return jax.lax.reduce_window(a, np.array(start, x.dtype), reduce, size, step, pads, (1,) * n, apart)

    want, pull = jax.vjp(theirs, jnp.asarray(x))
    got, mine = jax.vjp(lambda a: RUNNER._run(call, a), jnp.asarray(x))
    g = adapters.small(3, want.shape, x.dtype)
    loose = 256 if call.name == "sum_pool" else 0
    for what, a, b in (("value", got, want), ("gradient", mine(g)[0], pull(g)[0])):
        scale = loose * (
            1 + np.abs(np.asarray(b, np.float64)).max(initial=0) + float(np.abs(x.astype(np.float64)).max(initial=0))
        )
        ours, theirs_ = np.asarray(a), np.asarray(b)
        if text := adapters.near(ours, theirs_, np.full(b.shape, scale), x.dtype):
            same = not adapters.near(_flushed(ours), _flushed(theirs_), np.full(b.shape, scale), x.dtype)
            return Documented(SUBNORMALS) if same else f"lax, {what}: {text}"
    return ""


def _flushed(a: Array) -> Array:
    """Return the array with zeros in place of subnormals."""
    return np.where(np.abs(a) < ml_dtypes.finfo(a.dtype).smallest_normal, np.zeros((), a.dtype), a)


def draw(rng: Rng) -> Call:
    """Return a call of a pool, with 64-bit types in half of all cases."""
    x64 = bool(rng.random() < 0.5)
    call = pooled.draw(rng, WIDE if x64 else NARROW, WAYS)
    if rng.random() < 0.5:
        call = call.but(traced=True)
    return call.but(x64=x64, route=pick(rng, ("compiled", "compiled", "callback")))


def _setting(call: Call) -> None:
    """Turn 64-bit types and the compiled library on or off."""
    x64, route = bool(call.args.get("x64")), call.args.get("route", "compiled")
    if not x64 and call.args["x"].dtype in ("float64", "int64", "uint64"):
        raise ValueError("JAX has no such dtype")
    native.available = FOUND if route == "compiled" else (lambda: False)
    if _setting.__dict__.get("last") != (x64, route):
        jax.config.update("jax_enable_x64", x64)
        jax.clear_caches()
        primitives._compiled.cache_clear()
        _setting.__dict__["last"] = (x64, route)


def compare(call: Call, counts: Counter[str]) -> str:
    """Return how the pool and its meaning differ."""
    _setting(call)
    if text := adapters.check(call, RUNNER, counts):
        return text
    if call.args.get("way") != "lax":
        return ""
    with np.errstate(all="ignore"):
        try:
            return _lax(call, call.args["x"].array())
        except adapters.REFUSALS:
            return ""


def prepare() -> None:
    """Build the library once, where it was not built with the package and there is a compiler."""
    if "--note" in sys.argv or native.library() is not None or os.environ.get("POOLGRAD_JAX") == "callback":
        return
    os.environ["XDG_CACHE_HOME"] = str(ROOT / "build" / "cache")
    if native.library() is None:
        try:
            native.EXTENSION.build()
        except RuntimeError as error:
            print(f"jax: pools are called through Python: {error}", flush=True)


if __name__ == "__main__":
    prepare()
    sys.exit(main("jax", __doc__ or "", draw, compare))
