"""Turn a caller's arguments into windows: the pooled axes, and the cells that each window reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from .._common.arrays import afford
from .._common.errors import ArgumentErrors, short_repr
from .._windows.axis import Axis, limits
from .._windows.plan import Plan, TooManyAxes
from .._windows.regular import Regular
from .._windows.sliding import EmptyWindow, how_many, regular, same_pads, slide
from .types import Int, Ints, Padding, Stride, Windows

_STRINGS = ("valid", "same", "same_lower")
_MOST = 4096  # integers in a list; what is longer is something else by mistake
_TABLES = 64  # bytes that a window along an axis takes, its tables and the core's together


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
    given = integer_list(problems, "axes", axes, None)
    if not all(-ndim <= d < ndim for d in given) or len({d % ndim for d in given}) != len(given):
        problems.fail("axes", short_repr(axes), f"different axes of an array with {ndim}")
    found = tuple(d % ndim for d in given)
    if list(found) != sorted(found):
        problems.fail("axes", short_repr(axes), "axes in ascending order")
    return found


def integer_list(
    problems: ArgumentErrors, name: str, value: Any, count: int | None, least: int | None = None, said: Any = None
) -> tuple[int, ...]:
    """One integer for all, or one per axis; `said` is what the caller said, if that is not the value."""
    said = value if said is None else said
    wanted = f"an integer{'' if least is None else f' of at least {least}'}" + (
        f", or {count} of them" if count else ""
    )
    values = list_at_most(problems, name, value, _MOST, wanted) if is_several(value) else [value] * (count or 1)
    if any(isinstance(v, (bool, np.bool_)) or not isinstance(v, (int, np.integer)) for v in values):
        problems.fail(name, short_repr(said), wanted, TypeError)
    if (count is not None and len(values) != count) or any(least is not None and v < least for v in values):
        problems.fail(name, short_repr(said), wanted)
    if any(abs(int(v)) > 2**62 for v in values):
        problems.fail(name, short_repr(said), "integers within 62 bits")
    return tuple(int(v) for v in values)


def list_at_most(problems: ArgumentErrors, name: str, several: Any, most: int, wanted: str) -> list[Any]:
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
    given = list_at_most(problems, "padding", padding, count, wanted) if is_several(padding) else [padding] * count
    if len(given) != count:
        problems.fail("padding", short_repr(padding), wanted)
    pairs = [
        list_at_most(problems, "padding", p, 2, "pairs (before, after)") if is_several(p) else (p, p) for p in given
    ]
    if any(len(pair) != 2 for pair in pairs):
        problems.fail("padding", short_repr(padding), "pairs (before, after)")
    flat = integer_list(problems, "padding", [p for pair in pairs for p in pair], 2 * count, 0, padding)
    return list(zip(flat[::2], flat[1::2], strict=True))


def afford_windows(problems: ArgumentErrors, name: str, count: int, where: str, each: int = _TABLES) -> None:
    """Refuse more windows than there is memory for, before any is made."""
    if each * count > 2**28:
        afford(problems, name, each * count, f"{count} windows {where}")


def boundaries(problems: ArgumentErrors, n: int, given: Any) -> Axis:
    """Windows that the caller supplies: an `Axis`, or pairs (start, stop)."""
    axis = given if isinstance(given, Axis) else _from_pairs(problems, n, given)
    if limits(axis, "count")[0] == 0:
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


class Sliding(NamedTuple):
    """The checked arguments of `slide` for one axis."""

    n: int
    k: int
    s: int
    d: int
    pads: tuple[int, int]
    ceil_mode: bool


class SpelledWindows(NamedTuple):
    """The window arguments of arrays with a number of axes: checked, and one per pooled axis."""

    axes: tuple[int, ...]
    given: list[Any]  # boundaries, or None for windows that slide
    lengths: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: list[Any]  # a word or a pair each
    words: WindowArgs

    def over(self, problems: ArgumentErrors, shape: Sequence[int]) -> PooledAxes:
        """Return the windows over an array of that shape; refuse windows without a cell."""
        pooled: dict[int, Axis] = {}
        for d, windows, many in self._described(problems, shape):
            if isinstance(windows, Axis):
                pooled[d] = windows
                continue
            afford_windows(problems, "padding" if many > shape[d] else "window", many, f"along axis {d}")
            _check_reach(problems, self.words, many, windows)
            try:
                pooled[d] = slide(*windows)
            except EmptyWindow as empty:
                _refuse(problems, empty.window, d)
        return PooledAxes(self.axes, checked_plan(problems, shape, pooled))

    def formulas(self, problems: ArgumentErrors, shape: Sequence[int]) -> dict[int, Axis | Regular]:
        """Return the windows over an array of that shape without tables; refuse windows without a cell."""
        pooled: dict[int, Axis | Regular] = {}
        for d, windows, many in self._described(problems, shape):
            if isinstance(windows, Axis):
                pooled[d] = windows
                continue
            _check_reach(problems, self.words, many, windows)
            pooled[d] = made = regular(*windows)
            try:
                made.check()
            except EmptyWindow as empty:
                _refuse(problems, empty.window, d)
        return pooled

    def _described(self, problems: ArgumentErrors, shape: Sequence[int]) -> Iterator[tuple[int, Axis | Sliding, int]]:
        """Yield each axis with its windows and their number: the caller's boundaries, or numbers of which no table is made yet."""
        ceil_mode = bool(self.words.ceil_mode)
        for d, given, k, s, step, pads in zip(*self[:6], strict=True):
            if given is not None:
                made = boundaries(problems, shape[d], given)
                yield d, made, len(made)
            else:
                windows = Sliding(shape[d], k, s, step, _pair(shape[d], k, s, step, pads), ceil_mode)
                yield d, windows, how_many(*windows)


