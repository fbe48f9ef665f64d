"""The pools in JAX's own operations, forced on the CPU: the bits of the core for choices, sums within rounding; lowered for other platforms."""

import ml_dtypes
import numpy as np
import pytest
from support import same_bits

jax = pytest.importorskip("jax", reason="jax is not installed")

import jax.numpy as jnp  # noqa: E402
from jax import export  # noqa: E402
from traced_cases import ALL, LINEAR, PICKS, POWERS, Case  # noqa: E402

import poolgrad as pg  # noqa: E402
import poolgrad.jax as pool  # noqa: E402

FLOATS = (np.float64, np.float32, np.float16, ml_dtypes.bfloat16)
QUICKLY = {"xla_backend_optimization_level": 0}  # each compiled function runs once


@pytest.fixture(autouse=True)
def _portable():
    with jax.enable_x64(True), pool.portable_pools():
        yield


def equal(got, want) -> None:
    got = np.asarray(got)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    assert same_bits(got, want).all()


def near(got, want) -> None:
    """Compare sums: a sum of k terms in another order differs by at most k roundings of its largest partial sum."""
    got = np.asarray(got)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    wide, scale = want.astype(np.float64), np.abs(want.astype(np.float64))
    tolerance = 32 * float(ml_dtypes.finfo(want.dtype).eps)
    np.testing.assert_allclose(
        got.astype(np.float64), wide, rtol=tolerance, atol=tolerance * scale[np.isfinite(scale)].max(initial=0)
    )


def all_of(case, x, g, v):
    """Return the pooled x, the gradient of <y, g>, and the derivative along v, by NumPy and portably."""
    y, back = pg.vjp(lambda a: case.run(pg, a), x)
    wanted = [y, back(g), pg.jvp(lambda a: case.run(pg, a), x, v)[1]]

    def three(x, g, v):
        y, back = jax.vjp(lambda a: case.run(pool, a), x)
        return y, back(g)[0], jax.jvp(lambda a: case.run(pool, a), (x,), (v,))[1]

    program = jax.jit(three, compiler_options=QUICKLY)
    assert "poolgrad_" not in program.lower(x, g, v).as_text()
    return program(x, g, v), wanted


def compare(case, x, v):
    g = np.resize(v, np.shape(case.run(pg, x)))
    got, wanted = all_of(case, x, g, v)
    picks = case.words.get("ties", "first") in ("first", "last") and ("max" in case.op or "min" in case.op)
    for one, other in zip(got, wanted, strict=True):
        (equal if picks else near)(one, other)


@pytest.mark.parametrize("case", LINEAR, ids=str)
def test_choices_and_their_derivatives_have_the_bits_of_the_core_and_sums_are_near(case):
    dtype = FLOATS[LINEAR.index(case) % 4]
    x = np.round(case.x() / 3).astype(dtype)  # with ties
    compare(case, x, (case.x() * 3)[::-1].astype(dtype))


@pytest.mark.parametrize("case", POWERS, ids=str)
def test_powers_are_near(case):
    near(case.run(pool, jnp.asarray(case.x())), case.run(pg, case.x()))


WIDE = (
    Case("max_pool", (40,), {"axes": 1, "stride": 7}, (2, 90, 2)),  # windows longer than loops are unrolled
    Case("max_pool", (35, 1), {"axes": 1, "ties": "last"}, (2, 60)),
    Case("max_pool", ((9, 8), 3), {"axes": (0, 2), "padding": "same"}, (20, 2, 17)),
    Case("global_max_pool", (), {"axes": (1, 2)}, (2, 20, 15)),  # taps of four bytes
    Case("global_min_pool", (), {"axes": (0, 2), "keepdims": False}, (40, 2, 3)),
    Case("adaptive_max_pool", ((3, 2),), {"axes": (0, 1)}, (37, 41)),
    Case("avg_pool", (40, 3), {"axes": 0}, (90, 3)),
    Case("global_avg_pool", (), {"axes": (1, 2)}, (2, 40, 15)),
    Case("sum_pool", ((9, 8), 2), {"padding": "same"}, (20, 17)),
    Case("max_pool", (3, 2), {"axes": (1, 2), "dilation": 2, "padding": 2}, (2, 9, 8)),
    Case("max_pool", (2,), {"axes": (0, 1)}, (7, 6, 0)),
)


