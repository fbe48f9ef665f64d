"""Compute pools and their derivatives over a part of an array."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._common.errors import ArgumentErrors, short_repr
from .._pooling.adaptive_global import adaptive_axes, global_axes
from .._pooling.fractional import drawing_over, seeds_of
from .._pooling.maxima import Options, best_of
from .._pooling.means import Division, folded, folding, in_one_pass
from .._pooling.named import OPTIONS, POOLS, WORDS
from .._pooling.norms import check_power, norm_of
from .._pooling.operators import gradient_of_whole
from .._pooling.sources import Layout
from .._pooling.tape import jvp, vjp
from .._pooling.taps import Taps, picking
from .._pooling.window_args import PooledAxes, WindowArgs, spell
from .._windows.axis import Axis
from .._windows.plan import Plan
from .parts import Input, Output, Part, Shape, Windows, size_of

_FLOATS = ("float16", "bfloat16", "float32", "float64")
RETURNS = ("values", "taps", "argmax")


def split_words(
    problems: ArgumentErrors, op: str, args: tuple[Any, ...], words: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments about windows, and the options of the pool; refuse others."""
    kind, how = POOLS[op]
    about = WORDS[how]
    if len(args) > min(2 if how == "sliding" else 1, len(about)):
        problems.fail("arguments", short_repr(args), f"at most {', '.join(about[:2])} without their names")
    given = dict(zip(about, args, strict=False))
    for name, value in words.items():
        if name in given:
            problems.fail(name, short_repr(value), "one value, not two")
        if name not in about and name not in OPTIONS[kind]:
            problems.fail(name, short_repr(value), f"an argument of {op}: {', '.join((*about, *OPTIONS[kind]))}")
        given[name] = value
    return {k: v for k, v in given.items() if k in about}, {k: v for k, v in given.items() if k not in about}


def find_windows(
    problems: ArgumentErrors, op: str, shape: Shape, words: Mapping[str, Any]
) -> tuple[Windows | None, ...]:
    """Return the windows of each dimension: formulas where they are regular, else tables; None if it is not pooled."""
    kind = POOLS[op][1]
    if kind in ("sliding", "adaptive") and (needed := WORDS[kind][0]) not in words:
        problems.fail(needed, "nothing", "a window" if kind == "sliding" else "the number of windows")
    if kind == "sliding":
        formulas = spell(problems, len(shape), WindowArgs(**words)).formulas(problems, shape)
        return tuple(map(formulas.get, range(len(shape))))
    axes, layout = words.get("axes"), words.get("layout")
    if kind == "global":
        return global_axes(problems, shape, axes, layout).plan.by_dimension
    if kind == "adaptive":
        return adaptive_axes(problems, shape, words["size"], axes, layout).plan.by_dimension
    how = (words.get("pseudo_random", False), words.get("overlapping", False))
    found, drawing = drawing_over(problems, shape, words.get("ratio"), words.get("size"), how, axes, layout)
    made = dict(zip(found, drawing.draw(seeds_of(problems, words.get("seed"))), strict=True))
    return tuple(map(made.get, range(len(shape))))


