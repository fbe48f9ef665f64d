"""The types in the comments of the page's modules, checked by TypeScript."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

COMPILER = Path(sys.prefix) / "node_modules" / "typescript" / "bin" / "tsc"


def test_the_types_of_the_modules_agree():
    node = shutil.which("node")
    if node is None or not COMPILER.is_file():
        pytest.skip("TypeScript is not installed here (`python tools/typescript.py` installs it where npm can)")
    command = [node, str(COMPILER), "-p", str(ROOT / "tests" / "studio" / "tsconfig.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout
