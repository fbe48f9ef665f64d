"""`poolgrad.torch` against `torch.nn.functional`, forward alone and with backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ..peers.base import load
from .contest import OURS, Cell, Contest, Found, agree

SHAPES: dict[int, dict[str, tuple[int, ...]]] = {
    2: {"tiny": (1, 4, 8, 8), "small": (1, 64, 56, 56), "large": (16, 64, 112, 112)},
    3: {"tiny": (1, 4, 4, 8, 8), "small": (1, 16, 8, 28, 28), "large": (2, 32, 16, 56, 56)},
}
TOLERANCE = {"float32": 1e-5, "bfloat16": 2e-2}

Pool = Callable[[Any, Any, str], Any]  # of a library, x and the letters "2d" or "3d"


def _max(library: Any, x: Any, d: str) -> Any:
    return getattr(library, f"max_pool{d}")(x, 3, 2, 1)


def _avg(library: Any, x: Any, d: str) -> Any:
    return getattr(library, f"avg_pool{d}")(x, 2)


def _padded_avg(library: Any, x: Any, d: str) -> Any:
    return getattr(library, f"avg_pool{d}")(x, 3, 2, 1)


def _adaptive_max(library: Any, x: Any, d: str) -> Any:
    return getattr(library, f"adaptive_max_pool{d}")(x, 3)


def _adaptive_avg(library: Any, x: Any, d: str) -> Any:
    return getattr(library, f"adaptive_avg_pool{d}")(x, 3)


def _fractional(library: Any, x: Any, d: str, samples: Any = None) -> Any:
    ratio = (0.7,) * (x.ndim - 2)
    return getattr(library, f"fractional_max_pool{d}")(x, 2, output_ratio=ratio, _random_samples=samples)


def _lp(library: Any, x: Any, d: str) -> Any:
    return getattr(library, f"lp_pool{d}")(x, 2, 2)


POOLS: dict[str, Pool] = {
    "max 3/2 padded": _max,
    "avg 2/2": _avg,
    "avg 3/2 padded": _padded_avg,
    "adaptive max 3": _adaptive_max,
    "adaptive avg 3": _adaptive_avg,
    "fractional 2": _fractional,
    "lp 2/2": _lp,
}


def cells(found: Found, quick: bool) -> Iterator[Cell]:
    """Return the cells, if torch is installed."""
    torch = found.load("torch", lambda: load("torch"), lambda torch: str(torch.__version__))
    if torch is None:
        return
    ours, theirs = load("poolgrad.torch"), load("torch.nn.functional")
    if load("poolgrad.torch._compiled").load() is None:
        found.missing["the compiled calls of poolgrad.torch"] = "python -m poolgrad.torch build makes them"
    for rank, shapes in SHAPES.items():
        for size, shape in list(shapes.items())[: 1 if quick else 3]:
            for name, pool in POOLS.items():
                for last in (False, True):
                    for dtype in TOLERANCE:
                        for back in (False, True):
                            words = [f"{name} {rank}d", size, "channels last" if last else "contiguous", dtype]
                            words += ["forward + backward"] if back else ["forward"]
                            made = partial(_contest, torch, ours, theirs, pool, shape, last, dtype, back)
                            yield Cell("torch", ", ".join(words), made)


def _contest(
    torch: Any, ours: Any, theirs: Any, pool: Pool, shape: tuple[int, ...], last: bool, dtype: str, back: bool
) -> Contest:
    d = f"{len(shape) - 2}d"
    rng = np.random.default_rng(1)
    x = torch.from_numpy(rng.permutation(int(np.prod(shape))).reshape(shape).astype(np.float32) % 251 / 64 + 0.5)
    x = x.to(getattr(torch, dtype))
    if last:
        x = x.to(memory_format=torch.channels_last if d == "2d" else torch.channels_last_3d)
    x.requires_grad_(back)
    g = torch.ones_like(pool(ours, x.detach(), d))

    def call(library: Any, pool: Pool = pool) -> Any:
        y = pool(library, x, d)
        if not back:
            return y
        x.grad = None
        y.backward(g)
        return y, x.grad

    def result(value: Any) -> Any:
        parts = value if isinstance(value, tuple) else (value,)
        return np.concatenate([part.detach().float().contiguous().numpy().ravel() for part in parts])

    def same() -> None:
        samples = torch.rand(*shape[:2], len(shape) - 2, dtype=x.dtype)
        fixed = partial(_fractional, samples=samples)
        agree(result(call(ours, fixed)), result(call(theirs, fixed)), TOLERANCE[dtype])

    calls = {OURS: (partial(call, ours), result), "torch": (partial(call, theirs), result)}
    return Contest(calls, TOLERANCE[dtype], check=same if pool is _fractional else None)
