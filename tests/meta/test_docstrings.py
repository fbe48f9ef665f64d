"""Public functions, classes and methods have numpydoc docstrings: every parameter, in order, results, errors and examples."""

import inspect
import re

import pytest

import poolgrad
from poolgrad import raw_ops, windows
from poolgrad.studio import notebook

CLASSES = ("Axis", "Linear", "Plan", "Taps", "Var")
SECTIONS = ("Parameters", "Attributes", "Returns", "Raises", "See Also", "Notes", "Examples")
WITHOUT_ERRORS = {
    "config",
    "get_num_threads",
    "show_config",
    "summing",
    "whole",
}  # these take no argument that can be wrong, or pass it on
OVERRIDDEN = {"Linear.forth", "Linear.back"}  # for those who write operators: one line is enough
INTERNAL = {"Var.through"}


def public() -> dict[str, object]:
    """Return the public functions and classes, and the public methods of the classes, by name."""
    found = {name: getattr(poolgrad, name) for name in poolgrad.__all__ if callable(getattr(poolgrad, name))}
    found["studio"] = notebook.studio  # poolgrad.studio is a module that calls it
    for name in CLASSES:
        owner = getattr(poolgrad, name)
        for key, value in vars(owner).items():
            method = value.__func__ if isinstance(value, classmethod) else value
            if key[0] != "_" and inspect.isfunction(method):
                found[f"{name}.{key}"] = method
    return {name: thing for name, thing in found.items() if name not in OVERRIDDEN | INTERNAL}


PUBLIC = public()


def sections(text: str) -> dict[str, str]:
    """Return the sections of a numpydoc text by title; the summary has the title ""."""
    parts = re.split(r"^([A-Z][A-Za-z ]+)\n-{3,}$", "\n" + inspect.cleandoc(text), flags=re.MULTILINE)
    return {
        "": parts[0].strip(),
        **{title: body.strip("\n") for title, body in zip(parts[1::2], parts[2::2], strict=True)},
    }


def documented(section: str) -> list[str]:
    """Return the names of the parameters that a section explains."""
    heads = [line for line in section.splitlines() if line and line[0] != " "]
    return [name.strip().lstrip("*") for head in heads for name in head.partition(" :")[0].split(",")]


def parameters(thing: object) -> list[str]:
    """Return the names of the parameters in a signature, without self and cls."""
    return [name for name in inspect.signature(thing).parameters if name not in ("self", "cls")]


def test_the_public_surface_is_looked_at():
    assert {"max_pool", "Axis", "Axis.pairs", "Taps.from_flat", "grad", "Plan"} <= set(PUBLIC)
    assert len(PUBLIC) > 50


@pytest.mark.parametrize("name", PUBLIC)
def test_a_docstring_explains_exactly_the_parameters_in_their_order(name):
    thing = PUBLIC[name]
    if name == "Linear":
        return  # nobody calls it: functions make operators
    assert documented(sections(thing.__doc__).get("Parameters", "")) == parameters(thing)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_explanation_is_a_sentence(name):
    for title in ("Parameters", "Raises", "Attributes"):
        body = sections(PUBLIC[name].__doc__).get(title, "")
        entries = re.split(r"\n(?=\S)", body) if body else []
        for entry in entries:
            head, _, text = entry.partition("\n")
            assert text.startswith("    "), f"{title}: {head} has no explanation"
            assert text.rstrip().endswith("."), f"{title}: {head} ends without a full stop"


@pytest.mark.parametrize("name", PUBLIC)
def test_a_docstring_has_a_summary_results_errors_and_an_example(name):
    thing = PUBLIC[name]
    found = sections(thing.__doc__)
    assert found[""].split("\n")[0].endswith("."), "the summary is one line"
    assert list(found)[1:] == [title for title in SECTIONS if title in found], (
        "sections are known, and in numpydoc's order"
    )
    assert ">>>" in found["Examples"]
    if inspect.isfunction(thing) and str(inspect.signature(thing).return_annotation) != "None":
        assert found["Returns"].strip()
    if inspect.isfunction(thing) and "." not in name:
        assert found["See Also"].strip()
        assert (name in WITHOUT_ERRORS) or found["Raises"].strip()


@pytest.mark.parametrize("name", PUBLIC)
def test_see_also_names_things_that_exist(name):
    owner = PUBLIC.get(name.partition(".")[0])
    for other in documented(sections(PUBLIC[name].__doc__).get("See Also", "")):
        assert hasattr(poolgrad, other) or hasattr(owner, other), other


@pytest.mark.parametrize("name", windows.__all__)
def test_what_the_windows_module_adds_has_a_docstring(name):
    thing = getattr(windows, name)
    assert not callable(thing) or (thing.__doc__ or "").strip()


@pytest.mark.parametrize("name", raw_ops.__all__)
def test_an_operator_explains_its_parameters(name):
    function = getattr(raw_ops, name)
    for parameter in parameters(function):
        assert re.search(rf"^\s*{parameter}\b ?:", function.__doc__, re.MULTILINE), parameter
