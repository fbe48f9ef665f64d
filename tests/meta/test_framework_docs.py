"""The examples in the documents of the adapters give what is printed, each document in a process of its own."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
NEEDS = {"jax": "jax", "tensorflow": "keras", "autograd": "autograd", "xarray": "xarray"}
RUN = """
import doctest, pathlib, re, sys
text = pathlib.Path(sys.argv[1]).read_text("utf-8")
blocks = [b for b in re.findall(r"```python\\n(.*?)```", text, re.DOTALL) if b.startswith(">>>")]
test = doctest.DocTestParser().get_doctest("\\n".join(blocks), {}, sys.argv[1], sys.argv[1], 0)
result = doctest.DocTestRunner().run(test)
sys.exit(1 if result.failed or not result.attempted else 0)
"""


@pytest.mark.parametrize("name", NEEDS)
def test_the_examples_of_a_document_run(name):
    if importlib.util.find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed")
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(DOCS / f"{name}.md")], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]


def test_a_tape_holds_less_of_our_maximum_than_of_tensorflows():
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("tensorflow is not installed")
    script = DOCS.parent / "examples" / "memory_held.py"
    ask = [[sys.executable, str(script), "max_pool 2x2", whose] for whose in ("poolgrad", "tf.nn")]
    done = [subprocess.run(a, capture_output=True, text=True, timeout=300, check=True) for a in ask]
    ours, theirs = (float(d.stdout) for d in done)
    assert ours < 10 < 18 < theirs < 24
