"""The core, and Python before it, read each argument once: a caller may change it between a check and its use."""

import numpy as np
import pytest
from support import python

import poolgrad as pg
from poolgrad import _core, raw_ops, reference
from poolgrad.windows import Axis, Plan

SEQUENCE = [0, 2, 3, 6]
G = np.arange(9, dtype=np.float32).reshape(1, 3, 3, 1)


def changing(monkeypatch, change) -> None:
    """Call `change` once a call has been bound, as another thread could."""
    true = raw_ops.bind

    def bind(*args):
        call = true(*args)
        change()
        return call

    monkeypatch.setattr(raw_ops, "bind", bind)


@pytest.mark.parametrize("kind", [np.array, list], ids=["array", "list"])
def test_a_sequence_that_changes_during_a_call_is_not_kept_for_the_next(monkeypatch, kind):
    words = {"orig_input_tensor_shape": np.array([1, 6, 6, 1]), "out_backprop": G, "overlapping": True}
    row, other = kind(SEQUENCE), [0, 1, 4, 6]
    with monkeypatch.context() as patch:
        changing(patch, lambda: row.__setitem__(slice(None), other))
        raw_ops.FractionalAvgPoolGrad(row_pooling_sequence=row, col_pooling_sequence=kind(SEQUENCE), **words)
    quiet = {"row_pooling_sequence": kind(other), "col_pooling_sequence": kind(SEQUENCE), **words}
    want = raw_ops.make(raw_ops.OPS["FractionalAvgPoolGrad"], reference)(**quiet)
    np.testing.assert_array_equal(raw_ops.FractionalAvgPoolGrad(**quiet), want)


def test_sizes_that_change_during_a_call_are_not_kept_for_the_next(monkeypatch):
    x, ksize = np.arange(36, dtype=np.float32).reshape(1, 6, 6, 1), [1, 2, 2, 1]
    words = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    with monkeypatch.context() as patch:
        changing(patch, lambda: ksize.__setitem__(slice(None), [1, 3, 3, 1]))
        raw_ops.AvgPool(value=x, ksize=ksize, **words)
    want = raw_ops.make(raw_ops.OPS["AvgPool"], reference)(value=x, ksize=[1, 3, 3, 1], **words)
    np.testing.assert_array_equal(raw_ops.AvgPool(value=x, ksize=[1, 3, 3, 1], **words), want)


@pytest.mark.parametrize("reduce", ["sum", "assign"])
def test_an_unpooling_does_not_follow_positions_that_change_later(reduce):
    index = np.array([3, 0, 3])
    operator = pg.unpooling(index, (5,), reduce)
    index[:] = 10**9
    want = [2.0, 0, 0, 4 if reduce == "sum" else 3, 0]
    assert operator(np.array([1.0, 2.0, 3.0])).tolist() == want


def test_an_axis_does_not_follow_boundaries_that_change_later():
    start, stop = np.array([0, 1]), np.array([2, 3])
    writable = start[:]
    start.flags.writeable = False
    axis = Axis(3, start, stop)
    writable[0] = stop[0] = 2**60
    assert axis.pairs() == [(0, 2), (1, 3)]


def test_wide_taps_that_change_while_they_are_converted_are_refused_or_right():
    plan = Plan((4,), {0: Axis(4, [0, 2], [2, 4])})
    taps = np.array([1, 0], np.int64)
    operator = pg.picking(plan, taps)
    taps[:] = 257  # would become 1 as a byte
    assert operator(np.array([5.0, 6.0, 7.0, 8.0])).tolist() == [6, 7]


def test_no_memory_for_a_result_is_said_with_its_size():
    with pytest.raises(MemoryError, match=r"^out: got a result of \d+ bytes, wanted no more than the memory there is$"):
        _core.empty((2**44,), np.zeros(1, np.float64))
    none = np.zeros(1, np.int64)
    with pytest.raises(MemoryError, match=r"^axes: got windows whose tables need too much, wanted "):
        _core.spread(_core.Plan((0,), (0,), 0, 1, [(2**45, none, none + 1, None)]), 0, False, np.zeros(0, np.float32))


SCARCE = """
import resource
import numpy as np
import poolgrad as pg
from poolgrad import raw_ops
x = np.zeros((1, 3000, 3000, 1), np.float32)
large = np.zeros((1, 1, 40_000_000, 1), np.float32)[0, 0, :, 0]
pg.max_pool(x, 2, layout="NHWC")
pg.set_kept_memory(0) if hasattr(pg, "set_kept_memory") else None
index = np.zeros(1000, np.int64)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (20 << 20), resource.RLIM_INFINITY))
calls = {
    "MaxPool": lambda: raw_ops.MaxPool(input=x, ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="SAME"),
    "max_pool": lambda: pg.max_pool(x, 2, stride=1, layout="NHWC"),
    "avg_pool": lambda: pg.avg_pool(x, 2, stride=1, layout="NHWC"),
    "sum_pool": lambda: pg.sum_pool(large, 7, stride=1),
    "unpool": lambda: pg.unpool(np.zeros(1000), index, (9_000_000,)),
}
for name, call in calls.items():
    try:
        call()
        print(name, "worked")
    except MemoryError as error:
        print(error)
"""


def test_where_memory_runs_out_op_and_argument_are_named():
    done = python("-c", SCARCE)
    lines = done.stdout.strip().splitlines()
    assert [line.split(":")[0] for line in lines] == ["MaxPool", "max_pool", "avg_pool", "sum_pool", "unpool"], (
        done.stdout + done.stderr
    )
    assert all(": got " in line and "wanted " in line for line in lines), done.stdout
