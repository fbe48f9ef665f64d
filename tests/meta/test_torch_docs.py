"""The page about torch, the docstrings of the adapter, and the examples: they run, and what they print is true."""

import doctest
import inspect
import re
import subprocess
import sys
import typing
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test installs it where it can")

import torch

import poolgrad.torch as pgt
from poolgrad.torch import _signatures

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FASHION = Path("/usr/share/datasets/fashion-mnist")


def test_the_page_runs():
    text = (ROOT / "docs" / "torch.md").read_text("utf-8")
    blocks = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(blocks, {}, "torch.md", "torch.md", 0)
    assert len(test.examples) > 8
    report: list[str] = []
    assert doctest.DocTestRunner().run(test, out=report.append).failed == 0, "".join(report)


FUNCTIONS = [name for name in pgt.__all__ if re.fullmatch(r"[a-z_]+\dd", name)]
FACES = {
    name: getattr(_signatures, "".join(map(str.capitalize, name[:-2].split("_"))) + "Function") for name in FUNCTIONS
}


@pytest.mark.parametrize("name", [*FUNCTIONS, "replace"])
def test_docstrings_run(name):
    text = inspect.getdoc(getattr(pgt, name))
    test = doctest.DocTestParser().get_doctest(text, {**vars(pgt), "torch": torch}, name, name, 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstrings_and_types_have_every_parameter(name):
    parameters = inspect.signature(getattr(pgt, name)).parameters
    text = getattr(pgt, name).__doc__
    about = text[text.index("Parameters\n") : text.index("\n\nReturns\n")]
    assert re.findall(r"^(\w+) :", about, re.MULTILINE) == list(parameters)
    for title in ("Returns", "Raises", "See Also", "Examples"):
        assert f"{title}\n{'-' * len(title)}\n" in text
    typed = dict(inspect.signature(most_general(FACES[name])).parameters)
    assert typed.pop("self")
    assert [(p.name, p.kind, p.default) for p in typed.values()] == [
        (p.name, p.kind, p.default) for p in parameters.values()
    ]


def most_general(face):
    """Return the method that a class of signatures has, or the last of its overloads."""
    for kind in face.__mro__:
        name = SimpleNamespace(__module__=kind.__module__, __qualname__=f"{kind.__qualname__}.__call__")
        if found := typing.get_overloads(name):
            return found[-1]
    return face.__call__


@pytest.mark.parametrize("name", [name for name in pgt.__all__ if re.fullmatch(r"[A-Z]\w+\dd", name)])
def test_modules_have_the_documentation_of_their_function(name):
    module = getattr(pgt, name)
    named = re.findall(r"^(\w+) :", module.__doc__.split("See Also")[0], re.MULTILINE)
    taken = inspect.signature(module).parameters
    assert named
    assert set(named) - {"windows", "seed", "pseudo_random", "overlapping"} <= set(taken)
    assert set(taken) - {"draw"} <= set(named)


USER = """
from typing import assert_type
import torch
import poolgrad.torch as pgt
x = torch.rand(1, 2, 8, 8)
assert_type(pgt.max_pool2d(x, 2), torch.Tensor)
assert_type(pgt.max_pool2d(x, (2, 2), return_indices=True), tuple[torch.Tensor, torch.Tensor])
assert_type(pgt.max_pool2d(x, 2, None, 0, 1, False, True), tuple[torch.Tensor, torch.Tensor])
assert_type(pgt.min_pool2d(x, 2, padding="same"), torch.Tensor)
assert_type(pgt.avg_pool1d(x[0], 2, count_include_pad=False), torch.Tensor)
assert_type(pgt.lp_pool2d(x, 2.0, 2), torch.Tensor)
assert_type(pgt.adaptive_max_pool2d(x, (2, None), True), tuple[torch.Tensor, torch.Tensor])
assert_type(pgt.adaptive_avg_pool2d(x, 2), torch.Tensor)
assert_type(pgt.fractional_max_pool2d(x, output_ratio=0.5, return_indices=True, seed=1), tuple[torch.Tensor, torch.Tensor])
assert_type(pgt.fractional_avg_pool2d(x, output_size=2, windows=None), torch.Tensor)
assert_type(pgt.max_unpool2d(*pgt.max_pool2d(x, 2, return_indices=True), 2), torch.Tensor)
"""


def test_a_users_script_has_the_types_of_the_results(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    (tmp_path / "user.py").write_text(USER, "utf-8")
    words = ["--strict", "--follow-imports=silent", "--python-version=3.11", f"--cache-dir={tmp_path}", "user.py"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


QUICK = {
    "resnet_stem": ["--steps", "3", "--batch", "2", "--channels", "4", "--size", "16", "--threads", "1"],
    "gradient_penalty": ["--steps", "3"],
    "attribution": ["--size", "9"],
    "fashion_mnist": [
        "--images",
        "64",
        "--test",
        "32",
        "--epochs",
        "1",
        "--batch",
        "32",
        "--answers",
        "2",
        "--no-plot",
        "--threads",
        "1",
    ],
}
SAYS = {
    "resnet_stem": r"stem +channels last",
    "gradient_penalty": r"relative error \d\.\de-",
    "attribution": r"3x3, stride 1 .* 100\.0 %",
    "fashion_mnist": r"fractional, overlapping +\d+\.\d\d %",
}


@pytest.mark.parametrize("name", QUICK)
def test_an_example_runs(name):
    if name == "fashion_mnist" and not FASHION.is_dir():
        pytest.skip("Debian's dataset-fashion-mnist is not installed")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *QUICK[name]],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(SAYS[name], done.stdout), done.stdout


def test_every_example_is_run_and_explains_itself():
    scripts = {path.stem for path in EXAMPLES.glob("*.py") if "argparse" in path.read_text("utf-8")}
    assert scripts >= set(QUICK)
    for name in QUICK:
        assert "parser.add_argument" in (EXAMPLES / f"{name}.py").read_text("utf-8")
