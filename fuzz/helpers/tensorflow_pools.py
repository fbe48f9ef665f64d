"""Run `poolgrad.tensorflow` on NumPy arrays, eager or in a tf.function: for the process that `peer` starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import poolgrad.tensorflow as pool

Array = np.ndarray[Any, Any]


def _call(f: Callable[..., Any], traced: bool, *arrays: Array) -> Any:
    tensors = [tf.constant(a) for a in arrays]
    return (tf.function(f) if traced else f)(*tensors)


def value(op: str, words: dict[str, Any], x: Array, traced: bool, raw: bool = False) -> Array:
    """Return the pooled array, of a tensor or of the NumPy array itself."""
    if raw:
        return np.asarray(getattr(pool, op)(x, **words).numpy())
    found: Array = _call(lambda a: getattr(pool, op)(a, **words), traced, x).numpy()
    return found


def pull(op: str, words: dict[str, Any], x: Array, g: Array, traced: bool) -> Array:
    """Return the gradient of the product with g."""

    def run(a: Any, b: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(a)
            y = getattr(pool, op)(a, **words)
        return tape.gradient(y, a, b)

    found: Array = _call(run, traced, x, g).numpy()
    return found


def push(op: str, words: dict[str, Any], x: Array, v: Array, traced: bool) -> Array:
    """Return the derivative along v."""

    def run(a: Any, b: Any) -> Any:
        with tf.autodiff.ForwardAccumulator(a, b) as forward:
            y = getattr(pool, op)(a, **words)
        return forward.jvp(y)

    found: Array = _call(run, traced, x, v).numpy()
    return found


def second(op: str, words: dict[str, Any], x: Array, h: Array, v: Array, traced: bool) -> Array:
    """Return the derivative along v of the gradient of the sum of h times the squares."""

    def run(a: Any, b: Any, c: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(a)
            with tf.GradientTape() as inner:
                inner.watch(a)
                y = tf.reduce_sum(b * getattr(pool, op)(a, **words) ** 2)
            along = tf.reduce_sum(inner.gradient(y, a) * c)
        return outer.gradient(along, a)

    found: Array = _call(run, traced, x, h, v).numpy()
    return found


def mapped(op: str, words: dict[str, Any], xs: Array, axis: int, grad: bool) -> Array:
    """Return the pools, or the gradients of their sums, of the arrays along an axis."""

    def one(a: Any) -> Any:
        if not grad:
            return getattr(pool, op)(a, **words)
        with tf.GradientTape() as tape:
            tape.watch(a)
            y = tf.reduce_sum(getattr(pool, op)(a, **words))
        return tape.gradient(y, a)

    rows = tf.constant(np.ascontiguousarray(np.moveaxis(xs, axis, 0)))
    kind = tf.as_dtype(rows.dtype if grad else one(rows[0]).dtype)
    found: Array = tf.map_fn(one, rows, fn_output_signature=kind).numpy()
    return found


def taps(op: str, words: dict[str, Any], x: Array, traced: bool) -> list[Array]:
    """Return maxima, their flat positions, and the maxima put back."""

    def run(a: Any) -> Any:
        y, chosen = getattr(pool, op)(a, return_taps=True, **words)
        return y, chosen.flat(), pool.unpool(y, chosen)

    return [part.numpy() for part in _call(run, traced, x)]


def nn(op: str, window: Any, stride: Any, padding: str, x: Array) -> list[Array]:
    """Return value and gradient of tf.nn's pool, then those of ours, over the inner axes of images."""
    found = []
    theirs = {"max_pool": tf.nn.max_pool, "avg_pool": tf.nn.avg_pool}[op]
    layout = "NDHWC" if x.ndim == 5 else "NHWC"
    for run in (
        lambda a: theirs(a, window, stride, padding.upper(), layout),
        lambda a: getattr(pool, op)(a, window, stride, padding=padding, layout=layout),
    ):
        a = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(a)
            y = run(a)
        g = tf.reshape(tf.cast(tf.range(tf.size(y)) % 5 - 2, y.dtype), y.shape)
        found += [y.numpy(), tape.gradient(y, a, g).numpy()]
    return found
