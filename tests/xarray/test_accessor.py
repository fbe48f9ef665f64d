"""The accessor: every pool by names of dimensions, its errors, and the examples of coarsen in xarray's documentation."""

import doctest

import numpy as np
import pytest
from support import python

import poolgrad as pg

xr = pytest.importorskip("xarray", reason="xarray is not installed")
pd = pytest.importorskip("pandas")
module = pytest.importorskip("poolgrad.xarray")


def grid(seed=0, shape=(6, 8, 3), dtype=float):
    """Return a cube with coordinates along two of its three dimensions."""
    cells = np.random.default_rng(seed).integers(-50, 50, shape).astype(dtype)
    coords = {"y": np.arange(shape[0]) * 10.0, "x": ("x", np.arange(shape[1])[::-1] ** 2, {"units": "m"})}
    return xr.DataArray(cells, dims=("y", "x", "c"), coords=coords, name="heat", attrs={"units": "K"})


# ---- the examples of coarsen in xarray's documentation: the docstrings of DataArray and Dataset, and the guide to computation


def days():
    return xr.DataArray(
        np.linspace(0, 364, num=364),
        dims="time",
        coords={"time": pd.date_range("1999-12-15", periods=364)},
    )


def plane():
    cells = np.sin(np.linspace(0, 2 * np.pi, 360)).reshape(180, 2).repeat(5, 1)[:, :9]
    coords = {"time": pd.date_range("1999-12-15", periods=180), "x": np.linspace(0, 1, 9)}
    return xr.DataArray(cells, dims=["time", "x"], coords=coords)


DOCUMENTED = {
    "docstring": (days, {"time": 3}, {"boundary": "trim"}),
    "guide, two dimensions": (lambda: plane().isel(x=slice(8)), {"time": 30, "x": 2}, {}),
    "guide, trim": (plane, {"time": 7, "x": 2}, {"boundary": "trim"}),
    "guide, coord_func": (plane, {"time": 7, "x": 2}, {"boundary": "trim", "coord_func": {"time": "min"}}),
    "pad": (plane, {"time": 7, "x": 2}, {"boundary": "pad"}),
    "side": (plane, {"time": 7, "x": 2}, {"boundary": "trim", "side": "right"}),
    "boundary per dimension": (plane, {"time": 7, "x": 2}, {"boundary": {"time": "trim", "x": "pad"}}),
}


@pytest.mark.parametrize("name", DOCUMENTED)
@pytest.mark.parametrize("reduce", ["mean", "max", "min", "sum"])
def test_the_examples_of_coarsen(name, reduce):
    make, windows, options = DOCUMENTED[name]
    want = getattr(make().coarsen(windows, **options), reduce)()
    got = getattr(make().pool, reduce)(windows, **options)
    xr.testing.assert_allclose(got, want, rtol=1e-15, atol=1e-15)  # sums have another order
    for coordinate in want.coords:
        xr.testing.assert_identical(got[coordinate].variable, want[coordinate].variable)


# ---- the pools


@pytest.mark.parametrize(
    ("name", "op", "options"),
    [
        ("max", pg.max_pool, {}),
        ("min", pg.min_pool, {}),
        ("mean", pg.avg_pool, {}),
        ("avg", pg.avg_pool, {"dtype": "float32"}),
        ("mean", pg.avg_pool, {"divisor": 3}),
        ("sum", pg.sum_pool, {}),
        ("lp", pg.lp_pool, {"p": 3}),
    ],
)
def test_a_pool_has_the_bits_of_the_pool_of_the_array(name, op, options):
    x = grid()
    got = getattr(x.pool, name)(
        {"x": 3, "y": 2}, stride={"x": 2}, padding={"x": (1, 0)}, dilation={"y": 2}, boundary="trim", **options
    )
    want = op(x.values, [2, 3], [2, 2], padding=[(0, 0), (1, 0)], dilation=[2, 1], axes=(0, 1), **options)
    assert got.dims == x.dims
    assert got.values.dtype == want.dtype
    assert np.array_equal(got.values, want)


