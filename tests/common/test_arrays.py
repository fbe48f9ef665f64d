"""Arrays of the caller become arrays of ours: copies are whole, and a result that no memory holds is refused."""

import sys

import numpy as np
import pytest

from poolgrad import raw_ops
from poolgrad._common import arrays


class Hungry:
    """An object that asks for more memory than there is."""

    def __array__(self, *args: object, **kwargs: object) -> np.ndarray:
        raise MemoryError("hungry")


def test_memory_that_runs_out_is_no_wrong_argument():
    with pytest.raises(MemoryError, match="hungry"):
        raw_ops.MaxPool(input=Hungry(), ksize=[1, 1, 1, 1], strides=[1, 1, 1, 1], padding="SAME")


LIMITED = """
import resource, numpy as np
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
from poolgrad import raw_ops
x = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (1, 40000, 40000, 1), (0, 0, 0, 0))
try:
    raw_ops.MaxPool(input=x, ksize=[1, 1, 1, 1], strides=[1, 1, 1, 1], padding="SAME")
except MemoryError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="address spaces are limited on Linux")
def test_a_limit_of_the_process_counts_as_its_memory():
    from support import python

    done = python("-c", LIMITED, POOLGRAD_NUM_THREADS="1")
    assert "at most the 4294967296 bytes" in done.stdout, done.stderr


@pytest.mark.parametrize("turn", [lambda a: a.T, lambda a: a[::-1], lambda a: a.astype(">f8")])
def test_large_copies_are_whole(turn):
    given = turn(np.arange(2**22, dtype=np.float64).reshape(2**10, 2**12))
    copy = arrays._copy(given)
    assert copy.nbytes > arrays._STEP
    assert copy.flags.c_contiguous
    assert copy.dtype.isnative
    assert (copy == given).all()


def test_a_result_that_no_memory_holds_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr(arrays, "_memory", lambda: 2**28)
    n = 2**13 + 8
    grad = np.ones((1, 1, 1, 1), np.float32)
    sizes = {"ksize": [1, n, n, 1], "strides": [1, n, n, 1], "padding": "VALID"}
    with pytest.raises(MemoryError, match="AvgPoolGrad: orig_input_shape: got a call whose result has shape"):
        raw_ops.AvgPoolGrad(orig_input_shape=[1, n, n, 1], grad=grad, **sizes)
