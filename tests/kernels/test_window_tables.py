"""The core's functions that make windows, and those that pool planes: right on any numbers, and no crash on wrong ones."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolgrad import _core
from poolgrad._kernels import native
from poolgrad._windows.fractional import placed_axis
from poolgrad.windows import Axis, Plan

HOSTILE = [-(2**63), -1, 0, 1, 2**62, 2**63 - 1, 2**70, 1.5, None, "a", [1], np.zeros(3), np.arange(3), float("nan")]
FUNCTIONS = {
    "windows": 5,
    "slide": 7,
    "between": 3,
    "proper": 2,
    "share": 2,
    "placed": 4,
    "draw": 6,
    "choose_planes": 7,
    "place_planes": 7,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_wrong_arguments_raise(name):
    rng, function, seen = np.random.default_rng(3), getattr(_core, name), set()
    for _ in range(3000):
        args = [HOSTILE[i] for i in rng.integers(0, len(HOSTILE), FUNCTIONS[name])]
        if name in ("slide", "share", "placed") and any(type(a) is int and 10**6 < a <= 2**62 for a in args):
            continue  # tables that would take all memory: `afford_windows` refuses them before
        try:
            function(*args)
        except (TypeError, ValueError, MemoryError) as error:
            seen.add(type(error))
    assert TypeError in seen


def test_tables_cannot_be_changed():
    axis = Axis(5, [0, 2], [2, 5])
    for table in (axis.start, axis.stop, axis.count, axis.span):
        assert not table.flags.writeable


@given(st.integers(1, 60), st.data(), st.floats(0, 1, exclude_max=True))
def test_placed_windows_are_those_of_the_formula(n, data, u):
    k, m = data.draw(st.integers(1, n)), data.draw(st.integers(1, n))
    alpha = (n - k) / max(m - 1, 1)
    start = [int((i + u) * alpha) for i in range(m - 1)]
    wanted = [s - start[0] for s in start] + [n - k]
    assert placed_axis(n, k, m, u).pairs() == [(s, s + k) for s in wanted]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8"])
@pytest.mark.parametrize(
    ("lengths", "kernel"), [((7,), (3,)), ((6, 9), (2, 3)), ((4, 5, 6), (2, 2, 2)), ((40, 40), (20, 20))]
)
def test_planes_pool_as_one_by_one(lengths, kernel, dtype):
    rng, planes = np.random.default_rng(7), 5
    sizes = tuple(n // k + 1 for n, k in zip(lengths, kernel, strict=True))
    starts = np.array(
        [
            list(
                itertools.chain.from_iterable(
                    np.sort(rng.integers(0, n - k + 1, m)) for n, k, m in zip(lengths, kernel, sizes, strict=True)
                )
            )
            for _ in range(planes)
        ]
    )
    windows = native.PlaneWindows(lengths, sizes, kernel, starts)
    x = rng.integers(0, 50, (planes, *lengths)).astype(dtype)
    y, taps = native.choose_planes(windows, x)
    g = rng.integers(1, 5, y.shape).astype(dtype)
    dx = native.place_planes(windows, g, taps)
    for p in range(planes):
        ends = np.cumsum(sizes)
        parts = [starts[p, end - m : end] for end, m in zip(ends, sizes, strict=True)]
        axes = {d: Axis(n, s, s + k) for d, (n, s, k) in enumerate(zip(lengths, parts, kernel, strict=True))}
        plan = Plan(lengths, axes)
        wanted, chosen = native.choose(plan, x[p])
        assert (y[p] == wanted).all()
        assert (taps[p] == chosen).all()
        assert (dx[p] == native.place(plan, g[p], chosen)).all()


def test_planes_refuse_nan_and_taps_outside_their_windows():
    windows = native.PlaneWindows((4,), (2,), (2,), np.array([[0, 2]]))
    with pytest.raises(native.NotWhole):
        native.choose_planes(windows, np.array([[1, np.nan, 2, 3]]))
    with pytest.raises(native.Astray):
        native.place_planes(windows, np.ones((1, 2)), np.array([[0, 9]], np.uint8))
    with pytest.raises(ValueError, match="outside"):
        native.choose_planes(windows._replace(starts=np.array([[0, 3]])), np.zeros((1, 4)))
