"""Compare a framework's pools with their meaning: values, both derivatives, the second order, maps and taps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import ml_dtypes
import numpy as np
from differential import Call
from pooled import Array, Meaning, Refused, axes_of, folds, meaning

REFUSALS = (ValueError, TypeError, NotImplementedError, MemoryError, RuntimeError)


class Runner(Protocol):
    """A framework: its pools on NumPy arrays. Each function returns NumPy arrays, or raises the pool's error."""

    def value(self, call: Call, x: Array, traced: bool) -> Array:
        """Return the pooled array."""

    def pull(self, call: Call, x: Array, g: Array, traced: bool) -> Array:
        """Return the gradient of the product of the pooled array and g."""

    def push(self, call: Call, x: Array, v: Array, traced: bool) -> Array:
        """Return the derivative along v."""

    def second(self, call: Call, x: Array, h: Array, v: Array, traced: bool) -> Array:
        """Return the derivative along v of the gradient of sum(h * y ** 2), y being the pooled array."""

    def mapped(self, call: Call, xs: Array, axis: int, grad: bool) -> Array:
        """Return the pools of the arrays along an axis of xs, or the gradients of their sums, stacked along axis 0."""

    def taps(self, call: Call, x: Array, traced: bool) -> list[Array]:
        """Return maxima, their flat positions, and the maxima put back."""

    def dtype(self, op: str, dtype: Any) -> Any:
        """Return the dtype of the pooled array: NumPy's, unless the framework has another."""
        if np.dtype(dtype).kind not in "iub" or "max" in op or "min" in op:
            return np.dtype(dtype).newbyteorder("=")
        return np.dtype("float64" if "avg" in op else "uint64" if dtype == np.uint64 else "int64")


def words(call: Call) -> dict[str, Any]:
    """Return the arguments of the pool except x."""
    return {n: v for n, v in call.args.items() if n not in ("x", "way", "traced", "x64", "route")}


def near(got: Array, want: Array, slack: Array, dtype: Any) -> str:
    """Return a text that tells where numbers are further apart than the slack, in units of the type, or ""."""
    if got.shape != want.shape or got.dtype != dtype:
        return f"got {got.dtype.name}{list(got.shape)}, wanted {np.dtype(dtype).name}{list(want.shape)}"
    if np.dtype(dtype).kind in "iub":
        bad = np.array([int(a) != int(b) for a, b in zip(got.reshape(-1), want.reshape(-1), strict=True)]).reshape(
            got.shape
        )
    else:
        eps = float(ml_dtypes.finfo(dtype).eps)
        a, b = got.astype(np.float64), want.astype(np.float64)
        if want.dtype == object:  # these numbers are not rounded yet
            slack = np.maximum(slack, np.abs(b))
        with np.errstate(all="ignore"):
            bad = ~((a == b) | ((a != a) & (b != b)) | (np.abs(a - b) <= eps * slack))
    if not bad.any():
        return ""
    at = tuple(map(int, np.argwhere(bad)[0])) if bad.ndim else ()
    return f"at {list(at)} got {got[at]!r}, wanted {want[at]!r} ({int(bad.sum())} of {bad.size})"


def _fits(y: Array, dtype: Any) -> bool:
    limits = np.iinfo(dtype)
    return all(limits.min <= int(v) <= limits.max for v in y.reshape(-1))


def small(seed: int, shape: tuple[int, ...], dtype: Any) -> Array:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


def _squeezed(call: Call, y: Array) -> Array:
    return y.squeeze(axes_of(call)) if call.args.get("keepdims") is False else y


@np.errstate(all="ignore")
def check(call: Call, runner: Runner, counts: Counter[str]) -> str:
    """Return how the framework's answer differs from the meaning of the call."""
    x, way, traced = call.args["x"].array(), call.args.get("way", "value"), call.args.get("traced", False)
    if way == "map":
        return _check_map(call, runner, counts)
    try:
        means = meaning(call, x)
    except Refused:
        return _refusal(call, lambda: runner.value(call, x, traced), counts)
    counts[way] += 1
    y = _squeezed(call, means.y)
    dtype = runner.dtype(call.name, x.dtype)
    if np.dtype(dtype).kind in "iu" and not _fits(y, dtype):
        return _refusal(call, lambda: runner.value(call, x, traced), counts)
    adds = folds(call.name) and x.dtype.kind not in "iub"
    x64 = np.abs(np.nan_to_num(x.astype(np.float64), posinf=0, neginf=0)) if adds else np.zeros(x.shape)
    scale = (np.abs(means.matrix) @ x64.reshape(-1)).reshape(y.shape) * means.terms if adds else np.zeros(y.shape)
    if call.name == "lp_pool":
        scale = 64 * np.abs(y.astype(np.float64)) + 1e-3
    if text := near(runner.value(call, x, traced), y, scale, dtype):
        return f"value: {text}"
    if x.dtype.kind in "iub" or call.name == "lp_pool" or way == "value":
        return ""
    return _check_way(call, runner, means, x, way, traced)


