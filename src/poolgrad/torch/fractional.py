"""Fractional pools: windows drawn at random from torch's generator or from a seed, or supplied by the caller."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

from .._common.errors import ArgumentErrors, short_repr
from . import _custom_ops, _kernels
from ._arguments import checked, drawn, filled, fitting, flag, fraction, number, ranks, supplied
from ._resolved import Best, Pool
from ._signatures import FractionalAvgPoolFunction, FractionalMaxPoolFunction
from ._tensors import Tensor, TorchWindows, unwatched
from .functional import best, mean


class Draw(NamedTuple):
    """The arguments of a call about random windows."""

    kernel_size: Any = None
    output_size: Any = None
    output_ratio: Any = None
    windows: Any = None
    seed: Any = None
    pseudo_random: bool = False
    overlapping: bool = False


def _windows(x: Tensor, rank: int, draw: Draw, samples: Tensor | None = None) -> tuple[Tensor, TorchWindows]:
    _agreeing(draw)
    if draw.windows is not None:
        return supplied(x, rank, draw.windows)
    sizes = fraction(x, rank, draw.output_size, draw.output_ratio)
    kernel = None if draw.kernel_size is None else fitting(x, rank, draw.kernel_size)
    geometry = drawn(x, rank, sizes, kernel)
    pair = None if draw.seed is None else _pair(draw.seed)
    if kernel is None:
        seed = torch.randint(2**31, (2,)) if pair is None else torch.tensor(pair)
        lengths = x.shape[x.ndim - rank :]
        work = _kernels if unwatched(seed) else _custom_ops
        return work.draw(seed, lengths, sizes, bool(draw.pseudo_random), bool(draw.overlapping)), geometry
    if samples is None:
        samples = torch.rand(rank, dtype=torch.float64) if pair is None else _seeded(rank, pair)
    return _intervals(x, rank, samples, sizes, kernel), geometry


def _agreeing(draw: Draw) -> None:
    """Refuse words that would have no effect beside others."""
    if draw.windows is None and draw.pseudo_random is False and draw.overlapping is False:
        return
    alone = "windows" if draw.windows is not None else "kernel_size" if draw.kernel_size is not None else ""
    for name in ("pseudo_random", "overlapping"):
        if flag(name, getattr(draw, name)) and alone:
            wanted = (
                "False: the caller gives the windows"
                if alone == "windows"
                else "False with kernel_size: windows of one size lie anywhere"
            )
            ArgumentErrors("pool").fail(name, True, wanted)
    for name in ("kernel_size", "output_size", "output_ratio", "seed"):
        if alone == "windows" and getattr(draw, name) is not None:
            ArgumentErrors("pool").fail(
                name, short_repr(getattr(draw, name)), "None beside windows, which leave nothing to it"
            )


def _seeded(rank: int, pair: tuple[int, int]) -> Tensor:
    """Return the samples of a seed: the same ones inside vmap, which allows no random operations there."""
    mixed = pair[0] ^ pair[1] << 32
    generator = torch.Generator().manual_seed(mixed if -(2**63) <= mixed < 2**64 else mixed % 2**64)
    if torch._C._functorch.peek_interpreter_stack() is None:
        return torch.rand(rank, dtype=torch.float64, generator=generator)
    with temporarily_clear_interpreter_stack():
        return torch.rand(rank, dtype=torch.float64, generator=generator)


def _pair(seed: Any) -> tuple[int, int]:
    seed = number(seed)
    pair = tuple(map(number, seed)) if isinstance(seed, (list, tuple)) else (seed, 0)
    if len(pair) != 2 or not all(type(s) is int and -(2**62) < s < 2**62 for s in pair):
        wrong = all(type(s) is int for s in pair)
        wanted = "an integer within 62 bits, or a pair (seed, seed2)"
        ArgumentErrors("pool").fail("seed", short_repr(seed), wanted, ValueError if wrong else TypeError)
    return pair


def _intervals(x: Tensor, rank: int, samples: Tensor, sizes: tuple[int, ...], kernel: tuple[int, ...]) -> Tensor:
    """torch's windows of one size at random places, from a sample per axis, in the samples' precision as torch does."""
    rows = []
    samples = samples.flip(-1) if rank == 2 else samples  # torch gives the first sample of two to the last axis
    for u, n, m, k in zip(samples.unbind(-1), x.shape[x.ndim - rank :], sizes, kernel, strict=True):
        alpha = torch.tensor(n - k, dtype=samples.dtype) / max(m - 1, 1)
        places = torch.arange(m - 1, dtype=samples.dtype)
        start = ((places + u) * alpha).to(torch.int64)
        start = torch.cat([start - start[:1], torch.full((1,), n - k)])
        rows.append(torch.stack([start, start + k], 1))
    return torch.cat(rows)


def _sampled(x: Tensor, rank: int, draw: Draw, samples: Any) -> Tensor:
    """Return torch's samples if there is one for each plane and axis, and windows of one size to place."""
    problems, shape = ArgumentErrors("pool"), [*(() if x.ndim == rank + 2 else (1,)), *x.shape[: x.ndim - rank], rank]
    if not isinstance(samples, torch.Tensor):
        problems.fail("_random_samples", short_repr(samples), "a torch.Tensor", TypeError)
    if not samples.dtype.is_floating_point or [*samples.shape] != shape:
        got = f"{samples.dtype} of shape {list(samples.shape)}"
        problems.fail("_random_samples", got, f"floats of shape {shape}")
    if draw.kernel_size is None or draw.windows is not None or draw.seed is not None:
        problems.fail("_random_samples", "a tensor", "None without kernel_size, and beside windows or seed")
    return samples


