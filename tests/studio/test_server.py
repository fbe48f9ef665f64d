"""The server with a socket, as a process: it listens on loopback, survives what it is sent, and ends when asked to."""

from __future__ import annotations

import html
import http.client
import json
import os
import random
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from urllib.request import url2pathname

import pytest

from poolgrad.studio.command import opening
from poolgrad.studio.server import serve

RAW = [
    b"",
    b"\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
    b"GET / HTTP/1.1\r\nHost: " + b"a" * 70_000 + b"\r\n\r\n",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 500 + b"\r\n",
    b"POST /api/run HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
    b"POST /api/run HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
    b"POST /api/run HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    b"POST /api/run HTTP/1.1\r\nContent-Length: 0x10\r\n\r\n",
    b"POST /api/run HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /api/run HTTP/1.1\r\nContent-Length: 50\r\n\r\nshort",
    b"BREW /pot HTTP/1.1\r\n\r\n",
    b"GET //[ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"GET /%00%ff HTTP/1.1\r\nHost: \xff\xfe\r\n\r\n",
]


@pytest.fixture(scope="module")
def place() -> Iterator[tuple[int, str]]:
    """Yield port and token of a server in a thread."""
    server, address = serve(opening(None))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    url = urlsplit(address)
    yield int(url.port or 0), parse_qs(url.fragment)["token"][0]
    server.shutdown()
    server.server_close()


def status(port: int, token: str, path: str = "/api/ops") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path, headers={"X-Poolgrad-Token": token})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def exchange(port: int, data: bytes) -> bytes:
    """Send bytes, close the sending side, and return the answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        try:
            line.sendall(data)
            line.shutdown(socket.SHUT_WR)
            found = b""
            while part := line.recv(65536):
                found += part
        except OSError:  # refused before all of it was sent
            return b""
    return found


def test_it_listens_on_loopback_alone(place):
    server, _ = serve({}, 0)
    assert server.server_address[0] == "127.0.0.1"
    server.server_close()


@pytest.mark.parametrize("data", RAW, ids=range(len(RAW)))
def test_no_bytes_stop_the_server_or_make_it_obey(place, data):
    found = exchange(place[0], data)
    assert b"\r\n200 " not in found
    assert not found.startswith(b"HTTP/1.1 200")
    assert b"Traceback" not in found
    assert status(*place) == 200


def test_random_bytes_do_not_stop_it_either(place):
    draw = random.Random(5)
    for _ in range(30):
        exchange(place[0], draw.randbytes(draw.randrange(400)) + draw.choice([b"", b"\r\n\r\n"]))
    assert status(*place) == 200


def test_the_body_of_a_stranger_is_not_read(place):
    with socket.create_connection(("127.0.0.1", place[0]), timeout=20) as line:
        line.sendall(b"POST /api/run HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 60000000\r\n\r\n")
        found = line.recv(65536)  # though nothing of the body was sent
    assert found.startswith(b"HTTP/1.1 403")
    assert status(*place) == 200


def test_one_connection_serves_many_requests(place):
    connection = http.client.HTTPConnection("127.0.0.1", place[0], timeout=20)
    for wanted, token in ((200, place[1]), (200, place[1]), (403, "x"), (200, place[1])):
        connection.request("GET", "/api/ops", headers={"X-Poolgrad-Token": token})
        answer = connection.getresponse()
        body = json.loads(answer.read())
        assert answer.status == wanted
        assert ("error" in body) == (wanted != 200)
    connection.close()


def test_the_token_differs_every_time():
    addresses = []
    for _ in range(2):
        server, address = serve({})
        server.server_close()
        addresses.append(parse_qs(urlsplit(address).fragment)["token"][0])
    assert addresses[0] != addresses[1]
    assert min(map(len, addresses)) >= 32


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as on POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "terminate"])
def test_the_command_prints_its_address_serves_and_stops_cleanly(number):
    words = [sys.executable, "-m", "poolgrad.cli", "studio", "--no-browser"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)", line)
        assert found, line
        assert status(int(found[1]), found[2]) == 200
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert "stopped" in out
    assert err == ""


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["nothing.json"], "nothing.json"),
        (["--port", "70000"], "--port"),
        (["--port", "x"], "--port"),
        ([__file__], "test_server.py"),
    ],
)
def test_the_command_refuses_in_one_line(words, why):
    done = subprocess.run([sys.executable, "-m", "poolgrad.cli", "studio", "--no-browser", *words], capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
    assert done.returncode == 2
    assert why in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_taken_port_is_said_to_be_taken():
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(ValueError, match="--port"):
        serve({}, other.getsockname()[1])


# ---- the secret


BROWSER = """#!{python}
import pathlib, sys, time, urllib.parse, urllib.request
here = pathlib.Path(__file__).parent
url = sys.argv[-1]
text = urllib.request.urlopen(url).read().decode() if url.startswith("file:") else url
(here / "seen.txt").write_text(url + "\\n" + text)
time.sleep(60)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/cmdline"), reason="command lines as Linux shows them")
def test_no_command_line_or_environment_of_any_process_holds_the_token(tmp_path):
    browser = tmp_path / "browser"
    browser.write_text(BROWSER.format(python=sys.executable))
    browser.chmod(0o755)
    words = [sys.executable, "-m", "poolgrad", "studio"]
    environment = {**os.environ, "BROWSER": f"{browser} %s", "TMPDIR": str(tmp_path)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        found = re.search(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)", process.stdout.readline())
        assert found
        seen = tmp_path / "seen.txt"
        for _ in range(200):
            if seen.exists() and seen.read_text().count("\n"):
                break
            time.sleep(0.05)
        opened, _, text = seen.read_text().partition("\n")
        lines = everything_that_others_see()
        file = Path(url2pathname(urlsplit(opened).path))
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (file.parent, file) if opened.startswith("file:")]
        for pid in browsers(str(browser)):
            os.kill(pid, signal.SIGKILL)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=20)
    assert err == ""
    assert opened.startswith("file:///")
    assert any(str(browser) in line for line in lines), "the browser was running"
    assert not [line for line in lines if found[2] in line]
    assert f"http://127.0.0.1:{found[1]}/#token={found[2]}" in html.unescape(text)
    assert modes == [0o700, 0o600]
    assert not file.parent.exists()


def everything_that_others_see() -> list[str]:
    """Return the command line of every process."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
    return found


def browsers(name: str) -> list[int]:
    """Return the processes of the browser that this test started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if name.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def test_the_studio_runs_where_no_browser_can_be_opened(tmp_path):
    words = [sys.executable, "-m", "poolgrad", "studio"]
    environment = {**os.environ, "BROWSER": str(tmp_path / "none"), "PATH": str(tmp_path), "DISPLAY": ""}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        found = re.search(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)", process.stdout.readline())
        assert found
        assert status(int(found[1]), found[2]) == 200
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")
