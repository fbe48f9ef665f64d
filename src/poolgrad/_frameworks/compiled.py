"""Say which pools the extensions run over boundaries (boundaries.hpp), and with which numbers; Python runs the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from .spec import Frame, PoolSpec


def axes_of(frame: Frame) -> list[int]:
    """Return the pooled axes as the extensions read them: dimension, cells and windows of each."""
    return [int(n) for axis in frame.axes for n in axis[:3]]


def divides(rule: PoolSpec) -> bool:
    """Return True if sums are divided by something else than the cells of their windows."""
    return rule.divisor is not None or rule.count_include_pad


def chooses(rule: PoolSpec, dtype: np.dtype[Any]) -> bool:
    """Return True if the core can make the choice of a spec over boundaries."""
    return _plain(rule.frame) and rule.ties == "first" and (dtype.kind in "iub" or rule.nan != "tf")


def applies(rule: PoolSpec, dtype: np.dtype[Any]) -> bool:
    """Return True if the core can apply the operator of a spec over boundaries; halves are divided in a wider type, by Python."""
    return _plain(rule.frame) and (
        rule.kind == "pick" or (rule.kind == "fold" and not (divides(rule) and dtype.itemsize == 2))
    )


def division(rule: PoolSpec) -> dict[str, Any]:
    """Return how a sum is divided: by its cells (`mean`), by the spans of its window, or by a factor."""
    spans = rule.count_include_pad and rule.divisor is None
    return {
        "mean": rule.mean and not divides(rule),
        "spans": spans,
        "factor": 1.0 if rule.divisor is None else float(rule.divisor),
    }


def _plain(frame: Frame) -> bool:
    return all(axis[3] == 1 for axis in frame.axes) and not frame.loose
