"""Pooling as linear operators: once its taps are chosen, every pool is a matrix that one can apply and transpose.

An operator keeps the axes of its arrays in the order in which their memory lies, so that no layout has to be copied. It never changes
once it is made: it copies the arrays that it was made from, or nobody else has them. Pickles and copies leave out what an operator
can compute again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, Literal, TypeVar, overload
from weakref import ref

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._common import integers
from .._common.arrays import Array, afford, as_array, ready
from .._common.errors import ArgumentErrors, out_of_memory, short_repr
from .._kernels import native
from .._kernels.native import Astray
from .._ops.dtypes import HALVES
from .._ops.semantics import Mean, Share
from .._windows.axis import Axis
from .._windows.axis import limits as limits_of
from .._windows.plan import Plan, phases
from .._windows.plan_cache import SHORT
from .types import F, Numbers, S

V = TypeVar("V", bound="Traced")

_WIDEN = "v.astype(float) gives the nearest floats"


class Linear:
    """A linear operator: a pool with its chosen cells fixed, or its transpose.

    ``P(v)`` applies it, ``P.T`` is its transpose, and ``P.matrix()`` shows it. If P is the derivative of a pool, ``P.T`` is its
    gradient. An operator never changes. It can be pickled and copied. `averaging`, `summing`, `max_operator`, `min_operator`,
    `picking` and `unpooling` make operators.

    Attributes
    ----------
    source, dest : tuple of int
        The shapes of the arrays that it takes and returns.
    name : str
        The name that its errors begin with.

    See Also
    --------
    averaging, summing, max_operator, min_operator, picking, unpooling : Make operators.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> P = pg.averaging(pg.plan((4,), 2))
    >>> P.source, P.dest
    ((4,), (2,))
    >>> P(np.array([1.0, 3.0, 2.0, 0.0])).tolist(), P.T(np.array([1.0, 2.0])).tolist()
    ([2.0, 1.0], [0.5, 0.5, 1.0, 1.0])
    """

    source: tuple[int, ...]
    dest: tuple[int, ...]
    name = "Linear"

    @overload
    def __call__(self, v: V, out: None = ...) -> V: ...
    @overload
    def __call__(self, v: ArrayLike, out: NDArray[S]) -> NDArray[S]: ...
    @overload
    def __call__(self, v: NDArray[F], out: None = ...) -> NDArray[F]: ...
    @overload
    def __call__(self, v: ArrayLike, out: None = ...) -> Numbers: ...
    def __call__(self, v: ArrayLike | Traced, out: Array | None = None) -> Array | Traced:
        """Apply the operator.

        Parameters
        ----------
        v : array_like or Var
            An array of shape `source`, or a variable of a function that is differentiated.
        out : ndarray, optional
            An array that receives the result: of its shape, and of a dtype that it can be cast to.

        Returns
        -------
        ndarray or Var
            An array of shape `dest`; `out` if given; a `Var` if v is one. Floats keep their dtype.

        Raises
        ------
        TypeError
            If v is no array, or a dtype does not fit.
        ValueError
            If v has another shape, or a sum of integers does not fit its dtype.
        """
        result: Array | Traced = apply(self, v, out)
        return result

    @property
    def T(self) -> Linear:
        """The transposed operator, from shape `dest` to shape `source`."""
        # weak: a cycle would hold the taps until garbage is collected
        known: ref[Linear] | None = self.__dict__.get("_transposed")
        kept = None if known is None else known()
        if kept is None:
            kept = Transposed(self)
            self.__dict__["_transposed"] = ref(kept)
        return kept

    def forth(self, v: Array) -> Array:
        """Apply the map."""
        raise NotImplementedError

    def back(self, g: Array) -> Array:
        """Apply the transpose."""
        raise NotImplementedError

    def matrix(self) -> NDArray[np.float64]:
        """Return the operator as a dense matrix, for small arrays.

        Returns
        -------
        ndarray of float64
            A matrix with one row per cell of the result, and one column per cell of the source.

        Raises
        ------
        MemoryError
            If the matrix has more than 256 MB.

        Examples
        --------
        >>> import poolgrad as pg
        >>> pg.averaging(pg.plan((4,), 2)).matrix().tolist()
        [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
        """
        shape = prod(self.dest), prod(self.source)
        nbytes = 8 * prod(shape)
        if nbytes > _MATRIX:
            got = f"a matrix of shape {list(shape)} for {list(self.source)} -> {list(self.dest)}: {nbytes} bytes"
            wanted = f"at most {_MATRIX} bytes: apply P(v) and P.T(g) to arrays instead, or look at fewer windows"
            ArgumentErrors(self.name).fail("matrix", got, wanted, MemoryError)
        made = np.zeros(shape)
        if shape[1] <= shape[0]:
            _fill(self.forth, self.source, made.T)
        else:
            _fill(self.back, self.dest, made)
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name[0] != "_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            if isinstance(value, np.ndarray):
                value = value.view()
                value.flags.writeable = False
            self.__dict__[name] = value

    def __repr__(self) -> str:
        return f"<{self.name}: {list(self.source)} -> {list(self.dest)}>"


_MATRIX = 2**28  # bytes of the largest matrix that is made


def _fill(run: Any, shape: tuple[int, ...], rows: Array) -> None:
    """Write run(k-th unit array of that shape) into row k."""
    unit = np.zeros(shape)
    flat = unit.reshape(-1)
    for k in range(unit.size):
        flat[k] = 1
        rows[k] = run(unit).reshape(-1)
        flat[k] = 0


class Traced:
    """A variable, which records the operators that it goes through."""

    __slots__ = ()

    def through(self, operator: Linear) -> Traced:
        """Apply the operator to the variable."""
        raise NotImplementedError


class Transposed(Linear):
    """The transpose of an operator."""

    def __init__(self, of: Linear) -> None:
        self.of, self.source, self.dest = of, of.dest, of.source
        self.name = f"{of.name}.T"

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.of.__dict__["_transposed"] = ref(self)

    def __copy__(self) -> Linear:
        made = copy(self.of).T
        made.name = self.name
        return made

    @property
    def T(self) -> Linear:
        """The operator itself."""
        return self.of

    def forth(self, v: Array) -> Array:
        """Apply the transpose of the operator."""
        return self.of.back(v)

    def back(self, g: Array) -> Array:
        """Apply the operator."""
        return self.of.forth(g)


def apply(operator: Linear, v: Any, out: Array | None = None) -> Any:
    """Apply the operator to an array, into `out` if given; trace it if v is a variable."""
    if isinstance(v, Traced):
        return v.through(operator)
    problems = ArgumentErrors(operator.name)
    array = as_array(problems, "v", v)
    problems.raise_if_any()
    assert array is not None
    if array.shape != operator.source:
        problems.fail("v", f"shape {list(array.shape)}", list(operator.source))
    try:
        result = operator.forth(array)
    except Exception as error:
        problems.found = list(getattr(error, "findings", ()))  # of a part of this operator, which has another name
        if isinstance(error, MemoryError) and not problems:
            out_of_memory(operator.name, "v", error)
        if not problems:
            raise
    problems.raise_if_any()
    return put(problems, result, out)


def put(problems: ArgumentErrors, result: Array, out: Array | None) -> Array:
    """Return the result, or `out` with the result in it."""
    if out is None:
        return result
    if not isinstance(out, np.ndarray):
        problems.fail("out", short_repr(out), "a NumPy array", TypeError)
    if out.shape != result.shape:
        problems.fail("out", f"shape {list(out.shape)}", list(result.shape))
    if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        problems.fail("out", f"dtype {out.dtype}", f"one that {result.dtype} can be cast to", TypeError)
    np.copyto(out, _fitted(problems, result, out.dtype.newbyteorder("=")))
    return out


def _fitted(problems: ArgumentErrors, result: Array, dtype: np.dtype[Any]) -> Array:
    """Cast the result to the dtype of `out`, by the integer policy."""
    if result.dtype == dtype or dtype.kind in "cO":
        return result
    if result.dtype.kind in integers.WHOLE:
        return integers.integer_cast(problems, "out", result, dtype)
    return integers.float_cast(result, dtype)


@lru_cache(64)
def inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    """Return the order of axes that undoes an order of axes."""
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
        """Return the array as the core reads it."""
        return ready(ArgumentErrors(self.name), "v", array if self.straight else array.transpose(self.order))

    def restore(self, array: Array) -> Array:
        """Return the array as the caller sees it."""
        return array if self.straight else array.transpose(self.inverse)

    def forth(self, v: Array) -> Array:
        """Apply the map."""
        return self.restore(self.carry(self.arrange(v)))

    def back(self, g: Array) -> Array:
        """Apply the transpose."""
        return self.restore(self.carry_back(self.arrange(g)))

    def carry(self, v: Array) -> Array:
        """Apply the map to an array as `arrange` gives it."""
        raise NotImplementedError

    def carry_back(self, g: Array) -> Array:
        """Apply the transpose to an array as `arrange` gives it."""
        raise NotImplementedError


def along(values: Array, d: int, rank: int) -> Array:
    """Values of one axis, in a shape that broadcasts against arrays of that rank."""
    return values.reshape([-1 if k == d else 1 for k in range(rank)])


def per_window(plan: Plan, what: Literal["count", "span"]) -> Array:
    """Return the number of cells of each window, now or before it was cut, in a shape that broadcasts against the result.

    Python's integers where one could be beyond 2**53: spans may count any padding. Short tables are kept with the plan.
    """
    kept: Array | None = plan.__dict__.get(f"_per_{what}")
    if kept is not None:
        return kept
    total, most = np.ones((1,) * len(plan.dest), np.int64), 1
    for d, axis in enumerate(plan.by_dimension):
        if axis is not None:
            values = getattr(axis, what)
            most *= int(values.max(initial=1))
            total = (total.astype(object) if most > 2**53 else total) * along(values, d, len(plan.dest))
    total.flags.writeable = False
    if total.size <= SHORT:
        object.__setattr__(plan, f"_per_{what}", total)
    return total


def limits(plan: Plan, what: Literal["count", "span"]) -> tuple[int, int]:
    """Return the least and the largest of `per_window`, without making it."""
    least, most = zip(*(limits_of(axis, what) for axis in plan.axes), strict=True)
    return prod(least), prod(most)


def widest(plan: Plan) -> int:
    """Return the cells of the largest window, cached on the plan."""
    kept: int | None = plan.__dict__.get("_widest")
    if kept is None:
        kept = prod(1 if a is None else a.widest for a in plan.by_dimension)
        object.__setattr__(plan, "_widest", kept)
    return kept


def most_over_a_cell(axis: Axis) -> int:
    """Return a bound on the windows of an axis that read one cell, at least 1."""
    begun, over = (np.searchsorted(ends, axis.start, side="right") for ends in (axis.start, axis.stop))
    return max(int((begun - over).max(initial=0)), 1)


def overlap(plan: Plan) -> int:
    """Return a bound on the windows that read one cell, cached on the plan: 1 if windows do not overlap."""
    kept: int | None = plan.__dict__.get("_overlap")
    if kept is None:
        kept = prod(1 if axis is None else most_over_a_cell(axis) for axis in plan.by_dimension)
        object.__setattr__(plan, "_overlap", kept)
    return kept


def parts(plan: Plan) -> list[tuple[tuple[Any, ...], tuple[Any, ...], Plan]]:
    """Return the plan split by phases of its dilated axes, cached on the plan."""
    kept: list[tuple[tuple[Any, ...], tuple[Any, ...], Plan]] | None = plan.__dict__.get("_phases")
    if kept is None:
        kept = list(phases(plan))
        object.__setattr__(plan, "_phases", kept)
    return kept


def dilated(plan: Plan) -> bool:
    """Return True if some window is dilated."""
    for axis in plan.axes:  # noqa: SIM110  # a loop is faster than any()
        if axis.step > 1:
            return True
    return False


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
    return native.pick(plan, v, taps.astype(native.tap_type(plan), copy=False))


def _place(plan: Plan, g: Array, taps: Array) -> Array:
    return native.place(plan, g, taps.astype(native.tap_type(plan), copy=False))


class TapGather(Ordered):
    """P(v)[i] = v at the tap of window i; P.T(g) adds g[i] there. `taps` has one number per window, in memory order."""

    name = "Picking"

    def __init__(self, plan: Plan, taps: Array, order: Sequence[int]) -> None:
        super().__init__(plan, order)
        self.taps = taps

    def carry(self, v: Array) -> Array:
        if v.dtype.kind == "b":
            return self.carry(v.view(np.uint8)).view(np.bool_)
        return self._blamed(forth_by, _pick, v)

    def carry_back(self, g: Array) -> Array:
        if g.dtype.kind not in integers.WHOLE or (g.dtype.kind != "b" and overlap(self.plan) == 1):
            return self._blamed(back_by, _place, g)
        return integers.sums_of_kind(
            ArgumentErrors(self.name),
            "v",
            lambda cells: self._blamed(back_by, _place, cells),
            g,
            overlap(self.plan),
            _WIDEN,
            self.inverse,
            "at",
        )

    def _blamed(self, run: Any, verb: Any, array: Array) -> Array:
        try:
            result: Array = run(self.plan, verb, array, self.taps)
        except Astray as astray:
            at = np.unravel_index(astray.at, self.plan.dest) if not dilated(self.plan) else None
            where = "" if at is None else f" at {[int(at[i]) for i in self.inverse]}"
            ArgumentErrors(self.name).fail(
                "taps", f"a tap{where} outside its window", "the number of a cell of the window"
            )
        return result


def _as_bytes(array: Array) -> Array:
    """Return booleans as bytes, which the core reads, and other arrays unchanged."""
    return array.view(np.uint8) if array.dtype == np.bool_ else array


def exact_sums(problems: ArgumentErrors, name: str, plan: Plan, v: Array) -> integers.Sums:
    """Return the sums of integers over windows, exactly."""
    return integers.exact_sums(problems, name, lambda cells: forth_by(plan, _total, cells), v, widest(plan))


def sum_rule(plan: Plan, by: ArrayLike | None, dtype: np.dtype[Any]) -> Mean | None:
    """Return the rule by which the core divides sums of floats as it adds them up, if it has one.

    `by`: None for the cells of the window, "span" for those before an edge cut it, or a number.
    """
    if by is None:
        return Mean.ONCE
    if by != "span":
        return Mean.TOTAL if by == 1 else None
    fits = dtype.name not in HALVES and not dilated(plan) and widest(plan) <= 64 and limits(plan, "span")[1] <= 2**22
    return Mean.SPANNED if fits else None


class WindowSum(Ordered):
    """P(v)[i] = sum of v over window i, divided; P.T spreads. The divisor is the number of cells, a number, or an array.

    `spans` says that the array holds the cells of each window before an edge cut it: the core divides by them.

    Integers give integer sums, int64 or uint64; means, which have an exact or another divisor, are float64.
    """

    name = "Folding"

    def __init__(
        self,
        plan: Plan,
        divisor: Array | float | None,
        order: Sequence[int],
        exact: integers.Ratio | None = None,
        spans: bool = False,
    ) -> None:
        super().__init__(plan, order)
        self.divisor, self.exact = divisor, exact
        self.spans = spans

    def rule(self, dtype: np.dtype[Any]) -> Mean | None:
        """Return the rule by which the core takes these sums or means of floats by itself, if there is one."""
        if isinstance(self.divisor, np.ndarray) and not self.spans:
            return None
        return sum_rule(self.plan, "span" if self.spans else self.divisor, dtype)

    def carry(self, v: Array) -> Array:
        if v.dtype.kind in integers.WHOLE:
            return self._whole(v)
        rule = self.rule(v.dtype)
        if rule is not None:
            return forth_by(self.plan, lambda plan, v: native.fold(plan, rule, v), v)
        wide = v.dtype.name in HALVES and np.any(np.asarray(self.divisor) != 1)
        by: Any = "span" if self.spans else self.divisor
        if wide and (type(by) is float or (self.spans and limits(self.plan, "span")[1] <= 2**53)):
            return forth_by(self.plan, lambda plan, v: native.averager(plan, by, False)(v), v)
        total = forth_by(self.plan, _total, v.astype(np.float32) if wide else v)
        return self._divided(total).astype(v.dtype, copy=False)

    def carry_back(self, g: Array) -> Array:
        if g.dtype.kind in integers.WHOLE:
            return self._whole_back(g)
        if self.divisor is None:
            return back_by(self.plan, _spread_mean, g)
        wide = g.dtype.name in HALVES and np.any(np.asarray(self.divisor) != 1)
        shares = self._divided(g.astype(np.float32) if wide else g)
        return back_by(self.plan, _spread, np.ascontiguousarray(shares)).astype(g.dtype, copy=False)

    def _sums_only(self) -> bool:
        return (
            self.exact is None and self.divisor is not None and np.ndim(self.divisor) == 0 and bool(self.divisor == 1)
        )

    def _whole(self, v: Array) -> Array:
        problems = ArgumentErrors(self.name)
        sums = exact_sums(problems, "v", self.plan, v)
        if self._sums_only():
            return integers.narrow_sums(problems, "v", sums, integers.sum_type(v.dtype), _WIDEN, self.inverse)
        by: Any = self.exact or (per_window(self.plan, "count") if self.divisor is None else self.divisor)
        by = integers.ratio_of(problems, by) if np.ndim(by) == 0 else by
        return integers.float_means(sums, by, np.dtype(np.float64))

    def _whole_back(self, g: Array) -> Array:
        if not self._sums_only():
            return self.carry_back(g.astype(np.float64))
        problems = ArgumentErrors(self.name)
        sums = integers.exact_sums(
            problems, "v", lambda cells: back_by(self.plan, _spread, cells), g, overlap(self.plan)
        )
        return integers.narrow_sums(problems, "v", sums, integers.sum_type(g.dtype), _WIDEN, self.inverse, "at")

    def _divided(self, array: Array) -> Array:
        by = np.asarray(self.divisor)
        if by.ndim == 0 and by == 1:
            return array
        return np.asarray(array / by.astype(array.dtype))


class MeanOfSome(WindowSum):
    """P(v)[i] = sum of v over window i, divided by `counts`. Windows that count all their cells have the bits of a plain mean.

    So have the gradients of cells that only such windows read.
    """

    def __init__(self, plan: Plan, counts: Array, order: Sequence[int]) -> None:
        super().__init__(plan, counts, order)
        self.counts_all = counts == per_window(plan, "count")

    def carry(self, v: Array) -> Array:
        some = super().carry(v)
        return (
            some if v.dtype.kind in integers.WHOLE else np.where(self.counts_all, forth_by(self.plan, _mean, v), some)
        )

    def carry_back(self, g: Array) -> Array:
        some = super().carry_back(g)
        if g.dtype.kind in integers.WHOLE:
            return some
        fewer = back_by(self.plan, _spread, (~self.counts_all).astype(np.float32))  # windows that leave out cells
        return np.where(fewer == 0, back_by(self.plan, _spread_mean, g), some)


def _signed(array: Array) -> Array:
    """Unsigned integers as signed ones of the same bits: sums wrap around alike."""
    return array.view(array.dtype.str.replace("u", "i")) if array.dtype.kind == "u" else array


def _total(plan: Plan, v: Array) -> Array:
    return native.fold(plan, Mean.TOTAL, _signed(v)).view(v.dtype)


def _mean(plan: Plan, v: Array) -> Array:
    return native.fold(plan, Mean.ONCE, v)


def _spread(plan: Plan, g: Array) -> Array:
    if g.dtype.kind not in "iu":
        return native.spread(plan, Share.WHOLE, False, g)
    back = Plan(plan.dest, {d: a.transpose() for d, a in enumerate(plan.by_dimension) if a is not None})
    return native.fold(back, Mean.TOTAL, _signed(g)).view(g.dtype)


def _share(g: Array) -> Share:
    return Share.QUOTIENT if g.dtype.name in HALVES else Share.RECIPROCAL


def gradient_of_whole(g: Array, cells: int, divisor: float | None) -> Array:
    """Return the gradient of each cell of a mean or sum over one window of so many cells; None divides by their number."""
    if divisor is None:
        return native.whole_share(_share(g), cells, g)
    wide = g.astype(np.float32) if g.dtype.name in HALVES and divisor != 1 else g
    shares = wide if divisor == 1 else wide / np.asarray(divisor).astype(wide.dtype)
    return np.asarray(shares + wide.dtype.type(0)).astype(g.dtype, copy=False)


def _spread_mean(plan: Plan, g: Array) -> Array:
    share = _share(g)
    return native.spread_whole(plan, share, g) if plan.whole else native.spread(plan, share, False, g)


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
        self.x, self.y, self.split = np.array(x), np.array(y), split

    @property
    def ties(self) -> Array:
        """The number of cells of each window that take part, counted once."""
        kept: Array | None = self.__dict__.get("_ties")
        if kept is None:
            kept = sum((hit.astype(np.int64) for _, hit in self._hits()), np.zeros(self.plan.dest, np.int64))
            self.__dict__["_ties"] = kept
        return kept

    def _hits(self) -> Iterator[tuple[Any, Array]]:
        for index, mask in taps_of(self.plan):
            cell = self.x[index]
            yield index, mask & ((cell == self.y) | ((cell != cell) & (self.y != self.y)))

    def _shares(self, array: Array) -> Array:
        return array / np.maximum(self.ties, 1).astype(array.dtype) if self.split else array

    def carry(self, v: Array) -> Array:
        return self._exact(self._gather, v, widest(self.plan), "over window")

    def carry_back(self, g: Array) -> Array:
        return self._exact(self._scatter, g, overlap(self.plan), "at")

    def _exact(self, run: Any, array: Array, terms: int, where: str) -> Array:
        """Equal shares of integers are float64; sums of integers keep their dtype."""
        if self.split and array.dtype.kind in integers.WHOLE:
            array = array.astype(np.float64)
        return integers.sums_of_kind(ArgumentErrors(self.name), "v", run, array, terms, _WIDEN, self.inverse, where)

    def _gather(self, v: Array) -> Array:
        wide = v.astype(np.float32) if v.dtype.name in HALVES else v
        total = np.zeros(self.plan.dest, wide.dtype)
        for index, hit in self._hits():
            total += np.where(hit, wide[index], np.zeros((), wide.dtype))
        return self._shares(total).astype(v.dtype, copy=False)

    def _scatter(self, g: Array) -> Array:
        wide = self._shares(g.astype(np.float32) if g.dtype.name in HALVES else g)
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
        return self._follow(native.gather, _as_bytes(v)).view(v.dtype)

    def back(self, g: Array) -> Array:
        """Add up the cells sent to each position; half types are summed in float32 and rounded once."""
        problems = ArgumentErrors(self.name)
        afford(problems, "shape", prod(self.source) * g.dtype.itemsize, f"a result of shape {list(self.source)}")
        return integers.sums_of_kind(
            problems, "v", lambda cells: self._follow(native.scatter, cells, True), g, g.size, _WIDEN, (), "at"
        )

    def _follow(self, verb: Any, array: Array, *more: bool) -> Array:
        problems = ArgumentErrors(self.name)
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
        """Apply the operator to the cells that the mask keeps."""
        return self.of.forth(np.where(self.mask, v, np.zeros((), v.dtype)))

    def back(self, g: Array) -> Array:
        """Apply the transpose, then the mask."""
        back = self.of.back(g)
        return np.where(self.mask, back, np.zeros((), back.dtype))
