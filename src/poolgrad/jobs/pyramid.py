"""Make a pyramid of an image: the same array at falling resolutions, as OME-Zarr."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._common.errors import ArgumentErrors, short_repr
from .._pooling.window_args import integer_list
from .job import Job
from .loop import Progress, as_workers, pool
from .parts import Shape
from .regions import as_bytes
from .stores import Store, StoredGroup, StoreOrPath, needed, open_source

_NAMES = {1: "x", 2: "yx", 3: "zyx", 4: "czyx", 5: "tczyx"}
_TYPES = {"t": "time", "c": "channel"}
_ROUNDINGS = {"half_even": "nearest"}
_REDUCE = {"mean": "avg_pool", "max": "max_pool", "min": "min_pool"}


def pyramid(
    src: StoreOrPath,
    out: str | os.PathLike[str] | None = None,
    *,
    levels: int = 5,
    reduce: str = "mean",
    factors: int | Sequence[int] | Mapping[str, int] = 2,
    axes: str | Sequence[str] | None = None,
    scale: Sequence[float] | None = None,
    units: Mapping[str, str] | None = None,
    rounding: str = "half_even",
    nan: str = "propagate",
    exact: bool = False,
    memory: int | str = "1GB",
    workers: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    chunks: Sequence[int] | None = None,
    shards: Sequence[int] | None = None,
    zarr_format: int = 3,
    name: str = "image",
) -> StoredGroup:
    """Make an OME-Zarr pyramid: level 0 is the array, each further level is pooled.

    Windows at the upper edges may be smaller: no cell is left out. The metadata is written last, so that a reader never sees a
    pyramid that is not whole.

    Parameters
    ----------
    src : array, store or path
        The array, as for `pool`; without `out`, the path of a Zarr group whose array "0" is level 0.
    out : path, optional
        The Zarr group to make, with a copy of the array as level 0. Default: add the levels to the group `src`.
    levels : int, optional
        The number of levels, level 0 included. Default: 5.
    reduce : {"mean", "max", "min"}, optional
        The pool. Default: "mean".
    factors : int, sequence of int, or dict of str to int, optional
        The factor from one level to the next: one for all axes of space, one per axis, or by the names of axes. Default: 2.
    axes : str or sequence of str, optional
        The names of the axes, such as "tczyx". Default: the last letters of it. Axes t and c are not pooled, unless `factors` says so.
    scale : sequence of float, optional
        The distance of the cells of level 0 along each axis. Default: that of the metadata if there is some, else 1.
    units : dict of str to str, optional
        The units of axes, such as ``{"x": "micrometer"}``.
    rounding : {"half_even", "floor", "ceil", "toward_zero"}, optional
        The rule for means of integers. Default: "half_even".
    nan : {"propagate", "ignore"}, optional
        The rule for NaN. Default: "propagate".
    exact : bool, optional
        Pool each level from level 0, so that means are not rounded twice. It reads level 0 once per level. Default: False.
    memory, workers, resume, overwrite, progress : optional
        As for `pool`.
    chunks, shards : sequence of int, optional
        Those of all levels. Default: the chunks of level 0, or shorter ones where memory is short.
    zarr_format : int, optional
        3 (default), with metadata of OME-Zarr 0.5, or 2, with 0.4. A group that exists keeps its own.
    name : str, optional
        The name of the image in the metadata. Default: "image".

    Returns
    -------
    zarr.Group
        The pyramid.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong. Nothing has been read or written then.

    See Also
    --------
    pool : Pool an array once.

    Examples
    --------
    >>> import poolgrad as pg
    >>> group = pg.pyramid("cells.npy", "cells.zarr", levels=3, scale=[2, 0.5, 0.5])  # doctest: +SKIP
    """
    problems = ArgumentErrors("pyramid")
    zarr = needed(problems, "zarr", "out")
    share = max(as_bytes(problems, "memory", memory) // as_workers(problems, workers), 1)
    if not isinstance(levels, int) or isinstance(levels, bool) or levels < 1:
        problems.fail("levels", short_repr(levels), "a positive integer")
    if reduce not in _REDUCE:
        problems.fail("reduce", short_repr(reduce), "'mean', 'max' or 'min'")
    if zarr_format not in (2, 3):
        problems.fail("zarr_format", short_repr(zarr_format), "2 or 3")
    group_path, base, known = _base(problems, zarr, src, out)
    shape, dtype = base.shape, base.dtype
    if chunks is not None:
        chunks = integer_list(problems, "chunks", tuple(chunks), len(shape), 1)
    names = _axis_names(problems, axes, known, len(shape))
    steps = _factors(problems, factors, names)
    jobs = _jobs(problems, shape, dtype, levels, steps, reduce, rounding, nan, exact)
    spacing = _spacing(problems, scale, known, len(shape))
    common = {"memory": memory, "workers": workers, "resume": resume, "overwrite": overwrite, "progress": progress}
    first = 1 if out is None else 0
    cut = shards if shards is not None else _shards(base) if out is None else None
    if out is not None:
        if Path(group_path).exists() and not (resume or overwrite):
            wanted = "resume=True, overwrite=True, or another path"
            problems.fail("out", f"{group_path!r}, which exists", wanted, FileExistsError)
        zarr.open_group(group_path, mode="a", zarr_format=zarr_format)
    else:
        zarr_format = getattr(getattr(base.array, "metadata", None), "zarr_format", zarr_format)
    before = base
    for level in range(first, levels):
        job = jobs[level]
        source = base if exact else before
        target = os.path.join(group_path, str(level))
        sizes: Shape | None
        if chunks is not None:
            sizes = tuple(max(min(c, n), 1) for c, n in zip(chunks, job.result, strict=True))
        else:
            sizes = None if base.chunks is None else job.chunks_like(base.chunks, share)
        whole = None if cut is None or sizes is None else _fitting(cut, sizes, job.result)
        made = pool(source, target, job, chunks=sizes, shards=whole, zarr_format=zarr_format, **common)  # type: ignore[arg-type]
        before = open_source(problems, "src", made)
        before.name = target
        if level == 0:
            base = before
    group: StoredGroup = zarr.open_group(group_path, mode="r+")
    _describe(group, zarr_format, name, names, units or {}, spacing, steps, levels, reduce)
    for level in range(first, levels):
        Path(os.path.join(group_path, f"{level}.journal")).unlink(missing_ok=True)
    return group


def _base(problems: ArgumentErrors, zarr: Any, src: Any, out: Any) -> tuple[str, Store, dict[str, Any]]:
    """Return the path of the group, level 0, and the multiscales metadata that is there."""
    if out is not None:
        if not isinstance(out, (str, os.PathLike)):
            problems.fail("out", short_repr(out), "a path", TypeError)
        return os.fspath(out), open_source(problems, "src", src), {}
    if not isinstance(src, (str, os.PathLike)) or not Path(os.fspath(src), "0").is_dir():
        problems.fail("src", short_repr(src), "the path of a Zarr group with an array '0', or a path as out")
    path = os.fspath(src)
    try:
        attributes = dict(zarr.open_group(path, mode="r").attrs)
    except Exception:  # an array without a group around it
        zarr.open_group(path, mode="a")
        attributes = {}
    found = attributes.get("ome", attributes).get("multiscales") or [{}]
    return path, open_source(problems, "src", os.path.join(path, "0")), dict(found[0])


def _shards(store: Store) -> Shape | None:
    return store.unit if store.unit != store.chunks else None


def _fitting(shards: Sequence[int], chunks: Shape, shape: Shape) -> Shape:
    """Return shards in whole chunks that are not much longer than the array."""
    return tuple(max(min(s, -(-n // c) * c) // c * c, c) for s, c, n in zip(shards, chunks, shape, strict=True))


def _axis_names(problems: ArgumentErrors, axes: Any, known: Mapping[str, Any], rank: int) -> tuple[str, ...]:
    found = [axis["name"] if isinstance(axis, dict) else axis for axis in known.get("axes", [])]
    names = tuple(axes) if axes is not None else tuple(found) if len(found) == rank else tuple(_NAMES.get(rank, ()))
    if len(names) != rank or len(set(names)) != rank or not all(isinstance(n, str) for n in names):
        problems.fail("axes", short_repr(axes), f"{rank} different names, such as 'zyx'")
    return names


def _factors(problems: ArgumentErrors, factors: Any, names: tuple[str, ...]) -> Shape:
    if isinstance(factors, Mapping):
        unknown = [k for k in factors if k not in names]
        if unknown:
            problems.fail("factors", short_repr(dict(factors)), f"names of axes: {', '.join(names)}")
        steps = [factors.get(n, 1 if n in _TYPES else 2 if not factors else 1) for n in names]
    elif isinstance(factors, (list, tuple)):
        steps = list(factors)
    else:
        steps = [1 if n in _TYPES else factors for n in names]
    if len(steps) != len(names) or any(not isinstance(f, int) or isinstance(f, bool) or f < 1 for f in steps):
        problems.fail("factors", short_repr(factors), f"positive integers for the axes {', '.join(names)}")
    if max(steps) == 1:
        problems.fail("factors", short_repr(factors), "a factor above 1 for some axis")
    return tuple(steps)


def _jobs(
    problems: ArgumentErrors,
    shape: Shape,
    dtype: np.dtype[Any],
    levels: int,
    steps: Shape,
    reduce: str,
    rounding: str,
    nan: str,
    exact: bool,
) -> list[Job]:
    """Return the job of each level; that of level 0 copies."""
    if rounding not in (*_ROUNDINGS, "floor", "ceil", "toward_zero"):
        problems.fail("rounding", short_repr(rounding), "'half_even', 'floor', 'ceil' or 'toward_zero'")
    words: dict[str, Any] = {"nan": nan} if dtype.kind not in "iub" else {}
    if reduce == "mean" and dtype.kind in "iu":
        words |= {"dtype": dtype.name, "rounding": _ROUNDINGS.get(rounding, rounding)}
    jobs = [Job("max_pool", shape, dtype, 1)]
    for level in range(1, levels):
        source = shape if exact else jobs[-1].result
        window = [f**level if exact else f for f in steps]
        jobs.append(Job(_REDUCE[reduce], source, dtype, window, ceil_mode=True, **words))
    return jobs


def _spacing(problems: ArgumentErrors, scale: Any, known: Mapping[str, Any], rank: int) -> list[float]:
    if scale is None:
        found = known.get("datasets", [{}])[0].get("coordinateTransformations", [])
        scale = next((t["scale"] for t in found if t.get("type") == "scale"), [1.0] * rank)
    if len(scale) != rank or any(not float(s) > 0 for s in scale):
        problems.fail("scale", short_repr(scale), f"{rank} positive numbers")
    return [float(s) for s in scale]


def _describe(
    group: Any,
    zarr_format: int,
    name: str,
    names: tuple[str, ...],
    units: Mapping[str, str],
    spacing: list[float],
    steps: Shape,
    levels: int,
    reduce: str,
) -> None:
    """Write the metadata: axes, and scale and translation of each level. The middle of a window is the place of its cell."""
    axes = [{"name": n, "type": _TYPES.get(n, "space")} | ({"unit": units[n]} if n in units else {}) for n in names]
    datasets = []
    for level in range(levels):
        grown = [f**level for f in steps]
        datasets.append({
            "path": str(level),
            "coordinateTransformations": [
                {"type": "scale", "scale": [s * g for s, g in zip(spacing, grown, strict=True)]},
                {"type": "translation", "translation": [s * (g - 1) / 2 for s, g in zip(spacing, grown, strict=True)]},
            ],
        })  # fmt: skip
    version = "0.5" if zarr_format == 3 else "0.4"
    image: dict[str, Any] = {"name": name, "axes": axes, "datasets": datasets, "type": reduce}
    if zarr_format == 3:
        group.attrs["ome"] = {**dict(group.attrs.get("ome", {})), "version": version, "multiscales": [image]}
    else:
        group.attrs["multiscales"] = [image | {"version": version}]
