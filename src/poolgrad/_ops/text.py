"""Parse numbers, words and types as TensorFlow's users type them; write them back. Never ignore part of a text: refuse it.

    ints    = [open] int { sep int } [sep] [close]        sep = "," | ";" | spaces     open/close = {} [] ()
    floats  = the same with floats                        1.0,1.44,1.73,1.0
    word    = SAME, "SAME", same                          any case, quotes or not
    dtype   = DT_FLOAT | float32 | f32 | float

Every error gives the position in the text, what stands there, what was wanted, and a corrected text if there is one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any, NoReturn

from .._common.errors import short_repr
from .dtypes import ALIASES, DTYPES, enumerator

OPEN, CLOSE = "{[(", "}])"
_MOST_NUMBERS = 100_000  # in an attribute or a pooling sequence
FLOAT = re.compile(r"[-+]?((\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?f?|inf(inity)?f?|nan)", re.IGNORECASE)
INT = re.compile(r"[-+]?\d+")
_TOKEN = re.compile(r"[^\s,;{}\[\]()]+")
_SPACE = re.compile(r"\s*")
_LEAD = re.compile(r"\s*ex\\?\)")  # examples on the pages begin with "ex)"


class TextError(ValueError):
    """An error in a text: its position, what stands there, what was wanted, and a corrected whole text."""

    def __init__(self, at: int, length: int, got: str, wanted: str, fix: str | None = None) -> None:
        super().__init__(f"at character {at + 1}: got {got}, wanted {wanted}")
        self.at, self.length, self.got, self.wanted, self.fix = at, length, got, wanted, fix

    def inside(self, text: str, start: int, stop: int) -> TextError:
        """Turn an error about text[start:stop] into one about the whole text."""
        fix = None if self.fix is None else text[:start] + self.fix + text[stop:]
        return TextError(start + self.at, self.length, self.got, self.wanted, fix)


class OutOfRange(TextError):
    """An error about a number that is too large or too small."""


class Scanner:
    """A text and a position in it."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        lead = _LEAD.match(text)
        self.at = lead.end() if lead else 0
        self.spaces()

    def spaces(self) -> None:
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at

    @property
    def here(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self, letters: str) -> str:
        """Take the character here, and the spaces after it, if it is one of these; else return ""."""
        letter = self.here
        if not letter or letter not in letters:
            return ""
        self.at += 1
        self.spaces()
        return letter

    def fail(self, wanted: str, fix: str | None = None) -> NoReturn:
        """Raise an error at the word or character that stands here."""
        token = _TOKEN.match(self.text, self.at)
        got = token.group() if token else self.here
        raise TextError(self.at, max(len(got), 1), repr(got[:40]) if got else "the end", wanted, fix)

    def number(self, pattern: re.Pattern[str], wanted: str) -> str:
        """Take the whole number that stands here."""
        token = _TOKEN.match(self.text, self.at)
        if not token or not pattern.fullmatch(token.group()):
            self.fail(wanted)
        self.at = token.end()
        self.spaces()
        return token.group()

    def end(self) -> None:
        if self.at < len(self.text):
            self.fail("the end of the text")


def real(token: str) -> float:
    """Read a float in C++ notation.

    >>> real("3.f"), real("-1e2"), real("inf")
    (3.0, -100.0, inf)
    """
    lower = token.lower()
    return float(lower.removesuffix("f") if not lower.endswith("inf") else lower)


def _listed(text: str, pattern: re.Pattern[str], wanted: str) -> list[tuple[str, int]]:
    """Return the numbers of a flat list, each with its position."""
    scan, found = Scanner(text), list[tuple[str, int]]()
    bracket = scan.take(OPEN)
    close = CLOSE[OPEN.index(bracket)] if bracket else ""
    while scan.here and scan.here != close:
        at = scan.at
        if len(found) == _MOST_NUMBERS:
            scan.fail(f"at most {_MOST_NUMBERS} numbers")
        found.append((scan.number(pattern, wanted), at))
        scan.take(",;")
    if close and not scan.take(close):
        scan.fail(f"{close!r}, which closes the list")
    scan.end()
    return found


