"""Read and write pages of blocks and wires as JSON: check every field, write in a fixed order, keep unknown fields."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from .._common.errors import short_repr

FORMAT, VERSION = "poolgrad-graph", 1
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
MOST_NODES = 10_000  # of a page
MOST_WIRES = 50_000  # of a page; also outputs that it fetches
MOST_PAGES = 50_000
MOST_MARKS = 2**20  # commas, colons and opening brackets of a JSON text; this many values can take 150 MB
LONGEST_TEXT = 2**20  # characters of one text of a block
MOST_TEXT = 2**21  # characters of all texts of a page
_NEAR = 100  # numbers tried one by one for an unused name

Json = dict[str, Any]
Edit = dict[str, Any]


@dataclass(frozen=True)
class Repair:
    """A change of a page that may fix a problem.

    Attributes
    ----------
    label : str
        A few words about the change.
    edits : tuple of dict
        The edits, as data.
    """

    label: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class PageProblem:
    """A problem of a page: where it is, what came, what was wanted.

    Attributes
    ----------
    node, pin : str or None
        The block and its pin; None for a problem of the page.
    got, expected : str
        The received and the expected value.
    at, length : int
        Position and length of the wrong part of the pin's text; `at` is None if no text is wrong.
    expected_shape, got_shape : tuple of int or None
        The two shapes, if a shape is wrong.
    fix : str or None
        A corrected text of the pin.
    repair : Repair or None
        A change of the page that may fix the problem.

    Examples
    --------
    >>> print(PageProblem("pool", "ksize", "'1,,2'", "an integer", at=2))
    pool: ksize, character 3: got '1,,2', wanted an integer
    """

    node: str | None
    pin: str | None
    got: str
    expected: str
    at: int | None = None
    length: int = 0
    expected_shape: tuple[int, ...] | None = None
    got_shape: tuple[int, ...] | None = None
    fix: str | None = None  # a corrected text of the pin
    repair: Repair | None = None

    def __str__(self) -> str:
        place = ": ".join(part for part in (self.node, self.pin) if part)
        where = "" if self.at is None else f", character {self.at + 1}"
        return f"{place or 'page'}{where}: got {self.got}, wanted {self.expected}"


class GraphError(ValueError):
    """A graph that cannot be read or run.

    Parameters
    ----------
    message : str
        The whole message.
    problems : sequence of PageProblem
        The reasons, one by one.
    """

    def __init__(self, message: str, problems: Sequence[PageProblem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


def refuse(place: str, got: object, wanted: str) -> NoReturn:
    """Refuse a malformed graph: raise GraphError."""
    raise GraphError(f"graph: {place}: got {got if isinstance(got, str) else short_repr(got)}, wanted {wanted}")


@dataclass
class Node:
    """A block on a page. The page holds its wires."""

    id: str
    op: str
    text: dict[str, str] = field(default_factory=dict)
    at: tuple[float, float] | None = None
    extra: Json = field(default_factory=dict)

    def to_dict(self) -> Json:
        """Return the JSON object."""
        place = {} if self.at is None else {"at": list(self.at)}
        return {**self.extra, **place, "id": self.id, "op": self.op, "text": dict(self.text)}


Wire = tuple[str, str]


@dataclass
class Page:
    """A named set of blocks and wires: a scope."""

    name: str = "page"
    nodes: dict[str, Node] = field(default_factory=dict)
    wires: list[Wire] = field(default_factory=list)
    fetch: list[str] = field(default_factory=list)
    extra: Json = field(default_factory=dict)

    def to_dict(self) -> Json:
        """Return the JSON object."""
        nodes = [node.to_dict() for node in self.nodes.values()]
        return {**self.extra, "name": self.name, "nodes": nodes, "wires": [list(w) for w in self.wires],
                "fetch": list(self.fetch)}  # fmt: skip

    def into(self, node: str, pin: str) -> str | None:
        """Return the source wired into a pin, as `node.pin`."""
        return next((source for source, target in self.wires if target == f"{node}.{pin}"), None)

    def fresh(self, name: str) -> str:
        """Return an unused block name: this one, or this one with a number."""
        name = re.sub(r"\W", "_", name, flags=re.ASCII)[:90] or "node"
        name = name if IDENTIFIER.fullmatch(name) else f"n{name}"
        if name not in self.nodes:
            return name
        for i in range(1, _NEAR):
            if f"{name}_{i}" not in self.nodes:
                return f"{name}_{i}"
        low, high = _NEAR - 1, _NEAR  # bisect if thousands of blocks share a name: low is taken, high is free
        while f"{name}_{high}" in self.nodes:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if f"{name}_{middle}" in self.nodes else (low, middle)
        return f"{name}_{high}"


@dataclass(frozen=True)
class Limits:
    """Limits on the work of a page that comes from outside. The studio's server sets limits; your own scripts have none."""

    nbytes: int  # bytes of all arrays of a page
    cells: int  # cells that all windows of a block read
    links: int  # cells of all windows of a page whose links are listed


