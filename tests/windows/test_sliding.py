"""Each maker against a loop over all cells that tests if a window has the cell."""

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import out_length

from poolgrad import max_pool, raw_ops, windows
from poolgrad._ops.table import OPS
from poolgrad._windows.regular import LONG
from poolgrad._windows.sliding import EmptyWindow, adaptive_axis, how_many, slide
from poolgrad.windows import Axis, edges, sliding_axis, whole

GRID = list(product(range(1, 10), range(1, 12), range(1, 6)))  # length, window, stride


def cells(axis: windows.Axis) -> list[list[int]]:
    return [list(range(a, b)) for a, b in axis.pairs()]


def same_pad(n: int, k: int, s: int) -> int:
    """Return the leading cells under SAME: half of what is missing, the odd one at the end."""
    return max(0, (out_length(n, k, s, "SAME") - 1) * s + k - n) // 2


def true_window(n: int, k: int, s: int, p: int, m: int) -> list[list[int]]:
    """Return the cells of each window: window i has cell j if j is one of the k cells from i*s - p on."""
    return [[j for j in range(n) if any(i * s - p + t == j for t in range(k))] for i in range(m)]


def gradient_window(n: int, k: int, s: int, p: int, m: int) -> list[list[int]]:
    """Return the cells of each window by the loop of the averaging gradients, word for word."""
    found = []
    for i in range(m):
        b = i * s
        size, lo = (k + b - p, 0) if b < p else (k, b - p)
        if lo + k > n:
            size = min(n - lo, k)
        found.append([j for j in range(n) if lo <= j < lo + size])
    return found


@pytest.mark.parametrize("maker", ["sliding_axis", "reach"])
def test_same_windows_hold_the_cells_of_the_definition(maker):
    define = true_window if maker == "sliding_axis" else gradient_window
    for n, k, s in GRID:
        m, p = out_length(n, k, s, "SAME"), same_pad(n, k, s)
        axis = getattr(windows, maker)(n, k, s, p, m)
        assert cells(axis) == define(n, k, s, p, m), f"windows.{maker}({n}, k={k}, s={s}, pad={p}, m={m})"


def test_valid_windows_hold_the_cells_of_the_definition():
    for n, k, s in GRID:
        m = out_length(n, k, s, "VALID")
        assert windows.valid_length(n, k, s) == m, f"windows.valid_length({n}, {k}, {s})"
        if m >= 0:
            assert cells(windows.sliding_axis(n, k, s, 0, m)) == true_window(n, k, s, 0, m), (
                f"windows.sliding_axis({n}, {k}, {s}, 0, {m})"
            )


def test_explicit_windows_hold_the_cells_of_the_definition():
    for n, k, s in product(range(1, 7), range(1, 6), range(1, 4)):
        for before, after in product(range(k), range(k)):
            m = out_length(n, k, s, "VALID", (before, after))
            if m > 0:
                want = true_window(n, k, s, before, m)
                assert cells(windows.sliding_axis(n, k, s, before, m)) == want, (
                    f"windows.sliding_axis({n}, {k}, {s}, {before}, {m})"
                )
                assert all(want), "a window that holds no cell"


def test_same_lengths_and_pads_are_those_of_the_definition():
    for n, k, s in GRID:
        assert windows.same_length(n, s) == out_length(n, k, s, "SAME")
        assert max(windows.same_pad(n, k, s), 0) == same_pad(n, k, s), f"windows.same_pad({n}, {k}, {s})"
        total = (out_length(n, k, s, "SAME") - 1) * s + k - n
        assert windows.same_pad(n, k, s) == int(total / 2), f"windows.same_pad({n}, {k}, {s})"


def test_a_span_is_the_window_before_it_was_cut():
    axis = windows.sliding_axis(5, k=4, s=2, pad=1, m=3)
    assert axis.pairs() == [(0, 3), (1, 5), (3, 5)]
    assert axis.span.tolist() == [4, 4, 4]
    assert axis.count.tolist() == [3, 4, 2]


def shifted_window(n: int, k: int, s: int) -> list[list[int]]:
    """Return the true windows, except that the leading pad of SAME may be negative, truncated toward zero."""
    m = out_length(n, k, s, "SAME")
    return true_window(n, k, s, int(((m - 1) * s + k - n) / 2), m)


