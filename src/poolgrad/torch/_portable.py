"""Run the operators by torch's own operations, on any device: the same windows, taps and rules as the core, without a copy to the host.

The functions `choose`, `apply` and `positions` take the arguments of their namesakes in `_kernels`; the others work along `axes`, the
windows of consecutive dimensions from `first` on. They read strided or gathered slices, one cell of each window at a time, and choose
between them; long windows are halved or reduced. None scatters, so each sum has one order and repeated runs have the same bits.

Maxima, minima, taps, and gradients by taps have the bits of the core. So have sums over up to 64 cells, on a device that has float64;
longer sums agree within rounding.

If poolgrad has kernels for the device (`_devices`), they do the same in one pass: `choose_along`, `pick`, `place`, `_sums` and `_shared`
ask them first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, reduce
from math import prod
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import torch

from .._common.errors import ArgumentErrors
from .._windows.axis import Axis
from . import _devices, _tensors
from ._tensors import Sizes, Tensor, TorchWindows, axes_in_memory, orders, plan

Axes: TypeAlias = Sequence[Axis]
Numbers: TypeAlias = npt.NDArray[Any]

_FEW = 8  # cells of a window along an axis that are compared one after the other
_ADDED = 64  # terms of a sum that are added one after the other, as in the core
_KEPT = 1 << 20  # most entries of tables that are kept
_HALVES = (torch.float16, torch.bfloat16)
_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64, torch.bool: torch.uint8}

_forced = 0


@contextmanager
def forced() -> Iterator[None]:
    """Run pools of CPU tensors here, too, as on other devices: for tests and comparisons. It holds for all threads."""
    global _forced
    before = _tensors.PLAIN_TYPES[:]
    _tensors.PLAIN_TYPES.clear()  # no tensor goes straight to the core
    _forced += 1
    try:
        yield
    finally:
        _forced -= 1
        _tensors.PLAIN_TYPES += before


def serves(x: Tensor) -> bool:
    """Return True if the core cannot read the tensor, or must not."""
    return _forced > 0 or not x.is_cpu


# ---- the operators, as torch's dispatcher calls them


def choose(x: Tensor, windows: Tensor | None, least: bool, geometry: TorchWindows) -> tuple[Tensor, Tensor]:
    """Return the best cell of each window, and its number in the window."""
    made = choose_along(_laid(x, geometry), *_windows(x.shape, geometry, windows), least)
    y, taps = (_restored(part, geometry) for part in made)
    return y, taps.to(torch.int32 if geometry.wide else torch.uint8)


def apply(v: Tensor, index: Tensor | None, windows: Tensor | None, *words: Any) -> Tensor:
    """Apply a linear operator, or its transpose, to v; arguments as for `_kernels.apply`."""
    kind, divisor, transposed, source, geometry = words
    if kind in ("add", "assign"):
        assert index is not None
        return (unpool if transposed else _recall)(v, index, kind, source, geometry.rank)
    axes, first = _windows(source, geometry, windows)
    cells = _laid(v, geometry)
    if kind == "taps":
        assert index is not None
        return _restored((place if transposed else pick)(cells, _laid(index, geometry), axes, first), geometry)
    return _restored((spread if transposed else fold)(cells, axes, first, kind, divisor), geometry)


def positions(taps: Tensor, windows: Tensor | None, source: Sizes, geometry: TorchWindows) -> Tensor:
    """Return the positions of the taps in their planes: torch's indices."""
    return _restored(positions_along(_laid(taps, geometry), *_windows(source, geometry, windows)), geometry)


def _windows(source: Sizes, geometry: TorchWindows, rows: Tensor | None) -> tuple[Axes, int]:
    """Return the windows of the pooled dimensions, and the first of these dimensions, in memory order."""
    dimensions = axes_in_memory(len(source), geometry)
    return windows_along(source[len(source) - geometry.rank :], geometry, rows), dimensions[0]


