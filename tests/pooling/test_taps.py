"""Taps and their uses: positions of other libraries and back, unpooling, bytes held."""

import re

import ml_dtypes
import numpy as np
import pytest
from brute import WORDS, cells_of, reduce

import poolgrad as pg
from poolgrad import reference
from poolgrad._kernels import native
from poolgrad._ops.semantics import Start

rng = np.random.default_rng(11)


def ties(shape):
    return rng.integers(0, 4, shape).astype(np.float32)


@pytest.mark.parametrize(("shape", "words"), WORDS, ids=lambda v: str(v))
@pytest.mark.parametrize("rule", ["first", "last"])
def test_taps_name_the_chosen_cell(shape, words, rule):
    x, cells = ties(shape), cells_of(shape, words)
    y, taps = pg.max_pool(x, **words, ties=rule, return_taps=True)
    pick = (lambda hits: hits[0]) if rule == "first" else (lambda hits: hits[-1])

    def place(values, reads):
        return np.ravel_multi_index(pick([r for v, r in zip(values, reads, strict=True) if v == max(values)]), shape)

    wanted = reduce(x, cells, place).astype(np.int64)
    assert np.array_equal(taps.flat(), wanted)
    assert np.array_equal(x.ravel()[taps.flat()], y)
    assert np.array_equal(taps.operator(x), y)
    again = pg.Taps.from_flat(taps.flat(), taps.operator.plan)
    assert np.array_equal(again.values, taps.values)


def test_positions_as_other_libraries_count_them():
    x = rng.standard_normal((2, 3, 5, 6)).astype(np.float32)  # channels first
    _, taps = pg.max_pool(x, 2, axes=(2, 3), return_taps=True)
    plane, flat = taps.plane(), taps.flat()
    base = np.arange(6).reshape(2, 3, 1, 1) * 30
    assert np.array_equal(flat, plane + base)
    assert np.array_equal(taps.flat(batch=False), flat % 90)
    rows, cols = plane // 6, plane % 6
    assert np.array_equal(taps.onnx(storage_order=1), base + cols * 5 + rows)
    assert np.array_equal(taps.onnx(), flat)
    assert np.array_equal(pg.Taps.from_plane(plane, taps.operator.plan).values, taps.values)
    assert np.array_equal(pg.Taps.from_flat(flat % 90, taps.operator.plan, batch=False).values, taps.values)


