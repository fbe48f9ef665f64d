"""A table of calls of every function of poolgrad.torch, for the tests of derivatives, layouts and compilation."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

import poolgrad.torch as pgt

LENGTHS = {1: (9,), 2: (5, 6), 3: (3, 4, 4)}


class Case(NamedTuple):
    """A function with its arguments; `like` is torch's function, where torch computes the same."""

    name: str
    rank: int
    pool: Callable[..., Any]
    like: Callable[..., Any] | None

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of a batch of two with two channels."""
        return (2, 2, *LENGTHS[self.rank])


def _unpool(function: Callable[..., Any], rank: int) -> Callable[..., Any]:
    """Return unpooling as a function of one tensor, with fixed indices."""

    def run(x: torch.Tensor) -> torch.Tensor:
        count = x.shape[-rank:].numel()
        places = (
            torch.arange(x.numel()).reshape(x.shape) * 7 % count
        )  # 7 has no divisor in common with the product of the lengths
        return function(x, places, 2, output_size=tuple(2 * n for n in x.shape[-rank:]))

    return run


FAMILIES: dict[str, tuple[dict[str, Any], bool]] = {
    "max_pool": ({"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}, True),
    "min_pool": ({"kernel_size": 2, "stride": 1, "padding": "same"}, False),
    "avg_pool": ({"kernel_size": 3, "stride": 2, "padding": 1}, True),
    "lp_pool": ({"norm_type": 2, "kernel_size": 2}, True),
    "adaptive_max_pool": ({"output_size": 2}, True),
    "adaptive_avg_pool": ({"output_size": 3}, True),
    "fractional_max_pool": ({"output_ratio": 0.67, "seed": (3, 4), "overlapping": True}, False),
    "fractional_avg_pool": ({"output_ratio": 0.67, "seed": (3, 4)}, False),
    "max_unpool": ({}, True),
}


def _case(family: str, rank: int) -> Case:
    words, known = FAMILIES[family]
    ours, own = getattr(pgt, f"{family}{rank}d"), getattr(torch.nn.functional, f"{family}{rank}d", None)
    if family == "max_unpool":
        return Case(f"{family}{rank}d", rank, _unpool(ours, rank), _unpool(own, rank))
    like = (lambda x: own(x, **words)) if known and own is not None else None
    return Case(f"{family}{rank}d", rank, lambda x: ours(x, **words), like)


CASES = [_case(family, rank) for family in FAMILIES for rank in (1, 2, 3)]
NAMES = [case.name for case in CASES]


def distinct(shape: tuple[int, ...], dtype: torch.dtype = torch.float64, seed: int = 0) -> torch.Tensor:
    """Return different numbers in random order, none near 0 or another: no ties, and room for finite differences."""
    size = torch.Size(shape).numel()
    order = torch.randperm(size, generator=torch.Generator().manual_seed(seed))
    return ((order - size // 2 + 0.5) / 8).reshape(shape).to(dtype)


def cubes(case: Case) -> Callable[..., Any]:
    """Return the sum of the cubes of a pool as a function of its input."""
    return lambda x: (case.pool(x) ** 3).sum()


def small(case: Case) -> torch.Tensor:
    """Return an input of one plane."""
    return distinct((1, 1, *case.shape[2:]))


def tower(case: Case, x: torch.Tensor) -> dict[str, Callable[[], torch.Tensor]]:
    """Return the results of torch.func's transforms of a pool, by name, each to be computed by a call."""
    v = distinct(x.shape, seed=1)
    f, pool = cubes(case), case.pool
    return {
        "jvp": lambda: jvp(pool, (x,), (v,))[1],
        "vjp": lambda: vjp(pool, x)[1](pool(x))[0],
        "jacfwd": lambda: jacfwd(pool)(x),
        "jacrev": lambda: jacrev(pool)(x),
        "hessian": lambda: hessian(f)(x),
        "reverse over reverse": lambda: jacrev(jacrev(f))(x),
        "forward over forward": lambda: jacfwd(jacfwd(f))(x),
        "third order": lambda: grad(lambda x: jvp(lambda x: jvp(f, (x,), (v,))[1], (x,), (v,))[1])(x),
        "third order, reverse": lambda: grad(lambda x: (grad(lambda x: (grad(f)(x) * v).sum())(x) * v).sum())(x),
        "vmap": lambda: vmap(pool, in_dims=1, out_dims=1)(torch.stack([x, v], 1)),
        "vmap of grad": lambda: vmap(grad(f))(torch.stack([x, v])),
        "vmap of jvp": lambda: vmap(lambda x: jvp(pool, (x,), (v,))[1])(torch.stack([x, v])),
    }


