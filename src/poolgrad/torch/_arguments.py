"""Make the public functions: look up their pools, check their arguments, and raise errors in torch's words.

Window arguments become `TorchWindows`; the NumPy API finds their errors.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count
from math import prod
from operator import is_
from typing import Any, NoReturn, TypeAlias

import numpy as np
import torch

import poolgrad as pg

from .._common.arrays import afford
from .._common.errors import ArgumentErrors, Finding, short_repr
from .._pooling.sources import frozen
from . import _compiled
from ._deployment import write, written
from ._resolved import Pool
from ._tensors import PLAIN_TYPES, SAME, Sizes, Tensor, TorchWindows, channels_last, plan, readable, rows_of

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

Resolve: TypeAlias = Callable[..., Pool]

_REFUSALS = (ValueError, TypeError, NotImplementedError, OverflowError, MemoryError)


def _renamed(function: Any, error: Exception, args: Any, named: Any) -> Exception | None:
    """Return the error in the words of the caller, or None if it is not about the call."""
    signature = inspect.signature(function)
    try:
        x = signature.bind(*args, **named).arguments["input"]
    except TypeError:
        return _error(function.__name__, [_unbound(signature.parameters, args, named)])
    if hasattr(error, "findings"):
        own = [replace(found, argument=_NAMES.get(found.argument, found.argument)) for found in error.findings]
        return _error(function.__name__, own)
    kind = ValueError if isinstance(error, OverflowError) else type(error)
    if isinstance(error, MemoryError):
        wanted = f"a result that fits the memory ({error})"
        return _error(function.__name__, [Finding("input", f"shape {list(x.shape)}", wanted, kind)])
    if isinstance(x, torch.Tensor) and type(x) not in PLAIN_TYPES:
        wanted = f"a tensor that takes poolgrad's operators ({(str(error).splitlines() or [''])[0]})"
        return _error(function.__name__, [Finding("input", f"a {type(x).__name__}", wanted, kind)])
    return None


def _error(name: str, findings: Sequence[Finding]) -> Exception:
    """Return the error of a function with these findings."""
    problems = ArgumentErrors(name)
    for found in findings:
        problems.add(found.argument, found.got, found.wanted, found.kind, found.shape)
    try:
        problems.raise_if_any()
    except Exception as error:
        return error.with_traceback(None)
    raise AssertionError("unreachable")


def _unbound(parameters: Any, args: Any, named: Any) -> Finding:
    """Find the error of a call that does not fit the parameters."""
    listed = ", ".join(parameters)
    for word in named:
        if word not in parameters:
            return Finding(word, short_repr(named[word]), f"no such argument, but {listed}", TypeError)
    positional = [p for p, parameter in parameters.items() if parameter.kind != parameter.KEYWORD_ONLY]
    if len(args) > len(positional):
        wanted = f"at most {len(positional)}: {listed}"
        return Finding(positional[-1], f"{len(args)} arguments by position", wanted, TypeError)
    for word in positional[: len(args)]:
        if word in named:
            return Finding(word, "two values", "one", TypeError)
    missing = next(
        p for p in positional[len(args) :] if p not in named and parameters[p].default is parameters[p].empty
    )
    return Finding(missing, "no value", "one: it has no default", TypeError)


_COMPILED = _compiled.load()


def _remembering(resolve: Resolve, rank: int, number: int) -> Callable[[tuple[Any, ...], dict[str, Any]], Pool]:
    """Return the function that finds the pool of a call again: by shape, dtype, layout, and by values and types of arguments.

    It also teaches the call to the compiled part, if there is one, as that of function `number`: the next such call runs there.
    """
    known: dict[Any, tuple[tuple[Any, ...], Pool]] = {}

    def find(args: tuple[Any, ...], named: dict[str, Any]) -> Pool:
        x, words, names = args[0], args[1:], None
        if "seed" in named:  # each call may bring a new one
            rest = {name: value for name, value in named.items() if name != "seed"}
            return find(args, rest).seeded(named["seed"]) or resolve(rank, *args, **named)
        if named:
            words, names = (*words, *named.values()), tuple(named)
        key = x.shape, x.dtype, not x.is_contiguous() and channels_last(x, rank), words, names
        try:
            kept = known.get(key)
        except TypeError:  # an argument that is no key, such as a list
            return resolve(rank, *args, **named)
        if kept is not None and (all(map(is_, words, kept[0])) or all(map(_same, words, kept[0]))):
            return kept[1]
        pool = resolve(rank, *args, **named)
        if all(map(_lasting, words)) and pool.short():
            if len(known) >= _MOST:
                known.clear()
            known[key] = words, pool
            lesson = None if _COMPILED is None else pool.lesson()
            if lesson is not None:
                _COMPILED.teach(number, rank, args, named, pool, lesson)
        return pool

    return find


def _same(a: Any, b: Any) -> bool:
    """Return True if equal arguments have equal types, too: 1, True and 1.0 are equal."""
    return type(a) is type(b) and (type(a) not in _TUPLES or all(map(_same, a, b)))


def _lasting(value: Any) -> bool:
    """Return True if nobody can change the argument."""
    return type(value) in _SCALARS or (type(value) in _TUPLES and all(map(_lasting, value)))


def _nothing(*_: Any) -> None:
    """Return None: nothing was taught."""


_numbers = count()
_SCALARS, _TUPLES = (type(None), bool, int, float, str), (tuple, torch.Size)
_MOST = 1024  # pools that a function keeps


def ranks(resolve: Resolve, face: type, remember: bool = True) -> tuple[Any, Any, Any]:
    """Return the functions for one, two and three pooled axes, from the one that resolves their arguments.

    They have its name with 1d, 2d and 3d behind it, and the docstring of `face`, their class in `_signatures`. With `remember`, a
    function keeps the pools that it resolved, so that a repeated call only looks up its pool.
    """
    _, *parameters = inspect.signature(resolve).parameters.values()
    result = "Tensor | tuple[Tensor, Tensor]" if any(p.name == "return_indices" for p in parameters) else "Tensor"
    signature = inspect.Signature(parameters, return_annotation=result)

    def of(rank: int) -> Any:
        number = next(_numbers)
        find = _remembering(resolve, rank, number) if remember else lambda args, named: resolve(rank, *args, **named)
        repeat = _COMPILED.repeat if remember and _COMPILED is not None else _nothing

        def pool(*args: Any, **named: Any) -> Any:
            if PLAIN_TYPES and (made := repeat(number, rank, args, named)) is not None:
                return made
            try:
                if args and readable(args[0]):
                    return find(args, named).plain(args[0])
                x = args[0] if args else named["input"]
                if (graph := written(x)) is not None:
                    return write(pool, lambda: resolve(rank, *args, **named), x, graph, (args, named))
                return resolve(rank, *args, **named).run(x)
            except _REFUSALS as error:
                refused = _renamed(pool, error, args, named)
                if refused is None:
                    raise
            raise refused

        pool.__name__ = pool.__qualname__ = f"{resolve.__name__[1:]}{rank}d"
        pool.__doc__, pool.__module__ = inspect.cleandoc(face.__doc__ or ""), resolve.__module__
        pool.__signature__ = signature  # type: ignore[attr-defined]
        return torch.compiler.allow_in_graph(pool)

    return of(1), of(2), of(3)


def checked(x: Any, rank: int, name: str = "input") -> Tensor:
    """Return the input if it is a dense tensor of that rank, with or without a batch, that the core can read."""
    if (
        isinstance(x, torch.Tensor)
        and x.dtype in _DTYPES
        and x.layout is torch.strided
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
        pg.plan([1] * (x.ndim - rank) + [*lengths], given, axes=tuple(range(x.ndim - rank, x.ndim)))
    except (ValueError, TypeError) as error:
        if not hasattr(error, "findings"):
            raise
        raise _error("pool", [replace(error.findings[0], argument="windows")]) from None
    axes = [w if isinstance(w, pg.Axis) else pg.Axis(n, *np.transpose(w)) for n, w in zip(lengths, given, strict=True)]
    rows = rows_of(axes)
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
