"""Ops of our own for graphs: a `tf.function` that pools becomes nodes that a SavedModel can hold, and any process can load.

They are part of the extension that `python -m poolgrad.tensorflow build` compiles; importing poolgrad.tensorflow registers them. The
core runs most of them without Python. The others are nodes that call the functions of `spec`, which their attribute names.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from .._frameworks import compiled, spec, texts
from .._frameworks.spec import PoolSpec
from ..config import limit_here
from . import acceleration
from .acceleration import thread_limit

INVALID, EXHAUSTED, INTERNAL = 3, 8, 13  # TensorFlow's codes


class _Array(ctypes.Structure):
    """An input of a call: TensorFlow's number of its type, its rank, its shape and its memory."""

    _fields_ = (
        ("type", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("data", ctypes.c_void_p),
    )

    def view(self) -> Any:
        """Return the memory as an array that cannot be written."""
        shape, dtype = tuple(self.dims[: self.rank]), np.dtype(tf.as_dtype(self.type).as_numpy_dtype)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if not size:
            return np.empty(shape, dtype)
        array = np.frombuffer((ctypes.c_char * size).from_address(self.data), dtype).reshape(shape)
        array.flags.writeable = False
        return array


_Call = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_int32,
    ctypes.POINTER(_Array),
    ctypes.c_int32,
    ctypes.POINTER(ctypes.c_int),
    ctypes.c_void_p,
    ctypes.c_void_p,
)


class _OwnOps:
    """The loaded library, the functions that make nodes, and Python's side of the nodes that call it."""

    def __init__(self, library: ctypes.CDLL, nodes: Any) -> None:
        self.nodes, self._library = nodes, library
        library.poolgrad_tf_output.restype = ctypes.c_void_p
        library.poolgrad_tf_output.argtypes = [
            ctypes.c_void_p,
            ctypes.c_int32,
            ctypes.POINTER(ctypes.c_int64),
            ctypes.c_int64,
            ctypes.c_void_p,
        ]
        self._kept = _Call(self._called)  # TensorFlow may call it until the process ends
        library.poolgrad_tf_host(self._kept)
        self.follow_threads()

    def follow_threads(self) -> None:
        """Give the kernels TensorFlow's limit on threads."""
        self._library.poolgrad_tf_threads(thread_limit())

    def _called(
        self, call: bytes, inputs: int, arrays: Any, results: int, types: Any, outputs: int, text: int
    ) -> int:  # pragma: no cover  # on TensorFlow's threads
        try:
            with limit_here(thread_limit()):
                found = texts.read(call.decode())(*(arrays[i].view() for i in range(inputs)))
            parts = found if isinstance(found, list) else [found]
            for part, number in zip(parts, types[:results], strict=True):
                made = np.ascontiguousarray(part).astype(tf.as_dtype(number).as_numpy_dtype, copy=False)
                dims = (ctypes.c_int64 * made.ndim)(*made.shape)
                memory = self._library.poolgrad_tf_output(outputs, made.ndim, dims, made.itemsize, text)
                if not memory and made.size:
                    return EXHAUSTED
                ctypes.memmove(memory, made.ctypes.data, made.nbytes)
        except BaseException as error:  # an exception cannot pass through TensorFlow
            said = f"{type(error).__name__}: {error}".encode()[:1023].decode(errors="ignore").encode()
            ctypes.memmove(text, said + b"\0", len(said) + 1)
            if isinstance(error, MemoryError):
                return EXHAUSTED
            return INVALID if isinstance(error, (ValueError, TypeError)) else INTERNAL
        return 0


def _load() -> _OwnOps | None:
    """Register the ops if the extension was built and this version of TensorFlow was tested."""
    path = acceleration.EXTENSION.find()
    if path is None or sys.platform == "win32" or not acceleration.was_tested():
        return None
    try:
        nodes = tf.load_op_library(str(path))  # first: TensorFlow reads which ops a library brings as it loads it
        library = acceleration.EXTENSION.load(path)
        library.poolgrad_tf_own_ops.restype = ctypes.c_char_p
        said = library.poolgrad_tf_own_ops()
        if said:
            raise RuntimeError(said.decode())
        return _OwnOps(library, nodes)
    except Exception as error:
        warnings.warn(
            f"poolgrad.tensorflow: functions that pool call Python, and cannot be saved, since {path} cannot be used: {error}",
            stacklevel=2,
        )
        return None


