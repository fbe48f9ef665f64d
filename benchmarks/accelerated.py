"""Time training steps of Keras models with and without `poolgrad.tensorflow.accelerate()`.

    python -m benchmarks.accelerated [--onednn 0] [--onednn 1] [--seconds 1] [--model NAME]

TensorFlow cannot drop a kernel, so two processes take turns: one runs TensorFlow's kernels, one ours. A row tells the best time
of a step in each, the calls of our kernels in one step, and whether the losses of the first steps are equal.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from .markdown import table

MODELS = ("2-D", "3-D", "fractional", "argmax", "without pools")
MODES = ("eager", "tf.function")


# ---- one process


def _model(name: str) -> tuple[Any, tuple[int, ...]]:
    """Return a model and the shape of a batch."""
    import keras
    import tensorflow as tf

    layer: Any = keras.layers
    base: Any = layer.Layer
    keras.utils.set_random_seed(1)

    class Fractional(base):  # type: ignore[misc]  # keras has no types
        """Fractional maxima, then fractional means."""

        def call(self, x: Any) -> Any:
            x = tf.nn.fractional_max_pool(x, [1.0, 1.41, 1.41, 1.0], seed=5)[0]
            return tf.nn.fractional_avg_pool(x, [1.0, 1.41, 1.41, 1.0], seed=5)[0]

    class Unpool(base):  # type: ignore[misc]
        """Maxima with their positions, and back to these positions: the core of SegNet."""

        def call(self, x: Any) -> Any:
            y, at = tf.nn.max_pool_with_argmax(x, 2, 2, "SAME", include_batch_in_index=True)
            flat = tf.scatter_nd(tf.reshape(at, [-1, 1]), tf.reshape(y, [-1]), [tf.size(x, tf.int64)])
            return tf.reshape(flat, tf.shape(x))

    def convolution(filters: int, rank: int = 2) -> Any:
        return (layer.Conv3D if rank == 3 else layer.Conv2D)(filters, 3, padding="same", activation="relu")

    shape: tuple[int, ...] = (8, 64, 64, 3)
    if name == "2-D":
        parts = [
            convolution(16),
            layer.MaxPooling2D(2),
            convolution(32),
            layer.MaxPooling2D(3, 2),
            layer.AveragePooling2D(2),
        ]
    elif name == "3-D":
        shape = (2, 16, 32, 32, 2)
        parts = [
            convolution(8, 3),
            layer.MaxPooling3D(2),
            convolution(16, 3),
            layer.MaxPooling3D(2),
            layer.AveragePooling3D(2),
        ]
    elif name == "fractional":
        parts = [convolution(16), Fractional(), convolution(32), Fractional()]
    elif name == "argmax":
        parts = [convolution(16), Unpool(), convolution(16), Unpool()]
    else:
        parts = [convolution(16), layer.Conv2D(32, 3, 2, activation="relu")]
    made = keras.Sequential([layer.Input(shape[1:]), *parts, layer.Flatten(), layer.Dense(4)])
    return made, shape


def _step(name: str, mode: str) -> Callable[[], float]:
    """Return a training step, which returns its loss."""
    import keras
    import numpy as np
    import tensorflow as tf

    model, shape = _model(name)
    optimizer = keras.optimizers.SGD(1e-3)
    x = tf.constant(np.random.default_rng(0).normal(size=shape).astype(np.float32))
    target = tf.ones((shape[0], 4))

    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - target) ** 2)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    run = tf.function(step) if mode == "tf.function" else step
    return lambda: float(run())


def worker(ours: bool) -> None:
    """Answer lines of the parent: name, mode and seconds; each answer has the best time, calls per step and losses."""
    runs: Callable[[], int] = lambda: 0  # noqa: E731
    if ours:
        from poolgrad.tensorflow import accelerate

        accelerate()
        runs = lambda: accelerate.status().runs  # noqa: E731
    steps: dict[tuple[str, str], Callable[[], float]] = {}
    for line in sys.stdin:
        name, mode, seconds = json.loads(line)
        answer: dict[str, Any] = {}
        if (name, mode) not in steps:
            steps[name, mode] = _step(name, mode)
            answer["losses"] = [steps[name, mode]() for _ in range(3)]
            before = runs()
            steps[name, mode]()
            answer["calls"] = runs() - before
        best, end, turns = float("inf"), time.perf_counter() + seconds, 0
        while turns < 2 or time.perf_counter() < end:
            start = time.perf_counter()
            steps[name, mode]()
            best, turns = min(best, time.perf_counter() - start), turns + 1
        print("ANSWER" + json.dumps({**answer, "best": best}), flush=True)


# ---- the parent


class _Process:
    def __init__(self, ours: bool, onednn: str) -> None:
        words = [sys.executable, "-m", "benchmarks.accelerated", "--worker", "ours" if ours else "tensorflow"]
        env = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": onednn, "TF_CPP_MIN_LOG_LEVEL": "3"}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=env)

    def ask(self, name: str, mode: str, seconds: float) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([name, mode, seconds]) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("ANSWER"):
                answer: dict[str, Any] = json.loads(line[6:])
                return answer
        raise RuntimeError(f"accelerated: {name}: the process ended")


def race(onednn: str, models: list[str], seconds: float) -> list[list[str]]:
    """Return the rows of one setting of oneDNN."""
    rows, sides = [], [_Process(False, onednn), _Process(True, onednn)]
    for name in models:
        for mode in MODES:
            first = [side.ask(name, mode, 0) for side in sides]
            best = [float("inf")] * 2
            for _ in range(4):  # turns
                for i, side in enumerate(sides):
                    best[i] = min(best[i], side.ask(name, mode, seconds / 4)["best"])
            a, b = (answer["losses"] for answer in first)
            apart = max(abs(p - q) / max(abs(p), 1e-30) for p, q in zip(a, b, strict=True))
            equal = "equal" if a == b else f"within {apart:.0e}"
            times = [f"{1e3 * t:.2f}" for t in best]
            row = [
                name,
                mode,
                "on" if onednn == "1" else "off",
                *times,
                f"{best[0] / best[1]:.2f}",
                str(first[1]["calls"]),
                equal,
            ]
            print("  ".join(row), flush=True)
            rows.append(row)
    for side in sides:
        assert side.process.stdin is not None
        side.process.stdin.close()
        side.process.wait()
    return rows


def main(arguments: list[str] | None = None) -> int:
    """Run the races and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onednn", action="append", choices=["0", "1"], help="only this setting")
    parser.add_argument("--model", action="append", choices=MODELS, help="only this model; may be repeated")
    parser.add_argument("--seconds", type=float, default=1.0, help="the time of a model, a mode and a side")
    parser.add_argument("--worker", choices=["ours", "tensorflow"], help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.worker:
        worker(given.worker == "ours")
        return 0
    rows = [
        row for onednn in given.onednn or ["0", "1"] for row in race(onednn, given.model or list(MODELS), given.seconds)
    ]
    head = ["model", "mode", "oneDNN", "TensorFlow, ms", "ours, ms", "ratio", "our calls per step", "losses"]
    print("\n".join(["", *table(head, rows)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
