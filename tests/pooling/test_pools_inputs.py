"""The entry points of the NumPy API: byte orders, objects that become arrays, masked cells, flags and sizes, at each of them."""

import re
import time
from functools import partial

import numpy as np
import pytest

import poolgrad as pg
from poolgrad import raw_ops

PLAN = pg.plan((4, 6), 2)
TAPS = pg.max_pool(np.arange(24.0).reshape(4, 6), 2, return_taps=True)[1]
SIZES = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}

# Every function that takes an array of shape (4, 6); those of the first kind also take integers.
POOLS = {
    "max_pool": lambda x: pg.max_pool(x, 2),
    "max_pool and taps": lambda x: pg.max_pool(x, 2, ties="last", return_taps=True)[1].flat(),
    "min_pool": lambda x: pg.min_pool(x, 2, ties="split"),
    "avg_pool": lambda x: pg.avg_pool(x, 3, 2, padding=1),
    "avg_pool, padding counted": lambda x: pg.avg_pool(x, 3, 2, padding=1, count_include_pad=True),
    "sum_pool": lambda x: pg.sum_pool(x, 2, 1),
    "fractional_max_pool": lambda x: pg.fractional_max_pool(x, 1.5, seed=3),
    "fractional_avg_pool": lambda x: pg.fractional_avg_pool(x, 1.5, seed=3, return_windows=True)[0],
    "adaptive_max_pool": lambda x: pg.adaptive_max_pool(x, 3),
    "adaptive_avg_pool": lambda x: pg.adaptive_avg_pool(x, (3, None)),
    "global_max_pool": lambda x: pg.global_max_pool(x, axes=1),
    "global_min_pool": lambda x: pg.global_min_pool(x, axes=1),
    "global_avg_pool": lambda x: pg.global_avg_pool(x, axes=1, keepdims=False),
    "global_sum_pool": lambda x: pg.global_sum_pool(x, axes=1),
    "like": lambda x: pg.like("onnx").avg_pool(x, 2, axes=(0, 1)),
    "like tensorflow": lambda x: pg.like("tensorflow").max_pool(x, 2, layout="HW"),
    "max_operator": lambda x: pg.max_operator(x, PLAN)[0],
    "min_operator": lambda x: pg.min_operator(x, PLAN, ties="all")[0],
    "averaging": lambda x: pg.averaging(PLAN)(x),
    "summing": lambda x: pg.summing(PLAN)(x),
    "summing.T": lambda x: pg.summing(pg.plan((8, 12), 2)).T(x),
    "picking": lambda x: pg.picking(PLAN, TAPS.values)(x),
    "Taps.operator": lambda x: TAPS.operator(x),
    "unpool": lambda x: pg.unpool(x, np.arange(24).reshape(4, 6), (30,)),
    "explain": lambda x: np.array(pg.explain("max_pool", cell=(0, 0), x=x, window=2).value),
    "explain avg": lambda x: np.array(pg.explain("avg_pool", cell=(0, 0), x=x, window=2).value),
}
FLOATS = {
    "lp_pool": lambda x: pg.lp_pool(x, 2, p=3),
    "like lp_pool": lambda x: pg.like("onnx").lp_pool(x, 2, axes=0),
    "averaging.T": lambda x: pg.averaging(pg.plan((8, 12), 2)).T(x),
    "vjp": lambda x: pg.vjp(lambda v: pg.max_pool(v, 2) ** 2, x)[0],
    "jvp": lambda x: pg.jvp(lambda v: pg.avg_pool(v, 2) ** 2, x, np.ones((4, 6)))[1],
    "grad": lambda x: pg.grad(lambda v: (pg.max_pool(v, 2) ** 2).sum(), x),
}
INDICES = {
    "picking": lambda t: pg.picking(PLAN, t)(np.arange(24.0).reshape(4, 6)),
    "unpool": lambda t: pg.unpool(np.arange(6.0).reshape(2, 3), t, (24,)),
    "Taps.from_flat": lambda t: pg.Taps.from_flat(TAPS.flat() + 0 * np.asarray(t), PLAN).values,
}


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.dtype.isnative and a.shape == b.shape and a.tobytes() == b.tobytes()


# ---- byte order


