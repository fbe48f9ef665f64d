"""Minima, NaN rules, divisors and integer means, which the core computes box by box, against the same rules over whole arrays in NumPy.

Boxes of a few bytes cut every axis; boxes of the usual size hold these arrays whole.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from regions import assembled, random_plan
from support import dtype_of

import poolgrad as pg
from poolgrad import _core
from poolgrad._kernels import native
from poolgrad._ops.semantics import Start
from poolgrad._pooling import means
from poolgrad._pooling.means import Division, folding
from poolgrad._pooling.selection import ranks
from poolgrad._pooling.sources import Layout
from poolgrad._pooling.window_args import PooledAxes
from poolgrad.windows import Axis, Plan

FLOATS = ("float16", "bfloat16", "float32", "float64")
SHORT = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
WHOLE = (*SHORT, "int64", "uint64")
SHAPES = list(product((1, 2, 3), (False, True)))  # rank, channels last
SEEDS = range(4)
DENSITIES = ("none", "one", "some", "all")


@pytest.fixture(params=[1, 3000, 0], ids=["tiny boxes", "small boxes", "usual boxes"], autouse=True)
def _boxes(request: pytest.FixtureRequest) -> Iterator[None]:
    threads = _core.get_num_threads()
    _core.box_at_most(request.param)
    yield
    _core.box_at_most(0)
    _core.set_num_threads(threads)


def case(seed: int, rank: int, last: bool) -> Plan:
    """Return a random plan; odd seeds run on two threads."""
    _core.set_num_threads(1 + seed % 2)
    return random_plan(seed, rank, last)


def floats(seed: int, shape: tuple[int, ...], dtype: str, density: str) -> np.ndarray:
    """Return numbers with many ties, zeros of both signs and infinities; NaN as dense as said."""
    rng = np.random.default_rng(seed)
    x = np.round(3 * rng.standard_normal(shape)).astype(dtype_of(dtype))
    if seed % 3:  # infinity beside NaN needs another way
        x[rng.random(shape) < 0.02] = np.inf
        x[rng.random(shape) < 0.02] = -np.inf
    if density == "one":
        x.reshape(-1)[rng.integers(x.size)] = np.nan
    if density != "none":
        x[rng.random(shape) < {"one": 0.0, "some": 0.3, "all": 1.0}[density]] = np.nan
    return x


def integers(seed: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    info, rng = np.iinfo(dtype), np.random.default_rng(seed)
    x = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    x[rng.random(shape) < 0.2] = (info.min, info.max)[seed % 2]
    return x


def same(got: np.ndarray, want: np.ndarray) -> bool:
    """Return True if all bits are the same; NaN equals NaN."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return False
    bits = f"u{got.dtype.itemsize}"
    return bool(((got.view(bits) == want.view(bits)) | ((got != got) & (want != want))).all())


