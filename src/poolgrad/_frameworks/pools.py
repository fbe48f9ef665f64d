"""Pool a framework's arrays: the pools are written once, over a `Backend` that selects, applies operators and computes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Generic, Protocol

import numpy as np

from .._common.errors import ArgumentErrors
from .._pooling import adaptive_global, fractional, means, pools, taps
from .._pooling.norms import check_power
from . import spec
from .spec import Frame, PoolCall, PoolSpec, understand_call
from .types import A

Pool = Callable[..., Any]

NAMES = (*spec.POOLS, "lp_pool", "unpool")


class Backend(Protocol):
    """The operations that a framework must provide."""

    def describe(self, op: str, x: Any) -> tuple[Any, tuple[int, ...], np.dtype[Any]]:
        """Return x as the framework's array, its shape and its NumPy dtype; refuse anything but an array."""

    def accept(self, op: str, x: Any, frame: Frame) -> None:
        """Refuse an x that cannot be pooled over these axes."""

    def constant(self, values: Any) -> Any:
        """Convert an integer array to the framework's."""

    def seed(self, op: str, seed: Any) -> Any:
        """Return None if the seed is known now, else an array of integers that is known when the pool runs."""

    def select(self, rule: PoolSpec, x: Any, windows: Any) -> tuple[Any, Any]:
        """Run `spec.select`, differentiable in x."""

    def linear(self, rule: PoolSpec, back: bool, v: Any, windows: Any, *state: Any) -> Any:
        """Run `spec.carry`, differentiable in v to any order; the state is constant."""

    def compute(self, function: partial[Any], shape: tuple[Any, ...], dtype: Any, *arrays: Any) -> Any:
        """Run a function of `spec`, given its first arguments, on arrays, without derivative."""

    def constant_of(self, x: Any) -> Any:
        """Return x as a constant, without derivative."""

    def cast(self, x: Any, dtype: Any) -> Any:
        """Cast x to another dtype."""

    def squeeze(self, x: Any, axes: tuple[int, ...]) -> Any:
        """Remove these axes of length 1 from x."""

    chosen: Any
    """The class of the framework's taps, which sets it."""


class Chosen(Generic[A]):
    """The cell that each window of a pool chose.

    Pools return taps with ``return_taps=True``.

    Attributes
    ----------
    values : array
        The taps: the number of the chosen cell within its window, in the shape of the pooled array.
    windows : array
        The boundaries of the windows.

    See Also
    --------
    unpool : Put values back at the taps.
    """

    backend: Backend

    def __init_subclass__(cls) -> None:
        cls.__doc__ = Chosen.__doc__
        cls.backend.chosen = cls

    def __init__(self, values: A, windows: A, rule: PoolSpec) -> None:
        self.values, self.windows, self.rule = values, windows, rule

    @property
    def shape(self) -> tuple[Any, ...]:
        """Shape of the array before pooling, which unpooling restores."""
        return self.rule.frame.source(self._dest)

    @property
    def _dest(self) -> tuple[Any, ...]:
        values: Any = self.values
        return tuple(values.shape)

    def __repr__(self) -> str:
        return f"<Taps: {list(self._dest)} of {list(self.shape)}, {self.rule.frame.taps}>"

    def flat(self) -> A:
        """Return the positions of the chosen cells in the flattened array, as TensorFlow's argmax.

        Returns
        -------
        array of int64
            One position per window.
        """
        return self._positions("flat")

    def plane(self) -> A:
        """Return the positions of the chosen cells within the pooled axes, as PyTorch's indices.

        Returns
        -------
        array of int64
            One position per window.
        """
        return self._positions("plane")

    def _positions(self, method: str) -> A:
        count = partial(spec.positions, self.rule, method)
        found: A = self.backend.compute(count, self._dest, np.int64, self.values, self.windows)
        return found


def _windows(backend: Backend, recipe: PoolCall, seed: Any) -> Any:
    if seed is None:
        return backend.constant(recipe.windows)
    lengths, sizes = (tuple(axis[i] for axis in recipe.rule.frame.axes) for i in (1, 2))
    given = recipe.given
    drawn = partial(spec.draw, lengths, sizes, bool(given["pseudo_random"]), bool(given["overlapping"]))
    return backend.compute(drawn, recipe.windows.shape, np.int32, seed)


def _parts(backend: Backend, recipe: PoolCall, windows: Any, seed: Any) -> tuple[Any, ...]:
    """Return the windows for the caller: axes, or arrays of pairs if the windows are drawn when the pool runs."""
    if seed is None:
        return recipe.axes
    ends = np.cumsum([len(axis) for axis in recipe.axes]).tolist()
    return tuple(
        backend.compute(partial(spec.pairs, end - len(axis), end), (len(axis), 2), np.int32, windows)
        for end, axis in zip(ends, recipe.axes, strict=True)
    )


def pool_over(backend: Backend, op: str, x: Any, given: Mapping[str, Any], windows: Any = None) -> Any:
    """Pool x with all arguments of the NumPy pool of that name; over these windows, if they were drawn before."""
    x, shape, dtype = backend.describe(op, x)
    seed = backend.seed(op, given["seed"]) if op in spec.FRACTIONAL else None
    recipe = understand_call(op, shape, dtype, given if seed is None else {**given, "seed": 0})
    rule = recipe.rule
    backend.accept(op, x, rule.frame)
    windows = _windows(backend, recipe, seed) if windows is None else windows
    extra: tuple[Any, ...] = ()
    if rule.ties != "none":
        y, chosen = backend.select(rule, x, windows)
        extra += (backend.chosen(chosen, windows, rule),) if recipe.wants("return_taps") else ()
    else:
        y = _folded(backend, recipe, x, dtype, windows)
    y = backend.squeeze(y, tuple(axis[0] for axis in rule.frame.axes)) if recipe.drops else y
    extra += (_parts(backend, recipe, windows, seed),) if recipe.wants("return_windows") else ()
    return (y, *extra) if extra else y