@pytest.mark.parametrize("dtype", ["i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"])
def test_foreign_byte_order_gives_the_native_bits(dtype):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 100, (4, 6)).astype(dtype)
    foreign = x.astype(np.dtype(dtype).newbyteorder())
    calls = {**POOLS, **(FLOATS if dtype[0] == "f" else {})}
    for name, call in calls.items():
        for given in (foreign, np.asfortranarray(foreign), foreign[::-1][::-1]):
            assert same(np.asarray(call(given)), np.asarray(call(x))), name


@pytest.mark.parametrize("dtype", ["i4", "i8", "f2", "f4", "f8"])
def test_foreign_byte_order_gives_the_native_bits_in_the_operators_of_tensorflow(dtype):
    x = np.arange(16, dtype=dtype).reshape(1, 4, 4, 1)
    foreign = x.astype(np.dtype(dtype).newbyteorder())
    for _ in range(2):  # the second call finds the first one in the cache
        assert same(raw_ops.MaxPool(input=foreign, **SIZES), raw_ops.MaxPool(input=x, **SIZES))
    beside = raw_ops.MaxPoolGrad(orig_input=foreign, orig_output=x[:, ::2, ::2], grad=[[[[1]] * 2] * 2], **SIZES)
    assert beside.dtype.isnative


def test_means_of_large_integers_of_foreign_byte_order_are_those_of_native_ones():
    for dtype, value in (("u8", 2**64 - 2048), ("u8", 2**63), ("i8", -(2**63)), ("u4", 2**32 - 1), ("u2", 2**16 - 1)):
        x = np.full(4, value, dtype)
        y = pg.avg_pool(x.astype(np.dtype(dtype).newbyteorder()), 4)
        assert y.tolist() == [float(value)]
        assert same(y, pg.avg_pool(x, 4))


def test_a_dtype_and_an_out_of_foreign_byte_order_are_fine():
    x, out = np.array([1.0, 2.0]), np.zeros(1, ">i2")
    assert same(pg.avg_pool(x, 2, dtype=">f4"), pg.avg_pool(x, 2, dtype="f4"))
    assert pg.sum_pool(np.array([1, 2]), 2, out=out).tolist() == [3]
    assert out.dtype == np.dtype(">i2")


def test_positions_of_foreign_byte_order():
    for call in INDICES.values():
        index = np.array([[0, 1, 2], [3, 0, 1]], np.int32)
        assert same(np.asarray(call(index.astype(">i4"))), np.asarray(call(index)))


def test_a_large_array_of_foreign_byte_order_keeps_its_layout():
    x = np.arange(3 * 2**21, dtype=np.float32).reshape(3, 2**21).T
    y = pg.max_pool(x.astype(">f4"), (2, 1))
    assert np.array_equal(y, pg.max_pool(x, (2, 1)))


# ---- lazy arrays


class Lazy:
    """An array that counts its conversions."""

    def __init__(self, x: np.ndarray) -> None:
        self.x, self.asked = x, 0

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        self.asked += 1
        return self.x

    @property
    def shape(self) -> tuple[int, ...]:
        return self.x.shape


@pytest.mark.parametrize("name", [*POOLS, *FLOATS])
def test_a_lazy_array_is_asked_once(name):
    call = {**POOLS, **FLOATS}[name]
    x = np.arange(24.0).reshape(4, 6)
    lazy = Lazy(x)
    assert same(np.asarray(call(lazy)), np.asarray(call(x)))
    assert lazy.asked == 1


def test_a_lazy_array_is_asked_once_by_operators_pictures_and_explanations():
    lazy = Lazy(np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1))
    raw_ops.MaxPool(input=lazy, **SIZES)
    assert lazy.asked == 1
    pg.explain("MaxPool", cell=(0, 0, 0, 0), input=lazy, **SIZES)
    assert lazy.asked == 2
    g = Lazy(np.ones((2, 3)))
    pg.explain("max_pool", cell=(0, 0), x=np.zeros((4, 6)), g=g, window=2)
    assert g.asked == 1
    pytest.importorskip("matplotlib")
    x, g = Lazy(np.arange(24.0).reshape(4, 6)), Lazy(np.ones((2, 3)))
    pg.show(x, 2, g=g)
    assert (x.asked, g.asked) == (1, 1)


