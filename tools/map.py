"""Write docs/dev/map.md: one line per module, the first sentence of its docstring or first comment.

python tools/map.py          write
python tools/map.py --check  only compare, and fail if the page is out of date
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "dev" / "map.md"
PARTS = (  # in the order in which a newcomer meets them
    ("src/poolgrad", "The package"),
    ("src/core", "The C++ core"),
    ("benchmarks", "Speed against peers"),
    ("fuzz", "Random calls"),
    ("tools", "Programs for developers"),
    ("tests/helpers", "Modules that tests share"),
)
KINDS = {".py", ".hpp", ".cpp", ".js"}
HEAD = """# Map

One line per module: the first sentence of its docstring or first comment. Made by `make docs`; do not edit.
Read [architecture](architecture.md) first: it says how the folders work together. [Testing](testing.md) lists the tests.
"""


def first_sentence(text: str) -> str:
    """Return the first sentence of a text's first paragraph, without its full stop."""
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    return re.split(r"(?<=[^.])\.(?=\s+[A-Z\"'`]|$)", paragraph, maxsplit=1)[0]


def described(path: Path) -> str:
    """Return the text that describes a module: its docstring, or the comment above everything but `#pragma once`."""
    source = path.read_text("utf-8")
    if path.suffix == ".py":
        return ast.get_docstring(ast.parse(source)) or ""
    found = re.match(r"(?:#pragma once\s+)?((?://.*\n)+)", source)
    return re.sub(r"^// ?", "", found[1], flags=re.MULTILINE) if found else ""


def modules(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the names and the sentence of each module of a folder; a header and its source file are one module."""
    files: dict[str, list[Path]] = {}
    for path in sorted(path for path in folder.iterdir() if path.suffix in KINDS):
        files.setdefault(path.stem if path.suffix in (".hpp", ".cpp") else path.name, []).append(path)
    for name, paths in files.items():
        sentence = first_sentence(
            max(map(described, reversed(paths)), key=bool)
        )  # that of the header, if both have one
        if name == "__init__.py":
            continue
        if not sentence:
            raise SystemExit(f"{paths[0].relative_to(ROOT)}: wanted a docstring or a first comment")
        yield ", ".join(f"`{path.name}`" for path in paths), sentence


def folders(top: Path) -> Iterator[Path]:
    """Yield a folder and those below it that hold modules."""
    for folder in sorted([top, *(path for path in top.rglob("*") if path.is_dir())]):
        if folder.name != "__pycache__" and any(path.suffix in KINDS for path in folder.iterdir()):
            yield folder


def page() -> str:
    """Return the page."""
    parts = [HEAD]
    for name, about in PARTS:
        top = ROOT / name
        for folder in folders(top) if top.is_dir() else ():
            init = folder / "__init__.py"
            told = first_sentence(described(init)) if init.exists() else about if folder == top else ""
            parts.append(f"\n## `{folder.relative_to(ROOT).as_posix()}`\n\n" + (f"{told}.\n\n" if told else ""))
            parts += [f"- {names}: {sentence}\n" for names, sentence in modules(folder)]
    return "".join(parts)


def main() -> int:
    """Write the page, or check it."""
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, "utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text("utf-8") == text:
        print("docs/dev/map.md is up to date")
        return 0
    print("docs/dev/map.md is out of date: run tools/map.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
