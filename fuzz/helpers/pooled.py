"""Random calls of the pools, and what each means: the cells of every window, one by one, and the pool's matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import fsum, prod
from typing import Any, NamedTuple

import brute
import ml_dtypes
import numpy as np
from differential import Call, Data, Rng, pick
from memory_forms import MEMORY

import poolgrad as pg

SLIDING = ("max_pool", "min_pool", "avg_pool", "sum_pool", "lp_pool")
FRACTIONAL = ("fractional_max_pool", "fractional_avg_pool")
ADAPTIVE = ("adaptive_max_pool", "adaptive_avg_pool")
GLOBAL = ("global_max_pool", "global_min_pool", "global_avg_pool", "global_sum_pool")
NAMES = (*SLIDING, *SLIDING[:4], *FRACTIONAL, *ADAPTIVE, *GLOBAL)
LAYOUTS = {3: ("NWC", "NCW"), 4: ("NHWC", "NCHW"), 5: ("NDHWC", "NCDHW")}

Array = np.ndarray[Any, Any]


# ---- drawing


def draw(rng: Rng, dtypes: Sequence[str], ways: Sequence[str]) -> Call:
    """Return a call of a pool, its `way` being what is compared besides values."""
    name = pick(rng, NAMES)
    rank = int(rng.integers(1, 6))
    shape = tuple(int(n) for n in rng.integers(1, 7 if rank < 4 else 5, rank))
    dtype = pick(rng, [d for d in dtypes if name != "lp_pool" or np.dtype(_dtype(d)).kind not in "iub"])
    kind = pick(
        rng, ("ties", "distinct", "plain", "nan") if folds(name) else ("ties", "distinct", "plain", "nan", "wild")
    )
    kind = "ties" if name == "lp_pool" or dtype == "bool" else kind
    given: dict[str, Any] = {"x": Data(dtype, shape, kind, int(rng.integers(1000)))}
    axes = _draw_axes(rng, shape, given)
    if name in SLIDING:
        _draw_windows(rng, name, [shape[d] for d in axes], given)
    elif name in FRACTIONAL:
        size = [int(rng.integers(1, shape[d] + 1)) for d in axes]
        given |= {"size": tuple(size), "seed": (int(rng.integers(9)), int(rng.integers(9)))}
        given |= {n: True for n in ("overlapping", "pseudo_random") if rng.random() < 0.4}
    elif name in ADAPTIVE:
        given["size"] = tuple(None if rng.random() < 0.1 else int(rng.integers(1, shape[d] + 3)) for d in axes)
    elif rng.random() < 0.5:
        given["keepdims"] = False
    _draw_rules(rng, name, given)
    given["way"] = pick(rng, ways)
    if given["way"] == "value" and rng.random() < 0.5:
        given["x"] = replace(given["x"], memory=pick(rng, tuple(MEMORY)))
    return Call(name, **given)


def _dtype(name: str) -> Any:
    return ml_dtypes.bfloat16 if name == "bfloat16" else name


def folds(name: str) -> bool:
    """Return True for sums and means, False for pools that choose a cell."""
    return not ("max" in name or "min" in name)


def _draw_axes(rng: Rng, shape: tuple[int, ...], given: dict[str, Any]) -> tuple[int, ...]:
    rank = len(shape)
    if rank in LAYOUTS and rng.random() < 0.4:
        given["layout"] = pick(rng, LAYOUTS[rank])
        return tuple(d for d, letter in enumerate(given["layout"]) if letter not in "NC")
    if rng.random() < 0.2:
        return tuple(range(rank))
    axes = tuple(d for d in range(rank) if rng.random() < 0.6) or (int(rng.integers(rank)),)
    given["axes"] = axes
    return axes


def boundaries(rng: Rng, n: int) -> list[tuple[int, int]]:
    """Return windows in ascending order: repeated ones, single cells, and some that begin late or end early."""
    if rng.random() < 0.3:  # as many single cells as the axis has: not always each its own
        starts = np.sort(rng.integers(0, n, n))
        return [(int(a), int(a) + 1) for a in starts]
    m = int(rng.integers(1, n + 3))
    starts = np.sort(rng.integers(0, n, m))
    stops = np.maximum.accumulate(np.minimum(starts + rng.integers(1, 4, m), n))
    return [(int(a), int(b)) for a, b in zip(starts, stops, strict=True)]


def _draw_windows(rng: Rng, name: str, lengths: list[int], given: dict[str, Any]) -> None:
    window: list[Any] = [int(rng.integers(1, n + 2)) for n in lengths]
    if rng.random() < 0.35:
        window = [boundaries(rng, n) if rng.random() < 0.7 else k for n, k in zip(lengths, window, strict=True)]
    given["window"] = window
    if rng.random() < 0.6:
        given["stride"] = tuple(int(rng.integers(1, 4)) for _ in lengths)
    if rng.random() < 0.5:
        pads = [(int(rng.integers(0, 2)), int(rng.integers(0, 2))) for _ in lengths]
        given["padding"] = pick(rng, ("same", "same_lower", 1, pads))
    if rng.random() < 0.25:
        given["dilation"] = tuple(int(rng.integers(1, 4)) for _ in lengths)
    if rng.random() < 0.25:
        given["ceil_mode"] = True
    if name == "avg_pool" and rng.random() < 0.3:
        given |= pick(rng, ({"count_include_pad": True}, {"divisor": 3.0}))
    if name == "lp_pool":
        given["p"] = pick(rng, (1, 2, 3))


def _draw_rules(rng: Rng, name: str, given: dict[str, Any]) -> None:
    if name == "lp_pool":
        return
    if rng.random() < 0.3:
        given["nan"] = pick(rng, ("ignore", "tf", "propagate"))
    if (
        not folds(name)
        and "fractional" not in name
        and "adaptive" not in name
        and "global" not in name
        and rng.random() < 0.4
    ):
        given["ties"] = pick(rng, ("first", "last", "all", "split"))


# ---- the meaning of a call


class Window(NamedTuple):
    """The cells of a window along an axis, and how many it has with padding."""

    cells: list[int]
    span: int


class Refused(Exception):
    """A window has no cell."""


def axes_of(call: Call) -> tuple[int, ...]:
    """Return the pooled axes."""
    shape, given = call.args["x"].shape, call.args
    if "layout" in given:
        return tuple(d for d, letter in enumerate(given["layout"]) if letter not in "NC")
    axes: tuple[int, ...] = given.get("axes", tuple(range(len(shape))))
    return axes


def _slid(n: int, k: int, s: int, d: int, padding: Any, ceil_mode: bool) -> list[Window]:
    pads = (0, 0) if padding == "valid" else padding
    if isinstance(padding, str) and padding != "valid":
        pads = brute.same_pads(n, k, s, d)
        pads = pads[::-1] if padding == "same_lower" else pads
    found = []
    for i, cells in enumerate(brute.axis_cells(n, k, s, d, pads, ceil_mode)):
        first = i * s - pads[0]
        found.append(Window(cells, len([t for t in range(k) if first + t * d < n + pads[1]])))
    return found


def windows(call: Call) -> dict[int, list[Window]]:
    """Return the windows along each pooled axis."""
    shape, given, axes = call.args["x"].shape, call.args, axes_of(call)
    if call.name in GLOBAL:
        return {d: [Window(list(range(shape[d])), shape[d])] for d in axes}
    if call.name in ADAPTIVE:
        sizes = {d: shape[d] if m is None else m for d, m in zip(axes, given["size"], strict=True)}
        spans = {d: [(i * shape[d] // m, -(-(i + 1) * shape[d] // m)) for i in range(m)] for d, m in sizes.items()}
        return {d: [Window(list(range(a, b)), b - a) for a, b in some] for d, some in spans.items()}
    if call.name in FRACTIONAL:
        words = {n: given[n] for n in ("size", "seed", "overlapping", "pseudo_random") if n in given}
        drawn = pg.fractional_windows(tuple(shape[d] for d in axes), **words)
        return {
            d: [Window(list(range(a, b)), b - a) for a, b in axis.pairs()] for d, axis in zip(axes, drawn, strict=True)
        }
    return {d: _one_axis(call, i, shape[d]) for i, d in enumerate(axes)}


def _one_axis(call: Call, i: int, n: int) -> list[Window]:
    given = call.args
    k = given["window"][i]
    if not isinstance(k, int):
        return [Window(list(range(a, b)), b - a) for a, b in k]
    padding = given.get("padding", "valid")
    padding = padding if isinstance(padding, str) else (padding, padding) if isinstance(padding, int) else padding[i]
    stride = given["stride"][i] if "stride" in given else k
    return _slid(
        n, k, stride, given["dilation"][i] if "dilation" in given else 1, padding, given.get("ceil_mode", False)
    )


class Meaning(NamedTuple):
    """A pool of one array: its values, its matrix by flat cells, and how far values may be off, as a multiple of the type's unit."""

    y: Array
    matrix: Array
    chosen: list[int]  # the flat cell of each window, where one is chosen
    terms: int