@dataclass
class Graph:
    """A set of pages, with the arrays and pictures that they embed.

    Parameters
    ----------
    pages : list of Page
        The pages. Default: one empty page.
    data : dict
        Embedded files by the hash of their bytes.
    extra : dict
        Fields of the file that this version does not know; they are written back.
    limits : Limits, optional
        Limits on the work of a page; not part of the file.

    Examples
    --------
    >>> graph = Graph()
    >>> Graph.from_json(graph.to_json()) == graph
    True
    """

    pages: list[Page] = field(default_factory=lambda: [Page()])
    data: dict[str, Json] = field(default_factory=dict)
    extra: Json = field(default_factory=dict)
    limits: Limits | None = field(default=None, compare=False, repr=False)  # not part of the file

    def page(self, name: str | None = None) -> Page:
        """Return a page.

        Parameters
        ----------
        name : str, optional
            The name of the page. Default: the first page.

        Returns
        -------
        Page
            The page itself, not a copy.

        Raises
        ------
        GraphError
            If no page has that name.
        """
        if name is None:
            return self.pages[0]
        for page in self.pages:
            if page.name == name:
                return page
        refuse("page", repr(name), " or ".join(repr(page.name) for page in self.pages[:8]))

    def only(self, name: str | None = None) -> Graph:
        """Return a graph of one page and the embedded files that its blocks name.

        Parameters
        ----------
        name : str, optional
            The name of the page. Default: the first page.

        Returns
        -------
        Graph
            A graph that shares the page and its files with this one, and holds nothing else.

        Raises
        ------
        GraphError
            If no page has that name.
        """
        page = self.page(name)
        texts = (text for node in page.nodes.values() for text in node.text.values())
        named = {found for text in texts for found in _HASH.findall(text)}
        data = {key: entry for key, entry in self.data.items() if key in named}
        return Graph([page], data, self.extra, self.limits)

    def to_dict(self) -> Json:
        """Return the JSON object."""
        return {**self.extra, "format": FORMAT, "version": VERSION, "data": self.data,
                "pages": [page.to_dict() for page in self.pages]}  # fmt: skip

    def to_json(self) -> str:
        """Return JSON text with sorted keys and a block per line, so that versions compare well."""
        return _text(self.to_dict())

    @staticmethod
    def from_json(text: str | bytes | Json) -> Graph:
        """Read a graph from JSON.

        Parameters
        ----------
        text : str, bytes or dict
            The JSON, or the object that it stands for.

        Returns
        -------
        Graph
            The graph. Unknown fields are kept; blocks are not checked.

        Raises
        ------
        GraphError
            If a field is missing, wrong or too large; the message names it.
        """
        return _read(text if isinstance(text, dict) else _loads(text))


# ---- writing


def _line(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True)


def _listed(values: Sequence[Any], indent: str) -> str:
    return "[" + "".join(f"{',' if i else ''}\n{indent}{_line(v)}" for i, v in enumerate(values)) + "]"


def _page_text(page: Json) -> str:
    parts = {key: _listed(page[key], "    ") if key in ("nodes", "wires") else _line(page[key]) for key in page}
    return "  {" + ",\n   ".join(f"{_line(key)}: {parts[key]}" for key in sorted(parts)) + "}"


def _text(graph: Json) -> str:
    parts = {key: _line(value) for key, value in graph.items()}
    parts["pages"] = "[\n" + ",\n".join(map(_page_text, graph["pages"])) + "]"
    data = [f"  {_line(key)}: {_line(graph['data'][key])}" for key in sorted(graph["data"])]
    parts["data"] = "{\n" + ",\n".join(data) + "}" if data else "{}"
    return "{" + ",\n ".join(f"{_line(key)}: {parts[key]}" for key in sorted(parts)) + "}\n"


# ---- reading


def too_many(text: str | bytes) -> str:
    """Return a text if JSON may hold too many values, else "". Count marks, which is faster than parsing."""
    counts = map(text.count, ",:[{") if isinstance(text, str) else map(text.count, (b",", b":", b"[", b"{"))
    marks = sum(counts)
    return f"{marks} commas, colons and brackets, wanted at most {MOST_MARKS}" if marks > MOST_MARKS else ""


def _loads(text: str | bytes) -> Json:
    many = too_many(text) if isinstance(text, (str, bytes)) else ""
    if many:
        raise GraphError(f"graph: JSON: got {many}")
    try:
        found = json.loads(text, parse_constant=lambda word: refuse("JSON", word, "a finite number"))
    except GraphError:
        raise
    except RecursionError:
        refuse("JSON", "brackets too deep", "a graph")
    except (ValueError, TypeError) as error:
        refuse("JSON", f"{short_repr(str(error), 120)}", "a graph in JSON")
    if not isinstance(found, dict):
        refuse("JSON", short_repr(found), 'an object with "format": "poolgrad-graph"')
    return found