def test_a_lazy_array_is_asked_once_by_autograd():
    pool = pytest.importorskip("poolgrad.autograd")
    for name in ("max_pool", "avg_pool", "sum_pool", "lp_pool"):
        lazy = Lazy(np.arange(24.0).reshape(4, 6))
        getattr(pool, name)(lazy, 2)
        assert lazy.asked == 1, name


def test_lazy_positions_are_asked_once():
    for call in (INDICES["picking"], INDICES["unpool"]):
        lazy = Lazy(np.array([[0, 1, 2], [3, 0, 1]]))
        call(lazy)
        assert lazy.asked == 1


# ---- masked cells and subclasses


@pytest.mark.parametrize("name", POOLS)
def test_masked_cells_are_refused_with_a_hint(name):
    x = np.ma.masked_array(np.arange(24.0).reshape(4, 6), np.arange(24).reshape(4, 6) == 7)
    for given in (x, Lazy(x), list(x)):
        with pytest.raises(ValueError, match=r"x\.filled\(np\.nan\) with nan='ignore'"):
            POOLS[name](given)


@pytest.mark.parametrize("name", POOLS)
def test_subclasses_without_masked_cells_give_plain_arrays(name):
    x = np.arange(24.0).reshape(4, 6)
    for given in (np.ma.masked_array(x), np.ma.masked_array(x, np.zeros((4, 6), bool)), x.view(np.recarray)):
        y = POOLS[name](given)
        assert type(y) is np.ndarray
        assert same(y, np.asarray(POOLS[name](x)))


def test_the_hint_about_masked_cells_works():
    x = np.ma.masked_array([1.0, 5.0, 2.0, 4.0], [False, True, False, False])
    assert pg.max_pool(x.filled(np.nan), 2, nan="ignore").tolist() == [1.0, 4.0]


# ---- lists in the operators of TensorFlow


def pooled(values: list) -> np.ndarray:
    return raw_ops.MaxPool(input=[[[[v] for v in values]]], ksize=[1] * 4, strides=[1] * 4, padding="VALID")


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2], "int32"),
        ([-(2**31), 2**31 - 1], "int32"),
        ([2**31, 0], "int64"),
        ([2**40], "int64"),
        ([-(2**63), 2**63 - 1], "int64"),
        ([1, 2.5], "float32"),
        ([np.int64(7), 8], "int32"),
        ([np.float64(1.1)], "float64"),
        ([np.float16(1.5)], "float16"),
    ],
)
def test_lists_become_what_tensorflow_makes_of_them(values, dtype):
    y = pooled(values)
    assert (y.dtype.name, y.ravel().tolist()) == (dtype, values)


@pytest.mark.parametrize("values", [[2**63], [2**63, -1], [2**70], [-(2**63) - 1], [1e40], [np.uint64(2**63)]])
def test_lists_beyond_what_tensorflow_holds_are_refused_by_name(values):
    with pytest.raises(ValueError, match=r"MaxPool: input: got \[.*\], wanted (integers|numbers) "):
        pooled(values)


@pytest.mark.parametrize("grad", [[300], [np.int64(300)], [np.array(300)], [-129]])
def test_a_list_beside_an_array_holds_what_its_dtype_holds(grad):
    x = np.ones((1, 1, 1, 1), np.int8)
    ones = {"ksize": [1] * 4, "strides": [1] * 4, "padding": "VALID"}
    with pytest.raises(ValueError, match=r"MaxPoolGrad: grad: got \[.*\], wanted integers that int8 holds"):
        raw_ops.MaxPoolGrad(orig_input=x, orig_output=x, grad=[[[grad]]], **ones)


# ---- flags

