"""Answer requests, given as method, path, headers and body: all of the server but the socket."""

from __future__ import annotations

import base64
import binascii
import hmac
import sys
import threading
import traceback
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from .._common.errors import short_repr
from ..graph import Graph, GraphError, service
from ..graph.model import Limits
from . import page
from .guard import (
    METHODS,
    Refused,
    Reply,
    as_json,
    check_caller,
    check_origin,
    check_size,
    lower,
    parse,
    refusal,
    reply,
)

_KEPT = 256 * 2**20  # bytes of uploaded contents to keep
_MOST_FILES = 8
_READERS = 8  # bodies read at the same time
_LIMITS = Limits(nbytes=2**28, cells=2**32, links=2**24)  # of a page


class Contents:
    """A cache of the arrays and pictures that a page has sent, so that the page sends each only once."""

    def __init__(self, most: int = _KEPT) -> None:
        self.entries: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self.weights: dict[str, int] = {}
        self.most, self.held = most, 0  # bytes
        self.lock = threading.Lock()

    def complete(self, graph: dict[str, Any]) -> dict[str, Any]:
        """Return the graph with omitted entries filled in; cache the entries it holds."""
        data = graph.get("data")
        if not isinstance(data, dict) or not data:
            return graph
        weights = {key: weight([key, value]) for key, value in data.items() if isinstance(value, dict) and value}
        with self.lock:
            missing = next((key for key, value in data.items() if value == {} and key not in self.entries), None)
            if missing is not None:
                raise Refused(409, f"the contents of {missing[:80]} are no longer here: send them again")
            full = {key: self.entries[key] if value == {} else value for key, value in data.items()}
            for key, value in data.items():
                if value == {}:
                    self.entries.move_to_end(key)
                elif key in weights:
                    self._remember(key, value, weights[key])
        return {**graph, "data": full}

    def _remember(self, key: str, entry: dict[str, Any], nbytes: int) -> None:
        """Cache an entry; drop the least recently used if there are too many bytes."""
        self.held += nbytes - self.weights.get(key, 0)
        self.entries[key], self.weights[key] = entry, nbytes
        self.entries.move_to_end(key)
        while self.held > self.most:
            gone, _ = self.entries.popitem(last=False)
            self.held -= self.weights.pop(gone)


def weight(value: Any) -> int:
    """Return the bytes of a JSON value and all its parts; a part that occurs twice counts twice.

    >>> weight({"a": []}) > weight([]) > 0
    True
    """
    total, waiting = 0, [value]
    while waiting:
        here = waiting.pop()
        total += sys.getsizeof(here)
        if isinstance(here, dict):
            waiting += here.keys()
            waiting += here.values()
        elif isinstance(here, list):
            waiting += here
    return total


def _split(path: str) -> SplitResult:
    try:
        return urlsplit(path)
    except ValueError as error:
        raise Refused(400, f"the address is none: {error}") from None


