"""The C interface: the examples and a program of hostile calls compile without a warning, and give the results of raw_ops.

The programs run on the installed core: each call of a function of poolgrad.h goes to its table. `make library` builds libpoolgrad;
the last test runs the same programs with it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from poolgrad import raw_ops
from poolgrad._frameworks.build import header, table

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = ROOT / "build" / "library" / "installed"
PROGRAMS = {
    "max_pool3d_grad": (ROOT / "examples" / "c" / "max_pool3d_grad.c", "cc", "-std=c99"),
    "max_pool_grad_grad": (ROOT / "examples" / "c" / "max_pool_grad_grad.cpp", "c++", "-std=c++17"),
    "hostile": (ROOT / "tests" / "c" / "hostile.c", "cc", "-std=c99"),
}
WARNINGS = ("-Wall", "-Wextra", "-pedantic", "-Werror")
NAMES = re.findall(r"^PG_EXPORT pg_(\w+)_function pg_\1;", header().read_text(), re.M)
ENTRIES = {"abi": "get_abi"}
RUN = """
import ctypes, sys
from poolgrad._frameworks.build import table
program = ctypes.CDLL(sys.argv[1])
program.poolgrad_connect.argtypes = [ctypes.c_void_p]
assert program.poolgrad_connect(table())
sys.exit(getattr(program, "_Z7programv" if sys.argv[2] == "c++" else "program")())
"""
pytestmark = pytest.mark.skipif(
    not shutil.which("cc") or not shutil.which("c++"), reason="needs a C and a C++ compiler"
)


def compiled(name: str, folder: Path, *options: str) -> Path:
    """Compile a program with warnings as errors; return the path of what was made."""
    source, compiler, standard = PROGRAMS[name]
    made = folder / name
    command = [compiler, standard, *WARNINGS, f"-I{header().parent}", str(source), "-o", str(made), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return made


def on_the_core(name: str, folder: Path) -> str:
    """Run a program inside Python, on the core's table; return what it printed."""
    lines = ['#include "poolgrad.h"', "static const pg_table* core;"]
    lines += ["#ifdef __cplusplus", 'extern "C"', "#endif", "int poolgrad_connect(const void*);"]
    lines += ["int poolgrad_connect(const void* given) {", "  core = (const pg_table*)given;"]
    lines += ["  return pg_table_fits(core);", "}", "int program(void);", "#define main program"]
    lines += [f"#define pg_{each} (core->{ENTRIES.get(each, each)})" for each in NAMES]
    lines += ["#define pg_functions() (core)"]
    (folder / "forward.h").write_text("\n".join(lines) + "\n")
    made = compiled(name, folder, "-shared", "-fPIC", "-include", str(folder / "forward.h"))
    done = subprocess.run([sys.executable, "-c", RUN, made, PROGRAMS[name][1]], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def numbers(line: str) -> np.ndarray:
    return np.array(line.split(), np.float32)


def check(name: str, printed: str) -> None:
    """Compare what a program printed with raw_ops."""
    lines = printed.strip().splitlines()
    if name == "hostile":
        assert re.fullmatch(r"(\d+) checks, 0 failures", lines[-1]), printed
        assert int(lines[-1].split()[0]) > 100
        return
    y, gradient = map(numbers, lines)
    if name == "max_pool3d_grad":
        x = np.arange(1, 33, dtype=np.float32).reshape(2, 2, 2, 2, 2)
        sizes = {"ksize": [1, 4, 3, 2, 1], "strides": [1, 4, 3, 2, 1], "padding": "SAME"}
        out = raw_ops.MaxPool3D(input=x, **sizes)
        g = np.arange(1, 5, dtype=np.float32).reshape(out.shape)
        want = raw_ops.MaxPool3DGrad(orig_input=x, orig_output=out, grad=g, **sizes)
    else:
        x = (np.arange(108) * 37 % 11).astype(np.float32).reshape(1, 6, 6, 3)
        sizes = {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
        out = raw_ops.MaxPool(input=x, **sizes)
        v = np.arange(108, dtype=np.float32).reshape(x.shape)
        want = raw_ops.MaxPoolGradGrad(orig_input=x, orig_output=out, grad=v, **sizes)
    assert y.tolist() == out.ravel().tolist()
    assert gradient.tolist() == want.ravel().tolist()


def test_the_header_declares_every_entry_of_the_table():
    text = header().read_text()
    entries = re.findall(r"^  pg_(\w+)_function\* (\w+);", text, re.M)
    assert [(name, ENTRIES.get(name, name)) for name in NAMES] == entries
    assert table()


def test_the_header_is_c99_and_cpp_without_a_warning(tmp_path):
    for compiler, standard in (("cc", "-std=c99"), ("cc", "-std=c17"), ("c++", "-std=c++11"), ("c++", "-std=c++20")):
        language = "c++" if compiler == "c++" else "c"
        command = [
            compiler,
            standard,
            *WARNINGS,
            "-Wno-unused-function",
            "-fsyntax-only",
            "-x",
            language,
            str(header()),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0 or "#pragma once in main file" in done.stderr, done.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_the_results_of_raw_ops(name, tmp_path):
    check(name, on_the_core(name, tmp_path))


@pytest.mark.skipif(not INSTALLED.exists(), reason="libpoolgrad is not built: make library")
@pytest.mark.parametrize("linked", ["shared", "static"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run_with_the_library(name, linked, tmp_path):
    library = next(INSTALLED.glob("lib*/libpoolgrad.a")).parent
    static = (str(library / "libpoolgrad.a"), "-lstdc++", "-lm", "-lpthread")
    shared = (f"-L{library}", "-lpoolgrad", f"-Wl,-rpath,{library}", "-lpthread")
    made = compiled(name, tmp_path, *(static if linked == "static" else shared))
    done = subprocess.run([made], capture_output=True, text=True, env={**os.environ})
    assert done.returncode == 0, done.stderr
    check(name, done.stdout)
