"""Parse attributes as TensorFlow's C++ pages and their users type them. Never ignore part of a text: refuse it.

    ints    = [open] int { sep int } [sep] [close]        sep = "," | ";" | spaces     open/close = {} [] ()
    floats  = the same with floats                        1.0,1.44,1.73,1.0
    word    = SAME, "SAME", same                          any case, quotes or not
    attrs   = { name ["_"] "=" value ";" }                also Name(value), Op::Name(value)
    shape   = [2][2] | {2,2} | 2,2
    dtype   = DT_FLOAT | float32 | f32 | float

Every error gives the position in the text, what stands there, what was wanted, and a corrected text if there is one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from .._common.errors import short_repr
from .._ops.problem import short
from .._ops.table import OPS

OPEN, CLOSE = "{[(", "}])"
MOST_DIMENSIONS = 32
_MOST_NUMBERS = 100_000  # in an attribute or a pooling sequence
_FLOAT = re.compile(r"[-+]?((\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?f?|inf(inity)?f?|nan)", re.IGNORECASE)
_INT = re.compile(r"[-+]?\d+")
_TOKEN = re.compile(r"[^\s,;{}\[\]()]+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_PREFIX = re.compile(r"(\w+)\s*::\s*")
_ATTRS = re.compile(r"Attrs\s*\(\s*\)\s*")
_SPACE = re.compile(r"\s*")
_LEAD = re.compile(r"\s*ex\\?\)")  # examples on the pages begin with "ex)"

DTYPES = tuple(dict.fromkeys(dtype for op in OPS.values() for dtype in op.dtypes))
_ALIASES = {"float": "float32", "double": "float64", "half": "float16", "int": "int32", "qint8": "int8",
            "quint8": "uint8", "qint16": "int16", "quint16": "uint16", "qint32": "int32"}  # fmt: skip
_ALIASES |= {name: dtype for dtype in DTYPES for name in (dtype, short(dtype))}


class TextError(ValueError):
    """An error in a text: its position, what stands there, what was wanted, and a corrected whole text."""

    def __init__(self, at: int, length: int, got: str, wanted: str, fix: str | None = None) -> None:
        super().__init__(f"at character {at + 1}: got {got}, wanted {wanted}")
        self.at, self.length, self.got, self.wanted, self.fix = at, length, got, wanted, fix

    def inside(self, text: str, start: int, stop: int) -> TextError:
        """Turn an error about text[start:stop] into one about the whole text."""
        fix = None if self.fix is None else text[:start] + self.fix + text[stop:]
        return TextError(start + self.at, self.length, self.got, self.wanted, fix)


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
    poolgrad.graph.text.TextError: at character 3: got ',', wanted an integer
    """
    values = []
    for token, at in _listed(text, _INT, "an integer"):
        if len(token) > 24 or not low <= int(token) <= high:
            raise TextError(at, len(token), token[:40], f"an integer from {low} to {high}")
        values.append(int(token))
    return values


def floats(text: str) -> list[float]:
    """Read a list of floats.

    >>> floats("1.0, 1.44 1.73; 1.f")
    [1.0, 1.44, 1.73, 1.0]
    """
    return [real(token) for token, _ in _listed(text, _FLOAT, "a number")]


def integer(text: str, low: int = -(2**63), high: int = 2**63 - 1) -> int:
    """Read one integer."""
    found = ints(text, low, high)
    if len(found) != 1:
        raise TextError(0, max(len(text), 1), f"{len(found)} numbers", "one integer")
    return found[0]


def shape(text: str) -> tuple[int, ...]:
    """Read the shape of an array; an empty text is a scalar's shape.

    >>> shape("[2][3]"), shape("{2,3}"), shape("2, 3"), shape("[]")
    ((2, 3), (2, 3), (2, 3), ())
    """
    joined = re.sub(r"\]\s*\[", lambda m: "," + " " * (len(m.group()) - 1), text)  # keeps all positions
    sizes = tuple(ints(joined, 0))
    if len(sizes) > MOST_DIMENSIONS:
        raise TextError(0, len(text), f"{len(sizes)} sizes", f"at most {MOST_DIMENSIONS}")
    return sizes


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
    poolgrad.graph.text.TextError: at character 1: got 'SAM', wanted SAME or VALID
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


def enumerator(name: str) -> str:
    """Return TensorFlow's C++ name of a type."""
    return {"float32": "DT_FLOAT", "float64": "DT_DOUBLE", "float16": "DT_HALF"}.get(name, f"DT_{name.upper()}")


