"""Write pools into graphs that run without poolgrad: ONNX, `torch.jit.trace`, `torch.export` and `torch.fx`.

A pool becomes torch's own pool if that means the same, so that other programs know it. Any other pool becomes slices, comparisons and
sums over its windows (`_portable`), which every target has. A pool that neither form can hold is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from math import prod
from typing import Any, NoReturn

import torch
from torch.nn import functional as own
from torch.utils._python_dispatch import _disable_current_modes

from .._common.errors import ArgumentErrors
from . import _portable
from ._tensors import SAME, Sizes, Tensor, TorchWindows, untraced


class Graph(Enum):
    """The graph that is being written."""

    FX = "torch.fx"
    ONNX = "ONNX"
    TRACE = "torch.jit.trace"
    EXPORT = "torch.export"


def written(x: Any) -> Graph | None:
    """Return the graph that is being written from this input, if there is one."""
    if isinstance(x, torch.fx.Proxy):
        return Graph.FX
    if torch.onnx.is_in_onnx_export():
        return Graph.ONNX
    if torch.jit.is_tracing():
        return Graph.TRACE
    return Graph.EXPORT if torch.compiler.is_exporting() else None


@contextmanager
def unwritten() -> Iterator[None]:
    """Keep what happens inside out of the graph; sizes are integers there, or the symbols of an export."""
    with untraced(), _disable_current_modes():
        yield


def write(function: Any, resolve: Callable[[], Any], x: Any, graph: Graph, words: tuple[Any, Any]) -> Any:
    """Return the result of a public function, with the operations that compute it in the graph."""
    args, named = words
    if graph is Graph.FX:
        return _write_call(function, x, args, named)
    if inspect.signature(function).bind(*args, **named).arguments.get("_random_samples") is not None:
        _refuse("_random_samples", "a tensor", f"None in a graph of {graph.value}: give a seed, or windows")
    with unwritten():
        pool = resolve()
    return pool.written(x, graph)


# ---- torch.fx: no shapes, only calls


def _write_call(function: Any, x: Any, args: Any, named: Any) -> Any:
    """Write a call of torch's function if it means the same for every shape, else of ours."""
    given = inspect.signature(function).bind(*args, **named).arguments
    like = getattr(own, function.__name__, None)
    target = like if like is not None and _same_call(function.__name__, given) else function
    return x.tracer.create_proxy("call_function", target, args, named)


def _same_call(name: str, given: dict[str, Any]) -> bool:
    """Return whether torch's function of this name does the same with these arguments, whatever the shape."""
    kind, rank = name[:-2], int(name[-2])
    if kind in ("adaptive_max_pool", "adaptive_avg_pool"):
        return True
    if kind not in ("max_pool", "avg_pool"):
        return False
    kernel, pads = (_numbers(given.get(word, 0), rank) for word in ("kernel_size", "padding"))
    if kernel is None or pads is None or any(2 * p > k for k, p in zip(kernel, pads, strict=True)):
        return False
    return given.get("divisor_override") is None or (rank > 1 and type(given["divisor_override"]) is int)


def _numbers(value: Any, rank: int) -> tuple[int, ...] | None:
    """Return one integer per pooled axis, or None."""
    values = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    values = values * rank if len(values) == 1 else values
    return values if len(values) == rank and all(type(v) is int for v in values) else None


# ---- the pools, with shapes


def best(
    x: Tensor, geometry: TorchWindows, windows: Any, least: bool, indices: bool, source: Sizes, graph: Graph
) -> Any:
    """Write the best cells of windows, with their positions if `indices`."""
    made = _standard_best(x, geometry, windows, least, indices, source, graph)
    if made is not None:
        return made
    axes, first = _axes(geometry, windows, source, graph), x.ndim - geometry.rank
    y, taps = _portable.choose_along(x, axes, first, least)
    return (y, _portable.positions_along(taps, axes, first)) if indices else y


def _standard_best(
    x: Tensor, geometry: TorchWindows, windows: Any, least: bool, indices: bool, source: Sizes, graph: Graph
) -> Any:
    """Write torch's own pool, if it means the same; else return None."""
    if windows is not None or not x.dtype.is_floating_point:
        return None
    if least:
        made = _standard_best(-x, geometry, windows, False, indices, source, graph)
        return made if made is None else (-made[0], made[1]) if indices else -made
    rank, lengths = geometry.rank, source[len(source) - geometry.rank :]
    if geometry.sizes:
        if _adaptive(geometry, lengths, indices, graph):
            return _named("adaptive_max_pool", rank)(x, geometry.sizes, indices)
        kernel = _even(lengths, geometry.sizes)
        return None if kernel is None else _named("max_pool", rank)(x, kernel, kernel, return_indices=indices)
    pads = _pads(geometry, lengths)
    if pads is None:
        return None
    words = geometry.kernel, geometry.stride
    if _symmetric(pads, geometry.kernel):
        more = {"dilation": geometry.dilation, "ceil_mode": geometry.ceil_mode, "return_indices": indices}
        return _named("max_pool", rank)(x, *words, pads[::2], **more)
    if indices or geometry.ceil_mode:
        return None
    return _named("max_pool", rank)(own.pad(x, _from_last(pads), value=-torch.inf), *words, 0, geometry.dilation)


