"""The socket: loopback only, one thread a connection, an answer to whatever comes."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from .guard import LARGEST_BODY, LONGEST_PATH, Reply, refusal
from .routes import App

ADDRESS = "127.0.0.1"
_PATIENCE = 30  # seconds that a connection may be silent


class Handler(BaseHTTPRequestHandler):
    """Reads a request, asks the app, writes what it says."""

    app: Callable[..., Reply]
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "poolgrad", ""
    timeout = _PATIENCE
    disable_nagle_algorithm = True  # else a small answer waits for the acknowledgement of its headers
    wbufsize = -1
    error_message_format = '{"error":"%(message)s"}'
    error_content_type = "application/json; charset=utf-8"

    def handle_any(self) -> None:
        """One request, whatever its method."""
        body, wrong = self._body()
        headers = dict(self.headers.items())
        status, given, content = wrong or self.app(self.command, self.path, headers, body)
        if wrong:
            self.close_connection = True  # what is left of the body is not read
        self.send_response(status)
        for name, value in given.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = handle_any

    def _body(self) -> tuple[bytes, Reply | None]:
        """The body, or why it is not read."""
        if len(self.path) > LONGEST_PATH:
            return b"", refusal(414, f"the address is longer than {LONGEST_PATH} characters")
        if "transfer-encoding" in self.headers:
            return b"", refusal(411, "Transfer-Encoding: wanted a body with a Content-Length")
        text = self.headers.get("Content-Length", "0")
        if (
            not (text.isascii() and text.isdigit() and len(text) < 16)
            or len(self.headers.get_all("Content-Length", [])) > 1
        ):
            return b"", refusal(400, f"Content-Length: got {text[:40]!r}, wanted one number")
        length = int(text)
        if length > LARGEST_BODY:
            return b"", refusal(413, f"the body has {length} bytes, at most {LARGEST_BODY} are read")
        body = self.rfile.read(length)
        if len(body) < length:
            return b"", refusal(400, f"the body ended after {len(body)} of {length} bytes")
        return body, None

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not news."""


class Server(ThreadingHTTPServer):
    """A server for one app, which ends with the program."""

    daemon_threads = True
    allow_reuse_address = sys.platform != "win32"  # there it would let another program listen too

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke off is not an error of the studio."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def serve(start: dict[str, Any], port: int = 0, token: str | None = None) -> tuple[Server, str]:
    """A server that listens (call `serve_forever`), and the address to open."""
    secret = secrets.token_urlsafe(24) if token is None else token
    try:
        server = Server((ADDRESS, port), Handler)
    except (OSError, OverflowError) as error:
        raise ValueError(f"--port: got {port}, which cannot be listened on ({error})") from None
    port = server.server_address[1]
    app = App(secret, port, start, log=lambda text: print(text, file=sys.stderr))
    server.RequestHandlerClass = type("Bound", (Handler,), {"app": staticmethod(app)})
    return server, f"http://{ADDRESS}:{port}/#token={secret}"
