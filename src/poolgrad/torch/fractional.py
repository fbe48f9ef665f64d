"""Fractional pools: windows drawn at random from torch's generator or from a seed, or supplied by the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from math import prod
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

from .._common.errors import ArgumentErrors, short_repr
from .._pooling.fractional import Drawing, checked_drawing
from .._windows.fractional import placed_axis
from . import _custom_ops, _deployment, _kernels
from ._arguments import checked, drawn, filled, fitting, flag, fraction, number, ranks, supplied
from ._autograd import Apply, run
from ._kernels import PlaneWindows, choose_planes, place_planes
from ._resolved import Best, CorePool, Kind, Lesson, Pool
from ._signatures import FractionalAvgPoolFunction, FractionalMaxPoolFunction
from ._tensors import Sizes, Tensor, TorchWindows, Windows, unwatched
from .functional import best, mean

T = TypeVar("T")


class Draw(NamedTuple):
    """The arguments of a call about random windows."""

    kernel_size: Any = None
    output_size: Any = None
    output_ratio: Any = None
    windows: Any = None
    seed: Any = None
    pseudo_random: bool = False
    overlapping: bool = False


Make = Callable[[Tensor, Windows, TorchWindows], CorePool]  # the pool of a tensor, over windows


class _Drawn(Pool):
    """A pool that draws its windows whenever it runs: about as long as they must be, or of one size (`kernel`)."""

    def __init__(self, x: Tensor, rank: int, draw: Draw, make: Make) -> None:
        self.rank, self.make = rank, make
        self.sizes = fraction(x, rank, draw.output_size, draw.output_ratio)
        self.lengths, self.source, self.dtype = x.shape[x.ndim - rank :], x.shape, x.dtype
        self.kernel = None if draw.kernel_size is None else fitting(x, rank, draw.kernel_size)
        self.geometry = drawn(x, rank, self.sizes, self.kernel)
        self.flags = bool(draw.pseudo_random), bool(draw.overlapping)
        self.pair = None if draw.seed is None else _pair(draw.seed)

    def seeded(self, seed: Any) -> Pool:
        """Return the pool with windows from this seed."""
        other: _Drawn = object.__new__(_Drawn)
        other.__dict__.update(self.__dict__, pair=None if seed is None else _pair(seed))
        return other

    def short(self) -> bool:
        """Return True: the pool keeps no windows."""
        return True

    def lesson(self) -> Lesson | None:
        """Return what the compiled part must know to draw windows and to run the pool over them."""
        if self.pair is not None or not all(self.source):
            return None
        if self.kernel is None:
            _ = self._drawing  # which checks the numbers of windows
        planes, last = self.source[: len(self.source) - self.rank], self.geometry.last
        outer, inner = (prod(planes[:-1]), planes[-1]) if last else (prod(planes), 1)
        lesson = Lesson(
            outer,
            inner,
            None,
            Kind.BEST,
            lengths=tuple(self.lengths),
            sizes=tuple(self.sizes),
            kernel=tuple(self.kernel or ()),
            pseudo_random=self.flags[0],
            overlapping=self.flags[1],
        )
        return self._over(None).rules(lesson)

    def backward(self, g: Tensor, kept: Tensor | None, rows: Tensor) -> Tensor:
        """Return the gradient with respect to x of the pool over these windows."""
        return self._over(rows).backward(g, kept)

    def _over(self, windows: Windows) -> CorePool:
        """Return the pool over these windows."""
        return self.make(torch.empty(self.source, dtype=self.dtype, device="meta"), windows, self.geometry)

    @cached_property
    def _drawing(self) -> Drawing:
        problems = ArgumentErrors("fractional_windows")
        return checked_drawing(problems, tuple(self.lengths), None, self.sizes, *self.flags)

    def plain(self, x: Tensor) -> Any:
        """Pool a tensor that `readable` accepts."""
        return self.make(x, self._axes(), self.geometry).plain(x)

    def _axes(self) -> Any:
        """Draw the windows."""
        if self.kernel is None:
            drawing = self._drawing
            return drawing.draw(self.pair or tuple(_random_pair().tolist()))
        offsets = _samples(self.rank, self.pair).tolist()
        offsets = offsets[::-1] if self.rank == 2 else offsets
        return tuple(map(placed_axis, self.lengths, self.kernel, self.sizes, offsets))

    def written(self, x: Tensor, graph: _deployment.Graph) -> Any:
        """Pool over the windows of the seed."""
        if self.pair is None:
            _deployment.refuse_random(graph)
        _deployment.refuse_symbols(self.lengths, graph)
        with _deployment.unwritten():
            pool = self.make(x, self._axes(), self.geometry)
        return pool.written(x, graph)

    def traced(self, x: Tensor) -> Any:
        """Pool any tensor."""
        if self.kernel is None:
            seed = _random_pair() if self.pair is None else torch.tensor(self.pair, device="cpu")
            work = _kernels if unwatched(seed) else _custom_ops
            rows = work.draw(seed, self.lengths, self.sizes, *self.flags)
        else:
            starts = _starts(_samples(self.rank, self.pair), self.lengths, self.sizes, self.kernel)
            rows = _rows(starts, self.kernel)
        return self.make(x, rows, self.geometry).run(x)


def _random_pair() -> Tensor:
    """Return a random seed. Windows are drawn on the CPU, whatever torch's default device is."""
    return torch.randint(2**31, (2,), device="cpu")


