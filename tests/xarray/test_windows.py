"""Windows by names: the rules of the boundary for every length, window, stride, padding and side, against their definition."""

from itertools import product

import numpy as np
import pytest

import poolgrad as pg
from poolgrad._common.errors import ArgumentErrors

xr = pytest.importorskip("xarray", reason="xarray is not installed")
sliding = pytest.importorskip("poolgrad.xarray.windows").sliding


def defined(n, k, s, pads, d, boundary, side):
    """Return the cells of each window by the definition; None if the boundary is to be exact and is not."""
    before, after = pads if side == "left" else pads[::-1]
    span = d * (k - 1) + 1
    starts = list(range(-before, n + after - span + 1, s))
    reached = max([start + span for start in starts], default=0)
    if reached < n and boundary == "exact":
        return None
    following = starts[-1] + s if starts else -before
    if reached < n and following < n and boundary == "pad":
        starts.append(following)
    windows = [[c for c in range(start, start + span, d) if 0 <= c < n] for start in starts]
    if side == "right":
        windows = [[n - 1 - c for c in reversed(cells)] for cells in reversed(windows)]
    return windows


LENGTHS, PADS = range(1, 8), ((0, 0), (1, 0), (0, 1), (1, 1), (2, 1))


@pytest.mark.parametrize("boundary", ["exact", "trim", "pad"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_every_boundary(boundary, side):
    seen = {"made": 0, "refused": 0, "skipped": 0, "empty": 0}
    for n, k, s, pads, d in product(LENGTHS, (1, 2, 3), (1, 2, 4), PADS, (1, 2)):
        want = defined(n, k, s, pads, d, boundary, side)

        def make(n=n, k=k, s=s, pads=pads, d=d):
            words = {"stride": s, "padding": pads, "dilation": d, "boundary": boundary, "side": side}
            made = sliding(ArgumentErrors("pool.max"), {"x": n}, {"x": k}, **words)["x"]
            return made.skip, made.axis

        if want is None or [] in want:
            seen["refused"] += 1
            with pytest.raises(ValueError, match="boundary: got 'exact'" if want is None else "without a cell"):
                make()
            continue
        skip, axis = make()
        got = [[skip + c for c in range(a, b, d)] for a, b in axis.pairs()]
        assert got == want, (n, k, s, pads, d)
        seen["made"] += 1
        seen["skipped"] += skip > 0
        seen["empty"] += want == []
    assert seen["made"] > 200
    assert seen["refused"] > 20
    assert (seen["skipped"] > 20) == (side == "right" and boundary != "exact")
    assert (seen["empty"] > 0) == (boundary == "trim")


@pytest.mark.parametrize("side", ["left", "right"])
def test_arrays_and_labels_follow_the_windows(side):
    for n, k, pads, boundary in product((5, 6, 7), (2, 3), PADS[:4], ("trim", "pad")):
        x = xr.DataArray(np.arange(n), dims="x", coords={"x": np.arange(n)})
        words = {"stride": 2, "padding": pads, "boundary": boundary, "side": side}
        want = defined(n, k, 2, pads, 1, boundary, side)
        low, high = x.pool.min(x=k, coords="left", **words), x.pool.max(x=k, coords="right", **words)
        assert low.values.tolist() == low.x.values.tolist() == [cells[0] for cells in want]
        assert high.values.tolist() == high.x.values.tolist() == [cells[-1] for cells in want]
        assert x.pool.sum(x=k, **words).values.tolist() == [sum(cells) for cells in want]


def test_same_padding_needs_no_boundary():
    x = xr.DataArray(np.arange(7), dims="x")
    for word in ("same", "same_lower"):
        for k, s in product((1, 2, 3, 4), (1, 2, 3)):
            got = x.pool.max(x=k, stride=s, padding=word).values
            assert np.array_equal(got, pg.max_pool(x.values, k, s, padding=word))
