"""Repeated calls: they skip the checks of the first one, and give the same results and the same errors."""

import gc
import sys
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest

import poolgrad as pg
from poolgrad._pooling import repeated

X = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
WITH_NAN = np.where(X > 1, np.float32(np.nan), X)

CALLS = {
    "max_pool": [
        {"window": 2},
        {"window": (2, 3), "stride": 1, "padding": "same"},
        {"window": [2, 2], "padding": [(1, 0), (0, 1)]},
        {"window": 3, "axes": 0},
        {"window": 2, "dilation": 2, "stride": 1},
        {"window": 2, "nan": "ignore"},
        {"window": 2, "nan": "tf"},
        {"window": 2, "return_taps": True},
        {"window": 2, "return_taps": True, "ties": "last"},
        {"window": 2, "ties": "split"},
        {"window": [pg.edges(6, [0, 1, 6]), 4]},
    ],
    "min_pool": [{"window": 2}, {"window": 3, "stride": 2, "ceil_mode": True}, {"window": 2, "return_taps": True}],
    "avg_pool": [
        {"window": 2},
        {"window": 3, "stride": 2, "padding": 1, "count_include_pad": True},
        {"window": 2, "divisor": 3},
        {"window": 2, "nan": "ignore"},
        {"window": 2, "dtype": np.float64},
        {"window": 2, "dtype": "float16"},
        {"window": 2, "dilation": 3},
    ],
    "sum_pool": [{"window": 2}, {"window": 2, "dtype": np.float64}, {"window": 2, "nan": "ignore"}],
    "lp_pool": [{"window": 2}, {"window": 2, "p": 3}],
    "adaptive_max_pool": [{"size": 3}, {"size": (2, None)}, {"size": 3, "return_taps": True}],
    "adaptive_avg_pool": [{"size": 3}, {"size": [2, 5]}],
    "global_max_pool": [{}, {"axes": 1, "keepdims": False}],
    "global_min_pool": [{}, {"axes": 0}],
    "global_avg_pool": [{}, {"axes": 1, "keepdims": False}, {"dtype": np.float64}],
    "global_sum_pool": [{}, {"axes": (0, 1), "keepdims": False}],
    "fractional_max_pool": [
        {"ratio": 1.4, "seed": 3},
        {"ratio": (1.5, 2), "seed": (3, 4), "nan": "tf", "overlapping": True},
        {"size": 3, "seed": 3, "nan": "ignore", "pseudo_random": True},
        {"size": (2, 5), "seed": 3, "return_taps": True, "return_windows": True},
        {"ratio": 1.4, "seed": 3, "axes": 1, "ties": "split"},
    ],
    "fractional_avg_pool": [
        {"ratio": 1.4, "seed": 3},
        {"size": 3, "seed": 3, "nan": "ignore", "overlapping": True},
        {"ratio": 1.4, "seed": (3, 4), "return_windows": True},
        {"ratio": 1.4, "seed": 3, "dtype": np.float64},
    ],
}
DTYPES = ("float32", "float64", "float16", ml_dtypes.bfloat16, "int8", "uint16", "int64", "bool")


@pytest.fixture(autouse=True)
def forgotten():
    """Begin each test without remembered calls."""
    repeated._runs.clear()


def bits(result: object) -> tuple:
    """Return everything that a caller can see of a result."""
    if isinstance(result, tuple):
        return tuple(bits(part) for part in result)
    if isinstance(result, pg.Axis):
        return tuple(result.pairs())
    array = result.flat() if isinstance(result, pg.Taps) else np.asarray(result)
    return array.shape, array.dtype, array.tobytes()


