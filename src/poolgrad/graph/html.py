"""Write a page with its results as one standalone HTML file: the studio's viewer, its modules as data URLs."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from . import answers
from .executor import Cache
from .model import Graph

_IMPORT = re.compile(r"""(?:from|import)\s*\(?\s*['"]poolgrad/([\w-]+)['"]""")
_MOST_CELLS = 2**20  # of a tensor written into the file


def _static(name: str) -> str:
    return files("poolgrad").joinpath("studio", "static", name).read_text("utf-8")


@cache
def _modules(entry: str) -> dict[str, str]:
    """Return a module and every module it imports, by name."""
    found: dict[str, str] = {}
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _static(f"{name}.js")
            waiting += _IMPORT.findall(found[name])
    return found


def importmap(entry: str = "viewer") -> str:
    """Return the import map of a page that fetches nothing: every module is a data URL."""

    def address(source: str) -> str:
        return "data:text/javascript;base64," + base64.b64encode(source.encode()).decode()

    return json.dumps(
        {"imports": {f"poolgrad/{name}": address(source) for name, source in sorted(_modules(entry).items())}}
    )


def standalone(graph: Graph, page: str | None = None, cache: Cache | None = None, paths: bool = False,
               lock: answers.Lock = answers.FREE) -> str:  # fmt: skip
    """Return the page as interactive HTML that fetches nothing, and holds nothing of other pages."""
    return together([graph.only(page)], cache, paths, lock)


def together(graphs: Sequence[Graph], cache: Cache | None = None, paths: bool = False,
             lock: answers.Lock = answers.FREE) -> str:  # fmt: skip
    """Return the first page of each graph as one interactive HTML file, with a tab for each if there are several."""
    cache = cache if cache is not None else Cache()
    pages = [{"graph": graph.to_dict(), "run": answers.run(graph, None, cache, limit=_MOST_CELLS, paths=paths, lock=lock)}
             for graph in graphs]  # fmt: skip
    used = {node.op for graph in graphs for page in graph.pages for node in page.nodes.values()}
    known = answers.ops()
    known["blocks"] = [
        block for block in known["blocks"] if block["op"] in used
    ]  # a file that cannot be changed needs no others
    plain = json.dumps({"ops": known, "pages": pages}, allow_nan=False).replace("<", "\\u003c")
    made = _static("standalone.html")
    title = graphs[0].pages[0].name if len(graphs) == 1 else "poolgrad"
    parts = {"<!--TITLE-->": html.escape(title), "/*STYLE*/": _static("viewer.css"), "/*IMPORTMAP*/": importmap(),
             "/*DATA*/": plain}  # fmt: skip
    return re.sub("|".join(map(re.escape, parts)), lambda found: parts[found.group()], made)


def frame(graph: Graph, page: str | None = None, paths: bool = True) -> str:
    """Return the page inside a frame, for notebooks; where frames do not work, a table of the results."""
    return framed(standalone(graph, page, paths=paths), graph.page(page).name, table(graph, page, paths))


def framed(whole: str, name: str, instead: str) -> str:
    """Return an HTML document inside a frame that may only run its scripts."""
    style = "width:100%;height:640px;border:1px solid #ccc;border-radius:6px"
    quoted, title = html.escape(whole, quote=True), html.escape(name, quote=True)
    return f'<iframe title="{title}" sandbox="allow-scripts" style="{style}" srcdoc="{quoted}">{instead}</iframe>'


def table(graph: Graph, page: str | None = None, paths: bool = True) -> str:
    """Return blocks, shapes and sums as a plain table."""
    ran = answers.run(graph, page, limit=0, paths=paths)
    rows = []
    for name, node in ran["nodes"].items():
        for pin, out in node["outputs"].items():
            cells = (
                f"{name}.{pin}",
                out["dtype"] or "",
                out["shape"] or "",
                out.get("stats", {}).get("sum", node["status"]),
            )
            rows.append("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells) + "</tr>")
    return f"<table><tr><th>output</th><th>type</th><th>shape</th><th>sum</th></tr>{''.join(rows)}</table>"