def windows_along(lengths: Sizes, geometry: TorchWindows, rows: Tensor | None) -> Axes:
    """Return the windows along pooled dimensions of these lengths."""
    made = plan([1, *lengths], geometry._replace(last=False), rows)  # other dimensions do not matter
    return tuple(axis for axis in made.by_dimension if axis is not None)


def _laid(x: Tensor, geometry: TorchWindows) -> Tensor:
    """Return the tensor with its dimensions in memory order."""
    return x.permute(orders(x.ndim, geometry.rank)[0]) if geometry.last else x


def _restored(x: Tensor, geometry: TorchWindows) -> Tensor:
    """Return the tensor with its dimensions in the caller's order, dense in memory."""
    x = x.contiguous()
    return x.permute(orders(x.ndim, geometry.rank)[1]) if geometry.last else x


# ---- tables: where each step of a loop reads


class Read(NamedTuple):
    """A step along one dimension: the cells that it reads; where it has a cell to read, or None if it does everywhere."""

    cells: slice | Tensor
    inside: Tensor | None


class Table:
    """The windows along one dimension, as the steps of loops over the cells of windows, or over the windows of cells."""

    def __init__(self, axis: Axis, device: torch.device) -> None:
        self.axis, self.device = axis, device
        self.n, self.m, self.k = axis.length, len(axis), max(axis.widest, 1)
        uniform = self.m > 0 and axis.step == 1 and self.n == self.m * self.k and bool((axis.count == self.k).all())
        self.even = uniform and bool((axis.start == np.arange(self.m) * self.k).all())
        self._reads: dict[Any, Read] = {}
        self.vectors: dict[Any, Tensor] = {}

    def vector(self, name: str, make: Callable[[], Numbers] | None = None) -> Tensor:
        """Return an attribute of the axis, or the numbers that `make` returns, on the device."""
        if name not in self.vectors:
            self.vectors[name] = _tensor(getattr(self.axis, name) if make is None else make(), self.device)
        return self.vectors[name]

    def read(self, key: Any, index: Numbers, inside: Numbers | None, length: int) -> Read:
        """Return a step that reads these cells of so many; `key` names it."""
        if key not in self._reads:
            whole = inside is None or bool(inside.all())
            mask = None if whole or inside is None else _tensor(inside, self.device)
            self._reads[key] = Read(_slice(index, length, self.device), mask)
        return self._reads[key]

    def cell(self, o: int) -> Read:
        """Read cell o of each window."""
        axis = self.axis
        known = self._reads.get(o)
        return known or self.read(o, axis.start + o * axis.step, axis.count > o, self.n)

    @property
    def cover(self) -> int:
        """The most windows over one cell."""
        return int(self._covers[1].max(initial=0))

    def window(self, o: int) -> tuple[Read, Tensor, Tensor]:
        """Read the window number o over each cell; return also the number of the cell in it, and the number of its cells."""
        key = "window", o
        if key not in self._reads:
            index, cover = self._over(o)
            inside = cover > o
            self.read(key, index, inside, self.m)
            at = np.clip(index, 0, self.m - 1)
            local = (np.arange(self.n) - self.axis.start[at]) // self.axis.step
            self.vector(f"local {o}", lambda: np.where(inside, local, -1))
            self.vector(f"count {o}", lambda: self.axis.count[at])
        return self._reads[key], self.vectors[f"local {o}"], self.vectors[f"count {o}"]

    def _over(self, o: int) -> tuple[Numbers, Numbers]:
        first, cover = self._covers
        return (first + o if first.ndim == 1 else first[min(o, len(first) - 1)]), cover

    @property
    def interval(self) -> tuple[Numbers, Numbers] | None:
        """The first window over each cell, and their number, if they lie side by side."""
        first, cover = self._covers
        return (first, cover) if first.ndim == 1 else None

    @property
    def _covers(self) -> tuple[Numbers, Numbers]:
        known: tuple[Numbers, Numbers] | None = self.__dict__.get("_cover_tables")
        if known is None:
            known = self.__dict__["_cover_tables"] = _covers(self.axis)
        return known


