"""The pools for TensorFlow, eager and in tf.function, with gradients to any order and in forward mode.

In a `tf.function` pools are ops of our own, which a SavedModel holds and another process loads after importing this module. They are part of
the extension that `python -m poolgrad.tensorflow build` compiles; without it they run through `tf.numpy_function`, and saving is an error.

>>> import tensorflow as tf
>>> import poolgrad.tensorflow as pool
>>> x = tf.Variable([1.0, 3.0, 2.0, 0.0])
>>> with tf.GradientTape() as tape:
...     y = tf.reduce_sum(pool.max_pool(x, 2) ** 2)
>>> tape.gradient(y, x).numpy().tolist()
[0.0, 6.0, 4.0, 0.0]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import tensorflow as tf

try:  # no public function tells which tensors have tangents
    from tensorflow.python.eager.forwardprop_util import pack_tangents as _tangents
except ImportError:
    _tangents = None
try:  # nor whether a tape or an accumulator is active
    from tensorflow.python.eager.record import could_possibly_record as _recording
except ImportError:
    _recording = None

from .._common.arrays import as_array
from .._common.errors import ArgumentErrors, short_repr
from .._frameworks import types
from .._frameworks.pools import Chosen, pool
from .._frameworks.spec import Frame, PoolSpec, carry, chosen
from ..config import limit_here
from . import own_ops
from .acceleration import accelerate as accelerate
from .acceleration import thread_limit

REFUSAL = (
    "poolgrad.tensorflow: SavedModel: got a function that pools through Python, wanted one traced after the ops were compiled: "
    "python -m poolgrad.tensorflow build; or save the weights, or a Keras model as .keras"
)


@lru_cache(1)
def _unsaved() -> Any:
    """Return a resource that no model tracks, with the refusal as its name.

    Every traced pool captures it: TensorFlow then refuses to save the function, and shows the name. Without it a SavedModel would be
    written that no other process can run, since the file names a Python function of this process.
    """
    with tf.init_scope(), tf.device("CPU:0"):
        return tf.raw_ops.VarHandleOp(dtype=tf.bool, shape=(), container="poolgrad", shared_name=REFUSAL)


def _refuse_saving() -> None:
    """Capture the resource in the function that is being traced; a graph of TensorFlow 1 captures nothing."""
    graph = tf.compat.v1.get_default_graph()
    if hasattr(graph, "capture"):
        graph.capture(_unsaved())


def _refuse_tangents(problems: ArgumentErrors, x: Any) -> None:
    """Refuse forward mode inside of a tf.function, where TensorFlow would take the kernel's derivative for 0."""
    if _tangents is not None and _tangents([x]).tangents:
        wanted = "one without: forward mode runs eagerly, tf.GradientTape in a tf.function too"
        problems.fail("x", "a tensor with a tangent in a tf.function", wanted, NotImplementedError)


def _array(tensor: Any) -> Any:
    """View the memory of an eager tensor as a NumPy array; copy bfloat16, which has no such view."""
    return tensor.numpy() if tensor.dtype == tf.bfloat16 else np.asarray(memoryview(tensor))


@lru_cache(1)
def _threads() -> int:
    """Return the limit on threads, which is fixed once a tensor exists."""
    return thread_limit()


def _host(function: partial[Any], dtypes: list[Any], shapes: list[Any], *tensors: Any) -> list[Any]:
    """Run a NumPy function of tensors and declare the shapes of its results; it has no gradient unless it is an op of our own."""
    kinds = [tf.as_dtype(d).as_numpy_dtype for d in dtypes]

    def called(*arrays: Any) -> list[Any]:
        with limit_here(_threads()):
            found = function(*arrays)
        parts = found if isinstance(found, list) else [found]
        return [np.ascontiguousarray(a).astype(k, copy=False) for a, k in zip(parts, kinds, strict=True)]

    if tf.executing_eagerly():
        return [tf.convert_to_tensor(a) for a in called(*map(_array, tensors))]
    if own_ops.OWN is not None:
        return own_ops.host(function, dtypes, shapes, *tensors)
    result: list[Any] = tf.numpy_function(called, tensors, dtypes, stateful=False)
    for tensor, shape in zip(result, shapes, strict=True):
        tensor.set_shape(shape)
    return result


def _traces_own_ops() -> bool:
    """Return True in a graph whose nodes are ops of our own, which know their gradients."""
    return own_ops.OWN is not None and not tf.executing_eagerly()


def _is_watched() -> bool:
    """Return False if no derivative of an eager call can be asked for: nothing records it."""
    return _recording is None or not tf.executing_eagerly() or bool(_recording())


def _carried(rule: PoolSpec, back: bool, v: Any, windows: Any, *state: Any) -> Any:
    """Apply the operator of the spec to v; its gradient applies the transpose by this same function."""
    if _traces_own_ops():
        return own_ops.linear(rule, back, v, windows, *state)
    shape = rule.source(v.shape) if back else rule.dest(v.shape)
    if not _is_watched():
        return _host(partial(carry, rule, back), [v.dtype], [shape], v, windows, *state)[0]

    @tf.custom_gradient
    def apply(v: Any) -> tuple[Any, Callable[[Any], Any]]:
        (y,) = _host(partial(carry, rule, back), [v.dtype], [shape], v, windows, *state)
        return y, lambda g: _carried(rule, not back, g, windows, *state)

    return apply(v)