def _samples(rank: int, pair: tuple[int, int] | None) -> Tensor:
    """Return a random offset for each axis."""
    return torch.rand(rank, dtype=torch.float64, device="cpu") if pair is None else _seeded(rank, pair)


def _resolved(x: Tensor, rank: int, draw: Draw, make: Make) -> Pool:
    """Return the pool over the caller's windows, or the one that draws them."""
    _agreeing(draw)
    if draw.windows is not None:
        return make(x, *supplied(x, rank, draw.windows))
    return _Drawn(x, rank, draw, make)


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
    generator = torch.Generator("cpu").manual_seed(mixed if -(2**63) <= mixed < 2**64 else mixed % 2**64)
    return _outside(lambda: torch.rand(rank, dtype=torch.float64, generator=generator, device="cpu"))


def _outside(make: Callable[[], T]) -> T:
    """Call a function outside of vmap, jvp and grad: its tensors then have memory of their own."""
    if torch._C._functorch.peek_interpreter_stack() is None:
        return make()
    with temporarily_clear_interpreter_stack():
        return make()


def _pair(seed: Any) -> tuple[int, int]:
    seed = number(seed)
    pair = tuple(map(number, seed)) if isinstance(seed, (list, tuple)) else (seed, 0)
    if len(pair) != 2 or not all(type(s) is int and -(2**62) < s < 2**62 for s in pair):
        wrong = all(type(s) is int for s in pair)
        wanted = "an integer within 62 bits, or a pair (seed, seed2)"
        ArgumentErrors("pool").fail("seed", short_repr(seed), wanted, ValueError if wrong else TypeError)
    return pair


def _starts(samples: Tensor, lengths: Sizes, sizes: Sizes, kernel: Sizes) -> list[Tensor]:
    """Return the starts of torch's windows of one size along each axis, from offsets [..., axis], in their precision as torch does."""
    starts = []
    samples = samples.flip(-1) if len(lengths) == 2 else samples  # torch gives the first sample of two to the last axis
    for u, n, m, k in zip(samples.unbind(-1), lengths, sizes, kernel, strict=True):
        alpha = torch.tensor(n - k, dtype=samples.dtype, device=samples.device) / max(m - 1, 1)
        places = torch.arange(m - 1, dtype=samples.dtype, device=samples.device)
        start = ((places + u.unsqueeze(-1)) * alpha).to(torch.int64)
        last = torch.full((*u.shape, 1), n - k, device=samples.device)
        starts.append(torch.cat([start - start[..., :1], last], -1))
    return starts


def _rows(starts: Sequence[Tensor], kernel: Sizes) -> Tensor:
    """Return the windows at these starts as rows (start, stop), axis after axis."""
    return torch.cat([torch.stack([start, start + k], -1) for start, k in zip(starts, kernel, strict=True)], -2)


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
    return samples.cpu()  # windows are numbers of the host


