"""Every op, dtype and geometry, and rows of 1 to 130 cells, on guarded memory. Run by test_guarded_memory.py in a process of its own."""

from __future__ import annotations

import faulthandler
import sys
from collections.abc import Iterator

import numpy as np
from geometry import cases
from guarded_ops import AT_BEGIN, AT_END, guarded, guarded_verbs
from support import FAST, Case, arguments, difference, draw, rng_of

from poolgrad import windows
from poolgrad._kernels import native
from poolgrad._ops.semantics import Mean, Share
from poolgrad._ops.table import FLOATS, OPS, REALS
from poolgrad.windows import Plan

EVERY = ("int8", "float32")
SOME = (*range(1, 19), 31, 32, 33, 63, 64, 65, 127, 128, 129)


def geometries(name: str, dtype: str) -> list[Case]:
    """Return the oracle's geometries, then runs of lanes of every length, or of lengths near the width of a vector."""
    op = OPS[name]
    found = [case for data in ("ties", "wild") for case in cases(name, dtype, data)]
    if op.family[0] == "f":
        return found + [Case(name, dtype, x=(1, 4, 4, c), ratio=(1.5, 1.4), data="wild") for c in range(1, 130, 7)]
    k, s = (2,) * op.spatial, (1,) * op.spatial
    space = (3,) * op.spatial
    lengths = range(1, 131) if dtype in EVERY else SOME
    found += [Case(name, dtype, x=(1, *space, c), k=k, s=s, pad="SAME", data="wild") for c in lengths]
    return found + [Case(name, dtype, x=(1, *space[1:], n, 1), k=k, s=s, pad="SAME") for n in lengths if n > 1]


def plans() -> Iterator[Plan]:
    """Yield plans: rows, and inner elements, of every length near the width of a vector; images side by side; long windows."""
    for n in SOME:
        pooled = {1: windows.sliding_axis(3, 2, 1, 0, 3), 2: windows.sliding_axis(n, 3, 2, 1, (n + 1) // 2)}
        yield Plan((2, 3, n, 1), pooled)
        yield Plan((1, 3, 5, n), {1: windows.sliding_axis(3, 2, 1, 0, 3), 2: windows.sliding_axis(5, 3, 2, 1, 3)})
        yield Plan((n, 4, 5, 1), {1: windows.sliding_axis(4, 2, 2, 0, 2), 2: windows.sliding_axis(5, 3, 1, 1, 5)})
    yield Plan((1, 21, 23, 3), {1: windows.sliding_axis(21, 17, 1, 8, 21), 2: windows.sliding_axis(23, 19, 1, 9, 23)})


def taps_and_sums() -> int:
    """Compare the verbs that no op reaches; return 0 after a difference, else the number of calls."""
    count, places = 0, (guarded_verbs(), guarded_verbs(at_end=False))
    for plan in plans():
        for dtype in REALS:
            rng = rng_of(f"{plan.source}{dtype}")
            x, g = draw(rng, dtype, plan.source, "wild"), draw(rng, dtype, plan.dest, "wild")
            taps = native.choose(plan, x)[1]
            calls = [("choose", x), ("pick", x, taps), ("place", g, taps)]
            if dtype in FLOATS:
                calls += [("fold", mean, x) for mean in (Mean.TOTAL, Mean.ONCE)]
                calls += [("spread", Share.WHOLE, reverse, g) for reverse in (False, True)]
            for name, *args in calls:
                want = getattr(native, name)(plan, *args)
                for place in places:
                    count += 1
                    if text := difference(getattr(place, name)(plan, *args), want):
                        print(f"{name}: {text}\n    {dtype} {plan}")
                        return 0
    return count


def main() -> int:
    """Compare with results on ordinary memory; a touch of a page outside ends the process."""
    faulthandler.enable()
    if sys.argv[1:] == ["--touch"]:
        array = guarded((3,), np.float32)
        return int(np.lib.stride_tricks.as_strided(array, (4,))[3])
    count = taps_and_sums()
    if not count:
        return 1
    for name, op in OPS.items():
        for dtype in op.dtypes:
            for case in geometries(name, dtype):
                args = arguments(case)
                want = FAST[name](**args)
                for place, run in (("end", AT_END), ("beginning", AT_BEGIN)):
                    text = difference(run[name](**args), want)
                    if text:
                        print(f"{place}: {text}\n    {case!r}")
                        return 1
                    count += 1
    print(f"{count} calls on guarded memory")
    return 0


if __name__ == "__main__":
    sys.exit(main())