@pytest.mark.parametrize("case", WIDE, ids=str)
def test_long_windows_are_reduced_axis_by_axis(case):
    rng = np.random.default_rng(5)
    compare(case, rng.integers(-40, 40, case.shape).astype(np.float32), rng.normal(size=case.shape).astype(np.float32))


@pytest.mark.parametrize("nan", ["propagate", "ignore", "tf"])
@pytest.mark.parametrize("op", ["max_pool", "min_pool", "avg_pool", "sum_pool"])
def test_nan_infinities_zeros_and_subnormals_are_those_of_the_core(op, nan):
    rng = np.random.default_rng(3)
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0, 1e-40, -2e-40])
    picks = op in ("max_pool", "min_pool")
    for dtype, ties in zip(FLOATS[1:], ("first", "last", "split") if picks else ("first",), strict=False):
        x = rng.choice(values[: 9 if picks else 7], (3, 9, 8)).astype(dtype)
        words = {"axes": (1, 2), "nan": nan, **({"ties": ties} if picks else {})}
        case = Case(op, ((3, 2), 1), words, x.shape)
        with np.errstate(invalid="ignore"):
            compare(case, x, np.arange(216.0).reshape(x.shape).astype(dtype) - 100)


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.bool_]
)
def test_integers_are_pooled_as_in_numpy(dtype):
    x = np.random.default_rng(1).integers(0, 2 if dtype == np.bool_ else 100, (2, 6, 6, 3)).astype(dtype)
    x = -x if np.dtype(dtype).kind == "i" else x
    for op in ("max_pool", "min_pool", "sum_pool", "avg_pool"):
        equal(getattr(pool, op)(jnp.asarray(x), 2, layout="NHWC"), getattr(pg, op)(x, 2, layout="NHWC"))
    for rounding in ("nearest", "floor", "ceil", "toward_zero") if dtype in (np.int8, np.uint32) else ():
        words = {"layout": "NHWC", "dtype": np.int16, "rounding": rounding}
        equal(pool.avg_pool(jnp.asarray(x), (3, 2), **words), pg.avg_pool(x, (3, 2), **words))


@pytest.mark.parametrize("overlapping", [False, True])
def test_a_key_draws_the_windows_of_numpy(overlapping):
    x = np.arange(43.0)
    for key in jax.random.split(jax.random.key(5), 3):
        words = {"overlapping": overlapping, "return_windows": True}
        y, (pairs,) = pool.fractional_max_pool(jnp.asarray(x), 1.7, seed=key, **words)
        first, second = (int(word) for word in jax.random.key_data(key))
        wanted, (axis,) = pg.fractional_max_pool(x, 1.7, seed=(first, second), **words)
        assert np.asarray(pairs).tolist() == [list(pair) for pair in axis.pairs()]
        equal(y, wanted)
    for seed in (jnp.array([-3, 4]), jnp.int32(-7), jnp.uint32(9)):
        pair = (int(seed.reshape(-1)[0]), int(seed.reshape(-1)[1]) if seed.size > 1 else 0)
        got = pool.fractional_avg_pool(jnp.asarray(x), size=9, seed=seed, overlapping=overlapping)
        near(got, pg.fractional_avg_pool(x, size=9, seed=pair, overlapping=overlapping))


