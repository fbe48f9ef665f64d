"""The server without a socket: the requests that it serves, and those that it refuses."""

from __future__ import annotations

import base64
import gc
import hmac
import io
import json
import pickle
import random
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest
from support import ROOT, python

from poolgrad._common import png
from poolgrad.graph import embedded_files, enuspace, service
from poolgrad.studio import page
from poolgrad.studio.command import opening
from poolgrad.studio.guard import LARGEST_BODY, Refused, Reply
from poolgrad.studio.routes import ROUTES, App, Contents, weight

PORT, TOKEN = 8765, "the-token"
OURS = {"Host": f"127.0.0.1:{PORT}", "X-Poolgrad-Token": TOKEN}
CASES = 200


@pytest.fixture(scope="module")
def app() -> App:
    def never(text: str) -> None:
        raise AssertionError(f"the studio made a mistake:\n{text}")

    return App(TOKEN, PORT, opening(None), log=never)


def ask(
    app: App, path: str, body: Any = None, headers: dict[str, str] | None = None, method: str | None = None
) -> Reply:
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return app(method or ("GET" if body is None else "POST"), path, OURS if headers is None else headers, data)


def said(reply: Reply) -> str:
    text = json.loads(reply[2])["error"]
    assert isinstance(text, str)
    assert text
    return text


def small() -> dict[str, Any]:
    node = {"id": "x", "op": "Const", "text": {"val": "1,2,3,4", "shape": "1,2,2,1", "dtype": "DT_FLOAT"}}
    graph = service.new_graph()
    graph["pages"][0]["nodes"] = [node]
    return graph


def serves(app: App) -> None:
    """Check that the server still does its work."""
    status, _, body = ask(app, "/api/run", {"graph": small(), "page": None})
    assert status == 200
    assert json.loads(body)["nodes"]["x"]["status"] == "ok"


def test_numbers_that_the_page_has_are_left_out(app):
    graph = small()
    full = json.loads(ask(app, "/api/run", {"graph": graph})[2])["nodes"]["x"]["outputs"]["output"]
    again = ask(app, "/api/run", {"graph": graph, "known": [full["ref"]]})
    assert json.loads(again[2])["nodes"]["x"]["outputs"]["output"] == {**full, "values": None}
    other = json.loads(ask(app, "/api/run", {"graph": graph, "known": ["another.output"]})[2])
    assert other["nodes"]["x"]["outputs"]["output"] == full
    for wrong in ("a", 3, {}, [1], [["a"]], None):
        status, _, body = ask(app, "/api/run", {"graph": graph, "known": wrong})
        assert status == 400, wrong
        assert "known: got" in json.loads(body)["error"]


# ---- what is served


