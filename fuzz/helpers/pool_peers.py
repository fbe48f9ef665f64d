"""The same pools by scipy.ndimage, scikit-image and xarray, where they have the windows of a call. Each is used if it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from pool_oracle import FORMATS, HALVES, Geometry, kind_of, largest

try:
    import scipy.ndimage as ndimage
except ImportError:
    ndimage = None
try:
    from skimage.measure import block_reduce
except ImportError:
    block_reduce = None
try:
    import xarray
except ImportError:
    xarray = None

Found = Iterator[tuple[str, np.ndarray]]


def answers(name: str, array: np.ndarray, geometry: Geometry, words: dict[str, Any]) -> Found:
    """Yield the name of a peer and its answer."""
    what = name.split("_")[-2] if "_" in name else name
    plain = not any(words.get(n) for n in ("divisor", "count_include_pad", "dtype")) and words.get("nan") != "tf"
    if what not in ("max", "min", "avg", "sum") or not plain or not array.size or not array.ndim:
        return
    array = array.astype(array.dtype.newbyteorder("="))
    with np.errstate(invalid="ignore"):
        array = array.astype(np.float32) if kind_of(array) in HALVES else array
        if array.dtype.kind == "f":
            array = np.where(array != array, np.nan, array)  # signalling NaN are not skipped by fmin and fmax
    if what in ("avg", "sum"):
        if kind_of(array) in ("int64", "uint64") and np.abs(array.astype(float)).max() > 2**31:
            return  # float64, in which the peers add, does not hold these sums
        array = array.astype(np.float64)
    clean = kind_of(array) not in FORMATS or bool(np.isfinite(array).all())
    if ndimage is not None and clean and name.split("_")[0] in ("max", "min", "avg", "sum"):
        yield from _by_scipy(what, array, geometry, words)
    blocks = _blocks(geometry)
    if blocks and block_reduce is not None and clean:
        yield from _by_skimage(what, array, geometry, blocks)
    if blocks and xarray is not None and (clean or words.get("nan") == "ignore"):  # it leaves NaN out
        yield from _by_xarray(what, array, geometry, blocks, words.get("nan") == "ignore")


def _regular(geometry: Geometry) -> list[tuple[int, int, int, int, int]] | None:
    """Return first cell, length, stride, step and number of windows per pooled axis, if that describes all of them."""
    found = []
    for d in geometry.axes:
        cells = geometry.cells[d]
        if not cells:
            return None
        k = max(map(len, cells))
        whole = next(c for c in cells if len(c) == k)
        step = whole[1] - whole[0] if k > 1 else 1
        at, n = cells.index(whole), geometry.shape[d]
        for stride in range(1, n + k + 1):
            firsts = [whole[0] + (i - at) * stride for i in range(len(cells))]
            if cells == [[t for t in range(f, f + k * step, step) if 0 <= t < n] for f in firsts]:
                found.append((firsts[0], k, stride, step, len(cells)))
                break
        else:
            return None
    return found


def _by_scipy(what: str, array: np.ndarray, geometry: Geometry, words: dict[str, Any]) -> Found:
    """Yield the filter of the padded array, at the first cells of the windows."""
    regular = _regular(geometry)
    if regular is None or (
        array.dtype.itemsize == 8 and np.abs(array.astype(float)).max() > 2**52
    ):  # it computes in float64
        return
    array = array.astype(np.float64) if array.dtype.kind in "iu" and array.dtype.itemsize == 8 else array
    rank = array.ndim
    pads, foot, at = [(0, 0)] * rank, [1] * rank, [slice(None)] * rank
    holes: list[Any] = [slice(None)] * rank
    for d, (first, k, stride, step, m) in zip(geometry.axes, regular, strict=True):
        reach = step * (k - 1) + 1
        after = max(first + (m - 1) * stride + reach - geometry.shape[d], 0)
        pads[d], foot[d] = (max(-first, 0), after), reach
        begin = first + pads[d][0]
        at[d], holes[d] = slice(begin, begin + (m - 1) * stride + 1, stride), slice(None, None, step)
    footprint = np.zeros(foot, bool)
    footprint[tuple(holes)] = True
    if footprint.size > 5000:
        return
    origin = [-(n // 2) for n in foot]
    fill: Any = 0
    if what in ("max", "min"):
        whole = array.dtype.kind in "iub"
        limits = (
            (False, True)
            if array.dtype.kind == "b"
            else (np.iinfo(array.dtype).min, np.iinfo(array.dtype).max)
            if whole
            else (-np.inf, np.inf)
        )
        fill = limits[what == "min"]
    room = np.pad(array, pads, constant_values=fill)
    options = {"mode": "constant", "cval": fill, "origin": origin}
    if what in ("max", "min"):
        run = ndimage.maximum_filter if what == "max" else ndimage.minimum_filter
        made = run(room.view(np.uint8) if room.dtype == bool else room, footprint=footprint, **options)
        yield f"scipy {what}imum_filter", made[tuple(at)].astype(array.dtype)
    elif footprint.all() and not any(p for pair in pads for p in pair):
        made = ndimage.uniform_filter(room, size=foot, **options)[tuple(at)]
        yield "scipy uniform_filter", made if what == "avg" else made * footprint.size
    elif room.size <= 60 and what == "sum":
        yield "scipy generic_filter", ndimage.generic_filter(room, np.sum, footprint=footprint, **options)[tuple(at)]


def _blocks(geometry: Geometry) -> list[int] | None:
    """Return the block of each axis if the windows are blocks side by side, the last of them possibly short."""
    blocks = []
    for d, n in enumerate(geometry.shape):
        if d not in geometry.cells:
            blocks.append(1)
            continue
        cells = geometry.cells[d]
        k = len(cells[0]) if cells else 0
        if not k or any(c != list(range(i * k, min(i * k + k, n))) for i, c in enumerate(cells)):
            return None
        blocks.append(k)
    return blocks


def _covered(geometry: Geometry) -> tuple[slice, ...]:
    """Return the part of the array that windows read."""
    return tuple(
        slice(0, geometry.cells[d][-1][-1] + 1 if d in geometry.cells else n) for d, n in enumerate(geometry.shape)
    )


def _by_skimage(what: str, array: np.ndarray, geometry: Geometry, blocks: list[int]) -> Found:
    """Yield block_reduce of the cells that windows read; sums and maxima may end with a short block."""
    part = array[_covered(geometry)]
    short = any(n % k for n, k in zip(part.shape, blocks, strict=True))
    if short and what in ("avg", "min"):
        return
    run = {"max": np.max, "min": np.min, "avg": np.mean, "sum": np.sum}[what]
    yield "scikit-image block_reduce", block_reduce(part, tuple(blocks), run, cval=part.min() if what == "max" else 0)


def _by_xarray(what: str, array: np.ndarray, geometry: Geometry, blocks: list[int], skip: bool) -> Found:
    """Yield coarsen of the cells that windows read, and rolling over one axis."""
    part = array[_covered(geometry)]
    dims = [f"d{d}" for d in range(array.ndim)]
    labelled = xarray.DataArray(part, dims=dims)
    short = any(n % k for n, k in zip(part.shape, blocks, strict=True))
    if short and (array.dtype.kind not in "f" or not skip):
        return
    method = {"max": "max", "min": "min", "avg": "mean", "sum": "sum"}[what]
    coarse = labelled.coarsen(dict(zip(dims, blocks, strict=True)), boundary="pad" if short else "exact")
    made = getattr(coarse, method)().values
    yield "xarray coarsen", made.astype(array.dtype) if what in ("max", "min") else made
    wide = [d for d, k in enumerate(blocks) if k > 1]
    if len(wide) == 1 and array.dtype == np.float64 and not short and not np.isnan(array).any():
        d, k = wide[0], blocks[wide[0]]
        rolled = getattr(labelled.rolling({dims[d]: k}), method)().values
        yield "xarray rolling", np.take(rolled, range(k - 1, part.shape[d], k), axis=d)


def unlike(what: str, got: np.ndarray, want: np.ndarray, scale: float) -> str:
    """Compare with a peer: maxima to the bit, means and sums to the accuracy of the coarser type."""
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, wanted {list(want.shape)}"
    if what in ("max", "min"):
        good = (got == want) | ((got != got) & (want != want))
    else:
        name = kind_of(got)
        eps = 8 * 2.0 ** -FORMATS[name][0] if name in FORMATS else 0
        eps = max(eps, 1e-11)
        a, b = got.astype(np.float64), want.astype(np.float64)
        most = float(largest(name)) if name in FORMATS else np.inf
        b = np.where(np.abs(b) > most, np.where(np.isinf(a), a, np.copysign(most, b)), b)  # rounded to either
        good = (a == b) | ((a != a) & (b != b)) | (np.abs(a - b) <= eps * scale + 1e-30)
    if np.all(good):
        return ""
    at = tuple(int(i) for i in np.argwhere(~np.asarray(good))[0])
    return f"at {list(at)} got {got[at]!r}, wanted {want[at]!r}"
