"""Register opaque torch operators: choice of taps, linear operators and their transposes, positions, random windows.

Each calls the function of its name in `_kernels` or, for tensors on other devices, in `_portable`, and tells torch shapes and layouts. None has derivatives of its own; `_autograd`
adds them. A direct call with an input that carries a tangent raises an error instead of returning zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from .._common.errors import ArgumentErrors
from . import _kernels, _portable
from ._tensors import Sizes, Tensor, TorchWindows, blank

_GEOMETRY = (
    "int rank, SymInt[] kernel, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool ceil_mode, SymInt[] sizes, "
    "bool last, bool wide"
)


def _op(name: str, schema: str) -> Any:
    """Return a decorator that registers a torch operator for tensors on any device; it changes none of its arguments."""
    return torch.library.custom_op(f"poolgrad::{name}", mutates_args=(), schema=schema)


def _work(x: Tensor) -> Any:
    """Return the functions that pool a tensor: by the core, or by torch's own operations where the core cannot read it."""
    return _portable if _portable.serves(x) else _kernels


def _geometry(words: Sequence[Any]) -> TorchWindows:
    plain: list[Any] = [tuple(word) if isinstance(word, (list, tuple)) else word for word in words]
    return TorchWindows(*plain)


def _refuse_tangent(x: Tensor) -> None:
    """Refuse a tangent: compiled code skips the rule for tangents, and would lose it silently."""
    if forward_ad._current_level < 0 or not torch._C._is_fwd_grad_enabled():
        return
    nothing = torch._C.DispatchKeySet(torch._C.DispatchKey.Undefined)
    with torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), nothing):
        tangent = forward_ad.unpack_dual(x).tangent  # which below autograd can be read in this way only
    if tangent is not None:
        wanted = "forward mode inside of it: torch.compile(lambda x, v: torch.func.jvp(f, (x,), (v,)))"
        ArgumentErrors("poolgrad").fail("input", "a dual tensor in compiled code", wanted, NotImplementedError)


@_op("choose", f"(Tensor x, Tensor? windows, bool least, {_GEOMETRY}) -> (Tensor, Tensor)")
def choose(x: Tensor, windows: Tensor | None, least: bool, *words: Any) -> tuple[Tensor, Tensor]:
    """Return the best cell of each window, and its number in the window."""
    _refuse_tangent(x)
    made: tuple[Tensor, Tensor] = _work(x).choose(x, windows, least, _geometry(words))
    return made


@choose.register_fake
def _(x: Tensor, windows: Tensor | None, least: bool, *words: Any) -> tuple[Tensor, Tensor]:
    geometry = _geometry(words)
    shape = geometry.pooled(x.shape)
    return blank(x, shape, geometry), blank(x, shape, geometry, torch.int32 if geometry.wide else torch.uint8)


@_op(
    "apply",
    "(Tensor v, Tensor? index, Tensor? windows, str kind, float divisor, bool transposed, SymInt[] source, "
    f"{_GEOMETRY}) -> Tensor",
)
def apply(v: Tensor, *words: Any) -> Tensor:
    """Apply a linear operator from tensors of shape `source` to pooled ones, or its transpose, to v."""
    _refuse_tangent(v)
    made: Tensor = _work(v).apply(v, *(*words[:6], _geometry(words[6:])))
    return made


@apply.register_fake
def _(v: Tensor, *words: Any) -> Tensor:
    index, *_, transposed, source = words[:6]
    geometry = _geometry(words[6:])
    pooled = index.shape if index is not None else geometry.pooled(source)
    return blank(v, source if transposed else pooled, geometry)


@_op("positions", f"(Tensor taps, Tensor? windows, SymInt[] source, {_GEOMETRY}) -> Tensor")
def positions(taps: Tensor, windows: Tensor | None, source: Sizes, *words: Any) -> Tensor:
    """Return the positions of the taps in their planes: torch's indices."""
    where: Tensor = _work(taps).positions(taps, windows, source, _geometry(words))
    return where


@positions.register_fake
def _(taps: Tensor, windows: Tensor | None, source: Sizes, *words: Any) -> Tensor:
    return blank(taps, taps.shape, _geometry(words), torch.int64)


@positions.register_vmap
def _(info: Any, in_dims: Any, taps: Tensor, windows: Tensor | None, source: Sizes, *words: Any) -> Any:
    if in_dims[1] is not None:
        parts = [positions(t, w, source, *words) for t, w in zip(*_unbound(in_dims, taps, windows), strict=True)]
        return torch.stack(parts), 0
    return positions(taps.movedim(in_dims[0], 0), windows, [info.batch_size, *source], *words), 0


def _unbound(in_dims: Any, *tensors: Any) -> list[Any]:
    return [t.unbind(d) for t, d in zip(tensors, in_dims, strict=False)]


@_op("draw", "(Tensor seed, SymInt[] lengths, SymInt[] sizes, bool pseudo_random, bool overlapping) -> Tensor")
def draw(seed: Tensor, lengths: Sizes, sizes: Sizes, pseudo_random: bool, overlapping: bool) -> Tensor:
    """Random windows for fractional pooling, as rows (start, stop), axis after axis."""
    return _kernels.draw(seed, lengths, sizes, pseudo_random, overlapping)


@draw.register_fake
def _(seed: Tensor, lengths: Sizes, sizes: Sizes, pseudo_random: bool, overlapping: bool) -> Tensor:
    return seed.new_empty((sum(sizes), 2))


@draw.register_vmap
def _(info: Any, in_dims: Any, seed: Tensor, *words: Any) -> Any:
    return torch.stack([draw(pair, *words) for pair in seed.unbind(in_dims[0])]), 0
