"""The pools in JAX's own operations, for devices that the core does not know: gathers, comparisons and sums in a fixed order.

No operation scatters, so two runs give the same bits. Loops go over the cells of a window, or over the windows of a cell, and hold
one cell of each at a time. Boundaries are data: windows that are drawn when the program runs need no other program.
Cells are compared as integers in the order of their values, so that devices that flush subnormals choose the same cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._frameworks import spec
from .._frameworks.spec import Frame, PoolSpec

UNROLLED = 32  # steps of a loop that become operations of their own, which XLA fuses
FEW = 4  # windows along an axis that are reduced one by one, if they are long


class Line(NamedTuple):
    """The windows along one axis of an array."""

    d: int
    cells: int
    windows: int
    step: int
    widest: int
    overlap: int
    start: Any
    stop: Any
    span: Any

    @property
    def count(self) -> Any:
        """The number of cells of each window."""
        return (self.stop - self.start + self.step - 1) // self.step


def lines_of(frame: Frame, windows: Any) -> list[Line]:
    """Return the windows of each pooled axis."""
    made, at = [], 0
    for (d, n, m, step), (widest, overlap) in zip(frame.axes, frame.reach, strict=True):
        made.append(Line(d, n, m, step, widest, overlap, *(windows[row, at : at + m] for row in range(3))))
        at += m
    return made


def _along(values: Any, d: int, rank: int) -> Any:
    """Return the values of one axis, in a shape that broadcasts against arrays of that rank."""
    return values.reshape([-1 if k == d else 1 for k in range(rank)])


def _product(lines: Sequence[Line], values: Sequence[Any], rank: int, dtype: Any = np.int32) -> Any:
    """Return the product of values along each line."""
    made = jnp.ones((1,) * rank, dtype)
    for line, own in zip(lines, values, strict=True):
        made = made * _along(own.astype(dtype), line.d, rank)
    return made


def _loop(sizes: Sequence[int], body: Callable[[tuple[Any, ...], Any], Any], state: Any) -> Any:
    """Call state = body(place, state) for every place of a box of these sizes, row by row."""
    total = prod(sizes)
    if total <= UNROLLED:
        for place in product(*map(range, sizes)):
            state = body(place, state)
        return state

    def step(i: Any, state: Any) -> Any:
        place = []
        for size in reversed(sizes):
            place.append(i % size)
            i = i // size
        return body(tuple(place[::-1]), state)

    return lax.fori_loop(0, total, step, state)


def _take(array: Any, d: int, index: Any) -> Any:
    return jnp.take(array, index, axis=d, mode="clip")


def _groups(lines: list[Line], sizes: Sequence[int]) -> Iterator[list[Line]]:
    """Return the lines to reduce together, the last ones first: all of them if boxes are small, else one by one."""
    if prod(sizes) <= UNROLLED:
        yield lines
        return
    for line in reversed(lines):
        yield [line]


def _no_cells(lines: list[Line]) -> bool:
    return any(line.windows == 0 or line.cells == 0 for line in lines)


# ---- choices


def _ranks(x: Any, least: bool, nan: str) -> Any:
    """Return integers in the order of the cells, the best one largest. Both zeros are equal; NaN is above or below everything."""
    if x.dtype == jnp.bool_:
        x = x.astype(np.uint8)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return ~x if least else x
    whole = np.dtype(f"i{x.dtype.itemsize}")
    most, lowest = np.iinfo(whole).max, np.iinfo(whole).min
    bits = lax.bitcast_convert_type(x, whole)
    bits = jnp.where(bits == lowest, whole.type(0), bits)
    infinity = lax.bitcast_convert_type(jnp.asarray(np.inf, x.dtype), whole)
    is_nan = (bits & whole.type(most)) > infinity
    ranked = bits ^ ((bits >> whole.type(8 * whole.itemsize - 1)) & whole.type(most))
    return jnp.where(is_nan, whole.type(most if nan == "propagate" else lowest), ~ranked if least else ranked)


class _Best(NamedTuple):
    """The best cells so far: their ranks, their values and their numbers."""

    rank: Any
    value: Any
    tap: Any

    def replaced(self, where: Any, by: _Best) -> _Best:
        return _Best(*(jnp.where(where, new, old) for new, old in zip(by, self, strict=True)))


def _better(new: Any, old: Any, last: bool) -> Any:
    return new >= old if last else new > old


def _best_together(lines: list[Line], best: _Best, below: Any, last: bool) -> _Best:
    """Reduce some axes: `below` counts the cells of each window along the axes that are reduced already."""
    rank = best.rank.ndim

    def cell(place: tuple[Any, ...]) -> tuple[_Best, Any]:
        found, inside, number = best, jnp.ones((1,) * rank, bool), jnp.zeros((1,) * rank, np.uint32)
        for line, o in zip(lines, place, strict=True):
            found = _Best(*(_take(part, line.d, line.start + o * line.step) for part in found))
            count = _along(line.count, line.d, rank)
            inside, number = inside & (o < count), number * count.astype(np.uint32) + jnp.uint32(o)
        return found._replace(tap=found.tap + number * below), inside

    def body(place: tuple[Any, ...], state: _Best) -> _Best:
        found, inside = cell(place)
        return state.replaced(inside & _better(found.rank, state.rank, last), found)

    first = cell((0,) * len(lines))[0]
    return _loop([line.widest for line in lines], body, first)


def _best_of_few(line: Line, best: _Best, below: Any, last: bool) -> _Best:
    """Reduce an axis with few, long windows, one by one."""
    rank, parts = best.rank.ndim, []
    at = jnp.arange(line.cells, dtype=np.int32)
    for w in range(line.windows):
        own = (at >= line.start[w]) & (at < line.stop[w]) & ((at - line.start[w]) % line.step == 0)
        inside = _along(own, line.d, rank)
        lowest = np.iinfo(best.rank.dtype).min
        top = jnp.max(jnp.where(inside, best.rank, lowest), axis=line.d, keepdims=True)
        hit = inside & (best.rank == top)
        where = jnp.argmax(jnp.flip(hit, line.d) if last else hit, axis=line.d, keepdims=True)
        where = (line.cells - 1 - where if last else where).astype(np.int32)
        number = ((where - line.start[w]) // line.step).astype(np.uint32)
        found = _Best(*(jnp.take_along_axis(part, where, line.d) for part in best))
        parts.append(found._replace(tap=found.tap + number * below))
    return _Best(*(jnp.concatenate(part, line.d) for part in zip(*parts, strict=True)))


def _best(rule: PoolSpec, x: Any, lines: list[Line], last: bool | None = None) -> _Best:
    rank, last = x.ndim, rule.ties == "last" if last is None else last
    best = _Best(_ranks(x, rule.least, rule.nan), x, jnp.zeros(x.shape, np.uint32))
    below = jnp.ones((1,) * rank, np.uint32)
    for group in _groups(lines, [line.widest for line in lines]):
        long = group[0].widest > UNROLLED and group[0].windows <= FEW
        best = _best_of_few(group[0], best, below, last) if long else _best_together(group, best, below, last)
        below = below * _product(group, [line.count for line in group], rank, np.uint32)
    return best


def _lowest(dtype: Any, least: bool) -> Any:
    """Return the value of a maximum without a cell that counts, as in TensorFlow."""
    found = jnp.finfo(dtype)
    return np.asarray(found.max if least else found.min, dtype)


def choose(rule: PoolSpec, x: Any, windows: Any) -> list[Any]:
    """Return the best cell of each window, and the taps if the pool chooses one cell."""
    lines = lines_of(rule.frame, windows)
    if _no_cells(lines):
        shape = rule.dest(x.shape)
        return [jnp.zeros(shape, x.dtype), *([jnp.zeros(shape, rule.frame.taps)] if rule.picks else [])]
    best = _best(rule, x, lines)
    if rule.nan == "tf" and jnp.issubdtype(x.dtype, jnp.floating):
        best = _as_tensorflow(rule, x, lines, best)
    return [best.value, best.tap.astype(rule.frame.taps)] if rule.picks else [best.value]


def _as_tensorflow(rule: PoolSpec, x: Any, lines: list[Line], best: _Best) -> _Best:
    """Start from the lowest finite number, as TensorFlow. A NaN that comes first (last, for the last tie) is the tap."""
    last = rule.ties == "last"
    y = _best(rule, x, lines, last=False).value if last else best.value
    edge = jnp.asarray(_lowest(x.dtype, rule.least))
    y = jnp.where(best.rank <= _ranks(edge, rule.least, rule.nan), edge, y)
    end, counts = x, [line.count for line in lines]
    for line, count in zip(lines, counts, strict=True):
        end = _take(end, line.d, line.start + (count - 1) * line.step if last else line.start)
    number = _product(lines, counts, x.ndim, np.uint32) - 1 if last else jnp.zeros((), np.uint32)
    return best._replace(value=y, tap=jnp.where(jnp.isnan(end), number, best.tap))


# ---- cells at taps


def _coordinates(lines: list[Line], taps: Any) -> tuple[list[Any], Any]:
    """Return the cell that each window chose along each axis, and whether the window has so many cells."""
    rank, rest, found = taps.ndim, taps.astype(np.int32), []
    for line in reversed(lines):
        count = jnp.maximum(_along(line.count, line.d, rank), 1)
        found.append(_along(line.start, line.d, rank) + (rest % count) * line.step)
        rest = rest // count
    return found[::-1], rest == 0


def _pick(lines: list[Line], v: Any, taps: Any) -> Any:
    """Return v at the taps; 0 at a tap outside its window."""
    rank = v.ndim
    if prod(line.widest for line in lines) <= UNROLLED:

        def body(place: tuple[Any, ...], found: Any) -> Any:
            cell, inside, number = v, jnp.ones((1,) * rank, bool), jnp.zeros((1,) * rank, np.uint32)
            for line, o in zip(lines, place, strict=True):
                cell = _take(cell, line.d, line.start + o * line.step)
                count = _along(line.count, line.d, rank)
                inside, number = inside & (o < count), number * count.astype(np.uint32) + jnp.uint32(o)
            return jnp.where(inside & (taps == number), cell, found)

        return _loop([line.widest for line in lines], body, jnp.zeros(taps.shape, v.dtype))
    where, inside = _coordinates(lines, taps)
    flat = jnp.zeros(taps.shape, np.int32)
    for line, own in zip(lines, where, strict=True):
        flat = flat * line.cells + own
    dims = [line.d for line in lines]
    ends = list(range(rank - len(dims), rank))
    planes, index = (jnp.moveaxis(a, dims, ends) for a in (v, flat))
    kept = planes.shape[: rank - len(dims)]
    found = jnp.take_along_axis(planes.reshape(*kept, -1), index.reshape(*kept, -1), -1, mode="clip")
    back = jnp.moveaxis(found.reshape(index.shape), ends, dims)
    return jnp.where(inside, back, jnp.zeros((), v.dtype))


class _Over(NamedTuple):
    """The windows over each cell of an axis: the first one, and the one after the last."""

    first: Any
    end: Any


def _over(line: Line) -> _Over:
    at = jnp.arange(line.cells, dtype=np.int32)
    first, end = (jnp.searchsorted(ends, at, side="right").astype(np.int32) for ends in (line.stop, line.start))
    return _Over(first, end)


class _Covering(NamedTuple):
    """One of the windows over each cell, along one axis."""

    window: Any
    inside: Any
    digit: Any


def _covering(line: Line, over: _Over, o: Any) -> _Covering:
    window = over.first + o
    start = jnp.take(line.start, window, mode="clip")
    away = jnp.arange(line.cells, dtype=np.int32) - start
    return _Covering(window, (window < over.end) & (away % line.step == 0), away // line.step)


def _at_windows(lines: list[Line], rank: int) -> Callable[[tuple[Any, ...], Sequence[Any]], tuple[list[Any], Any, Any]]:
    """Return a function from a place among the windows over each cell to arrays at these windows, the cell's own tap, and which exist."""
    overs = [_over(line) for line in lines]

    def at(place: tuple[Any, ...], arrays: Sequence[Any]) -> tuple[list[Any], Any, Any]:
        found, inside, number = list(arrays), jnp.ones((1,) * rank, bool), jnp.zeros((1,) * rank, np.uint32)
        for line, over, o in zip(lines, overs, place, strict=True):
            covering = _covering(line, over, o)
            found = [_take(array, line.d, covering.window) for array in found]
            count = jnp.take(line.count, covering.window, mode="clip").astype(np.uint32)
            inside = inside & _along(covering.inside, line.d, rank)
            own = _along(covering.digit.astype(np.uint32), line.d, rank)
            number = number * _along(count, line.d, rank) + own
        return found, number, inside

    return at


