"""Random calls of the NumPy pools against exact numbers, and against scipy.ndimage, scikit-image and xarray.

    python fuzz/pools.py --seconds 60 --jobs 2
    python fuzz/pools.py --calls 20000 --seconds 3600
    python fuzz/pools.py --call "Call('max_pool', x=Data('float32', (3,)), window=2)"

`pool_calls` draws the calls, `pool_oracle` answers them by definition, `pool_peers` asks the other libraries.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from math import inf, nan, prod
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "fuzz" / "helpers")]

import differential
import numpy as np
import pool_calls as calls
import pool_oracle as oracle
import pool_peers as peers
import support
from differential import Call, Documented
from pool_oracle import FORMATS, Geometry, NotACase, Number, Refused, Rows

import poolgrad as pg

REASONS = {  # each stands in docs/pools.md
    "overflow": "a partial sum that leaves the range of the dtype makes the result infinite or NaN",
}
OWN = ("x", "form", "out", "library", "wrong", "pool", "least", "reduce")  # not handed to the pool
RAISES = (ValueError, TypeError, MemoryError)


# ---- what the call does


class Raised:
    """An exception that a call raised."""

    def __init__(self, error: Exception) -> None:
        self.error, self.text = error, f"{type(error).__name__}: {error}"

    def refuses(self, op: str, arguments: tuple[str, ...]) -> bool:
        """Tell if the error names the op, one of the arguments, what came and what was wanted."""
        names = "|".join(map(re.escape, arguments))
        form = rf"{re.escape(op)}( operator)?(\.T)*: ({names}): got .+, wanted .+"
        return isinstance(self.error, RAISES) and re.match(form, str(self.error), re.DOTALL) is not None


def attempt(run: Any) -> Any:
    """Return the result, or what was raised."""
    try:
        with np.errstate(all="ignore"):
            return run()
    except Exception as error:
        return Raised(error)


def handed_over(call: Call) -> tuple[Any, np.ndarray]:
    """Return x as the pool gets it, and the array that this means."""
    array = call.args["x"].array()
    form = call.args.get("form", "array")
    if form == "list":
        made = array.tolist()
        return made, np.asarray(made)
    if form == "masked":
        if not array.size:
            raise NotACase
        mask = np.zeros(array.shape, bool)
        mask.flat[0] = True
        return np.ma.masked_array(array, mask), array
    return array, array


def words_of(call: Call) -> dict[str, Any]:
    """Return the words that go to the pool."""
    return {n: v for n, v in call.args.items() if n not in OWN}


def understood(call: Call, rank: int) -> dict[str, Any]:
    """Return the words with the defaults of the library that the call names."""
    words, library = words_of(call), call.args.get("library")
    if library is None:
        return words
    words["axes"] = tuple(range(1, rank - 1) if library == "tensorflow" else range(2, rank))
    if library == "onnx":
        words.setdefault("stride", 1)
    if library == "torch" and call.name == "avg_pool":
        words.setdefault("count_include_pad", True)
    if library == "tensorflow" and call.name == "max_pool":
        words.setdefault("nan", "tf")
    return words


# ---- what it should do


def geometry_of(name: str, shape: tuple[int, ...], words: dict[str, Any]) -> Geometry:
    """Return the windows of a pool by definition."""
    if not shape:
        raise Refused("x", "window", "size", "axes", "layout", "ratio")
    if name in calls.ADAPTIVE:
        return oracle.adaptive(shape, words)
    if name in calls.GLOBAL:
        return oracle.everything(shape, words)
    return oracle.sliding(shape, words)


class Wanted:
    """A result: its shape, dtype, numbers, and the types to which they are rounded one after the other."""

    def __init__(self, shape: tuple[int, ...], name: str, numbers: list[Number], steps: list[str]) -> None:
        self.shape, self.name, self.numbers, self.steps = shape, name, numbers, steps

    def unlike(self, got: Any) -> str:
        """Tell where a result differs."""
        if type(got) is not np.ndarray:
            return f"a {type(got).__name__}, wanted an array"
        if got.shape != self.shape or oracle.kind_of(got) != self.name or not got.dtype.isnative:
            return f"{got.dtype.str} {got.dtype.name}{list(got.shape)}, wanted {self.name}{list(self.shape)}"
        text = ""
        for i, (cell, number) in enumerate(zip(oracle.exact(got), self.numbers, strict=True)):
            if number.agrees(cell, self.steps):
                continue
            if not number.overflowed(cell):
                at = [int(k) for k in np.unravel_index(i, self.shape)]
                return f"at {at} got {cell!r}, wanted {_shown(number)}"
            text = Documented(REASONS["overflow"])
        return text


def _shown(number: Number) -> str:
    value = number.value
    if isinstance(value, float) or value.denominator == 1:
        text = str(value)
    else:
        text = f"{float(value)!r}" if abs(value) < 10**300 else "a large number"
    return text + (f" within {float(number.slack):.3g}" if number.slack else "")


def as_number(value: Any) -> Number:
    """Return an exact cell."""
    return Number(value) if isinstance(value, float) and not abs(value) < inf else Number(Fraction(value))


def answer(name: str, array: np.ndarray, geometry: Geometry, words: dict[str, Any]) -> Wanted:
    """Return the result of a pool over these windows."""
    cells, kind = oracle.exact(array), oracle.kind_of(array)
    read = [([cells[j] for j in at], span) for at, span in geometry.windows()]
    shape = geometry.dest
    if words.get("keepdims") is False:
        shape = tuple(n for d, n in enumerate(shape) if d not in geometry.axes)
    if "max" in name or "min" in name:
        rule = words.get("nan", "propagate")
        return Wanted(shape, kind, [as_number(oracle.best_value(v, "min" in name, rule, kind)) for v, _ in read], [])
    if name == "lp_pool":
        if kind not in FORMATS:
            raise Refused("x")
        if not all(abs(v) < inf for v in cells):
            raise NotACase
        return Wanted(shape, kind, [oracle.power_mean(v, words.get("p", 2), kind) for v, _ in read], [kind])
    average = "avg" in name
    numbers, target, steps = [], kind, [kind]
    for values, span in read:
        number, target, steps = oracle.finished(oracle.mean(values, span, words, kind, average), kind, words, average)
        numbers.append(number)
    if not read:
        _, target, steps = oracle.finished(Number(Fraction(0)), kind, words, average)
    return Wanted(shape, target, numbers, steps)


def refusal(got: Any, op: str, refused: Refused) -> str:
    """Tell if a call that must be refused was not, or not by name."""
    if isinstance(got, Raised):
        return (
            "" if got.refuses(op, refused.arguments) else f"{got.text}\n    wanted {op}: {refused.arguments}: got ..."
        )
    return f"got {_brief(got)}, wanted a refusal that names {' or '.join(refused.arguments)}"


def _brief(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) < 200 else text[:200] + "..."


# ---- pools


def compare_pool(call: Call, counts: Counter[str]) -> str:
    """Compare a pool with its definition and with the peers that have its windows."""
    x, array = handed_over(call)
    if array.dtype.kind == "O":
        raise NotACase
    home = pg.like(call.args["library"]) if "library" in call.args else pg
    words, pool = words_of(call), getattr(home, call.name)
    if call.name in calls.FRACTIONAL:
        return compare_fractional(call, x, array, pool)
    try:
        if call.args.get("form") == "masked":
            raise Refused("x", *calls.GEOMETRY, "size")  # whichever is looked at first
        meant = understood(call, array.ndim)
        geometry = geometry_of(call.name, array.shape, meant)
        wanted = answer(call.name, array, geometry, meant)
    except Refused as refused:
        counts["refused"] += 1
        return refusal(attempt(lambda: pool(x, **words)), call.name, refused)
    if "out" in call.args:
        out = words["out"] = np.full(wanted.shape, 7).astype(oracle.dtype_of(wanted.name))
    got = attempt(lambda: pool(x, **words))
    if isinstance(got, Raised):
        return got.text
    if isinstance(x, np.ndarray) and x.tobytes() != call.args["x"].array().tobytes():
        return "x was written"
    if "out" in call.args and got is not out:
        return "another array than out"
    return wanted.unlike(got) or ask_peers(call.name, array, geometry, meant, got, counts)


def ask_peers(
    name: str, array: np.ndarray, geometry: Geometry, words: dict[str, Any], got: np.ndarray, counts: Counter[str]
) -> str:
    """Compare with the libraries that have these windows."""
    if words.get("keepdims") is False:
        return ""
    with np.errstate(invalid="ignore"):  # signalling NaN
        scale = float(np.nanmax(np.abs(array.astype(np.float64)), initial=0))
    if not scale < 1e30:
        return ""
    scale *= max((prod(len(geometry.cells[d][0]) for d in geometry.axes if geometry.cells[d]), 1))
    for peer, want in peers.answers(name, array, geometry, words):
        counts[peer] += 1
        if text := peers.unlike(name.split("_")[-2], got, want, scale):
            return f"{peer}: {text}"
    return ""


def drawn(shape: tuple[int, ...], words: dict[str, Any], windows: Any) -> Geometry:
    """Return the windows that a fractional pool drew, after checks of what fractional windows are."""
    several = next((len(words[n]) for n in ("ratio", "size") if isinstance(words.get(n), tuple)), None)
    axes = oracle.pooled_axes(len(shape), words.get("axes"), words.get("layout"), several)
    overlap = bool(words.get("overlapping"))
    cells = {}
    sizes = oracle.each(words.get("ratio", words.get("size")), len(axes), "size")
    for d, size, axis in zip(axes, sizes, windows, strict=True):
        n, pairs = shape[d], axis.pairs()
        m = int(n / size) if "ratio" in words else size
        edges = [a for a, _ in pairs] + [n]
        lengths = {b - a for a, b in pairwise(edges)}
        if len(pairs) != m or edges[0] != 0 or not lengths <= {n // m, n // m + 1}:
            raise ValueError(f"windows {pairs} over {n} cells, wanted {m} of {n // m} or {n // m + 1} cells")
        if any(stop != min(edges[i + 1] + overlap, n) for i, (_, stop) in enumerate(pairs)):
            raise ValueError(f"windows {pairs} end elsewhere than the next begins")
        cells[d] = [list(range(a, b)) for a, b in pairs]
    return oracle.plain(shape, axes, cells)


def compare_fractional(call: Call, x: Any, array: np.ndarray, pool: Any) -> str:
    """Check the windows that were drawn, then the pool over them."""
    words = words_of(call)
    got = attempt(lambda: pool(x, **words, return_windows=True))
    try:
        if not array.ndim or call.args.get("form") == "masked":
            raise Refused("x", "axes", "layout", "ratio", "size")
        several = next((len(words[n]) for n in ("ratio", "size") if isinstance(words.get(n), tuple)), None)
        axes = oracle.pooled_axes(array.ndim, words.get("axes"), words.get("layout"), several)
        if any(not array.shape[d] for d in axes):
            raise Refused("x")
        for d, size in zip(axes, oracle.each(words.get("ratio", words.get("size")), len(axes), "size"), strict=True):
            if not 1 <= (int(array.shape[d] / size) if "ratio" in words else size) <= array.shape[d]:
                raise Refused("ratio" if "ratio" in words else "size")
        if isinstance(got, Raised):
            windows: Any = None
        else:
            windows = got[-1]
            geometry = drawn(array.shape, words, windows)
            wanted = answer(call.name, array, geometry, words)
    except Refused as refused:
        return refusal(got, call.name, refused)
    except ValueError as error:
        return str(error)
    if isinstance(got, Raised):
        return _may_refuse(call, array, got)
    if text := wanted.unlike(got[0]):
        return text
    again = attempt(lambda: pool(x, **words))
    return "" if isinstance(again, np.ndarray) and wanted.unlike(again) == "" else f"another result again: {again!r}"


def _may_refuse(call: Call, array: np.ndarray, got: Raised) -> str:
    """Accept the refusal of numbers that `dtype` or 64 bits cannot hold."""
    fits = oracle.kind_of(array) in FORMATS and call.args.get("dtype", "float64") in FORMATS
    return "" if not fits and got.refuses(call.name, ("x", "dtype")) else got.text


# ---- linear maps


def rows_of(name: str, array: np.ndarray, geometry: Geometry, words: dict[str, Any]) -> Rows:
    """Return the matrix of a pool at x."""
    cells, kind = oracle.exact(array), oracle.kind_of(array)
    rows: Rows = []
    least, ties, rule = "min" in name, words.get("ties", "first"), words.get("nan", "propagate")
    for at, span in geometry.windows():
        values = [cells[j] for j in at]
        if "max" in name or "min" in name:
            best = oracle.best_value(values, least, rule, kind)
            rows.append([(at[t], weight) for t, weight in oracle.takers(values, best, least, ties, rule)])
        elif "sum" in name:
            rows.append([(j, Fraction(1)) for j in at])
        else:
            by = span if words.get("count_include_pad") else len(at)
            by = by if words.get("divisor") is None else words["divisor"]
            rows.append([(j, 1 / Fraction(by)) for j in at])
    return rows


def drawn_like(array: np.ndarray, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Return small numbers of the same dtype: integers or, for every third seed, fractions."""
    kind = oracle.kind_of(array)
    with np.errstate(all="ignore"):
        return support.draw(np.random.default_rng(seed), kind, shape, "ties" if seed % 3 else "plain")


