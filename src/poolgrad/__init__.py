"""Pooling operators and their derivatives, with TensorFlow's numbers and without TensorFlow."""

from typing import TYPE_CHECKING, Any

from . import _core as _core  # the first import: it refuses sub-interpreters before NumPy is loaded
from . import raw_ops
from .config import __version__, config, get_num_threads, set_kept_memory, set_num_threads, show_config, threads
from .windows import Axis, Plan, clip, edges, reach, whole

if TYPE_CHECKING:
    from .why import explain

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


def __getattr__(name: str) -> Any:
    """`explain` is loaded when it is first asked for, so that importing the package costs little."""
    if name != "explain":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .why import explain

    globals()["explain"] = explain
    return explain
