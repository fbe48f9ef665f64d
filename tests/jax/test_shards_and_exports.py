"""Arrays on several devices, exported programs, donated memory: each in a process of its own."""

import os

import pytest
from support import python

jax = pytest.importorskip("jax", reason="jax is not installed")

HEAD = """
import warnings
import jax, jax.numpy as jnp, numpy as np
import poolgrad as pg, poolgrad.jax as pool
from jax.sharding import NamedSharding, PartitionSpec as P

X = np.random.default_rng(0).normal(size=(8, 12, 10, 4)).astype(np.float32)

def best(x):
    return pool.max_pool(x, 3, 2, layout="NHWC", padding="same")

def mean(x):
    return pool.avg_pool(x, 2, layout="NHWC")

def loss(x):
    return (best(x) ** 2).sum() + (mean(x) ** 2).sum()

def mesh(*sizes):
    return jax.make_mesh(sizes, ("a", "b")[: len(sizes)], axis_types=(jax.sharding.AxisType.Auto,) * len(sizes))

WANTED = np.asarray(jax.grad(loss)(X))
"""


def run(code: str, **environment: str) -> str:
    words = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", **environment}
    done = python("-W", "error", "-c", HEAD + code, **words)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_jit_keeps_the_sharding_of_axes_that_are_not_pooled():
    run("""
for sizes, spec, gathers in (((4,), P("a"), False), ((4,), P(None, None, None, "a"), False), ((2, 2), P("a", None, None, "b"), False),
                             ((4,), P(None, "a"), True), ((2, 2), P("b", "a"), True)):
    where = NamedSharding(mesh(*sizes), spec)
    x = jax.device_put(X, where)
    for f in (best, mean, jax.grad(loss), jax.jit(lambda x: jax.jvp(best, (x,), (x,))[1]), lambda x: pool.max_pool(x, 2, layout="NHWC", return_taps=True)[1].values):
        program = jax.jit(f).lower(x).compile()
        text, got = program.as_text(), program(x)
        assert "poolgrad_" in text and "callback" not in text
        assert (np.asarray(got) == np.asarray(f(X))).all(), spec
        if not gathers:
            assert "all-gather" not in text and "all-to-all" not in text, spec
            assert got.sharding.is_equivalent_to(where, 4), (spec, got.sharding)
            assert got.addressable_shards[0].data.shape[0] == 8 // (sizes[0] if spec[0] else 1)
x = jax.device_put(X, NamedSharding(mesh(4), P("a")))
for words in ({"ties": "last"}, {"nan": "tf"}, {"dilation": 2}):  # which run by JAX's own operations here
    f = jax.grad(lambda x: (pool.max_pool(x, 3, 2, layout="NHWC", **words) ** 2).sum())
    program = jax.jit(f).lower(x).compile()
    assert "all-gather" not in program.as_text() and "callback" not in program.as_text()
    assert (np.asarray(program(x)) == np.asarray(f(X))).all()
key = jax.random.key(3)
drawn = jax.jit(lambda key, x: pool.fractional_max_pool(x, 1.5, layout="NHWC", seed=key))
assert (np.asarray(drawn(key, x)) == np.asarray(drawn(key, X))).all()
assert drawn(key, x).sharding.spec[0] == "a"
""")


