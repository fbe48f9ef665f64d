"""Damage to bytes, texts and JSON: replace, leave out, rename, repeat."""

from __future__ import annotations

import copy
import random
import re
from typing import Any

from poolgrad.graph.blocks import BLOCKS

NUMBERS = ["0", "-1", "1.5", "1.2.3", "1e999", "-1e-999", "nan", "inf", "--1", "1e", ".", "2147483647", "-2147483648", "4294967296",
           "9223372036854775807", "18446744073709551616", "9" * 400, "0" * 50 + "1", "0x10", "1_000", "\u00b2", "\u0661", "+1", "1f", ""]  # fmt: skip
WORDS = ["", " ", "x", "x.output", "print", "class", "__name__", "SAME", "VALID", "EXPLICIT", "NHWC", "NCHW_VECT_C", "DT_FLOAT", "DT_STRING",
         "\x00", "\ud800", "é" * 200, "a" * 3000, "[" * 3000, "(" * 99 + ")" * 99, "sha256:" + "0" * 64, "../../etc/passwd", "<script>",
         "ones", "arange(1,1e9)", "random(normal,", "fill(1e400)", "[99999][99999][99999]", "[1]" * 70, "{{1,2},{3}}", "1;2;;3", "1" * 3000 + "x",
         "Attrs()." * 300, "data_format_ = NHWC; data_format_ = NHWC", "explicit_paddings_ = {0,0,2147483646,2147483646,0,0,0,0};",
         "normal(0,1)", "integers(5,1)", "uniform(-1e300,1e300)"]  # fmt: skip
JUNK: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1.5,
    10**30,
    1e308,
    float("nan"),
    [],
    [[]],
    {},
    {"a": 1},
    ["x.output", "x.input"],
    [1, 2, 3],
    *NUMBERS,
    *WORDS,
]


def damaged(draw: random.Random, good: bytes) -> bytes:
    """Return the bytes cut, flipped, doubled, or with others strewn in."""
    data = bytearray(good)
    for _ in range(draw.randint(1, 5)):
        at = draw.randrange(len(data) + 1)
        match draw.randrange(5):
            case 0:
                del data[at:]
            case 1 if data:
                data[at % len(data)] ^= 1 << draw.randrange(8)
            case 2:
                data[at:at] = draw.choice(
                    [b"\0", b"[" * 2000, b"{}", b"\xff\xfe", b"1e999", b'"', b"NaN", draw.randbytes(8)]
                )
            case 3:
                data[at:at] = data[: draw.randrange(60)] * draw.choice([1, 1, 100])
            case _:
                del data[at : at + draw.randrange(20)]
    return bytes(data)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return every place inside a JSON value."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += places(inner, (*path, key))
    return found


def twisted(draw: random.Random, value: Any, mild: float = 0) -> Any:
    """Return a JSON value with parts replaced, left out, renamed or repeated; `mild` is the share of texts of blocks."""
    value = copy.deepcopy(value)
    for _ in range(draw.randint(1, 4)):
        found = places(value)
        if draw.random() < mild:
            found = [path for path in found if "text" in path[:-1]] or found
        if not found:
            return value
        *path, last = draw.choice(found)
        inside = value
        for key in path:
            inside = inside[key]
        old = inside[last]
        match draw.randrange(6):
            case _ if isinstance(old, str) and draw.random() < max(mild, 0.4):
                inside[last] = reworded(draw, old)
            case 2 if isinstance(inside, dict):
                inside[str(draw.choice(JUNK))[:300]] = inside.pop(last)
            case 3:
                del inside[last]
            case 4 if isinstance(inside, list) and len(inside) < 1000:
                inside += [copy.deepcopy(old)] * draw.choice([1, 2, 300])
            case _:
                inside[last] = copy.deepcopy(draw.choice(JUNK))
    return value


def reworded(draw: random.Random, text: str) -> str:
    """Return a text with a number or a few characters replaced."""
    if draw.random() < 0.3:
        return draw.choice([*NUMBERS, *WORDS, *BLOCKS])
    numbers = [found.span() for found in re.finditer(r"[-+]?[0-9.]+", text)]
    if numbers and draw.random() < 0.6:
        start, stop = draw.choice(numbers)
        return text[:start] + draw.choice([*NUMBERS, str(draw.randrange(9)), "1" + ",1" * 70]) + text[stop:]
    parts = text.split(",")
    parts[draw.randrange(len(parts))] = draw.choice([*NUMBERS, *WORDS[:12], str(draw.randrange(100))])
    return (
        ",".join(parts)
        if draw.random() < 0.7
        else damaged(draw, text.encode("utf-8", "replace")).decode("utf-8", "replace")
    )
