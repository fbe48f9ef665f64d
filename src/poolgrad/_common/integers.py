"""The integer policy of the NumPy API: sums are exact or refused, means are rounded once, casts are checked.

docs/pools.md, section "Integers", states the policy for users. This module keeps exact sums in vectors of one or two 64-bit parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .errors import ArgumentErrors, short_repr

Array = npt.NDArray[Any]
Run: TypeAlias = Callable[[Array], Array]  # sums cells; wraps around in the dtype of its argument

WHOLE = "iub"  # kinds of dtype that hold integers
ROUNDINGS: dict[str, Any] = {"nearest": np.rint, "floor": np.floor, "ceil": np.ceil, "toward_zero": np.trunc}

_HALF = 2**32
_MOST_TERMS = 2**31  # a sum of this many 32-bit halves fits 64 bits
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


# ---- lists


class Misfit(ValueError):
    """An error for a list with numbers that its dtype does not hold; its text says what is wanted."""


def tensorflow_list(array: Array, value: object) -> Array:
    """Return a list in the dtype that TensorFlow gives it: int32, int64 if values need it, or float32 for Python floats.

    `array` is what NumPy made of the list.

    >>> [tensorflow_list(np.asarray(v), v).dtype.name for v in ([1, 2], [2**40], [1.5], [np.float64(1.5)])]
    ['int32', 'int64', 'float32', 'float64']
    """
    if array.dtype.kind == "f" and not _holds_huge_integers(array, value):
        leaf = value
        while isinstance(leaf, (list, tuple)) and leaf:
            leaf = leaf[0]
        return array if isinstance(leaf, (np.floating, np.ndarray)) else fit_list(array, np.dtype(np.float32))
    if array.dtype.kind in "iu" and _fits(array, np.int64):
        return array.astype(np.int32 if _fits(array, np.int32) else np.int64)
    if array.dtype.kind in "iuf" or (array.dtype == object and _leaf_kind(value) is int):
        raise Misfit("integers that int64 holds")
    return array


def fit_list(array: Array, like: np.dtype[Any]) -> Array:
    """Return the array of a list in the dtype `like` if both hold integers or both floats; refuse numbers that `like` cannot hold."""
    if array.dtype.kind in "iu" and like.kind in "iu":
        if not _fits(array, like):
            raise Misfit(f"integers that {like.name} holds")
        return array.astype(like)
    if array.dtype.kind not in "iuf" or like.kind in "iu":
        return tensorflow_list(array, array.tolist()) if array.dtype.kind in "iuf" else array
    with np.errstate(over="ignore"):
        made = array.astype(like)
    if np.any(np.isinf(made) & np.isfinite(array)):
        raise Misfit(f"numbers within the range of {like.name}")
    return made


def _leaf_kind(value: object) -> type:
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return type(value)


def _holds_huge_integers(array: Array, value: object) -> bool:
    """Return True if NumPy converted integers to floats because some are negative and some exceed int64."""
    return bool(array.size and float(array.max()) >= 2.0**63 and _leaf_kind(value) is int)


def _fits(array: Array, dtype: npt.DTypeLike) -> bool:
    lowest, top = _limits(np.dtype(dtype))
    return not array.size or (int(array.min()) >= lowest and int(array.max()) <= top)


# ---- sums


class Sums(NamedTuple):
    """Exact integers: `low`, or high * 2**32 + low (low below 2**32) if `high` is given; `most` bounds their absolute values."""

    low: Array
    high: Array | None
    most: int

    def at(self, place: tuple[int, ...]) -> int:
        """Return the sum at one place."""
        return int(self.low[place]) + (0 if self.high is None else int(self.high[place]) * _HALF)

    def turned(self, order: Sequence[int]) -> Sums:
        """Return the sums with their axes in another order."""
        return Sums(self.low.transpose(order), None if self.high is None else self.high.transpose(order), self.most)


def sum_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of integer sums: uint64 for uint64, int64 for all others."""
    return np.dtype(np.uint64 if dtype == np.uint64 else np.int64)