def mapped(rows: Rows, shape: tuple[int, ...], v: np.ndarray, widened: str | None = None) -> Wanted:
    """Return the map of an array; integers that do not fit their dtype, or the `widened` one, are refused."""
    kind = oracle.kind_of(v)
    shares = widened == "shares"  # float64, each quotient and each sum rounded
    numbers = oracle.applied(rows, oracle.exact(v), "float64" if shares else kind)
    widened = "float64" if shares else widened
    if kind in FORMATS:
        return Wanted(shape, kind, numbers, [kind])
    target = widened or kind
    if target in FORMATS:
        return Wanted(shape, target, numbers, [target])
    info = np.iinfo(target)
    if any(not info.min <= n.value <= info.max for n in numbers):
        raise Refused("v", "x", "dtype", "g", "y")
    return Wanted(shape, target, numbers, [])


def widened(name: str, kind: str) -> str | None:
    """Return the dtype of an operator on integers: means are float64, sums have 64 bits, what is picked stays."""
    if name in ("max_operator", "min_operator", "picking"):
        return None
    return "float64" if name == "averaging" else ("uint64" if kind == "uint64" else "int64")


def applied(run: Any, op: str, what: str, rows: Rows, shape: tuple[int, ...], v: np.ndarray, wide: str | None) -> str:
    """Compare an operator with its matrix on an array."""
    got = attempt(lambda: run(v))
    try:
        wanted = mapped(rows, shape, v, wide)
    except Refused as refused:
        text = refusal(got, op, refused)
    else:
        text = got.text if isinstance(got, Raised) else wanted.unlike(got)
    return f"{what}: {text}" if text else ""


