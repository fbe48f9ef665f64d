"""The native module called directly with anything: it raises or works, and never ends the process.

    python fuzz/border.py --seconds 10 [--seed 1]

All arrays lie flush against pages that may not be touched.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "fuzz" / "helpers")]

import workers
from boundaries import boundaries
from guarded_ops import guarded
from support import dtype_of

from poolgrad import _core
from poolgrad._ops.dtypes import REALS

Rng = np.random.Generator
VERBS = (
    "fold",
    "spread",
    "near",
    "select",
    "argmax",
    "route",
    "recall",
    "gather",
    "scatter",
    "choose",
    "pick",
    "place",
    "best",
    "best_taps",
    "mean",
    "norm",
)
WINDOWS = ("windows", "slide", "between", "proper", "share", "placed", "draw", "choose_planes", "place_planes")
VERBS += ("empty", "other", *WINDOWS)
REFUSALS = (ValueError, TypeError, MemoryError, OverflowError)
HUGE = (2**31, 2**32 - 1, 2**40, 2**58, 2**61, 2**62, 2**63 - 1, -1, -(2**63))
ODD: tuple[Any, ...] = (
    None,
    "x",
    b"12",
    1.5,
    [],
    (),
    [[]],
    object(),
    True,
    10**30,
    float("nan"),
    {1: 2},
    np.int64(3),
    range(3),
)
STRANGE_TYPES = ("bool", "complex64", "O", "S4", "U2", "M8[s]", "V8", ">f4", ">i8", "longdouble", [("q", "i4")])


def pick(rng: Rng, values: Any) -> Any:
    """Return one of the values."""
    return values[int(rng.integers(len(values)))]


def rarely(rng: Rng, chance: float = 0.04) -> bool:
    """Return True, seldom."""
    return bool(rng.random() < chance)


def axis(rng: Rng) -> tuple[int, np.ndarray, np.ndarray, np.ndarray | None]:
    """Return windows over an axis: from a maker, or any that rise."""
    n = int(rng.integers(0, 9))
    if rng.random() < 0.5:
        k, s = int(rng.integers(1, 5)), int(rng.integers(1, 4))
        start = np.arange(-int(rng.integers(k)), n, s)
        stop = np.minimum(start + k, n)
        return n, np.minimum(np.maximum(start, 0), stop), stop, np.full(len(start), k) if rarely(rng, 0.5) else None
    if n and rng.random() < 0.5:
        return n, *boundaries(rng, n), None
    m = int(rng.integers(0, 6))
    start = np.sort(rng.integers(0, n + 1, m))
    stop = np.maximum(start, np.sort(rng.integers(0, n + 1, m)))
    return n, start, stop, None


def spoilt_axis(rng: Rng, item: Any) -> Any:
    """Return an axis with one fault in it."""
    parts = list(item)
    at = int(rng.integers(4))
    if at == 0:
        parts[0] = pick(rng, (*HUGE, *ODD, parts[0] + 1, parts[0] - 1))
    elif rarely(rng, 0.4) or parts[at] is None or not len(parts[at]):
        parts[at] = pick(
            rng, (*ODD, np.zeros(3), np.zeros((2, 2), int), np.arange(4)[::-1], np.zeros(2, np.int32), np.zeros(0, int))
        )
    else:
        changed = parts[at].copy()
        changed[int(rng.integers(len(changed)))] = pick(rng, (*HUGE[:-2], -1, 9, 0, -(2**63)))
        parts[at] = changed
    return pick(rng, (tuple(parts), tuple(parts[:3]), parts, tuple(parts)))


def plan(rng: Rng) -> tuple[Any, int, int]:
    """Return a plan and its sizes, or what the constructor makes of worse arguments."""
    axes: Any = [axis(rng) for _ in range(int(rng.integers(1, 4)))]
    outer, inner = int(rng.integers(0, 4)), int(pick(rng, (0, 1, 1, 2, 3, 17, 33)))
    source = [outer, *(a[0] for a in axes), inner]
    dest = [outer, *(len(a[1]) for a in axes), inner]
    sizes = prod(source), prod(dest)
    given: list[Any] = [source, dest, outer, inner, axes, rng.random() < 0.3]
    if rarely(rng, 0.2):
        at = int(rng.integers(5))
        if at == 4:
            axes[int(rng.integers(len(axes)))] = spoilt_axis(rng, axes[0])
            given[4] = pick(rng, (axes, axes, axes, tuple(axes), axes * 9, *ODD))
        elif at < 2:
            given[at] = pick(
                rng, ([*given[at], 1], given[at][:-1], [1] * 99, [0, 2**62, 2**62], [pick(rng, HUGE)], *ODD)
            )
        else:
            given[at] = pick(rng, (*HUGE, *ODD))
    return _core.Plan(*given), *sizes


def array(rng: Rng, size: int, dtype: Any) -> Any:
    """Return an array of that size and type; now and then another one, or no array."""
    if rarely(rng):
        return pick(rng, ODD)
    if rarely(rng):
        size = max(size + int(rng.integers(-2, 3)), 0)
    if rarely(rng):
        name = pick(rng, (*REALS, *STRANGE_TYPES))
        if name in STRANGE_TYPES:
            return np.zeros(size, name)
        dtype = dtype_of(name)
    if rarely(rng):
        dtype = np.dtype(ml_dtypes.float8_e5m2)
    made = guarded((size,), dtype, at_end=bool(rng.random() < 0.7))
    made.view(np.uint8)[:] = rng.integers(0, 256, made.nbytes, np.uint8)
    if rarely(rng):
        return pick(
            rng,
            (made[::-1], np.repeat(made, 2)[::2], made.reshape(1, -1), made[None], np.broadcast_to(made[:1], (size,))),
        )
    if rarely(rng):
        made.flags.writeable = False
    return made


def arrays(rng: Rng, *wanted: tuple[int, Any]) -> list[Any]:
    """Return arrays of these sizes and types; now and then two of them share memory."""
    found = [array(rng, size, dtype) for size, dtype in wanted]
    if rarely(rng) and len(found) > 1:
        i, j = rng.permutation(len(found))[:2]
        memory = guarded((wanted[i][0] + wanted[j][0],), wanted[i][1])
        found[i], found[j] = memory[: wanted[i][0]], memory[max(wanted[i][0] - 1, 0) :][: wanted[j][0]]
    return found


def number(rng: Rng, most: int) -> Any:
    """Return an enum's number, or a value like one."""
    return pick(rng, (*HUGE, *ODD, most + 1)) if rarely(rng) else int(rng.integers(0, most + 1))