def _wide(dtype: Any) -> Any:
    """Return the dtype of sums: halves are summed in float32."""
    return np.float32 if jnp.issubdtype(dtype, jnp.floating) and np.dtype(dtype).itemsize == 2 else dtype


def _place(lines: list[Line], g: Any, taps: Any, assign: bool = False) -> Any:
    """Add up g at the taps, window after window; or keep the last."""
    rank, wide = g.ndim, g.astype(np.uint8 if g.dtype == jnp.bool_ else _wide(g.dtype))
    at, nothing = _at_windows(lines, rank), jnp.zeros((), wide.dtype)

    def body(place: tuple[Any, ...], total: Any) -> Any:
        (value, tap), number, inside = at(place, (wide, taps))
        hit = inside & (tap == number)
        return jnp.where(hit, value, total) if assign else total + jnp.where(hit, value, nothing)

    source = list(g.shape)
    for line in lines:
        source[line.d] = line.cells
    return _loop([line.overlap for line in lines], body, jnp.zeros(source, wide.dtype)).astype(g.dtype)


def _last_of_equals(lines: list[Line], taps: Any) -> Any:
    """Return True for each window that is the last one to choose its cell."""
    rank, own = taps.ndim, jnp.zeros((1,) * taps.ndim, np.int32)
    for line in lines:
        own = own * line.windows + _along(jnp.arange(line.windows, dtype=np.int32), line.d, rank)
    own = jnp.broadcast_to(own, taps.shape) + 1  # 0: no window
    return _pick(lines, _place(lines, own, taps, assign=True), taps) == own