@dataclass
class App:
    """A studio: its secret, its port, its first document, and its cache of results."""

    token: str
    port: int
    start: dict[str, Any] = field(default_factory=dict)
    cache: service.Cache = field(default_factory=service.Cache)
    contents: Contents = field(default_factory=Contents)
    lock: threading.Lock = field(default_factory=threading.Lock)  # guards the cache: runs wait for each other
    readers: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(_READERS))
    cancelled: deque[str] = field(default_factory=lambda: deque(maxlen=64))  # tickets of runs that nobody waits for
    log: Callable[[str], None] = print

    def __call__(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer a request that came by HTTP; no request can stop the studio."""

        def admitted() -> Reply:
            self._admit(path, lower(headers), body)
            return self._answer(method, path, body)

        return self._guarded(admitted)

    def ask(self, method: str, path: str, body: bytes) -> Reply:
        """Answer a request that came from the page in a notebook, by messages that no other page can send."""

        def routed() -> Reply:
            check_size(path, body)
            return self._answer(method, path, body)

        return self._guarded(routed)

    def keep(self, body: bytes) -> None:
        """Keep the document of the page in a notebook, if it is one; contents that were sent before are filled in."""
        with suppress(Refused, GraphError):
            check_size("", body)
            graph = self.contents.complete(parse(body))
            self.start = {**self.start, "graph": Graph.from_json(graph).to_dict()}

    def _guarded(self, answer: Callable[[], Reply]) -> Reply:
        """Turn errors into answers."""
        try:
            return answer()
        except Refused as error:
            return refusal(error.status, str(error))
        except GraphError as error:
            return refusal(400, str(error))
        except (MemoryError, RecursionError) as error:
            return refusal(413, f"this is too large for this machine ({type(error).__name__})")
        except Exception as error:
            self.log(traceback.format_exc())
            return refusal(500, f"the studio made a mistake: {type(error).__name__}: {error}")

    def refused(self, path: str, headers: Mapping[str, str]) -> Reply | None:
        """Return the refusal of a request whose body need not be read, or None."""
        try:
            self._admit(path, lower(headers), b"")
        except Refused as error:
            return refusal(error.status, str(error))
        return None

    def _admit(self, path: str, headers: dict[str, str], body: bytes) -> None:
        check_origin(headers, self.port)
        check_size(path, body)
        if _split(path).path.startswith("/api/"):
            check_caller(headers, self.token)

    def _answer(self, method: str, path: str, body: bytes) -> Reply:
        if method not in METHODS:
            raise Refused(405, f"method: got {method[:20]!r}, wanted GET or POST")
        url = _split(path)
        if not url.path.startswith("/api/"):
            return self._file(method, url.path)
        wanted, route = ROUTES.get(url.path, ("", None))
        if route is None:
            raise Refused(404, f"there is nothing at {url.path[:80]!r}")
        if method != wanted:
            raise Refused(405, f"{url.path}: method: got {method}, wanted {wanted}")
        query = {key: values[-1] for key, values in parse_qs(url.query, keep_blank_values=True).items()}
        if method == "GET":
            return route(self, query, body)
        with self.readers:  # bounds memory; texts and files are read here, outside the lock
            return route(self, query, body)

    def _file(self, method: str, path: str) -> Reply:
        if method != "GET":
            raise Refused(405, f"{path[:80]}: method: got {method}, wanted GET")
        if path == "/":
            return reply(200, page.index(), page.KINDS["html"], **page.policy())
        name = unquote(path.removeprefix("/static/"))
        if not path.startswith("/static/") or name not in page.static() or name.endswith(".html"):
            raise Refused(404, f"there is nothing at {path[:80]!r}")
        content, kind = page.static()[name]
        return reply(200, content, kind, **page.policy())


# ---- the routes


def _ops(app: App, query: dict[str, str], body: bytes) -> Reply:
    return as_json(service.ops())


def _start(app: App, query: dict[str, str], body: bytes) -> Reply:
    return as_json(app.start)


def _examples(app: App, query: dict[str, str], body: bytes) -> Reply:
    return as_json(service.examples())


def _given(app: App, body: bytes) -> tuple[dict[str, Any], Graph, str | None]:
    """Return the parsed body, its completed graph, and the page it names."""
    asked = parse(body)
    graph, name = asked.get("graph"), asked.get("page")
    if not isinstance(graph, dict):
        raise Refused(400, f"graph: got {type(graph).__name__}, wanted an object")
    if name is not None and not isinstance(name, str):
        raise Refused(400, f"page: got {type(name).__name__}, wanted a name")
    return asked, service.limited(app.contents.complete(graph), _LIMITS), name


def _word(asked: dict[str, Any], name: str) -> str:
    value = asked.get(name)
    if not isinstance(value, str):
        raise Refused(400, f"{name}: got {type(value).__name__}, wanted a string")
    return value


def _check(app: App, query: dict[str, str], body: bytes) -> Reply:
    _, graph, name = _given(app, body)
    return as_json(service.check(graph, name))


def _run(app: App, query: dict[str, str], body: bytes) -> Reply:
    asked, graph, name = _given(app, body)
    known = asked.get("known", [])
    if not isinstance(known, list) or not all(isinstance(ref, str) for ref in known):
        raise Refused(400, f"known: got {short_repr(known)}, wanted a list of refs")
    ticket = _word(asked, "ticket") if "ticket" in asked else ""

    def progress(done: int, count: int, block: str) -> None:
        if ticket and ticket in app.cancelled:
            raise Refused(410, f"cancelled before block {block}")

    return as_json(service.run(graph, name, app.cache, lock=app.lock, known=frozenset(known), progress=progress))


def _cancel(app: App, query: dict[str, str], body: bytes) -> Reply:
    app.cancelled.append(_word(parse(body), "ticket")[:64])
    return as_json({})


def _gradients(app: App, query: dict[str, str], body: bytes) -> Reply:
    asked, graph, name = _given(app, body)
    return as_json({"graph": service.gradients(graph, name, _word(asked, "y"), _word(asked, "x"))})


def _export(app: App, query: dict[str, str], body: bytes) -> Reply:
    asked, graph, page_name = _given(app, body)
    data, name, kind = service.export(graph, page_name, _word(asked, "kind"), app.cache, lock=app.lock)
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_. ") else "_" for c in name)
    return reply(200, data, kind, Content_Disposition=f'attachment; filename="{safe}"')


def _tensor(app: App, query: dict[str, str], body: bytes) -> Reply:
    ref = query.get("ref", "")
    with app.lock:
        if query.get("as") == "npy":
            return reply(200, service.tensor_npy(app.cache, ref), "application/octet-stream")
        return as_json(service.tensor(app.cache, ref))


def _hits(app: App, query: dict[str, str], body: bytes) -> Reply:
    asked = parse(body)
    with app.lock:
        return as_json(service.hits(app.cache, _word(asked, "ref"), asked.get("windows")))


def _prove(app: App, query: dict[str, str], body: bytes) -> Reply:
    """Sign a nonce with the token: a page sends its work only to a server that can."""
    nonce = query.get("nonce", "")
    if not 0 < len(nonce) <= 100:
        raise Refused(400, f"nonce: got {short_repr(nonce)}, wanted 1 to 100 characters")
    return as_json({"proof": hmac.new(app.token.encode(), nonce.encode("utf-8", "replace"), "sha256").hexdigest()})


def _upload(app: App, query: dict[str, str], body: bytes) -> Reply:
    name = query.get("name", "")
    if not name or len(name) > 200:
        raise Refused(400, f"name: got {name[:40]!r}, wanted the name of a file")
    try:
        made = service.embed(name, body)
    except GraphError as error:
        raise Refused(400, f"{name}: {error}") from None
    app.contents.complete({"data": made["data"]})
    return as_json(made)


def _import(app: App, query: dict[str, str], body: bytes) -> Reply:
    files = parse(body).get("files")
    if not isinstance(files, dict) or not 0 < len(files) <= _MOST_FILES:
        raise Refused(400, f"files: wanted an object of 1 to {_MOST_FILES} files")
    try:
        contents = {name: base64.b64decode(text, validate=True) for name, text in files.items()}
    except (binascii.Error, TypeError, ValueError):
        raise Refused(400, "files: wanted base64 text for each name") from None
    return as_json(service.import_(contents))


Route = Callable[[App, dict[str, str], bytes], Reply]
ROUTES: dict[str, tuple[str, Route]] = {
    "/api/ops": ("GET", _ops),
    "/api/start": ("GET", _start),
    "/api/examples": ("GET", _examples),
    "/api/tensor": ("GET", _tensor),
    "/api/prove": ("GET", _prove),
    "/api/check": ("POST", _check),
    "/api/run": ("POST", _run),
    "/api/cancel": ("POST", _cancel),
    "/api/hits": ("POST", _hits),
    "/api/gradients": ("POST", _gradients),
    "/api/export": ("POST", _export),
    "/api/upload": ("POST", _upload),
    "/api/import": ("POST", _import),
}
