"""Turn torch's window arguments into `TorchWindows`; the NumPy API finds their errors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from math import prod
from typing import Any, NoReturn, TypeAlias

import numpy as np
import torch

import poolgrad as pg

from .._common.arrays import afford
from .._common.errors import ArgumentErrors, short_repr
from .._pooling.sources import frozen
from ._tensors import SAME, Sizes, Tensor, TorchWindows, channels_last, plan

_NAMES = {
    "window": "kernel_size",
    "divisor": "divisor_override",
    "size": "output_size",
    "p": "norm_type",
    "x": "input",
    "taps": "indices",
    "v": "input",
    "dtype": "input",
}
_DTYPES = {
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16),
    *(
        torch.bool,
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.uint16,
        torch.uint32,
        torch.uint64,
    ),
}

Pool: TypeAlias = Callable[..., Any]


def named(function: Pool) -> Pool:
    """Return the function; its errors name it and its arguments where those of the NumPy functions name theirs."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (ValueError, TypeError, NotImplementedError, OverflowError, MemoryError) as error:
            text = _renamed(function, error, args, kwargs)
            if text is None:
                raise
            raise (ValueError if isinstance(error, OverflowError) else type(error))(text) from None

    return run


def _renamed(function: Pool, error: Exception, args: Any, kwargs: Any) -> str | None:
    """Return the text of an error in the words of the caller, or None if it is not about the call."""
    name, signature = function.__name__, inspect.signature(function)
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return _unbound(name, signature.parameters, args, kwargs)
    found = re.match(r"[\w. ]+: ([\w, ]+): (got .*)", str(error), re.DOTALL)
    if found is not None:
        return f"{name}: {_NAMES.get(found[1], found[1])}: {found[2]}"
    if isinstance(error, MemoryError):
        return f"{name}: input: got shape {list(bound['input'].shape)}, wanted a result that fits the memory ({error})"
    if type(bound.get("input")) not in (torch.Tensor, torch.nn.Parameter) and isinstance(
        bound.get("input"), torch.Tensor
    ):
        reason = (str(error).splitlines() or [""])[0]
        return f"{name}: input: got a {type(bound['input']).__name__}, wanted a tensor that takes poolgrad's operators ({reason})"
    return None


def _unbound(name: str, parameters: Any, args: Any, kwargs: Any) -> str:
    """Return what is wrong with a call that does not fit the parameters."""
    wanted = ", ".join(parameters)
    for word in kwargs:
        if word not in parameters:
            return f"{name}: {word}: got {short_repr(kwargs[word])}, wanted no such argument, but {wanted}"
    positional = [p for p, parameter in parameters.items() if parameter.kind != parameter.KEYWORD_ONLY]
    if len(args) > len(positional):
        return f"{name}: {positional[-1]}: got {len(args)} arguments by position, wanted at most {len(positional)}: {wanted}"
    for word in positional[: len(args)]:
        if word in kwargs:
            return f"{name}: {word}: got two values, wanted one"
    missing = next(
        p for p in positional[len(args) :] if p not in kwargs and parameters[p].default is parameters[p].empty
    )
    return f"{name}: {missing}: got no value, wanted one: it has no default"


def ranks(function: Pool) -> tuple[Pool, Pool, Pool]:
    """Return the function for one, two and three pooled axes, under its name with 1d, 2d and 3d behind it."""

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
    """Return the input if it is a dense tensor of that rank, with or without a batch, that the core can read."""
    if (
        isinstance(x, torch.Tensor)
        and x.dtype in _DTYPES
        and x.layout is torch.strided
        and (x.is_cpu or x.is_meta)
        and rank < x.ndim < rank + 3
        and not x.is_nested
    ):
        return x
    return _refused(ArgumentErrors("pool"), x, rank, name)


def _refused(problems: ArgumentErrors, x: Any, rank: int, name: str) -> NoReturn:
    """Raise the error for an input that no pool takes."""
    if not isinstance(x, torch.Tensor):
        problems.fail(name, short_repr(x), "a torch.Tensor", TypeError)
    if isinstance(x, torch.nn.parameter.UninitializedTensorMixin):
        problems.fail(name, f"an {type(x).__name__}", "a tensor with a shape")
    if not (x.is_cpu or x.is_meta):
        problems.fail(
            name,
            f"a tensor on {x.device}",
            "one on the CPU: pool x.cpu(), then move the result back",
            NotImplementedError,
        )
    if x.is_nested:
        problems.fail(name, "a nested tensor", "a dense tensor: x.to_padded_tensor(0.0)", TypeError)
    if x.is_quantized:
        problems.fail(name, f"a quantised tensor of {x.dtype}", "a plain tensor: x.dequantize()", TypeError)
    if x.layout is not torch.strided:
        problems.fail(name, f"a tensor of layout {x.layout}", "a dense tensor: x.to_dense()", TypeError)
    if x.dtype not in _DTYPES:
        text = str(x.dtype).removeprefix("torch.")
        problems.fail(name, f"dtype {text}", "a real floating, integer or boolean dtype", TypeError)
    problems.fail(name, f"shape {list(x.shape)}", f"{rank + 1} axes (C, ...) or {rank + 2} (N, C, ...)")


