"""Check one call of poolgrad.torch: a choice of cells, a mean, a norm or an unpooling, its derivatives, and vmap over it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
import torch_brute as brute
from differential import Documented
from torch.func import grad, jvp, vjp, vmap
from torch_calls import UNDUAL, Case
from torch_reasons import REASONS

import poolgrad as pg
import poolgrad.torch as pgt

Tensor = torch.Tensor


def attempt(run: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """Return the result of a call, and its error."""
    try:
        return run(), None
    except Exception as error:
        return None, error


def documented(reason: str) -> str:
    """Return the documented difference of that key, "" for none."""
    return Documented(REASONS[reason]) if reason else ""


def bits(t: Tensor) -> Tensor:
    """Return the tensor with NaN replaced, so that `torch.equal` compares it, and the sign of zeros kept."""
    if not t.dtype.is_floating_point:
        return t
    wide = t.double()
    return torch.where(
        wide.isnan(),
        torch.full_like(wide, 12345.0),
        torch.where(wide == 0, wide.copysign(wide) + torch.signbit(wide) * 1e-300, wide),
    )


def differ(what: str, got: Tensor, wanted: Tensor) -> str:
    """Return a text if two tensors differ in shape, dtype or a bit; all NaN are one."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"{what}: {got.dtype} {list(got.shape)}, wanted {wanted.dtype} {list(wanted.shape)}"
    a, b = bits(got.detach()), bits(wanted.detach())
    if torch.equal(a, b):
        return ""
    at = (a != b).nonzero()[0].tolist()
    return f"{what}: {got[tuple(at)].item()!r} at {at}, wanted {wanted[tuple(at)].item()!r}"


def far(what: str, got: Tensor, wanted: Tensor, bound: Tensor) -> str:
    """Return a text if a tensor is further from another than a bound of the same shape."""
    if got.shape != wanted.shape:
        return f"{what}: shape {list(got.shape)}, wanted {list(wanted.shape)}"
    a, b, c = got.detach().double(), wanted.detach().double(), bound.detach().double()
    fine = (a == b) | (a.isnan() & b.isnan()) | ((a - b).abs() <= c)
    if bool(fine.all()):
        return ""
    at = (~fine).nonzero()[0].tolist()
    return f"{what}: {got[tuple(at)].item()!r} at {at}, wanted {wanted[tuple(at)].item()!r} within {c[tuple(at)].item():.3g}"


def whole_like(t: Tensor, seed: int) -> Tensor:
    """Return small integers in the shape and dtype of a tensor: sums of them are exact."""
    made = torch.from_numpy(np.random.default_rng(seed).integers(-3, 4, tuple(t.shape)))
    return made.to(t.dtype)


def formats(case: Case, y: Tensor) -> str:
    """Return a text if the result shares memory with the input, or loses a channels-last format."""
    x = case.x
    if y.numel() and x.numel() and y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
        return f"{case.name}: the result shares memory with the input"
    kept = case.layout == "channels_last" and case.vmap is None and "_random_samples" not in case.words
    kept = kept and bool(y.numel()) and case.family != "max_unpool" and not x.is_contiguous()
    if kept and not y.movedim(-case.rank - 1, -1).is_contiguous():
        return f"{case.name}: strides {y.stride()} of the result are not channels-last"
    return ""


# ---- derivatives of a linear map


class Linear(NamedTuple):
    """A pool's map near x, its transpose, and how results are compared: close(what, got, wanted, argument, transposed)."""

    forward: Callable[[Tensor], Tensor]
    backward: Callable[[Tensor], Tensor]
    close: Callable[[str, Tensor, Tensor, Tensor, bool], str]


def derivatives(case: Case, linear: Linear, counts: Counter[str], beside_torch: bool) -> str:
    """Check backward, double backward and tangents of a pool that is linear near x: against its map, and against torch's own."""
    words = {"return_indices": False} if case.has_indices else {}
    pool = lambda x: case.run(pgt, x, **words)[0]  # noqa: E731
    x = case.x.detach().requires_grad_()
    y = pool(x)
    if not y.requires_grad:
        return f"{case.name}: the result has no graph"
    g, c, v, w = whole_like(y, 1), whole_like(y, 2), whole_like(x, 3), whole_like(x, 4)
    wanted = {
        "backward": (linear.backward(g), g, True),
        "double backward": (linear.forward(w), w, False),
        "jvp": (linear.forward(v), v, False),
        "jvp of backward": (linear.backward(c), c, True),
    }
    got = {what: run() for what, run in _derived(case, pool, g, c, v, w).items()}
    for what, (value, argument, transposed) in wanted.items():
        counts[what] += 1
        if text := linear.close(f"{case.name}: {what}", got[what], value, argument, transposed):
            return text
    if not beside_torch:
        return ""
    theirs = _derived(case, lambda x: case.run(F, x, **words)[0], g, c, v, w)
    for what, (_, argument, transposed) in wanted.items():
        own, error = attempt(theirs[what])
        if error is None:
            counts[f"{what} beside torch"] += 1
            if text := linear.close(f"{case.name}: {what} beside torch", got[what], own, argument, transposed):
                return text
    return ""


