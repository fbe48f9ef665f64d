"""Compute TensorFlow's ops over a part of an array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NoReturn

import numpy as np

from .._common.arrays import Array
from .._common.errors import ArgumentErrors, short_repr
from .._kernels import native
from .._kernels.bind_kernel import bind_kernel
from .._kernels.native import Astray
from .._ops.bind import FORWARD, Binder, BoundCall
from .._ops.semantics import Kernel, Start, WindowRule
from .._ops.table import ARRAYS, OPS, REQUIRED, Kind, Op
from .._pooling.taps import digits
from .._windows.regular import Regular
from .parts import Input, Output, Part, Shape, Windows, size_of


class _JobBinder(Binder):
    """Checks a call by shape and dtype alone, and makes formulas instead of tables; the whole result need not fit into memory."""

    pooled: dict[int, Windows]

    def __init__(self, op: Op, shape: Shape, arrays: Mapping[str, Array], attrs: Mapping[str, Any]) -> None:
        super().__init__(op, arrays, attrs, ArgumentErrors(op.name))
        self.shape = shape

    def source_shape(self) -> Shape | None:
        """Return the shape that the job was given."""
        if len(self.shape) != self.rank:
            self.problems.add("shape", list(self.shape), f"{self.rank} dimensions")
            return None
        return self.shape

    def afford(self, source: Shape, dest: Shape) -> None:
        """Allow any size."""

    def axis(self, n: int, k: int, s: int, pad: int, m: int) -> Windows:
        """Return a formula if no window is empty and none follows the rule for windows longer than the dimension."""
        reaches = self.op.rule.windows is WindowRule.REACH and k > n
        if pad < k and (m - 1) * s - pad < n and not reaches:
            return Regular(n, k, s, 1, pad, None, m)
        made: Windows = super().axis(n, k, s, pad, m)
        return made

    def finish(self, source: Shape, dest: Shape, pooled: Mapping[int, Any], start: Start) -> BoundCall:
        """Return the call without a plan; a part makes its own."""
        self.pooled = dict(pooled)
        return super().finish(source, dest, {}, start)


@dataclass(frozen=True)
class OpCall:
    """A TensorFlow op with its attributes."""

    op: str
    dtype: np.dtype[Any]
    start: Start
    items: int
    absolute: bool
    index: str
    returns: tuple[str, ...]

    @property
    def _row(self) -> Op:
        return OPS[self.op]

    @property
    def back(self) -> bool:
        """True for gradients."""
        return self._row.rule.verb not in FORWARD

    @cached_property
    def _read(self) -> list[tuple[str, Kind]]:
        """The arrays whose cells the kernel reads, by name and kind."""
        row, verb = self._row, self._row.rule.verb
        cells = [(p.name, p.kind) for p in row.params if p.kind.is_cells]
        if verb in (Kernel.SCATTER, Kernel.GATHER):
            return cells[1:]  # of the first, only the shape counts
        if verb is Kernel.ROUTE and not row.rule.verify:
            return [cells[0], cells[2]]  # the maxima are found again
        return cells

    def inputs(self, source: Shape, dest: Shape) -> tuple[Input, ...]:
        """Return the arrays that it reads, in the order of the signature."""
        return tuple(
            Input(name, source, self.dtype, False)
            if kind is Kind.SOURCE
            else Input(name, dest, np.dtype("int64" if kind is Kind.INDEX else self.dtype), True)
            for name, kind in self._read
        )

    def outputs(self, shape: Shape) -> tuple[Output, ...]:
        """Return the arrays that it makes; sequences and ranges are not among them."""
        return tuple(Output(n, shape, np.dtype(self.index) if n == "argmax" else self.dtype) for n in self.returns)

    def run(self, part: Part, whole: Shape, *arrays: Array) -> tuple[Array, ...]:
        """Compute the op over a part."""
        rule, plan = self._row.rule, part.plan
        if rule.verb is Kernel.ARGMAX:
            y, where = native.argmax(plan, prod(plan.source) or 1, np.int64, *arrays)
            made = {"output": y, "argmax": self._positions(where, part, whole).astype(self.index)}
            return tuple(made[name] for name in self.returns)
        if rule.verb in (Kernel.SCATTER, Kernel.GATHER):
            return (self._by_position(part, whole, *arrays),)
        call = BoundCall(plan.source, plan.dest, plan, self.start)
        if rule.verb is Kernel.ROUTE and not rule.verify:
            arrays = (arrays[0], arrays[1], arrays[1])  # the one between is not read
        try:
            found: Array = bind_kernel(rule, native, call)(*arrays)
        except Astray as astray:
            at = np.unravel_index(astray.at, plan.dest)
            self._blame("orig_output", arrays[1][at], at, part, "the maximum of orig_input over that window")
        return (found,)

    def _positions(self, where: Array, part: Part, whole: Shape) -> Array:
        """Turn flat positions in the part into those in the whole array, or in its image."""
        places = digits(where, part.plan.source)  # np.unravel_index is wrong for some arrays whose last dimension is 1
        moved = [place + s.start for place, s in zip(places, part.source, strict=True)]
        return _flat(moved[0 if self.absolute else 1 :], whole[0 if self.absolute else 1 :])

    def _by_position(self, part: Part, whole: Shape, array: Array, index: Array) -> Array:
        """Follow flat positions; each must lie in its window, as those of MaxPoolWithArgmax do."""
        plan = part.plan
        own = np.arange(part.dest[0].start, part.dest[0].stop).reshape(-1, 1, 1, 1)
        flat = index.astype(np.int64) + (0 if self.absolute else own * prod(whole[1:]))
        inside = (flat >= 0) & (flat < prod(whole))
        places = digits(np.where(inside, flat, 0), whole)
        local = [place - s.start for place, s in zip(places, part.source, strict=True)]
        for d, place in enumerate(local):
            axis, shape = plan.by_dimension[d], [-1 if k == d else 1 for k in range(len(whole))]
            start = np.arange(plan.dest[d]) if axis is None else axis.start
            stop = start + 1 if axis is None else axis.stop
            inside &= (place >= start.reshape(shape)) & (place < stop.reshape(shape))
        if not inside.all():
            at = np.unravel_index(int(np.argmin(inside)), plan.dest)
            self._blame("argmax", index[at], at, part, "a flat position inside that window, as MaxPoolWithArgmax gives")
        follow = native.scatter if self._row.rule.verb is Kernel.SCATTER else native.gather
        return follow(plan, plan.source[0], True, array, _flat(local, plan.source))

    def _blame(self, name: str, value: Any, at: tuple[Any, ...], part: Part, wanted: str) -> NoReturn:
        place = [int(i) + s.start for i, s in zip(at, part.dest, strict=True)]
        ArgumentErrors(self.op).fail(name, f"{value} at {place}", wanted)

    def temporary(self, part: Part) -> int:
        """Return the bytes that it needs besides its inputs and outputs."""
        if self._row.rule.verb in (Kernel.ARGMAX, Kernel.SCATTER, Kernel.GATHER):
            return 6 * 8 * prod(size_of(part.dest))
        return 0


def _flat(places: list[Array], shape: Shape) -> Array:
    """Return row-major positions."""
    total: Array = np.zeros((), np.int64)
    for place, n in zip(places, shape, strict=True):
        total = total * n + place
    return np.ascontiguousarray(total, np.int64)


def op_job(
    op: str, shape: Shape, dtype: np.dtype[Any], words: Mapping[str, Any], returns: tuple[str, ...] | None
) -> tuple[OpCall, tuple[Windows | None, ...], Shape, tuple[Array, ...]]:
    """Check a call of an op; return it with the windows of each dimension, the shape after pooling, and the drawn sequences."""
    row, problems = OPS[op], ArgumentErrors(op)
    known = [p.name for p in row.params if p.kind not in ARRAYS or p.kind is Kind.SEQUENCE]
    for name, value in words.items():
        if name not in known:
            problems.fail(name, short_repr(value), f"an argument of {op} that is no array: {', '.join(known)}")
    if dtype.name not in row.dtypes:
        problems.fail("dtype", dtype, "one of " + ", ".join(row.dtypes), TypeError)
    names = row.outputs[: 2 if row.rule.verb is Kernel.ARGMAX else 1]
    asked = names if returns is None else returns
    if not asked or any(name not in names for name in asked):
        problems.fail("returns", short_repr(returns), " or ".join(map(repr, names)))
    sequences = {p.name: p for p in row.params if p.kind is Kind.SEQUENCE}
    arrays = {name: np.asarray(words[name]) for name in sequences if name in words}
    for name in sequences:
        if name not in words:
            problems.fail(name, "nothing", "the pooling sequence of the forward op")
    source = row.params[0].name
    if row.params[0].kind is Kind.SOURCE:
        arrays[source] = np.broadcast_to(np.zeros((), dtype), shape)  # takes no memory
    attrs = {
        p.name: words.get(p.name, p.plain_default) for p in row.params if p.name in words or p.default is not REQUIRED
    }
    binder = _JobBinder(row, shape, arrays, {k: v for k, v in attrs.items() if k not in arrays})
    call = binder.call()
    made = OpCall(op, dtype, call.start, call.items, call.absolute, call.index_type, tuple(asked))
    pooled = tuple(map(binder.pooled.get, range(len(shape)))) if call.plan is None else call.plan.by_dimension
    return made, pooled, call.dest, call.drawn
