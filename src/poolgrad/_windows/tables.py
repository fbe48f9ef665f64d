"""Make the tables of axes in the core.

A function returns (fault, start, stop, count, span) with read-only arrays; `Axis.of` turns them into an axis, or raises the fault.
`slide` adds the number of the first window without a cell, or -1. `draw` returns the boundaries and the tables of each axis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from .. import _core

P = ParamSpec("P")
T = TypeVar("T")

OUTSIDE = 1  # the fault of windows that are not inside their axis; other faults are windows that do not ascend


def wanted(given: tuple[object, ...]) -> str:
    """Say that these are not the numbers of windows."""
    numbers = "integers from 0 to 2**62 for lengths and numbers of windows, and integers within 64 bits"
    return f"Axis: windows: got {given!r:.200}, wanted {numbers}"


def _named(make: Callable[P, T], doc: str) -> Callable[P, T]:
    """Return the function with a docstring, and with errors that show its numbers."""

    def made(*args: P.args, **words: P.kwargs) -> T:
        try:
            return make(*args, **words)
        except (TypeError, ValueError) as error:
            raise type(error)(wanted(args)) from None

    made.__name__, made.__doc__ = make.__name__, doc
    return made


windows = _named(_core.windows, "Copy windows, given by their boundaries.")
slide = _named(_core.slide, "Slide windows of one length.")
between = _named(_core.between, "Put windows between borders.")
share = _named(_core.share, "Divide cells into windows.")
placed = _named(_core.placed, "Place windows of one length from a random offset on.")
draw = _named(_core.draw, "Draw the windows of fractional pooling, axis after axis.")
proper = _core.proper