def flag(name: str, value: Any) -> bool:
    """Return the value if it is a bool."""
    if value is True or value is False:
        return value
    if not isinstance(value, (np.bool_, torch.SymBool)):
        ArgumentErrors("pool").fail(name, short_repr(value), "a bool", TypeError)
    return bool(value)


def filled(shape: Sizes, first: int) -> None:
    """Refuse an axis without cells, from axis `first` on: as torch, which takes an empty batch."""
    for n in shape[first:]:
        if type(n) is int and n == 0:
            wanted = "at least one cell along each axis but the batch" if first else "at least one cell along each axis"
            ArgumentErrors("pool").fail("input", f"shape {list(shape)}", wanted)


def affordable(name: str, value: Any, pooled: Sizes) -> None:
    """Refuse a result for which this machine has no memory: a byte for each cell, 64 for each window along an axis."""
    if {*map(type, pooled)} == {int}:  # else there are symbols of the compiler
        what = f"{short_repr(value)}, which makes a result of shape {list(pooled)}"
        afford(ArgumentErrors("pool"), name, prod(pooled) + 64 * max(pooled), what)


def integers(name: str, value: Any, rank: int, least: int) -> tuple[int, ...]:
    """Return one integer per pooled axis."""
    if type(value) is int and value >= least:
        return (value,) * rank
    values = each(value, rank)
    if len(values) != rank or not _plain(values) or any(v < least for v in values):
        wanted = f"an integer of at least {least}, or {rank} of them, one per pooled axis"
        ArgumentErrors("pool").fail(name, short_repr(value), wanted, ValueError if _plain(values) else TypeError)
    return values


def each(value: Any, rank: int) -> tuple[Any, ...]:
    """One number for all axes, or one each."""
    values = tuple(value) if isinstance(value, (list, tuple, torch.Size)) else (value,)
    values = values * rank if len(values) == 1 else values
    return tuple(int(v) if isinstance(v, np.integer) else v for v in values)


def number(value: Any) -> Any:
    """Return the number of a compiler's symbol; return any other value unchanged."""
    if isinstance(value, torch.SymInt):
        return int(value)
    return float(value) if isinstance(value, torch.SymFloat) else value


def _product(values: Sequence[Any]) -> Any:
    """Return the product; `math.prod` takes no symbols."""
    made = 1
    for value in values:
        made = made * value
    return made


def _plain(*groups: Sequence[Any]) -> bool:
    return all(type(v) in (int, torch.SymInt) for group in groups for v in group)


def _remembered(make: Callable[..., TorchWindows]) -> Callable[..., TorchWindows]:
    """Cache the windows that `make` returns for a shape, a layout, a rank and arguments."""
    known = lru_cache(1024)(make)

    def find(x: Tensor, rank: int, *words: Any) -> TorchWindows:
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
) -> TorchWindows:
    """Return the geometry of windows that slide."""
    return _sliding(x, rank, kernel_size, stride, padding, dilation, int(flag("ceil_mode", ceil_mode)))


@_remembered
def _sliding(
    shape: Sizes, last: bool, rank: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: int
) -> TorchWindows:
    filled(shape, len(shape) - rank - 1)
    kernel, dilations = each(kernel_size, rank), each(dilation, rank)
    stride = None if stride in ([], ()) else stride
    strides = kernel if stride is None else each(stride, rank)
    pads = _pads(padding, rank)
    words = (kernel, strides, pads, dilations)
    if _plain(*words) and [*map(len, words)] in ([rank, rank, 2 * rank, rank], [rank, rank, 1, rank]):
        geometry = TorchWindows(rank, *words, bool(ceil_mode), (), last, bool(_product(kernel) > 256))
        try:
            return _possible(shape, geometry)
        except (ValueError, TypeError):
            pass  # the same is said below, in the caller's words
    axes = tuple(range(len(shape) - rank, len(shape)))
    pg.plan(shape, kernel_size, stride, padding=padding, dilation=dilation, ceil_mode=bool(ceil_mode), axes=axes)
    return ArgumentErrors("pool").fail("kernel_size", short_repr(kernel_size), f"an integer, or {rank} of them")


def _pads(padding: Any, rank: int) -> tuple[Any, ...]:
    if isinstance(padding, str):
        return (0,) * 2 * rank if padding == "valid" else SAME.get(padding, (None,))
    return tuple(n for pad in each(padding, rank) for n in (pad if isinstance(pad, (list, tuple)) else (pad, pad)))


