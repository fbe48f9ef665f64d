"""Define a contestant of the benchmark."""

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
    """A call ready to be timed, and a function that turns its value into an array in the cell's layout."""

    call: Callable[[], Any]
    result: Callable[[Any], Array] = _same


class Peer(Protocol):
    """A contestant: one way to compute a cell. With `given` it gets the positions of the maxima as input."""

    name: str
    given: bool

    def version(self) -> str:
        """Return the version of the library that computes."""
        ...

    def can(self, cell: Cell) -> str | None:
        """Return the reason why the peer cannot compute the cell, or None."""
        ...

    def prepare(self, cell: Cell, arrays: Arrays) -> Run:
        """Do the work that happens once: conversion, compilation, layout."""
        ...


def load(name: str) -> Any:
    """Import an optional module, untyped."""
    return importlib.import_module(name)


def installed(module: str) -> bool:
    """Return True if a module can be imported."""
    return importlib.util.find_spec(module) is not None


def version_of(*distributions: str) -> str:
    """Return the version of the first distribution that is installed."""
    for name in distributions:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "unknown"