def _range(array: Array) -> tuple[int, int]:
    """Return bounds of the cells: the limits of the dtype, or for 64-bit dtypes the least and largest cell."""
    if array.dtype.itemsize == 8 and array.size:
        return int(array.min()), int(array.max())
    return _limits(array.dtype) if array.size else (0, 0)


def exact_sums(problems: ArgumentErrors, name: str, run: Run, array: Array, terms: int) -> Sums:
    """Return run(array) as exact integers; `run` adds up at most `terms` cells for each result."""
    array = array.view(np.uint8) if array.dtype == np.bool_ else array
    least, largest = (bound * terms for bound in _range(array))
    most = max(-least, largest)
    if most < 2**31:
        return Sums(run(array.astype(np.int32, copy=False)), None, most)
    if least >= -(2**63) and largest < 2**63:
        return Sums(run(array.astype(np.int64, copy=False)), None, most)
    if terms >= _MOST_TERMS:
        problems.fail(name, f"sums of up to {terms} cells of dtype {array.dtype}", f"at most {_MOST_TERMS - 1} cells")
    low = run((array & array.dtype.type(_HALF - 1)).astype(np.int64))
    high = run((array >> array.dtype.type(32)).astype(np.int64)) + (low >> 32)
    return Sums(low & (_HALF - 1), high, most)


def narrow_sums(
    problems: ArgumentErrors,
    name: str,
    sums: Sums,
    dtype: np.dtype[Any],
    hint: str,
    order: Sequence[int] = (),
    where: str = "over window",
) -> Array:
    """Return sums in that integer dtype; refuse sums that it cannot hold. `order` maps places to the caller's axes."""
    wrong = _outside(sums, dtype)
    if wrong is not None:
        at = _first(wrong)
        place = [at[i] for i in order] if order else list(at)
        problems.fail(name, f"a sum of {sums.at(at)} {where} {place}", f"a sum within {dtype.name}; {hint}")
    return _joined(sums, dtype)


