"""The packages that modules may import, and those that `import poolgrad` loads. import-linter checks imports inside the package."""

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
    "distributed",
    "xarray",
    "zarr",
    "h5py",
    "tensorstore",
    "cubed",
    "cupy",
    "mxnet",
    "scipy",
    "skimage",
    "onnxruntime",
}
ADAPTERS = {"torch", "jax", "tensorflow", "keras", "autograd", "dask", "cubed", "xarray"}


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


@pytest.mark.parametrize("folder", ["graph", "studio"])
def test_pages_need_no_package_but_numpy(folder):
    for path in (PACKAGE / folder).rglob("*.py"):
        extra = {"anywidget", "traitlets"} if path.name == "notebook.py" else set()  # imported when a widget is made
        assert {n for n in imports(path) if not n.startswith(".")} <= {"numpy", "ml_dtypes", *extra}, path


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


CORE_USERS = ("_kernels/native.py", "_windows/tables.py", "config.py", "__init__.py")


@pytest.mark.parametrize(
    "path",
    # The package's own file imports it for its order alone: it refuses sub-interpreters before NumPy is loaded.
    [f for f in FILES if str(f.relative_to(PACKAGE)) not in CORE_USERS],
    ids=lambda f: str(f.relative_to(PACKAGE)),
)
def test_only_kernels_windows_and_configuration_touch_the_native_module(path):
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
