"""Run a job on Dask: one task per region, which takes blocks of Dask arrays or reads stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, product
from math import isnan, prod
from typing import Any

import dask.array as da
import numpy as np
from dask._task_spec import Task, TaskRef
from dask.base import tokenize

from .._common.errors import ArgumentErrors, short_repr
from .._windows.regular import borders
from ..jobs.job import Job
from ..jobs.parts import Region, Shape, edges_of, joined, pieces, size_of
from ..jobs.regions import Regions
from ..jobs.stores import open_source
from ..jobs.tree import Seen, Tree, there

Chunks = tuple[tuple[int, ...], ...]
Layout = list[tuple[Region, Any]]  # for each piece of an input: its place, and the slice of the block that it is
_MEMORY = "256MB"  # of a task
_SLIVER = 0.5  # a piece of a block that is smaller than this part of it is cut out before it is sent


def run(job: Job, *arrays: Any, chunks: Any = None, memory: int | str | None = None) -> Any:
    """Return the result of a job as a lazy Dask array.

    Parameters
    ----------
    job : Job
        The job.
    *arrays : dask.array.Array or store
        Its inputs, in the order of ``job.inputs``. Tasks take blocks of Dask arrays, and read what they need from stores.
    chunks : tuple, int or sequence, optional
        The chunks of the result, as Dask writes them. Default: those that the chunks of the inputs lead to; for stores, as many
        chunks together as memory allows if that saves reading.
    memory : int or str, optional
        The bytes that a task may use for arrays, if it reads stores. Default: "256MB", since a worker runs several tasks and keeps
        their results; with `chunks` no limit.

    Returns
    -------
    dask.array.Array, or tuple of them
        One array per output of the job.

    Raises
    ------
    TypeError, ValueError
        If an array does not fit the job, or has unknown chunk sizes.
    MemoryError
        If the smallest region needs more memory.
    """
    problems = ArgumentErrors(job.op)
    if len(arrays) != len(job.inputs):
        problems.fail("arrays", f"{len(arrays)} of them", ", ".join(given.name for given in job.inputs))
    for given, array in zip(job.inputs, arrays, strict=True):
        check_array(problems, given.name, array, given.shape, given.dtype)
    if not any(isinstance(array, da.Array) for array in arrays):
        return _from_stores(problems, job, arrays, chunks, memory)
    return _from_blocks(problems, job, arrays, chunks, memory)


def check_array(problems: ArgumentErrors, name: str, array: Any, shape: Shape, dtype: np.dtype[Any]) -> None:
    """Refuse an array of another shape or dtype, or of unknown chunk sizes."""
    if not hasattr(array, "shape") or not hasattr(array, "dtype"):
        problems.fail(name, short_repr(array), "a Dask array, or a store with a shape and a dtype", TypeError)
    if any(isinstance(n, float) and isnan(n) for n in array.shape):
        problems.fail(
            name, f"unknown chunk sizes, shape {array.shape}", "known ones: x.compute_chunk_sizes() finds them"
        )
    if tuple(array.shape) != shape:
        problems.fail(name, f"shape {list(array.shape)}", list(shape))
    if np.dtype(array.dtype).newbyteorder("=") != dtype:
        problems.fail(name, f"dtype {array.dtype}", dtype, TypeError)


def run_tree(job: Job, x: Any, memory: int | str | None = None) -> Any:
    """Return the result of a pool over whole axes, by jobs that follow each other; a window may be larger than memory."""
    problems, tree = ArgumentErrors(job.op), Tree(job)
    tree.check(problems)
    check_array(problems, "x", x, job.shape, job.dtype)

    def follow(jobs: list[Job], only_there: bool) -> Any:
        if isinstance(x, da.Array):
            array = x.map_blocks(there, dtype=np.uint8) if only_there else x.astype(jobs[0].dtype)
        else:
            array = Seen(x, jobs[0].dtype, only_there)
        for stage in jobs:
            array = run(stage, array, memory=memory)
        return array

    total, dtype = follow(tree.values, False), job.outputs[0].dtype
    more = (follow(tree.numbers, True).rechunk(total.chunks),) if tree.counts else ()
    return da.map_blocks(tree.finish, total, *more, dtype=dtype, meta=np.empty((0,) * total.ndim, dtype))


# ---- stores, which tasks read


def _from_stores(
    problems: ArgumentErrors, job: Job, stores: tuple[Any, ...], chunks: Any, memory: int | str | None
) -> Any:
    made = _tiled(problems, job, stores, chunks, memory)
    name = f"pool-{tokenize(job.token, stores, made)}"
    words = {"job": job, "grid": _grid(made), "stores": stores}
    if len(job.outputs) == 1:
        return _mapped(name, _read_and_run, made, job.outputs[0].dtype, **words)
    return tuple(
        _mapped(f"{name}-{out.name}", _read_and_run, made, out.dtype, **words, which=k)
        for k, out in enumerate(job.outputs)
    )


def _tiled(problems: ArgumentErrors, job: Job, stores: Sequence[Any], chunks: Any, memory: int | str | None) -> Chunks:
    """Return the chunks of the result: the caller's, or regions that fit into memory and read few chunks twice."""
    if chunks is not None:
        made = _normal(problems, job, chunks)
        if memory is not None:
            job.regions(memory, size=[max(c) for c in made])
        return made
    read = next((c for s in stores if tuple(s.shape) == job.shape and (c := _stored_chunks(s))), None)
    limit = _MEMORY if memory is None else memory
    return job.regions(limit, None if read is None else job.unit(read), chunks=read).chunks


