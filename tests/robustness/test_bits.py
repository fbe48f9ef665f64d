"""The matrix of op, threads, instruction set, layout, entry point and run has one hash per op and pool, and the tool can fail."""

import importlib.util
import re
from types import ModuleType
from typing import Any

import pytest
from support import FAST, ROOT, python

import poolgrad
from poolgrad._ops.table import OPS

TOOL = ROOT / "tools" / "bits.py"


@pytest.fixture(scope="module")
def bits() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bits", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_op_and_pool_has_one_hash(bits):
    done = python(str(TOOL), "--quick", timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(r"^\| ([\w ]+) \| `\w{16}` \| \d+ \| one \|$", done.stdout, re.MULTILINE)
    verbs = ["choose", "pick", "place", "fold total", "fold once", "spread whole"]
    assert rows == [*OPS, *verbs, *bits.entries.POOLS]


@pytest.mark.parametrize("when", ["threads", "layout"])
def test_an_op_that_depends_on_something_has_two(bits, monkeypatch, when):
    right = FAST["MaxPool"]

    def wrong(**args: Any) -> Any:
        y = right(**args)
        planted = poolgrad.get_num_threads() == 7 if when == "threads" else not args["input"].flags.c_contiguous
        if planted:
            y.reshape(-1)[-1] += 1
        return y

    monkeypatch.setitem(bits.FAST, "MaxPool", wrong)
    found = {("here", *key): value for key, value in bits.measure("MaxPool", quick=True).items()}
    line, one = bits.verdict("MaxPool", found)
    assert not one
    assert "2 hashes" in line
    assert ("7 threads" if when == "threads" else "Fortran") in line


def test_the_same_op_without_the_fault_has_one(bits):
    line, one = bits.verdict("MaxPool", {("here", *k): v for k, v in bits.measure("MaxPool", quick=True).items()})
    assert one, line


@pytest.mark.parametrize("entry", ["pg", "operators", "raw_ops"])  # frameworks stay out of a process that others fork
def test_a_pool_by_an_entry_point_with_other_bits_has_two(bits, monkeypatch, entry):
    right = bits.entries.ENTRIES[entry]

    def wrong(*args: Any) -> Any:
        y, dx, ddy = right(*args)
        return [y, dx + dx.dtype.type(1), ddy]

    monkeypatch.setitem(bits.entries.ENTRIES, entry, wrong)
    monkeypatch.setattr(bits, "LAYOUTS", {"C": bits.LAYOUTS["C"]})
    monkeypatch.setattr(bits, "THREADS", (2,))
    line, one = bits.verdict(
        "max_pool", {("here", *k): v for k, v in bits.measure("max_pool", True, adapters=False).items()}
    )
    assert not one
    assert "2 hashes" in line
    assert entry in line


def test_an_entry_point_that_raises_has_a_hash_of_its_own(bits, monkeypatch):
    monkeypatch.setitem(bits.entries.ENTRIES, "pg", lambda *args: 1 / 0)
    assert b"ZeroDivisionError" in bits.entries.run("pg", "max_pool", ())[0].tobytes()


def test_the_page_has_a_row_for_every_op_verb_and_pool(bits):
    rows = re.findall(r"^\| ([\w ]+) \| `\w{16}` \| \d+ \| one \|$", bits.PAGE.read_text(), re.MULTILINE)
    assert rows == [*OPS, *bits.VERBS, *bits.entries.POOLS]
