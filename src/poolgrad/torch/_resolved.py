"""Pools with resolved arguments: windows, layout and kernels for tensors of one shape and dtype.

A public function resolves its arguments once and keeps the pool (`_arguments.ranks`). `plain` runs the core on the memory of a tensor
that nothing watches; `traced` goes through torch's transforms and dispatcher. Backward uses the kernels that forward used.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import cached_property, partial
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import torch
from torch.autograd import forward_ad

from .._ops.semantics import Mean, Share
from .._windows.axis import Axis
from .._windows.plan_cache import SHORT, entries
from . import _custom_ops, _deployment, _kernels
from ._autograd import Apply, Choose, run
from ._tensors import Sizes, Tensor, TorchWindows, Windows, orders, plan, plan_of, readable, rows_of, unwatched

_is_grad_enabled = torch.is_grad_enabled
_FEW = 4096  # cells that NumPy copies faster than torch


class Kind(IntEnum):
    """Names the results of pools; calls.hpp has the same numbers."""

    BEST, MEAN, NORM = range(3)


class Divide(IntEnum):
    """By what the compiled part divides sums: by nothing beyond the core's rule, by spans, or by a number. As in few.hpp."""

    RULES, SPANS, NUMBER = range(3)


class Lesson(NamedTuple):
    """Tells the compiled part how to run a pool.

    The windows are `axes`, as (length, starts, stops, spans); or each call draws them, by the fields from `lengths` on.
    """

    outer: int
    inner: int
    axes: Any
    kind: Kind
    least: bool = False
    indices: bool = False
    wide: bool = False  # whether taps have four bytes
    mean: int = 0  # a rule of the core for sums, and for shares
    share: int = 0
    divide: Divide = Divide.RULES
    by: float = 1.0
    power: float = 2.0
    lengths: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    kernel: tuple[int, ...] = ()  # of windows of one size
    pseudo_random: bool = False
    overlapping: bool = False


class Pool:
    """A pool with resolved arguments."""

    def plain(self, x: Tensor) -> Any:
        """Pool a tensor that `readable` accepts."""
        return self.traced(x)

    def traced(self, x: Tensor) -> Any:
        """Pool any tensor."""
        raise NotImplementedError

    def run(self, x: Tensor) -> Any:
        """Pool a tensor on the shortest way that it allows."""
        return self.plain(x) if readable(x) else self.traced(x)

    def written(self, x: Tensor, graph: _deployment.Graph) -> Any:
        """Pool a tensor by operations that the graph can hold."""
        raise NotImplementedError

    def short(self) -> bool:
        """Return True if the tables of the windows are short enough to keep the pool."""
        raise NotImplementedError

    def lesson(self) -> Lesson | None:
        """Return what the compiled part must know to run the pool; None if it cannot."""
        return None

    def seeded(self, seed: Any) -> Pool | None:
        """Return the pool with windows from this seed; None if it draws none."""
        return None