OWN = _load()


def select(rule: PoolSpec, x: Any, windows: Any) -> list[Any]:
    """Make the node of `spec.select`; return the best cells, and the taps if the pool chooses one cell."""
    dest = _after(rule, False, x.shape)
    kinds = [x.dtype, tf.as_dtype(rule.frame.taps)][: 1 + rule.picks]
    if not compiled.chooses(rule, np.dtype(x.dtype.as_numpy_dtype)):
        return host(partial(spec.chosen, rule), kinds, [dest] * len(kinds), x, windows)
    made = _own().poolgrad_select(
        x=x,
        windows=windows,
        axes=compiled.axes_of(rule.frame),
        least=rule.least,
        nan_wins=rule.nan == "propagate",
        spec=texts.write(partial(spec.chosen, rule)),
        Taps=kinds[1],
    )
    return _shaped(made, [dest] * 2)


def linear(rule: PoolSpec, back: bool, v: Any, windows: Any, *state: Any) -> Any:
    """Make the node of `spec.carry`; its gradient is the node of the transpose."""
    shape = _after(rule, back, v.shape)
    call = partial(spec.carry, rule, back)
    if not compiled.applies(rule, np.dtype(v.dtype.as_numpy_dtype)):
        return host(call, [v.dtype], [shape], v, windows, *state)[0]
    words = {"axes": compiled.axes_of(rule.frame), "back": back, "spec": texts.write(call)}
    if rule.kind == "pick":
        made = _own().poolgrad_follow(v=v, windows=windows, taps=state[0], **words)
    else:
        how = compiled.division(rule)
        (factor,) = struct.unpack("<q", struct.pack("<d", how["factor"]))  # an attribute of TensorFlow's has no float64
        made = _own().poolgrad_fold(v=v, windows=windows, mean=how["mean"], spans=how["spans"], factor=factor, **words)
    return _shaped([made], [shape])[0]


def host(call: partial[Any], dtypes: Sequence[Any], shapes: Sequence[Any], *tensors: Any) -> list[Any]:
    """Make a node that calls a function of `spec` by Python."""
    return _shaped(_own().poolgrad_host(arrays=list(tensors), Out=list(dtypes), call=texts.write(call)), shapes)


def _after(rule: PoolSpec, back: bool, shape: Any) -> Any:
    """Return the shape of the result; TensorFlow's forward mode brings tensors whose rank it does not know."""
    if shape.rank is None:
        return shape
    return rule.source(shape) if back else rule.dest(shape)


def _own() -> Any:
    assert OWN is not None
    OWN.follow_threads()
    return OWN.nodes


def _shaped(tensors: Sequence[Any], shapes: Sequence[Any]) -> list[Any]:
    for tensor, shape in zip(tensors, shapes, strict=True):
        tensor.set_shape(shape)
    return list(tensors)


def _gradients(op: Any, call: partial[Any], dy: Any) -> list[Any]:
    """Return the gradients of the inputs of a node: by the transpose for the first, none for the others."""
    rest = [None] * (len(op.inputs) - 1)
    if call.func is spec.chosen:
        (rule,) = call.args
        state = op.outputs[1] if rule.picks else tf.stop_gradient(op.inputs[0])
        return [linear(rule, True, dy, op.inputs[1], state), *rest] if dy.dtype.is_floating else [None, *rest]
    if call.func is spec.carry:
        rule, back = call.args
        return [linear(rule, not back, dy, *op.inputs[1:]), *rest]
    return [None, *rest]


def _gradient(op: Any, dy: Any, *_: Any) -> list[Any]:
    return _gradients(op, texts.read(op.get_attr("spec").decode()), dy)


def _host_gradient(op: Any, dy: Any, *_: Any) -> list[Any]:
    return _gradients(op, texts.read(op.get_attr("call").decode()), dy)


if OWN is not None:
    for _name in ("PoolgradSelect", "PoolgradFollow", "PoolgradFold"):
        tf.RegisterGradient(_name)(_gradient)
    tf.RegisterGradient("PoolgradHost")(_host_gradient)
