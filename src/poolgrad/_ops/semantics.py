"""Name the choices in a row of the op table: the kernel, the windows, the start of a maximum, the rounding of means, the promise. Imports nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum


class Mean(IntEnum):
    """The rule that turns a sum over a window into a mean. The native module uses the same numbers."""

    COUNTED = 0  # by a count kept in the type itself, which stops growing where the type runs out of digits
    EXACT = 1  # by the count rounded to the type
    WIDE = 2  # in 64-bit integers, toward zero
    STRICT = 3  # as EXACT, however long the window
    TOTAL = 4  # not divided; halves are summed in float64 and rounded once
    ONCE = 5  # as EXACT; halves are summed in float64 and rounded once
    SPANNED = 6  # as ONCE, by the cells that the window had before an edge cut it


class Share(IntEnum):
    """The weight that a transposed mean gives each cell it spreads."""

    RECIPROCAL = 0  # times 1/count, computed in float64, rounded to the type
    SHORT_RECIPROCAL = 1  # times 1/count, computed in float32, rounded to the type
    QUOTIENT = 2  # cell/count added up in float64
    WHOLE = 3  # the cell itself; halves in float64, rounded once


class Start(IntEnum):
    """The start value of a window's maximum; only a greater cell replaces it."""

    FIRST = 0  # the first cell, NaN or not
    LOWEST = 1  # the lowest finite value
    INFINITY = 2  # minus infinity, or the lowest finite value where the window was cut at an edge


class Kernel(Enum):
    """The computation over the windows."""

    FOLD = "fold"  # y[i] = mean of window i
    SPREAD = "spread"  # the transpose of fold
    NEAR = "near"  # g to every cell nearer than eps to y
    SELECT = "select"  # y[i] = maximum of window i
    ARGMAX = "argmax"  # maximum and its flat position
    ROUTE = "route"  # g to the first maximum of x
    RECALL = "recall"  # v at the first cell equal to y
    SCATTER = "scatter"  # g to the given positions
    GATHER = "gather"  # v at the given positions


class WindowRule(Enum):
    """The function that turns attributes into windows."""

    CLIP = "clip"  # cut off at the edges
    REACH = "reach"  # as clip, but a leading cut window longer than the axis reaches its end
    SHIFT = "shift"  # as clip, but SAME padding may be negative
    EDGES = "edges"  # between the entries of a sequence


@dataclass(frozen=True)
class OpSemantics:
    """Everything that distinguishes two ops with the same verb."""

    windows: WindowRule
    verb: Kernel
    mean: Mean = Mean.COUNTED
    share: Share = Share.RECIPROCAL
    start: Start = Start.LOWEST
    reversed: bool = False  # the last axis is the outermost loop of a sum
    eps: float = 0.0
    verify: bool = False  # orig_output must be the pooled orig_input


@dataclass(frozen=True)
class Promise:
    """The promised distance from TensorFlow 2.21 on CPU, and the reason of every deviation."""

    ulp: int = 0
    deviations: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        return "same bits" if self.ulp == 0 else f"within {self.ulp} ulp"


def bits(*deviations: str) -> Promise:
    """Promise the same bits as TensorFlow, except for the named deviations."""
    return Promise(0, deviations)
