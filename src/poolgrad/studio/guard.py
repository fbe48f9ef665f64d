"""Check a request before anything else reads it: our host, origin and token, and a limited size."""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from typing import Any

from ..graph.model import too_many

Headers = dict[str, str]
Reply = tuple[int, Headers, bytes]

LARGEST_BODY = 64 * 2**20  # bytes
LONGEST_PATH = 4096
TOKEN_HEADER = "X-Poolgrad-Token"
METHODS = ("GET", "POST")

SAFE: Headers = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Refused(Exception):
    """A refused request, with an HTTP status and a sentence that give the reason."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def reply(status: int, body: bytes, kind: str, **more: str) -> Reply:
    """Return an answer with the headers common to all answers."""
    given = {name.replace("_", "-"): value for name, value in more.items()}
    return status, {**SAFE, "Content-Type": kind, "Content-Length": str(len(body)), **given}, body


def as_json(value: Any, status: int = 200) -> Reply:
    """Return a value as JSON; refuse NaN.

    >>> as_json({"a": 1})[2]
    b'{"a":1}'
    """
    body = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    return reply(status, body, "application/json; charset=utf-8")


def refusal(status: int, why: str) -> Reply:
    """Return an answer that names the error."""
    return as_json({"error": why}, status)


def lower(headers: Mapping[str, str]) -> Headers:
    """Return the headers under lower-case names."""
    return {name.lower(): value for name, value in headers.items()}


def check_origin(headers: Headers, port: int) -> None:
    """Refuse a request under another host name, or from a page of another site.

    A foreign Host means that someone pointed a name at 127.0.0.1; a foreign Origin, that another page sent the request.
    """
    names = {f"127.0.0.1:{port}", f"localhost:{port}"}
    host = headers.get("host", "")
    if host not in names:
        raise Refused(403, f"Host: got {host[:80]!r}, wanted 127.0.0.1:{port}")
    origin = headers.get("origin")
    if origin is not None and origin not in {f"http://{name}" for name in names}:
        raise Refused(403, f"Origin: got {origin[:80]!r}, wanted http://127.0.0.1:{port}")


def check_caller(headers: Headers, token: str) -> None:
    """Refuse a request without the secret of the printed address, or from another site. Any link may lead to the page itself."""
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise Refused(403, "the request comes from another site's page")
    got = headers.get(TOKEN_HEADER.lower(), "")
    if not hmac.compare_digest(got.encode("utf-8", "replace"), token.encode()):
        what = "a wrong token" if got else "no token"
        raise Refused(403, f"{what}: open the studio by the whole address that `poolgrad studio` printed")


def check_size(path: str, body: bytes) -> None:
    """Refuse an address or a body that is too long."""
    if len(path) > LONGEST_PATH:
        raise Refused(414, f"the address is longer than {LONGEST_PATH} characters")
    if len(body) > LARGEST_BODY:
        raise Refused(413, f"the body has {len(body)} bytes, at most {LARGEST_BODY} are read")


def parse(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body.

    >>> parse(b"[1]")
    Traceback (most recent call last):
    poolgrad.studio.guard.Refused: got JSON of type list, wanted an object
    """
    many = too_many(body)
    if many:
        raise Refused(413, f"the body has {many}")
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise Refused(400, f"the body is not UTF-8 (byte {error.start})") from None
    except RecursionError:
        raise Refused(400, "the JSON is nested too deeply") from None
    except ValueError as error:
        raise Refused(400, f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Refused(400, f"got JSON of type {type(value).__name__}, wanted an object")
    return value


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is not a JSON number")
