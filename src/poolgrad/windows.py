"""Windows: `Axis` (windows along one dimension), `Plan` (an axis per dimension), and the functions that make axes."""

from typing import TYPE_CHECKING

from ._windows.axis import Axis, IntArray, table
from ._windows.axis import _unpacked as _unpacked  # pickles of earlier versions name it here
from ._windows.plan import MOST_AXES, Plan, TooManyAxes, planned
from ._windows.sliding import edges, itself, reach, same_length, same_pad, sliding_axis, valid_length, whole

__all__ = [
    "MOST_AXES",
    "Axis",
    "IntArray",
    "Plan",
    "TooManyAxes",
    "edges",
    "itself",
    "planned",
    "reach",
    "same_length",
    "same_pad",
    "sliding_axis",
    "table",
    "valid_length",
    "whole",
]

_RENAMED = {"Ints": "IntArray", "clip": "sliding_axis"}

if not TYPE_CHECKING:  # a type checker must know which names there are

    def __getattr__(name: str) -> object:
        if name in _RENAMED:
            from ._common.renamed import warn_renamed

            warn_renamed(__name__, name, _RENAMED[name])
            return globals()[_RENAMED[name]]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
