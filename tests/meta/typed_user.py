"""A user's script. mypy strict and pyright check its types; tests/meta/test_types.py runs both, and the script itself."""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import poolgrad as pg

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
x = np.arange(16, dtype=np.float32).reshape(4, 4)
pixels = x.astype(np.uint8)

# Pools keep the dtype of x, or that of `dtype`; a list has no static dtype.
assert_type(pg.max_pool(x, 2), F32)
assert_type(pg.min_pool(pixels, (2, 2), stride=1, padding="same"), NDArray[np.uint8])
assert_type(pg.avg_pool(x, 2), F32)
assert_type(pg.avg_pool(pixels, 2), F64)
assert_type(pg.avg_pool(pixels, 2, dtype=np.uint8, rounding="floor"), NDArray[np.uint8])
assert_type(pg.sum_pool(pixels, 2), I64)
assert_type(pg.lp_pool(x, 2, p=3), F32)
assert_type(pg.adaptive_avg_pool(x, (2, None)), F32)
assert_type(pg.global_max_pool(x, axes=1, keepdims=False), F32)
assert_type(pg.fractional_max_pool(x, 1.5, seed=1, return_windows=True), tuple[F32, tuple[pg.Axis, ...]])
assert_type(pg.like("torch").max_pool(x[None, None], 2), F32)
pooled = pg.max_pool([[1, 2], [3, 4]], 2)
assert_type(pooled * 2, NDArray[np.number])

# Taps, unpooling, windows, operators.
y, taps = pg.max_pool(x, 2, return_taps=True)
assert_type((y, taps), tuple[F32, pg.Taps])
assert_type(taps.flat(), I64)
assert_type(pg.unpool(y, taps), F32)
windows = pg.plan(x.shape, 2)
assert_type(windows.by_dimension, tuple[pg.Axis | None, ...])
assert_type(pg.fractional_windows(10, 1.5, seed=(1, 2)).pairs(), list[tuple[int, int]])
P = pg.averaging(windows)
assert_type(P.T(P(x)), F32)
assert_type(P.matrix(), F64)
assert_type(pg.max_operator(x, windows), tuple[F32, pg.Linear])


def loss(v: pg.Var) -> pg.Var:
    return (2.0 * pg.max_pool(v, 2) ** 2 * np.ones((2, 2))).sum()


# Derivatives, TensorFlow's functions, settings.
assert_type(pg.grad(loss, x), F32)
assert_type(pg.jvp(lambda v: pg.grad(loss, v), x, np.ones_like(x)), tuple[F32, F32])
value, back = pg.vjp(loss, x)
assert_type(back(1.0), F32)
sizes = ([1, 2, 2, 1], [1, 2, 2, 1])
assert_type(pg.raw_ops.MaxPool(input=x.reshape(1, 4, 4, 1), ksize=sizes[0], strides=sizes[1], padding="VALID"), F32)
with pg.threads(1):
    assert_type(pg.config(), dict[str, object])