def _derived(case: Case, pool: Any, g: Tensor, c: Tensor, v: Tensor, w: Tensor) -> dict[str, Callable[[], Tensor]]:
    """Return the derivatives of a pool at x, each to be computed by a call."""
    flat = case.x.detach().clone() if case.layout in UNDUAL else case.x.detach()

    def double() -> Tensor:
        x, cotangent = case.x.detach().requires_grad_(), c.clone().requires_grad_()
        (dx,) = torch.autograd.grad(pool(x), x, cotangent, create_graph=True)
        return torch.autograd.grad(dx, cotangent, w)[0]

    def backward() -> Tensor:
        x = case.x.detach().requires_grad_()
        return torch.autograd.grad(pool(x), x, g)[0]

    return {
        "backward": backward,
        "double backward": double,
        "jvp": lambda: jvp(pool, (flat,), (v,))[1],
        "jvp of backward": lambda: jvp(lambda g: vjp(pool, flat)[1](g)[0], (g,), (c,))[1],
    }


# ---- maxima and minima


def chosen(case: Case, got: Any, wanted: Any, counts: Counter[str]) -> str:
    """Compare a choice of cells with torch's, or with the loop's."""
    y = got[0]
    full, where = case.run(pgt, case.x, return_indices=True)
    text = formats(case, y) or differ(f"{case.name}: value with indices", full, y)
    text = text or ("" if where.dtype == torch.int64 else f"{case.name}: indices of {where.dtype}")
    reason = ""
    if case.name == "max_pool1d" and case.layout == "negated":
        wanted, reason = None, "negated"
    if text or wanted is None:
        text = text or _chosen_by_loop(case, y, where)
    else:
        theirs = wanted[1] if len(wanted) > 1 else attempt(lambda: case.run(F, case.x, return_indices=True)[1])[0]
        text = differ(f"{case.name}: value", y, wanted[0])
        if not text and theirs is not None and not torch.equal(where, theirs):
            text = "" if bool(y[where != theirs].isnan().all()) else differ(f"{case.name}: index", where, theirs)
            reason = "nan"
    if not text and case.x.dtype.is_floating_point:
        text = derivatives(case, _picking(case, where), counts, wanted is not None and not reason)
    return text or documented(reason)


def _chosen_by_loop(case: Case, y: Tensor, where: Tensor) -> str:
    axes, least = _axes(case), case.family == "min_pool"
    value, at = _drawn(case) if axes is None else brute.extreme(case.x.detach(), axes, least)
    return differ(f"{case.name}: value", y.detach(), value) or differ(f"{case.name}: index", where, at)


def _picking(case: Case, where: Tensor) -> Linear:
    """Return the map that picks cells by their indices."""
    rank, shape = case.rank, case.x.shape

    def forward(v: Tensor) -> Tensor:
        return v.flatten(-rank).gather(-1, where.flatten(-rank)).reshape(where.shape)

    def backward(g: Tensor) -> Tensor:
        zeros = g.new_zeros((*shape[: len(shape) - rank], prod(shape[len(shape) - rank :])))
        return zeros.scatter_add(-1, where.flatten(-rank), g.flatten(-rank)).reshape(shape)

    return Linear(forward, backward, _same)


def _same(what: str, got: Tensor, wanted: Tensor, argument: Tensor, transposed: bool) -> str:
    """Compare sums of small integers, which are exact; the sign of a zero depends on the order of additions."""
    return differ(what, got + 0, wanted + 0)