class _Planes(Pool):
    """Plane after plane, each with windows of its own, as torch pools."""

    def __init__(self, pools: list[Best], indices: bool) -> None:
        self.pools, self.indices = pools, indices

    def traced(self, x: Tensor) -> Any:
        """Return the best cells, with their positions if the caller wants them."""
        leading = x.shape[: x.ndim - self.pools[0].geometry.rank]
        planes = x.reshape(-1, *self.pools[0].source)
        made = [pool.run(plane) for pool, plane in zip(self.pools, planes, strict=True)]
        y, where = (torch.cat(column).reshape(*leading, *column[0].shape[1:]) for column in zip(*made, strict=True))
        return (y, where) if self.indices else y


def _by_plane(x: Tensor, rank: int, draw: Draw, samples: Tensor, return_indices: Any) -> Pool:
    """Return the pool that draws the windows of each plane from a sample of its own."""
    if not x.numel():
        windows, geometry = _windows(x, rank, draw, samples.new_zeros(rank))
        return best(x, windows, False, geometry, return_indices)
    plane = x.reshape(-1, 1, *x.shape[x.ndim - rank :])[0]
    drawn = (_windows(plane, rank, draw, sample) for sample in samples.reshape(-1, rank))
    return _Planes(
        [best(plane, rows, False, geometry, True) for rows, geometry in drawn], flag("return_indices", return_indices)
    )


def _fractional_max_pool(
    rank: int,
    input: Tensor,
    kernel_size: Any = None,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
    *,
    windows: Any = None,
    seed: Any = None,
    pseudo_random: bool = False,
    overlapping: bool = False,
) -> Pool:
    """Resolve fractional max pooling; draw its windows."""
    x = checked(input, rank)
    draw = Draw(kernel_size, output_size, output_ratio, windows, seed, pseudo_random, overlapping)
    filled(x.shape, 1)
    if _random_samples is not None:
        return _by_plane(x, rank, draw, _sampled(x, rank, draw, _random_samples), return_indices)
    rows, geometry = _windows(x, rank, draw)
    return best(x, rows, False, geometry, return_indices)


def _fractional_avg_pool(
    rank: int,
    input: Tensor,
    kernel_size: Any = None,
    output_size: Any = None,
    output_ratio: Any = None,
    *,
    windows: Any = None,
    seed: Any = None,
    pseudo_random: bool = False,
    overlapping: bool = False,
) -> Pool:
    """Resolve fractional average pooling; draw its windows."""
    x = checked(input, rank)
    filled(x.shape, 1)
    rows, geometry = _windows(
        x, rank, Draw(kernel_size, output_size, output_ratio, windows, seed, pseudo_random, overlapping)
    )
    return mean(x, rows, "mean", 1.0, geometry)


fractional_max_pool1d: FractionalMaxPoolFunction
fractional_max_pool2d: FractionalMaxPoolFunction
fractional_max_pool3d: FractionalMaxPoolFunction
fractional_max_pool1d, fractional_max_pool2d, fractional_max_pool3d = ranks(
    _fractional_max_pool, FractionalMaxPoolFunction, remember=False
)
fractional_avg_pool1d: FractionalAvgPoolFunction
fractional_avg_pool2d: FractionalAvgPoolFunction
fractional_avg_pool3d: FractionalAvgPoolFunction
fractional_avg_pool1d, fractional_avg_pool2d, fractional_avg_pool3d = ranks(
    _fractional_avg_pool, FractionalAvgPoolFunction, remember=False
)
