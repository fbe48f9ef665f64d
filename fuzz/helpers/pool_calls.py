"""Draw random calls of the pools: every pool, word, dtype and memory layout, and arguments that must be refused."""

from __future__ import annotations

from itertools import pairwise
from math import inf, nan, prod
from typing import Any

from differential import Call, Data, Rng, pick
from memory_forms import MEMORY

import poolgrad as pg

INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
FLOATS = ("float16", "bfloat16", "float32", "float64")
DTYPES = (*INTEGERS, *FLOATS, "bool")
EXTREMES = ("max_pool", "min_pool")
MEANS = ("avg_pool", "sum_pool")
SLIDING = (*EXTREMES, *MEANS, "lp_pool")
ADAPTIVE = ("adaptive_max_pool", "adaptive_avg_pool")
GLOBAL = ("global_max_pool", "global_min_pool", "global_avg_pool", "global_sum_pool")
FRACTIONAL = ("fractional_max_pool", "fractional_avg_pool")
POOLS = (*SLIDING, *ADAPTIVE, *GLOBAL, *FRACTIONAL)
OPERATORS = ("max_operator", "min_operator", "averaging", "summing", "picking")
DERIVATIVES = ("vjp", "jvp", "grad", "hessian")
POSITIONS = ("taps", "unpool", "unpool_at")
LIBRARIES = ("torch", "tensorflow", "onnx")
GEOMETRY = ("window", "stride", "padding", "dilation", "ceil_mode", "axes", "layout")
TIES = ("first", "last", "all", "split")
NAN = ("propagate", "ignore", "tf")
ROUNDINGS = ("nearest", "floor", "ceil", "toward_zero")


def chance(rng: Rng, p: float) -> bool:
    """Return True with this probability."""
    return bool(rng.random() < p)


def number(rng: Rng, low: int, high: int) -> int:
    """Return an integer from low to high."""
    return int(rng.integers(low, high + 1))


# ---- arrays


def shape_of(rng: Rng, least: int = 1) -> tuple[int, ...]:
    """Return a shape: mostly small, at times long, empty or without axes."""
    if least <= 1 and chance(rng, 0.06):
        return pick(rng, [(400,), (150, 3), (2, 130), (19, 21), (2, 20, 20)])
    rank = max(pick(rng, (1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6)), least)
    sizes = [number(rng, 1, (12, 9, 6, 5, 3, 3)[rank - 1]) for _ in range(rank)]
    if chance(rng, 0.04):
        sizes[number(rng, 0, rank - 1)] = 0
    return () if least <= 1 and chance(rng, 0.01) else tuple(sizes)


def data_of(rng: Rng, dtypes: tuple[str, ...] = DTYPES, least: int = 1, calm: bool = False) -> Data:
    """Return an array; `calm` leaves out NaN, infinite and random bits."""
    dtype = pick(rng, dtypes)
    kinds = ("ties", "ties", "plain", "wild", "extreme", "distinct", "bits")
    if dtype in FLOATS:
        kinds = ("ties", "ties", "plain", "distinct") if calm else ("ties", "plain", "wild", "nan", "extreme", "bits")
    memory = "plain" if chance(rng, 0.5) else pick(rng, tuple(MEMORY))
    return Data(dtype, shape_of(rng, least), pick(rng, kinds), number(rng, 0, 999), memory)


# ---- windows


