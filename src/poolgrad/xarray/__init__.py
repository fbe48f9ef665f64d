"""Pools of labelled arrays: `import poolgrad.xarray` gives every DataArray and Dataset the accessor `pool`.

Dimensions have names, coordinates follow the windows as `DataArray.coarsen` computes them, and Dask arrays stay lazy.

>>> import xarray as xr
>>> import poolgrad.xarray
>>> heat = xr.DataArray([1.0, 3.0, 2.0, 0.0], dims="x", coords={"x": [10, 20, 30, 40]}, name="heat")
>>> y = heat.pool.max({"x": 2})
>>> y.values.tolist(), y.x.values.tolist()
([3.0, 2.0], [15.0, 35.0])
"""

try:
    import xarray as _xarray
except ModuleNotFoundError as missing:
    if missing.name != "xarray":
        raise
    text = "poolgrad.xarray: got no package 'xarray', wanted one: pip install xarray"
    raise ModuleNotFoundError(text, name="xarray") from missing

from .accessor import DataArrayPools, DatasetPools

_xarray.register_dataarray_accessor("pool")(DataArrayPools)
_xarray.register_dataset_accessor("pool")(DatasetPools)

__all__ = ["DataArrayPools", "DatasetPools"]
