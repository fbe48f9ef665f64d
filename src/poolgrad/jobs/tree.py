"""Pool windows that are larger than memory: pool fixed blocks, then pool the results, until one is left.

Blocks begin at multiples of their length, counted from the first cell of the array. So the order of a sum depends neither on chunks nor
on memory. Sums of floats are float64 until the end, where they are divided and rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._common.errors import ArgumentErrors
from .._pooling.pools import avg_pool
from .job import Job
from .parts import Region, Shape
from .pool_calls import PoolCall
from .stores import open_source

_CELLS = 18  # a block has 2**18 cells: 2**18, 512 x 512, 64 x 64 x 64
_KINDS = ("max", "min", "avg", "sum")


def block_of(rank: int) -> int:
    """Return the length of a block along each of so many pooled axes.

    >>> [block_of(rank) for rank in (1, 2, 3, 4)]
    [262144, 512, 64, 16]
    """
    return max(1 << _CELLS // rank, 2)


@dataclass(frozen=True)
class Tree:
    """A pool over whole axes, as jobs that follow each other."""

    job: Job

    def check(self, problems: ArgumentErrors) -> None:
        """Refuse a job that is no pool over whole axes."""
        call = self.job.call
        whole = all(w is None or (len(w) == 1 and w.widest == w.length) for w in self.job.windows)
        if not isinstance(call, PoolCall) or call.derivative or call.kind not in _KINDS or not whole:
            problems.fail("tree", True, "a max, min, avg or sum pool over whole axes, no gradient")
        if call.returns != ("values",):
            problems.fail("returns", call.returns, "'values' with tree=True")
        if 0 in self.job.shape:
            problems.fail("x", f"shape {list(self.job.shape)}", "at least one cell with tree=True")

    @property
    def _call(self) -> PoolCall:
        assert isinstance(self.job.call, PoolCall)
        return self.job.call

    @property
    def _options(self) -> dict[str, Any]:
        return dict(self._call.options)

    @property
    def floating(self) -> bool:
        """True if sums are taken in float64."""
        return self._call.kind in ("avg", "sum") and self.job.dtype.kind not in "iub"

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype in which the first job reads the array."""
        return np.dtype(np.float64) if self.floating else self.job.dtype

    @property
    def counts(self) -> bool:
        """True if the cells that are no NaN must be counted."""
        return self._call.kind == "avg" and self.floating and self._options.get("nan") == "ignore"

    def stages(self, shape: Shape, op: str, dtype: np.dtype[Any], **words: Any) -> list[Job]:
        """Return the jobs from an array of that shape to one cell along the pooled axes."""
        axes = self._call.axes
        jobs: list[Job] = []
        block = block_of(len(axes))
        while not jobs or any(shape[d] > 1 for d in axes):
            window = [min(block, shape[d]) for d in axes]
            jobs.append(Job(op, shape, dtype, window, axes=axes, ceil_mode=True, **words))
            shape, dtype = jobs[-1].result, jobs[-1].outputs[0].dtype
        return jobs

    @cached_property
    def values(self) -> list[Job]:
        """The jobs that lead to the sums or to the best cells."""
        kind, nan = self._call.kind, self._options.get("nan", "propagate")
        words = {"nan": nan} if self.job.dtype.kind not in "iub" else {}
        return self.stages(self.job.shape, f"{kind if kind in ('max', 'min') else 'sum'}_pool", self.dtype, **words)

    @cached_property
    def numbers(self) -> list[Job]:
        """The jobs that count cells."""
        return self.stages(self.job.shape, "sum_pool", np.dtype(np.uint8))

    def finish(self, total: Array, count: Array | None = None) -> Array:
        """Return the result from what the last jobs gave."""
        if self._call.kind in ("max", "min"):
            return total
        cells = prod(self.job.shape[d] for d in self._call.axes)
        options, made = self._options, self.job.outputs[0].dtype
        if not self.floating:
            if self._call.kind == "sum":
                return np.asarray(avg_pool(total, 1, divisor=1, dtype=made))
            words = {name: options[name] for name in ("dtype", "rounding") if name in options}
            return np.asarray(avg_pool(total, 1, divisor=cells, **words))
        with np.errstate(all="ignore"):
            exact: Array = total if self._call.kind == "sum" else total / (cells if count is None else count)
        if made.kind in "iu":
            return np.asarray(avg_pool(exact, 1, dtype=made, rounding=options.get("rounding", "nearest")))
        result: Array = exact.astype(made)
        return result


def there(x: Array) -> Array:
    """Return 1 where a cell is no NaN, else 0."""
    found: Array = (x == x).astype(np.uint8)
    return found


@dataclass(frozen=True)
class Seen:
    """A store whose cells are converted when they are read."""

    array: Any
    dtype: np.dtype[Any]
    only_there: bool  # 1 where a cell is no NaN

    @property
    def shape(self) -> Shape:
        """The shape of the store."""
        return tuple(self.array.shape)

    def __getitem__(self, region: Region) -> Array:
        cells = open_source(ArgumentErrors("pool"), "x", self.array).cells(region)
        return there(cells) if self.only_there else cells.astype(self.dtype, copy=False)
