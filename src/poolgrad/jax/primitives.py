"""Three primitives: the choice of cells, a linear operator that is the transpose of its own transpose, and NumPy functions.

JAX makes every derivative of every order out of the first two: a choice changes by its operator, and an operator by itself.
On the CPU they run the core, on other platforms the operations of `portable`; JAX chooses when it lowers a program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from .._common.errors import ArgumentErrors
from .._common.integers import integer_cast
from .._frameworks.spec import PoolSpec, carry, select
from . import native, portable, shards

select_p = Primitive("poolgrad_select")
select_p.multiple_results = True
linear_p = Primitive("poolgrad_linear")
compute_p = Primitive("poolgrad_compute")


class _Setting:
    """A setting of the current context, as `bool_state` makes it. JAX's caches do not know it."""

    def __init__(self, default: bool) -> None:
        self._kept: ContextVar[bool] = ContextVar("poolgrad_portable", default=default)

    @property
    def value(self) -> bool:
        return self._kept.get()

    @contextmanager
    def __call__(self, on: bool) -> Iterator[None]:
        token = self._kept.set(on)
        try:
            yield
        finally:
            self._kept.reset(token)


def _setting(default: bool) -> Any:
    try:  # no public function makes a setting that JAX's caches keep apart
        from jax._src.config import bool_state

        words = {"include_in_jit_key": True, "include_in_trace_context": True}
        return bool_state("jax_poolgrad_portable", default, "Run poolgrad's pools by JAX's own operations.", **words)
    except (ImportError, TypeError):  # pragma: no cover  # another release of JAX
        return _Setting(default)


_PORTABLE = _setting(native.mode() == "portable")


@contextmanager
def portable_pools(on: bool = True) -> Iterator[None]:
    """Make pools of JAX's own operations on every platform, the CPU included, within a block.

    The programs call neither the core nor Python: `jax.export` saves them for any platform without disabled checks, and XLA can
    distribute them by itself. On a CPU they are slower. Maxima, taps and their derivatives have the same bits; sums and means differ by
    rounding. A function that is called inside and outside of such blocks is compiled twice.

    Parameters
    ----------
    on : bool, optional
        False makes the usual programs within the block. Default: True.

    Returns
    -------
    context manager

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import poolgrad.jax as pool
    >>> with pool.portable_pools():
    ...     pool.max_pool(jnp.array([1.0, 3.0, 2.0, 0.0]), 2).tolist()
    [3.0, 2.0]
    """
    with _PORTABLE(bool(on)):
        yield


def is_portable() -> bool:
    """Return True within `portable_pools`."""
    return bool(_PORTABLE.value)


def choose(rule: PoolSpec, x: Any, windows: Any) -> tuple[Any, Any]:
    """Return the best cell of each window, and the taps where one is chosen."""
    found = select_p.bind(*shards.aligned(x, windows), rule=rule, portable=is_portable())
    return found[0], found[1] if rule.picks else None


def apply(rule: PoolSpec, back: bool, v: Any, windows: Any, *state: Any) -> Any:
    """Apply the operator of the spec, or its transpose, to v."""
    return linear_p.bind(*shards.aligned(v, windows, *state), rule=rule, back=back, portable=is_portable())


def compute(function: Callable[..., Any], args: tuple[Any, ...], shape: Any, dtype: Any, *arrays: Any) -> Any:
    """Run function(*args, *arrays) of NumPy, without derivative; its result has that shape and dtype."""
    made = jax.ShapeDtypeStruct(shape, dtype)
    held = shards.aligned(*(jax.lax.stop_gradient(a) for a in arrays))
    return compute_p.bind(*held, function=function, args=args, made=made, portable=is_portable())


def _select_shapes(rule: PoolSpec, shape: Sequence[int], dtype: Any) -> tuple[jax.ShapeDtypeStruct, ...]:
    dest = rule.dest(shape)
    best = jax.ShapeDtypeStruct(dest, dtype)
    return (best, jax.ShapeDtypeStruct(dest, rule.frame.taps)) if rule.picks else (best,)