X = np.arange(24.0).reshape(4, 6)
FLAGGED = {
    "max_pool: ceil_mode": lambda v: pg.max_pool(X, 2, ceil_mode=v),
    "max_pool: return_taps": lambda v: pg.max_pool(X, 2, return_taps=v),
    "min_pool: ceil_mode": lambda v: pg.min_pool(X, 2, ceil_mode=v),
    "avg_pool: count_include_pad": lambda v: pg.avg_pool(X, 2, count_include_pad=v),
    "avg_pool: ceil_mode": lambda v: pg.avg_pool(X, 2, ceil_mode=v),
    "lp_pool: ceil_mode": lambda v: pg.lp_pool(X, 2, ceil_mode=v),
    "plan: ceil_mode": lambda v: pg.plan((4,), 2, ceil_mode=v),
    "output_shape: ceil_mode": lambda v: pg.output_shape((4,), 2, ceil_mode=v),
    "averaging: count_include_pad": lambda v: pg.averaging(PLAN, count_include_pad=v),
    "fractional_windows: pseudo_random": lambda v: pg.fractional_windows(9, 1.5, seed=1, pseudo_random=v),
    "fractional_windows: overlapping": lambda v: pg.fractional_windows(9, 1.5, seed=1, overlapping=v),
    "fractional_max_pool: overlapping": lambda v: pg.fractional_max_pool(X, 1.5, seed=1, overlapping=v),
    "fractional_max_pool: return_windows": lambda v: pg.fractional_max_pool(X, 1.5, seed=1, return_windows=v),
    "fractional_avg_pool: pseudo_random": lambda v: pg.fractional_avg_pool(X, 1.5, seed=1, pseudo_random=v),
    "fractional_avg_pool: return_windows": lambda v: pg.fractional_avg_pool(X, 1.5, seed=1, return_windows=v),
    "adaptive_max_pool: return_taps": lambda v: pg.adaptive_max_pool(X, 2, return_taps=v),
    "global_max_pool: keepdims": lambda v: pg.global_max_pool(X, keepdims=v),
    "global_avg_pool: keepdims": lambda v: pg.global_avg_pool(X, keepdims=v),
}


@pytest.mark.parametrize("name", FLAGGED)
@pytest.mark.parametrize("value", ["False", "", None, 2, -1, 1.0, [], np.float64(1), np.array([True])], ids=repr)
def test_what_is_neither_true_nor_false_is_refused(name, value):
    with pytest.raises(TypeError, match=f"^{name}: got .*, wanted True or False"):
        FLAGGED[name](value)


@pytest.mark.parametrize("name", FLAGGED)
def test_true_and_false_may_be_numpys_or_numbers(name):
    for value in (True, False, np.True_, np.False_, 1, 0):
        FLAGGED[name](value)


# ---- sizes and boundaries

HUGE = 10**12
TOO_MANY = {
    "adaptive_max_pool: size": lambda: pg.adaptive_max_pool(X, HUGE),
    "adaptive_avg_pool: size": lambda: pg.adaptive_avg_pool(X, (2, 5 * 10**8 * 100)),
    "adaptive: m": lambda: pg.adaptive(10, HUGE),
    "max_pool: padding": lambda: pg.max_pool(X, HUGE, 1, padding=HUGE - 1),
    "avg_pool: padding": lambda: pg.avg_pool(X, (1, HUGE), 1, padding=[(0, 0), (HUGE - 1, HUGE - 1)]),
    "plan: window": lambda: pg.plan((HUGE,), 2),
    "output_shape: window": lambda: pg.output_shape((2, HUGE), 1),
    "fractional_windows: ratio": lambda: pg.fractional_windows(HUGE, 1.5),
    "fractional_windows: size": lambda: pg.fractional_windows(HUGE, size=HUGE - 1),
    "Axis: windows": lambda: pg.sliding_axis(5, 2, 1, 0, HUGE),
    "Axis: windows ": lambda: pg.plan((4, HUGE, 4), 2, axes=(0, 2)),
    "unpool: shape": lambda: pg.unpool(np.ones(2), np.array([0, 1]), (HUGE, 1000)),
    "adaptive_max_pool: window": lambda: pg.adaptive_max_pool(np.zeros((2, 2, 2, 2)), 3000),
}


@pytest.mark.parametrize("name", TOO_MANY)
def test_a_size_that_no_memory_holds_is_refused_at_once_by_name(name):
    before = time.process_time()
    with pytest.raises(MemoryError, match=f"^{name.strip()}: got .* bytes, wanted at most"):
        TOO_MANY[name]()
    assert time.process_time() - before < 2


