"""Every composition of three of jvp, vjp and vmap, for every pool, against the pool as a matrix.

A composition of two or one is the inner part of several of three. A case of each kind of operator has all compositions, every other
case a third of them, among which every two transformations meet at every two places.
"""

from itertools import product

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")

import jax.numpy as jnp  # noqa: E402
from traced_cases import ALL, LINEAR, POWERS, Case  # noqa: E402

import poolgrad as pg  # noqa: E402
import poolgrad.jax as pool  # noqa: E402

WORDS = list(product("JVB", repeat=3))
SOME = [word for word in WORDS if sum(map("JVB".index, word)) % 3 == 0]
KINDS = {
    "max_pool-(3,2)-padding=same",
    "max_pool-(2,1)-ties=split",
    "avg_pool-(2,1)-nan=ignore-dilation=(1,2)",
    "fractional_avg_pool-(1.5,)-seed=(3,4)",
    "lp_pool-(2,)-",
}
SCALES = np.array([1.0, 0.5])  # a pool of c·x is c times the pool of x: the choice stays


@pytest.fixture(autouse=True)
def _wide():
    jax.config.update("jax_enable_x64", True)  # everywhere: callbacks run in threads that no context reaches
    yield
    jax.config.update("jax_enable_x64", False)


def composed(word, f, x):
    """Apply all transformations of the word, the first one innermost, at x."""
    v = jnp.asarray(np.random.default_rng(7).integers(-3, 4, x.shape) / 4.0)
    for letter in word:
        f = {"J": _pushed, "V": _pulled, "B": _mapped}[letter](f, v)
    return f(x)


def _pushed(f, v):
    return lambda x: jax.jvp(f, (x,), (v,))[1]


def _pulled(f, v):
    def pulled(x):
        y, back = jax.vjp(f, x)
        return back(jnp.cos(jnp.arange(y.size, dtype=y.dtype)).reshape(y.shape))[0]

    return pulled


def _mapped(f, v):
    scales = jnp.asarray(SCALES)
    return lambda x: jax.vmap(lambda c: f(c * x))(scales).sum(0)


def tower(f, words):
    """Return the compositions at once, of the pool cubed: its third derivative is not 0."""

    def values(x):
        return {"".join(word): composed(word, lambda a: f(a) ** 3, x) for word in words}

    return values


def reference(case: Case):
    """Return the same function in JAX's own terms."""
    if case.op != "lp_pool":
        matrix, shape = jnp.asarray(case.matrix()), np.shape(case.run(pg, case.x()))
        return lambda x: (matrix @ x.reshape(-1)).reshape(shape)
    p, words = case.words.get("p", 2), {k: v for k, v in case.words.items() if k != "p"}
    total = reference(Case("sum_pool", case.args, words, case.shape))
    return lambda x: total(jnp.abs(x) ** p) ** (1 / p)


# Other platforms run the same rules by other operations: a case of each kind of operator.
PORTABLE = [case for case in ALL if str(case) in KINDS]


@pytest.mark.parametrize(("case", "portable"), [*((c, False) for c in ALL), *((c, True) for c in PORTABLE)], ids=str)
def test_every_composition_to_the_third_order_is_that_of_the_matrix(case, portable):
    x, words = jnp.asarray(case.x()), WORDS if case in PORTABLE else SOME
    quickly = {"xla_backend_optimization_level": 0}  # each compiled function runs once
    with pool.portable_pools(portable):
        got = jax.jit(tower(lambda a: case.run(pool, a), words), compiler_options=quickly)(x)
    want = jax.jit(tower(reference(case), words), compiler_options=quickly)(x)
    assert len(got) == len(words)
    for word in got:
        # a matrix product adds in another order
        np.testing.assert_allclose(got[word], want[word], rtol=1e-9, atol=1e-9, err_msg=word)


def test_the_table_has_every_function():
    assert len(PORTABLE) == len(KINDS)
    assert {case.op for case in (*LINEAR, *POWERS)} == {name for name in dir(pool) if name.endswith("_pool")}