class _TensorFlow:
    """The TensorFlow backend of the pools."""

    chosen: Any

    def describe(self, op: str, x: Any) -> tuple[Any, tuple[int, ...], np.dtype[Any]]:
        problems = ArgumentErrors(op)
        if not isinstance(x, (tf.Tensor, tf.Variable)):
            array = as_array(problems, "x", x, tensorflow=True)
            problems.raise_if_any()
            x = tf.convert_to_tensor(array)
        x = tf.convert_to_tensor(x)
        if not tf.executing_eagerly() and own_ops.OWN is None:
            _refuse_saving()
            _refuse_tangents(problems, x)
        if "GPU" in (x.device or "") or "TPU" in (x.device or ""):
            problems.fail(
                "x", f"a tensor on {x.device}", "one on the CPU: copy it under tf.device('CPU:0') with tf.identity"
            )
        if x.shape.rank is None:
            problems.fail(
                "x", "a tensor of unknown rank", "a known rank: give the function an input_signature, or set_shape"
            )
        return x, tuple(1 if n is None else int(n) for n in x.shape), np.dtype(x.dtype.as_numpy_dtype)

    def accept(self, op: str, x: Any, frame: Frame) -> None:
        unknown = [d for d, _, _, _ in frame.axes if x.shape[d] is None]
        if unknown:
            wanted = "a known one: only axes that are not pooled may be None; give an input_signature, or set_shape"
            ArgumentErrors(op).fail("x", f"an unknown length along axis {unknown[0]}, which is pooled", wanted)

    def constant(self, values: Any) -> Any:
        return tf.constant(values, tf.int32)

    def seed(self, op: str, seed: Any) -> Any:
        if (
            seed is None
        ):  # from TensorFlow's generator: fresh at each call, traced or not, and as tf.random.set_seed says
            return tf.random.uniform((2,), 0, 2**31 - 1, tf.int32)
        if not isinstance(seed, (tf.Tensor, tf.Variable)):
            return None
        if not seed.dtype.is_integer or seed.shape.rank not in (0, 1):
            ArgumentErrors(op).fail(
                "seed", short_repr(seed), "an integer, a pair of them, or an integer tensor of one or two"
            )
        return tf.convert_to_tensor(seed)

    def select(self, rule: PoolSpec, x: Any, windows: Any) -> tuple[Any, Any]:
        if _traces_own_ops():
            made = own_ops.select(rule, x, windows)
            return made[0], made[1] if rule.picks else None
        dest = rule.dest(x.shape)
        kinds = [x.dtype, tf.as_dtype(rule.frame.taps)][: 1 + rule.picks]
        if not _is_watched():
            found = _host(partial(chosen, rule), kinds, [dest] * len(kinds), x, windows)
            return found[0], found[1] if rule.picks else None
        found = _host(partial(chosen, rule), kinds, [dest] * len(kinds), tf.stop_gradient(x), windows)
        state = found[1] if rule.picks else tf.stop_gradient(x)

        @tf.custom_gradient
        def known(x: Any) -> tuple[Any, Callable[[Any], Any]]:
            return tf.identity(found[0]), lambda g: _carried(rule, True, g, windows, state)

        y = known(x) if x.dtype.is_floating else found[0]
        return y, found[1] if rule.picks else None

    def linear(self, rule: PoolSpec, back: bool, v: Any, windows: Any, *state: Any) -> Any:
        return _carried(rule, back, v, windows, *state)

    def compute(self, function: partial[Any], shape: tuple[Any, ...], dtype: Any, *arrays: Any) -> Any:
        return _host(function, [tf.as_dtype(dtype)], [shape], *(tf.stop_gradient(a) for a in arrays))[0]

    def constant_of(self, x: Any) -> Any:
        return tf.stop_gradient(x)

    def cast(self, x: Any, dtype: Any) -> Any:
        return tf.cast(x, dtype)

    def squeeze(self, x: Any, axes: tuple[int, ...]) -> Any:
        return tf.squeeze(x, axes)


_BACKEND = _TensorFlow()


class Taps(Chosen[tf.Tensor]):
    backend = _BACKEND


def _pool(op: str) -> Callable[..., Any]:
    """Return the pool of that name, marked so that AutoGraph does not convert it."""
    made: Callable[..., Any] = tf.autograph.experimental.do_not_convert(pool(_BACKEND, op))
    return made


max_pool: types.MaxPool[tf.Tensor, Taps] = _pool("max_pool")
min_pool: types.MaxPool[tf.Tensor, Taps] = _pool("min_pool")
avg_pool: types.AvgPool[tf.Tensor] = _pool("avg_pool")
sum_pool: types.SumPool[tf.Tensor] = _pool("sum_pool")
lp_pool: types.LpPool[tf.Tensor] = _pool("lp_pool")
fractional_max_pool: types.FractionalMaxPool[tf.Tensor, Taps] = _pool("fractional_max_pool")
fractional_avg_pool: types.FractionalAvgPool[tf.Tensor] = _pool("fractional_avg_pool")
adaptive_max_pool: types.AdaptiveMaxPool[tf.Tensor, Taps] = _pool("adaptive_max_pool")
adaptive_avg_pool: types.AdaptiveAvgPool[tf.Tensor] = _pool("adaptive_avg_pool")
global_max_pool: types.GlobalMaxPool[tf.Tensor] = _pool("global_max_pool")
global_min_pool: types.GlobalMaxPool[tf.Tensor] = _pool("global_min_pool")
global_avg_pool: types.GlobalAvgPool[tf.Tensor] = _pool("global_avg_pool")
global_sum_pool: types.GlobalSumPool[tf.Tensor] = _pool("global_sum_pool")
unpool: types.Unpool[tf.Tensor, Taps] = _pool("unpool")