@pytest.mark.parametrize("reduce", ["sum", "assign"])
def test_taps_unpool_as_in_numpy(reduce):
    case = Case("max_pool", (2, 1), {"layout": "NHWC"})
    x = case.x()
    y, taps = case.run(pg, x, return_taps=True)
    got, chosen = case.run(pool, jnp.asarray(x), return_taps=True)
    equal(chosen.values, taps.values)
    equal(chosen.flat(), taps.flat())
    equal(chosen.plane(), taps.plane())
    equal(pool.unpool(got, chosen, reduce=reduce), pg.unpool(y, taps, reduce=reduce))
    jac = jax.jacrev(lambda a: pool.unpool(a, chosen, reduce=reduce))(got)
    equal(jac.reshape(x.size, y.size), pg.unpooling(taps, reduce=reduce).matrix())


@pytest.mark.parametrize("reduce", ["sum", "assign"])
def test_positions_unpool_as_in_numpy(reduce):
    rng = np.random.default_rng(2)
    index, y = rng.integers(0, 6, (2, 9)), rng.normal(size=(2, 9)).astype(np.float32)
    words = {"items": 2, "reduce": reduce}
    equal(pool.unpool(jnp.asarray(y), jnp.asarray(index), (2, 6), **words), pg.unpool(y, index, (2, 6), **words))
    both = jnp.stack([y, 2 * y])
    many = jax.vmap(lambda a: pool.unpool(a, jnp.asarray(index), (2, 6), **words))(both)
    equal(many[1], pg.unpool(2 * y, index, (2, 6), **words))
    jac = jax.jacfwd(lambda a: pool.unpool(a, jnp.asarray(index), (2, 6), **words))(jnp.asarray(y))
    equal(jac.reshape(12, 18), pg.unpooling(index, (2, 6), **words).matrix().astype(np.float32))


def test_mapped_keys_pool_one_after_the_other():
    keys, x = jax.random.split(jax.random.key(5), 3), jnp.arange(40.0)
    both = jax.vmap(lambda key: jax.grad(lambda a: (pool.fractional_max_pool(a, 1.5, seed=key) ** 2).sum())(x))(keys)
    with pool.portable_pools(False):
        for key, got in zip(keys, both, strict=True):
            wanted = jax.grad(lambda a, k=key: (pool.fractional_max_pool(a, 1.5, seed=k) ** 2).sum())(x)
            equal(got, np.asarray(wanted))


@pytest.mark.parametrize("case", ALL, ids=str)
def test_a_pool_and_its_gradient_lower_for_devices_without_a_call(case):
    x = jax.ShapeDtypeStruct(case.shape, jnp.float32)
    with pool.portable_pools(False):
        both = jax.jit(jax.value_and_grad(lambda a: (case.run(pool, a) ** 2).sum()))
        text = export.export(both, platforms=["tpu", "cuda"])(x).mlir_module()
    assert "stablehlo.custom_call" not in text
    assert "stablehlo.scatter" not in text


def test_the_block_ends_and_both_forms_are_kept_apart():
    x = jnp.asarray(np.random.default_rng(0).normal(size=(8, 8)), jnp.float32)

    def text():
        return jax.jit(lambda a: pool.max_pool(a, 2)).lower(x).as_text()

    assert "poolgrad_" not in text()
    with pool.portable_pools(False):
        assert "poolgrad_select" in text() or "callback" in text()
    for _ in range(2):
        equal(pool.max_pool(x, 2), np.asarray(pg.max_pool(np.asarray(x), 2)))


def test_the_most_windows_and_cells_hold_for_every_seed():
    from poolgrad._frameworks.spec import frame_of

    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(1, 60))
        words = {"size": int(rng.integers(1, n + 1)), "seed": int(rng.integers(1000))}
        words |= {"pseudo_random": bool(rng.integers(2)), "overlapping": bool(rng.integers(2))}
        axis = pg.fractional_windows(n, **words)
        exact, bound = frame_of({0: axis}).reach[0], frame_of({0: axis}, True, words["overlapping"]).reach[0]
        assert exact[0] <= bound[0], (n, words)
        assert exact[1] <= bound[1], (n, words)


def test_the_table_has_choices_of_every_kind():
    assert {case.words.get("ties", "first") for case in PICKS} == {"first", "last", "all", "split"}
