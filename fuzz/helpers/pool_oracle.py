"""Pools by their definition, on exact numbers. Nothing here comes from the package: windows are walked, sums are fractions.

A result is a list of `Number`: the exact value of a cell and how far a correct result may be from it before it is rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from math import ceil, floor, inf, isfinite, isnan, nan, prod
from typing import Any

import ml_dtypes
import numpy as np

Cells = list[list[int]]
# digits of the significand, least and greatest exponent
FORMATS = {
    "float16": (11, -14, 15),
    "bfloat16": (8, -126, 127),
    "float32": (24, -126, 127),
    "float64": (53, -1022, 1023),
}
HALVES = ("float16", "bfloat16")
ROUNDINGS: dict[str, Callable[[Fraction], int]] = {"nearest": round, "floor": floor, "ceil": ceil, "toward_zero": int}


class Refused(Exception):
    """The call must be refused; the error blames one of these arguments."""

    def __init__(self, *arguments: str) -> None:
        super().__init__(*arguments)
        self.arguments = arguments


class NotACase(Exception):
    """The oracle does not know the answer."""


# ---- numbers


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the dtype of a name."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def rounded(value: Fraction | float, name: str) -> Fraction | float:
    """Return the nearest number of a floating type, ties to even; infinite values and NaN stay."""
    if isinstance(value, float) and not isfinite(value):
        return value
    exact = Fraction(value)
    if exact == 0:
        return Fraction(0)
    digits, least, most = FORMATS[name]
    top, bottom = abs(exact.numerator), exact.denominator
    exponent = top.bit_length() - bottom.bit_length()
    if Fraction(2) ** exponent > abs(exact):
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, least) - digits + 1)
    near = round(exact / quantum) * quantum
    return near if abs(near) < Fraction(2) ** (most + 1) else (inf if near > 0 else -inf)


def largest(name: str) -> Fraction:
    """Return the largest finite number of a floating type."""
    digits, _, most = FORMATS[name]
    return (2 - Fraction(2) ** (1 - digits)) * Fraction(2) ** most


def unit(name: str) -> Fraction:
    """Return the largest relative error of one rounding."""
    return Fraction(2) ** -FORMATS[name][0]


def tiny(name: str) -> Fraction:
    """Return the least positive number of a floating type."""
    digits, least, _ = FORMATS[name]
    return Fraction(2) ** (least - digits + 1)


def wide(name: str) -> str:
    """Return the type in which cells are added: halves in a wider one."""
    return "float32" if name in HALVES else name


@dataclass(frozen=True)
class Number:
    """The exact value of a cell, how far from it a result may be before it is rounded, and if a partial sum may overflow."""

    value: Fraction | float
    slack: Fraction = Fraction(0)
    loose: bool = False

    def agrees(self, got: Any, steps: Sequence[str]) -> bool:
        """Tell if `got` lies between the roundings of both ends; `steps` names the types to which results are rounded."""
        if isinstance(self.value, float) and isnan(self.value):
            return got != got
        low, high = self._ends(steps)
        if got != got or abs(got) == inf:
            return got in (low, high)
        return low <= Fraction(got) <= high

    def overflowed(self, got: Any) -> bool:
        """Tell if `got` is what remains where a partial sum left the range of the type."""
        return self.loose and not abs(got) < inf

    def _ends(self, steps: Sequence[str]) -> tuple[Any, Any]:
        if isinstance(self.value, float) and not isfinite(self.value):
            return self.value, self.value
        ends: list[Fraction | float] = [self.value - self.slack, self.value + self.slack]
        for name in steps:
            ends = [rounded(end, name) for end in ends]
        return ends[0], ends[1]


def exact(array: np.ndarray) -> list[Any]:
    """Return the cells in row-major order: integers, or floats, which Python holds exactly."""
    if array.dtype.kind in "iub":
        return [int(v) for v in array.ravel().tolist()]
    with np.errstate(invalid="ignore"):  # signalling NaN
        return array.astype(np.float64).ravel().tolist()


def kind_of(array: np.ndarray) -> str:
    """Return the name of the dtype, whatever its byte order."""
    return array.dtype.newbyteorder("=").name


# ---- windows


@dataclass(frozen=True)
class Geometry:
    """Per axis the cells of each window, and how many cells each would have with its padding; None where an axis is not pooled."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    cells: dict[int, Cells]
    spans: dict[int, list[int]]

    @property
    def dest(self) -> tuple[int, ...]:
        """Return the shape of the result."""
        return tuple(len(self.cells[d]) if d in self.cells else n for d, n in enumerate(self.shape))

    def windows(self) -> list[tuple[list[int], int]]:
        """Return for each cell of the result the flat positions that it reads, in order, and its cells with padding."""
        steps = [prod(self.shape[d + 1 :]) for d in range(len(self.shape))]
        per_axis = [
            [
                ([cell * steps[d] for cell in cells], span)
                for cells, span in zip(self.cells[d], self.spans[d], strict=True)
            ]
            if d in self.cells
            else [([i * steps[d]], 1) for i in range(n)]
            for d, n in enumerate(self.shape)
        ]
        return [
            ([sum(at) for at in product(*(cells for cells, _ in place))], prod(span for _, span in place))
            for place in product(*per_axis)
        ]


