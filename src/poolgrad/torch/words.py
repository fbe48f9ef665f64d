"""From torch's words about windows to a `Geometry`; what is wrong with them is found and said by the pythonic API."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import Any, TypeAlias

import numpy as np
import torch

import poolgrad as pg

from ..errors import Problems, brief
from ..functional import frozen
from .bridge import SAME, Geometry, Sizes, Tensor, channels_last, plan

_NAMES = {"window": "kernel_size", "divisor": "divisor_override", "size": "output_size", "p": "norm_type", "x": "input"}
_TAKEN = ("cpu", "meta")

Pool: TypeAlias = Callable[..., Any]


def named(function: Pool) -> Pool:
    """The function, whose errors name it and its arguments where the pythonic API's name theirs."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (ValueError, TypeError, NotImplementedError) as error:
            found = re.match(r"[\w. ]+: (\w+): (got .*)", str(error), re.DOTALL)
            if found is None:
                raise
            argument = _NAMES.get(found[1], found[1])
            raise type(error)(f"{function.__name__}: {argument}: {found[2]}") from None

    return run


def ranks(function: Pool) -> tuple[Pool, Pool, Pool]:
    """The function for one, two and three pooled axes, under its name with 1d, 2d and 3d behind it."""

    def of(rank: int) -> Pool:
        def pool(*args: Any, **kwargs: Any) -> Any:
            return function(rank, *args, **kwargs)

        signature = inspect.signature(function)
        pool.__name__ = pool.__qualname__ = f"{function.__name__[1:]}{rank}d"
        pool.__doc__ = function.__doc__
        pool.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
        return torch.compiler.allow_in_graph(named(pool))

    return of(1), of(2), of(3)


def checked(x: Any, rank: int, name: str = "input") -> Tensor:
    """The input, if it is a tensor of that rank, with or without a batch, where the core can read it."""
    problems = Problems("pool")
    if not isinstance(x, torch.Tensor):
        problems.fail(name, brief(x), "a torch.Tensor", TypeError)
    if x.device.type not in _TAKEN:
        problems.fail(
            name,
            f"a tensor on {x.device}",
            "one on the CPU: pool x.cpu(), then move the result back",
            NotImplementedError,
        )
    if x.ndim not in (rank + 1, rank + 2):
        problems.fail(name, f"shape {list(x.shape)}", f"{rank + 1} axes (C, ...) or {rank + 2} (N, C, ...)")
    return x


def each(value: Any, rank: int) -> tuple[Any, ...]:
    """One number for all axes, or one each."""
    values = tuple(value) if isinstance(value, (list, tuple, torch.Size)) else (value,)
    values = values * rank if len(values) == 1 else values
    return tuple(int(v) if isinstance(v, np.integer) else v for v in values)


def number(value: Any) -> Any:
    """The number that a compiler's symbol stands for; anything else as it is."""
    if isinstance(value, torch.SymInt):
        return int(value)
    return float(value) if isinstance(value, torch.SymFloat) else value


def _plain(*groups: Sequence[Any]) -> bool:
    return all(type(v) in (int, torch.SymInt) for group in groups for v in group)


def _remembered(make: Callable[..., Geometry]) -> Callable[..., Geometry]:
    """The geometry that `make` finds for a shape, a layout, a rank and words; one that was asked for before is remembered."""
    known = lru_cache(1024)(make)

    def find(x: Tensor, rank: int, *words: Any) -> Geometry:
        last = channels_last(x, rank)
        try:
            return known(x.shape, last, rank, *map(frozen, words))
        except (
            TypeError,
            ValueError,
        ):  # a symbol or a word that is no key, or an error, to be said in the caller's words
            return make(x.shape, last, rank, *words)

    return find


def sliding(
    x: Tensor, rank: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any = 1, ceil_mode: bool = False
) -> Geometry:
    """Windows that slide."""
    return _sliding(x, rank, kernel_size, stride, padding, dilation, int(bool(ceil_mode)))


@_remembered
def _sliding(
    shape: Sizes, last: bool, rank: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: int
) -> Geometry:
    kernel, dilations = each(kernel_size, rank), each(dilation, rank)
    stride = None if stride in ([], ()) else stride
    strides = kernel if stride is None else each(stride, rank)
    pads = _pads(padding, rank)
    words = (kernel, strides, pads, dilations)
    fine = _plain(*words) and [*map(len, words)] in ([rank, rank, 2 * rank, rank], [rank, rank, 1, rank])
    try:
        if fine:
            cells = 1
            for k in kernel:
                cells *= k
            return _possible(shape, Geometry(rank, *words, bool(ceil_mode), (), last, bool(cells > 256)))
    except (ValueError, TypeError):
        pass  # the same is said below, in the caller's words
    axes = tuple(range(len(shape) - rank, len(shape)))
    pg.plan(shape, kernel_size, stride, padding=padding, dilation=dilation, ceil_mode=bool(ceil_mode), axes=axes)
    return Problems("pool").fail("kernel_size", brief(kernel_size), f"an integer, or {rank} of them")


