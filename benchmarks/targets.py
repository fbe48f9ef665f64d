"""Measure the nine speed targets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from poolgrad import get_num_threads, threads

from . import data, machine, memory, native
from .cells import Cell, of_workload, read, solid
from .peers import Peer
from .peers.ours import Ours
from .summary import IDLE, Line, disturbance, lines, means, seconds
from .timing import Entry, once, race

Record = dict[str, Any]
Verdict = tuple[str, bool | None]
FLAT = ("MaxPool", "MaxPoolGrad", "MaxPoolGradGrad", "AvgPool", "AvgPoolGrad")
SOLID = tuple(map(solid, FLAT))
OF_REPORT = 3  # targets up to this one come from the cells; the last, bytes, does not depend on the clock
MEMORY = 9
WHAT = {
    1: "95 % of the comparisons won; none lost to another peer than oneDNN, none below 0.9 of oneDNN",
    2: "geometric means: 12x TensorFlow (seed operators), 3x the fastest peer, channels first 10x PyTorch contiguous",
    3: "copy speed where arrays exceed the last-level cache and the window is at most 3 per axis: 75 % channels last, 60 % channels first",
    4: "31x31 at most 4x of 3x3, 5x5x5 at most 2.5x of 3x3x3, twice the batch 1.9 to 2.1x",
    5: "half types at most 0.75x of float32 (maxima), 1.2x (means); float64 at most 2.2x",
    6: "two threads at least 1.7x one where arrays fit in cache; tiny arrays not slowed down",
    7: "one call on 8x8x4: at most PyTorch's aten call, at most a third of TensorFlow's",
    8: "allocating the result at most 1.2x of filling a given one (50 MB)",
    9: "peak memory: results plus at most 1 MB per thread",
}


def cells_of(
    kinds: Iterable[str],
    x: tuple[int, ...],
    k: int,
    s: int = 1,
    padding: str = "SAME",
    dtypes: tuple[str, ...] = ("float32",),
) -> list[Cell]:
    """Return channels-last cells that differ only in kind and dtype."""
    axes = len(x) - 2
    entry = {
        "id": "x".join(map(str, x)),
        "x": x,
        "ksize": [k] * axes,
        "strides": [s] * axes,
        "padding": padding,
        "kinds": list(kinds),
        "dtypes": list(dtypes),
    }
    return list(of_workload(entry))


def best_times(calls: list[Callable[[], Any]], budget: float) -> list[float]:
    """Return the best time of each call; all race in turns."""
    entries = [Entry(str(i), call, min(once(call)[1], once(call)[1])) for i, call in enumerate(calls)]
    race(entries, budget, patience=math.inf)
    return [entry.best for entry in entries]


def _our_times(cells: list[Cell], budget: float) -> list[float]:
    return best_times([Ours().prepare(cell, data.make(cell)).call for cell in cells], budget)


class Targets:
    """Measurements that a report's cells do not hold."""

    def __init__(self, report: Record, peers: list[Peer], budget: float, quick: bool) -> None:
        self.report, self.peers, self.budget, self.quick = report, peers, budget, quick
        self.lines: list[Line] = lines(report)

    def measure(self, step: Callable[[str], None] = lambda what: None) -> list[Record]:
        """Measure all nine in order; on a busy machine, decide nothing."""
        found = []
        for number, what in WHAT.items():
            step(f"target {number}")
            others = machine.Others()
            figure, met = getattr(self, f"target_{number}")()
            doubt = disturbance(self.report) if number <= OF_REPORT else _doubt(others.cores())
            figure, met = (f"{figure} ({doubt})", None) if doubt and number != MEMORY else (figure, met)
            found.append({"target": number, "what": what, "figure": figure, "met": met})
        return found

    def _size(self, full: tuple[int, ...], quick: tuple[int, ...]) -> tuple[int, ...]:
        return quick if self.quick else full

    def target_1(self) -> Verdict:
        """Wins and losses."""
        contested = [line for line in self.lines if line.peer]
        lost = sorted((line for line in contested if line.lost), key=lambda line: line.ratio)
        if not contested:
            return "no peer ran", None
        worst = f"; worst {lost[0].name}: {lost[0].ratio:.2f}x of {lost[0].peer}" if lost else ""
        to_onednn = [line for line in lost if line.peer.startswith("onednn")]
        far = sum(line.ratio < 0.9 for line in to_onednn)
        few = len(lost) <= 0.05 * len(contested) and len(to_onednn) == len(lost) and not far
        to = f", {len(to_onednn)} of them to oneDNN, {far} of these below 0.9" if lost else ""
        return f"{len(lost)} of {len(contested)} comparisons lost{to}{worst}", few

    def target_2(self) -> Verdict:
        """Geometric means."""
        found = means(self.lines)
        wanted = {"TensorFlow, seed operators": 12, "fastest peer": 3, "PyTorch contiguous, channels first": 10}
        figures = ", ".join(f"{found[name][0]:.1f}x {name} ({found[name][1]} cells)" for name in wanted)
        known = [found[name][0] >= least for name, least in wanted.items() if found[name][1]]
        return figures, all(known) if len(known) == len(wanted) else None

    def target_3(self) -> Verdict:
        """Bandwidth beyond the cache."""
        cache = self.report["bandwidth"]["last_level_cache"]
        big = [
            line
            for line in self.lines
            if not line.given and max(line.record["window"]) <= 3 and line.record["traffic"] > cache
        ]
        if not big:
            return f"no cell moves more than the {cache / 2**20:.0f} MiB of the last-level cache", None
        worst, found, met = min(big, key=lambda line: line.fraction), [], True
        for what, first, least in (("channels last", False, 0.75), ("channels first", True, 0.6)):
            these = [line for line in big if line.record["layout"].startswith("NC") is first]
            reached = sum(line.fraction >= least for line in these)
            found.append(f"{reached} of {len(these)} cells {what}")
            met &= reached == len(these)
        return f"{', '.join(found)}; lowest {worst.fraction:.0%} in {worst.name}", met

    def target_4(self) -> Verdict:
        """Cost per output against window and batch."""
        flat = self._size((2, 256, 256, 16), (1, 64, 64, 16))
        solid = self._size((1, 64, 128, 128, 4), (1, 16, 32, 32, 4))
        batch = self._size((16, 112, 112, 64), (2, 56, 56, 64))
        wide, deep = self._windows(FLAT, flat, 31), self._windows(SOLID, solid, 5)
        twice = self._pairs(
            [
                (a, b)
                for a, b in zip(
                    cells_of(FLAT, batch, 3, 2), cells_of(FLAT, (2 * batch[0], *batch[1:]), 3, 2), strict=True
                )
            ]
        )
        met = max(wide.values()) <= 4 and max(deep.values()) <= 2.5 and all(1.9 <= r <= 2.1 for r in twice.values())
        copy = f"a copy of that array {self._copy_twice(batch):.2f}x"
        return f"31x31: {_list(wide)}; 5x5x5: {_list(deep)}; batch: {_list(twice)}, {copy}", met

    def _copy_twice(self, shape: tuple[int, ...]) -> float:
        """Return the cost of twice the batch for a plain copy: above 2 if only the smaller array fits a cache."""
        small, large = (np.ones((n, *shape[1:]), np.float32) for n in (shape[0], 2 * shape[0]))
        into = np.empty_like(large)
        calls = [lambda: np.copyto(into[: shape[0]], small), lambda: np.copyto(into, large)]
        once_, twice = best_times(calls, self.budget)
        return twice / once_

    def _windows(self, kinds: tuple[str, ...], x: tuple[int, ...], k: int) -> dict[str, float]:
        return self._pairs(list(zip(cells_of(kinds, x, 3), cells_of(kinds, x, k), strict=True)))

    def _pairs(self, pairs: list[tuple[Cell, Cell]]) -> dict[str, float]:
        """Return the time of the second cell of each pair over that of the first."""
        found = {}
        for pair in pairs:
            one, other = _our_times(list(pair), self.budget)
            found[pair[0].kind] = other / one
        return found

    def target_5(self) -> Verdict:
        """Other types against float32."""
        x = self._size((32, 112, 112, 64), (2, 56, 56, 64))
        limits = {"float16": (0.75, 1.2), "bfloat16": (0.75, 1.2), "float64": (2.2, 2.2)}
        worst: dict[str, float] = {}
        met = True
        for kind in FLAT:
            base, *others = _our_times(cells_of([kind], x, 3, 2, dtypes=("float32", *limits)), self.budget)
            for (dtype, (maxima, averages)), took in zip(limits.items(), others, strict=True):
                group = f"{dtype} {'max' if kind.startswith('Max') else 'mean'}"
                worst[group] = max(worst.get(group, 0), took / base)
                met &= took / base <= (maxima if kind.startswith("Max") else averages)
        return "longest: " + _list(worst), met

    def target_6(self) -> Verdict:
        """Two threads against one."""
        gains, tiny = {}, {}
        for cell, small in zip(
            cells_of(FLAT, (2, 56, 56, 64), 3, 2), cells_of(FLAT, (1, 8, 8, 4), 2, 2, "VALID"), strict=True
        ):
            one, two = self._one_and_two(cell)
            gains[cell.kind] = one / two
            one, two = self._one_and_two(small)
            tiny[cell.kind] = two / one
        met = min(gains.values()) >= 1.7 and max(tiny.values()) <= 1.05
        return f"gain {_list(gains)}; tiny, two threads against one: {_list(tiny)}", met

    def _one_and_two(self, cell: Cell) -> list[float]:
        call = Ours().prepare(cell, data.make(cell)).call
        found = [math.inf, math.inf]
        for _ in range(4):
            for i in (0, 1):
                with threads(i + 1):
                    found[i] = min(found[i], *best_times([call], self.budget / 16))
        return found

    def target_7(self) -> Verdict:
        """The cost of one call."""
        figures, met = [], True
        rivals = [p for p in self.peers if p.name.startswith(("torch", "tensorflow"))]
        if not rivals:
            return "neither PyTorch nor TensorFlow is installed", None
        for cell in cells_of(FLAT, (1, 8, 8, 4), 2, 2, "VALID"):
            arrays = data.make(cell)
            able = [p for p in rivals if p.can(cell) is None]
            ours, *theirs = best_times([p.prepare(cell, arrays).call for p in (Ours(), *able)], self.budget)
            named = {
                word: min((t for p, t in zip(able, theirs, strict=True) if p.name.startswith(word)), default=math.nan)
                for word in ("torch", "tensorflow")
            }
            beside = f"PyTorch {seconds(named['torch'])}, TensorFlow {seconds(named['tensorflow'])}"
            figures.append(f"{cell.kind} {seconds(ours)} ({beside})")
            met &= not (ours > named["torch"] or ours > named["tensorflow"] / 3)
        return ", ".join(figures), met

    def target_8(self) -> Verdict:
        """Allocation."""
        wide, low = self._size((16, 112, 112, 64), (2, 56, 56, 64)), {}
        for cell in itertools.chain(
            cells_of(("MaxPoolGrad", "AvgPoolGrad"), wide, 3, 2),
            cells_of(("MaxPool", "MaxPoolGradGrad", "AvgPool"), wide, 3),
        ):
            arrays = data.make(cell)
            out = native.result_of(cell)
            allocating, filling = best_times(
                [Ours().prepare(cell, arrays).call, native.filling(cell, arrays, out)], self.budget
            )
            low[cell.kind] = allocating / filling
        return _list(low), max(low.values()) <= 1.2

    def target_9(self) -> Verdict:
        """Memory; the kernel's count of a process's pages is exact to about 256 KB."""
        if not memory.supported():
            return "this system does not tell peak memory", None
        found = {cell.name: memory.extra(cell) / 2**20 / get_num_threads() for cell in read(memory_lines(self.quick))}
        worst = max(found, key=lambda kind: found[kind])
        over = [f"{kind} {size:.1f}" for kind, size in found.items() if size > 1]
        return f"{len(found)} problems, most: {found[worst]:.2f} MB per thread in {worst}" + (
            f"; over: {', '.join(over)}" if over else ""
        ), not over


