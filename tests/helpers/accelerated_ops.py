"""TensorFlow's own ops on NumPy arrays, with poolgrad's kernels registered: for processes that compare them with recorded calls.

A call that TensorFlow computes by another kernel raises AssertionError, unless ACCELERATED_ANY_KERNEL is set.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from poolgrad._ops.table import OPS, Kind
from poolgrad.tensorflow import accelerate

STATUS = accelerate()
ANY_KERNEL = bool(os.environ.get("ACCELERATED_ANY_KERNEL"))
LISTS = (Kind.SIZES_TENSOR,)  # lists that TensorFlow takes as int32 tensors


def _op(name: str) -> Callable[..., Any]:
    function = getattr(tf.raw_ops, name)
    lists = {p.name for p in OPS[name].params if p.kind in LISTS}

    def call(**given: Any) -> Any:
        words = {}
        for key, value in given.items():
            if key == "Targmax":
                value = tf.as_dtype(value)
            elif isinstance(value, np.ndarray):
                value = tf.constant(np.ascontiguousarray(value))
            elif key in lists:
                value = tf.constant(value, tf.int32)
            words[key] = value
        before = accelerate.status().ops[name]
        made = function(**words)
        assert ANY_KERNEL or accelerate.status().ops[name] == before + 1, f"{name}: TensorFlow ran another kernel"
        return tuple(t.numpy() for t in made) if isinstance(made, tuple) else made.numpy()

    return call


for _name in STATUS.ops:
    globals()[_name] = _op(_name)