@lru_cache(64)
def _limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the least and the largest integer of a dtype."""
    if dtype == np.bool_:
        return 0, 1
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def _first(wrong: Array) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))


def _outside(sums: Sums, dtype: np.dtype[Any]) -> Array | None:
    """Return a mask of the sums that the dtype cannot hold, or None if it holds all."""
    lowest, top = _limits(dtype)
    if -sums.most >= lowest and sums.most <= top:
        return None
    if sums.high is None:
        wrong = sums.low < lowest
        wrong = wrong | (sums.low > top) if top < 2**63 else wrong
    else:
        wrong = (sums.high < lowest >> 32) | (sums.high > top >> 32)
        if top < _HALF:
            wrong |= (sums.high == top >> 32) & (sums.low > top)
        if lowest % _HALF:
            wrong |= (sums.high == lowest >> 32) & (sums.low < lowest % _HALF)
    return wrong if wrong.any() else None


def _joined(sums: Sums, dtype: np.dtype[Any]) -> Array:
    """Return the sums in a dtype that holds all of them."""
    if sums.high is None:
        return sums.low.astype(dtype, copy=False)
    joined = (sums.high << 32) | sums.low
    return joined.view(np.uint64) if dtype == np.uint64 else joined.astype(dtype)


def sums_of_kind(
    problems: ArgumentErrors,
    name: str,
    run: Run,
    array: Array,
    terms: int,
    hint: str,
    order: Sequence[int] = (),
    where: str = "over window",
) -> Array:
    """Return run(array) in the dtype of the array. Integers are exact; refuse those that leave the dtype. Floats are unchecked."""
    kind = array.dtype
    if kind.kind not in WHOLE:
        return run(array)
    cells = array.view(np.uint8) if kind == np.bool_ else array
    if terms > 1 and cells.size:
        lowest, top = _limits(kind)
        if int(cells.min()) * terms < lowest or int(cells.max()) * terms > top:
            return narrow_sums(problems, name, exact_sums(problems, name, run, cells, terms), kind, hint, order, where)
    return run(cells).view(kind)


# ---- means


class Ratio(NamedTuple):
    """A divisor other than 0 as a fraction: top / bottom, bottom positive."""

    top: int
    bottom: int = 1


def ratio_of(problems: ArgumentErrors, divisor: Any) -> Ratio:
    """Return a divisor as an exact fraction; refuse 0, infinities, NaN and other types."""
    real = isinstance(divisor, (int, float, np.integer, np.floating))
    try:
        near = float(divisor) if real else math.nan
    except OverflowError:
        near = math.inf
    if not math.isfinite(near) or near == 0:
        wanted = "a finite number other than 0" if real and near else "a number other than 0"
        problems.fail("divisor", short_repr(divisor), wanted)
    return Ratio(int(divisor)) if isinstance(divisor, (int, np.integer)) else Ratio(*divisor.as_integer_ratio())


def _as_float(by: Array | Ratio) -> Array | float | None:
    """Return the divisor as float64 if that is exact, else None."""
    if isinstance(by, Ratio):
        near = by.top / by.bottom
        return near if near.as_integer_ratio() == (by.top, by.bottom) else None
    return None if by.dtype == object else by  # an array of int64 has at most 53 bits


def _most_of(by: Array | Ratio) -> int:
    """Return the largest divisor; all divisors here are integers."""
    return abs(by.top) if isinstance(by, Ratio) else int(by.max(initial=1))


def _far(sums: Sums, limit: int) -> Array | None:
    """Return a mask of the sums further from 0 than the limit; None if there are none."""
    if sums.most <= limit:
        return None
    far = (sums.low > limit) | (sums.low < -limit)
    if sums.high is not None:
        far = (sums.high > 0) | (sums.high < 0)  # may include a few sums within the limit: they are exact either way
    return far if far.any() else None


@np.errstate(over="ignore", under="ignore")
def float_means(sums: Sums, by: Array | Ratio, dtype: np.dtype[Any]) -> Array:
    """Return sums / by, each rounded once to a float dtype.

    If a sum has at most 53 bits and float64 holds `by` exactly, float64 division rounds once. For a shorter dtype, rounding the
    float64 quotient again is safe if the sum has at most 52 bits and `by` is an integer below 2**27: no such quotient is so close
    to the midpoint of two short numbers that float64 rounds it to the midpoint. All other quotients use integer division.
    """
    short = dtype != np.float64
    near = _as_float(by)
    if short and near is not None and ((isinstance(by, Ratio) and by.bottom != 1) or _most_of(by) >= 2**27):
        near = None
    far = _far(sums, 2**52 if short else 2**53) if near is not None else np.ones(sums.low.shape, bool)
    if far is None:
        return float_cast(np.asarray(sums.low / near), dtype)
    means = np.zeros(np.broadcast_shapes(sums.low.shape, () if isinstance(by, Ratio) else by.shape))
    if near is not None:
        means[...] = sums.low / near
    means[far] = _long_quotients(*_picked(sums, by, far), odd=short)
    return float_cast(means, dtype)


def _picked(sums: Sums, by: Array | Ratio, where: Array) -> tuple[Sums, Array | Ratio]:
    high = None if sums.high is None else sums.high[where]
    part = by if isinstance(by, Ratio) else np.broadcast_to(by, where.shape)[where]
    return Sums(sums.low[where], high, sums.most), part


def _divides_in_parts(by: Array | Ratio) -> bool:
    """Return True if vectors of 64-bit integers can divide by it."""
    if isinstance(by, Ratio):
        return by.bottom == 1 and abs(by.top) < 2**31
    return by.dtype != object and int(by.max(initial=1)) < 2**31


def _parts(sums: Sums, by: Array | Ratio) -> tuple[Array, Array, Array]:
    """Return the high and low halves of the sums, and a positive divisor."""
    low = sums.low.astype(np.int64, copy=False)
    high, low = (low >> 32, low & (_HALF - 1)) if sums.high is None else (sums.high, low)
    if not isinstance(by, Ratio):
        return high, low, by
    if by.top > 0:
        return high, low, np.asarray(by.top)
    return -high - (low > 0), np.where(low > 0, _HALF - low, 0), np.asarray(-by.top)


def _long_quotients(sums: Sums, by: Array | Ratio, odd: bool) -> Array:
    """Return quotients in float64, rounded to nearest; with `odd`, rounded to odd, so that the caller can round to a shorter dtype."""
    if not _divides_in_parts(by):
        each = [by] * sums.low.size if isinstance(by, Ratio) else [Ratio(int(b)) for b in by.tolist()]
        return np.array([_quotient(sums.at((i,)), b, odd) for i, b in enumerate(each)], np.float64)
    high, low, divisor = _parts(sums, by)
    negative = high < 0
    high, low = np.where(negative, -high - (low > 0), high), np.where(negative & (low > 0), _HALF - low, low)
    first, rest = np.divmod(high, divisor)
    second, rest = np.divmod((rest << 32) | low, divisor)
    room = np.clip(61 - _bits(first), 0, 32)  # how many of the second 32 bits fit into 64 bits
    found, exponent = (first << room) + (second >> (32 - room)), room - 32
    lost = (second & ((np.int64(1) << (32 - room)) - 1)) != 0
    for _ in range(3):  # until there are more than 56 bits, or no more to add
        shift = np.clip(61 - _bits(found), 0, 31)
        digits, rest = np.divmod(rest << shift, divisor)
        found, exponent = (found << shift) + digits, exponent + shift
    spare = np.maximum(_bits(found) - 53, 0) if odd else np.zeros(found.shape, np.int64)
    lost |= (rest != 0) | ((found & ((np.int64(1) << spare) - 1)) != 0)
    means = np.ldexp(((found >> spare) | lost).astype(np.float64), spare - exponent)
    return np.asarray(np.where(negative, -means, means))


def _bits(values: Array) -> Array:
    """Return the number of bits of nonnegative integers, or one more."""
    return np.frexp(values.astype(np.float64))[1].astype(np.int64)


def _quotient(total: int, by: Ratio, odd: bool) -> float:
    """Return one quotient total / by in float64."""
    top, bottom = abs(total) * by.bottom, abs(by.top)
    sign = -1.0 if (total < 0) != (by.top < 0) else 1.0
    try:
        near = top / bottom
    except OverflowError:
        return sign * math.inf
    if odd and math.isfinite(near):
        over, under = near.as_integer_ratio()
        wrong = over * bottom - top * under
        near = math.nextafter(near, 0.0) if wrong > 0 else near
        if wrong and not int(np.float64(near).view(np.int64)) & 1:
            near = math.nextafter(near, math.inf)
    return sign * near


def whole_means(
    problems: ArgumentErrors, what: str, sums: Sums, by: Array | Ratio, dtype: np.dtype[Any], rounding: str
) -> Array:
    """Return sums / by, rounded to integers of that dtype; refuse quotients that it cannot hold."""
    near = _as_float(by)
    plain = not isinstance(by, Ratio) or by.bottom == 1
    if near is not None and plain and _far(sums, 2**51) is None and sums.high is None:
        return whole_cast(problems, what, np.asarray(sums.low / near), dtype, rounding)
    shape = np.broadcast_shapes(sums.low.shape, () if isinstance(by, Ratio) else by.shape)
    flat = Sums(sums.low.reshape(-1), None if sums.high is None else sums.high.reshape(-1), sums.most)
    divisor = by if isinstance(by, Ratio) else np.broadcast_to(by, shape).reshape(-1)
    if not _divides_in_parts(by):
        found = [_rounded(flat.at((i,)), divisor, i, rounding) for i in range(flat.low.size)]
        return _from_integers(problems, what, found, shape, dtype)
    high, low, whole = _parts(flat, divisor)
    first, rest = np.divmod(high, whole)
    second, rest = np.divmod((rest << 32) | low, whole)
    up = rest > 0
    if rounding == "floor":
        up = np.zeros_like(up)
    elif rounding == "toward_zero":
        up &= first < 0
    elif rounding == "nearest":
        up = (rest > whole - rest) | ((rest == whole - rest) & (second % 2 == 1))
    second = second + up
    means = Sums((second & (_HALF - 1)).reshape(shape), (first + (second >> 32)).reshape(shape), sums.most + 1)
    wrong = _outside(means, dtype)
    if wrong is not None:
        _refuse(problems, what, means.at(_first(wrong)), _first(wrong), dtype)
    return _joined(means, dtype)


def _rounded(total: int, by: Any, i: int, rounding: str) -> int:
    ratio = by if isinstance(by, Ratio) else Ratio(int(by[i]))
    sign = -1 if ratio.top < 0 else 1
    found, rest = divmod(sign * total * ratio.bottom, sign * ratio.top)
    half = 2 * rest - sign * ratio.top
    up = {
        "floor": False,
        "ceil": rest > 0,
        "toward_zero": rest > 0 and found < 0,
        "nearest": half > 0 or (half == 0 and found % 2 == 1),
    }
    return found + up[rounding]


def _from_integers(
    problems: ArgumentErrors, what: str, found: list[int], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array:
    lowest, top = _limits(dtype)
    for i, value in enumerate(found):
        if not lowest <= value <= top:
            _refuse(problems, what, value, np.unravel_index(i, shape), dtype)
    return np.array(found, dtype).reshape(shape)


# ---- casts


def float_cast(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return floats in another float dtype, rounded once; numbers beyond its range become infinite.

    NumPy casts float64 to bfloat16 through float32, which rounds twice. Rounding the first step to odd gives the result of one rounding.
    """
    if values.dtype == dtype:
        return values
    with np.errstate(all="ignore"):
        if dtype != _BFLOAT16 or values.dtype != np.float64:
            return values.astype(dtype)
        near = values.astype(np.float32)
        wide = near.astype(np.float64)
        near = np.where(np.abs(wide) > np.abs(values), np.nextafter(near, np.float32(0)), near)
        bits = near.view(np.int32) | ((wide != values) & np.isfinite(values)).astype(np.int32)
        made: Array = bits.view(np.float32).astype(dtype)
    return made


