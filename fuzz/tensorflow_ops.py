"""Compare random calls of `poolgrad.raw_ops`, and of `poolgrad.tensorflow`, with TensorFlow, which runs in a process of its own.

    python fuzz/tensorflow_ops.py --seconds 60 [--jobs 2] [--seed 1] [--calls 20000] [--op MaxPool] [--tensorflow PYTHON]

Every difference has a name in the op's row of the table, or fails. The adapter runs only where this Python has TensorFlow.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "fuzz" / "helpers")]

import adapters
import deviations
import numpy as np
import peer
import pooled
from differential import Call, Data, Rng, main, pick
from ops import outcome, random_case
from support import FAST, Case

from poolgrad._ops.table import ARRAYS, OPS, Kind

DATA = ("ties", "plain", "distinct", "nan", "wild", "wild", "bits", "extreme")
POOL_DTYPES = ("float16", "bfloat16", "float32", "float32", "float64", "int8", "uint8", "int32", "int64", "bool")
Array = np.ndarray[Any, Any]
FIELDS = {f.name: f.default for f in fields(Case)}


def _words(name: str) -> list[str]:
    """Return the values of an option of the command line, which may be given several times."""
    return [sys.argv[i + 1] for i, word in enumerate(sys.argv[:-1]) if word == name]


NAMES = tuple(_words("--op") or OPS)
PYTHON = next(iter(_words("--tensorflow")), sys.executable)


@lru_cache(1)
def tensorflow() -> peer.TensorFlow:
    """Return the process that runs TensorFlow."""
    return peer.TensorFlow(PYTHON)


# ---- raw_ops


def draw_op(rng: Rng) -> Call:
    """Return a call of an op: mostly small and right, sometimes large, with lists for arrays, or spoilt."""
    case = replace(random_case(rng, NAMES), data=pick(rng, DATA))
    if rng.random() < 0.85:  # a dtype and a layout that TensorFlow computes
        case = replace(case, first=False, dtype=pick(rng, _kernels(case.op)))
    if rng.random() < 0.08 and case.depth == 1 and case.row.family[0] != "f":
        case = _large(rng, case)
    given = {n: getattr(case, n) for n in FIELDS if n != "op" and getattr(case, n) != FIELDS[n]}
    if rng.random() < 0.1 and case.row.family[0] != "q" and np.prod(case.x):
        given["lists"] = True
    elif rng.random() < 0.1 and (able := deviations.spoils(case)):
        given["spoil"] = pick(rng, able)
    return Call(case.op, **given)


def _kernels(op: str) -> tuple[str, ...]:
    """Return the dtypes for which TensorFlow has a kernel on the CPU."""
    row = OPS[op]
    if row.spatial == 3:
        return "bfloat16", "float32"
    if row.family[0] == "f":
        return "float32", "float64", "int32", "int64"
    if row.family[0] == "q":
        return "int8", "uint8"
    forward = op in ("MaxPool", "MaxPoolV2")
    return tuple(dtype for dtype in row.dtypes if not (forward and dtype in ("uint32", "uint64")))


def _large(rng: Rng, case: Case) -> Case:
    """Return the case with longer axes and windows, of more than 64 cells at times."""
    most = 40 if case.row.spatial == 2 else 12
    space = tuple(int(n) for n in rng.integers(4, most, case.row.spatial))
    k = tuple(int(rng.integers(1, min(n, 14 if case.row.spatial == 2 else 6) + 1)) for n in space)
    s = tuple(int(n) for n in rng.integers(1, 6, case.row.spatial))
    pad = case.pad if isinstance(case.pad, str) else "SAME"
    return replace(case, x=(case.x[0], *space, case.x[-1]), k=k, s=s, pad=pad)


def _listed(case: Case, args: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments with lists for arrays: as poolgrad gets them, and as TensorFlow does.

    ValueError for empty lists, of which nobody can tell the type, and for numbers beyond float32: TensorFlow refuses them in the
    first list and makes them infinite in others.
    """
    ours, theirs = dict(args), dict(args)
    first = True
    for p in case.row.params:
        if p.kind not in ARRAYS or p.name not in args:
            continue
        values = np.asarray(args[p.name])
        values = values.astype(np.float64) if values.dtype.kind not in "iu" else values
        if not values.size or (np.isinf(values.astype(np.float32)) & np.isfinite(values)).any():
            raise ValueError(p.name)
        ours[p.name] = values.tolist()
        free = p.kind in (Kind.SOURCE, Kind.DEST)
        dtype = ("" if first else "T") if free else {Kind.INDEX: "int64", Kind.RANGE: "float32"}.get(p.kind, p.dtype)
        theirs[p.name], first = peer.Listed(values.tolist(), dtype), first and not free
    return ours, theirs


