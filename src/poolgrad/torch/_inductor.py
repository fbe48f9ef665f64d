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
from types import ModuleType
from typing import Any

import torch

KNOWN = ((2, 13),)
LOWERING = "torch._inductor.lowering"
KEPT = ("max_pool2d_with_indices", "max_pool3d_with_indices")  # which the compiler decomposes
LOWERED = (
    *KEPT,
    "max_pool2d_with_indices_backward",
    "avg_pool2d",
    "avg_pool3d",
    "avg_pool2d_backward",
    "avg_pool3d_backward",
)
FEW = 16384  # cells: below, a call costs more than the loop that the compiler generates

_originals: list[tuple[dict[Any, Any], Any, Any]] = []


def _worth(x: Any) -> bool:
    """Return True if a call of the operator is faster than a generated loop: floats on the CPU, not channels last, not few cells."""
    if x.device.type != "cpu" or x.dtype not in (torch.float32, torch.float64):
        return False
    if not x.is_contiguous():
        return False
    sizes = [n for n in x.shape if type(n) is int]
    return len(sizes) < x.ndim or prod(sizes) >= FEW


def _decomposition(original: Callable[..., Any]) -> Callable[..., Any]:
    def decompose(x: Any, *words: Any, **named: Any) -> Any:
        return NotImplemented if _worth(x) else original(x, *words, **named)

    return decompose


def _lowering(original: Callable[..., Any], call: Callable[..., Any], place: int) -> Callable[..., Any]:
    from torch._inductor.virtualized import V

    def lower(*words: Any, **named: Any) -> Any:
        node = V.current_node
        x = node.args[place].meta.get("val") if len(node.args) > place else None
        return (call if x is not None and _worth(x) else original)(*words, **named)

    return lower


def _wrap(table: dict[Any, Any], key: Any, made: Callable[..., Any]) -> None:
    _originals.append((table, key, table[key]))
    table[key] = made


def _take() -> None:
    """Wrap the compiler's entries for pools."""
    lowering, decomposition = sys.modules[LOWERING], sys.modules["torch._inductor.decomposition"]
    for name in KEPT:
        op = getattr(torch.ops.aten, name).default
        _wrap(decomposition.decompositions, op, _decomposition(decomposition.decompositions[op]))
    for name in LOWERED:
        op = getattr(torch.ops.aten, name).default
        call = lowering.fallback_handler(op, add_to_fallback_set=False)
        _wrap(lowering.lowerings, op, _lowering(lowering.lowerings[op], call, int("backward" in name)))
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
