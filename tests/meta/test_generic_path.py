"""A call on the generic path, with which the fast paths are compared, does not change the fast paths."""

import numpy as np
from support import FAST, PLAIN, Case, arguments

from poolgrad import _core, raw_ops
from poolgrad._kernels import native


def test_a_call_on_the_generic_path_does_not_make_the_next_one_generic(monkeypatch):
    args = arguments(Case("MaxPool", x=(1, 9, 9, 5)))
    made = []
    monkeypatch.setattr(
        native, "native", lambda plan, plain=False, native=native.native: made.append(native(plan, plain)) or made[-1]
    )
    FAST["MaxPool"](**args)
    PLAIN["MaxPool"](**args)
    FAST["MaxPool"](**args)
    raw_ops.MaxPool(**args)
    first, *_, last = made
    assert last is first, "the fast path has its own plan again"
    assert len({id(plan) for plan in made}) == 2
    assert isinstance(first, type(_core.Plan((1,), (1,), 1, 1, [(1, np.zeros(1, int), np.ones(1, int), None)])))
