"""List the pools by name: what each takes of a window, how its windows are found, its arguments, and the function that pools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._common.errors import ArgumentErrors
from . import adaptive_global, fractional, pools
from .adaptive_global import adaptive_axes, global_axes
from .fractional import drawing_over, seeds_of
from .sources import geometry_of
from .window_args import PooledAxes, WindowArgs, checked_plan

WORDS = {  # about windows, by the way in which they are found
    "sliding": ("window", "stride", "padding", "dilation", "axes", "layout", "ceil_mode"),
    "adaptive": ("size", "axes", "layout"),
    "global": ("axes", "layout"),
    "fractional": ("ratio", "size", "seed", "pseudo_random", "overlapping", "axes", "layout"),
}
OPTIONS = {  # by the kind of pool; these say nothing about windows
    "max": ("ties", "nan"),
    "min": ("ties", "nan"),
    "avg": ("count_include_pad", "divisor", "nan", "dtype", "rounding"),
    "sum": ("nan", "dtype", "rounding"),
    "lp": ("p",),
}
POOLS = {
    **{f"{kind}_pool": (kind, "sliding") for kind in OPTIONS},
    **{f"global_{kind}_pool": (kind, "global") for kind in ("max", "min", "avg", "sum")},
    **{f"adaptive_{kind}_pool": (kind, "adaptive") for kind in ("max", "avg")},
    **{f"fractional_{kind}_pool": (kind, "fractional") for kind in ("max", "avg")},
}
"""The pools by name: what each takes of a window, and how its windows are found."""

_PADDED = ("count_include_pad", "divisor")  # of sliding windows only


def options_of(op: str) -> tuple[str, ...]:
    """Return the options of a pool that say nothing about its windows.

    >>> options_of("avg_pool"), options_of("global_avg_pool")
    (('count_include_pad', 'divisor', 'nan', 'dtype', 'rounding'), ('nan', 'dtype', 'rounding'))
    """
    kind, how = POOLS[op]
    return tuple(name for name in OPTIONS[kind] if how == "sliding" or name not in _PADDED)


def function_of(op: str) -> Callable[..., Any]:
    """Return the pool of that name."""
    module = next(m for m in (pools, adaptive_global, fractional) if hasattr(m, op))
    found: Callable[..., Any] = getattr(module, op)
    return found


def windows_of(op: str, shape: tuple[int, ...], words: Mapping[str, Any]) -> PooledAxes:
    """Return the windows of a pool over an array of that shape; `words` may hold other arguments, too."""
    problems, how = ArgumentErrors(op), POOLS[op][1]
    axes, layout = words.get("axes"), words.get("layout")
    if how == "sliding":
        given = {name: words[name] for name in WindowArgs._fields[1:] if name in words}
        return geometry_of(op, shape, WindowArgs(words.get("window"), **given))
    if how == "global":
        return global_axes(problems, shape, axes, layout)
    if how == "adaptive":
        return adaptive_axes(problems, shape, words.get("size"), axes, layout)
    draws = (words.get("pseudo_random", False), words.get("overlapping", False))
    found, drawing = drawing_over(problems, shape, words.get("ratio"), words.get("size"), draws, axes, layout)
    made = drawing.draw(seeds_of(problems, words.get("seed")))
    return PooledAxes(found, checked_plan(problems, shape, dict(zip(found, made, strict=True))))


def dtype_of(op: str, dtype: np.dtype[Any], options: Mapping[str, Any]) -> np.dtype[Any]:
    """Check options and dtype by a pool of one cell; return the dtype of the result.

    >>> dtype_of("global_avg_pool", np.dtype("int8"), {}).name
    'float64'
    """
    found: np.dtype[Any] = function_of(f"{POOLS[op][0]}_pool")(np.zeros(1, dtype), 1, **options).dtype
    return found
