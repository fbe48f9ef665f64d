"""No kernel reads or writes a byte outside its arrays, which lie flush against pages that may not be touched."""

import os

import pytest
from support import ROOT, SHARED, python

CASES = str(ROOT / "tests" / "robustness" / "guard_cases.py")
RUNNER = SHARED / "hostile" / "run_hostile.py"

# A sanitizer reports a touch of such a page in its own way.
sanitized = pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="the sanitizer takes the signal")


@sanitized
def test_a_cell_too_many_ends_the_process():
    assert python(CASES, "--touch").returncode < 0


def test_every_op_stays_inside_its_arrays():
    done = python(CASES, timeout=900)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert int(done.stdout.split()[0]) > 40_000


@pytest.mark.skipif(not RUNNER.exists(), reason=f"the hostile set is not there: {RUNNER}")
def test_the_hostile_set_is_answered_as_it_expects_on_guarded_memory():
    done = python(str(RUNNER), "--strict", "--module", "guarded_ops")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
