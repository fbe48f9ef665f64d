"""An array that is cut into regions gives the bits of the whole array, whatever the sums: their order depends on absolute positions."""

from itertools import product

import numpy as np
import pytest
from regions import assembled, assembled_back, random_plan
from support import dtype_of

from poolgrad import _core, reference
from poolgrad._kernels import native
from poolgrad._ops.semantics import Mean, Share, Start
from poolgrad.windows import Axis, Plan, sliding_axis

DTYPES = ("float16", "bfloat16", "float32", "float64")
SHAPES = list(product((1, 2, 3), (False, True)))  # rank, channels last
SEEDS = range(12)


def numbers(seed: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype_of(dtype))


def ready(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rank", "last"), SHAPES)
def test_sums_over_regions_have_the_bits_of_the_whole(rank, last, dtype):
    for seed in SEEDS:
        plan, rng = random_plan(seed, rank, last), np.random.default_rng(seed)
        x = numbers(seed, plan.source, dtype)
        for mean in (Mean.EXACT, Mean.TOTAL, Mean.ONCE):
            got = assembled(rng, plan, lambda part, source, _: native.fold(part, mean, ready(x[source])))  # noqa: B023
            assert got.tobytes() == native.fold(plan, mean, x).tobytes(), (seed, mean)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rank", "last"), SHAPES)
def test_gradients_of_sums_over_regions_have_the_bits_of_the_whole(rank, last, dtype):
    for seed in SEEDS:
        plan, rng = random_plan(seed, rank, last), np.random.default_rng(seed)
        g = numbers(seed, plan.dest, dtype)
        for share, reverse in ((Share.RECIPROCAL, True), (Share.WHOLE, False), (Share.QUOTIENT, False)):
            got = assembled_back(rng, plan, lambda part, _, dest: native.spread(part, share, reverse, ready(g[dest])))  # noqa: B023
            assert got.tobytes() == native.spread(plan, share, reverse, g).tobytes(), (seed, share)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rank", "last"), SHAPES)
def test_maxima_and_their_gradients_over_regions_have_the_bits_of_the_whole(rank, last, dtype):
    for seed in SEEDS:
        plan, rng = random_plan(seed, rank, last), np.random.default_rng(seed)
        x, g = np.round(4 * numbers(seed, plan.source, dtype)), numbers(seed + 99, plan.dest, dtype)
        y = native.select(plan, Start.LOWEST, x)
        got = assembled(rng, plan, lambda part, source, _: native.select(part, Start.LOWEST, ready(x[source])))  # noqa: B023
        assert got.tobytes() == y.tobytes(), seed
        got = assembled(rng, plan, lambda part, source, _: native.choose(part, ready(x[source]))[1].astype(int))  # noqa: B023
        assert (got == native.choose(plan, x)[1]).all(), seed
        got = assembled_back(rng, plan, lambda part, s, d: native.route(part, ready(x[s]), ready(g[d])))  # noqa: B023
        assert got.tobytes() == native.route(plan, x, g).tobytes(), seed
        got = assembled_back(rng, plan, lambda part, s, d: native.near(part, 0.5, *map(ready, (x[s], y[d], g[d]))))  # noqa: B023
        assert got.tobytes() == native.near(plan, 0.5, x, y, g).tobytes(), seed


@pytest.mark.parametrize(("rank", "last"), SHAPES)
def test_sums_are_those_of_the_reference(rank, last):
    """It composes long sums in the same order, of whole plans and of parts."""
    for seed in range(6):
        whole = random_plan(seed, rank, last)
        for plan in (whole, whole.cut([slice(n // 4, n) for n in whole.dest])[1]):
            x, g = numbers(seed, plan.source, "float64"), numbers(seed, plan.dest, "float64")
            assert native.fold(plan, Mean.EXACT, x).tobytes() == reference.fold(plan, Mean.EXACT, x).tobytes(), seed
            for share in (Share.RECIPROCAL, Share.WHOLE):
                want = reference.spread(plan, share, False, g)
                assert native.spread(plan, share, False, g).tobytes() == want.tobytes(), (seed, share)


def test_many_of_these_plans_compose_sums_axis_by_axis():
    """Else the tests above would prove little."""
    plans = [random_plan(seed, rank, last) for rank in (2, 3) for last in (False, True) for seed in SEEDS]
    slid = [reference._long_sums(plan, False, np.zeros(plan.source)) is not None for plan in plans]
    back = [reference._long_sums(plan, True, np.zeros(plan.dest)) is not None for plan in plans]
    assert sum(slid) >= len(plans) // 4
    assert sum(back) >= len(plans) // 8


@pytest.mark.parametrize("channels", [1, 5, 16])
def test_sums_depend_neither_on_the_batch_nor_on_the_channels(channels):
    axes = {1: sliding_axis(37, 13, 1, 6, 37), 2: sliding_axis(41, 17, 1, 8, 41)}
    x = numbers(3, (40, 37, 41, channels), "float64")
    y = native.fold(Plan(x.shape, axes), Mean.EXACT, x)
    one = ready(x[7:8, ..., -1:])
    assert native.fold(Plan(one.shape, axes), Mean.EXACT, one).tobytes() == y[7:8, ..., -1:].tobytes()
    first = ready(x.transpose(0, 3, 1, 2))
    moved = native.fold(Plan(first.shape, {2: axes[1], 3: axes[2]}), Mean.EXACT, first)
    assert moved.transpose(0, 2, 3, 1).tobytes() == y.tobytes()


def test_one_window_of_many_is_summed_as_among_them():
    """Alone, it would be summed tap after tap."""
    plan = Plan((60, 70), {0: sliding_axis(60, 31, 1, 15, 60), 1: sliding_axis(70, 31, 1, 15, 70)})
    x = numbers(1, plan.source, "float64")
    y = native.fold(plan, Mean.TOTAL, x)
    differ = 0
    for i, j in product(range(0, 60, 7), range(0, 70, 9)):
        source, part = plan.cut([slice(i, i + 1), slice(j, j + 1)])
        cells = ready(x[source])
        assert native.fold(part, Mean.TOTAL, cells).item() == y[i, j]
        alone = Plan(part.source, {d: Axis(n, [0], [n]) for d, n in enumerate(part.source)})
        differ += native.fold(alone, Mean.TOTAL, cells).item() != y[i, j]
    assert differ > 10


def test_a_window_of_one_cell_stays_a_pooled_axis():
    """So the part has as many axes as the whole, and slides as it does."""
    plan = Plan((200, 9), {0: sliding_axis(200, 130, 1, 65, 200), 1: sliding_axis(9, 1, 2, 0, 5)})
    x = numbers(2, plan.source, "float64")
    source, part = plan.cut([slice(3, 190), slice(2, 3)])
    assert len(part.axes) == len(plan.axes) == 2
    assert (
        native.fold(part, Mean.TOTAL, ready(x[source])).tobytes()
        == ready(native.fold(plan, Mean.TOTAL, x)[3:190, 2:3]).tobytes()
    )


GOOD = (9, 5, 2, 1, 3, 2, 1, 1)  # length, windows, origin, first, widest, overlap, fits, fits_back


@pytest.mark.parametrize(
    "change",
    [{0: 5}, {0: -1}, {0: 2**62}, {1: 1}, {1: 2**62}, {2: -1}, {2: 7}, {2: 2**63 - 1}, {3: 4}, {3: -1}, {4: 2}, {4: 10}, {4: -3}, {5: 0}, {5: 6}],
    ids=str,
)  # fmt: skip
def test_the_core_refuses_a_parent_that_cannot_be_one(change):
    start, stop = np.array([0, 1]), np.array([3, 4])
    _core.Plan((4,), (2,), 1, 1, [(4, start, stop, None, GOOD)])
    parent = tuple(change.get(k, value) for k, value in enumerate(GOOD))
    with pytest.raises(ValueError, match="not a part of its parent"):
        _core.Plan((4,), (2,), 1, 1, [(4, start, stop, None, parent)])


@pytest.mark.parametrize("parent", [GOOD[:7], list(GOOD), (*GOOD[:7], "x"), (*GOOD[:7], None), 7], ids=str)
def test_the_core_refuses_a_parent_of_another_form(parent):
    with pytest.raises(TypeError, match="parent"):
        _core.Plan((4,), (2,), 1, 1, [(4, np.array([0, 1]), np.array([3, 4]), None, parent)])


def test_a_parent_whose_windows_need_too_much_memory_is_refused():
    far = (2**47, 2**47, 0, 0, 2**46, 2, 1, 1)
    with pytest.raises(MemoryError):
        _core.Plan((4,), (2,), 1, 1, [(4, np.array([0, 1]), np.array([3, 4]), None, far)])


@pytest.mark.parametrize("seed", range(300))
def test_any_parent_that_is_accepted_gives_finite_sums(seed):
    """A caller of the core may claim anything: it must not read or write elsewhere."""
    rng = np.random.default_rng(seed)
    axes, lengths = [], []
    for _ in range(2):
        n = int(rng.integers(3, 30))
        start = np.sort(rng.integers(0, n, int(rng.integers(1, 40))))
        stop = np.minimum(start + int(rng.integers(1, n + 1)), n)
        origin, first, more = (int(v) for v in rng.integers(0, 50, 3))
        parent = (
            n + origin + more,
            len(start) + first + more,
            origin,
            first,
            *(int(v) for v in rng.integers(1, 60, 2)),
            1,
            1,
        )
        axes.append((n, start, stop, None, parent))
        lengths.append((n, len(start)))
    source, dest = (tuple(side) for side in zip(*lengths, strict=True))
    try:
        plan = _core.Plan((*source, 3), (*dest, 3), 1, 3, axes)
    except ValueError:
        return
    assert np.isfinite(_core.fold(plan, Mean.EXACT, rng.standard_normal((*source, 3)))).all()
    assert np.isfinite(_core.spread(plan, Share.WHOLE, False, rng.standard_normal((*dest, 3)))).all()
