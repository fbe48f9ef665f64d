"""Calls with known results, which threads, children and other libraries' threads must repeat to the bit."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

import numpy as np
from support import FAST, PLAIN, Case, arguments, outputs

import poolgrad
from poolgrad._ops.table import OPS


def sized(name: str, n: int, c: int, dtype: str = "float32") -> Case:
    """Return a case of an op on an image n cells wide and a few high."""
    op = OPS[name]
    dtype = dtype if dtype in op.dtypes else op.dtypes[0]
    if op.family[0] == "f":
        return Case(name, dtype, x=(2, 9, n, c), ratio=(1.5, 1.8), data="wild")
    space = (4, 5, n) if op.spatial == 3 else (17, n)
    return Case(name, dtype, x=(2, *space, c), k=(3,) * op.spatial, s=(2,) * op.spatial, pad="SAME", data="wild")


@lru_cache
def jobs(seed: int = 0, count: int = 44) -> list[tuple[str, dict[str, Any], list[np.ndarray]]]:
    """Return op, arguments and results by the generic path on one thread: every op at least once, small and large."""
    rng, made = np.random.default_rng(seed), []
    with poolgrad.threads(1):
        for i in range(count):
            name = list(OPS)[i % len(OPS)]
            large = rng.random() < 0.5
            n, c = int(rng.integers(64, 200) if large else rng.integers(3, 40)), int(rng.integers(1, 70))
            case = sized(name, n, c, str(rng.choice(OPS[name].dtypes)))
            args = arguments(case)
            made.append((name, args, outputs(PLAIN[name](**args))))
    return made


def right(job: tuple[str, dict[str, Any], list[np.ndarray]]) -> bool:
    """Return True if the op gives those results again; all NaN are one."""
    name, args, want = job
    got = outputs(FAST[name](**args))
    return all(np.array_equal(raw(a), raw(b)) for a, b in zip(got, want, strict=True))


def raw(array: np.ndarray) -> np.ndarray:
    """Return the bits, all NaN made one."""
    if array.dtype.kind not in "iu":
        array = np.where(array != array, np.array(np.nan, array.dtype), array)
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def wrong_ops(seed: int = 0, rounds: int = 1) -> list[str]:
    """Run all jobs in a random order; return the ops that give other results."""
    rng, made = np.random.default_rng(seed), jobs()
    return [made[i][0] for _ in range(rounds) for i in rng.permutation(len(made)) if not right(made[i])]


if __name__ == "__main__":
    sys.exit(len(wrong_ops()))
