"""Windows by definition: find the cells that a window reads by walking over padded positions one by one."""

from __future__ import annotations

from itertools import product

import numpy as np


def axis_cells(n: int, k: int, s: int, d: int, pads: tuple[int, int], ceil_mode: bool) -> list[list[int]]:
    """Return the cells of each window; only in ceil_mode may a window stick out behind the padding, and it must begin before it."""
    found, first = [], -pads[0]
    while True:
        taps = [first + t * d for t in range(k)]
        fits = taps[-1] < n + pads[1]
        left_over = taps[-1] - s + 1 < n + pads[1]  # by the window before this one, or by none
        if not (left_over and first < n if ceil_mode else fits):
            return found
        found.append([t for t in taps if 0 <= t < n])
        first += s


def same_pads(n: int, k: int, s: int, d: int) -> tuple[int, int]:
    """Return TensorFlow's padding: one window per step, the missing cells shared out, the odd cell behind."""
    total = max((len(range(0, n, s)) - 1) * s + (k - 1) * d + 1 - n, 0)
    return total // 2, total - total // 2


def reduce(x: np.ndarray, cells: dict[int, list[list[int]]], f) -> np.ndarray:
    """Return f(list of cells' values, list of their places) for every window of the axes in `cells`."""
    per_axis = [cells.get(axis, [[i] for i in range(n)]) for axis, n in enumerate(x.shape)]
    out = np.empty([len(windows) for windows in per_axis], object)
    for place in product(*(range(len(windows)) for windows in per_axis)):
        reads = list(product(*(windows[i] for windows, i in zip(per_axis, place, strict=True))))
        out[place] = f([x[r] for r in reads], reads)
    return out


WORDS = [
    ((6, 7), {"window": 2}),
    ((7, 9), {"window": 3, "stride": 2, "padding": 1}),
    ((7, 9), {"window": (3, 2), "stride": (1, 3), "padding": [(2, 0), (0, 1)]}),
    ((9, 8), {"window": 2, "stride": 3, "ceil_mode": True}),
    ((9, 11), {"window": 3, "stride": 2, "dilation": (2, 3), "padding": 2}),
    ((5, 6), {"window": 4, "stride": 3, "padding": "same"}),
    ((13,), {"window": 3, "stride": 1, "dilation": 4}),
    ((3, 4, 5), {"window": 2, "stride": 1}),
]


def cells_of(shape: tuple[int, ...], words: dict) -> dict[int, list[list[int]]]:
    """Return the windows of the words, by definition."""

    def each(name: str, default):
        value = words.get(name, default)
        return value if isinstance(value, (tuple, list)) else [value] * len(shape)

    found = {}
    strides = each("stride", words["window"])
    for axis, (n, k, s, d, p) in enumerate(
        zip(shape, each("window", 1), strides, each("dilation", 1), each("padding", 0), strict=True)
    ):
        pads = same_pads(n, k, s, d) if p == "same" else (p, p) if isinstance(p, int) else p
        found[axis] = axis_cells(n, k, s, d, pads, words.get("ceil_mode", False))
    return found
