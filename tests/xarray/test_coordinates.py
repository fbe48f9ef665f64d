"""Coordinates of pooled arrays: those of coarsen where coarsen has windows, those of the cells of each window elsewhere."""

import numpy as np
import pytest

xr = pytest.importorskip("xarray", reason="xarray is not installed")
pd = pytest.importorskip("pandas")
pytest.importorskip("poolgrad.xarray")


def labels(rng, n):
    """Return coordinates of n cells, of every kind that has a mean."""
    return {
        "float": np.sort(rng.normal(size=n)),
        "falling": -np.arange(n, dtype="f4") / 3,
        "integer": rng.integers(0, 1000, n),
        "boolean": rng.integers(0, 2, n).astype(bool),
        "time": pd.date_range("1998-03-29 01:59:59.123456789", periods=n, freq="37min", unit="ns"),
        "seconds": pd.date_range("1700-01-01", periods=n, freq="D", unit="s").values,
        "duration": pd.timedelta_range("1D", periods=n, freq="7h"),
        "missing": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
    }


KINDS = list(labels(np.random.default_rng(0), 2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("index", [True, False], ids=["index", "no index"])
def test_coordinates_are_those_of_coarsen(kind, index):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(12):
        n, k = int(rng.integers(12, 40)), int(rng.integers(1, 12))
        options = {"boundary": str(rng.choice(["trim", "pad"])), "side": str(rng.choice(["left", "right"]))}
        func = str(rng.choice(["mean", "min", "max"])) if options["boundary"] == "trim" else "mean"
        name = "x" if index else "label"
        x = xr.DataArray(rng.normal(size=n), dims="x", coords={name: ("x", labels(rng, n)[kind], {"long_name": "l"})})
        want = x.coarsen({"x": k}, coord_func={name: func}, **options).max()
        got = x.pool.max({"x": k}, coord_func={name: func}, **options)
        xr.testing.assert_identical(got, want)
        assert got[name].dtype == want[name].dtype


@pytest.mark.parametrize("kind", KINDS)
def test_least_and_largest_labels_of_cut_windows_are_those_of_their_cells(kind):
    cells = labels(np.random.default_rng(0), 7)[kind]
    x = xr.DataArray(np.zeros(7), dims="x", coords={"label": ("x", cells)})
    for func in ("min", "max"):  # coarsen gives NaT, or another dtype, where it pads labels
        got = x.pool.max(x=3, boundary="pad", coord_func={"label": func})["label"]
        parts = [x["label"][a : a + 3] for a in (0, 3, 6)]
        want = xr.concat([getattr(part, func)() for part in parts], "x")
        xr.testing.assert_identical(got.variable, want.variable)
        assert got.dtype == x["label"].dtype


def test_coordinates_of_two_dimensions_are_those_of_coarsen():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        ny, nx, ky, kx = (int(n) for n in (*rng.integers(12, 40, 2), *rng.integers(1, 12, 2)))
        coords = {
            "y": rng.normal(size=ny),
            "lat": (("y", "x"), np.array(rng.normal(size=(ny, nx)), order="F" if seed % 3 else "C")),
            "lon": (("x", "y"), rng.normal(size=(nx, ny)).astype("f4")),
            "name": ("c", ["a", "b"]),
            "when": np.datetime64("2001-02-03"),
        }
        x = xr.DataArray(rng.normal(size=(ny, 2, nx)), dims=("y", "c", "x"), coords=coords)
        options = {"boundary": str(rng.choice(["trim", "pad"])), "side": str(rng.choice(["left", "right"]))}
        xr.testing.assert_identical(x.pool.max(y=ky, x=kx, **options), x.coarsen(y=ky, x=kx, **options).max())


def test_functions_of_coordinates_go_where_coarsen_sends_them():
    x = xr.DataArray(np.arange(12.0), dims="x", coords={"x": np.arange(12) ** 2, "other": ("x", np.arange(12.0))})
    for func in ("min", "max", "median", "sum", "std", "mean", np.max, lambda cells, axis: cells[..., 1]):
        xr.testing.assert_identical(x.pool.max(x=4, coord_func=func), x.coarsen(x=4, coord_func=func).max())
        each = {"other": func}
        xr.testing.assert_identical(x.pool.max(x=4, coord_func=each), x.coarsen(x=4, coord_func=each).max())


@pytest.mark.parametrize(
    ("rule", "want"),
    [("center", [2, 56 / 3, 200 / 3]), ("left", [0, 4, 36]), ("right", [4, 36, 100]), ("middle", [0, 16, 64])],
)
def test_each_window_is_labelled_by_its_cells(rule, want):
    x = xr.DataArray(np.arange(11.0), dims="x", coords={"x": np.arange(11) ** 2})
    got = x.pool.max(x=3, stride=4, padding=(2, 0), dilation=2, boundary="trim", coords=rule)  # 0 2, 2 4 6, 6 8 10
    assert got.x.values.tolist() == pytest.approx(want)


def test_middle_keeps_the_coordinates_of_windows_of_stride_one():
    coords = {"x": pd.date_range("2000", periods=9, freq="D"), "name": ("x", list("abcdefghi"))}
    x = xr.DataArray(np.arange(9.0), dims="x", coords=coords)
    for k in (1, 2, 3, 4, 5):
        got = x.pool.max(x=k, stride=1, padding="same", coords="middle")
        assert got.coords.identical(x.coords)


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_rolling_windows(k):
    rng = np.random.default_rng(k)
    x = xr.DataArray(rng.normal(size=20), dims="x", coords={"x": np.sort(rng.normal(size=20)), "n": ("x", range(20))})
    for reduce in ("max", "min", "mean", "sum"):
        want = getattr(x.rolling(x=k, min_periods=1), reduce)()
        got = getattr(x.pool, reduce)(x=k, stride=1, padding=(k - 1, 0), coords="right")
        xr.testing.assert_allclose(got, want)
        assert got.coords.identical(want.coords)
        if k % 2:
            want = getattr(x.rolling(x=k, min_periods=1, center=True), reduce)()
            xr.testing.assert_allclose(getattr(x.pool, reduce)(x=k, stride=1, padding="same", coords="middle"), want)


def test_text_needs_a_place():
    x = xr.DataArray(np.arange(4.0), dims="x", coords={"name": ("x", list("abcd"))})
    with pytest.raises(
        TypeError, match=r"pool.max: coord_func: got mean for coordinate 'name' .* coord_func=\{'name': 'left'\}"
    ):
        x.pool.max(x=2)
    assert x.pool.max(x=2, coord_func={"name": "left"})["name"].values.tolist() == ["a", "c"]
    assert x.pool.max(x=2, coord_func={"name": "last"})["name"].values.tolist() == ["b", "d"]
    assert x.pool.max(x=2, coords="right")["name"].dtype == x["name"].dtype


def test_long_windows_that_overlap_are_taken_in_parts(monkeypatch):
    from poolgrad.xarray import coordinates

    x = xr.DataArray(
        np.zeros((40, 3)), dims=("x", "y"), coords={"x": np.arange(40.0), "z": (("y", "x"), np.ones((3, 40)))}
    )
    whole = x.pool.max(x=9, stride=1, padding="same")
    monkeypatch.setattr(coordinates, "_MANY", 60)
    taken = []
    laid_out = coordinates._laid_out
    monkeypatch.setattr(coordinates, "_laid_out", lambda *args: taken.append(args) or laid_out(*args))
    xr.testing.assert_identical(x.pool.max(x=9, stride=1, padding="same"), whole)
    assert len(taken) > 8


def test_an_index_of_another_dimension_stays_as_it_is():
    levels = xr.Coordinates.from_pandas_multiindex(
        pd.MultiIndex.from_product([[1, 2], ["a", "b"]], names=("n", "l")), "s"
    )
    x = xr.DataArray(np.arange(16.0).reshape(4, 4), dims=("x", "s"), coords=levels).assign_coords(x=range(4))
    y = x.pool.max(x=2)
    assert y.xindexes["s"].equals(x.xindexes["s"])
    assert y.sel(n=2, l="b").values.tolist() == [7, 15]
    with pytest.raises(
        ValueError, match=r"pool.max: coords: got a PandasMultiIndex over \['s', 'n', 'l'\], wanted an index per"
    ):
        x.pool.max(s=2)


def test_a_dimension_without_an_index_gets_none():
    x = xr.DataArray(np.arange(4.0), dims="x", coords={"x": range(4)}).drop_indexes("x")
    y = x.pool.max(x=2)
    assert y.x.values.tolist() == [0.5, 2.5]
    assert not y.xindexes


def test_names_of_any_kind():
    dims = (0, ("a", 1), "cells of 0")
    x = xr.DataArray(np.arange(8.0).reshape(4, 2, 1), dims=dims).assign_coords(
        q=(dims, np.arange(8.0).reshape(4, 2, 1))
    )
    y = x.pool.max({("a", 1): 2, 0: 2})
    assert (y.values.ravel().tolist(), y.q.values.ravel().tolist()) == ([3, 7], [1.5, 5.5])
    assert x.pool.global_max(d for d in dims[:2]).shape == x.pool.global_max(("a", 1)).isel({0: [0]}).shape == (1, 1, 1)
