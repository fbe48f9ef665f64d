"""Run TensorFlow before and after `accelerate()` in one process, and print what was found as JSON: for tests/tensorflow/test_acceleration.py.

    python accelerated_job.py FOLDER

TensorFlow cannot drop a kernel, so a process compares itself with itself: results before, then results after.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from poolgrad import raw_ops
from poolgrad.tensorflow import accelerate, acceleration

FOLDER = Path(sys.argv[1])
RNG = np.random.default_rng(5)
FOUND: dict[str, Any] = {}


def data(*shape: int) -> Any:
    """Return numbers, some of them equal."""
    return tf.constant(RNG.integers(-40, 40, shape).astype(np.float32) / 8)


def fractional(x: Any) -> Any:
    return tf.nn.fractional_max_pool(x, [1.0, 1.5, 1.3, 1.0], seed=7)[0]


def fractional_mean(x: Any) -> Any:
    return tf.nn.fractional_avg_pool(x, [1.0, 1.5, 1.3, 1.0], seed=7)[0]


def with_argmax(x: Any) -> Any:
    y, at = tf.nn.max_pool_with_argmax(x, 2, 2, "SAME", include_batch_in_index=True)
    return y + tf.cast(at % 3, tf.float32)


X4, X5 = data(2, 13, 11, 3), data(2, 5, 7, 6, 3)
POOLS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "max": (lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME"), X4),
    "max stride 1": (lambda x: tf.nn.max_pool2d(x, 3, 1, "SAME"), X4),
    "explicit": (lambda x: tf.nn.max_pool2d(x, 3, 2, [[0, 0], [1, 0], [1, 2], [0, 0]]), X4),
    "mean": (lambda x: tf.nn.avg_pool2d(x, 3, 2, "SAME"), X4),
    "max 3-D": (lambda x: tf.nn.max_pool3d(x, 3, 2, "SAME"), X5),
    "mean 3-D": (lambda x: tf.nn.avg_pool3d(x, 3, 2, "VALID"), X5),
    "argmax": (with_argmax, X4),
    "fractional": (fractional, X4),
    "fractional mean": (fractional_mean, X4),
}
TWICE = ("max", "mean", "max 3-D", "mean 3-D")  # those whose gradient TensorFlow differentiates


def gradients(pool: Callable[[Any], Any], x: Any, twice: bool) -> list[np.ndarray]:
    """Return the pooled array, its gradient and perhaps the second one."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = pool(x)
        loss = tf.reduce_sum(y * tf.sin(tf.cast(tf.reshape(tf.range(tf.size(y)), tf.shape(y)), tf.float32)))
    g = tape.gradient(loss, x)
    results = [y, g]
    if twice:
        w = tf.cos(tf.cast(tf.reshape(tf.range(tf.size(y)), tf.shape(y)), tf.float32))
        with tf.GradientTape() as second:
            second.watch(w)
            with tf.GradientTape() as tape:
                tape.watch(x)
                loss = tf.reduce_sum(pool(x) * w)
            g = tape.gradient(loss, x)
            total = tf.reduce_sum(g * x)
        results.append(second.gradient(total, w))
    return results


def everything(compiled: bool) -> dict[str, list[np.ndarray]]:
    """Return the results of all pools, eager or in new functions."""
    tf.random.set_seed(11)  # which fractional pools mix into their own seeds
    out = {}
    for name, (pool, x) in POOLS.items():
        run = lambda x, pool=pool, name=name: gradients(pool, x, name in TWICE)  # noqa: E731
        out[name] = [np.array(a) for a in (tf.function(run) if compiled else run)(x)]
    return out


def differing(a: dict[str, list[np.ndarray]], b: dict[str, list[np.ndarray]]) -> list[str]:
    """Return the names of results that differ in a bit."""
    return [
        f"{name}[{i}]"
        for name in a
        for i, (p, q) in enumerate(zip(a[name], b[name], strict=True))
        if p.tobytes() != q.tobytes()
    ]


def counted(run: Callable[[], Any]) -> tuple[Any, dict[str, int]]:
    """Return a result, and the calls of our kernels that it took."""
    before = accelerate.status().ops
    result = run()
    return result, {
        name: n - before.get(name, 0) for name, n in accelerate.status().ops.items() if n - before.get(name, 0)
    }


def model(dimensions: int) -> Any:
    """Return a small network with pools, and the same weights every time."""
    keras.utils.set_random_seed(3)
    n = keras.layers
    if dimensions == 3:
        pools = [n.Conv3D(4, 3, padding="same", activation="relu"), n.MaxPooling3D(2), n.AveragePooling3D(2)]
        shape = (8, 8, 8, 2)
    else:
        pools = [n.Conv2D(4, 3, padding="same", activation="relu"), n.MaxPooling2D(2), n.AveragePooling2D(2)]
        shape = (12, 12, 2)
    return keras.Sequential([n.Input(shape), *pools, n.Flatten(), n.Dense(3)])


def trained(dimensions: int, eagerly: bool) -> list[np.ndarray]:
    """Return the weights after two steps."""
    made = model(dimensions)
    made.compile("sgd", "mse", run_eagerly=eagerly)
    x = np.random.default_rng(1).normal(size=(4, *made.input_shape[1:])).astype(np.float32)
    made.fit(x, np.ones((4, 3), np.float32), epochs=2, verbose=0)
    return [np.array(w) for w in made.get_weights()]


