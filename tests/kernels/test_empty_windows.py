"""Windows without cells, which no operator makes but a caller of the native module may: kernels touch no memory, both paths agree."""

import numpy as np
import pytest

from poolgrad import _core
from poolgrad._ops.semantics import Mean, Start
from poolgrad.windows import Axis, Plan

ALONG = {n: Axis(n, np.maximum(np.arange(n) - 1, 0), np.minimum(np.arange(n) + 2, n), 3) for n in (17, 40, 70)}
UPPER = {
    "none has a cell": lambda n: Axis(n, [n] * 5, [n] * 5),
    "some have none": lambda n: Axis(n, [0, n // 2, n // 2, n], [n // 2, n // 2, n, n]),
    "the first has none": lambda n: Axis(n, [0] * 3, [0, n // 2, n]),
}


def both(plan: Plan, verb: str, *rest):
    axes = [(a.length, a.start, a.stop, a.span) for a in plan.axes]
    made = [_core.Plan(plan.source, plan.dest, plan.outer, plan.inner, axes, plain) for plain in (False, True)]
    return [getattr(_core, verb)(plan, *rest, None) for plan in made]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("rows", [0, 1, 6])
@pytest.mark.parametrize("name", UPPER)
def test_both_paths_agree_where_windows_are_empty(name, rows, dtype):
    for columns, along in ALONG.items():
        plan = Plan((3, rows, columns), {1: UPPER[name](rows), 2: along})
        x = np.random.default_rng(4).integers(-9, 9, plan.source).astype(dtype)
        x = np.where(x < -6, -np.inf, x).astype(dtype) if x.dtype.kind == "f" else x
        for start in (Start.LOWEST, Start.INFINITY):
            fast, plain = both(plan, "select", start, x)
            assert fast.tobytes() == plain.tobytes()
        fast, plain = both(plan, "fold", Mean.TOTAL, np.nan_to_num(x, neginf=0))
        assert fast.tobytes() == plain.tobytes()
