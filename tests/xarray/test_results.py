"""Results: attributes, names, Datasets as coarsen treats them, and lazy arrays that stay lazy."""

import numpy as np
import pytest

xr = pytest.importorskip("xarray", reason="xarray is not installed")
pytest.importorskip("poolgrad.xarray")


def measured(rng):
    """Return a Dataset whose variables have all, some or none of the pooled dimensions."""
    return xr.Dataset(
        {
            "heat": (("t", "y", "x"), rng.normal(size=(2, 6, 8)), {"units": "K"}),
            "rain": (("x", "y"), rng.integers(0, 9, (8, 6)).astype("f4"), {"units": "mm"}),
            "width": ("x", rng.normal(size=8), {"units": "m"}),
            "when": ("t", ["a", "b"], {"kind": "text"}),
            "place": ((), "here"),
        },
        coords={
            "x": ("x", np.arange(8) * 2, {"axis": "X"}),
            "y": np.arange(6.0),
            "lat": (("y", "x"), rng.normal(size=(6, 8)), {"units": "deg"}),
            "name": ("t", ["one", "two"], {"kind": "text"}),
        },
        attrs={"title": "measured"},
    )


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("windows", [{"x": 2, "y": 3}, {"y": 2}, {"t": 1, "x": 4}])
@pytest.mark.parametrize("reduce", ["max", "mean"])
def test_a_dataset_is_pooled_as_coarsen_does(windows, reduce, keep):
    data = measured(np.random.default_rng(0))
    if "t" in windows:
        data = data.drop_vars(["when", "name"])
    want = getattr(data.coarsen(windows), reduce)(keep_attrs=keep)
    got = getattr(data.pool, reduce)(windows, keep_attrs=keep)
    xr.testing.assert_allclose(got, want, rtol=1e-6)
    assert list(got.variables) == list(want.variables)
    assert got.attrs == want.attrs
    for name, variable in want.data_vars.items():
        assert got[name].attrs == variable.attrs, name
        assert got[name].dims == variable.dims, name
    assert got["x"].attrs == ({"axis": "X"} if keep or "x" not in windows else {})


def test_a_variable_that_cannot_be_pooled_is_named():
    data = measured(np.random.default_rng(0))
    with pytest.raises(TypeError, match="max_pool: x") as caught:
        data.pool.max(t=2, coords="left")
    assert caught.value.__notes__ == ["This is about the variable 'when' of a Dataset."]
    assert data.drop_vars("when").pool.max(t=2, coords="left")["heat"].shape == (1, 6, 8)


def test_name_and_attributes_stay_and_encoding_goes():
    x = xr.DataArray(
        np.arange(4.0), dims="x", coords={"x": ("x", range(4), {"axis": "X"})}, name="heat", attrs={"units": "K"}
    )
    x.encoding, x.x.encoding = {"chunksizes": (2,)}, {"dtype": "i2"}
    y = x.pool.max(x=2)
    assert (y.name, y.attrs, y.x.attrs, y.encoding, y.x.encoding) == ("heat", {"units": "K"}, {"axis": "X"}, {}, {})
    y.attrs["units"] = "C"
    assert x.attrs == {"units": "K"}
    bare = x.pool.max(x=2, keep_attrs=False)
    assert (bare.attrs, bare.x.attrs) == ({}, {})


def test_a_coordinate_can_be_pooled_itself():
    x = xr.DataArray(np.zeros(4), dims="x", coords={"x": [1.0, 5.0, 2.0, 7.0]}).x
    xr.testing.assert_identical(x.pool.max(x=2), x.coarsen(x=2).max())


def test_an_array_without_cells():
    x = xr.DataArray(np.zeros((0, 3)), dims=("x", "y"), coords={"x": np.zeros(0, "M8[ns]"), "y": range(3)})
    y = x.pool.max(x=2)
    assert (y.shape, y.x.dtype) == ((0, 3), np.dtype("M8[ns]"))
    assert x.isel(y=slice(1)).pool.max(y=2, boundary="trim").sizes == {"x": 0, "y": 0}


def test_a_dtype_of_integers_stays():
    x = xr.DataArray(np.arange(5, dtype="u1"), dims="x")
    y = x.pool.max(x=2, boundary="pad")
    assert (y.dtype, y.values.tolist()) == (np.uint8, [1, 3, 4])


# ---- Dask


