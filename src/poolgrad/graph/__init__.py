"""Pooling ops as blocks on pages: built, checked, run, explained, saved and exported."""

from typing import TYPE_CHECKING

from . import service
from .derive import gradients
from .executor import Cache
from .model import Graph, GraphError, PageProblem, Repair
from .scope import Attrs, Operation, Output, Scope, ops
from .session import Session

__all__ = [
    "Attrs",
    "Cache",
    "Graph",
    "GraphError",
    "Operation",
    "Output",
    "PageProblem",
    "Repair",
    "Scope",
    "Session",
    "gradients",
    "ops",
    "service",
]

if not TYPE_CHECKING:  # a type checker must know which names there are

    def __getattr__(name: str) -> object:
        if name == "Problem":
            from .._common.renamed import warn_renamed

            warn_renamed(__name__, "Problem", "PageProblem")
            return PageProblem
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
