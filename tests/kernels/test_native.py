"""The wrapper of the core: what it answers without a plan, and whom a call wakes."""

import time

import numpy as np

import poolgrad
from poolgrad._kernels import native
from poolgrad._ops.semantics import Start
from poolgrad.windows import Plan, edges


def test_what_has_no_cells_or_cannot_be_nan_is_whole():
    assert native.whole(np.zeros(0, np.float32))
    assert native.whole(np.arange(3))
    assert not native.whole(np.array([1, np.nan, 2], np.float32))


def test_a_lone_call_wakes_no_thread():
    plan = Plan((1, 64, 32, 64), {1: edges(64, range(0, 65, 2))})
    x = np.zeros(plan.source, np.float32)
    with poolgrad.threads(2):
        native.select(plan, Start.LOWEST, x)
        time.sleep(0.01)
        begin = time.process_time()
        for _ in range(20):
            native.select(plan, Start.LOWEST, x)
            time.sleep(0.003)  # a thread that was woken looks for more work for a millisecond
        assert time.process_time() - begin < 0.012
