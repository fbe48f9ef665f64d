"""Turn facts into sentences: format numbers, read phrases, fill them. The studio page does the same from the same data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

LISTED = 4  # most windows that a sentence names; it counts the rest
_DIGITS = 6


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


@cache
def phrases() -> dict[str, list[list[str]]]:
    """Return the clauses of all sentences, per kernel and side, each with the facts that it needs."""
    import json
    from importlib.resources import files

    text = files("poolgrad").joinpath("data/phrases.json").read_text("utf-8")
    found: dict[str, list[list[str]]] = json.loads(text)["sentences"]
    return found


def say(kind: str, facts: Mapping[str, Any]) -> str:
    """Build the sentence for the facts: fill in every clause whose conditions hold."""
    said = []
    for conditions, clause in phrases()[kind]:
        if all(bool(facts.get(word.lstrip("!"))) != word.startswith("!") for word in conditions.split()):
            for name, value in facts.items():
                clause = clause.replace("{" + name + "}", str(value))
            said.append(clause)
    return " ".join(said)


def plural(n: int, word: str) -> str:
    """Return a number and its noun, with a plural s unless the number is 1."""
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def some(texts: Sequence[str], joint: str) -> str:
    """Join the first few texts, and say how many more there are."""
    more = len(texts) - LISTED
    return joint.join(texts[:LISTED]) + (f"{joint}{more} more" if more > 0 else "")
