"""The socket: loopback only, one thread per connection, an answer to every request."""

from __future__ import annotations

import secrets
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from .guard import LARGEST_BODY, Reply, refusal
from .routes import App

ADDRESS = "127.0.0.1"
_PATIENCE = 30  # seconds without data before a connection closes


class Handler(BaseHTTPRequestHandler):
    """A handler that reads a request, asks the app, and writes the answer."""

    app: App
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "poolgrad", ""
    timeout = _PATIENCE
    disable_nagle_algorithm = True  # without it, a small answer waits until its headers are acknowledged
    wbufsize = -1
    error_message_format = '{"error":"%(message)s"}'
    error_content_type = "application/json; charset=utf-8"

    def handle_any(self) -> None:
        """Handle a request of any method."""
        headers = dict(self.headers.items())
        body, wrong = b"", self.app.refused(self.path, headers)  # do not read the body of a refused caller
        if not wrong:
            body, wrong = self._body()
        status, given, content = wrong or self.app(self.command, self.path, headers, body)
        if wrong:
            self.close_connection = True  # the rest of the body stays unread
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
        """Return the body, or the refusal to read it."""
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
        """Print nothing for a request."""


class Server(ThreadingHTTPServer):
    """A server for one app; its threads end with the program."""

    daemon_threads = True
    allow_reuse_address = sys.platform != "win32"  # on Windows it would let another program listen too

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a broken connection: it is no error of the studio."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def serve(start: dict[str, Any], port: int = 0, token: str | None = None) -> tuple[Server, str]:
    """Return a listening server (call `serve_forever`) and the address to open."""
    secret = secrets.token_urlsafe(24) if token is None else token
    try:
        server = Server((ADDRESS, port), Handler)
    except (OSError, OverflowError) as error:
        raise ValueError(f"--port: got {port}, which cannot be listened on ({error})") from None
    port = server.server_address[1]
    app = App(secret, port, start, log=lambda text: print(text, file=sys.stderr))
    server.RequestHandlerClass = type("Bound", (Handler,), {"app": app})
    return server, f"http://{ADDRESS}:{port}/#token={secret}"
