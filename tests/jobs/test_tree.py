"""Windows larger than memory: the same bits for any chunks and memory, those of the whole array where sums are exact."""

import numpy as np
import pytest
from job_cases import random_numbers

import poolgrad as pg
from poolgrad.jobs import tree

SHAPE = (7, 70, 45)
POOLS = ("global_max_pool", "global_min_pool", "global_avg_pool", "global_sum_pool")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Make blocks of 8 cells along each of two axes, so that there are several levels."""
    monkeypatch.setattr(tree, "_CELLS", 6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8", "int32"])
@pytest.mark.parametrize("nan", ["propagate", "ignore"])
@pytest.mark.parametrize("op", POOLS)
def test_bits_depend_neither_on_memory_nor_on_chunks(op, nan, dtype):
    pgd = pytest.importorskip("poolgrad.dask", reason="dask is not installed")
    import dask.array as da

    for seed in range(3):
        x = random_numbers(np.random.default_rng(seed), SHAPE, dtype)
        words = {"nan": nan, "axes": (1, 2)}
        with np.errstate(all="ignore"):
            whole = getattr(pg, op)(x, **words)
            found = [pg.pool(x, None, op, tree=True, memory=m, workers=w, **words) for m, w in ((10**5, 1), (10**6, 3))]
            for chunks in (7, (3, 70, 9), (7, 11, 45)):
                found.append(
                    getattr(pgd, op)(da.from_array(x, chunks=chunks), tree=True, **words).compute(scheduler="sync")
                )
            found.append(getattr(pgd, op)(x, tree=True, memory="100KB", **words).compute(scheduler="sync"))
        assert {(y.dtype, y.shape, np.asarray(y).tobytes()) for y in found} == {
            (whole.dtype, whole.shape, np.asarray(found[0]).tobytes())
        }
        if dtype in ("uint8", "int32") or ("sum" not in op and "avg" not in op):
            assert np.asarray(found[0]).tobytes() == whole.tobytes() or (whole == 0).any()  # of zeros, either sign
            assert np.array_equal(found[0], whole, equal_nan=dtype not in ("uint8", "int32"))
        else:
            tolerance = {"float16": 1e-3, "float32": 1e-6, "float64": 1e-12}[dtype]  # a rounding of the result
            scale = np.nanmax(np.abs(np.where(np.isfinite(x), x, 0).astype(float))) * (1 if "avg" in op else x[0].size)
            np.testing.assert_allclose(
                found[0].astype(float), whole.astype(float), rtol=tolerance, atol=tolerance * scale
            )


def test_means_of_integers_are_rounded_once():
    x = np.random.default_rng(0).integers(0, 255, SHAPE, dtype=np.uint8)
    for words in ({"dtype": "uint8"}, {"dtype": "float32"}, {"dtype": "int16", "rounding": "ceil"}, {}):
        got = pg.pool(x, None, "global_avg", tree=True, memory="50KB", **words)
        assert got.tobytes() == pg.global_avg_pool(x, **words).tobytes()
        assert got.dtype == pg.global_avg_pool(x, **words).dtype


def test_the_sum_of_floats_is_that_of_blocks_in_float64():
    x = np.random.default_rng(1).standard_normal(100).astype(np.float32)
    sums = [pg.sum_pool(x.astype(float)[a : a + 64], len(x[a : a + 64])) for a in (0, 64)]
    want = np.float32(sums[0] + sums[1])
    assert pg.pool(x, None, "global_sum", tree=True) == want


def test_a_window_that_does_not_fit_names_the_tree(tmp_path):
    x = np.zeros((100, 100))
    with pytest.raises(
        MemoryError, match=r"tree=True of pool or poolgrad.dask pools windows that are larger than memory"
    ):
        pg.pool(x, None, "global_avg", memory="10KB")
    assert pg.pool(x, tmp_path / "y.npy", "global_avg", memory="50KB", tree=True) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: pg.pool(np.ones(9), None, "max", 2, tree=True),
            "pool: tree: got True, wanted a max, min, avg or sum pool over",
        ),
        (
            lambda: pg.pool(np.ones(1), None, pg.Job("global_avg_pool", (9,), "f8").vjp(), tree=True),
            "pool: tree: got",
        ),
        (lambda: pg.pool(np.ones(9), None, "global_max", tree=True, returns="taps"), "pool: returns"),
    ],
)
def test_other_jobs_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