def call(rng: Rng) -> None:
    """Call one function with arguments that are mostly right."""
    made, n, m = plan(rng)
    t = dtype_of(pick(rng, REALS))
    where = pick(rng, (np.int32, np.int64))
    verb = pick(rng, VERBS)
    given = rng.random() < 0.7
    sizes: dict[str, list[int]] = {
        "fold": [n, m],
        "spread": [m, n],
        "select": [n, m],
        "near": [n, m, m, n],
        "route": [n, m, m, n],
        "recall": [n, m, n, m],
    }
    if verb in sizes:
        held = arrays(rng, *((size, t) for size in sizes[verb]))
        held = held if given else [*held[:-1], None]
        rules = {
            "fold": [number(rng, 5)],
            "select": [number(rng, 2)],
            "spread": [number(rng, 3), bool(rng.random() < 0.5)],
            "near": [1e-5],
        }
        if verb == "route" and rng.random() < 0.5:
            held[1] = None
        getattr(_core, verb)(made, *rules.get(verb, []), *held)
    elif verb == "argmax":
        _core.argmax(made, pick(rng, (1, max(n, 1), 0, -1, 2**62)), *arrays(rng, (n, t), (m, t), (m, where)))
    elif verb in ("gather", "scatter"):
        indexed(rng, verb, n, m, t, where)
    elif verb == "best":
        _core.best(made, int(rng.integers(-1, 8)), *arrays(rng, (n, t), (m, t)))
    elif verb == "mean":
        x, like = arrays(rng, (n, t), (m, pick(rng, (t, np.float64, np.int8))))
        by = pick(rng, (None, None, "span", 1, 2.5, 0.0, float("nan"), *ODD))
        _core.mean(made, x, by, bool(rng.random() < 0.5), like, int(rng.integers(-1, 5)))
    elif verb == "norm":
        _core.norm(made, *arrays(rng, (n, t)), int(rng.integers(-1, 4)), pick(rng, (0.0, 1e-30, float("nan"), *ODD)))
    elif verb in ("choose", "pick", "place", "best_taps"):
        tapped(rng, verb, made, n, m, t)
    elif verb in WINDOWS:
        windows(rng, verb, t)
    elif verb == "empty":
        _core.empty(pick(rng, ((3, 4), (0, 2**62, 2**62), (1 << 18, 8), [pick(rng, HUGE)], *ODD)), array(rng, 3, t))
    else:
        others(rng)


def indexed(rng: Rng, verb: str, n: int, m: int, t: Any, where: Any) -> None:
    """Call a verb that takes positions from the caller; some positions lie outside."""
    items = pick(rng, (1, 1, 1, 2, 0, -1, n, m, 2**40))
    v, out, index = arrays(rng, (m if verb == "scatter" else n, t), (n if verb == "scatter" else m, t), (m, where))
    if isinstance(index, np.ndarray) and index.flags.writeable and index.dtype.kind == "i" and rng.random() < 0.8:
        index[...] = rng.integers(0, max(n, 1), index.shape)
    once = (bool(rng.random() < 0.5),) if verb == "scatter" else ()
    getattr(_core, verb)(items, bool(rng.random() < 0.5), v, index, out, *once)