def _covers(axis: Axis) -> tuple[Numbers, Numbers]:
    """Return the windows over each cell, ascending, and their number: the first ones if they lie side by side, else a row for each."""
    if axis.step == 1:
        back = axis.transpose()
        return back.start, back.count
    window = np.repeat(np.arange(len(axis)), axis.count)
    number = np.arange(len(window)) - np.repeat(np.cumsum(axis.count) - axis.count, axis.count)
    cell = axis.start[window] + number * axis.step
    order = np.argsort(cell, kind="stable")
    cover = np.bincount(cell, minlength=axis.length)
    place = np.arange(len(cell)) - np.repeat(np.cumsum(cover) - cover, cover)
    rows = np.zeros((max(int(cover.max(initial=0)), 1), axis.length), np.int64)
    rows[place, cell[order]] = window[order]
    return rows, cover


def _tensor(values: Numbers, device: torch.device) -> Tensor:
    """Return a table as a tensor on the device; a compiler or a trace sees a constant."""
    with _tensors.untraced():
        return torch.tensor(values.tolist(), dtype=torch.bool if values.dtype == bool else torch.int64, device=device)


def _slice(index: Numbers, length: int, device: torch.device) -> slice | Tensor:
    """Return cells as a slice if they lie evenly, else as a tensor; those outside are moved to the edge."""
    index = np.clip(index, 0, length - 1)
    if len(index) == 1:
        return slice(int(index[0]), int(index[0]) + 1, 1)
    steps = np.diff(index)
    if len(index) and steps[0] > 0 and (steps == steps[0]).all():
        return slice(int(index[0]), int(index[-1]) + 1, int(steps[0]))
    return _tensor(index, device)


def tables(axes: Axes, device: torch.device) -> tuple[Table, ...]:
    """Return the tables of windows on a device; keep them unless a trace or a transform is active."""
    own = tuple(axes)
    if _tensors.traced() or sum(axis.length + len(axis) for axis in own) > _KEPT:
        return tuple(Table(axis, device) for axis in own)
    with torch.inference_mode(False):
        return _known(own, device)


@lru_cache(256)
def _known(axes: tuple[Axis, ...], device: torch.device) -> tuple[Table, ...]:
    return tuple(Table(axis, device) for axis in axes)


def _take(x: Tensor, d: int, read: Read) -> Tensor:
    """Return the cells that a step reads along dimension d."""
    if isinstance(read.cells, slice):
        return x[(slice(None),) * d + (read.cells,)]
    return x.index_select(d, read.cells)


def _along(vector: Tensor, d: int, ndim: int) -> Tensor:
    """Return a vector as a tensor that lies along dimension d."""
    return vector.reshape(-1, *(1,) * (ndim - 1 - d))


def _per_window(made: Sequence[Table], first: int, ndim: int, name: str = "count") -> Tensor | int:
    """Return the product of the numbers of cells along these dimensions, for each window; 1 if there are none."""
    total: Tensor | int = 1
    for i, table in enumerate(made):
        total = total * _along(table.vector(name), first + i, ndim)
    return total


# ---- maxima, taps, positions


