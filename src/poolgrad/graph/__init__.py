"""Pooling ops as blocks on pages: built, checked, run, explained, saved and exported."""

from . import service
from .derive import gradients
from .executor import Cache
from .model import Graph, GraphError, Problem, Repair
from .scope import Attrs, Operation, Output, Scope, ops
from .session import Session

__all__ = [
    "Attrs",
    "Cache",
    "Graph",
    "GraphError",
    "Operation",
    "Output",
    "Problem",
    "Repair",
    "Scope",
    "Session",
    "gradients",
    "ops",
    "service",
]
