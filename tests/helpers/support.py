"""Tools for every test: cases, their arguments, the three ways to run an op, and comparison to the bit."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from dataclasses import dataclass, fields
from math import prod
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

import poolgrad
from poolgrad import raw_ops, reference
from poolgrad._kernels import native
from poolgrad._ops.table import OPS, Kind, Op
from poolgrad.reference import Philox, sequence
from poolgrad.windows import Plan

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SHARED = ROOT.parent / "shared"
PACKAGE = Path(poolgrad.__file__).resolve().parent

Shape = tuple[int, ...]


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the NumPy type of a name in the table, or in a corpus."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


# ---- one call, in a line


@dataclass(frozen=True)
class Case:
    """A call of an op, small enough to paste. Shapes are channels-last whatever the layout."""

    op: str
    dtype: str = "float32"
    x: Shape = (1, 5, 5, 3)
    k: Shape = (2, 2)
    s: Shape = ()  # k if empty
    pad: Any = "VALID"  # or SAME, or a pair per pooled dimension for EXPLICIT
    depth: int = 1  # window over channels; k is then ignored
    first: bool = False  # channels first
    ratio: Shape | tuple[float, ...] = (1.5, 1.5)
    overlapping: bool = False
    pseudo: bool = False
    batched: bool = False  # positions count from the first image
    index: str = "int64"
    data: str = "ties"

    def __repr__(self) -> str:
        given = [(f.name, getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) != f.default]
        return f"Case({', '.join(f'{name}={value!r}' for name, value in given)})"

    @property
    def row(self) -> Op:
        """Return the op's row in the table."""
        return OPS[self.op]

    @property
    def window(self) -> Shape:
        """Return the spatial window."""
        return (1,) * self.row.spatial if self.depth > 1 else self.k

    @property
    def stride(self) -> Shape:
        """Return the spatial stride."""
        return self.s if self.s and self.depth == 1 else self.window

    def order(self, values: Any) -> tuple[Any, ...]:
        """Return a channels-last list in the order of the layout."""
        n, *space, c = values
        return (n, c, *space) if self.first else (n, *space, c)

    @property
    def drawn(self) -> list[np.ndarray]:
        """Return the pooling sequences of a fractional case."""
        source = Philox(11, 7)
        return [sequence(n, int(n / r), self.pseudo, source) for n, r in zip(self.x[1:3], self.ratio, strict=True)]

    @property
    def source(self) -> Shape:
        """Return the shape of the input."""
        return self.order(self.x)

    @property
    def dest(self) -> Shape:
        """Return the shape of the output, by the formulas of the ops' definition."""
        n, *space, c = self.x
        if self.row.family[0] == "f":
            return n, *(len(s) - 1 for s in self.drawn), c
        pads = self.pad if isinstance(self.pad, tuple) else ((0, 0),) * len(space)
        sizes = [
            out_length(a, k, s, self.pad if self.pad == "SAME" else "VALID", p)
            for a, k, s, p in zip(space, self.window, self.stride, pads, strict=True)
        ]
        return self.order((n, *sizes, c // self.depth))


def out_length(n: int, k: int, s: int, padding: str, pads: tuple[int, int] = (0, 0)) -> int:
    """Return the number of cells of the result along an axis; division truncates toward zero."""
    if padding == "SAME":
        return -(-n // s)
    return int((n + sum(pads) - k + s) / s)


# ---- data


def rng_of(text: str) -> np.random.Generator:
    """Return a generator that a text determines."""
    return np.random.default_rng(zlib.crc32(text.encode()))


def draw(rng: np.random.Generator, dtype: str, shape: Shape, data: str) -> np.ndarray:
    """Elements of a kind: `ties` small integers, `wild` anything the type holds, `plain` no special number, `bits` any bits, `distinct` a permutation.

    `extreme` takes the limits of the type and their neighbours, `nan` small integers and, in floating types, NaN.
    """
    kind, size = dtype_of(dtype), prod(shape)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(kind)
    if data == "extreme":
        return rng.choice(_limits(kind), shape)
    if data == "nan":
        values = draw(rng, dtype, shape, "ties")
        return values if kind.kind in "iu" else np.where(rng.random(shape) < 0.25, np.array(np.nan, kind), values)
    if data == "bits":
        return rng.integers(0, 256, (*shape, kind.itemsize), np.uint8).reshape(-1).view(kind).reshape(shape)
    if data == "distinct":
        return rng.permutation(size).astype(kind).reshape(shape)
    whole = kind.kind in "iu"
    if data == "ties":
        return (rng.integers(-3, 4, shape) + (3 if kind.kind == "u" else 0)).astype(kind)
    if whole:
        info = np.iinfo(kind)
        return rng.integers(info.min, info.max, shape, kind, endpoint=True)
    info = ml_dtypes.finfo(kind)
    special = [
        np.nan,
        np.inf,
        -np.inf,
        -0.0,
        0.0,
        info.smallest_subnormal,
        -info.smallest_subnormal,
        info.min,
        info.max,
    ]
    values = np.asarray(rng.standard_normal(shape) * 10.0 ** rng.integers(-2, 3, shape)).astype(kind)
    hit = rng.random(shape) < (0.05 if data == "wild" else 0)
    values[hit] = rng.choice(np.array(special, kind), int(hit.sum()))
    return values


def _limits(kind: np.dtype[Any]) -> np.ndarray:
    """Return the least and largest values of a type and their neighbours, and the numbers around 0."""
    if kind.kind in "iu":
        info = np.iinfo(kind)
        return np.array([info.min, info.min + 1, info.max - 1, info.max, 0, 1], kind)
    real = ml_dtypes.finfo(kind)
    return np.array([real.min, real.max, real.smallest_subnormal, real.smallest_normal, 0, 1, -1], kind)


def arguments(case: Case) -> dict[str, Any]:
    """Return all arguments of the op, valid and determined by the case."""
    rng = rng_of(repr(case))
    given: dict[str, Any] = {}
    for p in case.row.params:
        value = _argument(case, p, given, rng)
        if value is not None:
            given[p.name] = value
    return given


def _argument(case: Case, p: Any, given: dict[str, Any], rng: np.random.Generator) -> Any:
    sizes = {"ksize": (1, *case.window, case.depth), "strides": (1, *case.stride, case.depth)}
    flags = {
        "overlapping": case.overlapping,
        "pseudo_random": case.pseudo,
        "deterministic": True,
        "include_batch_in_index": case.batched,
    }
    explicit = isinstance(case.pad, tuple)
    match p.kind:
        case Kind.SOURCE:
            return draw(rng, case.dtype, case.source, case.data)
        case Kind.DEST:
            return pooled(case, given, rng) if p.name == "orig_output" else draw(rng, case.dtype, case.dest, case.data)
        case Kind.INDEX:
            return rng.integers(0, prod(case.source[0 if case.batched else 1 :]), case.dest).astype(case.index)
        case Kind.SHAPE:
            return np.array(case.source, p.dtype)
        case Kind.SEQUENCE:
            return case.drawn[p.name.startswith("col")]
        case Kind.RANGE:
            return np.float32({"min_input": -1.5, "max_input": 2.25}[p.name])
        case Kind.SIZES | Kind.SIZES_TENSOR:
            value = list(case.order(sizes[p.name]))
            return value if p.kind is Kind.SIZES else np.array(value, np.int32)
        case Kind.PADDING:
            return "EXPLICIT" if explicit else case.pad
        case Kind.PADS:
            return [e for pair in case.order(((0, 0), *case.pad, (0, 0))) for e in pair] if explicit else None
        case Kind.FORMAT:
            return case.row.formats[case.first]
        case Kind.RATIO:
            return [1.0, *case.ratio, 1.0]
        case Kind.FLAG:
            return flags[p.name]
        case Kind.SEED:
            return {"seed": 11, "seed2": 7}[p.name]
        case Kind.INDEX_TYPE:
            return case.index
    return None


def pooled(case: Case, given: dict[str, Any], rng: np.random.Generator) -> np.ndarray:
    """Return the maxima of orig_input; for the ops that look values up, some that are not there."""
    name = {"f": "FractionalMaxPool"}.get(case.row.family[0], "MaxPool" if case.row.spatial == 2 else "MaxPool3D")
    forward = Case(**{**{f.name: getattr(case, f.name) for f in fields(case)}, "op": name})
    args = {**arguments(forward), "value" if name[0] == "F" else "input": given["orig_input"]}
    y = outputs(FAST[name](**args))[0]
    if case.row.family[0] == "f":
        return y
    y = y.copy()
    astray = rng.random(y.shape) < 0.1
    y[astray] = draw(rng, case.dtype, (int(astray.sum()),), case.data)
    return y


# ---- three ways to run an op


def plain_twin(plan: Plan) -> Plan:
    """Return a plan of the same windows for the generic path. Calls share plans: the fast paths must keep theirs."""
    twin: Plan | None = plan.__dict__.get("_plain_twin")
    if twin is None:
        twin = Plan(plan.source, {d: axis for d, axis in enumerate(plan.by_dimension) if axis is not None})
        native.native(twin, plain=True)
        object.__setattr__(plan, "_plain_twin", twin)
    return twin


def plain_verbs() -> SimpleNamespace:
    """Return the native verbs on the core's generic path."""

    def generic(verb: Any) -> Any:
        return lambda plan, *args: verb(plain_twin(plan), *args)

    names = ("fold", "spread", "near", "select", "argmax", "route", "recall", "scatter", "gather")
    names += ("choose", "pick", "place")
    return SimpleNamespace(**{name: generic(getattr(native, name)) for name in names})


def _all(implementation: ModuleType | SimpleNamespace) -> dict[str, Any]:
    return {name: raw_ops.make(op, implementation) for name, op in OPS.items()}


FAST = {name: getattr(raw_ops, name) for name in OPS}
PLAIN = _all(plain_verbs())
SLOW = _all(reference)


def outputs(result: Any) -> list[np.ndarray]:
    """Return the results of an op as a list."""
    return list(result) if isinstance(result, tuple) else [result]


# ---- comparison


def same_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return for each element True if the bits are the same; a NaN is a NaN whatever its payload."""
    raw = f"u{a.dtype.itemsize}"
    equal = np.ascontiguousarray(a).view(raw).reshape(a.shape) == np.ascontiguousarray(b).view(raw).reshape(b.shape)
    return equal if a.dtype.kind in "iu" else equal | ((a != a) & (b != b))


def difference(got: Any, want: Any) -> str:
    """Return a text that tells where two results differ, or ""."""
    a, b = outputs(got), outputs(want)
    if len(a) != len(b):
        return f"{len(a)} results, wanted {len(b)}"
    for i, (p, q) in enumerate(zip(a, b, strict=True)):
        if p.shape != q.shape or p.dtype != q.dtype:
            return f"result {i} is {p.dtype.name}{list(p.shape)}, wanted {q.dtype.name}{list(q.shape)}"
        bad = ~same_bits(p, q)
        if bad.any():
            at = tuple(map(int, np.argwhere(bad)[0])) if bad.ndim else ()
            return f"result {i}, {int(bad.sum())} of {bad.size} cells; at {list(at)} got {p[at]!r}, wanted {q[at]!r}"
    return ""


def wrong(case: Case) -> list[str]:
    """Compare the fast and generic kernels with the reference; return a text for each that differs."""
    args = arguments(case)
    want = SLOW[case.op](**args)
    found = ((name, difference(run[case.op](**args), want)) for name, run in (("fast", FAST), ("generic", PLAIN)))
    return [f"{name} path: {text}\n    wrong({case!r})" for name, text in found if text]


def none_wrong(cases: list[Case]) -> None:
    """Fail with one line per wrong case, ready for `python -i tests/helpers/support.py`."""
    found = [line for case in cases for line in wrong(case)]
    assert not found, f"{len(found)} wrong in {len(cases)} cases\n" + "\n".join(found[:6])


# ---- other processes


def python(*args: str, timeout: float = 300, **env: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, with this package and these helpers on its path."""
    path = os.pathsep.join([str(PACKAGE.parent), str(HERE)])
    return subprocess.run(
        [sys.executable, *args],
        env={**os.environ, "PYTHONPATH": path, **env},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def rss() -> int:
    """Return the bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
