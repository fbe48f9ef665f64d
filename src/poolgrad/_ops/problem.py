"""One line that says a whole problem, for tests, benchmarks, the command line and bug reports.

    max f32 nhwc x=2x9x9x5 k=3x3 s=2x2 pad=same grad  # odd channels

The first word is a family (`max avg fmax favg qmax qavg`) or an op's own name; the others come in any order:

| word | meaning | unless given |
|---|---|---|
| `f32`, `bf16`, `int8`, ... | the element type | f32, or the op's first type |
| `nhwc nchw ndhwc ncdhw` | the order of the dimensions | channels last |
| `x=2x9x9x5` | the shape of the input, in that order | |
| `k=3x3` | the window: a size per pooled dimension, or one per dimension | |
| `s=2x2` | the stride, likewise | as the window |
| `pad=same`, `pad=explicit:1,1/2,0` | the padding; cells before and after, per pooled dimension | valid |
| `ratio=1.44x1.73` | the ratio of a fractional pooling, likewise | |
| `overlapping`, `pseudo`, `seed=1`, `seed2=2` | how its sequences are drawn | seed=1 |
| `argmax`, `argmax=i32`, `batched` | with positions, their type, and whether they count the batch | |
| `grad`, `gradgrad` | the gradient, the second order | the forward op |
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from .dtypes import NAMES, short
from .kinds import KINDS, Kind, Param
from .table import OPS, Op
from .text import TextError, crossed

Ints = tuple[int, ...]

_ORDERS = ("", "grad", "gradgrad")
_POSITIONS = (Kind.INDEX, Kind.INDEX_TYPE)
_SETTINGS, _FLAGS = (
    tuple(dict.fromkeys(word for kind in KINDS if kind.bare_words is bare for word in kind.words))
    for bare in (False, True)
)
FAMILIES = tuple(dict.fromkeys(op.family for op in OPS.values()))


_LAYOUTS = {layout.lower(): layout for op in OPS.values() for layout in op.formats}


@dataclass(frozen=True)
class Problem:
    """A call without its elements; k, s, pads and ratio are per dimension, in the layout's order.

    >>> problem = parse("max nchw x=1x2x4x4 k=2x2 grad")
    >>> problem.op, problem.k, str(problem)
    ('MaxPoolGrad', (1, 1, 2, 2), 'max f32 nchw x=1x2x4x4 k=2x2 s=2x2 pad=valid grad')
    """

    op: str
    x: Ints
    dtype: str
    layout: str
    k: Ints = ()
    s: Ints = ()
    padding: str = ""
    pads: Ints = ()
    ratio: tuple[float, ...] = ()
    overlapping: bool = False
    pseudo: bool = False
    seed: int = 1
    seed2: int = 0
    index: str = "int64"
    batched: bool = False
    comment: str = ""

    def __str__(self) -> str:
        return format(self)


def _positional(op: Op) -> bool:
    return any(p.kind in _POSITIONS for p in op.params)


def forward(op: Op) -> Op:
    """The op whose gradient this is.

    >>> forward(OPS["MaxPool3DGradGrad"]).name, forward(OPS["MaxPoolGradWithArgmax"]).name
    ('MaxPool3D', 'MaxPoolWithArgmax')
    """
    wanted = (0, op.family, op.spatial, _positional(op))
    return next(row for row in OPS.values() if (row.order, row.family, row.spatial, _positional(row)) == wanted)


def _takes(op: Op) -> dict[str, tuple[Param, ...]]:
    """The words that mean something to an op or to the forward op that its line runs first."""
    params = (*op.params, *forward(op).params)
    found = {word: tuple(p for p in params if p.kind.words.get(word) == p.name) for word in (*_SETTINGS, *_FLAGS)}
    return {word: given for word, given in found.items() if given}


def parse(line: str) -> Problem:
    """The problem that a line says.

    >>> parse("fmax f64 x=1x8x8x1 ratio=1.5x1.5 overlapping seed=7 grad").op
    'FractionalMaxPoolGrad'
    >>> parse("max x=1x8x8x1 k=3y3")
    Traceback (most recent call last):
    ValueError: problem: column 15: got 'k=3y3', wanted sizes like 3x3 after 'k='
    """
    return _Parser(line).problem()


class _Parser:
    """Words by name, each with the column where it stands."""

    def __init__(self, line: str) -> None:
        text, _, comment = line.partition("#")
        self.comment = comment.strip()
        found = [(m.group(), m.start() + 1) for m in re.finditer(r"\S+", text)]
        self.end = len(text.rstrip()) + 1
        if not found:
            self._refuse("", 1, f"a family ({' '.join(FAMILIES)}) or an op's name")
        self.head = found[0]
        self.words: dict[str, tuple[str, str, int]] = {}
        for word, column in found[1:]:
            name, value = self._name(word, column)
            if name in self.words:
                self._refuse(word, column, f"{name} only once")
            self.words[name] = (word, value, column)

    def problem(self) -> Problem:
        op, x = self._op()
        takes = _takes(op)
        for name, (word, _, column) in self.words.items():
            if name in (*_SETTINGS, *_FLAGS) and name not in takes:
                self._refuse(word, column, f"words that {op.name} has a use for: {' '.join(takes)}")
        layout = _LAYOUTS[self._value("layout", op.formats[0].lower())]
        space = [d for d, letter in enumerate(layout) if letter not in "NC"]
        k = self._sizes("k", space, len(layout), needed=True) if "k" in takes else ()
        s = (self._sizes("s", space, len(layout)) or k) if "s" in takes else ()
        padding, pads = self._padding(space, len(layout)) if "pad" in takes else ("", ())
        ratio = self._sizes("ratio", space, len(layout), needed=True, real=True) if "ratio" in takes else ()
        seed, seed2 = self._seeds()
        index = NAMES.get(self._value("argmax", "i64") or "i64", "")
        if index not in ("int32", "int64"):
            self._blame("argmax", "argmax=i32 or argmax=i64")
        flags = {name: name in self.words for name in _FLAGS}
        dtype = self._value("dtype", "f32" if "float32" in op.dtypes else op.dtypes[0])
        return Problem(op.name, x, NAMES[dtype], layout, k, s, padding, pads, ratio,
                       seed=seed, seed2=seed2, index=index, comment=self.comment, **flags)  # fmt: skip

    # ---- words

    def _refuse(self, got: str, column: int, wanted: str) -> NoReturn:
        raise ValueError(f"problem: column {column}: got {got!r}, wanted {wanted}")

    def _blame(self, name: str, wanted: str) -> NoReturn:
        word, _, column = self.words.get(name, ("", "", self.end))
        self._refuse(word, column, wanted)

    def _value(self, name: str, default: str) -> str:
        return self.words[name][1] if name in self.words else default

    def _name(self, word: str, column: int) -> tuple[str, str]:
        """Return the kind of a word, and its value."""
        name, equals, value = word.partition("=")
        if equals and name in ("x", *_SETTINGS):
            return name, value
        if word in NAMES:
            return "dtype", word
        if word.lower() in _LAYOUTS:
            return "layout", word.lower()
        if word in _ORDERS:
            return "order", word
        if word not in (*_FLAGS, "argmax"):
            keys = " ".join(f"{key}=" for key in ("x", *_SETTINGS))
            self._refuse(
                word, column, f"a type (f32), a layout (nhwc), {keys} argmax {' '.join(_FLAGS)} grad or gradgrad"
            )
        return word, ""

    # ---- the op

    def _op(self) -> tuple[Op, Ints]:
        """The first row of the table that does what the words say."""
        head, column = self.head
        rows = [op for op in OPS.values() if head in (op.name, op.family)]
        if not rows:
            self._refuse(head, column, f"a family ({' '.join(FAMILIES)}) or an op's name")
        if "x" not in self.words:
            self._blame("x", "x= with the shape of the input, like x=2x9x9x5")
        x = tuple(self._numbers("x"))
        named, ask = head in OPS, self._value
        if not named or "order" in self.words:
            order = _ORDERS.index(ask("order", ""))
            rows = self._keep(rows, lambda op: op.order == order, "order", lambda op: _ORDERS[op.order] or "nothing")
        rows = self._keep(rows, lambda op: op.spatial + 2 == len(x), "x", lambda op: f"{op.spatial + 2} sizes")
        if not named or "argmax" in self.words:
            asked = "argmax" in self.words
            rows = self._keep(rows, lambda op: _positional(op) == asked, "argmax", lambda op: "no such word")
        if ask("pad", "").startswith("explicit"):
            rows = self._keep(rows, lambda op: "EXPLICIT" in op.paddings, "pad", lambda op: "pad=same or pad=valid")
        if "layout" in self.words:
            layout = _LAYOUTS[ask("layout", "")]
            rows = self._keep(rows, lambda op: layout in op.formats, "layout", lambda op: " ".join(op.formats).lower())
        if "dtype" in self.words:
            dtype = NAMES[ask("dtype", "")]
            rows = self._keep(rows, lambda op: dtype in op.dtypes, "dtype", lambda op: " ".join(map(short, op.dtypes)))
        return rows[0], x

    def _keep(self, rows: list[Op], fits: Callable[[Op], bool], name: str, wanted: Callable[[Op], str]) -> list[Op]:
        kept = [op for op in rows if fits(op)]
        if not kept:
            choice = " or ".join(dict.fromkeys(map(wanted, rows)))
            self._blame(name, f"{choice} for {' or '.join(op.name for op in rows)}")
        return kept

    # ---- numbers

    def _numbers(self, name: str, real: bool = False) -> list[Any]:
        try:
            return crossed(self._value(name, ""), real)
        except TextError:
            self._blame(name, f"sizes like {'1.44x1.73' if real else '3x3'} after '{name}='")

    def _sizes(
        self, name: str, space: list[int], rank: int, needed: bool = False, real: bool = False
    ) -> tuple[Any, ...]:
        """A number per dimension: 1 where only the pooled dimensions were given."""
        if name not in self.words:
            if needed:
                self._blame(
                    name, f"{name}= with a number per pooled dimension, like {name}={'x'.join('2' for _ in space)}"
                )
            return ()
        given = self._numbers(name, real)
        if len(given) == rank:
            return tuple(given)
        if len(given) != len(space):
            self._blame(name, f"{len(space)} numbers, or {rank}")
        full = [1.0 if real else 1] * rank
        for d, size in zip(space, given, strict=True):
            full[d] = size
        return tuple(full)

    def _padding(self, space: list[int], rank: int) -> tuple[str, Ints]:
        text = self._value("pad", "valid").lower()
        if text in ("same", "valid"):
            return text.upper(), ()
        pair = r"\d{1,18},\d{1,18}"
        if not re.fullmatch("explicit:" + "/".join(pair for _ in space), text):
            self._blame("pad", "pad=same, pad=valid or pad=explicit:" + "/".join("1,1" for _ in space))
        pads = [0] * (2 * rank)
        for d, given in zip(space, re.findall(pair, text), strict=True):
            pads[2 * d : 2 * d + 2] = map(int, given.split(","))
        return "EXPLICIT", tuple(pads)

    def _seeds(self) -> tuple[int, int]:
        seeds = []
        for name, default in (("seed", "0" if "seed2" in self.words else "1"), ("seed2", "0")):
            text = self._value(name, default)
            if not re.fullmatch(r"-?\d{1,19}", text) or not -(2**63) <= int(text) < 2**63:
                self._blame(name, f"{name}= with an integer of 64 bits")
            seeds.append(int(text))
        if seeds == [0, 0]:
            self._blame("seed", "a seed other than 0, which would draw fresh numbers in every run")
        return seeds[0], seeds[1]


def format(problem: Problem) -> str:
    """The line that says a problem; `parse` reads it back.

    >>> format(parse("MaxPoolGradV2 int8 x=1x4x4x2 k=2x2"))
    'MaxPoolGradV2 i8 nhwc x=1x4x4x2 k=2x2 s=2x2 pad=valid'
    """
    op, tail = OPS[problem.op], _tail(problem)
    line = " ".join(filter(None, (op.family, tail, _ORDERS[op.order])))
    line = line if parse(line).op == op.name else f"{op.name} {tail}"
    return f"{line}  # {problem.comment}" if problem.comment else line


def _tail(problem: Problem) -> str:
    """Every word but the first, in the usual order."""
    takes = _takes(OPS[problem.op])
    words = [short(problem.dtype), problem.layout.lower(), f"x={_join(problem.x)}"]
    sizes = {name: _pooled(getattr(problem, name), problem.layout) for name in ("k", "s", "ratio") if name in takes}
    words += [f"{name}={_join(given)}" for name, given in sizes.items()]
    if "pad" in takes:
        before, after = problem.pads[::2], problem.pads[1::2]
        pairs = [f"{b},{a}" for b, a, letter in zip(before, after, problem.layout, strict=False) if letter not in "NC"]
        words.append(f"pad={problem.padding.lower()}" + (":" + "/".join(pairs) if pairs else ""))
    if "argmax" in takes:
        words.append("argmax" if problem.index == "int64" else f"argmax={short(problem.index)}")
    words += [name for name in _FLAGS if getattr(problem, name)]
    if "seed" in takes:
        words += [f"seed={problem.seed}"] + ([f"seed2={problem.seed2}"] if problem.seed2 else [])
    return " ".join(words)


def _join(numbers: tuple[float, ...]) -> str:
    return "x".join(str(int(n)) if n == int(n) else str(n) for n in numbers)


def _pooled(sizes: tuple[float, ...], layout: str) -> tuple[float, ...]:
    """Only the pooled dimensions, unless others are pooled, too."""
    if any(n != 1 for n, letter in zip(sizes, layout, strict=True) if letter in "NC"):
        return sizes
    return tuple(n for n, letter in zip(sizes, layout, strict=True) if letter not in "NC")
