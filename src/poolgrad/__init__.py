"""Pooling operators and their derivatives, with TensorFlow's numbers and without TensorFlow."""

from . import _core as _core  # the first import: it refuses sub-interpreters before NumPy is loaded
from . import raw_ops
from .autodiff import Var, grad, jvp, vjp
from .config import __version__, config, get_num_threads, set_kept_memory, set_num_threads, show_config, threads
from .families import (
    adaptive_avg_pool,
    adaptive_max_pool,
    averaging,
    fractional_avg_pool,
    fractional_max_pool,
    global_avg_pool,
    global_max_pool,
    global_min_pool,
    global_sum_pool,
    like,
    maximum,
    minimum,
    plan,
    summing,
)
from .functional import avg_pool, lp_pool, max_pool, min_pool, sum_pool
from .geometry import adaptive, fractional_windows, output_shape
from .operators import Linear
from .taps import Taps, picking, unpool, unpooling
from .windows import Axis, Plan, clip, edges, reach, whole

__all__ = [
    "Axis",
    "Linear",
    "Plan",
    "Taps",
    "Var",
    "__version__",
    "adaptive",
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "averaging",
    "avg_pool",
    "clip",
    "config",
    "edges",
    "fractional_avg_pool",
    "fractional_max_pool",
    "fractional_windows",
    "get_num_threads",
    "global_avg_pool",
    "global_max_pool",
    "global_min_pool",
    "global_sum_pool",
    "grad",
    "jvp",
    "like",
    "lp_pool",
    "max_pool",
    "maximum",
    "min_pool",
    "minimum",
    "output_shape",
    "picking",
    "plan",
    "raw_ops",
    "reach",
    "set_kept_memory",
    "set_num_threads",
    "show_config",
    "sum_pool",
    "summing",
    "threads",
    "unpool",
    "unpooling",
    "vjp",
    "whole",
]
