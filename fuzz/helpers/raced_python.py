"""Races of the arguments that Python checks before the core does: sequences, lists, positions, taps, boundaries."""

from __future__ import annotations

from typing import Any

import numpy as np
from boundaries import boundaries
from overwritten import Case, Maker, Rng, pick

import poolgrad as pg
from poolgrad import raw_ops, reference
from poolgrad.windows import Axis, Plan


def differs(got: Any, want: Any) -> str:
    """Return a text if a quiet call gives a wrong answer, else an empty one."""
    return "" if np.array_equal(got, want, equal_nan=True) else f"a quiet call gave {got!r:.200}, wanted {want!r:.200}"


def sequence_case(rng: Rng, make: Maker, name: str) -> Case:
    """Return a case of a fractional pooling whose sequences are overwritten; the cache must hold the numbers that were used."""
    n = int(rng.integers(4, 40))
    truth = [0, *sorted(rng.choice(np.arange(1, n), n // 2, replace=False).tolist()), n]
    row, col = make.input(np.array(truth)), make.list(truth)
    g = np.arange(float(n // 2 + 1) ** 2, dtype=np.float32).reshape(1, n // 2 + 1, n // 2 + 1, 1)
    words = {
        "orig_input_tensor_shape": np.array([1, n, n, 1]),
        "out_backprop": g,
        "overlapping": bool(rng.random() < 0.5),
    }
    op = raw_ops.FractionalAvgPoolGrad
    want = raw_ops.make(raw_ops.OPS["FractionalAvgPoolGrad"], reference)

    def run() -> None:
        op(row_pooling_sequence=row, col_pooling_sequence=col, **words)

    def quiet() -> str:
        given = {"row_pooling_sequence": np.array(truth), "col_pooling_sequence": list(truth), **words}
        return differs(op(**given), want(**given))

    return make.case(name, run, quiet)


def sizes_case(rng: Rng, make: Maker, name: str) -> Case:
    """Return a case of a pool with ksize and strides as lists."""
    x = rng.integers(0, 9, (1, 8, 8, 2)).astype(np.float32)
    ksize, strides = make.list([1, 2, 2, 1]), make.list([1, 2, 2, 1])
    words = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    want = x.reshape(1, 4, 2, 4, 2, 2).max((2, 4))
    return make.case(
        name,
        lambda: raw_ops.MaxPool(input=x, ksize=ksize, strides=strides, padding="VALID"),
        lambda: differs(raw_ops.MaxPool(input=x, **words), want),
    )


def argmax_case(rng: Rng, make: Maker, name: str) -> Case:
    """Return a case of an op that takes positions from the caller."""
    n = int(rng.integers(8, 64))
    x = make.data((2, 2 * n, 2 * n, 3), np.float32)
    index = make.input(rng.integers(0, 12 * n * n, (2, n, n, 3)).astype(np.int64))
    words = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID", "argmax": index}
    grad = make.data((2, n, n, 3), np.float32)
    if rng.random() < 0.5:
        return make.case(name, lambda: raw_ops.MaxPoolGradGradWithArgmax(input=x, grad=x, **words))
    return make.case(name, lambda: raw_ops.MaxPoolGradWithArgmax(input=x, grad=grad, **words))


def unpool_case(rng: Rng, make: Maker, name: str) -> Case:
    """Return a case of an operator by positions or by taps, or a mask where the last of equal positions counts."""
    n, m = int(rng.integers(1, 5000)), int(rng.integers(1, 5000))
    index, y = make.input(rng.integers(0, n, m)), make.data((m,), pick(rng, (np.float16, np.float64)))
    reduce = pick(rng, ("sum", "assign"))
    if rng.random() < 0.5:
        return make.case(name, lambda: pg.unpool(y, index, (n,), reduce=reduce))
    plan = Plan((2 * m,), {0: Axis(2 * m, np.arange(0, 2 * m, 2), np.arange(2, 2 * m + 2, 2))})
    taps = make.input(rng.integers(0, 2, m).astype(pick(rng, (np.uint8, np.int64))))
    v = make.data((2 * m,), np.float64)

    def run() -> None:
        made = pg.picking(plan, taps)
        made(v)
        made.T(np.asarray(y))

    return make.case(name, run)


def window_case(rng: Rng, make: Maker, name: str) -> Case:
    """Return a case of a pool with boundaries as an array or as lists, or taps from positions."""
    n = int(rng.integers(2, 40))
    start, stop = boundaries(rng, n, empty=False)
    pairs, x = make.input(np.stack([start, stop], 1)), make.data((n, 3), np.float32)
    listed = [make.list([int(a), int(b)]) for a, b in zip(start, stop, strict=True)]
    index = make.input(np.stack([start] * 3, 1) * 3 + np.arange(3))

    def run() -> None:
        for given in (pairs, listed):
            pg.max_pool(x, [given], axes=0)
        pg.Taps.from_flat(index, Plan((n, 3), {0: Axis(n, pairs[:, 0], pairs[:, 1])}))

    truth = rng.integers(0, 9, (n, 3)).astype(np.float32)
    want = np.stack([truth[a:b].max(0) for a, b in zip(start, stop, strict=True)])
    return make.case(name, run, lambda: differs(pg.max_pool(truth, [np.stack([start, stop], 1)], axes=0), want))