def _mapped(name: str, function: Callable[..., Any], chunks: Chunks, dtype: np.dtype[Any], **words: Any) -> Any:
    meta = np.empty((0,) * len(chunks), dtype)
    return da.map_blocks(function, chunks=chunks, dtype=dtype, meta=meta, name=name, **words)


def _grid(chunks: Chunks) -> Regions | tuple[tuple[int, ...], ...]:
    """Return the regions of chunks: as a few numbers if the chunks are even, so that a graph stays small; else their borders."""
    tiles = Regions(tuple(map(sum, chunks)), tuple(c[0] for c in chunks))
    return tiles if tiles.chunks == chunks else tuple(map(edges_of, chunks))


def _read_and_run(job: Job, grid: Any, stores: Any, which: int | None = None, block_id: Any = None) -> Any:
    """Read what one block of the result needs, and compute it."""
    if isinstance(grid, Regions):
        region = grid.at(block_id)
    else:
        region = tuple(slice(int(e[i]), int(e[i + 1])) for e, i in zip(grid, block_id, strict=True))
    problems, needs = ArgumentErrors(job.op), job.needs(region)
    opened = (open_source(problems, given.name, s) for given, s in zip(job.inputs, stores, strict=True))
    made = job.run(region, *(store.read(need) for store, need in zip(opened, needs, strict=True)))
    return made if which is None else made[which]


def _stored_chunks(store: Any) -> Shape | None:
    """Return the shape of what a store reads at once: its shards, else its chunks; None if it has none."""
    found = getattr(getattr(store, "array", store), "chunks", None)
    return tuple(found) if found is not None and all(isinstance(c, int) for c in found) else None


# ---- Dask arrays, whose blocks tasks take; beside them may be stores, which tasks read


def _from_blocks(
    problems: ArgumentErrors, job: Job, arrays: tuple[Any, ...], chunks: Any, memory: int | str | None
) -> Any:
    if all(isinstance(a, da.Array) for a in arrays):
        made = _aligned(job, arrays) if chunks is None else _normal(problems, job, chunks)
    else:
        made = _tiled(problems, job, arrays, chunks, memory)
    if any(isinstance(a, np.ndarray) for a in arrays):  # whose cells a task would carry with it
        arrays = tuple(da.from_array(a, name=None) if isinstance(a, np.ndarray) else a for a in arrays)
    name = f"pool-{tokenize(job.token, [a.name if isinstance(a, da.Array) else a for a in arrays], made)}"
    if len(job.outputs) == 1:
        return _collection(name, job, arrays, made, None)
    return tuple(_collection(f"{name}-{out.name}", job, arrays, made, k) for k, out in enumerate(job.outputs))


