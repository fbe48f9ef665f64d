"""Between tensors and arrays: shared memory, two layouts, and windows as numbers that an operator of torch can take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np
import torch

import poolgrad as pg

from .._windows.axis import Axis
from .._windows.plan_cache import cache_plan

Sizes: TypeAlias = Sequence[int]
Tensor: TypeAlias = torch.Tensor
Windows: TypeAlias = Tensor | tuple[Axis, ...] | None  # given by the caller, drawn at random, or told by the geometry

SAME = {"same": (-1,), "same_lower": (-2,)}  # paddings that depend on lengths, as numbers


class TorchWindows(NamedTuple):
    """The windows along the last axes. Sliding windows have a kernel, adaptive ones only sizes; given ones come as a tensor.

    `padding` has two numbers per axis. With `last` the channels, which come before the pooled axes, lie behind them in memory.
    """

    rank: int
    kernel: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    ceil_mode: bool = False
    sizes: tuple[int, ...] = ()
    last: bool = False
    wide: bool = False  # whether taps need more than a byte

    def pooled(self, source: Sizes) -> list[int]:
        """Return the pooled shape; lengths may be symbols."""
        lengths = source[len(source) - self.rank :]
        return [*source[: len(source) - self.rank], *(self.sizes or map(self._count, range(self.rank), lengths))]

    def _count(self, i: int, n: int) -> int:
        k, s, d = self.kernel[i], self.stride[i], self.dilation[i]
        if self.padding in SAME.values():
            return -(-n // s)
        before, after = self.padding[2 * i : 2 * i + 2]
        over = n + before + after - d * (k - 1) - 1
        m = torch.sym_max((-(-over // s) if self.ceil_mode else over // s) + 1, 0)
        return m - 1 if self.ceil_mode and m > 0 and (m - 1) * s >= n + before else m


def channels_last(x: Tensor, rank: int) -> bool:
    """Return whether the memory of x has the channels behind the pooled axes."""
    if x.ndim <= rank or x.is_contiguous():
        return False
    kind = _FORMATS.get((rank, x.ndim))
    if kind is None or torch._C._functorch.is_functorch_wrapped_tensor(x):  # vmap answers for one memory format alone
        return _behind(x.shape, x.stride(), rank)
    return x.is_contiguous(memory_format=kind)


def _behind(shape: Sizes, strides: Sizes, rank: int) -> bool:
    """Return whether strides are those of memory that is dense once the channels are moved behind the pooled axes."""
    step, at = 1, len(shape) - rank - 1
    for d in (at, *range(len(shape) - 1, at, -1), *range(at - 1, -1, -1)):
        if shape[d] != 1 and strides[d] != step:
            return False
        step *= shape[d]
    return True


_FORMATS = {(2, 4): torch.channels_last, (3, 5): torch.channels_last_3d}


def view(x: Tensor, geometry: TorchWindows) -> Any:
    """View the memory of x as an array; copy only if x has another layout than the windows."""
    laid = (x.permute(orders(x.ndim, geometry.rank)[0]) if geometry.last else x).contiguous()
    half = laid.dtype == torch.bfloat16  # which NumPy knows by its bits alone
    array = laid.view(torch.uint16).numpy(force=True).view(ml_dtypes.bfloat16) if half else laid.numpy(force=True)
    return array.reshape(-1).reshape(array.shape)  # torch may give an axis of one cell any stride


def tensor(array: Any, geometry: TorchWindows) -> Tensor:
    """Return the array as a tensor over the same memory, its axes in the caller's order."""
    array = array if array.flags.c_contiguous else np.ascontiguousarray(array)
    if array.dtype == ml_dtypes.bfloat16:
        made = torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
    else:
        made = torch.from_numpy(array)
    return made.permute(orders(made.ndim, geometry.rank)[1]) if geometry.last else made


