"""Route finds the maximum again in the input: NaN and flushed subnormals too."""

import numpy as np
import pytest

from poolgrad._kernels import native
from poolgrad._ops.semantics import Start
from poolgrad.windows import Plan, sliding_axis


def test_nan_may_be_the_maximum_of_a_window_that_begins_with_it():
    plan = Plan((6,), {0: sliding_axis(6, 2, 2, 0, 3)})
    x, y, g = np.array([np.nan, 1, 2, 3, 5, 4]), np.array([np.nan, 3, 5]), np.array([10.0, 20, 30])
    assert np.array_equal(native.select(plan, Start.FIRST, x), y, equal_nan=True)
    assert native.route(plan, x, g, y).tolist() == [10, 0, 0, 20, 30, 0]
    with pytest.raises(native.Astray, match="at flat position 1"):
        native.route(plan, x, g, np.array([np.nan, np.nan, 5]))


def test_an_output_that_was_flushed_to_zero_still_is_the_maximum():
    plan = Plan((4,), {0: sliding_axis(4, 2, 2, 0, 2)})
    x, g = np.array([1e-40, 0, 3, 2], np.float32), np.array([10, 20], np.float32)
    assert native.route(plan, x, g, np.array([0, 3], np.float32)).tolist() == [10, 0, 20, 0]
    with pytest.raises(native.Astray, match="at flat position 0"):
        native.route(plan, x, g, np.array([1e-30, 3], np.float32))