def spell(problems: ArgumentErrors, ndim: int, words: WindowArgs) -> SpelledWindows:
    """Check window arguments for arrays with that many axes."""
    flag(problems, "ceil_mode", words.ceil_mode)
    window = words.window
    several = is_several(window)
    axes = pooled_axes(problems, ndim, words.axes, words.layout, len(window) if several else None)
    count = len(axes)
    wanted = f"one window, or {count}, one per pooled axis"
    windows = list_at_most(problems, "window", window, count, wanted) if several else [window] * count
    if len(windows) != count:
        problems.fail("window", short_repr(window), wanted)
    given = [w if _is_boundary(w) else None for w in windows]
    lengths = integer_list(
        problems,
        "window",
        [1 if _is_boundary(w) else w for w in windows],
        count,
        1,
        [window] if window is None else window,
    )
    strides = lengths if words.stride is None else integer_list(problems, "stride", words.stride, count, 1)
    dilations = integer_list(problems, "dilation", words.dilation, count, 1)
    pads = _pads(problems, words.padding, count)
    return SpelledWindows(
        axes, given, lengths, strides, dilations, [pads] * count if isinstance(pads, str) else list(pads), words
    )


def resolve(problems: ArgumentErrors, shape: Sequence[int], words: WindowArgs) -> PooledAxes:
    """Turn window arguments into axes and a plan; refuse windows without a cell."""
    return spell(problems, len(shape), words).over(problems, shape)


def checked_plan(problems: ArgumentErrors, shape: Sequence[int], pooled: dict[int, Axis]) -> Plan:
    """Return the plan of these axes; refuse more axes than the core walks through."""
    try:
        return Plan(shape, pooled)
    except TooManyAxes as many:
        problems.fail("x", many.got, many.wanted)


def _check_reach(problems: ArgumentErrors, words: WindowArgs, many: int, windows: Sliding) -> None:
    """Refuse windows whose cells cannot be counted in 64 bits."""
    n, k, s, d, pads, _ = windows
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
        return (0, 0) if pads == "valid" else same_pads(n, k, s, d, pads == "same_lower")
    return pads


def _refuse(problems: ArgumentErrors, window: int, d: int) -> NoReturn:
    problems.fail(
        "padding", f"window {window} of axis {d} without a cell of the array", "less padding than the window is long"
    )


