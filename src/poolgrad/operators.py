"""Pooling as linear operators: once its taps are chosen, every pool is a matrix that one can apply and transpose.

An operator keeps the axes of its arrays in the order in which their memory lies, so that no layout has to be copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, Literal, TypeAlias

import numpy as np

from . import verbs
from .arrays import Array, as_array, ready
from .errors import Problems, brief, out_of_memory
from .geometry import phases
from .rules import Mean, Share
from .verbs import Astray
from .windows import Plan

Reduce: TypeAlias = Literal["sum", "assign"]

_HALVES = ("float16", "bfloat16")


class Linear:
    """A linear map from arrays of shape `source` to arrays of shape `dest`; `P(v)` applies it, `P.T` is its transpose."""

    source: tuple[int, ...]
    dest: tuple[int, ...]
    name = "Linear"

    def __call__(self, v: Any, out: Array | None = None) -> Any:
        """The map applied to an array, or to a variable of `poolgrad.vjp`."""
        return apply(self, v, out)

    @property
    def T(self) -> Linear:
        """The transposed map, made once."""
        kept: Linear | None = self.__dict__.get("_transposed")
        if kept is None:
            kept = self.__dict__["_transposed"] = Transposed(self)
        return kept

    def forth(self, v: Array) -> Array:
        """The map."""
        raise NotImplementedError

    def back(self, g: Array) -> Array:
        """Its transpose."""
        raise NotImplementedError

    def matrix(self) -> Array:
        """The map as a dense matrix, one row per cell of the result: for small arrays, to look at.

        >>> from poolgrad import averaging, Plan, clip
        >>> averaging(Plan((4,), {0: clip(4, 2, 2, 0, 2)})).matrix().tolist()
        [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
        """
        size = int(np.prod(self.source))
        columns = [self.forth(np.eye(1, size, j).reshape(self.source)).reshape(-1) for j in range(size)]
        return np.stack(columns, axis=1) if columns else np.zeros((int(np.prod(self.dest)), 0))

    def __repr__(self) -> str:
        return f"<{self.name}: {list(self.source)} -> {list(self.dest)}>"


class Transposed(Linear):
    """The transpose of an operator."""

    def __init__(self, of: Linear) -> None:
        self.of, self.source, self.dest = of, of.dest, of.source
        self.name = f"{of.name}.T"

    @property
    def T(self) -> Linear:
        """The operator itself."""
        return self.of

    def forth(self, v: Array) -> Array:
        """The transpose."""
        return self.of.back(v)

    def back(self, g: Array) -> Array:
        """The operator."""
        return self.of.forth(g)


def apply(operator: Linear, v: Any, out: Array | None = None) -> Any:
    """The operator applied to an array, into `out` if that is given; traced if v is."""
    from .autodiff import Var, lift

    if isinstance(v, Var):
        return lift(operator, v)
    problems = Problems(operator.name)
    array = as_array(problems, "v", v)
    problems.settle()
    assert array is not None
    if array.shape != operator.source:
        problems.fail("v", f"shape {list(array.shape)}", list(operator.source))
    try:
        return put(problems, operator.forth(array), out)
    except MemoryError as error:
        out_of_memory(operator.name, "v", error)


def put(problems: Problems, result: Array, out: Array | None) -> Array:
    """The result, or `out` with the result in it."""
    if out is None:
        return result
    if not isinstance(out, np.ndarray):
        problems.fail("out", brief(out), "a NumPy array", TypeError)
    if out.shape != result.shape:
        problems.fail("out", f"shape {list(out.shape)}", list(result.shape))
    if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        problems.fail("out", f"dtype {out.dtype}", f"one that {result.dtype} can be cast to", TypeError)
    np.copyto(out, result, casting="same_kind")
    return out


@lru_cache(64)
def inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    """The order of axes that undoes an order of axes."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


class Ordered(Linear):
    """An operator over a plan whose axes are in the order of memory: order[k] is the caller's axis that comes k-th."""

    def __init__(self, plan: Plan, order: Sequence[int]) -> None:
        self.plan, self.order = plan, tuple(order)
        self.inverse = inverse(self.order)
        self.straight = self.order == tuple(range(len(self.order)))
        self.source = tuple(map(plan.source.__getitem__, self.inverse))
        self.dest = tuple(map(plan.dest.__getitem__, self.inverse))

    def arrange(self, array: Array) -> Array:
        """The array as the core reads it."""
        return ready(Problems(self.name), "v", array if self.straight else array.transpose(self.order))

    def restore(self, array: Array) -> Array:
        """The array as the caller sees it."""
        return array if self.straight else array.transpose(self.inverse)

    def forth(self, v: Array) -> Array:
        """The map."""
        return self.restore(self.carry(self.arrange(v)))

    def back(self, g: Array) -> Array:
        """Its transpose."""
        return self.restore(self.carry_back(self.arrange(g)))

    def carry(self, v: Array) -> Array:
        """The map on an array as `arrange` gives it."""
        raise NotImplementedError

    def carry_back(self, g: Array) -> Array:
        """Its transpose, likewise."""
        raise NotImplementedError


def along(values: Array, d: int, rank: int) -> Array:
    """Values of one axis, in a shape that broadcasts against arrays of that rank."""
    return values.reshape([-1 if k == d else 1 for k in range(rank)])


def per_window(plan: Plan, what: Literal["count", "span"]) -> Array:
    """How many cells each window has, or had before it was cut, in a shape that broadcasts against the result."""
    total = np.ones((1,) * len(plan.dest), np.int64)
    for d, axis in enumerate(plan.by_dimension):
        if axis is not None:
            total = total * along(getattr(axis, what), d, len(plan.dest))
    return total


def parts(plan: Plan) -> list[tuple[tuple[Any, ...], tuple[Any, ...], Plan]]:
    """The plan by phases of its dilated axes, kept with it."""
    kept: list[tuple[tuple[Any, ...], tuple[Any, ...], Plan]] | None = plan.__dict__.get("_parts")
    if kept is None:
        kept = list(phases(plan))
        object.__setattr__(plan, "_parts", kept)
    return kept


def dilated(plan: Plan) -> bool:
    """Whether cells of some window lie apart."""
    return any(axis.step > 1 for axis in plan.axes)


def forth_by(plan: Plan, verb: Any, *arrays: Array) -> Array:
    """verb(plan, source array, destination arrays...) to a destination array, phase by phase."""
    if not dilated(plan):
        result: Array = verb(plan, *arrays)
        return result
    out = np.empty(plan.dest, arrays[0].dtype)
    for source, dest, part in parts(plan):
        first, *rest = arrays
        out[dest] = verb(part, np.ascontiguousarray(first[source]), *(np.ascontiguousarray(a[dest]) for a in rest))
    return out


def back_by(plan: Plan, verb: Any, *arrays: Array) -> Array:
    """verb(plan, destination arrays...) to a source array, phase by phase; what no window reads is 0."""
    if not dilated(plan):
        result: Array = verb(plan, *arrays)
        return result
    out = np.zeros(plan.source, arrays[0].dtype)
    for source, dest, part in parts(plan):
        out[source] = verb(part, *(np.ascontiguousarray(a[dest]) for a in arrays))
    return out


def _pick(plan: Plan, v: Array, taps: Array) -> Array:
    return verbs.pick(plan, v, taps.astype(verbs.tap_type(plan), copy=False))


def _place(plan: Plan, g: Array, taps: Array) -> Array:
    return verbs.place(plan, g, taps.astype(verbs.tap_type(plan), copy=False))


class Picking(Ordered):
    """P(v)[i] = v at the tap of window i; P.T(g) adds g[i] there. `taps` has one number per window, in memory order."""

    name = "Picking"

    def __init__(self, plan: Plan, taps: Array, order: Sequence[int]) -> None:
        super().__init__(plan, order)
        self.taps = taps

    def carry(self, v: Array) -> Array:
        return self._blamed(forth_by, _pick, v)

    def carry_back(self, g: Array) -> Array:
        return self._blamed(back_by, _place, g)

    def _blamed(self, run: Any, verb: Any, array: Array) -> Array:
        try:
            result: Array = run(self.plan, verb, array, self.taps)
        except Astray as astray:
            at = np.unravel_index(astray.at, self.plan.dest) if not dilated(self.plan) else None
            where = "" if at is None else f" at {[int(at[i]) for i in self.inverse]}"
            Problems(self.name).fail("taps", f"a tap{where} outside its window", "the number of a cell of the window")
        return result


class Folding(Ordered):
    """P(v)[i] = sum of v over window i, divided; P.T spreads. The divisor is the number of cells, a number, or an array."""

    name = "Folding"

    def __init__(self, plan: Plan, divisor: Array | float | None, order: Sequence[int]) -> None:
        super().__init__(plan, order)
        self.divisor = divisor

    def carry(self, v: Array) -> Array:
        if self.divisor is None:
            return forth_by(self.plan, _mean, v)
        wide = v.dtype.name in _HALVES and np.any(np.asarray(self.divisor) != 1)
        total = forth_by(self.plan, _total, v.astype(np.float32) if wide else v)
        return self._divided(total).astype(v.dtype, copy=False)

    def carry_back(self, g: Array) -> Array:
        if self.divisor is None:
            return back_by(self.plan, _spread_mean, g)
        wide = g.dtype.name in _HALVES and np.any(np.asarray(self.divisor) != 1)
        shares = self._divided(g.astype(np.float32) if wide else g)
        return back_by(self.plan, _spread, np.ascontiguousarray(shares)).astype(g.dtype, copy=False)

    def _divided(self, array: Array) -> Array:
        by = np.asarray(self.divisor)
        if by.ndim == 0 and by == 1:
            return array
        by = by.astype(array.dtype)
        return np.asarray(array // by if array.dtype.kind in "iu" else array / by)


def _signed(array: Array) -> Array:
    """Unsigned integers as signed ones of the same bits: sums wrap around alike."""
    return array.view(array.dtype.str.replace("u", "i")) if array.dtype.kind == "u" else array


def _total(plan: Plan, v: Array) -> Array:
    return verbs.fold(plan, Mean.TOTAL, _signed(v)).view(v.dtype)


def _mean(plan: Plan, v: Array) -> Array:
    return verbs.fold(plan, Mean.ONCE, v)


def _spread(plan: Plan, g: Array) -> Array:
    if g.dtype.kind not in "iu":
        return verbs.spread(plan, Share.WHOLE, False, g)
    back = Plan(plan.dest, {d: a.transpose() for d, a in enumerate(plan.by_dimension) if a is not None})
    return verbs.fold(back, Mean.TOTAL, _signed(g)).view(g.dtype)


def _spread_mean(plan: Plan, g: Array) -> Array:
    share = Share.QUOTIENT if g.dtype.name in _HALVES else Share.RECIPROCAL
    return verbs.spread_whole(plan, share, g) if plan.whole else verbs.spread(plan, share, False, g)


def taps_of(plan: Plan) -> Iterator[tuple[Any, Array]]:
    """Tap by tap: the index of the cell that it is in each window, and whether the window has so many cells."""
    axes = list(plan.by_dimension)
    widest = [1 if a is None else int(a.count.max(initial=0)) for a in axes]
    for place in product(*(range(w) for w in widest)):
        cells, there = [], []
        for d, (a, t) in enumerate(zip(axes, place, strict=True)):
            fits = np.ones(plan.dest[d], bool) if a is None else t < a.count
            cells.append(np.arange(plan.dest[d]) if a is None else np.where(fits, a.start + t * a.step, 0))
            there.append(fits)
        mask = np.ones((), bool)
        for d, fits in enumerate(there):
            mask = mask & along(fits, d, len(there))
        yield np.ix_(*cells), mask


class Sharing(Ordered):
    """Every cell that equals its window's best takes part: with full weight, or with an equal share of it."""

    name = "Sharing"

    def __init__(self, plan: Plan, x: Array, y: Array, split: bool, order: Sequence[int]) -> None:
        super().__init__(plan, order)
        self.x, self.y, self.split = x, y, split
        self.ties = sum((hit.astype(np.int64) for _, hit in self._hits()), np.zeros(plan.dest, np.int64))

    def _hits(self) -> Iterator[tuple[Any, Array]]:
        for index, mask in taps_of(self.plan):
            cell = self.x[index]
            yield index, mask & ((cell == self.y) | ((cell != cell) & (self.y != self.y)))

    def _shares(self, array: Array) -> Array:
        return array / np.maximum(self.ties, 1).astype(array.dtype) if self.split else array

    def carry(self, v: Array) -> Array:
        wide = v.astype(np.float32) if v.dtype.name in _HALVES else v
        total = np.zeros(self.plan.dest, wide.dtype)
        for index, hit in self._hits():
            total += np.where(hit, wide[index], np.zeros((), wide.dtype))
        return self._shares(total).astype(v.dtype, copy=False)

    def carry_back(self, g: Array) -> Array:
        wide = self._shares(g.astype(np.float32) if g.dtype.name in _HALVES else g)
        dx = np.zeros(self.plan.source, wide.dtype)
        for index, hit in self._hits():
            np.add.at(dx, index, np.where(hit, wide, np.zeros((), wide.dtype)))
        return dx.astype(g.dtype, copy=False)


class Indexing(Linear):
    """P(v)[i] = v[index[i]], positions counted within each of `items` equal parts of v; P.T adds up where they repeat."""

    name = "Indexing"

    def __init__(self, source: Sequence[int], index: Array, items: int = 1) -> None:
        self.source, self.dest, self.items = tuple(source), index.shape, items
        self.index = np.ascontiguousarray(index)

    def forth(self, v: Array) -> Array:
        """v at each position."""
        return self._follow(verbs.gather, v)

    def back(self, g: Array) -> Array:
        """The sum of what was sent to each position; halves are added in float32 and rounded once."""
        return self._follow(verbs.scatter, g, True)

    def _follow(self, verb: Any, array: Array, *more: bool) -> Array:
        problems = Problems(self.name)
        try:
            result: Array = verb(
                _Shapes(self.source, self.dest), self.items, False, ready(problems, "v", array), self.index, *more
            )
        except Astray as astray:
            value, at = self.index.reshape(-1)[astray.at], np.unravel_index(astray.at, self.dest)
            problems.fail("index", f"{value} at {[int(i) for i in at]}", "a position inside its part of the array")
        return result


class _Shapes:
    """The part of a plan that gather and scatter look at."""

    def __init__(self, source: tuple[int, ...], dest: tuple[int, ...]) -> None:
        self.source, self.dest = source, dest


class Masked(Linear):
    """An operator whose source is multiplied by a mask first."""

    def __init__(self, of: Linear, mask: Array) -> None:
        self.of, self.mask, self.source, self.dest = of, mask, of.source, of.dest
        self.name = of.name

    def forth(self, v: Array) -> Array:
        """The operator on what the mask lets pass."""
        return self.of.forth(np.where(self.mask, v, np.zeros((), v.dtype)))

    def back(self, g: Array) -> Array:
        """The transpose, masked."""
        back = self.of.back(g)
        return np.where(self.mask, back, np.zeros((), back.dtype))
