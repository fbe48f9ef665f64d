"""The built native module: the names that it exports, the libraries that it needs, its size."""

import re
import shutil
import subprocess
import zlib

import pytest
from support import PACKAGE, ROOT

from poolgrad import _core

needs_nm = pytest.mark.skipif(
    shutil.which("nm") is None or not _core.__file__.endswith(".so"), reason="reads an ELF module by nm of the binutils"
)
OBJECTS = sorted(ROOT.glob("build/*/CMakeFiles/pg_*.dir/src/core/verbs/table.cpp.o"))


def output(*words: str) -> list[str]:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()


def symbols(*options: str) -> list[tuple[str, str]]:
    """Return kind and name of the dynamic symbols."""
    rows = [line.split() for line in output("nm", "-D", *options, _core.__file__)]
    return [(row[-2], row[-1]) for row in rows]


WEAK = set("WwVvu")  # inline code and type information, the same in every C++ library


@needs_nm
def test_the_module_shows_its_entry_and_what_threadpoolctl_looks_for():
    assert sorted(name for _, name in symbols("--defined-only")) == ["PyInit__core", "poolgrad_threads"]


RUNTIMES = re.compile(r"@(GLIBC|GLIBCXX|CXXABI|GCC)_")  # the C and C++ libraries and the compiler's own


@needs_nm
def test_the_module_needs_only_python_and_the_runtimes():
    wanted = symbols("--undefined-only")
    assert any(name.startswith("Py") for _, name in wanted)
    strange = [name for kind, name in wanted if kind not in WEAK and not re.match(r"_?Py", name)]
    assert not [name for name in strange if not RUNTIMES.search(name)]


@needs_nm
@pytest.mark.skipif(not OBJECTS, reason="reads the object files of `make install`")
@pytest.mark.parametrize("path", OBJECTS, ids=lambda p: f"{p.parents[5].name}-{p.parents[3].stem}")
def test_a_level_shares_no_code_with_another(path):
    """Weak code exists once in a module: if levels shared some, older processors would meet instructions of newer ones."""
    level = path.parents[3].stem.removeprefix("pg_")[:-1]  # whose last letter is the part
    weak = [row.split()[-1] for row in output("nm", "--defined-only", str(path)) if row.split()[-2] in WEAK]
    own = re.compile(f"NK?8poolgrad{len(level)}{level}")
    common = {"DW.ref.__gxx_personality_v0", "__clang_call_terminate"}  # the compilers': an address, and two calls
    assert weak
    assert not [name for name in weak if not own.search(name) and name not in common]


def test_the_package_takes_less_than_4350_kb_to_download():
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert any(path.name.startswith("_core") for path in files)
    assert sum(len(zlib.compress(path.read_bytes())) for path in files) < 4_350_000


def test_the_installed_package_takes_less_than_13000_kb():
    assert sum(p.stat().st_size for p in PACKAGE.rglob("*") if p.is_file() and p.suffix != ".pyc") < 13_000_000