WRONG = {
    "max_pool: window: got .*, wanted .*pairs of integers": [
        lambda: pg.max_pool(np.arange(4.0), [[(0.0, 2.0)]]),
        lambda: pg.max_pool(np.arange(4.0), [[(0, 2.5)]]),
        lambda: pg.max_pool(np.arange(4.0), [np.array([[0.0, 2.0]])]),
        lambda: pg.max_pool(np.arange(4.0), [[(True, False)]]),
        lambda: pg.max_pool(np.arange(4.0), [[("0", "2")]]),
    ],
    "max_pool: window: got window 1, \\(2, 9\\), wanted a window inside 0:4": [
        lambda: pg.max_pool(np.arange(4.0), [[(0, 2), (2, 9)]])
    ],
    "sum_pool: window: got window 0, \\(-1, 2\\), wanted a window inside 0:4": [
        lambda: pg.sum_pool(np.arange(4.0), [[(-1, 2)]])
    ],
    "avg_pool: window: got window 0, \\(3, 1\\), wanted a window inside 0:4": [
        lambda: pg.avg_pool(np.arange(4.0), [[(3, 1)]])
    ],
    "lp_pool: window: got window 1, \\(0, 2\\), after \\(1, 3\\), wanted windows in ascending order": [
        lambda: pg.lp_pool(np.arange(4.0), [[(1, 3), (0, 2)]])
    ],
    "plan: window: got window 0, \\(0, 18446744073709551615\\)": [
        lambda: pg.plan((4,), [np.array([[0, 2**64 - 1]], np.uint64)])
    ],
    "Axis: start, stop: got values of dtype float64, wanted integers": [
        lambda: pg.Axis(4, [0.0], [2.0]),
        lambda: pg.edges(4, [0.0, 2.5]),
    ],
    "lp_pool: p: got .*, wanted a positive finite number": [
        lambda: pg.lp_pool(X, 2, p=10**400),
        lambda: pg.lp_pool(X, 2, p=np.inf),
    ],
    "lp_pool: p: got .*, wanted a positive number": [partial(pg.lp_pool, X, 2, p=v) for v in (0, -1, "2", True, 1j)],
    "lp_pool: stride: got 0": [lambda: pg.lp_pool(X, 2, 0)],
    "lp_pool: out: got 3": [lambda: pg.lp_pool(X, 2, out=3)],
    "lp_pool: x: got dtype complex128": [lambda: pg.lp_pool(X.astype(complex), 2)],
    "lp_pool: padding: got window 0": [lambda: pg.lp_pool(X, 2, padding=2)],
    "fractional_max_pool: ratio: got": [
        lambda: pg.fractional_max_pool(X, 10**400),
        lambda: pg.fractional_max_pool(X, np.inf),
    ],
    "fractional_max_pool: size: got": [lambda: pg.fractional_max_pool(X, size=10**400)],
    "adaptive: m: got -1": [lambda: pg.adaptive(4, -1)],
    "adaptive: n: got 0": [lambda: pg.adaptive(0, 2)],
    "max_pool: dilation: got": [lambda: pg.max_pool(X, 3, 2**62, dilation=2**62, padding=2**62)],
}


@pytest.mark.parametrize(("words", "call"), [(words, call) for words, calls in WRONG.items() for call in calls])
def test_wrong_sizes_and_boundaries_are_refused_by_name(words, call):
    with pytest.raises((ValueError, TypeError), match=f"^{words}"):
        call()


def test_no_words_of_any_size_raise_an_error_without_a_name():
    rng = np.random.default_rng(4)
    numbers = [
        0,
        1,
        2,
        3,
        2**31,
        2**53,
        2**61,
        2**62,
        2**62 - 1,
        2**63 - 1,
        2**63,
        2**64,
        10**30,
        10**400,
        -1,
        -(2**62),
    ]
    pick = lambda: numbers[rng.integers(len(numbers))] if rng.random() < 0.5 else int(rng.integers(1, 5))  # noqa: E731
    named = re.compile(r"^(max|avg|adaptive_max|fractional_avg)_pool: [\w.]+: got ")
    for _ in range(3000):
        calls = (
            partial(pg.max_pool, X, pick(), pick(), padding=pick(), dilation=pick(), ceil_mode=bool(rng.integers(2))),
            partial(pg.avg_pool, X, (pick(), pick()), padding=[(pick(), pick())] * 2, divisor=pick(), axes=(0, 1)),
            partial(pg.max_pool, X, [[(pick(), pick())], 1]),
            partial(pg.adaptive_max_pool, X, (pick(), 2)),
            partial(pg.fractional_avg_pool, X, size=pick(), seed=pick()),
        )
        try:
            calls[rng.integers(len(calls))]()
        except (ValueError, TypeError, MemoryError) as error:
            if not named.match(str(error)):
                raise
