"""The sequences of fractional pooling: proper, reproducible where asked, fresh where not, and TensorFlow's own."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import python

import poolgrad as pg
from poolgrad import raw_ops
from poolgrad._windows.fractional import draw
from poolgrad.reference import Philox, sequence

WORDS = {
    (1, 2): [3878945999, 2364392915, 1057429302, 168492509, 3082076531, 3674517586, 1146363793, 235617523],
    (12345, 6789): [2332828345, 1002498576, 3400549310, 4237915729, 1961345005, 4104884101, 475130311, 1912464483],
}


@pytest.mark.parametrize("seeds", WORDS, ids=str)
def test_philox_gives_the_test_words(seeds):
    assert Philox(*seeds).words(8).tolist() == WORDS[seeds]


def test_each_request_begins_a_block_of_four_words():
    source = Philox(1, 2)
    assert source.words(1).tolist() == WORDS[1, 2][:1]
    assert source.words(3).tolist() == WORDS[1, 2][4:7]


def numbers(text: str) -> list[int]:
    return list(map(int, text.split()))


TABLE = [
    ((10, 1.44), (7, 1.44), False, (1, 2), "0 1 3 4 6 8 10", "0 2 4 6 7"),
    ((10, 1.44), (7, 1.44), True, (1, 2), "0 2 3 5 7 8 10", "0 2 3 5 7"),
    ((23, 2.3), (16, 1.414), False, (12345, 6789), "0 2 4 6 9 12 14 16 19 21 23", "0 2 3 4 5 6 8 10 12 14 15 16"),
    ((23, 2.3), (16, 1.414), True, (12345, 6789), "0 3 5 7 10 12 14 17 19 21 23", "0 2 3 5 6 7 9 10 12 13 15 16"),
    ((12, 2), (9, 1), False, (0, 1), "0 2 4 6 8 10 12", "0 1 2 3 4 5 6 7 8 9"),
    ((12, 2), (9, 1), True, (0, 1), "0 2 4 6 8 10 12", "0 1 2 3 4 5 6 7 8 9"),
    ((31, 1.7320508), (11, 3), False, (-1, -1), "0 1 3 4 6 8 9 11 13 15 17 19 21 23 25 27 29 31", "0 4 7 11"),
    ((31, 1.7320508), (11, 3), True, (2**40 + 3, -5), "0 2 4 5 7 9 11 13 15 16 18 20 22 24 26 27 29 31", "0 4 8 11"),
]


@pytest.mark.parametrize("name", ["FractionalMaxPool", "FractionalAvgPool"])
@pytest.mark.parametrize("line", TABLE, ids=str)
def test_seeds_give_the_recorded_sequences(line, name):
    (h, rh), (w, rw), pseudo, (seed, seed2), rows, cols = line
    x = np.zeros((1, h, w, 1), np.float32)
    out = getattr(raw_ops, name)(
        value=x, pooling_ratio=[1.0, rh, rw, 1.0], pseudo_random=pseudo, deterministic=True, seed=seed, seed2=seed2
    )
    assert out.row_pooling_sequence.tolist() == numbers(rows)
    assert out.col_pooling_sequence.tolist() == numbers(cols)
    assert out.row_pooling_sequence.dtype == np.int64


@st.composite
def fractional(draw):
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 40)), draw(st.integers(1, 40)), draw(st.integers(1, 3)))
    ratio = [1.0, *(draw(st.floats(1, n)) for n in shape[1:3]), 1.0]
    flags = {"pseudo_random": draw(st.booleans()), "overlapping": draw(st.booleans())}
    return np.random.default_rng(draw(st.integers(0, 999))).standard_normal(shape), {"pooling_ratio": ratio, **flags}


@given(fractional(), st.integers(-(2**63), 2**63 - 1), st.integers(1, 2**63 - 1))
def test_a_sequence_steps_by_k_or_k_plus_1_and_ends_at_n(problem, seed, seed2):
    x, args = problem
    out = raw_ops.FractionalMaxPool(value=x, deterministic=True, seed=seed, seed2=seed2, **args)
    for borders, n, m in zip(out[1:], x.shape[1:3], out.output.shape[1:3], strict=True):
        assert borders[0] == 0
        assert borders[-1] == n
        assert len(borders) == m + 1
        assert set(np.diff(borders).tolist()) <= {n // m, n // m + 1}


@given(fractional(), st.integers(1, 2**62))
def test_a_pool_is_that_of_its_own_windows(problem, seed):
    x, args = problem
    for name, reduce in (("FractionalMaxPool", np.max), ("FractionalAvgPool", np.mean)):
        y, rows, cols = getattr(raw_ops, name)(value=x, deterministic=True, seed=seed, **args)
        over = int(args["overlapping"])
        for i, j in np.ndindex(*y.shape[1:3]):
            window = x[:, rows[i] : rows[i + 1] + over, cols[j] : cols[j + 1] + over]
            np.testing.assert_allclose(y[:, i, j], reduce(window, axis=(1, 2)), rtol=1e-12, atol=1e-14)


@given(fractional(), st.integers(0, 2**62), st.integers(1, 2**62))
def test_the_same_seeds_give_the_same_result(problem, seed, seed2):
    x, args = problem
    one, two = (
        raw_ops.FractionalAvgPool(value=x, deterministic=True, seed=seed, seed2=seed2, **args) for _ in range(2)
    )
    assert all((a == b).all() for a, b in zip(one, two, strict=True))


LONG = np.zeros((1, 97, 101, 1), np.float32)


def drawn(name: str = "FractionalMaxPool", x: np.ndarray = LONG, **args: Any) -> tuple[list[int], list[int]]:
    """Return the sequences of a call without seeds."""
    out = getattr(raw_ops, name)(value=x, **{"pooling_ratio": [1, 1.7, 1.3, 1], **args})
    rows, cols = out.row_pooling_sequence.tolist(), out.col_pooling_sequence.tolist()
    assert (rows[-1], cols[-1]) == x.shape[1:3]
    return rows, cols


@pytest.mark.parametrize("pseudo", [False, True])
def test_without_seeds_every_call_draws_anew(pseudo):
    first = drawn(pseudo_random=pseudo)
    assert any(drawn(pseudo_random=pseudo) != first for _ in range(12))


@pytest.mark.parametrize("pseudo", [False, True])
def test_deterministic_calls_without_seeds_repeat_within_a_process(pseudo):
    first = drawn(pseudo_random=pseudo, deterministic=True)
    assert all(drawn(pseudo_random=pseudo, deterministic=True) == first for _ in range(12))


OTHER_KINDS: dict[str, dict[str, Any]] = {
    "op": {"name": "FractionalAvgPool"},
    "dtype": {"x": LONG.astype(np.float64)},
    "attributes": {"overlapping": True},
}


@pytest.mark.parametrize("what", OTHER_KINDS)
def test_deterministic_calls_of_another_kind_draw_their_own(what):
    assert drawn(deterministic=True, **OTHER_KINDS[what]) != drawn(deterministic=True)


def test_deterministic_calls_without_seeds_differ_between_processes():
    code = (
        "import numpy as np; from poolgrad import raw_ops; x = np.zeros((1, 97, 101, 1), np.float32);"
        "print(raw_ops.FractionalMaxPool(value=x, pooling_ratio=[1, 1.7, 1.3, 1], deterministic=True)[1:])"
    )
    texts = [python("-c", code).stdout for _ in range(2)]
    assert "array" in texts[0]
    assert texts[0] != texts[1]


def test_different_seeds_differ():
    found = {tuple(sequence(97, 57, False, Philox(seed, 0)).tolist()) for seed in range(1, 33)}
    assert len(found) == 32


def test_results_may_be_changed_without_changing_later_ones():
    args = {"value": LONG, "pooling_ratio": [1, 2, 2, 1], "deterministic": True, "seed": 3}
    first = raw_ops.FractionalMaxPool(**args)
    first.row_pooling_sequence[:] = -1
    assert raw_ops.FractionalMaxPool(**args).row_pooling_sequence[0] == 0


@st.composite
def axes_to_draw(draw):
    lengths = draw(st.lists(st.integers(1, 300), min_size=1, max_size=3))
    return lengths, [draw(st.integers(1, n)) for n in lengths]


@given(axes_to_draw(), st.booleans(), st.booleans(), st.tuples(*[st.integers(-(2**64), 2**64)] * 2))
def test_the_core_draws_the_windows_of_the_reference(axes, pseudo, overlapping, seeds):
    lengths, sizes = axes
    source = Philox(*seeds)
    drawn = draw(lengths, sizes, pseudo, overlapping, seeds)
    for n, m, (borders, axis) in zip(lengths, sizes, drawn, strict=True):
        wanted = sequence(n, m, pseudo, source)
        assert borders.tolist() == wanted.tolist()
        assert axis.start.tolist() == wanted[:-1].tolist()
        assert axis.stop.tolist() == np.minimum(wanted[1:] + overlapping, n).tolist()
        assert axis.count.tolist() == (axis.stop - axis.start).tolist()
        assert axis.span is axis.count


@pytest.mark.parametrize("n", [1, 7, 30_000])
def test_long_sequences_are_those_of_the_reference(n):
    for pseudo in (False, True):
        (borders, _), (again, _) = draw((n, n), (n // 2 + 1, n), pseudo, False, (5, 6))
        source = Philox(5, 6)
        assert (borders == sequence(n, n // 2 + 1, pseudo, source)).all()
        assert (again == sequence(n, n, pseudo, source)).all()


@pytest.mark.parametrize("pseudo", [False, True])
def test_repeated_calls_take_their_own_seeds(pseudo):
    x = np.zeros((1, 31, 29, 2), np.float32)
    args = {"value": x, "pooling_ratio": [1.0, 1.3, 1.7, 1.0], "pseudo_random": pseudo, "deterministic": True}
    for seed, seed2 in ((1, 0), (0, 1), (3, 4), (1, 0), (-(2**63), 2**63 - 1)):
        out = raw_ops.FractionalMaxPool(seed=seed, seed2=seed2, **args)
        source = Philox(seed, seed2)
        assert out.row_pooling_sequence.tolist() == sequence(31, 23, pseudo, source).tolist()
        assert out.col_pooling_sequence.tolist() == sequence(29, 17, pseudo, source).tolist()


WRONG_SEQUENCES: dict[str, Any] = {
    "does not rise": [0, 2, 2, 6],
    "begins below 0": [-1, 2, 4, 6],
    "ends early": [0, 2, 3, 4],
    "ends late": [0, 2, 4, 7],
    "is too long": [0, 1, 2, 4, 6],
    "has floats": [0.0, 2.0, 4.0, 6.0],
    "has another dtype": np.array([0, 2, 4, 6], np.int32),
    "has two dimensions": np.array([[0, 2, 4, 6]]),
    "is no vector": 3,
}


@pytest.mark.parametrize("why", WRONG_SEQUENCES)
def test_gradients_refuse_a_sequence_as_well_after_good_ones(why):
    x = np.arange(18, dtype=np.float64).reshape(1, 6, 3, 1)
    y = raw_ops.MaxPool(input=x, ksize=[1, 2, 1, 1], strides=[1, 2, 1, 1], padding="VALID")
    cols = np.arange(4)

    def grad(rows: Any) -> Any:
        return raw_ops.FractionalMaxPoolGrad(
            orig_input=x, orig_output=y, out_backprop=y, row_pooling_sequence=rows, col_pooling_sequence=cols
        )

    with pytest.raises((TypeError, ValueError), match="row_pooling_sequence") as first:
        grad(WRONG_SEQUENCES[why])
    good = grad(np.array([0, 2, 4, 6]))
    assert grad([0, 2, 4, 6]).tolist() == good.tolist()
    with pytest.raises(type(first.value)) as second:
        grad(WRONG_SEQUENCES[why])
    assert str(second.value) == str(first.value)


@given(axes_to_draw(), st.booleans(), st.data())
def test_gradients_follow_each_new_sequence(axes, overlapping, data):
    (h, *_), (m, *_) = axes
    g = np.arange(1, m + 1, dtype=np.float64).reshape(1, m, 1, 1)
    for _ in range(3):
        cuts = sorted(data.draw(st.sets(st.integers(1, h - 1), min_size=m - 1, max_size=m - 1))) if m > 1 else []
        rows = np.array([0, *cuts, h])
        dx = raw_ops.FractionalAvgPoolGrad(
            orig_input_tensor_shape=np.array([1, h, 1, 1]),
            out_backprop=g,
            row_pooling_sequence=rows,
            col_pooling_sequence=np.array([0, 1]),
            overlapping=overlapping,
        )
        wanted = np.zeros(h)
        for i in range(m):
            stop = min(rows[i + 1] + overlapping, h)
            wanted[rows[i] : stop] += g[0, i, 0, 0] / (stop - rows[i])
        np.testing.assert_allclose(dx.ravel(), wanted, rtol=1e-12)


def test_lengths_need_not_fit_one_array():
    rows, cols = pg.fractional_windows((10**12, 10**12), size=3, seed=1)
    assert (rows.stop[-1], cols.stop[-1]) == (10**12, 10**12)
