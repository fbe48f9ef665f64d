"""Turn a caller's arguments into windows: the pooled axes, and the cells that each window reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from .._common.arrays import afford
from .._common.errors import ArgumentErrors, short_repr
from .._windows.fractional import Philox, sequence
from .._windows.plan_cache import cache_plan
from ..windows import Axis, Plan, TooManyAxes, edges, same_length, table, whole
from ..windows import Ints as Table

Ints: TypeAlias = int | Sequence[int]
Window: TypeAlias = int | Axis
Windows: TypeAlias = Window | Sequence[Window | Sequence[tuple[int, int]]]
Padding: TypeAlias = str | int | Sequence[int | tuple[int, int]]

_STRINGS = ("valid", "same", "same_lower")
_MOST = 4096  # integers in a list; what is longer is something else by mistake
_TABLES = 64  # bytes that a window along an axis takes, its tables and the core's together
_DRAWN = 256  # the same where windows are drawn at random, one by one


class PooledAxes(NamedTuple):
    """The checked windows of a call: the pooled axes and their plan."""

    axes: tuple[int, ...]
    plan: Plan


def pooled_axes(
    problems: ArgumentErrors, ndim: int, axes: Ints | None, layout: str | None, count: int | None, name: str = "window"
) -> tuple[int, ...]:
    """Return the pooled axes in ascending order: those that are named, or all if there is a window for each; `name` gave the count.

    >>> pooled_axes(ArgumentErrors("max_pool"), 4, None, "NHWC", 2)
    (1, 2)
    """
    if axes is not None and layout is not None:
        problems.fail("layout", short_repr(layout), "axes or layout, not both")
    if layout is not None:
        found = _from_layout(problems, ndim, layout)
    elif axes is not None:
        found = _from_numbers(problems, ndim, axes)
    elif count is None or count == ndim:
        found = tuple(range(ndim))
    else:
        problems.fail(name, f"{count} values", f"{ndim}, one per axis, or axes=... or layout=... that says which axes")
    if not found:
        problems.fail("x", "an array without axes to pool", "at least one pooled axis")
    return found


def _from_layout(problems: ArgumentErrors, ndim: int, layout: str) -> tuple[int, ...]:
    fine = isinstance(layout, str) and len(layout) == ndim and len(set(layout)) == ndim and layout.isalpha()
    if not fine:
        problems.fail(
            "layout",
            short_repr(layout),
            f"{ndim} different letters, N and C for axes that are not pooled, such as 'NHWC'",
        )
    return tuple(d for d, letter in enumerate(layout.upper()) if letter not in "NC")


def _from_numbers(problems: ArgumentErrors, ndim: int, axes: Ints) -> tuple[int, ...]:
    given = _integers(problems, "axes", axes, None)
    if not all(-ndim <= d < ndim for d in given) or len({d % ndim for d in given}) != len(given):
        problems.fail("axes", short_repr(axes), f"different axes of an array with {ndim}")
    found = tuple(d % ndim for d in given)
    if list(found) != sorted(found):
        problems.fail("axes", short_repr(axes), "axes in ascending order")
    return found


def _integers(
    problems: ArgumentErrors, name: str, value: Any, count: int | None, least: int | None = None, said: Any = None
) -> tuple[int, ...]:
    """One integer for all, or one per axis; `said` is what the caller said, if that is not the value."""
    said = value if said is None else said
    wanted = f"an integer{'' if least is None else f' of at least {least}'}" + (
        f", or {count} of them" if count else ""
    )
    values = _listed(problems, name, value, _MOST, wanted) if is_several(value) else [value] * (count or 1)
    if any(isinstance(v, (bool, np.bool_)) or not isinstance(v, (int, np.integer)) for v in values):
        problems.fail(name, short_repr(said), wanted, TypeError)
    if (count is not None and len(values) != count) or any(least is not None and v < least for v in values):
        problems.fail(name, short_repr(said), wanted)
    if any(abs(int(v)) > 2**62 for v in values):
        problems.fail(name, short_repr(said), "integers within 62 bits")
    return tuple(int(v) for v in values)


def _listed(problems: ArgumentErrors, name: str, several: Any, most: int, wanted: str) -> list[Any]:
    """Return the values of a list; read at most one more than `most`, since the iterable may be infinite."""
    try:
        values = list(islice(several, most + 1))
    except Exception:  # whatever its own methods raise
        problems.fail(name, short_repr(several), wanted, TypeError)
    if len(values) > most:
        problems.fail(name, short_repr(several), wanted)
    return values


def flag(problems: ArgumentErrors, name: str, value: Any) -> None:
    """Refuse anything but True, False, np.bool_, 1 and 0."""
    if value is True or value is False:
        return
    if not isinstance(value, np.bool_) and not (isinstance(value, int) and value in (0, 1)):
        problems.fail(name, short_repr(value), "True or False", TypeError)


def _pads(problems: ArgumentErrors, padding: Any, count: int) -> str | list[tuple[int, int]]:
    if isinstance(padding, str):
        if padding.lower() not in _STRINGS:
            problems.fail("padding", repr(padding), "'valid', 'same', 'same_lower', an integer, or a pair per axis")
        return padding.lower()
    wanted = f"an integer, or {count} of them, or {count} pairs (before, after)"
    given = _listed(problems, "padding", padding, count, wanted) if is_several(padding) else [padding] * count
    if len(given) != count:
        problems.fail("padding", short_repr(padding), wanted)
    pairs = [_listed(problems, "padding", p, 2, "pairs (before, after)") if is_several(p) else (p, p) for p in given]
    if any(len(pair) != 2 for pair in pairs):
        problems.fail("padding", short_repr(padding), "pairs (before, after)")
    flat = _integers(problems, "padding", [p for pair in pairs for p in pair], 2 * count, 0, padding)
    return list(zip(flat[::2], flat[1::2], strict=True))


def how_many(n: int, k: int, s: int, d: int, pads: tuple[int, int], ceil_mode: bool) -> int:
    """Return the number of windows; in ceil_mode the last may extend past the end, but none begins there.

    >>> how_many(6, 3, 2, 1, (0, 0), False), how_many(6, 3, 2, 1, (0, 0), True)
    (2, 3)
    """
    over = n + sum(pads) - d * (k - 1) - 1
    m = max((-(-over // s) if ceil_mode else over // s) + 1, 0)
    return min(m, -(-(n + pads[0]) // s)) if ceil_mode else m


@cache_plan(1024)
def slide(n: int, k: int, s: int, d: int, pads: tuple[int, int], ceil_mode: bool) -> Axis:
    """Windows of k cells, d apart, every s, over n cells with padding; spans count the padding that a window reads.

    >>> slide(5, 3, 2, 1, (1, 1), False).pairs(), slide(6, 2, 2, 2, (0, 0), False).pairs()
    ([(0, 2), (1, 4), (3, 5)], [(0, 3), (2, 5)])
    """
    before, after = pads
    d, m = 1 if k == 1 else d, how_many(n, k, s, d, pads, ceil_mode)
    long = d * (k - 1) + 1

    def first(a: int, b: int) -> Table:
        return np.arange(a, b) * s - before

    def inside(a: int, b: int) -> Table:
        return np.where(first(a, b) < 0, first(a, b) % d, first(a, b))

    start, stop = table(m, inside), table(m, lambda a, b: np.minimum(first(a, b) + long, n))
    empty = np.flatnonzero(start >= stop)
    if len(empty):
        raise Empty(int(empty[0]))
    span = table(m, lambda a, b: -(-np.minimum(long, n + after - first(a, b)) // d))
    return Axis(n, start, stop, span, d)


class Empty(ValueError):
    """A window, by its number, that has no cell of the array."""

    def __init__(self, window: int) -> None:
        super().__init__(f"window {window} has no cell")
        self.window = window


def _same(n: int, k: int, s: int, d: int, lower: bool) -> tuple[int, int]:
    total = max((same_length(n, s) - 1) * s + d * (k - 1) + 1 - n, 0)
    small, large = total // 2, total - total // 2
    return (large, small) if lower else (small, large)


def adaptive(n: int, m: int) -> Axis:
    """m windows that share n cells as evenly as whole cells allow; neighbours may overlap by one.

    >>> adaptive(7, 3).pairs()
    [(0, 3), (2, 5), (4, 7)]
    """
    problems = ArgumentErrors("adaptive")
    (cells,), (many,) = (_integers(problems, name, value, None, 0) for name, value in (("n", n), ("m", m)))
    if many and not cells:
        problems.fail("n", 0, "at least one cell")
    return _shares(problems, "m", cells, many)


def _shares(problems: ArgumentErrors, name: str, n: int, m: int) -> Axis:
    """Return the windows of `adaptive`; errors name the caller's op."""
    if m * max(n, 1) >= 2**62:
        problems.fail(name, m, f"at most {2**62 // max(n, 1)} windows over {n} cells")
    _afford_windows(problems, name, m, f"over {n} cells")
    start = table(m, lambda a, b: np.arange(a, b) * n // m)
    return Axis(n, start, table(m, lambda a, b: -(-np.arange(a + 1, b + 1) * n // m)))


def fractional_windows(
    n: int | Sequence[int],
    ratio: float | Sequence[float] | None = None,
    *,
    size: Ints | None = None,
    seed: int | tuple[int, int] | None = None,
    pseudo_random: bool = False,
    overlapping: bool = False,
) -> Any:
    """Random windows for fractional pooling: an `Axis` for one length, a tuple of them for several, drawn in that order.

    The same seeds give the windows of TensorFlow's FractionalMaxPool(seed=seed[0], seed2=seed[1]).

    >>> rows, cols = fractional_windows((10, 7), (1.5, 1.6), seed=(1, 2))
    >>> rows.pairs()
    [(0, 1), (1, 3), (3, 4), (4, 6), (6, 8), (8, 10)]
    """
    made = draw(ArgumentErrors("fractional_windows"), n, ratio, size, seed, pseudo_random, overlapping)
    return made if is_several(n) else made[0]


def draw(
    problems: ArgumentErrors, n: Any, ratio: Any, size: Any, seed: Any, pseudo_random: bool, overlapping: bool
) -> tuple[Axis, ...]:
    """Draw the windows of `fractional_windows`; errors name the caller's op."""
    flag(problems, "pseudo_random", pseudo_random)
    flag(problems, "overlapping", overlapping)
    lengths = _integers(problems, "n", n, None, 1)
    sizes = _fraction_sizes(problems, lengths, ratio, size)
    for length, m in zip(lengths, sizes, strict=True):
        if not 1 <= m <= length:
            name = "size" if ratio is None else "ratio"
            problems.fail(name, f"{m} windows over {length} cells", f"1 to {length} windows")
        _afford_windows(problems, "ratio" if size is None else "size", m, f"over {length} cells", _DRAWN)
    pair = _seeds(problems, seed)
    source = Philox(*pair)
    return tuple(
        edges(length, sequence(length, m, pseudo_random, source), overlapping)
        for length, m in zip(lengths, sizes, strict=True)
    )


def _fraction_sizes(problems: ArgumentErrors, lengths: tuple[int, ...], ratio: Any, size: Any) -> tuple[int, ...]:
    if (ratio is None) == (size is None):
        problems.fail("ratio", short_repr(ratio), "either ratio or size")
    if ratio is None:
        return _integers(problems, "size", size, len(lengths), 1)
    wanted = f"a number from 1 to 2**64, or {len(lengths)} of them"
    ratios = [ratio] * len(lengths)
    if is_several(ratio):
        ratios = _listed(problems, "ratio", ratio, len(lengths), wanted)
    real = all(isinstance(r, (int, float, np.integer, np.floating)) and not isinstance(r, bool) for r in ratios)
    if not real or len(ratios) != len(lengths) or not all(1 <= r <= 2.0**64 for r in ratios):
        problems.fail("ratio", short_repr(ratio), wanted)
    return tuple(int(length / float(r)) for length, r in zip(lengths, ratios, strict=True))


def _afford_windows(problems: ArgumentErrors, name: str, count: int, where: str, each: int = _TABLES) -> None:
    """Refuse more windows than there is memory for, before any is made."""
    afford(problems, name, each * count, f"{count} windows {where}")


def _seeds(problems: ArgumentErrors, seed: Any) -> tuple[int, int]:
    if seed is None:
        fresh = np.random.SeedSequence().generate_state(2, np.uint32)
        return int(fresh[0]), int(fresh[1])
    if is_several(seed) and len(seed) != 2:
        problems.fail("seed", short_repr(seed), "an integer, or a pair (seed, seed2)")
    first, second = _integers(problems, "seed", seed if is_several(seed) else (seed, 0), 2)
    return first, second


def boundaries(problems: ArgumentErrors, n: int, given: Any) -> Axis:
    """Windows that the caller supplies: an `Axis`, or pairs (start, stop)."""
    axis = given if isinstance(given, Axis) else _from_pairs(problems, n, given)
    if (axis.count == 0).any():
        problems.fail("window", f"window {int(np.argmin(axis.count))} without a cell", "windows with at least one cell")
    if axis.length != n:
        problems.fail("window", f"windows over {axis.length} cells", f"windows over {n} cells, as the axis has")
    return axis


def _from_pairs(problems: ArgumentErrors, n: int, given: Any) -> Axis:
    try:
        pairs = np.asarray(given)
    except ValueError:  # lists of different lengths
        pairs = np.zeros(0)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        problems.fail("window", short_repr(given), "an integer, an Axis, or pairs of integers (start, stop)", TypeError)
    start, stop = pairs[:, 0], pairs[:, 1]
    astray = (start < 0) | (stop > n) | (stop < start)
    if astray.any():
        at = int(np.argmax(astray))
        problems.fail("window", f"window {at}, {_pair_at(pairs, at)}", f"a window inside 0:{n}")
    falling = (start[1:] < start[:-1]) | (stop[1:] < stop[:-1])
    if falling.any():
        at = int(np.argmax(falling))
        got = f"window {at + 1}, {_pair_at(pairs, at + 1)}, after {_pair_at(pairs, at)}"
        problems.fail("window", got, "windows in ascending order")
    return Axis(n, start, stop)


def _pair_at(pairs: Any, at: int) -> tuple[int, int]:
    return int(pairs[at, 0]), int(pairs[at, 1])


class WindowArgs(NamedTuple):
    """The window arguments of a call."""

    window: Any
    stride: Any = None
    padding: Any = "valid"
    dilation: Any = 1
    axes: Any = None
    layout: str | None = None
    ceil_mode: bool | None = False


def resolve(problems: ArgumentErrors, shape: Sequence[int], words: WindowArgs) -> PooledAxes:
    """Turn window arguments into axes and a plan; refuse windows without a cell."""
    flag(problems, "ceil_mode", words.ceil_mode)
    window = words.window
    several = is_several(window)
    axes = pooled_axes(problems, len(shape), words.axes, words.layout, len(window) if several else None)
    count = len(axes)
    wanted = f"one window, or {count}, one per pooled axis"
    windows = _listed(problems, "window", window, count, wanted) if several else [window] * count
    if len(windows) != count:
        problems.fail("window", short_repr(window), wanted)
    given = [w if _is_boundary(w) else None for w in windows]
    lengths = _integers(
        problems,
        "window",
        [1 if _is_boundary(w) else w for w in windows],
        count,
        1,
        [window] if window is None else window,
    )
    strides = lengths if words.stride is None else _integers(problems, "stride", words.stride, count, 1)
    dilations = _integers(problems, "dilation", words.dilation, count, 1)
    pads = _pads(problems, words.padding, count)
    pooled: dict[int, Axis] = {}
    for i, d in enumerate(axes):
        if given[i] is not None:
            pooled[d] = boundaries(problems, shape[d], given[i])
            continue
        pair = _pair(shape[d], lengths[i], strides[i], dilations[i], pads if isinstance(pads, str) else pads[i])
        spelled = (shape[d], lengths[i], strides[i], dilations[i], pair, bool(words.ceil_mode))
        many = how_many(*spelled)
        _afford_windows(problems, "padding" if many > shape[d] else "window", many, f"along axis {d}")
        _check_reach(problems, words, many, *spelled)
        try:
            pooled[d] = slide(*spelled)
        except Empty as empty:
            _refuse(problems, empty.window, d)
    return PooledAxes(axes, _plan(problems, shape, pooled))


def _plan(problems: ArgumentErrors, shape: Sequence[int], pooled: dict[int, Axis]) -> Plan:
    try:
        return Plan(shape, pooled)
    except TooManyAxes as many:
        problems.fail("x", many.got, many.wanted)


def _check_reach(
    problems: ArgumentErrors,
    words: WindowArgs,
    many: int,
    n: int,
    k: int,
    s: int,
    d: int,
    pads: tuple[int, int],
    _: bool,
) -> None:
    """Refuse windows whose cells cannot be counted in 64 bits."""
    if many and max(d * (k - 1) + 1 + sum(pads), many * s) + n >= 2**63:
        name = "dilation" if d > 1 else "padding"
        problems.fail(name, short_repr(getattr(words, name)), "windows and padding that 63 bits can count")


def is_several(value: Any) -> bool:
    """Return True if a value is a list, a tuple, or an array with axes."""
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _is_boundary(window: Any) -> bool:
    return isinstance(window, Axis) or is_several(window)


def _pair(n: int, k: int, s: int, d: int, pads: str | tuple[int, int]) -> tuple[int, int]:
    if isinstance(pads, str):
        return (0, 0) if pads == "valid" else _same(n, k, s, d, pads == "same_lower")
    return pads


def _refuse(problems: ArgumentErrors, window: int, d: int) -> NoReturn:
    problems.fail(
        "padding", f"window {window} of axis {d} without a cell of the array", "less padding than the window is long"
    )


def adaptive_axes(
    problems: ArgumentErrors, shape: Sequence[int], size: Any, axes: Any, layout: str | None
) -> PooledAxes:
    """Return the windows of adaptive pooling: `size` per pooled axis; None leaves an axis unpooled."""
    several = is_several(size)
    found = pooled_axes(problems, len(shape), axes, layout, len(size) if several else None, "size")
    wanted = f"one size, or {len(found)}, one per pooled axis"
    sizes = _listed(problems, "size", size, len(found), wanted) if several else [size] * len(found)
    if len(sizes) != len(found):
        problems.fail("size", short_repr(size), wanted)
    pooled = {}
    for d, m in zip(found, sizes, strict=True):
        (m,) = (shape[d],) if m is None else _integers(problems, "size", m, None, 0)
        if shape[d] == 0 and m:
            problems.fail("x", f"shape {list(shape)}", f"at least one cell along axis {d}")
        pooled[d] = _shares(problems, "size", shape[d], m)
    return PooledAxes(found, _plan(problems, shape, pooled))


def global_axes(problems: ArgumentErrors, shape: Sequence[int], axes: Any, layout: str | None) -> PooledAxes:
    """One window over each pooled axis."""
    found = pooled_axes(problems, len(shape), axes, layout, None)
    empty = [d for d in found if shape[d] == 0]
    if empty:
        problems.fail("x", f"shape {list(shape)}", f"at least one cell along axis {empty[0]}")
    return PooledAxes(found, _plan(problems, shape, {d: whole(shape[d]) for d in found}))


def sizes(problems: ArgumentErrors, shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple; refuse negative sizes."""
    return _integers(problems, "shape", shape, None, 0)


def output_shape(shape: Sequence[int], window: Windows, stride: Ints | None = None, **words: Any) -> tuple[int, ...]:
    """Return the shape of the pooled array for an array of that shape.

    >>> output_shape((1, 5, 5, 3), 2, layout="NHWC", ceil_mode=True)
    (1, 3, 3, 3)
    """
    problems = ArgumentErrors("output_shape")
    return resolve(problems, sizes(problems, shape), WindowArgs(window, stride, **words)).plan.dest


def phases(plan: Plan) -> Iterable[tuple[tuple[Any, ...], tuple[Any, ...], Plan]]:
    """Dilated windows as plain ones: for each residue of the step, (source index, destination index, plan of that part)."""
    parts: list[tuple[list[Any], list[Any], dict[int, Axis]]] = [([], [], {})]
    for d, axis in enumerate(plan.by_dimension):
        split = [(slice(None), slice(None), None)] if axis is None else axis.phases()
        parts = [
            ([*source, s], [*dest, t], pooled if part is None else {**pooled, d: part})
            for source, dest, pooled in parts
            for s, t, part in split
        ]
    for source, dest, pooled in parts:
        shape = [len(range(*s.indices(n))) for s, n in zip(source, plan.source, strict=True)]
        yield tuple(source), tuple(dest), Plan(shape, pooled)