@pytest.mark.parametrize("name", [name for name, op in OPS.items() if op.rule.windows.value == "shift"])
def test_forward_windows_in_three_dimensions_shift_where_the_stride_is_longer(name):
    for n, k, s in GRID:
        sizes = {"ksize": [1, k, 1, 1, 1], "strides": [1, s, 1, 1, 1], "padding": "SAME"}
        ramp = np.arange(n, dtype=np.float64).reshape(1, n, 1, 1, 1)
        want = shifted_window(n, k, s)
        if name == "MaxPool3D":
            lo = -raw_ops.MaxPool3D(input=-ramp, **sizes).ravel()
            hi = raw_ops.MaxPool3D(input=ramp, **sizes).ravel()
            got = [list(range(int(a), int(b) + 1)) for a, b in zip(lo, hi, strict=True)]
        else:
            one_hot = np.eye(n).reshape(1, n, 1, 1, n)
            got = [np.flatnonzero(row).tolist() for row in raw_ops.AvgPool3D(input=one_hot, **sizes).reshape(-1, n)]
        assert got == want, f"{name}, n={n}, k={k}, s={s}"


def test_edges_hold_the_cells_between_their_borders():
    rng = np.random.default_rng(5)
    for _ in range(300):
        n = int(rng.integers(2, 14))
        inner = rng.choice(np.arange(1, n), int(rng.integers(0, n - 1)), replace=False)
        border = [0, *sorted(inner.tolist()), n - int(rng.integers(0, 2) and n - 1 not in inner)]
        for over in (False, True):
            want = [[j for j in range(n) if a <= j <= (b if over else b - 1)] for a, b in pairwise(border)]
            assert cells(windows.edges(n, border, over)) == want, f"windows.edges({n}, {border}, {over})"


def test_whole_is_one_window_over_everything():
    assert [windows.whole(n).pairs() for n in (1, 2, 9)] == [[(0, 1)], [(0, 2)], [(0, 9)]]


def test_a_window_cut_down_to_the_cell_itself_still_was_cut():
    assert not windows.sliding_axis(1, 3, 1, 1, 1).identity
    assert windows.sliding_axis(1, 1, 1, 0, 1).identity
    x = np.full((1, 1, 1, 1, 2), -np.inf, np.float32)
    sizes = {"ksize": [1, 1, 3, 1, 1], "strides": [1, 1, 1, 1, 1], "padding": "SAME"}
    lowest = float(np.finfo(np.float32).min)
    assert raw_ops.MaxPool3D(input=x, **sizes).ravel().tolist() == [lowest, lowest]