@lru_cache(64)
def orders(ndim: int, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes with the channels moved behind the pooled ones, and with them moved back."""
    axes, at = list(range(ndim)), ndim - rank - 1
    return (*axes[:at], *axes[at + 1 :], at), (*axes[:at], ndim - 1, *axes[at:-1])


def unwatched(x: Tensor) -> bool:
    """Return True if x is a plain tensor and no transform, mode or trace is active, so that the dispatcher can be skipped."""
    return type(x) in PLAIN_TYPES and _keys_of(x).raw_repr() in _PLAIN and _active_keys().raw_repr() in _IDLE


def readable(x: Tensor) -> bool:
    """Return True if `x.numpy()` is the memory of a plain tensor, or raises RuntimeError; no transform, mode or trace is active.

    Cheaper than `unwatched`: it leaves it to NumPy's view to refuse negated and zero tensors, and those of transforms that ended.
    """
    return (
        type(x) in PLAIN_TYPES
        and x.is_cpu
        and x.layout is _STRIDED
        and not x.is_nested
        and not _is_functional(x)
        and _modes() == 0
        and _transform() is None
        and _trace() is None
    )


def traced() -> bool:
    """Return True if a mode, a transform or a trace is active, so that a new tensor might belong to it."""
    return not (_modes() == 0 and _transform() is None and _trace() is None)


@contextmanager
def untraced() -> Iterator[None]:
    """Keep what happens inside out of a trace of `torch.jit`."""
    state = _trace()
    if state is None:
        yield
        return
    torch._C._set_tracing_state(None)
    try:
        yield
    finally:
        torch._C._set_tracing_state(state)


_STRIDED, _is_functional = torch.strided, torch._is_functional_tensor
_modes, _transform = torch._C._len_torch_dispatch_stack, torch._C._functorch.peek_interpreter_stack
_trace = torch._C._get_tracing_state


def _keys(*names: str) -> int:
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.Undefined)
    for name in names:
        keys = keys.add(getattr(torch._C.DispatchKey, name))
    return keys.raw_repr()


_keys_of, _active_keys = torch._C._dispatch_keys, torch._C._dispatch_tls_local_include_set
PLAIN_TYPES: list[type] = [torch.Tensor, torch.nn.Parameter]  # `_portable.forced` empties it
_PLAIN = {_keys("CPU", "AutocastCPU"), _keys("CPU", "ADInplaceOrView", "AutogradCPU", "AutocastCPU")}
_IDLE = {_keys("BackendSelect"), _keys("BackendSelect", "ADInplaceOrView")}  # in inference mode, and otherwise


def blank(like: Tensor, shape: Sizes, geometry: TorchWindows, dtype: Any = None) -> Tensor:
    """Return an uninitialised tensor of that shape in the layout of the windows."""
    if not geometry.last:
        return like.new_empty(shape, dtype=dtype or like.dtype)
    there, back = orders(len(shape), geometry.rank)
    return like.new_empty([shape[d] for d in there], dtype=dtype or like.dtype).permute(back)


def plan(source: Sizes, geometry: TorchWindows, windows: Tensor | None) -> pg.Plan:
    """Return the windows for an array of that shape, its axes in the order of memory."""
    if windows is None:
        return _plan(tuple(source), geometry)
    return _given(tuple(source), geometry, windows.numpy().tobytes())


def _in_memory(source: Sizes, geometry: TorchWindows) -> tuple[int, ...]:
    return tuple(source[d] for d in orders(len(source), geometry.rank)[0]) if geometry.last else tuple(source)


def axes_in_memory(ndim: int, geometry: TorchWindows) -> tuple[int, ...]:
    """Return the indices of the pooled axes once all axes are in memory order."""
    first = ndim - geometry.rank - geometry.last
    return tuple(range(first, first + geometry.rank))


@cache_plan(1024)
def _plan(source: tuple[int, ...], geometry: TorchWindows) -> pg.Plan:
    shape, axes = _in_memory(source, geometry), axes_in_memory(len(source), geometry)
    if geometry.sizes:
        return pg.plan(shape, [pg.adaptive(shape[d], m) for d, m in zip(axes, geometry.sizes, strict=True)], axes=axes)
    pads = geometry.padding
    word = next((word for word, number in SAME.items() if number == pads), None)
    return pg.plan(
        shape,
        geometry.kernel,
        geometry.stride,
        padding=word or list(zip(pads[::2], pads[1::2], strict=True)),
        dilation=geometry.dilation,
        ceil_mode=geometry.ceil_mode,
        axes=axes,
    )


def plan_of(source: Sizes, geometry: TorchWindows, windows: Sequence[Axis]) -> pg.Plan:
    """Return the plan of these windows for an array of that shape, its axes in the order of memory."""
    axes = axes_in_memory(len(source), geometry)
    return pg.Plan(_in_memory(source, geometry), dict(zip(axes, windows, strict=True)))


def rows_of(windows: Sequence[Axis]) -> Tensor:
    """Return windows as a tensor of rows (start, stop), axis after axis."""
    return torch.from_numpy(np.concatenate([np.stack([axis.start, axis.stop], 1) for axis in windows]))


@cache_plan(64)  # those of a step: backward asks for what forward drew
def _given(source: tuple[int, ...], geometry: TorchWindows, windows: bytes) -> pg.Plan:
    steps, made, begin = geometry.dilation or (1,) * geometry.rank, [], 0
    rows = np.frombuffer(windows, np.int64).reshape(-1, 2)
    for n, m, step in zip(source[len(source) - geometry.rank :], geometry.sizes, steps, strict=True):
        start, stop = rows[begin : begin + m].T
        made.append(pg.Axis(n, start, stop, step=step))
        begin += m
    return plan_of(source, geometry, made)
