"""`poolgrad pool` and `poolgrad pyramid`: pool stored arrays of any size, with progress, an estimate, and a way to go on."""

from __future__ import annotations

import argparse
import sys
import time
from math import prod
from typing import Any

import numpy as np

from .._common.errors import ArgumentErrors
from ..jobs.chunk_files import buffer_of
from ..jobs.job import Job
from ..jobs.loop import State, as_workers, estimate, pool
from ..jobs.pyramid import pyramid
from ..jobs.regions import as_bytes
from ..jobs.stores import Wanted, buffer_of_target, open_source

Options = argparse.Namespace

EXAMPLES = {
    "pool": """
poolgrad pool in.zarr out.zarr --max 2,2,2 --memory 2GB
poolgrad pool in.zarr out.zarr --max 2,2,2 --memory 2GB --resume
poolgrad pool in.npy out.h5::means --avg 3 --stride 1 --padding same --nan ignore
poolgrad pool 100000x100000x50000:uint16:128x128x128 out.zarr --max 2 --memory 2GB --dry-run""",
    "pyramid": """
poolgrad pyramid cells.npy cells.ome.zarr --levels 5 --factors 1,2,2 --scale 2,0.5,0.5
poolgrad pyramid cells.ome.zarr --levels 4 --reduce max --resume""",
}
_POOLS = ("max", "min", "avg", "sum", "lp")


def _ints(text: str) -> Any:
    """Read integers, or one of them."""
    values = [int(part) for part in text.replace("x", ",").split(",")]
    return values[0] if len(values) == 1 else values


def _several(text: str) -> list[int]:
    values = _ints(text)
    return values if isinstance(values, list) else [values]


def _padding(text: str) -> Any:
    return _ints(text) if text[:1].isdigit() else text


def _shared(parser: Any) -> None:
    parser.add_argument("--memory", default="1GB", help="bytes that arrays may take, such as 2GB (default 1GB)")
    parser.add_argument("--workers", type=int, help="regions at the same time (default: the threads of the library)")
    parser.add_argument("--resume", action="store_true", help="go on with a run that was interrupted")
    parser.add_argument("--overwrite", action="store_true", help="replace what exists")
    parser.add_argument("--chunks", type=_several, help="chunks of the result, such as 128,128,128")
    parser.add_argument("--shards", type=_several, help="shards of the result")
    parser.add_argument("--zarr-format", type=int, default=3, choices=(2, 3))
    parser.add_argument("--quiet", action="store_true", help="print no progress")


def pool_options(parser: Any) -> None:
    """Add the options of `poolgrad pool`."""
    parser.add_argument("src", help="a .npy file, a Zarr array, file.h5::name, or SHAPE:DTYPE[:CHUNKS] with --dry-run")
    parser.add_argument("out", help="a path that is created: .npy, file.h5::name, or a Zarr array")
    which = parser.add_mutually_exclusive_group(required=True)
    for name in _POOLS:
        which.add_argument(f"--{name}", type=_ints, metavar="WINDOW", help=f"{name}_pool with this window")
    which.add_argument("--global", dest="over_all", choices=("max", "min", "avg", "sum"), help="a pool over whole axes")
    parser.add_argument("--stride", type=_ints)
    parser.add_argument("--padding", type=_padding, help="valid, same, same_lower, or numbers")
    parser.add_argument("--dilation", type=_ints)
    parser.add_argument("--axes", type=_ints, help="the pooled axes (default all)")
    parser.add_argument("--ceil", action="store_true", dest="ceil_mode", help="let the last windows be smaller")
    parser.add_argument("--nan", choices=("propagate", "ignore", "tf"))
    parser.add_argument("--dtype", help="the dtype of means and sums")
    parser.add_argument("--rounding", choices=("nearest", "floor", "ceil", "toward_zero"))
    parser.add_argument("-p", type=float, help="the power of lp_pool")
    parser.add_argument("--dry-run", action="store_true", help="print what would be done, and do nothing")
    _shared(parser)


def _call(options: Options) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """Return the op, its window and its options."""
    names = ("stride", "padding", "dilation", "axes", "nan", "dtype", "rounding", "p")
    words = {name: value for name in names if (value := getattr(options, name)) is not None}
    if options.ceil_mode:
        words["ceil_mode"] = True
    if options.over_all:
        return f"global_{options.over_all}_pool", (), words
    name = next(name for name in _POOLS if getattr(options, name) is not None)
    return f"{name}_pool", (getattr(options, name),), words


def pool_run(options: Options) -> int:
    """Run `poolgrad pool`."""
    op, args, words = _call(options)
    if options.dry_run:
        return _dry_run(options, op, args, words)
    bar = None if options.quiet else Bar("pool")
    pool(
        options.src, options.out, op, *args, memory=options.memory, workers=options.workers, resume=options.resume,
        overwrite=options.overwrite, chunks=options.chunks, shards=options.shards, zarr_format=options.zarr_format,
        progress=bar, **words,
    )  # fmt: skip
    if bar is not None:
        bar.end()
    return 0


