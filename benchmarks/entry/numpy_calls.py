"""`pg.*` against NumPy, scipy, scikit-image, xarray, bottleneck, Pillow, OpenCV, tinybrain and TensorStore."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import poolgrad as pg

from ..peers.base import load, version_of
from .contest import OURS, Call, Cell, Contest, Found

ROUNDED = 1e-5  # sums of float32 in another order
TRUNCATED = 2.0  # means of integers that a library rounds down, maybe along each axis


def cells(found: Found, quick: bool) -> Iterator[Cell]:
    """Return the cells, with the peers that are installed."""
    peers = Peers(found)
    big, side = (4000, 128) if quick else (10_000_000, 4000)
    yield from _long_rows(peers, big)
    for height, kinds in ((8, ("float32",)), (256, ("float32", "uint8")), (side, ("float32", "uint8", "uint16"))):
        for dtype in kinds:
            for k in (2, 4):
                yield from _blocks(peers, height, k, dtype)
    for height in (256, side):
        for window in (3, 15, 31):
            for dtype in ("float32", "uint8"):
                yield from _sliding(peers, height, window, dtype)
    yield from _globals(peers, big, side)
    yield from _with_nan(peers, side)


class Peers:
    """The libraries, each None if it is absent."""

    def __init__(self, found: Found) -> None:
        def version(module: Any) -> str:
            return str(module.__version__)

        self.scipy = found.load("scipy", lambda: load("scipy.ndimage"), lambda _: version_of("scipy"))
        self.skimage = found.load("scikit-image", lambda: load("skimage.measure"), lambda _: version_of("scikit-image"))
        self.xarray = found.load("xarray", lambda: load("xarray"), version)
        self.bottleneck = found.load("bottleneck", lambda: load("bottleneck"), version)
        self.pillow = found.load("Pillow", lambda: load("PIL.Image"), lambda _: version_of("pillow"))
        self.cv2 = found.load("OpenCV", lambda: load("cv2"), version)
        self.tinybrain = found.load("tinybrain", lambda: load("tinybrain"), lambda _: version_of("tinybrain"))
        self.tensorstore = found.load("TensorStore", lambda: load("tensorstore"), lambda _: version_of("tensorstore"))


def _image(shape: tuple[int, ...], dtype: str) -> Any:
    rng = np.random.default_rng(5)
    return rng.random(shape, np.float32) if dtype == "float32" else rng.integers(0, 256, shape).astype(dtype)


class Calls:
    """Collect the calls of a contest; `add` leaves out peers that are absent."""

    def __init__(self, ours: Call) -> None:
        self.calls: dict[str, Any] = {OURS: (ours, np.asarray)}

    def add(self, name: str, peer: Any, call: Call, result: Any = np.asarray) -> None:
        """Add a call if its library is here."""
        if peer is not None:
            self.calls[name] = (call, result)


def _long_rows(peers: Peers, n: int) -> Iterator[Cell]:
    """Long windows on one long row: side by side, and moving by one cell."""
    for k in (5, 500, 5000):
        if k < n:
            yield Cell("numpy", f"max_pool(a, {k}), {n} float32", partial(_row_blocks, n, k))
    m = n // 5
    for window in (5, 101, 1001, 4801):
        for verb in ("max", "min", "avg"):
            if window < m:
                name = f"{verb}_pool(a, {window}, 1), {m} float32"
                yield Cell("numpy", name, partial(_moving, peers, m, window, verb))


def _row_blocks(n: int, k: int) -> Contest:
    a = _image((n // k * k,), "float32")
    calls = Calls(lambda: pg.max_pool(a, k))
    calls.add("NumPy reshape", np, lambda: a.reshape(-1, k).max(1))
    return Contest(calls.calls)


def _moving(peers: Peers, n: int, window: int, verb: str) -> Contest:
    a = _image((n,), "float32")
    pool = getattr(pg, f"{verb}_pool")
    calls = Calls(lambda: pool(a, window, 1))
    half, word = window // 2, {"max": "max", "min": "min", "avg": "mean"}[verb]

    def inside(y: Any) -> Any:
        return np.asarray(y)[half : n - window + 1 + half]

    def behind(y: Any) -> Any:
        return np.asarray(y)[window - 1 :]

    if peers.scipy is not None:
        names = {"max": "maximum_filter1d", "min": "minimum_filter1d", "avg": "uniform_filter1d"}
        filtered = getattr(peers.scipy, names[verb])
        calls.add("scipy", peers.scipy, lambda: filtered(a, window), inside)
    if peers.bottleneck is not None:
        moving = getattr(peers.bottleneck, f"move_{word}")
        calls.add("bottleneck", peers.bottleneck, lambda: moving(a, window), behind)
    if peers.xarray is not None:
        named = peers.xarray.DataArray(a, dims=["t"])
        for name, used in (("xarray", True), ("xarray without bottleneck", False)):
            if (used and peers.bottleneck is None) or (not used and n * window > 10**8):
                continue

            def rolled(used: bool = used) -> Any:
                with peers.xarray.set_options(use_bottleneck=used):
                    return getattr(named.rolling(t=window), word)()

            calls.add(name, peers.xarray, rolled, behind)
    return Contest(calls.calls, ROUNDED * 50 if verb == "avg" else 0.0)


def _blocks(peers: Peers, side: int, k: int, dtype: str) -> Iterator[Cell]:
    for verb in ("max", "min", "avg", "sum"):
        name = f"{verb}_pool(x, {k}), {side}x{side} {dtype}"
        yield Cell("numpy", name, partial(_block_contest, peers, side, k, dtype, verb))


def _block_contest(peers: Peers, side: int, k: int, dtype: str, verb: str) -> Contest:
    x = _image((side, side), dtype)
    m, word = side // k, {"max": "max", "min": "min", "avg": "mean", "sum": "sum"}[verb]
    pool, reduce = getattr(pg, f"{verb}_pool"), getattr(np, word)
    calls = Calls(lambda: pool(x, k))
    calls.add("NumPy reshape", np, lambda: getattr(x.reshape(m, k, m, k), word)(axis=(1, 3)))
    if peers.skimage is not None:
        calls.add("scikit-image", peers.skimage, lambda: peers.skimage.block_reduce(x, k, reduce))
    if peers.xarray is not None:
        named = peers.xarray.DataArray(x, dims=["h", "w"])
        calls.add("xarray coarsen", peers.xarray, lambda: getattr(named.coarsen(h=k, w=k), word)())
    if peers.tensorstore is not None and verb != "sum":
        whole = peers.tensorstore.array(x)
        calls.add(
            "TensorStore",
            peers.tensorstore,
            lambda: peers.tensorstore.downsample(whole, [k, k], word).read().result(),
        )
    if verb == "avg":
        _mean_peers(peers, calls, x, k, m)
    exact = verb in ("max", "min") or (verb == "sum" and dtype != "float32")
    return Contest(calls.calls, 0.0 if exact else ROUNDED, 0.0 if exact or dtype == "float32" else TRUNCATED)


def _mean_peers(peers: Peers, calls: Calls, x: Any, k: int, m: int) -> None:
    """Add libraries that shrink pictures: their means of integers are rounded."""
    if peers.pillow is not None and x.dtype != np.uint16:
        picture = peers.pillow.fromarray(x)
        calls.add("Pillow reduce", peers.pillow, lambda: picture.reduce(k))
    if peers.cv2 is not None:
        area = peers.cv2.INTER_AREA
        calls.add("OpenCV area", peers.cv2, lambda: peers.cv2.resize(x, (m, m), interpolation=area))
    if peers.tinybrain is not None and x.dtype != np.uint16:
        cube = x[:, :, None, None]
        calls.add(
            "tinybrain",
            peers.tinybrain,
            lambda: peers.tinybrain.downsample_with_averaging(cube, (k, k, 1)),
            lambda y: np.asarray(y[0] if isinstance(y, list) else y)[:, :, 0, 0],
        )
    if x.dtype != np.float32:
        calls.calls["poolgrad to float32"] = (lambda: pg.avg_pool(x, k, dtype=np.float32), np.asarray)


def _sliding(peers: Peers, side: int, window: int, dtype: str) -> Iterator[Cell]:
    for verb in ("max", "min", "avg"):
        name = f"{verb}_pool(x, {window}, 1), {side}x{side} {dtype}"
        yield Cell("numpy", name, partial(_sliding_contest, peers, side, window, dtype, verb))


def _sliding_contest(peers: Peers, side: int, window: int, dtype: str, verb: str) -> Contest:
    x = _image((side, side), dtype)
    pool, half = getattr(pg, f"{verb}_pool"), window // 2
    calls = Calls(lambda: pool(x, window, 1))

    def inside(y: Any) -> Any:
        return np.asarray(y)[half : side - half, half : side - half]

    if peers.scipy is not None:
        names = {"max": "maximum_filter", "min": "minimum_filter", "avg": "uniform_filter"}
        filtered = getattr(peers.scipy, names[verb])
        calls.add("scipy", peers.scipy, lambda: filtered(x, window), inside)
    if peers.cv2 is not None:
        cv2, kernel = peers.cv2, np.ones((window, window), np.uint8)
        made = {
            "max": lambda: cv2.dilate(x, kernel),
            "min": lambda: cv2.erode(x, kernel),
            "avg": lambda: cv2.blur(x, (window, window)),
        }
        calls.add({"max": "OpenCV dilate", "min": "OpenCV erode", "avg": "OpenCV blur"}[verb], cv2, made[verb], inside)
    if verb != "avg":
        return Contest(calls.calls)
    return Contest(calls.calls, 20 * ROUNDED, 0.0 if dtype == "float32" else TRUNCATED)


def _globals(peers: Peers, n: int, side: int) -> Iterator[Cell]:
    for verb, word in (("max", "max"), ("min", "min"), ("avg", "mean"), ("sum", "sum")):
        for shape in ((n,), (side, side)):
            for dtype in ("float32", "uint8"):
                name = f"global_{verb}_pool(x), {'x'.join(map(str, shape))} {dtype}"
                yield Cell("numpy", name, partial(_global_contest, shape, dtype, verb, word))
    yield Cell(
        "numpy", f"global_avg_pool(x, axes=(1, 2)), 8x{side // 8}x{side // 8}x64 float32", partial(_channels, side)
    )


def _global_contest(shape: tuple[int, ...], dtype: str, verb: str, word: str) -> Contest:
    x = _image(shape, dtype)
    pool = getattr(pg, f"global_{verb}_pool")
    calls = Calls(lambda: pool(x, keepdims=False))
    calls.add("NumPy", np, lambda: getattr(x, word)())
    return Contest(calls.calls, 0.0 if verb in ("max", "min") else 10 * ROUNDED)


def _channels(side: int) -> Contest:
    x = _image((8, side // 8, side // 8, 64), "float32")
    calls = Calls(lambda: pg.global_avg_pool(x, axes=(1, 2), keepdims=False))
    calls.add("NumPy", np, lambda: x.mean(axis=(1, 2)))
    return Contest(calls.calls, 10 * ROUNDED)


def _with_nan(peers: Peers, side: int) -> Iterator[Cell]:
    yield Cell("numpy", f"avg_pool(x, 4, nan='ignore'), {side}x{side}, 30 % NaN", partial(_nan_means, peers, side))
    for verb in ("max", "avg"):
        name = f"{verb}_pool(x, 2), {side}x{side}, a single NaN"
        yield Cell("numpy", name, partial(_single_nan, peers, side, verb))


def _nan_means(peers: Peers, side: int) -> Contest:
    x = _image((side, side), "float32")
    x[np.random.default_rng(6).random(x.shape) < 0.3] = np.nan
    x[::4, ::4] = 0.5  # no window has NaN alone
    m = side // 4
    calls = Calls(lambda: pg.avg_pool(x, 4, nan="ignore"))
    calls.add("NumPy nanmean", np, lambda: np.nanmean(x.reshape(m, 4, m, 4), axis=(1, 3)))
    if peers.xarray is not None:
        named = peers.xarray.DataArray(x, dims=["h", "w"])
        calls.add("xarray coarsen", peers.xarray, lambda: named.coarsen(h=4, w=4).mean())
    return Contest(calls.calls, ROUNDED)


def _single_nan(peers: Peers, side: int, verb: str) -> Contest:
    x = _image((side, side), "float32")
    x[side // 3, side // 3] = np.nan
    m, word = side // 2, {"max": "max", "avg": "mean"}[verb]
    pool = getattr(pg, f"{verb}_pool")
    calls = Calls(lambda: pool(x, 2))
    calls.add("NumPy reshape", np, lambda: getattr(x.reshape(m, 2, m, 2), word)(axis=(1, 3)))
    if peers.skimage is not None:
        calls.add("scikit-image", peers.skimage, lambda: peers.skimage.block_reduce(x, 2, getattr(np, word)))
    return Contest(calls.calls, ROUNDED if verb == "avg" else 0.0)
