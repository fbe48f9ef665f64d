"""Taps, operators, derivatives and axes refuse wrong arguments by name."""

import numpy as np
import pytest

import poolgrad as pg
from poolgrad.windows import Axis

X = np.arange(32.0).reshape(1, 4, 4, 2)
Y, TAPS = pg.max_pool(X, 2, axes=(1, 2), return_taps=True)
OPERATOR = pg.max_operator(np.zeros((4, 4)), pg.plan((4, 4), 2))[1]

WRONG = {
    "Taps.onnx: storage_order: got 3": lambda: TAPS.onnx(3),
    "Taps.from_flat: index: got a position in another place": lambda: pg.Taps.from_flat(
        TAPS.flat() ^ 1, pg.plan(X.shape, 2, axes=(1, 2))
    ),
    "unpool: shape: got \\[9\\]": lambda: pg.unpool(Y, TAPS, (9,)),
    "unpool: taps: got dtype float64": lambda: pg.unpool(Y, Y, X.shape),
    "unpool: shape: got None": lambda: pg.unpool(Y, TAPS.flat()),
    "unpool: items: got 3": lambda: pg.unpool(Y, TAPS.flat(), X.shape, items=3),
    "v: got shape \\[3\\], wanted \\[4, 4\\]": lambda: pg.vjp(OPERATOR, np.zeros(3)),
    "jvp: v: got shape \\[3\\]": lambda: pg.jvp(lambda v: v, np.zeros(2), np.zeros(3)),
    "Var: \\*\\*": lambda: pg.vjp(lambda v: v**v, np.ones(2)),
    "max_pool: padding: got": lambda: pg.max_pool(np.zeros((4, 4)), 2, padding=[1, 1, 1]),
    "Axis: step: got 2 with starts": lambda: Axis(5, [0], [3], step=2).transpose(),
    "Axis: start: got \\[0, 1, 2, 4\\]": lambda: Axis(9, [0, 1, 2, 4], [3, 4, 5, 7], step=2).phases(),
}


@pytest.mark.parametrize("words", WRONG)
def test_it_is_refused_by_name(words):
    with pytest.raises((ValueError, TypeError), match=words):
        WRONG[words]()
