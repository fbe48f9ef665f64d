"""Taps from outside: every path names the first wrong one. Taps are bytes for windows of up to 256 cells."""

import numpy as np
import pytest
from support import plain_verbs

import poolgrad
from poolgrad import reference, windows
from poolgrad._kernels import native
from poolgrad.windows import Axis, Plan, sliding_axis

PLANS = {
    "flat": Plan((2, 5, 7, 3), {1: windows.sliding_axis(5, 3, 2, 1, 3), 2: windows.sliding_axis(7, 3, 1, 1, 7)}),
    "rows": Plan((2, 9, 35, 1), {1: windows.sliding_axis(9, 3, 1, 1, 9), 2: windows.sliding_axis(35, 3, 2, 1, 18)}),
    "images side by side": Plan(
        (70, 4, 5, 1), {1: windows.sliding_axis(4, 2, 2, 0, 2), 2: windows.sliding_axis(5, 3, 1, 1, 5)}
    ),
    "one axis": Plan((3, 40, 17), {1: windows.sliding_axis(40, 5, 2, 2, 20)}),
    "three axes": Plan(
        (1, 3, 4, 6, 2),
        {
            1: windows.sliding_axis(3, 2, 1, 0, 3),
            2: windows.sliding_axis(4, 3, 2, 1, 2),
            3: windows.edges(6, [0, 1, 4, 6]),
        },
    ),
    "gaps": Plan((2, 9, 3), {1: Axis(9, [0, 4, 4], [2, 6, 9])}),
    "empty windows": Plan((2, 6, 5), {1: Axis(6, [0, 2, 2, 6], [2, 2, 5, 6])}),
    "256 cells": Plan((1, 16, 18, 2), {1: windows.whole(16), 2: windows.sliding_axis(18, 16, 1, 0, 3)}),
    "257 cells": Plan((1, 257, 3), {1: windows.whole(257)}),
    "long windows": Plan(
        (1, 31, 29, 2), {1: windows.sliding_axis(31, 21, 1, 10, 31), 2: windows.sliding_axis(29, 17, 1, 8, 29)}
    ),
}
GENERIC = plain_verbs()


def fresh(plan: Plan) -> Plan:
    """Return the plan once more: a plan that took the generic path keeps it."""
    return Plan(plan.source, {d: axis for d, axis in enumerate(plan.by_dimension) if axis is not None})


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_tap_outside_its_window_is_named_whatever_the_way(plan):
    x, g = np.zeros(plan.source, np.float32), np.ones(plan.dest, np.float32)
    taps = native.choose(plan, x)[1]
    count = np.array([len(cells) for cells in reference._windows(plan.axes)])
    some = np.broadcast_to((count > 0)[None, :, None], (plan.outer, len(count), plan.inner)).reshape(plan.outer, -1)
    item, later = some.shape[1], min(plan.outer - 1, 3)
    # The first wrong tap is last in its image, the second is first in a later image: side by side, the second would come first.
    at = sorted({int(np.flatnonzero(some[0])[-1]), int(np.flatnonzero(some[later])[0]) + item * later})
    for wrong in (at, at[-1:]):
        spoilt = taps.copy()
        spoilt.reshape(-1)[wrong] = np.iinfo(taps.dtype).max if count.max() < 256 else count.max()
        if (
            spoilt.reshape(plan.outer, -1, plan.inner) < count[None, :, None]
        ).all() or spoilt.max() < count.max() == 256:
            continue  # a byte cannot hold a wrong tap
        for name, array in (("pick", x), ("place", g)):
            found = set()
            for module, threads in ((reference, 1), (native, 1), (native, 3), (GENERIC, 1)):
                with poolgrad.threads(threads), pytest.raises(native.Astray) as error:
                    getattr(module, name)(fresh(plan), array, spoilt)
                found.add(error.value.at)
            assert found == {wrong[0]}, name


@pytest.mark.parametrize(("cells", "size"), [(256, 1), (257, 4)])
def test_a_tap_is_a_byte_up_to_256_cells(cells, size):
    plan = Plan((1, cells, 2), {1: windows.whole(cells)})
    x = np.zeros(plan.source, np.float32)
    x[0, -1] = 1
    y, taps = native.choose(plan, x)
    assert taps.itemsize == size
    assert y.ravel().tolist() == [1, 1]
    assert taps.ravel().tolist() == [cells - 1, cells - 1]
    assert native.place(plan, y, taps).tolist() == x.tolist()


@pytest.mark.parametrize("channels", [1, 8])  # so few of one byte that images are computed side by side
@pytest.mark.parametrize("image", [0, 20, 39])
def test_the_first_wrong_tap_is_found_in_whichever_image(image, channels):
    plan = Plan((40, 32, 32, channels), {1: sliding_axis(32, 2, 2, 0, 16), 2: sliding_axis(32, 2, 2, 0, 16)})
    taps = np.zeros(plan.dest, np.uint8)
    taps[image, 3, 5] = 4
    taps[image + 1 :, 0, 0] = 4
    with poolgrad.threads(1), pytest.raises(native.Astray) as wrong:
        native.place(plan, np.ones(plan.dest, np.int8), taps)
    assert wrong.value.at == ((image * 16 + 3) * 16 + 5) * channels
