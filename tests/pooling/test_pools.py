"""Every pool against walking over the cells: values of all dtypes, all words, all rules for NaN and ties."""

import ml_dtypes
import numpy as np
import pytest
from brute import WORDS, cells_of, reduce

import poolgrad as pg

DTYPES = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)] + ["float16", "float32", "float64"]
DTYPES += ["bfloat16", "bool"]


def values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x = np.random.default_rng(5).integers(0, 9, shape)
    return x.astype(ml_dtypes.bfloat16) if dtype == "bfloat16" else (x % 2 == 0 if dtype == "bool" else x.astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "words"), WORDS, ids=lambda v: str(v))
def test_largest_least_and_sum(shape, words, dtype):
    x, cells = values(shape, dtype), cells_of(shape, words)
    for pool, f in ((pg.max_pool, max), (pg.min_pool, min)):
        y = pool(x, **words)
        assert y.dtype == x.dtype
        assert np.array_equal(y, reduce(x, cells, lambda v, _, f=f: f(v)).astype(x.dtype))
    total = pg.sum_pool(x, **words)
    assert np.array_equal(total.astype(float), reduce(x.astype(float), cells, lambda v, _: sum(v)).astype(float))


@pytest.mark.parametrize(("shape", "words"), WORDS, ids=lambda v: str(v))
def test_means_by_true_cells_and_by_a_divisor(shape, words):
    x, cells = values(shape, "float64"), cells_of(shape, words)
    want = reduce(x, cells, lambda v, _: sum(v) / len(v)).astype(float)
    assert np.allclose(pg.avg_pool(x, **words), want, rtol=1e-15)
    assert np.allclose(
        pg.avg_pool(x, **words, divisor=7), reduce(x, cells, lambda v, _: sum(v) / 7).astype(float), rtol=1e-15
    )
    assert np.allclose(pg.avg_pool(x.astype(int), **words), want, rtol=1e-15)


def test_padding_counts_where_it_is_told_to():
    x = np.ones((1, 1, 3, 3))
    torch_like = pg.like("torch")
    assert torch_like.avg_pool(x, 2, 2, padding=1)[0, 0].tolist() == [[0.25, 0.5], [0.5, 1.0]]
    assert torch_like.avg_pool(x, 2, 2, padding=1, count_include_pad=False)[0, 0].tolist() == [[1, 1], [1, 1]]
    # in ceil_mode, cells behind the padding do not count
    assert pg.avg_pool(np.ones(3), 2, 2, ceil_mode=True, count_include_pad=True).tolist() == [1.0, 1.0]


def test_presets_have_their_librarys_defaults():
    x = np.arange(32.0).reshape(1, 4, 4, 2)
    sizes = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    assert np.array_equal(pg.like("tensorflow").max_pool(x, 2), pg.raw_ops.MaxPool(input=x, **sizes))
    x[0, 0, 0, 0] = np.nan
    assert np.array_equal(pg.like("tensorflow").max_pool(x, 2), pg.raw_ops.MaxPool(input=x, **sizes))
    assert pg.like("onnx").max_pool(x, 2).shape == (1, 4, 3, 1)
    with pytest.raises(ValueError, match="like: library: got 'caffe', wanted 'tensorflow', 'torch' or 'onnx'"):
        pg.like("caffe")


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_halves_are_rounded_once(dtype):
    assert pg.avg_pool(np.ones((64, 64), dtype), 64).tolist() == [[1.0]]
    x = np.random.default_rng(0).standard_normal((5, 40)).astype(dtype)
    exact = x.astype(np.float64).reshape(5, 8, 5).mean(axis=2).astype(np.float32).astype(dtype)
    assert np.array_equal(pg.avg_pool(x, (1, 5)), exact)
    ones = np.ones(3000, dtype)  # a sum one by one would stop at 2048 or 256
    assert pg.sum_pool(ones, 3000)[0] == np.float32(3000).astype(dtype)


def test_integer_means_take_a_dtype_and_a_rounding():
    x = np.array([1, 2, -1, -2, 250, 251], np.int16)
    assert pg.avg_pool(x, 2).tolist() == [1.5, -1.5, 250.5]
    want = {"nearest": [2, -2, 250], "floor": [1, -2, 250], "ceil": [2, -1, 251], "toward_zero": [1, -1, 250]}
    for rounding, values_ in want.items():
        y = pg.avg_pool(x, 2, dtype=np.int16, rounding=rounding)
        assert y.dtype == np.int16
        assert y.tolist() == values_


NAN = np.nan


