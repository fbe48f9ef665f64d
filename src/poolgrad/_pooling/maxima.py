"""Find the largest or least cell of each window, with its taps if they are wanted."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from .._common.arrays import Array
from .._common.errors import ArgumentErrors, names_memory
from .operators import Linear, TapGather
from .repeated import Run
from .selection import extreme, judge, value_finder
from .sources import Layout, array_of, finish, lay_out
from .tape import Result, Var, lift
from .taps import Taps
from .types import Nan, Ties
from .window_args import PooledAxes, flag

Best: TypeAlias = Result | tuple[Result, Taps]
"""The result of a pool that may return its taps."""


class Options(NamedTuple):
    """The options of a max or min pool besides its windows."""

    ties: Ties = "first"
    nan: Nan = "propagate"
    return_taps: bool = False
    out: Array | None = None


@names_memory
def best_of(
    op: str, x: Any, geometry: PooledAxes, least: bool, options: Options, args: tuple[Any, ...] | None = None
) -> Best:
    """Return the largest or least of each window, with its taps if they are wanted; remember the call if `args` are given."""
    problems, out = ArgumentErrors(op), options.out
    judge(problems, options.ties, options.nan)
    flag(problems, "return_taps", options.return_taps)
    if options.return_taps and options.ties in ("all", "split"):
        problems.fail("return_taps", True, f"ties='first' or 'last': {options.ties!r} chooses no single cell")
    array, layout = lay_out(problems, array_of(problems, x), geometry)
    if isinstance(x, Var):
        y, operator = _with_operator(op, layout, array, least, options)
        pooled = lift(operator, x, y)
        return (pooled, _taps(operator, layout)) if options.return_taps else pooled
    options = options._replace(out=None)
    run = _taps_run(op, layout, least, options) if options.return_taps else _values_run(layout, least, options.nan)
    found: Best = finish(op, x, array, layout, run, args, out)
    return found


def _with_operator(op: str, layout: Layout, x: Array, least: bool, options: Options) -> tuple[Array, Linear]:
    """Return the best of each window as the caller sees it, and the operator that picks it."""
    y, operator = extreme(layout.plan, x, layout.order, least, options.ties, options.nan)
    operator.name = f"{op} operator"
    return layout.seen(y).view(layout.dtype), operator


def _values_run(layout: Layout, least: bool, nan: Nan) -> Run:
    """Return the function that finds the best of each window."""
    find = value_finder(layout.plan, least, nan)
    return find if layout.plain else lambda x: layout.seen(find(x)).view(layout.dtype)


def _taps_run(op: str, layout: Layout, least: bool, options: Options) -> Run:
    """Return the function that finds the best of each window and its taps."""

    def find(x: Array) -> tuple[Array, Taps]:
        y, operator = _with_operator(op, layout, x, least, options)
        return y, _taps(operator, layout)

    return find


def _taps(operator: Linear, layout: Layout) -> Taps:
    assert isinstance(operator, TapGather)
    return Taps(operator, layout.axes)
