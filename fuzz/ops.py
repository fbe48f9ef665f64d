"""Random calls of raw_ops, right and wrong ones, against the reference: the same bits or the same refusal.

    python fuzz/ops.py --seconds 60 [--jobs 2] [--seed 1] [--op MaxPool]

Each case is one number; what differs is made small and printed, ready for `python -i tests/helpers/support.py`.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "fuzz" / "helpers")]

import differential
import spoil
import workers
from memory_forms import MEMORY
from support import FAST, PLAIN, SLOW, Case, arguments, difference

from poolgrad._ops.semantics import Kernel, Mean, Share
from poolgrad._ops.table import ARRAYS, OPS, Kind, Op

warnings.filterwarnings("error", module="poolgrad")
REFUSALS = (ValueError, TypeError, NotImplementedError, MemoryError)
CHANNELS = (1, 1, 2, 3, 4, 5, 8, 16, 17, 33)


def pick(rng: np.random.Generator, values: Any) -> Any:
    """Return one of the values."""
    return values[int(rng.integers(len(values)))]


def random_case(rng: np.random.Generator, names: tuple[str, ...]) -> Case:
    """Return a right call that is small enough for the reference, rarely an empty one."""
    op = OPS[pick(rng, names)]
    most = (12 if op.spatial == 2 else 5) if rng.random() < 0.05 else (5 if op.spatial == 2 else 3)
    space = tuple(int(v) for v in rng.integers(1, most + 1, op.spatial))
    batch = 0 if rng.random() < 0.02 else int(rng.integers(1, 3))
    case = Case(op.name, pick(rng, op.dtypes), x=(batch, *space, pick(rng, CHANNELS)), data=pick(rng, spoil.DATA))
    if op.family[0] == "f":
        ratio = tuple(float(np.float32(rng.uniform(1, n))) for n in space)
        return replace(case, x=(batch or 1, *case.x[1:]), ratio=ratio, **flags(rng, "overlapping", "pseudo"))
    case = replace(case, first=bool(op.param(Kind.FORMAT) and rng.random() < 0.3), index=pick(rng, ("int32", "int64")))
    case = replace(case, **flags(rng, "batched"))
    if op.depthwise and rng.random() < 0.1:
        depth = int(rng.integers(2, 4))
        return replace(case, depth=depth, x=(*case.x[:-1], depth * int(rng.integers(1, 4))), k=(1,) * op.spatial)
    return sized(rng, op, case, space)


def flags(rng: np.random.Generator, *names: str) -> dict[str, bool]:
    """Return switches, each on with probability one half."""
    return {name: bool(rng.random() < 0.5) for name in names}


def sized(rng: np.random.Generator, op: Op, case: Case, space: tuple[int, ...]) -> Case:
    """Return windows, strides and padding that fit."""
    pad: Any = pick(rng, ("SAME", "VALID"))
    over = 3 if pad == "SAME" else 0
    k = tuple(int(rng.integers(1, n + 1 + over)) for n in space)
    s = tuple(int(v) for v in rng.integers(1, 4, op.spatial))
    if op.param(Kind.PADS) and rng.random() < 0.2:
        pad = tuple((int(rng.integers(0, w)), int(rng.integers(0, w))) for w in k)
    return replace(case, k=k, s=s, pad=pad)


def outcome(run: Any, args: dict[str, Any]) -> Any:
    """Return the arrays that a call gives, or the text of its refusal."""
    try:
        return run(**args)
    except REFUSALS as error:
        return f"{type(error).__name__}: {error}"


def slack(case: Case, args: dict[str, Any]) -> float:
    """Return the largest difference between two float64 sums of over 64 terms in any order; 0 where bits are promised."""
    rule = case.row.rule
    free = rule.mean is not Mean.STRICT if rule.verb is Kernel.FOLD else rule.share is not Share.QUOTIENT
    if rule.verb not in (Kernel.FOLD, Kernel.SPREAD) or not free or case.row.family == "qavg":
        return 0.0
    cells = prod(n for n in case.x[1:-1])  # no window has more cells, and no cell is in more windows
    if cells <= 64:
        return 0.0
    values = [
        np.abs(a.astype(np.float64)) for a in args.values() if isinstance(a, np.ndarray) and a.dtype.kind not in "iu"
    ]
    largest = max((float(v[np.isfinite(v)].max(initial=0)) for v in values), default=0.0)
    return cells * largest * 2.0**-50


def unlike(got: Any, want: Any, apart: float = 0.0) -> str:
    """Return a text that tells how two outcomes differ, or "". Results may be `apart`, plus a unit in the last place."""
    if isinstance(got, str) or isinstance(want, str):
        same = isinstance(got, str) and isinstance(want, str) and got == want
        return "" if same else f"got {str(got)[:200]}, wanted {str(want)[:200]}"
    with np.errstate(all="ignore"):
        if apart and got.shape == want.shape and got.dtype == want.dtype:
            wide = want.astype(np.float64)
            near = np.abs(got.astype(np.float64) - wide) <= apart + np.abs(wide) * float(
                ml_dtypes.finfo(want.dtype).eps
            )
            got = np.where(near | (not np.isfinite(apart)), want, got)
        return difference(got, want)


def handed_over(case: Case, args: dict[str, Any], form: str) -> dict[str, Any]:
    """Return the same arguments in another memory layout."""
    names = {p.name for p in case.row.params if p.kind in ARRAYS}
    return {n: MEMORY[form](v) if n in names and np.ndim(v) and np.size(v) else v for n, v in args.items()}


def drawn(case: Case) -> dict[str, Any]:
    """Return the arguments of a case, with data of any kind."""
    with np.errstate(all="ignore"):
        return arguments(case)


def wrong(case: Case, args: dict[str, Any], counts: Counter[str], form: str = "") -> str:
    """Run a right call on every path; return a text if a result differs from the reference, or ""."""
    want, apart = outcome(SLOW[case.op], args), slack(case, args)
    ways = {"fast": args, "again": args}
    if form:
        ways[form] = handed_over(case, args, form)
    for way, given in ways.items():
        counts["calls"] += 1
        if text := unlike(outcome(FAST[case.op], given), want, apart):
            return f"{way}: {text}"
    counts["calls"] += 1
    text = unlike(outcome(PLAIN[case.op], args), want, apart)
    return f"generic: {text}" if text else ""


def misled(case: Case, args: dict[str, Any], rng: np.random.Generator, counts: Counter[str]) -> str:
    """Spoil a call; return a text if its answer is not the reference's and not a refusal that names the op, or ""."""
    with np.errstate(all="ignore"):
        what, given = spoil.spoilt(rng, case, args)
    counts["calls"] += 1
    counts["spoilt"] += 1
    got = outcome(FAST[case.op], given)
    if isinstance(got, str):
        counts["refused"] += 1
        if not got.partition(": ")[2].startswith(f"{case.op}: ") or "got" not in got or "wanted" not in got:
            return f"{what}: the refusal is not clear: {got[:300]}"
    text = unlike(got, outcome(SLOW[case.op], given), slack(case, args))
    return f"{what}: {text}" if text else ""


