"""The bits depend on the arguments' elements only: not on threads, instruction sets or where memory lies."""

from typing import Any

import numpy as np
import pytest
from geometry import cases, large
from memory_forms import MEMORY
from support import FAST, PLAIN, ROOT, Case, arguments, difference, python

import poolgrad
from poolgrad import _core, windows
from poolgrad._kernels import native
from poolgrad._ops.semantics import Share
from poolgrad._ops.table import ARRAYS, OPS

PAIRS = [(name, dtype) for name, op in OPS.items() for dtype in op.dtypes]


@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_results_do_not_depend_on_threads_nor_on_the_path(name, dtype):
    for case in large(name, dtype):
        args = arguments(case)
        with poolgrad.threads(1):
            want = PLAIN[name](**args)
        for n, far in ((1, -1), (2, -1), (7, -1), (1, 0), (7, 0)):
            _core.go_far_from(far)
            with poolgrad.threads(n):
                text = difference(FAST[name](**args), want)
            _core.go_far_from(-1)
            assert not text, f"{n} threads, past the caches from {far} on: {text}\n    wrong({case!r})"


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 9, 11, 37), (2, 5, 3, 200), (5, 64, 18), (70, 7, 7), (6, 5, 6, 7, 1)], ids=str)
def test_what_goes_past_the_caches_arrives_wherever_rows_begin(shape, dtype):
    rng = np.random.default_rng(1)
    axes = tuple(range(1, max(len(shape) - 1, 2)))
    plan = windows.Plan(shape, {d: windows.sliding_axis(shape[d], 2, 2, 0, shape[d] // 2) for d in axes})
    g = rng.standard_normal(plan.dest).astype(dtype)
    taps = np.zeros(plan.dest, np.uint8)
    memory = np.empty(int(np.prod(shape)) + 64, dtype)
    for calls in (
        lambda out: native.spread(plan, Share.RECIPROCAL, False, g, out),
        lambda out: native.place(plan, g, taps, out),
    ):
        want = calls(np.empty(shape, dtype))
        _core.go_far_from(0)
        try:
            for begin in range(33):
                memory[:] = 7
                out = memory[begin : begin + want.size].reshape(shape)
                assert np.array_equal(calls(out), want)
                assert (memory[:begin] == 7).all()
                assert (memory[begin + want.size :] == 7).all()
        finally:
            _core.go_far_from(-1)


def lines_at(level: str) -> list[str]:
    done = python(str(ROOT / "tests" / "kernels" / "hashes.py"), POOLGRAD_ISA=level)
    assert done.returncode == 0, done.stderr
    first, *lines = done.stdout.splitlines()
    assert first == f"level {level}"
    return lines


@pytest.fixture(scope="module")
def highest() -> list[str]:
    return lines_at(_core.isa_levels()[0])


@pytest.mark.parametrize("level", _core.isa_levels()[1:])
def test_results_do_not_depend_on_the_instruction_set(level, highest):
    lower = lines_at(level)
    assert len(lower) == len(highest) > 1000
    assert [line for line, want in zip(lower, highest, strict=True) if line != want] == []


def test_an_unknown_instruction_set_is_refused_by_name():
    assert python("-c", "import poolgrad", POOLGRAD_ISA="").returncode == 0  # which caps nothing
    done = python("-c", "import poolgrad", POOLGRAD_ISA="x86-64-v9")
    assert done.returncode != 0
    assert "POOLGRAD_ISA: there is no level 'x86-64-v9'" in done.stderr


def given_as(case: Case, form: str) -> dict[str, Any]:
    names = {p.name for p in case.row.params if p.kind in ARRAYS}
    return {n: MEMORY[form](v) if n in names and np.ndim(v) else v for n, v in arguments(case).items()}


@pytest.mark.parametrize("form", [form for form in MEMORY if form != "plain"])
@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_results_do_not_depend_on_where_memory_lies(name, dtype, form):
    for case in cases(name, dtype, "wild")[:4]:
        args = given_as(case, form)
        kept = {n: np.array(v, copy=True) for n, v in args.items() if isinstance(v, np.ndarray)}
        text = difference(FAST[name](**args), FAST[name](**arguments(case)))
        assert not text, f"{form}: {text}\n    wrong({case!r})"
        assert all(
            np.array_equal(args[n], v, equal_nan=v.dtype.kind == "f") for n, v in kept.items() if v.dtype.kind in "fiu"
        )