def _axes(case: Case) -> list[list[brute.Window]] | None:
    """Return the windows by definition; those of a seed are the ones that poolgrad draws for NumPy."""
    axes = case.windows()
    if axes is not None or case.words.get("kernel_size") is not None:
        return axes
    seed = case.words["seed"]
    drawn = pg.fractional_windows(
        tuple(case.x.shape[case.x.ndim - case.rank :]),
        size=_sizes(case),
        seed=seed if isinstance(seed, tuple) else (seed, 0),
        pseudo_random=case.words.get("pseudo_random", False),
        overlapping=case.words.get("overlapping", False),
    )
    return [[brute.given(a, b) for a, b in axis.pairs()] for axis in drawn]


def _sizes(case: Case) -> tuple[int, ...]:
    """Return how many windows a fractional pool has along each axis."""
    if case.words.get("output_size") is not None:
        return case.each("output_size")
    lengths = case.x.shape[case.x.ndim - case.rank :]
    return tuple(int(n * r) for n, r in zip(lengths, case.each("output_ratio"), strict=True))


def _random_windows(case: Case, sample: Tensor) -> list[list[brute.Window]]:
    """Return torch's windows of one size for one plane: from a sample per axis."""
    lengths = case.x.shape[case.x.ndim - case.rank :]
    sample = sample.flip(-1) if case.rank == 2 else sample
    axes = []
    for u, n, m, k in zip(sample, lengths, _sizes(case), case.each("kernel_size"), strict=True):
        alpha = torch.tensor(float(n - k), dtype=sample.dtype) / max(m - 1, 1)
        starts = [int((i + u) * alpha) - int(u * alpha) for i in range(m - 1)] + [n - k]
        axes.append([brute.given(a, a + k) for a in starts])
    return axes


def _samples(case: Case) -> Tensor:
    """Return the samples of each plane."""
    given = case.words.get("_random_samples")
    planes = prod(case.x.shape[: case.x.ndim - case.rank])
    if given is not None:
        return given.reshape(planes, case.rank)
    return _seeded(case.rank, case.words["seed"]).expand(planes, case.rank)


def _seeded(rank: int, seed: Any) -> Tensor:
    """Return a sample per axis from a seed."""
    pair = seed if isinstance(seed, tuple) else (seed, 0)
    return torch.rand(rank, dtype=torch.float64, generator=torch.Generator().manual_seed(pair[0] ^ pair[1] << 32))


def _drawn(case: Case) -> tuple[Tensor, Tensor]:
    """Return the maxima over windows of one size, plane after plane."""
    if not case.x.numel():
        return case.run(pgt, case.x, return_indices=True)  # type: ignore[return-value]
    lengths = case.x.shape[case.x.ndim - case.rank :]
    leading = case.x.shape[: case.x.ndim - case.rank]
    planes = case.x.detach().reshape(-1, *lengths)
    made = [brute.extreme(p, _random_windows(case, s), False) for p, s in zip(planes, _samples(case), strict=True)]
    y, at = (torch.stack(column) for column in zip(*made, strict=True))
    return y.reshape(*leading, *y.shape[1:]), at.reshape(*leading, *at.shape[1:])


# ---- means

EPS = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8, torch.float32: 2.0**-24, torch.float64: 2.0**-53}
TINY = {torch.float16: 2.0**-24, torch.bfloat16: 2.0**-133, torch.float32: 2.0**-149, torch.float64: 2.0**-1074}


def averaged(case: Case, y: Tensor, wanted: Any, counts: Counter[str]) -> str:
    """Compare means with the loop's, and with torch's."""
    if text := formats(case, y):
        return text
    axes = _axes(case)
    axes = _random_windows(case, _seeded(case.rank, case.words["seed"])) if axes is None else axes
    padded = case.family == "avg_pool" and case.words.get("count_include_pad", True)
    divisor, x = case.words.get("divisor_override"), case.x.detach()
    if not x.dtype.is_floating_point:
        text = differ(f"{case.name}: value", y, brute.mean(x, axes, padded, divisor))
        return text or _wrapped(case, y, wanted)
    linear = _averaging(case, axes, padded, divisor)
    finite = bool((x.double().abs() < torch.finfo(x.dtype).max / 64).all())
    if finite:
        text = linear.close(f"{case.name}: value", y, linear.forward(x), x, False)
    else:
        text = _special(case, y, axes, padded, divisor)
    reason = ""
    if not text and wanted is not None:
        text, reason = _beside_torch(case, y, wanted[0], finite, linear)
    half = x.dtype in (torch.float16, torch.bfloat16)
    return text or derivatives(case, linear, counts, wanted is not None and not half) or documented(reason)


