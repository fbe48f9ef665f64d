"""Pools of tensors by definition: a Python loop over windows and their cells, on exact numbers. The oracle where torch has no answer."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from math import isnan, prod
from typing import Any, NamedTuple

import torch

Tensor = torch.Tensor


class Window(NamedTuple):
    """The cells of an axis that a window reads, and how many cells it has if padding counts."""

    cells: range
    span: int


def sliding(n: int, k: int, s: int, pad: Any, d: int = 1, ceil_mode: bool = False) -> list[Window]:
    """Return the windows of k cells, d apart, every s cells; `pad` is a number, a pair, "same" or "same_lower"."""
    reach = d * (k - 1) + 1
    if isinstance(pad, str) and pad != "valid":
        m = -(-n // s)
        total = max((m - 1) * s + reach - n, 0)
        before = total // 2 if pad == "same" else total - total // 2
        after = total - before
    else:
        before, after = (0, 0) if pad == "valid" else pad if isinstance(pad, (tuple, list)) else (pad, pad)
        over = n + before + after - reach
        m = max((-(-over // s) if ceil_mode else over // s) + 1, 0)
        if ceil_mode and m and (m - 1) * s >= n + before:
            m -= 1
    starts = [i * s - before for i in range(m)]
    return [
        Window(
            range(a if a >= 0 else a % d, max(min(a + reach, n), a if a >= 0 else a % d), d),
            len(range(a, min(a + reach, n + after), d)),
        )
        for a in starts
    ]


def sharing(n: int, m: int) -> list[Window]:
    """Return m windows that share n cells evenly."""
    return [given(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]


def given(start: int, stop: int) -> Window:
    """Return the window from `start` to `stop`."""
    return Window(range(start, stop), stop - start)


def _windows(x: Tensor, axes: list[list[Window]]) -> Iterator[tuple[int, list[int], int]]:
    """Yield for each result its plane, the positions that its window reads in the plane, and its cells with padding."""
    lengths = x.shape[x.ndim - len(axes) :]
    steps = [prod(lengths[i + 1 :]) for i in range(len(axes))]
    for plane in range(prod(x.shape[: x.ndim - len(axes)])):
        for windows in itertools.product(*axes):
            offsets = [[c * step for c in w.cells] for w, step in zip(windows, steps, strict=True)]
            yield plane, [sum(at) for at in itertools.product(*offsets)], prod(w.span for w in windows)


def _planes(x: Tensor, rank: int) -> list[list[Any]]:
    leading, lengths = x.shape[: x.ndim - rank], x.shape[x.ndim - rank :]
    wide = x.double() if x.dtype.is_floating_point else x
    made: list[list[Any]] = wide.reshape(prod(leading), prod(lengths)).tolist()
    return made


def _tensor(values: list[Any], x: Tensor, axes: list[list[Window]], dtype: torch.dtype) -> Tensor:
    shape = [*x.shape[: x.ndim - len(axes)], *map(len, axes)]
    return torch.tensor(values, dtype=dtype).reshape(shape)


def extreme(x: Tensor, axes: list[list[Window]], least: bool) -> tuple[Tensor, Tensor]:
    """Return the best cell of each window and its position in the plane: the first of equal ones, and the first NaN before all."""
    planes, values, found = _planes(x, len(axes)), [], []
    for plane, cells, _ in _windows(x, axes):
        row = planes[plane]
        best = cells[0]
        for at in cells:
            if isnan(row[at]):
                best = at
                break
            if (row[at] < row[best]) if least else (row[at] > row[best]):
                best = at
        found.append(best)
        values.append(row[best])
    return _tensor(values, x, axes, x.dtype), _tensor(found, x, axes, torch.int64)


def _truncated(total: Fraction) -> int:
    return int(total)


def mean(x: Tensor, axes: list[list[Window]], padded: bool, divisor: float | None) -> Tensor:
    """Return the sum of each window, divided by its cells, its cells and padding, or a number; integers are cut off toward zero."""
    planes, values = _planes(x, len(axes)), []
    whole = not x.dtype.is_floating_point
    for plane, cells, span in _windows(x, axes):
        row = planes[plane]
        by = divisor if divisor is not None else span if padded else len(cells)
        if whole:
            values.append(_truncated(Fraction(sum(row[at] for at in cells)) / Fraction(by)))
        else:
            values.append(sum(row[at] for at in cells) / by)
    return _tensor(values, x, axes, x.dtype if whole else torch.float64)


def matrix(x: Tensor, axes: list[list[Window]], padded: bool, divisor: float | None) -> Tensor:
    """Return the means of one plane as a matrix of float64: results by cells."""
    size = prod(x.shape[x.ndim - len(axes) :])
    plane = x.new_empty(x.shape[x.ndim - len(axes) :])
    rows = []
    for _, cells, span in _windows(plane, axes):
        row = [0.0] * size
        for at in cells:
            row[at] += 1 / (divisor if divisor is not None else span if padded else len(cells))
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float64).reshape(len(rows), size)


def unpool(y: Tensor, where: Tensor, rank: int, sizes: tuple[int, ...], reduce: str) -> Tensor:
    """Return planes of zeros with each cell at its position: added up, or the last one kept."""
    leading = y.shape[: y.ndim - rank]
    whole = not y.dtype.is_floating_point
    dtype, y = y.dtype, y.to(torch.int64) if whole else y
    made = y.new_zeros((prod(leading), prod(sizes)))
    if not made.numel() or not y.numel():
        return made.reshape(*leading, *sizes).to(dtype)
    flat, at = y.reshape(prod(leading), -1), where.reshape(prod(leading), -1)
    for plane in range(prod(leading)):
        for value, to in zip(flat[plane], at[plane].tolist(), strict=True):
            made[plane, to] = made[plane, to] + value if reduce == "sum" else value
    return made.reshape(*leading, *sizes).to(dtype)
