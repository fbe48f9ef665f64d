"""The pools under TensorFlow: NumPy's bits and errors, gradients to the third order, eager, traced and in forward mode."""

import ml_dtypes
import numpy as np
import pytest
from support import python, same_bits
from traced_cases import ALL, BAD, LINEAR, Case

tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed")

import poolgrad as pg  # noqa: E402
import poolgrad.tensorflow as pool  # noqa: E402

IMAGE = Case("max_pool", (2, 1), {"layout": "NHWC"})


def equal(got, want) -> None:
    got = got.numpy()
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    assert same_bits(got, want).all()


def pulled(f, x, g):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return y, tape.gradient(y, x, g)


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
@pytest.mark.parametrize("case", LINEAR, ids=str)
def test_values_and_gradients_have_the_bits_of_numpy(case, traced):
    for dtype in (np.float64, np.float32, ml_dtypes.bfloat16) if not traced else (np.float32,):
        x = case.x(dtype)
        y, back = pg.vjp(lambda a: case.run(pg, a), x)
        g = np.resize(case.x(dtype), y.shape)
        run = tf.function(pulled, reduce_retracing=True) if traced else pulled
        got, dx = run(lambda a: case.run(pool, a), tf.constant(x), tf.constant(g))
        equal(got, y)
        equal(dx, back(g))


def cubed(f, x):
    """Return the first three derivatives of the sum of cubes."""
    with tf.GradientTape() as third:
        third.watch(x)
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as first:
                first.watch(x)
                y = tf.reduce_sum(f(x) ** 3)
            dx = first.gradient(y, x)
            along = tf.reduce_sum(dx * tf.cos(x))
        ddx = second.gradient(along, x)
        twice = tf.reduce_sum(ddx * tf.sin(x))
    return dx, ddx, third.gradient(twice, x)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_gradients_to_the_third_order_are_those_of_the_matrix(case):
    x = tf.constant(case.x())
    if case.op == "lp_pool":
        p, words = case.words.get("p", 2), {k: v for k, v in case.words.items() if k != "p"}
        total = tf.constant(Case("sum_pool", case.args, words, case.shape).matrix())
        want = cubed(lambda a: tf.linalg.matvec(total, tf.reshape(tf.abs(a) ** p, [-1])) ** (1 / p), x)
    else:
        matrix = tf.constant(case.matrix())
        want = cubed(lambda a: tf.linalg.matvec(matrix, tf.reshape(a, [-1])), x)
    for got, expected in zip(cubed(lambda a: case.run(pool, a), x), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)  # a matrix product adds in another order


@pytest.mark.parametrize("case", LINEAR, ids=str)
def test_forward_mode_has_the_bits_of_numpy(case):
    x = case.x()
    v = case.x()[::-1].copy()
    with tf.autodiff.ForwardAccumulator(primals := tf.constant(x), tf.constant(v)) as acc:
        y = case.run(pool, primals)
    equal(acc.jvp(y), pg.jvp(lambda a: case.run(pg, a), x, v)[1])


@pytest.mark.parametrize("case", BAD, ids=str)
def test_a_bad_call_is_refused_in_the_words_of_numpy(case):
    assert case.refused_alike(lambda x: case.run(pool, tf.constant(x)))


def test_a_batch_of_unknown_size_keeps_its_static_shape():
    @tf.function(input_signature=[tf.TensorSpec([None, 6, 5, None])])
    def run(x):
        y = pool.max_pool(x, 2, layout="NHWC")
        assert y.shape.as_list() == [None, 3, 2, None]
        return y, tf.gradients(y, x)[0]

    x = IMAGE.x(np.float32)
    y, back = pg.vjp(lambda a: pg.max_pool(a, 2, layout="NHWC"), x)
    got, dx = run(x)
    equal(got, y)
    equal(dx, back(np.ones_like(y)))