def compare_operator(call: Call, counts: Counter[str]) -> str:
    """Compare an operator, its transpose and its matrix with those of the definition."""
    array, name = call.args["x"].array(), call.name
    words = words_of(call)
    rules = {n: words.pop(n) for n in ("ties", "nan", "divisor", "count_include_pad") if n in words}
    plan = attempt(lambda: pg.plan(array.shape, **words))
    try:
        geometry = geometry_of("max_pool", array.shape, words)
    except Refused as refused:
        return refusal(plan, "plan", Refused(*refused.arguments, "shape"))
    if isinstance(plan, Raised):
        return plan.text
    if not np.isfinite(array.astype(np.float64)).all():
        raise NotACase
    if name == "picking":
        rng = np.random.default_rng(prod(array.shape))
        picked = [int(rng.integers(len(at))) for at, _ in geometry.windows()]
        taps = np.array(picked, int).reshape(geometry.dest)
        operator = attempt(lambda: pg.picking(plan, taps))
        rows: Rows = [[(at[t], Fraction(1))] for t, (at, _) in zip(picked, geometry.windows(), strict=True)]
    elif name in ("max_operator", "min_operator"):
        made = attempt(lambda: getattr(pg, name)(array, plan, **rules))
        if isinstance(made, Raised):
            return made.text
        if text := answer(name, array, geometry, rules).unlike(made[0]):
            return text
        operator, rows = made[1], rows_of(name, array, geometry, rules)
    else:
        operator = attempt(lambda: getattr(pg, name)(plan, **rules))
        rows = rows_of({"averaging": "avg", "summing": "sum"}[name], array, geometry, rules)
    if isinstance(operator, Raised):
        return operator.text
    return compare_linear(call, operator, rows, array, geometry, rules)


