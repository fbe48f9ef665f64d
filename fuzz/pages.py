"""Random requests to the studio's server: damaged graphs, enuSpace pages, pictures, arrays and bodies.

    python fuzz/pages.py --seconds 60 [--jobs 2] [--seed 1 --first 42 --calls 1]

Every answer must be a result or a refusal that says what is wrong, after at most a second of processor time and with at most
200 MB of memory. A failure prints the request and how to repeat it.
"""

from __future__ import annotations

import base64
import io
import json
import random
import resource
import struct
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "fuzz" / "helpers")]

import workers
from damage import NUMBERS, WORDS, damaged, reworded, twisted
from support import rss

from poolgrad._common import png
from poolgrad.graph import service
from poolgrad.graph.blocks import BLOCKS
from poolgrad.studio.routes import App

SECONDS, BYTES = 1.0, 200 * 2**20  # limits of one request
ANSWERS = (200, 400, 404, 409, 413)
TOKEN, PORT = "the-token", 8765
HEADERS = {"Host": f"127.0.0.1:{PORT}", "X-Poolgrad-Token": TOKEN}
ENUSPACE = ROOT / "tests" / "data" / "enuspace"

# ---- files


def picture(draw: random.Random) -> bytes:
    """Return a PNG file with right checksums and any filters, with one fault or none."""
    fault = draw.choice(["none", "none", "lines", "claim", "header", "body", "chunk", "pieces", "raw"])
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
    colour = draw.choice([0, 2, 2, *(channels if fault == "header" else ())])
    width, height = (draw.choice([1, 2, 17, 64, draw.randint(1, 400)]) for _ in range(2))
    kinds = draw.choice([[3], [4], [0, 1, 2], [0, 1, 2, 3, 4], range(6 if fault == "lines" else 5)])
    lines = b"".join(bytes([draw.choice(kinds)]) + draw.randbytes(width * channels[colour]) for _ in range(height))
    if fault == "lines":
        lines += bytes(draw.choice([0, 1, 1000, 2**24]))
    if fault == "claim":
        width, height = (draw.choice([0, 1, 2**14, 2**14 + 1, 2**23, 2**31, 2**32 - 1, width]) for _ in range(2))
    extra = (
        draw.choice([(8, colour, 0, 0, 1), (16, colour, 0, 0, 0), (1, 3, 1, 1, 1)])
        if fault == "header"
        else (8, colour, 0, 0, 0)
    )
    body = zlib.compress(lines, 1)
    body = damaged(draw, body) if fault == "body" else body
    pieces = [body[i : i + 7] for i in range(0, len(body), 7)] if fault == "pieces" else [body]
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, *extra)),
        *((b"IDAT", piece) for piece in pieces),
        (b"IEND", b""),
    ]
    if fault == "chunk":
        strange = draw.choice([b"PLTE", b"tEXt", b"IHDR", b"IEND", b"ABCD", b"tRNS"])
        chunks.insert(draw.randrange(len(chunks)), (strange, draw.randbytes(draw.choice([0, 9, 13]))))
    raw = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in chunks
    )
    return damaged(draw, raw) if fault == "raw" else raw


def array(draw: random.Random) -> bytes:
    """Return a .npy file with a damaged or strange header."""
    dtype = draw.choice(["<f4", ">f8", "<i8", "|u1", "<f2", "<c8", "|b1", "<U3", "<M8[s]", "|V2"])
    shape = tuple(draw.choice([0, 1, 2, 3, 5]) for _ in range(draw.randrange(5)))
    file = io.BytesIO()
    np.save(file, np.zeros(shape, dtype))
    raw = file.getvalue()
    if draw.random() < 0.5:
        header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({draw.choice(NUMBERS)},), }}".encode(
            "utf-8", "replace"
        )
        raw = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(64)
    return damaged(draw, raw) if draw.random() < 0.5 else raw


def enuspace(draw: random.Random) -> dict[str, bytes]:
    """Return a page of enuSpace with wrong numbers, names or bytes."""
    if draw.random() < 0.4:
        whole = json.loads((ENUSPACE / "avgpool.json").read_text("utf-8"))
        return {"p.json": json.dumps(twisted(draw, whole)).encode(draw.choice(["utf-8", "utf-16"]))}
    text = (ENUSPACE / "seed004.svg").read_bytes().decode("utf-16")
    for _ in range(draw.randint(1, 4)):
        parts = text.split('"')
        inside = range(1, len(parts), 2)
        numbered = [i for i in inside if any(letter.isdigit() for letter in parts[i])]
        at = draw.choice(numbered if numbered and draw.random() < 0.8 else inside)
        parts[at] = (
            reworded(draw, parts[at]).replace("<", "").replace("&", "") if draw.random() < 0.8 else draw.choice(WORDS)
        )
        text = '"'.join(parts)
    raw = text.replace("\x00", "").encode(draw.choice(["utf-16", "utf-8"]), "replace")
    raw = damaged(draw, raw) if draw.random() < 0.2 else raw
    return {"p.svg": raw} | ({"p.dat": draw.randbytes(draw.randrange(200))} if draw.random() < 0.7 else {})


# ---- requests

Request = tuple[str, bytes]


