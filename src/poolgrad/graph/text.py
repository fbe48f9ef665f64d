"""Parse the texts that only pages have: attributes by name, and shapes. `_ops.text` reads single values.

attrs   = { name ["_"] "=" value ";" }                also Name(value), Op::Name(value)
shape   = [2][2] | {2,2} | 2,2
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any

from .._ops.dtypes import DTYPES, enumerator
from .._ops.text import CLOSE, OPEN, Scanner, TextError, boolean, dtype, floats, integer, ints, quoted, word, written

__all__ = ["DTYPES", "Scanner", "TextError", "attrs", "boolean", "dtype", "enumerator", "floats", "integer", "ints",
           "quoted", "shape", "word", "written", "written_attrs"]  # fmt: skip

MOST_DIMENSIONS = 32
_NAME = re.compile(r"[A-Za-z_]\w*")
_PREFIX = re.compile(r"(\w+)\s*::\s*")
_ATTRS = re.compile(r"Attrs\s*\(\s*\)\s*")


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


def written_attrs(values: Mapping[str, Any]) -> str:
    """Write attributes as text.

    >>> written_attrs({"data_format": "NHWC", "explicit_paddings": [0, 0, 1, 1, 1, 1, 0, 0]})
    'data_format_ = NHWC; explicit_paddings_ = {0,0,1,1,1,1,0,0};'
    """
    braced = {n: f"{{{written(v)}}}" if isinstance(v, (list, tuple)) else written(v) for n, v in values.items()}
    return " ".join(f"{name}_ = {value};" for name, value in braced.items())