def compare_linear(call: Call, P: Any, rows: Rows, array: np.ndarray, geometry: Geometry, rules: dict[str, Any]) -> str:
    """Compare P(v), P.T(g) and P.matrix()."""
    name, kind = call.name, oracle.kind_of(array)
    wide, size = widened(name, kind), prod(array.shape)
    shared = kind not in FORMATS and rules.get("ties") in ("all", "split")
    if not shared:
        g = drawn_like(array, geometry.dest, size)
        back = oracle.transposed(rows, size)
        text = applied(P, name, "P(v)", rows, geometry.dest, array, wide)
        wide = "shares" if name == "averaging" and kind not in FORMATS else wide
        text = text or applied(P.T, name, "P.T(g)", back, array.shape, g, wide)
        if text:
            return text
    if size > 100:
        return ""
    matrix = attempt(P.matrix)
    if isinstance(matrix, Raised):
        return f"matrix: {matrix.text}"
    full = [Number(Fraction(0))] * (len(rows) * size)
    for i, row in enumerate(rows):
        for j, weight in row:
            full[i * size + j] = Number(weight, abs(weight) * Fraction(1, 2**50))
    text = Wanted((len(rows), size), "float64", full, ["float64"]).unlike(matrix)
    return f"matrix: {text}" if text else ""