def _collection(name: str, job: Job, arrays: tuple[Any, ...], chunks: Chunks, which: int | None) -> Any:
    meta = np.empty((0,) * len(chunks), job.outputs[which or 0].dtype)
    lazy = [a for a in arrays if isinstance(a, da.Array)]
    stores = [None if isinstance(a, da.Array) else a for a in arrays]
    if da.ARRAY_EXPR_ENABLED:
        from .expression import new_pool

        return new_pool(name, job, lazy, stores, chunks, meta, which, tasks)
    from dask.highlevelgraph import HighLevelGraph

    layer = tasks(name, job, [(a.name, a.chunks) for a in lazy], stores, chunks, which)
    graph = HighLevelGraph.from_collections(name, layer, dependencies=lazy)
    return da.Array(graph, name, chunks, meta=meta)


def tasks(
    name: str,
    job: Job,
    arrays: Sequence[tuple[str, Chunks]],
    stores: Sequence[Any],
    chunks: Chunks,
    which: int | None,
) -> dict[Any, Task]:
    """Return one task per block of the result, and one per slice of a block that is smaller than half of it.

    `arrays` are the inputs that have no store.
    """
    layer: dict[Any, Task] = {}
    edges = [[edges_of(c) for c in blocks] for _, blocks in arrays]
    result = [edges_of(c) for c in chunks]
    for place in product(*(range(len(c)) for c in chunks)):
        region = tuple(slice(e[i], e[i + 1]) for e, i in zip(result, place, strict=True))
        layouts: list[Layout | None] = []
        parts: list[Any] = []
        lazy = iter(zip(arrays, edges, strict=True))
        for store, need in zip(stores, job.needs(region), strict=True):
            if store is not None:
                layouts.append(None)
                parts.append(store)
                continue
            (source, blocks), lines = next(lazy)
            layout: Layout = []
            for block, to, of in pieces(lines, need):
                taken: Any = of
                ref = TaskRef((source, *block))
                share = prod(s.stop - s.start for s in of) / prod(c[b] for c, b in zip(blocks, block, strict=True))
                if share < _SLIVER:  # all tasks that need the same piece share it
                    key = ("cut-" + tokenize(source, [(s.start, s.stop) for s in of]), *block)
                    layer.setdefault(key, Task(key, _cut, ref, of))
                    ref, taken = TaskRef(key), ...
                layout.append((to, taken))
                parts.append(ref)
            layouts.append(layout)
        key = (name, *place)
        layer[key] = Task(key, _join_and_run, job, region, layouts, which, *parts)
    return layer


def _cut(block: Any, of: Region) -> Any:
    """Return a slice of a block as an array of its own, so that the block need not be sent."""
    return np.array(np.asarray(block)[of], order="C")


def _join_and_run(job: Job, region: Region, layouts: list[Layout | None], which: int | None, *parts: Any) -> Any:
    """Put each input together from pieces of blocks, or read it from its store, and compute a region."""
    inputs, given_parts = [], iter(parts)
    for given, need, layout in zip(job.inputs, job.needs(region), layouts, strict=True):
        if layout is None:
            inputs.append(open_source(ArgumentErrors(job.op), given.name, next(given_parts)).read(need))
            continue
        taken = ((to, np.asarray(next(given_parts))[of]) for to, of in layout)
        inputs.append(joined(taken, len(layout), size_of(need), given.dtype))
    made = job.run(region, *inputs)
    return made if which is None else made[which]


# ---- chunks of the result


def _normal(problems: ArgumentErrors, job: Job, chunks: Any) -> Chunks:
    from dask.array.core import normalize_chunks

    try:
        found: Chunks = normalize_chunks(chunks, job.result, dtype=job.outputs[0].dtype)
    except Exception as error:
        problems.fail("chunks", short_repr(chunks), f"chunks of a result of shape {list(job.result)} ({error})")
    return found


def _aligned(job: Job, arrays: Sequence[Any]) -> Chunks:
    """Return the chunks of the result that need mostly one block of the first input each."""
    like = job.inputs[0]
    first = arrays[0].chunks
    if like.pooled != job.call.back:  # both have the shape before pooling, or both that after it
        return tuple(tuple(int(c) for c in lengths) for lengths in first)
    return tuple(
        tuple(int(c) for c in lengths)
        if windows is None
        else _lengths(borders(windows, edges_of(lengths), job.call.back))
        for windows, lengths in zip(job.windows, first, strict=True)
    )


def _lengths(edges: Sequence[int]) -> tuple[int, ...]:
    lengths = tuple(b - a for a, b in pairwise(edges) if b > a)
    return lengths or (0,)