class CorePool(Pool):
    """A pool that calls the core once in each direction.

    `array` views a tensor as the array that the core reads, and `tensor` a result of the core as a tensor.
    `value` and `forward` run it on the memory of x; `forward` also returns the tensor that backward needs, or None. `pull` runs its
    transpose on the memory of g, `pull_traced` on any g.
    """

    indices = False  # True if the caller wants positions, too
    axes: tuple[Axis, ...] | None  # the windows, if they were drawn at random
    array: Callable[[Tensor], Any]
    tensor: Callable[[Any], Tensor]

    def __init__(self, source: Sizes, dtype: torch.dtype, geometry: TorchWindows, windows: Windows = None) -> None:
        self.source, self.dtype, self.geometry, self.axes = source, dtype, geometry, None
        if isinstance(windows, tuple):
            self.axes = windows
        else:
            self.windows = windows
        self.array, self.tensor = _array, torch.from_numpy
        if geometry.last or dtype is torch.bfloat16:  # axes move, or NumPy lacks the dtype
            self.array, self.tensor = partial(_moved_array, geometry), partial(_moved_tensor, geometry)

    def plain(self, x: Tensor) -> Any:
        """Pool a tensor that `readable` accepts; record the pool in torch's graph only if a derivative is wanted."""
        if forward_ad._current_level >= 0:
            return self.traced(x)
        try:
            if x.requires_grad and _is_grad_enabled():
                return _record(x, self)
            if not self.indices:
                return self.value(x)
            y, taps = self.forward(x)
        except RuntimeError:  # from x.numpy(): x is more than its memory, as a negated view is
            return self.traced(x)
        return y, self.positions(taps)

    def value(self, x: Tensor) -> Tensor:
        """Return the result alone."""
        return self.forward(x)[0]

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the result, and the tensor that backward needs."""
        raise NotImplementedError

    def positions(self, taps: Any) -> Tensor:
        """Return torch's indices."""
        raise NotImplementedError

    def backward(self, g: Tensor, kept: Tensor | None = None, _: Tensor | None = None) -> Tensor:
        """Return the gradient with respect to x."""
        if readable(g) and forward_ad._current_level < 0 and not (g.requires_grad and _is_grad_enabled()):
            try:
                return self.pull(g, kept)
            except (RuntimeError, *_kernels.UNREADABLE):
                pass
        return self.pull_traced(g, kept)

    def pull(self, g: Tensor, kept: Any) -> Tensor:
        """Return the gradient of a tensor that `readable` accepts."""
        return self.pull_traced(g, kept)

    def pull_traced(self, g: Tensor, kept: Any) -> Tensor:
        """Return the gradient of any tensor."""
        raise NotImplementedError

    def short(self) -> bool:
        """Return True if the tables of the windows are short enough to keep the pool."""
        return entries(self.plan) <= SHORT

    def lesson(self) -> Lesson | None:
        """Return what the compiled part must know to run the pool; None if it cannot."""
        if self.windows is not None:
            return None
        made = self.plan
        axes = [(axis.length, *(t.tolist() for t in (axis.start, axis.stop, axis.span))) for axis in made.axes]
        return self.rules(Lesson(made.outer, made.inner, axes, Kind.BEST))

    def rules(self, lesson: Lesson) -> Lesson | None:
        """Return the lesson with the rules of this pool; None if the compiled part has none for it."""
        return None

    @property
    def plan(self) -> Any:
        """The windows, with the axes in memory order."""
        if self.axes is not None:
            return self._own_plan
        return plan(self.source, self.geometry, self.windows)

    @cached_property
    def _own_plan(self) -> Any:
        assert self.axes is not None
        return plan_of(self.source, self.geometry, self.axes)

    @property
    def given(self) -> Windows:
        """The windows, if the geometry does not tell them: as axes if they are known, else as a tensor."""
        return self.windows if self.axes is None else self.axes

    @cached_property
    def windows(self) -> Tensor | None:
        """The windows as a tensor, if the geometry does not tell them."""
        return None if self.axes is None else rows_of(self.axes)


def _array(x: Tensor) -> Any:
    """View a tensor as the array that the core reads."""
    if x.is_contiguous():
        return x.numpy()
    return np.ascontiguousarray(x.numpy()) if x.numel() < _FEW else x.contiguous().numpy()


def _moved_array(geometry: TorchWindows, x: Tensor) -> Any:
    """View a tensor as the array that the core reads, with the channels where the windows have them."""
    x = x.permute(orders(x.ndim, geometry.rank)[0]) if geometry.last else x
    if x.dtype is not _HALF:
        return _array(x)
    return _array(x.view(torch.int16)).view(ml_dtypes.bfloat16)  # which NumPy knows by its bits alone


def _moved_tensor(geometry: TorchWindows, array: Any) -> Tensor:
    """Return an array of the core as a tensor, its axes in the caller's order."""
    half = array.dtype == ml_dtypes.bfloat16
    made = torch.from_numpy(array.view(np.int16)).view(_HALF) if half else torch.from_numpy(array)
    return made.permute(orders(made.ndim, geometry.rank)[1]) if geometry.last else made


_HALF = torch.bfloat16
_HALVES = (torch.float16, torch.bfloat16)


