"""A few seconds of each random test; longer ones are `make fuzz SECONDS=...`."""

import importlib.util
import re
import shutil
import subprocess
from collections import Counter

import numpy as np
import pytest
from support import ROOT, Case, python

from poolgrad import verbs

FUZZ = ROOT / "fuzz"
SECONDS = "8"


def calls(text: str) -> int:
    """The number of calls that the last line counts."""
    found = re.search(r"([\d,]+) calls", text.strip().splitlines()[-1])
    assert found, text
    return int(found[1].replace(",", ""))


def test_random_calls_of_the_ops_equal_the_reference_or_are_refused():
    done = python(str(FUZZ / "ops.py"), "--seconds", SECONDS, "--seed", "20")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert calls(done.stdout) > 1000


def test_random_calls_of_the_verbs_equal_the_reference():
    done = python(str(FUZZ / "verbs.py"), "--seconds", SECONDS, "--seed", "20")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert calls(done.stdout) > 1000


def test_random_calls_of_the_native_module_raise_or_work():
    done = python(str(FUZZ / "border.py"), "--seconds", SECONDS, "--seed", "20")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert calls(done.stdout) > 1000
    assert re.search(r"\d worked", done.stdout)
    assert re.search(r"\d refused", done.stdout)


@pytest.mark.parametrize("compiler", ["c++", "clang++"])
@pytest.mark.parametrize("source", ["core.cpp", "stress.cpp", "planted.cpp"])
def test_the_programs_of_the_fuzzer_compile(source, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here")
    words = [
        compiler,
        "-std=c++20",
        "-fsyntax-only",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-psabi",
        f"-I{ROOT / 'src' / 'core'}",
    ]
    done = subprocess.run([*words, str(FUZZ / source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


BUILT = ROOT / "build" / "fuzz" / "fuzz_core"


@pytest.mark.skipif(not (BUILT.exists() and shutil.which("clang++")), reason="`make fuzz` has not built the core here")
def test_random_plans_give_the_same_bits_on_every_path_of_the_core():
    done = python(str(FUZZ / "run.py"), "--seconds", SECONDS, "--jobs", "1", "core")
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert calls(done.stdout) > 1000


@pytest.fixture
def ops(monkeypatch):
    monkeypatch.syspath_prepend(str(FUZZ))
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "oracle"))
    spec = importlib.util.spec_from_file_location("fuzz_ops", FUZZ / "ops.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_wrong_verb_is_noticed_and_its_case_made_small(ops, monkeypatch):
    true = verbs.select
    monkeypatch.setattr(
        verbs, "select", lambda plan, start, x: np.where(x.size > 4, 1, 0).astype(x.dtype) + true(plan, start, x)
    )
    case = Case("MaxPool", "int32", x=(2, 5, 5, 3), k=(3, 2), s=(2, 2), pad="SAME", data="wild")
    text = ops.failure(case, ops.wrong(case, ops.drawn(case), Counter()), "")
    small = re.search(r"x=\(([\d, ]+)\)", text)
    assert small, text
    assert np.prod([int(n) for n in small[1].split(",")]) <= 6


def test_a_case_is_the_same_whenever_it_is_drawn(ops):
    names = tuple(ops.OPS)
    first, again = (ops.random_case(np.random.default_rng([1, 5]), names) for _ in range(2))
    assert first == again


def test_a_process_that_dies_is_a_failure_with_its_case(tmp_path):
    script = tmp_path / "dies.py"
    script.write_text(
        f"import os, sys\nsys.path.insert(0, {str(FUZZ)!r})\nimport workers\n"
        "def run(given, progress):\n    progress.at(41, 7)\n    os.abort()\n"
        "sys.exit(workers.main('dies', '', run))\n"
    )
    done = python(str(script), "--seed", "3", "--seconds", "1")
    assert done.returncode == 1
    assert "--seed 3 --first 41" in done.stdout
    assert "1 failed" in done.stdout


def test_a_fuzzer_that_never_ends_is_a_failure_not_a_wait(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(FUZZ))
    spec = importlib.util.spec_from_file_location("fuzz_run", FUZZ / "run.py")
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    (tmp_path / "fuzz_core").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "fuzz_core").chmod(0o755)
    monkeypatch.setattr(run, "build", lambda kind: tmp_path)
    monkeypatch.setattr(run, "LATE", 0.5)
    assert run.core(0, 1) == 1
    assert "1 failed" in capsys.readouterr().out
