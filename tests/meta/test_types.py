"""A user's script has the right types under mypy strict and pyright; no public function returns Any."""

import importlib.util
import inspect
import json
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest
from support import ROOT

import poolgrad

SCRIPT = Path(__file__).with_name("typed_user.py")
PLACE = str(Path(poolgrad.__file__).parents[1])
WRONG = """
assert_type(pg.max_pool(x, 2), NDArray[np.float64])
pg.max_pool(x, 2, windwo=3)
pg.maxpool(x, 2)
pg.max_pool(x, 2, ties="random")
"""


def mypy(script: Path) -> tuple[int, str]:
    """Run mypy strict as a user would: from another folder, without this project's settings."""
    pytest.importorskip("mypy")
    options = ["--strict", "--config-file=", "--no-error-summary", f"--cache-dir={ROOT / '.mypy_cache' / 'user'}"]
    return run([sys.executable, "-m", "mypy", *options, script.name], script.parent)


def pyright(script: Path) -> tuple[int, str]:
    """Run pyright in its strict mode on the script."""
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed: pip install 'pyright[nodejs]'")
    config = {"include": [script.name], "extraPaths": [PLACE], "typeCheckingMode": "strict"}
    (script.parent / "pyrightconfig.json").write_text(json.dumps(config))
    code, text = run([sys.executable, "-m", "pyright", "--pythonpath", sys.executable], script.parent)
    if code not in (0, 1):
        pytest.skip(f"pyright cannot run here: {text[-200:]}")
    return code, text


def run(command: list[str], folder: Path) -> tuple[int, str]:
    """Return the exit code and the output of a command that finds this poolgrad."""
    import os

    env = {**os.environ, "PYTHONPATH": PLACE, "MYPYPATH": "", "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("check", [mypy, pyright])
def test_the_types_of_a_user_s_script_are_right(check, tmp_path):
    script = tmp_path / SCRIPT.name
    script.write_text(SCRIPT.read_text())
    code, text = check(script)
    assert code == 0, text


@pytest.mark.parametrize("check", [mypy, pyright])
def test_every_wrong_line_is_an_error(check, tmp_path):
    script = tmp_path / SCRIPT.name
    right = SCRIPT.read_text()
    script.write_text(right + WRONG)
    code, text = check(script)
    assert code == 1, text
    first = right.count("\n") + 2
    blamed = {int(line) for line in re.findall(rf"{SCRIPT.name}:(\d+).*error", text)}
    assert blamed == set(range(first, first + 4)), text


def test_the_script_runs():
    done = subprocess.run([sys.executable, SCRIPT], env=None, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def functions() -> list[str]:
    """Return the names of the public functions."""
    return [name for name in poolgrad.__all__ if inspect.isfunction(getattr(poolgrad, name))]


@pytest.mark.parametrize("name", functions())
def test_no_public_function_returns_any(name):
    function = getattr(poolgrad, name)
    for signature in (function, *typing.get_overloads(function)):
        assert not re.search(r"\bAny\b", str(signature.__annotations__["return"])), signature.__annotations__["return"]
        assert "Any" not in {signature.__annotations__[p] for p in inspect.signature(signature).parameters}