class Best(CorePool):
    """The best cell of each window, and its position if the caller wants it."""

    def __init__(self, x: Tensor, geometry: TorchWindows, windows: Windows, least: bool, return_indices: bool) -> None:
        super().__init__(x.shape, x.dtype, geometry, windows)
        self.least, self.indices = least, return_indices

    @cached_property
    def _kernel(self) -> _kernels.Choice | None:
        return _kernels.choice(self.plan, self.dtype, self.least, self.geometry)

    def traced(self, x: Tensor) -> Any:
        """Return the best cells, and their positions."""
        y, taps = run(Choose, x, self.windows, self.least, self.geometry)
        if not self.indices:
            return y
        if unwatched(taps):
            return y, self.positions(taps)
        return y, _custom_ops.positions(taps, self.windows, x.shape, *self.geometry)

    def written(self, x: Tensor, graph: _deployment.Graph) -> Any:
        """Return the best cells, and their positions."""
        return _deployment.best(x, self.geometry, self.given, self.least, self.indices, self.source, graph)

    def value(self, x: Tensor) -> Tensor:
        """Return the best cells."""
        kernel = self._kernel
        if kernel is not None:
            try:
                return self.tensor(kernel.select(self.array(x)))
            except _kernels.UNREADABLE:
                pass
        return self.forward(x)[0]

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the best cells and their taps."""
        kernel = self._kernel
        if kernel is not None:
            try:
                y, taps = kernel.choose(self.array(x))
                return self.tensor(y), self.tensor(taps)
            except _kernels.UNREADABLE:
                pass
        return _kernels.choose(x, self.windows, self.least, self.geometry)

    def pull(self, g: Tensor, kept: Any) -> Tensor:
        """Add each cell of g at its tap."""
        if self._kernel is None:
            return self.pull_traced(g, kept)
        return self.tensor(self._kernel.place(self.array(g), self.array(kept)))

    def pull_traced(self, g: Tensor, kept: Any) -> Tensor:
        """Add each cell of g at its tap."""
        dx: Tensor = run(Apply, g, kept, self.windows, "taps", 1.0, True, self.source, self.geometry)
        return dx

    def rules(self, lesson: Lesson) -> Lesson | None:
        """Return the lesson with the rules of this pool; None if the compiled part has none for it."""
        if not _kernels.chooses(self.dtype) or (lesson.axes is not None and self._kernel is None):
            return None
        return lesson._replace(kind=Kind.BEST, least=self.least, indices=self.indices, wide=self.geometry.wide)

    @cached_property
    def _places(self) -> Any:
        drawn = self.axes is not None or self.windows is not None
        return None if drawn else _kernels.places(self.plan, self.geometry)

    def positions(self, taps: Tensor) -> Tensor:
        """Return the positions of the taps in their planes."""
        if self._places is None:
            return _kernels.positions(taps, self.windows, self.source, self.geometry)
        return self.tensor(self._places(self.array(taps)))


class Means(CorePool):
    """Sums over windows, divided: `kind` and `divisor` as in `_kernels.apply`."""

    def __init__(
        self,
        x: Tensor,
        geometry: TorchWindows,
        windows: Windows,
        kind: str,
        divisor: float = 1.0,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(x.shape, dtype or x.dtype, geometry, windows)
        self.kind, self.divisor = kind, divisor

    @property
    def _operator(self) -> Any:
        if self.axes is not None:
            return _kernels.averaging(self.plan, self.kind, self.divisor)
        return _kernels.mean(tuple(self.source), self.windows, self.kind, self.divisor, self.geometry)

    @cached_property
    def _kernel(self) -> _kernels.Average | None:
        return _kernels.average(self._operator, self.dtype)

    def rules(self, lesson: Lesson) -> Lesson | None:
        """Return the lesson with the rules of this pool; None if the compiled part has none for it."""
        made = lesson._replace(kind=Kind.MEAN)
        if not self.dtype.is_floating_point:
            return None
        half = self.dtype in _HALVES
        if lesson.axes is None or self.kind == "mean":
            return made._replace(mean=Mean.ONCE, share=Share.QUOTIENT if half else Share.RECIPROCAL)
        operator = self._operator
        if _kernels.dilated(operator.plan):
            return None
        rule = operator.rule(_kernels.number(self.dtype))
        divide = Divide.SPANS if operator.spans else Divide.NUMBER
        if rule is Mean.TOTAL:
            divide = Divide.RULES
        if np.ndim(operator.divisor) and operator.divisor.dtype == object:  # spans beyond 2**53
            return None
        by = 1.0 if np.ndim(operator.divisor) else float(operator.divisor)
        return made._replace(mean=Mean.TOTAL if rule is None else rule, share=Share.WHOLE, divide=divide, by=by)

    def traced(self, x: Tensor) -> Any:
        """Return the means."""
        return run(Apply, x, None, self.windows, self.kind, self.divisor, False, x.shape, self.geometry)

    def written(self, x: Tensor, graph: _deployment.Graph) -> Any:
        """Return the means."""
        return _deployment.means(x, self.geometry, self.given, self.kind, self.divisor, self.source, graph)

    def value(self, x: Tensor) -> Tensor:
        """Return the means."""
        kernel = self._kernel
        if kernel is not None:
            try:
                return self.tensor(kernel.fold(self.array(x)))
            except _kernels.UNREADABLE:
                pass
        return _kernels.apply(x, None, self.windows, self.kind, self.divisor, False, self.source, self.geometry)

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        """Return the means."""
        return self.value(x), None

    def pull(self, g: Tensor, kept: Any) -> Tensor:
        """Give each cell of a window its share of g."""
        if self._kernel is None:
            return self.pull_traced(g, kept)
        return self.tensor(self._kernel.spread(self.array(g)))

    def pull_traced(self, g: Tensor, kept: Any) -> Tensor:
        """Give each cell of a window its share of g."""
        dx: Tensor = run(Apply, g, None, self.windows, self.kind, self.divisor, True, self.source, self.geometry)
        return dx


class Unpooling(CorePool):
    """Values at their positions in planes of zeros: added up where positions repeat (`kind` "add"), or the last one ("assign")."""

    def __init__(self, x: Tensor, index: Tensor, kind: str, source: Sizes, rank: int) -> None:
        super().__init__(source, x.dtype, TorchWindows(rank))
        self.positions_given, self.index, self.kind = index, index.to(torch.int64), kind

    def traced(self, x: Tensor) -> Any:
        """Return the planes."""
        return run(Apply, x, self.index, None, self.kind, 1.0, True, self.source, self.geometry)

    def written(self, x: Tensor, graph: _deployment.Graph) -> Any:
        """Return the planes."""
        lengths = self.source[len(self.source) - self.geometry.rank :]
        return _deployment.unpooling(x, self.positions_given, self.kind, lengths, graph)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the planes and the positions."""
        if not unwatched(self.index):
            raise RuntimeError("positions that torch watches")
        return _kernels.apply(x, self.index, None, self.kind, 1.0, True, self.source, self.geometry), self.index

    def pull_traced(self, g: Tensor, kept: Any) -> Tensor:
        """Return g at the positions."""
        dy: Tensor = run(Apply, g, kept, None, self.kind, 1.0, False, self.source, self.geometry)
        return dy


class _Recorded(torch.autograd.Function):
    """A pool of a plain tensor in torch's graph."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, pool: CorePool) -> Any:
        """Run the pool; save the tensor that backward needs."""
        y, kept = pool.forward(x)
        ctx.pool = pool
        if kept is None:
            return y
        ctx.save_for_backward(kept)
        ctx.set_materialize_grads(False)
        if not pool.indices:
            return y
        where = pool.positions(kept)
        ctx.mark_non_differentiable(where)
        return y, where

    @staticmethod
    def backward(ctx: Any, g: Tensor | None, _: Any = None) -> Any:
        """Run the transpose of the pool."""
        kept = ctx.saved_tensors  # raises an error if the graph is gone
        return (None if g is None else ctx.pool.backward(g, *kept)), None


_record = super(torch.autograd.Function, _Recorded).apply  # skips torch's code for transforms, of which none is active
