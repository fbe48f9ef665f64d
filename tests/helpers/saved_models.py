"""Save models that pool, or load them elsewhere and compare: for tests/tensorflow/test_own_ops.py.

    python saved_models.py save FOLDER
    python saved_models.py load FOLDER

Both compute the same values and gradients; the second prints those that differ in a bit, and how the nodes were computed, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from traced_cases import ALL, Case

import poolgrad.tensorflow as pool

RNG = np.random.default_rng(3)
SPEC = tf.TensorSpec
NODES = ("PoolgradSelect", "PoolgradFollow", "PoolgradFold", "PoolgradHost")


def unpooled(x: Any) -> Any:
    """Return maxima put back, and the positions of their cells."""
    y, taps = pool.max_pool(x, 2, layout="NHWC", return_taps=True)
    last = pool.max_pool(x, 2, layout="NHWC", return_taps=True, ties="last")[1]
    back = pool.unpool(y, taps) + pool.unpool(y, taps.flat(), shape=(2, 6, 5, 2), reduce="assign")
    return back * tf.cast(last.plane()[0, 0, 0, 0] + 1, x.dtype)


def drawn(x: Any) -> Any:
    """Return maxima and means over windows that a tensor's seed draws as the function runs."""
    seed = tf.cast(tf.shape(x)[:1], tf.int32) + tf.constant([3, 4])
    y, parts = pool.fractional_avg_pool(x, 1.5, layout="NHWC", seed=seed, return_windows=True, overlapping=True)
    return y + tf.cast(tf.reduce_sum(parts[0]), x.dtype) * pool.fractional_max_pool(x, 1.5, layout="NHWC", seed=seed)


def rows(x: Any) -> Any:
    """Return maxima, and means with a divisor."""
    return pool.max_pool(x, 2, layout="NHWC"), pool.avg_pool(x, 2, layout="NHWC", divisor=3)


class Composed(tf.Module):
    """Pools in a function that another calls, in a branch and in a loop, beside a variable."""

    def __init__(self) -> None:
        self.scale = tf.Variable(2.0)

    @tf.function
    def inner(self, x: Any) -> Any:
        return pool.avg_pool(x, 2, axes=1)

    @tf.function(input_signature=[SPEC([None, 6])])
    def nested(self, x: Any) -> Any:
        return self.scale * self.inner(x)

    @tf.function(input_signature=[SPEC([None, 6])])
    def branch(self, x: Any) -> Any:
        y = x[:, ::2] * self.scale
        if tf.reduce_sum(x) > 3:
            y = y + self.scale * pool.max_pool(x, 2, axes=1)
        return y

    @tf.function(input_signature=[SPEC([None, 6])])
    def loop(self, x: Any) -> Any:
        return self.scale * tf.map_fn(lambda row: pool.sum_pool(row, 2), x)


def models() -> tuple[Any, dict[str, tuple[str, np.ndarray]]]:
    """Return a module, and for each call the name of its function and an array."""
    module, found = Composed(), {}

    def add(key: str, run: Callable[[Any], Any], signature: Any, x: np.ndarray) -> None:
        name = f"run{len(found)}"
        setattr(module, name, tf.function(run, input_signature=[signature]))
        found[key] = name, x

    for case in ALL:
        add(str(case), partial(case.run, pool), SPEC([None, *case.shape[1:]]), case.x(np.float32))
    image = Case("max_pool").x(np.float32)
    add("unpooled", unpooled, SPEC(image.shape), image)
    add("drawn", drawn, SPEC(image.shape), image)
    whole = RNG.integers(-50, 50, (2, 6, 5, 2))
    for dtype in ("int8", "uint8", "int64", "bool", "bfloat16", "float64", "float16"):
        add(dtype, rows, SPEC(whole.shape, dtype), whole.astype(tf.as_dtype(dtype).as_numpy_dtype))
    for name in ("nested", "branch", "loop"):
        found[name] = name, np.arange(12, dtype=np.float32).reshape(2, 6)
    return module, found


def results(module: Any, calls: dict[str, tuple[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return values, and for floats the gradient and the second derivative of the sum of cubes, as bytes."""
    found = {}
    for key, (name, x) in calls.items():
        parts = _derivatives(getattr(module, name), tf.constant(x))
        found[key] = np.frombuffer(b"".join(np.array(y).tobytes() for y in parts), np.uint8)
    return found


def _derivatives(run: Callable[[Any], Any], x: Any) -> list[Any]:
    if not x.dtype.is_floating:
        return list(tf.nest.flatten(run(x)))
    with tf.GradientTape() as second:
        second.watch(x)
        with tf.GradientTape() as first:
            first.watch(x)
            made = tf.nest.flatten(run(x))
            total = sum(tf.reduce_sum(y * y * y) for y in made)
        dx = first.gradient(total, x)
        along = tf.reduce_sum(dx * dx)
    return [*made, dx, second.gradient(along, x)]


def keras_model() -> Any:
    """Return a network with fractional windows, taps and unpooling."""
    import keras

    import poolgrad.keras as layers

    keras.utils.set_random_seed(7)
    x = keras.Input((12, 12, 2))
    h = layers.FractionalMaxPooling2D(1.4, overlapping=True, seed=2)(keras.layers.Conv2D(3, 3, padding="same")(x))
    y, taps = layers.MaxPoolingWithTaps(2)(h)
    return keras.Model(x, keras.layers.Flatten()(layers.MaxUnpooling(2, size=(8, 8))(y, taps)))


IMAGES = np.random.default_rng(9).normal(size=(3, 12, 12, 2)).astype(np.float32)


def save(folder: Path) -> None:
    """Save every model and its results."""
    module, calls = models()
    np.savez(folder / "results.npz", **results(module, calls))
    tf.saved_model.save(module, str(folder / "module"))
    model = keras_model()
    model.export(str(folder / "keras"), verbose=False)
    np.save(folder / "keras.npy", model(IMAGES))


def load(folder: Path) -> None:
    """Load every model, compare its results, and call one that needs Python from many threads."""
    calls, kept = models()[1], np.load(folder / "results.npz")
    module = tf.saved_model.load(str(folder / "module"))
    different = [key for key, y in results(module, calls).items() if y.tobytes() != kept[key].tobytes()]
    text = (folder / "module" / "saved_model.pb").read_bytes()
    kinds = [word for word in ("PyFunc", *NODES) if word.encode() in text]
    host = getattr(module, calls["drawn"][0])
    image, answers = tf.constant(Case("max_pool").x(np.float32)), []
    want = host(image).numpy().tobytes()
    threads = [
        threading.Thread(target=lambda: answers.extend(host(image).numpy().tobytes() == want for _ in range(20)))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    data = tf.data.Dataset.from_tensor_slices([image] * 12).map(host, num_parallel_calls=4)
    answers += [y.numpy().tobytes() == want for y in data]
    exported = tf.saved_model.load(str(folder / "keras"))  # which holds the variables
    served = exported.serve(IMAGES)
    print(
        "FOUND",
        json.dumps(
            {
                "different": different,
                "kinds": kinds,
                "at once": [len(answers), all(answers)],
                "keras": bool(np.array_equal(served, np.load(folder / "keras.npy"))),
            }
        ),
    )


if __name__ == "__main__":
    {"save": save, "load": load}[sys.argv[1]](Path(sys.argv[2]))
