"""Export a page as a standalone Python script, and its arrays as .npz."""

from __future__ import annotations

import builtins
import io
import keyword
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ..config import __version__
from .blocks import BLOCKS, Block
from .check import check
from .embedded_files import Sources
from .executor import Cache, execute
from .model import Graph, GraphError, Node, Page
from .seen import Checked
from .text import quoted

_USED = ("s", "np", "sys", "ops", "Scope", "Session", "names", "result_output", "name", "array")  # by the script itself
_TAKEN = {*_USED, *dir(builtins), *keyword.kwlist, *keyword.softkwlist}
_HEAD = '''"""{title}

Exported by poolgrad {version}. Run it to see the arrays; `python {file} arrays.npz` saves them instead.
"""

import sys

import numpy as np

from poolgrad.graph import Scope, Session, ops

s = Scope.new_root_scope({page})
'''
_TAIL = """
names = {names}
result_output = Session(s).run(names)

if __name__ == "__main__" and len(sys.argv) > 1:
    np.savez(sys.argv[1], **dict(zip(names, result_output)))
elif __name__ == "__main__":
    for name, array in zip(names, result_output):
        print(f"{{name}}: {{array.dtype}} {{list(array.shape)}}")
        print(array)
"""


def fetched(page: Page) -> list[str]:
    """Return the outputs to fetch: those that the page names, or every output without a wire."""
    if page.fetch:
        return list(page.fetch)
    used = {source for source, _ in page.wires}
    ends = [f"{n}.{pin}" for n, node in page.nodes.items() if node.op in BLOCKS for pin in BLOCKS[node.op].outputs]
    return [end for end in ends if end not in used]


def python(graph: Graph, page: Page) -> str:
    """Return the page as a Python script."""
    found = check(page, Sources.of(graph, False))
    strange = [f"{n} ({node.op})" for n, node in page.nodes.items() if node.op not in BLOCKS]
    if strange or len(found.order) < len(page.nodes):
        reason = f"blocks that it has no name for: {', '.join(strange)}" if strange else "wires in a circle"
        raise GraphError(f"export: page {page.name!r}: got {reason}, wanted blocks that can be built one by one")
    names = _variables(page)
    title = f"Page {page.name!r}.".replace("\\", "\\\\").replace('"""', "'''")
    lines = [_HEAD.format(title=title, version=__version__, file=filename(page.name, "py"), page=_quoted(page.name))]
    held = {quoted(word)[0] for node in page.nodes.values() for word in node.text.values()} & graph.data.keys()
    lines += [f"s.graph.data[{_quoted(ref)}] = {graph.data[ref]!r}\n" for ref in sorted(held)]
    lines += [_line(page.nodes[name], found, names) for name in found.order]
    return "".join(lines) + _TAIL.format(names=_listed(fetched(page)))


def _variables(page: Page) -> dict[str, str]:
    """Return a Python variable name for each block."""
    names: dict[str, str] = {}
    taken = {name for name in page.nodes if not _reserved(name)}
    for node in page.nodes:
        name = node
        while _reserved(name) or (name != node and name in taken):
            name = f"block{name}" if name.startswith("__") else f"{name}_"
        taken.add(name)
        names[node] = name
    return names


def _reserved(name: str) -> bool:
    """Return True if a variable of that name would change the script. Python may give any __name__ a meaning."""
    return name in _TAKEN or name.startswith("__")


def _line(node: Node, found: Checked, names: dict[str, str]) -> str:
    block = BLOCKS[node.op]
    scope = f"s.with_op_name({_quoted(node.id)})"
    words, gap = [scope], False
    for pin in block.pins:
        value = _argument(node, pin.name, found, names)
        if value is None:
            gap = True
            continue
        named = gap or pin.name == "attrs" or (not block.windowed and pin is not block.pins[0])
        words.append(f"{pin.name}={value}" if named else value)
    line = f"{names[node.id]} = ops.{node.op}({', '.join(words)})\n"
    if len(line) <= 120:
        return line
    inner = "".join(f"    {word},\n" for word in words)
    return f"{names[node.id]} = ops.{node.op}(\n{inner})\n"


def _argument(node: Node, pin: str, found: Checked, names: dict[str, str]) -> str | None:
    source = found.seen[node.id].sources.get(pin)
    if source is None:
        return _quoted(node.text[pin]) if node.text.get(pin, "").strip() else None
    giver, _, out = source.partition(".")
    block = found.seen[giver].block
    first = isinstance(block, Block) and block.outputs[0] == out
    return names[giver] if first else f"{names[giver]}.{out}"


def _quoted(words: str) -> str:
    """Return a string literal, in double quotes if that needs no escapes."""
    plain = repr(words)
    return plain if "'" in words or '"' in words else f'"{plain[1:-1]}"'


def _listed(names: list[str]) -> str:
    line = "[" + ", ".join(map(_quoted, names)) + "]"
    return line if len(line) < 100 else "[\n" + "".join(f"    {_quoted(name)},\n" for name in names) + "]"


def npz(graph: Graph, page: Page, cache: Cache | None = None, paths: bool = False,
        lock: AbstractContextManager[Any] | None = None) -> bytes:  # fmt: skip
    """Run a page and return every array as .npz, named `block.pin`; hold `lock` while it runs."""
    sources = Sources.of(graph, paths)
    found = check(page, sources)
    with lock or nullcontext():
        run = execute(page, sources, cache, checked=found)
    arrays: dict[str, Any] = {f"{name}.{pin}": array for name, ran in run.blocks.items() if ran.result is not None
                              for pin, array in ran.result.outputs.items()}  # fmt: skip
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def filename(page: str, suffix: str) -> str:
    """Return a plain file name for a page."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in page).strip("-")[:60]
    return f"{plain or 'page'}.{suffix}"
