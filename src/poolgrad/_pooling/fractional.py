"""Fractional pooling: pools over windows that are drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array
from .._common.errors import ArgumentErrors, short_repr
from .._windows.axis import Axis
from .._windows.fractional import Philox, sequence
from .._windows.sliding import edges
from .pools import Division, Options, Rounding, accept, best_of, folded
from .selection import Nan, Ties
from .window_args import (
    Ints,
    WindowArgs,
    afford_windows,
    flag,
    integer_list,
    is_several,
    list_at_most,
    pooled_axes,
    resolve,
)

_DRAWN = 256  # bytes that a window takes while windows are drawn at random, one by one


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
    lengths = integer_list(problems, "n", n, None, 1)
    sizes = _fraction_sizes(problems, lengths, ratio, size)
    for length, m in zip(lengths, sizes, strict=True):
        if not 1 <= m <= length:
            name = "size" if ratio is None else "ratio"
            problems.fail(name, f"{m} windows over {length} cells", f"1 to {length} windows")
        afford_windows(problems, "ratio" if size is None else "size", m, f"over {length} cells", _DRAWN)
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
        return integer_list(problems, "size", size, len(lengths), 1)
    wanted = f"a number from 1 to 2**64, or {len(lengths)} of them"
    ratios = [ratio] * len(lengths)
    if is_several(ratio):
        ratios = list_at_most(problems, "ratio", ratio, len(lengths), wanted)
    real = all(isinstance(r, (int, float, np.integer, np.floating)) and not isinstance(r, bool) for r in ratios)
    if not real or len(ratios) != len(lengths) or not all(1 <= r <= 2.0**64 for r in ratios):
        problems.fail("ratio", short_repr(ratio), wanted)
    return tuple(int(length / float(r)) for length, r in zip(lengths, ratios, strict=True))


def _seeds(problems: ArgumentErrors, seed: Any) -> tuple[int, int]:
    if seed is None:
        fresh = np.random.SeedSequence().generate_state(2, np.uint32)
        return int(fresh[0]), int(fresh[1])
    if is_several(seed) and len(seed) != 2:
        problems.fail("seed", short_repr(seed), "an integer, or a pair (seed, seed2)")
    first, second = integer_list(problems, "seed", seed if is_several(seed) else (seed, 0), 2)
    return first, second


def drawn_windows(
    op: str,
    shape: tuple[int, ...],
    ratio: Any,
    size: Any,
    how: dict[str, Any],
    axes: Any,
    layout: Any,
    return_windows: bool = False,
) -> tuple[WindowArgs, Any]:
    """Draw fractional windows over the pooled axes of an array of that shape."""
    problems = ArgumentErrors(op)
    name, given = ("ratio", ratio) if is_several(ratio) else ("size", size)
    found = pooled_axes(problems, len(shape), axes, layout, len(given) if is_several(given) else None, name)
    flag(problems, "return_windows", return_windows)
    empty = [d for d in found if shape[d] == 0]
    if empty:
        problems.fail("x", f"shape {list(shape)}", f"at least one cell along axis {empty[0]}")
    made = draw(problems, tuple(shape[d] for d in found), ratio, size, **how)
    return WindowArgs(list(made), axes=found), made


def _with_windows(result: Any, windows: tuple[Axis, ...], wanted: bool) -> Any:
    if not wanted:
        return result
    return (*result, windows) if isinstance(result, tuple) else (result, windows)


def fractional_max_pool(
    x: Any,
    ratio: float | Sequence[float] | None = None,
    *,
    size: Ints | None = None,
    seed: int | tuple[int, int] | None = None,
    pseudo_random: bool = False,
    overlapping: bool = False,
    axes: Ints | None = None,
    layout: str | None = None,
    ties: Ties = "first",
    nan: Nan = "propagate",
    return_taps: bool = False,
    return_windows: bool = False,
    out: Array | None = None,
) -> Any:
    """Max pooling over random windows of about `ratio` cells; return y, then taps and windows if requested.

    Pass the returned windows to max_pool as `window` to pool again with the same windows.

    >>> import poolgrad as pg
    >>> x = np.arange(10.0)
    >>> y, windows = fractional_max_pool(x, 1.5, seed=(1, 2), return_windows=True)
    >>> y.tolist(), np.array_equal(y, pg.max_pool(x, windows))
    ([0.0, 2.0, 3.0, 5.0, 7.0, 9.0], True)
    """
    drawing = {"seed": seed, "pseudo_random": pseudo_random, "overlapping": overlapping}
    x = accept("fractional_max_pool", x)
    words, made = drawn_windows("fractional_max_pool", x.shape, ratio, size, drawing, axes, layout, return_windows)
    geometry = resolve(ArgumentErrors("fractional_max_pool"), x.shape, words)
    best = best_of("fractional_max_pool", x, geometry, False, Options(ties, nan, return_taps, out))
    return _with_windows(best, made, return_windows)


def fractional_avg_pool(
    x: Any,
    ratio: float | Sequence[float] | None = None,
    *,
    size: Ints | None = None,
    seed: int | tuple[int, int] | None = None,
    pseudo_random: bool = False,
    overlapping: bool = False,
    axes: Ints | None = None,
    layout: str | None = None,
    nan: Nan = "propagate",
    dtype: npt.DTypeLike | None = None,
    rounding: Rounding = "nearest",
    return_windows: bool = False,
    out: Array | None = None,
) -> Any:
    """Average pooling over random windows, drawn as in fractional_max_pool.

    >>> fractional_avg_pool(np.arange(4.0), size=2, seed=1).tolist()
    [0.5, 2.5]
    """
    drawing = {"seed": seed, "pseudo_random": pseudo_random, "overlapping": overlapping}
    x = accept("fractional_avg_pool", x)
    words, made = drawn_windows("fractional_avg_pool", x.shape, ratio, size, drawing, axes, layout, return_windows)
    geometry = resolve(ArgumentErrors("fractional_avg_pool"), x.shape, words)
    how = Division(True, nan=nan, dtype=dtype, rounding=rounding, out=out)
    return _with_windows(folded("fractional_avg_pool", x, geometry, how), made, return_windows)
