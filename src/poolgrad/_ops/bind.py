"""Turn an op's row and a caller's arguments into a checked call. `kinds` checks each argument alone, this module all of them together."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import Array, afford, as_array
from .._common.errors import ArgumentErrors, short_repr
from .._windows import sliding
from .._windows.axis import Axis
from .._windows.fractional import draw
from .._windows.plan import Plan, planned
from .dtypes import POSITIONS
from .semantics import Kernel, Start, WindowRule
from .table import ARRAYS, Kind, Op, Param

Shape = tuple[int, ...]
_NO_RISK = 1 << 22  # cells of arrays that memory need not be checked for
FORWARD = (
    Kernel.FOLD,
    Kernel.SELECT,
    Kernel.ARGMAX,
    Kernel.RECALL,
    Kernel.GATHER,
)  # verbs whose result has the output's shape


class BoundCall(NamedTuple):
    """A checked call: a plan, and the few numbers that the kernels need besides the row's rule."""

    source: Shape
    dest: Shape
    plan: Plan | None  # None if the result has no cells to compute
    start: Start
    items: int = 0  # images
    absolute: bool = False  # positions count from the first image
    index_type: str = "int64"
    drawn: tuple[Array, ...] = ()  # the sequences of a fractional pooling
    again: Callable[..., BoundCall] | None = None  # binds an equal call with new sequences; raises if they do not fit
    reshaped: Callable[[Shape], BoundCall | None] | None = None  # binds an equal call on an input of another shape


Made = tuple[
    Shape, Callable[[], BoundCall]
]  # the output's shape, and the function that makes the call after all checks


def bind(op: Op, arrays: Mapping[str, Array], attrs: Mapping[str, Any], problems: ArgumentErrors) -> BoundCall:
    """Check everything that does not depend on the arrays' elements, and make the plan."""
    return Binder(op, arrays, attrs, problems).call()


def arrays_of(
    op: Op, given: Mapping[str, Any], problems: ArgumentErrors
) -> tuple[dict[str, Array], np.dtype[Any] | None]:
    """Return the array arguments among those given; unwrap quantised arrays from their one-field dtype."""
    params = [p for p in op.params if p.kind in ARRAYS and p.name in given]
    shared = [given[p.name] for p in params if p.kind in (Kind.SOURCE, Kind.DEST)]
    like = next((value.dtype for value in shared if isinstance(value, np.ndarray)), None)
    arrays: dict[str, Array] = {}
    wrapped = None
    for param in params:
        array = as_array(problems, param.name, given[param.name], _wanted(op, param, like), tensorflow=True)
        if array is None:
            continue
        names = array.dtype.names or ()
        if len(names) == 1 and not array.dtype[names[0]].shape and op.family.startswith("q"):
            wrapped = array.dtype
            array = array[names[0]]
        if like is None and param.kind in (Kind.SOURCE, Kind.DEST):
            like = array.dtype  # lists after it become what the first is
        arrays[param.name] = array
    return arrays, wrapped


def _wanted(op: Op, param: Param, like: np.dtype[Any] | None) -> np.dtype[Any] | None:
    """Return the dtype that a list in this place becomes."""
    if param.kind in (Kind.SOURCE, Kind.DEST):
        return like
    return np.dtype((param.kind.dtypes(op, param) or ("int64",))[-1])


def _fresh_seeds() -> tuple[int, int]:
    high, low = divmod(secrets.randbits(128), 2**64)
    return high, low


@lru_cache(4096)
def _kept_seeds(*kind: object) -> tuple[int, int]:
    """Draw seeds once per kind of call, as TensorFlow does for deterministic calls without seeds."""
    return _fresh_seeds()


def _drawing(call: BoundCall, pseudo: bool, overlapping: bool, seeds: Callable[[int, int], tuple[int, int]]) -> Any:
    """Return the function that binds a fractional pooling to windows that it draws, from the seeds of the call."""
    source, lengths, sizes = call.source, call.source[1:3], call.dest[1:3]

    def again(seed: int, seed2: int) -> BoundCall:
        (rows, high), (cols, wide) = draw(lengths, sizes, pseudo, overlapping, seeds(seed, seed2))
        return call._replace(plan=Plan(source, {1: high, 2: wide}), drawn=(rows, cols))

    return again


