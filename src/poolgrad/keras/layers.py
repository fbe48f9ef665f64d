"""Define the layers, over the pools of the backend in use."""

from __future__ import annotations

import importlib
import random
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from .._common.errors import ArgumentErrors, short_repr
from .._frameworks.spec import Frame, PoolSpec, boundaries, frame_of
from .._pooling.fractional import fractional_windows
from .._pooling.window_args import plan

_BACKENDS = {"jax": "poolgrad.jax", "tensorflow": "poolgrad.tensorflow", "torch": "poolgrad.keras.on_torch"}

Shape = tuple[int | None, ...]


def _backend() -> Any:
    name = keras.backend.backend()
    if name not in _BACKENDS:
        ArgumentErrors("poolgrad.keras").fail(
            "backend", short_repr(name), "'jax', 'tensorflow' or 'torch'", NotImplementedError
        )
    return importlib.import_module(_BACKENDS[name])


def _spatial(op: str, shape: Sequence[Any], data_format: str, rank: int | None = None) -> tuple[int, ...]:
    """Return the pooled axes of arrays of that shape."""
    if rank is not None and len(shape) != rank + 2:
        ArgumentErrors(op).fail(
            "x", f"shape {list(shape)}", f"{rank + 2} dimensions: a batch, {rank} to pool, and channels"
        )
    return tuple(range(1, len(shape) - 1) if data_format == "channels_last" else range(2, len(shape)))


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _judge_sizes(problems: ArgumentErrors, name: str, value: Any, rank: int | None = None) -> None:
    """Note a value that is neither a positive integer nor a list of them, one per pooled axis."""
    values, several = _several(value), isinstance(value, (list, tuple))
    wanted = f"a positive integer, or {rank or 'one per pooled axis'}{' of them' if rank else ''}"
    if not all(isinstance(v, (int, np.integer)) and not isinstance(v, bool) for v in values):
        problems.add(name, short_repr(value), wanted, TypeError)
    elif min(values, default=0) < 1 or (several and rank not in (None, len(values))):
        problems.add(name, short_repr(value), wanted)


def _judge_flag(problems: ArgumentErrors, name: str, value: Any) -> None:
    if not isinstance(value, (bool, np.bool_)) and not (type(value) is int and value in (0, 1)):
        problems.add(name, short_repr(value), "True or False", TypeError)


class _Pooling(keras.layers.Layer):
    """The base of all layers: the order of the axes, and whether the backend may compile the layer."""

    def __init__(self, data_format: str | None = None, **rest: Any) -> None:
        super().__init__(**rest)
        self.data_format = keras.config.image_data_format() if data_format is None else data_format
        if self.data_format not in ("channels_last", "channels_first"):
            wanted = "'channels_last' or 'channels_first'"
            ArgumentErrors(type(self).__name__).fail("data_format", short_repr(self.data_format), wanted)
        self.supports_jit = keras.backend.backend() == "jax"  # elsewhere the kernels are called, not compiled


