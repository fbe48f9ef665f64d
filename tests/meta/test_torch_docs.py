"""The page about torch, the docstrings of the adapter, and the examples: they run, and what they print is true."""

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test installs it where it can")

import torch

import poolgrad.torch as pgt

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


@pytest.mark.parametrize("module", ["functional", "fractional"])
def test_docstrings_run(module):
    found = importlib.import_module(f"poolgrad.torch.{module}")
    names = [name for name in vars(found) if name.endswith(("_pool", "_unpool"))]
    assert names
    for name in names:
        test = doctest.DocTestParser().get_doctest(
            getattr(found, name).__doc__, {**vars(pgt), "torch": torch}, name, name, 0
        )
        assert test.examples
        assert doctest.DocTestRunner().run(test).failed == 0, name


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