def sizes(problems: ArgumentErrors, shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple; refuse negative sizes."""
    return integer_list(problems, "shape", shape, None, 0)


def plan(
    shape: Sequence[Int] | NDArray[np.integer[Any]],
    window: Windows,
    stride: Stride = None,
    *,
    padding: Padding = "valid",
    dilation: Ints = 1,
    axes: Ints | None = None,
    layout: str | None = None,
    ceil_mode: bool = False,
) -> Plan:
    """Make the windows of a pool for an array of a given shape.

    Operators are made from plans. A pool makes its plan itself.

    Parameters
    ----------
    shape : sequence of int
        The shape of the array to pool.
    window : int, Axis, or sequence of them
        The length of the windows: one for all pooled axes, or one for each. Boundaries may stand
        for a length: an `Axis`, or a list of pairs (start, stop); the other window arguments do not
        change them.
    stride : int or sequence of int, optional
        The step from one window to the next: one for all pooled axes, or one for each. Default: the
        window.
    padding : {"valid", "same", "same_lower"}, int, or sequence, optional
        The cells by which windows extend past the edges: one number, one per pooled axis, or a pair
        (before, after) per pooled axis. "valid" (default) is 0. "same" gives ceil(length / stride)
        windows; an odd cell goes after the array, with "same_lower" before it. Padding moves the
        windows and has no cells: no result depends on a padded value.
    dilation : int or sequence of int, optional
        The distance between neighbouring cells of a window. Default: 1.
    axes : int or sequence of int, optional
        The axes to pool, in ascending order. Default: all of them.
    layout : str, optional
        Names the axes instead of `axes`: a letter per axis, such as "NHWC". All but N and C are
        pooled.
    ceil_mode : bool, optional
        Round the number of windows up: the last one may extend past the end if it begins before it.
        Default: False.

    Returns
    -------
    Plan
        The windows; its `dest` is the shape of the pooled array.

    Raises
    ------
    TypeError
        If an argument has a wrong type.
    ValueError
        If the windows do not fit the array, or an option has an unknown value. The message names
        the argument, the value, and the values that are allowed.
    MemoryError
        If memory cannot hold the windows.

    See Also
    --------
    output_shape : The shape of the pooled array alone.
    averaging, summing, max_operator, min_operator, picking : Make operators from a plan.
    Plan : Make a plan from axes.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> windows = pg.plan((4, 4), 2)
    >>> windows.source, windows.dest
    ((4, 4), (2, 2))
    """
    problems, words = ArgumentErrors("plan"), WindowArgs(window, stride, padding, dilation, axes, layout, ceil_mode)
    return resolve(problems, sizes(problems, shape), words).plan


def output_shape(
    shape: Sequence[Int] | NDArray[np.integer[Any]],
    window: Windows,
    stride: Stride = None,
    *,
    padding: Padding = "valid",
    dilation: Ints = 1,
    axes: Ints | None = None,
    layout: str | None = None,
    ceil_mode: bool = False,
) -> tuple[int, ...]:
    """Return the shape of the pooled array for an array of a given shape.

    Parameters
    ----------
    shape : sequence of int
        The shape of the array to pool.
    window : int, Axis, or sequence of them
        The length of the windows: one for all pooled axes, or one for each. Boundaries may stand
        for a length: an `Axis`, or a list of pairs (start, stop); the other window arguments do not
        change them.
    stride : int or sequence of int, optional
        The step from one window to the next: one for all pooled axes, or one for each. Default: the
        window.
    padding : {"valid", "same", "same_lower"}, int, or sequence, optional
        The cells by which windows extend past the edges: one number, one per pooled axis, or a pair
        (before, after) per pooled axis. "valid" (default) is 0. "same" gives ceil(length / stride)
        windows; an odd cell goes after the array, with "same_lower" before it. Padding moves the
        windows and has no cells: no result depends on a padded value.
    dilation : int or sequence of int, optional
        The distance between neighbouring cells of a window. Default: 1.
    axes : int or sequence of int, optional
        The axes to pool, in ascending order. Default: all of them.
    layout : str, optional
        Names the axes instead of `axes`: a letter per axis, such as "NHWC". All but N and C are
        pooled.
    ceil_mode : bool, optional
        Round the number of windows up: the last one may extend past the end if it begins before it.
        Default: False.

    Returns
    -------
    tuple of int

    Raises
    ------
    TypeError
        If an argument has a wrong type.
    ValueError
        If the windows do not fit the array, or an option has an unknown value. The message names
        the argument, the value, and the values that are allowed.
    MemoryError
        If memory cannot hold the windows.

    See Also
    --------
    plan : The windows themselves.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> pg.output_shape((1, 5, 5, 3), 2, layout="NHWC", ceil_mode=True)
    (1, 3, 3, 3)
    """
    problems = ArgumentErrors("output_shape")
    words = WindowArgs(window, stride, padding, dilation, axes, layout, ceil_mode)
    return resolve(problems, sizes(problems, shape), words).plan.dest
