"""Arrays that change after a call do not change derivatives or operators, and plain pools copy nothing for that."""

import tracemalloc

import numpy as np
import pytest

import poolgrad as pg

PLAN = pg.plan((4, 6), 2)
SLIDING = pg.plan((4, 6), 2, 1)


def fresh(shape=(4, 6)):
    return np.random.default_rng(8).integers(1, 4, shape).astype(float)


def spoil(*arrays):
    for array in arrays:
        if array.flags.writeable:
            array[...] = 7


FUNCTIONS = {
    "max": lambda v: pg.max_pool(v, 2) ** 2,
    "max all": lambda v: pg.max_pool(v, 2, 1, ties="all") ** 2,
    "max split": lambda v: pg.max_pool(v, 2, 1, ties="split") * 3.0,
    "min": lambda v: pg.min_pool(v, 2),
    "avg": lambda v: pg.avg_pool(v, 2) ** 3,
    "lp": lambda v: pg.lp_pool(v, 2),
    "itself": lambda v: v,
    "product": lambda v: v * v,
    "quotient": lambda v: 1 / v + v / (v + 1),
    "power": lambda v: v**3,
    "one": lambda v: v**1,
    "abs": lambda v: abs(v),
    "sum": lambda v: v.sum(),
    "reshaped": lambda v: v.reshape(2, 12) * v.reshape(2, 12),
    "negative": lambda v: -v,
    "sum of itself": lambda v: v + v,
    "global": lambda v: v * pg.global_max_pool(v, ties="all"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_changing_x_y_and_g_after_vjp_does_not_change_derivatives(name):
    f = FUNCTIONS[name]
    y, back = pg.vjp(f, fresh())
    want_y, g = y.copy(), np.random.default_rng(9).integers(1, 5, y.shape).astype(float)
    want = np.array(back(g))
    x = fresh()
    y, back = pg.vjp(f, x)
    spoil(x)
    assert np.array_equal(y, want_y)
    spoil(np.asarray(y))
    sent = g.copy()
    first = back(sent)
    spoil(sent)
    assert np.array_equal(first, want)
    spoil(first)
    assert first.flags.writeable
    assert np.array_equal(back(g), want)
    dy = pg.jvp(f, x, x)[1]
    assert not np.shares_memory(dy, x)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_changing_arrays_of_a_nested_derivative_does_not_change_the_outer_one(name):
    f = FUNCTIONS[name]

    def outer(change):
        def run(a):
            x, v, w = fresh(), fresh() + 1, fresh() - 0.5
            dy = pg.jvp(lambda u: f(u * a), x, v)[1]
            _, back = pg.vjp(lambda u: f((u + a) * w), x)
            g = np.full(dy.shape, 2.0)
            dx = back(g)
            total = (dy * dy).sum() + (dx * w).sum() + (dx / v).sum() + (w * a - v).sum()
            if change:
                spoil(x, v, w, g)
            return total

        return run

    assert np.array_equal(pg.grad(outer(True), fresh()), pg.grad(outer(False), fresh()))


def operators():
    """Yield, by name, the arrays that an operator is made from or comes with, and the operator."""
    for name, choose in (("max_operator", pg.max_operator), ("min_operator", pg.min_operator)):
        for ties in ("first", "last", "all", "split"):

            def made(choose=choose, ties=ties):
                x = fresh()
                y, operator = choose(x, SLIDING, ties=ties)
                return (x, y), operator

            yield f"{name} {ties}", made

    def picking():
        taps = np.random.default_rng(1).integers(0, 4, PLAN.dest).astype(np.uint8)
        return (taps,), pg.picking(PLAN, taps)

    def picking_wider():
        taps = np.random.default_rng(1).integers(0, 4, PLAN.dest)
        return (taps,), pg.picking(PLAN, taps)

    def taps(reduce):
        x = fresh()
        y, taps = pg.max_pool(x, 2, 1, return_taps=True)
        return (x, y, taps.values, taps.flat()), pg.unpooling(taps, reduce=reduce)

    def positions(reduce, dtype):
        index = np.array([[1, 1, 5], [23, 0, 7]], dtype)
        return (index,), pg.unpooling(index, (4, 6), reduce)

    def boundaries():
        start, stop = np.array([0, 2]), np.array([2, 4])
        axis = pg.Axis(4, start, stop)
        return (start, stop), pg.averaging(pg.Plan((4, 6), {0: axis}))

    def pairs():
        windows = np.array([[0, 2], [2, 4]])
        return (windows,), pg.averaging(pg.plan((4, 6), [windows], axes=0))

    yield "picking", picking
    yield "picking, wider taps", picking_wider
    yield "boundaries", boundaries
    yield "pairs", pairs
    for reduce in ("sum", "assign"):
        yield f"unpooling {reduce}", lambda r=reduce: taps(r)
        for dtype in (np.int64, np.int32, np.uint8):
            yield f"unpooling {reduce} positions {np.dtype(dtype)}", lambda r=reduce, t=dtype: positions(r, t)


OPERATORS = dict(operators())


@pytest.mark.parametrize("name", OPERATORS)
def test_changing_arrays_does_not_change_an_operator(name):
    _, untouched = OPERATORS[name]()
    want, back = untouched.matrix(), untouched.T.matrix()
    arrays, operator = OPERATORS[name]()
    spoil(*arrays)
    assert np.array_equal(operator.matrix(), want)
    assert np.array_equal(operator.T.matrix(), back)


def test_the_values_of_taps_are_not_to_be_written():
    x = fresh()
    _, taps = pg.max_pool(x, 2, return_taps=True)
    for array in (taps.values, pg.max_pool(x.T, 2, return_taps=True)[1].values):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1


def test_positions_of_a_traced_unpool_are_kept_as_they_were():
    index, y = np.array([0, 3, 3]), np.array([1.0, 2.0, 3.0])
    for reduce, want in (("sum", [0, 9, 9]), ("assign", [0, 0, 9])):
        positions = index.copy()
        _, back = pg.vjp(lambda v, p=positions, r=reduce: pg.unpool(v, p, (4,), reduce=r), y)
        spoil(positions)
        assert back(np.array([0.0, 7.0, 8.0, 9.0])).tolist() == want


def _peak(call):
    call()
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_plain_calls_copy_nothing_for_later():
    """tracemalloc does not see the core's results: NumPy made everything that it sees here."""
    n = 1 << 18
    x, index = np.random.default_rng(0).random(n), np.arange(0, n, 2)
    y = x[::2].copy()
    assert _peak(lambda: pg.max_pool(x, 2)) < x.nbytes / 8
    assert _peak(lambda: pg.avg_pool(x, 2)) < x.nbytes / 8
    assert _peak(lambda: pg.max_pool(x, 2, return_taps=True)) < x.nbytes / 8 + n
    assert _peak(lambda: pg.unpool(y, index, (n,))) < index.nbytes / 2
    assert _peak(lambda: pg.vjp(lambda v: pg.max_pool(v, 2), x)) < x.nbytes / 8 + n, "the tape needs the taps alone"