def means(
    x: Tensor, geometry: TorchWindows, windows: Any, kind: str, divisor: float, source: Sizes, graph: Graph
) -> Tensor:
    """Write sums over windows, divided."""
    made = _standard_means(x, geometry, windows, kind, divisor, source, graph)
    if made is None:
        axes = _axes(geometry, windows, source, graph)
        made = _portable.fold(x, axes, x.ndim - geometry.rank, kind, divisor)
    return made


def _standard_means(
    x: Tensor, geometry: TorchWindows, windows: Any, kind: str, divisor: float, source: Sizes, graph: Graph
) -> Tensor | None:
    """Write torch's own pool, if it means the same; else return None."""
    if windows is not None or not x.dtype.is_floating_point:
        return None
    rank, lengths = geometry.rank, source[len(source) - geometry.rank :]
    pool, made = _named("avg_pool", rank), None
    if geometry.sizes:
        if _adaptive(geometry, lengths, False, graph):
            made = _named("adaptive_avg_pool", rank)(x, geometry.sizes)
        elif (kernel := _even(lengths, geometry.sizes)) is not None:
            made = pool(x, kernel, kernel)
        return made
    pads = _pads(geometry, lengths)
    if pads is None:
        return None
    sums, words = kind == "sum", (geometry.kernel, geometry.stride)
    if _symmetric(pads, geometry.kernel) and not (sums and geometry.ceil_mode):
        made = pool(x, *words, pads[::2], geometry.ceil_mode, sums or kind == "padded")
    elif kind != "mean" and not geometry.ceil_mode:
        made = pool(own.pad(x, _from_last(pads)), *words)
    if made is None or not sums:
        return made
    return made * (prod(geometry.kernel) / divisor)  # torch's exporter forgets the divisor that it would take itself


def unpooling(v: Tensor, index: Tensor, kind: str, lengths: Sizes, graph: Graph) -> Tensor:
    """Write values at their positions of planes."""
    first = v.ndim - len(lengths)
    where = index.to(torch.int64)
    if kind == "assign":
        if graph is Graph.ONNX:
            _refuse("reduce", "'assign'", "'sum': ONNX leaves open which of several values stays")
        return _portable.unpool(v, where, kind, (*index.shape[:first], *lengths), len(lengths))
    planes = v.new_zeros(1).expand(*v.shape[:first], prod(lengths))
    made = planes.scatter_add(-1, where.flatten(first), v.flatten(first))
    return made.reshape(*v.shape[:first], *lengths)


def refuse_random(graph: Graph) -> NoReturn:
    """Refuse windows that are drawn in every call."""
    _refuse("seed", "None", f"a seed, or windows: a graph of {graph.value} draws no windows")


def refuse_symbols(lengths: Sizes, graph: Graph) -> None:
    """Refuse lengths that change from call to call, if the windows must be numbers."""
    if not _known(lengths):
        wanted = f"fixed lengths along the pooled axes: {graph.value} has no such pool, so its windows must be numbers"
        _refuse("input", f"lengths {list(lengths)}", wanted)


def _refuse(name: str, got: str, wanted: str) -> NoReturn:
    ArgumentErrors("pool").fail(name, got, wanted, NotImplementedError)


def _named(kind: str, rank: int) -> Any:
    return getattr(own, f"{kind}{rank}d")


def _known(lengths: Sizes) -> bool:
    """Return whether lengths are numbers, not symbols."""
    return all(type(n) is int for n in lengths)


def _adaptive(geometry: TorchWindows, lengths: Sizes, indices: bool, graph: Graph) -> bool:
    """Return whether the graph takes torch's adaptive pools: to ONNX they are reductions over whole planes."""
    return graph is not Graph.ONNX or not _known(lengths) or (not indices and all(m == 1 for m in geometry.sizes))


def _even(lengths: Sizes, sizes: Sequence[int]) -> tuple[int, ...] | None:
    """Return the kernel of windows that share each axis evenly, if there is one."""
    if not _known(lengths) or any(m == 0 or n % m for n, m in zip(lengths, sizes, strict=True)):
        return None
    return tuple(n // m for n, m in zip(lengths, sizes, strict=True))


def _pads(geometry: TorchWindows, lengths: Sizes) -> tuple[int, ...] | None:
    """Return the padding before and after each axis; None if it depends on lengths that are symbols."""
    if geometry.padding not in SAME.values():
        return geometry.padding
    if not _known(lengths):
        return None
    pads: list[int] = []
    for n, k, s, d in zip(lengths, geometry.kernel, geometry.stride, geometry.dilation, strict=True):
        total = max((-(-n // s) - 1) * s + d * (k - 1) + 1 - n, 0)
        half = total // 2
        pads += [half, total - half] if geometry.padding == SAME["same"] else [total - half, half]
    return tuple(pads)


def _symmetric(pads: Sequence[int], kernel: Sequence[int]) -> bool:
    """Return whether torch's pools take this padding."""
    return all(a == b and 2 * a <= k for a, b, k in zip(pads[::2], pads[1::2], kernel, strict=True))


def _from_last(pads: Sequence[int]) -> list[int]:
    """Return padding in the order of `torch.nn.functional.pad`: from the last axis on."""
    return [pads[2 * i + j] for i in reversed(range(len(pads) // 2)) for j in (0, 1)]


def _axes(geometry: TorchWindows, windows: Any, source: Sizes, graph: Graph) -> Any:
    """Return the windows as numbers."""
    if isinstance(windows, tuple):
        return windows
    lengths = source[len(source) - geometry.rank :]
    refuse_symbols(lengths, graph)
    with unwritten():
        return _portable.windows_along(lengths, geometry, windows)