def _dry_run(options: Options, op: str, args: tuple[Any, ...], words: dict[str, Any]) -> int:
    problems = ArgumentErrors("pool")
    described = options.src.split(":")
    if len(described) in (2, 3) and described[0].replace("x", "").isdigit():
        shape, dtype = tuple(_several(described[0])), np.dtype(described[1])
        chunks = tuple(_several(described[2])) if len(described) == 3 else None
        buffer = None if chunks is None else buffer_of(prod(chunks) * dtype.itemsize, True)
        source = None
    else:
        store = open_source(problems, "src", options.src)
        shape, dtype, chunks, buffer, source = store.shape, store.dtype, store.chunks, store.buffer, store.array
    job = Job(op, shape, dtype, *args, **words)
    result = job.outputs[0]
    workers = as_workers(problems, options.workers)
    share = max(as_bytes(problems, "memory", options.memory) // workers, 1)
    made = options.chunks or (None if chunks is None else job.chunks_like(chunks, share))
    whole = options.shards or made
    unit = None if whole is None else tuple(whole)
    wanted = Wanted(job.result, result.dtype, made, options.shards, options.zarr_format, source)
    found = estimate(job, chunks, unit, options.memory, workers, (buffer, buffer_of_target(options.out, wanted)))
    rows = (
        ("source", f"{_x(shape)} {dtype}, {size(prod(shape) * dtype.itemsize)}" + (f", chunks {_x(chunks)}" if chunks else "")),
        ("result", f"{_x(result.shape)} {result.dtype}, {size(found.write)}" + (f", units {_x(unit)}" if unit else "")),
        ("regions", f"{len(found.regions)} of {_x(found.regions.size)}"),
        ("reads", f"{size(found.read)}, {found.amplification:.2f} times the source"),
        ("writes", size(found.write)),
        ("memory", f"{size(found.peak)} for the arrays of {workers} workers, {size(_base())} for Python and packages"),
    )  # fmt: skip
    for name, text in rows:
        print(f"{name:8} {text}")
    return 0


def _base() -> int:
    """Return the bytes that this process has: the interpreter and the packages that a run loads too."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def pyramid_options(parser: Any) -> None:
    """Add the options of `poolgrad pyramid`."""
    parser.add_argument("src", help="an array as for pool, or the path of a Zarr group with an array 0")
    parser.add_argument("out", nargs="?", help="the Zarr group to make (default: add levels to the source)")
    parser.add_argument("--levels", type=int, default=5, help="with level 0 (default 5)")
    parser.add_argument("--reduce", choices=("mean", "max", "min"), default="mean")
    parser.add_argument(
        "--factors", type=_ints, default=2, help="one for all axes of space, or one per axis (default 2)"
    )
    parser.add_argument("--axes", help="names of the axes, such as czyx")
    parser.add_argument("--scale", help="distances of the cells along each axis, such as 2,0.5,0.5")
    parser.add_argument("--rounding", choices=("half_even", "floor", "ceil", "toward_zero"), default="half_even")
    parser.add_argument("--nan", choices=("propagate", "ignore"), default="propagate")
    parser.add_argument("--exact", action="store_true", help="pool each level from level 0")
    parser.add_argument("--name", default="image")
    _shared(parser)


def pyramid_run(options: Options) -> int:
    """Run `poolgrad pyramid`."""
    bar = None if options.quiet else Bar("pyramid")
    scale = None if options.scale is None else [float(s) for s in options.scale.split(",")]
    pyramid(
        options.src, options.out, levels=options.levels, reduce=options.reduce, factors=options.factors, axes=options.axes,
        scale=scale, rounding=options.rounding, nan=options.nan, exact=options.exact, memory=options.memory,
        workers=options.workers, resume=options.resume, overwrite=options.overwrite, chunks=options.chunks,
        shards=options.shards, zarr_format=options.zarr_format, name=options.name, progress=bar,
    )  # fmt: skip
    if bar is not None:
        bar.end()
    return 0


class Bar:
    """A line on stderr that tells how far a run is: regions, rate and remaining time. Without a terminal, a line every ten seconds."""

    def __init__(self, command: str) -> None:
        self.command, self.last, self.text = command, 0.0, ""
        self.live = sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, state: State) -> None:
        """Print the state if it is time."""
        now = time.monotonic()
        if state.done < state.total and now - self.last < (0.2 if self.live else 10):
            return
        self.last = now
        self.text = line(self.command, state)
        if sys.stderr is not None:
            print(
                ("\r\x1b[K" if self.live else "") + self.text,
                end="" if self.live else "\n",
                file=sys.stderr,
                flush=True,
            )

    def end(self) -> None:
        """End the line."""
        if self.live and sys.stderr is not None:
            print(file=sys.stderr)


def line(command: str, state: State) -> str:
    """Return the line for a state.

    >>> line("pool", State(30, 120, 10, 4 * 10**9, 5 * 10**8, 10.0))
    'pool [#######---------------------] 30/120 regions, 10 were there, 400 MB/s, 0:00:45 left'
    """
    full = 28 * state.done // max(state.total, 1)
    rate = state.read / state.seconds if state.seconds else 0
    were = f", {state.skipped} were there" if state.skipped else ""
    left = int(min(state.remaining, 10**8))
    clock = f"{left // 3600}:{left // 60 % 60:02}:{left % 60:02}" if left < 10**8 else "?"
    bar = "#" * full + "-" * (28 - full)
    return f"{command} [{bar}] {state.done}/{state.total} regions{were}, {size(rate)}/s, {clock} left"


def size(count: float) -> str:
    """Return a number of bytes as a short text.

    >>> size(999), size(1.5e9), size(2.5e15)
    ('999 B', '1.5 GB', '2.5 PB')
    """
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} PB"


def _x(sizes: Any) -> str:
    return "x".join(map(str, sizes))
