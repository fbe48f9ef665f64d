"""Two primitives: the choice of cells, and a linear operator that is the transpose of its own transpose.

JAX makes every derivative of every order out of these: a choice changes by its operator, and an operator by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from .._common.errors import ArgumentErrors
from .._frameworks.spec import PoolSpec, carry, select
from . import native

select_p = Primitive("poolgrad_select")
select_p.multiple_results = True
linear_p = Primitive("poolgrad_linear")


def choose(rule: PoolSpec, x: Any, windows: Any) -> tuple[Any, Any]:
    """Return the best cell of each window, and the taps where one is chosen."""
    found = select_p.bind(x, windows, rule=rule)
    return found[0], found[1] if rule.picks else None


def apply(rule: PoolSpec, back: bool, v: Any, windows: Any, *state: Any) -> Any:
    """Apply the operator of the spec, or its transpose, to v."""
    return linear_p.bind(v, windows, *state, rule=rule, back=back)


def _select_shapes(rule: PoolSpec, shape: Sequence[int], dtype: Any) -> tuple[jax.ShapeDtypeStruct, ...]:
    dest = rule.dest(shape)
    best = jax.ShapeDtypeStruct(dest, dtype)
    return (best, jax.ShapeDtypeStruct(dest, rule.frame.taps)) if rule.picks else (best,)


def _linear_shape(rule: PoolSpec, back: bool, shape: Sequence[int], dtype: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(rule.source(shape) if back else rule.dest(shape), dtype)


@select_p.def_abstract_eval
def _select_abstract(x: Any, windows: Any, *, rule: PoolSpec) -> list[Any]:
    return [jax.core.ShapedArray(s.shape, s.dtype) for s in _select_shapes(rule, x.shape, x.dtype)]


@linear_p.def_abstract_eval
def _linear_abstract(v: Any, windows: Any, *state: Any, rule: PoolSpec, back: bool) -> Any:
    found = _linear_shape(rule, back, v.shape, v.dtype)
    return jax.core.ShapedArray(found.shape, found.dtype)


def host(function: Callable[..., Any], shapes: Any, *arrays: Any) -> Any:
    """Call a NumPy function from a compiled program."""

    def called(*values: Any) -> Any:
        found = function(*(np.asarray(value) for value in values))
        return jax.tree.map(lambda a, s: np.ascontiguousarray(a).astype(s.dtype, copy=False), found, shapes)

    return jax.pure_callback(called, shapes, *arrays, vmap_method="sequential")


def _select_run(x: Any, windows: Any, *, rule: PoolSpec) -> list[Any]:
    shapes = _select_shapes(rule, x.shape, x.dtype)
    compiled = native.select(rule, shapes, x, windows)
    if compiled is not None:
        return compiled
    found = host(lambda *a: tuple(part for part in select(rule, *a) if part is not None), shapes, x, windows)
    return list(found)


def _linear_run(v: Any, windows: Any, *state: Any, rule: PoolSpec, back: bool) -> Any:
    shape = _linear_shape(rule, back, v.shape, v.dtype)
    compiled = native.linear(rule, back, shape, v, windows, *state)
    return host(partial(carry, rule, back), shape, v, windows, *state) if compiled is None else compiled


@lru_cache(4096)
def _compiled(primitive: Primitive, params: tuple[tuple[str, Any], ...]) -> Callable[..., Any]:
    return jax.jit(partial(primitive.bind, **dict(params)))


def _elsewhere(ctx: Any, *args: Any, rule: PoolSpec, **_: Any) -> Any:
    where = ", ".join(ctx.module_context.platforms)
    wanted = "the CPU: move it with jax.device_put(x, jax.devices('cpu')[0]), or jit with a CPU as default device"
    ArgumentErrors(rule.op).fail("x", f"an array on {where}", wanted)


for _primitive, _run in ((select_p, _select_run), (linear_p, _linear_run)):
    _primitive.def_impl(lambda *args, _p=_primitive, **params: _compiled(_p, tuple(sorted(params.items())))(*args))
    mlir.register_lowering(_primitive, mlir.lower_fun(_run, _primitive.multiple_results), platform="cpu")
    mlir.register_lowering(_primitive, _elsewhere)


def _zero(value: Any) -> Any:
    return ad.Zero(jax.typeof(value).to_tangent_aval())


def _select_jvp(primals: Any, tangents: Any, *, rule: PoolSpec) -> tuple[list[Any], list[Any]]:
    x, windows = primals
    found = select_p.bind(x, windows, rule=rule)
    state = found[1] if rule.picks else x
    still = isinstance(tangents[0], ad.Zero)
    changed = _zero(found[0]) if still else apply(rule, False, tangents[0], windows, state)
    return found, [changed, *map(_zero, found[1:])]


def _linear_jvp(primals: Any, tangents: Any, *, rule: PoolSpec, back: bool) -> tuple[Any, Any]:
    v, *constant = primals
    found = linear_p.bind(v, *constant, rule=rule, back=back)
    still = isinstance(tangents[0], ad.Zero)
    return found, _zero(found) if still else linear_p.bind(tangents[0], *constant, rule=rule, back=back)


def _linear_transpose(g: Any, v: Any, windows: Any, *state: Any, rule: PoolSpec, back: bool) -> list[Any]:
    constant = [None] * (1 + len(state))
    if isinstance(g, ad.Zero):
        return [ad.Zero(v.aval), *constant]
    return [linear_p.bind(g, windows, *state, rule=rule, back=not back), *constant]


ad.primitive_jvps[select_p] = _select_jvp
ad.primitive_jvps[linear_p] = _linear_jvp
ad.primitive_transposes[linear_p] = _linear_transpose


def _batched(primitive: Any, args: Sequence[Any], dims: Sequence[Any], rule: PoolSpec, **params: Any) -> Any:
    """One call for all: the batch is one more axis that is not pooled. Windows that differ are pooled one after the other."""
    size = next(a.shape[d] for a, d in zip(args, dims, strict=True) if d is not None)
    front = [a if d is None else jnp.moveaxis(a, d, 0) for a, d in zip(args, dims, strict=True)]
    if dims[1] is not None:
        mapped = [a for a, d in zip(front, dims, strict=True) if d is not None]

        def one(some: Any) -> Any:
            rest = iter(some)
            own = [a if d is None else next(rest) for a, d in zip(front, dims, strict=True)]
            return primitive.bind(*own, rule=rule, **params)

        return jax.lax.map(one, mapped)
    full = [
        a if i == 1 or d is not None else jnp.broadcast_to(a, (size, *a.shape))
        for i, (a, d) in enumerate(zip(front, dims, strict=True))
    ]
    return primitive.bind(*full, rule=rule.batched(size), **params)


def _select_batch(args: Any, dims: Any, *, rule: PoolSpec) -> tuple[Any, Any]:
    found = _batched(select_p, args, dims, rule)
    return found, [0] * len(found)


def _linear_batch(args: Any, dims: Any, *, rule: PoolSpec, back: bool) -> tuple[Any, Any]:
    return _batched(linear_p, args, dims, rule, back=back), 0


batching.primitive_batchers[select_p] = _select_batch
batching.primitive_batchers[linear_p] = _linear_batch
