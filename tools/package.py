"""Builds the package and checks what was built; `make wheel` and its neighbours call it.

    python tools/package.py wheel          sdist, then a wheel from that sdist, into dist/
    python tools/package.py check-wheel    contents, ABI, hardening; its tests in an empty environment without a compiler
    python tools/package.py check-sdist    builds it without a network, from the requirements that it declares
    python tools/package.py reproducible   builds again in another place and time: the same bytes
    python tools/package.py lock           writes requirements/*.txt anew
    python tools/package.py check-workflows   reads the workflow files as their host would

The Python that runs this is the one that is built for: 3.11 gives a wheel for itself, 3.12 or later one for the stable ABI.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import venv
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
WORK = ROOT / "build" / "package"
REQUIREMENTS = ROOT / "requirements"
BIN = "Scripts" if os.name == "nt" else "bin"


def run(*words: str | Path, cwd: Path = ROOT, **env: str) -> None:
    """Run a command, shown before it runs; end the program if it fails."""
    print("$", *words, flush=True)
    done = subprocess.run([str(word) for word in words], cwd=cwd, env={**os.environ, **env}, check=False)
    if done.returncode:
        raise SystemExit(f"failed with {done.returncode}: {words[0]}")


def environment(folder: Path, *locked: str) -> Path:
    """The Python of a virtual environment with the packages of these lists, and nothing that their hashes do not name."""
    python = folder / BIN / ("python.exe" if os.name == "nt" else "python")
    stamp = folder / "complete"
    wanted = "".join(hashlib.sha256((REQUIREMENTS / name).read_bytes()).hexdigest() for name in locked)
    if stamp.is_file() and stamp.read_text() == wanted:
        return python
    venv.create(folder, clear=True, with_pip=True, symlinks=os.name != "nt")
    for name in locked:
        run(
            python,
            "-m",
            "pip",
            "install",
            "-q",
            "--require-hashes",
            "--only-binary",
            ":all:",
            "-r",
            REQUIREMENTS / name,
        )
    stamp.write_text(wanted)
    return python


def tools() -> Path:
    """The Python that has what building and checking need."""
    return environment(WORK / f"tools-{sysconfig.get_python_version()}", "build.txt", "package.txt")


def sha256(path: Path) -> str:
    """The hash of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def only(pattern: str, folder: Path = DIST) -> Path:
    """The one file that a pattern finds."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise SystemExit(f"{folder}: {len(found)} files are called {pattern}, wanted one; `make wheel` makes it")
    return found[0]


def unpack(sdist: Path, folder: Path) -> Path:
    """The one folder that an sdist consists of."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return only("*/pyproject.toml", folder).parent


def build(source: Path, output: Path, **env: str) -> None:
    """An sdist, and a wheel from that sdist, in an environment that has the packages of the lists and no others."""
    # Not in one that `build` makes: that would take the newest packages, and its pip cannot be told hashes.
    run(tools(), "-m", "build", "--no-isolation", "--outdir", output, source, **env)


def wheel() -> None:
    """Fill dist/ anew."""
    shutil.rmtree(DIST, ignore_errors=True)
    build(ROOT, DIST)
    for path in sorted(DIST.iterdir()):
        print(f"{sha256(path)}  {path.stat().st_size:>9,}  {path.name}")


def check_wheel() -> None:
    """Read the wheel, then use it."""
    found, sdist = only("*.whl"), only("*.tar.gz")
    python = tools()
    run(python, "-m", "twine", "check", "--strict", found, sdist)
    run(python, ROOT / "tools" / "inspect_wheel.py", found)
    if sys.platform == "linux":
        run(python, "-m", "auditwheel", "show", found)
    if "-abi3-" in found.name:
        run(python, "-m", "abi3audit", "--strict", "--summary", found)
    use_wheel(found, sdist)


