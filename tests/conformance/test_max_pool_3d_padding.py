"""Padding takes part in MaxPool3D as the lowest finite value, even where the axis has a single cell."""

import numpy as np
import pytest
from support import FAST, SLOW

LOWEST = np.finfo(np.float32).min


@pytest.mark.parametrize("run", [FAST, SLOW], ids=["kernels", "reference"])
@pytest.mark.parametrize("shape", [(1, 1, 1, 1, 3), (1, 1, 4, 4, 3), (1, 4, 1, 4, 3), (1, 4, 4, 1, 20)])
def test_a_window_of_minus_infinities_that_touches_padding_gives_the_lowest_number(run, shape):
    x = np.full(shape, -np.inf, np.float32)
    y = run["MaxPool3D"](input=x, ksize=[1, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1], padding="SAME")
    cut = np.zeros(shape, bool)
    for axis in (1, 2, 3):
        last = np.arange(shape[axis]) == shape[axis] - 1
        cut |= last.reshape([-1 if d == axis else 1 for d in range(5)])
    assert (y == np.where(cut, LOWEST, -np.inf)).all()
