"""Pooling ops as blocks on pages: built, checked, run, explained, saved and exported."""

from . import service
from .model import Graph, GraphError, Problem, Repair
from .session import Cache

__all__ = ["Cache", "Graph", "GraphError", "Problem", "Repair", "service"]