# ---- sums


def _sum(lines: list[Line], v: Any) -> Any:
    """Return the sum of each window, in the dtype of v: cell by cell, row by row, or axis by axis if windows are large."""
    for group in _groups(lines, [line.widest for line in lines]):
        long = group[0].widest > UNROLLED and group[0].windows <= FEW
        v = _sum_of_few(group[0], v) if long else _sum_together(group, v)
    return v


def _sum_together(lines: list[Line], v: Any) -> Any:
    rank, nothing = v.ndim, jnp.zeros((), v.dtype)

    def body(place: tuple[Any, ...], total: Any) -> Any:
        cell, inside = v, jnp.ones((1,) * rank, bool)
        for line, o in zip(lines, place, strict=True):
            cell = _take(cell, line.d, line.start + o * line.step)
            inside = inside & _along(o < line.count, line.d, rank)
        return total + jnp.where(inside, cell, nothing)

    shape = list(v.shape)
    for line in lines:
        shape[line.d] = line.windows
    return _loop([line.widest for line in lines], body, jnp.zeros(shape, v.dtype))


def _sum_of_few(line: Line, v: Any) -> Any:
    at, parts = jnp.arange(line.cells, dtype=np.int32), []
    for w in range(line.windows):
        own = (at >= line.start[w]) & (at < line.stop[w]) & ((at - line.start[w]) % line.step == 0)
        kept = jnp.where(_along(own, line.d, v.ndim), v, jnp.zeros((), v.dtype))
        parts.append(jnp.sum(kept, axis=line.d, keepdims=True, dtype=v.dtype))
    return jnp.concatenate(parts, line.d)


