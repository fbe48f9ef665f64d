"""Every argument of every op may be any object: one that lies, raises, never ends or has another type."""

import array
import datetime
import decimal
import enum
import random
import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import Case, arguments

import poolgrad
from poolgrad import raw_ops
from poolgrad._ops.table import OPS

CLEAR = (ValueError, TypeError, NotImplementedError, MemoryError)
SECONDS = 2  # seconds for one call of a few cells, on a machine that does other work


def broken(*_: Any, **__: Any) -> Any:
    raise RuntimeError("of a value's own")


def kind(base: type = object, **methods: Any) -> type:
    """Return a class with these methods."""
    return type("Odd", (base,), {f"__{name}__": method for name, method in methods.items()})


def nested(depth: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


itself: list[Any] = []
itself.append(itself)
endless = kind(len=lambda _: 4, getitem=lambda _, i: 1)()
forever = kind(len=lambda _: 4, iter=lambda _: iter(int, 1))()
unequal = kind(str, eq=broken, hash=str.__hash__)
X = np.zeros((1, 5, 5, 3), np.float32)
SIZES = [1, 2, 2, 1]

VALUES: dict[str, Any] = {
    **{f"{value!r}"[:20]: value for value in (None, True, 0, -1, 2**63, -(2**63), 10**400, 1.5, float("nan"), 1j)},
    **{f"{value!a}": value for value in ("", "same", "VALID\0", "\ud800", b"SAME", b"\xff", bytearray(b"x"))},
    **{f"{value!r}": value for value in ([], [[]], [1], [*SIZES, 1], [1, 2.0, 2, 1], [1, None, 2, 1], [1, "2", 2, 1])},
    **{f"{value!r}": value for value in ([1, 2**31, 2, 1], [1, -(2**63), 2, 1], [1, 10**50, 2, 1], range(4), {1: 2})},
    "an enumeration": enum.Enum("Word", {"S": "SAME"}).S,
    "words that are equal to nothing": unequal("SAME"),
    "an integer that cannot be read": [1, kind(index=broken, repr=broken)(), 2, 1],
    "an integer that is another": [1, kind(int, index=lambda _: 10**30)(2), 2, 1],
    "a list that says it is long": kind(list, len=lambda _: 10**9)(SIZES),
    "a list that cannot be read": kind(list, iter=broken)(SIZES),
    "a list without an end": kind(list, len=lambda _: 2, iter=lambda _: iter(int, 1))(SIZES[:2]),
    "a sequence without an end": endless,
    "four that are more": forever,
    "an iterator": iter(SIZES),
    "a list in itself": itself,
    "a deep list": nested(3000),
    "an array that cannot be had": kind(array=broken)(),
    "an array that is none": kind(array=lambda *_, **__: 5)(),
    "a tensor that is none": kind(dlpack=lambda *_, **__: 5, dlpack_device=lambda _: (1, 0))(),
    "masked": np.ma.array(SIZES, mask=[0, 1, 0, 0]),
    **{f"sizes of {t}": np.array(SIZES, t) for t in ("f4", "O", "u8", ">i4", "U1")},
    **{f"cells of {t}": X.astype(t) for t in ("O", "c16", "g", "?", "S3", "M8[s]", ">f4", "f2")},
    **{f"cells of {t.__name__}": X.astype(t) for t in (ml_dtypes.float8_e4m3fn, ml_dtypes.int4)},
    "a structure": np.zeros((1, 5, 5, 3), [("a", "f4")]),
    **{
        f"shape {shape}"[:30]: np.zeros(shape, np.float32)
        for shape in ((), (5,), (0, 5, 5, 3), (1, 5, 5, 0), (1,) * 64)
    },
    "more than there is": np.broadcast_to(np.float32(1), (2**20, 2**20, 2**10, 1)),
    "overlapping": np.lib.stride_tricks.as_strided(X, (1, 5, 5, 3), (0, 0, 4, 0)),
    **{
        type(value).__name__: value
        for value in (object(), decimal.Decimal(1), datetime.date(2026, 1, 1), np.float32(1))
    },
    "a buffer": array.array("i", SIZES),
    "a type": int,
    "a function": lambda: 0,
}


def right(op: str) -> dict[str, Any]:
    """Return valid arguments."""
    row = OPS[op]
    dtype = "float32" if "float32" in row.dtypes else row.dtypes[0]
    return arguments(Case(op, dtype, (1, *(5,) * row.spatial, 3), (2,) * row.spatial))


def judge(op: str, given: dict[str, Any], what: str) -> None:
    begun, said = time.monotonic(), f"{op}: "
    try:
        getattr(raw_ops, op)(**given)
    except CLEAR as error:
        said = str(error)
    assert said.startswith(f"{op}: "), what
    assert len(said) < 2000, what
    assert time.monotonic() - begun < SECONDS, what


@pytest.mark.parametrize("op", OPS)
def test_any_value_in_any_place_is_answered_or_refused_by_name(op):
    given = right(op)
    for argument in given:
        for name, value in VALUES.items():
            judge(op, {**given, argument: value}, f"{argument}: {name}")


@pytest.mark.parametrize("op", OPS)
def test_several_odd_values_at_once_are_too(op):
    rng = random.Random(op)
    for _ in range(60):
        given = right(op)
        odd = {a: rng.choice(list(VALUES)) for a in rng.sample(list(given), min(len(given), rng.randint(2, 4)))}
        judge(op, {**given, **{a: VALUES[name] for a, name in odd.items()}}, str(odd))


POOLS: dict[str, dict[str, Any]] = {
    "max_pool": {"window": 2, "stride": 2, "padding": "valid", "dilation": 1, "layout": "NHWC", "ceil_mode": False},
    "min_pool": {"window": 2, "axes": (1, 2), "ties": "first", "nan": "tf", "return_taps": False},
    "avg_pool": {"window": (2, 2), "layout": "NHWC"},
    "fractional_max_pool": {"ratio": 1.5, "seed": 1, "axes": (1, 2)},
    "adaptive_avg_pool": {"size": 2, "axes": (1, 2)},
}
SICK = "words that are equal to nothing"  # their own error passes through


@pytest.mark.parametrize("pool", POOLS)
def test_pools_answer_or_refuse_any_value_too(pool):
    for argument in POOLS[pool]:
        for name in set(VALUES) - {SICK}:
            begun, said = time.monotonic(), argument
            try:
                getattr(poolgrad, pool)(X, **{**POOLS[pool], argument: VALUES[name]})
            except CLEAR as error:
                said = str(error)
            assert argument in said or said.startswith(f"{pool}: "), (argument, name)
            assert time.monotonic() - begun < SECONDS, (argument, name)


def test_an_unpooling_has_no_shape_without_an_end():
    for shape in (endless, forever):
        with pytest.raises(TypeError, match="unpool: shape"):
            poolgrad.unpool(np.ones(3), np.arange(3), shape)
