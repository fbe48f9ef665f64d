"""Random calls of the verbs on random plans against the reference: all rules, taps, and what the ops never ask for.

    python fuzz/verbs.py --seconds 60 [--jobs 2] [--seed 1] [--op place]

Windows come from makers, from sequences, from boundaries of every kind, empty ones among them. Each call goes the fast way, the
generic one, and the fast one on several threads. The reference walks every axis, also those that the plan leaves out.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "fuzz" / "helpers")]

import workers
from boundaries import boundaries
from support import difference, draw, plain_verbs

import poolgrad
from poolgrad import _core, reference, windows
from poolgrad._kernels import native
from poolgrad._ops.dtypes import FLOATS, FLOATS_AND_LONG, INTEGERS, REALS
from poolgrad._ops.semantics import Mean, Share, Start
from poolgrad.windows import Axis, Plan

Rng = np.random.Generator
Made = tuple[str, tuple[Any, ...]]  # a verb and its arguments after the plan
LONG = 64  # cells of a window; larger sums may be added in any order
PLAIN = plain_verbs()


def pick(rng: Rng, values: Any) -> Any:
    """Return one of the values."""
    return values[int(rng.integers(len(values)))]


def axis(rng: Rng, most: int) -> Axis:
    """Return windows over an axis."""
    n, how = int(rng.integers(1, most + 1)), rng.random()
    if how < 0.5:
        k, s = int(rng.integers(1, min(n, 9) + 3)), int(rng.integers(1, 4))
        m = windows.same_length(n, s)
        return windows.sliding_axis(n, k, s, max(windows.same_pad(n, k, s), 0), m)
    if how < 0.7:
        inner = np.sort(rng.choice(np.arange(1, n), int(rng.integers(0, n)), replace=False))
        return windows.edges(n, [0, *inner.tolist(), n], overlapping=bool(rng.random() < 0.5))
    if how < 0.9:
        return Axis(n, *boundaries(rng, n))
    m = int(rng.integers(1, 6))
    start = np.sort(rng.integers(0, n + 1, m))
    return Axis(n, start, np.maximum(start, np.sort(rng.integers(0, n + 1, m))))


def plan(rng: Rng) -> tuple[tuple[int, ...], dict[int, Axis]]:
    """Return a shape and its axes, few of them long."""
    rank = int(rng.integers(1, 4))
    axes = [axis(rng, (70, 14, 6)[rank - 1]) for _ in range(rank)]
    outer, inner = int(pick(rng, (1, 1, 2, 3, 33))), int(pick(rng, (1, 1, 2, 3, 17, 33)))
    while prod(a.length for a in axes) * outer * inner > 3000:
        outer, inner = max(outer // 2, 1), inner // 2
        if inner == 0:
            return plan(rng)
    return (outer, *(a.length for a in axes), inner), {d + 1: a for d, a in enumerate(axes)}


def spelled(shape: tuple[int, ...], axes: dict[int, Axis]) -> Plan:
    """Return the plan with all these axes pooled, even those that a plan takes for not pooled."""
    made = Plan(shape, axes)
    for name, value in (("outer", shape[0]), ("inner", shape[-1]), ("axes", tuple(axes.values()))):
        object.__setattr__(made, name, value)
    return made


def widest(axes: tuple[Axis, ...]) -> int:
    """Return the number of cells of the largest window."""
    return prod(int(a.count.max(initial=0)) for a in axes)


def empties(axes: tuple[Axis, ...]) -> bool:
    """Return True if a window has no cells."""
    return any((a.count == 0).any() for a in axes)


def means_of(dtype: str) -> list[Mean]:
    """Return the rules of means that the core takes for a dtype."""
    if dtype not in INTEGERS:
        return [mean for mean in Mean if mean is not Mean.WIDE]
    return [Mean.WIDE, Mean.TOTAL, *([Mean.STRICT] if np.dtype(dtype).itemsize >= 4 else [])]


def call(rng: Rng, made: Plan, name: str) -> Made | None:
    """Return a verb with arguments, or None if no promise covers the verb on this plan."""
    long = widest(made.axes) > LONG or widest(tuple(a.transpose() for a in made.axes)) > LONG
    data = "ties" if long else pick(rng, ("ties", "wild", "bits"))
    types = {"fold": FLOATS + tuple(t for t in INTEGERS if t not in ("uint32", "uint64")), "spread": FLOATS_AND_LONG}
    dtype = pick(rng, types.get(name, REALS))
    whole = dtype in INTEGERS
    source, dest = (partial(draw, rng, dtype, shape, data) for shape in (made.source, made.dest))
    if (name in ("argmax", "route") and empties(made.axes)) or (name in ("gather", "scatter") and not prod(made.dest)):
        return None
    match name:
        case "fold":
            mean = pick(rng, means_of(dtype))
            return (name, (mean, source())) if not empties(made.axes) or mean is Mean.TOTAL else None
        case "spread":
            share = Share.QUOTIENT if whole else pick(rng, list(Share))
            return None if long and dtype == "float64" else (name, (share, bool(rng.random() < 0.5), dest()))
        case "select":
            return name, (pick(rng, (Start.LOWEST, Start.INFINITY)), source())
        case "argmax":
            return name, (prod(made.source), pick(rng, ("int32", "int64")), source())
        case "route":
            return name, (source(), dest())
        case "recall":
            return name, (source(), dest(), source())
        case "near":
            return name, (1e-5, source(), dest(), dest())
        case "choose":
            return name, (source(),)
    if name in ("gather", "scatter"):
        return positions(rng, made, name, source() if name == "gather" else dest())
    return name, ((source if name == "pick" else dest)(), taps(rng, made))


def positions(rng: Rng, made: Plan, name: str, array: np.ndarray) -> Made:
    """Return positions in their image or in the array, now and then one outside; halves round at each addition or once."""
    absolute, each = bool(rng.random() < 0.5), prod(made.source[1:])
    index = rng.integers(0, prod(made.source) if absolute else each, made.dest).astype(pick(rng, ("int32", "int64")))
    if rng.random() < 0.2:
        index.reshape(-1)[int(rng.integers(index.size))] = pick(rng, (-1, each, prod(made.source), 2**31 - 1))
    once = (bool(rng.random() < 0.5),) if name == "scatter" else ()
    return name, (made.source[0], absolute, array, index, *once)


def taps(rng: Rng, made: Plan) -> np.ndarray:
    """Return taps inside their windows, now and then with a few outside."""
    count = np.ones((), np.int64)
    for a in made.axes:
        count = np.multiply.outer(count, a.count)
    shape = (made.outer, *count.shape, made.inner)
    most = np.broadcast_to(np.maximum(count, 1)[None, ..., None], shape)
    found = rng.integers(0, most).astype(native.tap_type(made)).reshape(made.dest)
    if rng.random() < 0.2 and found.size:
        at = rng.integers(0, found.size, 3)
        found.reshape(-1)[at] = rng.integers(0, 1 + np.iinfo(found.dtype).max, 3)
    return found


def outcome(verb: Callable[..., Any], made: Plan, args: tuple[Any, ...]) -> Any:
    """Return the arrays that a verb gives, or the text of its error."""
    try:
        with np.errstate(all="ignore"):
            return verb(made, *args)
    except native.Astray as error:
        return f"Astray {error}"


def unlike(got: Any, want: Any) -> str:
    """Return a text that tells how two outcomes differ, or ""."""
    if isinstance(got, str) or isinstance(want, str):
        same = isinstance(got, str) and isinstance(want, str) and got == want
        return "" if same else f"got {str(got)[:80]}, wanted {str(want)[:80]}"
    with np.errstate(all="ignore"):
        return difference(got, want)


NAMES = (
    "fold",
    "spread",
    "select",
    "argmax",
    "route",
    "recall",
    "near",
    "choose",
    "pick",
    "place",
    "gather",
    "scatter",
)
NEW = (
    "choose",
    "pick",
    "place",
    "fold",
    "spread",
)  # no op reaches these, or not under every rule: they get most of the time


def one(rng: Rng, names: tuple[str, ...], counts: Counter[str]) -> str:
    """Run one call on one plan, on every path; return a text if a result is wrong, or ""."""
    shape, axes = plan(rng)
    made = spelled(shape, axes)
    found = call(rng, made, pick(rng, names))
    if found is None:
        counts["nobody's promise"] += 1
        return ""
    name, args = found
    want = outcome(getattr(reference, name), made, args)
    counts["refused" if isinstance(want, str) else "worked"] += 1
    threads = int(rng.integers(1, 5))
    _core.go_far_from(-int(rng.integers(2)))
    ways = {"generic": (PLAIN, 1), "fast": (native, 1), f"fast on {threads} threads": (native, threads)}
    for way, (module, number) in ways.items():
        counts["calls"] += 1
        with poolgrad.threads(number):
            text = unlike(outcome(getattr(module, name), Plan(shape, axes), args), want)
        if text:
            rules = [a for a in args if not isinstance(a, np.ndarray)]
            types = [a.dtype.name for a in args if isinstance(a, np.ndarray)]
            return f"{name} {rules} {types}, {way}: {text}\n    Plan({shape}, {axes})"
    return ""


def run(given: Any, progress: workers.Progress) -> Counter[str]:
    """Run cases until the time is over or one fails."""
    counts: Counter[str] = Counter()
    names = tuple(given.op or NAMES + 2 * NEW)
    for number in workers.cases(given, progress, counts):
        if text := one(np.random.default_rng([given.seed, number]), names, counts):
            print(f"case {given.seed}:{number}: {text}", flush=True)
            counts["failed"] += 1
    return counts


if __name__ == "__main__":
    sys.exit(workers.main("verbs", __doc__ or "", run))