def _spread(lines: list[Line], g: Any) -> Any:
    """Return for each cell the sum over its windows, in the dtype of g."""
    for group in _groups(lines, [line.overlap for line in lines]):
        at, nothing = _at_windows(group, g.ndim), jnp.zeros((), g.dtype)

        def body(place: tuple[Any, ...], total: Any, at: Any = at, g: Any = g, nothing: Any = nothing) -> Any:
            (value,), _, inside = at(place, (g,))
            return total + jnp.where(inside, value, nothing)

        shape = list(g.shape)
        for line in group:
            shape[line.d] = line.cells
        g = _loop([line.overlap for line in group], body, jnp.zeros(shape, g.dtype))
    return g


def _divisor(rule: PoolSpec, lines: list[Line], rank: int, dtype: Any) -> Any:
    """Return what sums are divided by, or None."""
    if rule.divisor is not None:
        return jnp.asarray(rule.divisor, dtype)
    if not rule.mean:
        return None
    values = [line.span if rule.count_include_pad else line.count for line in lines]
    return _product(lines, values, rank, dtype)


def _fold(rule: PoolSpec, back: bool, lines: list[Line], v: Any) -> Any:
    wide = v.astype(_wide(v.dtype))
    by = _divisor(rule, lines, v.ndim, wide.dtype)
    if not back:
        total = _sum(lines, wide)
        return (total if by is None else total / by).astype(v.dtype)
    plain = rule.mean and rule.divisor is None and not rule.count_include_pad and wide.dtype == v.dtype
    shares = wide if by is None else wide * (1 / by) if plain else wide / by  # as the core: floats by the reciprocal
    return _spread(lines, shares).astype(v.dtype)


