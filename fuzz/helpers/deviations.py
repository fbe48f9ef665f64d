"""Decide which named deviation of the table, if any, explains a difference between an op and TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
from differential import Documented
from support import FAST, Case, arguments, outputs, same_bits

from poolgrad._ops import table
from poolgrad._ops.semantics import Kernel
from poolgrad._ops.table import Kind

Args = dict[str, Any]

# Parts of TensorFlow's refusals, each with the deviation that lets the op compute anyway. The first that the op's row names counts.
REFUSED_THERE = (
    (("NotFoundError", "Could not find device", "No OpKernel"), ("NO_KERNEL", "HALF", "GRID")),
    (("not in the list of allowed values",), ("HALF", "GRID")),
    (("only supports NHWC", "only supports NDHWC", "only supportsNDHWC", "NHWC or NCHW_VECT_C"), ("GRID",)),
    (("must not be empty", "empty tensor", "must not be 0", "Empty", "must be positive for all dim"), ("EMPTY",)),
    (("on the depth dimension", "Non-spatial pooling"), ("DEPTHWISE_GRAD",)),
    (("tensor_out_dup", "Pooling region has more elements"), ("LEGITIMATE",)),
)

# Ways to spoil a call that TensorFlow may accept, each with the deviation that names the refusal.
SPOILT = {
    "channel stride": "CHANNEL_STRIDE",
    "depthwise stride": "DEPTHWISE",
    "float in a list": "WORDS",
    "one row less": "FITS",
    "depthwise argmax": "NOT_DEPTHWISE",
}


def _named(case: Case, *names: str) -> Documented | None:
    """Return the first of these deviations that the op's row names."""
    texts = (getattr(table, name) for name in names)
    return next((Documented(text) for text in texts if text in case.row.promise.deviations), None)


def refused_there(case: Case, answer: str) -> str:
    """Return the deviation that explains why TensorFlow refused a call that the op computed, or a text."""
    if answer == "died":
        return _named(case, "FITS") or "TensorFlow died"
    for parts, names in REFUSED_THERE:
        if any(part in answer for part in parts) and (found := _named(case, *names)):
            return found
    return f"TensorFlow refused: {answer[:200]}"


def refused_here(case: Case, spoil: str, refusal: str) -> str:
    """Return the deviation that explains why the op refused a call that TensorFlow computed, or a text."""
    found = _named(case, SPOILT[spoil]) if spoil else None
    if "wanted integers that" in refusal:
        found = _named(case, "LISTS")
    return found or f"TensorFlow computed, poolgrad refused: {refusal[:200]}"


# ---- values that differ


def _real(a: Any) -> bool:
    return isinstance(a, np.ndarray) and a.dtype.kind not in "iub"


def _touched(case: Case, args: Args, cells: np.ndarray) -> np.ndarray:
    """Return which windows hold one of these cells of the input."""
    name = "MaxPool" if case.row.spatial == 2 else "MaxPool3D"
    own = {p.name for p in replace(case, op=name).row.params}
    given = {n: np.asarray(v).tolist() if n in ("ksize", "strides") else v for n, v in args.items() if n in own}
    found: np.ndarray = FAST[name](**{**given, "input": cells.astype(np.float32)})
    return found > 0


def _by_cells(case: Case, args: Args) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the deviations that depend on the cells of a window, each with the outputs that it may change."""
    x = args[case.row.params[0].name]
    if case.row.order or not _real(x) or not x.size:
        return
    if case.row.spatial == 3 or case.depth > 1:
        zeros = x == 0 if case.row.rule.verb is Kernel.SELECT else np.zeros(x.shape, bool)
        yield "ONE_RULE", _touched(case, args, (x != x) | zeros)
    if case.op == "AvgPool3D":
        lowest = ml_dtypes.finfo(x.dtype).min
        yield "LOWEST", _touched(case, args, (x == lowest) | (x != x))


def _flushed(a: Any) -> Any:
    """Return an array whose subnormals are zeros of the same sign."""
    if not _real(a) or a.dtype == np.float16:
        return a
    small = np.abs(a.astype(np.float64)) < float(ml_dtypes.finfo(a.dtype).smallest_normal)
    return np.where(small, np.copysign(np.zeros_like(a), a), a)


def _terms(case: Case) -> int:
    """Return the largest number of terms that are added for a cell of the result."""
    cells = prod(min(k, n) for k, n in zip(case.window, case.x[1:-1], strict=True))
    if case.row.order == 0:
        return cells
    return prod(min(-(-k // s), n) for k, s, n in zip(case.window, case.stride, case.x[1:-1], strict=True)) + cells


def _wide(args: Args) -> Args:
    return {n: a.astype(np.float64) if _real(a) else a for n, a in args.items()}


def _apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the distance between numbers: 0 where both are the same, also if both are NaN."""
    with np.errstate(all="ignore"):
        distance = np.abs(a.astype(np.float64) - b.astype(np.float64))
    same = (a == b) | ((a != a) & (b != b))
    return np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))


