"""Derivatives of chains of pools on Dask have the bits of those in memory."""

import numpy as np
import pytest

import poolgrad as pg

da = pytest.importorskip("dask.array", reason="dask is not installed")
pgd = pytest.importorskip("poolgrad.dask")


def chain(pools):
    return lambda x: pools.avg_pool(pools.max_pool(x, 3, 2, padding="same") * 0.5, 2, 1, axes=(1,))


@pytest.mark.parametrize("lazy", [True, False], ids=["blocks", "store"])
def test_a_chain_of_pools_and_back(lazy):
    rng = np.random.default_rng(0)
    x, v = rng.standard_normal((2, 50, 41))
    given = da.from_array(x, chunks=(20, 17)) if lazy else x
    y, back = pgd.vjp(chain(pgd), given)
    want, want_back = pg.vjp(chain(pg), x)
    g = rng.standard_normal(want.shape)
    assert y.compute().tobytes() == want.tobytes()
    dx = back(da.from_array(g, chunks=7))
    assert dx.compute().tobytes() == np.ascontiguousarray(want_back(g)).tobytes()
    dy = pgd.jvp(chain(pgd), given, da.from_array(v, chunks=11))[1]
    assert dy.compute().tobytes() == np.ascontiguousarray(pg.jvp(chain(pg), x, v)[1]).tobytes()
    assert not lazy or dx.chunks == given.chunks


def test_global_pools_drop_axes():
    x = np.arange(24.0).reshape(2, 3, 4)
    y, back = pgd.vjp(lambda x: pgd.global_avg_pool(x, axes=(1, 2), keepdims=False), da.from_array(x, chunks=2))
    assert y.compute().tolist() == pg.global_avg_pool(x, axes=(1, 2), keepdims=False).tolist()
    assert back(da.ones(2)).compute().tolist() == np.full((2, 3, 4), 1 / 12).tolist()
