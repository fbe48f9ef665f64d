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