def graphs(draw: random.Random) -> dict[str, Any]:
    """Return a page to damage: an example, or one block of any kind with its initial texts."""
    if draw.random() < 0.6:
        return dict(draw.choice(service.examples())["graph"])
    graph = service.new_graph()
    x = {
        "id": "x",
        "op": "Const",
        "text": {"val": "arange(1,33)", "shape": draw.choice(["[1][4][4][2]", "[1][2][4][4][1]"])},
    }
    block = BLOCKS[draw.choice(list(BLOCKS))]
    node = {"id": "y", "op": block.op, "text": {pin.name: pin.default for pin in block.pins if pin.default}}
    wires = [["x.output", f"y.{pin.name}"] for pin in block.pins if pin.kind != "text" and draw.random() < 0.7]
    graph["pages"][0] |= {"nodes": [x, node], "wires": wires}
    return graph


def of_graph(draw: random.Random) -> Request:
    """Return a request to check, run, export or differentiate a damaged graph."""
    graph = graphs(draw)
    whole = {
        "graph": graph,
        "page": None,
        "kind": draw.choice(["json", "python", "html", "npz"]),
        "y": "y.output",
        "x": "x.output",
    }
    route = draw.choice(["/api/run", "/api/run", "/api/check", "/api/export", "/api/gradients"])
    whole = (
        twisted(draw, whole)
        if draw.random() < 0.2
        else {**whole, "graph": twisted(draw, graph, draw.choice([0, 0.9, 1]))}
    )
    body = json.dumps(whole).encode()
    return route, damaged(draw, body) if draw.random() < 0.15 else body


def of_file(draw: random.Random) -> Request:
    """Return a request that uploads a file."""
    if draw.random() < 0.6:
        return "/api/upload?name=" + draw.choice(["a.png", "a.png", "a.png", "a.PNG", "a.npy"]), picture(draw)
    return "/api/upload?name=" + draw.choice(["a.npy", "a.npy", "a.png", "", "a", "%00.npy"]), array(draw)


def of_data(draw: random.Random) -> Request:
    """Return a request with a graph that holds a damaged file under its right hash, or a right one under a wrong hash."""
    import hashlib

    raw, key, op = draw.choice([(picture(draw), "png_base64", "Image"), (array(draw), "npy_base64", "File")])
    ref = f"sha256:{hashlib.sha256(raw).hexdigest()}"
    graph = service.new_graph()
    text = {"file": ref} | (
        {"dtype": draw.choice(["DT_FLOAT", "DT_UINT8", "DT_INT8", "DT_HALF"])} if op == "Image" else {}
    )
    graph["pages"][0]["nodes"] = [{"id": "x", "op": op, "text": text}]
    entry: Any = {key: base64.b64encode(raw).decode()}
    graph["data"] = {
        ref: twisted(draw, {**entry, "name": "a", "more": [1, {"a": 2}]}) if draw.random() < 0.3 else entry
    }
    return draw.choice(["/api/run", "/api/check"]), json.dumps({"graph": graph}).encode()


def of_import(draw: random.Random) -> Request:
    """Return a request that imports files."""
    files = {name: base64.b64encode(raw).decode() for name, raw in enuspace(draw).items()}
    whole: Any = {"files": files}
    return "/api/import", json.dumps(twisted(draw, whole) if draw.random() < 0.1 else whole).encode()


KINDS: dict[str, Callable[[random.Random], Request]] = {
    "graph": of_graph,
    "file": of_file,
    "data": of_data,
    "import": of_import,
}


def drawn(seed: int, number: int) -> tuple[str, Request]:
    """Return a request and its kind."""
    draw = random.Random(f"{seed}:{number}")
    kind = draw.choice(["graph", "graph", "graph", "file", "data", "import", "import"])
    return kind, KINDS[kind](draw)


# ---- running


def wrong(app: App, request: Request, limit: float = SECONDS) -> tuple[int, str]:
    """Return the status of the answer, and a text if the answer is wrong."""
    path, body = request
    before, peak, begin = rss(), _peak(), time.process_time()
    status, _, answer = app("POST", path, HEADERS, body)
    took, after = time.process_time() - begin, _peak()
    if status not in ANSWERS:
        return status, f"status {status}: {answer[:300]!r}"
    if status != 200 and not json.loads(answer).get("error"):
        return status, "a refusal without a reason"
    if took > limit:
        return status, f"{took:.2f} seconds"
    if after > peak and after - before > BYTES:
        return status, f"{(after - before) >> 20} MB"
    return status, ""


def _peak() -> int:
    """Return the largest number of bytes that this process ever had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def run(given: Any, progress: workers.Progress) -> Counter[str]:
    """Send requests until the time is over; count answers by kind."""
    said: list[str] = []
    app = App(TOKEN, PORT, {}, log=said.append)
    app(
        "POST", "/api/upload?name=a.png", HEADERS, png.encode(np.zeros((9, 9, 3), np.uint8))
    )  # import every module that the server imports late
    counts: Counter[str] = Counter()
    for number in workers.cases(given, progress, counts, failures=5):
        kind, request = drawn(given.seed, number)
        counts["calls"] += 1
        said.clear()
        status, text = wrong(app, request)
        if "seconds" in text:  # measure again: other processes may have used the machine's caches
            status, text = wrong(app, request)
        counts[f"{kind} {'served' if status == 200 else 'refused'}"] += 1
        if text:
            counts["failed"] += 1
            print(f"{kind}: {text}\n{''.join(said)[-2000:]}\n{request[0]} {request[1][:300]!r}", flush=True)
            print(f"    python fuzz/pages.py --seed {given.seed} --first {number} --calls 1", flush=True)
    return counts


if __name__ == "__main__":
    sys.exit(workers.main("pages", __doc__ or "", run))