def memory_lines(quick: bool) -> Iterable[str]:
    """Return a problem line for each op in the workloads, for long windows and for channels first."""
    flat, solid = ("2x56x56x64", "1x16x28x28x64") if quick else ("16x112x112x64", "2x16x56x56x64")
    for family, x, k, orders in (
        ("max", flat, "3x3", 3),
        ("avg", flat, "3x3", 2),
        ("max", solid, "3x3x3", 3),
        ("avg", solid, "3x3x3", 2),
    ):
        for order in ("", "grad", "gradgrad")[:orders]:
            layout = "nhwc" if x is flat else "ndhwc"
            yield f"{family} f32 {layout} x={x} k={k} s={'x'.join(['2'] * k.count('3'))} pad=same {order}"
    long = "nhwc x=1x64x64x16" if quick else "nhwc x=4x256x256x16"
    for family, order in itertools.product(("max", "avg"), ("", "grad")):
        yield f"{family} f32 {long} k=31x31 s=1x1 pad=same {order}"
        yield f"{family} f32 nchw x={'2x64x56x56' if quick else '16x64x112x112'} k=3x3 s=2x2 pad=same {order}"
    for family, order in itertools.product(("fmax", "favg"), ("", "grad")):
        yield f"{family} f32 nhwc x={flat} ratio=1.4142x1.4142 overlapping {order}"


def _doubt(cores: float) -> str:
    return f"others kept {cores:.1f} cores busy" if cores > IDLE else ""


def _list(ratios: dict[str, float]) -> str:
    return ", ".join(f"{name} {ratio:.2f}x" for name, ratio in ratios.items())
