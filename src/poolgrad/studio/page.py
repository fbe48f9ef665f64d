"""Serve the files of the page, and no others, from memory; read each once."""

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
    """Return content and type of every file in static/, by name."""
    folder = files("poolgrad").joinpath("studio/static")
    found = {}
    for item in folder.iterdir():
        kind = KINDS.get(item.name.rpartition(".")[2])
        if kind and item.is_file():
            found[item.name] = (item.read_bytes(), kind)
    return found


def import_map() -> str:
    """Return the import map, which maps the names of modules to addresses on this server."""
    stems = sorted(name.removesuffix(".js") for name in static() if name.endswith(".js"))
    return json.dumps({"imports": {f"poolgrad/{stem}": f"/static/{stem}.js" for stem in stems}}, separators=(",", ":"))


def index() -> bytes:
    """The page."""
    return static()["index.html"][0].replace(b"/*IMPORTMAP*/", import_map().encode())


@cache
def policy() -> Headers:
    """Return the page's content security policy: load from this server only.

    The import map must be inline, so the policy allows its hash; no other inline script runs.
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