def test_the_page_may_load_from_this_server_only(app):
    status, headers, body = ask(app, "/", headers={"Host": f"localhost:{PORT}"})
    assert status == 200
    policy = dict(rule.split(" ", 1) for rule in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert not [source for rule in policy.values() for source in rule.split() if "unsafe" in source or "//" in source]
    assert TOKEN.encode() not in body
    assert b"http" not in body.replace(b"http-equiv", b"")
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_every_module_of_the_import_map_is_served_with_its_type(app):
    for path in json.loads(page.import_map())["imports"].values():
        status, headers, body = ask(app, path)
        assert (status, headers["Content-Type"]) == (200, "text/javascript; charset=utf-8")
        assert body


def test_no_file_of_the_page_names_another_host():
    for name, (content, _) in page.static().items():
        text = content.decode().replace("http://www.w3.org/", "")
        assert "http://" not in text, name
        assert "https://" not in text, name


@pytest.mark.parametrize("path", ["/static/../guard.py", "/static/%2e%2e/guard.py", "/static//etc/passwd", "/static/standalone.html", "/nothing", "//x", "/api/x", "/static/" + "a" * 300])  # fmt: skip
def test_other_paths_lead_nowhere(app, path):
    status, _, _ = reply = ask(app, path)
    assert status == 404
    assert said(reply)


@pytest.mark.parametrize("path", ["//[", "http://[::1", "//]"])
def test_an_address_that_is_none_is_refused(app, path):
    status, _, _ = reply = ask(app, path)
    assert status in (400, 404)
    assert said(reply)
    assert status == 404 or app.refused(path, OURS)


def test_a_graph_runs_and_its_large_contents_need_to_come_only_once(app):
    array = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    file = io.BytesIO()
    np.save(file, array)
    made = json.loads(ask(app, "/api/upload?name=x.npy", file.getvalue())[2])
    graph = {**service.new_graph(), "data": {key: {} for key in made["data"]}}
    graph["pages"][0]["nodes"] = [{"id": "x", **made["node"]}]
    done = json.loads(ask(app, "/api/run", {"graph": graph, "page": None})[2])
    sent = done["nodes"]["x"]["outputs"]["output"]
    assert np.array_equal(np.frombuffer(base64.b64decode(sent["values"]["b64"]), "<f4").reshape(sent["shape"]), array)
    again = json.loads(ask(app, f"/api/tensor?ref={sent['ref']}")[2])
    assert again["values"] == sent["values"]
    graph["data"] = {"sha256:" + "0" * 64: {}}
    assert ask(app, "/api/run", {"graph": graph, "page": None})[0] == 409


# ---- who may ask


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"Host": f"127.0.0.1:{PORT}"}, "no token"),
        ({**OURS, "X-Poolgrad-Token": "the-tokem"}, "wrong token"),
        ({**OURS, "X-Poolgrad-Token": "é\udcff"}, "wrong token"),
        ({**OURS, "Host": "evil.example"}, "Host"),
        ({**OURS, "Host": f"127.0.0.1.evil.example:{PORT}"}, "Host"),
        ({**OURS, "Host": "127.0.0.1:1"}, "Host"),
        ({"X-Poolgrad-Token": TOKEN}, "Host"),
        ({**OURS, "Origin": "http://evil.example"}, "Origin"),
        ({**OURS, "Origin": "null"}, "Origin"),
        ({**OURS, "Origin": f"https://127.0.0.1:{PORT}"}, "Origin"),
        ({**OURS, "Sec-Fetch-Site": "cross-site"}, "another site"),
    ],
)
@pytest.mark.parametrize("path", sorted(ROUTES))
def test_a_request_of_someone_else_is_refused_on_every_route(app, path, headers, why):
    status, _, _ = reply = ask(app, path, None if ROUTES[path][0] == "GET" else {"graph": small()}, headers)
    assert status == 403
    assert why in said(reply)


def test_a_foreign_host_does_not_even_get_the_page(app):
    assert ask(app, "/", headers={"Host": "evil.example"})[0] == 403


def test_a_link_from_elsewhere_leads_to_the_page_which_knows_no_secret(app):
    status, headers, _ = ask(app, "/", headers={"Host": f"127.0.0.1:{PORT}", "Sec-Fetch-Site": "cross-site"})
    assert status == 200
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


def test_a_request_of_the_page_itself_is_served(app):
    headers = {**OURS, "Origin": f"http://127.0.0.1:{PORT}", "Sec-Fetch-Site": "same-origin"}
    assert ask(app, "/api/run", {"graph": small()}, headers)[0] == 200


@pytest.mark.parametrize("path", ["/", *sorted(ROUTES)])
@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "get", "\x00", "POST" * 50])
def test_other_methods_are_refused(app, path, method):
    assert ask(app, path, method=method)[0] == 405


def test_sizes_have_limits(app):
    assert ask(app, "/api/run", bytes(LARGEST_BODY + 1))[0] == 413
    assert ask(app, "/api/ops?" + "a" * 5000)[0] == 414
    serves(app)


# ---- what is malformed


def pickled() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([{"a": 1}, print], object), allow_pickle=True)
    return file.getvalue()


@pytest.mark.parametrize("content", [pickled(), pickle.dumps([1, 2])], ids=["in an array", "alone"])
def test_a_pickle_is_not_loaded(app, content, monkeypatch):
    def loads(*_: Any, **__: Any) -> None:
        raise AssertionError("something was unpickled")

    monkeypatch.setattr(pickle, "load", loads)
    monkeypatch.setattr(pickle, "loads", loads)
    status, _, _ = reply = ask(app, "/api/upload?name=x.npy", content)
    assert status == 400
    assert "x.npy" in said(reply) or "npy" in said(reply)
    serves(app)


