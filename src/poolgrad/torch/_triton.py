"""Pool floats on a GPU in one pass, by kernels in Triton: the windows, taps, rules and order of sums of `_portable`.

A lane computes one cell of the result and asks the cells that it depends on, one after the other: nothing scatters, nothing adds
atomically. Arrays are dense and seen as planes x three axes x channels; tables tell where windows lie, so that sliding,
adaptive and fractional pools take the same kernels. Functions return None for what they leave to `_portable`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from .._windows.axis import Axis
from . import _devices
from ._tensors import Tensor

_FLOATS = {torch.float32: tl.float32, torch.float64: tl.float64, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}
_LONG = 256  # cells that a lane reads one after the other; `_portable` halves longer windows
_LANES = 512  # cells of the result per program
_ONE = Axis(1, [0], [1])  # the window of an axis that is not there
_WRONG_TAP = "pool: taps: got a tap outside its window, wanted the number of a cell of the window"


# ---- kernels: sizes N of the unpooled axes, M of the pooled ones, C channels; S steps in windows, K the most that a loop reads


@triton.jit
def _lanes(WIDE: tl.constexpr, LANES: tl.constexpr):  # type: ignore[no-untyped-def]
    program = tl.program_id(0)
    if WIDE:
        program = program.to(tl.int64)
    return program * LANES + tl.arange(0, LANES)


@triton.jit
def _interval(table, at, length, mask):  # type: ignore[no-untyped-def]
    start = tl.load(table + at, mask=mask, other=0).to(tl.int32)
    return start, tl.load(table + length + at, mask=mask, other=1).to(tl.int32)


@triton.jit
def _windows(table, lane, here, A1, A2, A3, C):  # type: ignore[no-untyped-def]
    row = lane // C
    rows = row // A3
    i1, i2, i3 = rows // A2 % A1, rows % A2, row % A3
    s1, n1 = _interval(table, i1, A1, here)
    s2, n2 = _interval(table + 2 * A1, i2, A2, here)
    s3, n3 = _interval(table + 2 * A1 + 2 * A2, i3, A3, here)
    return rows // A2 // A1, lane % C, i1, i2, i3, s1, n1, s2, n2, s3, n3


@triton.jit
def _wider(v, WIDER: tl.constexpr):  # type: ignore[no-untyped-def]
    if v.dtype.primitive_bitwidth == 16:
        v = v.to(tl.float32)  # the only way that the interpreter knows for bfloat16
    return v.to(WIDER)


@triton.jit
def _bfloat16(v):  # type: ignore[no-untyped-def]
    bits = v.to(tl.int32, bitcast=True)  # round to nearest, ties to even: the interpreter's own conversion cuts off
    return tl.where(v != v, 0x7FC0, (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).to(tl.int16)


@triton.jit
def _choose(x, y, taps, fore, total, N1, N2, N3, M1, M2, M3, C, S1, S2, S3, K1, K2, K3, LEAST: tl.constexpr, WIDER: tl.constexpr, WIDE: tl.constexpr, LANES: tl.constexpr):  # type: ignore[no-untyped-def] # fmt: skip
    lane = _lanes(WIDE, LANES)
    here = lane < total
    plane, c, _, _, _, s1, n1, s2, n2, s3, n3 = _windows(fore, lane, here, M1, M2, M3, C)
    best = tl.load(x + (((plane * N1 + s1) * N2 + s2) * N3 + s3) * C + c, mask=here, other=0)
    tap = n1 * 0
    for o1 in range(K1):
        for o2 in range(K2):
            row = ((plane * N1 + s1 + o1 * S1) * N2 + s2 + o2 * S2) * N3 + s3
            for o3 in range(K3):
                inside = here & (o1 < n1) & (o2 < n2) & (o3 < n3)
                v = tl.load(x + (row + o3 * S3) * C + c, mask=inside, other=0)
                one, other = _wider(v, WIDER), _wider(best, WIDER)
                behind = one >= other if LEAST else one <= other
                better = inside & ((behind | (other != other)) == 0)
                best = tl.where(better, v, best)
                tap = tl.where(better, (o1 * n2 + o2) * n3 + o3, tap)
    tl.store(y + lane, best, mask=here)
    tl.store(taps + lane, tap.to(taps.dtype.element_ty), mask=here)


@triton.jit
def _pick(v, y, taps, right, fore, total, N1, N2, N3, M1, M2, M3, C, S1, S2, S3, WIDE: tl.constexpr, LANES: tl.constexpr):  # type: ignore[no-untyped-def] # fmt: skip
    lane = _lanes(WIDE, LANES)
    here = lane < total
    plane, c, _, _, _, s1, n1, s2, n2, s3, n3 = _windows(fore, lane, here, M1, M2, M3, C)
    tap = tl.load(taps + lane, mask=here, other=0).to(tl.int32)
    inside = here & (tap >= 0) & (tap < n1 * n2 * n3)  # a tap outside its window reads nothing, and is told to `pick`
    tl.store(right + lane * 0, tap * 0, mask=here & (inside == 0))
    tap = tl.where(inside, tap, 0)
    n2, n3 = tl.maximum(n2, 1), tl.maximum(n3, 1)  # a window without a cell divides by nothing
    row = (plane * N1 + s1 + tap // n3 // n2 * S1) * N2 + s2 + tap // n3 % n2 * S2
    tl.store(y + lane, tl.load(v + (row * N3 + s3 + tap % n3 * S3) * C + c, mask=inside, other=0), mask=here)


@triton.jit
def _fold(x, y, fore, total, N1, N2, N3, M1, M2, M3, C, S1, S2, S3, K1, K2, K3, WIDE: tl.constexpr, LANES: tl.constexpr):  # type: ignore[no-untyped-def] # fmt: skip
    lane = _lanes(WIDE, LANES)
    here = lane < total
    plane, c, _, _, _, s1, n1, s2, n2, s3, n3 = _windows(fore, lane, here, M1, M2, M3, C)
    sum = tl.full((LANES,), 0, y.dtype.element_ty)
    for o1 in range(K1):
        for o2 in range(K2):
            row = ((plane * N1 + s1 + o1 * S1) * N2 + s2 + o2 * S2) * N3 + s3
            for o3 in range(K3):
                inside = here & (o1 < n1) & (o2 < n2) & (o3 < n3)
                sum += _wider(tl.load(x + (row + o3 * S3) * C + c, mask=inside, other=0), y.dtype.element_ty)
    tl.store(y + lane, sum, mask=here)


@triton.jit
def _gather(g, y, taps, fore, back, total, N1, N2, N3, M1, M2, M3, C, S1, S2, S3, B1, B2, B3, K1, K2, K3, TAPPED: tl.constexpr, HALF: tl.constexpr, BFLOAT: tl.constexpr, WIDER: tl.constexpr, WIDE: tl.constexpr, LANES: tl.constexpr):  # type: ignore[no-untyped-def] # fmt: skip
    lane = _lanes(WIDE, LANES)
    here = lane < total
    plane, c, j1, j2, j3, f1, n1, f2, n2, f3, n3 = _windows(back, lane, here, N1, N2, N3, C)
    sum = tl.full((LANES,), 0, WIDER)
    for o1 in range(K1):
        over1 = here & (o1 < n1)
        start1, _ = _interval(fore, f1 + o1 * B1, M1, over1)
        for o2 in range(K2):
            over2 = over1 & (o2 < n2)
            start2, count2 = _interval(fore + 2 * M1, f2 + o2 * B2, M2, over2)
            row = (plane * M1 + f1 + o1 * B1) * M2 + f2 + o2 * B2
            cells = (j1 - start1) // S1 * count2 + (j2 - start2) // S2
            for o3 in range(K3):
                over = over2 & (o3 < n3)
                at = (row * M3 + f3 + o3 * B3) * C + c
                if TAPPED:
                    start3, count3 = _interval(fore + 2 * M1 + 2 * M2, f3 + o3 * B3, M3, over)
                    tap = tl.load(taps + at, mask=over, other=0).to(tl.int32)
                    over = over & (tap == cells * count3 + (j3 - start3) // S3)
                sum += _wider(tl.load(g + at, mask=over, other=0), WIDER)
    if HALF:
        sum = sum.to(tl.float32)  # as torch rounds a float64 to a half
    if BFLOAT:
        tl.store(y + lane, _bfloat16(sum), mask=here)
    else:
        tl.store(y + lane, sum.to(y.dtype.element_ty), mask=here)


# ---- their callers: `made` are the tables of the windows of `_portable`, for dimensions from `first` on


def choose(x: Tensor, made: Sequence[Any], first: int, least: bool) -> tuple[Tensor, Tensor] | None:
    """Return the best cell of each window, and its tap."""
    y = _result(x, made, first, "m", x.dtype)
    reads = [table.k for table in made]
    if not _fits(x, y, reads) or any((table.axis.count < 1).any() for table in made):
        return None
    taps = torch.empty_like(y, dtype=torch.uint8)
    flags = {"LEAST": least, "WIDER": tl.float64 if x.dtype is torch.float64 else tl.float32}
    return (y, taps) if _run(_choose, y, (x.contiguous(), y, taps), made, x, first, reads, **flags) else None


def pick(v: Tensor, taps: Tensor, made: Sequence[Any], first: int) -> Tensor | None:
    """Return v at the tap of each window; refuse a tap outside its window."""
    y = _result(v, made, first, "m", v.dtype)
    if not _fits(v, y, []):
        return None
    right = torch.ones(1, dtype=torch.int32, device=v.device)
    if not _run(_pick, y, (v.contiguous(), y, taps.contiguous(), right), made, v, first, []):
        return None
    # The device looks at `right` when it comes to it, and nobody waits: the error of a wrong tap comes with a later call that
    # synchronises, as that of torch's own `gather` does. A CPU raises it here.
    torch._assert_async(right, _WRONG_TAP)
    return y


def sums(x: Tensor, made: Sequence[Any], first: int, wide: torch.dtype) -> Tensor | None:
    """Return the sums over windows, in a wide dtype."""
    y = _result(x, made, first, "m", wide)
    reads = [table.k for table in made]
    return y if _fits(x, y, reads) and _run(_fold, y, (x.contiguous(), y), made, x, first, reads) else None


def gather(
    g: Tensor, taps: Tensor | None, made: Sequence[Any], first: int, wide: torch.dtype, dtype: torch.dtype
) -> Tensor | None:
    """Add up, for each cell, what the windows over it hold, or what those hold whose tap is the cell."""
    y = _result(g, made, first, "n", dtype)
    back = [_over(table) for table in made]
    reads = [0 if axis is None else axis.widest for axis in back]
    if None in back or not _fits(g, y, reads):
        return None
    bfloat = dtype is torch.bfloat16
    data = g.contiguous(), y.view(torch.int16) if bfloat else y, y if taps is None else taps.contiguous()
    flags = {"TAPPED": taps is not None, "HALF": dtype.itemsize == 2, "BFLOAT": bfloat, "WIDER": _FLOATS[wide]}
    return y if _run(_gather, y, data, made, y, first, reads, back, **flags) else None


def _result(x: Tensor, made: Sequence[Any], first: int, size: str, dtype: torch.dtype) -> Tensor:
    shape = (*x.shape[:first], *(getattr(table, size) for table in made), *x.shape[first + len(made) :])
    return x.new_empty(shape, dtype=dtype)


def _fits(x: Tensor, y: Tensor, reads: Sequence[int]) -> bool:
    return x.dtype in _FLOATS and min(x.numel(), y.numel()) > 0 and 0 < prod(reads) <= _LONG


def _over(table: Any) -> Axis | None:
    """Return the windows over each cell, evenly spaced; None if they are not."""
    if "over" not in table.__dict__:
        try:
            table.over = table.axis.transpose()
        except ValueError:  # some dilated windows
            table.over = None
    found: Axis | None = table.over
    return found


def _run(
    kernel: Any,
    y: Tensor,
    data: Any,
    made: Sequence[Any],
    x: Tensor,
    first: int,
    reads: Any,
    back: Any = None,
    **flags: Any,
) -> bool:
    """Run a kernel for every cell of y; x has the shape of the unpooled tensor. Return False if Triton cannot compile it."""
    if x.is_cuda and not _driven():
        return False
    fore, missing = [table.axis for table in made], 3 - len(made)
    tables = [made[0].vector("fore", lambda: _table([*[_ONE] * missing, *fore]))]
    if back is not None:
        tables.append(made[0].vector("back", lambda: _table([*[_ONE] * missing, *back])))
    sizes = [size for kind in ("n", "m") for size in (*(1,) * missing, *(getattr(table, kind) for table in made))]
    steps = [step for axes in (fore, back or []) if axes for step in (*(1,) * missing, *(axis.step for axis in axes))]
    reads = [*(1,) * missing, *reads] if reads else []
    channels, total = prod(x.shape[first + len(made) :]), y.numel()
    wide = max(t.numel() for t in data) + _LANES >= 2**31
    try:
        with torch.cuda.device(x.device) if x.is_cuda else nullcontext():
            kernel[(-(-total // _LANES),)](
                *data, *tables, total, *sizes, channels, *steps, *reads, **flags, WIDE=wide, LANES=_LANES
            )
    except (triton.TritonError, ImportError) as reason:  # others, such as CUDA's, may be of a kernel that ran before
        _devices.give_up(reason)
        return False
    return True


@lru_cache(1)
def _driven() -> bool:
    """Return whether Triton has a driver, which it builds with a C compiler, and knows the device: before any kernel starts."""
    try:
        triton.runtime.driver.active.get_current_target()
    except Exception as reason:  # of any type; but no kernel of anyone's
        _devices.give_up(reason)
        return False
    return True


def _table(axes: Sequence[Axis]) -> Any:
    """Return the starts and the counts of windows, axis after axis."""
    return np.concatenate([part for axis in axes for part in (axis.start, axis.count)])
