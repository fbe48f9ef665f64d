"""The imports that each module may have, and the modules that `import poolgrad` loads."""

import ast
import json
import sys

import pytest
from support import PACKAGE, python

FRAMEWORKS = {
    "torch",
    "tensorflow",
    "jax",
    "keras",
    "autograd",
    "dask",
    "xarray",
    "cupy",
    "mxnet",
    "scipy",
    "skimage",
    "onnxruntime",
}
ADAPTERS = {"torch", "jax", "tensorflow", "keras", "autograd", "dask", "xarray"}

# The folders and public modules that each may import, besides itself; `_core` has a test of its own.
CONTRACT: dict[str, set[str]] = {
    "_common": set(),
    "_windows": {"_common"},
    "windows": {"_common", "_windows"},
    "_ops": {"_common", "_windows"},
    "problem": {"_cli", "_ops"},
    "_kernels": {"_ops", "_windows"},
    "reference": {"_kernels", "_ops", "_windows"},
    "raw_ops": {"_common", "_kernels", "_ops", "_windows"},
    "_pooling": {"_common", "_kernels", "_ops", "_windows"},
    "_explain": {"_common", "_ops", "_pooling", "_windows", "raw_ops", "windows"},
    "_frameworks": {"_common", "_pooling", "_windows"},
    "autograd": {"_common", "_frameworks", "_pooling"},
    "jax": {"_common", "_frameworks", "config"},
    "keras": {"_common", "_frameworks", "_pooling"},
    "tensorflow": {"_common", "_frameworks"},
    "torch": {"_common", "_pooling", "_windows"},
    "config": set(),
    "graph": {"_common", "_explain", "_ops", "_pooling", "config", "raw_ops"},
    "studio": {"_common", "graph"},
    "_cli": {"_common", "_ops", "raw_ops"},
}


def imports(path) -> set[str]:
    """Return everything that a file imports, at its head or deep inside; modules of the package begin with a dot."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level:
            found |= {f".{node.module}"} if node.module else {f".{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    tops = {("." + n.split(".")[1]) if n.startswith((".", "poolgrad.")) else n.split(".")[0] for n in found}
    return {n for n in tops if n not in sys.stdlib_module_names}


FILES = sorted(PACKAGE.rglob("*.py"))


def neighbours(path) -> set[str]:
    """Return the folders and modules of the package that a file imports."""
    package = path.relative_to(PACKAGE).parts[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*package[: len(package) - node.level + 1], *(node.module or "").split(".")]
            names = [part for part in base if part] or [alias.name for alias in node.names]
            found |= {names[0]} if base != [""] else set(names)
    return found - {"_core", path.relative_to(PACKAGE).parts[0].removesuffix(".py")}


@pytest.mark.parametrize("part", CONTRACT)
def test_a_part_of_the_package_imports_only_what_it_may_know(part):
    files = [PACKAGE / f"{part}.py"] if (PACKAGE / f"{part}.py").exists() else (PACKAGE / part).rglob("*.py")
    for path in files:
        assert neighbours(path) <= CONTRACT[part], path


def test_every_part_of_the_package_has_its_contract():
    parts = {p.name.removesuffix(".py") for p in PACKAGE.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert parts - {"__init__", "__main__", "cli"} == set(CONTRACT)


@pytest.mark.parametrize("folder", ["graph", "studio"])
def test_pages_need_no_package_but_numpy(folder):
    for path in (PACKAGE / folder).rglob("*.py"):
        assert {n for n in imports(path) if not n.startswith(".")} <= {"numpy", "ml_dtypes"}, path


@pytest.mark.parametrize(
    "path",
    [f for f in FILES if f.relative_to(PACKAGE).parts[0].removesuffix(".py") not in ADAPTERS],
    ids=lambda f: str(f.relative_to(PACKAGE)),
)
def test_no_module_but_an_adapter_imports_a_framework_at_its_head(path):
    head = [node for node in ast.parse(path.read_text()).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.name.split(".")[0] for node in head if isinstance(node, ast.Import) for alias in node.names}
    names |= {(node.module or "").split(".")[0] for node in head if isinstance(node, ast.ImportFrom) and not node.level}
    assert not names & FRAMEWORKS


@pytest.mark.parametrize(
    "path",
    # The package's own file imports it for its order alone: it refuses sub-interpreters before NumPy is loaded.
    [f for f in FILES if f.stem not in ("native", "config", "__init__")],
    ids=lambda f: str(f.relative_to(PACKAGE)),
)
def test_only_the_kernels_and_the_configuration_touch_the_native_module(path):
    assert "._core" not in imports(path)


def test_the_package_does_not_import_its_tests_or_tools():
    for path in FILES:
        assert not imports(path) & {"tests", "tools", "benchmarks", "support", "pytest", "hypothesis"}, path


def test_importing_the_package_loads_no_framework():
    done = python("-c", "import sys, json, poolgrad; print(json.dumps(sorted(sys.modules)))")
    assert not {name.split(".")[0] for name in json.loads(done.stdout)} & FRAMEWORKS


MEASURE = """
import time
start = time.thread_time()
import numpy
middle = time.thread_time()
import poolgrad
print(time.thread_time() - middle)
"""


def test_importing_the_package_costs_at_most_60_ms_more_than_numpy():
    best = min(float(python("-c", MEASURE).stdout) for _ in range(9))
    assert best <= 0.060


def test_the_old_place_of_problem_lines_still_works_and_warns():
    done = python("-W", "error", "-c", "import poolgrad.problem")
    assert "DeprecationWarning: poolgrad.problem moved" in done.stderr
    use = (
        "from poolgrad.problem import parse, short; p = parse('max x=1x2x2x1 k=2x2'); print(short('f'), p, p.call()[0])"
    )
    assert python("-c", use).stdout == "f max f32 nhwc x=1x2x2x1 k=2x2 s=2x2 pad=valid MaxPool\n"
