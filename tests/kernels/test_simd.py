"""The vector functions of the core, lane by lane, on every instruction set that this machine runs."""

import shutil
import subprocess

import pytest
from support import ROOT

from poolgrad import _core

FLAGS = ["-std=c++20", "-O1", "-ffp-contract=off", "-fwrapv", "-fno-math-errno", "-Wno-psabi", "-DPG_ISA=tested"]


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("level", _core.isa_levels())
def test_vector_functions_equal_plain_code(level, tmp_path):
    machine = [f"-march={level}"] if level.startswith("x86") else []
    words = ["c++", *FLAGS, *machine, "-I", ROOT / "src" / "core", ROOT / "fuzz" / "simd.cpp", "-o", tmp_path / "simd"]
    built = subprocess.run(words, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-3000:]
    done = subprocess.run([tmp_path / "simd"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "lanes right" in done.stderr
