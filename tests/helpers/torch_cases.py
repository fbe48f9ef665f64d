"""A table of calls of every function of poolgrad.torch, for the tests of derivatives, layouts and compilation."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

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
