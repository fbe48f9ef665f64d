"""Pools with the defaults of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from .._common.errors import ArgumentErrors, short_repr
from . import pools
from .sources import accept
from .types import Ints, Windows

_POOLS = ("max_pool", "min_pool", "avg_pool", "sum_pool", "lp_pool")
_CONVENTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "tensorflow": {"max_pool": {"nan": "tf"}},
    "torch": {"avg_pool": {"count_include_pad": True}},
    "onnx": {},
}


def like(library: str) -> Any:
    """Return the pools with another library's defaults, under the same names.

    "tensorflow": channels last, means over true cells, TensorFlow's NaN rule. "torch": channels first after the batch, padding
    counted in means. "onnx": channels first, stride 1, means over true cells.

    >>> import numpy as np
    >>> like("torch").avg_pool(np.ones((1, 1, 2, 2)), 2, 1, padding=1)[0, 0, 0].tolist()
    [0.25, 0.5, 0.25]
    """
    if library not in _CONVENTIONS:
        ArgumentErrors("like").fail("library", short_repr(library), "'tensorflow', 'torch' or 'onnx'")

    def convention(name: str) -> Callable[..., Any]:
        pool, extra = getattr(pools, name), _CONVENTIONS[library].get(name, {})

        def pooled(x: Any, window: Windows, stride: Ints | None = None, **words: Any) -> Any:
            x = accept(name, x)
            rank = x.ndim
            if "axes" not in words and "layout" not in words:
                words["axes"] = tuple(range(1, rank - 1) if library == "tensorflow" else range(2, rank))
            stride = 1 if stride is None and library == "onnx" else stride
            return pool(x, window, stride, **{**extra, **words})

        pooled.__name__, pooled.__doc__ = name, pool.__doc__
        return pooled

    return SimpleNamespace(**{name: convention(name) for name in _POOLS})