def chosen(plan: Plan, x: np.ndarray, least: bool, nan: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the best of each window and its tap, by ranking all cells as integers."""
    if x.dtype.kind in "iu":
        taps = native.choose(plan, ~x if least else x)[1]
    else:
        taps = native.choose(plan, ranks(-x if least else x, nan == "propagate"))[1]
    return native.pick(plan, x, taps), taps


def uncut(plan: Plan) -> Plan:
    return Plan(plan.source, {d: Axis(a.length, a.start, a.stop) for d, a in enumerate(plan.by_dimension) if a})


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("rank", "last"), SHAPES)
def test_the_best_cells_and_their_taps_follow_the_rule_for_nan(rank, last, dtype):
    for seed, density in product(SEEDS, DENSITIES):
        plan = case(seed, rank, last)
        x = floats(seed, plan.source, dtype, density)
        for least, nan in product((False, True), ("propagate", "ignore")):
            want, taps = chosen(plan, x, least, nan)
            y, found = native.best_taps(plan, least, nan, x)
            assert (found == taps).all(), (seed, density, least, nan)
            assert same(y, want), (seed, density, least, nan)
            assert same(native.best(uncut(plan), least, nan, x), want), (seed, density, least, nan)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("rank", "last"), SHAPES)
def test_minima_by_the_rule_of_tensorflow_are_negated_maxima(rank, last, dtype):
    for seed, density in product(SEEDS, DENSITIES):
        plan = case(seed, rank, last)
        x = floats(seed, plan.source, dtype, density)
        assert same(native.best(plan, False, "tf", x), native.select(plan, Start.LOWEST, x))
        assert same(native.best(plan, True, "tf", x), -native.select(plan, Start.LOWEST, -x))


@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize(("rank", "last"), SHAPES)
def test_the_best_integers_and_their_taps_are_the_first_of_equals(rank, last, dtype):
    for seed, least in product(SEEDS, (False, True)):
        plan = case(seed, rank, last)
        x = integers(seed, plan.source, dtype)
        want, taps = chosen(plan, x, least, "propagate")
        y, found = native.best_taps(plan, least, "propagate", x)
        assert (found == taps).all(), (seed, least)
        assert (y == want).all(), (seed, least)
        assert (native.best(uncut(plan), least, "propagate", x) == want).all(), (seed, least)


DIVISORS: dict[str, dict[str, Any]] = {
    "mean": {"by_count": True},
    "padding counted": {"by_count": True, "count_include_pad": True},
    "divisor": {"by_count": True, "divisor": 7.0},
    "sum": {"by_count": False},
}


def layout_of(plan: Plan, x: np.ndarray) -> Layout:
    return Layout(plan, tuple(range(x.ndim)), (), x.dtype)


def windows(plan: Plan) -> PooledAxes:
    return PooledAxes(tuple(d for d, axis in enumerate(plan.by_dimension) if axis is not None), plan)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("rank", "last"), SHAPES)
def test_sums_and_means_of_floats_have_the_bits_of_the_operator(rank, last, dtype):
    for seed, density in product(SEEDS, DENSITIES):
        plan = case(seed, rank, last)
        x = np.random.default_rng(seed).standard_normal(plan.source).astype(dtype_of(dtype))
        x[np.isnan(floats(seed, plan.source, dtype, density))] = np.nan
        for name, nan in product(DIVISORS, ("propagate", "ignore")):
            how = Division(**DIVISORS[name], nan=nan)
            want = folding("avg_pool", layout_of(plan, x), how, x).forth(x)
            got = means.folded("avg_pool", x, windows(plan), how)
            assert same(got, want), (seed, density, name, nan)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("rank", "last"), SHAPES)
def test_regions_leave_out_nan_as_the_whole_array_does(rank, last, dtype):
    for seed in SEEDS:
        plan, rng = case(seed, rank, last), np.random.default_rng(seed)
        x = np.random.default_rng(seed).standard_normal(plan.source).astype(dtype_of(dtype))
        x[rng.random(plan.source) < 0.1] = np.nan
        for by in (None, "span", 7.0, 1.0):

            def run(part: Plan, source: Any, _: Any) -> np.ndarray:
                return native.averager(part, by, True)(np.ascontiguousarray(x[source]))  # noqa: B023

            assert same(assembled(rng, plan, run), native.averager(plan, by, True)(x)), (seed, by)


RESULTS = (None, "float64", "float32", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")


@pytest.mark.parametrize("dtype", SHORT)
@pytest.mark.parametrize(("rank", "last"), SHAPES)
def test_sums_and_means_of_integers_are_those_of_the_policy(monkeypatch, rank, last, dtype):
    roundings = ("nearest", "floor", "ceil", "toward_zero")
    for seed in SEEDS:
        plan, rng = case(seed, rank, last), np.random.default_rng(seed)
        x = integers(seed, plan.source, dtype)
        for name in (*DIVISORS, "-6", "2.5"):
            options = DIVISORS.get(name) or {"by_count": True, "divisor": float(name) if "." in name else int(name)}
            how = Division(**options, dtype=rng.choice(RESULTS), rounding=rng.choice(roundings))
            results = []
            for kernel in (True, False):
                if not kernel:
                    monkeypatch.setattr(means, "_has_kernel", lambda *_: False)
                try:
                    results.append(means.folded("avg_pool", x, windows(plan), how))
                except ValueError as error:
                    results.append(str(error))
                monkeypatch.undo()
            got, want = results
            assert type(got) is type(want), (seed, how, got, want)
            assert got == want if isinstance(got, str) else same(got, want), (seed, how)


def test_the_kernel_runs_the_usual_integer_means(monkeypatch):
    def refuse(*_: Any) -> None:
        raise AssertionError("the policy over whole arrays")

    monkeypatch.setattr(means, "exact_sums", refuse)
    for dtype in SHORT:
        x = np.arange(64).reshape(8, 8).astype(dtype)
        assert pg.avg_pool(x, 2).tolist() == x.astype(float).reshape(4, 2, 4, 2).mean((1, 3)).tolist()
        assert pg.sum_pool(x, 2).tolist() == x.astype(int).reshape(4, 2, 4, 2).sum((1, 3)).tolist()
        assert pg.avg_pool(x, 2, dtype=dtype, rounding="floor").dtype == dtype
        assert pg.avg_pool(x, 3, stride=1, padding=1, count_include_pad=True).dtype == np.float64
    assert pg.avg_pool(np.eye(4, dtype=bool), 2).tolist() == [[0.5, 0.0], [0.0, 0.5]]


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_window_over_all_cells(dtype):
    for shape, density in product([(7000,), (3, 90, 80), (60, 70, 3)], DENSITIES):
        x = floats(2, shape, dtype, density)
        pooled = (1, 2) if len(shape) == 3 else (0,)
        for pool, mean in ((pg.global_max_pool, False), (pg.global_min_pool, False), (pg.global_avg_pool, True)):
            got = pool(x, axes=pooled, nan="ignore", keepdims=False)
            numbers = np.where(np.isinf(x), dtype_of(dtype).type(0), x) if mean else x
            if mean:
                got = pool(numbers, axes=pooled, nan="ignore", keepdims=False)
            run = np.nanmean if mean else np.nanmin if pool is pg.global_min_pool else np.nanmax
            with np.errstate(all="ignore"), pytest.warns() if density == "all" else np.errstate():
                want = run(numbers.astype(np.float64), axis=pooled)
            if mean:
                assert np.allclose(got.astype(np.float64), want, rtol=1e-2, atol=1e-2, equal_nan=True)
            else:
                assert np.array_equal(got.astype(np.float64), want, equal_nan=True)


def test_arguments_that_the_core_refuses():
    plan = Plan((4,), {0: Axis(4, [0, 2], [2, 4])})
    made, x = native.native(plan), np.zeros(4, np.float32)
    whole, taps = np.zeros(4, np.int16), np.zeros(2, np.uint8)
    for wrong in (
        lambda: _core.best(made, 6, x, None),
        lambda: _core.best(made, -1, x, None),
        lambda: _core.best(made, 0, x[:3], None),
        lambda: _core.best(made, 0, x, x[:2]),
        lambda: _core.best_taps(made, 0, x, np.zeros(2, np.float32), np.zeros(2, np.int64)),
        lambda: _core.best_taps(made, 9, x, np.zeros(2, np.float32), taps),
        lambda: _core.best_taps(made, 0, x, np.zeros(2, np.float64), taps),
        lambda: _core.mean(made, x, None, False, whole),
        lambda: _core.mean(made, x, [], False, x),
        lambda: _core.mean(made, whole, None, False, np.zeros(0, np.float16)),
        lambda: _core.mean(made, whole.astype(np.int64), None, False, x),
        lambda: _core.mean(made, whole, 0.0, False, x),
        lambda: _core.mean(made, whole, np.nan, False, x),
        lambda: _core.mean(made, whole, None, False, x, 4),
    ):
        with pytest.raises((TypeError, ValueError)):
            wrong()


def test_threads_change_no_bit():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((3, 300, 400)).astype(np.float32)
    some, whole = np.where(rng.random(x.shape) < 0.1, np.float32(np.nan), x), (1000 * x).astype(np.int16)
    runs = {
        "min": lambda: pg.min_pool(x, 3, stride=1, axes=(1, 2)),
        "max, NaN": lambda: pg.max_pool(some, 3, stride=2, axes=(1, 2)),
        "taps": lambda: pg.min_pool(some, 3, axes=(1, 2), nan="ignore", return_taps=True)[1].values,
        "mean, NaN": lambda: pg.avg_pool(some, (9, 11), stride=1, axes=(1, 2), nan="ignore"),
        "integers": lambda: pg.avg_pool(whole, 3, stride=2, padding=1, axes=(1, 2)),
        "refused": lambda: np.array(pg.sum_pool(whole, 5, axes=(1, 2)).astype(np.float32)),
    }
    for name, run in runs.items():
        results = []
        for threads in (1, 2, 3):
            _core.set_num_threads(threads)
            results.append(run().tobytes())
        assert len(set(results)) == 1, name
