"""The Keras layers train, save and load on three backends, with the same windows and the same values on all of them."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from support import python

import poolgrad as pg

BACKENDS = [name for name in ("jax", "tensorflow", "torch") if importlib.util.find_spec(name)]

pytestmark = pytest.mark.skipif(
    not importlib.util.find_spec("keras") or not BACKENDS, reason="keras, or a backend of it, is not installed"
)


@pytest.fixture(scope="module")
def results():
    job = Path(__file__).with_name("keras_job.py")
    found = {}
    for name in BACKENDS:
        done = python(str(job), name, timeout=600)
        assert done.returncode == 0, done.stderr[-3000:]
        found[name] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", BACKENDS)
def test_training_lowers_the_loss_and_a_loaded_model_predicts_the_same(name, results):
    assert results[name]["losses"][-1] < results[name]["losses"][0]
    assert results[name]["same"]


@pytest.mark.parametrize("name", BACKENDS)
def test_the_loss_curve_is_that_of_the_other_backends(name, results):
    # convolutions of three libraries round differently
    np.testing.assert_allclose(results[name]["losses"], results[BACKENDS[0]]["losses"], rtol=1e-3)


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("kind", ["Max", "Average"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_each_training_step_has_the_windows_of_its_number(name, kind, rank, results):
    pool = pg.fractional_max_pool if kind == "Max" else pg.fractional_avg_pool
    x = np.random.default_rng(rank).permutation(np.arange(2 * 7**rank * 2.0)).reshape(2, *[7] * rank, 2).astype("f")
    axes = tuple(range(1, rank + 1))
    for step, y in enumerate(results[name]["ranks"][f"{kind}{rank}"]):
        assert y == pool(x, 1.6, seed=(9, step), axes=axes).tolist()


ON_TORCH = """
import os
os.environ["KERAS_BACKEND"] = "torch"
import torch, poolgrad.keras as pk
x = torch.arange(2 * 7 * 6 * 2.0, dtype=torch.float64).sin().reshape(2, 7, 6, 2)
words = {"data_format": "channels_last", "dtype": "float64"}
mean = pk.FractionalAveragePooling2D(1.5, seed=3, **words)
choose, restore = pk.MaxPoolingWithTaps(3, 2, padding="same", **words), pk.MaxUnpooling(3, 2, padding="same", size=(7, 6), **words)
best = pk.FractionalMaxPooling2D(1.5, seed=3, overlapping=True, **words)
for f in (mean, best, lambda x: restore(*choose(x))):
    assert torch.autograd.gradcheck(f, x.clone().requires_grad_(), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, x.clone().requires_grad_())
    y, pushed = torch.func.jvp(f, (x,), (x.cos(),))
    assert torch.equal(y, f(x))
whole = pk.FractionalAveragePooling2D(1.5, seed=3, data_format="channels_last", dtype="int32")(x.mul(99).int())
assert isinstance(whole, torch.Tensor)
assert whole.dtype == torch.float64
y, taps = pk.MaxPoolingWithTaps((17, 17), 3, data_format="channels_first")(torch.rand(1, 2, 20, 20))
assert taps.dtype == torch.int32
assert pk.MaxUnpooling((17, 17), 3, size=20, data_format="channels_first")(y, taps).shape == (1, 2, 20, 20)
"""


@pytest.mark.skipif("torch" not in BACKENDS, reason="torch is not installed")
def test_on_torch_the_layers_have_every_derivative_and_return_tensors():
    done = python("-c", ON_TORCH, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