def test_an_unknown_length_along_a_pooled_axis_is_refused():
    run = tf.function(lambda x: pool.max_pool(x, 2), input_signature=[tf.TensorSpec([None])])
    with pytest.raises(ValueError, match="max_pool: x: got an unknown length along axis 0, which is pooled"):
        run(np.ones(4, np.float32))


def test_windows_are_fresh_at_each_call_and_follow_the_seed_of_tensorflow():
    run = tf.function(lambda x: pool.fractional_max_pool(x, 1.5))

    def drawn():
        tf.random.set_seed(3)
        return [run(tf.range(64.0)).numpy().tobytes() for _ in range(4)]

    first = drawn()
    assert len(set(first)) == 4
    run = tf.function(lambda x: pool.fractional_max_pool(x, 1.5))
    assert drawn() == first


def test_the_windows_that_were_drawn_can_be_pooled_again():
    x = np.arange(40.0)
    y, (pairs,) = pool.fractional_avg_pool(tf.constant(x), 1.5, return_windows=True)
    equal(y, pg.avg_pool(x, [pairs.numpy()]))


@pytest.mark.parametrize("reduce", ["sum", "assign"])
def test_taps_unpool_as_in_numpy_with_their_gradient(reduce):
    x = IMAGE.x()
    y, taps = IMAGE.run(pg, x, return_taps=True)
    got, chosen = IMAGE.run(pool, tf.constant(x), return_taps=True)
    equal(chosen.values, taps.values)
    equal(chosen.flat(), taps.flat())
    back, dy = pulled(lambda a: pool.unpool(a, chosen, reduce=reduce), got, tf.constant(x))
    equal(back, pg.unpool(y, taps, reduce=reduce))
    equal(dy, pg.unpooling(taps, reduce=reduce).T(x))


def test_integers_are_pooled_as_in_numpy():
    x = np.random.default_rng(1).integers(0, 100, (2, 6, 6, 3)).astype(np.uint8)
    for op in ("max_pool", "min_pool", "sum_pool", "avg_pool"):
        equal(getattr(pool, op)(tf.constant(x), 2, layout="NHWC"), getattr(pg, op)(x, 2, layout="NHWC"))


def test_xla_says_that_it_cannot():
    run = tf.function(lambda x: pool.max_pool(x, 2), jit_compile=True)
    with pytest.raises(tf.errors.OpError, match="unsupported operations"):
        run(tf.range(4.0))


def test_a_data_set_maps_a_pool():
    data = tf.data.Dataset.from_tensor_slices(np.arange(12.0).reshape(2, 6)).map(lambda x: pool.max_pool(x, 2))
    assert [y.numpy().tolist() for y in data] == [[1, 3, 5], [7, 9, 11]]


TRACED = """
import tensorflow as tf
import poolgrad.tensorflow as pool
calls = {
    "lp_pool": dict(window=2), "unpool": None, "adaptive_max_pool": dict(size=2), "adaptive_avg_pool": dict(size=2),
    "fractional_max_pool": dict(ratio=2.0), "fractional_avg_pool": dict(ratio=2.0),
    **{f"global_{n}_pool": {} for n in ("max", "min", "avg", "sum")}, **{f"{n}_pool": dict(window=2) for n in ("max", "min", "avg", "sum")},
}
assert len(calls) == 14
for name, words in calls.items():
    def run(x):
        if words is None:
            y, taps = pool.max_pool(x, 2, return_taps=True)
            y = pool.unpool(y, taps) + tf.cast(taps.flat()[0], tf.float32)
        else:
            y = getattr(pool, name)(x, **words)
        return tf.gradients(y, x)
    tf.function(run)(tf.range(4.0))
"""


def test_autograph_warns_of_no_pool(tmp_path):
    job = tmp_path / "job.py"  # AutoGraph converts only functions whose source it can read
    job.write_text(TRACED, "utf-8")
    done = python(str(job), TF_CPP_MIN_LOG_LEVEL="3")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "AutoGraph" not in done.stderr