def ints(text: str, low: int = -(2**63), high: int = 2**63 - 1) -> list[int]:
    """Read a list of integers.

    >>> ints("1,2,2,1") == ints("{1;2;2;1;}") == ints("[1 2 2 1]")
    True
    >>> ints("1,,2")
    Traceback (most recent call last):
    poolgrad._ops.text.TextError: at character 3: got ',', wanted an integer
    """
    values = []
    for token, at in _listed(text, INT, "an integer"):
        if len(token) > 24 or not low <= int(token) <= high:
            raise OutOfRange(at, len(token), token[:40], f"an integer from {low} to {high}")
        values.append(int(token))
    return values


def crossed(text: str, real: bool = False) -> list[Any]:
    """Read sizes with an x between them, as in problem lines: no signs, no brackets, no spaces.

    >>> crossed("3x3"), crossed("1.5x2", real=True)
    ([3, 3], [1.5, 2.0])
    """
    pattern = r"\d{1,18}(?:\.\d*)?" if real else r"\d{1,18}"
    if not re.fullmatch(rf"{pattern}(?:x{pattern})*", text):
        raise TextError(0, max(len(text), 1), short_repr(text), "sizes with an x between them")
    return [float(part) if real else int(part) for part in text.split("x")]


def floats(text: str) -> list[float]:
    """Read a list of floats.

    >>> floats("1.0, 1.44 1.73; 1.f")
    [1.0, 1.44, 1.73, 1.0]
    """
    return [real(token) for token, _ in _listed(text, FLOAT, "a number")]


def integer(text: str, low: int = -(2**63), high: int = 2**63 - 1) -> int:
    """Read one integer."""
    found = ints(text, low, high)
    if len(found) != 1:
        raise TextError(0, max(len(text), 1), f"{len(found)} numbers", "one integer")
    return found[0]


def quoted(text: str) -> tuple[str, int]:
    """Strip quotes and spaces around a word; return the word and its position."""
    scan = Scanner(text)
    start, word = scan.at, text[scan.at :].rstrip()
    if len(word) >= 2 and word[0] == word[-1] and word[0] in "\"'":
        return word[1:-1].strip(), start + 1
    return word, start


def word(text: str, words: Iterable[str]) -> str:
    """Read one of these words, in upper or lower case.

    >>> word(' "same" ', ("SAME", "VALID"))
    'SAME'
    >>> word("SAM", ("SAME", "VALID"))
    Traceback (most recent call last):
    poolgrad._ops.text.TextError: at character 1: got 'SAM', wanted SAME or VALID
    """
    given, at = quoted(text)
    known = {name.lower(): name for name in words}
    if given.lower() in known:
        return known[given.lower()]
    near = difflib.get_close_matches(given.lower(), known, 1, 0.5)
    fix = text[:at] + known[near[0]] + text[at + len(given) :] if near else None
    got = repr(given[:40]) if given else "nothing"
    raise TextError(at, max(len(given), 1), got, " or ".join(known.values()), fix)


def boolean(text: str) -> bool:
    """Read true or false, in upper or lower case, or 1 or 0."""
    return word(text, ("true", "false", "1", "0")) in ("true", "1")


def dtype(text: str, among: Iterable[str] = DTYPES) -> str:
    """Read the name of an element type.

    >>> dtype("DT_INT64"), dtype("float"), dtype("bf16"), dtype("tf.float32")
    ('int64', 'float32', 'bfloat16', 'float32')
    """
    given, at = quoted(text)
    plain = re.sub(r"^(dt_|tf\.|np\.)", "", given.lower())
    if plain in ALIASES and ALIASES[plain] in among:
        return ALIASES[plain]
    near = difflib.get_close_matches(plain, [n for n, t in ALIASES.items() if t in among], 1, 0.5)
    fix = enumerator(ALIASES[near[0]]) if near else None
    raise TextError(at, max(len(given), 1), short_repr(given) if given else "nothing", " or ".join(among), fix)


# ---- and back to text


def written(value: Any) -> str:
    """Write a value as text that reads back as the same value.

    >>> written([1, 2, 2, 1]), written(True), written((1.0, 1.44)), written("SAME")
    ('1,2,2,1', 'true', '1.0,1.44', 'SAME')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Iterable):
        return ",".join(map(written, value))
    return repr(value)