def test_shard_map_checks_pools_and_their_gradients():
    run("""
here = mesh(4)
grad = jax.jit(jax.shard_map(jax.grad(loss), mesh=here, in_specs=P("a"), out_specs=P("a")))
assert (np.asarray(grad(X)) == WANTED).all()
total = jax.shard_map(lambda x: jax.lax.psum(loss(x), "a"), mesh=here, in_specs=P("a"), out_specs=P())
assert (np.asarray(jax.jit(jax.grad(total))(X)) == WANTED).all()
twice = jax.grad(lambda x: (jax.grad(total)(x) ** 2).sum())(X)
assert (np.asarray(twice) == np.asarray(jax.grad(lambda x: (jax.grad(loss)(x) ** 2).sum())(X))).all()

def drawn(key, x):
    return (pool.fractional_max_pool(x, 1.5, layout="NHWC", seed=key) ** 2).sum()

keys = jax.random.split(jax.random.key(0), 4)  # a key per device, one x for all: its gradient is summed over the devices
apart = jax.shard_map(lambda k, x: jax.lax.psum(drawn(k[0], x), "a"), mesh=here, in_specs=(P("a"), P()), out_specs=P())
wanted = sum(np.asarray(jax.grad(drawn, 1)(key, X)) for key in keys)
np.testing.assert_allclose(jax.jit(jax.grad(apart, 1))(keys, X), wanted, rtol=1e-5, atol=1e-5)  # sums of four in another order
with pool.portable_pools():
    grad = jax.jit(jax.shard_map(jax.grad(lambda x: (best(x) ** 2).sum()), mesh=here, in_specs=P("a"), out_specs=P("a")))
    assert (np.asarray(grad(X)) == np.asarray(jax.grad(lambda x: (best(x) ** 2).sum())(X))).all()
    long = jax.shard_map(lambda x: pool.global_max_pool(x, axes=1), mesh=here, in_specs=P("a"), out_specs=P("a"))
    assert (np.asarray(jax.jit(long)(np.repeat(X, 4, 1))) == X.max(1, keepdims=True)).all()
partly = jax.shard_map(jax.grad(loss), mesh=mesh(2, 2), in_specs=P("a"), out_specs=P("a"), axis_names={"a"})
assert (np.asarray(jax.jit(partly)(X)) == WANTED).all()
""")


def test_explicit_shardings_pass_through_and_pooled_axes_are_refused():
    run("""
here = jax.make_mesh((4,), ("a",), axis_types=(jax.sharding.AxisType.Explicit,))
with jax.set_mesh(here):
    x = jax.device_put(X, P("a"))
    y = jax.jit(best)(x)
    assert jax.typeof(y).sharding.spec[0] == "a"
    assert (np.asarray(jax.jit(jax.grad(loss))(x)) == WANTED).all()
    try:
        jax.jit(best)(jax.device_put(X, P(None, "a")))
    except ValueError as error:
        assert "max_pool: x: got an array with sharding" in str(error) and "axis 1 whole" in str(error), error
    else:
        raise AssertionError
""")


EXPORT = """
from jax import export
x = export.symbolic_args_specs([jax.ShapeDtypeStruct(X.shape, X.dtype)], "b, 12, 10, 4")
def saved(name, f, **words):
    open(f"{folder}/{name}", "wb").write(export.export(jax.jit(f), **words)(*x).serialize(vjp_order=1))
saved("compiled", best, disabled_checks=pool.disabled_checks())
with pool.portable_pools():
    saved("portable", best, platforms=["cpu", "cuda", "tpu"])
    saved("grad", jax.grad(loss), platforms=["cpu", "cuda", "tpu"])
np.save(f"{folder}/wanted.npy", best(X)); np.save(f"{folder}/x.npy", X)
try:
    export.export(jax.jit(lambda x: pool.max_pool(x, 2)))(*export.symbolic_args_specs([jax.ShapeDtypeStruct((8, 8), X.dtype)], "n, 8"))
except ValueError as error:
    assert "max_pool: x: got length n along axis 0, which is pooled, wanted a number" in str(error), error
else:
    raise AssertionError
try:
    export.export(jax.jit(best))(*x)
except ValueError as error:
    assert "poolgrad_select" in str(error)
else:
    raise AssertionError
"""
LOAD = """
import jax, numpy as np
from jax import export
{imports}
x, wanted = np.load(folder + "/x.npy"), np.load(folder + "/wanted.npy")
for batch in (8, 3):
    for name in {names}:
        program = export.deserialize(bytearray(open(folder + "/" + name, "rb").read()))
        assert (np.asarray(program.call(x[:batch])) == wanted[:batch]).all(), name
        back = program.vjp().call(x[:batch], np.ones_like(wanted[:batch]))[0]
        assert back.shape == x[:batch].shape and np.isclose(np.asarray(back).sum(), wanted[:batch].size)
if {portable}:
    grad = export.deserialize(bytearray(open(folder + "/grad", "rb").read()))
    print(np.asarray(grad.call(x)).sum())
    assert "poolgrad" not in __import__("sys").modules
"""


