"""Race poolgrad's entry points against other libraries: check that results agree, then take turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..machine import Others, describe
from ..timing import Entry, once, race

OURS = "poolgrad"
Record = dict[str, Any]
Call = Callable[[], Any]


@dataclass(frozen=True)
class Contest:
    """The calls of a cell, ours under the name OURS, each with a function that turns its value into an array.

    Results may differ by `tolerance`, relative to the largest number, and by `slack`: means of integers are rounded in several ways.
    `check` replaces the comparison of random results.
    """

    calls: Mapping[str, tuple[Call, Callable[[Any], Any]]]
    tolerance: float = 0.0
    slack: float = 0.0
    check: Callable[[], None] | None = None


@dataclass(frozen=True)
class Cell:
    """A contest under a name: made when its turn comes, so that its arrays live no longer."""

    group: str
    name: str
    make: Callable[[], Contest]


@dataclass
class Found:
    """The versions of the peers that are here, and the reasons why others are absent."""

    versions: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def load(self, name: str, module: Callable[[], Any], version: Callable[[Any], str]) -> Any:
        """Import a peer; None if that fails."""
        try:
            made = module()
            self.versions[name] = version(made)
        except Exception as error:  # a broken installation must not stop the others
            self.missing[name] = f"{type(error).__name__}: {error}"
            return None
        return made


class Disagreement(AssertionError):
    """A peer computes something else: the cell is wrong."""


def agree(ours: Any, theirs: Any, tolerance: float, slack: float = 0.0) -> None:
    """Raise Disagreement if two results differ by more than a contest allows."""
    mine, other = (np.asarray(value).astype(np.float64) for value in (ours, theirs))
    if mine.shape != other.shape:
        raise Disagreement(f"shape {other.shape}, poolgrad's is {mine.shape}")
    both = np.isnan(mine) & np.isnan(other)
    most = float(np.abs(np.where(both, 0, mine - other)).max(initial=0.0))
    if not most <= slack + tolerance * max(1.0, float(np.nanmax(np.abs(mine), initial=0.0))):
        raise Disagreement(f"differs from poolgrad by {most:.3g}")


def run(cell: Cell, seconds: float) -> Record:
    """Check and race one cell."""
    contest, others = cell.make(), Others()
    record: Record = {"group": cell.group, "name": cell.name, "contestants": {}, "failed": {}}
    entries, first = [], None
    for name, (call, result) in contest.calls.items():
        try:
            call()  # compiles, makes plans, fills caches
            value, spent = once(call)
            if contest.check is None:
                found = result(value)
                first = found if name == OURS else first
                agree(first, found, contest.tolerance, contest.slack)
            elif name != OURS:
                contest.check()
        except Exception as error:  # a peer's failure is a finding, not ours
            if name == OURS:
                raise
            record["failed"][name] = f"{type(error).__name__}: {error}"
            continue
        entries.append(Entry(name, call, spent))
    race(entries, seconds)
    for entry in entries:
        record["contestants"][entry.name] = {"best": entry.best, "times": len(entry.times)}
        if entry.error:
            record["failed"][entry.name] = entry.error
    record["others"] = others.cores()
    return record


def compete(
    cells: Iterable[Cell], seconds: float, found: Found, say: Callable[[Record], None] = lambda record: None
) -> Record:
    """Race all cells; return the report."""
    records = []
    for cell in cells:
        records.append(run(cell, seconds))
        say(records[-1])
    return {
        "machine": describe(found.versions, found.missing),
        "settings": {"seconds_per_cell": seconds},
        "cells": records,
    }
