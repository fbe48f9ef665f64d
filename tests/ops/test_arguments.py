"""Kinds of arguments: the values that each takes."""

import pytest
from poolgrad._ops.arguments import Attributes

from poolgrad._common.errors import ArgumentErrors


@pytest.mark.parametrize(("elements", "fits"), [(2**31, True), (2**31 + 1, False)])
def test_int32_holds_positions_among_so_many_elements(elements, fits):
    problems = ArgumentErrors("MaxPoolWithArgmax")
    assert Attributes({"Targmax": "int32"}, problems).index_type("Targmax", elements) == "int32"
    assert bool(problems) is not fits
