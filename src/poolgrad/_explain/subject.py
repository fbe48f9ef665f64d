"""Explain cells of one pooling: its windows, the tap of each, the values that arrived, and the facts of a sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.errors import ArgumentErrors, short_repr
from .._ops.semantics import Kernel, OpSemantics
from .._windows.axis import Axis
from .._windows.cells import covering_windows
from .._windows.plan import Plan
from .links import GIVEN, PLAIN, Links, PoolRule, PoolVerb, Weighing, links
from .sentences import Cell, Facts, NamedArray, SentencePart, number, phrases, say

Array = npt.NDArray[Any]

SOURCE, DEST = "source", "dest"


@dataclass(frozen=True)
class Operand:
    """An array of a call: its symbol in formulas, its name in the op, and the side whose shape it has."""

    symbol: str  # x, y, g, v, index, mask; dx and out are results
    pin: str
    side: str
    name: str = ""  # its name in sentences; default: the pin

    @property
    def called(self) -> str:
        """Name of the array in a sentence."""
        return self.name or self.pin


@dataclass(frozen=True)
class Window:
    """One window: its destination cell, start and stop per dimension, cells cut off at the edges, and its hits.

    The hits are the cells that tie: the first is the tap. Under the rule "near", every hit counts. A mean has no hits.
    """

    cell: Cell
    pairs: tuple[tuple[int, int], ...]
    before: Cell
    after: Cell
    hits: tuple[Cell, ...]
    steps: Cell = ()  # distance between cells, if windows are dilated

    @property
    def count(self) -> int:
        """Number of cells inside the input."""
        steps = self.steps or (1,) * len(self.pairs)
        return prod(len(range(*pair, step)) for pair, step in zip(self.pairs, steps, strict=True))

    @property
    def cut(self) -> int:
        """Number of cells outside the input, in the padding."""
        spans = (
            len(range(*pair, step)) + b + a
            for pair, b, a, step in zip(
                self.pairs, self.before, self.after, self.steps or (1,) * len(self.pairs), strict=True
            )
        )
        return prod(spans) - self.count


@dataclass(frozen=True)
class Arrival:
    """A value that came from, or went to, one destination cell, the number that divided it, and the weight of a norm."""

    cell: Cell
    value: float
    divisor: int | float = 1
    weight: float = 1.0


@dataclass(frozen=True)
class Explanation:
    """An explanation of one cell; str() gives its sentence, `parts` the same sentence with its cells and values marked.

    `heading` gives the reason in a few words, `formula` the calculation with its numbers; both are parts, too.
    """

    op: str
    pin: str
    cell: Cell
    value: float
    windows: tuple[Window, ...]
    arrived: tuple[Arrival, ...]
    sentence: str
    parts: tuple[SentencePart, ...] = ()
    heading: tuple[SentencePart, ...] = ()
    formula: tuple[SentencePart, ...] = ()

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True, eq=False)
class Subject:
    """A pooling that ran, ready for questions; independent of ops and frameworks."""

    name: str
    plan: Plan
    rule: OpSemantics | PoolRule
    operands: tuple[Operand, ...]
    arrays: Mapping[str, Array]  # by pin
    items: int = 1
    absolute: bool = True
    ranks: Mapping[str, Array] = field(default_factory=dict)  # by symbol: decides hits instead of the values
    how: Weighing = PLAIN

    def of(self, symbol: str) -> Operand | None:
        """Return the operand with that symbol, or None."""
        return next((p for p in self.operands if p.symbol == symbol), None)

    def inputs(self) -> dict[str, Array]:
        """Return the arrays that decide the hits."""
        given = {p.symbol: self.arrays[p.pin] for p in self.operands} | dict(self.ranks)
        if "y" not in given and self.rule.verb is Kernel.SELECT:
            given["y"] = given["out"]
        return given

    def links(self, windows: npt.NDArray[np.int64] | None = None) -> Links:
        """Return the links between its source and destination cells, of all windows or of some."""
        return links(self.plan, self.rule, self.inputs(), windows, self.items, self.absolute, self.how)

    def shape(self, side: str) -> Cell:
        """Return the shape of the arrays on a side."""
        return self.plan.source if side == SOURCE else self.plan.dest

    def explain(self, pin: str, cell: Cell) -> Explanation:
        """Explain the value of this cell."""
        asked = next(p for p in self.operands if p.pin == pin)
        made = self.links(self._windows(asked, cell))
        found = tuple(window(made, k) for k in range(len(made.windows)))
        about = _About(self, made, asked, cell, found)
        arrays = {p.symbol: NamedArray(p.pin, p.called, self.arrays[p.pin]) for p in self.operands}
        arrays["self"] = arrays[asked.symbol]
        kind, facts = f"{self.rule.verb.value}.{asked.side}", about.facts()
        parts = say(kind, facts, arrays)
        sentence = "".join(part.text for part in parts)
        value = self.arrays[pin][cell].item()
        more = (say(kind, facts, arrays, "headings"), say(kind, facts, arrays, "formulas"))
        return Explanation(self.name, pin, cell, value, found, about.arrivals(), sentence, parts, *more)

    def _windows(self, asked: Operand, cell: Cell) -> npt.NDArray[np.int64]:
        """Return the windows that an explanation of the cell needs."""
        flat = int(np.ravel_multi_index(cell, self.shape(asked.side)))
        if asked.side == DEST:
            return np.array([flat])
        if self.rule.verb not in GIVEN:
            return covering_windows(self.plan, cell)
        every = self.links()
        assert every.cell is not None
        return np.flatnonzero(every.cell == flat)


def window(made: Links, k: int) -> Window:
    """Return the k-th window."""
    cell = tuple(map(int, np.unravel_index(made.windows[k], made.plan.dest)))
    sides = [_side(axis, at) for axis, at in zip(made.axes, cell, strict=True)]
    flat = [] if made.ptr is None else made.hits(k)
    hits = tuple(tuple(map(int, np.unravel_index(j, made.plan.source))) for j in flat)
    pairs, before, after = zip(*sides, strict=True)
    return Window(cell, pairs, before, after, hits, tuple(1 if a is None else a.step for a in made.axes))


def _side(axis: Axis | None, at: int) -> tuple[tuple[int, int], int, int]:
    """Return (start, stop), and the number of cells cut off before and after."""
    if axis is None:
        return (at, at + 1), 0, 0
    before, after = cuts(axis)
    return (int(axis.start[at]), int(axis.stop[at])), int(before[at]), int(after[at])


def cuts(axis: Axis) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Count the cells of each window that were cut off before and after the axis.

    >>> from poolgrad.windows import sliding_axis
    >>> [c.tolist() for c in cuts(sliding_axis(5, k=3, s=2, pad=1, m=3))]
    [[1, 0, 0], [0, 0, 1]]
    """
    assert axis.span is not None
    lost = np.maximum(axis.span - axis.count, 0)
    # If a window is longer than the axis and covers it, its start is unknown: SAME puts the smaller half before.
    whole = (axis.start == 0) & (axis.stop == axis.length)
    before = np.where(axis.start > 0, 0, np.where(whole, lost // 2, lost))
    return before, lost - before


@dataclass(frozen=True)
class _About:
    """The facts about one cell; `studio/static/explain.js` finds the same facts in the links that the page has."""

    subject: Subject
    made: Links
    asked: Operand
    cell: Cell
    windows: tuple[Window, ...]

    def facts(self) -> Facts:
        """Return the facts that fill the sentence."""
        return self._of_window(self.windows[0]) if self.asked.side == DEST else self._of_cell()

    def arrivals(self) -> tuple[Arrival, ...]:
        """Return the values that went to this source cell, or came from it."""
        if self.asked.side == DEST:
            return ()
        given = next(p for symbol in phrases()["aliases"]["giver"] if (p := self.subject.of(symbol)))
        values = self.subject.arrays[given.pin]
        return tuple(
            Arrival(w.cell, values[w.cell].item(), self._divisor(w), self._weight(self.cell, w))
            for w in self.windows
            if self._counts(w)
        )

    @property
    def _shared(self) -> bool:
        return self.made.taken == "share"

    @property
    def _all(self) -> bool:
        """Return True if all cells of a window count."""
        return self.made.taken in ("share", "norm")

    def _counts(self, found: Window) -> bool:
        """Return True if this cell is the tap of a window, or has a share of it."""
        if self._all:
            return not (self.subject.how.skip and self._nan(self.cell))
        return self.cell in (found.hits[:1] if self.made.taken == "first" else found.hits)

    def _decides(self) -> Operand | None:
        """Return the array whose cells decide which cells count."""
        return self.subject.of("mask") or self.subject.of("x")

    def _nan(self, cell: Cell) -> bool:
        """Return True if the cell that decides is NaN."""
        x = self._decides()
        return x is not None and bool(self.subject.arrays[x.pin][cell] != self.subject.arrays[x.pin][cell])

    def _zero(self) -> bool:
        """Return True if the cell that decides is zero."""
        x = self._decides()
        return x is not None and x.side == self.asked.side and bool(self.subject.arrays[x.pin][self.cell] == 0)

    def _counted(self, found: Window) -> int:
        """Return the number of cells of a window that may count."""
        return found.count - (self._skipped(found) if self.subject.how.skip else 0)

    def _divisor(self, found: Window) -> int | float:
        """Return the number by which the share of a cell is divided."""
        divide, verb = self.subject.how.divide, self.subject.rule.verb
        if self._shared:
            more = found.cut if divide == "span" else 0
            return self._counted(found) + more if isinstance(divide, str) else divide
        return len(found.hits) if self.made.taken == "split" and verb in (Kernel.ROUTE, PoolVerb.CARRY) else 1

    def _shares(self, found: Window) -> dict[str, int | str | SentencePart]:
        """Return the facts about the divisor of a window, and about the rule of the pool."""
        how, divisor = self.subject.how, self._divisor(found)
        return {"divisor": number(divisor), "whole": int(divisor == 1), **_rules(how)}

    def _weight(self, cell: Cell, found: Window) -> float:
        """Return the weight of a cell in the derivative of a norm."""
        x, y = self.subject.of("x"), self.subject.of("y")
        if self.made.taken != "norm" or x is None or y is None:
            return 1.0
        return norm_weight(
            float(self.subject.arrays[x.pin][cell]), float(self.subject.arrays[y.pin][found.cell]), self.subject.how.p
        )

    def _of_window(self, found: Window) -> Facts:
        values: dict[str, int | str | SentencePart] = {
            "self": self.asked.symbol, "eps": number(self.subject.rule.eps), "window": self._region(found),
            "cells": self._counted(found), "cut": found.cut, "hits": len(found.hits), **self._shares(found),
        }  # fmt: skip
        if self.subject.how.skip and self._all:
            values["skipped"] = self._skipped(found)
        places = {"here": self.cell, "window": found.cell}
        if found.hits:
            values["one"] = int(self.made.taken == "first" or len(found.hits) == 1)
            tap = places["tap"] = found.hits[0]
            values["nan"] = self._nan(tap)
            values["outside"] = not all(a <= c < b for c, (a, b) in zip(tap, found.pairs, strict=True))
            values["skipped"] = self._skipped(found) if not values["nan"] else 0
        shown = found.hits[: phrases()["listed"]]
        skip = self.subject.how.skip and self._all
        inside = (cell for cell in product(*self._ranges(found)) if not (skip and self._nan(cell)))
        cells = list(islice(inside, phrases()["listed_cells"]))
        lists = {"hits": [Facts({}, {"tap": hit, "here": self.cell}) for hit in shown],
                 "cells": [Facts(self._weighed(cell, found), {"cell": cell, "window": found.cell}) for cell in cells]}  # fmt: skip
        return Facts(values, places, lists)

    def _weighed(self, cell: Cell, found: Window) -> dict[str, int | str | SentencePart]:
        """Return the weight of a cell as a fact, if the pool is a norm."""
        if self.made.taken != "norm":
            return {}
        return {"weight": number(self._weight(cell, found)), **_rules(self.subject.how)}

    @staticmethod
    def _ranges(found: Window) -> list[range]:
        """Return the indices of the window's cells along each dimension."""
        return [range(a, b, step) for (a, b), step in zip(found.pairs, found.steps, strict=True)]

    def _skipped(self, found: Window) -> int:
        """Count the cells of a window that are NaN."""
        x = self._decides()
        if x is None:
            return 0
        region = self.subject.arrays[x.pin][tuple(slice(r.start, r.stop, r.step) for r in self._ranges(found))]
        return int((region != region).sum())

    def _region(self, found: Window) -> SentencePart:
        spans = (
            str(a) if b - a == 1 else f"{a}:{b}" if step == 1 else f"{a}:{b}:{step}"
            for (a, b), step in zip(found.pairs, found.steps, strict=True)
        )
        source = next(p for p in self.subject.operands if p.side == SOURCE)
        return SentencePart(f"{source.called}[{','.join(spans)}]", "window", source.pin)

    def _of_cell(self) -> Facts:
        tapped = [w for w in self.windows if self._counts(w)]
        missed = [w for w in self.windows if not self._counts(w)]
        values: dict[str, int | str | SentencePart] = {
            "self": self.asked.symbol, "eps": number(self.subject.rule.eps), "reached": len(self.windows),
            "taps": len(tapped), "missed": len(missed), "lost_ties": sum(self.cell in w.hits for w in missed),
            "nan": self._nan(self.cell), "zero": self._zero(), **_rules(self.subject.how),
        }  # fmt: skip
        places = {"here": self.cell} | ({"window": tapped[0].cell} if tapped else {})
        listed = phrases()["listed"]
        values["windows"] = len(self.windows)
        lists = {"taps": tapped[:listed], "missed": missed[:listed], "windows": self.windows[:listed]}
        return Facts(values, places, {name: [self._entry(w) for w in found] for name, found in lists.items()})

    def _entry(self, found: Window) -> Facts:
        """Return the facts about one window in a list."""
        places = {"here": self.cell, "window": found.cell} | ({"tap": found.hits[0]} if found.hits else {})
        values: dict[str, int | str | SentencePart] = {
            "hits": len(found.hits), "counts": self._counts(found),
            "less": self._less(found), **self._shares(found), **self._weighed(self.cell, found),
        }  # fmt: skip
        return Facts(values, places)

    def _less(self, found: Window) -> bool:
        """Return True if this cell is smaller than the value that decides in a window, or larger if the smallest cell is the best."""
        x, y = self.subject.of("x"), self.subject.of("y")
        if x is None:
            return False
        cells = self.subject.arrays[x.pin]
        if self.made.taken == "every" and y is not None:
            return bool(cells[self.cell] < self.subject.arrays[y.pin][found.cell])
        if not found.hits:
            return False
        mine, best = cells[self.cell], cells[found.hits[0]]
        return bool(mine > best) if self.subject.how.least else bool(mine < best)


def _rules(how: Weighing) -> dict[str, int | str | SentencePart]:
    """Return the facts about the rule of a pool: these do not depend on a cell."""
    mean, total = how.divide == "cells", how.divide == 1
    return {"least": int(how.least), "last": int(how.last), "ties": how.ties, "p": number(how.p), "two": int(how.p == 2),
            "mean": int(mean), "total": int(total), "spans": int(how.divide == "span")}  # fmt: skip


def norm_weight(x: float, y: float, p: float) -> float:
    """Return the derivative of the norm y of a window with respect to its cell x.

    >>> norm_weight(-3.0, 5.0, 2.0), norm_weight(0.0, 0.0, 2.0), norm_weight(-4.0, 4.0, 1.0)
    (-0.6, 0.0, -1.0)
    """
    if x == 0 or y == 0:
        return 0.0
    try:
        size = (abs(x) / y) ** (p - 1)
    except (OverflowError, ZeroDivisionError):
        size = float("inf")
    return math.copysign(size, x)


def ask(name: str, made: Subject | None, pin: str, cell: Sequence[int]) -> Explanation:
    """Explain a cell; refuse an unknown array or cell, and say which there are."""
    problems = ArgumentErrors(f"explain {name}")
    if made is None:
        problems.fail("cell", list(cell), "a call that has windows: its result is empty")
    pins = {p.pin: made.shape(p.side) for p in made.operands}
    if pin not in pins:
        problems.fail("pin", repr(pin), " or ".join(map(repr, pins)))
    shape = pins[pin]
    try:
        place = tuple(int(i) for i in cell)
    except (TypeError, ValueError):
        problems.fail("cell", short_repr(cell), f"{len(shape)} integers")
    if len(place) != len(shape) or any(not 0 <= i < n for i, n in zip(place, shape, strict=True)):
        problems.fail("cell", list(place), f"a cell of {pin}, shape {list(shape)}")
    return made.explain(pin, place)
