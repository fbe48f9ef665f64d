"""The entry points of one pool: pg.*, its operators, raw_ops, poolgrad.torch, poolgrad.jax and poolgrad.autograd.

Each takes the arrays x, g and v of one memory layout and returns the pooled x, the gradient of <y, g>, and the derivative along v.
`tools/bits.py` compares their bits.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

import poolgrad as pg

Array = np.ndarray
Run = Callable[[str, dict[str, Any], Array, Array, Array], list[Array]]

SHAPE = (3, 8, 61, 64)  # batch and channels first; sizes for which padding=1 of max_pool is what TensorFlow calls SAME
AXES = (2, 3)
POOLS: dict[str, dict[str, Any]] = {
    "max_pool": {
        "window": 3,
        "stride": 3,
        "padding": 1,
    },  # side by side: where windows overlap, raw_ops adds halves as TensorFlow does
    "min_pool": {"window": 2, "stride": 1},
    "avg_pool": {"window": 3, "stride": 2, "padding": 1},
    "sum_pool": {"window": (2, 9), "stride": (2, 3)},
    "adaptive_max_pool": {"size": (7, 5)},
    "adaptive_avg_pool": {"size": (7, 5)},
    "fractional_max_pool": {"size": (40, 33), "seed": (3, 4), "overlapping": True},
    "fractional_avg_pool": {"size": (40, 33), "seed": (3, 4)},
    "global_max_pool": {},
    "global_avg_pool": {},
}
DTYPES = ("float16", "bfloat16", "float32", "float64")


def by_pg(pool: str, words: dict[str, Any], x: Array, g: Array, v: Array) -> list[Array]:
    """Return what the pools of NumPy arrays and their derivatives give."""
    f = partial(getattr(pg, pool), axes=AXES, **words)
    plain = f(x)
    y, back = pg.vjp(f, x)
    if np.ascontiguousarray(plain).tobytes() != np.ascontiguousarray(y).tobytes():
        raise AssertionError("the pool and its vjp have different values")
    return [plain, back(g), pg.jvp(f, x, v)[1]]


def by_operators(pool: str, words: dict[str, Any], x: Array, g: Array, v: Array) -> list[Array]:
    """Return what the operator of a pool, its transpose and the taps give."""
    plan = pg.plan(x.shape, **words, axes=AXES)
    if pool in ("avg_pool", "sum_pool"):
        P = pg.averaging(plan) if pool == "avg_pool" else pg.summing(plan)
        return [P(x), P.T(g), P(v)]
    y, P = (pg.max_operator if pool == "max_pool" else pg.min_operator)(x, plan)
    return [y, P.T(g), P(v)]


def by_raw_ops(pool: str, words: dict[str, Any], x: Array, g: Array, v: Array) -> list[Array]:
    """Return what TensorFlow's operators give, channels last."""
    x, g, v = (a.transpose(0, 2, 3, 1) for a in (x, g, v))
    k, s = words["window"], words["stride"]
    how = {"ksize": [1, k, k, 1], "strides": [1, s, s, 1], "padding": "SAME"}
    y = pg.raw_ops.MaxPool(input=x, **how)
    dx = pg.raw_ops.MaxPoolGrad(orig_input=x, orig_output=y, grad=g, **how)
    ddy = pg.raw_ops.MaxPoolGradGrad(orig_input=x, orig_output=y, grad=v, **how)
    return [a.transpose(0, 3, 1, 2) for a in (y, dx, ddy)]


def by_autograd(pool: str, words: dict[str, Any], x: Array, g: Array, v: Array) -> list[Array]:
    """Return what poolgrad.autograd gives."""
    from autograd import make_jvp, make_vjp

    adapter = importlib.import_module("poolgrad.autograd")
    f = partial(getattr(adapter, pool), axes=AXES, **words)
    back, y = make_vjp(f)(x)
    return [y, back(g), make_jvp(f)(x)(v)[1]]