class _Planes(CorePool):
    """Plane after plane, each with windows of its own, as torch pools."""

    def __init__(self, x: Tensor, geometry: TorchWindows, windows: PlaneWindows, indices: bool) -> None:
        super().__init__(x.shape, x.dtype, geometry)
        self.planes, self.indices = windows, indices
        self.leading = x.shape[: x.ndim - geometry.rank]

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the best cells and their taps."""
        try:
            y, taps = choose_planes(self.planes, self.array(x))
            taps = taps.view(np.int32) if self.geometry.wide else taps
            return self._shaped(self.tensor(y)), self._shaped(self.tensor(taps))
        except _kernels.UNREADABLE:
            made = [_kernels.choose(part, rows, False, self.geometry) for part, rows in self._parts(x)]
            y, taps = (self._shaped(torch.cat(column)) for column in zip(*made, strict=True))
            return y, taps

    def pull(self, g: Tensor, kept: Any) -> Tensor:
        """Add each cell of g at its tap."""
        taps = self.array(kept)
        dx = place_planes(self.planes, self.array(g), taps.view(np.uint32) if self.geometry.wide else taps)
        return self.tensor(dx).reshape(self.source)

    def pull_traced(self, g: Tensor, kept: Any) -> Tensor:
        """Add each cell of g at its tap."""
        source = (1, *self.planes.lengths)
        taps = kept.reshape(-1, 1, *self.planes.sizes)
        made = [
            run(Apply, part, t, rows, "taps", 1.0, True, source, self.geometry)
            for (part, rows), t in zip(self._parts(g), taps, strict=True)
        ]
        return torch.cat(made).reshape(self.source)

    def traced(self, x: Tensor) -> Any:
        """Return the best cells, with their positions if the caller wants them."""
        made = [Best(part, self.geometry, rows, False, True).run(part) for part, rows in self._parts(x)]
        y, where = (self._shaped(torch.cat(column)) for column in zip(*made, strict=True))
        return (y, where) if self.indices else y

    def positions(self, taps: Tensor) -> Tensor:
        """Return the positions of the taps in their planes."""
        windows, left = self.planes, self.array(taps).reshape(-1, *self.planes.sizes).astype(np.int64)
        where, step, end = np.zeros((), np.int64), 1, windows.starts.shape[1]
        for d in reversed(range(len(windows.sizes))):
            left, inside = np.divmod(left, windows.kernel[d])
            starts = windows.starts[:, end - windows.sizes[d] : end]
            starts = starts.reshape(-1, *(m if a == d else 1 for a, m in enumerate(windows.sizes)))
            where, step, end = where + (starts + inside) * step, step * windows.lengths[d], end - windows.sizes[d]
        return self._shaped(torch.from_numpy(where))

    def _parts(self, x: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Return each plane with its windows."""
        planes = x.reshape(-1, 1, *x.shape[x.ndim - self.geometry.rank :])
        starts = torch.from_numpy(self.planes.starts).split(self.planes.sizes, 1)
        return zip(planes, _rows(starts, self.planes.kernel), strict=True)

    def _shaped(self, made: Tensor) -> Tensor:
        return made.reshape(*self.leading, *self.planes.sizes)


def _by_plane(x: Tensor, rank: int, draw: Draw, samples: Tensor, return_indices: Any) -> Pool:
    """Return the pool that draws the windows of each plane from a sample of its own."""
    _agreeing(draw)
    lengths, sizes = tuple(x.shape[x.ndim - rank :]), fraction(x, rank, draw.output_size, draw.output_ratio)
    kernel = fitting(x, rank, draw.kernel_size)
    geometry = drawn(x, rank, sizes, kernel)._replace(last=False)
    if not x.numel():
        return best(
            x, _rows(_starts(samples.new_zeros(rank), lengths, sizes, kernel), kernel), False, geometry, return_indices
        )
    starts = _outside(lambda: torch.cat(_starts(samples.reshape(-1, rank), lengths, sizes, kernel), 1).numpy())
    windows = PlaneWindows(lengths, sizes, kernel, starts)
    return _Planes(x, geometry, windows, flag("return_indices", return_indices))


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
    indices = flag("return_indices", return_indices)
    return _resolved(x, rank, draw, lambda x, windows, geometry: Best(x, geometry, windows, False, indices))


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
    draw = Draw(kernel_size, output_size, output_ratio, windows, seed, pseudo_random, overlapping)
    return _resolved(x, rank, draw, lambda x, windows, geometry: mean(x, windows, "mean", 1.0, geometry))


fractional_max_pool1d: FractionalMaxPoolFunction
fractional_max_pool2d: FractionalMaxPoolFunction
fractional_max_pool3d: FractionalMaxPoolFunction
fractional_max_pool1d, fractional_max_pool2d, fractional_max_pool3d = ranks(
    _fractional_max_pool, FractionalMaxPoolFunction
)
fractional_avg_pool1d: FractionalAvgPoolFunction
fractional_avg_pool2d: FractionalAvgPoolFunction
fractional_avg_pool3d: FractionalAvgPoolFunction
fractional_avg_pool1d, fractional_avg_pool2d, fractional_avg_pool3d = ranks(
    _fractional_avg_pool, FractionalAvgPoolFunction
)