def test_tensorflows_argmax_is_the_flat_position():
    x = rng.standard_normal((2, 6, 6, 3)).astype(np.float32)
    _, taps = pg.max_pool(x, 3, 2, padding="same", layout="NHWC", return_taps=True)
    sizes = {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    for batch in (True, False):
        raw = pg.raw_ops.MaxPoolWithArgmax(input=x, include_batch_in_index=batch, **sizes)
        assert np.array_equal(taps.flat(batch), raw.argmax)


def test_a_tap_takes_a_byte_up_to_256_cells():
    x = np.zeros((64, 64))
    assert pg.max_pool(x, 16, return_taps=True)[1].nbytes == 16
    assert pg.max_pool(x, 32, return_taps=True)[1].values.dtype == np.uint32


def test_positions_outside_their_window_are_refused():
    plan = pg.plan((4, 4), 2)
    with pytest.raises(ValueError, match=r"Taps.from_flat: index: got a position outside its window at \[0, 1\]"):
        pg.Taps.from_flat(np.array([[0, 0], [8, 10]]), plan)
    with pytest.raises(ValueError, match=r"wanted \[2, 2\], one position per window"):
        pg.Taps.from_flat(np.array([0]), plan)
    with pytest.raises(TypeError, match="index: got dtype float64"):
        pg.Taps.from_plane(np.zeros((2, 2)), plan)


PLANS = {
    "all axes": pg.plan((4, 4), 2),
    "one axis": pg.plan((3, 6), 2, axes=1),
    "a batch": pg.plan((2, 4, 4, 3), 2, axes=(1, 2)),
    "apart": pg.plan((9,), 2, 1, dilation=3),
}
ASTRAY = (-1, -(2**31), -(2**63), 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1)


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("read", ["from_flat", "from_plane", "from_flat without batch"])
def test_positions_out_of_range_are_refused_by_index(name, read):
    plan = PLANS[name]
    if "without" in read and plan.by_dimension[0] is not None:
        with pytest.raises(ValueError, match=r"Taps.from_flat: batch: got False, wanted True where axis 0 is pooled"):
            pg.Taps.from_flat(np.zeros(plan.dest, np.int64), plan, batch=False)
        return
    _, taps = pg.max_pool(
        rng.random(plan.source),
        [a for a in plan.by_dimension if a is not None],
        return_taps=True,
        axes=[d for d, a in enumerate(plan.by_dimension) if a is not None],
    )
    words = {"batch": False} if "without" in read else {}
    method, op = read.split()[0], f"Taps.{read.split()[0]}"
    fine = {"from_flat": taps.flat, "from_plane": taps.plane, "from_flat without batch": lambda: taps.flat(False)}[
        read
    ]()
    again = getattr(pg.Taps, method)
    assert np.array_equal(again(fine, plan, **words).values, taps.values)
    sizes = plan.source if read == "from_flat" else plan.source[1:] if words else [plan.source[d] for d in taps.axes]
    cells, at = int(np.prod(sizes)), tuple(n - 1 for n in plan.dest)
    for value in (*ASTRAY, cells, cells + 1):
        index = fine.astype(np.uint64 if value >= 2**63 else np.int64)
        index[at] = value
        text = f"{op}: index: got {value} at {list(at)}, wanted positions from 0 to {cells - 1}"
        with pytest.raises(ValueError, match=re.escape(text)):
            again(index, plan, **words)
    for dtype in (bool, np.float32, complex, object):
        with pytest.raises(TypeError, match=rf"{op}: index: got dtype \w+, wanted integers"):
            again(fine.astype(dtype), plan, **words)
    with pytest.raises(TypeError, match=f"{op}: plan: got None, wanted a Plan"):
        again(fine, None, **words)


def test_positions_without_cells_or_windows():
    none = pg.Plan((0, 4), {1: pg.Axis(4, [0, 2], [2, 4])})
    for read in (pg.Taps.from_flat, pg.Taps.from_plane):
        assert read(np.zeros((0, 2), np.int64), none).values.shape == (0, 2)
        with pytest.raises(ValueError, match=r"index: got 0 at \[0\], wanted no positions, as there are no cells"):
            read(np.zeros(1, np.int64), pg.Plan((0,), {0: pg.Axis(0, [0], [0])}))
    with pytest.raises(TypeError, match=r"Taps.from_flat: batch: got 'no', wanted True or False"):
        pg.Taps.from_flat(np.zeros((0, 2), np.int64), none, batch="no")


@pytest.mark.parametrize(
    ("index", "words", "error", "text"),
    [
        (
            np.array([0, 2**64 - 1], np.uint64),
            {},
            ValueError,
            r"taps: got 18446744073709551615 at \[1\], wanted positions",
        ),
        ([0, 1], {"shape": (10**30,)}, ValueError, "shape: got .*, wanted a shape that an array can have"),
        ([], {"shape": (0, 2**40, 2**40)}, ValueError, "shape: got .*, wanted a shape that an array can have"),
        ([0, 1], {"shape": [1] * 65}, ValueError, "shape: got .*, wanted a shape that an array can have"),
        (
            [0, 1],
            {"shape": (2**40, 2**10)},
            MemoryError,
            r"shape: got a result of shape .* or more: 1125899906842624 bytes",
        ),
        ([0, 1], {"shape": (2**50,), "reduce": "assign"}, MemoryError, "shape: got a result of shape"),
        ([0, 1], {"items": "2"}, ValueError, "items: got '2', wanted a number that divides both arrays"),
        ([0, 1], {"items": 2.0}, ValueError, "items: got 2.0, wanted a number that divides both arrays"),
        ([0, 1], {"shape": (0,)}, ValueError, r"taps: got 0 at \[0\], wanted no positions"),
    ],
)
def test_unpool_refuses_what_it_cannot_follow_or_hold(index, words, error, text):
    index = np.array(index, np.int64) if isinstance(index, list) else index
    with pytest.raises(error, match=f"^unpool: {text}"):
        pg.unpool(np.ones(index.shape), index, **{"shape": (4,), **words})


def test_unpooling_conserves_or_keeps_the_last():
    y, taps = pg.max_pool(np.array([1.0, 5.0, 2.0, 4.0]), 2, 1, return_taps=True)
    assert y.tolist() == [5, 5, 4]
    v = np.array([1.0, 10.0, 100.0])
    assert pg.unpool(v, taps).tolist() == [0, 11, 0, 100]
    assert pg.unpool(v, taps, reduce="assign").tolist() == [0, 10, 0, 100]
    for reduce_, want in (("sum", [1, 1, 1]), ("assign", [0, 1, 1])):
        _, back = pg.vjp(lambda u, r=reduce_: pg.unpool(u, taps, reduce=r), v)
        assert back(np.ones(4)).tolist() == want
    assert pg.unpool(v, taps.flat(), shape=(4,)).tolist() == [0, 11, 0, 100]
    with pytest.raises(ValueError, match=r"unpool: taps: got 9 at \[2\], wanted positions from 0 to 3"):
        pg.unpool(v, np.array([1, 1, 9]), shape=(4,))
    with pytest.raises(ValueError, match="unpool: reduce: got 'max', wanted 'sum' or 'assign'"):
        pg.unpool(v, taps, reduce="max")


def test_positions_count_within_their_parts():
    y = np.array([[1.0, 2.0], [3.0, 4.0]])
    index = np.array([[0, 2], [1, 1]])
    assert pg.unpool(y, index, shape=(2, 3), items=2).tolist() == [[1, 0, 2], [0, 7, 0]]
    assert pg.unpool(y, index, shape=(2, 3), items=2, reduce="assign").tolist() == [[1, 0, 2], [0, 4, 0]]


def test_layouts_are_pooled_where_they_lie(monkeypatch):
    from poolgrad._common import arrays

    x = rng.standard_normal((2, 8, 8, 3)).astype(np.float32)
    seen = x.transpose(0, 3, 1, 2)  # channels first to look at, channels last in memory
    want = pg.max_pool(np.ascontiguousarray(seen), 3, 2, padding=1, axes=(2, 3), return_taps=True)
    monkeypatch.setattr(arrays, "_copy", lambda array: pytest.fail("an array was copied"))
    y, taps = pg.max_pool(seen, 3, 2, padding=1, axes=(2, 3), return_taps=True)
    assert y.transpose(0, 2, 3, 1).flags.c_contiguous
    assert np.array_equal(y, want[0])
    assert np.array_equal(taps.values, want[1].values)
    dx = taps.operator.T(y)
    assert dx.strides == seen.strides
    mean = pg.avg_pool(seen, 2, axes=(2, 3))
    assert mean.transpose(0, 2, 3, 1).flags.c_contiguous


def test_out_is_filled():
    x = rng.standard_normal((4, 4))
    for pool in (pg.max_pool, pg.min_pool, pg.avg_pool, pg.sum_pool, pg.lp_pool):
        out = np.full((2, 2), -1.0)
        assert pool(x, 2, out=out) is out
        assert np.array_equal(out, pool(x, 2))
    with pytest.raises(ValueError, match=r"max_pool: out: got shape \[3\], wanted \[2, 2\]"):
        pg.max_pool(x, 2, out=np.zeros(3))
    with pytest.raises(TypeError, match="avg_pool: out: got dtype int64"):
        pg.avg_pool(x, 2, out=np.zeros((2, 2), np.int64))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_nan_is_seen_wherever_it_is(dtype):
    from poolgrad._pooling.selection import has_nan

    x = np.zeros(9 * 65536 + 77, dtype)
    x[0], x[1024] = np.inf, -np.inf
    assert not has_nan(x)
    for at in (0, 5, 65535, 65536, 8 * 65536 + 3, x.size - 1):
        for nan in (np.nan, -np.nan):
            x[at], kept = nan, x[at]
            assert has_nan(x)
            x[at] = kept


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3, 70, 90, 70), (130, 90, 40), (2, 300, 500, 3)], ids=str)
def test_one_nan_anywhere_is_in_its_windows(dtype, shape):
    x = rng.integers(-9, 9, shape).astype(dtype)
    axes = (1, 2) if len(shape) == 4 else (1,)
    clean = pg.max_pool(x, 3, 2, axes=axes)
    for _ in range(6):
        at = tuple(int(rng.integers(n)) for n in shape)
        spoilt = x.copy()
        spoilt[at] = np.nan
        expected = clean.copy()
        hit = tuple(slice(max(0, (a - 1) // 2), a // 2 + 1) if d in axes else a for d, a in enumerate(at))
        expected[hit] = np.nan
        y, picks = pg.max_operator(spoilt, pg.plan(shape, (3,) * len(axes), (2,) * len(axes), axes=axes))
        assert np.array_equal(pg.max_pool(spoilt, 3, 2, axes=axes), expected, equal_nan=True)
        assert np.array_equal(y, expected, equal_nan=True)
        assert np.array_equal(picks(spoilt), expected, equal_nan=True)
        without = x.copy()
        without[at] = -100
        assert np.array_equal(pg.max_pool(spoilt, 3, 2, axes=axes, nan="ignore"), pg.max_pool(without, 3, 2, axes=axes))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shape", [(1, 200, 64, 64), (2, 300, 500, 3), (130, 90, 40, 1)], ids=str)
def test_what_is_looked_through_part_by_part_is_written_without_gaps(shape, threads):
    plan = pg.plan(shape, 3, 2, axes=(1, 2))
    x = rng.integers(-9, 9, shape).astype(np.float32)
    filled = np.full(plan.dest, 77, np.float32)  # what no window has
    with pg.threads(threads):
        assert native.select(plan, Start.LOWEST, x, filled, True) is filled
        assert np.array_equal(filled, reference.select(plan, Start.LOWEST, x))