def by_torch(pool: str, words: dict[str, Any], x: Array, g: Array, v: Array) -> list[Array]:
    """Return what poolgrad.torch gives, by backward and double backward."""
    import torch

    pgt = importlib.import_module("poolgrad.torch")
    names = {"window": "kernel_size", "size": "output_size"}
    words = {names.get(word, word): value for word, value in words.items()}
    if pool == "avg_pool":
        words["count_include_pad"] = False

    def there(a: Array) -> Any:
        half = a.dtype == ml_dtypes.bfloat16
        return torch.from_numpy(a.view(np.uint16)).view(torch.bfloat16) if half else torch.from_numpy(a)

    def back(t: Any) -> Array:
        t = t.detach()
        return t.view(torch.uint16).numpy().view(ml_dtypes.bfloat16) if t.dtype == torch.bfloat16 else t.numpy()

    a, h = there(x).requires_grad_(), there(g).requires_grad_()
    y = getattr(pgt, f"{pool}2d")(a, **words)
    (dx,) = torch.autograd.grad(y, a, h, create_graph=True)
    (ddy,) = torch.autograd.grad(dx, h, there(v))
    return [back(y), back(dx), back(ddy)]


def by_jax(pool: str, words: dict[str, Any], x: Array, g: Array, v: Array) -> list[Array]:
    """Return what poolgrad.jax gives, compiled."""
    import jax

    jax.config.update("jax_enable_x64", True)
    adapter = importlib.import_module("poolgrad.jax")
    f = partial(getattr(adapter, pool), axes=AXES, **words)

    def all_of(x: Any, g: Any, v: Any) -> Any:
        y, back = jax.vjp(f, x)
        return y, back(g)[0], jax.jvp(f, (x,), (v,))[1]

    key = (pool, x.dtype.name)
    run = _compiled.setdefault(key, jax.jit(all_of))
    return [np.asarray(a) for a in run(x, g, v)]


_compiled: dict[Any, Any] = {}

ENTRIES: dict[str, Run] = {
    "pg": by_pg,
    "operators": by_operators,
    "raw_ops": by_raw_ops,
    "autograd": by_autograd,
    "torch": by_torch,
    "jax": by_jax,
}
ADAPTERS = ("autograd", "torch", "jax")
VIEWED = ("C", "Fortran", "strided", "window", "one element on")  # that torch takes without a copy


def entries_of(pool: str, adapters: bool) -> list[str]:
    """Return the entry points that have this pool; adapters only where their framework is installed."""
    found = ["pg"]
    if pool in ("max_pool", "min_pool", "avg_pool", "sum_pool"):
        found.append("operators")
    if pool == "max_pool":
        found.append("raw_ops")
    for name in ADAPTERS if adapters else ():
        absent = name == "torch" and (pool == "sum_pool" or pool.startswith("global"))
        if importlib.util.find_spec(name) is not None and not absent:
            found.append(name)
    return found


def takes(entry: str, layout: str, quick: bool = False) -> bool:
    """Tell if an entry point is handed arrays of that layout: torch and JAX make their own arrays of some; `quick` takes three."""
    if quick and entry in ADAPTERS and layout not in ("C", "strided", "swapped"):
        return False
    if entry == "torch":
        return layout in VIEWED
    return entry != "jax" or layout in ("C", "Fortran")


def data(pool: str, dtypes: tuple[str, ...]) -> list[tuple[Array, Array, Array]]:
    """Return x, g and v for each dtype: numbers with many digits, some of them equal."""
    made = []
    for dtype in dtypes:
        kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
        rng = np.random.default_rng(len(pool))
        x, v = rng.normal(size=SHAPE), rng.normal(size=SHAPE)
        x.reshape(-1)[::7] = 0.5
        dest = getattr(pg, pool)(x, axes=AXES, **POOLS[pool]).shape
        made.append((x.astype(kind), rng.normal(size=dest).astype(kind), v.astype(kind)))
    return made


def run(entry: str, pool: str, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return the results of one entry point, or the text of its error, which no other result equals."""
    try:
        return tuple(ENTRIES[entry](pool, POOLS[pool], *arrays))
    except Exception as error:
        return (np.frombuffer(f"{entry}: {type(error).__name__}: {error}".encode(), np.uint8),)