def compare_op(call: Call, counts: Counter[str]) -> str:
    """Return how an op and TensorFlow differ."""
    given = dict(call.args)
    lists, spoil = given.pop("lists", False), given.pop("spoil", "")
    case = Case(call.name, **given)
    try:
        args = deviations.drawn(case)
        args = deviations.spoilt(case, args, spoil) if spoil else args
        ours, theirs = _listed(case, args) if lists else (args, args)
    except ValueError:  # no positions to draw, nothing to spoil, no list
        counts["no case"] += 1
        return ""
    got, answer = outcome(FAST[case.op], ours), tensorflow().ask(case.op, theirs)
    if isinstance(got, str) and isinstance(answer, str):
        counts["refused by both"] += 1
        return ""
    if isinstance(answer, str):
        return deviations.refused_there(case, answer)
    if isinstance(got, str):
        return deviations.refused_here(case, spoil, got)
    counts["compared"] += 1
    if lists:  # of one of two types, whatever the case says
        name = np.asarray(answer[0]).dtype.name
        case = replace(case, dtype=name)
        args = {n: _as(case, n, a, name) for n, a in args.items()}
    return deviations.differing(case, args, got, tuple(answer), lambda some: FAST[case.op](**some))


def _as(case: Case, name: str, value: Any, dtype: str) -> Any:
    kinds = {p.name: p.kind for p in case.row.params}
    return value.astype(dtype) if kinds[name] in (Kind.SOURCE, Kind.DEST) else value


# ---- the adapter


class _Adapter(adapters.Runner):
    """`poolgrad.tensorflow` in the other process."""

    def _ask(self, way: str, call: Call, **more: Any) -> Any:
        found = tensorflow().ask(way, {"op": call.name, "words": adapters.words(call), **more})
        if isinstance(found, str):
            raise ValueError(found)
        return found

    def value(self, call: Call, x: Array, traced: bool) -> Array:
        """Return the pooled array."""
        raw = call.args["x"].memory != "plain"
        return self._ask("value", call, x=x, traced=traced and not raw, raw=raw)

    def pull(self, call: Call, x: Array, g: Array, traced: bool) -> Array:
        """Return the gradient."""
        return self._ask("pull", call, x=x, g=g, traced=traced)

    def push(self, call: Call, x: Array, v: Array, traced: bool) -> Array:
        """Return the tangent."""
        return self._ask("push", call, x=x, v=v, traced=traced)

    def second(self, call: Call, x: Array, h: Array, v: Array, traced: bool) -> Array:
        """Return the second order."""
        return self._ask("second", call, x=x, h=h, v=v, traced=traced)

    def mapped(self, call: Call, xs: Array, axis: int, grad: bool) -> Array:
        """Return pools or gradients of the arrays along an axis."""
        return self._ask("mapped", call, xs=xs, axis=axis, grad=grad)

    def taps(self, call: Call, x: Array, traced: bool) -> list[Array]:
        """Return maxima, positions, and the maxima put back."""
        return self._ask("taps", call, x=x, traced=traced)


ADAPTER = _Adapter()


def draw_pool(rng: Rng) -> Call:
    """Return a call of a pool of the adapter, or of tf.nn's pool of that name."""
    if rng.random() < 0.2:
        spatial = int(rng.integers(2, 4))
        space = tuple(int(n) for n in rng.integers(1, 8, spatial))
        window = [int(rng.integers(1, n + 1)) for n in space]
        shape = (int(rng.integers(1, 3)), *space, int(rng.integers(1, 4)))
        data = Data("float32", shape, pick(rng, ("distinct", "plain")), int(rng.integers(1000)))
        name, padding = pick(rng, ("max_pool", "avg_pool")), pick(rng, ("valid", "same"))
        return Call(
            name, x=data, window=window, stride=[int(rng.integers(1, k + 1)) for k in window], padding=padding, way="nn"
        )
    call = pooled.draw(rng, POOL_DTYPES, ("value", "pull", "push", "second", "taps", "map"))
    traced = call.args["way"] != "push" and rng.random() < 0.3  # forward mode is eager
    return call.but(traced=True) if traced else call


def _compare_nn(call: Call) -> str:
    """Return how a pool of tf.nn and ours differ; windows are no longer than their axis, strides no longer than windows."""
    x = call.args["x"].array()
    words = {n: call.args[n] for n in ("window", "stride", "padding")}
    found = tensorflow().ask("nn", {"op": call.name, "x": x, **words})
    if isinstance(found, str):
        return found
    size = 64 * (1 + float(np.abs(x).max(initial=0)))  # tf.nn adds in float32, one by one
    for what, want, got in zip(("value", "gradient"), found[:2], found[2:], strict=True):
        loose = np.full(want.shape, 0.0 if call.name == "max_pool" else size)
        if text := adapters.near(got, want, loose, x.dtype):
            return f"tf.nn, {what}: {text}"
    return ""


def draw(rng: Rng) -> Call:
    """Return a call of an op, or of a pool of the adapter."""
    adapter = sys.executable == PYTHON and not _words("--op")
    return draw_pool(rng) if adapter and rng.random() < 0.25 else draw_op(rng)


def compare(call: Call, counts: Counter[str]) -> str:
    """Return how poolgrad and TensorFlow differ."""
    with np.errstate(all="ignore"):
        if call.name in OPS:
            return compare_op(call, counts)
        if call.args.get("way") != "nn":
            return adapters.check(call, ADAPTER, counts)
        counts["tf.nn"] += 1
        return _compare_nn(call)


if __name__ == "__main__":
    if "--note" in sys.argv:  # a worker, whose clock starts once TensorFlow has been imported
        tensorflow().ask("AvgPool", {})
    sys.exit(main("tensorflow", __doc__ or "", draw, compare))