# ---- derivatives


def slopes(array: np.ndarray, geometry: Geometry, p: float) -> tuple[list[Fraction], Rows]:
    """Return the norms of the windows and their derivatives."""
    cells, norms, rows = oracle.exact(array), [], []
    for at, _ in geometry.windows():
        norm = float(oracle.power_mean([cells[j] for j in at], p, "float64").value)
        norms.append(Fraction(norm))
        slope = [(abs(cells[j]) / norm) ** (p - 1) * np.sign(cells[j]) if norm and cells[j] else 0.0 for j in at]
        rows.append([(j, Fraction(float(s))) for j, s in zip(at, slope, strict=True)])
    return norms, rows


def compare_derivative(call: Call, counts: Counter[str]) -> str:
    """Compare a derivative of a pool with the transpose of its matrix."""
    array, name = call.args["x"].array(), call.args["pool"]
    words, pool = words_of(call), getattr(pg, name)
    kind = oracle.kind_of(array)
    try:
        geometry = geometry_of(name, array.shape, words)
    except Refused as refused:
        return refusal(attempt(lambda: pg.vjp(lambda x: pool(x, **words), array)), name, refused)
    picks = name not in ("avg_pool", "sum_pool", "adaptive_avg_pool", "global_avg_pool", "global_sum_pool")
    if name == "lp_pool":
        norms, rows = slopes(array, geometry, words.get("p", 2))
    else:
        rows = rows_of(name, array, geometry, words)
        norms = [Fraction(n.value) for n in answer(name, array, geometry, words).numbers]
    dest = answer(name, array, geometry, words).shape
    g, v = drawn_like(array, dest, prod(array.shape)), drawn_like(array, array.shape, prod(array.shape) + 1)
    back = oracle.transposed(rows, prod(array.shape))
    loss = lambda x: (pool(x, **words) ** 2).sum()  # noqa: E731
    match call.name:
        case "vjp":
            run, wanted = (lambda: pg.vjp(lambda x: pool(x, **words), array)[1](g)), mapped(back, array.shape, g)
        case "jvp":
            run, wanted = (lambda: pg.jvp(lambda x: pool(x, **words), array, v)[1]), mapped(rows, dest, v)
        case "grad":
            run = lambda: pg.grad(loss, array)  # noqa: E731
            steps, start = ([back], norms) if picks else ([rows, back], oracle.exact(array))
            wanted = composed(steps, start, array.shape, kind)
        case _:
            if name == "lp_pool":
                raise NotACase
            run = lambda: pg.jvp(lambda x: pg.grad(loss, x), array, v)[1]  # noqa: E731
            wanted = composed([rows, back], oracle.exact(v), array.shape, kind)
    if name == "lp_pool":
        wanted = relaxed(wanted, back if call.name != "jvp" else rows)
    got = attempt(run)
    return got.text if isinstance(got, Raised) else wanted.unlike(got)