def _following(call: BoundCall, overlapping: bool) -> Any:
    """Return the function that binds a gradient to other sequences, given as bytes."""
    source, lengths, sizes = call.source, call.source[1:3], call.dest[1:3]

    def again(*sequences: bytes) -> BoundCall:
        given = tuple(np.frombuffer(borders, np.int64) for borders in sequences)
        axes = {}
        for d, (n, m, borders) in enumerate(zip(lengths, sizes, given, strict=True)):
            if len(borders) != m + 1 or not sliding.proper(n, borders):
                raise ValueError("a sequence that does not fit")
            axes[1 + d] = sliding.edges(n, borders, overlapping)
        return call._replace(plan=Plan(source, axes), drawn=given)

    return again


def _axis_maker(op: Op) -> Callable[[int, int, int, int, int], Axis]:
    """Return the function that makes the windows of an op along one dimension."""
    return sliding.checked_reach if op.rule.windows is WindowRule.REACH else sliding.checked_sliding_axis


class _Sliding(NamedTuple):
    """Checked sizes of windows: the windows for an input of any shape."""

    op: Op
    ksize: Shape
    strides: Shape
    padding: str
    pads: Shape
    pooled: Shape

    def dest(self, source: Shape) -> Shape:
        """Return the output's shape; negative where a window is too long."""
        lengths = list(source)
        for d in self.pooled:
            n, k, s = source[d], self.ksize[d], self.strides[d]
            same = self.padding == "SAME"
            lengths[d] = sliding.same_length(n, s) if same else sliding.valid_length(n + sum(self._around(d)), k, s)
        return tuple(lengths)

    def axes(self, source: Shape, dest: Shape, make: Callable[[int, int, int, int, int], Any]) -> dict[int, Any]:
        """Return the windows along the pooled dimensions: make(cells, window, stride, padding before, windows)."""
        return {
            d: make(source[d], self.ksize[d], self.strides[d], self._before(source, d), dest[d]) for d in self.pooled
        }

    def _around(self, d: int) -> Shape:
        return self.pads[2 * d : 2 * d + 2]

    def _before(self, source: Shape, d: int) -> int:
        """Return the cells of padding before dimension d."""
        if self.padding != "SAME":
            return self._around(d)[0]
        pad = sliding.same_pad(source[d], self.ksize[d], self.strides[d])
        return pad if self.op.rule.windows is WindowRule.SHIFT else max(pad, 0)


def _reshaping(call: BoundCall, slide: _Sliding) -> Callable[[Shape], BoundCall | None]:
    """Return the function that binds the call to an input of another shape; None if that needs the checks of a first call."""

    make = _axis_maker(slide.op)

    def reshaped(source: Shape) -> BoundCall | None:
        dest = slide.dest(source)
        if min(source) <= 0 or min(dest) <= 0 or max(math.prod(source), math.prod(dest)) > _NO_RISK:
            return None
        plan = planned(source, *slide.axes(source, dest, make).items())
        return call._replace(source=source, dest=dest, plan=plan, items=source[0])

    return reshaped