def meaning(call: Call, x: Array) -> Meaning:
    """Return what the call means for x; Refused if a window has no cell."""
    along = windows(call)
    per_axis = [along.get(d, [Window([i], 1) for i in range(n)]) for d, n in enumerate(x.shape)]
    if any(not w.cells for some in per_axis for w in some):
        raise Refused
    shape = tuple(len(some) for some in per_axis)
    matrix = np.zeros((prod(shape), x.size))
    values, chosen, flat, terms = [], [], np.arange(x.size).reshape(x.shape), 1
    numbers = x.reshape(-1)
    for row, place in enumerate(product(*per_axis)):
        cells = flat[np.ix_(*(w.cells for w in place))].reshape(-1).tolist()
        terms = max(terms, len(cells))
        span = prod(w.span for w in place)
        value, weights = _window(call, numbers, cells, span)
        values.append(value)
        chosen.append(max(weights, key=lambda c: weights[c]) if weights else 0)
        for c, weight in weights.items():
            matrix[row, c] = weight
    kind = object if x.dtype.kind in "iub" or folds(call.name) else x.dtype
    y = np.empty(prod(shape), kind)
    y[:] = values
    return Meaning(y.reshape(shape), matrix, chosen, terms)


def _window(call: Call, x: Array, cells: list[int], span: int) -> tuple[Any, dict[int, float]]:
    """Return the value of a window and the weights of its cells."""
    if folds(call.name):
        return _fold(call, x, cells, span)
    return _choice(call, x, cells)


