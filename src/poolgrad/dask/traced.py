"""Differentiate chains of pools of Dask arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da

from .._common.errors import ArgumentErrors, short_repr
from ..jobs.job import Job
from .arrays import run


def dropped(y: Any, axes: tuple[int, ...]) -> Any:
    """Return a Dask array without these axes of length 1; by indices, because arrays with query planning have no `squeeze`."""
    return y[tuple(0 if d in axes else slice(None) for d in range(y.ndim))]


class Traced:
    """A Dask array on its way through a function that is differentiated: `pull` and `push` lead to the one before it."""

    def __init__(self, value: Any, before: Traced | None = None, pull: Any = None, push: Any = None) -> None:
        self.value, self.before, self.pull, self.push = value, before, pull, push
        self.shape, self.dtype = value.shape, value.dtype

    def through(self, job: Job, chunks: Any, memory: int | str | None) -> Traced:
        """Pool the array, and remember how to differentiate the pool."""
        back, forth = job.vjp(), job.jvp()

        def cells(of: Job, **given: Any) -> list[Any]:
            return [self.value if i.name == "x" else given[i.name] for i in of.inputs]

        like = self.value.chunks if isinstance(self.value, da.Array) else None
        return Traced(
            run(job, self.value, chunks=chunks, memory=memory),
            self,
            lambda g: run(back, *cells(back, g=g), chunks=like, memory=memory),
            lambda v: run(forth, *cells(forth, v=v), chunks=chunks, memory=memory),
        )

    def squeeze(self, axes: tuple[int, ...]) -> Traced:
        """Drop axes of length 1."""
        again = tuple(None if d in axes else slice(None) for d in range(len(self.shape)))
        return Traced(dropped(self.value, axes), self, lambda g: g[again], lambda v: dropped(v, axes))

    def __mul__(self, other: Any) -> Traced:
        if isinstance(other, Traced) or getattr(other, "ndim", 0) not in (0, len(self.shape)):
            return NotImplemented
        return Traced(self.value * other, self, lambda g: g * other, lambda v: v * other)

    __rmul__ = __mul__


def _trace(op: str, f: Callable[[Any], Any], x: Any) -> tuple[Traced, Traced]:
    problems = ArgumentErrors(op)
    if not callable(f):
        problems.fail("f", short_repr(f), "a function", TypeError)
    start = Traced(x)
    y = f(start)
    if not isinstance(y, Traced):
        problems.fail("f", f"a function that returned {short_repr(y)}", "one that returns pooled x", TypeError)
    return start, y


def vjp(f: Callable[[Any], Any], x: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return a chain of pools at x, and the function that pulls cotangents back through it.

    Parameters
    ----------
    f : callable
        A function of one array: pools of this module one after the other, and products with constants.
    x : dask.array.Array or store
        The array.

    Returns
    -------
    y : dask.array.Array
        ``f(x)``.
    back : callable
        ``back(g)`` is the gradient of ``(g * f(x)).sum()``, a lazy Dask array.

    Examples
    --------
    >>> import dask.array as da
    >>> import poolgrad.dask as pgd
    >>> y, back = pgd.vjp(lambda x: pgd.max_pool(x, 2), da.from_array([1.0, 3.0, 2.0, 0.0], chunks=2))
    >>> back(da.ones(2)).compute().tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    start, y = _trace("vjp", f, x)

    def back(g: Any) -> Any:
        if tuple(g.shape) != tuple(y.value.shape):
            ArgumentErrors("vjp").fail("g", f"shape {list(g.shape)}", list(y.value.shape))
        at: Traced | None = y
        while at is not None and at is not start:
            g, at = at.pull(g), at.before
        return g

    return y.value, back


def jvp(f: Callable[[Any], Any], x: Any, v: Any) -> tuple[Any, Any]:
    """Return a chain of pools at x, and its derivative along a tangent.

    Parameters
    ----------
    f : callable
        A function of one array: pools of this module one after the other, and products with constants.
    x : dask.array.Array or store
        The array.
    v : dask.array.Array or store
        The tangent, of the shape of x.

    Returns
    -------
    y, dy : dask.array.Array
        ``f(x)``, and its derivative along v.

    Examples
    --------
    >>> import dask.array as da
    >>> import poolgrad.dask as pgd
    >>> x, v = da.from_array([1.0, 3.0, 2.0, 0.0], chunks=2), da.from_array([5.0, 6.0, 7.0, 8.0], chunks=2)
    >>> pgd.jvp(lambda x: pgd.max_pool(x, 2), x, v)[1].compute().tolist()
    [6.0, 7.0]
    """
    start, y = _trace("jvp", f, x)
    if tuple(v.shape) != tuple(x.shape):
        ArgumentErrors("jvp").fail("v", f"shape {list(v.shape)}", list(x.shape))
    steps, at = [], y
    while at is not start and at.before is not None:
        steps.append(at)
        at = at.before
    for step in reversed(steps):
        v = step.push(v)
    return y.value, v
