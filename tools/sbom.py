"""Writes the bill of materials of a build (CycloneDX 1.6, JSON): what is compiled in, what is needed at run time, what built it.

    python tools/sbom.py NANOBIND_DIRECTORY OUTPUT COMPILER

CMake calls it with what it found, so that versions come from the files that are compiled and not from a list. The result has no
time and no random number: the same inputs give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

Component = dict[str, Any]


def version_in(header: Path, prefix: str) -> str:
    """The version that a header defines as three macros: MAJOR, MINOR and PATCH."""
    text = header.read_text("utf-8")
    parts = [re.search(rf"#\s*define\s+{prefix}_VERSION_{part}\s+(\d+)", text) for part in ("MAJOR", "MINOR", "PATCH")]
    if None in parts:
        raise SystemExit(f"{header}: defines no {prefix}_VERSION_MAJOR, _MINOR and _PATCH")
    return ".".join(part[1] for part in parts if part)


def digest(folder: Path) -> str:
    """SHA-256 of all C++ files below a folder, with their relative names, in order of these."""
    total = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.suffix in {".h", ".hpp", ".cpp"}):
        total.update(
            f"{path.relative_to(folder).as_posix()}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode()
        )
    return total.hexdigest()


def compiled_in(name: str, version: str, licence: str, purl: str, folder: Path) -> Component:
    """A library whose source becomes part of the native module."""
    return {
        "type": "library",
        "bom-ref": name,
        "name": name,
        "version": version,
        "scope": "required",
        "licenses": [{"license": {"id": licence}}],
        "purl": purl,
        "properties": [
            {"name": "poolgrad:how", "value": "compiled in"},
            {"name": "poolgrad:sources-sha256", "value": digest(folder)},
        ],
    }


LICENCES = {"numpy": "BSD-3-Clause", "ml_dtypes": "Apache-2.0"}


def needed(requirement: str) -> Component:
    """A package that is installed beside this one. Its version is for the installer to choose, so none is named."""
    name = re.split(r"[^A-Za-z0-9_.-]", requirement, maxsplit=1)[0]
    return {
        "type": "library",
        "bom-ref": name,
        "name": name,
        "scope": "required",
        "licenses": [{"license": {"id": LICENCES[name]}}],
        "purl": f"pkg:pypi/{name.lower().replace('_', '-')}",
        "properties": [
            {"name": "poolgrad:how", "value": "installed beside"},
            {"name": "poolgrad:requirement", "value": requirement},
        ],
    }


def bill(nanobind: Path, compiler: str) -> dict[str, Any]:
    """The whole document."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    robin = nanobind / "ext" / "robin_map"
    version = version_in(nanobind / "include" / "nanobind" / "nanobind.h", "NB")
    robin_version = version_in(robin / "include" / "tsl" / "robin_growth_policy.h", "TSL_RH")
    components = [
        compiled_in("nanobind", version, "BSD-3-Clause", f"pkg:pypi/nanobind@{version}", nanobind),
        compiled_in("robin-map", robin_version, "MIT", f"pkg:github/Tessil/robin-map@v{robin_version}", robin),
        *map(needed, project["dependencies"]),
    ]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": "poolgrad",
                "name": project["name"],
                "version": project["version"],
                "description": project["description"],
                "licenses": [{"expression": project["license"]}],
                "purl": f"pkg:pypi/{project['name']}@{project['version']}",
                "properties": [
                    {"name": "poolgrad:compiler", "value": compiler},
                    {"name": "poolgrad:sources-sha256", "value": digest(ROOT / "src" / "core")},
                ],
            },
        },
        "components": components,
        "dependencies": [
            {"ref": "poolgrad", "dependsOn": [c["bom-ref"] for c in components if c["bom-ref"] != "robin-map"]},
            {"ref": "nanobind", "dependsOn": ["robin-map"]},
        ],
    }


def main() -> int:
    """Write the file that the command line names."""
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    nanobind, output, compiler = sys.argv[1:]
    Path(output).write_text(json.dumps(bill(Path(nanobind), compiler), indent=1) + "\n", "utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