def each(value: Any, count: int, name: str) -> list[Any]:
    """Return one value per pooled axis."""
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise Refused(name)
    return list(value)


def pooled_axes(ndim: int, axes: Any, layout: Any, count: int | None) -> tuple[int, ...]:
    """Return the pooled axes."""
    if axes is not None and layout is not None:
        raise Refused("layout", "axes")
    if layout is not None:
        if len(layout) != ndim or len(set(layout)) != ndim:
            raise Refused("layout")
        found = tuple(d for d, letter in enumerate(layout) if letter not in "NC")
    elif axes is not None:
        found = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
        if any(not -ndim <= d < ndim for d in found) or len({d % ndim for d in found}) < len(found):
            raise Refused("axes")
        found = tuple(d % ndim for d in found)
        if list(found) != sorted(found):
            raise Refused("axes")
    elif count is not None and count != ndim:
        raise Refused("window", "size", "ratio")
    else:
        found = tuple(range(ndim))
    if not found:
        raise Refused("x", "axes", "layout")
    return found


def same_pads(n: int, k: int, s: int, d: int, lower: bool) -> tuple[int, int]:
    """Return the padding with which windows every s cover n cells; an odd cell comes after, or before."""
    missing = max((len(range(0, n, s)) - 1) * s + (k - 1) * d + 1 - n, 0)
    pads = (missing // 2, missing - missing // 2)
    return pads[::-1] if lower else pads


def walk(n: int, k: int, s: int, d: int, pads: tuple[int, int], ceil_mode: bool) -> tuple[Cells, list[int]]:
    """Return the cells of each window and its span: windows start before the array by the padding and move on by s.

    In ceil_mode the last may stick out, and none begins behind the array.
    """
    cells: Cells = []
    spans: list[int] = []
    first, end, reach = -pads[0], n + pads[1], d * (k - 1)
    while first + reach < end if not ceil_mode else first + reach - s < end - 1 and first < n:
        inside = [t for t in range(n) if t >= first and (t - first) % d == 0 and (t - first) // d < k]
        if not inside:
            raise Refused("padding")
        cells.append(inside)
        spans.append(len(range(first, min(first + reach + 1, end), d)))
        first += s
    return cells, spans


def is_axis(window: Any) -> bool:
    """Tell if a window is an Axis."""
    return hasattr(window, "start") and hasattr(window, "step")


def listed(n: int, window: Any) -> Cells:
    """Return the cells of windows that the caller gives: pairs (start, stop), or an Axis."""
    step = int(window.step) if is_axis(window) else 1
    if is_axis(window) and window.length != n:
        raise Refused("window")
    pairs = list(zip(window.start, window.stop, strict=True)) if is_axis(window) else window
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs) or not pairs:
        raise Refused("window")
    rising = all(a <= b for p, q in pairwise(pairs) for a, b in zip(p, q, strict=True))
    if any(not 0 <= a < b <= n for a, b in pairs) or (step == 1 and not rising):
        raise Refused("window")
    return [list(range(int(a), int(b), step)) for a, b in pairs]


def sliding(shape: tuple[int, ...], words: dict[str, Any]) -> Geometry:
    """Return the windows that window, stride, padding, dilation, ceil_mode and axes or layout describe."""
    window = words["window"]
    several = isinstance(window, (list, tuple))
    axes = pooled_axes(len(shape), words.get("axes"), words.get("layout"), len(window) if several else None)
    count = len(axes)
    windows = each(window, count, "window")
    given = words.get("stride")
    strides = windows if given is None else each(given, count, "stride")
    dilations = each(words.get("dilation", 1), count, "dilation")
    padding = words.get("padding", "valid")
    pads = each(padding, count, "padding")
    cells: dict[int, Cells] = {}
    spans: dict[int, list[int]] = {}
    for d, k, s, apart, pad in zip(axes, windows, strides, dilations, pads, strict=True):
        n = shape[d]
        if is_axis(k) or isinstance(k, (list, tuple)):
            cells[d] = listed(n, k)
            spans[d] = [len(c) for c in cells[d]]
            continue
        if k < 1 or s < 1 or apart < 1:
            raise Refused(*(name for name, v in (("window", k), ("stride", s), ("dilation", apart)) if v < 1))
        apart = 1 if k == 1 else apart
        if isinstance(pad, str):
            pair = (0, 0) if pad == "valid" else same_pads(n, k, s, apart, pad == "same_lower")
        else:
            pair = (pad, pad) if isinstance(pad, int) else tuple(pad)
        cells[d], spans[d] = walk(n, k, s, apart, pair, bool(words.get("ceil_mode", False)))
    return Geometry(shape, axes, cells, spans)


def plain(shape: tuple[int, ...], axes: tuple[int, ...], cells: dict[int, Cells]) -> Geometry:
    """Return windows without padding."""
    return Geometry(shape, axes, cells, {d: [len(c) for c in found] for d, found in cells.items()})


def adaptive(shape: tuple[int, ...], words: dict[str, Any]) -> Geometry:
    """Return the windows of adaptive pools: window i of m over n cells reads from floor(i n / m) to ceil((i + 1) n / m)."""
    size = words["size"]
    several = isinstance(size, (list, tuple))
    axes = pooled_axes(len(shape), words.get("axes"), words.get("layout"), len(size) if several else None)
    cells = {}
    for d, m in zip(axes, each(size, len(axes), "size"), strict=True):
        n = shape[d]
        m = n if m is None else m
        if n == 0 and m:
            raise Refused("x", "size")
        cells[d] = [list(range(floor(Fraction(i * n, m)), ceil(Fraction((i + 1) * n, m)))) for i in range(m)]
    return plain(shape, axes, cells)


def everything(shape: tuple[int, ...], words: dict[str, Any]) -> Geometry:
    """Return one window over each pooled axis."""
    axes = pooled_axes(len(shape), words.get("axes"), words.get("layout"), None)
    if any(shape[d] == 0 for d in axes):
        raise Refused("x")
    return plain(shape, axes, {d: [list(range(shape[d]))] for d in axes})


# ---- maxima


def _beats(nan_rule: str, least: bool) -> Callable[[Any, Any], bool]:
    """Return the order of cells: NaN above all numbers, below them, or, in TensorFlow's rule, above and below nothing."""

    def above(a: Any, b: Any) -> bool:
        if nan_rule == "propagate" and (a != a or b != b):
            return a != a and b == b
        if nan_rule == "ignore" and (a != a or b != b):
            return a == a and b != b
        return bool(a < b if least else a > b)

    return above


def chosen(values: list[Any], least: bool, ties: str, nan_rule: str) -> int:
    """Return the number of the cell that a window chooses: the first, or the last, of the best."""
    above = _beats(nan_rule, least)
    order = range(len(values)) if ties != "last" else range(len(values))[::-1]
    best = order[0]
    for t in order:
        if above(values[t], values[best]):
            best = t
    return best


def best_value(values: list[Any], least: bool, nan_rule: str, name: str) -> Any:
    """Return the largest or least cell; TensorFlow's rule starts from the lowest finite value, and NaN never replaces it."""
    if nan_rule != "tf" or name not in FORMATS:
        return values[chosen(values, least, "first", nan_rule)]
    best = float(largest(name)) * (1 if least else -1)
    for v in values:
        if (v < best) if least else (v > best):
            best = v
    return best


def takers(values: list[Any], best: Any, least: bool, ties: str, nan_rule: str) -> list[tuple[int, Fraction]]:
    """Return the cells that a derivative goes to, with their weights."""
    if ties in ("first", "last"):
        return [(chosen(values, least, ties, nan_rule), Fraction(1))]
    hits = [t for t, v in enumerate(values) if v == best or (v != v and best != best)]
    return [(t, Fraction(1, len(hits)) if ties == "split" else Fraction(1)) for t in hits]


# ---- sums and means


def total(values: list[Any], name: str) -> Number:
    """Return the sum of cells: exact for integers; floats may be off by a rounding per cell."""
    if name not in FORMATS:
        return Number(Fraction(sum(values)))
    if any(v != v for v in values) or {inf, -inf} <= set(values):
        return Number(nan)
    terms = [Fraction(v) for v in values if abs(v) < inf]
    added = sum(map(abs, terms), Fraction(0))
    if infinite := {v for v in values if abs(v) == inf}:
        return Number(infinite.pop(), loose=added >= largest(wide(name)))
    whole = all(term.denominator == 1 for term in terms) and added < 2 ** (FORMATS[wide(name)][0])
    slack = Fraction(0) if whole else len(terms) * (unit(wide(name)) * added + tiny(wide(name)))
    return Number(sum(terms, Fraction(0)), slack, added >= largest(wide(name)))


def divided(number: Number, by: Fraction, name: str) -> Number:
    """Return the quotient; a divisor that the type does not hold is rounded first."""
    if isinstance(number.value, float):
        return Number(number.value if by > 0 else -number.value, loose=number.loose)
    if not by:
        return Number(nan)
    if name not in FORMATS:
        return Number(number.value / by)
    inexact = rounded(by, wide(name)) != by
    value = number.value / by
    slack = number.slack / abs(by) + (4 * unit(wide(name)) * abs(value) if inexact or number.slack else 0)
    return Number(value, slack, number.loose)


def mean(values: list[Any], span: int, words: dict[str, Any], name: str, average: bool) -> Number:
    """Return the sum or mean of one window by the words of the call."""
    ignore = words.get("nan") == "ignore"
    there = [v for v in values if v == v] if ignore else values
    added = total(there, name)
    if words.get("divisor") is not None:
        return divided(added, Fraction(words["divisor"]), name)
    if not average:
        return added
    count = span - (len(values) - len(there)) if words.get("count_include_pad") else len(there)
    return divided(added, Fraction(count), name)


def finished(number: Number, name: str, words: dict[str, Any], average: bool) -> tuple[Number, str, list[str]]:
    """Return the number with the dtype of the result and the types to which it is rounded, or refuse what does not fit."""
    floating = name in FORMATS
    given = words.get("dtype")
    kept = name if floating else ("float64" if average else ("uint64" if name == "uint64" else "int64"))
    target = kept if given is None else given
    if target in FORMATS:
        steps = [name, target] if floating else [target]
        return number, target, steps
    if floating:
        if number.slack or number.loose:
            raise NotACase
        if isinstance(number.value, float):
            raise Refused("x", "dtype")
        number = Number(rounded(number.value, name))
        if isinstance(number.value, float):
            raise Refused("x", "dtype")
    value = ROUNDINGS[words.get("rounding", "nearest")](Fraction(number.value))
    info = np.iinfo(target)
    if not info.min <= value <= info.max:
        raise Refused("x", "dtype")
    return Number(Fraction(value)), target, []


def power_mean(values: list[float], p: float, name: str) -> Number:
    """Return the p-norm of a window of finite cells, to the accuracy of float64 or of the type."""
    most = max(map(abs, values))
    if not most:
        return Number(Fraction(0))
    norm = most * sum((abs(v) / most) ** p for v in values) ** (1 / p)
    slack = (len(values) + 8) * 4 * (unit(wide(name)) + Fraction(1, 2**50)) * Fraction(norm)
    return Number(Fraction(norm), slack)


# ---- linear maps


Rows = list[list[tuple[int, Fraction]]]  # per cell of the result, the cells that it reads and their weights


def transposed(rows: Rows, size: int) -> Rows:
    """Return the transposed map."""
    columns: Rows = [[] for _ in range(size)]
    for i, row in enumerate(rows):
        for j, weight in row:
            columns[j].append((i, weight))
    return columns


def applied(rows: Rows, values: list[Any], name: str, roundings: int = 2) -> list[Number]:
    """Return the map of an array: a weighted sum per cell, each term rounded, added in the type or a wider one."""
    found = []
    for row in rows:
        terms = [(Fraction(values[j]), w) for j, w in row]
        value = sum((v * w for v, w in terms), Fraction(0))
        added = sum((abs(v * w) for v, w in terms), Fraction(0))
        if name not in FORMATS:
            found.append(Number(value))
            continue
        whole = all(v.denominator == 1 and w.denominator == 1 for v, w in terms)
        if (whole and added < 2 ** FORMATS[wide(name)][0]) or (len(terms) == 1 and terms[0][1] == 1):
            found.append(Number(value))
            continue
        off = unit(wide(name)) * added + tiny(wide(name))
        found.append(Number(value, (len(terms) + roundings) * off, added >= largest(wide(name))))
    return found
