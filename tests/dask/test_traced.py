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


def test_a_gradient_reads_its_store_in_regions_that_fit_into_memory(tmp_path):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    x = np.random.default_rng(1).standard_normal((96, 96)).astype(np.float32)
    store = zarr.create_array(str(tmp_path / "x"), shape=x.shape, chunks=(16, 16), dtype="float32")
    store[...] = x
    y, back = pgd.vjp(lambda x: pgd.max_pool(x, 3, 2, padding="same", memory="40KB"), store)
    dx = back(y)
    assert max(dx.numblocks) > 2
    assert all(c % 16 == 0 for lengths in dx.chunks for c in lengths)
    assert not any(str(key).startswith(("array-", "('array-")) for key in dict(dx.__dask_graph__()))  # no blocks of x
    want, want_back = pg.vjp(lambda x: pg.max_pool(x, 3, 2, padding="same"), x)
    assert dx.compute().tobytes() == np.ascontiguousarray(want_back(want)).tobytes()


def test_global_pools_drop_the_axes_that_they_pool_and_no_others():
    x = da.ones((1, 8, 8, 3), chunks=4)
    words = {"axes": (1, 2), "keepdims": False}
    assert pgd.global_max_pool(x, **words).shape == pg.global_max_pool(np.ones(x.shape), **words).shape == (1, 3)
    y, back = pgd.vjp(lambda x: pgd.global_avg_pool(x, **words), x)
    assert (y.shape, back(y).shape) == ((1, 3), x.shape)
    assert [part.shape for part in pgd.global_max_pool(x, return_taps=True, **words)] == [(1, 3), (1, 3)]
    with pytest.raises(ValueError, match="max_pool: keepdims: got False"):
        pgd.max_pool(x, 2, axes=(1, 2), keepdims=False)


def test_global_pools_drop_axes():
    x = np.arange(24.0).reshape(2, 3, 4)
    y, back = pgd.vjp(lambda x: pgd.global_avg_pool(x, axes=(1, 2), keepdims=False), da.from_array(x, chunks=2))
    assert y.compute().tolist() == pg.global_avg_pool(x, axes=(1, 2), keepdims=False).tolist()
    assert back(da.ones(2)).compute().tolist() == np.full((2, 3, 4), 1 / 12).tolist()
