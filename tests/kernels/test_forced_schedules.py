"""Plans bound to one schedule: every schedule that can run a call gives the bits of the simplest way, others are refused."""

from collections import Counter

import ml_dtypes
import numpy as np
import pytest
from support import draw, dtype_of

import poolgrad
from poolgrad import _core
from poolgrad._kernels import native
from poolgrad._ops.semantics import Mean, Share, Start
from poolgrad.windows import Axis, Plan, sliding_axis

VERBS = ("fold", "spread", "select", "recall", "near", "choose", "argmax", "route", "pick", "place")
FLOATS, INTEGERS = ("float32", "float64", "float16", "bfloat16"), ("int8", "uint8", "int32", "uint64")


def pooled(n, window, stride, before, after):
    """Return an axis of windows that overlap padding at both ends."""
    return sliding_axis(n, window, stride, before, (n + before + after - window) // stride + 1)


def same(n, window, stride):
    """Return an axis with a window per `stride` cells."""
    out = -(-n // stride)
    before = max((out - 1) * stride + window - n, 0) // 2
    return sliding_axis(n, window, stride, before, out)


def uneven(rng, n):
    """Return an axis whose windows do not repeat."""
    start = np.sort(rng.integers(0, n - 3, n // 2))
    return Axis(n, start, np.maximum.accumulate(np.minimum(start + rng.integers(1, 4, start.size), n)))


def random_plan(rng):
    """Return a plan of any rank, layout, window, stride and padding."""
    rank, first = int(rng.integers(1, 4)), rng.random() < 0.6
    sizes = [int(rng.integers(5, (400, 40, 12)[rank - 1])) for _ in range(rank)]
    outer, channels = int(rng.choice([1, 3, 20, 70])), int(rng.choice([1, 2, 5, 9, 12, 33, 64]))
    shape = (outer, channels, *sizes) if first else (outer, *sizes, channels)
    axes, even = {}, rng.random() < 0.85
    for k, n in enumerate(sizes):
        window, stride = int(rng.integers(1, min(n, 7) + 1)), int(rng.integers(1, 4))
        axes[(2 if first else 1) + k] = same(n, window, stride) if even else uneven(rng, n)
    return Plan(shape, axes)


def planes(shape, window, stride=1, padded=True, first=True):
    """Return a plan of equal windows over the spatial axes."""
    spatial = range(2, len(shape)) if first else range(1, len(shape) - 1)
    make = same if padded else (lambda n, k, s: pooled(n, k, s, 0, 0))
    windows = window if isinstance(window, tuple) else (window,) * len(spatial)
    return Plan(shape, {a: make(shape[a], size, stride) for a, size in zip(spatial, windows, strict=True)})


# Plans for the schedules that random ones rarely reach.
CHOSEN = {
    "long windows": lambda: planes((1, 80, 80, 8), 31, 1, False, first=False),
    "long windows of planes": lambda: planes((1, 20, 40, 40), 21, 1),
    "one window over all": lambda: planes((2, 40, 9, 9), 9, 1, False),
    "one window over a signal": lambda: planes((2, 3, 700), 700, 1, False),
    "one window over colours": lambda: planes((2, 20, 50, 3), (20, 50), 1, False, first=False),
    "long windows far apart": lambda: planes((2, 3, 900), 70, 60),
    "long windows of one axis": lambda: planes((3, 2, 300), 90, 1),
    "long windows of one axis, every third": lambda: planes((3, 1, 400), 90, 3, False),
    "long windows of one axis, channels last": lambda: planes((2, 300, 5), 80, 2, first=False),
    "far apart in planes": lambda: planes((2, 2, 60, 100), 20, 20, False),
    "small planes": lambda: planes((2, 40, 14, 14), 3, 2),
    "small volumes": lambda: planes((1, 40, 6, 7, 8), 3, 1),
    "long rows": lambda: planes((1, 2, 40, 600), 3, 2),
    "windows side by side": lambda: planes((2, 70, 12, 12), 2, 2, False),
    "many windows over a cell": lambda: planes((2, 40, 16, 16), 6, 1, False),
    "many windows over a cell, channels last": lambda: planes((2, 16, 16, 64), 6, 1, False, first=False),
    "windows of many cells": lambda: planes((2, 24, 24, 9), 17, 4, False, first=False),
    "nine channels, many images": lambda: planes((70, 8, 8, 9), 2, 2, False, first=False),
    "channels last": lambda: planes((2, 12, 12, 64), 3, 2, first=False),
    "large": lambda: planes((1, 3, 300, 260), 3, 2),
    "large, channels last": lambda: planes((1, 120, 90, 32), 3, 1, first=False),
}


def rules(verb, dtype):
    """Return the rules of a verb that a dtype has."""
    whole = dtype in INTEGERS
    if verb == "fold":
        return [Mean.WIDE] if whole else [Mean.EXACT, Mean.STRICT, Mean.TOTAL, Mean.ONCE, Mean.SPANNED]
    if verb == "spread":
        return [Share.QUOTIENT] if whole else [Share.RECIPROCAL, Share.QUOTIENT, Share.WHOLE]
    return list(Start) if verb == "select" else [None]


def has_verb(verb, dtype):
    """Return True if the core has a verb for a dtype."""
    return not (verb == "fold" and dtype == "uint64") and not (
        verb == "spread" and dtype in ("int8", "uint8", "uint64")
    )


def call(plan, verb, rule, x, g, y, taps):
    """Run a verb; return the bytes of its results."""
    if verb == "fold":
        got = native.fold(plan, rule, x)
    elif verb == "spread":
        got = native.spread(plan, rule, False, g)
    elif verb == "select":
        got = native.select(plan, rule, x)
    elif verb == "recall":
        got = native.recall(plan, x, y, x[::-1].copy())
    elif verb == "near":
        got = native.near(plan, 1e-5, x, y, g)
    elif verb == "choose":
        return b"".join(a.tobytes() for a in native.choose(plan, x))
    elif verb == "argmax":
        return b"".join(a.tobytes() for a in native.argmax(plan, x.size, np.int64, x))
    elif verb == "route":
        got = native.route(plan, x, g)
    elif verb == "pick":
        got = native.pick(plan, x, taps)
    else:
        got = native.place(plan, g, taps)
    return numbers(got)


@np.errstate(invalid="ignore")  # signalling NaN
def numbers(a):
    """Return the bytes of an array; all NaN count as equal."""
    return np.where(a != a, np.array(np.nan, a.dtype), a).tobytes() if a.dtype.kind not in "iu" else a.tobytes()


def bound(plan, schedule):
    """Return a plan of the same windows that one schedule runs; True for the simplest way."""
    twin = Plan(plan.source, {d: axis for d, axis in enumerate(plan.by_dimension) if axis is not None})
    native.native(twin, plain=schedule is True, schedule=None if schedule is True else schedule)
    return twin


def check(plan, verb, dtype, data, seed, ran):
    """Compare every schedule that can run a call with the simplest way; count them."""
    rng = np.random.default_rng(seed)
    x, g = draw(rng, dtype, plan.source, data), draw(rng, dtype, plan.dest, data)
    plain = bound(plan, True)
    y, taps = native.choose(plain, x)
    kind = dtype_of(dtype)
    for rule in rules(verb, dtype):
        want = call(plain, verb, rule, x, g, y, taps)
        able = native.able_schedules(plan, verb, kind, rule)
        named = native.schedule(plan, verb, kind, rule)
        assert set(filter(None, named.split("+"))) <= set(_core.schedules_of(verb, np.empty(0, kind)))
        assert named in able or "+" in named or not min(plan.dest), (plan, verb, dtype, rule, named, able)
        for schedule in _core.schedules_of(verb, np.empty(0, kind)):
            twin = bound(plan, schedule)
            if schedule not in able:
                with pytest.raises(ValueError, match=rf"^{verb}: schedule: got {schedule}, which cannot .* wanted "):
                    call(twin, verb, rule, x, g, y, taps)
                continue
            assert call(twin, verb, rule, x, g, y, taps) == want, (plan.source, plan.dest, verb, dtype, rule, schedule)
            assert native.schedule(twin, verb, kind, rule) in (schedule, "")
            ran[verb, schedule] += 1


@pytest.mark.parametrize("verb", VERBS)
def test_every_schedule_that_can_run_a_call_has_the_bits_of_the_simplest_way(verb):
    ran: Counter[tuple[str, str]] = Counter()
    kinds = [dtype for dtype in FLOATS + INTEGERS if has_verb(verb, dtype)]
    for number, make in enumerate(CHOSEN.values()):
        for dtype in ("float32", FLOATS[1 + number % 3], *kinds[4 + number % 2 :: 2][:1]):
            check(make(), verb, dtype, "ties" if number % 2 else "wild", number, ran)
    rng = np.random.default_rng(17)
    for number in range(60):
        data = ("ties", "wild", "nan", "extreme", "bits")[number % 5]
        check(random_plan(rng), verb, kinds[number % len(kinds)], data, number, ran)
    with poolgrad.threads(3):
        check(CHOSEN["large"](), verb, "float32", "wild", 1, ran)
    table = {name for dtype in kinds for name in _core.schedules_of(verb, np.empty(0, dtype_of(dtype)))}
    assert {name for _, name in ran} == table, ran


@pytest.mark.parametrize("shape", [(1, 20, 7, 7), (1, 3, 40, 61), (2, 3, 6, 9, 20), (3, 2, 90)])
@pytest.mark.parametrize("zeros", [0.01, 0.5])
def test_the_first_zero_of_a_window_in_row_major_order_keeps_its_sign(shape, zeros):
    rng = np.random.default_rng(len(shape))
    x = np.where(rng.random(shape) < zeros, rng.choice([0.0, -0.0], shape), -1.0).astype(np.float32)
    for window, stride, padded in ((2, 1, False), (3, 2, True), (2, 2, False)):
        plan = planes(shape, window, stride, padded)
        want = native.select(bound(plan, True), Start.LOWEST, x).tobytes()
        for schedule in native.able_schedules(plan, "select", np.dtype(np.float32), Start.LOWEST):
            assert native.select(bound(plan, schedule), Start.LOWEST, x).tobytes() == want, (window, stride, schedule)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_window_without_cells_starts_like_other_windows_that_an_edge_cut(dtype):
    rows = Axis(16, np.array([0, 14]), np.array([3, 16]), np.array([6, 6]))  # both cut
    columns = Axis(9, np.array([3, 6, 9]), np.array([6, 9, 9]))  # the last one is empty
    plan = Plan((2, 16, 9), {1: rows, 2: columns})
    x = draw(np.random.default_rng(3), dtype, (2, 16, 9), "ties")
    y = _core.select(native.native(plan), Start.INFINITY, x)
    assert (y[..., 2] == ml_dtypes.finfo(dtype_of(dtype)).min).all()
    assert y.tobytes() == _core.select(native.native(plan, plain=True), Start.INFINITY, x).tobytes()


def test_the_choice_that_a_plan_remembers_is_that_of_a_new_plan():
    for make in CHOSEN.values():
        plan = make()
        x = np.random.default_rng(0).standard_normal(plan.source).astype(np.float32)
        with poolgrad.threads(1):
            first = native.select(plan, Start.LOWEST, x)
            assert all((native.select(plan, Start.LOWEST, x) == first).all() for _ in range(2))
            assert (native.select(make(), Start.LOWEST, x) == first).all()
            dx = native.route(plan, x, first)
            assert native.route(plan, x, first).tobytes() == dx.tobytes() == native.route(make(), x, first).tobytes()


@pytest.mark.parametrize(
    ("bad", "error"), [("fastest", ValueError), ("", ValueError), (1, TypeError), (b"direct", TypeError)]
)
def test_a_plan_is_bound_to_known_schedules_only(bad, error):
    start = np.arange(3)
    with pytest.raises(error, match=r"^schedule: "):
        _core.Plan((1, 4, 1), (1, 3, 1), 1, 1, [(4, start, start + 2, None)], bad)


def test_a_refusal_names_the_schedules_that_can():
    plan = planes((1, 4, 4, 64), 2, 2, first=False)
    native.native(plan, schedule="row_band")
    with pytest.raises(
        ValueError, match=r"^select: schedule: got row_band, which cannot run .*, wanted sliding or direct$"
    ):
        native.select(plan, Start.LOWEST, np.zeros(plan.source, np.float32))
