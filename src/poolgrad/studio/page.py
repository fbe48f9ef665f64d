"""The files of the page: read once, served from memory, and nothing else is."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files

from .guard import Headers

KINDS = {
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "html": "text/html; charset=utf-8",
}


@cache
def static() -> dict[str, tuple[bytes, str]]:
    """Name to content and type, of every file beside the modules."""
    folder = files("poolgrad").joinpath("studio/static")
    found = {}
    for item in folder.iterdir():
        kind = KINDS.get(item.name.rpartition(".")[2])
        if kind and item.is_file():
            found[item.name] = (item.read_bytes(), kind)
    return found


def import_map() -> str:
    """Modules import each other by name; here the names lead to this server."""
    stems = sorted(name.removesuffix(".js") for name in static() if name.endswith(".js"))
    return json.dumps({"imports": {f"poolgrad/{stem}": f"/static/{stem}.js" for stem in stems}}, separators=(",", ":"))


def index() -> bytes:
    """The page."""
    return static()["index.html"][0].replace(b"/*IMPORTMAP*/", import_map().encode())


@cache
def policy() -> Headers:
    """What the page may do: load from this server, and nothing else.

    The import map has to stand in the page; its hash is allowed, so that no other text in its place would run.
    """
    digest = base64.b64encode(hashlib.sha256(import_map().encode()).digest()).decode()
    rules = (
        "default-src 'none'",
        f"script-src 'self' 'sha256-{digest}'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
    return {"Content-Security-Policy": "; ".join(rules)}