@given(
    st.integers(0, 40), st.integers(1, 9), st.integers(1, 9), st.integers(1, 4), st.integers(0, 20), st.integers(0, 20)
)
def test_slide_and_share_hold_the_windows_of_the_definition(n, k, s, d, before, after):
    m = how_many(n, k, s, d, (before, after), False)
    first = [i * s - before for i in range(m)]
    step = 1 if k == 1 else d
    start = [f if f >= 0 else f % step for f in first]
    stop = [min(f + step * (k - 1) + 1, n) for f in first]
    empty = [i for i in range(m) if start[i] >= stop[i]]
    if empty:
        with pytest.raises(EmptyWindow) as error:
            slide(n, k, s, d, (before, after), False)
        assert error.value.window == empty[0]
    else:
        axis = slide(n, k, s, d, (before, after), False)
        assert axis.pairs() == list(zip(start, stop, strict=True))
        reach = [min(step * (k - 1) + 1, n + after - f) for f in first]
        assert axis.span.tolist() == [-(-r // step) for r in reach]
        assert axis.count.tolist() == [len(range(a, b, step)) for a, b in zip(start, stop, strict=True)]
    if n and m:
        shares = adaptive_axis(n, m).pairs()
        assert shares == [(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: Axis(5, [0], [3], step=0), ValueError),
        (lambda: Axis(5, [0, 1], [3]), ValueError),
        (lambda: Axis(5, [0, 2], [3, 2]), ValueError),
        (lambda: Axis(5, [2**63 - 1], [-(2**63)]), ValueError),
        (lambda: Axis(-1, [], []), ValueError),
        (lambda: sliding_axis(5, 2**70, 1, 0, 1), TypeError),
        (lambda: sliding_axis(5, 3, 1, 0, -1), ValueError),
        (lambda: edges(5, [0, 7, 3]), ValueError),
        (lambda: edges(5.5, [0, 3]), TypeError),
        (lambda: whole(-1), ValueError),
    ],
)
def test_axes_refuse_windows_that_cannot_be(make, kind):
    with pytest.raises(kind, match=r"^Axis: [\w, ]+: got .*, wanted "):
        make()


def test_boundaries_may_lie_anywhere_in_memory():
    crooked = np.frombuffer(b"\0" + np.arange(12).tobytes(), np.int64, offset=1, count=12)
    for values in (
        np.arange(12)[::3],
        crooked[::3],
        np.arange(12, dtype=">i8")[::3],
        np.arange(12, dtype=np.uint8)[::3],
    ):
        assert Axis(12, values, values + 1).start.tolist() == [0, 3, 6, 9]


class Number:
    """An integer that is no int."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value

    def __repr__(self):
        return "Number"


def answer(make, n, k, s, pad, m):
    """Return what a maker answers: the windows at both ends and their number, or the error without the number of windows."""
    try:
        axis = make(n, k, s, pad, m)
    except (TypeError, ValueError) as error:
        return type(error), str(error).replace(f", {m})", ")").split(": got windows [")[0]
    some = [(int(axis.start[i]), int(axis.stop[i]), int(axis.span[i])) for i in (0, 1, 2, 3, 4)]
    return len(axis) == m, type(axis.length), some


CELLS = LONG + 10


@pytest.mark.parametrize("make", [sliding_axis, windows.reach])
@pytest.mark.parametrize(
    ("n", "k", "s", "pad"),
    [
        (CELLS, 3.0, 1, 0),
        (CELLS, 3.5, 1, 0),
        (CELLS, 3, 1.0, 0),
        (CELLS, 3, 1, 0.5),
        (float(CELLS), 3, 1, 0),
        (CELLS, "3", 1, 0),
        (CELLS, [3], 1, 0),
        (CELLS, None, 1, 0),
        (CELLS, np.float64(3), 1, 0),
        (CELLS, np.bool_(True), 1, 0),
        (CELLS, True, 1, 0),
        (CELLS, np.int8(3), np.uint16(1), False),
        (np.int64(CELLS), Number(3), 1, 0),
        (CELLS, 3, 0, 0),
        (CELLS, 3, -1, 0),
        (CELLS, 3, 1, -4),
        (CELLS, 3, 1, 3),
        (CELLS, 0, 1, -1),
        (CELLS, 0, 1, 0),
        (CELLS, -5, 1, -10),
        (CELLS, 2**62, 1, 0),
        (CELLS, 2**63 - 1, 1, 2),
        (CELLS, 2**70, 1, 0),
        (CELLS, 3, 2**70, 0),
        (CELLS, 3, 1, -(2**70)),
        (2**62, 3, 1, 0),
        (2**62, 2**62, 1, 2**40),
        (2**62 + 1, 3, 1, 0),
        (2**70, 3, 1, 0),
        (0, 3, 1, 0),
        (-5, 3, 1, 0),
    ],
)
def test_few_windows_and_many_are_refused_alike(make, n, k, s, pad):
    few, many = (answer(make, n, k, s, pad, m) for m in (5, LONG))
    assert few == many


@pytest.mark.parametrize("m", [5, LONG])
@pytest.mark.parametrize("make", [sliding_axis, windows.reach])
def test_a_float_is_refused_before_and_after_its_integer(make, m):
    n = CELLS + 1
    for _ in range(2):
        for at in range(5):
            args: list[Any] = [n, 3, 1, 0, m]
            args[at] = float(args[at])
            with pytest.raises(TypeError, match=r"^Axis: windows: got .*, wanted integers "):
                make(*args)
        assert max_pool(np.zeros(n, np.float32), make(n, 3, 1, 0, m)).shape == (m,)


def test_a_long_axis_with_a_window_without_a_cell_is_refused_by_pools():
    for m in (5, LONG):
        for k, pad in ((0, -1), (-5, -10)):
            with pytest.raises(ValueError, match=r"^max_pool: window: got window 0 without a cell, wanted "):
                max_pool(np.zeros(CELLS), sliding_axis(CELLS, k, 1, pad, m))