@pytest.mark.parametrize("op", CALLS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("cells", [X, WITH_NAN], ids=["numbers", "nan"])
def test_a_repeated_call_gives_the_bits_of_the_first(op, dtype, cells):
    if op == "lp_pool" and np.dtype(dtype).kind in "iub":
        pytest.skip("norms of integers are refused")
    others = np.nan_to_num(cells[::-1, ::-1]) if np.dtype(dtype).kind in "iub" else cells[::-1, ::-1]
    first, second = (
        np.ascontiguousarray(np.nan_to_num(c) * 50 if np.dtype(dtype).kind in "iub" else c).astype(dtype)
        for c in (cells, others)
    )
    pool = getattr(pg, op)
    for words in CALLS[op]:
        repeated._runs.clear()
        want = bits(pool(first, **words)), bits(pool(np.array(second), **words))
        repeated._runs.clear()
        alone = bits(pool(second, **words))
        assert bits(pool(first, **words)) == want[0], words
        assert bits(pool(second, **words)) == want[1] == alone, words


def test_a_repeated_call_is_answered_from_the_cache():
    for op in CALLS:
        words = CALLS[op][0]
        getattr(pg, op)(X, **words)
        before = dict(repeated._runs)
        getattr(pg, op)(X, **words)
        assert repeated._runs == before, op
    assert {key[0] for key in repeated._runs} == set(CALLS)


def test_a_repeated_call_passes_at_most_four_functions():
    def functions(call) -> int:
        call()
        seen = []
        here = sys.modules["poolgrad"].__path__[0]
        sys.setprofile(lambda frame, event, _: seen.append(frame) if event == "call" else None)
        try:
            call()
        finally:
            sys.setprofile(None)
        return sum(frame.f_code.co_filename.startswith(here) for frame in seen)

    assert functions(lambda: pg.max_pool(X, 2)) <= 4
    assert functions(lambda: pg.avg_pool(X, 2)) <= 4
    assert functions(lambda: pg.sum_pool(X, 3, 1, padding="same")) <= 4


@pytest.mark.parametrize("wrong", [2.0, True, "2", 2.5, None, (2, 2.0), (True, 2), [2, 2.0]], ids=repr)
def test_an_argument_that_equals_a_remembered_one_is_still_refused(wrong):
    good = (2, 2) if isinstance(wrong, (tuple, list)) else 2
    one = (1, 2) if isinstance(wrong, tuple) and wrong[0] is True else 1
    for window in (good, one, list(good) if isinstance(good, tuple) else good):
        pg.max_pool(X, window)
    with pytest.raises((TypeError, ValueError), match="max_pool: window: got"):
        pg.max_pool(X, wrong)


def test_flags_and_integers_stay_apart():
    pg.max_pool(X, 2, return_taps=False)
    y, _ = pg.max_pool(X, 2, return_taps=1)
    np.testing.assert_array_equal(y, pg.max_pool(X, 2, return_taps=0))
    with pytest.raises(TypeError, match=r"max_pool: return_taps: got 0\.0"):
        pg.max_pool(X, 2, return_taps=0.0)


def test_an_error_is_the_same_after_a_remembered_call():
    x = np.full((2, 2), 2**62, np.int64)
    pg.sum_pool(x // 8, 2)
    for _ in range(2):
        with pytest.raises(ValueError, match="sum_pool: x: got"):
            pg.sum_pool(x * 2 - 1, 2)


def test_remembered_calls_hold_no_cells():
    given = []
    for op, calls in CALLS.items():
        for words in calls:
            x = X.copy()
            given.append((weakref.ref(x), op, words))
            getattr(pg, op)(x, **words)
            getattr(pg, op)(x, **words)
            del x
    gc.collect()
    assert [(op, words) for alive, op, words in given if alive() is not None] == []


def test_out_and_variables_go_the_long_way_and_agree():
    want = pg.max_pool(X, 2)
    out = np.empty_like(want)
    assert pg.max_pool(X, 2, out=out) is out
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(
        pg.grad(lambda x: pg.max_pool(x, 2).sum(), X),
        pg.unpool(np.ones_like(want), pg.max_pool(X, 2, return_taps=True)[1]),
    )


def test_other_memory_orders_and_byte_orders_agree():
    want = pg.max_pool(X, 2)
    for x in (np.asfortranarray(X), X.astype(">f4"), np.repeat(X, 2, 1)[:, ::2]):
        np.testing.assert_array_equal(pg.max_pool(x, 2), want)
    frozen = X.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(pg.max_pool(frozen, 2), want)


def test_the_oldest_calls_are_forgotten(monkeypatch):
    monkeypatch.setattr(repeated, "_MOST", 5)
    for n in range(2, 12):
        pg.max_pool(np.zeros(n), 2)
    assert [key[1] for key in repeated._runs] == [(n,) for n in range(7, 12)]


def test_calls_with_many_windows_are_not_remembered():
    pg.max_pool(np.zeros(1 << 14), 2)
    assert not repeated._runs


def test_an_argument_of_a_class_of_its_own_is_never_a_key():
    class Same(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    pg.max_pool(X, Same(2))
    assert not repeated._runs


def test_threads_that_share_the_cache_get_their_own_results(monkeypatch):
    monkeypatch.setattr(repeated, "_MOST", 3)
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(300):
            n = int(rng.integers(2, 9))
            x = rng.random(2 * n)
            if not np.array_equal(pg.max_pool(x, 2), x.reshape(n, 2).max(1)):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_repeated_fractional_calls_draw_the_windows_of_their_own_seeds():
    x = np.arange(40.0)
    for seed in (None, 1, (2, 3), 1, np.int64(7)):
        y, (windows,) = pg.fractional_max_pool(x, 1.6, seed=seed, return_windows=True)
        assert y.tolist() == (windows.stop - 1).tolist()
        if seed is not None:
            assert windows.pairs() == pg.fractional_windows(40, 1.6, seed=seed).pairs()
    drawn = {tuple(pg.fractional_avg_pool(x, 1.6).tolist()) for _ in range(12)}
    assert len(drawn) > 1


@pytest.mark.parametrize("seed", [1.5, "a", (1, 2, 3), 2**70, True])
def test_a_repeated_fractional_call_refuses_a_seed_as_the_first_did(seed):
    x, said = np.arange(40.0), []
    for _ in range(2):
        with pytest.raises((TypeError, ValueError), match=r"^fractional_max_pool: seed: got") as error:
            pg.fractional_max_pool(x, 1.6, seed=seed)
        said.append(str(error.value))
        pg.fractional_max_pool(x, 1.6, seed=1)
    assert said[0] == said[1]
