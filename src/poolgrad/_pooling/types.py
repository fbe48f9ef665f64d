"""The types of the pools' arguments and results.

Arrays go in as `ArrayLike` and come out as `NDArray`. An array keeps its dtype where the pool does; the dtype of a list is not known
before the call, so it gives `Numbers`. A `Var` in gives a `Var` out.

The options that overloads share are typed dictionaries: an overload lists the arguments that decide the type of its result, and unpacks
the others from one of these.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._windows.axis import Axis

S = TypeVar("S", bound=np.generic)
"""The scalar type of an array whose dtype the result keeps."""

F = TypeVar("F", bound=np.floating[Any])
"""The scalar type of an array of floats."""

Number: TypeAlias = np.number[Any]
"""The scalar type of an array whose dtype is not known before the call."""

Numbers: TypeAlias = NDArray[Number]
"""The result for an array-like without a static dtype, such as a list. A list of booleans gives booleans, which no alias tells apart."""

IntOrBool: TypeAlias = np.integer[Any] | np.bool_
"""The scalar types whose means are float64."""

FitsInt64: TypeAlias = np.signedinteger[Any] | np.uint8 | np.uint16 | np.uint32 | np.bool_
"""The scalar types whose sums are int64; those of uint64 are uint64."""

Int: TypeAlias = int | np.integer[Any]
"""One integer; booleans are refused."""

Ints: TypeAlias = Int | Sequence[Int] | NDArray[np.integer[Any]]
"""One integer for all pooled axes, or one for each."""

Stride: TypeAlias = Ints | None
"""The step between windows; None is the window."""

Pairs: TypeAlias = Sequence[Sequence[Int]] | NDArray[np.integer[Any]]
"""Windows along one axis as pairs (start, stop)."""

Window: TypeAlias = Int | Axis
"""The windows along one axis: their length, or their boundaries."""

Windows: TypeAlias = Window | Sequence[Window | Pairs] | NDArray[np.integer[Any]]
"""The windows of a pool: one for all pooled axes, or one for each."""

Padding: TypeAlias = str | Int | Sequence[Int | Sequence[Int]] | NDArray[np.integer[Any]]
"""A rule ("valid", "same", "same_lower"), one number of cells for all edges, one per axis, or a pair (before, after) per axis."""

AdaptiveSize: TypeAlias = Int | Sequence[Int | None] | NDArray[np.integer[Any]] | None
"""The number of windows: one for all pooled axes, or one for each; None leaves an axis unpooled."""

Ratio: TypeAlias = float | Sequence[float] | NDArray[np.floating[Any]] | None
"""The mean length of random windows, at least 1: one for all pooled axes, or one for each."""

Seed: TypeAlias = Ints | None
"""An integer, TensorFlow's pair (seed, seed2), or None for fresh windows at each call."""

Ties: TypeAlias = Literal["first", "last", "all", "split"]
"""The cells of a window that take part in a derivative if several are equally good."""

Nan: TypeAlias = Literal["propagate", "ignore", "tf"]
"""The rule for windows that hold NaN."""

Rounding: TypeAlias = Literal["nearest", "floor", "ceil", "toward_zero"]
"""The rule by which results are rounded to an integer dtype."""

Reduce: TypeAlias = Literal["sum", "assign"]
"""The rule for a cell that several windows chose: add up, or keep the last."""


class SlidingOptions(TypedDict, total=False):
    """The window options of a sliding pool."""

    padding: Padding
    dilation: Ints
    axes: Ints | None
    layout: str | None
    ceil_mode: bool


class MaxOptions(SlidingOptions, total=False):
    """The options of `max_pool` and `min_pool` that leave the type of the result alone."""

    ties: Ties
    nan: Nan


class SumOptions(SlidingOptions, total=False):
    """The options of `sum_pool` that leave the type of the result alone."""

    nan: Nan


class AvgOptions(SumOptions, total=False):
    """The options of `avg_pool` that leave the type of the result alone."""

    count_include_pad: bool
    divisor: float | None
    rounding: Rounding


class LpOptions(SlidingOptions, total=False):
    """The options of `lp_pool`."""

    p: float


class AxesOptions(TypedDict, total=False):
    """The options of a pool whose windows follow from the length of an axis."""

    axes: Ints | None
    layout: str | None
    nan: Nan


class AdaptiveMaxOptions(AxesOptions, total=False):
    """The options of `adaptive_max_pool` that leave the type of the result alone."""

    ties: Ties


class AdaptiveAvgOptions(AxesOptions, total=False):
    """The options of `adaptive_avg_pool` that leave the type of the result alone."""

    rounding: Rounding


class DrawOptions(TypedDict, total=False):
    """The options of random windows."""

    size: Ints | None
    seed: Seed
    pseudo_random: bool
    overlapping: bool


class FractionalMaxOptions(DrawOptions, AdaptiveMaxOptions, total=False):
    """The options of `fractional_max_pool` that leave the type of the result alone."""


class FractionalAvgOptions(DrawOptions, AdaptiveAvgOptions, total=False):
    """The options of `fractional_avg_pool` that leave the type of the result alone."""


class GlobalSumOptions(AxesOptions, total=False):
    """The options of `global_sum_pool` that leave the type of the result alone."""

    keepdims: bool


class GlobalAvgOptions(GlobalSumOptions, total=False):
    """The options of `global_avg_pool` that leave the type of the result alone."""

    rounding: Rounding


class GlobalMaxOptions(GlobalSumOptions, total=False):
    """The options of `global_max_pool` and `global_min_pool`."""

    ties: Ties
