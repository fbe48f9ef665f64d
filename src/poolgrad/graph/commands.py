"""Run the commands for pages: check, run, explain, export. They offer the studio without a browser."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from .._common.errors import short_repr
from .._ops.files import describe, load, store
from . import edits, enuspace, export, service
from .embedded_files import Sources, embed
from .executor import Run, execute
from .model import Graph, GraphError, Page
from .repair import repaired
from .scope import Scope
from .text import TextError, ints

Options = argparse.Namespace
SUFFIXES = (".json", ".svg")
EXAMPLE = "example:"  # prefix of the name of an example page in the package
_MOST_REPAIRS = 50

EXAMPLES = {
    "check": """
poolgrad check page.json
poolgrad check example:seed-003-as-pictured
poolgrad check page.json --repair mended.json""",
    "explain": """
poolgrad explain example:seed-003-repaired dx 0,1,1,1,0
poolgrad explain page.json dx 0,1,1,1,0
poolgrad explain page.json dx 0,0,0,0,0 --pin grad""",
    "export": """
poolgrad export example:seed-004-repaired -o page.json
poolgrad export page.json -o page.py
poolgrad export page.json -o page.html
poolgrad export flow.svg --to json""",
}


def is_page(word: str) -> bool:
    """Return True if a word names a page, not an op."""
    return word.lower().endswith(SUFFIXES) or word.startswith(EXAMPLE)


# ---- reading


def opened(options: Options) -> tuple[Graph, Page, Path]:
    """Return the graph of a file, the chosen page, and the folder that its relative paths start from."""
    if options.file.startswith(EXAMPLE):
        graph = _example(options.file.removeprefix(EXAMPLE))
        return graph, graph.page(options.page), Path()
    path = Path(options.file)
    try:
        given = {path.name: path.read_bytes()}
        beside = path.with_suffix(".dat")
        if path.suffix.lower() == ".svg" and beside.exists():
            given[beside.name] = beside.read_bytes()
    except OSError as error:
        why = (error.strerror or type(error).__name__).lower()
        raise ValueError(f"file: got {short_repr(str(path))}, wanted a page that can be read ({why})") from None
    try:
        graph, notes = enuspace.load(given)
    except GraphError as error:
        raise GraphError(f"file: {short_repr(str(path))}: {error}", error.problems) from None
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    return graph, graph.page(options.page), path.parent


def _example(name: str) -> Graph:
    found = {entry["key"]: entry["graph"] for entry in service.examples()}
    name = {"a-picture-and-back": "picture"}.get(name.replace(" ", "-"), name)  # an older name of it
    if name.replace(" ", "-") not in found:
        raise ValueError(f"{EXAMPLE} got {short_repr(name)}, wanted one of {', '.join(found)}")
    return Graph.from_json(found[name.replace(" ", "-")])


def _file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a page: .json, .svg of enuSpace, or example:NAME")
    parser.add_argument("--page", metavar="NAME", help="which page of the file (default: the first)")


# ---- check


def check_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `poolgrad check`."""
    _file(parser)
    parser.add_argument("--repair", metavar="FILE", help="make every repair that is offered, and write the page there")


def check(options: Options) -> int:
    """Print shapes, problems and warnings; return 1 if there is a problem."""
    graph, page, folder = opened(options)
    sources = Sources(graph.data, True, folder)
    if options.repair:
        for label in mend(page, sources):
            print(f"repaired: {label}")
        store("--repair", {Path(options.repair): graph.to_json().encode()})
    run = execute(page, sources)
    print("\n".join(_table(page, run)))
    return _said(page, run)


def mend(page: Page, sources: Sources) -> list[str]:
    """Apply repairs until none is left, at most _MOST_REPAIRS; return a line for each."""
    done: list[str] = []
    while len(done) < _MOST_REPAIRS:
        found = repaired(page, execute(page, sources).checked)
        fix = next((p for p in found if p.repair is not None), None)
        if fix is None or fix.repair is None:
            break
        edits.apply(page, fix.repair.edits)
        done.append(f"{fix.node}: {fix.repair.label}")
    return done


def _table(page: Page, run: Run) -> list[str]:
    rows = []
    for name, node in page.nodes.items():
        seen = run.checked.seen[name]
        result = run.blocks[name].result
        outs = {pin: describe(array) for pin, array in result.outputs.items()} if result else {}
        shown = ", ".join(f"{pin} {outs.get(pin, '?')}" for pin in seen.outputs)
        rows.append((run.blocks[name].status, name, node.op, shown))
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(3)]
    return [
        "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[3]]).rstrip() for row in rows
    ]


def _said(page: Page, run: Run) -> int:
    """Print problems and warnings."""
    found = repaired(page, run.checked)
    warnings = repaired(page, run.checked, run.warnings)
    for kind, problem in [*(("problem", p) for p in found), *(("warning", w) for w in warnings)]:
        print(f"{kind}: {problem}" + (f"\n  repair: {problem.repair.label}" if problem.repair else ""))
    return 1 if found else 0