@pytest.mark.parametrize(
    ("nan", "want"),
    [("propagate", [3, NAN, NAN, NAN]), ("ignore", [3, 2, 5, NAN]), ("tf", [3, 2, 5, np.finfo(float).min])],
)
def test_nan_rules_of_a_maximum(nan, want):
    x = np.array([[1, 3], [NAN, 2], [5, NAN], [NAN, NAN]])
    assert np.array_equal(pg.max_pool(x, (1, 2), nan=nan).ravel(), want, equal_nan=True)
    y, _taps = pg.max_pool(x, (1, 2), nan=nan, return_taps=True)
    assert np.array_equal(y.ravel(), want, equal_nan=True)
    low = pg.min_pool(-x, (1, 2), nan=nan)
    assert np.array_equal(-low.ravel(), want, equal_nan=True)


def test_nan_of_either_sign_and_infinities_are_told_apart():
    negative_nan = np.array([-1.0]).view(np.int64)[0] | (0x7FF8 << 48)
    x = np.array([[0, np.inf], [-np.inf, 0], [-np.inf, -np.inf]])
    x[0, 0] = x[1, 1] = np.array([negative_nan]).view(float)[0]
    assert np.array_equal(pg.max_pool(x, (1, 2)).ravel(), [NAN, NAN, -np.inf], equal_nan=True)
    assert np.array_equal(pg.max_pool(x, (1, 2), nan="ignore").ravel(), [np.inf, -np.inf, -np.inf])


def test_nan_is_left_out_of_means_and_sums_where_asked():
    x = np.array([1.0, NAN, NAN, NAN, 4.0, 6.0])
    assert np.array_equal(pg.avg_pool(x, 2, nan="ignore"), [1, NAN, 5], equal_nan=True)
    assert np.array_equal(pg.sum_pool(x, 2, nan="ignore"), [1, 0, 10])
    assert np.array_equal(pg.avg_pool(x, 2), [NAN, NAN, 5], equal_nan=True)


def test_nan_is_left_out_of_a_count_that_includes_padding():
    x = np.array([1.0, NAN, 3.0])
    assert pg.avg_pool(x, 3, nan="ignore", count_include_pad=True).tolist() == [2.0]  # as there is no padding
    assert pg.avg_pool(x, 3, 2, padding=1, nan="ignore", count_include_pad=True).tolist() == [0.5, 1.5]
    _, back = pg.vjp(lambda x: pg.avg_pool(x, 3, nan="ignore", count_include_pad=True), x)
    assert back(np.ones(1)).tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize(
    ("ties", "want"),
    [("first", [10, 0, 0, 0]), ("last", [0, 0, 0, 10]), ("all", [10, 0, 10, 10]), ("split", [2.5, 0, 2.5, 2.5])],
)
def test_tie_rules(ties, want):
    x = np.array([[3.0, 1.0], [3.0, 3.0]])
    g = np.array([[7.5 if ties == "split" else 10.0]])
    _, P = pg.max_operator(x, pg.plan((2, 2), 2), ties=ties)
    assert P.T(g).ravel().tolist() == want
    _, back = pg.vjp(lambda x: pg.max_pool(x, 2, ties=ties), x)
    assert back(g).ravel().tolist() == want


def test_minus_zero_and_zero_are_equal():
    _y, taps = pg.max_pool(np.array([-0.0, 0.0, NAN, 0.0, -0.0, 1.0]), 2, return_taps=True)
    assert taps.values.tolist() == [0, 0, 1]


def test_families_are_pools_over_their_windows():
    x = np.random.default_rng(0).standard_normal((2, 7, 9, 3))
    sizes = (3, 4)
    windows = [pg.adaptive(n, m) for n, m in zip((7, 9), sizes, strict=True)]
    assert np.array_equal(pg.adaptive_max_pool(x, sizes, layout="NHWC"), pg.max_pool(x, windows, layout="NHWC"))
    assert np.array_equal(pg.adaptive_avg_pool(x, sizes, layout="NHWC"), pg.avg_pool(x, windows, layout="NHWC"))
    assert pg.adaptive_avg_pool(x, (None, 2), layout="NHWC").shape == (2, 7, 2, 3)
    for pool, f in ((pg.global_max_pool, np.max), (pg.global_min_pool, np.min), (pg.global_sum_pool, np.sum)):
        assert np.allclose(pool(x, layout="NHWC"), f(x, axis=(1, 2), keepdims=True))
        assert pool(x, layout="NHWC", keepdims=False).shape == (2, 3)
    assert np.allclose(pg.global_avg_pool(x), x.mean())


def test_lp_pools_are_norms():
    x = np.random.default_rng(0).standard_normal((6, 6))
    blocks = np.abs(x).reshape(3, 2, 3, 2).transpose(0, 2, 1, 3).reshape(3, 3, 4)
    for p in (1, 2, 3, 2.5):
        assert np.allclose(pg.lp_pool(x, 2, p=p), (blocks**p).sum(axis=2) ** (1 / p))
