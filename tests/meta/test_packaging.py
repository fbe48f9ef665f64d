"""The shipped files: locked requirements, bill of materials, licences, workflows, and the tool that reads a wheel."""

import base64
import hashlib
import importlib.metadata
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from support import PACKAGE, ROOT, python

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
FRAMEWORKS = ROOT / "requirements" / "frameworks.txt"  # by version alone: it says why
LOCKED = sorted(set((ROOT / "requirements").glob("*.txt")) - {FRAMEWORKS})
FLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain(requirement: str) -> str:
    """Return the name in a requirement, as an index spells it."""
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


# ---- locked requirements


@pytest.mark.parametrize("path", LOCKED, ids=lambda p: p.stem)
def test_every_locked_package_has_one_version_and_hashes_and_no_address(path):
    text = path.read_text("utf-8")
    assert "//" not in text, "an address of an index"
    entries = re.sub(r"^#.*\n", "", text).replace("\\\n", " ").strip().splitlines()
    assert entries
    for entry in entries:
        assert re.match(r"[a-z0-9.-]+==[\w.+-]+ ( ?; .*? )?  *--hash=sha256:[0-9a-f]{64}", entry), entry[:80]


def test_frameworks_have_one_version_each_and_leave_numpy_alone():
    entries = [line for line in FRAMEWORKS.read_text("utf-8").splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9_.-]+==[\w.+-]+", entry) for entry in entries)
    tools = (ROOT / "requirements" / "test.txt").read_text("utf-8")
    for name in ("numpy", "ml-dtypes"):
        (here,) = [entry.split("==")[1] for entry in entries if plain(entry) == name]
        assert f"\n{name}=={here} " in f"\n{tools}"


def test_the_locks_cover_what_the_project_asks_for():
    names = {p.stem: {plain(line) for line in p.read_text("utf-8").splitlines() if "==" in line} for p in LOCKED}
    assert set(names) == {"build", "package", "test"}
    depends = {plain(r) for r in PROJECT["project"]["dependencies"]}
    assert depends | {plain(r) for r in PROJECT["build-system"]["requires"]} <= names["build"]
    assert depends | {plain(r) for r in PROJECT["project"]["optional-dependencies"]["test"]} <= names["test"]
    assert {plain(r) for r in PROJECT["dependency-groups"]["package"]} <= names["package"]


# ---- bill of materials and licences


def nanobind_of_this_python() -> importlib.metadata.Distribution:
    try:
        return importlib.metadata.distribution("nanobind")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("nanobind, which is needed for building only, is not installed here")


def test_the_bill_of_materials_has_the_versions_of_the_files_it_was_made_from():
    found = nanobind_of_this_python()
    folder = Path(str(found.locate_file("nanobind")))
    said = tool("sbom").bill(folder, "a compiler")
    parts = {c["name"]: c for c in said["components"]}
    assert set(parts) == {"nanobind", "robin-map"} | {
        re.split("[<>=]", r)[0] for r in PROJECT["project"]["dependencies"]
    }
    assert parts["nanobind"]["version"] == found.version
    assert said["metadata"]["component"]["version"] == PROJECT["project"]["version"]
    assert said == tool("sbom").bill(folder, "a compiler"), "the same inputs give the same bill"
    refs = {c["bom-ref"] for c in said["components"]}
    assert {ref for row in said["dependencies"] for ref in row["dependsOn"]} == refs


def test_the_installed_package_carries_the_bill_of_the_source_beside_the_tests():
    try:
        files = importlib.metadata.distribution("poolgrad").files or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("poolgrad is imported from a folder here, not installed")
    bills = [f for f in files if f.parent.name == "sboms"]
    assert [f.name for f in bills] == ["poolgrad.cdx.json"]
    said = json.loads(Path(str(bills[0].locate())).read_text("utf-8"))
    facts = {p["name"]: p["value"] for p in said["metadata"]["component"]["properties"]}
    assert facts["poolgrad:sources-sha256"] == tool("sbom").digest(ROOT / "src" / "core"), "built from other sources"


def test_the_bill_notices_a_changed_source(tmp_path):
    (tmp_path / "a.cpp").write_text("int a;\n")
    digest = tool("sbom").digest
    before = digest(tmp_path)
    (tmp_path / "a.cpp").write_text("int b;\n")
    assert digest(tmp_path) != before


def words(text: str) -> list[str]:
    return re.sub(r"[*/\s]+", " ", text).split()


def test_the_licences_of_compiled_code_are_the_ones_it_came_with():
    found = nanobind_of_this_python()
    own = [f for f in found.files or [] if f.name == "LICENSE"]
    assert words((ROOT / "licenses" / "nanobind.txt").read_text("utf-8")) == words(
        Path(str(own[0].locate())).read_text("utf-8")
    )
    header = Path(str(found.locate_file("nanobind/ext/robin_map/include/tsl/robin_map.h"))).read_text("utf-8")
    assert words((ROOT / "licenses" / "robin-map.txt").read_text("utf-8")) == words(header.partition("*/")[0])


# ---- workflows