class _Fractional(_Pooling):
    """Pooling over windows that are drawn anew at each training step, and stay the same in inference."""

    pool: str
    rank: int

    def __init__(
        self,
        ratio: float | Sequence[float] | None = None,
        size: int | Sequence[int] | None = None,
        pseudo_random: bool = False,
        overlapping: bool = False,
        data_format: str | None = None,
        seed: int | None = None,
        **rest: Any,
    ) -> None:
        super().__init__(data_format, **rest)
        self.ratio, self.size, self.pseudo_random, self.overlapping = ratio, size, pseudo_random, overlapping
        self._judge()
        # Kept even if it was not given: a model that is loaded again pools as the one that was saved.
        self.seed = random.randrange(1, 2**31) if seed is None else seed
        self.seed_generator = self._generator()

    def _judge(self) -> None:
        problems = ArgumentErrors(type(self).__name__)
        ratios = _several(self.ratio)
        if (self.ratio is None) == (self.size is None):
            problems.add("ratio", short_repr(self.ratio), "either ratio or size")
        elif self.ratio is None:
            _judge_sizes(problems, "size", self.size, self.rank)
        elif not all(isinstance(r, (int, float, np.number)) and not isinstance(r, bool) and r >= 1 for r in ratios) or (
            isinstance(self.ratio, (list, tuple)) and len(ratios) != self.rank
        ):
            problems.add("ratio", short_repr(self.ratio), f"a number of at least 1, or {self.rank} of them")
        _judge_flag(problems, "pseudo_random", self.pseudo_random)
        _judge_flag(problems, "overlapping", self.overlapping)
        problems.raise_if_any()

    def _generator(self) -> Any:
        problems, name = ArgumentErrors(type(self).__name__), keras.backend.backend()
        if isinstance(self.seed, bool) or not isinstance(self.seed, (int, np.integer)):
            problems.fail("seed", short_repr(self.seed), "an integer", TypeError)
        self.seed = int(self.seed)
        try:
            return keras.random.SeedGenerator(self.seed)
        except (ValueError, OverflowError, RuntimeError):
            wanted = f"an integer that {name} holds: every backend holds 0 to 2**31 - 1"
            problems.fail("seed", short_repr(self.seed), wanted)

    def _words(self) -> dict[str, Any]:
        several = {
            k: tuple(v) if isinstance(v, (list, tuple)) else v for k, v in (("ratio", self.ratio), ("size", self.size))
        }
        return {**several, "pseudo_random": self.pseudo_random, "overlapping": self.overlapping}

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Return the pooled array."""
        words = self._words()
        seed = self.seed_generator.next() if training else (self.seed, 0)
        axes = _spatial(self.pool, inputs.shape, self.data_format, self.rank)
        return getattr(_backend(), self.pool)(inputs, words.pop("ratio"), seed=seed, axes=axes, **words)

    def compute_output_shape(self, input_shape: Sequence[int | None]) -> Shape:
        """Return the pooled shape of that input shape."""
        found = list(input_shape)
        axes = _spatial(self.pool, input_shape, self.data_format, self.rank)
        words = self._words()
        for i, d in enumerate(axes):
            n = input_shape[d]
            if n is not None:
                ratio, size = (v[i] if isinstance(v, tuple) else v for v in (words["ratio"], words["size"]))
                found[d] = len(fractional_windows(n, ratio, size=size, seed=0))
        return tuple(found)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that rebuild the layer."""
        return {**super().get_config(), **self._words(), "data_format": self.data_format, "seed": self.seed}


_FRACTIONAL = """Fractional {what} pooling over {rank} axes, over windows drawn at random.

In training every step draws its windows, from `seed` and a counter, the same on every backend; in inference they are those of `seed`.

Parameters
----------
ratio : float or sequence of float, optional
    About so many cells per window, at least 1. Give either this or `size`.
size : int or sequence of int, optional
    Windows along each pooled axis.
pseudo_random : bool
    Spread the windows more evenly.
overlapping : bool
    Let neighbours share the cell at their border.
data_format : {{"channels_last", "channels_first"}}, optional
    Order of the axes. Default: that of the Keras configuration.
seed : int, optional
    Seed of the windows. Default: drawn when the layer is made, and saved with it.
**rest
    Arguments of `keras.layers.Layer`, such as `name` and `dtype`.

Raises
------
ValueError, TypeError
    The message names the layer, the argument, the value that came and the values that are wanted.

See Also
--------
poolgrad.fractional_max_pool, poolgrad.fractional_avg_pool : the pools of NumPy arrays.

Examples
--------
>>> layer = {name}(1.5, seed=1)
>>> layer.compute_output_shape((None, *[9] * {rank}, 4)) == (None, *[6] * {rank}, 4)
True
"""


def _layer(pool: str, rank: int, name: str, what: str) -> Any:
    """Return the fractional layer of that rank."""
    text = _FRACTIONAL.format(what=what, rank=rank, name=name)
    made = type(name, (_Fractional,), {"pool": pool, "rank": rank, "__doc__": text, "__module__": __name__})
    return keras.saving.register_keras_serializable(package="poolgrad")(made)


FractionalMaxPooling1D = _layer("fractional_max_pool", 1, "FractionalMaxPooling1D", "max")
FractionalMaxPooling2D = _layer("fractional_max_pool", 2, "FractionalMaxPooling2D", "max")
FractionalMaxPooling3D = _layer("fractional_max_pool", 3, "FractionalMaxPooling3D", "max")
FractionalAveragePooling1D = _layer("fractional_avg_pool", 1, "FractionalAveragePooling1D", "average")
FractionalAveragePooling2D = _layer("fractional_avg_pool", 2, "FractionalAveragePooling2D", "average")
FractionalAveragePooling3D = _layer("fractional_avg_pool", 3, "FractionalAveragePooling3D", "average")


