"""A Flax module that pools: initialised, applied, differentiated and compiled."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
nn = pytest.importorskip("flax.linen")

import poolgrad.jax as pool  # noqa: E402


class Block(nn.Module):
    """The module of docs/jax.md."""

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(4, (3, 3))(x))
        x = pool.max_pool(x, 2, layout="NHWC")
        return pool.fractional_max_pool(x, 1.5, layout="NHWC", seed=self.make_rng("pool"))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_a_module_learns(compiled):
    key, other = jax.random.split(jax.random.key(0))
    x = jax.random.normal(key, (2, 12, 12, 3))
    block = Block()
    variables = block.init({"params": key, "pool": key}, x)

    def loss(params):
        return (block.apply({"params": params}, x, rngs={"pool": other}) ** 2).mean()

    step = jax.value_and_grad(loss)
    step = jax.jit(step) if compiled else step
    before, gradient = step(variables["params"])
    params = jax.tree.map(lambda p, g: p - 0.1 * g, variables["params"], gradient)
    assert any(np.abs(g).max() > 0 for g in jax.tree.leaves(gradient))
    assert step(params)[0] < before


def test_windows_follow_the_key():
    key = jax.random.key(1)
    x = jax.random.normal(key, (1, 30, 30, 1))
    block = Block()
    variables = block.init({"params": key, "pool": key}, x)
    one, same, another = (block.apply(variables, x, rngs={"pool": jax.random.key(k)}) for k in (5, 5, 6))
    assert (one == same).all()
    assert one.shape == another.shape
    assert not (one == another).all()
