"""The wrapper of the core: what it answers without a plan."""

import numpy as np

from poolgrad._kernels import native


def test_what_has_no_cells_or_cannot_be_nan_is_whole():
    assert native.whole(np.zeros(0, np.float32))
    assert native.whole(np.arange(3))
    assert not native.whole(np.array([1, np.nan, 2], np.float32))
