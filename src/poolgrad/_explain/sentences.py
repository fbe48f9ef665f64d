"""Build the sentences of explanations from facts and the phrases of `data/phrases.json`.

The page gets the same phrases, parsed, and fills them with facts that it finds itself; it holds no words of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt

Cell = tuple[int, ...]
_DIGITS = 6
_SLOT = re.compile(r"\{(\w+)(?:@(\w+))?(?:\.(\w+)|(=))?\}")
_CONDITION = re.compile(r"(!?)(\w+)(?:([=>])(\w+))?")


class SentencePart(NamedTuple):
    """A part of a sentence: words, or the name, the value or the window of cells of the array `pin`."""

    text: str
    kind: Literal["text", "cell", "value", "window"] = "text"
    pin: str = ""
    cell: Cell = ()


class NamedArray(NamedTuple):
    """An array that sentences may mention."""

    pin: str
    name: str
    values: npt.NDArray[Any]


@dataclass(frozen=True)
class Facts:
    """The facts that select the clauses of a sentence and fill their slots."""

    values: Mapping[str, int | str | SentencePart]
    places: Mapping[str, Cell]  # here, tap, window
    lists: Mapping[str, Sequence[Facts]] = field(default_factory=dict)  # the first few; `values` has their number


# ---- phrases


class Slot(TypedDict, total=False):
    """A gap in a clause: a fact, or a cell of an array at a place."""

    fact: str
    array: str
    place: str
    show: str  # cell, value or name


class Condition(TypedDict):
    """A test of a fact; `holds` is the wanted answer."""

    fact: str
    test: str  # "", "=" or ">"
    than: str
    holds: bool


Text = list[str | Slot]
Clauses = list[tuple[list[Condition], Text]]


class Phrases(TypedDict):
    """All words of explanations, parsed."""

    aliases: dict[str, list[str]]
    listed: int  # most cells that a sentence lists; it counts the rest
    more: Text
    unknown: str
    plurals: dict[str, tuple[str, Text, Text]]  # counted fact, text for one, text for other numbers
    lists: dict[str, tuple[str, str, Clauses]]  # list of facts, text between entries, clauses of an entry
    listed_cells: int  # most cells of a window that a formula lists
    sentences: dict[str, Clauses]  # by kernel and side
    headings: dict[str, Clauses]
    formulas: dict[str, Clauses]


@cache
def phrases() -> Phrases:
    """Return the parsed phrases, which can be sent as JSON."""
    import json
    from importlib.resources import files

    raw = json.loads(files("poolgrad").joinpath("data/phrases.json").read_text("utf-8"))
    arrays = {"self", "x", "y", "g", "v", "dx", "out", "index", *raw["aliases"]}

    def clauses(given: list[list[str]]) -> Clauses:
        return [(list(_conditions(when)), list(_text(text, arrays))) for when, text in given]

    return {
        "aliases": raw["aliases"],
        "listed": raw["listed"],
        "more": list(_text(raw["more"], arrays)),
        "unknown": raw["unknown"],
        "plurals": {
            name: (fact, list(_text(one, arrays)), list(_text(many, arrays)))
            for name, (fact, one, many) in raw["plurals"].items()
        },
        "lists": {name: (facts, joint, clauses(entry)) for name, (facts, joint, entry) in raw["lists"].items()},
        "listed_cells": raw["listed_cells"],
        "sentences": {kind: clauses(given) for kind, given in raw["sentences"].items()},
        "headings": {kind: clauses(given) for kind, given in raw["headings"].items()},
        "formulas": {kind: clauses(given) for kind, given in raw["formulas"].items()},
    }


def _conditions(text: str) -> Iterator[Condition]:
    for word in text.split():
        found = _CONDITION.fullmatch(word)
        assert found is not None, word
        yield {"fact": found[2], "test": found[3] or "", "than": found[4] or "", "holds": not found[1]}


def _text(text: str, arrays: set[str]) -> Iterator[str | Slot]:
    """Split a clause into words and slots; `{x=}` stands for `{x} = {x.value}`."""
    at = 0
    for found in _SLOT.finditer(text):
        if found.start() > at:
            yield text[at : found.start()]
        at = found.end()
        name, place = found[1], found[2] or "here"
        if name not in arrays:
            yield {"fact": name}
            continue
        yield {"array": name, "place": place, "show": found[3] or "cell"}
        if found[4]:
            yield " = "
            yield {"array": name, "place": place, "show": "value"}
    if at < len(text):
        yield text[at:]


# ---- sentences


def say(
    kind: str,
    facts: Facts,
    arrays: Mapping[str, NamedArray],
    form: Literal["sentences", "headings", "formulas"] = "sentences",
) -> tuple[SentencePart, ...]:
    """Return the parts of a sentence, a heading or a formula: every clause whose conditions hold, its slots filled."""
    words = phrases()
    held = dict(arrays)
    for alias, symbols in words["aliases"].items():
        found = [symbol for symbol in symbols if symbol in arrays]
        held |= {alias: arrays[found[0]]} if found else {}
    said: list[SentencePart] = []
    for clause in _holding(words[form][kind], facts):
        said += [SentencePart(" ")] if said else []
        said += _filled(words, clause, facts, held)
    return _merged(said)


def _holding(clauses: Clauses, facts: Facts) -> list[Text]:
    return [text for conditions, text in clauses if all(_holds(condition, facts) for condition in conditions)]


def _holds(condition: Condition, facts: Facts) -> bool:
    value = facts.values.get(condition["fact"], 0)
    if condition["test"] == "=":
        found = str(value) == condition["than"]
    elif condition["test"] == ">":
        found = isinstance(value, int) and value > int(condition["than"])
    else:
        found = bool(value)
    return found == condition["holds"]


def _filled(words: Phrases, text: Text, facts: Facts, arrays: Mapping[str, NamedArray]) -> Iterator[SentencePart]:
    for slot in text:
        if isinstance(slot, str):
            yield SentencePart(slot)
        elif "array" in slot:
            yield _mention(arrays[slot["array"]], facts.places.get(slot["place"], ()), slot["show"])
        elif slot["fact"] in words["plurals"]:
            counted, one, many = words["plurals"][slot["fact"]]
            yield from _filled(words, one if facts.values[counted] == 1 else many, facts, arrays)
        elif slot["fact"] in words["lists"]:
            yield from _listed(words, slot["fact"], facts, arrays)
        else:
            value = facts.values[slot["fact"]]
            yield value if isinstance(value, SentencePart) else SentencePart(str(value))


def _listed(words: Phrases, name: str, facts: Facts, arrays: Mapping[str, NamedArray]) -> Iterator[SentencePart]:
    """List the first few entries, and say how many more there are."""
    source, joint, clauses = words["lists"][name]
    for i, entry in enumerate(facts.lists[source]):
        if i:
            yield SentencePart(joint)
        for clause in _holding(clauses, entry):
            yield from _filled(words, clause, entry, arrays)
    total = facts.values[source]
    more = total - len(facts.lists[source]) if isinstance(total, int) else 0
    if more > 0:
        yield SentencePart(joint)
        yield from _filled(words, words["more"], Facts({"more": more}, {}), arrays)


def _mention(array: NamedArray, cell: Cell, show: str) -> SentencePart:
    if show == "name":
        return SentencePart(array.name)
    if show == "value":
        return SentencePart(number(array.values[cell]), "value", array.pin, cell)
    return SentencePart(f"{array.name}[{','.join(map(str, cell))}]", "cell", array.pin, cell)


def _merged(parts: Sequence[SentencePart]) -> tuple[SentencePart, ...]:
    """Join neighbouring parts that are plain text."""
    made: list[SentencePart] = []
    for part in parts:
        if made and part.kind == made[-1].kind == "text":
            made[-1] = SentencePart(made[-1].text + part.text)
        else:
            made.append(part)
    return tuple(made)


def number(value: Any) -> str:
    """Format a number for a sentence, with at most six digits.

    >>> [number(v) for v in (3.0, 0.1, 1 / 3, 123456789.0, 1e-7, float("nan"), -0.0, 7)]
    ['3', '0.1', '0.333333', '123457000', '1e-7', 'NaN', '0', '7']
    """
    from decimal import ROUND_HALF_UP, Context, Decimal  # imported late to keep `import poolgrad` fast

    if isinstance(value, (int, np.integer)):
        return str(int(value))
    real = float(value)
    if real != real or real in (float("inf"), float("-inf")):
        return "NaN" if real != real else ("-" if real < 0 else "") + "inf"
    short = Context(prec=_DIGITS, rounding=ROUND_HALF_UP).create_decimal(Decimal(real))
    if not short:
        return "0"
    if Decimal("1e-4") <= abs(short) < Decimal("1e15"):
        return format(short.normalize(), "f")
    sign, digits, _ = short.normalize().as_tuple()
    mantissa = "".join(map(str, digits))
    mantissa = mantissa[0] + ("." + mantissa[1:] if len(mantissa) > 1 else "")
    return f"{'-' if sign else ''}{mantissa}e{short.adjusted()}"