def pairs_of(rng: Rng, n: int) -> list[tuple[int, int]]:
    """Return boundaries over n cells: cut at random, one cell each, repeated, overlapping, late; at times with an empty one."""
    m = number(rng, 1, min(n, 5) + 1)
    starts = sorted(number(rng, 0, max(n - 1, 0)) for _ in range(m))
    kind = pick(rng, ("cells", "repeated", "overlapping", "late", "cut", "any", "all"))
    if kind == "all":  # as many windows of one cell as there are cells, which need not be in their places
        return [(a, a + 1) for a in sorted(number(rng, 0, max(n - 1, 0)) for _ in range(n))] or [(0, 1)]
    if kind == "cells":
        return [(a, a + 1) for a in starts]
    if kind == "repeated":
        return [(starts[0], min(starts[0] + number(rng, 1, 3), n))] * m
    if kind == "late":
        starts = sorted(number(rng, n // 2, max(n - 1, 0)) for _ in range(m))
    if kind == "cut":
        edges = sorted({0, n, *starts})
        return list(pairwise(edges)) or [(0, 1)]
    stops = sorted(min(a + number(rng, 1, 4), n) for a in starts)
    pairs = [(a, max(b, a + 1)) for a, b in zip(starts, stops, strict=True)]
    if kind == "any" and chance(rng, 0.3):
        i = number(rng, 0, m - 1)
        pairs[i] = (pairs[i][0], pairs[i][0])
    return pairs


def axis_of(rng: Rng, n: int) -> Any:
    """Return an Axis whose windows have cells that lie apart."""
    step, stride, k = number(rng, 1, 3), number(rng, 1, 3), number(rng, 1, 3)
    starts = list(range(number(rng, 0, max(n - 1, 0)), max(n, 1), stride))
    return pg.Axis(max(n, 1), starts, [min(a + step * (k - 1) + 1, max(n, 1)) for a in starts], step=step)


def axes_of(rng: Rng, rank: int) -> dict[str, Any]:
    """Return `axes`, `layout`, or nothing, which pools all axes."""
    count = number(rng, 1, rank) if rank else 0
    chosen = sorted(rng.permutation(rank)[:count].tolist())
    way = pick(rng, ("all", "axes", "axes", "layout"))
    if way == "axes" and rank:
        signed = tuple(d - rank if chance(rng, 0.3) else d for d in chosen)
        return {"axes": signed[0] if len(signed) == 1 and chance(rng, 0.5) else signed}
    free = [d for d in range(rank) if d not in chosen]
    if way == "layout" and len(free) <= 2 and rank:
        letters = dict(zip(free, "NC", strict=False))
        return {
            "layout": "".join(letters.get(d, "HWDXYZ"[chosen.index(d)] if d in chosen else "") for d in range(rank))
        }
    return {}


def pooled(shape: tuple[int, ...], words: dict[str, Any]) -> list[int]:
    """Return the lengths of the pooled axes."""
    if "layout" in words:
        return [n for n, letter in zip(shape, words["layout"], strict=True) if letter not in "NC"]
    if "axes" in words:
        axes = words["axes"]
        return [shape[d] for d in (axes if isinstance(axes, tuple) else (axes,))]
    return list(shape)


def one_or_each(rng: Rng, count: int, draw: Any) -> Any:
    """Return one value, or one per axis."""
    return draw() if chance(rng, 0.6) or not count else tuple(draw() for _ in range(count))


def windows_of(rng: Rng, shape: tuple[int, ...], words: dict[str, Any]) -> dict[str, Any]:
    """Return window, stride, padding, dilation and ceil_mode for these axes."""
    lengths = pooled(shape, words)
    count, longest = len(lengths), max(lengths, default=1)
    most = longest if longest > 12 and chance(rng, 0.5) else 4
    if count and chance(rng, 0.25):
        window = [
            pairs_of(rng, n) if chance(rng, 0.6) else axis_of(rng, n) if chance(rng, 0.5) else number(rng, 1, 3)
            for n in lengths
        ]
        return {"window": window}
    found: dict[str, Any] = {"window": one_or_each(rng, count, lambda: number(rng, 1, most))}
    if longest > 12 and "axes" not in words:
        found["stride"] = one_or_each(rng, count, lambda: number(rng, 1, 9))
    elif chance(rng, 0.6):
        found["stride"] = one_or_each(rng, count, lambda: number(rng, 1, 4))
    if chance(rng, 0.4):
        pads = (
            lambda: pick(rng, ("valid", "same", "same_lower")),
            lambda: one_or_each(rng, count, lambda: number(rng, 0, 2)),
            lambda: [(number(rng, 0, 2), number(rng, 0, 2)) for _ in range(count)],
        )
        found["padding"] = pick(rng, pads)()
    if chance(rng, 0.3):
        found["dilation"] = one_or_each(rng, count, lambda: number(rng, 1, 3))
    if chance(rng, 0.3):
        found["ceil_mode"] = True
    return found


# ---- calls


def choices(rng: Rng, ties: bool = True) -> dict[str, Any]:
    """Return the words of a maximum."""
    found: dict[str, Any] = {}
    if ties and chance(rng, 0.5):
        found["ties"] = pick(rng, TIES)
    if chance(rng, 0.5):
        found["nan"] = pick(rng, NAN)
    return found


def division(rng: Rng, name: str) -> dict[str, Any]:
    """Return the words of a sum or mean."""
    found: dict[str, Any] = {}
    if chance(rng, 0.3):
        found["nan"] = pick(rng, NAN)
    if chance(rng, 0.4):
        found["dtype"] = pick(rng, (*INTEGERS, *FLOATS))
    if "sum" not in name and chance(rng, 0.4):
        found["rounding"] = pick(rng, ROUNDINGS)
    if name == "avg_pool" and chance(rng, 0.3):
        found["divisor"] = pick(rng, (1, 3, 7, 2.5, -4, 0.1, 1000))
    if name == "avg_pool" and chance(rng, 0.3):
        found["count_include_pad"] = True
    return found


def words_of(rng: Rng, name: str, shape: tuple[int, ...]) -> dict[str, Any]:
    """Return all words of a pool for an array of that shape."""
    words = axes_of(rng, len(shape))
    count = len(pooled(shape, words))
    if name in SLIDING:
        words |= windows_of(rng, shape, words)
    elif name in ADAPTIVE:
        words["size"] = one_or_each(
            rng, count, lambda: None if chance(rng, 0.15) else number(rng, 0, 6 if count < 4 else 3)
        )
    elif name in FRACTIONAL:
        if chance(rng, 0.5):
            words["ratio"] = one_or_each(rng, count, lambda: round(float(rng.uniform(1, 3)), 3))
        else:
            words["size"] = one_or_each(
                rng, count, lambda: number(rng, 1, max(min(pooled(shape, words), default=1), 1))
            )
        words["seed"] = number(rng, 0, 99) if chance(rng, 0.5) else (number(rng, 0, 99), number(rng, 1, 99))
        words |= {flag: True for flag in ("pseudo_random", "overlapping") if chance(rng, 0.4)}
    if name == "lp_pool":
        words["p"] = pick(rng, (1, 2, 3, 2.5))
    elif "avg" in name or "sum" in name:
        words |= division(rng, name)
    else:
        words |= choices(rng)
    if name in GLOBAL and chance(rng, 0.4):
        words["keepdims"] = False
    return words


def pool_call(rng: Rng) -> Call:
    """Return a call of a pool, at times by the defaults of another library, of a list, into `out`."""
    name = pick(rng, (*SLIDING, *SLIDING, *POOLS))
    lib = pick(rng, LIBRARIES) if name in SLIDING and chance(rng, 0.15) else None
    calm = name == "lp_pool"
    x = data_of(rng, ("float32", "float64", "float16", "bfloat16") if calm else DTYPES, 3 if lib else 1, calm)
    words = words_of(rng, name, x.shape)
    if lib:
        rest = x.shape[1:-1] if lib == "tensorflow" else x.shape[2:]
        words = {n: v for n, v in words.items() if n not in GEOMETRY}
        words |= {**windows_of(rng, rest, {}), "library": lib}
    if chance(rng, 0.12):
        words["form"] = pick(rng, ("list", "list", "list", "masked"))
    elif chance(rng, 0.1) and name not in GLOBAL:
        words["out"] = True
    return Call(name, x=x, **words)


def operator_call(rng: Rng) -> Call:
    """Return a call of an operator: applied, transposed, as a matrix."""
    name = pick(rng, OPERATORS)
    x = data_of(rng, tuple(d for d in DTYPES if d != "bool"), calm=True)
    axes = axes_of(rng, len(x.shape))
    words = {**axes, **windows_of(rng, x.shape, axes)}
    if name in ("max_operator", "min_operator"):
        words |= choices(rng)
    if name == "averaging":
        words |= {k: v for k, v in division(rng, "avg_pool").items() if k in ("divisor", "count_include_pad")}
    return Call(name, x=x, **words)


def derivative_call(rng: Rng) -> Call:
    """Return a derivative of a pool."""
    name = pick(rng, tuple(p for p in POOLS if p not in FRACTIONAL))
    dtypes = ("float32", "float64") if name == "lp_pool" else FLOATS
    x = data_of(rng, dtypes, calm=True)
    words = {k: v for k, v in words_of(rng, name, x.shape).items() if k not in ("dtype", "rounding")}
    return Call(pick(rng, DERIVATIVES), pool=name, x=x, **words)


def position_call(rng: Rng) -> Call:
    """Return a call about the cells that were chosen."""
    name = pick(rng, POSITIONS)
    x = data_of(rng)
    if name == "unpool_at":
        items = pick(rng, (1, 1, 2, 3))
        size = items * number(rng, 1, 6)
        found = Call(name, x=Data(x.dtype, (items * number(rng, 0, 4),), x.kind, x.seed, x.memory), shape=(size,))
        found = found.but(items=items) if items > 1 else found
        return found.but(reduce="assign") if chance(rng, 0.4) else found
    axes = axes_of(rng, len(x.shape))
    words = {**axes, **windows_of(rng, x.shape, axes), **choices(rng, ties=False)}
    if chance(rng, 0.4):
        words["ties"] = "last"
    if name == "unpool" and chance(rng, 0.4):
        words["reduce"] = "assign"
    return Call(name, x=x, least=chance(rng, 0.4), **words)


FLAG = ("False", None, 1.5)
COUNT = (0, -1, 2.5, True, "2", (1,) * 9, 2**70)
WRONG: dict[str, tuple[Any, ...]] = {
    "window": (*COUNT, None, {}, [[(0, 0)]], [[(1, 0)]], [[(0, 10**6)]], [[(0.0, 1.0)]], [[(0, 1, 2)]], [["a"]]),
    "stride": (*COUNT, {}),
    "padding": (-1, "full", None, 1.5, True, (1,) * 9, [(1,)] * 9, 10**4),
    "dilation": COUNT,
    "axes": (99, -99, (0, 0), "a", 1.0, (), True),
    "layout": ("", "NHWCDXYZ", 5, "N1"),
    "ceil_mode": FLAG,
    "ties": ("any", 3, None),
    "nan": ("any", 3, None),
    "return_taps": FLAG,
    "count_include_pad": FLAG,
    "divisor": (0, "2", nan, inf, 10**400, 1j, True),
    "dtype": ("nonsense", "U3", "complex64", 3.5),
    "rounding": ("up", None, 3),
    "out": (3, "x", [1.0]),
    "p": (0, -1, "2", inf, nan, None, 10**400),
    "size": (-1, 1.5, "3", True, (1,) * 9, 2**70),
    "ratio": (0.5, nan, inf, "2", (1.5,) * 9, -1, 10**400, True),
    "seed": ("a", (1, 2, 3), 1.5, 2**80),
    "pseudo_random": FLAG,
    "overlapping": FLAG,
    "return_windows": FLAG,
    "keepdims": FLAG,
    "x": (None, "abc", {}, [[1.0], [2.0, 3.0]], [1j], ["a"], 1j),
}


def wrong_call(rng: Rng) -> Call:
    """Return a call with one argument that must be refused by name."""
    name = pick(rng, POOLS)
    x = Data(pick(rng, FLOATS), tuple(number(rng, 2, 5) for _ in range(number(rng, 1, 3))))
    takes = TAKES[name]
    words = {k: v for k, v in {"window": 2, "size": 1}.items() if k in takes}
    argument = pick(rng, takes)
    if argument == "ratio":
        words.pop("size")
    return Call(name, x=x, **words, wrong=(argument, pick(rng, WRONG[argument])))


_AXES = ("axes", "layout", "x")
_SLIDE = ("window", "stride", "padding", "dilation", "ceil_mode", "out", *_AXES)
_DRAWN = ("ratio", "size", "seed", "pseudo_random", "overlapping", "return_windows", "out", *_AXES)
_MEAN = ("nan", "dtype", "rounding")
TAKES: dict[str, tuple[str, ...]] = {
    "max_pool": (*_SLIDE, "ties", "nan", "return_taps"),
    "min_pool": (*_SLIDE, "ties", "nan", "return_taps"),
    "avg_pool": (*_SLIDE, *_MEAN, "count_include_pad", "divisor"),
    "sum_pool": (*_SLIDE, "nan", "dtype"),
    "lp_pool": (*_SLIDE, "p"),
    "adaptive_max_pool": ("size", "ties", "nan", "return_taps", "out", *_AXES),
    "adaptive_avg_pool": ("size", "out", *_MEAN, *_AXES),
    "global_max_pool": ("ties", "nan", "keepdims", *_AXES),
    "global_min_pool": ("ties", "nan", "keepdims", *_AXES),
    "global_avg_pool": (*_MEAN, "keepdims", *_AXES),
    "global_sum_pool": ("nan", "dtype", "keepdims", *_AXES),
    "fractional_max_pool": (*_DRAWN, "ties", "nan", "return_taps"),
    "fractional_avg_pool": (*_DRAWN, *_MEAN),
}
KINDS = (*(pool_call,) * 11, *(operator_call,) * 2, *(derivative_call,) * 3, *(position_call,) * 2, *(wrong_call,) * 2)


def draw(rng: Rng) -> Call:
    """Return a random call that is small enough for exact numbers."""
    while True:
        call = pick(rng, KINDS)(rng)
        if prod(call.args["x"].shape) <= 1000:
            return call