def _linear_shape(rule: PoolSpec, back: bool, shape: Sequence[int], dtype: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(rule.source(shape) if back else rule.dest(shape), dtype)


@select_p.def_abstract_eval
def _select_abstract(x: Any, windows: Any, *, rule: PoolSpec, portable: bool) -> list[Any]:
    return [shards.typed(rule, s, x, windows) for s in _select_shapes(rule, x.shape, x.dtype)]


@linear_p.def_abstract_eval
def _linear_abstract(v: Any, windows: Any, *state: Any, rule: PoolSpec, back: bool, portable: bool) -> Any:
    return shards.typed(rule, _linear_shape(rule, back, v.shape, v.dtype), v, windows, *state)


@compute_p.def_abstract_eval
def _compute_abstract(*arrays: Any, function: Any, args: Any, made: Any, portable: bool) -> Any:
    rule = next((a for a in args if isinstance(a, PoolSpec)), None)
    return shards.typed(rule, made, *arrays)


def host(function: Callable[..., Any], shapes: Any, *arrays: Any) -> Any:
    """Call a NumPy function from a compiled program."""

    def called(*values: Any) -> Any:
        found = function(*(np.asarray(value) for value in values))
        return jax.tree.map(lambda a, s: np.ascontiguousarray(a).astype(s.dtype, copy=False), found, shapes)

    return jax.pure_callback(called, shapes, *arrays, vmap_method="sequential")


def _narrowed(function: Callable[..., Any], args: tuple[Any, ...], dtype: np.dtype[Any], *arrays: Any) -> Any:
    """Return the result of a function in JAX's own dtype: integers exactly, or refused."""
    found = function(*args, *arrays)
    if found.dtype.kind not in "iu" or dtype.kind not in "iu":
        return found
    op = getattr(args[0], "op", "poolgrad.jax")
    return integer_cast(ArgumentErrors(op), "jax_enable_x64", found, dtype)


def _select_run(x: Any, windows: Any, *, rule: PoolSpec) -> list[Any]:
    shapes = _select_shapes(rule, x.shape, x.dtype)
    compiled = native.select(rule, shapes, x, windows)
    if compiled is not None:
        return compiled
    found = host(lambda *a: tuple(part for part in select(rule, *a) if part is not None), shapes, x, windows)
    return list(found)


def _linear_run(v: Any, windows: Any, *state: Any, rule: PoolSpec, back: bool) -> list[Any]:
    shape = _linear_shape(rule, back, v.shape, v.dtype)
    compiled = native.linear(rule, back, shape, v, windows, *state)
    return [host(partial(carry, rule, back), shape, v, windows, *state) if compiled is None else compiled]


def _compute_run(*arrays: Any, function: Any, args: Any, made: Any) -> list[Any]:
    return [host(partial(_narrowed, function, args, np.dtype(made.dtype)), made, *arrays)]


def _select_portably(x: Any, windows: Any, *, rule: PoolSpec) -> list[Any]:
    return portable.choose(rule, x, windows)


def _linear_portably(v: Any, windows: Any, *state: Any, rule: PoolSpec, back: bool) -> list[Any]:
    return [portable.apply(rule, back, v, windows, *state)]


def _compute_portably(*arrays: Any, function: Any, args: Any, made: Any) -> list[Any]:
    stand_in = portable.stand_in(function, args)
    if stand_in is None:
        return _compute_run(*arrays, function=function, args=args, made=made)
    return [stand_in(made.dtype, *args, *arrays).astype(made.dtype)]


@lru_cache(4096)
def _compiled(primitive: Primitive, params: tuple[tuple[str, Any], ...]) -> Callable[..., Any]:
    return jax.jit(partial(primitive.bind, **dict(params)))


def _on_cpu(run: Any, portably: Any, ctx: Any, *args: Any, portable: bool, **params: Any) -> Any:
    """Lower for the CPU: to the core, part by part if the arrays are distributed over devices."""
    compiled = "function" not in params and native.compiles(dtype=ctx.avals_in[0].dtype, **params)
    chosen = portably if portable else shards.distributed(ctx, run, portably, compiled)
    return mlir.lower_fun(partial(chosen, **params), multiple_results=True)(ctx, *args)


def _elsewhere(portably: Any, ctx: Any, *args: Any, portable: bool, **params: Any) -> Any:
    return mlir.lower_fun(partial(portably, **params), multiple_results=True)(ctx, *args)


for _primitive, _run, _portably in (
    (select_p, _select_run, _select_portably),
    (linear_p, _linear_run, _linear_portably),
    (compute_p, _compute_run, _compute_portably),
):
    _primitive.def_impl(lambda *args, _p=_primitive, **params: _compiled(_p, tuple(sorted(params.items())))(*args))
    mlir.register_lowering(_primitive, partial(_on_cpu, _run, _portably), platform="cpu")
    mlir.register_lowering(_primitive, partial(_elsewhere, _portably))
    shards.needs_devices(_primitive)


def _zero(value: Any) -> Any:
    return ad.Zero(jax.typeof(value).to_tangent_aval())


def _select_jvp(primals: Any, tangents: Any, *, rule: PoolSpec, portable: bool) -> tuple[list[Any], list[Any]]:
    x, windows = primals
    found = select_p.bind(x, windows, rule=rule, portable=portable)
    if isinstance(tangents[0], ad.Zero):
        return found, list(map(_zero, found))
    state = found[1] if rule.picks else x
    changed = linear_p.bind(*shards.aligned(tangents[0], windows, state), rule=rule, back=False, portable=portable)
    return found, [changed, *map(_zero, found[1:])]


def _linear_jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
    v, *constant = primals
    found = linear_p.bind(v, *constant, **params)
    if isinstance(tangents[0], ad.Zero):
        return found, _zero(found)
    return found, linear_p.bind(*shards.aligned(tangents[0], *constant), **params)


def _linear_transpose(g: Any, v: Any, windows: Any, *state: Any, back: bool, **params: Any) -> list[Any]:
    constant = [None] * (1 + len(state))
    if isinstance(g, ad.Zero):
        return [ad.Zero(v.aval), *constant]
    return [linear_p.bind(*shards.aligned(g, windows, *state), back=not back, **params), *constant]


ad.primitive_jvps[select_p] = _select_jvp
ad.primitive_jvps[linear_p] = _linear_jvp
ad.primitive_transposes[linear_p] = _linear_transpose


def _one_by_one(primitive: Any, args: Sequence[Any], dims: Sequence[Any], params: Any) -> Any:
    """Map over the batch, one call after the other."""
    front = [a if d is None else jnp.moveaxis(a, d, 0) for a, d in zip(args, dims, strict=True)]

    def one(some: Any) -> Any:
        rest = iter(some)
        own = [a if d is None else next(rest) for a, d in zip(front, dims, strict=True)]
        return primitive.bind(*own, **params)

    return jax.lax.map(one, [a for a, d in zip(front, dims, strict=True) if d is not None])


def _batched(primitive: Any, args: Sequence[Any], dims: Sequence[Any], rule: PoolSpec, **params: Any) -> Any:
    """One call for all: the batch is one more axis that is not pooled. Windows that differ are pooled one after the other."""
    if dims[1] is not None:
        return _one_by_one(primitive, args, dims, {**params, "rule": rule})
    size = next(a.shape[d] for a, d in zip(args, dims, strict=True) if d is not None)
    full = [
        a if i == 1 else jnp.broadcast_to(a, (size, *a.shape)) if d is None else jnp.moveaxis(a, d, 0)
        for i, (a, d) in enumerate(zip(args, dims, strict=True))
    ]
    return primitive.bind(*full, rule=rule.batched(size), **params)


def _select_batch(args: Any, dims: Any, **params: Any) -> tuple[Any, Any]:
    found = _batched(select_p, args, dims, **params)
    return found, [0] * len(found)


def _linear_batch(args: Any, dims: Any, **params: Any) -> tuple[Any, Any]:
    return _batched(linear_p, args, dims, **params), 0


def _compute_batch(arrays: Any, dims: Any, /, **params: Any) -> tuple[Any, Any]:  # a parameter is named args
    return _one_by_one(compute_p, arrays, dims, params), 0


batching.primitive_batchers[select_p] = _select_batch
batching.primitive_batchers[linear_p] = _linear_batch
batching.primitive_batchers[compute_p] = _compute_batch