def smaller(case: Case) -> list[Case]:
    """Return the cases that are one step simpler."""
    found = []
    for i, n in enumerate(case.x):
        found += [replace(case, x=(*case.x[:i], m, *case.x[i + 1 :])) for m in {1, n // 2, n - 1} if 0 < m < n]
    for name in ("k", "s"):
        sizes = getattr(case, name)
        found += [replace(case, **{name: (*sizes[:i], n - 1, *sizes[i + 1 :])}) for i, n in enumerate(sizes) if n > 1]
    plain = {"data": "ties", "pad": "VALID", "first": False, "overlapping": False, "pseudo": False, "batched": False}
    return found + [replace(case, **{n: v}) for n, v in plain.items() if getattr(case, n) != v]


def failure(case: Case, text: str, form: str) -> str:
    """Shrink the case; return a report that can be pasted."""
    small = differential.shrink(case, smaller, lambda c: bool(wrong(c, drawn(c), Counter(), form)))
    text = wrong(small, drawn(small), Counter(), form) or text
    return f"{text}\n    wrong({small!r})   # memory: {form or 'as it is'}"


def one(seed: int, number: int, names: tuple[str, ...], counts: Counter[str]) -> str:
    """Run case `number` of a seed, a right call and a few wrong ones; return a text if one fails, or ""."""
    rng = np.random.default_rng([seed, number])
    case = random_case(rng, names)
    try:
        args = drawn(case)
    except ValueError:  # an empty array has no positions to draw from
        counts["no case"] += 1
        return ""
    form = pick(rng, tuple(MEMORY))
    if text := wrong(case, args, counts, form):
        return failure(case, text, form)
    for _ in range(4):
        if text := misled(case, args, rng, counts):
            return f"{text}\n    {case!r}"
    counts["cases"] += 1
    return ""


def run(given: Any, progress: workers.Progress) -> Counter[str]:
    """Run cases until the time is over or one fails."""
    counts: Counter[str] = Counter()
    names = tuple(given.op or OPS)
    for number in workers.cases(given, progress, counts):
        if text := one(given.seed, number, names, counts):
            print(f"case {given.seed}:{number}: {text}", flush=True)
            counts["failed"] += 1
    return counts


if __name__ == "__main__":
    sys.exit(workers.main("raw_ops", __doc__ or "", run))
