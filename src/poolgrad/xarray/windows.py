"""Turn windows by the names of dimensions into arguments of pools, and into the cells that each window reads."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.errors import ArgumentErrors, short_repr
from .._pooling.adaptive_global import adaptive
from .._pooling.window_args import WindowArgs, boundaries, integer_list, is_several, resolve
from .._windows.axis import Axis
from .._windows.sliding import same_pads, whole

Cells = npt.NDArray[np.int64]
BOUNDARIES = ("exact", "trim", "pad")
SIDES = ("left", "right")


@dataclass(frozen=True)
class Along:
    """The windows along one dimension of `length` cells, the first `skip` of which are left out."""

    length: int
    window: Any  # a length, or boundaries
    stride: int = 1
    dilation: int = 1
    pads: tuple[int, int] = (0, 0)
    skip: int = 0

    @cached_property
    def axis(self) -> Axis:
        """The cells of each window, counted without the skipped ones."""
        if isinstance(self.window, Axis):
            return self.window
        words = WindowArgs([self.window], self.stride, [self.pads], self.dilation, None, None, False)
        axis = resolve(ArgumentErrors("pool"), (self.length - self.skip,), words).plan.by_dimension[0]
        assert axis is not None
        return axis

    @property
    def last(self) -> Cells:
        """The last cell of each window."""
        return self.axis.start + (self.axis.count - 1) * self.axis.step

    @property
    def cut(self) -> Cells:
        """The number of cells of each window that the left edge cut off."""
        if isinstance(self.window, Axis):
            return np.zeros(len(self.axis), np.int64)
        return np.maximum(-(-(self.pads[0] - np.arange(len(self.axis)) * self.stride) // self.dilation), 0)

    @property
    def middle(self) -> Cells:
        """The middle cell of each window, the first of two; that of the window before the edges cut it, or the cell next to it."""
        axis = self.axis
        if isinstance(self.window, Axis):
            return axis.start + (axis.count - 1) // 2 * axis.step
        starts = np.arange(len(axis)) * self.stride - self.pads[0]
        return np.clip(starts + (self.window - 1) // 2 * self.dilation, axis.start, self.last)


Named = Mapping[Hashable, Along]


def arguments(windows: Named, dims: Sequence[Hashable]) -> dict[str, Any]:
    """Return the window arguments of a pool of an array with these dimensions."""
    pooled = [(axis, windows[dim]) for axis, dim in enumerate(dims) if dim in windows]
    return {
        "window": [w.window for _, w in pooled],
        "stride": [w.stride for _, w in pooled],
        "padding": [w.pads for _, w in pooled],
        "dilation": [w.dilation for _, w in pooled],
        "axes": [axis for axis, _ in pooled],
    }


# ---- names of dimensions


def by_name(
    problems: ArgumentErrors, name: str, sizes: Mapping[Any, int], given: Any, more: Mapping[str, Any]
) -> dict[Hashable, Any]:
    """Return one value per dimension from a mapping and from keywords; refuse dimensions that are not there."""
    wanted = "a mapping from dimensions to values, or a keyword for each dimension"
    if given is not None and not isinstance(given, Mapping):
        problems.fail(name, short_repr(given), wanted, TypeError)
    found: dict[Hashable, Any] = dict(given or {})
    twice = [d for d in more if d in found]
    if twice:
        problems.fail(name, f"{twice[0]!r} in the mapping and as a keyword", "each dimension once")
    found.update(more)
    if not found:
        problems.fail(name, "nothing", wanted)
    _known(problems, name, found, sizes)
    return found


def _known(problems: ArgumentErrors, name: str, given: Mapping[Any, Any], among: Mapping[Any, Any]) -> None:
    for dim in given:
        if dim not in among:
            got = f"the dimension {short_repr(dim)}"
            problems.fail(name, got, f"some of {short_repr(list(among))}")


def dims_of(problems: ArgumentErrors, sizes: Mapping[Any, int], dims: Any) -> list[Hashable]:
    """Return the named dimensions: one, several, or all if there is no name."""
    if dims is None or dims is ...:
        return list(sizes)
    single = isinstance(dims, str) or not isinstance(dims, Iterable) or (isinstance(dims, Hashable) and dims in sizes)
    found = [dims] if single else list(dims)
    if len(set(found)) != len(found):
        problems.fail("dims", short_repr(dims), "different dimensions")
    _known(problems, "dims", dict.fromkeys(found), sizes)
    return found


def _each(problems: ArgumentErrors, name: str, value: Any, dims: Mapping[Any, Any], otherwise: Any) -> dict[Any, Any]:
    """Return the value of each dimension: the same for all, or those of a mapping."""
    if not isinstance(value, Mapping):
        return dict.fromkeys(dims, value)
    _known(problems, name, value, dims)
    return {dim: value.get(dim, otherwise) for dim in dims}


def _integer(problems: ArgumentErrors, name: str, value: Any, least: int) -> int:
    if is_several(value):
        problems.fail(
            name, short_repr(value), f"an integer of at least {least}, or a mapping from dimensions", TypeError
        )
    (found,) = integer_list(problems, name, value, None, least)
    return found


# ---- windows that slide


def sliding(
    problems: ArgumentErrors,
    sizes: Mapping[Any, int],
    windows: Mapping[Hashable, Any],
    *,
    stride: Any,
    padding: Any,
    dilation: Any,
    boundary: Any,
    side: Any,
) -> dict[Hashable, Along]:
    """Return the windows along each dimension; refuse those that do not fit if the boundary is to be exact."""
    strides = _each(problems, "stride", stride, windows, None)
    paddings = _each(problems, "padding", padding, windows, "valid")
    dilations = _each(problems, "dilation", dilation, windows, 1)
    ends = _each(problems, "boundary", boundary, windows, "exact")
    sides = _each(problems, "side", side, windows, "left")
    made: dict[Hashable, Along] = {}
    for dim, given in windows.items():
        for name, value, allowed in (("boundary", ends[dim], BOUNDARIES), ("side", sides[dim], SIDES)):
            if not isinstance(value, str) or value not in allowed:
                problems.fail(name, short_repr(value), " or ".join(map(repr, allowed)))
        n = sizes[dim]
        if isinstance(given, Axis) or is_several(given):
            made[dim] = Along(n, boundaries(problems, n, given))
            continue
        k = _integer(problems, f"window[{dim!r}]", given, 1)
        s = k if strides[dim] is None else _integer(problems, f"stride[{dim!r}]", strides[dim], 1)
        d = _integer(problems, f"dilation[{dim!r}]", dilations[dim], 1)
        pads = _pads(problems, dim, paddings[dim])
        if isinstance(pads, str):
            made[dim] = Along(n, k, s, d, same_pads(n, k, s, d, pads == "same_lower"))
            continue
        made[dim] = _bounded(problems, dim, Along(n, k, s, d, pads), ends[dim], sides[dim])
    return made


def _pads(problems: ArgumentErrors, dim: Hashable, padding: Any) -> str | tuple[int, int]:
    """Return the padding of a dimension as a pair, or "same" or "same_lower"."""
    name, wanted = f"padding[{dim!r}]", "'valid', 'same', 'same_lower', an integer, or a pair (before, after)"
    if isinstance(padding, str):
        word = padding.lower()
        if word not in ("valid", "same", "same_lower"):
            problems.fail(name, repr(padding), wanted)
        return (0, 0) if word == "valid" else word
    if is_several(padding) and len(padding) != 2:
        problems.fail(name, short_repr(padding), wanted)
    before, after = integer_list(problems, name, padding, 2, 0)
    return before, after


def _bounded(problems: ArgumentErrors, dim: Hashable, made: Along, boundary: str, side: str) -> Along:
    """Return windows that treat the cells that no whole window reaches as the boundary says; they are on the other side."""
    n, k, s, d, (before, after) = made.length, made.window, made.stride, made.dilation, made.pads
    span, total = d * (k - 1) + 1, n + before + after
    whole_windows = (total - span) // s + 1 if total >= span else 0
    following = whole_windows * s - (before if side == "left" else after)  # where one more window would begin
    reached = following - s + span if whole_windows else 0
    if reached < n and boundary == "exact":
        got = f"'exact' for dimension {dim!r} of {n} cells, of which windows reach {max(reached, 0)}"
        wanted = f"a length that windows of {k} every {s} cells divide, or 'trim' or 'pad'"
        problems.fail("boundary", got, wanted)
    missing = whole_windows * s + span - total  # the cells that one more window needs
    if boundary == "pad" and reached < n and following < n:
        return replace(made, pads=(before, after + missing) if side == "left" else (before + missing, after))
    if side == "left":
        return made
    excess = s - missing if whole_windows else total
    return replace(made, pads=(max(before - excess, 0), after), skip=min(max(excess - before, 0), n))


# ---- windows that share a dimension


def shares(problems: ArgumentErrors, sizes: Mapping[Any, int], counts: Mapping[Hashable, Any]) -> dict[Hashable, Along]:
    """Return that many windows along each dimension, as even as whole cells allow."""
    made: dict[Hashable, Along] = {}
    for dim, count in counts.items():
        m = _integer(problems, f"size[{dim!r}]", count, 0)
        if sizes[dim] == 0 and m:
            problems.fail("size", f"{m} windows along the empty dimension {dim!r}", "at least one cell")
        made[dim] = Along(sizes[dim], adaptive(sizes[dim], m))
    return made


def everything(problems: ArgumentErrors, sizes: Mapping[Any, int], dims: Sequence[Hashable]) -> dict[Hashable, Along]:
    """Return one window over each dimension."""
    for dim in dims:
        if sizes[dim] == 0:
            problems.fail("dims", f"the empty dimension {dim!r}", "at least one cell")
    return {dim: Along(sizes[dim], whole(sizes[dim])) for dim in dims}
