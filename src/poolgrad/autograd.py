"""The pools for HIPS autograd, with derivatives of every order in both modes.

>>> import autograd.numpy as anp
>>> from autograd import grad
>>> import poolgrad.autograd as pool
>>> grad(lambda x: anp.sum(pool.max_pool(x, 2) ** 2))(anp.array([1.0, 3.0, 2.0, 0.0])).tolist()
[0.0, 6.0, 4.0, 0.0]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.extend import Box, defjvp, defvjp, primitive

from ._common.arrays import as_array
from ._common.errors import ArgumentErrors
from ._frameworks import types
from ._frameworks.pools import Chosen, pool
from ._frameworks.spec import Frame, PoolSpec, select
from ._pooling.operators import Linear, apply
from ._pooling.types import Numbers


@primitive
def _carry(v: Any, operator: Linear) -> Any:
    """Apply the operator to v."""
    return apply(operator, v)


@primitive
def _known(x: Any, y: Any, operator: Linear) -> Any:
    """Return y, already pooled from x; the operator gives its derivative."""
    return y


@primitive
def _cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """Return x in another dtype; autograd's own astype has no forward mode."""
    return x.astype(dtype)


defvjp(_cast, lambda ans, x, dtype: lambda g: _cast(g, x.dtype.newbyteorder("=")), argnums=(0,))
defjvp(_cast, lambda dx, ans, x, dtype: _cast(dx, dtype), argnums=(0,))
defvjp(_carry, lambda ans, v, operator: lambda g: _carry(g, operator.T), argnums=(0,))
defjvp(_carry, lambda dv, ans, v, operator: _carry(dv, operator), argnums=(0,))
defvjp(_known, lambda ans, x, y, operator: lambda g: _carry(g, operator.T), argnums=(0,))
defjvp(_known, lambda dx, ans, x, y, operator: _carry(dx, operator), argnums=(0,))


def _value(x: Any) -> Any:
    while isinstance(x, Box):
        x = x._value
    return x


class _Autograd:
    """The autograd backend of the pools; every number is known when a pool runs."""

    chosen: Any

    def describe(self, op: str, x: Any) -> tuple[Any, tuple[int, ...], np.dtype[Any]]:
        problems = ArgumentErrors(op)
        array = as_array(problems, "x", _value(x))
        problems.raise_if_any()
        assert array is not None
        native = array.dtype.newbyteorder("=")
        if not isinstance(x, Box):
            return array.astype(native, copy=False), array.shape, native
        return (x if _value(x).dtype == native else _cast(x, native)), array.shape, native

    def accept(self, op: str, x: Any, frame: Frame) -> None:
        pass

    def constant(self, values: Any) -> Any:
        return values

    def seed(self, op: str, seed: Any) -> Any:
        return None

    def select(self, rule: PoolSpec, x: Any, windows: Any) -> tuple[Any, Any]:
        array = _value(x)
        y, taps = select(rule, array, windows)
        if not isinstance(x, Box):
            return y, taps
        state = array.copy() if taps is None else taps  # the caller may change the array before the derivative is taken
        return _known(x, y, rule.operator(array.shape, windows, state)), taps

    def linear(self, rule: PoolSpec, back: bool, v: Any, windows: Any, *state: Any) -> Any:
        shape = rule.source(tuple(v.shape)) if back else tuple(v.shape)
        operator = rule.operator(shape, windows, *state)
        operator.name = rule.op
        return _carry(v, operator.T if back else operator)

    def compute(self, function: Callable[..., Any], shape: tuple[Any, ...], dtype: Any, *arrays: Any) -> Any:
        return function(*arrays)

    def constant_of(self, x: Any) -> Any:
        return _value(x)

    def cast(self, x: Any, dtype: Any) -> Any:
        return _cast(x, np.dtype(dtype))

    def squeeze(self, x: Any, axes: tuple[int, ...]) -> Any:
        return anp.squeeze(x, axis=axes)


_BACKEND = _Autograd()


class Taps(Chosen[Numbers]):
    backend = _BACKEND


max_pool: types.MaxPool[Numbers, Taps] = pool(_BACKEND, "max_pool")
min_pool: types.MaxPool[Numbers, Taps] = pool(_BACKEND, "min_pool")
avg_pool: types.AvgPool[Numbers] = pool(_BACKEND, "avg_pool")
sum_pool: types.SumPool[Numbers] = pool(_BACKEND, "sum_pool")
lp_pool: types.LpPool[Numbers] = pool(_BACKEND, "lp_pool")
fractional_max_pool: types.FractionalMaxPool[Numbers, Taps] = pool(_BACKEND, "fractional_max_pool")
fractional_avg_pool: types.FractionalAvgPool[Numbers] = pool(_BACKEND, "fractional_avg_pool")
adaptive_max_pool: types.AdaptiveMaxPool[Numbers, Taps] = pool(_BACKEND, "adaptive_max_pool")
adaptive_avg_pool: types.AdaptiveAvgPool[Numbers] = pool(_BACKEND, "adaptive_avg_pool")
global_max_pool: types.GlobalMaxPool[Numbers] = pool(_BACKEND, "global_max_pool")
global_min_pool: types.GlobalMaxPool[Numbers] = pool(_BACKEND, "global_min_pool")
global_avg_pool: types.GlobalAvgPool[Numbers] = pool(_BACKEND, "global_avg_pool")
global_sum_pool: types.GlobalSumPool[Numbers] = pool(_BACKEND, "global_sum_pool")
unpool: types.Unpool[Numbers, Taps] = pool(_BACKEND, "unpool")