def _choice(call: Call, x: Array, cells: list[int]) -> tuple[Any, dict[int, float]]:
    sign = -1.0 if "min" in call.name else 1.0
    nan, ties = call.args.get("nan", "propagate"), call.args.get("ties", "first")
    whole = x.dtype.kind in "iub"
    rank = {c: (int(x[c]) if whole else float(x[c])) * (int(sign) if whole else sign) for c in cells}
    order = cells[::-1] if ties == "last" else cells
    numbers = [c for c in order if rank[c] == rank[c]]
    some_nan = len(numbers) < len(order)
    if nan == "tf" and not whole:
        lowest = float(ml_dtypes.finfo(x.dtype).min)
        top = max([lowest, *(rank[c] for c in numbers)])
        value: Any = x.dtype.type(sign * top)
        best = order[0]
        for c in order[1:]:
            best = c if rank[c] > rank[best] else best
        hits = [best] if ties in ("first", "last") else [c for c in cells if float(x[c]) == float(value)]
    elif some_nan and (nan == "propagate" or not numbers):
        hits = [c for c in order if rank[c] != rank[c]]
        value = x[hits[0]]
    else:
        top = max(rank[c] for c in numbers)
        hits = [c for c in numbers if rank[c] == top]
        value = x[hits[0]]
    if ties in ("first", "last"):
        return value, {hits[0]: 1.0}
    return value, dict.fromkeys(hits, 1.0 / max(len(hits), 1) if ties == "split" else 1.0)


def _fold(call: Call, x: Array, cells: list[int], span: int) -> tuple[Any, dict[int, float]]:
    whole = x.dtype.kind in "iub"
    there = cells
    if call.args.get("nan") == "ignore" and not whole:
        there = [c for c in cells if x[c] == x[c]]
    divisor = 1.0
    if "avg" in call.name:
        padding = span - len(cells) if call.args.get("count_include_pad") else 0
        divisor = call.args.get("divisor") or len(there) + padding  # NaN that are left out are not counted
    if call.name == "lp_pool":
        p = call.args.get("p", 2)
        return fsum(abs(float(x[c])) ** p for c in there) ** (1 / p), {}
    if whole:
        total = sum(int(x[c]) for c in there)
        return (total / divisor if "avg" in call.name else total), {}
    if not divisor:
        return float("nan"), {}
    return fsum(float(x[c]) for c in there) / divisor, dict.fromkeys(there, 1.0 / divisor)
