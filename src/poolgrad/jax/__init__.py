"""The pools for JAX: under jit, grad, jacfwd, jacrev, hessian, vmap and checkpoint, in any composition.

>>> import jax, jax.numpy as jnp
>>> import poolgrad.jax as pool
>>> jax.jit(jax.grad(lambda x: jnp.sum(pool.max_pool(x, 2) ** 2)))(jnp.array([1.0, 3.0, 2.0, 0.0])).tolist()
[0.0, 6.0, 4.0, 0.0]
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._common.arrays import as_array
from .._common.errors import ArgumentErrors, short_repr
from .._common.integers import integer_cast
from .._frameworks import spec, types
from .._frameworks.pools import Chosen, pool, pool_over
from .._frameworks.spec import Frame, PoolSpec
from .._pooling.fractional import drawing_over, seeds_of
from .._windows.plan_cache import trim
from . import native, primitives
from .primitives import portable_pools as portable_pools

if native.library() is not None:
    native.available()  # a program that another process exported finds the calls


class _Jax:
    """The JAX backend of the pools."""

    chosen: Any

    def describe(self, op: str, x: Any) -> tuple[Any, tuple[int, ...], np.dtype[Any]]:
        problems = ArgumentErrors(op)
        if isinstance(x, jax.Array):
            return x, tuple(n if isinstance(n, int) else 1 for n in x.shape), np.dtype(x.dtype)
        array = as_array(problems, "x", x)
        problems.raise_if_any()
        assert array is not None
        kind = jax.dtypes.canonicalize_dtype(array.dtype)
        if array.dtype.kind in "iu" and array.dtype != kind:
            integer_cast(problems, "x", array, kind)  # which refuses what JAX would wrap around without jax_enable_x64
        found = jnp.asarray(array)
        return found, tuple(found.shape), np.dtype(found.dtype)

    def accept(self, op: str, x: Any, frame: Frame) -> None:
        unknown = [d for d, *_ in frame.axes if not isinstance(x.shape[d], int)]
        if unknown:
            wanted = "a number: only axes that are not pooled may have a symbolic length"
            ArgumentErrors(op).fail(
                "x", f"length {x.shape[unknown[0]]} along axis {unknown[0]}, which is pooled", wanted
            )

    def constant(self, values: Any) -> Any:
        return jnp.asarray(values, jnp.int32)

    def seed(self, op: str, seed: Any) -> Any:
        if seed is None:
            ArgumentErrors(op).fail(
                "seed", "None", "an integer, a pair of them, or a key of jax.random: JAX has no global random state"
            )
        if not isinstance(seed, jax.Array):
            return None
        words = jax.random.key_data(seed) if jnp.issubdtype(seed.dtype, jax.dtypes.prng_key) else seed
        if not jnp.issubdtype(words.dtype, jnp.integer) or words.ndim > 1:
            ArgumentErrors(op).fail("seed", short_repr(seed), "integers, or a key of jax.random")
        return words

    def select(self, rule: PoolSpec, x: Any, windows: Any) -> tuple[Any, Any]:
        return primitives.choose(rule, x, windows)

    def linear(self, rule: PoolSpec, back: bool, v: Any, windows: Any, *state: Any) -> Any:
        return primitives.apply(rule, back, v, windows, *state)

    def compute(self, function: Callable[..., Any], shape: tuple[Any, ...], dtype: Any, *arrays: Any) -> Any:
        assert isinstance(function, partial)
        assert not function.keywords
        return primitives.compute(
            function.func, function.args, tuple(shape), jax.dtypes.canonicalize_dtype(dtype), *arrays
        )

    def constant_of(self, x: Any) -> Any:
        return jax.lax.stop_gradient(x)

    def cast(self, x: Any, dtype: Any) -> Any:
        return x.astype(dtype)

    def squeeze(self, x: Any, axes: tuple[int, ...]) -> Any:
        return jnp.squeeze(x, axes)


_BACKEND = _Jax()


class Taps(Chosen[jax.Array]):
    backend = _BACKEND


jax.tree_util.register_pytree_node(
    Taps, lambda taps: ((taps.values, taps.windows), taps.rule), lambda rule, arrays: Taps(arrays[0], arrays[1], rule)
)


def disabled_checks() -> list[Any]:
    """Return the safety checks of `jax.export` to disable for programs with compiled pools.

    JAX does not know whether the calls of a program still exist where it is loaded. A process that runs the program imports
    `poolgrad.jax`, of the same version. Programs that are traced within `portable_pools` need none of this.

    Returns
    -------
    list of jax.export.DisabledSafetyCheck
        For ``jax.export.export(..., disabled_checks=...)``.

    Examples
    --------
    >>> import poolgrad.jax as pool
    >>> [str(check) for check in pool.disabled_checks()][:1]
    ['custom_call:poolgrad_select']
    """
    from jax.export import DisabledSafetyCheck

    return [DisabledSafetyCheck.custom_call(target) for target in native.TARGETS]


_PLAIN = frozenset({int, str, bool, type(None)})
_NUMBERS = _PLAIN | {float}
_MOST = 256  # compiled calls that a pool keeps


def _quick(op: str) -> Any:
    """Return the pool of that name. It compiles a call on a concrete array of floats once, and finds it again by its arguments.

    Arguments are checked while the call is compiled: once per shape. Calls that round, or return windows, are not compiled as a whole.
    """
    run = pool(_BACKEND, op)
    known: dict[Any, Any] = {}

    @wraps(run)
    def quick(*args: Any, **words: Any) -> Any:
        if len(args) < 1 or not _concrete_floats(args[0]) or "dtype" in words or "return_windows" in words:
            return run(*args, **words)
        values = (*args[1:], *words.values())
        inner = tuple([tuple(map(type, value)) for value in values if type(value) is tuple])
        key = values, tuple(map(type, values)), inner, tuple(words), primitives.is_portable()
        try:
            made = known.get(key)
        except TypeError:  # an argument that is no key
            return run(*args, **words)
        if made is None:
            if not all(type(value) in _PLAIN or type(value) is tuple for value in values) or not all(
                map(_PLAIN.issuperset, inner)
            ):
                return run(*args, **words)
            rest = args[1:]  # without the array, which the call must not keep
            made = jax.jit(lambda x: run(x, *rest, **words))
            found = made(args[0])
            known[key] = made
            trim(known, _MOST)
            return found
        return made(args[0])

    return quick


def _quick_fractional(op: str) -> Any:
    """Return the fractional pool of that name. It compiles a call with a known seed once; the windows are an argument of the program."""
    run = pool(_BACKEND, op)
    signature = inspect.signature(run)
    known: dict[Any, Any] = {}

    @wraps(run)
    def quick(*args: Any, **words: Any) -> Any:
        seed = words.get("seed")
        if not args or not _concrete_floats(args[0]) or {"dtype", "return_windows"} & words.keys():
            return run(*args, **words)
        if type(seed) is not int and not (type(seed) is tuple and set(map(type, seed)) == {int}):
            return run(*args, **words)
        values = (*args[1:], *(value for name, value in words.items() if name != "seed"))
        inner = tuple([tuple(map(type, value)) for value in values if type(value) is tuple])
        key = args[0].shape, values, tuple(map(type, values)), inner, tuple(words), primitives.is_portable()
        try:
            made = known.get(key)
        except TypeError:  # an argument that is no key
            return run(*args, **words)
        if made is None:
            found = run(*args, **words)
            if all(type(v) in _NUMBERS or type(v) is tuple for v in values) and all(map(_NUMBERS.issuperset, inner)):
                known[key] = _drawing(op, signature, args, words)
                trim(known, _MOST)
            return found
        drawing, program = made
        return program(args[0], spec.boundaries(drawing.draw(seeds_of(ArgumentErrors(op), seed))))

    return quick


def _drawing(op: str, signature: inspect.Signature, args: Any, words: Any) -> tuple[Any, Any]:
    """Return the checked arguments about random windows, and the program that pools an array over windows."""
    bound = signature.bind(*args, **{**words, "seed": 0})
    bound.apply_defaults()
    given = dict(bound.arguments)
    shape = tuple(given.pop("x").shape)
    how = given["pseudo_random"], given["overlapping"]
    _, drawing = drawing_over(
        ArgumentErrors(op), shape, given["ratio"], given["size"], how, given["axes"], given["layout"]
    )
    return drawing, jax.jit(lambda x, windows: pool_over(_BACKEND, op, x, given, windows))


def _concrete_floats(x: Any) -> bool:
    """Return True for an array of floats that no transform traces."""
    return isinstance(x, jax.Array) and not isinstance(x, jax.core.Tracer) and x.dtype.kind not in "iub"


max_pool: types.MaxPool[jax.Array, Taps] = _quick("max_pool")
min_pool: types.MaxPool[jax.Array, Taps] = _quick("min_pool")
avg_pool: types.AvgPool[jax.Array] = _quick("avg_pool")
sum_pool: types.SumPool[jax.Array] = _quick("sum_pool")
lp_pool: types.LpPool[jax.Array] = pool(_BACKEND, "lp_pool")
fractional_max_pool: types.FractionalMaxPool[jax.Array, Taps] = _quick_fractional("fractional_max_pool")
fractional_avg_pool: types.FractionalAvgPool[jax.Array] = _quick_fractional("fractional_avg_pool")
adaptive_max_pool: types.AdaptiveMaxPool[jax.Array, Taps] = _quick("adaptive_max_pool")
adaptive_avg_pool: types.AdaptiveAvgPool[jax.Array] = _quick("adaptive_avg_pool")
global_max_pool: types.GlobalMaxPool[jax.Array] = _quick("global_max_pool")
global_min_pool: types.GlobalMaxPool[jax.Array] = _quick("global_min_pool")
global_avg_pool: types.GlobalAvgPool[jax.Array] = _quick("global_avg_pool")
global_sum_pool: types.GlobalSumPool[jax.Array] = _quick("global_sum_pool")
unpool: types.Unpool[jax.Array, Taps] = pool(_BACKEND, "unpool")
