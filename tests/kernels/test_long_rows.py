"""Items that are one long row: the core cuts the row into tasks, which must change neither the bits nor the work."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import PLAIN, Case, arguments, outputs

import poolgrad
from poolgrad import raw_ops

OPS = ["MaxPool", "AvgPool", "MaxPoolGrad", "AvgPoolGrad", "MaxPoolGradGrad", "MaxPoolWithArgmax"]
ROWS = [((1, 1, 40011, 1), (1, 4), (1, 2)), ((2, 1, 70001, 1), (1, 3), (1, 3)), ((1, 33333, 1, 1), (3, 1), (1, 1))]
ROWS += [((1, 1, 150001, 1), (1, 2), (1, 2)), ((9, 1, 9001, 1), (1, 5), (1, 2)), ((1, 1, 90001, 2), (1, 3), (1, 2))]


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize(("x", "k", "s"), ROWS)
@pytest.mark.parametrize("op", OPS)
def test_a_row_has_the_same_bits_in_one_task_and_in_many(op, x, k, s, dtype):
    args = arguments(Case(op, dtype, x, k, s, pad="SAME"))
    want = outputs(PLAIN[op](**args))
    for threads in (1, 2, 7):
        with poolgrad.threads(threads):
            got = outputs(getattr(raw_ops, op)(**args))
        for one, other in zip(got, want, strict=True):
            assert one.tobytes() == other.tobytes(), threads


def seconds(call: Callable[[], Any]) -> float:
    """Return the seconds of the best of several calls; the first call fills the caches."""
    call()
    taken = []
    for _ in range(7):
        begun = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def pool(op: str, n: int) -> Callable[[], Any]:
    """Return a call over one row; P and P.T follow the taps of its maxima."""
    if op[0] != "P":
        args = arguments(Case(op, "float32", (1, 1, n, 1), (1, 4), (1, 2), pad="SAME"))
        return lambda: getattr(raw_ops, op)(**args)
    x = np.random.default_rng(3).standard_normal(n).astype(np.float32)
    y, taps = poolgrad.max_pool(x, 4, 2, return_taps=True)
    return (lambda: taps.operator(x)) if op == "P" else (lambda: taps.operator.T(y))


TIMED = [*OPS, "P", "P.T"]


@pytest.mark.parametrize("op", TIMED)
def test_a_row_in_many_tasks_is_not_slower_than_in_one(op):
    """64 tasks that each look at the whole row take ten times as long."""
    call = pool(op, 1 << 20)
    with poolgrad.threads(1):
        alone = seconds(call)
    with poolgrad.threads(16):
        assert seconds(call) < 4 * alone


def test_the_maximum_of_a_long_row_is_that_of_numpy():
    x = np.random.default_rng(3).standard_normal((1, 1, 1 << 18, 1)).astype(np.float32)
    y = raw_ops.MaxPool(input=x, ksize=[1, 1, 4, 1], strides=[1, 1, 4, 1], padding="VALID")
    assert (y.reshape(-1) == x.reshape(-1, 4).max(axis=1)).all()
