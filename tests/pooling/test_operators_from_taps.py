"""An operator made from stored taps is the one that chose them."""

import numpy as np
import pytest

import poolgrad as pg

WINDOWS = pg.plan((2, 7, 6), (3, 2), 2, padding=1, axes=(1, 2))
LONG = pg.plan((400,), 300, 100)


@pytest.mark.parametrize("windows", [WINDOWS, LONG], ids=["bytes", "more than bytes"])
@pytest.mark.parametrize("dtype", [None, np.int64])
def test_stored_taps_give_the_operator_of_the_maximum(windows, dtype):
    x = np.random.default_rng(0).integers(0, 9, windows.source).astype(np.float32)
    y, chosen = pg.max_operator(x, windows)
    taps = chosen.taps if dtype is None else chosen.taps.astype(dtype)
    again = pg.picking(windows, taps)
    g = np.arange(y.size, dtype=np.float32).reshape(y.shape)
    assert np.array_equal(again(x), y)
    assert np.array_equal(again.T(g), chosen.T(g))


@pytest.mark.parametrize(
    ("windows", "taps", "error", "text"),
    [
        (None, np.zeros(2, np.uint8), TypeError, "picking: windows: got None"),
        (LONG, np.zeros(3, np.uint8), ValueError, r"taps: got shape \[3\], wanted \[2\]"),
        (LONG, np.zeros(2), TypeError, "taps: got dtype float64, wanted integers"),
        (WINDOWS, np.full(WINDOWS.dest, 256), ValueError, "taps: got a tap outside its window"),
        (WINDOWS, np.full(WINDOWS.dest, -1), ValueError, "taps: got a tap outside its window"),
    ],
)
def test_what_are_no_taps_is_refused(windows, taps, error, text):
    with pytest.raises(error, match=text):
        pg.picking(windows, taps)


def test_a_tap_outside_a_window_that_was_cut_is_refused_where_it_is_followed():
    taps = np.full(WINDOWS.dest, 5, np.uint8)  # a cell of whole windows only
    with pytest.raises(ValueError, match=r"picking: taps: got a tap at \[0, 0, 0\] outside its window"):
        pg.picking(WINDOWS, taps)(np.zeros(WINDOWS.source))