def _check_way(call: Call, runner: Runner, means: Meaning, x: Array, way: str, traced: bool) -> str:
    m, shape, slack = means.matrix, _squeezed(call, means.y).shape, means.terms + 4
    g, v = small(1, shape, x.dtype), small(2, x.shape, x.dtype)
    if way == "pull":
        want = (m.T @ g.reshape(-1).astype(np.float64)).reshape(x.shape)
        scale = (np.abs(m).T @ np.abs(g.reshape(-1).astype(np.float64))).reshape(x.shape)
        return _told("gradient", near(runner.pull(call, x, g, traced), want, slack * scale, x.dtype))
    if way == "push":
        want = (m @ v.reshape(-1).astype(np.float64)).reshape(shape)
        if call.args.get("nan") == "ignore" and folds(call.name):  # the derivative of a NaN mean is NaN
            want = np.where(np.reshape(means.y != means.y, shape), np.nan, want)
        scale = (np.abs(m) @ np.abs(v.reshape(-1).astype(np.float64))).reshape(shape)
        return _told("tangent", near(runner.push(call, x, v, traced), want, slack * scale, x.dtype))
    if way == "second" and x.dtype.itemsize > 2 and np.isfinite(x.astype(np.float64)).all():
        mv = m @ v.reshape(-1).astype(np.float64)
        want = (m.T @ (2 * g.reshape(-1) * mv)).reshape(x.shape)
        scale = (np.abs(m).T @ (2 * np.abs(g.reshape(-1)) * (np.abs(m) @ np.abs(v.reshape(-1))))).reshape(x.shape)
        return _told("second order", near(runner.second(call, x, g, v, traced), want, 4 * slack * scale, x.dtype))
    if way == "taps" and _one_tap(call):
        return _check_taps(call, runner, means, x, traced)
    return ""


def _one_tap(call: Call) -> bool:
    return (
        not folds(call.name)
        and call.args.get("ties", "first") in ("first", "last")
        and call.name in ("max_pool", "min_pool")
    )


def _check_taps(call: Call, runner: Runner, means: Meaning, x: Array, traced: bool) -> str:
    y, flat, back = runner.taps(call, x, traced)
    shape = means.y.shape
    want = np.zeros(x.size, x.dtype)
    with np.errstate(all="ignore"):
        for row, c in enumerate(means.chosen):
            want[c] += means.y.reshape(-1)[row]
    if np.reshape(flat, -1).tolist() != means.chosen:
        return f"positions: got {np.reshape(flat, -1).tolist()[:20]}, wanted {means.chosen[:20]}"
    loose = np.full(
        x.shape, 8 * float(np.abs(np.nan_to_num(want.astype(np.float64), posinf=0, neginf=0)).max(initial=0))
    )
    return _told("maxima", near(y, means.y, np.zeros(shape), x.dtype)) or _told(
        "put back", near(back, want.reshape(x.shape), loose, x.dtype)
    )


def _check_map(call: Call, runner: Runner, counts: Counter[str]) -> str:
    data = call.args["x"]
    axis = data.seed % (len(data.shape) + 1)
    shape = (*data.shape[:axis], 2, *data.shape[axis:])
    xs = replace(data, shape=shape).array()
    parts = [np.ascontiguousarray(xs.take(i, axis)) for i in range(2)]
    try:
        means = [meaning(call, part) for part in parts]
    except Refused:
        return ""
    counts["map"] += 1
    dtype = runner.dtype(call.name, xs.dtype)
    if np.dtype(dtype).kind in "iu" and not all(_fits(m.y, dtype) for m in means):
        return ""
    real = xs.dtype.kind not in "iub" and call.name != "lp_pool"
    want = np.stack([_squeezed(call, m.y) for m in means])
    loose = np.full(want.shape, 1e3 if folds(call.name) else 0.0) * (1 + np.abs(np.nan_to_num(want.astype(np.float64))))
    if text := near(runner.mapped(call, xs, axis, False), want, loose, dtype):
        return f"map over axis {axis}: {text}"
    if not real:
        return ""
    sums = np.stack([m.matrix.sum(0).reshape(data.shape) for m in means])
    return _told(
        f"gradients mapped over axis {axis}", near(runner.mapped(call, xs, axis, True), sums, 64 * (1 + sums), xs.dtype)
    )


def _told(what: str, text: str) -> str:
    return f"{what}: {text}" if text else ""


def _refusal(call: Call, run: Callable[[], Any], counts: Counter[str]) -> str:
    try:
        got = run()
    except REFUSALS as error:
        counts["refused"] += 1
        return "" if f"{call.name}: " in str(error) else f"the refusal does not name the pool: {error}"
    return f"a call that has no result gave {np.asarray(got).reshape(-1)[:8].tolist()}"
