"""Sizes at which one schedule of the core ends and another begins: all of them give the bits of the generic one."""

import numpy as np
import pytest
from support import FAST, PLAIN, Case, arguments, difference

import poolgrad
from poolgrad import reference
from poolgrad._kernels import native
from poolgrad._ops.semantics import Start
from poolgrad.windows import Plan, sliding_axis

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


LARGE = {  # enough bytes for several threads
    "one image, cut between its rows": Plan(
        (1, 67, 64, 32), {1: sliding_axis(67, 2, 1, 0, 66), 2: sliding_axis(64, 2, 2, 0, 32)}
    ),
    "images that no number of threads divides": Plan(
        (11, 8, 8, 128), {1: sliding_axis(8, 2, 2, 0, 4), 2: sliding_axis(8, 2, 2, 0, 4)}
    ),
}


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("what", LARGE)
def test_a_result_is_whole_however_it_is_cut(what, threads):
    plan = LARGE[what]
    x = np.random.default_rng(0).integers(0, 9, plan.source).astype(np.float32)
    out = np.full(plan.dest, -7, np.float32)
    with poolgrad.threads(threads):
        native.select(plan, Start.LOWEST, x, out)
    assert (out == reference.select(plan, Start.LOWEST, x)).all()
