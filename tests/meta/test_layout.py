"""Tests mirror the package: a reader who knows a module finds its tests by their name, and the reverse."""

import re

import pytest
from support import ROOT

TESTS = ROOT / "tests"
PACKAGE = ROOT / "src" / "poolgrad"
MIRRORED = {  # the folder of tests: the folders and files that its tests are named after
    "cli": ["_cli", "cli.py"],
    "common": ["_common"],
    "dask": ["dask"],
    "explain": ["_explain"],
    "frameworks": ["_frameworks"],
    "graph": ["graph"],
    "jax": ["jax"],
    "jobs": ["jobs"],
    "keras": ["keras"],
    "ops": ["_ops"],
    "pooling": ["_pooling"],
    "public": ["."],
    "studio": ["studio"],
    "tensorflow": ["tensorflow"],
    "torch": ["torch"],
    "windows": ["_windows"],
    "xarray": ["xarray"],
}
OTHERS = {  # the folder of tests: its subject, which is more than one module
    "benchmarks": "the benchmark as a whole",
    "c": "programs in C that `tests/kernels/test_c_interface.py` compiles and runs",
    "conformance": "results equal those of TensorFlow, torch and ONNX, but for named deviations",
    "data": "files that tests read",
    "helpers": "modules that tests share",
    "kernels": "the verbs of the core, by `_kernels/native.py`",
    "meta": "tests of tests, documents and packages",
    "robustness": "crashes, memory, forks, interrupts, threads, hostile and random calls",
}
VAGUE = {"corners", "limits", "misc", "more", "other", "rare", "various", "ways"}


def modules(folder: str) -> set[str]:
    """Return the names after which a folder's tests may be named; a package is named by its folder."""
    found = set()
    for place in MIRRORED[folder]:
        path = PACKAGE / place
        files = [path] if path.is_file() else sorted(path.glob("*.py"))
        found |= {folder if file.stem == "__init__" else file.stem.removeprefix("_") for file in files}
    return found


def test_every_folder_of_tests_has_a_subject():
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == {*MIRRORED, *OTHERS}


@pytest.mark.parametrize("folder", MIRRORED)
def test_a_file_is_named_after_the_module_that_it_tests(folder):
    names = modules(folder)
    files = [path.stem.removeprefix("test_") for path in sorted((TESTS / folder).glob("test_*.py"))]
    assert files
    assert [file for file in files if not any(f"{file}_".startswith(f"{name}_") for name in names)] == []


def test_no_file_has_a_name_that_says_nothing():
    assert [path.name for path in TESTS.rglob("*.py") if VAGUE & set(path.stem.split("_"))] == []


@pytest.mark.parametrize("folder", ["tools", "fuzz", "docs", ".github"])
def test_paths_of_tests_that_others_name_exist(folder):
    texts = [path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".toml", ".yml")]
    named = {
        name.rstrip(".") for path in texts for name in re.findall(r"\btests/[\w/.]+(?![\w{])", path.read_text("utf-8"))
    }
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
