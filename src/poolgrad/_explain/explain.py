"""Explain the value of a cell: the windows that read it, the cell each chose, the values that arrived, and a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import raw_ops, windows
from .._common.errors import ArgumentErrors, short_repr
from .._ops.bind import FORWARD, BoundCall, arrays_of, bind
from .._ops.semantics import Kernel, OpSemantics, WindowRule
from .._ops.table import OPS, Kind, Op
from .._windows.axis import Axis
from .._windows.plan import Plan
from .links import GIVEN, SHARED, Links, covering, dimensions, links
from .sentences import number, plural, say, some

Array = npt.NDArray[Any]
Cell = tuple[int, ...]

SOURCE, DEST = "source", "dest"


@dataclass(frozen=True)
class Part:
    """An array of a call: its role in the kernel, its name in the op, and the side whose shape it has."""

    part: str  # x, y, g, v, index; dx and out are results
    pin: str
    side: str
    name: str = ""  # its name in sentences; default: the pin

    @property
    def called(self) -> str:
        """Name of the array in a sentence."""
        return self.name or self.pin


@dataclass(frozen=True)
class Window:
    """One window: its destination cell, start and stop per dimension, cells cut off at the edges, and its hits in order."""

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
    """A value that came from, or went to, one destination cell, and the number that divided it."""

    cell: Cell
    value: Any
    divisor: int = 1


@dataclass(frozen=True)
class Explanation:
    """An explanation of one cell; str() gives its sentence."""

    op: str
    pin: str
    cell: Cell
    value: Any
    windows: tuple[Window, ...]
    arrived: tuple[Arrival, ...]
    sentence: str

    def __str__(self) -> str:
        return self.sentence


# ---- the core: a plan, a rule and arrays


@dataclass(frozen=True, eq=False)
class Subject:
    """A pooling that ran, ready for questions; independent of ops and frameworks."""

    name: str
    plan: Plan
    rule: OpSemantics
    parts: tuple[Part, ...]
    arrays: Mapping[str, Array]  # by pin
    items: int = 1
    absolute: bool = True
    ranks: Mapping[str, Array] = field(default_factory=dict)  # by part: decides hits instead of the values

    def of(self, part: str) -> Part | None:
        """Return the part of that name, or None."""
        return next((p for p in self.parts if p.part == part), None)

    def inputs(self) -> dict[str, Array]:
        """Return the arrays that decide the hits."""
        given = {p.part: self.arrays[p.pin] for p in self.parts} | dict(self.ranks)
        if "y" not in given and self.rule.verb is Kernel.SELECT:
            given["y"] = given["out"]
        return given

    def links(self, chosen: npt.NDArray[np.int64] | None = None) -> Links:
        """Return the links between its source and destination cells."""
        return links(self.plan, self.rule, self.inputs(), chosen, self.items, self.absolute)

    def shape(self, side: str) -> Cell:
        """Return the shape of the arrays on a side."""
        return self.plan.source if side == SOURCE else self.plan.dest

    def explain(self, pin: str, cell: Cell) -> Explanation:
        """Explain the value of this cell."""
        part = next(p for p in self.parts if p.pin == pin)
        flat = int(np.ravel_multi_index(cell, self.shape(part.side)))
        made = self.links(self._chosen(part, cell, flat))
        facts, arrived = _Facts(self, made, part, cell).all()
        found = tuple(window(made, k) for k in range(len(made.windows)))
        sentence = say(f"{self.rule.verb.value}.{part.side}", facts)
        return Explanation(self.name, pin, cell, self.arrays[pin][cell].item(), found, arrived, sentence)

    def _chosen(self, part: Part, cell: Cell, flat: int) -> npt.NDArray[np.int64]:
        if part.side == DEST:
            return np.array([flat])
        if self.rule.verb not in GIVEN:
            return covering(dimensions(self.plan), self.plan.dest, cell)
        every = self.links()
        assert every.cell is not None
        return np.flatnonzero(every.cell == flat)


def window(made: Links, k: int) -> Window:
    """Return the k-th window."""
    cell = tuple(map(int, np.unravel_index(made.windows[k], made.dest)))
    sides = [_side(axis, at) for axis, at in zip(made.axes, cell, strict=True)]
    flat = [] if made.ptr is None else made.hits(k)
    hits = tuple(tuple(map(int, np.unravel_index(j, made.source))) for j in flat)
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

    >>> [c.tolist() for c in cuts(windows.clip(5, k=3, s=2, pad=1, m=3))]
    [[1, 0, 0], [0, 0, 1]]
    """
    assert axis.span is not None
    lost = np.maximum(axis.span - axis.count, 0)
    # If a window is longer than the axis and covers it, its start is unknown: SAME puts the smaller half before.
    whole = (axis.start == 0) & (axis.stop == axis.length)
    before = np.where(axis.start > 0, 0, np.where(whole, lost // 2, lost))
    return before, lost - before


class _Facts:
    """The facts that fill the phrases; `studio/static/explain.js` computes the same facts."""

    def __init__(self, subject: Subject, made: Links, part: Part, cell: Cell) -> None:
        self.subject, self.made, self.part, self.cell = subject, made, part, cell
        self.windows = [window(made, k) for k in range(len(made.windows))]

    def all(self) -> tuple[dict[str, Any], tuple[Arrival, ...]]:
        """Return all facts, and the values that arrived."""
        facts: dict[str, Any] = {"self": self._at(self.part, self.cell), "value": self._value(self.part, self.cell)}
        facts |= {f"is_{p.part}": p.part == self.part.part for p in self.subject.parts}
        facts |= {f"{p.part}_name": p.called for p in self.subject.parts} | {"eps": number(self.subject.rule.eps)}
        facts |= self._named(self.part.side, self.cell, "")
        if self.part.side == DEST:
            return facts | self._of_window(self.windows[0]), ()
        return self._of_cell(facts)

    def _at(self, part: Part, cell: Cell) -> str:
        return f"{part.called}[{','.join(map(str, cell))}]"

    def _value(self, part: Part, cell: Cell) -> str:
        return number(self.subject.arrays[part.pin][cell])

    def _nan(self, cell: Cell) -> bool:
        """Return True if the cell that decides is NaN."""
        part = self.subject.of("x")
        return part is not None and bool(self.subject.arrays[part.pin][cell] != self.subject.arrays[part.pin][cell])

    def _with(self, part: Part, cell: Cell) -> str:
        return f"{self._at(part, cell)} = {self._value(part, cell)}"

    def _named(self, side: str, cell: Cell, end: str) -> dict[str, str]:
        """Return name and value of the same cell in every array of that side."""
        found = {}
        for p in self.subject.parts:
            if p.side == side:
                found[f"{p.part}_at{end}"] = self._at(p, cell)
                found[f"{p.part}_with{end}"] = self._with(p, cell)
                found[f"{p.part}_value{end}"] = self._value(p, cell)
        return found

    def _of_window(self, found: Window) -> dict[str, Any]:
        base = next(p for p in self.subject.parts if p.side == SOURCE)
        spans = (
            str(a) if b - a == 1 else f"{a}:{b}" if step == 1 else f"{a}:{b}:{step}"
            for (a, b), step in zip(found.pairs, found.steps, strict=True)
        )
        facts: dict[str, Any] = {
            "window": f"{base.called}[{','.join(spans)}]", "n_cells": plural(found.count, "cell"), "count": found.count,
            "cut": found.cut, "n_cut": plural(found.cut, "cell"), "hit": len(found.hits) > 0, "single": found.count == 1,
            "tie": len(found.hits) > 1, "tied": len(found.hits),
        }  # fmt: skip
        if found.hits:
            facts |= self._named(SOURCE, found.hits[0], "_there")
            facts["nan"] = self._nan(found.hits[0])
            inside = all(a <= c < b for c, (a, b) in zip(found.hits[0], found.pairs, strict=True))
            facts["outside"] = not inside
        result = self.subject.of("dx")
        facts["takers"] = some([self._at(result or base, hit) for hit in found.hits], ", ")
        return facts

    def _of_cell(self, facts: dict[str, Any]) -> tuple[dict[str, Any], tuple[Arrival, ...]]:
        wins = [w for w in self.windows if self._counts(w)]
        others = [w for w in self.windows if not self._counts(w)]
        giver = next((p for name in ("g", "out", "y") if (p := self.subject.of(name))), self.part)
        arrived = tuple(Arrival(w.cell, self.subject.arrays[giver.pin][w.cell].item(), self._divisor(w)) for w in wins)
        facts |= {
            "reached": len(self.windows), "n_windows": plural(len(self.windows), "window"),
            "reach": "reaches" if len(self.windows) == 1 else "reach", "wins": len(wins), "missed": len(others),
            "those": "that window" if len(wins) == 1 else "those windows", "n_missed": plural(len(others), "window"),
            "one": len(self.windows) == 1, "all": not others and len(wins) > 1,
            "lost_tie": any(self.cell in w.hits for w in others),
            "sum": some([self._term(giver, w) for w in wins], " + "),
            "made": some([self._share(giver, w) for w in wins], ", "),
            "others": some([self._other(giver, w) for w in others], "; "),
            "sole": len(wins) == 1, "nan": self._nan(self.cell),
        }  # fmt: skip
        return facts | (self._named(DEST, wins[0].cell, "_win") if wins else {}), arrived

    def _counts(self, found: Window) -> bool:
        taken = self.made.taken
        if taken == "share":
            return True
        return self.cell in (found.hits if taken == "every" else found.hits[:1])

    def _divisor(self, found: Window) -> int:
        return found.count if self.made.verb in SHARED else 1

    def _term(self, giver: Part, found: Window) -> str:
        text = f"{self._at(giver, found.cell)} ({self._value(giver, found.cell)})"
        return text if self._divisor(found) == 1 else f"{text} / {found.count}"

    def _share(self, giver: Part, found: Window) -> str:
        text = self._at(giver, found.cell)
        return text if self._divisor(found) == 1 else f"1/{found.count} of it to {text}"

    def _other(self, giver: Part, found: Window) -> str:
        base = next(p for p in self.subject.parts if p.side == SOURCE)
        who = self._with(base, found.hits[0]) if found.hits else "no cell"
        return f"{who} for {self._at(giver, found.cell)}"


# ---- an op's call as a subject


def parts_of(op: Op) -> tuple[Part, ...]:
    """Return the role of each array of an op in its kernel, results last."""
    found, sources, dests = [], 0, 0
    ys = [p for p in op.params if p.kind is Kind.DEST]
    for p in op.params:
        if p.kind is Kind.SOURCE:
            found.append(Part("x" if not sources else "v", p.name, SOURCE))
            sources += 1
        elif p.kind is Kind.DEST:
            found.append(Part("y" if len(ys) > dests + 1 or op.order == 2 else "g", p.name, DEST))
            dests += 1
        elif p.kind is Kind.INDEX:
            found.append(Part("index", p.name, DEST))
    forward = op.rule.verb in FORWARD
    found.append(Part("out" if forward else "dx", op.outputs[0], DEST if forward else SOURCE))
    if op.rule.verb is Kernel.ARGMAX:
        found.append(Part("index", op.outputs[1], DEST))
    return tuple(found)


def subject(
    op: Op,
    arrays: Mapping[str, Array],
    attrs: Mapping[str, Any],
    outputs: Mapping[str, Array],
    names: Mapping[str, str] | None = None,
) -> Subject | None:
    """Return the subject for a call that ran, or None if the call has no cells."""
    call: BoundCall = bind(op, arrays, attrs, ArgumentErrors(op.name))
    plan = call.plan
    if plan is None:
        return None
    if (
        op.rule.windows is WindowRule.EDGES and op.order == 0
    ):  # use the windows in the outputs: drawing again would give others
        drawn = [outputs[name] for name in op.outputs[1:]]
        overlapping = bool(attrs.get("overlapping"))
        plan = Plan(
            plan.source, {1 + d: windows.edges(plan.source[1 + d], s, overlapping) for d, s in enumerate(drawn)}
        )
    parts = tuple(replace(p, name=(names or {}).get(p.pin, "")) for p in parts_of(op))
    held = {p.pin: outputs[p.pin] if p.pin in outputs else arrays[p.pin] for p in parts}
    return Subject(op.name, plan, op.rule, parts, held, call.items, call.absolute)


def explain(op: str, /, *, cell: Sequence[int], pin: str | None = None, **given: Any) -> Explanation:
    """Explain the value of a cell of an op's result or of an argument; pass the op's own arguments too.

    `op` may also be a pool of the NumPy API; there, pass `g`, a gradient at y, to explain the gradient of x.

    >>> x = np.array([[1, 2], [4, 3]], np.float32).reshape(1, 2, 2, 1)
    >>> why = explain("MaxPool", cell=(0, 0, 0, 0), input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    >>> print(why)
    output[0,0,0,0] = 4, the largest of the 4 cells of input[0,0:2,0:2,0], found at input[0,1,0,0].
    >>> why.windows[0].hits
    ((0, 1, 0, 0),)
    """
    row = OPS.get(op)
    if row is None:
        from .pools import POOLS, explain_pool

        if op in POOLS:
            return explain_pool(op, cell, pin, **given)
        ArgumentErrors("explain").fail("op", short_repr(op), f"one of {', '.join((*OPS, *POOLS))}")
    problems = ArgumentErrors(op)
    arrays = arrays_of(row, given, problems)[0]
    problems.raise_if_any()
    result = getattr(raw_ops, op)(**{**given, **arrays})
    outputs = dict(zip(row.outputs, result if len(row.outputs) > 1 else (result,), strict=True))
    attrs = {name: value for name, value in given.items() if name not in arrays}
    made = subject(row, arrays, attrs, outputs)
    return ask(op, made, pin or "output", cell)


def ask(name: str, made: Subject | None, pin: str, cell: Sequence[int]) -> Explanation:
    """Explain a cell; refuse an unknown array or cell, and say which there are."""
    problems = ArgumentErrors(f"explain {name}")
    if made is None:
        problems.fail("cell", list(cell), "a call that has windows: its result is empty")
    pins = {p.pin: made.shape(p.side) for p in made.parts}
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