@dataclass(frozen=True)
class PoolCall:
    """A pool, or a derivative of it, with all its options."""

    op: str
    dtype: np.dtype[Any]
    axes: tuple[int, ...]
    options: tuple[tuple[str, Any], ...]
    most_taps: int  # the cells of the largest window of the whole array
    returns: tuple[str, ...] = ("values",)
    derivative: str = ""  # "", "jvp" or "vjp"
    order: int = 0
    from_taps: bool = False  # a derivative reads stored taps instead of the array

    @property
    def kind(self) -> str:
        """The kind of pool: max, min, avg, sum or lp."""
        return POOLS[self.op][0]

    @property
    def back(self) -> bool:
        """True for gradients."""
        return self.derivative == "vjp"

    @property
    def linear(self) -> bool:
        """True if the first derivative does not depend on the array."""
        return self.kind in ("avg", "sum") and self._options.get("nan") != "ignore"

    @property
    def even(self) -> bool:
        """True if all cells of a window have the same gradient."""
        return self.linear and self.back and self.order == 1

    def gradient_of_whole(self, g: Array, cells: int) -> Array:
        """Return the gradient of each cell, if one window of so many cells covers all of them."""
        divisor = self._options.get("divisor")
        return gradient_of_whole(g, cells, 1.0 if self.kind == "sum" else divisor)

    @property
    def _options(self) -> dict[str, Any]:
        return dict(self.options)

    @property
    def taps_type(self) -> np.dtype[Any]:
        """The dtype of taps: one byte where no window of the whole array has more than 256 cells."""
        return np.dtype(np.uint8 if self.most_taps <= 256 else np.uint32)

    def check(self, problems: ArgumentErrors) -> None:
        """Refuse wrong options and dtypes: run the pool on one cell."""
        if self.kind == "lp":
            check_power(self.op, self._options.get("p", 2), self.dtype)
        if any(name not in RETURNS for name in self.returns) or not self.returns:
            problems.fail("returns", short_repr(self.returns), "'values', 'taps', 'argmax', or several of them")
        if self.kind not in ("max", "min") and self.returns != ("values",):
            problems.fail("returns", short_repr(self.returns), "'values': only max and min pools choose cells")
        self._one_cell()

    def _one_cell(self) -> np.dtype[Any]:
        """Return the dtype of the values."""
        shape = (1,) * (max(self.axes, default=0) + 1)
        plan = Plan(shape, {d: Axis(1, [0], [1]) for d in self.axes})
        found = replace(self, derivative="", order=0)._pool(plan)(np.zeros(shape, self.dtype))
        dtype: np.dtype[Any] = (found[0] if isinstance(found, tuple) else found).dtype
        return dtype

    def differentiated(self, problems: ArgumentErrors, how: str, order: int, from_taps: bool) -> PoolCall:
        """Return a derivative of the pool."""
        if self.dtype.name not in _FLOATS:
            problems.fail("dtype", self.dtype, "a floating dtype: integers have no derivatives", TypeError)
        if self._options.get("dtype") is not None:
            problems.fail("dtype", self._options["dtype"], "None where a pool is differentiated")
        if from_taps and (self.kind not in ("max", "min") or self._options.get("ties") in ("all", "split")):
            problems.fail("from_taps", True, "a max or min pool that chooses one cell of each window")
        if from_taps and order != 1:
            problems.fail("order", order, "1 from taps: all others are zero")
        return replace(self, derivative=how, order=order, from_taps=from_taps, returns=("values",))

    def inputs(self, source: Shape, dest: Shape) -> tuple[Input, ...]:
        """Return the arrays that it reads, as `run` takes them: x or taps, then the cotangent, then tangents."""
        x = Input("x", source, self.dtype, False)
        if not self.derivative:
            return (x,)
        first = Input("taps", dest, self.taps_type, True) if self.from_taps else x
        g = (Input("g", dest, self.dtype, True),) if self.back else ()
        many = self.order - self.back
        tangents = [Input("v" if many == 1 else f"v{k + 1}", source, self.dtype, False) for k in range(many)]
        return (*(() if self.linear and self.order == 1 else (first,)), *g, *tangents)

    def outputs(self, shape: Shape) -> tuple[Output, ...]:
        """Return the arrays that it makes."""
        if self.derivative:
            return (Output("gradient" if self.back else "tangent", shape, self.dtype),)
        dtypes = {"values": self._one_cell(), "taps": self.taps_type, "argmax": np.dtype(np.int64)}
        return tuple(Output(name, shape, dtypes[name]) for name in self.returns)

    def run(self, part: Part, whole: Shape, *arrays: Array) -> tuple[Array, ...]:
        """Compute the pool, or its derivative, over a part."""
        if self.derivative:
            return (self._differentiate(part.plan, *arrays),)
        found = self._pool(part.plan)(*arrays)
        if not isinstance(found, tuple):
            return (found,)
        made = {"values": found[0], "taps": found[1].values.astype(self.taps_type, copy=False)}
        if "argmax" in self.returns:
            made["argmax"] = _positions(found[1], part, whole)
        return tuple(made[name] for name in self.returns)

    def _pool(self, plan: Plan) -> Callable[[Any], Any]:
        """Return the pool over a plan, as a function of the array."""
        geometry, options = PooledAxes(self.axes, plan), self._options
        if self.kind in ("max", "min"):
            ties, nan = options.get("ties", "first"), options.get("nan", "propagate")
            how = Options(ties, nan, self.returns != ("values",))
            return lambda x: best_of(self.op, x, geometry, self.kind == "min", how)
        if self.kind == "lp":
            power = check_power(self.op, options.get("p", 2), self.dtype)
            return lambda x: norm_of(self.op, x, geometry, power)
        return lambda x: folded(self.op, x, geometry, self._division)

    @property
    def _division(self) -> Division:
        return Division(self.kind == "avg", **self._options)

    def _differentiate(self, plan: Plan, *arrays: Array) -> Array:
        found: Any
        if self.from_taps:
            operator = picking(plan, arrays[0])
            found = operator.back(arrays[1]) if self.back else operator.forth(arrays[1])
        elif self.linear and self.order == 1:
            layout = Layout(plan, tuple(range(len(plan.source))), self.axes, self.dtype)
            linear = folding(self.op, layout, self._division)
            found = linear.back(arrays[0]) if self.back else linear.forth(arrays[0])
        else:
            found = self._by_tape(plan, *arrays)
        result: Array = found
        return result

    def _by_tape(self, plan: Plan, x: Array, *rest: Array) -> Any:
        f = self._pool(plan)
        for v in rest[self.back : len(rest) if self.back else len(rest) - 1]:
            f = _along(f, v)
        if self.back:
            return vjp(f, x)[1](rest[0])
        return jvp(f, x, rest[-1])[1]

    def temporary(self, part: Part) -> int:
        """Return the bytes that it needs besides its inputs and outputs."""
        cells, windows, size = prod(size_of(part.source)), prod(size_of(part.dest)), self.dtype.itemsize
        if self.derivative:
            return self._held_by_derivative(cells, windows, size)
        if self.kind == "lp":
            return cells * (8 if size == 2 else size)  # powers; of halves in float32
        if self.kind in ("avg", "sum"):
            if self.dtype.kind not in "iub" or in_one_pass(self.op, part.plan, self._division, self.dtype):
                return 0
            return (8 * cells if size < 8 else 0) + 28 * windows  # exact sums, quotients and remainders
        return 49 * windows if "argmax" in self.returns else 0  # coordinates, int64

    def _held_by_derivative(self, cells: int, windows: int, size: int) -> int:
        """Return the bytes that a derivative needs; measured, see `tests/jobs/test_job_memory.py`."""
        if self.from_taps or (self.linear and self.order == 1):
            return 4 * windows
        if self.kind == "lp":
            return self.order * cells * (42 if size == 2 else 15 * size // 2)
        if self._options.get("ties") in ("all", "split"):
            return self.order * cells * (10 if size == 2 else 2 * size)
        through = windows * (size + 4) * (4 if self.order > 1 else 1)
        return through if self.back else cells * size * self.order + through


def _along(f: Callable[[Any], Any], v: Array) -> Callable[[Any], Any]:
    """Return the derivative of a function along a tangent, as a function."""
    return lambda x: jvp(f, x, v)[1]


def _positions(taps: Taps, part: Part, whole: Shape) -> Array:
    """Return the flat positions of the chosen cells in the whole array."""
    chosen, total = taps.coordinates(), np.zeros(part.plan.dest, np.int64)
    for d, (n, cells) in enumerate(zip(whole, part.source, strict=True)):
        own = np.arange(part.plan.dest[d]).reshape([-1 if k == d else 1 for k in range(len(whole))])
        total = total * n + (chosen.get(d, own) + cells.start)
    return total
