"""Sizes at which one path through the core ends and another begins: all of them give the bits of the generic path."""

import numpy as np
import pytest
from support import FAST, PLAIN, Case, arguments, difference

import poolgrad
from poolgrad._kernels import native
from poolgrad._ops.semantics import Start
from poolgrad.windows import Axis, Plan, clip

OPS = ("MaxPool", "AvgPool", "MaxPoolGrad", "AvgPoolGrad", "MaxPoolGradGrad")

# Each case exceeds a limit of one path: op or ops, shape, window, stride, padding, more.
CASES = {
    "items that are long rows": (OPS, (9, 1, 20001, 1), (1, 3), (1, 2), "SAME", {}),
    "rows that do not stay near": (OPS, (1, 3, 140001, 1), (2, 2), (1, 2), "VALID", {}),
    "a few rows that do not stay near together": (OPS, (1, 5, 50001, 1), (3, 3), (1, 1), "SAME", {}),
    "many rows of several axes": (("MaxPool3D", "AvgPool3D"), (1, 4, 4000, 300, 1), (3, 3, 3), (1, 1, 1), "VALID", {}),
    "windows of one cell along the last axis": (OPS, (3, 20, 40, 1), (8, 1), (2, 2), "VALID", {}),
    "windows of 36 cells on small images": (OPS, (40, 12, 30, 1), (6, 6), (1, 1), "SAME", {}),
    "cells under more windows than are asked": (("MaxPoolGrad",), (40, 8, 8, 1), (6, 6), (1, 1), "VALID", {}),
    "maxima that are given": (("FractionalMaxPoolGrad",), (40, 8, 8, 1), (), (), "", {}),
    "more images than are kept": (("MaxPoolGrad",), (5000, 4, 4, 1), (2, 2), (2, 2), "VALID", {}),
    "halves that are weighed in parts": (
        ("AvgPoolGrad",),
        (1, 400, 400, 8),
        (3, 3),
        (1, 1),
        "SAME",
        {"dtype": "float16"},
    ),
    "halves of one channel": (OPS, (1, 300, 300, 1), (3, 3), (2, 2), "SAME", {"dtype": "float16"}),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_both_sides_of_a_limit_have_the_bits_of_the_generic_path(name, threads):
    ops, x, k, s, pad, more = CASES[name]
    for op in ops:
        case = Case(op, x=x, k=k or (2, 2), s=s, pad=pad or "VALID", **more)
        args = arguments(case)
        with poolgrad.threads(threads):
            assert not difference(FAST[op](**args), PLAIN[op](**args)), case


@pytest.mark.parametrize("span", [None, 5])
@pytest.mark.parametrize("start", [Start.INFINITY, Start.LOWEST])
def test_rows_start_from_what_their_windows_say(start, span):
    """Windows marked as cut, although none sticks out, start from the lowest finite value."""
    rows, cols = clip(40, 3, 2, 0, 19), clip(700, 3, 2, 0, 349)
    cols = Axis(700, cols.start, cols.stop, span)
    x = np.full((2, 40, 700), -np.inf, np.float32)
    x[:, ::7, ::5] = 1
    fast, plain = Plan(x.shape, {1: rows, 2: cols}), Plan(x.shape, {1: rows, 2: cols})
    native.native(plain, plain=True)
    assert native.select(fast, start, x).tobytes() == native.select(plain, start, x).tobytes()


@pytest.mark.parametrize("channels", [1, 8])  # so few of one byte that images are computed side by side
@pytest.mark.parametrize("image", [0, 20, 39])
def test_the_first_wrong_tap_is_found_in_whichever_image(image, channels):
    plan = Plan((40, 32, 32, channels), {1: clip(32, 2, 2, 0, 16), 2: clip(32, 2, 2, 0, 16)})
    taps = np.zeros(plan.dest, np.uint8)
    taps[image, 3, 5] = 4
    taps[image + 1 :, 0, 0] = 4
    with poolgrad.threads(1), pytest.raises(native.Astray) as wrong:
        native.place(plan, np.ones(plan.dest, np.int8), taps)
    assert wrong.value.at == ((image * 16 + 3) * 16 + 5) * channels


def test_what_has_no_cells_or_cannot_be_nan_is_whole():
    assert native.whole(np.zeros(0, np.float32))
    assert native.whole(np.arange(3))
    assert not native.whole(np.array([1, np.nan, 2], np.float32))
