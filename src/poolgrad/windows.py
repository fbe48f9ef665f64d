"""Windows: `Axis` (windows along one dimension), `Plan` (an axis per dimension), and the functions that make axes."""

from ._windows.axis import Axis, Ints, table
from ._windows.axis import _unpacked as _unpacked  # pickles of earlier versions name it here
from ._windows.plan import MOST_AXES, Plan, TooManyAxes, planned
from ._windows.sliding import clip, edges, itself, reach, same_length, same_pad, valid_length, whole

__all__ = [
    "MOST_AXES",
    "Axis",
    "Ints",
    "Plan",
    "TooManyAxes",
    "clip",
    "edges",
    "itself",
    "planned",
    "reach",
    "same_length",
    "same_pad",
    "table",
    "valid_length",
    "whole",
]