def test_adaptive_global_and_fractional_pools():
    x = grid()
    assert (x.pool.adaptive_max({"x": 3}).values == pg.adaptive_max_pool(x.values, 3, axes=1)).all()
    assert (x.pool.adaptive_avg(x=3, y=2).values == pg.adaptive_avg_pool(x.values, (2, 3), axes=(0, 1))).all()
    assert x.pool.adaptive_mean(y=4).y.values.tolist() == [5, 15, 35, 45]  # the cells 0-1, 1-2, 3-4, 4-5
    for reduce in ("max", "min", "mean", "sum"):
        whole = getattr(x.pool, f"global_{reduce}")
        xr.testing.assert_allclose(whole(["y", "x"], keepdims=False), getattr(x, reduce)(["y", "x"], keep_attrs=True))
        assert whole("x").sizes == {"y": 6, "x": 1, "c": 3}
        assert whole().shape == (1, 1, 1)
    assert x.pool.global_max("y").y.values.tolist() == [25]
    got = x.pool.fractional_max({"x": 1.5, "y": 2.2}, seed=(3, 4))
    assert (got.values == pg.fractional_max_pool(x.values, (2.2, 1.5), axes=(0, 1), seed=(3, 4))).all()
    (axis,) = pg.fractional_windows([6], [2.2], seed=5)
    assert x.pool.fractional_mean(y=2.2, seed=5).y.values.tolist() == [
        float(np.mean(x.y.values[a:b])) for a, b in axis.pairs()
    ]


def test_boundaries_stand_for_windows():
    x = grid()
    got = x.pool.max({"x": [(0, 3), (2, 7), (7, 8)], "y": pg.Axis(6, [0, 2], [2, 6])})
    assert (
        got.values == pg.max_pool(x.values, [pg.Axis(6, [0, 2], [2, 6]), [(0, 3), (2, 7), (7, 8)]], axes=(0, 1))
    ).all()
    assert got.y.values.tolist() == [5, 35]


def test_taps_are_labelled_too():
    x = grid()
    y, taps = x.pool.max({"x": 2, "y": 2}, return_taps=True)
    _, want = pg.max_pool(x.values, 2, axes=(0, 1), return_taps=True)
    assert (taps.name, taps.attrs, taps.dims) == ("heat_taps", {}, y.dims)
    assert (taps.values == want.values).all()
    assert taps.coords.identical(y.coords)
    windows = pg.plan(x.shape, 2, axes=(0, 1))
    assert (pg.picking(windows, taps.values)(x.values) == y.values).all()


def test_nan_is_skipped_as_in_coarsen_unless_asked():
    cells = np.array([1.0, np.nan, 3.0, 4.0, np.nan, np.nan])
    x = xr.DataArray(cells, dims="x")
    for reduce in ("max", "min", "mean", "sum"):
        xr.testing.assert_identical(getattr(x.pool, reduce)(x=2), getattr(x.coarsen(x=2), reduce)())
        strict = getattr(x.pool, reduce)(x=2, nan="propagate").values
        assert np.isnan(strict).tolist() == [True, False, True]


def test_the_examples_of_docstrings():
    for each in (module, module.accessor):
        done = doctest.testmod(each)
        assert (done.failed, done.attempted > 0) == (0, True)


@pytest.mark.parametrize("name", [name for name in vars(module.DataArrayPools.__mro__[1]) if name[0] != "_"])
def test_every_pool_explains_its_arguments(name):
    text = getattr(module.DataArrayPools, name).__doc__
    assert "<" not in text.split("Examples")[0]
    assert "keep_attrs : bool" in text
    assert "Returns\n" in text