def broken(draw: random.Random, good: bytes) -> bytes:
    """Return the bytes cut, flipped, doubled or with others strewn in."""
    data = bytearray(good)
    for _ in range(draw.randint(1, 6)):
        at = draw.randrange(len(data) + 1)
        kind = draw.randrange(5)
        if kind == 0:
            del data[at:]
        elif kind == 1 and data:
            data[at % len(data)] ^= 1 << draw.randrange(8)
        elif kind == 2:
            data[at:at] = draw.choice(
                [b"\x00", b"[" * 40, b"{}", b"\xff\xfe", b"1e999", b"-", b'"', b"NaN", draw.randbytes(8)]
            )
        elif kind == 3:
            data[at:at] = data[: draw.randrange(40)]
        else:
            data[at : at + draw.randrange(20)] = b""
    return bytes(data)


def values(draw: random.Random, depth: int = 0) -> Any:
    """Return any JSON value, hostile ones preferred."""
    plain = [None, True, -1, 0, 2**63, 1e308, "", "x", "1,2", "SAME", "\x00", "a" * 5000, "x.output", "sha256:", "../x", "<script>", "é"]  # fmt: skip
    if depth > 2 or draw.random() < 0.5:
        return draw.choice(plain)
    if draw.random() < 0.5:
        return [values(draw, depth + 1) for _ in range(draw.randrange(4))]
    return {str(draw.choice(plain)): values(draw, depth + 1) for _ in range(draw.randrange(4))}


def twisted(draw: random.Random, value: Any) -> Any:
    """Return a value with one part of it, somewhere, replaced."""
    if isinstance(value, (dict, list)) and value and draw.random() < 0.8:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = draw.choice(keys)
        copy = dict(value) if isinstance(value, dict) else list(value)
        if draw.random() < 0.2:
            del copy[key]
        else:
            copy[key] = twisted(draw, value[key])
        return copy
    return values(draw)


def generated(number: int) -> tuple[str, bytes]:
    """Return one malformed request, by its number."""
    draw = random.Random(number)
    graph = draw.choice(service.examples())["graph"]
    file = io.BytesIO()
    np.save(file, np.arange(12.0).reshape(3, 4))
    files = {
        "x.npy": file.getvalue(),
        "x.png": png.encode(np.zeros((3, 4, 3), np.uint8)),
        "x.json": json.dumps(graph).encode(),
    }
    kind = number % 4
    if kind == 0:
        name = draw.choice(["x.npy", "x.png"])
        return f"/api/upload?name={draw.choice([name, name, 'x.exe', '', '%00.npy'])}", broken(draw, files[name])
    route = draw.choice(["/api/run", "/api/check", "/api/export", "/api/gradients"])
    whole = {"graph": graph, "page": None, "kind": "json", "y": "dx.output", "x": "x.output"}
    if kind == 1:
        return route, json.dumps(twisted(draw, whole)).encode()
    if kind == 2:
        return route, broken(draw, json.dumps(whole).encode())
    content = base64.b64encode(broken(draw, draw.choice([files["x.json"], b"<svg xmlns='a'><use/></svg>"]))).decode()
    packed = {"files": {draw.choice(["a.json", "a.svg", "a.dat", "a", "a.exe"]): content}}
    return "/api/import", json.dumps(packed if draw.random() < 0.7 else twisted(draw, packed)).encode()