def _possible(shape: Sizes, geometry: TorchWindows) -> TorchWindows:
    """Return the geometry if such windows can be: known at once unless the compiler put symbols for lengths."""
    if all(type(n) is int for n in shape):
        plan(shape, geometry, None)
    return geometry


@_remembered
def sharing(shape: Sizes, last: bool, rank: int, output_size: Any, first: int = 1) -> TorchWindows:
    """Return the geometry of windows that share an axis evenly; None means a window for each cell. Refuse empty axes from `first` on."""
    filled(shape, first)
    lengths = shape[len(shape) - rank :]
    wanted = each(output_size, rank)
    given = [m for m in wanted if m is not None]
    if len(wanted) != rank or not _plain(given) or any(m < 0 for m in given):
        blank = np.broadcast_to(np.uint8(0), tuple(shape))
        pg.adaptive_max_pool(blank, output_size, axes=tuple(range(len(shape) - rank, len(shape))))
    sizes = tuple(n if m is None else m for n, m in zip(lengths, wanted, strict=True))
    affordable("output_size", output_size, [*shape[: len(shape) - rank], *sizes])
    cells = _product([n // max(m, 1) + 2 for n, m in zip(lengths, sizes, strict=True)])
    return _possible(shape, TorchWindows(rank, sizes=sizes, last=last, wide=bool(cells > 256)))


def supplied(x: Tensor, rank: int, windows: Any) -> tuple[Tensor, TorchWindows]:
    """Windows that the caller has: per pooled axis an `Axis`, or pairs (start, stop)."""
    lengths = x.shape[x.ndim - rank :]
    given = list(windows) if isinstance(windows, (list, tuple)) else [windows]
    try:
        pg.plan(x.shape, given, axes=tuple(range(x.ndim - rank, x.ndim)))
    except (ValueError, TypeError) as error:
        raise type(error)(re.sub(r"^[\w. ]+: [\w, ]+: ", "pool: windows: ", str(error))) from None
    axes = [w if isinstance(w, pg.Axis) else pg.Axis(n, *np.transpose(w)) for n, w in zip(lengths, given, strict=True)]
    rows = torch.from_numpy(np.concatenate([np.stack([axis.start, axis.stop], 1) for axis in axes]))
    cells = int(np.prod([axis.count.max(initial=1) for axis in axes]))
    steps = tuple(axis.step for axis in axes)
    sizes = tuple(len(axis) for axis in axes)
    return rows, TorchWindows(rank, dilation=steps, sizes=sizes, last=channels_last(x, rank), wide=cells > 256)


def fraction(x: Tensor, rank: int, output_size: Any, output_ratio: Any) -> tuple[int, ...]:
    """Return how many windows fractional pooling has along each axis."""
    lengths = tuple(x.shape[x.ndim - rank :])
    if (output_size is None) == (output_ratio is None):
        ArgumentErrors("pool").fail("output_size", short_repr(output_size), "either output_size or output_ratio")
    if output_size is not None:
        sizes = integers("output_size", output_size, rank, 1)
        affordable("output_size", output_size, [*x.shape[: x.ndim - rank], *sizes])
        return sizes
    ratios = tuple(map(number, each(output_ratio, rank)))
    if len(ratios) != rank or not all(type(r) in (int, float) and 0 < r <= 1 for r in ratios):
        ArgumentErrors("pool").fail(
            "output_ratio", short_repr(output_ratio), f"a number above 0 and at most 1, or {rank} of them"
        )
    sizes = tuple(torch.sym_int(n * r) for n, r in zip(lengths, ratios, strict=True))
    if any(type(m) is int and m < 1 for m in sizes):
        wanted = f"a number for which each of the lengths {list(lengths)} has at least 1 window"
        ArgumentErrors("pool").fail("output_ratio", short_repr(output_ratio), wanted)
    return sizes


def drawn(x: Tensor, rank: int, sizes: tuple[int, ...], kernel_size: Any) -> TorchWindows:
    """Return the geometry of windows that are drawn at random: about as long as they must be, or all of one size."""
    lengths = x.shape[x.ndim - rank :]
    bounds = [n // max(m, 1) + 2 for n, m in zip(lengths, sizes, strict=True)]
    cells = _product(bounds if kernel_size is None else kernel_size)
    return TorchWindows(rank, sizes=sizes, last=channels_last(x, rank), wide=bool(cells > 256))


def fitting(x: Tensor, rank: int, kernel_size: Any) -> tuple[int, ...]:
    """Return the size of windows of one size along each axis, none longer than the axis."""
    kernel, lengths = integers("kernel_size", kernel_size, rank, 1), x.shape[x.ndim - rank :]
    if any(k > n for k, n in zip(kernel, lengths, strict=True)):
        ArgumentErrors("pool").fail(
            "kernel_size", short_repr(kernel_size), f"windows within the lengths {list(lengths)}"
        )
    return kernel