# ---- errors


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.pool.max({"z": 2}), ValueError, r"pool.max: window: got the dimension 'z', wanted some of \['y', 'x', 'c'\]"),
        (lambda x: x.pool.max(z=2), ValueError, "window: got the dimension 'z'"),
        (lambda x: x.pool.max(2), TypeError, "pool.max: window: got 2, wanted a mapping from dimensions"),
        (lambda x: x.pool.max(), ValueError, "pool.max: window: got nothing, wanted a mapping"),
        (lambda x: x.pool.max({"x": 2}, x=2), ValueError, "'x' in the mapping and as a keyword"),
        (lambda x: x.pool.max(x=0), ValueError, r"window\['x'\]: got 0, wanted an integer of at least 1"),
        (lambda x: x.pool.max(x=2.0), TypeError, r"window\['x'\]: got 2.0"),
        (lambda x: x.pool.max(x=True), TypeError, r"window\['x'\]: got True"),
        (lambda x: x.pool.max(x=3), ValueError, "boundary: got 'exact' for dimension 'x' of 8 cells, of which windows reach 6"),
        (lambda x: x.pool.max(x=9), ValueError, "of which windows reach 0"),
        (lambda x: x.pool.max(x=2, stride=[2, 2]), TypeError, r"stride\['x'\]: got \[2, 2\], wanted an integer of at least 1, or a mapping"),
        (lambda x: x.pool.max(x=2, boundary="wrap"), ValueError, "boundary: got 'wrap', wanted 'exact' or 'trim' or 'pad'"),
        (lambda x: x.pool.max(x=2, boundary={"z": "pad"}), ValueError, "boundary: got the dimension 'z'"),
        (lambda x: x.pool.max(x=2, side="top"), ValueError, "side: got 'top', wanted 'left' or 'right'"),
        (lambda x: x.pool.max(x=2, stride={"y": 2}), ValueError, r"stride: got the dimension 'y', wanted some of \['x'\]"),
        (lambda x: x.pool.max(x=2, stride=0), ValueError, r"stride\['x'\]: got 0"),
        (lambda x: x.pool.max(x=2, padding="full"), ValueError, r"padding\['x'\]: got 'full', wanted 'valid'"),
        (lambda x: x.pool.max(x=2, padding=(1, 2, 3)), ValueError, r"padding\['x'\]: got \(1, 2, 3\)"),
        (lambda x: x.pool.max(x=2, padding=3, boundary="trim"), ValueError, "padding: got window 0 of axis 1 without a cell"),
        (lambda x: x.pool.max(x=2, dilation="a"), TypeError, r"dilation\['x'\]: got 'a'"),
        (lambda x: x.pool.max(x=2, coords="top"), ValueError, "coords: got 'top', wanted 'center' or 'left'"),
        (lambda x: x.pool.max(x=2, coord_func="top"), ValueError, "coord_func: got 'top', wanted a function"),
        (lambda x: x.pool.max(x=2, coord_func={"q": "min"}), ValueError, "coord_func: got the coordinate 'q'"),
        (lambda x: x.pool.max(x=2, nan="skip"), ValueError, "max_pool: nan: got 'skip'"),
        (lambda x: x.pool.max(x=2, keep_attrs="no"), TypeError, "keep_attrs: got 'no', wanted True or False"),
        (lambda x: x.pool.adaptive_max(x=-1), ValueError, r"size\['x'\]: got -1"),
        (lambda x: x.pool.global_max("z"), ValueError, "pool.global_max: dims: got the dimension 'z'"),
        (lambda x: x.pool.global_max(["x", "x"]), ValueError, "dims: got .* wanted different dimensions"),
        (lambda x: x.isel(x=slice(0)).pool.global_max("x"), ValueError, "dims: got the empty dimension 'x'"),
        (lambda x: x.astype(str).pool.max(x=2), TypeError, "max_pool: x: got"),
        (lambda x: x.to_dataset().pool.max(x=2, return_taps=True), ValueError, "return_taps: got True, wanted False for a Dataset"),
    ],
)  # fmt: skip
def test_errors_name_the_pool_the_argument_and_what_is_wanted(call, error, message):
    with pytest.raises(error, match=message):
        call(grid())


def test_a_process_without_xarray_gets_a_clear_error():
    done = python("-c", "import sys; sys.modules['xarray'] = None; import poolgrad.xarray")
    assert (
        "ModuleNotFoundError: poolgrad.xarray: got no package 'xarray', wanted one: pip install xarray" in done.stderr
    )


def test_pools_of_arrays_in_memory_do_not_load_those_of_dask():
    done = python(
        "-c",
        "import sys, xarray, poolgrad.xarray; xarray.DataArray([1.0, 2.0]).pool.max(dim_0=2); print('poolgrad.dask' in sys.modules)",
    )
    assert done.stdout == "False\n", done.stderr
