"""NumPy and every adapter that can be imported give the same bits, for values and for their derivatives.

An adapter takes part by a function in ADAPTERS: from a pool's name, its words and arrays x, g, v to [y, dx, ddy]:
the pooled x, the gradient of <y, g>, and its derivative along v at g, which is the pooled v with the choice that x made.
"""

import numpy as np
import pytest

import poolgrad as pg

DTYPES = ["float16", "bfloat16", "float32", "float64"]
POOLS = {
    "max": {"window": 3, "stride": 2, "padding": 1},
    "min": {"window": 2, "stride": 1, "padding": "same"},
    "avg": {"window": 3, "stride": 2, "padding": 1},
    "adaptive max": {"size": (2, 3)},
    "adaptive avg": {"size": (2, 3)},
    "fractional max": {"size": (4, 5), "seed": (3, 4), "overlapping": True},
    "fractional avg": {"size": (4, 5), "seed": (3, 4)},
}
SHAPE = (2, 3, 7, 9)


def by_numpy(pool, words, x, g, v):
    """Return the definition: a pool of the pythonic API, its vjp, and the vjp of that."""
    axes = (2, 3)
    name = pool.replace(" ", "_") + "_pool"
    f = lambda x: getattr(pg, name)(x, axes=axes, **words)  # noqa: E731
    y, back = pg.vjp(f, x)
    return [y, back(g), pg.jvp(f, x, v)[1]]


def by_torch(pool, words, x, g, v):
    """Return the results of poolgrad.torch, with double backward."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    import ml_dtypes

    import poolgrad.torch as pgt

    def there(a):
        half = a.dtype == ml_dtypes.bfloat16
        return torch.from_numpy(a.view(np.uint16)).view(torch.bfloat16) if half else torch.from_numpy(a)

    def back(t):
        t = t.detach()
        return t.view(torch.uint16).numpy().view(ml_dtypes.bfloat16) if t.dtype == torch.bfloat16 else t.numpy()

    names = {"window": "kernel_size", "size": "output_size"}
    words = {names.get(word, word): value for word, value in words.items()}
    if pool == "avg":
        words["count_include_pad"] = False
    a, h = there(x).requires_grad_(), there(g).requires_grad_()
    y = getattr(pgt, pool.replace(" ", "_") + "_pool2d")(a, **words)
    (dx,) = torch.autograd.grad(y, a, h, create_graph=True)
    (ddy,) = torch.autograd.grad(dx, h, there(v))
    return [back(y), back(dx), back(ddy)]


ADAPTERS = {"torch": by_torch}


def numbers(shape, dtype, seed):
    """Return numbers with many digits, some of them equal."""
    import ml_dtypes

    made = np.random.default_rng(seed).normal(size=shape)
    made.reshape(-1)[::7] = 0.5
    return made.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_adapter_gives_the_bits_of_numpy(adapter, pool, dtype):
    x, v = numbers(SHAPE, dtype, 0), numbers(SHAPE, dtype, 1)
    words = POOLS[pool]
    g = numbers(getattr(pg, pool.replace(" ", "_") + "_pool")(x, axes=(2, 3), **words).shape, dtype, 2)
    wanted = by_numpy(pool, words, x, g, v)
    got = ADAPTERS[adapter](pool, words, x, g, v)
    for what, one, other in zip(("y", "dx", "ddy"), got, wanted, strict=True):
        assert one.dtype == other.dtype == x.dtype
        assert one.shape == other.shape
        assert np.array_equal(np.ascontiguousarray(one).view(np.uint8), np.ascontiguousarray(other).view(np.uint8)), (
            what
        )
