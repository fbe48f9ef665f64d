"""A table of calls for every framework: each pool, with each option that changes its operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import poolgrad as pg

IMAGES = (2, 6, 5, 2)


@dataclass(frozen=True)
class Case:
    """A pool, its arguments after x, and the shape of x."""

    op: str
    args: tuple[Any, ...] = ()
    words: dict[str, Any] = field(default_factory=dict)
    shape: tuple[int, ...] = IMAGES

    def __str__(self) -> str:
        words = "-".join(f"{k}={v}" for k, v in self.words.items() if k not in ("layout", "axes"))
        return f"{self.op}-{self.args}-{words}".replace(" ", "")

    def x(self, dtype: Any = np.float64) -> np.ndarray:
        """Return numbers that are all different, none of them near 0 or another."""
        size = int(np.prod(self.shape))
        cells = np.random.default_rng(size).permutation(size) - size // 2
        return ((cells + 0.5) / 8).reshape(self.shape).astype(dtype)

    def run(self, room: Any, x: Any, **more: Any) -> Any:
        """Run the call, by NumPy's functions or a framework's."""
        return getattr(room, self.op)(x, *self.args, **{**self.words, **more})

    def refused_alike(self, call: Callable[[np.ndarray], Any]) -> bool:
        """Return True if a framework's call refuses x with NumPy's error and its words; fail if either accepts it."""
        x = self.x(np.float32)
        with pytest.raises((ValueError, TypeError)) as numpy:
            self.run(pg, x)
        with pytest.raises(numpy.type) as here:
            call(x)
        return str(here.value) == str(numpy.value)

    def matrix(self) -> np.ndarray:
        """Return the operator as a matrix, from NumPy's derivatives: around x the pool is linear."""
        x = self.x()
        size = x.size
        rows = [pg.jvp(lambda a: self.run(pg, a), x, np.eye(1, size, j).reshape(x.shape))[1] for j in range(size)]
        return np.stack([row.reshape(-1) for row in rows], axis=1)


def _images(op: str, *args: Any, **words: Any) -> Case:
    return Case(op, args, {"layout": "NHWC", **words})


PICKS = (
    _images("max_pool", 3, 2, padding="same"),
    _images("max_pool", 2, 1, ties="last"),
    _images("max_pool", 2, 1, ties="split"),
    _images("max_pool", (3, 2), ties="all", ceil_mode=True),
    _images("max_pool", 2, 1, dilation=2),
    _images("max_pool", 2, nan="tf"),
    _images("max_pool", [[(0, 2), (1, 6)], 2]),
    _images("min_pool", 3, 2, padding=[(0, 1), (1, 2)]),
    Case("max_pool", (2,), {"axes": 2}, (2, 3, 6)),
    Case("max_pool", (2, 1), {"layout": "NCDHW"}, (1, 2, 3, 3, 4)),
    _images("fractional_max_pool", 1.5, seed=(3, 4)),
    _images("fractional_max_pool", size=(4, 3), seed=5, overlapping=True, pseudo_random=True),
    _images("adaptive_max_pool", (4, 3)),
    _images("global_max_pool", keepdims=False),
    _images("global_min_pool"),
)
FOLDS = (
    _images("avg_pool", 3, 2, padding="same"),
    _images("avg_pool", 3, 2, padding=1, count_include_pad=True),
    _images("avg_pool", 2, 1, divisor=3.0),
    _images("avg_pool", 2, 1, nan="ignore", dilation=(1, 2)),
    _images("sum_pool", (2, 3), 1),
    _images("fractional_avg_pool", 1.5, seed=(3, 4)),
    _images("adaptive_avg_pool", (4, None)),
    _images("global_avg_pool", keepdims=False),
    _images("global_sum_pool"),
)
LINEAR = (*PICKS, *FOLDS)
POWERS = (_images("lp_pool", 3, 2, p=3), _images("lp_pool", 2))
ALL = (*LINEAR, *POWERS)

# Calls that NumPy refuses; a framework refuses them with the same words.
BAD = (
    _images("max_pool", 0),
    _images("max_pool", 2, 2, padding="SAMEISH"),
    _images("max_pool", 2, padding=-1),
    _images("max_pool", 2, ties="middle"),
    _images("max_pool", 2, nan="maybe"),
    _images("max_pool", 2, ties="all", return_taps=True),
    Case("max_pool", (2,), {"layout": "NHW"}),
    Case("max_pool", (2,), {"axes": (1, 1)}),
    _images("max_pool", [[(0, 9)], 2]),
    _images("avg_pool", 2, divisor=0),
    _images("avg_pool", 2, rounding="up"),
    _images("avg_pool", 2, padding=3),
    _images("lp_pool", 2, p=-1),
    _images("fractional_max_pool", 0.5, seed=1),
    _images("fractional_avg_pool", seed=1),
    _images("fractional_avg_pool", size=99, seed=1),
    _images("adaptive_avg_pool", (2, 2, 2)),
    Case("global_max_pool", (), {"axes": 7}),
)