def relaxed(wanted: Wanted, rows: Rows) -> Wanted:
    """Return the same numbers with the slack of a few elementary functions."""
    numbers = []
    for number, row in zip(wanted.numbers, rows, strict=True):
        about = sum((abs(w) for _, w in row), Fraction(0)) * 400 + abs(Fraction(number.value))
        numbers.append(Number(number.value, 4 * number.slack + 64 * oracle.unit(wanted.name) * about, True))
    return Wanted(wanted.shape, wanted.name, numbers, wanted.steps)


def composed(maps: list[Rows], values: list[Any], shape: tuple[int, ...], kind: str) -> Wanted:
    """Return twice the maps one after the other, each rounded to the type."""
    exact, size = [Fraction(v) for v in values], [abs(Fraction(v)) for v in values]
    steps = 4
    for rows in maps:
        exact = [sum((exact[j] * w for j, w in row), Fraction(0)) for row in rows]
        size = [sum((size[j] * abs(w) for j, w in row), Fraction(0)) for row in rows]
        steps += max(map(len, rows), default=0) + 2
    unit, least = oracle.unit(kind), oracle.tiny(kind)
    numbers = [
        Number(2 * e, 2 * steps * (unit * s + least), 2 * s * 4 >= oracle.largest(kind))
        for e, s in zip(exact, size, strict=True)
    ]
    return Wanted(shape, kind, numbers, [kind])


# ---- positions


def at_axes(position: int, shape: tuple[int, ...]) -> list[int]:
    """Return the coordinates of a flat position."""
    found = []
    for n in reversed(shape):
        position, digit = divmod(position, n)
        found.append(digit)
    return found[::-1]


def row_major(where: list[int], shape: tuple[int, ...], axes: Any) -> int:
    """Return the position over some axes."""
    total = 0
    for d in axes:
        total = total * shape[d] + where[d]
    return total


