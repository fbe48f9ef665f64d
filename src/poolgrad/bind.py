"""From an op's row and a caller's arguments to a checked call: the only place where names and attributes are judged."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import index
from typing import Any, cast

import numpy as np

from . import windows
from .arrays import Array, afford
from .errors import Problems, brief
from .philox import Philox, sequence
from .rules import Start, Verb, Windows
from .table import Kind, Op
from .windows import Axis, Plan

Shape = tuple[int, ...]
INT32_MAX = 2**31 - 1


@dataclass(frozen=True)
class Call:
    """What is left to do: a plan, and the few numbers that the verbs need besides the row's rule."""

    source: Shape
    dest: Shape
    plan: Plan | None  # None if the result has no cells to compute
    start: Start
    items: int = 0  # images
    absolute: bool = False  # positions count from the first image
    index: str = "int64"
    drawn: tuple[Array, ...] = ()  # the sequences of a fractional pooling


def bind(op: Op, arrays: Mapping[str, Array], attrs: Mapping[str, Any], problems: Problems) -> Call:
    """Checks everything that does not depend on the arrays' elements, and makes the plan."""
    return _Binder(op, arrays, attrs, problems).call()


def _fresh_seeds() -> tuple[int, int]:
    return secrets.randbits(64), secrets.randbits(64)


@lru_cache(4096)
def _kept_seeds(*kind: object) -> tuple[int, int]:
    """Seeds drawn once per kind of call: what TensorFlow does for deterministic calls without seeds."""
    return _fresh_seeds()