class Binder:
    """The checks of one call, and the call that they lead to."""

    def __init__(self, op: Op, arrays: Mapping[str, Array], attrs: Mapping[str, Any], problems: ArgumentErrors) -> None:
        self.op, self.arrays, self.problems = op, arrays, problems
        self.attrs, self.params = attrs, {p.name: p for p in op.params}
        self.rank = op.spatial + 2
        self.source_name = next(p.name for p in op.params if p.kind in (Kind.SOURCE, Kind.SHAPE))

    # ---- the straight line

    def call(self) -> BoundCall:
        """Check all arguments, and make the call."""
        self._dtypes()
        self._ranges()
        source = self.source_shape()
        made = self._sequences(source) if self.op.rule.windows is WindowRule.EDGES else self._sizes(source)
        self.problems.raise_if_any()
        assert source is not None and made is not None, "a problem was found but not noted"  # noqa: PT018
        dest, make = made
        self._match(source, dest)
        self.problems.raise_if_any()
        self.afford(source, dest)
        return make()

    def finish(self, source: Shape, dest: Shape, pooled: dict[int, Axis], start: Start) -> BoundCall:
        """Return the call over these axes; without any, the result is empty or zero, or the windows are still to be drawn."""
        plan = planned(source, *pooled.items()) if pooled else None
        absolute = bool(self._value("include_batch_in_index"))
        return BoundCall(source, dest, plan, start, source[0], absolute, self._index_type())

    def _value(self, name: str) -> Any:
        """Return the checked attribute of that name; None if the op has none."""
        param = self.params.get(name)
        if param is None:
            return None
        value = self.attrs[name] if name in self.attrs else param.kind.absent(self.op)
        return param.kind.validate(self.problems, self.op, param, value)

    # ---- arrays

    def _of(self, *kinds: Kind) -> list[tuple[str, Array]]:
        return [(p.name, self.arrays[p.name]) for p in self.op.params if p.kind in kinds and p.name in self.arrays]

    def _dtypes(self) -> None:
        """Record an error for each array whose dtype the op does not support or that differs from the others."""
        shared = self._of(Kind.SOURCE, Kind.DEST)
        good = [a.dtype.name for _, a in shared if a.dtype.name in self.op.dtypes]
        for name, array in shared:
            if array.dtype.name not in self.op.dtypes:
                self._dtype_is_not(name, "one of " + ", ".join(self.op.dtypes))
            elif array.dtype.name != good[0]:
                self._dtype_is_not(name, f"{good[0]}, the dtype of {shared[0][0]}")
        for name, array in self._of(Kind.INDEX):
            if array.dtype.name not in POSITIONS:
                self._dtype_is_not(name, "int32 or int64")
        for param in self.op.params:
            if param.dtype and param.name in self.arrays and self.arrays[param.name].dtype.name != param.dtype:
                self._dtype_is_not(param.name, param.dtype)

    def _dtype_is_not(self, name: str, wanted: str) -> None:
        self.problems.add(name, f"dtype {self.arrays[name].dtype.name}", wanted, TypeError)

    def _ranges(self) -> None:
        for name, array in self._of(Kind.RANGE):
            if array.dtype.name != "float32":
                self._dtype_is_not(name, "a float32 scalar")
            elif array.ndim:
                self.problems.add(name, f"shape {list(array.shape)}", "a scalar, shape []")

    def source_shape(self) -> Shape | None:
        """Return the shape of the pooled array, from an array of that shape or from the vector that spells it."""
        for name, array in self._of(Kind.SOURCE, Kind.DEST, Kind.INDEX):
            if array.ndim != self.rank:
                got = f"{array.ndim} dimensions, shape {list(array.shape)[:8]}"
                self.problems.add(name, got, f"{self.rank} dimensions")
        given = self._of(Kind.SOURCE, Kind.SHAPE)
        if not given or self.problems.blames(given[0][0]):
            return None
        return self._spelled_shape(*given[0]) if self.op.param(Kind.SHAPE) else given[0][1].shape

    def _spelled_shape(self, name: str, array: Array) -> Shape | None:
        if array.shape != (self.rank,):
            self.problems.add(name, f"shape {list(array.shape)[:8]}", f"a vector of {self.rank} integers")
            return None
        shape = tuple(array.tolist())
        if min(shape) < 0:
            self.problems.add(name, list(shape), "no negative size")
        elif math.prod(shape) >= 2**63:
            self.problems.add(name, list(shape), "a number of elements that fits 64 bits")
        else:
            return shape
        return None

    def _match(self, source: Shape, dest: Shape) -> None:
        """Record an error for each array that does not have the shape that the windows imply."""
        for kinds, wanted in (((Kind.SOURCE,), source), ((Kind.DEST, Kind.INDEX), dest)):
            side = "output" if wanted is dest else "input"
            for name, array in self._of(*kinds):
                if array.shape != wanted:
                    why = f"the shape of the {side} for {self.source_name} {list(source)}"
                    self.problems.add(name, f"shape {list(array.shape)}", f"{list(wanted)}, {why}", shape=wanted)

    def afford(self, source: Shape, dest: Shape) -> None:
        """Refuse a result that memory cannot hold."""
        verb = self.op.rule.verb
        shape = dest if verb in FORWARD else source
        cell = self._of(Kind.SOURCE, Kind.DEST)[0][1].dtype.itemsize + (8 if verb is Kernel.ARGMAX else 0)
        tables = 48 * (sum(source[1:]) + sum(dest[1:])) if math.prod(dest) else 0  # images have none
        blame = "explicit_paddings" if max(dest) > 2 * max(source) + 8 else self.source_name
        what = f"a call whose result has shape {list(shape)}"
        afford(self.problems, blame, math.prod(shape) * cell + tables, what)

    def _index_type(self) -> str:
        """Return the dtype of positions; record an error if it cannot hold the last one."""
        param, given = self.op.param(Kind.INDEX_TYPE), self._of(Kind.SOURCE)
        if param is None:
            return "int64"
        kind: str = self._value(param.name)
        elements = given[0][1].size if given else 0
        if kind == "int32" and elements > 2**31:
            self.problems.add(param.name, "int32", f"int64, for positions in an input of {elements} elements")
        return kind

    # ---- windows from ksize, strides and padding

    def _sizes(self, source: Shape | None) -> Made | None:
        ksize, strides, padding = (self._value(name) for name in ("ksize", "strides", "padding"))
        layout = self._value("data_format") or self.op.formats[0]
        self._index_type()
        self._value("include_batch_in_index")
        channel = layout.index("C")
        deep = self._judge_sizes(ksize, strides, channel, padding)
        pads: Shape | None = (0,) * (2 * self.rank)
        if padding == "EXPLICIT" and ksize and not deep:
            pads = self._pads(ksize, layout)
        if not source or not ksize or not strides or not padding or not pads:
            return None
        if self.problems.blames("ksize", "strides", "padding", "data_format", "explicit_paddings"):
            return None
        if deep and source[channel] % ksize[channel]:
            self.problems.add("ksize", list(ksize), f"a channel window that divides the {source[channel]} channels")
            return None
        pooled = [channel] if deep else [d for d in range(1, self.rank) if d != channel]
        start = Start.INFINITY if deep and self.op.rule.start is Start.LOWEST else self.op.rule.start
        return self._sized(source, ksize, strides, "VALID" if deep else padding, pads, pooled, start)

    def _sized(
        self, source: Shape, ksize: Shape, strides: Shape, padding: str, pads: Shape, pooled: list[int], start: Start
    ) -> Made | None:
        """Windows along the pooled dimensions, unless one is too long for its dimension."""
        slide = _Sliding(self.op, ksize, strides, padding, pads, tuple(pooled))
        dest = slide.dest(source)
        for d in pooled:
            if dest[d] < 0:
                got = f"{list(ksize)} on an input of shape {list(source)}"
                most = f"a window of at most {source[d]} in dimension {d}, which padding {padding} does not extend"
                self.problems.add("ksize", got, most)
                return None

        def make() -> BoundCall:
            empty = math.prod(dest) == 0 or (math.prod(source) == 0 and self.op.rule.verb is not Kernel.SELECT)
            call = self.finish(source, dest, {} if empty else slide.axes(source, dest, self.axis), start)
            free = not empty and len(pooled) > 1  # channels must divide by their window
            return call._replace(reshaped=_reshaping(call._replace(plan=None), slide)) if free else call

        return dest, make

    def axis(self, n: int, k: int, s: int, pad: int, m: int) -> Any:
        """Make the windows along one dimension."""
        return _axis_maker(self.op)(n, k, s, pad, m)

    def _judge_sizes(self, ksize: Shape | None, strides: Shape | None, channel: int, padding: str | None) -> bool:
        """Record errors for sizes that no op supports; return True if they pool channels."""
        for name, sizes in (("ksize", ksize), ("strides", strides)):
            if sizes is not None and min(sizes) <= 0:
                self.problems.add(name, list(sizes), "positive integers")
            elif sizes is not None and sizes[0] != 1:
                wanted = "1 in the batch dimension: pooling over the batch does not exist"
                self.problems.add(name, list(sizes), wanted, NotImplementedError)
        if not ksize or not strides or self.problems.blames("ksize", "strides"):
            return False
        if ksize[channel] != 1:
            self._judge_channels(ksize, strides, channel, padding)
            return True
        if strides[channel] != 1:
            self.problems.add("strides", list(strides), "1 in the channel dimension, where the window is 1")
        return False

    def _judge_channels(self, ksize: Shape, strides: Shape, channel: int, padding: str | None) -> None:
        """Record why these sizes cannot pool channels."""
        space = [d for d in range(1, self.rank) if d != channel]
        if not self.op.depthwise:
            wanted = f"1 in the channel dimension: {self.op.name} does not pool over channels"
            self.problems.add("ksize", list(ksize), wanted, NotImplementedError)
        elif any(ksize[d] != 1 for d in space):
            wanted = "a window over the channels or over the other dimensions, not over both"
            self.problems.add("ksize", list(ksize), wanted, NotImplementedError)
        elif strides[channel] != ksize[channel]:
            wanted = f"{ksize[channel]} in the channel dimension, as in ksize"
            self.problems.add("strides", list(strides), wanted, NotImplementedError)
        elif any(strides[d] != 1 for d in space):
            wanted = "1 in every dimension but the channels, which are what is pooled"
            self.problems.add("strides", list(strides), wanted)
        elif padding == "EXPLICIT":
            wanted = "'SAME' or 'VALID' for a window over the channels"
            self.problems.add("padding", "'EXPLICIT'", wanted, NotImplementedError)

    def _pads(self, ksize: Shape, layout: str) -> Shape | None:
        pads: Shape | None = self._value("explicit_paddings")
        if pads is None:
            return None
        pairs = dict(zip(layout, zip(pads[::2], pads[1::2], strict=True), strict=True))
        if min(pads) < 0:
            self.problems.add("explicit_paddings", list(pads), "no negative numbers")
        elif any(pairs["N"] + pairs["C"]):
            wanted = f"zeros in the batch and channel dimensions of {layout}"
            self.problems.add("explicit_paddings", list(pads), wanted)
        elif any(max(pairs[d]) >= k for d, k in zip(layout, ksize, strict=True) if d not in "NC"):
            self.problems.add("explicit_paddings", list(pads), f"less than the window {list(ksize)} in each dimension")
        return pads

    # ---- windows from sequences

    def _sequences(self, source: Shape | None) -> Made | None:
        overlapping: bool = self._value("overlapping")
        if source is not None and math.prod(source) == 0:
            self.problems.add(self.source_name, f"shape {list(source)}", "no dimension of length 0")
        if self.op.order == 0:
            return self._ratios(source, overlapping)
        named = [(name, a.shape) for name, a in self._of(Kind.DEST) if a.ndim == self.rank]
        given = [array for _, array in self._of(Kind.SEQUENCE)]
        for d, (name, array) in enumerate(self._of(Kind.SEQUENCE)):
            self._judge_sequence(name, array, 1 + d, source, named[0] if named else None)
        if source is None or len(given) < 2 or self.problems:
            return None
        dest = (source[0], *(len(s) - 1 for s in given), source[3])
        again = _following(self.finish(source, dest, {}, self.op.rule.start), overlapping)
        return dest, lambda: again(*(np.ascontiguousarray(s).tobytes() for s in given))._replace(again=again)

    def _judge_sequence(
        self, name: str, array: Array, d: int, source: Shape | None, dest: tuple[str, Shape] | None
    ) -> None:
        """Record an error for the borders of dimension d, checked value by value."""
        if self.problems.blames(name):
            return
        if array.ndim != 1 or array.size < 2:
            self.problems.add(name, f"shape {list(array.shape)[:8]}", "a vector of at least 2 integers")
        elif dest and array.size != dest[1][d] + 1:
            why = f"one more than the length of that dimension in {dest[0]}, shape {list(dest[1])}"
            self.problems.add(name, f"{array.size} entries", f"{dest[1][d] + 1} entries, {why}")
        elif (np.diff(array) <= 0).any() or array[0] < 0 or (source and array[-1] > source[d]):
            wanted = f"strictly increasing integers from 0 to {source[d] if source else 'n'}"
            self.problems.add(name, short_repr(array.tolist()), wanted)
        elif source and array[-1] < source[d] - 1:
            why = f"the length of that dimension in {self.source_name}"
            wanted = f"{source[d]} as the last entry (or {source[d] - 1}), {why}"
            self.problems.add(name, short_repr(array.tolist()), wanted)

    def _ratios(self, source: Shape | None, overlapping: bool) -> Made | None:
        pseudo, fixed, seed, seed2 = map(self._value, ("pseudo_random", "deterministic", "seed", "seed2"))
        if not fixed and not self.problems.blames("deterministic") and (seed or seed2):
            self.problems.add("seed" if seed else "seed2", seed or seed2, "0, or deterministic=True")
        ratio = self._value("pooling_ratio")
        if ratio is None or source is None:
            return None
        self._judge_ratio(ratio, source)
        if self.problems:
            return None
        dest = tuple(min(n, math.floor(np.float32(n) / np.float32(r))) for n, r in zip(source, ratio, strict=True))

        kind = (self.op.name, self.arrays[self.source_name].dtype.name, ratio, pseudo, overlapping)

        def seeds(seed: int, seed2: int) -> tuple[int, int]:
            return (seed, seed2) if seed or seed2 else _kept_seeds(*kind) if fixed else _fresh_seeds()

        again = _drawing(self.finish(source, dest, {}, self.op.rule.start), pseudo, overlapping, seeds)
        return dest, lambda: again(seed, seed2)._replace(again=again)

    def _judge_ratio(self, ratio: tuple[float, ...], source: Shape) -> None:
        got = short_repr(self.attrs["pooling_ratio"])
        if not all(r >= 1 for r in ratio):
            self.problems.add("pooling_ratio", got, "numbers of at least 1")
        elif ratio[0] != 1 or ratio[3] != 1:
            wanted = "1 for batch and channels, which are not pooled"
            self.problems.add("pooling_ratio", got, wanted, NotImplementedError)
        elif any(r > n for r, n in zip(ratio, source, strict=True)):
            got = f"{got} on an input of shape {list(source)}"
            self.problems.add("pooling_ratio", got, "no ratio above its dimension")
