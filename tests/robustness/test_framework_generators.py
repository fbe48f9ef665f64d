"""A few seconds of each generator that compares an adapter, or the ops, with a framework; more: `python fuzz/NAME.py --help`."""

import importlib.util
import re

import deviations
import pytest
from support import ROOT, python

from poolgrad._ops import table
from poolgrad._ops.table import OPS

FUZZ = ROOT / "fuzz"
NEEDS = {"jax_adapter": "jax", "tensorflow_ops": "tensorflow", "autograd_adapter": "autograd"}
CALLS = {"jax_adapter": 5, "tensorflow_ops": 100, "autograd_adapter": 200}  # at least: JAX compiles each of them


@pytest.mark.parametrize("name", NEEDS)
def test_random_calls_agree_with_the_framework_but_for_what_the_docs_say(name):
    if importlib.util.find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed")
    done = python(str(FUZZ / f"{name}.py"), "--seconds", "8", "--seed", "20")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    last = done.stdout.strip().splitlines()[-1]
    assert int(re.search(r"([\d,]+) calls", last)[1].replace(",", "")) >= CALLS[name]
    documents = [ROOT / "docs" / "jax.md", *(ROOT / "docs" / "ops").glob("*.md")]
    pages = "".join(path.read_text("utf-8") for path in documents)
    reasons = re.findall(r"\d documented: (.*?)(?=, [\d,]+ (?:documented|[a-z])|, \d+ failed)", last)
    assert all(reason in pages for reason in reasons), reasons


def test_every_reason_of_a_difference_stands_in_a_row_of_the_table():
    named = {name for _, names in deviations.REFUSED_THERE for name in names} | set(deviations.SPOILT.values())
    rows = {text for op in OPS.values() for text in op.promise.deviations}
    assert {getattr(table, name) for name in named} <= rows


def test_a_reason_that_the_op_s_row_does_not_name_is_no_reason():
    refusal = "NotFoundError: Could not find device for node"
    case = deviations.Case("MaxPoolWithArgmax")
    assert not isinstance(deviations.refused_there(case, refusal), deviations.Documented)
    case = deviations.Case("MaxPool")
    assert deviations.refused_there(case, refusal) == table.GRID
