"""Compiled pools of few cells run by plain loops instead of the core: NumPy's bits all the same, subnormals, NaN and zeros included."""

import random

import ml_dtypes
import numpy as np
import pytest
from support import same_bits

jax = pytest.importorskip("jax", reason="jax is not installed")

import jax.numpy as jnp  # noqa: E402

import poolgrad as pg  # noqa: E402
import poolgrad.jax as pool  # noqa: E402
from poolgrad.jax import native  # noqa: E402

pytestmark = pytest.mark.skipif(native.library() is None, reason="needs the library: python -m poolgrad.jax build")
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 3e-39, -2e-39, 1e-310]


def cells(rng, shape, dtype):
    """Return an array with ties and with some special numbers."""
    x = np.random.default_rng(rng.randrange(2**32)).normal(size=shape).round(rng.choice([0, 1, 9]))
    for value in rng.sample(SPECIAL, rng.randrange(4)):
        x[np.random.default_rng(rng.randrange(2**32)).random(shape) < 0.1] = value
    return x.astype(dtype)


def call(rng, layout, lengths):
    """Return a pool as a function of a module and an array."""
    kernel = [rng.randint(1, min(n, 5)) for n in lengths]
    words = {"layout": layout}
    name = rng.choice(["max_pool", "min_pool", "avg_pool", "sum_pool", "adaptive_avg_pool", "fractional_max_pool"])
    if name == "adaptive_avg_pool":
        size = [rng.randint(1, n) for n in lengths]
        return lambda m, x: m.adaptive_avg_pool(x, size, **words)
    if name == "fractional_max_pool":
        size = [rng.randint(-(-n // 2), n) for n in lengths]
        return lambda m, x: m.fractional_max_pool(x, size=size, seed=1, **words)
    words |= {"padding": rng.choice(["valid", "same"])}
    if name == "avg_pool":
        words |= rng.choice([{}, {"count_include_pad": True}, {"divisor": 3}])
    steps = [rng.randint(1, k) for k in kernel]
    return lambda m, x: getattr(m, name)(x, kernel, steps, **words)


@pytest.mark.parametrize("seed", range(8))
def test_values_and_derivatives_have_the_bits_of_numpy(seed):
    rng = random.Random(seed)
    with jax.enable_x64(True):
        for _ in range(12):
            layout = rng.choice(["NHWC", "NCHW", "NWC", "NCW", "NCDHW"])
            lengths = [rng.randint(3, 9) for _ in range(len(layout) - 2)]
            shape = (2, 2, *lengths) if layout[1] == "C" else (2, *lengths, 2)
            dtype = rng.choice([np.float32, np.float64, ml_dtypes.bfloat16])
            x, run = cells(rng, shape, dtype), call(rng, layout, lengths)
            with np.errstate(all="ignore"):
                y, back = pg.vjp(lambda a, run=run: run(pg, a), x)
                g = cells(rng, y.shape, dtype)
                want = np.asarray(y), back(g)
            made, pull = jax.vjp(jax.jit(lambda a, run=run: run(pool, a)), jnp.asarray(x))
            assert same_bits(np.asarray(made), want[0]).all()
            assert same_bits(np.asarray(pull(jnp.asarray(g))[0]), want[1]).all()


def test_reading_at_taps_has_the_bits_of_numpy():
    x = cells(random.Random(3), (2, 7, 6, 3), np.float32)
    v = cells(random.Random(4), (2, 7, 6, 3), np.float32)
    _, operator = pg.max_operator(x, pg.plan(x.shape, 3, 2, axes=(1, 2)))
    _, tangent = jax.jit(lambda x, v: jax.jvp(lambda a: pool.max_pool(a, 3, 2, layout="NHWC"), (x,), (v,)))(x, v)
    assert same_bits(np.asarray(tangent), operator(v)).all()


def test_a_tap_outside_its_window_is_refused_by_the_core():
    x = jnp.arange(12.0).reshape(1, 6, 2)
    y, taps = pool.max_pool(x, 2, layout="NWC", return_taps=True)
    wrong = pool.Taps(taps.values + np.uint8(9), taps.windows, taps.rule)
    with pytest.raises(Exception, match="taps"):
        jax.block_until_ready(pool.unpool(y, wrong))


def test_long_sums_stay_with_the_core():
    x = cells(random.Random(5), (2, 3, 17, 9), np.float32)
    with np.errstate(all="ignore"):
        want = pg.avg_pool(x, (17, 9), layout="NCHW")
    assert same_bits(np.asarray(pool.avg_pool(jnp.asarray(x), (17, 9), layout="NCHW")), want).all()