def use_wheel(found: Path, sdist: Path) -> None:
    """Install a wheel where no compiler can be found and run the tests that came with the sdist."""
    python = environment(WORK / "empty", "test.txt")
    with tempfile.TemporaryDirectory() as folder:
        place = unpack(sdist, Path(folder))
        bare = {"PATH": str(python.parent), "PYTHONPATH": ""}
        compilers = [
            name for name in ("cc", "gcc", "g++", "clang", "cl", "cmake") if shutil.which(name, path=bare["PATH"])
        ]
        if compilers:
            raise SystemExit(f"this environment has {compilers}")
        run(python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--force-reinstall", found, **bare)
        run(python, "-m", "pip", "check", **bare)
        where = (
            "import poolgrad; assert 'site-packages' in poolgrad.__file__, poolgrad.__file__; poolgrad.show_config()"
        )
        run(python, "-c", where, cwd=place, **bare)
        run(python, "-m", "pytest", "-p", "no:cacheprovider", cwd=place, **bare)


def check_sdist() -> None:
    """Build the sdist from declared requirements alone: isolated, then in an environment that has them; never with an index."""
    sdist, store = only("*.tar.gz"), WORK / "store"
    shutil.rmtree(store, ignore_errors=True)
    python = tools()
    run(python, "-m", "pip", "download", "-q", "-d", store, "--require-hashes", "-r", REQUIREMENTS / "build.txt")
    alone = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": "", "PIP_FIND_LINKS": "", "PIP_NO_INDEX": "1"}
    with tempfile.TemporaryDirectory() as folder:
        declared = environment(Path(folder) / "declared", "build.txt")
        offline = Path(folder) / "isolated"
        run(python, "-m", "pip", "wheel", "--no-index", "-f", store, "--no-deps", "-w", offline, sdist, **alone)
        # The same wheel as `make wheel` made: an isolated build sees nothing but what the sdist declares.
        same(only("*.whl"), only("*.whl", offline))
        place = unpack(sdist, Path(folder))
        run(declared, "-m", "pip", "install", "--no-index", "--no-build-isolation", place, **alone)
        run(declared, "-c", "import poolgrad; poolgrad.show_config()", cwd=Path(folder))


def same(one: Path, other: Path) -> None:
    """Show two hashes and fail unless they are equal."""
    print(f"{sha256(one)}  {one}\n{sha256(other)}  {other}", flush=True)
    if one.name != other.name or sha256(one) != sha256(other):
        raise SystemExit(f"not reproducible: {one.name}")


def reproducible() -> None:
    """Build once more, from a copy of the source elsewhere, under other settings, and compare with dist/."""
    first = [only("*.tar.gz"), only("*.whl")]
    with tempfile.TemporaryDirectory(prefix="another place, ") as folder:
        source = Path(folder) / "with a longer name than the first" / "source"
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout.split("\0")  # fmt: skip
        for name in filter(None, listed):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)  # without its times
        old = os.umask(0o077)
        build(source, Path(folder) / "dist", TZ="Asia/Kathmandu", LC_ALL="C", CCACHE_DISABLE="1")
        os.umask(old)
        for path in first:
            same(path, Path(folder) / "dist" / path.name)
    print("reproducible: both builds gave the same bytes")


def lock() -> None:
    """Lock the requirements of pyproject.toml, for every platform and Python at once, with the hashes of all files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    building = [*project["build-system"]["requires"], *project["project"]["dependencies"], "cmake>=3.26", "ninja>=1.11"]
    lists = {
        "build": building,
        "test": [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["test"]],
        "package": project["dependency-groups"]["package"],
    }
    words = [
        "--universal",
        "--python-version=3.11",
        "--generate-hashes",
        "--no-header",
        "--no-annotate",
        "--upgrade",
        "-q",
    ]
    for name, wanted in lists.items():
        path = REQUIREMENTS / f"{name}.txt"
        pins = [f"-c{REQUIREMENTS / 'build.txt'}"] if name != "build" else []
        source = WORK / f"{name}.in"
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text("".join(f"{line}\n" for line in wanted), "utf-8")
        run(tools(), "-m", "uv", "pip", "compile", *words, *pins, "-o", path, source)
        head = f"# For `pip install --require-hashes -r requirements/{name}.txt`. Written by `make lock`.\n"
        path.write_text(head + path.read_text("utf-8"), "utf-8")


def check_workflows() -> None:
    """Schema and security of the files below .github."""
    python = tools()
    flows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    run(python, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", *flows)
    run(python, "-m", "check_jsonschema", "--builtin-schema", "vendor.dependabot", ROOT / ".github" / "dependabot.yml")
    run(python.parent / "zizmor", "--offline", "--persona=pedantic", ROOT / ".github")


COMMANDS: dict[str, Callable[[], None]] = {
    "wheel": wheel,
    "check-wheel": check_wheel,
    "check-sdist": check_sdist,
    "reproducible": reproducible,
    "lock": lock,
    "check-workflows": check_workflows,
}


def main() -> int:
    """Run the commands that were asked for, in that order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="+", choices=COMMANDS)
    for command in parser.parse_args().command:
        COMMANDS[command]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