# ---- run


def run_page(options: Options) -> int:
    """Run a page: print the fetched arrays, or save every array. Return 1 if there is a problem."""
    options.file, options.page = options.op, getattr(options, "page", None)
    graph, page, folder = opened(options)
    sources = Sources(graph.data, True, folder, _feeds(page, options.words))
    run = execute(page, sources, progress=_progress if sys.stderr.isatty() else None)
    if options.output:
        return _save(run, options.output) or _said(page, run)
    for end in export.fetched(page):
        array = run.array(end)
        if array is not None:
            wide = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
            print(f"{end}: {describe(array)}\n{np.array2string(wide, threshold=200, edgeitems=3, precision=6)}")
    return _said(page, run)


def _feeds(page: Page, words: list[str]) -> dict[str, Any]:
    feeds = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in page.nodes or page.nodes[name].op != "Placeholder":
            names = [n for n, node in page.nodes.items() if node.op == "Placeholder"]
            raise ValueError(
                f"{short_repr(name)}: got {short_repr(word)}, wanted placeholder=file.npy; placeholders: {', '.join(names) or 'none'}"
            )
        feeds[name] = load(name, value)
    return feeds


def _progress(done: int, total: int, name: str) -> None:
    end = "\n" if done + 1 == total else ""
    print(f"\r{done + 1}/{total} {name:<40}", end=end, file=sys.stderr, flush=True)


def _save(run: Run, target: str) -> int:
    if not target.endswith(".npz"):
        raise ValueError(f"-o: got {short_repr(target)}, wanted a name that ends in .npz")
    arrays: dict[str, Any] = {f"{name}.{pin}": array for name, ran in run.blocks.items() if ran.result is not None
                              for pin, array in ran.result.outputs.items()}  # fmt: skip
    store("-o", {Path(target): lambda file: np.savez(file, allow_pickle=False, **arrays)})
    for name, array in arrays.items():
        print(f"{target}[{name}]: {describe(array)}")
    return 0


# ---- explain


def explain_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `poolgrad explain`."""
    _file(parser)
    parser.add_argument("block", help="a block of the page, or one of its outputs: dx, y.argmax")
    parser.add_argument("cell", help="a cell of its result, like 0,1,1,1,0")
    parser.add_argument("--pin", help="a cell of this pin instead: grad, orig_input")


def explain(options: Options) -> int:
    """Explain why a cell has its value."""
    graph, page, folder = opened(options)
    scope = Scope.of(graph, page.name, True, folder)
    try:
        cell = ints(options.cell)
    except TextError as error:
        raise ValueError(f"cell: {error}") from None
    try:
        output = scope.output(options.block)
    except GraphError as error:
        raise GraphError(f"block: {error}") from None
    print(scope.explain(output, cell, options.pin))
    return 0


# ---- export


def export_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `poolgrad export`."""
    _file(parser)
    parser.add_argument("--to", choices=("json", "python", "html", "npz"), help="what it becomes (default: by -o)")
    parser.add_argument("-o", "--output", metavar="FILE", help="where it goes (default: printed)")


_KINDS = {".json": "json", ".py": "python", ".html": "html", ".npz": "npz"}


def export_page(options: Options) -> int:
    """Write a page as another kind of file."""
    graph, page, folder = opened(options)
    kind = options.to or _KINDS.get(Path(options.output or "").suffix)
    if kind is None:
        raise ValueError(
            f"-o: got {short_repr(options.output) if options.output else 'nothing'}, wanted a name that ends in {', '.join(_KINDS)}, or --to"
        )
    if kind == "npz" and not options.output:
        raise ValueError("-o: got nothing, wanted a name: .npz is not text")
    if kind != "json":
        absorb(graph, page, folder)
    made = service.export(graph, page.name, kind)[0]
    if options.output:
        store("-o", {Path(options.output): made})
        print(f"{options.output}: {kind}, {len(made)} bytes")
        return 0
    print(made.decode(), end="")
    return 0


def absorb(graph: Graph, page: Page, folder: Path) -> None:
    """Embed the files that blocks name, so that the graph needs no other file."""
    for node in page.nodes.values():
        name = node.text.get("file", "").strip()
        if node.op not in ("File", "Image") or not name or name.startswith("sha256:"):
            continue
        plain, colon, _ = name.rpartition(":") if name.endswith((":bfloat16", ":bf16")) else (name, "", "")
        try:
            ref, entry, _ = embed(plain, (folder / plain).read_bytes(), "bfloat16" if colon else "")
        except (OSError, ValueError) as error:
            raise GraphError(f"{node.id}: file: {error}") from None
        graph.data[ref] = entry
        node.text["file"] = ref


COMMANDS = (
    ("check", "a page of blocks: shapes, problems, repairs", check_options, check),
    ("explain", "why a cell of a page has its value", explain_options, explain),
    ("export", "a page as Python, HTML, JSON or .npz", export_options, export_page),
)
