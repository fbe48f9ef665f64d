"""The rooms keep their budgets, and the tool that says so would notice if they did not."""

import importlib.util
from types import ModuleType

import pytest
from support import ROOT, python


@pytest.fixture(scope="module")
def rooms() -> ModuleType:
    spec = importlib.util.spec_from_file_location("rooms", ROOT / "tools" / "rooms.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_room_is_over_its_budget():
    done = python(str(ROOT / "tools" / "rooms.py"))
    assert done.returncode == 0, done.stderr + done.stdout


def test_the_tool_fails_when_a_room_is_over(rooms, monkeypatch, capsys):
    monkeypatch.setattr(rooms, "PYTHON_LINES", 100)
    assert rooms.main() == 1
    assert "Python core" in capsys.readouterr().err


def test_a_run_of_six_lines_that_occurs_twice_is_counted(rooms, tmp_path):
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("".join(f"line {i}\n\n" for i in range(6)))
    two.write_text("".join(f"  line {i}\n" for i in range(6)) + "".join(f"other {i}\n" for i in range(12)))
    assert rooms.duplicated([one, two]) == 50
    assert rooms.duplicated([two]) == 0


def test_the_length_of_a_function_leaves_out_decorators_and_docstring(rooms, tmp_path, monkeypatch):
    monkeypatch.setattr(rooms, "ROOT", tmp_path)
    path = tmp_path / "one.py"
    path.write_text('@staticmethod\ndef f():\n    """Two\n\n    lines."""\n    x = 1\n    return x\n')
    assert list(rooms.functions(path)) == [(3, "one.py: f")]
