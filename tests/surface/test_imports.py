"""Who may import whom, and what `import poolgrad` brings along."""

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

# What a room may import besides the standard library; names with a dot are modules of the package.
CONTRACT: dict[str, set[str]] = {
    "rules": set(),
    "errors": set(),
    "table": {".rules"},
    "kept": set(),
    "windows": {"numpy", ".arrays", ".errors", ".kept"},
    "philox": {"numpy"},
    "arrays": {"numpy", ".errors", ".integers"},
    "attributes": {"numpy", ".errors"},
    "bind": {"numpy", ".windows", ".arrays", ".attributes", ".errors", ".philox", ".rules", ".table"},
    "verbs": {"numpy", "ml_dtypes", "._core", ".rules", ".windows"},
    "reference": {"numpy", "ml_dtypes", ".rules", ".verbs", ".windows"},
    "raw_ops": {"numpy", ".kept", ".verbs", ".arrays", ".bind", ".errors", ".rules", ".table"},
    "recipes": {
        "numpy",
        ".arrays",
        ".choice",
        ".errors",
        ".families",
        ".functional",
        ".geometry",
        ".integers",
        ".kept",
        ".operators",
        ".taps",
    }
    | {".windows"},
    "traced": {"numpy", ".errors", ".families", ".functional", ".norms", ".recipes", ".taps"},
    "autograd": {"numpy", "autograd", ".arrays", ".errors", ".operators", ".recipes", ".traced"},
    "tensorflow": {"numpy", "tensorflow", ".arrays", ".errors", ".recipes", ".traced"},
    "jax/__init__": {"numpy", "jax", ".arrays", ".errors", ".integers", ".recipes", ".traced", ".primitives"},
    "jax/primitives": {"numpy", "jax", ".errors", ".recipes", ".native"},
    "jax/native": {"numpy", "jax", ".config", ".recipes"},
    "keras/layers": {"numpy", "keras", ".errors", ".families", ".geometry", ".recipes"},
    "keras/on_torch": {"numpy", "ml_dtypes", "torch", ".errors", ".recipes", ".traced"},
    "config": {"numpy", "ml_dtypes", "._core"},
    "geometry": {"numpy", ".kept", ".windows", ".philox", ".arrays", ".errors"},
    "integers": {"numpy", "ml_dtypes", ".errors"},
    "norms": {"numpy", ".arrays", ".autodiff", ".choice", ".errors", ".links", ".operators", ".windows"},
    "operators": {
        "numpy",
        ".verbs",
        ".windows",
        ".geometry",
        ".rules",
        ".arrays",
        ".errors",
        ".autodiff",
        ".integers",
        ".kept",
    },
    "autodiff": {"numpy", ".operators", ".arrays", ".errors"},
    "choice": {"numpy", ".verbs", ".windows", ".operators", ".rules", ".errors", ".arrays"},
    "taps": {"numpy", ".verbs", ".windows", ".operators", ".autodiff", ".arrays", ".errors"},
    "functional": {
        "numpy",
        "ml_dtypes",
        ".kept",
        ".windows",
        ".geometry",
        ".operators",
        ".autodiff",
        ".choice",
        ".integers",
        ".norms",
        ".taps",
        ".arrays",
        ".errors",
    },
    "picture": {
        "numpy",
        ".arrays",
        ".errors",
        ".families",
        ".functional",
        ".geometry",
        ".operators",
        ".windows",
    },
    "families": {
        "numpy",
        ".windows",
        ".geometry",
        ".operators",
        ".autodiff",
        ".choice",
        ".functional",
        ".arrays",
        ".errors",
    },
    "words": {"numpy"},
    "links": {"numpy", ".rules", ".windows"},
    "reasons": {
        "numpy",
        ".arrays",
        ".choice",
        ".errors",
        ".families",
        ".functional",
        ".geometry",
        ".rules",
        ".why",
        ".windows",
    },
    "why": {
        "numpy",
        ".reasons",
        ".raw_ops",
        ".windows",
        ".bind",
        ".errors",
        ".links",
        ".rules",
        ".table",
        ".words",
    },
}


def imports(path) -> set[str]:
    """Everything that a file imports, at its head or deep inside; modules of the package begin with a dot."""
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

# What the modules of a folder may import from the rest of the package: the table as data and the public way to run ops.
FOLDERS: dict[str, set[str]] = {
    "graph": {
        "table",
        "rules",
        "bind",
        "errors",
        "arrays",
        "raw_ops",
        "why",
        "links",
        "words",
        "files",
        "problem",
        "png",
        "config",
    },
    "studio": {"graph", "errors", "files"},
}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_imports_only_what_it_may_know(folder):
    for path in (PACKAGE / folder).rglob("*.py"):
        found = set()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 2:
                found |= {node.module.split(".")[0]} if node.module else {alias.name for alias in node.names}
            elif isinstance(node, (ast.Import, ast.ImportFrom)) and not getattr(node, "level", 0):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                outside = {n.split(".")[0] for n in names} - set(sys.stdlib_module_names)
                assert outside <= {"numpy", "ml_dtypes"}, path
        assert found <= FOLDERS[folder], path


@pytest.mark.parametrize("room", [r for r in CONTRACT if (PACKAGE / f"{r}.py").exists()])
def test_a_room_imports_only_what_it_may_know(room):
    assert imports(PACKAGE / f"{room}.py") <= CONTRACT[room]


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
    [f for f in FILES if f.stem not in ("verbs", "config", "__init__") and f.parent.name != "bench"],
    ids=lambda f: str(f.relative_to(PACKAGE)),
)
def test_only_the_verbs_and_the_configuration_touch_the_native_module(path):
    assert "._core" not in imports(path)


def test_the_package_does_not_import_its_tests_or_tools():
    for path in FILES:
        assert not imports(path) & {"tests", "tools", "bench", "support", "pytest", "hypothesis"}, path


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
