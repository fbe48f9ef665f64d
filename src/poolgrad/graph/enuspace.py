"""Import pages of enuSpace for TensorFlow: its .svg with the .dat beside it, or the .json that its plug-in runs.

A page is XML in UTF-16: a block is `<use xlink:href="#MaxPool">` with a `<pg-set-pin>` per pin, a wire is a `<pg-link>`. Its run file
lists the same as `object`s with `input`s. The import leaves out results saved with the page, because they go stale. A session
block becomes the page's list of fetched outputs. The notes list everything that a graph cannot hold.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import PurePath
from typing import Any, NoReturn

import numpy as np

from .._common.errors import short_repr
from . import embedded_files, literals, text
from .blocks import BLOCKS, WIRED
from .model import FORMAT, MOST_NODES, Graph, GraphError, Node, Page, too_many
from .text import TextError

_MOST_BYTES = 2**26
_SAME = {"Const_ex": "Const", "Input": "Const", "Tensor": "Const"}
_TYPES = {"float": "float32", "double": "float64", "int": "int32"}
_MOST_MARKS = 2**19  # elements and attributes of a page's XML; this many can take 150 MB
_MOVED = re.compile(r"translate\(([^()]*)\)?")
_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_FARTHEST = 1e9


@dataclass
class _Pin:
    name: str
    value: str = ""
    shape: str = ""
    type: str = ""
    place: int | None = None  # offset of its bytes in the .dat file


@dataclass
class _Block:
    id: str
    op: str
    pins: list[_Pin] = field(default_factory=list)
    at: tuple[float, float] | None = None


_Link = tuple[str, str, str, str]


def load(given: Mapping[str, bytes]) -> tuple[Graph, list[str]]:
    """Return the graph in these files, and notes on what the import left out."""
    by_kind = {PurePath(name.replace("\\", "/")).suffix.lower(): name for name in given}
    main = by_kind.get(".svg") or by_kind.get(".json")
    if main is None or len(given) > 2 or (len(given) == 2 and ".dat" not in by_kind):
        names = ", ".join(map(short_repr, given)) or "no file"
        _refuse(names, "one .json, or one .svg with its .dat")
    if len(given[main]) > _MOST_BYTES:
        _refuse(f"{len(given[main])} bytes", f"at most {_MOST_BYTES}")
    name = PurePath(main.replace("\\", "/")).stem
    if main == by_kind.get(".svg"):
        return _Importer(name, given.get(by_kind.get(".dat", ""), b"")).graph(*_drawn(given[main]))
    plain = _decoded(given[main])
    many = too_many(plain)
    if many:
        _refuse(*many.split(", wanted "))
    try:
        found = json.loads(plain)
    except (ValueError, RecursionError) as error:
        _refuse(short_repr(str(error), 100), "JSON")
    if isinstance(found, dict) and found.get("format") == FORMAT:
        return Graph.from_json(plain), []
    return _Importer(name, given.get(by_kind.get(".dat", ""), b"")).graph(*_listed(found))


def _refuse(got: str, wanted: str, place: str = "") -> NoReturn:
    raise GraphError(f"import: {place}{': ' if place else ''}got {got}, wanted {wanted}")


def _decoded(raw: bytes) -> str:
    code = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return raw.decode(code)
    except UnicodeDecodeError as error:
        _refuse(f"bytes that are no {code} ({error.reason})", "a text in UTF-16 or UTF-8")


# ---- the two kinds of files


def _drawn(raw: bytes) -> tuple[list[_Block], list[_Link]]:
    """Return the blocks and links of a page."""
    plain = _decoded(raw)
    if "<!DOCTYPE" in plain or "<!ENTITY" in plain:
        _refuse("XML that declares entities", "a page without them")
    marks = plain.count("<") + plain.count("=")
    if marks > _MOST_MARKS:
        _refuse(f"{marks} elements and attributes", f"at most {_MOST_MARKS}")
    try:
        root = ET.fromstring(re.sub(r"^\s*<\?xml[^>]*\?>", "", plain))
    except ET.ParseError as error:
        _refuse(f"XML with an error ({error})", "a page of enuSpace")
    blocks, links = [], []
    for element in root.iter():
        kind = element.tag.rpartition("}")[2]
        if kind == "use":
            blocks.append(_used(element))
        elif kind == "pg-link":
            ends = (element.get(key, "").lstrip("#") for key in ("from-id", "param-from", "to-id", "param-to"))
            links.append(tuple(ends))
    return blocks, links  # type: ignore[return-value]


def _used(element: ET.Element) -> _Block:
    named = next((v for k, v in element.attrib.items() if k.rpartition("}")[2] == "href"), "")
    name = element.get("id", "")
    block = _Block(name, named.lstrip("#"), [], _place(name, element.get("transform", "")))
    for child in element:
        if child.tag.rpartition("}")[2] == "pg-set-pin":
            pin = child.get("variable", "").lstrip("#")
            place = _byte(f"{short_repr(name)}: {short_repr(pin)}", child)
            block.pins.append(
                _Pin(pin, child.get("value", ""), child.get("shape", ""), child.get("var-type", ""), place)
            )
    return block


def _place(name: str, transform: str) -> tuple[float, float] | None:
    """Return the position of a block: the first translate(x, y) of its transform. As in SVG, y defaults to 0."""
    moved = _MOVED.search(transform)
    if not moved:
        return None
    words = re.split(r"\s*,\s*|\s+", moved.group(1).strip())
    numbers = [float(word) for word in words if _NUMBER.fullmatch(word)]
    if len(words) not in (1, 2) or len(numbers) != len(words) or not all(abs(n) < _FARTHEST for n in numbers):
        _refuse(short_repr(transform), "translate(x, y) with two numbers", f"{short_repr(name)}: transform")
    return numbers[0], numbers[1] if len(numbers) == 2 else 0.0


def _byte(place: str, pin: ET.Element) -> int | None:
    """Return the byte of the .dat file at which the cells of a pin begin, or None if it names none."""
    for key, word in pin.attrib.items():
        if ("pos" in key or "offset" in key) and word.strip():
            if not re.fullmatch("[0-9]{1,11}", word.strip()):
                _refuse(short_repr(word), "a number of bytes", f"{place}: {short_repr(key)}")
            return int(word)
    return None


def _listed(found: Any) -> tuple[list[_Block], list[_Link]]:
    """Return the blocks and links of a run file."""
    objects = found.get("object") if isinstance(found, dict) else None
    if not isinstance(objects, list):
        _refuse(short_repr(found), f'"format": {FORMAT!r}, or the list "object" of an enuSpace run file')
    blocks: list[_Block] = []
    links: list[_Link] = []
    for entry in objects:
        if not isinstance(entry, dict) or not isinstance(entry.get("input", []), list):
            _refuse(short_repr(entry), 'objects with "symbol-name", "id" and "input"')
        block = _Block(_word(entry, "id"), _word(entry, "symbol-name").lstrip("#"))
        blocks.append(block)
        for pin in entry.get("input", []):
            if not isinstance(pin, dict):
                _refuse(short_repr(pin), 'inputs with "pin-name"')
            name = _word(pin, "pin-name")
            kind = _word(pin, "pin-datatype") or _word(pin, "pin-type")
            block.pins.append(_Pin(name, _word(pin, "pin-initial"), _word(pin, "pin-shape"), kind))
            if _word(pin, "in-symbol-id"):
                links.append((_word(pin, "in-symbol-id"), _word(pin, "in-symbol-pin-name"), block.id, name))
    return blocks, links


def _word(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key, "")
    return value if isinstance(value, str) else json.dumps(value)


# ---- blocks and links to a graph


class _Importer:
    def __init__(self, name: str, held: bytes) -> None:
        self.page = Page(name if name.isprintable() and name.strip() else "page")
        self.held, self.out, self.notes = held, Graph([self.page]), list[str]()
        self.names: dict[str, str] = {}
        self.sessions: set[str] = set()

    def graph(self, blocks: list[_Block], links: list[_Link]) -> tuple[Graph, list[str]]:
        if not blocks:
            _refuse("a page without blocks", "a page of enuSpace")
        if len(blocks) > MOST_NODES:
            _refuse(f"{len(blocks)} blocks", f"at most {MOST_NODES}")
        for block in blocks:
            self._block(block)
        for link in links:
            self._link(link)
        # Read the graph back from JSON, so that an import passes the same checks.
        return Graph.from_json(self.out.to_json()), self.notes

    def _block(self, block: _Block) -> None:
        if block.op == "ClientSession":
            self.sessions.add(block.id)
            return
        op = _SAME.get(block.op, block.op)
        name = self.page.fresh(block.id or op)
        if block.id in self.names:
            self.notes.append(f"{block.id}: two blocks have this id; the second is {name}")
        self.names[block.id] = name
        node = Node(name, op, {}, block.at)
        self.page.nodes[name] = node
        if op not in BLOCKS:
            self.notes.append(f"{name}: there is no block {short_repr(op)} here; it is kept, but does not run")
            return
        for pin in block.pins:
            self._pin(node, pin)

    def _pin(self, node: Node, pin: _Pin) -> None:
        """Set a pin's text; a Const keeps shape and type beside its cells."""
        block = BLOCKS[node.op]
        if pin.name == "scope" or pin.name.startswith("result_") or pin.name in block.outputs:
            return
        found = block.pin(pin.name)
        if found is None:
            if pin.value.strip():
                self.notes.append(
                    f"{node.id}: {pin.name}: {node.op} has no such pin; {short_repr(pin.value, 40)} is left out"
                )
            return
        if found.kind == WIRED:
            return
        if node.op == "Const" and pin.name == "val":
            self._cells(node, pin)
        elif pin.value.strip():
            node.text[pin.name] = pin.value

    def _cells(self, node: Node, pin: _Pin) -> None:
        dtype = _TYPES.get(pin.type) or self._dtype(pin.type)
        node.text.setdefault("dtype", text.enumerator(dtype))
        if pin.shape.strip():
            node.text["shape"] = pin.shape
        if pin.place is None:
            node.text["val"] = pin.value
            return
        kind = literals.numpy_type(dtype)
        try:
            count = prod(text.shape(pin.shape))
            array = np.frombuffer(self.held, kind, count, pin.place).reshape(text.shape(pin.shape))
        except (TextError, ValueError, OverflowError):
            room = f"{len(self.held)} bytes of data"
            self.notes.append(
                f"{node.id}: its cells, {short_repr(pin.shape)} at byte {pin.place}, are not in the {room}"
            )
            return
        ref, entry = embedded_files.embed_array(np.array(array))
        self.out.data[ref] = entry
        node.text["val"] = ref

    def _dtype(self, name: str) -> str:
        try:
            return text.dtype(name)
        except TextError:
            return "float32"

    def _link(self, link: _Link) -> None:
        giver, out, taker, pin = link
        if taker in self.sessions and giver in self.names:
            if pin.startswith("run"):
                self.page.fetch.append(f"{self.names[giver]}.{out or 'output'}")
            return
        if giver not in self.names or taker not in self.names:
            self.notes.append(
                f"a wire from {short_repr(giver)} to {short_repr(taker)} ends at no block; it is left out"
            )
            return
        if pin != "scope" and all(map(str.isidentifier, (out, pin))):
            self.page.wires.append((f"{self.names[giver]}.{out}", f"{self.names[taker]}.{pin}"))