def _fold_some(rule: PoolSpec, back: bool, lines: list[Line], v: Any, x: Any) -> Any:
    """Sum or average the cells of v at which x is not NaN."""
    there, wide = ~jnp.isnan(x), v.astype(_wide(v.dtype))
    by = _divisor(rule, lines, v.ndim, wide.dtype)
    if rule.mean and rule.divisor is None:
        gone = _sum(lines, (~there).astype(np.int32)).astype(wide.dtype)
        by = by - gone
    if not back:
        total = _sum(lines, jnp.where(there, wide, jnp.zeros((), wide.dtype)))
        return (total if by is None else total / by).astype(v.dtype)
    spread = _spread(lines, wide if by is None else wide / by)
    return jnp.where(there, spread, jnp.zeros((), spread.dtype)).astype(v.dtype)


def _share(rule: PoolSpec, back: bool, lines: list[Line], v: Any, x: Any, windows: Any) -> Any:
    """Apply the operator of a maximum in which all equal cells take part."""
    rank, wide = x.ndim, v.astype(_wide(v.dtype))
    nothing = jnp.zeros((), wide.dtype)
    best = _ranks(choose(rule, x, windows)[0], rule.least, rule.nan)
    cells = _ranks(x, rule.least, rule.nan)

    def each(add: Callable[[Any, Any, Any], Any], state: Any) -> Any:
        def body(place: tuple[Any, ...], state: Any) -> Any:
            cell, value, inside = cells, wide, jnp.ones((1,) * rank, bool)
            for line, o in zip(lines, place, strict=True):
                index = line.start + o * line.step
                cell = _take(cell, line.d, index)
                value = value if back else _take(value, line.d, index)
                inside = inside & _along(o < line.count, line.d, rank)
            return add(state, inside & (cell == best), value)

        return _loop([line.widest for line in lines], body, state)

    if rule.ties == "split":
        ties = each(lambda n, hit, _: n + hit, jnp.zeros(best.shape, np.int32))
        ties = jnp.maximum(ties, 1).astype(wide.dtype)
    if not back:
        total = each(lambda t, hit, value: t + jnp.where(hit, value, nothing), jnp.zeros(best.shape, wide.dtype))
        return (total / ties if rule.ties == "split" else total).astype(v.dtype)
    shares, at = wide / ties if rule.ties == "split" else wide, _at_windows(lines, rank)

    def collect(place: tuple[Any, ...], total: Any) -> Any:
        (value, top), _, inside = at(place, (shares, best))
        return total + jnp.where(inside & (cells == top), value, nothing)

    return _loop([line.overlap for line in lines], collect, jnp.zeros(x.shape, wide.dtype)).astype(v.dtype)


# ---- positions


def _absolute(rule: PoolSpec, index: Any) -> tuple[Any, Any]:
    """Return positions in the flattened array, one per value, and which lie inside of their part."""
    part = prod(rule.shape) // max(rule.items, 1)
    flat = index.reshape(rule.items, -1)
    inside = (flat >= 0) & (flat < part)
    first = jnp.arange(rule.items, dtype=np.int32)[:, None] * part
    return jnp.where(inside, flat.astype(np.int32) + first, prod(rule.shape)).reshape(-1), inside.reshape(-1)


