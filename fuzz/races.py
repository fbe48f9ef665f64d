"""Every native function while its inputs are overwritten: no crash, no hang, nothing written outside the results.

    python fuzz/races.py --seconds 60 [--jobs 2] [--seed 1] [--op gather]

Threads, or another process through a mapped file, write arrays, positions, taps, boundaries and lists during the call. What a racing
call returns is garbage; what it refuses, it names. Afterwards a quiet call has to give the right answer again.
"""

from __future__ import annotations

import ctypes
import faulthandler
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "fuzz")]

import workers  # noqa: E402
from boundaries import boundaries  # noqa: E402
from overwritten import Case, Maker, Mapped, overwriting, pick  # noqa: E402

import poolgrad as pg  # noqa: E402
from poolgrad import _core, raw_ops, reference  # noqa: E402
from poolgrad.windows import Axis, Plan  # noqa: E402

Rng = np.random.Generator
REFUSALS = (ValueError, TypeError, MemoryError)
NAMED = re.compile(r"[A-Za-z_.]+( operator)?(\.T)?: \S")  # an argument or an op, then what is wrong
HANG = 60.0  # seconds of one case
REPEATS = 12  # calls of a case
FLOATS = ("float16", "bfloat16", "float32", "float64")
DTYPES = (*FLOATS, "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")  # as the core numbers them


