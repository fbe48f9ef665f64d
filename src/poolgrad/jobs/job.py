"""Define a job: a pool of an array of any size, computed region by region with the bits of the whole."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import cached_property
from math import prod
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array
from .._common.errors import ArgumentErrors, out_of_memory, short_repr
from .._ops.table import OPS
from .._pooling.named import POOLS
from .._pooling.sources import DTYPES
from .._pooling.window_args import checked_plan, integer_list
from .._windows.axis import Axis
from .._windows.plan import Plan
from .._windows.plan_cache import trim
from .op_calls import op_job
from .parts import Call, Input, Output, Part, Region, Shape, Windows, as_region, size_of, within
from .pool_calls import PoolCall, find_windows, split_words
from .regions import Regions, as_bytes, choose_size

TARGET = 2**26  # bytes of memory that a region may need for the sake of fewer tasks


class Job:
    """A pool, a TensorFlow op, or a derivative, over an array that need not fit into memory.

    A job knows shapes and dtypes, and no array. It tells which part of each input a region of the result needs, and computes the
    region from these parts, with the bits that the whole array would give. It costs the same for any number of windows, and a few
    hundred bytes when pickled, unless windows are given as tables. An engine needs three of its methods: `regions`, `needs`, `run`.

    Parameters
    ----------
    op : str
        The name of a pool, such as "max_pool" or "global_avg_pool", or of a TensorFlow op, such as "MaxPoolGrad".
    shape : sequence of int
        The shape of the array before pooling, also for gradients.
    dtype : dtype
        The dtype of that array.
    *args : optional
        The window and the stride of the pool, or the size of an adaptive one.
    returns : str or sequence of str, optional
        The results. Pools: "values" (default), "taps", "argmax" (flat positions in the array). Ops: the names of the table, all of
        them by default.
    **options : optional
        The other arguments of the pool or op that are no arrays: ``padding``, ``axes``, ``nan``, or ``ksize``, ``strides``.

    Attributes
    ----------
    op : str
        The name of the pool or op.
    shape, dest : tuple of int
        The shapes of the array before and after pooling.
    dtype : dtype
        The dtype of the array before pooling.
    windows : tuple
        The windows of each dimension: a formula or an `Axis`; None if it is not pooled.
    inputs : tuple of Input
        The arrays that `run` takes: name, shape, dtype, and True if the array has the shape after pooling.
    outputs : tuple of Output
        The arrays that it makes: name, shape, dtype. All have the same shape, `result`.
    sequences : tuple of ndarray
        The sequences that a fractional op drew.

    Raises
    ------
    TypeError, ValueError, NotImplementedError
        If an argument is wrong, as the pool or the op raises it.

    See Also
    --------
    Plan : The windows of an array in memory, and parts of them.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> x = np.arange(36.0).reshape(6, 6)
    >>> job = pg.Job("max_pool", x.shape, x.dtype, 3, 1, padding="same")
    >>> region = (slice(0, 2), slice(4, 6))
    >>> job.needs(region)
    ((slice(0, 3, None), slice(3, 6, None)),)
    >>> job.run(region, *(x[part] for part in job.needs(region))).tolist()
    [[11.0, 11.0], [17.0, 17.0]]
    >>> pg.max_pool(x, 3, 1, padding="same")[region].tolist()
    [[11.0, 11.0], [17.0, 17.0]]
    >>> pg.Job("avg_pool", [10**10], "int16", 441).dest
    (22675736,)
    """

    def __init__(
        self,
        op: str,
        shape: Sequence[int],
        dtype: npt.DTypeLike,
        /,
        *args: Any,
        returns: str | Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        problems = ArgumentErrors("Job")
        if not isinstance(op, str) or (op not in POOLS and op not in OPS):
            wanted = f"a pool ({', '.join(POOLS)}) or an op of raw_ops, such as MaxPoolGrad"
            problems.fail("op", short_repr(op), wanted)
        sizes = integer_list(problems, "shape", tuple(shape), None, 0)
        kind = _dtype(problems, dtype)
        asked = (returns,) if isinstance(returns, str) else None if returns is None else tuple(returns)
        if op in OPS:
            if args:
                problems.fail("arguments", short_repr(args), f"the arguments of {op} by their names")
            call, windows, dest, self.sequences = op_job(op, sizes, kind, options, asked)
            self._set(op, sizes, dest, windows, call)
        else:
            problems = ArgumentErrors(op)
            about, words = split_words(problems, op, args, options)
            windows = find_windows(problems, op, sizes, about)
            axes = tuple(d for d, w in enumerate(windows) if w is not None)
            most = prod(w.widest for w in windows if w is not None)
            made = PoolCall(op, kind, axes, tuple(sorted(words.items())), most, asked or ("values",))
            made.check(problems)
            dest = tuple(n if w is None else len(w) for n, w in zip(sizes, windows, strict=True))
            self.sequences = ()
            self._set(op, sizes, dest, windows, made)
        try:
            self.part([slice(0, 1)] * len(self.result))  # refuses more pooled axes than the core walks through
        except MemoryError as error:
            out_of_memory(op, "window", error)

    def _set(self, op: str, shape: Shape, dest: Shape, windows: tuple[Windows | None, ...], call: Call) -> None:
        self.op, self.shape, self.dest, self.windows, self.call = op, shape, dest, windows, call

    # ---- what it is

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the array before pooling."""
        dtype: np.dtype[Any] = self.call.dtype  # type: ignore[attr-defined]
        return dtype

    @property
    def result(self) -> Shape:
        """The shape of the results: that before pooling for gradients, else that after it."""
        return self.shape if self.call.back else self.dest

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        """The arrays that `run` takes."""
        return self.call.inputs(self.shape, self.dest)

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """The arrays that `run` makes."""
        return self.call.outputs(self.result)

    @cached_property
    def token(self) -> str:
        """A digest of everything that the results depend on besides the inputs."""
        return hashlib.blake2b(_spelled(self.__reduce__()[1]).encode(), digest_size=16).hexdigest()

    def __repr__(self) -> str:
        reads = ", ".join(f"{i.name} {list(i.shape)}" for i in self.inputs)
        return f"<Job {self.op}: {reads} -> {list(self.result)} {', '.join(str(o.dtype) for o in self.outputs)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.op, self.shape, self.dest, self.windows, self.call, self.sequences)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and self.token == other.token

    def __hash__(self) -> int:
        return hash(self.token)

    def __dask_tokenize__(self) -> str:
        return self.token

    # ---- derivatives

    def vjp(self, order: int = 1, *, from_taps: bool = False) -> Job:
        """Return the job of the pool's gradient.

        Parameters
        ----------
        order : int, optional
            1 (default) is the gradient of ``(g * pool(x)).sum()``; its inputs are x and g. A higher order is the gradient of that
            sum's derivative along tangents: its inputs are x, g, and a tangent for each order above 1.
        from_taps : bool, optional
            Read stored taps instead of x, which takes one byte per window. Default: False.

        Returns
        -------
        Job
            Its inputs leave out x where the derivative does not depend on it.

        Examples
        --------
        >>> import numpy as np
        >>> import poolgrad as pg
        >>> job = pg.Job("avg_pool", [8], "float64", 2).vjp()
        >>> [given.name for given in job.inputs], job.needs([slice(2, 5)])
        (['g'], ((slice(1, 3, None),),))
        >>> job.run([slice(2, 5)], np.array([2.0, 4.0])).tolist()
        [1.0, 1.0, 2.0]
        """
        return self._derivative("vjp", order, from_taps)

    def jvp(self, order: int = 1, *, from_taps: bool = False) -> Job:
        """Return the job of the pool's derivative along a tangent.

        Parameters
        ----------
        order : int, optional
            The number of tangents: 1 (default) for the derivative, 2 for the derivative of the derivative.
        from_taps : bool, optional
            Read stored taps instead of x. Default: False.

        Returns
        -------
        Job
            Its inputs are x and the tangents; they leave out x where the derivative does not depend on it.

        Examples
        --------
        >>> import poolgrad as pg
        >>> [given.name for given in pg.Job("max_pool", [8], "float32", 2).jvp().inputs]
        ['x', 'v']
        """
        return self._derivative("jvp", order, from_taps)

    def _derivative(self, how: str, order: int, from_taps: bool) -> Job:
        problems = ArgumentErrors(f"{self.op}.{how}")
        (order,) = integer_list(problems, "order", order, None, 1)
        if not isinstance(self.call, PoolCall) or self.call.derivative:
            problems.fail("op", self.op, "a pool: TensorFlow's ops have ops for their gradients")
        call = self.call.differentiated(problems, how, order, bool(from_taps))
        return _restored(self.op, self.shape, self.dest, self.windows, call, ())

    # ---- work

    def part(self, region: Sequence[slice]) -> Part:
        """Return the windows that a region of the result needs, as a plan, with their place in the whole array."""
        source, dest, pooled = [], [], {}
        for d, (here, windows) in enumerate(zip(self._region(region), self.windows, strict=True)):
            if windows is None:
                source.append(here)
                dest.append(here)
            elif self.call.back:
                which, cells, pooled[d] = windows.cut_back(here.start, here.stop)
                dest.append(which)
                source.append(cells)
            else:
                cells, pooled[d] = windows.cut(here.start, here.stop)
                source.append(cells)
                dest.append(here)
        lengths = size_of(tuple(source))
        # most regions have the windows of another one
        recent: dict[Any, Plan] = self.__dict__.setdefault("_recent", {})
        key = lengths, *pooled.items()
        plan = recent.get(key)
        if plan is None:
            plan = recent[key] = checked_plan(ArgumentErrors(self.op), lengths, pooled)
            trim(recent, 2)
        return Part(plan, tuple(source), tuple(dest))

    def _region(self, region: Sequence[slice]) -> Region:
        return as_region(ArgumentErrors(self.op), "region", region, self.result)

    @property
    def _void(self) -> bool:
        """True if there are no windows at all: the result has no cells, or is zero."""
        return 0 in self.dest or (all(w is None for w in self.windows) and self.shape != self.dest)

    @property
    def _even(self) -> bool:
        """True if the result is the gradient of one window over whole axes, the same for all its cells: no part is needed."""
        if (
            not isinstance(self.call, PoolCall)
            or not self.call.even
            or dict(self.call.options).get("count_include_pad")
        ):
            return False
        return all(w is None or (len(w) == 1 and w.widest == w.length) for w in self.windows)

    def _over(self, region: Region) -> Region:
        """Return the windows over a region, each of which covers whole axes."""
        return tuple(r if w is None else slice(0, 1) for r, w in zip(region, self.windows, strict=True))

    def needs(self, region: Sequence[slice]) -> tuple[Region, ...]:
        """Return the region of each input that a region of the result needs.

        Parameters
        ----------
        region : sequence of slice
            One slice without a step per dimension of the result.

        Returns
        -------
        tuple of tuple of slice
            One region per input, in the order of `inputs`.
        """
        here = self._region(region)
        if self._void or 0 in size_of(here):
            return tuple(tuple(slice(0, 0) for _ in given.shape) for given in self.inputs)
        if self._even:
            return (self._over(here),)
        part = self.part(here)
        return tuple(part.dest if given.pooled else part.source for given in self.inputs)

    def run(self, region: Sequence[slice], *arrays: npt.ArrayLike) -> Any:
        """Compute a region of the result.

        Parameters
        ----------
        region : sequence of slice
            One slice without a step per dimension of the result.
        *arrays : array_like
            The parts of the inputs that `needs` names, in the order of `inputs`.

        Returns
        -------
        ndarray, or tuple of ndarray
            The region, contiguous: one array per output.

        Raises
        ------
        TypeError, ValueError
            If an array has another shape or dtype.
        """
        here = self._region(region)
        problems = ArgumentErrors(self.op)
        if len(arrays) != len(self.inputs):
            problems.fail("arrays", f"{len(arrays)} of them", ", ".join(given.name for given in self.inputs))
        size = size_of(here)
        if self._void or 0 in size:
            return self._given(tuple(np.zeros(size, made.dtype) for made in self.outputs))
        if self._even and isinstance(self.call, PoolCall):
            g = _cells(problems, self.inputs[0], arrays[0], self._over(here))
            share = self.call.gradient_of_whole(g, prod(w.length for w in self.windows if w is not None))
            return np.array(np.broadcast_to(share, size))
        part = self.part(here)
        cells = [
            _cells(problems, given, array, part.dest if given.pooled else part.source)
            for given, array in zip(self.inputs, arrays, strict=True)
        ]
        made = self.call.run(part, self.shape, *cells)
        if self.call.back:
            made = tuple(array[within(here, part.source)] for array in made)
        return self._given(tuple(map(np.ascontiguousarray, made)))

    def _given(self, made: tuple[Array, ...]) -> Any:
        return made[0] if len(made) == 1 else made

    # ---- regions and memory

    def regions(
        self,
        memory: int | str = "1GB",
        unit: Sequence[int] | None = None,
        *,
        chunks: Sequence[int] | None = None,
        size: Sequence[int] | None = None,
        workers: int = 1,
        buffers: Sequence[int | None] | None = None,
    ) -> Regions:
        """Tile the result into regions that fit into memory.

        Parameters
        ----------
        memory : int or str, optional
            The bytes that all workers together may use for arrays, such as "2GB". Default: "1GB".
        unit : sequence of int, optional
            The shape of what is written at once: the shard of the result, else its chunk. Regions are whole units. Default: cells.
        chunks : sequence of int, optional
            The shape of the chunks of the input that is read, so that few are read twice.
        size : sequence of int, optional
            The shape of the regions, instead of a choice by memory.
        workers : int, optional
            The number of regions that are computed at the same time. Default: 1.
        buffers : sequence of int or None, optional
            The bytes that each store holds besides its array, as for `peak`.

        Returns
        -------
        Regions
            A sequence of regions; ``regions[i::n]`` is the share of worker i of n. Any number of regions costs nothing.

        Raises
        ------
        ValueError
            If a size is no multiple of the unit.
        MemoryError
            If the smallest region needs more memory.

        Examples
        --------
        >>> import poolgrad as pg
        >>> job = pg.Job("max_pool", (4096, 4096, 4096), "uint16", 2)
        >>> job.regions("500MB", unit=(128, 128, 128))
        <Regions: 4096 of [128, 128, 128] in [2048, 2048, 2048]>
        """
        problems = ArgumentErrors(self.op)
        limit = as_bytes(problems, "memory", memory) // max(workers, 1)
        rank = len(self.result)
        units = (1,) * rank if unit is None else integer_list(problems, "unit", tuple(unit), rank, 1)
        if size is not None:
            sizes = integer_list(problems, "size", tuple(size), rank, 1)
            for s, u, n in zip(sizes, units, self.result, strict=True):
                if s % u and s < n:
                    problems.fail("size", list(sizes), f"whole units of {list(units)}: what is written at once")
            if self.peak(sizes, buffers=buffers) > limit:
                self._too_large(problems, sizes, limit, buffers)
            return Regions(self.result, sizes)
        read = None if chunks is None else integer_list(problems, "chunks", tuple(chunks), rank, 1)

        def cost(size: Shape) -> tuple[float, int]:
            return self._amplification(size, read), self.peak(size, buffers=buffers)

        chosen = choose_size(self.result, units, cost, limit, TARGET)
        if chosen is None:
            self._too_large(problems, units, limit, buffers)
        return Regions(self.result, chosen)

    def unit(self, chunks: Sequence[int]) -> Shape:
        """Return the shape of the region that about one chunk of the array before pooling makes.

        Parameters
        ----------
        chunks : sequence of int
            The shape of the chunks.

        Returns
        -------
        tuple of int
            The chunks themselves for gradients.

        Examples
        --------
        >>> import poolgrad as pg
        >>> pg.Job("max_pool", (512, 512, 3), "uint8", 2, axes=(0, 1)).unit((64, 64, 3))
        (32, 32, 3)
        """
        sizes = integer_list(ArgumentErrors(self.op), "chunks", tuple(chunks), len(self.shape), 1)
        if self.call.back:
            return sizes
        return tuple(
            c if windows is None else max(round(c * len(windows) / max(n, 1)), 1)
            for c, n, windows in zip(sizes, self.shape, self.windows, strict=True)
        )

    def chunks_like(self, chunks: Sequence[int], memory: int | str = "1GB") -> Shape:
        """Return chunks for the result like those of a source: shorter on axes where the windows of a chunk would not fit into memory.

        Parameters
        ----------
        chunks : sequence of int
            The shape of the chunks of the source.
        memory : int or str, optional
            The bytes that one worker may use for arrays, such as "2GB". Default: "1GB".

        Returns
        -------
        tuple of int

        Examples
        --------
        >>> import poolgrad as pg
        >>> pg.Job("max_pool", (1024, 1024, 3), "uint8", 2, axes=(0, 1)).chunks_like((256, 256, 3))
        (256, 256, 3)
        >>> pg.Job("avg_pool", (3600, 1080, 2160), "float32", (30, 1, 1)).chunks_like((30, 270, 540), "200MB")
        (4, 270, 540)
        """
        problems = ArgumentErrors(self.op)
        limit = as_bytes(problems, "memory", memory)
        read = integer_list(problems, "chunks", tuple(chunks), len(self.result), 1)
        size = tuple(max(min(c, n), 1) for c, n in zip(read, self.result, strict=True))
        while self.peak(size) > limit and max(size) > 1:
            spans = [0.0] * len(size)  # how many chunks of the source an axis of this size spans
            for need in self.needs(self._typical(size)):
                spans = [max(s, (n.stop - n.start) / c) for s, n, c in zip(spans, need, read, strict=True)]
            longest = max((d for d, n in enumerate(size) if n > 1), key=lambda d: spans[d])
            size = tuple(-(-n // 2) if d == longest else n for d, n in enumerate(size))
        return size

    def _too_large(
        self, problems: ArgumentErrors, size: Sequence[int], limit: int, buffers: Sequence[int | None] | None
    ) -> NoReturn:
        one = any(w is not None and len(w) == 1 for w in self.windows) and not self.call.back
        hint = "; tree=True of pool or poolgrad.dask pools windows that are larger than memory" if one else ""
        got = f"{limit} bytes for each worker"
        wanted = f"at least {self.peak(size, buffers=buffers)} for a region of {list(size)}{hint}"
        problems.fail("memory", got, wanted, MemoryError)

    def _typical(self, size: Sequence[int]) -> Region:
        """Return a region of that size that lies in the middle, so that edges do not cut its windows."""
        middle = [max((n // s) // 2, 0) * s if s < n else 0 for s, n in zip(size, self.result, strict=True)]
        return tuple(slice(a, min(a + s, n)) for a, s, n in zip(middle, size, self.result, strict=True))

    def _amplification(self, size: Shape, chunks: Shape | None) -> float:
        """Return the bytes that a region of that size reads, whole chunks if given, per cell that it makes."""
        region = self._typical(size)
        total = 0
        for given, need in zip(self.inputs, self.needs(region), strict=True):
            lengths = [n.stop - n.start for n in need]
            if chunks is not None and not given.pooled:
                lengths = [
                    min(-(-n.stop // c) * c, whole) - n.start // c * c
                    for n, c, whole in zip(need, chunks, given.shape, strict=True)
                ]
            total += prod(lengths) * given.dtype.itemsize
        return total / max(prod(size_of(region)), 1)

    def peak(self, size: Sequence[int], workers: int = 1, buffers: Sequence[int | None] | None = None) -> int:
        """Return the most bytes that regions of a size need: their inputs and outputs, what stores hold besides, and the kernel's own.

        Python, NumPy and the packages of the stores come on top.

        Parameters
        ----------
        size : sequence of int
            The shape of the regions.
        workers : int, optional
            The number of regions that are computed at the same time. Default: 1.
        buffers : sequence of int or None, optional
            The bytes that the store of each input, then of each output, holds besides the array while it reads or writes a region;
            None for a second copy of the array, as stores have that read asynchronously. Default: None for all.

        Returns
        -------
        int
        """
        region = self._typical(tuple(size))
        if self._void or 0 in size_of(region):
            return 0
        cells = prod(size_of(region))
        arrays = [
            prod(size_of(need)) * given.dtype.itemsize
            for given, need in zip(self.inputs, self.needs(region), strict=True)
        ]
        arrays += [cells * made.dtype.itemsize for made in self.outputs]
        held = (None,) * len(arrays) if buffers is None else tuple(buffers)
        if len(held) != len(arrays):
            ArgumentErrors(self.op).fail("buffers", short_repr(held), f"{len(arrays)}: one per input and output")
        total = sum(n + (n if more is None else more) for n, more in zip(arrays, held, strict=True))
        if not self._even:
            part = self.part(region)
            total += self.call.temporary(part) + _bytes_of_tables(part.plan, self.call.back)
            if (
                self.call.back and part.source != region
            ):  # the gradient of all cells of the windows, of which the region is kept
                total += prod(size_of(part.source)) * sum(made.dtype.itemsize for made in self.outputs)
        return workers * total


def _bytes_of_tables(plan: Plan, back: bool) -> int:
    """Return the bytes of tables of windows, in Python and in the core, with those of the region before.

    They matter if the array has one long axis; measured, see `tests/jobs/test_job_memory.py`.
    """
    return sum(112 * len(axis) + (48 * (axis.length + len(axis)) if back else 0) for axis in plan.axes)


def _restored(
    op: str, shape: Shape, dest: Shape, windows: tuple[Windows | None, ...], call: Call, sequences: tuple[Array, ...]
) -> Job:
    """Return a job from its parts, which were checked when they were made."""
    job = object.__new__(Job)
    job.sequences = sequences
    job._set(op, shape, dest, windows, call)
    return job


def _spelled(value: Any) -> str:
    """Return a text that is the same for equal values, in every process."""
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(_spelled, value))})"
    if isinstance(value, Axis):
        return f"Axis{_spelled((value.length, value.start, value.stop, value.span, value.step))}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str}{value.shape}{hashlib.blake2b(value.tobytes(), digest_size=16).hexdigest()}"
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__ + _spelled([getattr(value, field.name) for field in fields(value)])
    if isinstance(value, type):
        return value.__name__
    return value.item().__repr__() if isinstance(value, np.generic) else repr(value)


def _dtype(problems: ArgumentErrors, dtype: Any) -> np.dtype[Any]:
    try:
        found: np.dtype[Any] = np.dtype(dtype).newbyteorder("=")
    except Exception:  # NumPy raises various errors for unknown names
        problems.fail("dtype", short_repr(dtype), "the name of a dtype", TypeError)
    if found not in DTYPES and found != np.bool_:
        problems.fail("dtype", short_repr(dtype), "a real floating, integer or boolean dtype", TypeError)
    return found


def _cells(problems: ArgumentErrors, given: Input, array: Any, need: Region) -> Array:
    """Return an input as the core reads it, contiguous and in native byte order; refuse another shape or dtype."""
    cells = np.asarray(array)
    if cells.shape != size_of(need):
        problems.fail(
            given.name, f"shape {list(cells.shape)}", f"{list(size_of(need))}, the part that the region needs"
        )
    dtype = cells.dtype.newbyteorder("=")
    positions = given.name == "argmax" and dtype.name in ("int32", "int64")
    if dtype != given.dtype and not positions:
        problems.fail(given.name, f"dtype {cells.dtype}", given.dtype, TypeError)
    return np.ascontiguousarray(cells, dtype)
