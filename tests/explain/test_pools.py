"""Explanations of a pool's cells: the listed contributions add up to the value."""

import numpy as np
import pytest
from brute import WORDS

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


def test_the_tap_is_where_the_taps_say():
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
    with pytest.raises(ValueError, match="explain max_pool: p: got 2, wanted an argument of max_pool: window, stride"):
        pg.explain("max_pool", cell=(0,), x=x, window=2, p=2)
    with pytest.raises(ValueError, match="explain fractional_max_pool: seed: got nothing, wanted an integer"):
        pg.explain("fractional_max_pool", cell=(0,), x=x, ratio=1.5)
    with pytest.raises(ValueError, match=r"explain max_pool: v: got array.*, wanted g or v, not both"):
        pg.explain("max_pool", cell=(0,), x=x, window=2, g=x[::2], v=x)


# ---- NaN: the sentence and the value agree, whatever the rule


def with_nan(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    source = np.random.default_rng(seed)
    x = source.integers(0, 4, shape).astype(float)
    x[source.random(shape) < source.choice([0.1, 0.5, 0.9])] = np.nan
    return x


def said(text: str) -> float:
    """Return the number behind a sentence's first equals sign."""
    number = text.split(" = ")[1].replace(",", " ").replace(":", " ").split()[0].rstrip(".")
    return float(number)


@pytest.mark.parametrize("nan", ["propagate", "ignore", "tf"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("shape", "words"), [WORDS[0], WORDS[1], WORDS[4], WORDS[6]], ids=lambda v: str(v))
def test_sentence_and_value_agree_on_nan(shape, words, seed, nan):
    x = with_nan(seed, shape)
    y, P = pg.max_operator(x, pg.plan(shape, **words), nan=nan)
    g = rng.integers(1, 9, y.shape).astype(float)
    dx = P.T(g)
    chosen = pg.Taps(P, range(x.ndim)).flat()
    for cell in np.ndindex(*y.shape):
        why = pg.explain("max_pool", cell=cell, x=x, nan=nan, **words)
        assert np.array_equal([why.value, said(str(why))], [y[cell]] * 2, equal_nan=True) or y[cell] < -1e300, why
        hits = why.windows[0].hits
        if hits:
            assert np.array_equal(x[hits[0]], y[cell], equal_nan=True), why
            assert f"x[{','.join(map(str, hits[0]))}]" in str(why) or why.windows[0].count == 1
            assert nan == "tf" or np.ravel_multi_index(hits[0], x.shape) == chosen[cell]
        else:
            assert "no cell of" in str(why)
            assert nan == "tf"
    for cell in np.ndindex(*shape):
        why = pg.explain("max_pool", cell=cell, x=x, g=g, nan=nan, **words)
        assert why.value == dx[cell] == said(str(why)) == sum(a.value for a in why.arrived), why
        forth = pg.explain("max_pool", cell=cell, pin="x", x=x, nan=nan, **words)
        makers = {tuple(a.cell) for a in forth.arrived}
        assert all(np.array_equal(y[at], x[cell], equal_nan=True) for at in makers), forth


def test_sentences_about_nan_say_so():
    x = np.array([1.0, np.nan])
    assert str(pg.explain("max_pool", cell=(0,), x=x, window=2)) == (
        "y[0] = NaN, because x[1] in its window, x[0:2], is NaN."
    )
    assert str(pg.explain("max_pool", cell=(0,), x=x, window=2, nan="ignore")).startswith("y[0] = 1, the largest")
    with pytest.raises(ValueError, match="explain max_pool: nan: got 'skip'"):
        pg.explain("max_pool", cell=(0,), x=x, window=2, nan="skip")


def test_explained_means_and_gradients_of_integers_are_those_of_the_pools():
    x = np.array([1, 2, 4, 4])
    assert pg.explain("avg_pool", cell=(0,), x=x, window=2).value == 1.5
    assert pg.explain("avg_pool", cell=(1,), x=x, window=2, g=[3, 5]).value == 1.5
    assert pg.explain("max_pool", cell=(1,), x=x, window=2, g=[1.5, 2.5]).value == 1.5
