"""The core compiles with Clang, too, without warnings: Clang refuses some C++ that GCC takes."""

import shutil
import subprocess
import sysconfig
from pathlib import Path

import nanobind
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "src" / "core"
CLANG = shutil.which("clang++")
FLAGS = ["-std=gnu++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wconversion", "-Wno-psabi", "-Werror", f"-I{CORE}"]
LEVEL = ["-march=x86-64-v4", "-DPG_ISA=v4", "-DPG_OTHER="]
BORDER = [
    f"-isystem{path}" for path in (nanobind.include_dir(), np.get_include(), sysconfig.get_paths()["include"])
]  # libraries, whose warnings are their own
FILES = {
    "verbs/table.cpp": LEVEL,
    "verbs/cells.cpp": LEVEL,
    "api/foreign.cpp": ["-DPG_X86"],
    "api/module.cpp": ["-DPG_X86", '-DPG_VERSION="0"', *BORDER],
    "plan/owned_plan.cpp": [],
    "runtime/memory.cpp": [],
    "runtime/system.cpp": [],
    "runtime/threads.cpp": [],
}


def test_every_source_of_the_core_is_here():
    assert {str(file.relative_to(CORE)) for file in CORE.rglob("*.cpp")} == set(FILES)


@pytest.mark.skipif(CLANG is None, reason="clang++ is not installed")
@pytest.mark.skipif(sysconfig.get_platform() != "linux-x86_64", reason="compiles for x86-64 on Linux")
@pytest.mark.parametrize("file", FILES)
def test_clang_takes_the_core(file):
    assert CLANG is not None
    done = subprocess.run([CLANG, *FLAGS, *FILES[file], CORE / file], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