class _Binder:
    def __init__(self, op: Op, arrays: Mapping[str, Array], attrs: Mapping[str, Any], problems: Problems) -> None:
        self.op, self.arrays, self.attrs, self.problems = op, arrays, attrs, problems
        self.rank = op.spatial + 2
        self.layout = op.formats[0]

    # ---- the straight line

    def call(self) -> Call:
        self._dtypes()
        self._ranges()
        source = self._source_shape()
        parse = self._sequences if self.op.rule.windows is Windows.EDGES else self._sizes
        lengths = parse(source)
        self.problems.settle()
        dest, make = cast("tuple[Shape, Any]", lengths)
        assert source is not None
        self._match(source, dest)
        self.problems.settle()
        self._afford(source, dest)
        return cast(Call, make())

    def _finish(
        self, source: Shape, dest: Shape, pooled: dict[int, Axis], start: Start, drawn: tuple[Array, ...] = ()
    ) -> Call:
        plan = Plan(source, pooled)
        kind = self.op.param(Kind.INDEX_TYPE)
        return Call(source, dest, plan, start, source[0], bool(self.attrs.get("include_batch_in_index", False)),
                    self._index_type() if kind else "int64", drawn)  # fmt: skip

    # ---- arrays

    def _of(self, *kinds: Kind) -> list[tuple[str, Array]]:
        return [(p.name, self.arrays[p.name]) for p in self.op.params if p.kind in kinds and p.name in self.arrays]

    def _dtypes(self) -> None:
        """All arrays that share the op's type have it, and the op has it."""
        shared = self._of(Kind.SOURCE, Kind.DEST)
        good = [a.dtype.name for _, a in shared if a.dtype.name in self.op.dtypes]
        for name, array in shared:
            if array.dtype.name not in self.op.dtypes:
                self.problems.add(name, f"dtype {array.dtype.name}", "one of " + ", ".join(self.op.dtypes), TypeError)
            elif array.dtype.name != good[0]:
                self.problems.add(
                    name, f"dtype {array.dtype.name}", f"{good[0]}, the dtype of {shared[0][0]}", TypeError
                )
        for name, array in self._of(Kind.INDEX):
            if array.dtype.name not in ("int32", "int64"):
                self.problems.add(name, f"dtype {array.dtype.name}", "int32 or int64", TypeError)
        for param in self.op.params:
            if param.dtype and param.name in self.arrays and self.arrays[param.name].dtype.name != param.dtype:
                self.problems.add(param.name, f"dtype {self.arrays[param.name].dtype.name}", param.dtype, TypeError)

    def _ranges(self) -> None:
        for name, array in self._of(Kind.RANGE):
            if array.dtype.name != "float32":
                self.problems.add(name, f"dtype {array.dtype.name}", "a float32 scalar", TypeError)
            elif array.ndim:
                self.problems.add(name, f"shape {list(array.shape)}", "a scalar, shape []")

    def _source_shape(self) -> Shape | None:
        """The shape of the pooled array, from an array of that shape or from the vector that spells it."""
        for name, array in self._of(Kind.SOURCE, Kind.DEST, Kind.INDEX):
            if array.ndim != self.rank and not (array.size == 0 and array.ndim == self.rank):
                self.problems.add(
                    name, f"{array.ndim} dimensions, shape {list(array.shape)[:8]}", f"{self.rank} dimensions"
                )
        vector = self.op.param(Kind.SHAPE)
        if vector is not None:
            return self._spelled_shape(vector.name)
        name, array = (self._of(Kind.SOURCE) or [("", np.empty(0))])[0]
        return None if not name or self.problems.blames(name) else array.shape

    def _spelled_shape(self, name: str) -> Shape | None:
        array = self.arrays.get(name)
        if array is None or self.problems.blames(name):
            return None
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
        """Arrays that ride along have the shape that the windows imply."""
        for kinds, wanted in (((Kind.SOURCE,), source), ((Kind.DEST, Kind.INDEX), dest)):
            for name, array in self._of(*kinds):
                if array.shape != wanted:
                    why = f"the shape of the {'output' if wanted is dest else 'input'} for {self._source_name()} {list(source)}"
                    self.problems.add(name, f"shape {list(array.shape)}", f"{list(wanted)}, {why}")

    def _afford(self, source: Shape, dest: Shape) -> None:
        forward = self.op.rule.verb in (Verb.FOLD, Verb.SELECT, Verb.ARGMAX, Verb.RECALL, Verb.GATHER)
        shape = dest if forward else source
        size = next(a.dtype.itemsize for _, a in self._of(Kind.SOURCE, Kind.DEST)) + (
            8 if self.op.rule.verb is Verb.ARGMAX else 0
        )
        blame = next((p.name for p in self.op.params if p.kind in (Kind.SHAPE, Kind.SOURCE)), "")
        tables = 48 * (sum(source) + sum(dest)) if math.prod(dest) else 0
        afford(self.problems, "explicit_paddings" if max(dest) > 2 * max(source) + 8 else blame, math.prod(shape) * size + tables,
               f"a call whose result has shape {list(shape)}")  # fmt: skip

    # ---- windows from ksize, strides and padding

    def _sizes(self, source: Shape | None) -> tuple[Shape, Any] | None:
        ksize, strides = self._ints("ksize"), self._ints("strides")
        padding, layout = self._word("padding", self.op.paddings), self._word("data_format", self.op.formats)
        if layout is not None:
            self.layout = layout
        if self.op.param(Kind.INDEX_TYPE):
            self._index_type()
        self._flag("include_batch_in_index")
        channel = self.layout.index("C")
        space = [d for d in range(1, self.rank) if d != channel]
        deep = self._judge_sizes(ksize, strides, channel, space, padding)
        pads = self._pads(ksize, channel) if padding == "EXPLICIT" and ksize and not deep else (0,) * (2 * self.rank)
        if source is None or self.problems.blames("ksize", "strides", "padding", "data_format", "explicit_paddings"):
            return None
        assert ksize and strides and pads
        if deep and source[channel] % ksize[channel]:
            self.problems.add("ksize", list(ksize), f"a channel window that divides the {source[channel]} channels")
            return None
        pooled = [channel] if deep else space
        dest = list(source)
        pad: dict[int, int] = {}
        for d in pooled:
            n, k, s = source[d], ksize[d], strides[d]
            dest[d], pad[d] = self._length(n, k, s, "VALID" if deep else cast(str, padding), pads[2 * d : 2 * d + 2])
            if dest[d] < 0:
                self.problems.add(
                    "ksize",
                    f"{list(ksize)} on an input of shape {list(source)}",
                    f"a window of at most {n} in dimension {d}, which padding {padding} does not extend",
                )
                return None
        start = Start.INFINITY if deep and self.op.rule.start is Start.LOWEST else self.op.rule.start

        def make() -> Call:
            if math.prod(dest) == 0 or (math.prod(source) == 0 and self.op.rule.verb is not Verb.SELECT):
                return replace(self._empty(source, tuple(dest)), start=start)
            maker = windows.reach if self.op.rule.windows is Windows.REACH else windows.clip
            return self._finish(
                source, tuple(dest), {d: maker(source[d], ksize[d], strides[d], pad[d], dest[d]) for d in pooled}, start
            )

        return tuple(dest), make

    def _empty(self, source: Shape, dest: Shape) -> Call:
        return Call(
            source,
            dest,
            None,
            self.op.rule.start,
            index=self._index_type() if self.op.param(Kind.INDEX_TYPE) else "int64",
        )

    def _length(self, n: int, k: int, s: int, padding: str, pads: Shape) -> tuple[int, int]:
        """Windows along an axis, and cells before it."""
        if padding == "SAME":
            pad = windows.same_pad(n, k, s)
            return windows.same_length(n, s), pad if self.op.rule.windows is Windows.SHIFT else max(pad, 0)
        return windows.valid_length(n + sum(pads), k, s), pads[0]

    def _judge_sizes(
        self, ksize: Shape | None, strides: Shape | None, channel: int, space: list[int], padding: str | None
    ) -> bool:
        """Notes what no op can do with these sizes; tells whether they pool channels."""
        for name, sizes in (("ksize", ksize), ("strides", strides)):
            if sizes is None:
                continue
            if min(sizes) <= 0:
                self.problems.add(name, list(sizes), "positive integers")
            elif sizes[0] != 1:
                self.problems.add(
                    name,
                    list(sizes),
                    "1 in the batch dimension: pooling over the batch does not exist",
                    NotImplementedError,
                )
        if not ksize or not strides or self.problems.blames("ksize", "strides"):
            return False
        if ksize[channel] == 1:
            if strides[channel] != 1:
                self.problems.add("strides", list(strides), "1 in the channel dimension, where the window is 1")
            return False
        if not self.op.depthwise:
            self.problems.add(
                "ksize",
                list(ksize),
                f"1 in the channel dimension: {self.op.name} does not pool over channels",
                NotImplementedError,
            )
        elif any(ksize[d] != 1 for d in space):
            self.problems.add(
                "ksize",
                list(ksize),
                "a window over the channels or over the other dimensions, not over both",
                NotImplementedError,
            )
        elif strides[channel] != ksize[channel]:
            self.problems.add(
                "strides", list(strides), f"{ksize[channel]} in the channel dimension, as in ksize", NotImplementedError
            )
        elif any(strides[d] != 1 for d in space):
            self.problems.add(
                "strides", list(strides), "1 in every dimension but the channels, which are what is pooled"
            )
        elif padding == "EXPLICIT":
            self.problems.add(
                "padding", "'EXPLICIT'", "'SAME' or 'VALID' for a window over the channels", NotImplementedError
            )
        return True

    def _pads(self, ksize: Shape, channel: int) -> Shape | None:
        pads = self._ints("explicit_paddings", 2 * self.rank)
        if pads is None:
            return None
        if min(pads) < 0:
            self.problems.add("explicit_paddings", list(pads), "no negative numbers")
        elif any(pads[2 * d + e] for d in (0, channel) for e in (0, 1)):
            self.problems.add(
                "explicit_paddings", list(pads), f"zeros in the batch and channel dimensions of {self.layout}"
            )
        elif any(pads[2 * d + e] >= ksize[d] for d in range(1, self.rank) if d != channel for e in (0, 1)):
            self.problems.add("explicit_paddings", list(pads), f"less than the window {list(ksize)} in each dimension")
        return pads

    # ---- windows from sequences

    def _sequences(self, source: Shape | None) -> tuple[Shape, Any] | None:
        overlapping = self._flag("overlapping")
        if source is not None and math.prod(source) == 0:
            self.problems.add(self._source_name(), f"shape {list(source)}", "no dimension of length 0")
        if self.op.order == 0:
            return self._ratios(source, overlapping)
        named = [(name, a.shape) for name, a in self._of(Kind.DEST) if a.ndim == self.rank]
        given = [self._sequence(name, array, 1 + d, source, named[0] if named else None)
                 for d, (name, array) in enumerate(self._of(Kind.SEQUENCE))]  # fmt: skip
        if source is None or len(given) < 2 or self.problems:
            return None
        dest = (source[0], *(len(s) - 1 for s in given), source[3])
        return dest, lambda: self._drawn(source, dest, given, overlapping)

    def _source_name(self) -> str:
        return next(p.name for p in self.op.params if p.kind in (Kind.SOURCE, Kind.SHAPE))

    def _sequence(self, name: str, array: Array, d: int, source: Shape | None, dest: tuple[str, Shape] | None) -> Array:
        """Notes whatever is wrong with the borders of dimension d, value by value."""
        if self.problems.blames(name):
            return array
        if array.ndim != 1 or array.size < 2:
            self.problems.add(name, f"shape {list(array.shape)[:8]}", "a vector of at least 2 integers")
        elif dest and array.size != dest[1][d] + 1:
            wanted = f"{dest[1][d] + 1} entries, one more than the length of that dimension in {dest[0]}, shape {list(dest[1])}"
            self.problems.add(name, f"{array.size} entries", wanted)
        elif (np.diff(array) <= 0).any() or array[0] < 0 or (source and array[-1] > source[d]):
            self.problems.add(
                name, brief(array.tolist()), f"strictly increasing integers from 0 to {source[d] if source else 'n'}"
            )
        elif source and array[-1] < source[d] - 1:
            end = f"{source[d]} as the last entry (or {source[d] - 1}), the length of that dimension in {self._source_name()}"
            self.problems.add(name, brief(array.tolist()), end)
        return array

    def _drawn(self, source: Shape, dest: Shape, given: list[Array], overlapping: bool) -> Call:
        pooled = {1 + d: windows.edges(source[1 + d], s, overlapping) for d, s in enumerate(given)}
        return self._finish(source, dest, pooled, self.op.rule.start, tuple(given))

    def _ratios(self, source: Shape | None, overlapping: bool) -> tuple[Shape, Any] | None:
        pseudo, fixed = self._flag("pseudo_random"), self._flag("deterministic")
        seed, seed2 = self._seed("seed"), self._seed("seed2")
        if not fixed and not self.problems.blames("deterministic") and (seed or seed2):
            self.problems.add("seed" if seed else "seed2", seed or seed2, "0, or deterministic=True")
        ratio = self._floats("pooling_ratio")
        if ratio is None or source is None:
            return None
        if not all(r >= 1 for r in ratio):
            self.problems.add("pooling_ratio", brief(self.attrs["pooling_ratio"]), "numbers of at least 1")
        elif ratio[0] != 1 or ratio[3] != 1:
            self.problems.add(
                "pooling_ratio",
                brief(self.attrs["pooling_ratio"]),
                "1 for batch and channels, which are not pooled",
                NotImplementedError,
            )
        elif any(r > n for r, n in zip(ratio, source, strict=True)):
            self.problems.add(
                "pooling_ratio",
                f"{brief(self.attrs['pooling_ratio'])} on an input of shape {list(source)}",
                "no ratio above its dimension",
            )
        if self.problems:
            return None
        dest = tuple(min(n, math.floor(np.float32(n) / np.float32(r))) for n, r in zip(source, ratio, strict=True))

        def make() -> Call:
            kind = (self.op.name, self._of(Kind.SOURCE)[0][1].dtype.name, ratio, pseudo, overlapping)
            seeds = (seed, seed2) if seed or seed2 else _kept_seeds(*kind) if fixed else _fresh_seeds()
            source_of_words = Philox(*seeds)
            given = [sequence(source[d], dest[d], pseudo, source_of_words) for d in (1, 2)]
            return self._drawn(source, dest, given, overlapping)

        return dest, make

    # ---- single attributes

    def _ints(self, name: str, count: int = 0) -> Shape | None:
        """An attribute list or an int32 vector of exact length, each entry within int32."""
        count, value = count or self.rank, self.attrs.get(name, self.arrays.get(name))
        wanted = f"a list of {count} integers"
        if isinstance(value, np.ndarray):
            if value.ndim != 1:
                return self._refuse(name, f"an array of shape {list(value.shape)[:8]}", wanted)
            tensor = any(p.name == name and p.kind is Kind.SIZES_TENSOR for p in self.op.params)
            if value.dtype.kind not in "iu" or (tensor and value.dtype.name != "int32"):
                return self._refuse(
                    name, f"an array of dtype {value.dtype.name}", "an int32 vector" if tensor else wanted, TypeError
                )
            value = value.tolist()
        if (
            value is None
            or isinstance(value, (str, bytes))
            or not hasattr(value, "__iter__")
            or not hasattr(value, "__len__")
        ):
            return self._refuse(name, brief(value), wanted, TypeError)
        if len(value) != count:
            return self._refuse(name, f"{brief(value)}, {len(value)} entries", wanted)
        try:
            ints = tuple(map(index, value))
        except TypeError:
            return self._refuse(name, brief(value), wanted, TypeError)
        if not all(-INT32_MAX - 1 <= v <= INT32_MAX for v in ints):
            return self._refuse(name, brief(value), f"{wanted} within 32 bits")
        return ints

    def _floats(self, name: str) -> tuple[float, ...] | None:
        value = self.attrs.get(name)
        wanted = f"a list of {self.rank} numbers"
        if (
            value is None
            or isinstance(value, (str, bytes))
            or not hasattr(value, "__iter__")
            or not hasattr(value, "__len__")
        ):
            self._refuse(name, brief(value), wanted, TypeError)
            return None
        if len(value) != self.rank:
            self._refuse(name, f"{brief(value)}, {len(value)} entries", wanted)
            return None
        if not all(isinstance(v, (int, float, np.integer, np.floating)) for v in value):
            self._refuse(name, brief(value), wanted, TypeError)
            return None
        with np.errstate(over="ignore"):
            return tuple(float(np.float32(float(v) if abs(v) < 2**1000 else math.inf)) for v in value)

    def _refuse(self, name: str, got: str, wanted: str, kind: type[Exception] = ValueError) -> None:
        self.problems.add(name, got, wanted, kind)

    def _word(self, name: str, words: tuple[str, ...]) -> str | None:
        value = self.attrs.get(name, words[0])
        value = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        wanted = " or ".join(map(repr, words))
        if not isinstance(value, str):
            self._refuse(name, brief(value), wanted, TypeError)
        elif value not in words:
            self._refuse(name, brief(value), wanted)
        else:
            return value
        return None

    def _flag(self, name: str) -> bool:
        value = self.attrs.get(name)
        if value is None:
            return False
        if not isinstance(value, (bool, np.bool_)):
            self._refuse(name, brief(value), "True or False", TypeError)
            return False
        return bool(value)

    def _seed(self, name: str) -> int:
        try:
            value = index(self.attrs.get(name) or 0)
        except TypeError:
            self._refuse(name, brief(self.attrs.get(name)), "an integer", TypeError)
            return 0
        if not -(2**63) <= value < 2**63:
            self._refuse(name, value, "an integer within 64 bits")
        return value

    def _index_type(self) -> str:
        value = self.attrs.get("Targmax", "int64")
        value = getattr(value, "as_numpy_dtype", value)
        try:
            name = np.dtype(value).name if value is not None else "None"
        except TypeError:
            name = ""
        if name not in ("int32", "int64"):
            self._refuse("Targmax", brief(self.attrs.get("Targmax")), "int32 or int64", TypeError)
            return "int64"
        source = self._of(Kind.SOURCE)
        if name == "int32" and source and source[0][1].size > 2**31:
            self._refuse("Targmax", "int32", f"int64, for positions in an input of {source[0][1].size} elements")
        return name
