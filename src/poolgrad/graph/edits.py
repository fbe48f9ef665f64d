"""Apply small edits of a page, given as data. Repairs consist of edits, and an editor can undo them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .._common.errors import short_repr
from .model import IDENTIFIER, Edit, Page, read_node, refuse


def apply(page: Page, edits: Iterable[Edit]) -> None:
    """Apply edits to a page in order; a GraphError names the edit that does not fit.

    >>> page = Page()
    >>> apply(page, [{"do": "add_node", "node": {"id": "x", "op": "Const", "text": {}}}])
    >>> apply(page, [{"do": "set_text", "id": "x", "pin": "val", "text": "1,2"}])
    >>> page.nodes["x"].text
    {'val': '1,2'}
    """
    if not isinstance(edits, (list, tuple)):
        refuse("edits", short_repr(edits), "a list")
    for i, edit in enumerate(edits):
        kind = edit.get("do") if isinstance(edit, dict) else None
        if not isinstance(kind, str) or kind not in _KINDS:
            refuse(f"edits[{i}]", short_repr(edit), f"an object whose 'do' is one of {', '.join(_KINDS)}")
        _KINDS[kind](page, edit, f"edits[{i}]")


def _add_node(page: Page, edit: Edit, place: str) -> None:
    given = edit.get("node")
    if not isinstance(given, dict):
        refuse(f"{place}.node", short_repr(given), "a block")
    node = read_node(given, f"{place}.node")
    if node.id in page.nodes:
        refuse(f"{place}.node.id", repr(node.id), "an id that no other block has")
    page.nodes[node.id] = node


def _known(page: Page, edit: Edit, place: str) -> str:
    name = edit.get("id")
    if not isinstance(name, str) or name not in page.nodes:
        refuse(f"{place}.id", short_repr(name), "the id of a block on the page")
    return name


def _remove_node(page: Page, edit: Edit, place: str) -> None:
    name = _known(page, edit, place)
    del page.nodes[name]
    page.wires = [w for w in page.wires if name not in (w[0].partition(".")[0], w[1].partition(".")[0])]
    page.fetch = [f for f in page.fetch if f.partition(".")[0] != name]


def _set_text(page: Page, edit: Edit, place: str) -> None:
    name, pin, text = _known(page, edit, place), edit.get("pin"), edit.get("text")
    if not isinstance(pin, str) or not isinstance(text, str):
        refuse(place, short_repr(edit), "a pin and a text")
    page.nodes[name].text[pin] = text


def _ends(edit: Edit, place: str) -> tuple[str, str]:
    wire: Any = edit.get("wire")
    parts = [p for end in wire for p in end.split(".")] if _texts(wire) else []
    if len(parts) != 4 or not all(map(IDENTIFIER.fullmatch, parts)):
        refuse(f"{place}.wire", short_repr(wire), "a pair like ['x.output', 'y.input']")
    return f"{parts[0]}.{parts[1]}", f"{parts[2]}.{parts[3]}"


def _texts(wire: object) -> bool:
    return isinstance(wire, (list, tuple)) and len(wire) == 2 and all(isinstance(end, str) for end in wire)


def _add_wire(page: Page, edit: Edit, place: str) -> None:
    page.wires.append(_ends(edit, place))


def _remove_wire(page: Page, edit: Edit, place: str) -> None:
    wire = _ends(edit, place)
    if wire not in page.wires:
        refuse(f"{place}.wire", short_repr(list(wire)), "a wire that is on the page")
    page.wires.remove(wire)


_KINDS: dict[str, Callable[[Page, Edit, str], None]] = {
    "add_node": _add_node,
    "remove_node": _remove_node,
    "set_text": _set_text,
    "add_wire": _add_wire,
    "remove_wire": _remove_wire,
}