class _Sliding(_Pooling):
    """Windows that slide, in Keras' words."""

    def __init__(
        self,
        pool_size: int | Sequence[int] = 2,
        strides: int | Sequence[int] | None = None,
        padding: str = "valid",
        data_format: str | None = None,
        **rest: Any,
    ) -> None:
        super().__init__(data_format, **rest)
        self.pool_size, self.strides, self.padding = pool_size, strides, padding
        self._judge()

    def _judge(self) -> None:
        problems = ArgumentErrors(type(self).__name__)
        _judge_sizes(problems, "pool_size", self.pool_size)
        if self.strides is not None:
            _judge_sizes(problems, "strides", self.strides)
        if isinstance(self.padding, str) and self.padding.lower() not in ("valid", "same", "same_lower"):
            problems.add(
                "padding", short_repr(self.padding), "'valid', 'same', 'same_lower', an integer, or a pair per axis"
            )
        problems.raise_if_any()

    def _plan(self, shape: Sequence[int | None]) -> Any:
        """Return the windows over an array of that shape, lengths that are not pooled being 1."""
        name = type(self).__name__
        axes = _spatial(name, shape, self.data_format)
        self._judge_rank(axes)
        if any(shape[d] is None for d in axes):
            wanted = "known lengths along the pooled axes; the batch and the channels may be None"
            ArgumentErrors(name).fail("inputs", f"shape {list(shape)}", wanted)
        own: list[Any] = [n if d in axes else 1 for d, n in enumerate(shape)]
        return plan(own, self.pool_size, self.strides, padding=self.padding, axes=axes)

    def _judge_rank(self, axes: tuple[int, ...]) -> None:
        """Refuse lists that have another length than there are pooled axes."""
        problems = ArgumentErrors(type(self).__name__)
        for name in ("pool_size", "strides", "size"):
            value = getattr(self, name, None)
            if isinstance(value, (list, tuple)) and len(value) != len(axes):
                problems.add(name, short_repr(value), f"a positive integer, or {len(axes)} of them")
        if not axes:
            problems.add("inputs", "an array without axes to pool", "a batch, axes to pool, and channels")
        problems.raise_if_any()

    def _frame(self, shape: Sequence[int | None]) -> tuple[Frame, Any]:
        windows = self._plan(shape)
        axes = {d: axis for d, axis in enumerate(windows.by_dimension) if axis is not None}
        return frame_of(axes), boundaries(tuple(axes.values()))

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that rebuild the layer."""
        words = {name: getattr(self, name) for name in ("pool_size", "strides", "padding", "data_format")}
        return {**super().get_config(), **words}


@keras.saving.register_keras_serializable(package="poolgrad")
class MaxPoolingWithTaps(_Sliding):
    """Max pooling over one to three axes or more, which also returns the taps: per window, the number of the cell it chose.

    Taps are a byte each for windows of at most 256 cells, else int32.

    Parameters
    ----------
    pool_size : int or sequence of int
        Cells of a window: one number for all pooled axes, or one each.
    strides : int or sequence of int, optional
        Step between windows. Default: `pool_size`.
    padding : {"valid", "same", "same_lower"}, int, or pairs
        Moves the windows beyond the edge; cells of padding are never chosen.
    data_format : {"channels_last", "channels_first"}, optional
        Order of the axes. Default: that of the Keras configuration.
    **rest
        Arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Raises
    ------
    ValueError, TypeError
        The message names the layer, the argument, the value that came and the values that are wanted.

    See Also
    --------
    MaxUnpooling : with the same arguments, puts values back to where they came from.
    poolgrad.max_pool : the pool of NumPy arrays.

    Examples
    --------
    >>> MaxPoolingWithTaps(2, data_format="channels_last").compute_output_shape((None, 8, 6, 3))
    ((None, 4, 3, 3), (None, 4, 3, 3))
    """

    def call(self, inputs: Any) -> tuple[Any, Any]:
        """Return the maxima, and the taps."""
        axes = _spatial("MaxPoolingWithTaps", inputs.shape, self.data_format)
        self._judge_rank(axes)
        y, taps = _backend().max_pool(
            inputs, self.pool_size, self.strides, padding=self.padding, axes=axes, return_taps=True
        )
        return y, keras.ops.cast(keras.ops.convert_to_tensor(taps.values), self._tap_type(taps.rule.frame))

    @staticmethod
    def _tap_type(frame: Frame) -> str:
        return "uint8" if frame.cells <= 256 else "int32"

    def compute_output_shape(self, input_shape: Sequence[int | None]) -> tuple[Shape, Shape]:
        """Return the shapes of maxima and taps."""
        found = self._frame(input_shape)[0].dest(input_shape)
        return found, found

    def compute_output_spec(self, inputs: Any) -> tuple[Any, Any]:
        """Maxima as the layer computes, taps as integers."""
        shape, _ = self.compute_output_shape(inputs.shape)
        taps = keras.KerasTensor(shape, self._tap_type(self._frame(inputs.shape)[0]))
        return keras.KerasTensor(shape, self.compute_dtype), taps


@keras.saving.register_keras_serializable(package="poolgrad")
class MaxUnpooling(_Sliding):
    """Puts values back to the cells that `MaxPoolingWithTaps` chose: call it with the values and the taps.

    Values that come to the same cell are added up.

    Parameters
    ----------
    pool_size : int or sequence of int
        Cells of a window: one number for all pooled axes, or one each.
    strides : int or sequence of int, optional
        Step between windows. Default: `pool_size`.
    padding : {"valid", "same", "same_lower"}, int, or pairs
        Moves the windows beyond the edge; cells of padding are never chosen.
    size : int or sequence of int, optional
        Length of the result along each pooled axis. Default: the windows times their stride.
    data_format : {"channels_last", "channels_first"}, optional
        Order of the axes. Default: that of the Keras configuration.
    **rest
        Arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Raises
    ------
    ValueError, TypeError
        The message names the layer, the argument, the value that came and the values that are wanted.

    See Also
    --------
    MaxPoolingWithTaps : returns the values and the taps.
    poolgrad.unpool : the same for NumPy arrays.

    Examples
    --------
    >>> MaxUnpooling(2, data_format="channels_last").compute_output_shape((None, 4, 3, 3))
    (None, 8, 6, 3)
    """

    def __init__(
        self,
        pool_size: int | Sequence[int] = 2,
        strides: int | Sequence[int] | None = None,
        padding: str = "valid",
        size: int | Sequence[int] | None = None,
        data_format: str | None = None,
        **rest: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, data_format, **rest)
        self.size = size
        if size is not None:
            problems = ArgumentErrors(type(self).__name__)
            _judge_sizes(problems, "size", size)
            problems.raise_if_any()

    def compute_output_shape(self, inputs_shape: Sequence[int | None], taps_shape: Any = None) -> Shape:
        """Return the shape of the result."""
        axes, found = _spatial("MaxUnpooling", inputs_shape, self.data_format), list(inputs_shape)
        self._judge_rank(axes)
        for i, d in enumerate(axes):
            step = self.pool_size if self.strides is None else self.strides
            pick: list[Any] = [v[i] if isinstance(v, (list, tuple)) else v for v in (self.size, step)]
            m = inputs_shape[d]
            found[d] = pick[0] if pick[0] is not None else None if m is None else m * pick[1]
        return tuple(found)

    def call(self, inputs: Any, taps: Any) -> Any:
        """Return the values in their cells, 0 elsewhere."""
        source = self.compute_output_shape(tuple(inputs.shape))
        frame, windows = self._frame(source)
        if tuple(taps.shape) != tuple(inputs.shape):
            ArgumentErrors("MaxUnpooling").fail(
                "taps", f"shape {list(taps.shape)}", f"{list(inputs.shape)}, as the inputs have"
            )
        if frame.dest(source) != tuple(inputs.shape):
            wanted = f"{list(frame.dest(source))}, what {list(source)} pools to; give the size of the result"
            ArgumentErrors("MaxUnpooling").fail("inputs", f"shape {list(inputs.shape)}", wanted)
        room = _backend()
        chosen = room.Taps(
            self._values(taps, frame), room.Taps.backend.constant(windows), PoolSpec("unpool", "pick", frame)
        )
        return room.unpool(inputs, chosen)

    @staticmethod
    def _values(taps: Any, frame: Frame) -> Any:
        kind = MaxPoolingWithTaps._tap_type(frame) if keras.backend.backend() == "torch" else str(frame.taps)
        return keras.ops.cast(taps, kind)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that rebuild the layer."""
        return {**super().get_config(), "size": self.size}