def by_hand(case: Case, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the same from the dense Jacobian, one column per call of the pool: near x, f is linear except for lp."""
    v, n = distinct(x.shape, seed=1), x.numel()
    x = x.clone().requires_grad_()
    y = case.pool(x)
    rows = [
        torch.autograd.grad(y, x, e.reshape(y.shape), retain_graph=True)[0] for e in torch.eye(y.numel(), dtype=y.dtype)
    ]
    J = torch.stack(rows).reshape(y.numel(), n)
    y = y.detach()
    H = (J.T * (6 * y.reshape(-1))) @ J
    third = J.T @ (6 * (J @ v.reshape(-1)) ** 2)
    return {
        "jvp": (J @ v.reshape(-1)).reshape(y.shape),
        "vjp": (J.T @ y.reshape(-1)).reshape(x.shape),
        "jacfwd": J.reshape(*y.shape, *x.shape),
        "jacrev": J.reshape(*y.shape, *x.shape),
        "hessian": H.reshape(*x.shape, *x.shape),
        "reverse over reverse": H.reshape(*x.shape, *x.shape),
        "forward over forward": H.reshape(*x.shape, *x.shape),
        "third order": third.reshape(x.shape),
        "third order, reverse": third.reshape(x.shape),
        "vmap": torch.stack([case.pool(x).detach(), case.pool(v)], 1),
    }


# ---- random calls, and their comparison


def same(got, wanted, close):
    """Compare two tensors: bits, or values within rounding; layouts too."""
    assert (got.dtype, got.shape, got.stride()) == (wanted.dtype, wanted.shape, wanted.stride())
    if close:
        wide = torch.float64 if got.dtype.is_floating_point else got.dtype
        digits = torch.finfo(got.dtype).eps * 64
        torch.testing.assert_close(got.to(wide), wanted.to(wide), rtol=digits, atol=digits, equal_nan=True)
        return
    equal = (got == wanted) | ((got != got) & (wanted != wanted))
    if got.dtype.is_floating_point:
        equal &= (got.signbit() == wanted.signbit()) | (got != got)
    assert equal.all()


FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def cells(rng, shape, dtype):
    """Return a tensor with ties, and with NaN, infinities and zeros of both signs at times; in either layout."""
    x = torch.from_numpy(np.random.default_rng(rng.randrange(2**32)).normal(size=shape) * 3)
    x = x.round() if rng.random() < 0.4 else x
    if dtype.is_floating_point:
        x = x.to(dtype)
        for value in (float("nan"), -float("inf"), float("inf"), -0.0, 0.0):
            if rng.random() < 0.15:
                x[torch.rand(x.shape) < 0.2] = value
    else:
        x = (x * 20).to(torch.int64).to(dtype)
    return x.movedim(1, -1).contiguous().movedim(-1, 1) if rng.random() < 0.4 else x


def call(rng, rank, lengths):
    """Return the name of a function and its words, drawn at random."""
    family = rng.choice(["max", "min", "avg", "lp", "adaptive_max", "adaptive_avg", "fractional_max", "fractional_avg"])
    kernel = [rng.randint(1, min(n, rng.choice([3, 4, 20]))) for n in lengths]
    words = {}
    if family in ("max", "min", "avg"):
        words = {"kernel_size": kernel, "stride": [rng.randint(1, k + 1) for k in kernel]}
        words |= {"padding": rng.choice([0, [k // 2 for k in kernel], "same"]), "ceil_mode": rng.random() < 0.4}
    if family in ("max", "min"):
        words["dilation"] = [
            rng.choice([1, 1, 2, 3]) if 3 * k - 2 <= n else 1 for k, n in zip(kernel, lengths, strict=True)
        ]
    if family == "avg":
        words["count_include_pad"] = rng.random() < 0.5
        words |= {"divisor_override": rng.choice([0.3, 3, -4])} if rng.random() < 0.3 else {}
    if family == "lp":
        words = {"norm_type": rng.choice([1, 2, 3.5]), "kernel_size": kernel, "ceil_mode": rng.random() < 0.3}
    if family.startswith("adaptive"):
        words = {"output_size": [rng.randint(1, n + 2) for n in lengths]}
    if family.startswith("fractional"):
        sizes = [rng.randint(max(1, (n + 2) // 3), n) for n in lengths]
        words = {"output_size": sizes, "seed": rng.randrange(99)}
        own = {"kernel_size": [rng.randint(1, max(1, n - m + 1)) for n, m in zip(lengths, sizes, strict=True)]}
        words |= own if rng.random() < 0.3 else {"overlapping": rng.random() < 0.5}
    if family.removeprefix("adaptive_").removeprefix("fractional_") in ("max", "min"):
        words["return_indices"] = True
    return f"{family}_pool{rank}d", words
