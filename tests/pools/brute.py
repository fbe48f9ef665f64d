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
