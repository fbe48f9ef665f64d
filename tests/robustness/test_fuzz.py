"""A few seconds of each random test; longer ones are `make fuzz SECONDS=...`."""

import importlib.util
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
import workers
from support import ROOT, Case, python

from poolgrad import _core
from poolgrad._kernels import native

FUZZ = ROOT / "fuzz"
SECONDS = "8"


def calls(text: str) -> int:
    """Return the number of calls that the last line counts."""
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


def test_random_requests_to_the_studio_are_served_or_refused_in_time_and_little_memory():
    done = python(str(FUZZ / "pages.py"), "--seconds", SECONDS, "--seed", "20")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert calls(done.stdout) > 200


def test_random_calls_of_the_native_module_raise_or_work():
    done = python(str(FUZZ / "border.py"), "--seconds", SECONDS, "--seed", "20")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert calls(done.stdout) > 1000
    assert re.search(r"\d worked", done.stdout)
    assert re.search(r"\d refused", done.stdout)


def test_native_functions_survive_inputs_that_others_overwrite():
    done = python(str(FUZZ / "races.py"), "--seconds", SECONDS, "--seed", "20")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert calls(done.stdout) > 500
    assert re.search(r"\d refused", done.stdout)
    assert re.search(r"\d through a mapped file", done.stdout)


@pytest.fixture
def races(monkeypatch):
    monkeypatch.syspath_prepend(str(FUZZ))
    spec = importlib.util.spec_from_file_location("fuzz_races", FUZZ / "races.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fuzz_races", module)
    spec.loader.exec_module(module)
    return module


def test_every_native_function_is_raced(races):
    said = {
        "get_num_threads",
        "thread_setting",
        "available_threads",
        "isa",
        "isa_levels",
        "compiler",
        "foreign",
        "schedules",
    }  # these take nothing
    native = {name for name in vars(_core) if not name.startswith("_")} - said
    assert native <= set(races.CASES)
    assert {f"foreign.{name}" for name in races.TABLE} <= set(races.CASES)
    header = (ROOT / "src" / "core" / "api" / "poolgrad.h").read_text()
    table = header[header.index("typedef struct pg_table {") : header.index("} pg_table;")]
    assert re.findall(r"_function\* (\w+);", table) == list(races.TABLE)


def raise_unnamed():
    raise ValueError("nothing that anybody could find")


def test_a_race_notices_what_is_written_outside_results_and_refusals_without_a_name(races):
    make = races.Maker(np.random.default_rng(1), None)
    make.result((4,), np.float32)

    def spill():
        make.results[0][128 - 1] = 0

    assert "written outside" in races.race(make.case("spill", spill), None, Counter())
    made = races.Maker(np.random.default_rng(1), None)
    assert "names nothing" in races.race(made.case("unnamed", raise_unnamed), None, Counter())
    assert "KeyError" in races.race(made.case("other", lambda: {}["x"]), None, Counter())


def test_arrays_lists_and_mapped_files_are_overwritten_during_a_call_and_right_after_it(races):
    mapped = races.Mapped()
    try:
        for shared in (None, mapped):
            make = races.Maker(np.random.default_rng(1), shared)
            truth = np.arange(1000)
            live, listed = make.input(truth), make.list([1, 2])
            seen, end = set(), time.monotonic() + 20
            with races.overwriting(make.racing, shared):
                while time.monotonic() < end and len(seen) < 2:
                    seen |= {"array"} if (live != truth).any() else set()
                    seen |= {"list"} if listed != [1, 2] else set()
            assert seen == {"array", "list"}
            if shared is None:
                assert (live == truth).all()
            assert listed == [1, 2]
    finally:
        mapped.close()


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
    spec = importlib.util.spec_from_file_location("fuzz_ops", FUZZ / "ops.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_wrong_verb_is_noticed_and_its_case_made_small(ops, monkeypatch):
    true = native.select
    monkeypatch.setattr(
        native, "select", lambda plan, start, x: np.where(x.size > 4, 1, 0).astype(x.dtype) + true(plan, start, x)
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


@pytest.mark.parametrize(("calls", "failing", "want"), [(3, 0, 3), (0, 1, 1), (0, 2, 2)])
def test_cases_end_after_so_many_calls_or_failures(calls, failing, want):
    given, progress, counts = SimpleNamespace(seconds=60, first=7, calls=calls), workers.Progress(), Counter()
    for number in workers.cases(given, progress, counts, failures=failing or 1):
        assert progress.read() == (number, counts["calls"])
        counts["calls"] += 1
        counts["failed"] += failing > 0
    assert progress.read() == (7 + want, want)


def test_cases_end_with_the_time():
    given = SimpleNamespace(seconds=0.0, first=0, calls=0)
    assert list(workers.cases(given, workers.Progress(), Counter())) == []


def test_a_process_that_dies_is_a_failure_with_its_case(tmp_path):
    script = tmp_path / "dies.py"
    script.write_text(
        f"import os, sys\nsys.path.insert(0, {str(FUZZ / 'helpers')!r})\nimport workers\n"
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
