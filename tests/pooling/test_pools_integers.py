"""Integers: every dtype in every pool, at the ends of its range, against Python's integers and fractions.

`python tests/pooling/test_pools_integers.py` prints the table dtype x pool: "exact", or "refused" with the reason.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from math import ceil, floor, trunc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import poolgrad as pg

DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
WHOLE = DTYPES[1:]
ROUNDINGS = {"nearest": round, "floor": floor, "ceil": ceil, "toward_zero": trunc}
BFLOAT16 = ml_dtypes.bfloat16


def dtype_of(name: str) -> np.dtype[Any]:
    return np.dtype(BFLOAT16 if name == "bfloat16" else name)


def limits(dtype: Any) -> tuple[int, int]:
    dtype = np.dtype(dtype)
    return (0, 1) if dtype == np.bool_ else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


# ---- data: the ends of the range, mixtures of them, and any bits


def samples(dtype: str, shape: tuple[int, ...] = (6, 8)) -> Iterator[np.ndarray]:
    kind, size = np.dtype(dtype), int(np.prod(shape))
    rng = np.random.default_rng(DTYPES.index(dtype))
    low, top = limits(kind)
    for values in ([low], [top], [low, top], [top, top - 1], [low, low + 1, 0], [top, 0, low, 1], [top // 2 + 1, top]):
        yield np.array([values[i % len(values)] for i in range(size)], kind).reshape(shape)
    for _ in range(3):
        bits = rng.integers(0, 256, size * kind.itemsize, np.uint8)
        yield ((bits & 1).astype(bool) if kind == np.bool_ else bits.view(kind)).reshape(shape)
    mixed = rng.integers(-3, 4, shape) + (3 if low == 0 else 0)
    mixed = np.clip(mixed, low, min(top, 9)).astype(kind)
    ends = rng.random(shape)
    yield np.where(ends < 0.1, kind.type(top), np.where(ends > 0.9, kind.type(low), mixed))


# ---- windows, by walking over them

PLANS: dict[str, dict[str, Any]] = {
    "window": {"window": 2},
    "overlapping": {"window": 3, "stride": 1},
    "padded": {"window": 3, "stride": 2, "padding": 1},
    "dilated": {"window": 2, "stride": 1, "dilation": 2},
    "rows": {"window": 4, "axes": 1},
}


def windows_of(plan: pg.Plan) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
    """Return the cells of each window."""
    sides = []
    for d, axis in enumerate(plan.by_dimension):
        if axis is None:
            sides.append([[i] for i in range(plan.source[d])])
        else:
            sides.append([list(range(a, b, axis.step)) for a, b in axis.pairs()])
    places = product(*(range(len(side)) for side in sides))
    return {at: list(product(*(side[i] for side, i in zip(sides, at, strict=True)))) for at in places}


def walk(x: np.ndarray, plan: pg.Plan, f: Callable[[list[int], tuple[int, ...]], Any]) -> dict[tuple[int, ...], Any]:
    cells = x.astype(object)
    return {at: f([int(cells[c]) for c in window], at) for at, window in windows_of(plan).items()}


# ---- rounding, from fractions alone


def nearest(value: Fraction, dtype: str) -> float:
    """Return the number of a float dtype nearest to a fraction; of two as near, the even one; beyond the range, infinity."""
    bits, least, most = {"float16": (11, -24, 16), "bfloat16": (8, -133, 128), "float32": (24, -149, 128), "float64": (53, -1074, 1024)}[dtype]  # fmt: skip
    if value == 0:
        return 0.0
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent = exponent if size >= Fraction(2) ** exponent else exponent - 1
    step = max(exponent - bits + 1, least)
    units = round(size / Fraction(2) ** step)
    found = units * Fraction(2) ** step
    sign = 1 if value > 0 else -1
    return sign * float("inf") if found >= Fraction(2) ** most else sign * float(found)


def agree(got: np.ndarray, want: dict[tuple[int, ...], Any], dtype: Any) -> str:
    """Return a text that tells the first difference, or ""."""
    if got.dtype != np.dtype(dtype):
        return f"dtype {got.dtype}, wanted {np.dtype(dtype)}"
    if got.dtype == BFLOAT16:
        got = got.astype(np.float32)
    for at, value in want.items():
        mine = got[at].item()
        if mine != value or type(mine) is not type(value):
            return f"{mine!r} at {at}, wanted {value!r}"
    return ""


# ---- the pools, each with its definition: a call gives its value, or is refused exactly where it has to be


def outcome(call: Callable[[], np.ndarray], want: dict[tuple[int, ...], Any], dtype: Any, fits: bool, op: str) -> str:
    """ "exact", or "refused"; what is wrong raises."""
    if not fits:
        with pytest.raises(ValueError, match=f"^{re.escape(op)}: (x|v|dtype): got .*, wanted "):
            call()
        return "refused"
    got = call()
    wrong = agree(got, want, dtype)
    assert not wrong, wrong
    return "exact"


def holds(dtype: Any, values: Any) -> bool:
    low, top = limits(dtype)
    return all(low <= v <= top for v in values)


def as_kind(values: dict[tuple[int, ...], Any], kind: Any) -> dict[tuple[int, ...], Any]:
    return {at: bool(v) for at, v in values.items()} if np.dtype(kind) == np.bool_ else values


def check_best(x: np.ndarray) -> Iterator[tuple[str, str]]:
    for words in PLANS.values():
        plan = pg.plan(x.shape, **words)
        for pool, f in ((pg.max_pool, max), (pg.min_pool, min)):
            want = as_kind(walk(x, plan, lambda v, _, f=f: f(v)), x.dtype)
            yield "max_pool, min_pool", outcome(partial(pool, x, **words), want, x.dtype, True, pool.__name__)
            y, taps = pool(x, **words, return_taps=True)
            assert not agree(y, want, x.dtype)
            assert np.array_equal(taps.operator(x), y)


def sum_type(dtype: Any) -> str:
    return "uint64" if np.dtype(dtype) == np.uint64 else "int64"


def check_sums(x: np.ndarray) -> Iterator[tuple[str, str]]:
    for words in PLANS.values():
        plan = pg.plan(x.shape, **words)
        sums = walk(x, plan, lambda v, _: sum(v))
        own = sum_type(x.dtype)
        fits = holds(own, sums.values())
        yield "sum_pool", outcome(partial(pg.sum_pool, x, **words), sums, own, fits, "sum_pool")
        yield "summing", outcome(partial(pg.summing(plan), x), sums, own, fits, "summing operator")
        for dtype in WHOLE:
            fits = holds(dtype, sums.values())
            yield (
                "sum_pool, integer dtype",
                outcome(partial(pg.sum_pool, x, **words, dtype=dtype), sums, dtype, fits, "sum_pool"),
            )
        for dtype in FLOATS:
            want = {at: nearest(Fraction(v), dtype) for at, v in sums.items()}
            yield (
                "sum_pool, float dtype",
                outcome(
                    partial(pg.sum_pool, x, **words, dtype=dtype_of(dtype)), want, dtype_of(dtype), True, "sum_pool"
                ),
            )


DIVISORS = (None, 3, 7, -5, 4.0, 0.1, -2.5, 2**31, 2**40 + 1, 10**25, 1e300, 1e-300, 1 / 3)
BY = ((None, True), *((divisor, False) for divisor in DIVISORS))


def check_means(x: np.ndarray, part: slice = slice(None)) -> Iterator[tuple[str, str]]:
    for name, (divisor, padded) in list(product(PLANS, BY))[part]:
        plan = pg.plan(x.shape, **PLANS[name])
        means = _means(x, plan, divisor, padded)
        given = {**PLANS[name], "divisor": divisor, "count_include_pad": padded}
        what = "avg_pool, divisor" if divisor else "avg_pool, count_include_pad" if padded else "avg_pool"
        for dtype in (None, *FLOATS):
            kind = "float64" if dtype is None else dtype
            want = {at: nearest(v, kind) for at, v in means.items()}
            extra = {} if dtype is None else {"dtype": dtype_of(dtype)}
            yield what, outcome(partial(pg.avg_pool, x, **given, **extra), want, dtype_of(kind), True, "avg_pool")
        want = {at: nearest(v, "float64") for at, v in means.items()}
        operator = pg.averaging(plan, count_include_pad=padded, divisor=divisor)
        yield "averaging", outcome(partial(operator, x), want, "float64", True, "averaging operator")
        yield from _rounded_means(x, given, means)


def _means(x: np.ndarray, plan: pg.Plan, divisor: Any, padded: bool) -> dict[tuple[int, ...], Fraction]:
    def by(values: list[int], at: tuple[int, ...]) -> Fraction:
        if divisor is not None:
            return Fraction(divisor)
        if not padded:
            return Fraction(len(values))
        total = 1
        for axis, i in zip(plan.by_dimension, at, strict=True):
            total *= 1 if axis is None else int(axis.span[i])
        return Fraction(total)

    return walk(x, plan, lambda values, at: Fraction(sum(values)) / by(values, at))


def _rounded_means(
    x: np.ndarray, given: dict[str, Any], means: dict[tuple[int, ...], Fraction]
) -> Iterator[tuple[str, str]]:
    for rounding, f in ROUNDINGS.items():
        want = {at: f(v) for at, v in means.items()}
        for dtype in WHOLE:
            call = partial(pg.avg_pool, x, **given, dtype=dtype, rounding=rounding)
            yield "avg_pool, integer dtype", outcome(call, want, dtype, holds(dtype, want.values()), "avg_pool")


def check_families(x: np.ndarray) -> Iterator[tuple[str, str]]:
    def whole(pool: Any, plan: pg.Plan, name: str, *args: Any, **words: Any) -> Iterator[tuple[str, str]]:
        op = pool.__name__
        if "max" in op or "min" in op:
            want = as_kind(walk(x, plan, lambda v, _: (max if "max" in op else min)(v)), x.dtype)
            yield name, outcome(partial(pool, x, *args, **words), want, x.dtype, True, op)
        elif "sum" in op:
            want = walk(x, plan, lambda v, _: sum(v))
            fits = holds(sum_type(x.dtype), want.values())
            yield name, outcome(partial(pool, x, *args, **words), want, sum_type(x.dtype), fits, op)
        else:
            exact = walk(x, plan, lambda v, _: Fraction(sum(v), len(v)))
            want = {at: nearest(v, "float64") for at, v in exact.items()}
            yield name, outcome(partial(pool, x, *args, **words), want, "float64", True, op)
            rounded = {at: round(v) for at, v in exact.items()}
            if x.dtype != np.bool_:
                yield name, outcome(partial(pool, x, *args, **words, dtype=x.dtype), rounded, x.dtype, True, op)

    everything = pg.Plan(x.shape, {d: pg.whole(n) for d, n in enumerate(x.shape)})
    for pool in (pg.global_max_pool, pg.global_min_pool, pg.global_sum_pool, pg.global_avg_pool):
        yield from whole(pool, everything, "global_sum_pool" if "sum" in pool.__name__ else "global pools but sums")
    shared = pg.Plan(x.shape, {d: pg.adaptive(n, m) for d, (n, m) in enumerate(zip(x.shape, (4, 3), strict=True))})
    for pool in (pg.adaptive_max_pool, pg.adaptive_avg_pool):
        yield from whole(pool, shared, "adaptive pools", (4, 3))
    for overlapping in (False, True):
        axes = pg.fractional_windows(x.shape, 1.6, seed=5, overlapping=overlapping)
        drawn = pg.Plan(x.shape, dict(enumerate(axes)))
        for pool in (pg.fractional_max_pool, pg.fractional_avg_pool):
            yield from whole(pool, drawn, "fractional pools", 1.6, seed=5, overlapping=overlapping)


def check_transposes(x: np.ndarray) -> Iterator[tuple[str, str]]:
    for words in PLANS.values():
        plan = pg.plan(x.shape, **words)
        g = np.resize(x, plan.dest)
        received: dict[tuple[int, ...], int] = dict.fromkeys(np.ndindex(plan.source), 0)
        shares: dict[tuple[int, ...], Fraction] = dict.fromkeys(received, Fraction(0))
        for at, cells in windows_of(plan).items():
            for cell in cells:
                received[cell] += int(g[at])
                shares[cell] += Fraction(int(g[at]), len(cells))
        own = sum_type(x.dtype)
        fits = holds(own, received.values())
        yield "summing.T", outcome(partial(pg.summing(plan).T, g), received, own, fits, "summing operator.T")
        got = pg.averaging(plan).T(g)
        assert got.dtype == np.float64
        size = max(1, *map(abs, limits(x.dtype)))
        for cell, value in shares.items():
            assert abs(Fraction(got[cell].item()) - value) <= Fraction(size) / 2**49, (cell, got[cell], float(value))
        yield "averaging.T", "float64"


def check_unpools(x: np.ndarray) -> Iterator[tuple[str, str]]:
    for words in PLANS.values():
        plan = pg.plan(x.shape, **words)
        for ties in ("first", "last", "all"):
            _, P = pg.max_operator(x, plan, ties=ties)
            g = np.resize(x, plan.dest)
            sent: dict[tuple[int, ...], int] = dict.fromkeys(np.ndindex(plan.source), 0)
            picked: dict[tuple[int, ...], int] = {}
            for at, cells in windows_of(plan).items():
                best = max(x[c] for c in cells)
                hits = [c for c in cells if x[c] == best]
                hits = hits[:1] if ties == "first" else hits[-1:] if ties == "last" else hits
                picked[at] = sum(int(x[c]) for c in hits)
                for c in hits:
                    sent[c] += int(g[at])
            name = "Sharing, its transpose" if ties == "all" else "Picking.T, unpool"
            fits = holds(x.dtype, sent.values())
            yield name, outcome(partial(P.T, g), as_kind(sent, x.dtype), x.dtype, fits, "max_operator.T")
            if ties == "all":
                yield (
                    name,
                    outcome(
                        partial(P, x),
                        as_kind(picked, x.dtype),
                        x.dtype,
                        holds(x.dtype, picked.values()),
                        "max_operator",
                    ),
                )
                continue
            taps = pg.Taps(P, tuple(range(x.ndim)))
            for where in (taps, taps.flat()):
                call = partial(pg.unpool, g, where, None if where is taps else x.shape)
                yield name, outcome(call, as_kind(sent, x.dtype), x.dtype, fits, "unpool")
            assert pg.unpool(g, taps, reduce="assign").dtype == x.dtype


CHECKS = (check_best, check_sums, check_means, check_families, check_transposes, check_unpools)


def results(dtype: str, check: Any) -> dict[str, set[str]]:
    """Return for each pool its outcomes: exact, refused, or both."""
    found: dict[str, set[str]] = {}
    for i, x in enumerate(samples(dtype)):
        part = (slice(i, None, 11),) if check is check_means else ()  # each plan and divisor with one of the samples
        for pool, what in check(x, *part):
            found.setdefault(pool, set()).add(what)
    return found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_integers_are_exact_or_refused(check, dtype):
    assert results(dtype, check)


# ---- errors, casts and lists


def refused(call: Callable[[], Any], *words: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        call()
    for word in words:
        assert word in str(error.value), error.value


def test_a_sum_that_leaves_64_bits_is_refused_with_its_window_and_its_value():
    x = np.array([1, 2, 2**62, 2**62])
    refused(lambda: pg.sum_pool(x, 2), "sum_pool: x: got a sum of 9223372036854775808 over window [1]", "within int64")
    refused(lambda: pg.summing(pg.plan((4,), 2))(x), "summing operator: v: got a sum of 9223372036854775808")
    assert pg.sum_pool(x, 2, dtype="float64").tolist() == [3.0, 2.0**63]
    assert pg.sum_pool(x, 2, dtype="uint64").tolist() == [3, 2**63]


def test_the_place_of_a_refused_sum_is_the_callers_where_axes_lie_otherwise_in_memory():
    x = np.zeros((4, 6), np.int64)
    x[3, 1] = x[2, 1] = 2**62
    refused(lambda: pg.sum_pool(np.asfortranarray(x), 2), "over window [1, 0]")
    refused(lambda: pg.sum_pool(x.T, 2), "over window [0, 1]")


def test_the_numbers_of_the_reports():
    assert pg.max_pool([2**40, 1], 2).tolist() == [2**40]
    assert pg.avg_pool(np.array([2**62] * 4), 4).tolist() == [2.0**62]
    assert pg.averaging(pg.plan((4,), 4))(np.full(4, 255, "u1")).tolist() == [255.0]
    assert pg.summing(pg.plan((4,), 4))(np.full(4, 255, "u1")).tolist() == [1020]
    assert pg.avg_pool(np.array([1.0, 2.0]), 2, dtype="i8", rounding="ceil").tolist() == [2]
    refused(lambda: pg.avg_pool(np.array([300, 300]), 2, dtype="u1"), "avg_pool: dtype: got uint8 for a mean of 300")
    assert pg.avg_pool(np.array([2**53 + 1] * 2), 2, dtype="i8").tolist() == [2**53 + 1]


@pytest.mark.parametrize("given", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_rounding_applies_to_means_of_floats(given, rounding):
    x = np.array([1.0, 2.0, -1.0, -2.0, 2.0, 3.0, 0.5, 0.5], dtype_of(given))
    want = [ROUNDINGS[rounding](Fraction(v)) for v in (1.5, -1.5, 2.5, 0.5)]
    for dtype in ("int8", "int64"):
        y = pg.avg_pool(x, 2, dtype=dtype, rounding=rounding)
        assert (y.dtype, y.tolist()) == (np.dtype(dtype), want)
    rows = {"axes": 0, "dtype": "int16", "rounding": rounding}
    assert pg.global_avg_pool(x[:2], **rows).tolist() == want[:1]
    assert pg.adaptive_avg_pool(x, 4, **rows).tolist() == want
    assert pg.fractional_avg_pool(x[:2], size=1, seed=1, **rows).tolist() == want[:1]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2.0**63, -(2.0**64), 1e300, -1.0, 128.0, 255.6, 2.0**31])
@pytest.mark.parametrize("dtype", WHOLE)
def test_a_float_that_an_integer_dtype_does_not_hold_is_refused(dtype, value):
    x = np.array([0.0, value])
    low, top = limits(dtype)
    if np.isfinite(value) and low <= round(value) <= top:
        assert pg.avg_pool(x, 1, dtype=dtype).tolist() == [0, round(value)]
    else:
        refused(lambda: pg.avg_pool(x, 1, dtype=dtype), f"avg_pool: dtype: got {dtype} for a mean of {value} at [1]")
        refused(lambda: pg.sum_pool(x, 1, dtype=dtype), f"sum_pool: dtype: got {dtype} for a sum of {value} at [1]")
        near = np.array([0.0, max(min(value, 1e30), -1e30)], np.float32)
        refused(lambda: pg.avg_pool(near, 1, dtype=dtype), "avg_pool: dtype")


def test_float32_next_to_the_end_of_a_range_does_not_slip_through():
    refused(lambda: pg.avg_pool(np.array([2.0**31], "f4"), 1, dtype="int32"), "avg_pool: dtype")
    assert pg.avg_pool(np.array([-(2.0**31)], "f4"), 1, dtype="int32").tolist() == [-(2**31)]
    refused(lambda: pg.avg_pool(np.array([2.0**63]), 1, dtype="int64"), "avg_pool: dtype")
    assert pg.avg_pool(np.array([2.0**63]), 1, dtype="uint64").tolist() == [2**63]


@pytest.mark.parametrize("into", WHOLE)
@pytest.mark.parametrize("dtype", WHOLE)
def test_out_of_another_integer_dtype_holds_the_result_or_is_refused(dtype, into):
    for value in (*limits(dtype), 0, 1):
        x, out = np.array([value, value], dtype), np.zeros(1, into)
        if not np.can_cast(dtype, into, "same_kind"):
            with pytest.raises(TypeError, match="max_pool: out: got dtype"):
                pg.max_pool(x, 2, out=out)
        elif holds(into, [value]):
            assert pg.max_pool(x, 2, out=out).tolist() == [value]
        else:
            refused(partial(pg.max_pool, x, 2, out=out), f"max_pool: out: got {into} for {value} at [0]")
            assert out.tolist() == [0]


def test_out_takes_no_floats_unless_they_were_rounded():
    x, out = np.array([1, 2], np.uint8), np.zeros(1, np.uint8)
    with pytest.raises(TypeError, match="avg_pool: out: got dtype uint8"):
        pg.avg_pool(x, 2, out=out)
    assert pg.avg_pool(x, 2, dtype=np.uint8, rounding="floor", out=out).tolist() == [1]
    refused(lambda: pg.sum_pool(np.array([200, 200]), 2, out=np.zeros(1, np.int8)), "sum_pool: out: got int8 for 400")
    far = np.zeros(1, np.float16)
    assert pg.sum_pool(np.array([2**62] * 2), 2, dtype="float64", out=far).tolist() == [np.inf]


def test_spans_beyond_64_bits_divide_exactly():
    big, x = 2**40, np.full((4, 4), 8)
    words = {"window": big, "stride": big, "padding": "same", "count_include_pad": True}
    assert pg.avg_pool(x, **words).tolist() == [[128 / 2**80]]
    assert pg.avg_pool(x.astype(float), **words).tolist() == [[128 / 2**80]]
    assert pg.avg_pool(x, **words, dtype="int8", rounding="ceil").tolist() == [[1]]


def test_lists_are_what_numpy_makes_of_them():
    for values in ([1, 2], [2**40, 1], [2**63, 1], [1.1, 2.2], [True, False], (1, 2), range(3)):
        want = np.asarray(values)
        y = pg.max_pool(values, 1)
        assert (y.dtype, y.tolist()) == (want.dtype, want.tolist())
        assert pg.averaging(pg.plan((len(values),), 1))(values).dtype == np.float64
    assert pg.grad(lambda x: pg.max_pool(x, 2).sum(), [1.5, 2.5]).dtype == np.float64
    assert pg.unpool([2**40], pg.max_pool([1, 2], 2, return_taps=True)[1]).tolist() == [0, 2**40]


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_divisors_are_the_exact_fractions_that_they_are(rounding):
    rng = np.random.default_rng(3)
    x = rng.integers(-(2**63), 2**63 - 1, 40, endpoint=True)
    for divisor in (0.1, -0.3, 7, np.float32(0.1), np.int8(-3), 2.0**70, 10**19):
        fraction = Fraction(divisor.item() if isinstance(divisor, np.generic) else divisor)
        means = [Fraction(int(a) + int(b)) / fraction for a, b in x.reshape(-1, 2)]
        assert pg.avg_pool(x, 2, divisor=divisor).tolist() == [nearest(m, "float64") for m in means]
        want = [ROUNDINGS[rounding](m) for m in means]
        if holds("int64", want):
            assert pg.avg_pool(x, 2, divisor=divisor, dtype="int64", rounding=rounding).tolist() == want


@pytest.mark.parametrize("divisor", [0, 0.0, np.nan, np.inf, 10**400, "2", 1j, None.__class__, [2]])
def test_a_divisor_that_is_no_finite_number_is_refused_by_name(divisor):
    for x in (np.ones(4), np.ones(4, int)):
        with pytest.raises(ValueError, match=r"avg_pool: divisor: got .*, wanted a (finite )?number other than 0"):
            pg.avg_pool(x, 2, divisor=divisor)
    with pytest.raises(ValueError, match="averaging: divisor: got"):
        pg.averaging(pg.plan((4,), 2), divisor=divisor)


def table() -> str:
    """Return the table of outcomes, per dtype and pool, over all samples."""
    rows: dict[str, dict[str, str]] = {}
    for dtype, check in product(DTYPES, CHECKS):
        for pool, found in results(dtype, check).items():
            rows.setdefault(pool, {})[dtype] = " or ".join(sorted(found))
    lines = ["| pool | " + " | ".join(DTYPES) + " |", "|---" * (len(DTYPES) + 1) + "|"]
    lines += [f"| {pool} | " + " | ".join(row.get(d, "") for d in DTYPES) + " |" for pool, row in rows.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
