"""The Keras layers refuse bad arguments by the layer's and the argument's name, most of them when a layer is made."""

import doctest
import inspect
import os
import re

import numpy as np
import pytest

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
pytest.importorskip("tensorflow", reason="tensorflow is not installed")
keras = pytest.importorskip("keras", reason="keras is not installed")

import poolgrad.keras as pool  # noqa: E402

FRACTIONAL = [
    ({}, "ratio: got None, wanted either ratio or size"),
    ({"ratio": 2.0, "size": 2}, "ratio: got 2.0, wanted either ratio or size"),
    ({"ratio": 0.5}, "ratio: got 0.5, wanted a number of at least 1"),
    ({"ratio": "2"}, "ratio: got '2', wanted a number of at least 1"),
    ({"ratio": float("nan")}, "ratio: got nan, wanted a number of at least 1"),
    ({"ratio": (2.0, 2.0, 2.0)}, "ratio: got (2.0, 2.0, 2.0), wanted a number of at least 1, or 2 of them"),
    ({"size": 0}, "size: got 0, wanted a positive integer, or 2 of them"),
    ({"size": 2.0}, "size: got 2.0, wanted a positive integer, or 2 of them"),
    ({"size": (2, 2, 2)}, "size: got (2, 2, 2), wanted a positive integer, or 2 of them"),
    ({"ratio": 2.0, "overlapping": "no"}, "overlapping: got 'no', wanted True or False"),
    ({"ratio": 2.0, "pseudo_random": 2.5}, "pseudo_random: got 2.5, wanted True or False"),
    ({"ratio": 2.0, "seed": 1.5}, "seed: got 1.5, wanted an integer"),
    ({"ratio": 2.0, "seed": True}, "seed: got True, wanted an integer"),
    ({"ratio": 2.0, "seed": 2**70}, "seed: got 1180591620717411303424, wanted an integer that"),
    ({"ratio": 2.0, "data_format": "NHWC"}, "data_format: got 'NHWC', wanted 'channels_last' or 'channels_first'"),
]
SLIDING = [
    ({"pool_size": 0}, "pool_size: got 0, wanted a positive integer"),
    ({"pool_size": 2.0}, "pool_size: got 2.0, wanted a positive integer"),
    ({"pool_size": None}, "pool_size: got None, wanted a positive integer"),
    ({"pool_size": ()}, "pool_size: got (), wanted a positive integer"),
    ({"strides": (-1, 1)}, "strides: got (-1, 1), wanted a positive integer"),
    ({"padding": "smae"}, "padding: got 'smae', wanted 'valid', 'same', 'same_lower', an integer, or a pair per axis"),
    ({"data_format": "x"}, "data_format: got 'x', wanted 'channels_last' or 'channels_first'"),
]


@pytest.mark.parametrize("name", ["FractionalMaxPooling2D", "FractionalAveragePooling2D"])
@pytest.mark.parametrize(("given", "text"), FRACTIONAL, ids=str)
def test_a_fractional_layer_names_what_it_refuses(name, given, text):
    with pytest.raises((ValueError, TypeError)) as error:
        getattr(pool, name)(**given)
    assert str(error.value).startswith(f"{name}: {text}")


@pytest.mark.parametrize("name", ["MaxPoolingWithTaps", "MaxUnpooling"])
@pytest.mark.parametrize(("given", "text"), SLIDING, ids=str)
def test_a_sliding_layer_names_what_it_refuses(name, given, text):
    with pytest.raises((ValueError, TypeError)) as error:
        getattr(pool, name)(**given)
    assert str(error.value).startswith(f"{name}: {text}")


def test_lists_of_another_length_than_the_pooled_axes_are_refused_at_the_call():
    x = np.ones((2, 8, 8, 3), "f")
    with pytest.raises(
        ValueError, match=r"MaxPoolingWithTaps: pool_size: got \(2, 2, 2\), wanted a positive integer, or 2"
    ):
        pool.MaxPoolingWithTaps((2, 2, 2))(x)
    y, taps = pool.MaxPoolingWithTaps(2)(x)
    with pytest.raises(
        ValueError, match=r"MaxUnpooling: size: got \(8, 8, 8\), wanted a positive integer, or 2 of them"
    ):
        pool.MaxUnpooling(2, size=(8, 8, 8))(y, taps)
    with pytest.raises(TypeError, match="MaxUnpooling: size: got '8', wanted a positive integer"):
        pool.MaxUnpooling(2, size="8")
    with pytest.raises(
        ValueError, match=r"MaxUnpooling: taps: got shape \[2, 1, 4, 3\], wanted \[2, 4, 4, 3\], as the inputs"
    ):
        pool.MaxUnpooling(2)(y, taps[:, :1])


def test_unknown_lengths_along_pooled_axes_are_refused():
    with pytest.raises(
        ValueError, match=r"MaxPoolingWithTaps: inputs: got shape .*wanted known lengths along the pooled"
    ):
        pool.MaxPoolingWithTaps(2)(keras.Input((None, None, 3)))


def test_an_integer_of_numpy_is_a_seed():
    layer = pool.FractionalMaxPooling1D(1.5, seed=np.int64(3))
    assert layer.get_config()["seed"] == 3


@pytest.mark.parametrize("name", pool.__all__)
def test_a_layers_docstring_runs_and_has_every_parameter(name):
    text = inspect.cleandoc(getattr(pool, name).__doc__)
    test = doctest.DocTestParser().get_doctest(text, dict(vars(pool)), name, name, 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0
    about = text[text.index("Parameters\n") : text.index("\n\nRaises\n")]
    assert re.findall(r"^(?:\*\*)?(\w+)(?: :|$)", about, re.MULTILINE)[1:] == list(
        inspect.signature(getattr(pool, name)).parameters
    )