def _folded(backend: Backend, recipe: PoolCall, x: Any, dtype: np.dtype[Any], windows: Any) -> Any:
    rule, wanted = recipe.rule, recipe.given.get("dtype")
    kind = None if wanted is None else means.dtype_of(ArgumentErrors(rule.op), wanted)
    rounding = recipe.given.get("rounding", "nearest")
    if dtype.kind in "iub":
        sums = partial(spec.whole, rule, kind, rounding)
        return backend.compute(sums, rule.dest(tuple(x.shape)), kind or _whole_type(rule, dtype), x, windows)
    state = (backend.constant_of(x),) if rule.kind == "like" else ()
    y = backend.linear(rule, False, x, windows, *state)
    if kind is None or kind.kind not in "iu":
        return y if kind is None else backend.cast(y, kind)
    settled = partial(spec.settled, rule, kind, rounding)
    return backend.compute(settled, rule.dest(tuple(x.shape)), kind, backend.constant_of(y))


def _whole_type(rule: PoolSpec, dtype: np.dtype[Any]) -> np.dtype[Any]:
    if rule.mean or rule.divisor is not None:
        return np.dtype(np.float64)
    return np.dtype(np.uint64 if dtype == np.uint64 else np.int64)


def _lp(backend: Backend, x: Any, given: dict[str, Any]) -> Any:
    x, _, dtype = backend.describe("lp_pool", x)
    p = check_power("lp_pool", given.pop("p"), dtype)
    half = dtype.itemsize < 4
    wide = backend.cast(x, np.float32) if half else x
    total = pool_over(backend, "lp_pool", abs(wide) ** p, {**given, "nan": "propagate"})
    empty = backend.cast(backend.constant_of(total) == 0, np.float32 if half else dtype)
    y = (total + empty) ** (1 / p) * (1 - empty)
    return backend.cast(y, dtype) if half else y


def _unpooled(backend: Backend, y: Any, where: Any, shape: Any, reduce: Any, items: int) -> Any:
    problems = ArgumentErrors("unpool")
    y, found, _ = backend.describe("unpool", y)
    if isinstance(where, Chosen):
        taps.check_unpool(problems, reduce, shape, where.shape)
        rule = PoolSpec("unpool", "pick" if reduce == "sum" else "assign", where.rule.frame)
        windows, (state, wanted, _) = where.windows, backend.describe("unpool", where.values)
    else:
        taps.check_unpool(problems, reduce, shape, None)
        if shape is None:
            problems.fail("shape", "None", "the shape of the result: positions alone do not tell it")
        state, wanted, _ = backend.describe("unpool", where)
        rule = PoolSpec("unpool", "index", Frame((), 1), shape=tuple(shape), after=wanted, reduce=reduce, items=items)
        windows = backend.constant(np.zeros((3, 0), np.int32))
    if found != wanted:
        problems.fail("v", f"shape {list(found)}", list(wanted))
    return backend.linear(rule, True, y, windows, state)


def _signature(op: str) -> tuple[Callable[..., Any], inspect.Signature]:
    original = next(getattr(room, op) for room in (pools, fractional, adaptive_global, taps) if hasattr(room, op))
    signature = inspect.signature(original)
    return original, signature.replace(parameters=[p for p in signature.parameters.values() if p.name != "out"])


def adapted_doc(op: str, text: str) -> str:
    """Return the docstring of a NumPy pool for a framework: summary, parameters without `out`, and errors."""
    summary, *sections = re.split(r"\n\n(?=[A-Z][A-Za-z ]+\n-{3,}\n)", text.replace("array_like or Var", "array"))
    kept = {part.partition("\n")[0]: part for part in sections}
    arguments = re.sub(r"\nout : .*(\n .*)*", "", kept.get("Parameters", ""))
    note = f"As `poolgrad.{op}`, which has examples; the arrays are those of the framework."
    return "\n\n".join(filter(None, (summary, note, arguments, kept.get("Raises")))) + "\n"


def pool(backend: Backend, op: str) -> Pool:
    """Return the pool of that name for a framework's arrays; it takes the arguments of the NumPy pool, except `out`."""
    original, signature = _signature(op)

    def run(*args: Any, **words: Any) -> Any:
        try:
            bound = signature.bind(*args, **words)
        except TypeError as error:
            raise TypeError(f"{op}: {error}") from None
        bound.apply_defaults()
        given = dict(bound.arguments)
        if op == "unpool":
            return _unpooled(backend, given["y"], given["taps"], given["shape"], given["reduce"], given["items"])
        x = given.pop("x")
        if op == "lp_pool":
            return _lp(backend, x, given)
        return pool_over(backend, op, x, given)

    run.__name__ = run.__qualname__ = op
    run.__doc__ = adapted_doc(op, inspect.getdoc(original) or "")
    run.__signature__ = signature  # type: ignore[attr-defined]
    return run
