"""The sizes of caches: they change how a call is cut, never its bits."""

from collections.abc import Iterator

import numpy as np
import pytest
from regions import random_plan
from support import dtype_of

import poolgrad as pg
from poolgrad import _core
from poolgrad._kernels import native
from poolgrad._ops.semantics import Mean, Share, Start
from poolgrad.windows import Plan, sliding_axis

SIZES = {"tiny": (256, 4 << 10), "small": (8 << 10, 64 << 10), "large": (1 << 20, 32 << 20)}


@pytest.fixture(autouse=True)
def _usual_sizes() -> Iterator[None]:
    yield
    _core.caches_of(0, 0)


def planes(window: int, stride: int, shape: tuple[int, ...]) -> Plan:
    """Return a plan of windows over the last two axes."""
    return Plan(
        shape, {a: sliding_axis(shape[a], window, stride, 0, (shape[a] - window) // stride + 1) for a in (1, 2)}
    )


def plans() -> list[Plan]:
    """Return plans of all schedules: short and long windows, many and few images, wide taps."""
    shapes = [(70, 20, 20), (3, 130, 90)]
    windows = [(2, 2), (3, 1), (3, 2), (7, 1), (17, 1), (18, 18)]
    fixed = [planes(k, s, shape) for shape in shapes for k, s in windows]
    return fixed + [random_plan(seed, 1 + seed % 3, bool(seed % 2)) for seed in range(8)]


def results(plan: Plan, dtype: str) -> list[bytes]:
    """Return the bits of every verb that takes floats."""
    rng = np.random.default_rng(5)
    x = np.round(9 * rng.standard_normal(plan.source)).astype(dtype_of(dtype))
    g = rng.standard_normal(plan.dest).astype(dtype_of(dtype))
    y, taps = native.choose(plan, x)
    made = (
        native.fold(plan, Mean.EXACT, x), native.fold(plan, Mean.TOTAL, x), native.spread(plan, Share.RECIPROCAL, False, g),
        native.select(plan, Start.LOWEST, x), native.recall(plan, x, y, x), native.near(plan, 1e-5, x, y, g),
        native.route(plan, x, g), y, taps, native.pick(plan, x, taps), native.place(plan, g, taps),
    )  # fmt: skip
    return [np.asarray(each).tobytes() for each in made]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_bits_do_not_depend_on_caches(size, dtype):
    want = [results(plan, dtype) for plan in plans()]
    assert _core.caches_of(*SIZES[size]) == SIZES[size]
    assert [results(plan, dtype) for plan in plans()] == want


@pytest.mark.parametrize("size", SIZES)
def test_boxes_follow_the_second_cache_without_other_bits(size):
    x = np.random.default_rng(5).integers(-99, 99, (3, 70, 90)).astype(np.float32)
    x[0, 3, 4] = np.nan

    def both() -> list[bytes]:
        return [
            pg.min_pool(x, (3, 5), axes=(1, 2)).tobytes(),
            pg.avg_pool(x, (3, 5), axes=(1, 2), nan="ignore").tobytes(),
        ]

    want = both()
    _core.caches_of(*SIZES[size])
    assert both() == want


def test_sizes_lie_between_their_limits():
    first, second = _core.caches_of(0, 0)
    assert 16 << 10 <= first <= 64 << 10
    assert 256 << 10 <= second <= 1 << 20
