"""Run jobs on Cubed: one task per chunk of the result, within Cubed's bound of memory.

>>> import cubed, numpy as np
>>> import poolgrad as pg
>>> import poolgrad.cubed as pgc
>>> x = cubed.from_array(np.arange(16.0).reshape(4, 4), chunks=(2, 2))
>>> pgc.run(pg.Job("max_pool", x.shape, x.dtype, 2), x, chunks=(1, 2)).compute().tolist()
[[5.0, 7.0], [13.0, 15.0]]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from cubed.core.ops import general_blockwise
from cubed.primitive.blockwise import ChunkKey, FunctionArgs

from ._common.errors import ArgumentErrors, short_repr
from ._pooling.window_args import integer_list
from .jobs.job import Job
from .jobs.parts import Shape, edges_of, joined, pieces, size_of
from .jobs.regions import Regions

__all__ = ["run"]


def run(job: Job, *arrays: Any, chunks: Sequence[int] | None = None) -> Any:
    """Return the result of a job as a Cubed array.

    Parameters
    ----------
    job : Job
        The job.
    *arrays : cubed.Array
        Its inputs, in the order of ``job.inputs``.
    chunks : sequence of int, optional
        The shape of the chunks of the result. Default: about what a chunk of the first input makes.

    Returns
    -------
    cubed.Array, or tuple of them
        One array per output of the job.

    Raises
    ------
    TypeError, ValueError
        If an array does not fit the job. Cubed raises ValueError if a task may need more memory than allowed.
    """
    problems = ArgumentErrors(job.op)
    if len(arrays) != len(job.inputs):
        problems.fail("arrays", f"{len(arrays)} of them", ", ".join(given.name for given in job.inputs))
    for given, array in zip(job.inputs, arrays, strict=True):
        if not hasattr(array, "chunksize") or not hasattr(array, "spec"):
            problems.fail(given.name, short_repr(array), "a Cubed array", TypeError)
        if tuple(array.shape) != given.shape:
            problems.fail(given.name, f"shape {list(array.shape)}", list(given.shape))
        if np.dtype(array.dtype) != given.dtype:
            problems.fail(given.name, f"dtype {array.dtype}", given.dtype, TypeError)
    rank = len(job.result)
    if chunks is None:
        like = tuple(max(int(c), 1) for c in arrays[0].chunksize)
        size: Shape = job.unit(like) if not job.inputs[0].pooled else like
    else:
        size = integer_list(problems, "chunks", tuple(chunks), rank, 1)
    tiles = Regions(job.result, tuple(max(min(s, n), 1) for s, n in zip(size, job.result, strict=True)))
    return _blockwise(job, arrays, tiles)


def _blockwise(job: Job, arrays: tuple[Any, ...], tiles: Regions) -> Any:
    edges = [[edges_of(c) for c in array.chunks] for array in arrays]

    def keys(out_key: Any) -> Any:
        needs = job.needs(tiles.at(out_key.coords))
        read = [
            _keys(array.name, [block for block, _, _ in pieces(lines, need)])
            for array, lines, need in zip(arrays, edges, needs, strict=True)
        ]
        return FunctionArgs(*read, output_name=out_key.name)

    def compute(*blocks: Any, block_id: Any = None) -> Any:
        region = tiles.at(block_id)
        inputs = []
        for given, lines, need, given_blocks in zip(job.inputs, edges, job.needs(region), blocks, strict=True):
            layout = list(pieces(lines, need))
            parts = ((to, np.asarray(b)[of]) for (_, to, of), b in zip(layout, given_blocks, strict=True))
            inputs.append(joined(parts, len(layout), size_of(need), given.dtype))
        return job.run(region, *inputs)

    most = tuple(max(1, prod(len(line) for line in lines)) for lines in edges)
    return general_blockwise(
        compute,
        keys,
        *arrays,
        shapes=[out.shape for out in job.outputs],
        dtypes=[out.dtype for out in job.outputs],
        chunkss=[tiles.chunks for _ in job.outputs],
        target_stores=[None] * len(job.outputs) if len(job.outputs) > 1 else None,
        extra_projected_mem=job.peak(tiles.size),
        num_input_blocks=most,
    )


def _keys(name: str, blocks: list[Shape]) -> Iterator[Any]:
    return iter([ChunkKey(name, block) for block in blocks])
