"""Windows along their rows: maxima and minima that mind NaN in one pass, and sums by columns, against the plain way and ranked integers."""

from itertools import product

import numpy as np
import pytest
from support import dtype_of

import poolgrad as pg
from poolgrad import _core
from poolgrad._kernels import native
from poolgrad._ops.semantics import Mean, Start
from poolgrad._pooling.selection import ranks
from poolgrad.windows import Axis, Plan, whole

FLOATS = ("float16", "bfloat16", "float32", "float64")
WHOLE = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def blocks(n: int, k: int, step: int | None = None, first: int = 0) -> Axis:
    """Return windows of k cells, `step` apart."""
    start = np.arange(first, n - k + 1, step or k)
    return Axis(n, start, start + k)


def copy(plan: Plan) -> Plan:
    """Return a plan of its own, which can be bound to another way."""
    return Plan(plan.source, {d: axis for d, axis in enumerate(plan.by_dimension) if axis is not None})


# Windows that are runs, runs in several rows, and both beside each other; images fill groups of 16, or do not.
PLANS = {
    "one run": Plan((1000,), {0: whole(1000)}),
    "runs side by side": Plan((7000,), {0: blocks(7000, 130)}),
    "runs apart": Plan((3, 5000), {1: blocks(5000, 97, 300, 11)}),
    "runs that overlap": Plan((2, 3000), {1: blocks(3000, 200, 150)}),
    "small images": Plan((37, 7, 12), {1: whole(7), 2: whole(12)}),
    "images in a row": Plan((3, 8, 9, 10), {1: blocks(8, 2), 2: whole(9), 3: whole(10)}),
    "one image": Plan((1, 40, 50), {1: whole(40), 2: whole(50)}),
    "rows far apart": Plan((2, 30, 640), {1: blocks(30, 10), 2: blocks(640, 80)}),
    "uneven runs": Plan((4, 2000), {1: Axis(2000, np.array([0, 90, 700]), np.array([80, 700, 2000]))}),
    "inner elements": Plan((2, 400, 3), {1: blocks(400, 100)}),
    "many inner elements": Plan((2, 3, 200, 40), {1: whole(3), 2: blocks(200, 100)}),
}


def ordered(seed: int, shape: tuple[int, ...], dtype: str, kind: str) -> np.ndarray:
    """Return numbers of one kind, with ties and zeros of both signs."""
    rng = np.random.default_rng(seed)
    x = np.round(3 * rng.standard_normal(shape)).astype(dtype_of(dtype))
    if kind == "zeros":
        x = np.where(rng.random(shape) < 0.5, np.zeros((), x.dtype), -np.zeros((), x.dtype))
    if kind == "infinite":
        x[rng.random(shape) < 0.5] = (np.inf, -np.inf)[seed % 2]
    if kind == "one NaN":
        x.reshape(-1)[rng.integers(x.size)] = np.nan
    if kind in ("some NaN", "infinite"):
        x[rng.random(shape) < 0.1] = np.nan
    if kind == "all NaN":
        x[:] = np.nan
    return x


KINDS = ("numbers", "zeros", "one NaN", "some NaN", "all NaN", "infinite")


def same(got: np.ndarray, want: np.ndarray) -> bool:
    bits = f"u{got.dtype.itemsize}"
    return bool(((got.view(bits) == want.view(bits)) | ((got != got) & (want != want))).all())


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", PLANS)
def test_the_best_floats_follow_the_rule_for_nan(name, dtype):
    plan = PLANS[name]
    for kind, least, nan in product(KINDS, (False, True), ("propagate", "ignore")):
        x = ordered(len(kind), plan.source, dtype, kind)
        taps = native.choose(plan, ranks(-x if least else x, nan == "propagate"))[1]
        want = native.pick(plan, x, taps)
        assert same(native.best(plan, least, nan, x), want), (kind, least, nan)


@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize("name", PLANS)
def test_the_best_integers_are_those_of_numpy(name, dtype):
    plan, info = PLANS[name], np.iinfo(dtype)
    x = np.random.default_rng(1).integers(info.min, info.max, plan.source, dtype, endpoint=True)
    for least in (False, True):
        taps = native.choose(plan, ~x if least else x)[1]
        assert (native.best(plan, least, "propagate", x) == native.pick(plan, x, taps)).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [name for name in PLANS if "overlap" not in name])
def test_maxima_and_sums_have_the_bits_of_the_plain_way(name, dtype):
    plan = PLANS[name]
    plain = native.native(copy(plan), plain=True)
    for kind in KINDS:
        x = ordered(3, plan.source, dtype, kind)
        for start in (Start.LOWEST, Start.INFINITY):
            assert same(native.select(plan, start, x), _core.select(plain, start, x, None)), (kind, start)
        x = np.random.default_rng(2).standard_normal(plan.source).astype(dtype_of(dtype))
        for mean in (Mean.TOTAL, Mean.ONCE):
            assert same(native.fold(plan, mean, x), _core.fold(plain, mean, x, None)), mean


def test_these_plans_run_along_their_rows():
    for name, plan in PLANS.items():
        many = name == "many inner elements"
        assert many or native.schedule(plan, "select", np.float32, Start.INFINITY) == "along", name
        if name not in ("small images", "images in a row", "runs that overlap"):
            assert native.schedule(plan, "fold", np.float32, Mean.ONCE) == "along", name


def test_a_long_run_begins_anywhere_in_a_line():
    memory = np.random.default_rng(5).standard_normal(1200).astype(np.float32)
    for first in range(20):
        x = memory[first : first + 1100]
        for at in (0, 1, 15, 16, 17, 1083, 1099):
            found = x.copy()
            found[at] = 9
            view = np.empty(1164, np.float32)[first : first + 1100]
            view[:] = found
            assert pg.global_max_pool(view) == 9, (first, at)
            view[at] = np.nan
            assert np.isnan(pg.global_min_pool(view)), (first, at)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("rows", [1, 3])
def test_the_first_zero_of_a_very_long_run_gives_its_sign(dtype, rows):
    many = 1 << 18  # cells between two notes of where the first zero is
    n = 2 * many + 100
    for at in (0, 1, 17, many - 1, many, many + 40, 2 * many + 5, n - 30, n - 1):
        for sign in (-0.0, 0.0):
            x = np.full((rows, n + 7), -3, dtype)  # wider than the window, so that its rows do not follow each other
            x[-1, n - 1], x[rows // 2, at] = -sign, sign
            for found, first in (
                (pg.global_max_pool(np.ascontiguousarray(x[:, :n]), axes=(0, 1)), sign),
                (pg.max_pool(x, (rows, n), (rows, n)), sign),
                (pg.min_pool(-x, (rows, n), (rows, n)), -sign),
            ):
                assert found == 0, (at, sign)
                assert np.signbit(found) == np.signbit(first), (at, sign)