def _comparable(x: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return the tensor in a dtype that every device compares, in the same order, and the way back."""
    kind = _SIGNED.get(x.dtype)
    if kind is None:
        return x, lambda y: y
    if kind is torch.uint8:
        return x.to(kind), lambda y: y.to(torch.bool)
    lowest = torch.iinfo(kind).min
    return x.view(kind) ^ lowest, lambda y: (y ^ lowest).view(x.dtype)


def _better(v: Tensor, y: Tensor, least: bool) -> Tensor:
    """Return whether v comes before y: it is larger, or less, or the first NaN."""
    if not v.dtype.is_floating_point:
        return v < y if least else v > y
    return torch.logical_not(((v >= y) if least else (v <= y)) | (y != y))


def choose_along(x: Tensor, axes: Axes, first: int, least: bool) -> tuple[Tensor, Tensor]:
    """Return the best cell of each window, the first of equals, and its tap; a NaN is the best."""
    made = tables(axes, x.device)
    kernels = _devices.kernels(x)
    if kernels is not None and (found := kernels.choose(x, made, first, least)) is not None:
        return found[0], found[1]
    cells, back = _comparable(x)
    y, taps = cells, None
    for i in reversed(range(len(made))):  # the first of the best rows, and in it the first of the best cells
        inner = _per_window(made[i + 1 :], first + i + 1, x.ndim)
        y, taps = _best_along(y, taps, inner, made[i], first + i, least)
    assert taps is not None
    if all(table.k == 1 for table in made):
        y = y.clone()  # else it might be memory of x
    return back(y), taps


def _best_along(
    x: Tensor, code: Tensor | None, inner: Tensor | int, table: Table, d: int, least: bool
) -> tuple[Tensor, Tensor]:
    """Return the best cells along one dimension, and their numbers: `inner` times the number along it, and the code."""
    if table.k <= _FEW:
        return _compared(x, code, inner, table, d, least)
    return (_reduced if table.even else _halved)(x, code, inner, table, d, least)


def _compared(x: Tensor, code: Tensor | None, inner: Any, table: Table, d: int, least: bool) -> tuple[Tensor, Tensor]:
    """Compare the cells of each window one after the other."""
    y = _take(x, d, table.cell(0))
    taps = torch.zeros_like(y, dtype=torch.int64) if code is None else _take(code, d, table.cell(0))
    for o in range(1, table.k):
        read = table.cell(o)
        v = _take(x, d, read)
        better = _better(v, y, least)
        if read.inside is not None:
            better = better & _along(read.inside, d, x.ndim)
        y = torch.where(better, v, y)
        taps = torch.where(better, o * inner if code is None else o * inner + _take(code, d, read), taps)
    return y, taps


def _reduced(x: Tensor, code: Tensor | None, inner: Any, table: Table, d: int, least: bool) -> tuple[Tensor, Tensor]:
    """Reduce windows that lie side by side: find their best, then the first cell that equals it."""
    blocks = x.unflatten(d, (table.m, table.k))
    y = (torch.amin if least else torch.amax)(blocks, d + 1, keepdim=True)
    hits = blocks == y
    if x.dtype.is_floating_point:
        hits = hits | (blocks != blocks)  # no other cell of theirs equals a best that is NaN
    number = _along(torch.arange(table.k, device=x.device), d + 1, blocks.ndim)
    row = torch.where(hits, number, table.k - 1).amin(d + 1, keepdim=True)
    taps = row.squeeze(d + 1) * inner
    if code is not None:
        taps = taps + code.unflatten(d, (table.m, table.k)).gather(d + 1, row).squeeze(d + 1)
    return blocks.gather(d + 1, row).squeeze(d + 1), taps


def _halved(x: Tensor, code: Tensor | None, inner: Any, table: Table, d: int, least: bool) -> tuple[Tensor, Tensor]:
    """Compare blocks of 1, 2, 4, ... cells; two blocks of the longest kind that fits cover a window."""
    axis, step = table.axis, table.axis.step
    level = np.log2(np.maximum(axis.count, 1)).astype(np.int64)
    number = table.vector("number", lambda: np.arange(table.n) // step)
    place = _along(number, d, x.ndim) * inner
    place = torch.broadcast_to(place, x.shape) if code is None else place + code
    y = taps = None
    best, length = x, table.n
    for p in range(int(level.max()) + 1):
        mine = level == p
        if mine.any():
            left = table.read(("left", p), axis.start, mine, length)
            right = table.read(("right", p), axis.start + (axis.count - 2**p) * step, mine, length)
            v, t = _first_best([[_take(b, d, read) for b in (best, place)] for read in (left, right)], least)
            keep = None if left.inside is None else _along(left.inside, d, x.ndim)
            y = v if y is None or keep is None else torch.where(keep, v, y)
            taps = t if taps is None or keep is None else torch.where(keep, t, taps)
        length -= 2**p * step
        if length > 0:
            halves = [[b.narrow(d, at, length) for b in (best, place)] for at in (0, 2**p * step)]
            best, place = _first_best(halves, least)
    assert y is not None
    assert taps is not None
    return y, taps - _along(table.vector("from", lambda: axis.start // step), d, x.ndim) * inner


def _first_best(pairs: Sequence[Sequence[Tensor]], least: bool) -> tuple[Tensor, Tensor]:
    """Return the better one of two, each (values, places); the first if they are equal."""
    (v, p), (w, q) = pairs
    better = _better(w, v, least)
    return torch.where(better, w, v), torch.where(better, q, p)


def positions_along(taps: Tensor, axes: Axes, first: int) -> Tensor:
    """Return the positions of the taps in their planes."""
    made, left = tables(axes, taps.device), taps.to(torch.int64)
    where, stride = torch.zeros_like(left), 1
    for i in reversed(range(len(made))):
        table, d = made[i], first + i
        count = _along(table.vector("count"), d, taps.ndim)
        number = left if i == 0 else torch.remainder(left, count)
        where = where + (_along(table.vector("start"), d, taps.ndim) + number * table.axis.step) * stride
        left, stride = torch.div(left, count, rounding_mode="floor"), stride * table.n
    return where


def pick(v: Tensor, taps: Tensor, axes: Axes, first: int) -> Tensor:
    """Return v at the tap of each window."""
    if not taps.numel():
        return v.new_empty(taps.shape)
    kernels = _devices.kernels(v)
    if kernels is not None and (found := kernels.pick(v, taps, tables(axes, v.device), first)) is not None:
        return cast(Tensor, found)
    cells, back = _signed(v)
    last = first + len(axes) - 1
    where = positions_along(taps, axes, first).flatten(first, last)
    return back(cells.flatten(first, last).gather(first, where).unflatten(first, taps.shape[first : last + 1]))


def _signed(x: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return the bits of a tensor in a dtype that every device gathers and adds, and the way back."""
    kind = _SIGNED.get(x.dtype)
    return (x, lambda y: y) if kind is None else (x.view(kind), lambda y: y.view(x.dtype))


def place(g: Tensor, taps: Tensor, axes: Axes, first: int) -> Tensor:
    """Add each cell of g at its tap: each cell of the result asks the windows over it, in their order."""
    made = tables(axes, g.device)
    shape = (*g.shape[:first], *(table.n for table in made), *g.shape[first + len(made) :])
    if not g.numel():
        return g.new_zeros(shape)
    cells, back = _signed(g)
    several = prod(table.cover for table in made) > 1
    wide = torch.float32 if several and g.dtype in _HALVES else cells.dtype
    kernels = _devices.kernels(g)
    if kernels is not None and (found := kernels.gather(g, taps, made, first, wide, g.dtype)) is not None:
        return cast(Tensor, found)
    total: Any = None
    for v, t, wanted in _over(cells, taps.to(torch.int64), made, first):
        part = torch.where(t == wanted, v, 0).to(wide)
        total = part if total is None else total + part
    return back((total + 0).to(cells.dtype))  # a sum starts at 0, so -0 becomes 0


def _over(
    g: Tensor, taps: Tensor, made: Sequence[Table], d: int, wanted: Any = None
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield the windows over each cell: what they hold, their taps, and the number of the cell in them, or -1."""
    if not made:
        yield g, taps, wanted
        return
    for o in range(made[0].cover):
        read, local, count = made[0].window(o)
        local, count = _along(local, d, g.ndim), _along(count, d, g.ndim)
        number = local
        if wanted is not None:
            number = torch.where((wanted < 0) | (local < 0), -1, wanted * count + local)
        yield from _over(_take(g, d, read), _take(taps, d, read), made[1:], d + 1, number)


# ---- sums


@lru_cache(16)
def _float64(device: torch.device) -> bool:
    """Return whether the device computes in float64."""
    if device.type == "xpu":
        return bool(torch.xpu.get_device_properties(device).has_fp64)
    return device.type != "mps"


def _wide(x: Tensor, terms: int) -> torch.dtype:
    """Return the dtype in which so many terms are added up."""
    if not x.dtype.is_floating_point:
        return torch.int64
    if x.dtype is torch.float64 or (x.dtype not in _HALVES and terms <= _ADDED):
        return x.dtype
    return torch.float64 if _float64(x.device) else torch.float32


def fold(x: Tensor, axes: Axes, first: int, kind: str, divisor: float) -> Tensor:
    """Return sums over windows, divided: `kind` and `divisor` as in `_kernels.apply`."""
    made = tables(axes, x.device)
    if not x.dtype.is_floating_point:
        return _whole_means(x, made, first, kind, divisor)
    if x.dtype in _HALVES and not (kind == "mean" or (kind == "sum" and divisor == 1)):
        return fold(x.float(), axes, first, kind, divisor).to(x.dtype)
    total = _sums(x, made, first)
    if kind == "mean":
        return _divided(total, made, first, "count").to(x.dtype)
    total = total.to(x.dtype)
    return total / divisor if kind == "sum" else _divided(total, made, first, "span")


def _divided(total: Tensor, made: Sequence[Table], first: int, name: str) -> Tensor:
    """Divide each sum by the cells of its window."""
    same = [{*getattr(table.axis, name).tolist()} for table in made]
    if all(len(numbers) == 1 for numbers in same):
        cells = prod(n for numbers in same for n in numbers)
        return total / cells if cells > 1 else total
    counts = _per_window(made, first, total.ndim, name)
    assert isinstance(counts, torch.Tensor)
    return total / counts.to(total.dtype)


def _sums(x: Tensor, made: Sequence[Table], first: int) -> Tensor:
    """Return the sums over windows: one term after the other, or long ones axis by axis."""
    terms = prod(table.k for table in made)
    wide = _wide(x, terms)
    if terms <= _ADDED:
        kernels = _devices.kernels(x)
        if kernels is not None and (found := kernels.sums(x, made, first, wide)) is not None:
            return cast(Tensor, found)
        return _added((v.to(wide), ok) for v, ok in _cells(x, None, made, first))
    total = x.to(wide)
    for i in reversed(range(len(made))):
        table, d = made[i], first + i
        if table.even:
            total = total.unflatten(d, (table.m, table.k)).sum(d + 1)
        else:
            total = _blocks(total, table, table.n, table.axis.start, table.axis.count, table.axis.step, d)
    return total + 0


def _added(parts: Any) -> Tensor:
    """Add parts up, each where it is inside."""
    total: Any = None
    for v, inside in parts:
        part = v if inside is None else torch.where(inside, v, 0)
        total = part + 0 if total is None else total + part
    summed: Tensor = total
    return summed


def _cells(x: Tensor, inside: Tensor | None, made: Sequence[Table], d: int) -> Any:
    """Yield the cells of each window one after the other, with whether they are inside."""
    if not made:
        yield x, inside
        return
    for o in range(made[0].k):
        yield from _cells(*_joined(x, inside, made[0].cell(o), d), made[1:], d + 1)


def _joined(x: Tensor, inside: Tensor | None, read: Read, d: int) -> tuple[Tensor, Any]:
    own = None if read.inside is None else _along(read.inside, d, x.ndim)
    return _take(x, d, read), own if inside is None else inside if own is None else inside & own


def _blocks(x: Tensor, table: Table, length: int, start: Numbers, count: Numbers, step: int, d: int) -> Tensor:
    """Return sums over intervals from blocks of 1, 2, 4, ... cells: one block for each binary digit of their number."""
    at, total = start.copy(), None
    for p in range(int(count.max(initial=1)).bit_length()):
        mine = (count >> p) & 1 == 1
        if mine.any():
            read = table.read(("block", start is table.axis.start, p), at, mine, length)
            part = _take(x, d, read)
            part = part if read.inside is None else torch.where(_along(read.inside, d, x.ndim), part, 0)
            total = part if total is None else total + part
            at = at + mine * 2**p * step
        length -= 2**p * step
        if length > 0:
            x = x.narrow(d, 0, length) + x.narrow(d, 2**p * step, length)
    assert total is not None
    return total


def spread(g: Tensor, axes: Axes, first: int, kind: str, divisor: float) -> Tensor:
    """Give each cell of a window its share of g: the transpose of `fold`."""
    made = tables(axes, g.device)
    if not g.numel():
        return g.new_zeros((*g.shape[:first], *(table.n for table in made), *g.shape[first + len(made) :]))
    half = g.dtype in _HALVES
    if kind == "mean":
        if half:
            return _shared(_divided(g.to(_wide(g, 1)), made, first, "count"), made, first, g.dtype)
        return _shared(g * _reciprocals(made, first, g), made, first, g.dtype)
    wide = g.float() if half and not (kind == "sum" and divisor == 1) else g
    shares = wide / divisor if kind == "sum" else _divided(wide, made, first, "span")
    return _shared(shares, made, first, g.dtype)


def _reciprocals(made: Sequence[Table], first: int, g: Tensor) -> Tensor | float:
    """Return 1/count for each window, rounded once to the dtype of g."""
    counts = [table.axis.count for table in made]
    if all(len({*count.tolist()}) == 1 for count in counts):
        return 1 / prod(int(count[0]) for count in counts)
    name = f"weights {g.dtype}"  # kept with the first table, which no other windows share
    if name not in made[0].vectors:
        cells = reduce(np.multiply, np.ix_(*counts)).astype(np.float64)
        made[0].vectors[name] = torch.tensor((1 / cells).tolist(), dtype=g.dtype, device=g.device)
    weights = made[0].vectors[name]
    return weights.reshape(*weights.shape, *(1,) * (g.ndim - first - len(made)))


def _shared(g: Tensor, made: Sequence[Table], first: int, dtype: torch.dtype) -> Tensor:
    """Add up, for each cell, what the windows over it hold; round to the dtype."""
    terms = prod(table.cover for table in made)
    long = terms > _ADDED and all(table.interval for table in made)
    wide = _wide(g, terms)
    if not long:
        kernels = _devices.kernels(g)
        if kernels is not None and (found := kernels.gather(g, None, made, first, wide, dtype)) is not None:
            return cast(Tensor, found)
        return _added((v.to(wide), ok) for v, ok in _holders(g, None, made, first)).to(dtype)
    total = g.to(wide)
    for i in reversed(range(len(made))):
        interval = made[i].interval
        assert interval is not None
        total = _blocks(total, made[i], made[i].m, *interval, 1, first + i)
    return (total + 0).to(dtype)


def _holders(g: Tensor, inside: Tensor | None, made: Sequence[Table], d: int) -> Any:
    """Yield what the windows over each cell hold, one after the other, with whether there is one."""
    if not made:
        yield g, inside
        return
    for o in range(made[0].cover):
        yield from _holders(*_joined(g, inside, made[0].window(o)[0], d), made[1:], d + 1)


def _whole_means(x: Tensor, made: Sequence[Table], first: int, kind: str, divisor: float) -> Tensor:
    """Return means of integers, exact and cut off toward zero; one that the dtype does not hold wraps around."""
    by: Any = 1
    if kind == "sum":
        if divisor != int(divisor) or abs(divisor) >= 2**31:
            wanted = f"an integer within 32 bits for integers on {x.device}"
            ArgumentErrors("pool").fail("divisor", divisor, wanted, NotImplementedError)
        by = abs(int(divisor))
    else:
        by = _per_window(made, first, x.ndim, "span" if kind == "padded" else "count")
    cells, back = _signed(x)
    negated = kind == "sum" and divisor < 0
    if x.dtype not in (torch.int64, torch.uint64, torch.uint32):
        total = _sums((x if x.dtype is not torch.uint16 else cells.to(torch.int32) & 0xFFFF), made, first)
        made_means = torch.div(-total if negated else total, by, rounding_mode="trunc")
        return back(made_means.to(cells.dtype))
    # two numbers of 32 bits: neither sum leaves 64 bits
    wide = cells.to(torch.int64)
    high = wide >> 32 if x.dtype is torch.int64 else (wide >> 32) & 0xFFFFFFFF
    if x.dtype is torch.uint32:
        high = torch.zeros_like(wide)
    upper, lower = _sums(high, made, first), _sums(wide & 0xFFFFFFFF, made, first)
    if negated:
        upper, lower = -upper, -lower
    upper, lower = upper + (lower >> 32), lower & 0xFFFFFFFF
    quotient = torch.div(upper, by, rounding_mode="floor")
    rest = ((upper - quotient * by) << 32) + lower
    low = torch.div(rest, by, rounding_mode="floor")
    cut = (quotient << 32) + low
    toward_zero = (upper < 0) & (rest - low * by != 0)
    return back((cut + toward_zero.to(torch.int64)).to(cells.dtype))


# ---- unpooling


def unpool(v: Tensor, index: Tensor, kind: str, source: Sizes, rank: int) -> Tensor:
    """Put values at positions of planes of zeros: added up where positions repeat ("add"), or the last one ("assign").

    Positions outside their planes are left out: to refuse them would mean to wait for the device.
    """
    source = tuple(source)
    if 0 in source[len(source) - rank :] or (type(v.numel()) is int and not v.numel()):
        return v.new_zeros(source)
    cells, back = _signed(v)
    values, _, start, stop = _sorted(index, source, rank, cells)
    if kind == "assign":
        last = torch.where(stop > start, values.gather(-1, (stop - 1).clamp(min=0)), 0)
        return back(last).reshape(source)
    number = torch.float32 if v.dtype in _HALVES else cells.dtype
    count, at, block = stop - start, start, values.to(number)
    total = torch.zeros(start.shape, dtype=number, device=v.device)
    for p in range(values.shape[-1].bit_length()):
        mine = (count >> p) & 1
        total = total + torch.where(mine == 1, block.gather(-1, at.clamp(max=block.shape[-1] - 1)), 0)
        at = at + (mine << p)
        left = block.shape[-1] - 2**p
        if left <= 0:
            break
        block = block[..., :left] + block[..., 2**p :]
    return back(total.to(cells.dtype)).reshape(source)


def _sorted(index: Tensor, source: Sizes, rank: int, values: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sort values by position, stably; return them, their order, and for each cell of the planes where its values start and stop."""
    first = index.ndim - rank
    where, order = index.flatten(first).sort(dim=-1, stable=True)
    cells = torch.arange(prod(source[first:]), device=index.device).expand(*where.shape[:-1], -1).contiguous()
    start, stop = (torch.searchsorted(where, cells, right=right) for right in (False, True))
    return values.flatten(first).gather(-1, order), order, start, stop


def _recall(v: Tensor, index: Tensor, kind: str, source: Sizes, rank: int) -> Tensor:
    """Return v at the positions: the transpose of `unpool`."""
    if not index.numel() or not v.numel():
        return v.new_zeros(index.shape)
    first = index.ndim - rank
    cells, back = _signed(v)
    flat, where = cells.flatten(first), index.flatten(first)
    inside = (where >= 0) & (where < flat.shape[-1])
    where = where.clamp(0, flat.shape[-1] - 1)
    if kind == "assign":
        numbers = torch.arange(where.shape[-1], device=v.device).expand(where.shape)
        _, order, start, stop = _sorted(index, source, rank, index)
        last = torch.where(stop > start, order.gather(-1, (stop - 1).clamp(min=0)), -1)
        inside = inside & (last.gather(-1, where) == numbers)
    return back(torch.where(inside, flat.gather(-1, where), 0)).reshape(index.shape)
