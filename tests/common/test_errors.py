"""Errors show any value, also one that cannot be shown."""

import numpy as np
import pytest

from poolgrad import raw_ops
from poolgrad._common.errors import short_repr


class Silent:
    """An object that raises when it is shown or converted."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    def __array__(self, *args: object, **kwargs: object) -> np.ndarray:
        raise RuntimeError("no")


def test_a_value_that_cannot_be_shown_is_named_by_its_type():
    assert short_repr(Silent()) == "<Silent>"
    with pytest.raises(TypeError, match=r"MaxPool: input: got <Silent>"):
        raw_ops.MaxPool(input=Silent(), ksize=[1, 1, 1, 1], strides=[1, 1, 1, 1], padding="SAME")