def _averaging(case: Case, axes: list[list[brute.Window]], padded: bool, divisor: Any) -> Linear:
    """Return the map that takes means, as a dense matrix of float64."""
    x, rank = case.x.detach(), case.rank
    dense = brute.matrix(x, axes, padded, divisor)
    lengths, sizes = x.shape[x.ndim - rank :], [len(a) for a in axes]

    def apply(v: Tensor, m: Tensor, shape: Any) -> Tensor:
        return (v.detach().double().flatten(-rank) @ m).reshape(*v.shape[: v.ndim - rank], *shape)

    def close(what: str, got: Tensor, wanted: Tensor, argument: Tensor, transposed: bool) -> str:
        if got.dtype != x.dtype:
            return f"{what}: {got.dtype}, wanted {x.dtype}"
        m, shape = (dense, lengths) if transposed else (dense.T, sizes)
        terms = dense.shape[1] if x.dtype in (torch.float32, torch.float64) else 2  # halves round once
        bound = apply(argument.abs(), m.abs(), shape) * EPS[x.dtype] * (terms + 4) + 2 * TINY[x.dtype]
        return far(what, got, wanted.to(x.dtype), bound)

    return Linear(lambda v: apply(v, dense.T, sizes), lambda g: apply(g, dense, lengths), close)


def _special(case: Case, y: Tensor, axes: Any, padded: bool, divisor: Any) -> str:
    """Compare windows with NaN and infinities; sums near the largest number may overflow in any order."""
    exact = brute.mean(case.x.detach(), axes, padded, divisor).to(case.x.dtype).double()
    largest = brute.mean(case.x.detach().abs(), axes, False, 1).double()
    certain = (largest.isnan()) | (largest.isinf()) | (largest < torch.finfo(case.x.dtype).max / 4)
    exact, got = torch.where(certain, exact, 0.0), torch.where(certain, y.detach().double(), 0.0)
    bound = torch.where(certain & largest.isfinite(), largest, 0.0) * EPS[case.x.dtype] * 64 + 2 * TINY[case.x.dtype]
    return far(f"{case.name}: value", got, exact, bound)


def _beside_torch(case: Case, y: Tensor, own: Tensor, finite: bool, linear: Linear) -> tuple[str, str]:
    """Compare with torch's means; return a text, or the reason for which they may differ."""
    if y.dtype != own.dtype or y.shape != own.shape:
        return f"{case.name}: {y.dtype} {list(y.shape)}, torch has {own.dtype} {list(own.shape)}", ""
    if case.x.dtype in (torch.float16, torch.bfloat16):
        return "", "halves" if differ("", y, own) else ""
    if finite:
        return linear.close(f"{case.name}: value beside torch", y, own, case.x.detach(), False), ""
    a, b = y.detach().double(), own.detach().double()
    fine = (a == b) | (a.isnan() & b.isnan()) | ((a - b).abs() <= 1e-3 * b.abs())
    return "", "" if bool(fine.all()) else "overflow"


def _wrapped(case: Case, y: Tensor, wanted: Any) -> str:
    """Compare integer means with torch's, which wrap."""
    if wanted is None or torch.equal(y, wanted[0]):
        return ""
    most = max((abs(int(v)) for v in case.x.flatten().tolist()), default=0)
    return documented("wrapped") if most > 2**40 else differ(f"{case.name}: value beside torch", y, wanted[0])


# ---- norms


def normed(case: Case, y: Tensor, wanted: Any, counts: Counter[str]) -> str:
    """Compare p-norms and their derivatives with closed forms, and with torch's where that returns norms."""
    p, axes, x = float(case.words["norm_type"]), case.windows(), case.x.detach()
    assert axes is not None
    total = brute.mean(x.double().abs().pow(p), axes, False, 1)
    exact = total.pow(1 / p)
    if text := formats(case, y):
        return text
    if y.dtype != x.dtype or y.shape != exact.shape:
        return f"{case.name}: {y.dtype} {list(y.shape)}, wanted {x.dtype} {list(exact.shape)}"
    if not _in_range(x, total, p):
        return ""
    bound = torch.where(exact.isfinite(), exact, 0.0) * EPS[x.dtype] * 64 + TINY[x.dtype]
    edge = exact.isfinite() & (exact > 0.98 * torch.finfo(x.dtype).max)  # rounds to a number or to infinity
    if text := far(f"{case.name}: value", torch.where(edge, 0.0, y.double()), torch.where(edge, 0.0, exact), bound):
        return text
    signed = bool((x < 0).any()) and p not in (2.0, 4.0)
    reason = "lp sign" if signed else "lp ceil" if case.words.get("ceil_mode") else ""
    beside = wanted is not None and not reason
    if beside and (text := far(f"{case.name}: value beside torch", y, wanted[0], bound * 4)):
        if x.dtype not in (torch.float16, torch.bfloat16):
            return text
        text, reason = "", "halves"
    if bool(x.isfinite().all()):
        text = _norm_derivatives(case, total, p, counts) or (_norm_beside_torch(case, total, counts) if beside else "")
    return text or documented(reason)


