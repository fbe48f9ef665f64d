"""A table of calls of every function of poolgrad.torch, for the tests of derivatives, layouts and compilation."""

from collections.abc import Callable
from typing import Any, NamedTuple

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
