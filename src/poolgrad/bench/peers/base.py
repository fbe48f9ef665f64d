"""What a contestant is."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ..cells import Cell
from ..data import Array, Arrays


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Run:
    """A call ready to be timed, and how its value becomes an array in the cell's layout."""

    call: Callable[[], Any]
    result: Callable[[Any], Array] = _same


class Peer(Protocol):
    """One way to compute a cell. `given` ones get the positions of the maxima, which is another input."""

    name: str
    given: bool

    def version(self) -> str:
        """The version of what computes."""
        ...

    def can(self, cell: Cell) -> str | None:
        """Why the cell cannot be computed, or None."""
        ...

    def prepare(self, cell: Cell, arrays: Arrays) -> Run:
        """Everything that is done once: conversion, compilation, layout."""
        ...


def load(name: str) -> Any:
    """A module that may be absent for others, without types."""
    return importlib.import_module(name)


def installed(module: str) -> bool:
    """Whether a module can be imported."""
    return importlib.util.find_spec(module) is not None


def version_of(*distributions: str) -> str:
    """The version of the first distribution that is installed."""
    for name in distributions:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "unknown"