def _of(value: Any, kind: type[Any], place: str, wanted: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        refuse(place, short_repr(value), wanted)
    return value


def _rest(given: Mapping[str, Any], known: Sequence[str], place: str) -> Json:
    rest = {key: value for key, value in given.items() if key not in known}
    try:
        json.dumps(rest, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        refuse(place, "fields that JSON cannot hold", "plain values")
    return rest


def _read(given: Json) -> Graph:
    if given.get("format") != FORMAT:
        refuse("format", short_repr(given.get("format")), repr(FORMAT))
    version = given.get("version")
    if version != VERSION or isinstance(version, bool):
        refuse("version", short_repr(version), f"{VERSION}, the version that this poolgrad reads")
    pages = _of(given.get("pages"), list, "pages", "a list of pages")
    if not pages:
        refuse("pages", "[]", "at least one page")
    _few(pages, MOST_PAGES, "pages", "pages")
    made = [_page(_of(page, dict, f"pages[{i}]", "an object"), f"pages[{i}]") for i, page in enumerate(pages)]
    names = set[str]()
    for page in made:
        if page.name in names:
            refuse("pages", f"the name {page.name!r} twice", "each name once")
        names.add(page.name)
    data = _of(given.get("data", {}), dict, "data", "an object")
    for key, entry in data.items():
        _of(entry, dict, f"data[{short_repr(key)}]", "an object with npy_base64 or png_base64")
    return Graph(made, dict(data), _rest(given, ("format", "version", "pages", "data"), "graph"))


def _few(listed: Sequence[Any], most: int, place: str, what: str) -> None:
    if len(listed) > most:
        refuse(place, f"{len(listed)} {what}", f"at most {most}")


def _page(given: Json, place: str) -> Page:
    name = _of(given.get("name"), str, f"{place}.name", "a name")
    if not name.strip() or not name.isprintable() or len(name) > 200:
        refuse(f"{place}.name", short_repr(name), "a name of 1 to 200 printable characters")
    nodes: dict[str, Node] = {}
    listed = _of(given.get("nodes", []), list, f"{place}.nodes", "a list of blocks")
    _few(listed, MOST_NODES, f"{place}.nodes", "blocks")
    for i, entry in enumerate(listed):
        node = read_node(_of(entry, dict, f"{place}.nodes[{i}]", "an object"), f"{place}.nodes[{i}]")
        if node.id in nodes:
            refuse(f"{place}.nodes[{i}].id", f"{node.id!r} again", "an id that no other block has")
        nodes[node.id] = node
    size = sum(len(value) for node in nodes.values() for value in node.text.values())
    if size > MOST_TEXT:
        refuse(
            f"{place}.nodes", f"texts of {size} characters", f"at most {MOST_TEXT}; put large arrays into .npy files"
        )
    wires = list(_wires(given.get("wires", []), f"{place}.wires"))
    ends = _of(given.get("fetch", []), list, f"{place}.fetch", "a list of outputs")
    _few(ends, MOST_WIRES, f"{place}.fetch", "outputs")
    fetch = [_end(end, f"{place}.fetch[{i}]") for i, end in enumerate(ends)]
    return Page(name, nodes, wires, fetch, _rest(given, ("name", "nodes", "wires", "fetch"), place))


def read_node(given: Json, place: str) -> Node:
    """Read a block from JSON."""
    name = _of(given.get("id"), str, f"{place}.id", "an id")
    if not IDENTIFIER.fullmatch(name):
        refuse(f"{place}.id", short_repr(name), "a letter or _, then letters, digits and _, at most 100")
    op = _of(given.get("op"), str, f"{place}.op", "the name of a block")
    text = _of(given.get("text", {}), dict, f"{place}.text", "an object of texts")
    for pin, value in text.items():
        _of(value, str, f"{place}.text.{short_repr(pin)}", "a text")
        if len(value) > LONGEST_TEXT:
            wanted = f"at most {LONGEST_TEXT}; put a large array into a .npy file"
            refuse(f"{place}.text.{short_repr(pin)}", f"{len(value)} characters", wanted)
    at = given.get("at")
    if at is not None:
        numbers = isinstance(at, (list, tuple)) and len(at) == 2
        if not numbers or not all(isinstance(v, (int, float)) and abs(v) < 1e9 and math.isfinite(v) for v in at):
            refuse(f"{place}.at", short_repr(at), "two numbers")
    return Node(name, op, dict(text), None if at is None else (at[0], at[1]),
                _rest(given, ("id", "op", "text", "at"), place))  # fmt: skip


def _end(given: Any, place: str) -> str:
    end: str = _of(given, str, place, "a text like 'x.output'")
    node, dot, pin = end.partition(".")
    if not dot or not IDENTIFIER.fullmatch(node) or not IDENTIFIER.fullmatch(pin):
        refuse(place, short_repr(end), "a text like 'x.output'")
    return end


def _wires(given: Any, place: str) -> Iterator[Wire]:
    _few(_of(given, list, place, "a list of wires"), MOST_WIRES, place, "wires")
    for i, wire in enumerate(given):
        if not isinstance(wire, (list, tuple)) or len(wire) != 2:
            refuse(f"{place}[{i}]", short_repr(wire), "a pair like ['x.output', 'y.input']")
        yield _end(wire[0], f"{place}[{i}][0]"), _end(wire[1], f"{place}[{i}][1]")