def lazy(rng, shape=(24, 30), chunks=(5, 7)):
    """Return a DataArray that fails when it is computed, and the array that it stands for."""
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    pytest.importorskip("poolgrad.dask")
    cells = rng.normal(size=shape)

    def forbidden(block):
        raise AssertionError("computed")

    x = da.from_array(cells, chunks=chunks).map_blocks(forbidden, dtype=float, meta=np.empty((0, 0)))
    coords = {"x": np.arange(shape[1]), "lat": (("y", "x"), x)}
    return xr.DataArray(x, dims=("y", "x"), coords=coords, name="heat", attrs={"units": "K"}), cells


CALLS = {
    "max": lambda x: x.pool.max(x=3, y=2),
    "max, side": lambda x: x.pool.max(x=4, y=5, boundary="trim", side="right"),
    "mean": lambda x: x.pool.mean(x=4, y=5, boundary="pad"),
    "sum": lambda x: x.pool.sum(x=13, y=9, stride=1, padding="same", coords="left"),
    "min": lambda x: x.pool.min({"x": 3}, stride=2, dilation=2, boundary="trim", coord_func={"lat": "max"}),
    "taps": lambda x: x.pool.max({"x": 3, "y": 4}, return_taps=True)[1],
    "lp": lambda x: x.pool.lp(x=5, p=3),
    "adaptive": lambda x: x.pool.adaptive_mean(x=7, y=5),
    "fractional": lambda x: x.pool.fractional_max(x=1.7, y=2.1, seed=3),
    "global": lambda x: x.pool.global_mean("x", keepdims=False),
    "global, kept": lambda x: x.pool.global_sum(["x", "y"]),
    "dataset": lambda x: x.to_dataset().pool.mean(x=3, y=2)["heat"],
}


@pytest.mark.parametrize("name", CALLS)
def test_lazy_arrays_stay_lazy(name):
    x, _ = lazy(np.random.default_rng(0))
    y = CALLS[name](x)
    assert hasattr(y.data, "__dask_graph__")
    assert all(hasattr(c.data, "__dask_graph__") for label, c in y.coords.items() if label == "lat")
    with pytest.raises(AssertionError, match="computed"):
        y.compute(scheduler="sync")


@pytest.mark.parametrize("name", CALLS)
def test_any_chunks_give_the_bits_of_the_array_in_memory(name):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    rng = np.random.default_rng(1)
    cells = rng.normal(size=(24, 30))
    cells[rng.random(cells.shape) < 0.05] = np.nan

    def labelled(array, lat):
        return xr.DataArray(array, dims=("y", "x"), coords={"x": range(30), "lat": (("y", "x"), lat)}, name="heat")

    want = CALLS[name](labelled(cells, cells))
    lats = []
    for chunks in ((24, 30), (5, 7), ((1, 20, 3), (30,)), (3, 1)):
        array = da.from_array(cells, chunks=chunks)
        got = CALLS[name](labelled(array, array)).compute(scheduler="sync")
        assert (got.name, got.dims, list(got.coords)) == (want.name, want.dims, list(want.coords))
        assert got.values.tobytes() == want.values.tobytes()
        xr.testing.assert_allclose(got, want)
        lats += [got["lat"].values.tobytes()] if "lat" in got.coords else []
    assert len(set(lats)) <= 1


def test_an_unnamed_lazy_array_stays_unnamed():
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    y, taps = xr.DataArray(da.ones(4, chunks=2), dims="x").rename(None).pool.max(x=2, return_taps=True)
    assert (y.name, taps.name) == (None, "taps")


def test_other_arrays_are_refused():
    class Other(np.lib.mixins.NDArrayOperatorsMixin):
        shape, dtype, ndim = (4,), np.dtype(float), 1
        __array_function__ = __array_ufunc__ = lambda self, *args, **words: NotImplemented

        def __getitem__(self, key):
            return self

    with pytest.raises(TypeError, match=r"pool.max: x: got data of type Other, wanted a NumPy or a Dask array"):
        xr.DataArray(Other(), dims="x").pool.max(x=2)


def test_unknown_chunk_sizes_are_refused():
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    x = da.arange(8, chunks=4)
    with pytest.raises(ValueError, match="max_pool: x: got unknown chunk sizes"):
        xr.DataArray(x[x > 1], dims="x").pool.max(x=2)


def test_dimensions_without_coordinates_need_no_table_of_windows(monkeypatch):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    from poolgrad.xarray.windows import Along

    monkeypatch.setattr(Along, "axis", property(lambda self: pytest.fail("made a table")))
    x = xr.DataArray(da.zeros(10**6, chunks=10**5), dims="x")
    assert x.pool.max(x=2, stride=1, padding=1, boundary="trim").sizes == {"x": 10**6 + 1}
