"""Why a cell of a pool has its value: what is said to have arrived adds up to the value."""

import numpy as np
import pytest
from test_pools import WORDS

import poolgrad as pg

rng = np.random.default_rng(8)


@pytest.mark.parametrize(("shape", "words"), WORDS, ids=lambda v: str(v))
@pytest.mark.parametrize("pool", ["max_pool", "avg_pool"])
def test_what_arrived_adds_up_to_the_gradient(pool, shape, words):
    x = rng.integers(0, 4, shape).astype(float)
    y, back = pg.vjp(lambda x: getattr(pg, pool)(x, **words), x)
    g = rng.integers(1, 9, y.shape).astype(float)
    dx = back(g)
    for cell in np.ndindex(*shape):
        why = pg.explain(pool, cell=cell, x=x, g=g, **words)
        assert why.value == dx[cell]
        assert np.isclose(sum(a.value / a.divisor for a in why.arrived), dx[cell])
        assert str(why).startswith(f"dx[{','.join(map(str, cell))}] = ")


def test_the_winner_is_where_the_taps_say():
    x = rng.integers(0, 4, (6, 7)).astype(float)
    _, taps = pg.max_pool(x, 3, 2, dilation=2, padding=1, return_taps=True)
    for cell in np.ndindex(*taps.values.shape):
        why = pg.explain("max_pool", cell=cell, x=x, window=3, stride=2, dilation=2, padding=1)
        assert np.ravel_multi_index(why.windows[0].hits[0], x.shape) == taps.flat()[cell]


def test_other_pools_and_wrong_questions():
    x = np.arange(6.0)
    assert "the mean of the 6 cells of x[0:6]" in str(pg.explain("global_avg_pool", cell=(0,), x=x))
    assert "the largest of the 2 cells of x[4:6]" in str(pg.explain("adaptive_max_pool", cell=(2,), x=x, size=3))
    with pytest.raises(ValueError, match="explain: op: got 'mean_pool', wanted one of AvgPool"):
        pg.explain("mean_pool", cell=(0,), x=x)
    with pytest.raises(ValueError, match=r"explain max_pool: cell: got \[9\], wanted a cell of y, shape \[3\]"):
        pg.explain("max_pool", cell=(9,), x=x, window=2)
    with pytest.raises(ValueError, match=r"explain max_pool: g: got shape \[2\], wanted \[3\]"):
        pg.explain("max_pool", cell=(0,), x=x, g=[1, 2], window=2)
    with pytest.raises(ValueError, match="explain max_pool: ties: got an argument that does not decide"):
        pg.explain("max_pool", cell=(0,), x=x, window=2, ties="last")
