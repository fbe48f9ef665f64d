"""Every native function while its inputs are overwritten: no crash, no hang, nothing written outside the results.

    python fuzz/races.py --seconds 60 [--jobs 2] [--seed 1] [--op gather]

Threads, or another process through a mapped file, write arrays, positions, taps, boundaries and lists during the call. What a racing
call returns is garbage; what it refuses, it names. Afterwards a quiet call has to give the right answer again.
"""

from __future__ import annotations

import faulthandler
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "fuzz" / "helpers")]

import raced_python
import workers
from overwritten import Case, Maker, Mapped, Rng, overwriting, pick
from raced_foreign import TABLE, foreign_case
from raced_windows import DTYPES, FLOATS, dtype_of, true_taps, windows

from poolgrad import _core

REFUSALS = (ValueError, TypeError, MemoryError)
NAMED = re.compile(r"[A-Za-z_.]+( operator)?(\.T)?: \S")  # an error: an argument or an op, then the fault
HANG = 60.0  # seconds of one case
REPEATS = 12  # calls of a case


# ---- the native functions


def plan_case(rng: Rng, make: Maker) -> Case:
    """Return a case of a plan from boundaries that are overwritten; a plan that results is then used, whatever its windows are."""
    w = windows(rng)
    axes = [
        (n, make.input(start), make.input(stop), None if span is None else make.input(span))
        for n, start, stop, span in w.axes
    ]
    source, dest = make.list(w.source), make.list(w.dest)
    x, y = np.zeros(w.source, np.float32), make.result(w.dest, np.float32)
    used = make.result(w.source, np.float32)

    def run() -> None:
        plan = _core.Plan(source, dest, w.outer, w.inner, axes)
        _core.fold(plan, 4, x, y)
        _core.select(plan, 1, x, y)
        _core.spread(plan, 3, False, y, used)

    return make.case("Plan", run)


def float_case(rng: Rng, make: Maker, name: str) -> Case:
    """Return a case of a verb with one source, one destination and a rule."""
    w, dtype = windows(rng), dtype_of(pick(rng, FLOATS if name == "spread" else DTYPES[:9]))
    plan, back = w.native(), name == "spread"
    x = make.data(w.dest if back else w.source, dtype)
    out = make.result(w.source if back else w.dest, dtype) if rng.random() < 0.7 else None
    if name == "fold":
        mean = int(pick(rng, (0, 1, 2, 4, 5) if dtype.kind not in "iu" else (3, 4)))
        return make.case(name, lambda: _core.fold(plan, mean, x, out))
    if name == "spread":
        share, reverse = int(rng.integers(4)), bool(rng.random() < 0.5)
        return make.case(name, lambda: _core.spread(plan, share, reverse, x, out))
    start, whole = int(rng.integers(3)), bool(rng.random() < 0.5)
    return make.case(name, lambda: _core.select(plan, start, x, out, whole))


def three_case(rng: Rng, make: Maker, name: str) -> Case:
    """Return a case of a verb that compares x with y."""
    w, dtype = windows(rng), dtype_of(pick(rng, DTYPES))
    plan = w.native()
    x, y = make.data(w.source, dtype), make.data(w.dest, dtype)
    g = make.data(w.source if name == "recall" else w.dest, dtype)
    out = make.result(w.dest if name == "recall" else w.source, dtype) if rng.random() < 0.7 else None
    if name == "recall":
        return make.case(name, lambda: _core.recall(plan, x, y, g, out))
    if name == "near":
        return make.case(name, lambda: _core.near(plan, 1e-5, x, y, g, out))
    given = y if rng.random() < 0.5 else None
    return make.case(name, lambda: _core.route(plan, x, given, g, out))


def choice_case(rng: Rng, make: Maker, name: str) -> Case:
    """Return a case of a verb that finds positions or taps."""
    w, dtype = windows(rng), dtype_of(pick(rng, DTYPES))
    plan, x = w.native(), make.data(w.source, dtype)
    y = make.result(w.dest, dtype)
    if name == "argmax":
        where = make.result(w.dest, pick(rng, (np.int32, np.int64)))
        return make.case(name, lambda: _core.argmax(plan, prod(w.source), x, y, where))
    if name == "whole":
        return make.case(name, lambda: _core.whole(x))
    taps, whole = make.result(w.dest, w.tap), bool(rng.random() < 0.5)
    if name == "best_taps":
        rule = int(rng.integers(6))
        return make.case(name, lambda: _core.best_taps(plan, rule, x, y, taps))
    return make.case(name, lambda: _core.choose(plan, x, y, taps, whole))


