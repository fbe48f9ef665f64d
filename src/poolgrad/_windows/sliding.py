"""Make axes: windows of one length that slide, windows between boundaries, one window over everything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from . import tables
from .axis import Axis, IntArray, afford_windows, integers, table
from .plan_cache import cache_plan
from .regular import FAR, LONG, Regular
from .regular import EmptyWindow as EmptyWindow


def _integers(*given: Any) -> Iterator[int]:
    """Return the numbers of sliding windows as integers: to the cache, 3.0 is 3, and a formula takes any number."""
    try:
        return map(int, [*map(index, given)])
    except TypeError:
        raise TypeError(tables.wanted(given)) from None


def sliding_axis(n: int, k: int, s: int, pad: int, m: int) -> Axis:
    """Make the axis of sliding windows that are cut off at the edges.

    Parameters
    ----------
    n : int
        The number of cells along the dimension.
    k : int
        The length of a window.
    s : int
        The stride: the step from one window to the next.
    pad : int
        The number of cells by which the first window begins before the dimension.
    m : int
        The number of windows.

    Returns
    -------
    Axis

    Raises
    ------
    ValueError
        If a window is not inside the dimension after the cut.

    See Also
    --------
    plan : Choose padding and number of windows by a rule, for several dimensions.
    reach : The same for windows longer than the dimension, as TensorFlow has them.
    edges, whole, adaptive : Other windows.

    Examples
    --------
    >>> sliding_axis(5, k=3, s=2, pad=1, m=3).pairs()
    [(0, 2), (1, 4), (3, 5)]
    """
    return checked_sliding_axis(*_integers(n, k, s, pad, m))


@cache_plan(1024)
def checked_sliding_axis(n: int, k: int, s: int, pad: int, m: int) -> Axis:
    """Make the axis of `sliding_axis` from numbers that are known to be integers."""
    if m >= LONG and min(k, s) >= 1 and max(n, k) <= FAR:  # the formula's sums then stay within 64 bits
        windows = Regular(n, k, s, 1, pad, None, m)
        with suppress(EmptyWindow):  # which the tables know to say better
            windows.check()
            return Axis.by(windows)
    afford_windows(m)
    made, _ = tables.slide(n, k, s, 1, pad, FAR, m)
    return Axis.of(n, made)


def reach(n: int, k: int, s: int, pad: int, m: int) -> Axis:
    """Make the axis of sliding windows as TensorFlow's average pools have them if a window is longer than the dimension.

    As `sliding_axis`, but if k > n, a window that begins before the dimension reaches its end.

    Parameters
    ----------
    n : int
        The number of cells along the dimension.
    k : int
        The length of a window.
    s : int
        The stride: the step from one window to the next.
    pad : int
        The number of cells by which the first window begins before the dimension.
    m : int
        The number of windows.

    Returns
    -------
    Axis

    Raises
    ------
    ValueError
        If a window is not inside the dimension after the cut.

    See Also
    --------
    sliding_axis : Windows that are cut off at both edges.

    Examples
    --------
    >>> sliding_axis(4, k=5, s=1, pad=2, m=4).pairs(), reach(4, k=5, s=1, pad=2, m=4).pairs()
    ([(0, 3), (0, 4), (0, 4), (1, 4)], [(0, 4), (0, 4), (0, 4), (1, 4)])
    """
    return checked_reach(*_integers(n, k, s, pad, m))


@cache_plan(1024)
def checked_reach(n: int, k: int, s: int, pad: int, m: int) -> Axis:
    """Make the axis of `reach` from numbers that are known to be integers."""
    axis = checked_sliding_axis(n, k, s, pad, m)
    if k <= n:
        return axis
    return Axis(n, axis.start, table(m, lambda a, b: np.where(np.arange(a, b) * s < pad, n, axis.stop[a:b])))


def edges(n: int, sequence: npt.ArrayLike, overlapping: bool = False) -> Axis:
    """Make the axis of windows between the entries of a sequence.

    Parameters
    ----------
    n : int
        The number of cells along the dimension.
    sequence : array_like of int
        The boundaries in ascending order: window i goes from entry i to entry i + 1. TensorFlow calls it a pooling sequence.
    overlapping : bool, optional
        Add the cell at the boundary to the window before it, too. Default: False.

    Returns
    -------
    Axis

    Raises
    ------
    TypeError
        If the boundaries are not integers.
    ValueError
        If a window is not inside the dimension, or windows do not ascend.

    See Also
    --------
    fractional_windows : Draw such a sequence at random.
    sliding_axis, whole, adaptive : Other windows.

    Examples
    --------
    >>> edges(5, [0, 2, 4], overlapping=True).pairs()
    [(0, 3), (2, 5)]
    """
    return Axis.of(n, tables.between(n, integers(sequence), bool(overlapping)))


def proper(n: int, borders: IntArray) -> bool:
    """Return True if borders rise from 0 or more to the end of n cells, or to the cell before it: TensorFlow takes no others.

    >>> proper(5, np.array([0, 2, 4])), proper(5, np.array([0, 2, 3])), proper(5, np.array([0, 2, 2, 5]))
    (True, False, False)
    """
    return tables.proper(n, borders)


def whole(n: int) -> Axis:
    """Make the axis of one window over a whole dimension.

    Parameters
    ----------
    n : int
        The number of cells along the dimension.

    Returns
    -------
    Axis

    See Also
    --------
    global_max_pool, global_avg_pool : Pool over whole dimensions.

    Examples
    --------
    >>> whole(4).pairs()
    [(0, 4)]
    """
    return Axis.of(n, tables.share(n, 1))


def itself(n: int) -> Axis:
    """Return an axis whose window i is cell i: it is not pooled."""
    afford_windows(n)
    return Axis.of(n, tables.share(n, n))


def adaptive_axis(n: int, m: int) -> Axis:
    """Return the axis of m windows that divide n cells as evenly as whole cells allow."""
    afford_windows(m)
    return Axis.of(n, tables.share(n, m))


def valid_length(n: int, k: int, s: int) -> int:
    """Return the number of windows of k every s that fit into n, by division toward zero: 0 down to s short, else negative.

    >>> valid_length(5, 2, 2), valid_length(2, 3, 2), valid_length(2, 5, 2), valid_length(1, 6, 2)
    (2, 0, 0, -1)
    """
    over = n - k + s
    return over // s if over >= 0 else -(-over // s)


def same_length(n: int, s: int) -> int:
    """Return the number of windows every s that cover n."""
    return -(-n // s)


def same_pad(n: int, k: int, s: int) -> int:
    """Return the cells before the axis under SAME; negative if the windows leave cells over."""
    total = (same_length(n, s) - 1) * s + k - n
    return total // 2 if total >= 0 else -(-total // 2)


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
    """Make the axis of windows of k cells, d apart, every s, over n cells with padding; spans count the padding that a window reads.

    >>> slide(5, 3, 2, 1, (1, 1), False).pairs(), slide(6, 2, 2, 2, (0, 0), False).pairs()
    ([(0, 2), (1, 4), (3, 5)], [(0, 3), (2, 5)])
    """
    step, m = 1 if k == 1 else d, how_many(n, k, s, d, pads, ceil_mode)
    if step == 1 and m >= LONG:
        windows = Regular(n, k, s, 1, *pads, m)
        windows.check()
        return Axis.by(windows)
    afford_windows(m)
    made, empty = tables.slide(n, k, s, step, *pads, m)
    if empty >= 0:
        raise EmptyWindow(empty)
    return Axis.of(n, made, step)


def regular(n: int, k: int, s: int, d: int, pads: tuple[int, int], ceil_mode: bool) -> Regular:
    """Return the windows of `slide` as a formula.

    >>> len(regular(10**12, 3, 2, 1, (0, 0), True))
    500000000000
    """
    m = how_many(n, k, s, d, pads, ceil_mode)
    return Regular(n, k, s, 1 if k == 1 else d, *pads, m)


def same_pads(n: int, k: int, s: int, d: int, lower: bool) -> tuple[int, int]:
    """Return the cells before and after the axis under SAME; `lower` puts the odd one before."""
    total = max((same_length(n, s) - 1) * s + d * (k - 1) + 1 - n, 0)
    small, large = total // 2, total - total // 2
    return (large, small) if lower else (small, large)
