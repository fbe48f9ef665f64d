"""Windows along a long axis are a formula: forward calls cut them into parts, which share tables and change no bit."""

import subprocess
import sys

import numpy as np
import pytest

import poolgrad as pg
from poolgrad import raw_ops
from poolgrad._kernels import native
from poolgrad._windows.plan import forward_parts
from poolgrad._windows.regular import LONG
from poolgrad._windows.sliding import slide

# length, window, stride, padding before and after
AXES = [
    (LONG + 9990, 3, 1, (0, 0)),
    (2 * LONG, 3, 1, (1, 1)),
    (2 * LONG + 7, 2, 2, (0, 0)),
    (3 * LONG, 5, 3, (2, 4)),
    (2 * LONG, 101, 1, (50, 50)),
    (2 * LONG + 1, 1001, 1, (1000, 0)),
    (2 * LONG + 5000, 1001, 2, (0, 1000)),
    (4 * LONG + 900, 301, 4, (7, 0)),
    (2 * LONG, 30001, 1, (0, 0)),
    (LONG, 1, 1, (0, 0)),
]
POOLS = {
    "max": lambda x, w: pg.max_pool(x, **w),
    "max ignore": lambda x, w: pg.max_pool(x, nan="ignore", **w),
    "max tf": lambda x, w: pg.max_pool(x, nan="tf", **w),
    "min": lambda x, w: pg.min_pool(x, **w),
    "avg": lambda x, w: pg.avg_pool(x, **w),
    "avg span": lambda x, w: pg.avg_pool(x, count_include_pad=True, **w),
    "avg ignore": lambda x, w: pg.avg_pool(x, nan="ignore", **w),
    "avg by": lambda x, w: pg.avg_pool(x, divisor=7.0, **w),
    "sum": lambda x, w: pg.sum_pool(x, **w),
    "norm": lambda x, w: pg.lp_pool(x, p=2, **w),
    "taps": lambda x, w: pg.max_pool(x, return_taps=True, **w)[1].values,
}


def cells(shape, dtype, nan=False):
    draw = np.random.default_rng(5)
    if np.dtype(dtype).kind in "iu":
        return draw.integers(0, 200, shape).astype(dtype)
    x = draw.standard_normal(shape).astype(dtype)
    if nan:
        x[draw.random(shape) < 0.001] = np.nan
    return x


def tabled(n, k, s, pads):
    """Return the axis as the core had it before: by its tables."""
    axis = slide(n, k, s, 1, pads, False)
    return pg.Axis(n, axis.start, axis.stop, axis.span)


@pytest.mark.parametrize(
    ("n", "k", "s", "pads", "dtype"),
    [(*axis, dtype) for i, axis in enumerate(AXES) for dtype in ("float32", ("uint8", "float64")[i % 2])],
)
def test_parts_have_the_bits_of_tables(n, k, s, pads, dtype):
    assert slide(n, k, s, 1, pads, False).formula is not None
    words = {"window": k, "stride": s, "padding": [pads]}
    for nan in (False, True) if dtype == "float32" else (False,):
        x = cells(n, dtype, nan)
        for name, pool in POOLS.items():
            if (dtype == "uint8" and name == "norm") or (k > 1000 and name in ("taps",)):
                continue
            np.testing.assert_array_equal(pool(x, words), pool(x, {"window": [tabled(n, k, s, pads)]}), name)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [((2, LONG + 999), (1,)), ((LONG + 999, 3), (0,)), ((LONG + 999, 4), (0, 1)), ((2, LONG + 999, 3, 2), (1, 2))],
)
@pytest.mark.parametrize("k", [3, 70])
def test_other_axes_stay_as_they_are(shape, axes, k):
    x = cells(shape, "float32")
    window = [k, 2][: len(axes)]
    words = {"window": window, "stride": 1, "axes": axes}
    plan = pg.plan(shape, **words)
    assert len({part for _, part in forward_parts(plan)}) <= 4
    tables = {"window": [tabled(shape[d], w, 1, (0, 0)) for d, w in zip(axes, window, strict=True)], "axes": axes}
    for name, pool in POOLS.items():
        np.testing.assert_array_equal(pool(x, words), pool(x, tables), name)


def test_parts_share_plans():
    parts = forward_parts(pg.plan((20_000_000,), 1001, 1))
    assert len(parts) > 50
    assert len({part for _, part in parts}) <= 4


def test_windows_as_long_as_the_axis_have_tables():
    assert forward_parts(pg.plan((LONG * 3,), LONG * 2, 1)) is None


def test_derivatives_read_the_tables():
    x = cells(LONG + 50, "float32")
    dx = pg.grad(lambda v: pg.max_pool(v, 3, 1).sum(), x)
    assert dx.sum() == len(x) - 2


def test_operators_take_parts_too():
    x = cells((1, LONG + 50, 1, 1), "float32")
    words = {"ksize": [1, 3, 1, 1], "strides": [1, 1, 1, 1], "padding": "SAME"}
    flat = x.reshape(-1)
    for op, pool in ((raw_ops.MaxPool, pg.max_pool), (raw_ops.AvgPool, pg.avg_pool)):
        found = np.asarray(op(**{"input" if op is raw_ops.MaxPool else "value": x}, **words)).reshape(-1)
        np.testing.assert_array_equal(found, pool(flat, 3, 1, padding="same"))


def test_who_watches_sees_the_whole_call():
    from poolgrad import config

    calls = config.schedule(pg.max_pool, cells(LONG + 50, "float32"), 3, 1)
    assert list(calls) == ["select"]


def test_the_first_call_takes_little_memory():
    code = (
        "import numpy as np, poolgrad as pg, resource\n"
        "x = np.zeros(10_000_000, np.float32); pg.max_pool(x[:99], 3, 1)\n"
        "most = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = most()\n"
        "for pool in (pg.max_pool, pg.min_pool, pg.avg_pool, pg.sum_pool): pool(x, 3, 1)\n"
        "print(most() - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < (2 * 40 + 60) * 1024  # kB: results that the cache of blocks holds, and tables of parts


@pytest.mark.parametrize(
    ("outer", "n", "places"),
    [
        (1, 7, [(0, 0)]),
        (1, 8, [(1, 0)]),
        (1, 8, [(0, 1)]),
        (1, 8, [(0, -1)]),
        (-1, 8, [(0, 0)]),
        (1, 8, []),
        (2, 8, [(0, 0)]),
    ],
)
def test_the_core_refuses_parts_that_do_not_fit(outer, n, places):
    plan = native.native(pg.plan((8,), 2))
    with pytest.raises((TypeError, ValueError)):
        native._core.Parts((8,), (4,), outer, n, [plan], places)


def test_parts_without_source_cells_give_neutral_results():
    core, nothing = native._core, np.zeros(2, np.int64)
    plan = core.Plan((0,), (2,), 1, 1, [(0, nothing, nothing, None)])
    parts = core.Parts((0,), (2,), 1, 0, [plan], [(0, 0)])
    x = np.zeros(0, np.float32)
    assert core.select(parts, int(native.Start.LOWEST), x, None, False).tolist() == [np.finfo(np.float32).min] * 2
    assert core.fold(parts, int(native.Mean.TOTAL), x, None).tolist() == [0, 0]


def test_verbs_of_gradients_refuse_parts():
    parts = native.windows(pg.plan((LONG + 9990,), 3, 1))
    assert type(parts).__name__ == "Parts"
    with pytest.raises(TypeError):
        native._core.spread(parts, 0, False, np.zeros(LONG, np.float32), None)
