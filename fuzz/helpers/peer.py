"""TensorFlow in a process of its own: it may die, and is started again. Both ends of the pipe are here.

PYTHON fuzz/helpers/peer.py      reads pickled requests from its input, answers with arrays or a text

A request is (name, arguments): an op of tf.raw_ops, or a function of `adapters`, which runs `poolgrad.tensorflow` there.
"""

from __future__ import annotations

import os
import pickle
import select
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

LATE = 60  # seconds until an answer that did not come counts as a death; the first needs an import
QUANTISED = {"uint8": "quint8", "int8": "qint8", "int32": "qint32", "uint16": "quint16", "int16": "qint16"}


class Listed(NamedTuple):
    """A list that TensorFlow is to convert: to a dtype, to one of its choice (""), or to that of the first such list ("T")."""

    values: Any
    dtype: str = ""


def send(pipe: BinaryIO, what: Any) -> None:
    """Write one message."""
    data = pickle.dumps(what)
    pipe.write(struct.pack("q", len(data)) + data)
    pipe.flush()


def receive(pipe: BinaryIO) -> Any:
    """Read one message; EOFError if there is none."""
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
        """Start a process; one thread, its plain kernels. Another Python than this one gets none of this one's paths."""
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "CUDA_VISIBLE_DEVICES": "-1"}
        foreign = ("LD_PRELOAD",) if self.python == sys.executable else ("LD_PRELOAD", "PYTHONPATH")
        env = {**{k: v for k, v in os.environ.items() if k not in foreign}, **quiet}
        self.process = subprocess.Popen(
            [self.python, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
        )

    def ask(self, name: str, args: dict[str, Any]) -> Any:
        """Return its arrays, or a text: why it refused, or that it died, twice."""
        found = self._once(name, args)
        return self._once(name, args) if isinstance(found, str) and found == "died" else found

    def _once(self, name: str, args: dict[str, Any]) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            send(self.process.stdin, (name, args))
            if select.select([self.process.stdout], [], [], LATE)[0]:
                return receive(self.process.stdout)
        except (EOFError, BrokenPipeError):
            pass
        self.deaths += 1
        self.process.kill()
        self.process.wait()
        self.start()
        return "died"


def converted(tf: Any, args: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with tensors for arrays and for lists that stand for arrays."""
    import numpy as np

    given: dict[str, Any] = {}
    first = None
    for name, value in args.items():
        if isinstance(value, Listed):
            dtype = first if value.dtype == "T" else value.dtype or None
            given[name] = tf.convert_to_tensor(value.values, dtype)
            first = first or (given[name].dtype if value.dtype in ("", "T") else None)
        else:
            given[name] = tf.constant(value) if isinstance(value, (np.ndarray, np.generic)) else value
    return given


def answer(tf: Any, op: str, args: dict[str, Any]) -> Any:
    """Return the results of the op of tf.raw_ops as plain arrays."""
    given = converted(tf, args)
    if op.startswith("Quantized"):
        given["input"] = tf.bitcast(given["input"], QUANTISED[args["input"].dtype.name])
    if "Targmax" in given:
        given["Targmax"] = tf.as_dtype(given["Targmax"])
    result = getattr(tf.raw_ops, op)(**given)
    outs = list(result) if isinstance(result, tuple) else [result]
    plain = {name: kind for kind, name in QUANTISED.items()}
    return [tf.bitcast(o, plain[o.dtype.name]).numpy() if o.dtype.name in plain else o.numpy() for o in outs]


def serve() -> None:
    """Answer until nobody asks."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the library's prints are no messages
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    sys.path.append(str(Path(__file__).parent))
    while True:
        try:
            name, args = receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            if name in vars(tf.raw_ops):
                send(out, answer(tf, name, args))
            else:
                import tensorflow_pools

                send(out, getattr(tensorflow_pools, name)(**args))
        except Exception as error:
            send(out, f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    sys.modules["peer"] = sys.modules["__main__"]  # messages name their classes by the module that sent them
    serve()
