"""Pools with the defaults of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, TypeVar, cast

from .._common.errors import ArgumentErrors, short_repr
from . import pools
from .sources import accept
from .types import Stride, Windows

Pool = TypeVar("Pool", bound=Callable[..., object])

_DEFAULTS: dict[str, dict[str, dict[str, Any]]] = {
    "tensorflow": {"max_pool": {"nan": "tf"}},
    "torch": {"avg_pool": {"count_include_pad": True}},
    "onnx": {},
}


class LibraryPools:
    """The sliding pools with the defaults of another library, as `like` makes them.

    Parameters
    ----------
    library : {"tensorflow", "torch", "onnx"}
        The library.

    Attributes
    ----------
    max_pool, min_pool, avg_pool, sum_pool, lp_pool : callable
        The pools; they take the arguments of `poolgrad.max_pool` and so on.
    """

    def __init__(self, library: str) -> None:
        self._library = library
        self.max_pool = _with_defaults(library, pools.max_pool)
        self.min_pool = _with_defaults(library, pools.min_pool)
        self.avg_pool = _with_defaults(library, pools.avg_pool)
        self.sum_pool = _with_defaults(library, pools.sum_pool)
        self.lp_pool = _with_defaults(library, pools.lp_pool)

    def __repr__(self) -> str:
        return f"<pools with the defaults of {self._library}>"


def _with_defaults(library: str, pool: Pool) -> Pool:
    """Return the pool with the library's defaults for axes, stride and options."""
    name = pool.__name__
    extra = _DEFAULTS[library].get(name, {})

    @wraps(pool)
    def pooled(x: Any, window: Windows, stride: Stride = None, **words: Any) -> object:
        x = accept(name, x)
        rank = x.ndim
        if "axes" not in words and "layout" not in words:
            words["axes"] = tuple(range(1, rank - 1) if library == "tensorflow" else range(2, rank))
        stride = 1 if stride is None and library == "onnx" else stride
        return pool(x, window, stride, **{**extra, **words})

    return cast(Pool, pooled)


def like(library: Literal["tensorflow", "torch", "onnx"]) -> LibraryPools:
    """Return the sliding pools with the defaults of another library.

    Parameters
    ----------
    library : {"tensorflow", "torch", "onnx"}
        "tensorflow": channels last, means over the cells inside the array, TensorFlow's NaN rule in `max_pool`. "torch": channels
        after the batch, padding counted in means. "onnx": channels after the batch, stride 1, means over the cells inside the array.

    Returns
    -------
    LibraryPools
        An object with `max_pool`, `min_pool`, `avg_pool`, `sum_pool` and `lp_pool`. `axes` or `layout` overrides the pooled axes.

    Raises
    ------
    ValueError
        If the library has another name.

    See Also
    --------
    max_pool, min_pool, avg_pool, sum_pool, lp_pool : The pools with the defaults of poolgrad.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> pg.like("torch").avg_pool(np.ones((1, 1, 2, 2)), 2, 1, padding=1)[0, 0, 0].tolist()
    [0.25, 0.5, 0.25]
    """
    if library not in _DEFAULTS:
        ArgumentErrors("like").fail("library", short_repr(library), "'tensorflow', 'torch' or 'onnx'")
    return LibraryPools(library)
