"""Read arrays from text, and write arrays as text.

    tensor = nested {...} or [...] | a flat list, with a shape | arange(a,b) | fill(v) | ones | zeros | random(dist, seed)
    dist   = normal(mean,deviation) | uniform(low,high) | integers(low,high)

A list must have exactly one number per cell of the shape.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .._ops.text import CLOSE, FLOAT, INT, OPEN, Scanner, TextError, floats, integer, quoted, real, word, written

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
Lookup = Callable[[str], Array]

LARGEST = 2**26  # cells of an array that a text describes
_DEEPEST = 16
_LONGEST_INTEGER = 1000  # characters: Python reads a few thousand
_STEP = 2**20  # random numbers drawn at a time
_CALL = re.compile(r"\s*(arange|fill|ones|zeros|random)(?:\s*\((.*)\))?\s*$", re.DOTALL | re.IGNORECASE)
_DISTRIBUTIONS = {"normal": (0.0, 1.0), "uniform": (0.0, 1.0), "integers": (-9.0, 9.0)}
_PLAIN = re.compile(r"[-+.0-9eE, \n]*")
REFERENCE = re.compile(r"sha256:[0-9a-f]{64}")


def numpy_type(name: str) -> np.dtype[Any]:
    """Return the NumPy type of a dtype name in the op table."""
    return np.dtype(getattr(ml_dtypes, name, name) if name == "bfloat16" else name)


def parse(text: str, shape: Shape | None, dtype: str, lookup: Lookup | None = None, most: int = LARGEST) -> Array:
    """Read an array of at most `most` cells. Without a shape, the text's own nesting decides.

    >>> parse("{{1, 2}, {3, 4}}", None, "float32").tolist() == parse("1,2,3,4", (2, 2), "int8").tolist()
    True
    >>> parse("1,2,3", (2, 2), "float32")
    Traceback (most recent call last):
    poolgrad._ops.text.TextError: at character 1: got 3 numbers, wanted 4, for shape [2, 2]
    """
    if shape is not None and math.prod(shape) > most:
        raise TextError(0, max(len(text), 1), f"shape {list(shape)}", f"at most {most} cells")
    made = _CALL.match(text)
    if made:
        return _called(text, made, shape, numpy_type(dtype), most)
    name, at = quoted(text)
    if lookup is not None and name.startswith("sha256:"):
        return _shaped(text, lookup(name).astype(numpy_type(dtype)), shape)
    if not name:
        if shape is not None and math.prod(shape) == 0:
            return np.zeros(shape, numpy_type(dtype))
        raise TextError(at, 1, "nothing", "numbers, or arange(1,9), fill(3), ones, zeros, random(normal, 7)")
    return _shaped(text, _nested(text, numpy_type(dtype)), shape)


def _shaped(text: str, array: Array, shape: Shape | None) -> Array:
    if shape is None or array.shape == shape:
        return array
    if array.size != math.prod(shape):
        wanted = f"{math.prod(shape)}, for shape {list(shape)}"
        raise TextError(0, max(len(text), 1), f"{array.size} numbers", wanted)
    if array.ndim > 1:
        raise TextError(0, len(text), f"brackets of shape {list(array.shape)}", f"{list(shape)}, as in shape")
    return array.reshape(shape)


# ---- lists


def _plain(text: str, dtype: np.dtype[Any]) -> Array | None:
    """Read plain numbers between commas, fast; return None for other or invalid texts."""
    if not _PLAIN.fullmatch(text):
        return None
    whole = dtype.kind in "iu"
    try:
        values = [*map(int if whole else float, text.removesuffix(",").split(","))]
    except ValueError:
        return None
    least = int(np.iinfo(dtype).min) if whole else -_most(dtype)
    if not least <= min(values) <= max(values) <= _most(dtype):
        return None
    return np.array(values, dtype if whole else np.float64).astype(dtype)


@lru_cache(16)
def _nested(text: str, dtype: np.dtype[Any]) -> Array:
    plain = _plain(text, dtype)
    if plain is not None:
        plain.flags.writeable = False
        return plain
    scan = Scanner(text)
    shape, values = _items(scan, "", dtype, 0)
    scan.end()
    if len(shape) > 1 and shape[0] == 1 and scan.text[: scan.at].lstrip()[:1] in OPEN:
        shape = shape[1:]  # one outer pair of brackets adds no dimension
    array = np.array(values, np.float64 if dtype.kind not in "iu" else dtype).astype(dtype).reshape(shape)
    array.flags.writeable = False
    return array


def _items(scan: Scanner, close: str, dtype: np.dtype[Any], depth: int) -> tuple[Shape, list[Any]]:
    """Read numbers, or lists of one common shape, up to the closing bracket."""
    values: list[Any] = []
    inner: Shape | None = None
    count = 0
    while scan.here and scan.here != close:
        at = scan.at
        bracket = scan.take(OPEN)
        if bracket and depth >= _DEEPEST:
            raise TextError(at, 1, "a bracket", f"at most {_DEEPEST} brackets inside each other")
        found: Shape = ()
        if bracket:
            found, more = _items(scan, CLOSE[OPEN.index(bracket)], dtype, depth + 1)
            values += more
        else:
            values.append(_number(scan, dtype))
        if inner is not None and found != inner:
            raise TextError(at, 1, f"a part of shape {list(found)}", f"{list(inner)}, as before")
        inner, count = found, count + 1
        scan.take(",;")
    if close and not scan.take(close):
        scan.fail(f"{close!r}, which closes the list")
    return (count, *(inner or ())), values


def _number(scan: Scanner, dtype: np.dtype[Any]) -> float | int:
    at = scan.at
    if dtype.kind not in "iu":
        token = scan.number(FLOAT, "a number")
        if abs(real(token)) > _most(dtype) and "inf" not in token.lower():
            raise TextError(at, len(token), token, f"a number that {dtype.name} can hold")
        return real(token)
    token, info = scan.number(INT, f"an integer, for dtype {dtype.name}"), np.iinfo(dtype)
    value = int(token) if len(token) < _LONGEST_INTEGER else info.max + 1
    if not info.min <= value <= info.max:
        wanted = f"an integer from {info.min} to {info.max}, for {dtype.name}"
        raise TextError(at, len(token), token[:40], wanted)
    return value


@lru_cache(16)
def _most(dtype: np.dtype[Any]) -> float:
    """Return the largest finite number of a type."""
    if dtype.kind in "iu":
        return int(np.iinfo(dtype).max)
    return float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]


# ---- calls


def _called(text: str, made: re.Match[str], shape: Shape | None, dtype: np.dtype[Any], most: int) -> Array:
    name, inner = made.group(1).lower(), made.group(2)
    if name == "arange":
        return _shaped(text, _arange(text, made, dtype, most), shape)
    if shape is None:
        raise TextError(0, len(text), f"{name} without a shape", "a shape")
    if name == "random":
        kind, _, seed = (inner or "normal").partition(",")
        return random(kind.strip(), shape, dtype.name, integer(seed or "0", 0))
    value = {"ones": 1.0, "zeros": 0.0}.get(name)
    if value is None:
        value = _arguments(text, made, 1, 1)[0]
    whole = dtype.kind not in "iu" or (value == int(value) and np.iinfo(dtype).min <= value)
    if not whole or abs(value) > _most(dtype):
        wanted = f"{'an integer' if dtype.kind in 'iu' else 'a number'} that {dtype.name} can hold"
        raise TextError(made.start(2), max(len(inner or ""), 1), repr(inner), wanted)
    return np.full(shape, value, dtype)


def _arguments(text: str, made: re.Match[str], least: int, most: int) -> list[float]:
    start, stop = made.span(2) if made.group(2) is not None else (made.end(1), made.end(1))
    try:
        found = floats(text[start:stop])
    except TextError as error:
        raise error.inside(text, start, stop) from None
    if not least <= len(found) <= most or not all(map(math.isfinite, found)):
        span = str(least) if least == most else f"{least} to {most}"
        raise TextError(start, max(stop - start, 1), f"{len(found)} numbers", f"{span} finite ones")
    return found


def _arange(text: str, made: re.Match[str], dtype: np.dtype[Any], most: int) -> Array:
    given = _arguments(text, made, 1, 3)
    start, stop, step = [(0.0, given[0], 1.0), (*given, 1.0), given][len(given) - 1]
    if step == 0 or not 0 <= (stop - start) / step <= most:
        raise TextError(made.start(1), len(made.group()), made.group().strip(), f"at most {most} numbers")
    low = np.iinfo(dtype).min if dtype.kind in "iu" else -_most(dtype)
    numbers = np.arange(start, stop, step)
    if numbers.size and not low <= float(numbers.min()) <= float(numbers.max()) <= _most(dtype):
        raise TextError(made.start(1), len(made.group()), made.group().strip(), f"numbers that {dtype.name} can hold")
    if dtype.kind in "iu" and (numbers != np.trunc(numbers)).any():
        raise TextError(made.start(1), len(made.group()), made.group().strip(), f"integers, for dtype {dtype.name}")
    return numbers.astype(dtype)


# ---- random numbers


def distribution(text: str) -> tuple[str, tuple[float, float]]:
    """Read a distribution; return its name and its two parameters.

    >>> distribution("uniform(-1,1)"), distribution("normal")
    (('uniform', (-1.0, 1.0)), ('normal', (0.0, 1.0)))
    """
    made = re.match(r"([^(]*)(?:\((.*)\)\s*)?$", text, re.DOTALL)
    if made is None:
        raise TextError(0, max(len(text), 1), repr(text[:40]), "a distribution like normal(0,1)")
    name = word(made.group(1), _DISTRIBUTIONS)
    if made.group(2) is None:
        return name, _DISTRIBUTIONS[name]
    low, high = _arguments(text, made, 2, 2)
    if name != "normal" and high < low:
        raise TextError(made.start(2), len(made.group(2)), made.group(2), "the lower number first")
    if name == "normal" and high < 0:
        raise TextError(made.start(2), len(made.group(2)), made.group(2), "a deviation of at least 0")
    return name, (low, high)


def random(dist: str, shape: Shape, dtype: str, seed: int) -> Array:
    """Draw numbers that depend only on distribution, shape, type and seed. Integer types need integers in their range."""
    name, (a, b) = distribution(dist)
    rng, kind = np.random.default_rng(seed), numpy_type(dtype)
    if name == "integers":
        low, high = math.ceil(a), max(math.ceil(a), math.floor(b))
        least = int(np.iinfo(kind).min) if kind.kind in "iu" else -(2**62)
        if not least <= low <= high <= min(_most(kind), 2**62):
            raise TextError(0, len(dist), dist, f"integers that {dtype} can hold", "integers(0,9)")
        return rng.integers(low, high, shape, endpoint=True).astype(kind)
    if kind.kind in "iu":
        raise TextError(0, len(dist), dist, f"integers(low,high), for dtype {dtype}", "integers(0,9)")
    if max(abs(a), abs(b)) * 64 > _most(kind):
        raise TextError(0, len(dist), dist, f"numbers that {dtype} can hold")
    made = np.empty(math.prod(shape), kind)
    for start in range(0, made.size, _STEP):  # the same numbers as in one draw, with less memory
        part = made[start : start + _STEP]
        with np.errstate(over="ignore"):
            part[:] = (
                a + b * rng.standard_normal(part.size) if name == "normal" else a + (b - a) * rng.random(part.size)
            )
    return made.reshape(shape)


# ---- and back to text


def flat(array: Array) -> str:
    """Write all cells as text that reads back as the same cells; omit the point of whole numbers.

    >>> flat(np.array([1, 2.5, -0.0, np.inf], np.float32))
    '1,2.5,-0.0,inf'
    """
    return ",".join(_cell(v) for v in array.reshape(-1))


def _cell(value: Any) -> str:
    if value.dtype.kind in "iu":
        return str(int(value))
    number = float(value)
    if number == number and abs(number) < 2**53 and number == int(number) and (number or math.copysign(1, number) > 0):
        return str(int(number))
    return str(value)


def bracketed(shape: Shape) -> str:
    """Write a shape in the notation of the pages.

    >>> bracketed((2, 1, 2))
    '[2][1][2]'
    """
    return "".join(f"[{n}]" for n in shape) or "[]"


__all__ = ["LARGEST", "REFERENCE", "bracketed", "distribution", "flat", "numpy_type", "parse", "random", "written"]
