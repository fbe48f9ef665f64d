"""Old public names work for one version, and warn."""

import warnings

import pytest

import poolgrad
from poolgrad import graph, windows

NAMES = [
    (poolgrad, "clip", "sliding_axis"),
    (poolgrad, "maximum", "max_operator"),
    (poolgrad, "minimum", "min_operator"),
    (windows, "clip", "sliding_axis"),
    (windows, "Ints", "IntArray"),
    (graph, "Problem", "PageProblem"),
]


@pytest.mark.parametrize(("module", "old", "new"), NAMES, ids=lambda value: getattr(value, "__name__", value))
def test_an_old_name_warns_names_the_new_one_and_is_the_same_object(module, old, new):
    with pytest.warns(DeprecationWarning, match=rf"{module.__name__}\.{old} is now {module.__name__}\.{new}\b") as seen:
        found = getattr(module, old)
    assert found is getattr(module, new)
    assert [warning.filename for warning in seen] == [__file__], "the warning points at the caller"


@pytest.mark.parametrize(("module", "old", "new"), NAMES, ids=lambda value: getattr(value, "__name__", value))
def test_an_old_name_is_not_listed_and_its_new_name_does_not_warn(module, old, new):
    assert old not in module.__all__
    assert old not in dir(module)
    assert new in module.__all__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hasattr(module, new)


@pytest.mark.parametrize("module", [poolgrad, windows, graph], ids=lambda module: module.__name__)
def test_an_unknown_name_is_an_attribute_error(module):
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'maxpool'"):
        module.maxpool  # noqa: B018


def test_an_import_of_an_old_name_warns_at_every_import():
    for _ in range(2):
        with pytest.warns(DeprecationWarning, match="max_operator"):
            exec("from poolgrad import maximum", {})
