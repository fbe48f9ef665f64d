"""The worked examples on the pages that document the ops, as numbers."""

import numpy as np
import pytest

from poolgrad import raw_ops, windows
from poolgrad._kernels.native import fold, select
from poolgrad._ops.semantics import Mean, Start

F32 = np.float32


def ramp(*shape: int, **changed: float) -> np.ndarray:
    """Return 1, 2, 3, … in row-major order; `at2=1` puts 1 at flat position 2."""
    x = np.arange(1, np.prod(shape) + 1, dtype=F32)
    for at, value in changed.items():
        x[int(at[2:])] = value
    return x.reshape(shape)


def values(*numbers: float, shape: tuple[int, ...]) -> np.ndarray:
    return np.array(numbers, F32).reshape(shape)


def nonzero(array: np.ndarray) -> dict[int, float]:
    return {int(i): float(array.reshape(-1)[i]) for i in np.flatnonzero(array)}


X4, X5 = ramp(2, 2, 2, 2), ramp(2, 2, 2, 2, 2)
X5_SLIP = ramp(2, 2, 2, 2, 2, at2=1)  # the pictured array has 1 where 3 would be
CELLS = (2, 1, 1, 2)
CELLS3 = (2, 1, 1, 1, 2)
WIDE = {"ksize": [1, 3, 2, 1], "strides": [1, 3, 2, 1], "padding": "SAME"}
WIDE3 = {"ksize": [1, 4, 3, 2, 1], "strides": [1, 4, 3, 2, 1], "padding": "SAME"}
SMALL3 = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 4, 3, 2, 1], "padding": "SAME"}


# ---- the overlapping example: 20 5 16 3 7 by [0, 2, 4]

FIVE = values(20, 5, 16, 3, 7, shape=(1, 5, 1, 1)).astype(np.float64)
BORDERS = {"row_pooling_sequence": np.array([0, 2, 4]), "col_pooling_sequence": np.array([0, 1])}


def test_the_overlapping_example_has_maxima_20_and_16():
    plan = windows.Plan((1, 5, 1, 1), {1: windows.edges(5, [0, 2, 4], overlapping=True)})
    assert plan.axes[0].pairs() == [(0, 3), (2, 5)]
    assert select(plan, Start.LOWEST, FIVE).ravel().tolist() == [20, 16]


def test_the_overlapping_example_has_means_41_and_26_thirds():
    plan = windows.Plan((1, 5, 1, 1), {1: windows.edges(5, [0, 2, 4], overlapping=True)})
    assert fold(plan, Mean.EXACT, FIVE).ravel().tolist() == [41 / 3, 26 / 3]


def test_the_gradient_of_the_overlapping_maxima_meets_16_once_and_20_once():
    y = values(20, 16, shape=(1, 2, 1, 1)).astype(np.float64)
    g = values(6, 12, shape=(1, 2, 1, 1)).astype(np.float64)
    dx = raw_ops.FractionalMaxPoolGrad(orig_input=FIVE, orig_output=y, out_backprop=g, overlapping=True, **BORDERS)
    assert dx.ravel().tolist() == [6, 0, 12, 0, 0]


def test_the_gradient_of_the_overlapping_means_reaches_16_twice():
    g = values(6, 12, shape=(1, 2, 1, 1)).astype(np.float64)
    shape = np.array([1, 5, 1, 1])
    dx = raw_ops.FractionalAvgPoolGrad(orig_input_tensor_shape=shape, out_backprop=g, overlapping=True, **BORDERS)
    assert dx.ravel().tolist() == [2, 2, 6, 4, 4]


def test_the_overlapping_example_with_a_last_window_of_three():
    column = np.array([1, 9, 9, 0, 0], F32).reshape(1, 5, 1, 1)
    y = values(9, 9, shape=(1, 2, 1, 1))
    rows, cols = np.array([0, 2, 5]), np.array([0, 1])
    dx = raw_ops.FractionalMaxPoolGrad(
        orig_input=column,
        orig_output=y,
        out_backprop=values(6, 12, shape=(1, 2, 1, 1)),
        row_pooling_sequence=rows,
        col_pooling_sequence=cols,
        overlapping=True,
    )
    assert dx.ravel().tolist() == [0, 6, 12, 0, 0]