def refused(name: str, run: Callable[[], Any]) -> None:
    """Note the type and the text of an error."""
    try:
        run()
        FOUND[name] = ["accepted", ""]
    except Exception as error:
        FOUND[name] = [type(error).__name__, str(error)]


# ---- before

FOUND["status before"] = [accelerate.status().on, accelerate.status().ops]
EAGER, COMPILED = everything(False), everything(True)
WEIGHTS = {(d, e): trained(d, e) for d, e in ((2, False), (3, True))}


class Saved(tf.Module):
    """A model of TensorFlow's ops."""

    @tf.function(input_signature=[tf.TensorSpec([None, 13, 11, 3])])
    def run(self, x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y, _ = tf.nn.max_pool_with_argmax(x, 2, 2, "SAME")
            z = fractional(x)
        return tape.gradient([y, z], x)


tf.saved_model.save(Saved(), str(FOLDER / "saved"))
SAVED = Saved().run(X4).numpy()
VERSION = tf.__version__
tf.__version__ = "1.15.0"
refused("wrong version", accelerate)
tf.__version__ = VERSION
HIDDEN = acceleration.EXTENSION
acceleration.EXTENSION = acceleration.Extension("poolgrad.tensorflow", HIDDEN.source, "missing.so", "none")
refused("not built", accelerate)
acceleration.EXTENSION = HIDDEN

# ---- after

tf.config.threading.get_intra_op_parallelism_threads = lambda: 1
starters = [threading.Thread(target=accelerate) for _ in range(4)]
for thread in starters:
    thread.start()
for thread in starters:
    thread.join()
FOUND["threads"] = accelerate.status().threads
tf.config.threading.get_intra_op_parallelism_threads = lambda: 0
FOUND["status after"] = [accelerate().on, accelerate().threads]

after, runs = counted(lambda: everything(False))
FOUND["eager"] = [differing(EAGER, after), runs]
after, runs = counted(lambda: everything(True))
FOUND["compiled"] = [differing(COMPILED, after), runs]
for key, weights in WEIGHTS.items():
    got, runs = counted(lambda key=key: trained(*key))
    FOUND[f"keras {key[0]}-D {'eager' if key[1] else 'compiled'}"] = [
        max(float(np.abs(a - b).max()) for a, b in zip(weights, got, strict=True)),
        runs,
    ]
loaded = tf.saved_model.load(str(FOLDER / "saved"))
after, runs = counted(lambda: loaded.run(X4).numpy())
FOUND["saved"] = [after.tobytes() == SAVED.tobytes(), runs]

# Calls from several threads at once.
results: list[bool] = []


def often() -> None:
    for _ in range(20):
        y, g = gradients(*POOLS["argmax"], False)
        results.append(
            y.numpy().tobytes() == EAGER["argmax"][0].tobytes() and g.numpy().tobytes() == EAGER["argmax"][1].tobytes()
        )


callers = [threading.Thread(target=often) for _ in range(4)]
for thread in callers:
    thread.start()
for thread in callers:
    thread.join()
FOUND["at once"] = [len(results), all(results)]

# Calls that TensorFlow refuses on the CPU, though its definitions allow them.
SIZES = {"ksize": [1, 1, 3, 2], "strides": [1, 1, 2, 2], "padding": "SAME", "data_format": "NCHW"}
x = np.array(X4)
first = np.ascontiguousarray(np.moveaxis(x, -1, 1))
y, taken = counted(
    lambda: tf.raw_ops.MaxPoolGradGrad(
        orig_input=first, orig_output=raw_ops.MaxPool(input=first, **SIZES), grad=first, **SIZES
    ).numpy()
)
want = raw_ops.MaxPoolGradGrad(orig_input=first, orig_output=raw_ops.MaxPool(input=first, **SIZES), grad=first, **SIZES)
FOUND["channels first"] = [y.tobytes() == want.tobytes(), taken]
SIZES3 = {"ksize": [1, 2, 3, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
wide = np.array(X5).astype(np.float64)
y, taken = counted(lambda: tf.raw_ops.AvgPool3D(input=tf.constant(wide), **SIZES3).numpy())
FOUND["float64"] = [y.tobytes() == raw_ops.AvgPool3D(input=wide, **SIZES3).tobytes(), taken]

# Refusals.
PLAIN = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
Y4 = tf.raw_ops.MaxPool(input=X4, **PLAIN)
refused("shape", lambda: tf.raw_ops.MaxPoolGrad(orig_input=X4, orig_output=Y4, grad=X4, **PLAIN))
refused(
    "batch", lambda: tf.raw_ops.MaxPoolGrad(orig_input=X4, orig_output=Y4, grad=Y4, **{**PLAIN, "ksize": [2, 2, 2, 1]})
)
refused(
    "window",
    lambda: tf.raw_ops.MaxPoolGradV2(orig_input=X4, orig_output=Y4, grad=Y4, **{**PLAIN, "ksize": [1, 0, 2, 1]}),
)
refused(
    "argmax",
    lambda: tf.raw_ops.MaxPoolGradWithArgmax(
        input=X4, grad=Y4, argmax=tf.fill(Y4.shape, tf.constant(2**40, tf.int64)), **PLAIN
    ),
)
refused("ratio", lambda: tf.raw_ops.FractionalMaxPool(value=X4, pooling_ratio=[1.0, 0.9, 1.0, 1.0]))
print("FOUND" + json.dumps(FOUND))
