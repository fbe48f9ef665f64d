"""Prints how large the rooms of the project are, against their budgets; fails if one is over.

    python tools/rooms.py

Lines are all lines of a file. A function is as long as its source without decorators and docstring; C++ functions are not
measured, C++ files are. Duplicated are the non-blank lines inside a run of six that occurs more than once in src.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "poolgrad"

CORE = (
    ("windows", "kept"),
    ("rules", "table"),
    ("bind", "attributes"),
    ("arrays", "errors"),
    ("verbs", "reference"),
    ("raw_ops",),
    ("philox",),
    ("problem",),
    ("config", "__init__"),
)
POOLS = ("geometry", "operators", "choice", "taps", "autodiff", "functional", "families", "picture")  # the pythonic API
TRACED = ("traced", "recipes")  # the pools for frameworks, written once
ADAPTERS = ("autograd", "tensorflow")  # and the folders jax, keras: one framework each
TOOLS = ("cli", "demo", "panels", "png", "files")  # what a person at a terminal uses: no part of the core
WHY = ("links", "why", "words", "reasons")  # why a cell has its value: reads what the core did, no part of it
BUILD = ("CMakeLists.txt", "pyproject.toml", "Makefile")
PROGRAMS = ("fuzz", "tools")  # what checks and writes the rest: no budget together, but files and functions have theirs

# More than planned: docs/decisions/0015-lines.md, 0022-taps.md, 0024-jax.md, 0027 to 0029, 0033.
CPP_LINES, PYTHON_LINES, BUILD_LINES = 7300, 2800, 195
POOLS_LINES = 2300
FILE_LINES, FUNCTION_LINES, DUPLICATION = 420, 40, 5.0
RUN = 6


def length(path: Path) -> int:
    """Lines of a file."""
    return len(path.read_text("utf-8").splitlines())


def functions(path: Path) -> Iterator[tuple[int, str]]:
    """Lines and name of every function, without decorators and docstring."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            first = node.body[0]
            if ast.get_docstring(node) is not None:
                lines -= (first.end_lineno or first.lineno) - first.lineno + 1
            yield lines, f"{path.relative_to(ROOT)}: {node.name}"


def duplicated(paths: list[Path]) -> float:
    """Per cent of non-blank lines that are part of a run of six which occurs more than once, in a file or across files."""
    files = [[line.strip() for line in p.read_text("utf-8").splitlines() if line.strip()] for p in paths]
    places: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for f, lines in enumerate(files):
        for i in range(len(lines) - RUN + 1):
            places[tuple(lines[i : i + RUN])].append((f, i))
    again = {(f, i + k) for found in places.values() if len(found) > 1 for f, i in found for k in range(RUN)}
    return 100 * len(again) / max(sum(map(len, files)), 1)


class Report:
    """Lines to print, and which limits are exceeded."""

    def __init__(self) -> None:
        self.over: list[str] = []

    def line(self, what: str, value: float, limit: float | None = None, unit: str = "") -> None:
        """Prints a number, and beside it the limit if it has one."""
        text = f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"
        budget = "" if limit is None else f"  of {limit:,}{unit}" + ("  OVER" if value > limit else "")
        print(f"{what:52}{text + unit:>9}{budget}")
        if limit is not None and value > limit:
            self.over.append(what)


def cpp_room(report: Report) -> list[Path]:
    """The native core, file by file."""
    paths = [*sorted((ROOT / "src" / "core").glob("*.[ch]pp")), PACKAGE / "jax" / "xla.cpp"]
    for path in paths:
        report.line(f"  {path.name}", length(path))
    report.line("C++ core", sum(map(length, paths)), CPP_LINES)
    return paths


def python_rooms(report: Report) -> list[Path]:
    """The rooms of the Python core, then what does not count as core."""
    total = 0
    for room in CORE:
        lines = sum(length(PACKAGE / f"{name}.py") for name in room)
        total += lines
        report.line("  " + ", ".join(room), lines)
    report.line("Python core", total, PYTHON_LINES)
    report.line("Pythonic API: " + ", ".join(POOLS), sum(length(PACKAGE / f"{name}.py") for name in POOLS), POOLS_LINES)
    report.line("  tools room, not core: " + ", ".join(TOOLS), sum(length(PACKAGE / f"{name}.py") for name in TOOLS))
    for what, names in (("traced pools", TRACED), ("adapters", ADAPTERS), ("why room", WHY)):
        report.line(f"  {what}, not core: " + ", ".join(names), sum(length(PACKAGE / f"{name}.py") for name in names))
    known = {name for room in CORE for name in room} | {*TOOLS, *WHY, *POOLS, *TRACED, *ADAPTERS}
    for folder in sorted(p for p in PACKAGE.iterdir() if any(p.rglob("*.py"))):
        report.line(f"  {folder.name}/, not core", sum(map(length, folder.rglob("*.py"))))
    homeless = [p.name for p in PACKAGE.glob("*.py") if p.stem not in known]
    report.line("modules in no room: " + (", ".join(homeless) or "none"), len(homeless), 0)
    return sorted(PACKAGE.rglob("*.py"))


def programs(report: Report) -> list[Path]:
    """What is not installed: fuzzers and tools."""
    found = []
    for name in PROGRAMS:
        paths = sorted(
            p for p in (ROOT / name).iterdir() if p.suffix in (".py", ".cpp", ".hpp") or p.name == "CMakeLists.txt"
        )
        report.line(f"{name}/, not installed", sum(map(length, paths)))
        found += paths
    return found


def main() -> int:
    """Prints the report; 1 if something is over its budget."""
    report = Report()
    cpp, python, tools = cpp_room(report), python_rooms(report), programs(report)
    report.line("build files: " + ", ".join(BUILD), sum(length(ROOT / name) for name in BUILD), BUILD_LINES)
    report.line("duplicated lines of C++ and Python", round(duplicated(cpp + python), 2), DUPLICATION, " %")
    longest, name = max((length(path), str(path.relative_to(ROOT))) for path in cpp + python + tools)
    report.line(f"longest file: {name}", longest, FILE_LINES)
    python += [path for path in tools if path.suffix == ".py"]
    longest, name = max(found for path in python for found in functions(path))
    report.line(f"longest function: {name}", longest, FUNCTION_LINES)
    if report.over:
        print("over budget: " + "; ".join(report.over), file=sys.stderr)
    return 1 if report.over else 0


if __name__ == "__main__":
    sys.exit(main())