def _longer_sums(case: Case, args: Args, got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Return where our sum is as near to the exact one as TensorFlow's, or as near as its type allows."""
    if _terms(case) <= 64 or not _real(got):
        return np.zeros(got.shape, bool)
    eps = float(ml_dtypes.finfo(got.dtype).eps)
    if got.dtype == np.float64:
        largest = max(float(np.abs(a[np.isfinite(a)]).max(initial=0)) for a in args.values() if _real(a))
        return _apart(got, want) <= _terms(case) ** 2 * largest * eps
    exact = outputs(FAST[case.op](**_wide(args)))[0]
    with np.errstate(all="ignore"):
        once = exact.astype(got.dtype)  # beyond the type's range it is infinite
        unit = np.maximum(np.abs(exact) * eps, float(ml_dtypes.finfo(got.dtype).smallest_subnormal))
        if case.row.order:  # each share was rounded before it is added
            unit = (
                unit
                + eps * outputs(FAST[case.op](**_wide({n: np.abs(a) if _real(a) else a for n, a in args.items()})))[0]
            )
    nearest = same_bits(once, got)
    return nearest | (_apart(got, exact) <= np.maximum(_apart(want, exact), unit))


def differing(case: Case, args: Args, got: Any, want: Any, rerun: Callable[[Args], Any]) -> str:
    """Return "" if the results are the same, the deviation that explains every difference, or a text that tells it."""
    ours, theirs = outputs(got), outputs(want)
    if [(a.shape, a.dtype) for a in ours] != [(b.shape, b.dtype) for b in theirs]:
        shapes = [[f"{a.dtype.name}{list(a.shape)}" for a in some] for some in (ours, theirs)]
        return f"got {', '.join(shapes[0])}, TensorFlow gives {', '.join(shapes[1])}"
    bad = [~same_bits(a, b) for a, b in zip(ours, theirs, strict=True)]
    if not any(b.any() for b in bad):
        return ""
    if prod(case.dest) == 0 and case.row.order and (found := _named(case, "ZEROS")) and not ours[0].any():
        return found
    reason = ""
    for name, cells in _explanations(case, args, ours, theirs, rerun):
        if _named(case, name) and (bad[0] & cells).any():
            reason, bad = reason or name, [bad[0] & ~cells, *(b & ~cells for b in bad[1:] if b.shape == cells.shape)]
        if reason and not any(b.any() for b in bad):
            return _named(case, reason) or ""
    i = next(i for i, b in enumerate(bad) if b.any())
    at = tuple(map(int, np.argwhere(bad[i])[0])) if bad[i].ndim else ()
    return f"result {i} at {list(at)} is {ours[i][at]!r}, TensorFlow gives {theirs[i][at]!r} ({int(bad[i].sum())} of {bad[i].size})"


def _explanations(
    case: Case, args: Args, ours: list[np.ndarray], theirs: list[np.ndarray], rerun: Callable[[Args], Any]
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield deviations, and the cells of the first result that each explains."""
    got, want = ours[0], theirs[0]
    if _real(got):
        tiny = float(ml_dtypes.finfo(got.dtype).smallest_normal)
        yield "SUBNORMALS", _apart(got, want) <= 2 * _terms(case) * tiny
        try:
            flushed = outputs(rerun({n: _flushed(a) for n, a in args.items()}))
        except ValueError:  # sums that do not fit what was flushed
            flushed = []
        if flushed and flushed[0].shape == got.shape:
            near = _apart(_flushed(flushed[0]), _flushed(want)) <= 2 * _terms(case) * tiny
            yield "SUBNORMALS", near & _has_subnormals(args)
    yield from _by_cells(case, args)
    if got.dtype != np.float16 or _terms(case) > 64:
        yield "LONG_SUMS", _longer_sums(case, args, got, want)


def _has_subnormals(args: Args) -> bool:
    return any(_real(a) and not same_bits(np.asarray(_flushed(a)), a).all() for a in args.values())


# ---- calls that TensorFlow accepts and we refuse


def spoils(case: Case) -> tuple[str, ...]:
    """Return the ways to spoil this case."""
    row, windows = case.row, bool(case.row.param(Kind.SIZES) or case.row.param(Kind.SIZES_TENSOR))
    able = {
        "channel stride": windows and case.depth == 1 and not case.first and row.spatial == 2,
        "depthwise stride": case.depth > 1 and not case.first,
        "float in a list": row.param(Kind.SIZES) is not None,
        "one row less": case.op == "AvgPoolGrad" and not case.first and case.dest[1] > 1,
        "depthwise argmax": row.rule.verb is Kernel.ARGMAX and case.x[-1] % 2 == 0 and prod(case.x) > 0,
    }
    return tuple(name for name, fits in able.items() if fits)


def spoilt(case: Case, args: Args, spoil: str) -> Args:
    """Return the arguments with one of them changed; ValueError if the case has no such argument."""
    if spoil not in spoils(case):
        raise ValueError(spoil)
    sizes = {n: list(np.asarray(args[n]).tolist()) for n in ("ksize", "strides") if n in args}
    kind = (lambda v: np.array(v, np.int32)) if case.row.param(Kind.SIZES_TENSOR) else list
    match spoil:
        case "channel stride":
            return {**args, "strides": kind([*sizes["strides"][:-1], 2])}
        case "depthwise stride":
            return {**args, "strides": kind([1, 2, *sizes["strides"][2:]])}
        case "float in a list":
            return {**args, "ksize": [float(n) for n in sizes["ksize"]]}
        case "one row less":
            return {**args, "grad": args["grad"][:, :-1]}
    return {**args, "ksize": [1, 1, 1, 2], "strides": [1, 1, 1, 2]}


def drawn(case: Case) -> Args:
    """Return the arguments of a case, with data of any kind."""
    with np.errstate(all="ignore"):
        return arguments(case)