def compare_taps(call: Call, counts: Counter[str]) -> str:
    """Compare taps, and the positions made of them and back, with the cells that windows choose."""
    array, words = call.args["x"].array(), words_of(call)
    name = "min_pool" if call.args.get("least") else "max_pool"
    got = attempt(lambda: getattr(pg, name)(array, **words, return_taps=True))
    try:
        geometry = geometry_of(name, array.shape, words)
        if words.get("ties") in ("all", "split"):
            raise Refused("return_taps", "ties")
    except Refused as refused:
        return refusal(got, name, refused)
    if isinstance(got, Raised):
        return got.text
    cells, ties, rule = oracle.exact(array), words.get("ties", "first"), words.get("nan", "propagate")
    read = [at for at, _ in geometry.windows()]
    chosen = [oracle.chosen([cells[j] for j in at], name == "min_pool", ties, rule) for at in read]
    flat = [at[t] for at, t in zip(read, chosen, strict=True)]
    y, taps = got
    if text := answer(name, array, geometry, words).unlike(y):
        return text
    if call.name == "unpool":
        return compare_unpool(call, y, taps, flat)
    return same(taps.values, chosen, "values") or compare_positions(taps, array, geometry, words, flat)


def same(got: Any, want: list[int], what: str) -> str:
    """Compare whole numbers."""
    got = got() if callable(got) else got
    return "" if got.ravel().tolist() == want else f"{what}: got {got.ravel().tolist()}, wanted {want}"


def compare_positions(taps: Any, array: np.ndarray, geometry: Geometry, words: dict[str, Any], flat: list[int]) -> str:
    """Compare each way to write positions, and read them back."""
    shape, axes = array.shape, geometry.axes
    rest = [d for d in range(len(shape)) if d not in axes]
    where = [at_axes(position, shape) for position in flat]
    image = prod(shape[1:])
    plane = [row_major(w, shape, axes) for w in where]
    column = [row_major(w, shape, rest) * prod(shape[d] for d in axes) + row_major(w, shape, axes[::-1]) for w in where]
    text = (
        same(taps.flat, flat, "flat")
        or same(taps.flat(batch=False), [p % image if image else 0 for p in flat], "flat without batch")
        or same(taps.plane, plane, "plane")
        or same(taps.onnx, flat, "onnx")
        or same(taps.onnx(1), column, "onnx, columns first")
    )
    text = text or "".join(same(taps.coordinates()[d], [w[d] for w in where], f"coordinates of axis {d}") for d in axes)
    if text:
        return text
    plan = pg.plan(shape, **{n: v for n, v in words.items() if n in calls.GEOMETRY})
    apart = 0 not in axes or shape[0] == 1  # else positions within images do not tell the image
    if not apart:
        made = attempt(lambda: pg.Taps.from_flat(taps.flat(batch=False), plan, batch=False))
        if isinstance(made, Raised) and (text := refusal(made, "Taps.from_flat", Refused("batch", "plan", "index"))):
            return f"from_flat without batch: {text}"
        if not isinstance(made, Raised) and same(made.values, taps.values.ravel().tolist(), ""):
            return "from_flat without batch: other taps, wanted the same or a refusal that names batch"
    for back, given in (
        ("from_flat", (taps.flat(), plan)),
        ("from_flat", (taps.flat(batch=False), plan, False) if apart else (taps.flat(), plan)),
        ("from_plane", (taps.plane(), plan)),
    ):
        made = attempt(lambda back=back, given=given: getattr(pg.Taps, back)(*given))
        if isinstance(made, Raised):
            return f"{back}: {made.text}"
        if text := same(made.values, taps.values.ravel().tolist(), back):
            return text
    return astray(taps, plan, shape, axes)


def astray(taps: Any, plan: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> str:
    """Positions outside the array are refused by name."""
    for back, positions, size in (
        ("from_flat", taps.flat(), prod(shape)),
        ("from_plane", taps.plane(), prod(shape[d] for d in axes)),
    ):
        for wrong in (-1, size, 2**62):
            bad = positions.copy()
            if not bad.size:
                return ""
            bad.flat[-1] = wrong
            made = attempt(lambda back=back, bad=bad: getattr(pg.Taps, back)(bad, plan))
            if text := refusal(made, f"Taps.{back}", Refused("index")):
                return f"{back} of {wrong}: {text}"
    return ""


def compare_unpool(call: Call, y: np.ndarray, taps: Any, flat: list[int]) -> str:
    """Compare unpooling by taps."""
    reduce = call.args.get("reduce", "sum")
    got = attempt(lambda: pg.unpool(y, taps, reduce=reduce))
    return unpooled(got, y, flat, taps.shape, reduce)


def unpooled(got: Any, y: np.ndarray, flat: list[int], shape: tuple[int, ...], reduce: str) -> str:
    """Compare what was unpooled to these positions."""
    values, kind = oracle.exact(y), oracle.kind_of(y)
    sent: list[list[Any]] = [[] for _ in range(prod(shape))]
    for value, position in zip(values, flat, strict=True):
        sent[position].append(value)
    if reduce == "assign":
        numbers = [as_number(s[-1]) if s else Number(Fraction(0)) for s in sent]
        wanted = Wanted(shape, kind, numbers, [])
    elif kind in FORMATS:
        numbers = [as_number(s[0]) if len(s) == 1 else oracle.total(s, kind) for s in sent]
        wanted = Wanted(shape, kind, numbers, [kind])
    elif kind == "bool" and any(sum(s) > 1 for s in sent):
        return refusal(got, "unpool", Refused("y", "v"))
    else:
        info = np.iinfo(kind) if kind != "bool" else None
        if info and any(not info.min <= sum(s) <= info.max for s in sent):
            return refusal(got, "unpool", Refused("y", "v"))
        wanted = Wanted(shape, kind, [Number(Fraction(sum(s))) for s in sent], [])
    return got.text if isinstance(got, Raised) else wanted.unlike(got)


def compare_unpool_at(call: Call, counts: Counter[str]) -> str:
    """Compare unpooling by positions."""
    y, shape = call.args["x"].array(), call.args["shape"]
    items, reduce = call.args.get("items", 1), call.args.get("reduce", "sum")
    part = prod(shape) // items
    if prod(shape) % items or y.size % items or not part:
        raise NotACase
    index = np.random.default_rng(y.size).integers(0, part, y.shape)
    base = np.arange(y.size) // max(y.size // items, 1) * part
    got = attempt(lambda: pg.unpool(y, index, shape, reduce=reduce, items=items))
    if text := unpooled(got, y, (index + base).tolist(), shape, reduce):
        return text
    for wrong in (-1, part, 2**62):
        if y.size:
            bad = index.copy()
            bad[-1] = wrong
            got = attempt(lambda bad=bad: pg.unpool(y, bad, shape, reduce=reduce, items=items))
            if text := refusal(got, "unpool", Refused("taps")):
                return f"position {wrong}: {text}"
    return ""


# ---- arguments that must be refused


def compare_wrong(call: Call, counts: Counter[str]) -> str:
    """Tell if a wrong argument is accepted, or refused without its name."""
    name, value = call.args["wrong"]
    words = {**words_of(call), name: value}
    x = words.pop("x") if name == "x" else call.args["x"].array()
    got = attempt(lambda: getattr(pg, call.name)(x, **words))
    blamed = {"axes": ("axes", "x"), "layout": ("layout", "x"), "divisor": ("divisor",)}.get(name, (name,))
    return refusal(got, call.name, Refused(*blamed))


COMPARE = {
    **dict.fromkeys(calls.POOLS, compare_pool),
    **dict.fromkeys(calls.OPERATORS, compare_operator),
    **dict.fromkeys(calls.DERIVATIVES, compare_derivative),
    "taps": compare_taps,
    "unpool": compare_taps,
    "unpool_at": compare_unpool_at,
}


def compare(call: Call, counts: Counter[str]) -> str:
    """Tell how a call differs from its definition or from a peer."""
    try:
        return (compare_wrong if "wrong" in call.args else COMPARE[call.name])(call, counts)
    except NotACase:
        counts["not compared"] += 1
        return ""


if __name__ == "__main__":
    names = {"Axis": pg.Axis, "nan": nan, "inf": inf}
    sys.exit(differential.main("pools", __doc__ or "", calls.draw, compare, names))
