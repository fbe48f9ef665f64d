"""Let torch.compile call torch's pooling operators, which `accelerate` computes, where its own generated loops are slower.

The compiler has no public way to keep an operator: this module wraps its entries for pools, in dictionaries that are private to
torch. So it runs only with versions whose dictionaries were looked at (`KNOWN`); with others compiled programs are as without it.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from math import prod
from operator import getitem
from types import ModuleType
from typing import Any

import torch

KNOWN = ((2, 13),)
LOWERING = "torch._inductor.lowering"
MAXIMA = ("max_pool2d_with_indices", "max_pool3d_with_indices")
GRADIENT = "max_pool2d_with_indices_backward"
KEPT = (*MAXIMA, GRADIENT)  # which the compiler decomposes
LOWERED = (*KEPT, "avg_pool2d", "avg_pool3d", "avg_pool2d_backward", "avg_pool3d_backward")
UNROLLED = 25  # cells of a window: the compiler unrolls so many in the operators that it decomposes maxima into
FEW = 16384  # cells: below, a call costs more than the loop that the compiler generates

_originals: list[tuple[dict[Any, Any], Any, Any]] = []


def _many(x: Any) -> bool:
    """Return True for floats on the CPU, not few."""
    sizes = [n for n in x.shape if type(n) is int]
    wanted = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)
    return wanted and (len(sizes) < x.ndim or prod(sizes) >= FEW)


def _last(x: Any, graph: Any) -> bool:
    """Return True if the compiler lays x out channels last: there it generates vectors, which it joins with the loops around.

    It does so with all maps of a graph that has a convolution, whatever their layout before was.
    """
    back = torch.ops.aten.convolution_backward.default
    return (
        not x.is_contiguous()
        or graph.layout_opt
        or bool(graph.module.graph.find_nodes(op="call_function", target=back))
    )


def _decomposition(original: Callable[..., Any], place: int) -> Callable[..., Any]:
    def decompose(*words: Any, **named: Any) -> Any:
        return NotImplemented if len(words) > place and _many(words[place]) else original(*words, **named)

    return decompose


def _asks_for_indices(node: Any) -> bool:
    return any(user.target is not getitem or user.args[1] != 0 for user in node.users)


def _lowering(name: str, original: Callable[..., Any], lowering: ModuleType) -> Callable[..., Any]:
    """Wrap the compiler's entry for a pool: call the operator where that is faster.

    The compiler's loops for indices, and its gradients at them, take many times longer than a call, in every layout.
    """
    from torch._inductor import config
    from torch._inductor.virtualized import V

    def caller(name: str) -> Callable[..., Any]:
        made: Callable[..., Any] = lowering.fallback_handler(_operator(name), add_to_fallback_set=False)
        return made

    call, values = caller(name), caller(name.removesuffix("_with_indices"))
    place = _place(name)

    def lower(*words: Any, **named: Any) -> Any:
        node = V.current_node
        x = node.args[place].meta.get("val") if len(node.args) > place else None
        if x is None or not _many(x) or V.graph.cpp_wrapper:  # a program for another process
            return original(*words, **named)
        if name == GRADIENT or (name in MAXIMA and _asks_for_indices(node)):
            return call(*words, **named)
        if _last(x, V.graph):
            with config.patch(unroll_reductions_threshold=UNROLLED):
                return original(*words, **named)
        return [values(*words, **named), None] if name in MAXIMA else call(*words, **named)

    return lower


def _wrap(table: dict[Any, Any], key: Any, made: Callable[..., Any]) -> None:
    _originals.append((table, key, table[key]))
    table[key] = made


def _operator(name: str) -> Any:
    return getattr(torch.ops.aten, name).default


def _place(name: str) -> int:
    """Return the place of the input among the arguments."""
    return int("backward" in name)


def _take() -> None:
    """Wrap the compiler's entries for pools."""
    lowering, decomposition = sys.modules[LOWERING], sys.modules["torch._inductor.decomposition"]
    decompositions, lowerings = decomposition.decompositions, lowering.lowerings
    for name in KEPT:
        _wrap(decompositions, _operator(name), _decomposition(decompositions[_operator(name)], _place(name)))
    for name in LOWERED:
        _wrap(lowerings, _operator(name), _lowering(name, lowerings[_operator(name)], lowering))
    decomposition.fast_random_decomps.cache_clear()


class _Later(importlib.abc.MetaPathFinder):
    """Wraps the entries when torch imports its compiler, which takes seconds: a program may never need it."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        """Return the compiler's module, with its entries wrapped after it ran."""
        if name != LOWERING:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def execute(module: ModuleType) -> None:
            run(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                _take()

        spec.loader.exec_module = execute  # type: ignore[method-assign]
        return spec


_later = _Later()


def forget() -> None:
    """Clear what torch's Python remembers of the kernels of pools: it does not see kernels that C++ registers."""
    for name in (*LOWERED, "max_pool2d", "max_pool3d"):
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads():
            getattr(packet, overload)._dispatch_cache.clear()


def take() -> None:
    """Keep pools as calls in programs that are compiled from now on."""
    if tuple(map(int, torch.__version__.split(".")[:2])) not in KNOWN or _originals or _later in sys.meta_path:
        return
    if LOWERING in sys.modules:
        _take()
    else:
        sys.meta_path.insert(0, _later)


def give_back() -> None:
    """Give the compiler its own entries back."""
    if _later in sys.meta_path:
        sys.meta_path.remove(_later)
    while _originals:
        table, key, original = _originals.pop()
        table[key] = original
    if "torch._inductor.decomposition" in sys.modules:
        sys.modules["torch._inductor.decomposition"].fast_random_decomps.cache_clear()