def dtype(text: str, among: Iterable[str] = DTYPES) -> str:
    """Read the name of an element type.

    >>> dtype("DT_INT64"), dtype("float"), dtype("bf16"), dtype("tf.float32")
    ('int64', 'float32', 'bfloat16', 'float32')
    """
    given, at = quoted(text)
    plain = re.sub(r"^(dt_|tf\.|np\.)", "", given.lower())
    if plain in _ALIASES and _ALIASES[plain] in among:
        return _ALIASES[plain]
    near = difflib.get_close_matches(plain, [n for n, t in _ALIASES.items() if t in among], 1, 0.5)
    fix = enumerator(_ALIASES[near[0]]) if near else None
    raise TextError(at, max(len(given), 1), short_repr(given) if given else "nothing", " or ".join(among), fix)


# ---- attrs

Reader = Callable[[str], Any]


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def attrs(text: str, readers: Mapping[str, Reader], op: str = "") -> dict[str, Any]:
    """Read named values; refuse unknown and repeated names.

    >>> attrs("data_format_ = NHWC; seed=7", {"data_format": str.strip, "seed": integer})
    {'data_format': 'NHWC', 'seed': 7}
    >>> attrs("MaxPool::Attrs().DataFormat('NHWC')", {"data_format": lambda t: quoted(t)[0]}, "MaxPool")
    {'data_format': 'NHWC'}
    """
    scan, found = Scanner(text), dict[str, Any]()
    while True:
        while scan.take(";."):
            pass
        if not scan.here:
            return found
        _prefix(scan, op)
        empty = _ATTRS.match(scan.text, scan.at)
        if empty:
            scan.at = empty.end()
            continue
        name, at = _name(scan, readers, op)
        if name in found:
            raise TextError(at, len(name), f"{name} twice", "each name once")
        start, stop = _value(scan)
        try:
            found[name] = readers[name](text[start:stop])
        except TextError as error:
            raise error.inside(text, start, stop) from None


def _prefix(scan: Scanner, op: str) -> None:
    """Skip `Op::`; refuse the name of another op."""
    found = _PREFIX.match(scan.text, scan.at)
    if not found:
        return
    if op and found.group(1) != op:
        scan.fail(f"{op}::", scan.text[: scan.at] + op + scan.text[scan.at + len(found.group(1)) :])
    scan.at = found.end()


def _name(scan: Scanner, readers: Mapping[str, Reader], op: str) -> tuple[str, int]:
    """Take the name that stands here; return it as the table spells it."""
    at, found = scan.at, _NAME.match(scan.text, scan.at)
    if not found:
        scan.fail("a name like data_format_")
    known = {_plain(name): name for name in readers}
    if _plain(found.group()) not in known:
        near = difflib.get_close_matches(_plain(found.group()), known, 1, 0.5)
        fix = scan.text[:at] + known[near[0]] + "_" + scan.text[found.end() :] if near else None
        names = ", ".join(f"{name}_" for name in readers)
        wanted = f"one of {names}" if readers else f"no attributes: {op or 'this block'} has none"
        raise TextError(at, len(found.group()), repr(found.group()), wanted, fix)
    scan.at = found.end()
    scan.spaces()
    return known[_plain(found.group())], at


def _value(scan: Scanner) -> tuple[int, int]:
    """Skip the value after a name; return its start and end."""
    if scan.here not in ("=", "("):
        scan.fail("'=' and a value")
    call = scan.here == "("
    scan.at += 1
    scan.spaces()
    start, depth, quote = scan.at, 0, ""
    while scan.here:
        letter = scan.here
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif not depth and letter == (")" if call else ";"):
            break
        elif letter in OPEN:
            depth += 1
        elif letter in CLOSE:
            depth -= 1
        scan.at += 1
    stop = scan.at
    if call and not scan.here:
        scan.fail("')', which ends the value")
    scan.at += 1
    scan.spaces()
    return start, stop


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


def written_attrs(values: Mapping[str, Any]) -> str:
    """Write attributes as text.

    >>> written_attrs({"data_format": "NHWC", "explicit_paddings": [0, 0, 1, 1, 1, 1, 0, 0]})
    'data_format_ = NHWC; explicit_paddings_ = {0,0,1,1,1,1,0,0};'
    """
    braced = {n: f"{{{written(v)}}}" if isinstance(v, (list, tuple)) else written(v) for n, v in values.items()}
    return " ".join(f"{name}_ = {value};" for name, value in braced.items())
