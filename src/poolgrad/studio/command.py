"""`poolgrad studio [file]`: open the studio in the browser and serve it until stopped."""

from __future__ import annotations

import argparse
import html
import os
import signal
import tempfile
import threading
import webbrowser
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from .._common.errors import short_repr
from ..graph import Graph, service
from ..graph.html import together as pages_together
from .server import Server, serve

_TABS = 8  # examples of the first screen; the page lists all

EXAMPLES = """
poolgrad studio
poolgrad studio page.json
poolgrad studio flow.svg --port 8765 --no-browser
poolgrad studio --write studio.html"""


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "file", nargs="?", help="a graph as .json, an enuSpace page (.svg, .json), an array or a picture"
    )
    parser.add_argument("--port", type=int, help="where to listen (default: the same port every time, if it is free)")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.add_argument(
        "--write", metavar="FILE", help="write the examples as one HTML file that needs no server, and stop"
    )


def opening(file: str | None) -> dict[str, Any]:
    """Return the first document: a file, or some examples with a tab each."""
    if file is None:
        return {"graph": together(service.examples()[:_TABS]), "notes": [], "name": ""}
    path = Path(file)
    try:
        data = path.read_bytes()
        side = path.with_suffix(".dat")
        beside = {side.name: side.read_bytes()} if path.suffix == ".svg" and side.is_file() else {}
    except OSError as error:
        why = (error.strerror or type(error).__name__).lower()
        raise ValueError(f"file: got {short_repr(file)}, wanted one that can be read ({why})") from None
    if path.suffix.lower() in (".npy", ".png"):
        made = service.embed(path.name, data)
        graph = service.new_graph()
        graph["pages"][0]["nodes"].append({"id": "x", "at": [40, 40], **made["node"]})
        return {"graph": {**graph, "data": made["data"]}, "notes": [], "name": path.name}
    return {**service.import_({path.name: data, **beside}), "name": path.name}


def together(examples: list[dict[str, Any]]) -> dict[str, Any]:
    """Return all examples as pages of one document; each page has the name of its example."""
    graph: dict[str, Any] = {**service.new_graph(), "pages": [], "data": {}}
    for example in examples:
        single = len(example["graph"]["pages"]) == 1
        for page in example["graph"]["pages"]:
            graph["pages"].append({**page, "name": example["name"]} if single else page)
        graph["data"].update(example["graph"].get("data", {}))
    return graph


def usual_port() -> int:
    """Return a port that is the same at every start: a browser keeps unsaved work by the address of the page."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    return 49152 + zlib.crc32(f"poolgrad {user}".encode()) % 16384


def listen(start: dict[str, Any], port: int | None) -> tuple[Server, str]:
    """Serve at this port; without one, at the usual port, or at any if another program has it."""
    if port is not None:
        return serve(start, port)
    try:
        return serve(start, usual_port())
    except ValueError:
        return serve(start, 0)


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


_DOOR = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={address}">
<title>poolgrad studio</title>
<a href="{address}">Open the studio</a>
"""


@contextmanager
def door(address: str) -> Iterator[Path]:
    """Make a file, readable by this user alone, that sends a browser to the address; remove it afterwards.

    Every user of a machine can read the command line of a browser, which holds its address. So the command line
    names this file, and the file holds the secret.
    """
    with tempfile.TemporaryDirectory(prefix="poolgrad-studio-", ignore_cleanup_errors=True) as folder:  # mode 0700
        path = Path(folder) / "open.html"
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(_DOOR.format(address=html.escape(address)))
        yield path


def write(target: str, file: str | None) -> int:
    """Write the pages of the first document, with their results, as HTML that opens from disk or from any web host."""
    graph = Graph.from_json(opening(file)["graph"])
    made = pages_together([graph.only(page.name) for page in graph.pages])
    try:
        Path(target).write_text(made, "utf-8")
    except OSError as error:
        why = (error.strerror or type(error).__name__).lower()
        raise ValueError(f"--write: got {short_repr(target)}, wanted a file that can be written ({why})") from None
    print(f"poolgrad studio: wrote {target}, {len(made.encode()):,} bytes")
    return 0


def _open(path: Path) -> None:
    with suppress(webbrowser.Error, OSError):
        webbrowser.open(path.as_uri())


def run(given: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    if given.write is not None:
        return write(given.write, given.file)
    if given.port is not None and not 0 <= given.port < 65536:
        raise ValueError(f"--port: got {given.port}, wanted 0 to 65535")
    server, address = listen(opening(given.file), given.port)
    print(f"poolgrad studio: {address}\nCtrl-C stops it.", flush=True)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _stop)
    try:
        with nullcontext() if given.no_browser else door(address) as path:
            if path is not None:
                threading.Thread(target=_open, args=(path,), daemon=True).start()
            server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        print("\npoolgrad studio: stopped", flush=True)
    finally:
        server.server_close()
    return 0
