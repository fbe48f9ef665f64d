"""The names of schedules: which row of src/core/verbs/schedules.hpp runs a call."""

import re
from pathlib import Path

import numpy as np
import pytest

import poolgrad
from poolgrad import _core, reference
from poolgrad._kernels import native
from poolgrad._ops.semantics import Mean, Share, Start
from poolgrad.windows import Axis, Plan, sliding_axis

ROWS = _core.isa() in ("x86-64-v3", "x86-64-v4")  # the levels that have the schedules of packed rows


@pytest.fixture(autouse=True)
def _two_shuffles():
    """Choose as on a processor that shuffles two vectors per cycle, on every machine."""
    _core.shuffles_of(2)
    yield
    _core.shuffles_of(0)


def sliding(shape, window, stride=1, first=True):
    """Return a plan of windows without padding: over the last axes, or, channels last, over all but the first and the last."""
    spatial = range(len(shape) - 2, len(shape)) if first else range(1, len(shape) - 1)
    return Plan(
        shape, {a: sliding_axis(shape[a], window, stride, 0, (shape[a] - window) // stride + 1) for a in spatial}
    )


def uneven(shape):
    """Return a plan of windows that never repeat, over the last two axes."""
    axes = {}
    for a in (len(shape) - 2, len(shape) - 1):
        start = np.cumsum([0, 1, 2, 1, 3, 2])
        axes[a] = Axis(shape[a], start, np.minimum(start + np.array([2, 3, 3, 4, 2, 3]), shape[a]))
    return Plan(shape, axes)


SIGNAL = Plan((3, 4000), {1: sliding_axis(4000, 100, 1, 0, 3901)})
SIGNAL_APART = Plan((3, 4000), {1: sliding_axis(4000, 100, 100, 0, 40)})
LAST, FIRST = sliding((2, 20, 20, 64), 3, 2, first=False), sliding((64, 40, 40), 3)

# verb, dtype, plan, rule, the name on levels with packed rows, the name on others
CASES = {
    "channels last": ("select", "float32", LAST, None, "direct", "direct"),
    "a mean, channels last": ("fold", "float32", LAST, None, "direct", "direct"),
    "long windows": ("select", "float32", sliding((1, 80, 80, 8), 31, first=False), None, "sliding", "sliding"),
    "a mean of long windows": ("fold", "float32", sliding((4, 80, 80), 31), None, "sliding", "sliding"),
    "a strict mean of long windows": (
        "fold",
        "float32",
        sliding((1, 80, 80, 64), 31, first=False),
        Mean.STRICT,
        "direct",
        "direct",
    ),
    "one window over all": ("select", "float32", sliding((64, 8, 8), 8), None, "along", "along"),
    "long windows far apart": ("select", "uint8", SIGNAL_APART, None, "along", "along"),
    "sums of long windows far apart": ("fold", "float32", SIGNAL_APART, Mean.TOTAL, "along", "along"),
    "a mean of long windows along one axis": ("fold", "float64", SIGNAL, None, "sliding", "sliding"),
    "the gradient of one window over all": (
        "spread",
        "float32",
        sliding((64, 8, 8), 8),
        None,
        "global",
        "transposed_tile",
    ),
    "small planes": ("select", "float32", FIRST, None, "row_band", "transposed_tile"),
    "a mean over small planes": ("fold", "float64", FIRST, None, "row_band", "transposed_tile"),
    "a mean of halves over small planes": ("fold", "bfloat16", FIRST, None, "row_band", "transposed_tile"),
    "a mean over rows shorter than a vector": (
        "fold",
        "float64",
        sliding((64, 5, 5), 3),
        None,
        "transposed_tile",
        "transposed_tile",
    ),
    "a mean of halves, rounded once": ("fold", "float16", FIRST, Mean.ONCE, "transposed_tile", "transposed_tile"),
    "a maximum that starts from its first cell": (
        "select",
        "float32",
        FIRST,
        Start.FIRST,
        "transposed_tile",
        "transposed_tile",
    ),
    "the gradient of a mean over small planes": ("spread", "float32", FIRST, None, "row_band", "transposed_tile"),
    "integer shares": ("spread", "int32", FIRST, Share.QUOTIENT, "transposed_tile", "transposed_tile"),
    "long rows": ("select", "float32", sliding((2, 600, 600), 2, 2), None, "row_band", "direct"),
    "rows shorter than a vector": ("select", "float32", sliding((64, 7, 7), 2, 2), None, "row_band", "transposed_tile"),
    "windows of 5 cells": ("select", "float32", sliding((64, 40, 40), 5), None, "row_band", "sliding"),
    "a mean over long rows": ("fold", "float64", sliding((2, 600, 600), 2, 2), None, "row_band", "direct"),
    "integers": ("select", "int32", FIRST, None, "transposed_tile", "transposed_tile"),
    "windows that never repeat": (
        "select",
        "float32",
        uneven((64, 12, 12)),
        None,
        "transposed_tile",
        "transposed_tile",
    ),
    "few planes whose windows never repeat": ("select", "float32", uneven((2, 12, 12)), None, "direct", "direct"),
    "halves, weighed first": ("spread", "float16", LAST, None, "direct", "direct"),
    "second order over small planes": ("recall", "float32", FIRST, None, "row_band", "transposed_tile"),
    "second order over long rows, windows that overlap": (
        "recall",
        "float32",
        sliding((2, 600, 600), 3, 2),
        None,
        "row_band",
        "direct",
    ),
    "near maxima over small planes": ("near", "float32", FIRST, None, "row_band", "transposed_tile"),
    "taps of planes": ("choose", "float32", FIRST, None, "row_band", "transposed_tile"),
    "taps of few planes": ("choose", "float32", sliding((2, 7, 30), 3), None, "row_band", "direct"),
    "taps of planes smaller than a vector": (
        "choose",
        "float32",
        sliding((64, 7, 7), 3),
        None,
        "transposed_tile",
        "transposed_tile",
    ),
    "taps of more than a byte": (
        "choose",
        "float32",
        sliding((64, 40, 40), 17, 17),
        None,
        "transposed_tile",
        "transposed_tile",
    ),
    "positions": ("argmax", "float32", FIRST, None, "direct", "direct"),
    "given taps, channels last": ("pick", "float32", LAST, None, "direct", "direct"),
    "given taps of planes": ("pick", "float32", FIRST, None, "follow_taps", "follow_taps"),
    "adding at given taps, channels last": ("place", "float32", LAST, None, "direct", "direct"),
    "adding at given taps of planes": ("place", "float32", FIRST, None, "follow_taps", "follow_taps"),
    "a gradient, windows that overlap": ("route", "float32", FIRST, None, "transposed_tile", "transposed_tile"),
    "a gradient of large planes": ("route", "float32", sliding((64, 120, 120), 3), None, "row_band", "transposed_tile"),
    "a gradient, windows side by side": (
        "route",
        "float32",
        sliding((64, 40, 40), 2, 2),
        None,
        "follow_taps",
        "follow_taps",
    ),
    "a gradient of halves, windows side by side": (
        "route",
        "float16",
        sliding((64, 40, 40), 2, 2),
        None,
        "transposed_tile",
        "transposed_tile",
    ),
    "a gradient of halves, few windows": (
        "route",
        "float16",
        sliding((64, 45, 45), 3, 3),
        None,
        "follow_taps",
        "follow_taps",
    ),
    "a gradient over few large planes": ("route", "float32", sliding((2, 400, 400), 3), None, "row_band", "direct"),
    "a gradient, channels last": ("route", "float32", LAST, None, "direct", "direct"),
    "a gradient, many windows over a cell": (
        "route",
        "float32",
        sliding((64, 16, 16), 6),
        None,
        "follow_taps",
        "follow_taps",
    ),
    "the same, channels last": (
        "route",
        "float64",
        sliding((2, 16, 16, 64), 6, first=False),
        None,
        "follow_taps",
        "follow_taps",
    ),
    "a gradient under long windows": (
        "route",
        "float32",
        sliding((1, 80, 80, 8), 31, first=False),
        None,
        "sliding",
        "sliding",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_call_goes_its_way(name):
    verb, dtype, plan, rule, packed, other = CASES[name]
    with poolgrad.threads(1):
        assert native.schedule(plan, verb, dtype, rule) == (packed if ROWS else other)


@pytest.mark.parametrize("name", CASES)
def test_a_plain_plan_visits_every_tap(name):
    verb, dtype, plan, rule, _, _ = CASES[name]
    axes = [(axis.length, axis.start, axis.stop, axis.span) for axis in plan.axes]
    plain = _core.Plan(plan.source, plan.dest, plan.outer, plan.inner, axes, True)
    ways = {"pick": "follow_taps", "place": "follow_taps", "route": "follow_taps"}
    if "mean of long" in name and rule is None:
        ways["fold"] = "sliding"  # the order of long sums is part of the result
    assert _core.schedule(plain, verb, np.empty(0, dtype), rule or 0) == ways.get(verb, "direct")


def results(plan, dtype):
    """Return the results of all verbs that take floats."""
    rng = np.random.default_rng(7)
    x = rng.integers(-9, 9, plan.source).astype(dtype)
    g = rng.standard_normal(plan.dest).astype(dtype)
    y, taps = native.choose(plan, x)
    return {
        "fold": native.fold(plan, Mean.EXACT, x),
        "spread": native.spread(plan, Share.RECIPROCAL, False, g),
        "select": native.select(plan, Start.LOWEST, x),
        "recall": native.recall(plan, x, y, x),
        "near": native.near(plan, 1e-5, x, y, g),
        "route": native.route(plan, x, g),
        "choose": y,
        "taps": taps,
        "pick": native.pick(plan, x, taps),
        "place": native.place(plan, g, taps),
    }


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("make", [lambda: sliding((64, 40, 40), 3), lambda: sliding((2, 600, 600), 2, 2)])
def test_all_ways_have_the_same_bits(make, dtype):
    fast, plain = make(), make()
    native.native(plain, plain=True)
    want = results(plain, dtype)
    assert {name for name, got in results(fast, dtype).items() if got.tobytes() != want[name].tobytes()} == set()


def test_a_route_that_checks_its_maxima_computes_images_one_by_one():
    assert native.schedule(FIRST, "route", "float32", verify=True) == "direct"
    assert native.schedule(sliding((64, 16, 16), 6), "route", "float32", verify=True) == "follow_taps"


def test_the_cut_of_a_call_has_a_say():
    plan, ways = sliding((64, 60, 60), 2, 2), []
    for number in (1, 4):
        with poolgrad.threads(number):
            ways.append(native.schedule(plan, "route", "float32"))
    assert ways == ["follow_taps", "transposed_tile"]  # four threads share items, and so compute parts of them


@pytest.mark.skipif(not ROWS, reason="this level has no row bands")
@pytest.mark.parametrize("shuffles", [1, 2])
def test_slow_shuffles_make_bands_of_more_rows_without_other_bits(shuffles):
    plan = Plan((512, 35, 35), {a: sliding_axis(35, 3, 1, 1, 35) for a in (1, 2)})
    assert _core.shuffles_of(shuffles) == shuffles
    with poolgrad.threads(1):
        assert native.schedule(plan, "route", "float32") == ("row_band" if shuffles == 1 else "transposed_tile")
    _core.shuffles_of(2)
    want = results(plan, "float32")
    _core.shuffles_of(shuffles)
    assert {name: got.tobytes() for name, got in results(plan, "float32").items()} == {
        name: other.tobytes() for name, other in want.items()
    }


@pytest.mark.skipif(not ROWS, reason="this level has no row bands")
def test_large_windows_fill_no_lists_of_taps():
    def able(window):
        axes = {a: sliding_axis(90, window, 1, window // 2, 90) for a in (1, 2)}
        return native.able_schedules(Plan((2, 90, 90), axes), "recall", "float64")

    assert "row_band" in able(16)
    assert "row_band" not in able(17)


@pytest.mark.parametrize("span", [2**22, 2**27 + 5, 2**31 + 1, 2**61])
def test_means_by_huge_spans_have_the_same_bits_on_every_way(span):
    start = np.arange(898)
    axes = {1: sliding_axis(22, 3, 1, 0, 20), 2: Axis(900, start, start + 3, np.full(898, span // 3))}
    x = (np.random.default_rng(2).random((1, 22, 900)) * 4e-31).astype(np.float32)
    want = reference.fold(Plan(x.shape, axes), Mean.SPANNED, x)
    for name in native.able_schedules(Plan(x.shape, axes), "fold", "float32", Mean.SPANNED):
        plan = Plan(x.shape, axes)
        native.native(plan, schedule=name)
        np.testing.assert_array_equal(native.fold(plan, Mean.SPANNED, x), want, name)


def test_a_call_without_cells_runs_nothing():
    assert native.schedule(sliding((0, 8, 8), 2), "fold", "float32") == ""


@pytest.mark.parametrize(
    ("verb", "dtype", "rule", "error"),
    [
        ("gather", "float32", 0, ValueError),
        ("mean", "float32", 0, ValueError),
        ("fold", "float32", 7, ValueError),
        ("select", "float32", -1, ValueError),
        ("recall", "float32", 1, ValueError),
        ("fold", "uint32", 0, TypeError),
        ("fold", "complex64", 0, TypeError),
    ],
)
def test_a_call_that_does_not_exist_has_no_schedule(verb, dtype, rule, error):
    with pytest.raises(error):
        _core.schedule(native.native(LAST), verb, np.empty(0, dtype), rule)


@pytest.mark.skipif(not ROWS, reason="the map is about the levels with packed rows")
def test_the_map_of_schedules_is_true():
    text = Path(__file__).parents[2].joinpath("docs/dev/kernels.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", text.split("### Map")[1].split("\n\n| way |")[0], re.MULTILINE)
    told = {verb: set(re.findall(r"`(\w+)`", names)) for verb, names in rows}
    assert told == {verb: set(_core.schedules_of(verb, np.empty(0, np.float32))) for verb in told}
    assert set(told) == {"fold", "spread", "near", "select", "argmax", "choose", "recall", "route", "pick", "place"}
