"""Run a job on this machine: read, compute and write region after region, with bounded memory and a journal."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import Array
from .._common.errors import ArgumentErrors, short_repr
from .._pooling.named import POOLS
from .._pooling.types import Stride, Windows
from ..config import get_num_threads, keep_less, threads
from .chunk_files import free_scratch
from .job import Job
from .journal import Journal, checksum
from .parts import Region, Shape, as_region, size_of
from .regions import Regions, as_bytes
from .stores import (
    Store,
    StoredArray,
    StoreOrPath,
    Wanted,
    buffer_of_target,
    open_source,
    open_target,
    refuse_to_send,
    reopen_target,
)
from .tree import Seen, Tree

Progress = Callable[["State"], None]


@dataclass
class State:
    """The progress of a run; `progress` gets it after each region."""

    done: int  # regions, with those that were there before
    total: int
    skipped: int  # regions that were there before
    read: int  # bytes since the start
    written: int
    seconds: float

    @property
    def remaining(self) -> float:
        """The seconds that remain at the rate until now."""
        made, left = self.done - self.skipped, self.total - self.done
        return 0.0 if not left else left * self.seconds / made if made else float("inf")


@dataclass
class Estimate:
    """The regions, bytes and memory of a run, found without reading."""

    job: Job
    regions: Regions
    read: int  # bytes, with chunks that are read more than once
    write: int
    amplification: float  # bytes read per byte of the source
    peak: int  # bytes for arrays
    workers: int


def as_job(op: Any, sources: Sequence[Store], args: tuple[Any, ...], options: dict[str, Any]) -> Job:
    """Return the job of a name and arguments, or the job itself."""
    if isinstance(op, Job):
        if args or options:
            ArgumentErrors("pool").fail("op", repr(op), "no further arguments: the job has its own")
        return op
    name = f"{op}_pool" if isinstance(op, str) and f"{op}_pool" in POOLS else op
    return Job(name, sources[0].shape, sources[0].dtype, *args, **options)


def estimate(
    job: Job,
    chunks: Shape | None,
    unit: Shape | None,
    memory: int | str,
    workers: int,
    buffers: Sequence[int | None] | None = None,
) -> Estimate:
    """Return what a run over these chunks will do."""
    regions = job.regions(memory, unit, chunks=chunks, workers=workers, buffers=buffers)
    made = sum(prod(o.shape) * o.dtype.itemsize for o in job.outputs)
    there = sum(prod(i.shape) * i.dtype.itemsize for i in job.inputs)
    read = round(job._amplification(regions.size, chunks) * prod(job.result))
    return Estimate(job, regions, read, made, read / max(there, 1), job.peak(regions.size, workers, buffers), workers)


def pool(
    src: StoreOrPath | tuple[StoreOrPath, ...],
    out: StoreOrPath | tuple[StoreOrPath, ...] | None = None,
    op: str | Job = "max_pool",
    *args: Windows | Stride,
    memory: int | str = "1GB",
    workers: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    tree: bool = False,
    size: Sequence[int] | None = None,
    regions: Iterable[Sequence[slice]] | None = None,
    chunks: Sequence[int] | None = None,
    shards: Sequence[int] | None = None,
    zarr_format: int = 3,
    progress: Progress | None = None,
    executor: Executor | None = None,
    **options: object,
) -> StoredArray | tuple[StoredArray, ...]:
    """Pool a stored array into a stored array, region by region, with the bits of the whole array.

    Parameters
    ----------
    src : array, store, path, or tuple of them
        The array to pool: a NumPy array, a Zarr array, an HDF5 dataset, the path of a .npy file or of a Zarr array, or
        "file.h5::name". A tuple if the job has several inputs.
    out : array, store, path, or tuple of them, optional
        The target of the result, one for each output. A path is created. Default: a new NumPy array.
    op : str or Job, optional
        A pool, such as "max_pool" (default; "max" for short), a TensorFlow op, or a `Job` with all its arguments.
    *args : optional
        The window and the stride.
    memory : int or str, optional
        The bytes that arrays may take, such as "2GB". Default: "1GB".
    workers : int, optional
        The regions that are computed at the same time. Default: the number of threads of the library, or fewer where memory is short.
    resume : bool, optional
        Go on with a run that was interrupted: keep the regions that its journal, the file ``out`` + ".journal", names and whose
        checksums are right. Default: False.
    overwrite : bool, optional
        Replace an existing path. Default: False.
    tree : bool, optional
        Allow windows that are larger than memory, of pools over whole axes: pool blocks of at most 2**18 cells, then the results. The
        bits of sums of floats depend neither on chunks nor on memory; they may differ from the pool in memory in the last place. Blocks
        begin at multiples of their length. Default: False.
    size : sequence of int, optional
        The shape of the regions. Default: chosen by memory, in whole shards or chunks of the result.
    regions : iterable of regions, optional
        The part of the work to do, such as ``job.regions(...)[i::n]``: of whole shards or chunks, without overlap. There is no
        journal then.
    chunks, shards : sequence of int, optional
        Those of a result that is created. Default: those of `Job.chunks_like`, no shards. A Zarr array is compressed as its source.
    zarr_format : int, optional
        2 or 3 (default), for a result that is created.
    progress : callable, optional
        A function that gets a `State` after each region.
    executor : concurrent.futures.Executor, optional
        Where regions are computed, `workers` at a time: processes, or ``client.get_executor()`` of a Dask cluster. The arrays must be
        paths, or Zarr arrays, that all workers reach. This process keeps the journal, so a worker that is killed loses its region
        alone. Default: threads of this process.
    **options : optional
        The other arguments of the pool or op.

    Returns
    -------
    array or store, or tuple of them
        The result.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong, arrays do not fit the job, regions overlap or are no whole units, or the source has changed since the
        journal was begun. Nothing has been read or written then.
    MemoryError
        If the smallest region needs more memory.
    OSError
        If a chunk cannot be read, or a region cannot be written; the message names it.

    See Also
    --------
    Job : The same for any engine.
    pyramid : Pool an array again and again.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> x = np.arange(16.0).reshape(4, 4)
    >>> pg.pool(x, None, "max", 2).tolist()
    [[5.0, 7.0], [13.0, 15.0]]
    """
    problems = ArgumentErrors("pool")
    as_workers(problems, workers)
    limit = as_bytes(problems, "memory", memory)
    given = src if isinstance(src, tuple) else (src,)
    sources = [open_source(problems, "src", one) for one in given]
    job = as_job(op, sources, args, options)
    _check_sources(problems, job, sources)
    many = as_workers(problems, workers)
    if tree and executor is not None:
        problems.fail("executor", short_repr(executor), "None with tree=True")
    if tree:
        return _by_tree(problems, job, sources[0], out, limit, many, overwrite, progress)
    like = next((s.chunks for s in sources if s.shape == job.shape and s.chunks), None)
    share = max(limit // many, 1)
    shape = tuple(chunks) if chunks is not None else None if like is None else job.chunks_like(like, share)
    if shape is None and regions is None and 0 not in job.result:
        shape = job.regions(
            limit, size=size, workers=many, buffers=[s.buffer for s in sources] + [None] * len(job.outputs)
        ).size
    outs = out if isinstance(out, tuple) else (out,) * len(job.outputs) if out is None else (out,)
    if len(outs) != len(job.outputs):
        problems.fail("out", short_repr(out), f"{len(job.outputs)}: {', '.join(o.name for o in job.outputs)}")
    cut = None if shards is None else tuple(shards)
    kept_unit = cut or shape if _is_path(outs[0]) else None
    least = kept_unit or (1,) * len(job.result) if size is None else tuple(size)
    wanted = [Wanted(job.result, o.dtype, shape, cut, zarr_format, sources[0].array) for o in job.outputs]
    buffers = [s.buffer for s in sources] + [buffer_of_target(o, w) for o, w in zip(outs, wanted, strict=True)]
    while workers is None and many > 1 and job.peak(least, many, buffers) > limit:
        many -= 1  # fewer regions at the same time
    if regions is None:  # refuse too little memory before a file is made
        job.regions(limit, kept_unit, chunks=like, size=size, workers=many, buffers=buffers)
    if executor is not None:  # refuse arrays that other processes cannot open before a file is made
        for given_store in sources:
            given_store.address(problems)
        for one in outs:
            refuse_to_send(problems, one)
    again = bool(resume) or regions is not None
    opened = [open_target(problems, "out", o, w, again, overwrite) for o, w in zip(outs, wanted, strict=True)]
    targets, fresh = [store for store, _ in opened], any(new for _, new in opened)
    unit = _common_unit(problems, [t.unit for t in targets])
    journal = None
    if regions is None:
        journal = _journal(problems, job, sources, outs[0], resume and not fresh)
        sizes = size if journal is None or journal.size is None else journal.size
        tiles = job.regions(limit, unit, chunks=like, size=sizes, workers=many, buffers=buffers)
        if journal is not None:
            journal.size = list(tiles.size)
        chosen: Sequence[Region] = tiles
    else:
        chosen = _checked_regions(problems, job, regions, unit, limit // many, buffers)
    _run(job, sources, targets, chosen, many, journal, progress, executor)
    made: tuple[StoredArray, ...] = tuple(target.array for target in targets)
    return made[0] if len(made) == 1 else made


def _by_tree(
    problems: ArgumentErrors,
    job: Job,
    source: Store,
    out: Any,
    limit: int,
    workers: int,
    overwrite: bool,
    progress: Progress | None,
) -> StoredArray:
    """Pool over whole axes by jobs that follow each other; the results of all but the last stay in memory."""
    made = Tree(job)
    made.check(problems)

    def follow(jobs: list[Job], only_there: bool) -> Array:
        held = sum(prod(j.result) * j.outputs[0].dtype.itemsize for j in jobs)
        if held > limit // 2:
            problems.fail("memory", f"{limit} bytes", f"at least {2 * held}, twice the sums of blocks", MemoryError)
        array: Any = Seen(source, jobs[0].dtype, only_there)
        chunks = source.chunks
        for stage in jobs:
            buffers = (None if stage is jobs[0] else 0, 0)
            regions = stage.regions(limit - held, None, chunks=chunks, workers=workers, buffers=buffers)
            target = Store(np.zeros(stage.result, stage.outputs[0].dtype), "sums")
            _run(stage, [Store(array, source.name, chunks)], [target], regions, workers, None, progress)
            array, chunks = target.array, None
        found: Array = array
        return found

    total = follow(made.values, False)
    values = made.finish(total, follow(made.numbers, True) if made.counts else None)
    wanted = Wanted(job.result, job.outputs[0].dtype)
    target, _ = open_target(problems, "out", out, wanted, False, overwrite)
    target.write(tuple(slice(0, n) for n in job.result), values)
    target.finish()
    result: StoredArray = target.array
    return result


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike)) and not os.fspath(value).endswith(".npy")


def as_workers(problems: ArgumentErrors, workers: int | None) -> int:
    """Return the number of workers."""
    if workers is None:
        return get_num_threads()
    if not isinstance(workers, int) or isinstance(workers, bool) or not 1 <= workers <= 1024:
        problems.fail("workers", short_repr(workers), "an integer from 1 to 1024")
    return workers


def _check_sources(problems: ArgumentErrors, job: Job, sources: Sequence[Store]) -> None:
    if len(sources) != len(job.inputs):
        problems.fail("src", f"{len(sources)} arrays", ", ".join(given.name for given in job.inputs))
    for store, given in zip(sources, job.inputs, strict=True):
        if store.shape != given.shape:
            problems.fail(given.name, f"shape {list(store.shape)}", list(given.shape))
        if store.dtype != given.dtype:
            problems.fail(given.name, f"dtype {store.dtype}", given.dtype, TypeError)


def _common_unit(problems: ArgumentErrors, units: list[Shape | None]) -> Shape | None:
    found = {u for u in units if u is not None}
    if len(found) > 1:
        problems.fail("out", f"results with units {sorted(found)}", "results with the same shards or chunks")
    return found.pop() if found else None


def _checked_regions(
    problems: ArgumentErrors,
    job: Job,
    regions: Iterable[Sequence[slice]],
    unit: Shape | None,
    limit: int,
    buffers: Sequence[int | None],
) -> Sequence[Region]:
    """Return regions that a caller chose; refuse overlaps, parts of units, and regions that need more memory."""
    units = unit or (1,) * len(job.result)
    if isinstance(regions, Regions):
        if regions.shape != job.result:
            problems.fail("regions", f"regions of {list(regions.shape)}", f"regions of {list(job.result)}")
        if any(s % u and s < n for s, u, n in zip(regions.size, units, job.result, strict=True)):
            problems.fail("regions", f"regions of size {list(regions.size)}", f"whole units of {list(units)}")
        chosen: Sequence[Region] = regions
        sizes = [regions.size]
    else:
        chosen = [as_region(problems, "regions", region, job.result) for region in regions]
        _refuse_overlap(problems, job, chosen, units)
        sizes = [size_of(region) for region in chosen]
    for s in {s for s in sizes if 0 not in s}:
        needed = job.peak(s, buffers=buffers)
        if needed > limit:
            wanted = f"{needed} for a region of {list(s)}"
            problems.fail("memory", f"{limit} bytes for each worker", wanted, MemoryError)
    return chosen


def _refuse_overlap(problems: ArgumentErrors, job: Job, chosen: Sequence[Region], units: Shape) -> None:
    for region in chosen:
        for s, u, n in zip(region, units, job.result, strict=True):
            if s.start % u or (s.stop % u and s.stop < n):
                text = [(s.start, s.stop) for s in region]
                problems.fail(
                    "regions", short_repr(text), f"whole units of {list(units)}: two tasks must not write one"
                )
    ordered = sorted(chosen, key=lambda region: [s.start for s in region])
    for k, a in enumerate(ordered):
        for b in ordered[k + 1 :]:
            if b[0].start >= a[0].stop if b else True:
                break
            if all(x.start < y.stop and y.start < x.stop for x, y in zip(a, b, strict=True)):
                both = [[(s.start, s.stop) for s in r] for r in (a, b)]
                problems.fail("regions", short_repr(both), "regions that do not overlap")


def _journal(problems: ArgumentErrors, job: Job, sources: Sequence[Store], out: Any, resume: bool) -> Journal | None:
    """Return the journal beside a result that has a path; read it if the run is resumed."""
    if not isinstance(out, (str, os.PathLike)):
        if resume:
            problems.fail("resume", True, "a path as out: only a file has a journal")
        return None
    path = Path(os.fspath(out).partition("::")[0])
    journal = Journal(path.with_name(path.name + ".journal"), job.token, [s.fingerprint() for s in sources])
    if resume:
        journal.read(problems)
    return journal


class Made(NamedTuple):
    """A region that is done: its checksum if there is a journal, and the bytes read and written: none if it was there before."""

    check: int
    read: int
    written: int
    was_there: bool = False


def _one(
    job: Job, sources: Sequence[Store], targets: Sequence[Store], region: Region, known: int | None, journaled: bool
) -> Made:
    """Read, compute and write a region, unless its cells have the checksum that a journal knows."""
    if known is not None and _checksum_there(targets, region) == known:
        return Made(known, 0, 0, True)
    needs = job.needs(region)
    parts = [s.read(need, f"source {k}") for k, (s, need) in enumerate(zip(sources, needs, strict=True))]
    read = sum(part.nbytes for part in parts)
    found = job.run(region, *parts)
    del parts
    made: tuple[Array, ...] = found if isinstance(found, tuple) else (found,)
    check = checksum(made) if journaled else 0
    for target, array in zip(targets, made, strict=True):
        target.write(region, array)
    for store in (*sources, *targets):
        store.release()
    return Made(check, read, sum(array.nbytes for array in made))


def _checksum_there(targets: Sequence[Store], region: Region) -> int | None:
    """Return the checksum of the cells that are there; None if they cannot be read."""
    try:
        return checksum(tuple(t.read(region, f"target {k}") for k, t in enumerate(targets)))
    except OSError:  # a chunk that was torn
        return None


_KEPT = 8 << 20  # bytes of a freed region that are kept for the next one; larger ones would not be worth their memory


def _far(job: Job, sources: Sequence[Any], targets: Sequence[Any], *rest: Any) -> Made:
    """Compute a region in a process that knows the stores by their paths alone."""
    problems = ArgumentErrors("pool")
    opened = [open_source(problems, given.name, one) for given, one in zip(job.inputs, sources, strict=True)]
    with threads(1), keep_less(_KEPT):
        made = _one(job, opened, [reopen_target(problems, one) for one in targets], *rest)
    free_scratch()
    return made


def _run(
    job: Job,
    sources: Sequence[Store],
    targets: Sequence[Store],
    regions: Sequence[Region],
    workers: int,
    journal: Journal | None,
    progress: Progress | None,
    executor: Executor | None = None,
) -> None:
    began = time.perf_counter()
    state = State(0, len(regions), 0, 0, 0, 0.0)
    problems = ArgumentErrors("pool")
    function: Callable[..., Made] = _one if executor is None else _far
    stores: list[list[Any]] = [list(sources), list(targets)]
    if executor is not None:
        stores = [[store.address(problems) for store in some] for some in stores]

    def finish(number: int, made: Made) -> None:
        state.done += 1
        state.skipped += made.was_there
        state.read += made.read
        state.written += made.written
        if journal is not None and not made.was_there:
            journal.add(number, made.check)
        state.seconds = time.perf_counter() - began
        if progress is not None:
            progress(state)

    if journal is not None:
        journal.begin()
    running: dict[Future[Made], int] = {}

    def finish_some() -> None:
        for future in wait(running, return_when=FIRST_COMPLETED)[0]:
            finish(running.pop(future), future.result())

    own = ThreadPoolExecutor(workers, "poolgrad") if executor is None else None
    try:
        with threads(1) if workers > 1 and own else nullcontext(), keep_less(workers * _KEPT):
            for number, region in enumerate(regions):
                while len(running) >= workers:
                    finish_some()
                known = None if journal is None else journal.done.get(number)
                words = (job, *stores, region, known, journal is not None)
                running[(own or executor).submit(function, *words)] = number  # type: ignore[union-attr]
            while running:
                finish_some()
    finally:
        for future in running:
            future.cancel()
        if own is not None:
            own.shutdown(wait=True, cancel_futures=True)
        else:
            wait(running)
        if journal is not None:
            journal.close()
    for target in targets:
        target.finish()
