"""List the contents of a wheel; fail if something is missing, unexpected or unsafe.

    python tools/inspect_wheel.py dist/poolgrad-*.whl

Reads the archive only and installs nothing. Checks of the native module need pyelftools and an ELF module.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 4_350_000
# The header of the extensions, whose sources users may compile, and XLA's library where jaxlib was there to build it.
EXTENSIONS = {"poolgrad/include/poolgrad.h", "poolgrad/jax/_xla.so"}
NATIVE = re.compile(r"poolgrad/_core\.(abi3|cpython-\w+|cp\w+-\w+|cpython-[\w-]+)?\.?(so|pyd)")
SUFFIX = r"(pyi?|[ch]pp|js|css|html|svg|json)"
PLAIN = re.compile(rf"poolgrad/([a-z_]+/)*([\w.-]+\.{SUFFIX}|py\.typed|README\.md|picture\.png)")
RUNTIMES = re.compile(r"lib(stdc\+\+|gcc_s|c|m|dl|pthread)\.so\.\d+|ld-linux-[\w-]+\.so\.\d+")


class Findings:
    """The findings: prints each, records the bad ones."""

    def __init__(self) -> None:
        self.wrong: list[str] = []

    def say(self, what: str, value: object, good: bool) -> None:
        """Print a fact; record it if it is bad."""
        print(f"{what:22}{value}{'' if good else '   WRONG'}")
        if not good:
            self.wrong.append(what)


def contents(wheel: zipfile.ZipFile, findings: Findings) -> None:
    """Check that the wheel holds every file of the package and no other, and that RECORD agrees."""
    names = [name for name in wheel.namelist() if not name.endswith("/")]
    info = f"{Path(wheel.filename or '').name.split('-')[0]}-{version()}.dist-info/"
    own = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "sboms/poolgrad.cdx.json"}
    own |= {f"licenses/{name}" for name in ("LICENSE", "licenses/nanobind.txt", "licenses/robin-map.txt")}
    described = {name.removeprefix(info) for name in names if name.startswith(info)}
    findings.say("metadata", f"{len(described)} files", described == own)
    package = [name for name in names if not name.startswith(info)]
    source = ROOT / "src" / "poolgrad"
    wanted = {f"poolgrad/{p.relative_to(source).as_posix()}" for p in source.rglob("*") if p.is_file()}
    wanted = {name for name in wanted if PLAIN.fullmatch(name)}
    native = [name for name in package if NATIVE.fullmatch(name)]
    strange = sorted(set(package) - wanted - set(native) - EXTENSIONS)
    missing = sorted(wanted - set(package))
    findings.say("native modules", ", ".join(native), len(native) == 1)
    findings.say("package", f"{len(package)} files; strange {strange}, missing {missing}", not strange and not missing)
    rows = {row[0]: row[1] for row in csv.reader(io.StringIO(wheel.read(f"{info}RECORD").decode())) if row}
    false = [name for name in names if not name.endswith("/RECORD") and rows.get(name) != recorded(wheel.read(name))]
    findings.say("RECORD", f"{len(rows)} hashes, {len(false)} false", not false and set(rows) == set(names))


def version() -> str:
    """Return the version of the source beside this tool."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def recorded(data: bytes) -> str:
    """Return a hash in RECORD's notation."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def bill(wheel: zipfile.ZipFile, findings: Findings) -> None:
    """Check the bill of materials against METADATA and the source."""
    path = next(name for name in wheel.namelist() if name.endswith("/sboms/poolgrad.cdx.json"))
    said = json.loads(wheel.read(path))
    metadata = wheel.read(path.replace("sboms/poolgrad.cdx.json", "METADATA")).decode()
    needs = [line.split(": ", 1)[1] for line in metadata.splitlines() if line.startswith("Requires-Dist:")]
    needs = [need for need in needs if "extra ==" not in need]
    names = [f"{c['name']} {c.get('version', '')}".strip() for c in said["components"]]
    both = {c["name"] for c in said["components"]} == {"nanobind", "robin-map"} | {
        re.split(r"[<>=]", n)[0] for n in needs
    }
    findings.say("bill of materials", ", ".join(names), both and said["metadata"]["component"]["version"] == version())
    made = {p["name"]: p["value"] for p in said["metadata"]["component"]["properties"]}
    findings.say("compiler", made["poolgrad:compiler"], True)


def native(data: bytes, findings: Findings) -> None:
    """Check the native module's exports, dependencies and hardening."""
    from elftools.elf.dynamic import DynamicSection
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(io.BytesIO(data))
    dynamic = next(s for s in elf.iter_sections() if isinstance(s, DynamicSection))
    tags = [(tag.entry.d_tag, tag) for tag in dynamic.iter_tags()]
    symbols = [s for s in elf.get_section_by_name(".dynsym").iter_symbols() if s.name]
    shown = [s.name for s in symbols if s.entry.st_shndx != "SHN_UNDEF" and not s.name.startswith("GLIBC")]
    asked = {s.name for s in symbols if s.entry.st_shndx == "SHN_UNDEF"}
    findings.say("exported symbols", shown, sorted(shown) == ["PyInit__core", "poolgrad_threads"])
    libraries = [tag.needed for name, tag in tags if name == "DT_NEEDED"]
    findings.say("libraries", ", ".join(libraries), all(RUNTIMES.fullmatch(name) for name in libraries))
    flags = {name: tag.entry.d_val for name, tag in tags}
    now = "DT_BIND_NOW" in flags or flags.get("DT_FLAGS", 0) & 8 or flags.get("DT_FLAGS_1", 0) & 1
    segments = {s.header.p_type: s.header.p_flags for s in elf.iter_segments()}
    findings.say("full RELRO", bool(now) and "PT_GNU_RELRO" in segments, bool(now) and "PT_GNU_RELRO" in segments)
    findings.say("stack not executable", not segments["PT_GNU_STACK"] & 1, not segments["PT_GNU_STACK"] & 1)
    odd = sorted(set(flags) & {"DT_TEXTREL", "DT_RPATH", "DT_RUNPATH"})
    findings.say("no search paths", odd or True, not odd)
    findings.say("stack protector", "__stack_chk_fail" in asked, "__stack_chk_fail" in asked)
    fortified = sorted(name for name in asked if re.fullmatch(r"__\w+_chk", name))
    findings.say("fortified calls", ", ".join(fortified), bool(fortified))
    checked = any("glibcxx_assert_fail" in name for name in asked) or b"__n < this->size()" in data
    findings.say("checked containers", checked, checked)
    paths = re.findall(rb"/(?:tmp|home|root|build|project)/[\w./-]+", data)
    findings.say("no build directories", paths[:3] or True, not paths)


def main() -> int:
    """Print the findings of each named wheel; return 1 if one is bad."""
    findings = Findings()
    for name in sys.argv[1:]:
        size = Path(name).stat().st_size
        print(Path(name).name)
        findings.say("bytes", f"{size:,} of {MOST_BYTES:,}", size < MOST_BYTES)
        with zipfile.ZipFile(name) as wheel:
            findings.say("damaged", wheel.testzip() or "nothing", wheel.testzip() is None)
            contents(wheel, findings)
            bill(wheel, findings)
            module = next(n for n in wheel.namelist() if NATIVE.fullmatch(n))
            if wheel.read(module)[:4] == b"\x7fELF":
                native(wheel.read(module), findings)
    if findings.wrong:
        print("wrong: " + ", ".join(findings.wrong), file=sys.stderr)
    return 1 if findings.wrong or len(sys.argv) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