def boxed_case(rng: Rng, make: Maker, name: str) -> Case:
    """Return a case of a pool that copies cells before it reads them."""
    short = [t for t in DTYPES if t in FLOATS or dtype_of(t).itemsize < 8]
    w, dtype = windows(rng), dtype_of(pick(rng, short))
    plan, x = w.native(), make.data(w.source, dtype)
    if name == "best":
        rule, out = int(rng.integers(6)), make.result(w.dest, dtype) if rng.random() < 0.7 else None
        return make.case(name, lambda: _core.best(plan, rule, x, out))
    if name == "norm":
        v, p = make.data(w.source, dtype_of(pick(rng, FLOATS))), int(rng.integers(1, 3))
        return make.case(name, lambda: _core.norm(plan, v, p, 1e-30))
    by, ignore, rounding = pick(rng, (None, "span", 1.0, 7.0)), bool(rng.random() < 0.5), int(rng.integers(4))
    like = np.empty(0, dtype if dtype.name in FLOATS else pick(rng, (np.float64, dtype)))
    return make.case(name, lambda: _core.mean(plan, x, by, ignore, like, rounding))


def tap_case(rng: Rng, make: Maker, name: str) -> Case:
    """Return a case of a verb that follows taps."""
    w, dtype = windows(rng), dtype_of(pick(rng, DTYPES))
    plan, back = w.native(), name == "place"
    v, taps = make.data(w.dest if back else w.source, dtype), make.input(true_taps(rng, w))
    out = make.result(w.source if back else w.dest, dtype) if rng.random() < 0.7 else None
    return make.case(name, lambda: getattr(_core, name)(plan, v, taps, out))