def _in_range(x: Tensor, total: Tensor, p: float) -> bool:
    """Return whether no power and no sum of powers leaves the numbers that float32, or the dtype, holds in full."""
    info = torch.finfo(torch.float64 if x.dtype == torch.float64 else torch.float32)
    powers, cells = x.double().abs().pow(p), x.double()
    fine = (powers == 0) | ~cells.isfinite() | ((powers < info.max / 1e6) & (powers > info.tiny * 1e3))
    sums = (total == 0) | ~total.isfinite() | ((total < info.max / 4) & (total > info.tiny * 1e3))
    return bool(fine.all()) and bool(sums.all())


def _norm_derivatives(case: Case, total: Tensor, p: float, counts: Counter[str]) -> str:
    """Compare backward and tangent with the closed form, in float64: dy = sum(sign(x) abs(x)^(p-1) dx) total^(1/p-1)."""
    axes, x = case.windows(), case.x.detach().double()
    assert axes is not None
    dense = brute.matrix(x, axes, False, 1)
    rank, lengths = case.rank, x.shape[x.ndim - case.rank :]
    scale = torch.where(total == 0, 0.0, total.pow(1 / p - 1))
    inner = x.sign() * x.abs().pow(p - 1)
    leaf = x.clone().requires_grad_()
    y = case.run(pgt, leaf)[0]
    g, v = whole_like(y, 1), whole_like(x, 2)
    (dx,) = torch.autograd.grad(y, leaf, g)
    want = inner * ((g * scale).flatten(-rank) @ dense).reshape(*x.shape[: x.ndim - rank], *lengths)
    counts["backward"] += 1
    size = inner.abs() * ((g.abs() * scale).flatten(-rank) @ dense).reshape(want.shape)
    text = far(f"{case.name}: backward", dx, want, size * 1e-12)
    _, dy = jvp(lambda x: case.run(pgt, x)[0], (x.clone() if case.layout in UNDUAL else x,), (v,))
    counts["jvp"] += 1
    tangent = ((inner * v).flatten(-rank) @ dense.T).reshape(total.shape) * scale
    size = ((inner * v).abs().flatten(-rank) @ dense.T).reshape(total.shape) * scale
    return text or far(f"{case.name}: jvp", dy, tangent, size * 1e-12)


def _norm_beside_torch(case: Case, total: Tensor, counts: Counter[str]) -> str:
    """Compare backward with torch's own, in float64."""
    x = case.x.detach().double().requires_grad_()
    y, own = case.run(pgt, x)[0], case.run(F, x)[0]
    g = whole_like(y, 1)
    dx, theirs = torch.autograd.grad(y, x, g)[0], torch.autograd.grad(own, x, g)[0]
    counts["backward beside torch"] += 1
    if bool((total == 0).any()):
        return "" if torch.equal(dx, theirs) else documented("lp zero")
    if float(case.words["norm_type"]) == 1 and bool((x == 0).any()):
        return "" if torch.equal(dx, theirs) else documented("lp kink")
    return far(f"{case.name}: backward beside torch", dx, theirs, 1e-9 * (1 + theirs.abs()))


# ---- unpooling