@pytest.mark.parametrize("path", FLOWS, ids=lambda p: p.stem)
def test_workflows_pin_actions_by_commit_and_ask_for_little(path):
    text = path.read_text("utf-8")
    uses = re.findall(r"uses: (.*)", text)
    assert uses
    assert not [u for u in uses if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", u)]
    assert re.search(r"^permissions: \{\}$", text, re.MULTILINE)
    jobs = len(re.findall(r"^    runs-on:", text, re.MULTILINE))
    assert jobs == text.count("timeout-minutes:") == len(re.findall(r"^    permissions:", text, re.MULTILINE))
    assert len(re.findall(r"actions/checkout@", text)) == text.count("persist-credentials: false")
    assert set(re.findall(r": (write\b.*)", text)) <= {
        "write # for trusted publishing, which also signs the attestations of PEP 740"
    }


# ---- the reader of wheels


def made_wheel(path: Path, *, leave: str = "", stray: str = "", false: str = "") -> Path:
    """Return a right wheel (its native module a stand-in), or one that lacks a file, has a stray one or a false hash."""
    info = f"poolgrad-{PROJECT['project']['version']}.dist-info"
    bill = {
        "components": [{"name": n} for n in ("nanobind", "robin-map", "numpy", "ml_dtypes")],
        "metadata": {"component": {}},
    }
    bill["metadata"]["component"] = {
        "version": PROJECT["project"]["version"],
        "properties": [{"name": "poolgrad:compiler", "value": "none"}],
    }
    files = {
        f"poolgrad/{p.relative_to(ROOT / 'src/poolgrad').as_posix()}": p for p in (ROOT / "src/poolgrad").rglob("*")
    }
    content = {
        name: p.read_bytes()
        for name, p in files.items()
        if p.is_file()
        and p.suffix
        in {".py", ".pyi", ".json", ".js", ".css", ".html", ".svg", ".png", ".typed", ".cpp", ".hpp", ".md"}
    }
    content |= {"poolgrad/_core.abi3.so": b"code", f"{info}/sboms/poolgrad.cdx.json": json.dumps(bill).encode()}
    content |= {f"{info}/{name}": b"" for name in ("WHEEL", "entry_points.txt", "licenses/LICENSE")}
    content |= {f"{info}/licenses/licenses/{name}.txt": b"" for name in ("nanobind", "robin-map")}
    content[f"{info}/METADATA"] = b"Requires-Dist: numpy>=1.25\nRequires-Dist: ml_dtypes>=0.4\n"
    content = {name: data for name, data in content.items() if not leave or not name.endswith(leave)}
    if stray:
        content[stray] = b""
    rows = []
    for name, data in content.items():
        code = (
            base64.urlsafe_b64encode(hashlib.sha256(data if name != false else b"other").digest()).rstrip(b"=").decode()
        )
        rows.append(f"{name},sha256={code},{len(data)}\n")
    content[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    with zipfile.ZipFile(path, "w") as wheel:
        for name, data in content.items():
            wheel.writestr(name, data)
    return path


FAULTS = [
    ({}, ""),
    ({"leave": "licenses/robin-map.txt"}, "metadata"),
    ({"leave": "windows.py"}, "package"),
    ({"leave": "torch/few.hpp"}, "package"),
    ({"stray": "poolgrad/notes.txt"}, "package"),
    ({"stray": "tests/test_something.py"}, "package"),
    ({"stray": "poolgrad/_core.cpython-311-x86_64-linux-gnu.so"}, "native modules"),
    ({"false": "poolgrad/_kernels/native.py"}, "RECORD"),
]


@pytest.mark.parametrize(("fault", "said"), FAULTS, ids=lambda v: str(v))
def test_the_reader_of_wheels_names_what_is_wrong(fault, said, tmp_path):
    path = made_wheel(tmp_path / f"poolgrad-{PROJECT['project']['version']}-cp312-abi3-any.whl", **fault)
    done = python(str(ROOT / "tools" / "inspect_wheel.py"), str(path))
    assert done.returncode == bool(said), done.stdout + done.stderr
    assert said in done.stderr


def test_files_that_differ_are_not_called_reproducible(tmp_path):
    package = tool("package")
    for name, text in (("one", "a"), ("two", "b"), ("three", "a")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.whl").write_text(text)
    package.same(tmp_path / "one" / "x.whl", tmp_path / "three" / "x.whl")
    with pytest.raises(SystemExit, match="not reproducible"):
        package.same(tmp_path / "one" / "x.whl", tmp_path / "two" / "x.whl")


@pytest.mark.skipif(
    shutil.which("cmake") is None or sys.platform != "linux", reason="needs cmake and a compiler that is not MSVC"
)
def test_msvc_is_refused_with_the_way_out(tmp_path):
    words = ["cmake", "-S", str(ROOT), "-B", str(tmp_path), "-DMSVC=ON"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "does not compile with MSVC" in done.stderr, done.stdout + done.stderr
    assert "CXX=clang++" in done.stderr


def test_one_module_is_installed_for_one_python():
    assert len([p for p in PACKAGE.iterdir() if p.suffix in {".so", ".pyd"}]) == 1
