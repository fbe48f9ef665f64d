"""Bad words get an error that names the pool, the argument, what came and what was wanted; nothing else happens."""

import re

import numpy as np
import pytest

import poolgrad as pg

x = np.zeros((4, 4))
WRONG = {
    "window 0": lambda: pg.max_pool(x, 0),
    "window 2.0": lambda: pg.max_pool(x, 2.0),
    "window True": lambda: pg.max_pool(x, True),
    "window None": lambda: pg.max_pool(x, None),
    "windows for other axes": lambda: pg.max_pool(x, (2, 2, 2)),
    "windows over another length": lambda: pg.max_pool(x, [pg.Axis(3, [0], [2])] * 2),
    "windows without cells": lambda: pg.max_pool(x, [pg.Axis(4, [0, 2], [2, 2])] * 2),
    "window of 71 bits": lambda: pg.max_pool(x, 2**70),
    "boundaries that are none": lambda: pg.max_pool(x, [2, (1, 2)]),
    "layout of another rank": lambda: pg.max_pool(x, 2, layout="NHW"),
    "layout and axes": lambda: pg.max_pool(x, 2, layout="HW", axes=0),
    "axes twice": lambda: pg.max_pool(x, 2, axes=(0, 0)),
    "axes out of order": lambda: pg.max_pool(x, 2, axes=(1, 0)),
    "no such axis": lambda: pg.max_pool(x, 2, axes=5),
    "axes as text": lambda: pg.max_pool(x, 2, axes="a"),
    "padding word": lambda: pg.max_pool(x, 2, padding="full"),
    "padding None": lambda: pg.max_pool(x, 2, padding=None),
    "padding as long as the window": lambda: pg.max_pool(x, 2, padding=2),
    "padding of one number in a pair": lambda: pg.max_pool(x, 2, padding=[(1,), (1,)]),
    "negative padding": lambda: pg.max_pool(x, 2, padding=-1),
    "more windows than memory": lambda: pg.max_pool(x, 2**40, 1, padding=2**40 - 1),
    "stride 0": lambda: pg.max_pool(x, 2, stride=0),
    "dilation 0": lambda: pg.max_pool(x, 2, dilation=0),
    "no rules": lambda: pg.max_pool(x, 2, ties="x", nan="y"),
    "taps of all ties": lambda: pg.max_pool(x, 2, ties="all", return_taps=True),
    "text": lambda: pg.max_pool("a", 2),
    "nothing": lambda: pg.max_pool(None, 2),
    "a scalar": lambda: pg.max_pool(np.zeros(()), 2),
    "complex numbers": lambda: pg.max_pool(x.astype(complex), 2),
    "objects": lambda: pg.avg_pool(x.astype(object), 2),
    "masked cells": lambda: pg.max_pool(np.ma.masked_array(x, x == 0), 2),
    "divisor 0": lambda: pg.avg_pool(x, 2, divisor=0),
    "no dtype": lambda: pg.avg_pool(x, 2, dtype="nonsense"),
    "dtype of text": lambda: pg.avg_pool(x, 2, dtype="U3"),
    "no rounding": lambda: pg.avg_pool(x, 2, rounding="up"),
    "out that is no array": lambda: pg.max_pool(x, 2, out=3),
    "negative size": lambda: pg.adaptive_max_pool(x, -1),
    "sizes for other axes": lambda: pg.adaptive_avg_pool(x, (1, 2), axes=0),
    "ratio below 1": lambda: pg.fractional_max_pool(x, 0.5),
    "ratio NaN": lambda: pg.fractional_max_pool(x, float("nan")),
    "ratio and size": lambda: pg.fractional_max_pool(x, 1.5, size=2),
    "more windows than cells": lambda: pg.fractional_avg_pool(x, size=9),
    "seed as text": lambda: pg.fractional_max_pool(x, 1.5, seed="a"),
    "three seeds": lambda: pg.fractional_max_pool(x, 1.5, seed=(1, 2, 3)),
    "no cells at all": lambda: pg.global_max_pool(np.zeros((0, 3))),
    "norm 0": lambda: pg.lp_pool(x, 2, p=0),
    "norm of integers": lambda: pg.lp_pool(x.astype(int), 2),
    "windows over nothing": lambda: pg.fractional_windows(0, 2),
    "a negative shape": lambda: pg.plan((-1,), 2),
    "windows that are a number": lambda: pg.max_operator(x, 3),
    "windows of another shape": lambda: pg.max_operator(x, pg.plan((5, 5), 2)),
    "averaging over a number": lambda: pg.averaging(3),
    "an operator on another shape": lambda: pg.averaging(pg.plan((4, 4), 2))(np.zeros(3)),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_error_says_what_came_and_what_was_wanted(name):
    with pytest.raises((ValueError, TypeError, MemoryError)) as error:
        WRONG[name]()
    assert re.match(r"[\w ]+: [\w.]+: got .+, wanted .+", str(error.value)), error.value


NAMED = {  # the argument that the caller gave is the one that is blamed
    "x": lambda: pg.fractional_max_pool(np.zeros((2, 0)), 1.5),
    "size": lambda: pg.adaptive_max_pool(x, (1, 2, 3)),
    "ratio": lambda: pg.fractional_max_pool(np.zeros(1), 2.0),
    "ratio for other axes": lambda: pg.fractional_avg_pool(x, (1.5, 1.5, 1.5)),
    "pseudo_random": lambda: pg.fractional_max_pool(x, 1.5, pseudo_random="False"),
    "overlapping": lambda: pg.fractional_avg_pool(x, 1.5, overlapping=None),
    "return_windows": lambda: pg.fractional_max_pool(x, 1.5, return_windows="no"),
    "keepdims": lambda: pg.global_max_pool(x, keepdims="False"),
}


@pytest.mark.parametrize("name", NAMED)
def test_an_error_blames_the_argument_that_was_given(name):
    with pytest.raises((ValueError, TypeError), match=rf"^\w+_pool: {name.split()[0]}: got .+, wanted .+"):
        NAMED[name]()


def test_time_does_not_depend_on_the_value_of_a_word():
    big = 2**61
    assert pg.max_pool(x, 2, stride=big).shape == (1, 1)
    assert pg.max_pool(x, big, stride=big).shape == (0, 0)
    assert pg.max_pool(x, 2, dilation=big).shape == (0, 0)
    assert pg.max_pool(np.zeros((0, 4)), 2).shape == (0, 2)