def test_shared_gradients_by_hand():
    grads = values(1, 2, 3, 4, shape=(1, 2, 2, 1))
    dx = raw_ops.AvgPoolGrad(
        orig_input_shape=np.array([1, 3, 3, 1], np.int32),
        grad=grads,
        ksize=[1, 2, 2, 1],
        strides=[1, 2, 2, 1],
        padding="SAME",
    )
    assert dx.ravel().tolist() == [0.25, 0.25, 1, 0.25, 0.25, 1, 1.5, 1.5, 4]
    row = raw_ops.AvgPoolGrad(
        orig_input_shape=np.array([1, 1, 3, 1], np.int32),
        grad=values(6, 12, 18, shape=(1, 1, 3, 1)),
        ksize=[1, 1, 3, 1],
        strides=[1, 1, 1, 1],
        padding="SAME",
    )
    assert row.ravel().tolist() == [7, 16, 13]


# ---- the five cases of the two second-hand pages


def grad3(y: np.ndarray) -> np.ndarray:
    return raw_ops.MaxPool3DGrad(orig_input=X5_SLIP, orig_output=y, grad=values(3, 4, 5, 6, shape=CELLS3), **SMALL3)


def test_seed003_as_pictured_is_an_error_at_orig_output():
    with pytest.raises(
        ValueError, match=r"^MaxPool3DGrad: orig_output: got shape \[2, 2, 2, 2, 2\], wanted \[2, 1, 1, 1, 2\]"
    ) as caught:
        grad3(np.ones((2, 2, 2, 2, 2), F32))
    assert "grad: " not in str(caught.value)


def test_seed003_repaired_routes_all_of_the_gradient():
    y = raw_ops.MaxPool3D(input=X5_SLIP, **SMALL3)
    assert y.ravel().tolist() == [15, 16, 31, 32]
    dx = grad3(y)
    assert dx.shape == (2, 2, 2, 2, 2)
    assert nonzero(dx) == {14: 3, 15: 4, 30: 5, 31: 6}
    back = raw_ops.MaxPool3DGradGrad(orig_input=X5_SLIP, orig_output=y, grad=dx, **SMALL3)
    assert back.ravel().tolist() == [3, 4, 5, 6]


def test_seed003_with_ones_for_orig_output_gives_both_tied_cells_the_gradient():
    assert nonzero(grad3(np.ones(CELLS3, F32))) == {0: 3, 2: 3}


def test_seed004_as_pictured_names_both_wrong_arguments():
    with pytest.raises(ValueError, match=r"^MaxPoolGradGrad: ") as caught:
        raw_ops.MaxPoolGradGrad(orig_input=X4, orig_output=X4, grad=values(1, 2, 3, 4, shape=CELLS), **WIDE)
    assert "orig_output: got shape [2, 2, 2, 2], wanted [2, 1, 1, 2]" in str(caught.value)
    assert "grad: got shape [2, 1, 1, 2], wanted [2, 2, 2, 2]" in str(caught.value)


def test_seed004_repaired_gives_the_gradient_at_the_maxima():
    y = raw_ops.MaxPool(input=X4, **WIDE)
    assert y.ravel().tolist() == [7, 8, 15, 16]
    out = raw_ops.MaxPoolGradGrad(orig_input=X4, orig_output=y, grad=X4, **WIDE)
    assert out.shape == CELLS
    assert out.ravel().tolist() == [7, 8, 15, 16]
    dx = raw_ops.MaxPoolGrad(orig_input=X4, orig_output=y, grad=values(1, 2, 3, 4, shape=CELLS), **WIDE)
    assert nonzero(dx) == {6: 1, 7: 2, 14: 3, 15: 4}


# ---- the ten other pictured pages


def test_pictured_max_pool():
    y = raw_ops.MaxPool(input=X4, ksize=[1, 1, 1, 1], strides=[1, 3, 2, 1], padding="SAME")
    assert (y.shape, y.ravel().tolist()) == (CELLS, [1, 2, 9, 10])


