"""The native module as it was built: what it shows, what it needs, how much room it takes."""

import re
import shutil
import subprocess
import zlib

import pytest
from support import PACKAGE

import poolgrad
from poolgrad import _core

needs_nm = pytest.mark.skipif(
    shutil.which("nm") is None or not _core.__file__.endswith(".so"), reason="reads an ELF module by nm of the binutils"
)
needs_objdump = pytest.mark.skipif(
    shutil.which("objdump") is None or "x86-64-v3" not in str(poolgrad.config()["isa levels"]),
    reason="reads x86 code by objdump of the binutils",
)


def output(*words: str) -> list[str]:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()


def symbols(*options: str) -> list[tuple[str, str]]:
    """Kind and name of the dynamic symbols."""
    rows = [line.split() for line in output("nm", "-D", *options, _core.__file__)]
    return [(row[-2], row[-1]) for row in rows]


WEAK = set("WwVvu")  # inline code and type information, the same in every C++ library


@needs_nm
def test_the_module_shows_nothing_but_its_entry():
    shown = symbols("--defined-only")
    assert [name for kind, name in shown if kind not in WEAK] == ["PyInit__core"]
    assert not [name for _, name in shown if "poolgrad" in name], "kernels are hidden"


RUNTIMES = re.compile(r"@(GLIBC|GLIBCXX|CXXABI|GCC)_")  # the C and C++ libraries and the compiler's own


@needs_nm
def test_the_module_needs_only_python_and_the_runtimes():
    wanted = symbols("--undefined-only")
    assert any(name.startswith("Py") for _, name in wanted)
    strange = [name for kind, name in wanted if kind not in WEAK and not re.match(r"_?Py", name)]
    assert not [name for name in strange if not RUNTIMES.search(name)]


@needs_nm
@needs_objdump
def test_code_that_all_levels_share_is_for_the_lowest_level():
    """Weak code exists once for the whole module: had it come from a higher level, older processors would stop at it."""
    rows = [line.split() for line in output("nm", "-DS", "--defined-only", _core.__file__)]
    weak = [(int(row[0], 16), int(row[1], 16), row[3]) for row in rows if len(row) == 4 and row[2] == "W"]
    for start, size, name in weak:
        ends = (f"--start-address={start}", f"--stop-address={start + size}")
        code = [line for line in output("objdump", "-d", *ends, _core.__file__) if re.match(r"\s+[0-9a-f]+:\t", line)]
        assert code, name
        assert not [line for line in code if re.search(r"%[yz]mm|\tv[a-z0-9]+ ", line)], name


def test_the_package_takes_less_than_3_mb_to_download():
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert any(path.name.startswith("_core") for path in files)
    assert sum(len(zlib.compress(path.read_bytes())) for path in files) < 3_000_000


def test_the_installed_package_takes_less_than_8_mb():
    assert sum(p.stat().st_size for p in PACKAGE.rglob("*") if p.is_file() and p.suffix != ".pyc") < 8_000_000
