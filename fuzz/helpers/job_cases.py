"""Random jobs, each with its arrays and the result that the whole array gives in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import ml_dtypes as ml_dtypes  # NumPy learns the name bfloat16
import numpy as np

import poolgrad as pg
from poolgrad import raw_ops
from poolgrad._ops.semantics import Kernel
from poolgrad._ops.table import OPS, Kind
from poolgrad.jobs.parts import Region

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("uint8", "int8", "uint16", "int16", "int32", "int64", "bool")
LONGEST = {1: 400, 2: 90, 3: 24}  # cells of an axis, by rank


@dataclass
class Case:
    """A job, its inputs, and the results of the whole array."""

    name: str
    job: pg.Job
    arrays: tuple[np.ndarray, ...]
    want: tuple[np.ndarray, ...]


def random_case(seed: int) -> Case:
    """Return the case of that number: a pool, a derivative of one, or an op."""
    rng = np.random.default_rng(seed)
    while True:
        try:
            return (_op_case if rng.random() < 0.3 else _pool_case)(rng)
        except ValueError as error:
            if "without a cell" not in str(error):  # of much padding and rounding up
                raise


def random_numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return numbers with ties; floats may have NaN, infinities and zeros of both signs."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(max(info.min, -(2**40)), min(info.max, 2**40), shape, endpoint=True).astype(dtype)
    x = rng.standard_normal(shape)
    if rng.random() < 0.5:
        x = np.round(2 * x)
    if rng.random() < 0.3:
        x[rng.random(shape) < rng.choice([0.002, 0.1, 0.6])] = np.nan
    if rng.random() < 0.1:
        x[rng.random(shape) < 0.05] = rng.choice([np.inf, -np.inf])
    return x.astype(dtype)


# ---- pools


def _pool_case(rng: np.random.Generator) -> Case:
    rank = int(rng.choice([1, 2, 2, 3]))
    lengths = [int(rng.integers(1, LONGEST[rank] + 1)) for _ in range(rank)]
    more = [int(n) for n in rng.integers(1, 4, int(rng.integers(0, 3)))]
    axes = tuple(sorted(rng.choice(rank + len(more), rank, replace=False).tolist()))
    shape, rest = [0] * (rank + len(more)), iter(more)
    for d in range(len(shape)):
        shape[d] = lengths[axes.index(d)] if d in axes else next(rest)
    family = str(rng.choice(["max", "min", "avg", "sum", "lp"]))
    how = str(rng.choice(["sliding", "sliding", "sliding", "boundaries", "adaptive", "global", "fractional"]))
    if how in ("adaptive", "fractional") and family not in ("max", "avg"):
        how = "sliding"
    how = "sliding" if how == "global" and family == "lp" else how
    differentiated = rng.random() < 0.4
    floating = differentiated or family == "lp" or rng.random() < 0.7
    dtype = str(rng.choice(FLOATS if floating else INTEGERS))
    name, args, words = _windows(rng, family, how, [shape[d] for d in axes])
    words |= {"axes": axes} | _options(rng, family, how, dtype, differentiated)
    return _made_pool(rng, name, tuple(shape), dtype, args, words, family if differentiated else "")


def _windows(
    rng: np.random.Generator, family: str, how: str, lengths: list[int]
) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    if how == "global":
        return f"global_{family}_pool", (), {}
    if how == "adaptive":
        return "adaptive_" + family + "_pool", ([int(rng.integers(1, n + 1)) for n in lengths],), {}
    if how == "fractional":
        seed = (int(rng.integers(1, 1000)), int(rng.integers(1000)))
        return (
            f"fractional_{family}_pool",
            (float(rng.uniform(1, min(2.5, min(lengths)))),),
            {
                "seed": seed,
                "overlapping": bool(rng.integers(2)),
            },
        )
    if how == "boundaries":
        tables = []
        for n in lengths:
            start = np.sort(rng.integers(0, n, int(rng.integers(1, n + 1))))
            tables.append(pg.Axis(n, start, np.minimum(start + int(rng.integers(1, n + 1)), n)))
        return f"{family}_pool", (tables,), {}
    long = rng.random() < 0.4  # sums of more than 64 cells
    window, stride, dilation, pads = [], [], [], []
    for n in lengths:
        k = int(rng.integers(max(n // 3, 1), n + 1)) if long else int(rng.integers(1, min(n, 5) + 1))
        d = int(rng.integers(1, max((n - 1) // max(k - 1, 1), 1) + 1)) if rng.random() < 0.25 else 1
        reach = d * (k - 1)
        window.append(k)
        dilation.append(min(d, 4))
        stride.append(int(rng.choice([1, 1, 2, 3, k])))
        pads.append((int(rng.integers(0, reach // 2 + 1)), int(rng.integers(0, reach // 2 + 1))))
    padding = rng.choice(np.array(["valid", "same", "same_lower", "pairs"]))
    return (
        f"{family}_pool",
        (window, stride),
        {
            "dilation": dilation,
            "padding": pads if padding == "pairs" else str(padding),
            "ceil_mode": bool(rng.integers(2)),
        },
    )


def _options(rng: np.random.Generator, family: str, how: str, dtype: str, differentiated: bool) -> dict[str, Any]:
    nan = str(rng.choice(["propagate", "ignore", "tf"] if family in ("max", "min") else ["propagate", "ignore"]))
    if family in ("max", "min"):
        return {
            "ties": str(rng.choice(["first", "last", "all", "split"] if differentiated else ["first", "last"])),
            "nan": nan,
        }
    if family == "lp":
        return {"p": [1, 2, 3, 2.5][int(rng.integers(4))]}
    if family == "sum":
        return {"nan": nan}
    if how in ("sliding", "boundaries") and rng.random() < 0.4:
        return {"nan": nan} | ({"divisor": 3.0} if rng.integers(2) else {"count_include_pad": True})
    if np.dtype(dtype).kind in "iu" and rng.random() < 0.5:
        return {"dtype": dtype, "rounding": str(rng.choice(["nearest", "floor", "ceil", "toward_zero"]))}
    return {"nan": nan}


def _made_pool(
    rng: np.random.Generator,
    name: str,
    shape: tuple[int, ...],
    dtype: str,
    args: tuple[Any, ...],
    words: dict[str, Any],
    family: str,
) -> Case:
    x = random_numbers(rng, shape, dtype)
    pool = getattr(pg, name)

    def whole(x: Any) -> Any:
        return pool(x, *args, **words)

    chooses = "max" in name or "min" in name
    if family:
        return _derivative(rng, name, shape, dtype, args, words, whole, x)
    if chooses and "global" not in name and rng.random() < 0.5:
        returns = ["taps", "argmax", ("values", "taps"), ("argmax", "values")][int(rng.integers(4))]
        y, taps = pool(x, *args, return_taps=True, **words)
        made = {"values": y, "taps": taps.values, "argmax": taps.flat()}
        names = (returns,) if isinstance(returns, str) else returns
        job = pg.Job(name, shape, dtype, *args, returns=returns, **words)
        return Case(f"{name} {shape} {dtype} {args} {words} {returns}", job, (x,), tuple(made[n] for n in names))
    job = pg.Job(name, shape, dtype, *args, **words)
    return Case(f"{name} {shape} {dtype} {args} {words}", job, (x,), (whole(x),))


def _derivative(
    rng: np.random.Generator,
    name: str,
    shape: tuple[int, ...],
    dtype: str,
    args: tuple[Any, ...],
    words: dict[str, Any],
    whole: Callable[[Any], Any],
    x: np.ndarray,
) -> Case:
    forward = pg.Job(name, shape, dtype, *args, **words)
    back, order = bool(rng.integers(2)), int(rng.choice([1, 1, 1, 2, 3]))
    chooses = "max" in name or "min" in name
    from_taps = (
        chooses and order == 1 and words["ties"] in ("first", "last") and "global" not in name and rng.random() < 0.5
    )
    job = (forward.vjp if back else forward.jvp)(order, from_taps=from_taps)
    arrays = {"x": x}
    if from_taps:
        pool = getattr(pg, name)
        arrays["taps"] = pool(x, *args, return_taps=True, **words)[1].values
    for given in job.inputs:
        if given.name not in arrays:
            arrays[given.name] = np.round(4 * rng.standard_normal(given.shape)).astype(dtype)
    tangents = [arrays[given.name] for given in job.inputs if given.name.startswith("v")]
    f = whole
    for v in tangents if back else tangents[:-1]:
        f = _along(f, v)
    want = pg.vjp(f, x)[1](arrays["g"]) if back else pg.jvp(f, x, tangents[-1])[1]
    label = f"{name} {shape} {dtype} {args} {words} {'vjp' if back else 'jvp'} {order} {'taps' if from_taps else ''}"
    return Case(label, job, tuple(arrays[given.name] for given in job.inputs), (want,))


def _along(f: Callable[[Any], Any], v: np.ndarray) -> Callable[[Any], Any]:
    return lambda x: pg.jvp(f, x, v)[1]


# ---- ops


def _op_case(rng: np.random.Generator) -> Case:
    op = OPS[str(rng.choice(list(OPS)))]
    dtype = str(rng.choice([d for d in op.dtypes if np.dtype(d).kind in "fiuV"]))
    sizes = [int(n) for n in rng.integers(1, LONGEST[op.spatial] + 1, op.spatial)]
    attrs: dict[str, Any] = {}
    params = {p.name: p for p in op.params}
    channels, last = int(rng.choice([1, 3, 8])), True
    if "data_format" in params:
        attrs["data_format"] = str(rng.choice(op.formats))
        last = attrs["data_format"].endswith("C")
    shape = (2, *sizes, channels) if last else (2, channels, *sizes)
    drawn = None
    if "ksize" in params:
        deep = op.depthwise and channels > 1 and rng.random() < 0.1
        window = [int(rng.integers(1, min(n, 12) + 1)) for n in sizes]
        stride = [int(rng.choice([1, 2, 3, k])) for k in window]
        place = (lambda v, c: [1, *v, c]) if last else (lambda v, c: [1, c, *v])
        ones = [1] * op.spatial
        attrs["ksize"] = place(ones, channels) if deep else place(window, 1)
        attrs["strides"] = place(ones, channels) if deep else place(stride, 1)
        attrs["padding"] = "VALID" if deep else str(rng.choice(["SAME", "VALID"]))
        if "explicit_paddings" in params and not deep and rng.random() < 0.3:
            pairs = [[int(p) for p in rng.integers(0, k, 2)] for k in window]
            spread = [p for pair in place(pairs, [0, 0])[1:] for p in pair]
            attrs |= {"padding": "EXPLICIT", "explicit_paddings": [0, 0, *spread]}
    elif op.rule.verb in (Kernel.SELECT, Kernel.FOLD):
        ratio = float(rng.uniform(1, min(2.5, *sizes)))
        attrs |= {"pooling_ratio": [1.0, ratio, ratio, 1.0], "overlapping": bool(rng.integers(2))}
        attrs |= {"deterministic": True, "seed": int(rng.integers(1, 99)), "seed2": int(rng.integers(1, 99))}
    else:
        drawn = [
            np.concatenate([[0], np.sort(rng.choice(n - 1, int(rng.integers(0, n)), replace=False)) + 1, [n]])
            for n in sizes
        ]
        drawn = [np.unique(s).astype(np.int64) for s in drawn]
        attrs |= {
            "row_pooling_sequence": drawn[0],
            "col_pooling_sequence": drawn[1],
            "overlapping": bool(rng.integers(2)),
        }
    if "include_batch_in_index" in params:
        attrs["include_batch_in_index"] = bool(rng.integers(2))
    job = pg.Job(op.name, shape, dtype, **attrs)
    return _with_arrays(rng, op, job, attrs)


def _with_arrays(rng: np.random.Generator, op: Any, job: pg.Job, attrs: dict[str, Any]) -> Case:
    arrays: dict[str, Any] = {}
    dtype = job.dtype.name
    x = random_numbers(rng, job.shape, dtype)
    for param in op.params:
        if param.kind is Kind.SOURCE:
            arrays[param.name] = x if param is op.params[0] else random_numbers(rng, job.shape, dtype)
        elif param.kind is Kind.DEST:
            arrays[param.name] = np.round(4 * rng.standard_normal(job.dest)).astype(dtype)
        elif param.kind is Kind.SHAPE:
            arrays[param.name] = np.array(job.shape, param.dtype)
        elif param.kind is Kind.RANGE:
            arrays[param.name] = np.float32(0)
    if "orig_output" in arrays:  # the pooled array
        forward = pg.Plan(job.shape, {d: _axis(w) for d, w in enumerate(job.windows) if w is not None})
        arrays["orig_output"] = x[:0].reshape(job.dest) if 0 in job.dest else pg.max_operator(x, forward, nan="tf")[0]
    if "argmax" in {p.name for p in op.params}:
        deep = attrs["ksize"][-1] > 1
        if deep:
            plan = pg.Plan(job.shape, {d: _axis(w) for d, w in enumerate(job.windows) if w is not None})
            index = pg.max_operator(x, plan)[1]
            where = pg.Taps(index, (3,)).flat(attrs["include_batch_in_index"])
        else:
            words = {k: attrs[k] for k in ("ksize", "strides", "padding", "include_batch_in_index")}
            where = raw_ops.MaxPoolWithArgmax(input=x, **words).argmax if job.dest else None
        arrays["argmax"] = where
    found = getattr(raw_ops, op.name)(**arrays, **attrs)
    outs = [getattr(found, name) for name in op.outputs] if isinstance(found, tuple) else [found]
    want = tuple(outs[: len(job.outputs)])
    return Case(f"{op.name} {job.shape} {dtype} {attrs}", job, tuple(arrays[i.name] for i in job.inputs), want)


def _axis(windows: Any) -> pg.Axis:
    return windows if isinstance(windows, pg.Axis) else windows.axis()


# ---- engines


def random_regions(rng: np.random.Generator, shape: tuple[int, ...]) -> Iterator[Region]:
    """Return boxes that tile an array of that shape."""
    cuts = [sorted({0, n, *rng.integers(0, n + 1, rng.integers(0, 3)).tolist()}) for n in shape]
    for box in product(*(list(pairwise(c)) or [(0, 0)] for c in cuts)):
        yield tuple(slice(a, b) for a, b in box)


def by_regions(case: Case, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Compute the case by random regions."""
    out = tuple(np.full(made.shape, 77, made.dtype) for made in case.job.outputs)
    for region in random_regions(rng, case.job.result):
        parts = [array[need] for array, need in zip(case.arrays, case.job.needs(region), strict=True)]
        made = case.job.run(region, *parts)
        for whole, part in zip(out, made if isinstance(made, tuple) else (made,), strict=True):
            whole[region] = part
    return out


def difference(got: tuple[np.ndarray, ...], want: tuple[np.ndarray, ...]) -> str:
    """Return what differs, or an empty text: dtype, shape and all bits must agree; all NaN count as equal.

    NumPy's own arithmetic, which derivatives of norms use, gives NaN either sign, depending on its place in memory.
    """
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"result {k}: {a.dtype} {a.shape} instead of {b.dtype} {b.shape}"
        bits = f"u{a.dtype.itemsize}"
        unlike = np.ascontiguousarray(a).view(bits) != np.ascontiguousarray(b).view(bits)
        unlike &= (a == a) | (b == b)
        if unlike.any():
            at = tuple(int(i) for i in np.argwhere(unlike)[0])
            return f"result {k}: {int(unlike.sum())} of {unlike.size} cells differ, the first at {at}: {a[at]} instead of {b[at]}"
    return ""
