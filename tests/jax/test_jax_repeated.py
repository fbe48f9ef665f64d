"""Repeated calls on concrete arrays: the bits, the errors and the windows of the first call."""

import numpy as np
import pytest

import poolgrad as pg

jax = pytest.importorskip("jax", reason="jax is not installed")
import jax.numpy as jnp  # noqa: E402

import poolgrad.jax as pool  # noqa: E402

X = jnp.asarray(np.random.default_rng(0).standard_normal((2, 9, 8)), jnp.float32)


@pytest.mark.parametrize("nan", [False, True])
def test_a_repeated_call_gives_the_bits_of_the_numpy_pool(nan):
    x = X.at[0, 3, 3].set(jnp.nan) if nan else X
    for _ in range(3):
        for op, words in (
            ("max_pool", {"window": 2, "axes": (1, 2)}),
            ("min_pool", {"window": (2, 3), "axes": (1, 2), "stride": 1}),
            ("avg_pool", {"window": 2, "axes": (1, 2), "padding": "same"}),
            ("global_max_pool", {"axes": 1, "keepdims": False}),
            ("fractional_max_pool", {"ratio": 1.4, "axes": (1, 2), "seed": 3}),
            ("fractional_avg_pool", {"size": 4, "axes": (1, 2), "seed": (3, 4), "overlapping": True}),
        ):
            got, wanted = getattr(pool, op)(x, **words), getattr(pg, op)(np.asarray(x), **words)
            assert np.asarray(got).tobytes() == wanted.tobytes(), op


def test_repeated_fractional_calls_take_their_own_seeds():
    for seed in (1, 2, (3, 4), 1):
        wanted = pg.fractional_max_pool(np.asarray(X), 1.6, axes=(1, 2), seed=seed)
        assert (np.asarray(pool.fractional_max_pool(X, 1.6, axes=(1, 2), seed=seed)) == wanted).all()


@pytest.mark.parametrize("window", [True, 2.0, (2, 2.0), (True, 2), 0, "a", 100.5])
def test_a_wrong_window_is_refused_after_a_good_one(window):
    pool.max_pool(X, 2, axes=(1, 2))
    pool.max_pool(X, (2, 2), axes=(1, 2))
    for _ in range(2):
        with pytest.raises((TypeError, ValueError), match="max_pool: window: got"):
            pool.max_pool(X, window, axes=(1, 2))


def test_derivatives_and_traces_go_around_the_cache():
    def loss(x):
        return jnp.sum(pool.max_pool(x, 2, axes=(1, 2)) ** 2)

    pool.max_pool(X, 2, axes=(1, 2))
    assert (jax.grad(loss)(X) == jax.jit(jax.grad(loss))(X)).all()
    batched = jax.vmap(lambda x: pool.max_pool(x, 2))(X)
    assert (batched == pool.max_pool(X, 2, axes=(1, 2))).all()