def _pads(padding: Any, rank: int) -> tuple[Any, ...]:
    if isinstance(padding, str):
        return (0,) * 2 * rank if padding == "valid" else SAME.get(padding, (None,))
    return tuple(n for pad in each(padding, rank) for n in (pad if isinstance(pad, (list, tuple)) else (pad, pad)))


def _possible(shape: Sizes, geometry: Geometry) -> Geometry:
    """The geometry, if such windows can be: known at once unless the compiler put symbols for lengths."""
    if all(type(n) is int for n in shape):
        plan(shape, geometry, None)
    return geometry


@_remembered
def sharing(shape: Sizes, last: bool, rank: int, output_size: Any) -> Geometry:
    """Windows that share an axis evenly; None leaves an axis as it is."""
    lengths = shape[len(shape) - rank :]
    wanted = each(output_size, rank)
    given = [m for m in wanted if m is not None]
    if len(wanted) != rank or not _plain(given) or any(m < 0 for m in given):
        blank = np.broadcast_to(np.uint8(0), tuple(shape))
        pg.adaptive_max_pool(blank, output_size, axes=tuple(range(len(shape) - rank, len(shape))))
    sizes = tuple(n if m is None else m for n, m in zip(lengths, wanted, strict=True))
    cells = 1
    for n, m in zip(lengths, sizes, strict=True):
        cells *= n // max(m, 1) + 2
    return _possible(shape, Geometry(rank, sizes=sizes, last=last, wide=bool(cells > 256)))


def supplied(x: Tensor, rank: int, windows: Any) -> tuple[Tensor, Geometry]:
    """Windows that the caller has: per pooled axis an `Axis`, or pairs (start, stop)."""
    lengths = x.shape[x.ndim - rank :]
    given = list(windows) if isinstance(windows, (list, tuple)) else [windows]
    pg.plan(x.shape, given, axes=tuple(range(x.ndim - rank, x.ndim)))
    axes = [w if isinstance(w, pg.Axis) else pg.Axis(n, *np.transpose(w)) for n, w in zip(lengths, given, strict=True)]
    rows = torch.from_numpy(np.concatenate([np.stack([axis.start, axis.stop], 1) for axis in axes]))
    cells = int(np.prod([axis.count.max(initial=1) for axis in axes]))
    steps = tuple(axis.step for axis in axes)
    sizes = tuple(len(axis) for axis in axes)
    return rows, Geometry(rank, dilation=steps, sizes=sizes, last=channels_last(x, rank), wide=cells > 256)


def fraction(x: Tensor, rank: int, output_size: Any, output_ratio: Any) -> tuple[int, ...]:
    """How many windows fractional pooling has along each axis."""
    lengths = tuple(x.shape[x.ndim - rank :])
    if (output_size is None) == (output_ratio is None):
        Problems("pool").fail("output_size", brief(output_size), "either output_size or output_ratio")
    if output_size is not None:
        sizes = each(output_size, rank)
        if len(sizes) != rank or not _plain(sizes):
            pg.fractional_windows(lengths, size=output_size)
        return sizes
    ratios = tuple(map(number, each(output_ratio, rank)))
    if len(ratios) != rank or not all(isinstance(r, (int, float)) and 0 < r <= 1 for r in ratios):
        Problems("pool").fail("output_ratio", brief(output_ratio), f"a number above 0 and at most 1, or {rank} of them")
    return tuple(torch.sym_int(n * r) for n, r in zip(lengths, ratios, strict=True))


def drawn(x: Tensor, rank: int, sizes: tuple[int, ...], kernel_size: Any) -> Geometry:
    """The geometry of windows that are drawn at random: about as long as they must be, or all of one size."""
    lengths = x.shape[x.ndim - rank :]
    bounds = [n // max(m, 1) + 2 for n, m in zip(lengths, sizes, strict=True)]
    cells = 1
    for k in bounds if kernel_size is None else each(kernel_size, rank):
        cells *= k
    return Geometry(rank, sizes=sizes, last=channels_last(x, rank), wide=bool(cells > 256))