@pytest.mark.parametrize("number", range(CASES))
def test_whatever_comes_the_answer_is_a_result_or_a_clear_refusal(app, number):
    path, body = generated(number)
    status, headers, answer = ask(app, path, body)
    assert status in (200, 400, 409, 413), answer[:300]
    if status != 200:
        assert said((status, headers, answer))
    serves(app)


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"graph":NaN}', b'{"graph":1e99999}', b'{"graph":' + b"9" * 5000 + b"}"])  # fmt: skip
def test_what_is_no_json_object_is_said_to_be_none(app, body):
    status, _, _ = reply = app("POST", "/api/run", OURS, body)
    assert status == 400
    assert said(reply)


# ---- caches, and requests that wait for others


def many(number: int) -> Any:
    """Return contents that are no text: numbers, lists, objects, deep and wide."""
    kind, size = number % 5, 60_000
    if kind == 0:
        return [number + i + 0.5 for i in range(size)]
    if kind == 1:
        return [[] for _ in range(size)]
    if kind == 2:
        return {f"{number}-{i}": i for i in range(size // 2)}
    if kind == 3:
        return [{"a": [number, {"b": None}]} for _ in range(size // 4)]
    deep: Any = number
    for _ in range(200):
        deep = {"deep": deep, "wide": [1.5] * 100}
    return deep


def test_contents_of_any_kind_are_weighed_whole():
    for number in range(5):
        value = many(number)
        gc.collect()
        tracemalloc.start()
        copy = json.loads(json.dumps(value))
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert 0.7 * held < weight(copy) < 3 * held + 1000, number  # what occurs twice counts twice


def test_contents_of_any_kind_are_forgotten_when_there_are_too_many(monkeypatch):
    app = App(TOKEN, PORT, {})
    app.contents = Contents(2_000_000)
    for number in range(60):
        graph = {**small(), "data": {f"k{number}-{i}": {"a": many(number), "name": "x"} for i in range(3)}}
        assert ask(app, "/api/check", {"graph": graph})[0] == 200
        assert app.contents.held <= 2_000_000
        assert app.contents.held == sum(app.contents.weights.values())
        assert app.contents.entries.keys() == app.contents.weights.keys()
    assert app.contents.entries


MEMORY = """
import json, sys
from support import rss
from test_routes import many, small, ask
from poolgrad.studio.routes import App
from poolgrad.graph import service
app = App("the-token", 8765, {})
def request(number):
    data = {f"k{number}": {"a": [many(5 * number + i) for i in range(5)]}}
    assert ask(app, "/api/check", {"graph": {**small(), "data": data}})[0] == 200
for number in range(12): request(number)
before = rss()
app.contents.most = app.contents.held
for number in range(12, 42): request(number)
print((rss() - before) >> 20)
"""


def test_thirty_requests_with_contents_of_any_kind_take_no_more_memory_than_the_limit():
    done = python("-c", f"import sys; sys.path.insert(0, {str(ROOT / 'tests' / 'studio')!r})\n{MEMORY}")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 100


def test_entries_that_are_sent_again_are_counted_once(app):
    contents = Contents(10_000)
    for _ in range(100):
        contents.complete({"data": {"k": {"npy_base64": "a" * 5000}}})
    assert contents.held == contents.weights["k"] < 6000
    assert contents.complete({"data": {"k": {}}})["data"]["k"]["npy_base64"] == "a" * 5000
    contents.complete({"data": {"l": {"npy_base64": "b" * 7000}}})
    with pytest.raises(Refused, match="the contents of k are no longer here"):
        contents.complete({"data": {"k": {}}})


def photograph(side: int) -> bytes:
    """Return a PNG file that takes long to decode."""
    return png.encode(np.random.default_rng(0).integers(0, 256, (side, side, 3), np.uint8).cumsum(1).astype(np.uint8))


@pytest.mark.parametrize("what", ["upload", "run", "check", "import"])
def test_a_file_is_decoded_while_others_run(what, monkeypatch):
    app = App(TOKEN, PORT, {})
    raw = photograph(20)
    made = service.embed("x.png", raw)
    graph = {**service.new_graph(), "data": made["data"]}
    graph["pages"][0]["nodes"] = [{"id": "x", **made["node"]}]
    decoding, go_on = threading.Event(), threading.Event()

    def slow(data: bytes) -> Any:
        decoding.set()
        assert go_on.wait(20)
        return np.zeros((20, 20, 3), np.uint8)

    def loads(*args: Any, **more: Any) -> Any:
        decoding.set()
        assert go_on.wait(20)
        return {}

    monkeypatch.setattr(embedded_files, "_KEPT", {})
    monkeypatch.setattr(png, "decode", slow)
    if what == "import":
        monkeypatch.setattr(enuspace, "_listed", lambda found: loads() or enuspace._refuse("nothing", "a page"))
    calls = {
        "upload": ("/api/upload?name=x.png", raw),
        "run": ("/api/run", {"graph": graph}),
        "check": ("/api/check", {"graph": graph}),
        "import": ("/api/import", {"files": {"a.json": base64.b64encode(b'{"object": []}').decode()}}),
    }
    answers = []
    slow_one = threading.Thread(target=lambda: answers.append(ask(app, *calls[what])[0]))
    slow_one.start()
    assert decoding.wait(20)
    others = threading.Thread(target=serves, args=(app,), daemon=True)
    others.start()
    others.join(10)
    waited = others.is_alive()
    go_on.set()
    slow_one.join(20)
    assert not waited
    assert answers == [400 if what == "import" else 200]


def test_a_page_may_not_ask_for_more_than_the_server_has(app):
    graph = service.new_graph()
    graph["pages"][0]["nodes"] = [{"id": f"r{i}", "op": "Random", "text": {"shape": "60000000"}} for i in range(5)]
    status, _, body = ask(app, "/api/run", {"graph": graph})
    assert status == 200
    found = json.loads(body)
    assert {p["node"] for p in found["problems"]} == {"r1", "r2", "r3", "r4"}
    assert "wanted at most 268435456 bytes on a page" in found["problems"][0]["sentence"]


@pytest.mark.parametrize(
    "body", [b"[" + b"[]," * 2**20, b'{"a":' * 2**20, b"1," * 2**21], ids=["lists", "objects", "numbers"]
)
def test_a_body_of_too_many_values_is_not_even_parsed(app, body, monkeypatch):
    monkeypatch.setattr("poolgrad.studio.guard.json.loads", None)
    status, _, _ = reply = app("POST", "/api/run", OURS, body)
    monkeypatch.undo()
    assert status == 413
    assert "commas, colons and brackets" in said(reply)


def pooled(shape: str) -> dict[str, Any]:
    """Return a graph of a random array and its maxima."""
    graph = service.new_graph()
    graph["pages"][0] |= {
        "nodes": [
            {"id": "x", "op": "Random", "text": {"shape": shape, "dist": "uniform(0,1)", "seed": "1", "dtype": "DT_FLOAT"}},
            {"id": "y", "op": "MaxPool", "text": {"ksize": "1,3,3,1", "strides": "1,2,2,1", "padding": "VALID"}},
        ],
        "wires": [["x.output", "y.input"]],
    }  # fmt: skip
    return graph


def unpacked(packed: dict[str, str]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed["b64"]), packed["type"])


def test_hits_of_single_windows_are_those_of_the_whole(app):
    """A page with too many links gets none, and asks for a few; they agree with the numbers themselves."""
    ran = json.loads(ask(app, "/api/run", {"graph": pooled("1,700,700,1"), "page": "page"})[2])
    links = ran["nodes"]["y"]["links"]
    assert links["hits"]["ask"]
    assert ran["nodes"]["x"]["outputs"]["output"]["values"] is None
    assert max(ran["nodes"]["x"]["outputs"]["output"]["preview"]["shape"]) <= 96
    windows = [0, 348, 349, 100_000]
    found = json.loads(ask(app, "/api/hits", {"ref": links["hits"]["ref"], "windows": windows})[2])
    ptr, cell = unpacked(found["ptr"]), unpacked(found["cell"])
    ref = ran["nodes"]["x"]["outputs"]["output"]["ref"]
    x = np.load(io.BytesIO(ask(app, f"/api/tensor?ref={ref}&as=npy")[2]))[0, :, :, 0]
    for k, window in enumerate(windows):
        row, column = divmod(window, 349)
        part = x[2 * row : 2 * row + 3, 2 * column : 2 * column + 3]
        down, across = np.argwhere(part == part.max())[0]
        assert cell[ptr[k]] == (2 * row + down) * 700 + 2 * column + across


@pytest.mark.parametrize("windows", [None, 3, [-1], [10**9], ["0"], [True], [0.5], list(range(100)) * 2000])
def test_windows_that_are_none_are_refused(app, windows):
    ran = json.loads(ask(app, "/api/run", {"graph": pooled("1,700,700,1"), "page": "page"})[2])
    ref = ran["nodes"]["y"]["links"]["hits"]["ref"]
    reply = ask(app, "/api/hits", {"ref": ref, "windows": windows})
    assert reply[0] == 400
    assert "windows" in said(reply)
    assert ask(app, "/api/hits", {"ref": "none.hits", "windows": [0]})[0] == 400


def test_a_cancelled_run_stops_before_its_next_block(app):
    assert ask(app, "/api/cancel", {"ticket": "mine"})[0] == 200
    reply = ask(app, "/api/run", {"graph": pooled("1,8,8,1"), "page": "page", "ticket": "mine"})
    assert reply[0] == 410
    assert "cancelled before block x" in said(reply)
    assert ask(app, "/api/run", {"graph": pooled("1,8,8,1"), "page": "page", "ticket": "another"})[0] == 200
    assert ask(app, "/api/cancel", {"ticket": 7})[0] == 400


def test_the_server_proves_that_it_knows_the_token(app):
    wanted = hmac.new(TOKEN.encode(), b"abc", "sha256").hexdigest()
    assert json.loads(ask(app, "/api/prove?nonce=abc")[2]) == {"proof": wanted}
    assert ask(app, "/api/prove")[0] == ask(app, f"/api/prove?nonce={'a' * 101}")[0] == 400