def dtype_of(name: str) -> np.dtype[Any]:
    """The NumPy type of a name."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


# ---- windows


@dataclass
class Windows:
    """Axes, an outer and an inner size, and the native plan of them."""

    outer: int
    inner: int
    axes: list[tuple[int, np.ndarray, np.ndarray, np.ndarray | None]]

    @property
    def source(self) -> list[int]:
        """Shape of the source."""
        return [self.outer, *(a[0] for a in self.axes), self.inner]

    @property
    def dest(self) -> list[int]:
        """Shape of the destination."""
        return [self.outer, *(len(a[1]) for a in self.axes), self.inner]

    def native(self) -> Any:
        """The plan."""
        return _core.Plan(self.source, self.dest, self.outer, self.inner, self.axes)

    @property
    def cells(self) -> int:
        """Cells of the largest window."""
        return prod(max(int((stop - start).max(initial=0)), 1) for _, start, stop, _ in self.axes)

    @property
    def tap(self) -> Any:
        """The type of a tap."""
        return np.uint8 if self.cells <= 256 else np.uint32


def windows(rng: Rng) -> Windows:
    """Windows over arrays of some thousand cells: a call takes as long as a few writes."""
    rank, axes = int(rng.integers(1, 4)), []
    most = (4096, 96, 20)[rank - 1]
    for _ in range(rank):
        n = int(rng.integers(max(most // 4, 2), most))
        if rng.random() < 0.6:
            k, s = int(rng.integers(1, min(n, pick(rng, (4, 4, 40))) + 1)), int(rng.integers(1, 4))
            start = np.arange(0, n - k + 1, s)
            axes.append((n, start, start + k, np.full(len(start), k) if rng.random() < 0.5 else None))
        else:
            axes.append((n, *boundaries(rng, n), None))
    inner = int(pick(rng, (1, 1, 3, 16, 33)))
    return Windows(int(rng.integers(1, 1 + max(1, 2**17 // (prod(a[0] for a in axes) * inner)))), inner, axes)


# ---- the native functions


def plan_case(rng: Rng, make: Maker) -> Case:
    """A plan from boundaries that are overwritten; one that is made is then used, whatever its windows are."""
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
    """The verbs of one source, one destination, and some rule."""
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
    """The verbs that compare x with y."""
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
    """The verbs that find positions or taps."""
    w, dtype = windows(rng), dtype_of(pick(rng, DTYPES))
    plan, x = w.native(), make.data(w.source, dtype)
    y = make.result(w.dest, dtype)
    if name == "argmax":
        where = make.result(w.dest, pick(rng, (np.int32, np.int64)))
        return make.case(name, lambda: _core.argmax(plan, prod(w.source), x, y, where))
    if name == "whole":
        return make.case(name, lambda: _core.whole(x))
    taps, whole = make.result(w.dest, w.tap), bool(rng.random() < 0.5)
    return make.case(name, lambda: _core.choose(plan, x, y, taps, whole))


def true_taps(rng: Rng, w: Windows) -> np.ndarray:
    """Taps inside their windows."""
    count = np.ones((), np.int64)
    for _, start, stop, _ in w.axes:
        count = np.multiply.outer(count, stop - start)
    most = np.broadcast_to(np.maximum(count, 1)[None, ..., None], w.dest)
    return rng.integers(0, most).astype(w.tap)


def tap_case(rng: Rng, make: Maker, name: str) -> Case:
    """The verbs that follow taps."""
    w, dtype = windows(rng), dtype_of(pick(rng, DTYPES))
    plan, back = w.native(), name == "place"
    v, taps = make.data(w.dest if back else w.source, dtype), make.input(true_taps(rng, w))
    out = make.result(w.source if back else w.dest, dtype) if rng.random() < 0.7 else None
    return make.case(name, lambda: getattr(_core, name)(plan, v, taps, out))


def index_case(rng: Rng, make: Maker, name: str) -> Case:
    """The verbs that follow positions."""
    dtype, items = dtype_of(pick(rng, DTYPES)), int(pick(rng, (1, 1, 3, 64)))
    n, m = int(rng.integers(1, 2**16 // items + 1)), int(rng.integers(1, 2**16 // items + 1))
    absolute, source, dest = bool(rng.random() < 0.5), items * n, items * m
    index = make.input(rng.integers(0, source if absolute else n, dest).astype(pick(rng, (np.int32, np.int64))))
    back = name == "scatter"
    v, out = make.data((dest if back else source,), dtype), make.result((source if back else dest,), dtype)
    once = (bool(rng.random() < 0.5),) if back and ONCE else ()
    return make.case(name, lambda: getattr(_core, name)(items, absolute, v, index, out, *once))


def empty_case(rng: Rng, make: Maker, name: str) -> Case:
    """A new array of a shape that is overwritten."""
    shape, like = make.list([int(n) for n in rng.integers(1, 9, 4)]), np.zeros(1, np.float32)
    return make.case(name, lambda: _core.empty(shape, like))


def setting_case(rng: Rng, make: Maker, name: str) -> Case:
    """Settings that change while a verb runs on several threads."""
    w = windows(rng)
    plan, x = w.native(), make.data(w.source, np.float32)
    calls = {
        "set_num_threads": lambda: _core.set_num_threads(int(pick(rng, (1, 2, 3, 5)))),
        "keep_at_most": lambda: _core.keep_at_most(int(pick(rng, (0, 1 << 20, 1 << 24)))),
        "go_far_from": lambda: _core.go_far_from(-int(rng.integers(2))),
        "use_bfloat16": lambda: _core.use_bfloat16(np.empty(0, ml_dtypes.bfloat16)),
    }

    def run() -> None:
        other = threading.Thread(target=lambda: [_core.fold(plan, 4, x) for _ in range(3)])
        other.start()
        for _ in range(20):
            calls[name]()
        other.join()

    return make.case(name, run)


# ---- the table of plain functions, which XLA calls


class Choice(ctypes.Structure):
    """What a maximum is told besides its windows."""

    _fields_ = (("least", ctypes.c_bool), ("nan_wins", ctypes.c_bool))


_P, _I, _L = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
_FOREIGN = {  # in the order of the table: what each returns and takes, but for the reason at the end
    "plan": (_P, _L, _L, _I, _P, _P, _P, _P, _P),
    "drop": (None, _P),
    "sizes": (None, _P, _P, _P, _P),
    "fold": (ctypes.c_bool, _P, _I, _I, _P, _P, _P),
    "spread": (ctypes.c_bool, _P, _I, _I, _P, _P, _P),
    "choose": (ctypes.c_bool, _P, _I, Choice, _P, _P, _P, _P),
    "pick": (ctypes.c_bool, _P, _I, _P, _P, _P, _P),
    "place": (ctypes.c_bool, _P, _I, _P, _P, _P, _P),
}


def foreign() -> dict[str, Any]:
    """The functions of the table."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = _P, (ctypes.py_object, ctypes.c_char_p)
    address = pointer(_core.foreign(), b"poolgrad.foreign.1")
    entries = ctypes.cast(address, ctypes.POINTER(_P * len(_FOREIGN))).contents
    return {name: ctypes.CFUNCTYPE(*types)(at) for (name, types), at in zip(_FOREIGN.items(), entries, strict=True)}


def checked(fine: Any, reason: Any) -> None:
    """ValueError with the reason of a call that failed."""
    if not fine:
        raise ValueError(reason.value.decode())


def foreign_plan(w: Windows, start: np.ndarray, stop: np.ndarray) -> Any:
    """A plan of the table, from boundaries one after the other."""
    reason = ctypes.create_string_buffer(256)
    n, m = (np.array([f(a) for a in w.axes], np.int64) for f in (lambda a: a[0], lambda a: len(a[1])))
    data = (a.ctypes.data for a in (n, m, start, stop))
    made = FOREIGN["plan"](w.outer, w.inner, len(w.axes), *data, ctypes.addressof(reason))
    checked(made, reason)
    return made