def _index(rule: PoolSpec, back: bool, v: Any, index: Any) -> Any:
    """Read v at positions, or put it there. Sorting them finds, cell by cell, the values that go there."""
    size, nothing = prod(rule.shape), jnp.zeros((), v.dtype)
    if size == 0 or prod(rule.after) == 0:
        return jnp.zeros(rule.shape if back else rule.after, v.dtype)
    where, inside = _absolute(rule, index)
    order = jnp.argsort(where, stable=True)
    ordered = where[order]
    if not back:
        found = jnp.where(inside, jnp.take(v.reshape(-1), where, mode="clip"), nothing)
        if rule.reduce == "assign":
            last = jnp.concatenate([ordered[1:] != ordered[:-1], jnp.ones(1, bool)])
            found = jnp.where(last[jnp.argsort(order)], found, nothing)
        return found.reshape(rule.after)
    cells = jnp.arange(size, dtype=np.int32)
    first, end = (jnp.searchsorted(ordered, cells, side=side).astype(np.int32) for side in ("left", "right"))
    wide = v.reshape(-1).astype(_wide(v.dtype))[order]
    if rule.reduce == "assign":
        found = jnp.where(end > first, jnp.take(wide, end - 1, mode="clip"), jnp.zeros((), wide.dtype))
        return found.astype(v.dtype).reshape(rule.shape)
    zero = jnp.zeros((), wide.dtype)

    def body(k: Any, total: Any) -> Any:
        return total + jnp.where(first + k < end, jnp.take(wide, first + k, mode="clip"), zero)

    total = lax.fori_loop(0, jnp.max(end - first), body, jnp.zeros(size, wide.dtype))
    return total.astype(v.dtype).reshape(rule.shape)


def apply(rule: PoolSpec, back: bool, v: Any, windows: Any, *state: Any) -> Any:
    """Apply the operator of a spec, or its transpose, to v."""
    if rule.kind == "index":
        return _index(rule, back, v, state[0])
    lines = lines_of(rule.frame, windows)
    if _no_cells(lines):
        return jnp.zeros(rule.source(v.shape) if back else rule.dest(v.shape), v.dtype)
    if rule.kind == "fold":
        return _fold(rule, back, lines, v)
    if rule.kind == "like":
        folds = rule.mean or rule.ties == "none"
        return _fold_some(rule, back, lines, v, state[0]) if folds else _share(rule, back, lines, v, state[0], windows)
    (taps,) = state
    if rule.kind == "pick":
        return _place(lines, v, taps) if back else _pick(lines, v, taps)
    if back:
        return _place(lines, v, taps, assign=True)
    return jnp.where(_last_of_equals(lines, taps), _pick(lines, v, taps), jnp.zeros((), v.dtype))


# ---- functions without derivative, by the names that `spec` gives them


def _rounded(y: Any, rounding: str) -> Any:
    return {"nearest": jnp.rint, "floor": jnp.floor, "ceil": jnp.ceil, "toward_zero": jnp.trunc}[rounding](y)


def _quotient(total: Any, by: Any, rounding: str) -> Any:
    """Divide integers by positive integers, and round."""
    below = jnp.floor_divide(total, by)
    rest = total - below * by
    up = {
        "nearest": (2 * rest > by) | ((2 * rest == by) & (below % 2 != 0)),
        "floor": False,
        "ceil": rest > 0,
        "toward_zero": (rest > 0) & (below < 0),
    }[rounding]
    return below + up


def whole(dtype: Any, rule: PoolSpec, kind: Any, rounding: str, x: Any, windows: Any) -> Any:
    """Return sums or means of integers. Sums that the dtype does not hold wrap around: a device cannot refuse them."""
    lines = lines_of(rule.frame, windows)
    held = jax.dtypes.canonicalize_dtype(np.uint64 if x.dtype == np.uint64 else np.int64)
    total = _sum(lines, x.astype(held))
    integral = jnp.issubdtype(dtype, jnp.integer)
    if not rule.mean and rule.divisor is None:
        return total.astype(dtype)
    if integral and (rule.divisor is None or (float(rule.divisor).is_integer() and rule.divisor > 0)):
        by = _divisor(rule, lines, x.ndim, held)
        return _quotient(total, by, rounding).astype(dtype)
    wide = jax.dtypes.canonicalize_dtype(np.float64)
    mean = total.astype(wide) / _divisor(rule, lines, x.ndim, wide)
    return (_rounded(mean, rounding) if integral else mean).astype(dtype)


def settled(dtype: Any, rule: PoolSpec, kind: Any, rounding: str, y: Any) -> Any:
    """Round sums or means of floats to an integer dtype."""
    return _rounded(y, rounding).astype(dtype)


def positions(dtype: Any, rule: PoolSpec, method: str, taps: Any, windows: Any) -> Any:
    """Convert taps to positions in the flattened array, or within the pooled axes."""
    lines = lines_of(rule.frame, windows)
    chosen, _ = _coordinates(lines, taps)
    where = dict(zip((line.d for line in lines), chosen, strict=True))
    source = rule.frame.source(taps.shape)
    total = jnp.zeros((1,) * taps.ndim, dtype)
    for d, n in enumerate(source):
        if d in where or method == "flat":
            own = where[d] if d in where else _along(jnp.arange(n, dtype=dtype), d, taps.ndim)
            total = total * n + own.astype(dtype)
    return jnp.broadcast_to(total, taps.shape)


