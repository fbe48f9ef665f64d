"""Pooling operators and their derivatives, with TensorFlow's numbers and without TensorFlow."""

from typing import TYPE_CHECKING

from . import _core as _core  # the first import: it refuses sub-interpreters before NumPy is loaded
from . import _hosts as _hosts
from . import raw_ops
from ._windows.axis import Axis
from ._windows.plan import Plan
from ._windows.sliding import edges, reach, sliding_axis, whole
from .config import __version__, config, get_num_threads, set_kept_memory, set_num_threads, show_config, threads

if TYPE_CHECKING:
    from ._cli.trial import _find_call as _find_call
    from ._explain.explain import explain
    from ._explain.plot import show
    from ._pooling.adaptive_global import (
        adaptive,
        adaptive_avg_pool,
        adaptive_max_pool,
        global_avg_pool,
        global_max_pool,
        global_min_pool,
        global_sum_pool,
    )
    from ._pooling.conventions import like
    from ._pooling.fractional import fractional_avg_pool, fractional_max_pool, fractional_windows
    from ._pooling.operators import Linear
    from ._pooling.plan_operators import averaging, max_operator, min_operator, summing
    from ._pooling.pools import avg_pool, lp_pool, max_pool, min_pool, sum_pool
    from ._pooling.tape import Var, grad, jvp, vjp
    from ._pooling.taps import Taps, picking, unpool, unpooling
    from ._pooling.window_args import output_shape, plan
    from .jobs.job import Job
    from .jobs.loop import pool
    from .jobs.pyramid import pyramid
    from .studio.notebook import studio

# The pythonic API is loaded when it is first asked for: those who came for raw_ops do not wait for it.
_LATER = {
    "_pooling.tape": ("Var", "grad", "jvp", "vjp"),
    "_pooling.adaptive_global": (
        *("adaptive", "adaptive_avg_pool", "adaptive_max_pool"),
        *("global_avg_pool", "global_max_pool", "global_min_pool", "global_sum_pool"),
    ),
    "_pooling.conventions": ("like",),
    "_pooling.fractional": ("fractional_avg_pool", "fractional_max_pool", "fractional_windows"),
    "_pooling.plan_operators": ("averaging", "max_operator", "min_operator", "summing"),
    "_pooling.pools": ("avg_pool", "lp_pool", "max_pool", "min_pool", "sum_pool"),
    "_pooling.window_args": ("output_shape", "plan"),
    "_pooling.operators": ("Linear",),
    "_explain.plot": ("show",),
    "_pooling.taps": ("Taps", "picking", "unpool", "unpooling"),
    "_explain.explain": ("explain",),
    "_cli.trial": ("_find_call",),
    "jobs.job": ("Job",),
    "jobs.loop": ("pool",),
    "jobs.pyramid": ("pyramid",),
}


_RENAMED = {"clip": "sliding_axis", "maximum": "max_operator", "minimum": "min_operator"}

if not TYPE_CHECKING:  # a type checker must know which names there are

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name in _RENAMED:
            from ._common.renamed import warn_renamed

            warn_renamed("poolgrad", name, _RENAMED[name])
            return getattr(import_module(__name__), _RENAMED[name])
        if name == "studio":  # the package itself, which can be called
            return import_module(".studio", __name__)
        for module, names in _LATER.items():
            if name in names:
                value = globals()[name] = getattr(import_module(f".{module}", __name__), name)
                return value
        raise AttributeError(f"module 'poolgrad' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "Axis",
    "Job",
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
    "config",
    "edges",
    "explain",
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
    "max_operator",
    "max_pool",
    "min_operator",
    "min_pool",
    "output_shape",
    "picking",
    "plan",
    "pool",
    "pyramid",
    "raw_ops",
    "reach",
    "set_kept_memory",
    "set_num_threads",
    "show",
    "show_config",
    "sliding_axis",
    "studio",
    "sum_pool",
    "summing",
    "threads",
    "unpool",
    "unpooling",
    "vjp",
    "whole",
]