@np.errstate(invalid="ignore")
def whole_cast(problems: ArgumentErrors, what: str, values: Array, dtype: np.dtype[Any], rounding: str) -> Array:
    """Return floats rounded to integers of that dtype; refuse NaN, infinities and other numbers that it cannot hold."""
    rounded = ROUNDINGS[rounding](values.astype(np.float64, copy=False))
    lowest, top = map(float, _limits(dtype))
    below = np.less_equal if dtype.itemsize < 8 else np.less  # float(2**63 - 1) is 2**63
    if rounded.size and not (rounded.min() >= lowest and below(rounded.max(), top)):  # False for NaN too
        at = _first(~((rounded >= lowest) & below(rounded, top)))
        _refuse(problems, what, values[at], at, dtype)
    return np.asarray(rounded.astype(dtype))


def _refuse(problems: ArgumentErrors, what: str, value: Any, at: Sequence[Any], dtype: np.dtype[Any]) -> None:
    lowest, top = _limits(dtype)
    place = [int(i) for i in at]
    problems.fail("dtype", f"{dtype.name} for a {what} of {value} at {place}", f"a {what} from {lowest} to {top}")


def integer_cast(problems: ArgumentErrors, name: str, values: Array, dtype: np.dtype[Any]) -> Array:
    """Cast integers to another dtype: round once to floats; refuse values that an integer dtype cannot hold."""
    cells = values.view(np.uint8) if values.dtype == np.bool_ else values
    if dtype.kind in "iu":
        lowest, top = _limits(dtype)
        if not _fits(cells, dtype):
            own = _limits(cells.dtype)
            at = _first((cells < max(lowest, own[0])) | (cells > min(top, own[1])))
            problems.fail(
                name, f"{dtype.name} for {cells[at]} at {list(at)}", f"a dtype that holds it: {lowest} to {top}"
            )
    elif dtype.itemsize < 4 and cells.dtype.itemsize >= 4:  # NumPy would round to float32 first
        unsigned = cells.dtype == np.uint64
        low = (cells & cells.dtype.type(_HALF - 1) if unsigned else cells).astype(np.int64)
        high = (cells >> cells.dtype.type(32)).astype(np.int64) if unsigned else None
        return float_means(Sums(low, high, 2**64), Ratio(1), dtype)
    with np.errstate(over="ignore"):
        return cells.astype(dtype)