def unpooled(case: Case, y: Tensor, wanted: Any, counts: Counter[str]) -> str:
    """Compare an unpooling with the loop's, and with torch's where no index repeats."""
    x, where, rank = case.x.detach(), case.words["indices"].long(), case.rank
    sizes, reduce = tuple(y.shape[y.ndim - rank :]), case.words.get("reduce", "sum")
    wide = x.double() if x.dtype.is_floating_point else x
    text = formats(case, y) or _added(case, y, brute.unpool(wide, where, rank, sizes, reduce))
    rows = where.reshape(prod(where.shape[: where.ndim - rank]), prod(where.shape[where.ndim - rank :])).tolist()
    repeats = any(len(set(row)) < len(row) for row in rows)
    if not text and wanted is not None and not repeats:
        text = differ(f"{case.name}: value beside torch", y, wanted[0])
    if text or not x.dtype.is_floating_point:
        return text
    last = [[reduce == "sum" or v not in row[i + 1 :] for i, v in enumerate(row)] for row in rows]
    keep = torch.tensor(last, dtype=torch.bool).reshape(where.shape)

    def backward(g: Tensor) -> Tensor:
        picked = g.flatten(-rank).gather(-1, where.flatten(-rank)).reshape(where.shape)
        return torch.where(keep, picked, torch.zeros_like(picked))

    linear = Linear(lambda v: brute.unpool(v, where, rank, sizes, reduce), backward, _same)
    text = derivatives(case, linear, counts, wanted is not None and not repeats)
    return text or documented("repeats" if repeats else "")


def _added(case: Case, y: Tensor, exact: Tensor) -> str:
    """Compare with exact sums: integers to the bit, floats within a rounding for each value that was added."""
    if not case.x.dtype.is_floating_point:
        return differ(f"{case.name}: value", y, exact.to(y.dtype))
    scale = float(case.x.detach().double().nan_to_num(0, 0, 0).abs().max()) if case.x.numel() else 0.0
    several = case.x.numel() if case.words.get("reduce", "sum") == "sum" else 0
    bound = (torch.where(exact.isfinite(), exact, 0.0).abs() + several * scale) * EPS[y.dtype]
    return far(f"{case.name}: value", y, exact.to(y.dtype), bound)


# ---- vmap


def mapped(case: Case, beside_torch: bool) -> str:
    """Compare vmap over an axis with a loop over it: values, indices, gradients and tangents; values with torch's vmap too."""
    at, x = case.vmap, case.whole.detach()
    x = x.clone() if case.layout in UNDUAL else x
    rows, words = x.unbind(at), {"return_indices": False} if case.has_indices else {}
    pool = lambda x: case.run(pgt, x, **words)[0]  # noqa: E731
    if (
        attempt(lambda: [pool(row) for row in rows])[1] is not None
    ):  # a mean that the dtype of another row does not hold
        error = attempt(lambda: vmap(pool, in_dims=at)(x))[1]
        return "" if error is not None else f"{case.name}: vmap over {at} takes what a loop refuses"
    for more in (words, {"return_indices": True})[: 1 + case.has_indices]:
        got = vmap(lambda x, more=more: case.run(pgt, x, **more), in_dims=at)(x)
        wanted = [torch.stack(column) for column in zip(*(case.run(pgt, row, **more) for row in rows), strict=True)]
        for i, (a, b) in enumerate(zip(got, wanted, strict=True)):
            if text := _alike(case, f"vmap over {at}, result {i}", a, b):
                return text
    if beside_torch and case.has_indices and not bool(x.double().isnan().any()):
        own, error = attempt(lambda: vmap(lambda x: case.run(F, x, **words)[0], in_dims=at)(x))
        if error is None and (text := _alike(case, f"vmap over {at} beside torch", vmap(pool, in_dims=at)(x), own)):
            return text
    if not x.dtype.is_floating_point or not bool(x.double().isfinite().all()):
        return ""
    weights, v = whole_like(pool(rows[0]), 5), whole_like(x, 6)
    slope, push = grad(lambda x: (pool(x) * weights).sum()), lambda x, v: jvp(pool, (x,), (v,))[1]
    tangents = torch.stack([push(row, d) for row, d in zip(rows, v.unbind(at), strict=True)])
    return (
        _alike(case, f"vmap of grad over {at}", vmap(slope, in_dims=at)(x), torch.stack([slope(r) for r in rows]))
        or _alike(case, f"jvp of vmap over {at}", jvp(vmap(pool, in_dims=at), (x,), (v,))[1], tangents)
        or _alike(case, f"vmap of jvp over {at}", vmap(push, in_dims=at)(x, v), tangents)
    )


def _alike(case: Case, what: str, a: Tensor, b: Tensor) -> str:
    """Compare to the bit; norms within some roundings, because torch has several loops for powers."""
    if case.family != "lp_pool":
        return differ(f"{case.name}: {what}", a, b)
    return far(f"{case.name}: {what}", a, b, 32 * EPS[b.dtype] * b.detach().double().abs().nan_to_num(0, 0, 0))
