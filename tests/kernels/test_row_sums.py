"""Sums and means of integers, which the core adds row by row, against exact integers; at the borders of the types of sums.

Boxes of a few bytes cut rows into short stretches; boxes of the usual size keep these rows whole.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import poolgrad as pg
from poolgrad import _core

SHORT = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
ROUNDINGS = ("nearest", "floor", "ceil", "toward_zero")
DATA = ("random", "least", "most", "few")


@pytest.fixture(params=[1, 0], ids=["tiny boxes", "usual boxes"], autouse=True)
def _boxes(request: pytest.FixtureRequest) -> Iterator[None]:
    _core.box_at_most(request.param)
    yield
    _core.box_at_most(0)


def cells(shape: tuple[int, ...], dtype: str, data: str) -> np.ndarray:
    limits = np.iinfo(dtype)
    if data in ("least", "most"):
        return np.full(shape, limits.min if data == "least" else limits.max, dtype)
    low, high = (max(limits.min, -2), 2) if data == "few" else (limits.min, limits.max)
    return np.random.default_rng(len(shape)).integers(low, high, shape, dtype, endpoint=True)


def sums_of(x: np.ndarray, window: tuple[int, ...], strides: tuple[int, ...], axes: tuple[int, ...]) -> np.ndarray:
    """Return the sum of each window, exactly."""
    views = sliding_window_view(x.astype(np.int64), window, axis=axes)
    steps = [slice(None)] * x.ndim
    for axis, stride in zip(axes, strides, strict=True):
        steps[axis] = slice(None, None, stride)
    return np.asarray(views[tuple(steps)].sum(axis=tuple(range(x.ndim, x.ndim + len(axes)))))


def whole_quotient(sums: np.ndarray, by: int, rounding: str) -> np.ndarray:
    below, rest = np.divmod(sums, by)
    if rounding == "floor":
        return below
    if rounding == "ceil":
        return below + (rest > 0)
    if rounding == "toward_zero":
        return below + ((rest > 0) & (sums < 0))
    return below + ((2 * rest > by) | ((2 * rest == by) & (below % 2 == 1)))


def check(shape: tuple[int, ...], dtype: str, data: str, axes: tuple[int, ...], window: Any, strides: Any) -> None:
    x = cells(shape, dtype, data)
    sums, by = sums_of(x, window, strides, axes), int(np.prod(window))
    np.testing.assert_array_equal(pg.sum_pool(x, window, strides, axes=axes, dtype="int64"), sums)
    np.testing.assert_array_equal(pg.avg_pool(x, window, strides, axes=axes), sums / by)
    single = pg.avg_pool(x, window, strides, axes=axes, dtype="float32")
    np.testing.assert_array_equal(single, (sums / by).astype(np.float32))
    for rounding in ROUNDINGS:
        means = pg.avg_pool(x, window, strides, axes=axes, dtype=dtype, rounding=rounding)
        np.testing.assert_array_equal(means, whole_quotient(sums, by, rounding), err_msg=rounding)


PICTURES = {
    "blocks": ((2, 2), (2, 2)), "blocks of 6": ((6, 6), (6, 6)), "blocks of 3": ((3, 3), (3, 3)), "thirds": ((2, 3), (1, 3)),
    "every cell": ((3, 3), (1, 1)), "moved rows": ((9, 5), (1, 1)), "moved by 2": ((7, 4), (2, 2)), "joined": ((2, 13), (1, 1)),
    "half apart": ((3, 3), (2, 2)), "gaps": ((2, 2), (5, 5)), "one row": ((1, 31), (1, 2)), "256 cells": ((16, 16), (1, 1)),
    "257 cells": ((1, 257), (1, 1)),
}  # fmt: skip


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("dtype", SHORT)
@pytest.mark.parametrize("windows", PICTURES)
def test_pictures(windows: str, dtype: str, data: str) -> None:
    check((37, 300), dtype, data, (0, 1), *PICTURES[windows])


@pytest.mark.parametrize("inner", [2, 3, 33])
@pytest.mark.parametrize("dtype", SHORT)
@pytest.mark.parametrize("windows", ["blocks", "every cell", "joined", "half apart"])
def test_channels_last(windows: str, dtype: str, inner: int) -> None:
    check((20, 40, inner), dtype, "random", (0, 1), *PICTURES[windows])


@pytest.mark.parametrize("dtype", SHORT)
@pytest.mark.parametrize(
    ("window", "strides"), [((5, 5, 5), (1, 1, 1)), ((2, 2, 2), (2, 2, 2)), ((3, 4, 9), (1, 1, 3))]
)
def test_volumes(dtype: str, window: Any, strides: Any) -> None:
    check((2, 9, 11, 70), dtype, "random", (1, 2, 3), window, strides)


@pytest.mark.parametrize("dtype", SHORT)
@pytest.mark.parametrize(("window", "stride"), [(2, 2), (5, 1), (64, 1), (101, 7), (127, 1), (128, 64)])
def test_rows(dtype: str, window: int, stride: int) -> None:
    check((3, 700), dtype, "random", (1,), (window,), (stride,))


@pytest.mark.parametrize("columns", [16384, 16383, 11000])
@pytest.mark.parametrize("rows", [2, 3])
@pytest.mark.parametrize("dtype", ["int16", "uint16"])
@pytest.mark.parametrize("data", ["least", "most"])
def test_windows_of_about_2_to_the_15_cells(rows: int, columns: int, dtype: str, data: str) -> None:
    check((rows + 1, columns + 3), dtype, data, (0, 1), (rows, columns), (1, 1))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("by", range(1, 257, 5))
def test_every_sum_of_bytes_is_rounded_as_an_exact_quotient(dtype: str, by: int) -> None:
    """Windows of `by` cells that have every sum in turn, ties included."""
    limits = np.iinfo(dtype)
    wanted = np.unique(np.linspace(limits.min * by, limits.max * by, 600).astype(np.int64))
    x = np.array([[total // by + (k < total % by) for k in range(by)] for total in wanted], np.int64).astype(dtype)
    for rounding in ROUNDINGS:
        means = pg.avg_pool(x.reshape(-1), by, dtype=dtype, rounding=rounding)
        np.testing.assert_array_equal(means, whole_quotient(wanted, by, rounding), err_msg=rounding)


@pytest.mark.parametrize("dtype", SHORT)
def test_padding_counts_by_cells_by_span_and_by_a_number(dtype: str) -> None:
    x = cells((30, 90), dtype, "random")
    pad, window = 2, (5, 5)
    wide = np.pad(x.astype(np.int64), pad)
    sums = sums_of(wide, window, (1, 1), (0, 1))
    there = sums_of(np.pad(np.ones(x.shape, np.int64), pad), window, (1, 1), (0, 1))
    for keep, by in ((False, there), (True, np.full_like(there, 25))):
        means = pg.avg_pool(x, 5, 1, padding="same", count_include_pad=keep, dtype=dtype)
        np.testing.assert_array_equal(means, np.vectorize(lambda s, n: whole_quotient(s, n, "nearest"))(sums, by))
    means = pg.avg_pool(x, 5, 1, padding="same", divisor=25, dtype=dtype)
    np.testing.assert_array_equal(means, whole_quotient(sums, 25, "nearest"))


def test_results_that_do_not_fit_are_refused() -> None:
    x = np.full((8, 128), 100, np.uint8)
    with pytest.raises(ValueError, match="sum"):
        pg.sum_pool(x, 2, dtype="uint8")
    with pytest.raises(ValueError, match="mean"):
        pg.avg_pool(x, 2, divisor=1, dtype="uint8")
    with pytest.raises(ValueError, match="mean"):
        pg.avg_pool(x.astype(np.int8), 2, divisor=2, dtype="int8")
