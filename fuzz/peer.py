"""TensorFlow in a process of its own: it may die, and is started again. Both ends of the pipe are here.

PYTHON fuzz/peer.py      reads pickled (op, arguments) from its input, answers with arrays or a text
"""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
from typing import Any, BinaryIO

QUANTISED = {"uint8": "quint8", "int8": "qint8", "int32": "qint32", "uint16": "quint16", "int16": "qint16"}


def send(pipe: BinaryIO, what: Any) -> None:
    """One message."""
    data = pickle.dumps(what)
    pipe.write(struct.pack("q", len(data)) + data)
    pipe.flush()


def receive(pipe: BinaryIO) -> Any:
    """One message; EOFError if there is none."""
    head = pipe.read(8)
    if len(head) < 8:
        raise EOFError
    return pickle.loads(pipe.read(struct.unpack("q", head)[0]))


class TensorFlow:
    """The other end: asks, and starts it again if it died."""

    def __init__(self, python: str) -> None:
        self.python, self.deaths = python, 0
        self.start()

    def start(self) -> None:
        """A new process; one thread, its plain kernels."""
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "CUDA_VISIBLE_DEVICES": "-1"}
        env = {**{k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LD_PRELOAD")}, **quiet}
        self.process = subprocess.Popen(
            [self.python, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
        )

    def ask(self, op: str, args: dict[str, Any]) -> Any:
        """Its arrays, or a text: why it refused, or that it died."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            send(self.process.stdin, (op, args))
            return receive(self.process.stdout)
        except (EOFError, BrokenPipeError):
            self.deaths += 1
            self.process.wait()
            self.start()
            return "died"


def answer(tf: Any, op: str, args: dict[str, Any]) -> Any:
    """What tf.raw_ops gives, as plain arrays."""
    import numpy as np

    given = {n: tf.constant(v) if isinstance(v, (np.ndarray, np.generic)) else v for n, v in args.items()}
    if op.startswith("Quantized"):
        given["input"] = tf.bitcast(given["input"], QUANTISED[args["input"].dtype.name])
    if "Targmax" in given:
        given["Targmax"] = tf.as_dtype(given["Targmax"])
    result = getattr(tf.raw_ops, op)(**given)
    outs = list(result) if isinstance(result, tuple) else [result]
    plain = {name: kind for kind, name in QUANTISED.items()}
    return [tf.bitcast(o, plain[o.dtype.name]).numpy() if o.dtype.name in plain else o.numpy() for o in outs]


def serve() -> None:
    """Answers until nobody asks."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever the library prints is no message
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    while True:
        try:
            op, args = receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            send(out, answer(tf, op, args))
        except Exception as error:
            send(out, f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    serve()
