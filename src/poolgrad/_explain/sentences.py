"""The words of explanations: numbers, phrases, and how facts make a sentence; the page does the same from the same data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

LISTED = 4  # windows that a sentence names; the rest are counted
_DIGITS = 6


def number(value: Any) -> str:
    """A number with at most six digits, as the sentences have it.

    >>> [number(v) for v in (3.0, 0.1, 1 / 3, 123456789.0, 1e-7, float("nan"), -0.0, 7)]
    ['3', '0.1', '0.333333', '123457000', '1e-7', 'NaN', '0', '7']
    """
    from decimal import ROUND_HALF_UP, Context, Decimal  # here, since importing the package should cost little

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


@cache
def phrases() -> dict[str, list[list[str]]]:
    """The words of all sentences: per verb and side, clauses and the facts that each needs."""
    import json
    from importlib.resources import files

    text = files("poolgrad").joinpath("data/phrases.json").read_text("utf-8")
    found: dict[str, list[list[str]]] = json.loads(text)["sentences"]
    return found


def say(kind: str, facts: Mapping[str, Any]) -> str:
    """The sentence that the facts make: every clause whose conditions hold, filled in."""
    said = []
    for conditions, clause in phrases()[kind]:
        if all(bool(facts.get(word.lstrip("!"))) != word.startswith("!") for word in conditions.split()):
            for name, value in facts.items():
                clause = clause.replace("{" + name + "}", str(value))
            said.append(clause)
    return " ".join(said)


def plural(n: int, word: str) -> str:
    """A number and its word."""
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def some(texts: Sequence[str], joint: str) -> str:
    """The first few, and how many more there are."""
    more = len(texts) - LISTED
    return joint.join(texts[:LISTED]) + (f"{joint}{more} more" if more > 0 else "")