def test_pictured_avg_pool():
    y = raw_ops.AvgPool(value=X4, **WIDE)
    assert (y.shape, y.ravel().tolist()) == (CELLS, [4, 5, 12, 13])


def test_pictured_max_pool_3d():
    y = raw_ops.MaxPool3D(input=X5, **SMALL3)
    assert (y.shape, y.ravel().tolist()) == (CELLS3, [15, 16, 31, 32])
    with pytest.raises(ValueError, match=r"^MaxPool3D: data_format: got 'NHWC', wanted 'NDHWC' or 'NCDHW'"):
        raw_ops.MaxPool3D(input=X5, data_format="NHWC", **SMALL3)


def test_pictured_avg_pool_3d():
    y = raw_ops.AvgPool3D(input=X5, data_format="NDHWC", **WIDE3)
    assert (y.shape, y.ravel().tolist()) == (CELLS3, [8, 9, 24, 25])


def test_pictured_max_pool_with_argmax():
    y, where = raw_ops.MaxPoolWithArgmax(input=X4, Targmax=np.int64, **WIDE)
    assert y.ravel().tolist() == [7, 8, 15, 16]
    assert where.ravel().tolist() == [6, 7, 6, 7]
    assert where.dtype == np.int64


@pytest.mark.parametrize(
    ("name", "wanted"), [("FractionalMaxPool", [7, 8, 15, 16]), ("FractionalAvgPool", [4, 5, 12, 13])]
)
def test_pictured_fractional_pools(name, wanted):
    y, rows, cols = getattr(raw_ops, name)(value=X4, pooling_ratio=[1.0, 1.44, 1.73, 1.0])
    assert (y.shape, y.ravel().tolist()) == (CELLS, wanted)
    assert (rows.tolist(), cols.tolist()) == ([0, 2], [0, 2])


def test_pictured_max_pool_3d_grad_grad():
    pictured = {"orig_input": X5_SLIP, "orig_output": values(1, 2, 3, 4, shape=CELLS3), **WIDE3}
    with pytest.raises(
        ValueError, match=r"^MaxPool3DGradGrad: grad: got shape \[2, 1, 1, 1, 2\], wanted \[2, 2, 2, 2, 2\]"
    ):
        raw_ops.MaxPool3DGradGrad(**pictured, grad=np.full(CELLS3, 2, F32))
    twos = np.full_like(X5, 2)
    assert raw_ops.MaxPool3DGradGrad(**pictured, grad=twos).ravel().tolist() == [2, 2, 0, 0]
    true = {**pictured, "orig_output": raw_ops.MaxPool3D(input=X5_SLIP, **WIDE3)}
    assert raw_ops.MaxPool3DGradGrad(**true, grad=twos).ravel().tolist() == [2, 2, 2, 2]


def test_pictured_avg_pool_3d_grad():
    with pytest.raises(
        ValueError, match=r"^AvgPool3DGrad: grad: got shape \[2, 2, 2, 2, 2\], wanted \[2, 1, 1, 1, 2\]"
    ):
        raw_ops.AvgPool3DGrad(orig_input_shape=np.array(CELLS3, np.int32), grad=X5, **WIDE3)
    dx = raw_ops.AvgPool3DGrad(
        orig_input_shape=np.array(X5.shape, np.int32), grad=values(3, 4, 5, 6, shape=CELLS3), **WIDE3
    )
    assert dx.reshape(2, 8, 2).tolist() == [[[0.375, 0.5]] * 8, [[0.625, 0.75]] * 8]


def test_pictured_max_pool_grad_grad_with_argmax():
    flat = np.array([1, 2, 3, 4])
    with pytest.raises(
        ValueError, match=r"^MaxPoolGradGradWithArgmax: argmax: got 1 dimensions, shape \[4\], wanted 4 dimensions"
    ):
        raw_ops.MaxPoolGradGradWithArgmax(input=X4, grad=X4, argmax=flat, **WIDE)
    y = raw_ops.MaxPoolGradGradWithArgmax(input=X4, grad=X4, argmax=flat.reshape(CELLS), **WIDE)
    assert (y.shape, y.ravel().tolist()) == (CELLS, [2, 3, 12, 13])
