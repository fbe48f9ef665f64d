"""Properties of pooling for every shape, window and stride."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support import out_length

from poolgrad import raw_ops

side = st.integers(1, 9)


@st.composite
def problems(draw, rank=2, reals=False):
    """Draw an array, and sizes that pool it into at least one cell."""
    space = [draw(side) for _ in range(rank)]
    padding = draw(st.sampled_from(["SAME", "VALID"]))
    k = [draw(st.integers(1, n if padding == "VALID" else n + 3)) for n in space]
    s = [draw(st.integers(1, 4)) for _ in space]
    shape = (draw(st.integers(1, 3)), *space, draw(st.integers(1, 5)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    x = rng.standard_normal(shape) if reals else rng.integers(-4, 5, shape).astype(np.float64)
    return x, {"ksize": [1, *k, 1], "strides": [1, *s, 1], "padding": padding}


def cells(n: int, k: int, s: int, padding: str) -> list[list[int]]:
    m = out_length(n, k, s, padding)
    pad = max(0, (m - 1) * s + k - n) // 2 if padding == "SAME" else 0
    return [[j for j in range(n) if 0 <= j - (i * s - pad) < k] for i in range(m)]


def windows_of(x: np.ndarray, sizes: dict) -> list[tuple[tuple[int, int], np.ndarray]]:
    rows, cols = (cells(x.shape[d], sizes["ksize"][d], sizes["strides"][d], sizes["padding"]) for d in (1, 2))
    return [((i, j), x[:, r][:, :, c]) for i, r in enumerate(rows) for j, c in enumerate(cols)]


@given(problems())
def test_shapes_follow_the_formulas(problem):
    x, sizes = problem
    want = (
        x.shape[0],
        *(out_length(x.shape[d], sizes["ksize"][d], sizes["strides"][d], sizes["padding"]) for d in (1, 2)),
        x.shape[3],
    )
    assert raw_ops.MaxPool(input=x, **sizes).shape == want
    assert raw_ops.AvgPool(value=x, **sizes).shape == want
    y, where = raw_ops.MaxPoolWithArgmax(input=x, **sizes)
    assert y.shape == where.shape == want


@given(problems(reals=True))
def test_the_maximum_is_a_cell_of_its_window_and_below_none(problem):
    x, sizes = problem
    y = raw_ops.MaxPool(input=x, **sizes)
    for (i, j), window in windows_of(x, sizes):
        assert (y[:, i, j] == window.max((1, 2))).all()


@given(problems(reals=True))
def test_the_average_lies_between_the_least_and_the_greatest_cell(problem):
    x, sizes = problem
    y = raw_ops.AvgPool(value=x, **sizes)
    for (i, j), window in windows_of(x, sizes):
        slack = 1e-14 * np.abs(window).max()
        assert (window.min((1, 2)) - slack <= y[:, i, j]).all()
        assert (y[:, i, j] <= window.max((1, 2)) + slack).all()


@given(problems())
def test_a_maximum_routes_all_of_the_gradient(problem):
    x, sizes = problem
    y, where = raw_ops.MaxPoolWithArgmax(input=x, **sizes)
    g = np.random.default_rng(0).integers(-9, 10, y.shape).astype(np.float64)
    dx = raw_ops.MaxPoolGrad(orig_input=x, orig_output=y, grad=g, **sizes)
    assert dx.sum() == g.sum()
    assert (dx.sum((1, 2)) == g.sum((1, 2))).all()
    touched = np.zeros(x.shape, bool)
    touched.reshape(x.shape[0], -1)[np.arange(x.shape[0])[:, None], where.reshape(x.shape[0], -1)] = True
    assert (dx[~touched] == 0).all()


@given(problems())
def test_an_average_keeps_the_gradient_s_mass(problem):
    x, sizes = problem
    y = raw_ops.AvgPool(value=x, **sizes)
    g = np.random.default_rng(0).integers(-9, 10, y.shape).astype(np.float64)
    dx = raw_ops.AvgPoolGrad(orig_input_shape=np.array(x.shape, np.int32), grad=g, **sizes)
    np.testing.assert_allclose(dx.sum((1, 2)), g.sum((1, 2)), atol=1e-11)


@given(problems(rank=3))
def test_a_maximum_in_three_dimensions_gives_every_tie_the_whole_gradient(problem):
    x, sizes = problem
    if any(s > k for s, k in zip(sizes["strides"], sizes["ksize"], strict=True)):
        sizes = {**sizes, "strides": sizes["ksize"]}
    y = raw_ops.MaxPool3D(input=x, **sizes)
    dx = raw_ops.MaxPool3DGrad(orig_input=x, orig_output=y, grad=np.ones_like(y), **sizes)
    assert dx.sum() >= y.size
    assert (dx == np.floor(dx)).all()


@given(problems(reals=True))
def test_positions_point_at_the_values(problem):
    x, sizes = problem
    for batched in (False, True):
        y, where = raw_ops.MaxPoolWithArgmax(input=x, include_batch_in_index=batched, **sizes)
        if batched:
            assert (x.reshape(-1)[where] == y).all()
        else:
            assert (raw_ops.MaxPoolGradGradWithArgmax(input=x, grad=x, argmax=where, **sizes) == y).all()


@given(problems())
def test_layouts_are_the_same_numbers(problem):
    x, sizes = problem
    first = {
        **sizes,
        "ksize": [1, 1, *sizes["ksize"][1:3]],
        "strides": [1, 1, *sizes["strides"][1:3]],
        "data_format": "NCHW",
    }
    moved = raw_ops.MaxPool(input=x.transpose(0, 3, 1, 2), **first)
    assert (moved.transpose(0, 2, 3, 1) == raw_ops.MaxPool(input=x, **sizes)).all()


@given(problems(reals=True), st.integers(-3, 3))
def test_scaling_by_a_power_of_two_scales_the_result(problem, e):
    x, sizes = problem
    assert (raw_ops.AvgPool(value=x * 2.0**e, **sizes) == raw_ops.AvgPool(value=x, **sizes) * 2.0**e).all()
    assert (raw_ops.MaxPool(input=x * 2.0**e, **sizes) == raw_ops.MaxPool(input=x, **sizes) * 2.0**e).all()