def index_case(rng: Rng, make: Maker, name: str) -> Case:
    """Return a case of a verb that follows positions."""
    dtype, items = dtype_of(pick(rng, DTYPES)), int(pick(rng, (1, 1, 3, 64)))
    n, m = int(rng.integers(1, 2**16 // items + 1)), int(rng.integers(1, 2**16 // items + 1))
    absolute, source, dest = bool(rng.random() < 0.5), items * n, items * m
    index = make.input(rng.integers(0, source if absolute else n, dest).astype(pick(rng, (np.int32, np.int64))))
    back = name == "scatter"
    v, out = make.data((dest if back else source,), dtype), make.result((source if back else dest,), dtype)
    once = (bool(rng.random() < 0.5),) if back and ONCE else ()
    return make.case(name, lambda: getattr(_core, name)(items, absolute, v, index, out, *once))


def empty_case(rng: Rng, make: Maker, name: str) -> Case:
    """Return a case of a new array whose shape is overwritten."""
    shape, like = make.list([int(n) for n in rng.integers(1, 9, 4)]), np.zeros(1, np.float32)
    return make.case(name, lambda: _core.empty(shape, like))


def refuse(function: Callable[..., object], *args: object) -> None:
    """Call a function that must refuse its arguments."""
    try:
        function(*args)
    except ValueError:
        return
    raise AssertionError(f"{args}: got an answer, wanted ValueError")


def setting_case(rng: Rng, make: Maker, name: str) -> Case:
    """Return a case of settings that change, or of questions, while a verb runs on several threads."""
    w = windows(rng)
    plan, x = w.native(), make.data(w.source, np.float32)
    calls = {
        "set_num_threads": lambda: _core.set_num_threads(int(pick(rng, (1, 2, 3, 5)))),
        "keep_at_most": lambda: _core.keep_at_most(int(pick(rng, (0, 1 << 20, 1 << 24)))),
        "go_far_from": lambda: _core.go_far_from(-int(rng.integers(2))),
        "box_at_most": lambda: _core.box_at_most(int(pick(rng, (0, 1, 1 << 12)))),
        "caches_of": lambda: _core.caches_of(0, 0),
        "shuffles_of": lambda: _core.shuffles_of(0),
        "limit_here": lambda: _core.limit_here(_core.limit_here(int(pick(rng, (0, 1, 2, 5))))),
        "follow_threads": lambda: refuse(_core.follow_threads, "no library", "threads", "busy", 1),
        "use_bfloat16": lambda: _core.use_bfloat16(np.empty(0, ml_dtypes.bfloat16)),
        "schedule": lambda: _core.schedule(plan, "fold", x, 4),
        "able": lambda: _core.able(plan, "select", x, 1),
        "schedules_of": lambda: _core.schedules_of("fold", x),
        "watch": lambda: (_core.watch([]), _core.fold(plan, 4, x), _core.watch(None)),
    }

    def run() -> None:
        other = threading.Thread(target=lambda: [_core.fold(plan, 4, x) for _ in range(3)])
        other.start()
        for _ in range(20):
            calls[name]()
        other.join()

    return make.case(name, run)


def table_case(rng: Rng, make: Maker, name: str) -> Case:
    """Return a case of tables that are made from numbers, or from boundaries that are overwritten."""
    n, m = int(rng.integers(4, 60)), int(rng.integers(2, 4))
    borders = make.data((m + 1,), np.dtype(np.int64))
    calls = {
        "slide": lambda: _core.slide(n, 3, 2, 1, 1, 1, m),
        "between": lambda: _core.between(n, borders, bool(m % 2)),
        "proper": lambda: _core.proper(n, borders),
        "share": lambda: _core.share(n, m),
        "placed": lambda: _core.placed(n, 2, m, 0.4),
        "draw": lambda: _core.draw((n,), (m,), False, True, 7, n),
    }
    return make.case(name, calls[name])


def planes_case(rng: Rng, make: Maker, name: str) -> Case:
    """Return a case of planes with windows of their own; their starts are overwritten."""
    planes, n, m, k = 3, int(rng.integers(4, 30)), 3, 2
    starts = make.input(np.sort(rng.integers(0, n - k + 1, (planes, m)), axis=1).reshape(-1))
    whole, pooled = ((planes, n), (planes, m)) if name == "choose_planes" else ((planes, m), (planes, n))
    x, y = make.data(whole, np.dtype(np.float32)), make.result(pooled, np.float32)
    taps = make.result((planes, m), np.uint8)
    if name == "choose_planes":
        return make.case(name, lambda: _core.choose_planes((n,), (m,), (k,), starts, x, y, taps))
    return make.case(name, lambda: _core.place_planes((n,), (m,), (k,), starts, x, taps, y))


def parts_case(rng: Rng, make: Maker) -> Case:
    """Return a case of a plan in parts, whose places and cells are overwritten."""
    plan = _core.Plan((8,), (4,), 1, 1, [(8, np.arange(0, 8, 2), np.arange(2, 10, 2), None)])
    source, dest = make.list((16,)), make.list((8,))
    x, y = make.data((16,), np.dtype(np.float32)), make.result((8,), np.float32)

    def run() -> None:
        parts = _core.Parts(source, dest, 1, 16, [plan], [(0, 0), (0, 8)])
        _core.fold(parts, 4, x, y)
        _core.select(parts, 1, x, y)

    return make.case("Parts", run)


CASES: dict[str, Callable[..., Case]] = {
    "Plan": lambda rng, make, name: plan_case(rng, make),
    "Parts": lambda rng, make, name: parts_case(rng, make),
    **dict.fromkeys(("fold", "spread", "select"), float_case),
    **dict.fromkeys(("near", "route", "recall"), three_case),
    **dict.fromkeys(("argmax", "choose", "best_taps", "whole"), choice_case),
    **dict.fromkeys(("best", "mean", "norm"), boxed_case),
    **dict.fromkeys(("pick", "place"), tap_case),
    **dict.fromkeys(("gather", "scatter"), index_case),
    **dict.fromkeys(("slide", "between", "proper", "share", "placed", "draw"), table_case),
    **dict.fromkeys(("choose_planes", "place_planes"), planes_case),
    "empty": empty_case,
    **dict.fromkeys(("set_num_threads", "keep_at_most", "go_far_from", "box_at_most"), setting_case),
    **dict.fromkeys(("caches_of", "shuffles_of"), setting_case),
    "use_bfloat16": setting_case,
    **dict.fromkeys(("schedule", "able", "schedules_of", "watch", "limit_here", "follow_threads"), setting_case),
    **dict.fromkeys(map("foreign.{}".format, TABLE), foreign_case),
    "sequences": raced_python.sequence_case,
    "sizes": raced_python.sizes_case,
    "positions": raced_python.argmax_case,
    "unpool": raced_python.unpool_case,
    "windows": raced_python.window_case,
}
OFTEN = (
    "gather",
    "scatter",
    "pick",
    "place",
    "Plan",
    "foreign.pick",
    "foreign.place",
)  # what others' numbers lead to an address


def takes_once() -> bool:
    """Return True if this core's scatter can round once."""
    try:
        _core.scatter(1, True, np.zeros(1, np.float32), np.zeros(1, np.int64), np.zeros(1, np.float32), True)
    except TypeError:
        return False
    return True


ONCE = takes_once()


# ---- running them


def race(case: Case, mapped: Mapped | None, counts: Counter[str]) -> str:
    """Call the function while others write; return a text if it goes wrong, or ""."""
    with overwriting(case.racing, mapped):
        for _ in range(REPEATS):
            counts["calls"] += 1
            counts[case.name] += 1
            try:
                with np.errstate(all="ignore"):
                    case.run()
            except REFUSALS as error:
                counts["refused"] += 1
                if not NAMED.match(str(error)):
                    return f"{type(error).__name__} names nothing: {error}"
            except Exception as error:
                return f"{type(error).__name__}: {error}"
    return case.spilt() or case.quiet()


def run(given: Any, progress: workers.Progress) -> Counter[str]:
    """Run cases until the time is over or one fails."""
    counts: Counter[str] = Counter()
    names = tuple(given.op or (*CASES, *3 * OFTEN))
    sys.setswitchinterval(1e-4)
    mapped = Mapped(Path(given.note).parent)
    try:
        for number in workers.cases(given, progress, counts):
            faulthandler.dump_traceback_later(HANG, exit=True)
            rng = np.random.default_rng([given.seed, number])
            name, shared = pick(rng, names), mapped if rng.random() < 0.4 else None
            _core.set_num_threads(int(pick(rng, (1, 1, 2, 4))))
            counts["through a mapped file"] += shared is not None
            if text := race(CASES[name](rng, Maker(rng, shared), name), shared, counts):
                print(f"case {given.seed}:{number}: {name}: {text}", flush=True)
                counts["failed"] += 1
    finally:
        faulthandler.cancel_dump_traceback_later()
        mapped.close()
    return counts


if __name__ == "__main__":
    sys.exit(workers.main("races", __doc__ or "", run))
