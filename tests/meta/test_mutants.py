"""The table of faults is one of this tree: `make mutate` tries them, which takes too long for every change."""

import sys

import pytest
from support import ROOT

TOOLS = ROOT / "tools"


@pytest.fixture
def mutate(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    monkeypatch.syspath_prepend(str(ROOT / "fuzz"))
    import mutate

    yield mutate
    sys.modules.pop("mutate")


def test_every_fault_fits_its_file(mutate):
    assert list(mutate.misfits(mutate.faults())) == []


def test_there_are_faults_of_all_parts(mutate):
    found = mutate.faults()
    assert sum(fault.native for fault in found) >= 60
    assert sum(not fault.native for fault in found) >= 60
    assert {fault.file for fault in found} >= {
        f"src/poolgrad/{name}.py"
        for name in ("_ops/bind", "_ops/kinds", "_windows/sliding", "_kernels/native", "raw_ops")
    }


def test_a_fault_that_no_longer_fits_is_named(mutate):
    gone = mutate.Fault("src/poolgrad/_kernels/native.py", "gone", "there is no such text", "")
    same = mutate.Fault(
        "src/poolgrad/_kernels/native.py", "same", "class Astray(ValueError):", "class Astray(ValueError):"
    )
    assert [line.split(": its")[0] for line in mutate.misfits([gone, same])] == ["native.py: gone", "native.py: same"]


@pytest.mark.parametrize(
    ("text", "instead", "want"),
    [
        ("a < b", "a <= b", "if ((poolgrad_mutant == NUMBER ? (a <= b) : (a < b))) f();"),
        ("f();", "", "if (a < b) { if (poolgrad_mutant == NUMBER) {  } else { f(); } }"),
    ],
)
def test_a_switched_source_has_both_texts(mutate, text, instead, want):
    fault = mutate.Fault("src/core/x.cpp", "", text, instead)
    assert fault.switched("if (a < b) f();") == want.replace("NUMBER", str(fault.number))


def test_no_two_faults_have_one_number(mutate):
    numbers = {fault.number for fault in mutate.faults()}
    assert len(numbers) == len(mutate.faults())
    assert 0 not in numbers


def test_without_a_test_that_fails_a_fault_is_not_noticed(mutate, tmp_path):
    passing, failing = tmp_path / "test_passing.py", tmp_path / "test_failing.py"
    passing.write_text("def test_passing():\n    pass\n")
    failing.write_text("def test_failing():\n    raise AssertionError\n")
    assert mutate.tests(ROOT / "src", None, [str(passing)]) == (False, "")
    bad, name = mutate.tests(ROOT / "src", None, [str(passing), str(failing)])
    assert bad
    assert name.endswith("test_failing")
