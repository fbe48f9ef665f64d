"""The pools under JAX: NumPy's bits, NumPy's errors, no copies, keys, taps; as XLA calls and as callbacks."""

import ml_dtypes
import numpy as np
import pytest
from support import same_bits

jax = pytest.importorskip("jax", reason="jax is not installed")

import jax.numpy as jnp  # noqa: E402
from traced_cases import BAD, LINEAR, POWERS, Case  # noqa: E402

import poolgrad as pg  # noqa: E402
import poolgrad.jax as pool  # noqa: E402
from poolgrad.jax import native  # noqa: E402

KEY = jax.random.key(5)
FLOATS = (np.float64, np.float32, np.float16, ml_dtypes.bfloat16)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build the library if it was not built with the package."""
    with pytest.MonkeyPatch.context() as patch:
        if native.library() is None:
            patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
            native.EXTENSION.build()
            native.available.cache_clear()
        assert native.available()
        yield


@pytest.fixture(params=["compiled", "callback"])
def route(request, built, monkeypatch):
    if request.param == "callback":
        monkeypatch.setattr(native, "available", lambda: False)
    jax.clear_caches()
    from poolgrad.jax import primitives

    primitives._compiled.cache_clear()
    with jax.enable_x64(True):
        yield request.param


def equal(got, want) -> None:
    got = np.asarray(got)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    assert same_bits(got, want).all()


@pytest.mark.parametrize("case", LINEAR, ids=str)
def test_values_and_both_derivatives_have_the_bits_of_numpy(case, route):
    for dtype in FLOATS if route == "compiled" else FLOATS[1::2]:
        x = case.x(dtype)
        v = (case.x() * 3).astype(dtype)[::-1].copy()
        y, back = pg.vjp(lambda a: case.run(pg, a), x)
        g = np.resize(case.x(dtype), y.shape)
        f = jax.jit(lambda a: case.run(pool, a))
        got, pull = jax.vjp(f, jnp.asarray(x))
        equal(got, y)
        equal(pull(jnp.asarray(g))[0], back(g))
        equal(jax.jvp(f, (jnp.asarray(x),), (jnp.asarray(v),))[1], pg.jvp(lambda a: case.run(pg, a), x, v)[1])


@pytest.mark.parametrize("case", POWERS, ids=str)
def test_powers_agree_to_the_last_digits(case, route):
    x = case.x()
    np.testing.assert_allclose(case.run(pool, jnp.asarray(x)), case.run(pg, x), rtol=1e-15)  # XLA has its own power


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.bool_]
)
def test_integers_are_pooled_as_in_numpy(dtype, route):
    x = np.random.default_rng(1).integers(0, 2 if dtype == np.bool_ else 100, (2, 6, 6, 3)).astype(dtype)
    for op in ("max_pool", "min_pool", "sum_pool", "avg_pool"):
        equal(getattr(pool, op)(jnp.asarray(x), 2, layout="NHWC"), getattr(pg, op)(x, 2, layout="NHWC"))
    got = pool.avg_pool(jnp.asarray(x), 3, layout="NHWC", dtype=np.int16, rounding="floor")
    equal(got, pg.avg_pool(x, 3, layout="NHWC", dtype=np.int16, rounding="floor"))


@pytest.mark.parametrize("nan", ["propagate", "ignore", "tf"])
@pytest.mark.parametrize("op", ["max_pool", "min_pool", "avg_pool", "sum_pool"])
def test_nan_and_signed_zeros_are_treated_as_in_numpy(op, nan, route):
    rng = np.random.default_rng(3)
    for dtype in FLOATS:
        x = rng.choice(np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0]), (3, 9, 8)).astype(dtype)
        y, back = pg.vjp(lambda a: getattr(pg, op)(a, (3, 2), 1, axes=(1, 2), nan=nan), x)
        f = jax.jit(lambda a: getattr(pool, op)(a, (3, 2), 1, axes=(1, 2), nan=nan))
        with np.errstate(invalid="ignore"):
            got, pull = jax.vjp(f, jnp.asarray(x))
        np.testing.assert_array_equal(np.asarray(got, np.float64), y.astype(np.float64))
        g = np.ones(y.shape, dtype)
        np.testing.assert_array_equal(np.asarray(pull(jnp.asarray(g))[0], np.float64), back(g).astype(np.float64))


@pytest.mark.parametrize("case", BAD, ids=str)
def test_a_bad_call_is_refused_in_the_words_of_numpy(case):
    assert case.refused_alike(lambda x: case.run(pool, jnp.asarray(x)))


def test_complex_numbers_are_refused_in_the_words_of_numpy():
    x = np.zeros((4, 4), np.complex64)
    with pytest.raises(TypeError) as numpy:
        pg.max_pool(x, 2)
    with pytest.raises(TypeError) as here:
        pool.max_pool(jnp.asarray(x), 2)
    assert str(here.value) == str(numpy.value)


def test_a_compiled_pool_reads_the_caller_s_memory(built):
    x = jnp.ones((64, 64))
    with jax.enable_x64(True):
        call = jax.ffi.ffi_call("poolgrad_address", jax.ShapeDtypeStruct((), jnp.uint64))
        assert int(jax.jit(call)(x)) == x.unsafe_buffer_pointer()


def test_a_compiled_program_has_no_callback(built):
    jax.clear_caches()
    text = jax.jit(jax.grad(lambda x: pool.max_pool(x, 2).sum())).lower(jnp.ones((4, 4))).as_text()
    assert "poolgrad_select" in text
    assert "poolgrad_follow" in text
    assert "callback" not in text


def test_a_key_draws_when_the_program_runs(route):
    f = jax.jit(lambda key, x: pool.fractional_max_pool(x, 1.5, seed=key, return_windows=True))
    x = np.arange(40.0)
    seen = set()
    for key in jax.random.split(KEY, 4):
        y, (pairs,) = f(key, jnp.asarray(x))
        seen.add(np.asarray(pairs).tobytes())
        equal(y, pg.max_pool(x, [np.asarray(pairs)]))
    assert len(seen) == 4
    assert f._cache_size() == 1


def test_keys_can_be_mapped_over(route):
    keys, x = jax.random.split(KEY, 3), jnp.arange(40.0)
    both = jax.vmap(lambda key: jax.grad(lambda a: (pool.fractional_max_pool(a, 1.5, seed=key) ** 2).sum())(x))(keys)
    for key, got in zip(keys, both, strict=True):
        _, (pairs,) = pool.fractional_max_pool(x, 1.5, seed=key, return_windows=True)
        window = [np.asarray(pairs)]
        equal(got, pg.grad(lambda a, w=window: (pg.max_pool(a, w) ** 2).sum(), np.asarray(x)))


def test_a_pool_without_a_seed_is_refused():
    with pytest.raises(ValueError, match=r"fractional_max_pool: seed: got None, wanted an integer"):
        pool.fractional_max_pool(jnp.ones(8), 2.0)


@pytest.mark.parametrize("reduce", ["sum", "assign"])
def test_taps_pass_through_jit_and_unpool_as_in_numpy(reduce, route):
    case = Case("max_pool", (2, 1), {"layout": "NHWC"})
    x = case.x()
    y, taps = case.run(pg, x, return_taps=True)
    got, chosen = jax.jit(lambda a: case.run(pool, a, return_taps=True))(jnp.asarray(x))
    equal(chosen.values, taps.values)
    equal(chosen.flat(), taps.flat())
    equal(chosen.plane(), taps.plane())
    assert chosen.shape == taps.shape
    equal(jax.jit(lambda a, t: pool.unpool(a, t, reduce=reduce))(got, chosen), pg.unpool(y, taps, reduce=reduce))
    jac = jax.jacrev(lambda a: pool.unpool(a, chosen, reduce=reduce))(got)
    np.testing.assert_array_equal(jac, jax.jacfwd(lambda a: pool.unpool(a, chosen, reduce=reduce))(got))
    equal(jac.reshape(x.size, y.size), pg.unpooling(taps, reduce=reduce).matrix())


def test_positions_unpool_as_in_numpy(route):
    index, y = np.array([[1, 1], [0, 3]]), np.array([[1.0, 2.0], [3.0, 4.0]])
    want = pg.unpool(y, index, (2, 4), items=2)
    equal(pool.unpool(jnp.asarray(y), jnp.asarray(index), (2, 4), items=2), want)
    many = jax.vmap(lambda a: pool.unpool(a, jnp.asarray(index), (2, 4), items=2))(jnp.stack([y, 2 * y]))
    equal(many, np.stack([want, 2 * want]))
    flat = pool.unpool(jnp.asarray(y), jnp.asarray(index), (8,), items=2)
    equal(flat, want.reshape(-1))
    grad = jax.grad(lambda a: (pool.unpool(a, jnp.asarray(index), (8,), items=2) ** 2).sum())(jnp.asarray(y))
    equal(grad, pg.grad(lambda a: (pg.unpool(a, index, (8,), items=2) ** 2).sum(), y))
    with pytest.raises(ValueError, match="reduce: got 'mean', wanted 'sum' or 'assign'"):
        pool.unpool(jnp.asarray(y), jnp.asarray(index), (2, 4), reduce="mean")


def test_checkpoint_scan_and_hessian_go_through(route):
    x = jnp.asarray(Case("max_pool").x())

    def loss(a):
        return (pool.max_pool(a, 3, 1, layout="NHWC", padding="same") ** 2).sum()

    np.testing.assert_array_equal(jax.grad(jax.checkpoint(loss))(x), jax.grad(loss)(x))
    twice = jax.lax.scan(lambda a, _: (pool.max_pool(a, 3, 1, layout="NHWC", padding="same"), None), x, None, length=2)[
        0
    ]
    equal(twice, pg.max_pool(np.asarray(x), 5, 1, layout="NHWC", padding="same"))
    hessian = jax.jit(jax.hessian(loss))(x).reshape(x.size, x.size)
    matrix = Case("max_pool", (3, 1), {"layout": "NHWC", "padding": "same"}).matrix()
    np.testing.assert_array_equal(hessian, 2 * matrix.T @ matrix)


def test_half_sums_round_once(route):
    assert pool.avg_pool(jnp.ones((64, 64), jnp.bfloat16), 64).item() == 1.0
    assert pool.sum_pool(jnp.ones(2048 + 8, jnp.float16), 2056).item() == 2056


def test_a_tap_outside_its_window_is_an_error(route):
    y, taps = pool.max_pool(jnp.arange(4.0), 2, return_taps=True)
    wrong = type(taps)(taps.values + jnp.uint8(7), taps.windows, taps.rule)
    with pytest.raises(Exception, match=r"outside its window"):
        pool.unpool(y, wrong).block_until_ready()


def test_the_program_says_which_way_it_goes(built, capsys):
    assert native.main([]) == 0
    assert "pools are XLA calls" in capsys.readouterr().out
    assert native.main(["what"]) == 2


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_large_minima_have_the_bits_of_numpy_too(route, dtype):
    x = np.random.default_rng(0).integers(-99, 99, (3, 400, 300)).astype(dtype)
    assert same_bits(np.asarray(pool.min_pool(jnp.asarray(x), 3, axes=(1, 2))), pg.min_pool(x, 3, axes=(1, 2))).all()


@pytest.mark.parametrize("dtype", [">f4", ">f2", ">i4", ">u2"])
def test_foreign_byte_orders_are_pooled(dtype):
    x = np.array([1, 3, 2, 0], dtype)
    for op in ("max_pool", "min_pool", "sum_pool"):
        got = np.asarray(getattr(pool, op)(x, 2))
        assert got.tolist() == getattr(pg, op)(x.astype(x.dtype.newbyteorder("=")), 2).tolist()


@pytest.mark.parametrize("traced", [False, True])
def test_sums_that_no_type_of_jax_holds_are_refused(traced):
    run = (jax.jit if traced else lambda f: f)(lambda x: pool.sum_pool(x, 2))
    assert run(jnp.array([2**30, 2**30 - 1], jnp.int32)).tolist() == [2**31 - 1]
    with pytest.raises((ValueError, RuntimeError), match=r"sum_pool: .*2147483648"):
        run(jnp.array([2**30, 2**30], jnp.int32))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_powers_of_halves_do_not_overflow(dtype):
    assert pool.lp_pool(jnp.array([300, 400], dtype), 2).astype(float).tolist() == [500]


def test_lp_pool_refuses_in_its_own_name():
    with pytest.raises(ValueError, match=r"^lp_pool: padding: got window 0 of axis 0 without a cell"):
        pool.lp_pool(jnp.ones(2), 1, padding=1)