def pairs(dtype: Any, first: int, last: int, windows: Any) -> Any:
    """Return some of the windows as pairs (start, stop)."""
    return windows[:2, first:last].T.astype(dtype)


def _multiplied(a: Any, b: int) -> tuple[Any, Any]:
    """Return the upper and the lower half of the product of 32-bit words, without words of 64 bits."""
    low, high = a & 0xFFFF, a >> 16
    c, d = np.uint32(b & 0xFFFF), np.uint32(b >> 16)
    outer = high * c + (low * c >> 16)
    inner = (outer & 0xFFFF) + low * d
    return high * d + (outer >> 16) + (inner >> 16), a * np.uint32(b)


def _words(key: tuple[Any, Any], stream: tuple[Any, Any], blocks: Any) -> Any:
    """Return four random words for each block: Philox-4x32-10."""
    zero = jnp.zeros_like(blocks)
    c = [blocks, zero, zero + stream[0], zero + stream[1]]
    k0, k1 = key
    for _ in range(10):
        (p, low_p), (q, low_q) = _multiplied(c[0], 0xD2511F53), _multiplied(c[2], 0xCD9E8D57)
        c = [q ^ c[1] ^ k0, low_q, p ^ c[3] ^ k1, low_p]
        k0, k1 = k0 + np.uint32(0x9E3779B9), k1 + np.uint32(0xBB67AE85)
    return jnp.stack(c, axis=1)


def _halves(seed: Any) -> tuple[Any, Any]:
    """Return the lower and the upper 32 bits of a seed; a negative one is extended."""
    low = seed.astype(np.uint32)
    if seed.dtype.itemsize == 8:
        return low, (seed >> 32).astype(np.uint32)
    negative = jnp.issubdtype(seed.dtype, jnp.signedinteger)
    return low, jnp.where(seed < 0, np.uint32(0xFFFFFFFF), np.uint32(0)) if negative else jnp.zeros_like(low)


def _shuffled(n: int, m: int, words: Any) -> Any:
    """Return the lengths of m windows over n cells, in random order."""
    k, longer = divmod(n, m)
    lengths = jnp.where(jnp.arange(m) < longer, k + 1, k).astype(np.int32)

    def swap(i: Any, lengths: Any) -> Any:
        j = i + (words[i] % (m - i).astype(np.uint32)).astype(np.int32)
        a, b, at = lengths[i], lengths[j], jnp.arange(m)
        return jnp.where(at == i, b, jnp.where(at == j, a, lengths))

    return lax.fori_loop(jnp.int32(0), jnp.int32(m - 1), swap, lengths)


def draw(
    dtype: Any, lengths: tuple[int, ...], sizes: tuple[int, ...], pseudo: bool, overlapping: bool, seed: Any
) -> Any:
    """Draw fractional windows of the random kind from a pair of seeds: those that NumPy's pools draw."""
    words = seed.reshape(-1)
    second = words[-1] if words.size > 1 else jnp.zeros((), words.dtype)
    key, stream = _halves(words[0]), _halves(second)
    block, rows = 0, []
    for n, m in zip(lengths, sizes, strict=True):
        needed = -(-m // 4)
        drawn = _words(key, stream, jnp.arange(block, block + needed, dtype=np.uint32)).reshape(-1)
        block += needed
        ends = jnp.cumsum(_shuffled(n, m, drawn))
        start = jnp.concatenate([jnp.zeros(1, ends.dtype), ends[:-1]])
        stop = jnp.minimum(ends + 1, n) if overlapping else ends
        rows.append(jnp.stack([start, stop, stop - start]).astype(dtype))
    return jnp.concatenate(rows, axis=1)


def stand_in(function: Any, args: Sequence[Any]) -> Any:
    """Return the function that stands in for one of `spec` on devices, or None: pseudo-random windows need float64, drawn on the host."""
    if function is spec.draw and args[2]:
        return None
    return {
        spec.whole: whole,
        spec.settled: settled,
        spec.positions: positions,
        spec.pairs: pairs,
        spec.draw: draw,
    }[function]
