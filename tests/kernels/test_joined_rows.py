"""Maxima and minima of integers, which the core joins row by row, against NumPy and against windows visited one by one."""

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import poolgrad as pg
from poolgrad import _core
from poolgrad._kernels import native
from poolgrad.config import threads as limit

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.fixture(autouse=True, params=["boxes as always", "short boxes", "small caches"])
def boxes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Set the size of the boxes: short ones cut rows into stretches. Maxima of few cells that no cache holds join no rows."""
    _core.box_at_most(0 if request.param == "boxes as always" else 1 << 12)
    if request.param == "small caches":
        _core.caches_of(1 << 12, 1 << 8)
    yield
    _core.box_at_most(0)
    _core.caches_of(0, 0)


def cells(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return integers from all over the range, its ends among them."""
    ends = np.iinfo(dtype)
    draw = np.random.default_rng(3)
    x = draw.integers(ends.min, ends.max, shape, dtype, endpoint=True)
    x[draw.random(shape) < 0.2] = ends.min
    x[draw.random(shape) < 0.2] = ends.max
    return x


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    ("shape", "window", "stride"),
    [
        ((66, 130), 2, 2),
        ((65, 131), 4, 4),
        ((64, 200), 3, 2),
        ((20, 700), (5, 4), (5, 4)),
        ((40, 333), (2, 12), (2, 10)),
        ((9, 500), (3, 7), (3, 5)),
        ((30, 260), 3, 1),
        ((1000,), 6, 6),
        ((70_001,), 3, 2),
        ((3, 12, 90), (3, 4, 6), (3, 4, 6)),
        ((12, 5, 9, 80), (12, 1, 2, 2), (12, 1, 2, 2)),
    ],
)
def test_windows_of_whole_rows(
    shape: tuple[int, ...], window: int | tuple[int, ...], stride: int | tuple[int, ...], dtype: str
) -> None:
    x = cells(shape, dtype)
    lengths = window if isinstance(window, tuple) else (window,) * x.ndim
    steps = stride if isinstance(stride, tuple) else (stride,) * x.ndim
    views = sliding_window_view(x, lengths)[tuple(slice(None, None, s) for s in steps)]
    over = tuple(range(x.ndim, 2 * x.ndim))
    np.testing.assert_array_equal(pg.max_pool(x, window, stride), views.max(over))
    np.testing.assert_array_equal(pg.min_pool(x, window, stride), views.min(over))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32"])
@pytest.mark.parametrize("padding", ["same", "same_lower", [(2, 1), (3, 3)]])
@pytest.mark.parametrize("threads", [1, 3])
def test_windows_that_edges_cut(dtype: str, padding: object, threads: int) -> None:
    x = cells((5, 61, 150), dtype)
    words = {"window": 4, "stride": 3, "padding": padding, "axes": (1, 2)}
    with limit(threads):
        found = pg.max_pool(x, **words), pg.min_pool(x, **words)
    plan = pg.plan(x.shape, **words)
    simple = pg.Plan(plan.source, {d: axis for d, axis in enumerate(plan.by_dimension) if axis is not None})
    native.native(simple, plain=True)
    for least, y in enumerate(found):
        np.testing.assert_array_equal(y, native.best(simple, bool(least), "propagate", x))