def tapped(rng: Rng, verb: str, made: Any, n: int, m: int, t: Any) -> None:
    """Call a verb that takes or returns taps; some taps lie outside, some have another type."""
    kind = pick(rng, (np.uint8, np.uint8, np.uint8, np.uint32))
    if verb in ("choose", "best_taps"):
        rule = [int(rng.integers(-1, 8))] if verb == "best_taps" else []
        getattr(_core, verb)(made, *rule, *arrays(rng, (n, t), (m, t), (m, kind)))
        return
    v, taps, out = arrays(rng, (n if verb == "pick" else m, t), (m, kind), (m if verb == "pick" else n, t))
    if isinstance(taps, np.ndarray) and taps.flags.writeable and taps.dtype.kind == "u" and rng.random() < 0.8:
        taps[...] = rng.integers(0, int(pick(rng, (1, 2, 4, 9))), taps.shape)
    getattr(_core, verb)(made, v, taps, out if rng.random() < 0.7 else None)


def windows(rng: Rng, name: str, t: Any) -> None:
    """Call a function that makes windows, or that pools planes with windows of their own."""
    n, k, m = int(rng.integers(1, 20)), int(rng.integers(1, 5)), int(rng.integers(1, 9))

    def some(value: Any) -> Any:
        return pick(rng, (*ODD, -1, -(2**63), 0)) if rarely(rng) else value

    borders = np.sort(rng.integers(0, n + 1, m + 1))
    if name == "windows":
        _core.windows(some(n), some(borders[:-1].copy()), some(borders[1:].copy()), some(None), some(k))
    elif name == "slide":
        _core.slide(
            *map(some, (n, k, int(rng.integers(0, 9)), pick(rng, (1, 2, 2**62)), pick(rng, (0, 3, *HUGE)), 2, m))
        )
    elif name == "between":
        _core.between(some(n), some(borders), bool(rng.random() < 0.5))
    elif name == "proper":
        _core.proper(some(n), some(borders))
    elif name == "share":
        _core.share(some(n), some(m))
    elif name == "placed":
        _core.placed(some(n), some(k), some(m), some(float(rng.random())))
    elif name == "draw":
        sizes = [some(n), some(m)], [some(min(n, m)), some(1)]
        _core.draw(*map(some, sizes), rng.random() < 0.5, rng.random() < 0.5, some(2**64 - 1), some(5))
    else:
        n, planes = n + k, int(rng.integers(1, 4))
        starts = np.sort(rng.integers(0, n - k + 1 + rarely(rng), (planes, m)), axis=1).reshape(-1)
        kind = pick(rng, (np.uint8, np.uint8, np.uint32))
        wanted = [(planes * n, t), (planes * m, t), (planes * m, kind)]
        held = arrays(rng, *(wanted if name == "choose_planes" else [wanted[1], wanted[2], wanted[0]]))
        getattr(_core, name)(some((n,)), some((m,)), some((k,)), some(starts), *held)


def others(rng: Rng) -> None:
    """Change a setting, or construct a plan a second time."""
    which = int(rng.integers(4))
    if which == 0:
        _core.set_num_threads(number(rng, 4))
    elif which == 1:
        _core.keep_at_most(pick(rng, (0, 1 << 20, -1, 2**62, *ODD)))
    elif which == 2:
        _core.use_bfloat16(
            pick(
                rng,
                (
                    np.zeros(2),
                    np.zeros(2, np.int8),
                    np.zeros(1, ml_dtypes.float8_e5m2),
                    np.zeros(1, ml_dtypes.bfloat16),
                    *ODD,
                ),
            )
        )
    else:
        made, _, _ = plan(rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the binding warns, and refuses
            made.__init__((1,), (1,), 1, 1, [])


def run(given: Any, progress: workers.Progress) -> Counter[str]:
    """Call functions until the time is over; only refusals may be raised."""
    counts: Counter[str] = Counter()
    for number in workers.cases(given, progress, counts):
        counts["calls"] += 1
        try:
            call(np.random.default_rng([given.seed, number]))
            counts["worked"] += 1
        except REFUSALS:
            counts["refused"] += 1
        except Exception as error:
            print(f"case {given.seed}:{number}: {type(error).__name__}: {error}", flush=True)
            counts["failed"] += 1
    return counts


if __name__ == "__main__":
    sys.exit(workers.main("border", __doc__ or "", run))
