"""Pooling operators and their derivatives, with TensorFlow's numbers and without TensorFlow."""

from . import _core as _core  # the first import: it refuses sub-interpreters before NumPy is loaded
from . import raw_ops
from .config import __version__, config, get_num_threads, set_kept_memory, set_num_threads, show_config, threads
from .explain import explain
from .windows import Axis, Plan, clip, edges, reach, whole

__all__ = [
    "Axis",
    "Plan",
    "__version__",
    "clip",
    "config",
    "edges",
    "explain",
    "get_num_threads",
    "raw_ops",
    "reach",
    "set_kept_memory",
    "set_num_threads",
    "show_config",
    "threads",
    "whole",
]