def foreign_case(rng: Rng, make: Maker, name: str) -> Case:
    """A function of the table; a plan from boundaries that are overwritten, all else with a plan that is right."""
    name = name.removeprefix("foreign.")
    w, dtype = windows(rng), int(rng.integers(len(DTYPES) if name in ("choose", "pick", "place") else 4))
    start, stop = (np.concatenate([a[i] for a in w.axes]).astype(np.int64) for i in (1, 2))
    if name in ("plan", "sizes", "drop"):
        start, stop = make.input(start), make.input(stop)
        sizes = np.zeros(3, np.int64)

        def run() -> None:
            made = foreign_plan(w, start, stop)
            FOREIGN["sizes"](made, *(sizes[i:].ctypes.data for i in range(3)))
            FOREIGN["drop"](made)
            assert sizes[:2].tolist() == [prod(w.source), prod(w.dest)]

        return make.case(f"foreign.{name}", run)
    kind, back = dtype_of(DTYPES[dtype]), name in ("spread", "place")
    v = make.data(w.dest if back else w.source, kind)
    out = make.result(w.source if back else w.dest, kind)
    taps = make.result(w.dest, w.tap) if name == "choose" else make.input(true_taps(rng, w))
    given = {"fold": (int(pick(rng, (4, 5))),), "spread": (int(pick(rng, (0, 2, 3))),)}.get(name, ())
    held = (v, out, taps) if name == "choose" else (v, taps, out) if name in ("pick", "place") else (v, out)
    more = (Choice(bool(rng.random() < 0.5), bool(rng.random() < 0.5)),) if name == "choose" else given

    def call() -> None:
        made, reason = foreign_plan(w, start, stop), ctypes.create_string_buffer(256)
        data = (a.ctypes.data for a in held)
        fine = FOREIGN[name](made, dtype, *more, *data, ctypes.addressof(reason))
        FOREIGN["drop"](made)
        checked(fine, reason)

    return make.case(f"foreign.{name}", call)


# ---- what Python checks before the core does


def differs(got: Any, want: Any) -> str:
    """How a quiet call differs from what it should give."""
    return "" if np.array_equal(got, want, equal_nan=True) else f"a quiet call gave {got!r:.200}, wanted {want!r:.200}"


