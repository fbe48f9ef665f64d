"""Axes, plans, taps and operators survive pickling and copying, before and after use, without their caches."""

import copy
import pickle

import numpy as np
import pytest
from support import python, same_bits

import poolgrad as pg
from poolgrad._common.errors import ArgumentErrors
from poolgrad._kernels import native
from poolgrad._pooling.means import Division, folding
from poolgrad._pooling.sources import lay_out
from poolgrad._pooling.window_args import PooledAxes

WAYS = {
    **{f"pickle {p}": lambda v, p=p: pickle.loads(pickle.dumps(v, p)) for p in range(pickle.HIGHEST_PROTOCOL + 1)},
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "deepcopy in a list": lambda v: copy.deepcopy([v])[0],
}


def axes():
    yield "sliding", pg.sliding_axis(7, 3, 2, 1, 4)
    yield "cut", pg.Axis(5, [0, 1, 3], [2, 4, 5], span=[3, 3, 3])
    yield "empty in the middle", pg.Axis(5, [0, 2, 2, 3], [2, 2, 3, 5])
    yield "no windows", pg.Axis(5, [], [])
    yield "apart", pg.plan((9,), 3, 1, dilation=2).axes[0]
    yield "ends before it starts", pg.Axis(4, [0, 1], [-1, 0], step=2)
    yield "long", pg.sliding_axis(1 << 20, 2, 2, 0, 1 << 19)
    yield "far", pg.Axis(1 << 40, [0, 1 << 36], [5, 1 << 40])


AXES = dict(axes())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", AXES)
def test_an_axis_comes_back_as_it_was(name, way):
    axis = AXES[name]
    again = WAYS[way](axis)
    assert (again.length, again.step) == (axis.length, axis.step)
    for field in ("start", "stop", "span", "count"):
        table = getattr(again, field)
        assert np.array_equal(table, getattr(axis, field))
        assert table.dtype == np.int64
        assert not table.flags.writeable
    assert again.identity == axis.identity


def operators():
    """Yield, by name, an operator of every kind, over channels last viewed as channels first where it matters."""
    x = np.random.default_rng(4).integers(0, 4, (2, 3, 6, 5)).astype(np.float32)
    turned = x.transpose(0, 3, 1, 2)
    plan = pg.plan(x.shape, (2, 3), (1, 2), axes=(2, 3))
    for ties in ("first", "last", "all", "split"):
        yield f"maximum {ties}", pg.max_operator(x, plan, ties=ties)[1]
    yield "in memory order", pg.max_operator(turned, pg.plan(turned.shape, 2, axes=(2, 3)))[1]
    yield "split in memory order", pg.min_operator(turned, pg.plan(turned.shape, 2, axes=(2, 3)), ties="split")[1]
    yield "averaging", pg.averaging(plan)
    yield "padded", pg.averaging(pg.plan(x.shape, 3, 2, padding=1, axes=(2, 3)), count_include_pad=True)
    yield "divisor", pg.averaging(plan, divisor=3)
    yield "summing", pg.summing(plan)
    yield "apart", pg.averaging(pg.plan(x.shape, 2, 1, dilation=2, axes=2))
    yield "picking", pg.picking(pg.plan((4,), 2), np.array([1, 0], np.uint8))
    _, taps = pg.max_pool(x, 2, 1, axes=(2, 3), return_taps=True)
    yield "unpooling", pg.unpooling(taps)
    yield "unpooling assign", pg.unpooling(taps, reduce="assign")
    yield "positions", pg.unpooling(np.array([[0, 2], [1, 1]]), (2, 3), items=2)
    yield "positions assign", pg.unpooling(np.array([[0, 2], [1, 1]]), (2, 3), "assign", 2)
    nans = np.array([1.0, np.nan, 3.0, 4.0])
    cells, layout = lay_out(ArgumentErrors("test"), nans, PooledAxes((0,), pg.plan((4,), 2)))
    yield "masked", folding("avg_pool", layout, Division(True, nan="ignore"), cells)


OPERATORS = dict(operators())