def test_an_exported_program_with_a_symbolic_batch_runs_in_another_process(tmp_path):
    where = f"folder = {os.fspath(tmp_path)!r}\n"
    run(where + EXPORT, XLA_FLAGS="")
    loads = (
        where + LOAD.format(imports="import poolgrad.jax", names="('compiled', 'portable')", portable="False"),
        where + LOAD.format(imports="", names="('portable',)", portable="True"),
    )
    for code in loads:
        done = python("-c", code)
        assert done.returncode == 0, done.stderr[-3000:]


def test_donated_arrays_are_given_up_and_used_again():
    run(
        """
x = jnp.asarray(X)
step = jax.jit(lambda x: x - 0.5 * jax.grad(loss)(x), donate_argnums=0)
wanted = X - 0.5 * WANTED
memory = x.unsafe_buffer_pointer()
program = step.lower(x).compile()
assert "input_output_alias" in program.as_text()
y = step(x)
assert x.is_deleted()
assert y.unsafe_buffer_pointer() == memory
np.testing.assert_allclose(y, wanted, rtol=1e-6)  # XLA may fuse the product and the difference
""",
        XLA_FLAGS="",
    )


def test_a_missing_library_is_said_once(tmp_path):
    code = """
import warnings, jax.numpy as jnp
import poolgrad.jax as pool
from poolgrad.jax import native
native.library = lambda: None
native.available.cache_clear()
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for window in (2, 3):
        pool.max_pool(jnp.arange(12.0), window)
print([str(w.message) for w in seen if "poolgrad" in str(w.message)])
"""
    said = python("-c", code).stdout
    assert said.count("python -m poolgrad.jax build") == 1
    assert python("-c", code, POOLGRAD_JAX="callback").stdout == "[]\n"
    refused = python("-c", "import poolgrad.jax", POOLGRAD_JAX="fast")
    assert "POOLGRAD_JAX: got 'fast', wanted 'compiled', 'callback' or 'portable'" in refused.stderr


def test_the_environment_chooses_the_portable_form():
    code = (
        HEAD
        + "print('poolgrad_' in jax.jit(best).lower(X).as_text(), (best(X) == pg.max_pool(X, 3, 2, layout='NHWC', padding='same')).all())"
    )
    assert python("-c", code, POOLGRAD_JAX="portable").stdout == "False True\n"


WITHOUT_PRIVATE_NAMES = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax, numpy as np
from jax._src import config, dispatch
kept = config.bool_state, dispatch.prim_requires_devices_during_lowering
del config.bool_state, dispatch.prim_requires_devices_during_lowering
import poolgrad as pg, poolgrad.jax as pool
config.bool_state, dispatch.prim_requires_devices_during_lowering = kept  # JAX itself needs them
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from poolgrad.jax import primitives, shards
assert shards._REQUIRING is None and type(primitives._PORTABLE) is primitives._Setting

x = np.random.default_rng(0).integers(-9, 9, (4, 8, 8, 3)).astype(np.float32)
want, back = pg.vjp(lambda a: pg.max_pool(a, 2, layout="NHWC"), x)
run = lambda x: pool.max_pool(x, 2, layout="NHWC")
slope = lambda x: jax.grad(lambda x: (run(x) ** 2).sum())(x)
apart = jax.device_put(x, NamedSharding(Mesh(np.array(jax.devices()), ("b",)), PartitionSpec("b")))
for given in (x, apart):
    y, dx = jax.jit(run)(given), jax.jit(slope)(given)
    assert np.array_equal(y, want) and np.array_equal(dx, back(2 * want))
    assert len(y.sharding.device_set) == len(dx.sharding.device_set) == (1 if given is x else 4)
with pool.portable_pools():
    assert primitives.is_portable() and "poolgrad" not in jax.jit(lambda x: run(x)).lower(x).as_text("hlo")
    assert np.array_equal(jax.jit(lambda x: run(x))(x), want)
assert not primitives.is_portable()
print("fine")
"""


def test_pools_work_in_a_release_of_jax_without_the_private_names():
    done = python("-W", "ignore", "-c", WITHOUT_PRIVATE_NAMES)
    assert done.stdout == "fine\n", done.stderr[-3000:]