def sequence_case(rng: Rng, make: Maker, name: str) -> Case:
    """Sequences of a fractional pooling: what is kept for the next call must be of the numbers that were used."""
    n = int(rng.integers(4, 40))
    truth = [0, *sorted(rng.choice(np.arange(1, n), n // 2, replace=False).tolist()), n]
    row, col = make.input(np.array(truth)), make.list(truth)
    g = np.arange(float(n // 2 + 1) ** 2, dtype=np.float32).reshape(1, n // 2 + 1, n // 2 + 1, 1)
    words = {
        "orig_input_tensor_shape": np.array([1, n, n, 1]),
        "out_backprop": g,
        "overlapping": bool(rng.random() < 0.5),
    }
    op = raw_ops.FractionalAvgPoolGrad
    want = raw_ops.make(raw_ops.OPS["FractionalAvgPoolGrad"], reference)

    def run() -> None:
        op(row_pooling_sequence=row, col_pooling_sequence=col, **words)

    def quiet() -> str:
        given = {"row_pooling_sequence": np.array(truth), "col_pooling_sequence": list(truth), **words}
        return differs(op(**given), want(**given))

    return make.case(name, run, quiet)


def sizes_case(rng: Rng, make: Maker, name: str) -> Case:
    """ksize and strides as lists."""
    x = rng.integers(0, 9, (1, 8, 8, 2)).astype(np.float32)
    ksize, strides = make.list([1, 2, 2, 1]), make.list([1, 2, 2, 1])
    words = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    want = x.reshape(1, 4, 2, 4, 2, 2).max((2, 4))
    return make.case(
        name,
        lambda: raw_ops.MaxPool(input=x, ksize=ksize, strides=strides, padding="VALID"),
        lambda: differs(raw_ops.MaxPool(input=x, **words), want),
    )


def argmax_case(rng: Rng, make: Maker, name: str) -> Case:
    """The ops whose positions the caller supplies."""
    n = int(rng.integers(8, 64))
    x = make.data((2, 2 * n, 2 * n, 3), np.float32)
    index = make.input(rng.integers(0, 12 * n * n, (2, n, n, 3)).astype(np.int64))
    words = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID", "argmax": index}
    grad = make.data((2, n, n, 3), np.float32)
    if rng.random() < 0.5:
        return make.case(name, lambda: raw_ops.MaxPoolGradGradWithArgmax(input=x, grad=x, **words))
    return make.case(name, lambda: raw_ops.MaxPoolGradWithArgmax(input=x, grad=grad, **words))


def unpool_case(rng: Rng, make: Maker, name: str) -> Case:
    """Operators by positions and by taps; masks where of equal positions the last one counts."""
    n, m = int(rng.integers(1, 5000)), int(rng.integers(1, 5000))
    index, y = make.input(rng.integers(0, n, m)), make.data((m,), pick(rng, (np.float16, np.float64)))
    reduce = pick(rng, ("sum", "assign"))
    if rng.random() < 0.5:
        return make.case(name, lambda: pg.unpool(y, index, (n,), reduce=reduce))
    plan = Plan((2 * m,), {0: Axis(2 * m, np.arange(0, 2 * m, 2), np.arange(2, 2 * m + 2, 2))})
    taps = make.input(rng.integers(0, 2, m).astype(pick(rng, (np.uint8, np.int64))))
    v = make.data((2 * m,), np.float64)

    def run() -> None:
        made = pg.picking(plan, taps)
        made(v)
        made.T(np.asarray(y))

    return make.case(name, run)


def window_case(rng: Rng, make: Maker, name: str) -> Case:
    """Boundaries of a pool, as an array and as lists; and taps from positions."""
    n = int(rng.integers(2, 40))
    start, stop = boundaries(rng, n, empty=False)
    pairs, x = make.input(np.stack([start, stop], 1)), make.data((n, 3), np.float32)
    listed = [make.list([int(a), int(b)]) for a, b in zip(start, stop, strict=True)]
    index = make.input(np.stack([start] * 3, 1) * 3 + np.arange(3))

    def run() -> None:
        for given in (pairs, listed):
            pg.max_pool(x, [given], axes=0)
        pg.Taps.from_flat(index, Plan((n, 3), {0: Axis(n, pairs[:, 0], pairs[:, 1])}))

    truth = rng.integers(0, 9, (n, 3)).astype(np.float32)
    want = np.stack([truth[a:b].max(0) for a, b in zip(start, stop, strict=True)])
    return make.case(name, run, lambda: differs(pg.max_pool(truth, [np.stack([start, stop], 1)], axes=0), want))


CASES: dict[str, Callable[..., Case]] = {
    "Plan": lambda rng, make, name: plan_case(rng, make),
    **dict.fromkeys(("fold", "spread", "select"), float_case),
    **dict.fromkeys(("near", "route", "recall"), three_case),
    **dict.fromkeys(("argmax", "choose", "whole"), choice_case),
    **dict.fromkeys(("pick", "place"), tap_case),
    **dict.fromkeys(("gather", "scatter"), index_case),
    "empty": empty_case,
    **dict.fromkeys(("set_num_threads", "keep_at_most", "go_far_from", "use_bfloat16"), setting_case),
    **dict.fromkeys(map("foreign.{}".format, _FOREIGN), foreign_case),
    "sequences": sequence_case,
    "sizes": sizes_case,
    "positions": argmax_case,
    "unpool": unpool_case,
    "windows": window_case,
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
FOREIGN = foreign()


def takes_once() -> bool:
    """Whether this core's scatter knows how to round once."""
    try:
        _core.scatter(1, True, np.zeros(1, np.float32), np.zeros(1, np.int64), np.zeros(1, np.float32), True)
    except TypeError:
        return False
    return True


ONCE = takes_once()


# ---- running them


def race(case: Case, mapped: Mapped | None, counts: Counter[str]) -> str:
    """Calls the function while others write; returns what is wrong with it."""
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
    """Cases until the time is over or one fails."""
    counts: Counter[str] = Counter()
    names = tuple(given.op or (*CASES, *3 * OFTEN))
    sys.setswitchinterval(1e-4)
    mapped, end, number = Mapped(Path(given.note).parent), time.monotonic() + given.seconds, given.first
    try:
        while time.monotonic() < end and not counts["failed"]:
            progress.at(number, counts["calls"])
            faulthandler.dump_traceback_later(HANG, exit=True)
            rng = np.random.default_rng([given.seed, number])
            name, shared = pick(rng, names), mapped if rng.random() < 0.4 else None
            _core.set_num_threads(int(pick(rng, (1, 1, 2, 4))))
            counts["through a mapped file"] += shared is not None
            if text := race(CASES[name](rng, Maker(rng, shared), name), shared, counts):
                print(f"case {given.seed}:{number}: {name}: {text}", flush=True)
                counts["failed"] += 1
            number += 1
            if given.calls and counts["calls"] >= given.calls:
                break
    finally:
        faulthandler.cancel_dump_traceback_later()
        mapped.close()
    progress.at(number, counts["calls"])
    return counts


if __name__ == "__main__":
    sys.exit(workers.main("races", __doc__ or "", run))