def results(operator):
    v = np.random.default_rng(6).standard_normal(operator.source).astype(np.float32)
    g = np.random.default_rng(7).standard_normal(operator.dest).astype(np.float32)
    return operator(v), operator.T(g)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_comes_back_with_the_same_bits(name, way):
    operator = OPERATORS[name]
    for one in (operator, operator.T):
        for _ in range(2):  # the second time after use
            again = WAYS[way](one)
            assert repr(again) == repr(one)
            assert again.T.T is again
            for a, b in zip(results(again), results(one), strict=True):
                assert a.strides == b.strides
                assert same_bits(a, b).all()
    assert operator.T.T is operator


def test_taps_come_back():
    x = np.random.default_rng(4).integers(0, 4, (2, 3, 6, 5))
    y, taps = pg.max_pool(x, 2, 1, axes=(2, 3), return_taps=True)
    pg.unpool(y, taps)
    for way in WAYS.values():
        again = way(taps)
        assert np.array_equal(again.values, taps.values)
        assert np.array_equal(again.plane(), taps.plane())
        assert (again.axes, again.shape) == (taps.axes, taps.shape)
        assert np.array_equal(pg.unpool(y, again), pg.unpool(y, taps))
        assert not again.values.flags.writeable


def test_pickles_hold_no_native_plans_and_no_caches():
    x = np.random.default_rng(0).random((64, 64))
    plan = pg.plan(x.shape, 2)
    fresh = len(pickle.dumps(plan))
    y, operator = pg.max_operator(x, plan, ties="split")
    _, picking = pg.max_operator(x, plan)
    sizes = {name: len(pickle.dumps(p)) for name, p in (("split", operator), ("first", picking))}
    for p in (operator, picking):
        p.T(y), p(x)
    native.native(plan)
    assert len(pickle.dumps(plan)) == fresh < 600
    assert len(pickle.dumps(operator)) == sizes["split"] < x.nbytes + y.nbytes + 2000
    assert len(pickle.dumps(picking)) == sizes["first"] < 1024 + 2000
    assert len(pickle.dumps(AXES["long"])) < 5 << 20


def test_equal_plans_of_pickles_are_shared():
    plan = pg.plan((8, 8), 2)
    data = pickle.dumps(plan)
    one, two = pickle.loads(data), pickle.loads(data)
    assert one is two
    assert one.axes[0] is two.axes[1]
    assert "_native" not in one.__dict__ or plan is one


CHILD = """
import pickle, sys
import numpy as np
import poolgrad as pg
operators, taps, plan, v = pickle.load(open(sys.argv[1], "rb"))
made = [(P(np.ones(P.source)), P.T(np.ones(P.dest))) for P in operators]
pickle.dump((made, taps.flat(), pg.summing(plan)(v)), open(sys.argv[2], "wb"))
"""


def test_pickles_serve_another_process(tmp_path):
    x = np.random.default_rng(3).random((6, 6))
    _, taps = pg.max_pool(x, 2, return_taps=True)
    plan, given = pg.plan((6, 6), 3, 1), list(OPERATORS.values())
    want = [(p(np.ones(p.source)), p.T(np.ones(p.dest))) for p in given]
    (tmp_path / "in").write_bytes(pickle.dumps((given, taps, plan, x)))
    done = python("-c", CHILD, str(tmp_path / "in"), str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    made, flat, sums = pickle.loads((tmp_path / "out").read_bytes())
    for pair, wanted in zip(made, want, strict=True):
        assert all(same_bits(a, b).all() for a, b in zip(pair, wanted, strict=True))
    assert np.array_equal(flat, taps.flat())
    assert np.array_equal(sums, pg.summing(plan)(x))


def test_a_spoilt_pickle_makes_no_axis():
    data = pickle.dumps(pg.Axis(5, [0, 1, 3], [2, 4, 5]))
    assert data.count(b"\x02\x04\x05") == 1
    with pytest.raises(ValueError, match="Axis: start, stop: got windows"):
        pickle.loads(data.replace(b"\x02\x04\x05", b"\x02\x04\x06"))
