"""Propose repairs of problems: edits of the page that an editor offers as one button."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from .._ops.table import OPS, Kind, Op, Param
from . import literals, text
from .blocks import BLOCKS, TYPED
from .model import Edit, Page, PageProblem, Repair, Wire
from .op_family import forward_of
from .seen import Checked, Seen, Spec

_MOST_TRIED = 30  # forward ops to compare, and wires that one repair removes


@dataclass
class _View:
    """A page and its facts, with indexes that all problems share."""

    page: Page
    checked: Checked

    @cached_property
    def rows(self) -> dict[str, list[str]]:
        """Return the blocks of each op."""
        found: dict[str, list[str]] = {}
        for name, seen in self.checked.seen.items():
            if seen.block is not None and seen.block.row is not None:
                found.setdefault(seen.block.op, []).append(name)
        return found

    @cached_property
    def fed(self) -> dict[tuple[str, str], list[str]]:
        """Return the blocks of each op by the output wired to their first argument."""
        found: dict[tuple[str, str], list[str]] = {}
        for op, names in self.rows.items():
            entry = OPS[op].params[0].name
            for name in names:
                source = self.checked.seen[name].sources.get(entry)
                if source is not None:
                    found.setdefault((op, source), []).append(name)
        return found

    @cached_property
    def into(self) -> dict[str, list[Wire]]:
        """Return the wires into each pin."""
        found: dict[str, list[Wire]] = {}
        for wire in self.page.wires:
            found.setdefault(wire[1], []).append(wire)
        return found

    @cached_property
    def users(self) -> Counter[str]:
        """Count the wires from each block."""
        return Counter(source.partition(".")[0] for source, _ in self.page.wires)

    @cached_property
    def names(self) -> dict[str, str]:
        """Return the unused names that repairs have taken."""
        return {}

    def needs(self, name: str, other: str) -> bool:
        """Return True if a block depends on another one."""
        if other not in self.dependants:
            found, waiting = set[str](), [other]
            while waiting:
                here = waiting.pop()
                fresh = self.takers.get(here, set()) - found
                found |= fresh
                waiting += fresh
            self.dependants[other] = found
        return name in self.dependants[other]

    @cached_property
    def takers(self) -> dict[str, set[str]]:
        """Return the blocks that take an output of each block."""
        found: dict[str, set[str]] = {}
        for source, target in self.page.wires:
            found.setdefault(source.partition(".")[0], set()).add(target.partition(".")[0])
        return found

    @cached_property
    def dependants(self) -> dict[str, set[str]]:
        """Return the blocks that depend on each block that was asked about."""
        return {}

    def fresh(self, name: str) -> str:
        if name not in self.names:
            self.names[name] = self.page.fresh(name)
        return self.names[name]


def repaired(page: Page, checked: Checked, problems: Sequence[PageProblem] | None = None) -> list[PageProblem]:
    """Return these problems, or all of a page, each with its repair if there is one."""
    found, view = [], _View(page, checked)
    for problem in checked.problems if problems is None else problems:
        seen = checked.seen.get(problem.node or "")
        mended = _repair(view, problem, seen) if seen is not None else None
        found.append(problem if mended is None else replace(problem, repair=mended))
    return found


def _repair(view: _View, problem: PageProblem, seen: Seen) -> Repair | None:
    node, pin = problem.node, problem.pin
    assert node is not None
    if problem.fix is not None and pin is not None:
        return Repair(f"Change to {problem.fix.strip()}", (_typed(node, pin, problem.fix),))
    block = seen.block
    op = block.row if block else None
    found = block.pin(pin) if block and pin else None
    if found is not None and found.kind == TYPED and problem.got == "nothing" and found.default:
        return Repair(f"Set to {found.default}", (_typed(node, found.name, found.default),))
    if block is not None and block.pool is not None and pin in block.pool.inputs:
        return _repair_pool(view, problem, seen, pin)
    if op is None or pin is None:
        return None
    param = next((p for p in op.params if p.name == pin), None)
    if pin == "orig_output":
        return _pooled(view, node, seen, op)
    if param is not None and param.kind is Kind.SEQUENCE:
        return _sequence(view, node, pin, seen)
    if param is not None and param.kind is Kind.SHAPE and problem.got == "nothing":
        return _measured(view, node, param, op)
    if param is not None and param.kind in (Kind.SIZES, Kind.SIZES_TENSOR):
        return _sizes(node, pin, seen, op)
    if param is not None and problem.got == "no wire" and param.kind in (Kind.SOURCE, Kind.DEST):
        return _joined(view, node, param, op)
    if problem.expected_shape is not None:
        return _reshaped(view, problem, seen)
    if param is not None and param.kind in (Kind.SOURCE, Kind.DEST, Kind.INDEX) and problem.got.startswith("dtype "):
        return _retyped(view.page, view.checked, problem, seen, op)
    return None


def _typed(node: str, pin: str, words: str) -> Edit:
    return {"do": "set_text", "id": node, "pin": pin, "text": words}


def _wired(view: _View, node: str, pin: str, source: str) -> list[Edit]:
    """Return the edits that replace all wires into a pin by this one."""
    target = f"{node}.{pin}"
    gone: list[Edit] = [{"do": "remove_wire", "wire": list(wire)} for wire in view.into.get(target, ())]
    return [*gone, {"do": "add_wire", "wire": [source, target]}]


def _place(page: Page, node: str, dx: float, dy: float) -> dict[str, list[float]]:
    """Return a position beside a block, if the block has one."""
    at = page.nodes[node].at
    return {} if at is None else {"at": [max(at[0] + dx, 0), max(at[1] + dy, 0)]}


# ---- orig_output


def _pooled(view: _View, node: str, seen: Seen, op: Op) -> Repair | None:
    """Return edits that wire in the forward op on orig_input: one on the page, or a new one."""
    forward, page = forward_of(op), view.page
    x = seen.sources.get("orig_input")
    if forward is None or x is None or _crowded(view, node, "orig_output"):
        return None
    entry = forward.params[0].name
    for other in view.fed.get((forward.name, x), [])[:_MOST_TRIED]:
        if _agree(seen, view.checked.seen[other]) and f"{other}.output" != seen.sources.get("orig_output"):
            return Repair(f"Connect {other}", tuple(_wired(view, node, "orig_output", f"{other}.output")))
    texts = {
        p.name: page.nodes[node].text[p.name] for p in BLOCKS[forward.name].pins if p.name in page.nodes[node].text
    }
    if forward.param(Kind.RATIO) or any(p.kind is Kind.SIZES_TENSOR and p.name in seen.sources for p in op.params):
        return None  # the texts do not give its windows
    name = view.fresh("y")
    made = {"id": name, "op": forward.name, "text": texts, **_place(page, node, -260, -160)}
    edits: list[Edit] = [{"do": "add_node", "node": made}, {"do": "add_wire", "wire": [x, f"{name}.{entry}"]}]
    edits += _wired(view, node, "orig_output", f"{name}.output")
    return Repair(f"Insert {forward.name} and connect it", tuple(edits))


def _agree(one: Seen, other: Seen) -> bool:
    """Return True if two blocks have the same windows."""
    names = ("ksize", "strides", "padding", "data_format", "explicit_paddings", "overlapping")
    blocks = [seen.block.row for seen in (one, other) if seen.block and seen.block.row]
    defaults = [{p.name: p.default for p in op.params} for op in blocks]
    given = [{n: seen.values.get(n, d.get(n)) for n in names} for seen, d in zip((one, other), defaults, strict=True)]
    if other.sources.keys() & {"ksize", "strides"} or one.sources.keys() & {"ksize", "strides"}:
        return False
    shared = [n for n in names if all(n in d for d in defaults)]
    return all(_plain(given[0][n]) == _plain(given[1][n]) for n in shared)


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _crowded(view: _View, node: str, pin: str) -> bool:
    return len(view.into.get(f"{node}.{pin}", ())) > _MOST_TRIED


def _sequence(view: _View, node: str, pin: str, seen: Seen) -> Repair | None:
    """Wire in the sequence of the fractional pooling that made orig_output, or of the only one on the page."""
    source = seen.sources.get("orig_output", "").partition(".")[0]
    op = seen.block.row if seen.block else None
    forward = forward_of(op) if op else None
    makers = view.rows.get(forward.name, []) if forward else []
    maker = view.checked.seen.get(source)
    made_it = forward is not None and maker is not None and maker.block is not None and maker.block.row is forward
    chosen = source if made_it else makers[0] if len(makers) == 1 else None
    if chosen is None or seen.sources.get(pin) == f"{chosen}.{pin}" or _crowded(view, node, pin):
        return None
    return Repair(f"Connect {pin} of {chosen}", tuple(_wired(view, node, pin, f"{chosen}.{pin}")))


def _joined(view: _View, node: str, param: Param, op: Op) -> Repair | None:
    """Wire in the only output of the page that fits; if none fits the array that is pooled, insert one."""
    fitting = _fitting(view, node, lambda spec: len(spec.shape or ()) == op.spatial + 2 and spec.dtype in op.dtypes)
    if len(fitting) == 1:
        return _connected(view, node, param.name, fitting[0])
    if fitting or param is not op.params[0]:
        return None
    dtype = "float32" if "float32" in op.dtypes else op.dtypes[0]
    return _filled(view, node, param.name, (1, *[4] * op.spatial, 1), dtype)


def _fitting(view: _View, node: str, fits: Callable[[Spec], bool]) -> list[str]:
    """Return the outputs of the page that fit, and that do not depend on a block."""
    found = []
    for name, seen in view.checked.seen.items():
        for pin, spec in seen.outputs.items():
            if spec.known and fits(spec) and name != node and not view.needs(name, node):
                found.append(f"{name}.{pin}")
    return found


def _connected(view: _View, node: str, pin: str, source: str) -> Repair:
    edits = _wired(view, node, pin, source)
    return Repair(f"Connect {source.removesuffix('.output')}", tuple(edits))


def _filled(view: _View, node: str, pin: str, sizes: tuple[int, ...], dtype: str) -> Repair:
    """Insert an array of 1, 2, 3, ... and wire it in."""
    name = view.fresh("x" if pin in ("input", "value", "orig_input") else pin)
    words = {
        "val": f"arange(1,{math.prod(sizes) + 1})",
        "shape": literals.bracketed(sizes),
        "dtype": text.enumerator(dtype),
    }
    made = {"id": name, "op": "Const", "text": words, **_place(view.page, node, -276, 0)}
    return Repair(
        "Insert a Const and connect it",
        ({"do": "add_node", "node": made}, *_wired(view, node, pin, f"{name}.output")),
    )


def _repair_pool(view: _View, problem: PageProblem, seen: Seen, pin: str) -> Repair | None:
    """Wire in an array for a pool, or give the one that is wired the right shape or type."""
    node, call = problem.node or "", seen.pool_call
    if problem.got == "no wire" and not _crowded(view, node, pin):
        if pin != "x" and call is None:
            return None  # the shape is not known
        shape = call.plan.dest if pin == "g" and call else call.plan.source if call else None
        kind = view.checked.spec(seen.sources["x"]).dtype if call else None
        fitting = _fitting(view, node, lambda spec: shape is None or (spec.shape, spec.dtype) == (shape, kind))
        if len(fitting) == 1:
            return _connected(view, node, pin, fitting[0])
        if shape is not None and math.prod(shape) > literals.LARGEST:
            return None
        return None if fitting else _filled(view, node, pin, shape or (1, 4, 4, 1), kind or "float32")
    if problem.expected_shape is not None:
        return _reshaped(view, problem, seen)
    giver = seen.sources.get(pin, "").partition(".")[0]
    if problem.got.startswith("dtype ") and giver in view.page.nodes and BLOCKS[view.page.nodes[giver].op].pin("dtype"):
        kind = "float32" if pin == "x" else view.checked.spec(seen.sources.get("x", "")).dtype
        words = text.enumerator(kind or "float32")
        return Repair(f"Make {giver} {words}", (_typed(giver, "dtype", words),))
    return None


def _measured(view: _View, node: str, param: Param, op: Op) -> Repair | None:
    """Insert the Shape of the forward op's input, if the page has exactly one such op."""
    forward = forward_of(op)
    entry = forward.params[0].name if forward else ""
    rows = [view.checked.seen[name] for name in view.rows.get(forward.name, [])[:2]] if forward else []
    if len(rows) != 1 or entry not in rows[0].sources or _crowded(view, node, param.name):
        return None
    x = rows[0].sources[entry]
    name = view.fresh(f"{x.partition('.')[0]}_shape")
    words = {"out_type": text.enumerator(param.dtype)}
    made = {"id": name, "op": "Shape", "text": words, **_place(view.page, node, -260, -120)}
    edits: list[Edit] = [{"do": "add_node", "node": made}, {"do": "add_wire", "wire": [x, f"{name}.input"]}]
    edits += _wired(view, node, param.name, f"{name}.output")
    return Repair(f"Insert Shape of {x.partition('.')[0]} and connect it", tuple(edits))


# ---- texts and inputs


def _sizes(node: str, pin: str, seen: Seen, op: Op) -> Repair | None:
    """Give a list one number per dimension, if all pooled dimensions have the same number."""
    given = seen.values.get(pin)
    if pin in seen.sources or not isinstance(given, list) or len(given) == op.spatial + 2 or len(given) < 2:
        return None
    middle = set(given[1:-1]) if len(given) in (4, 5) else set(given)
    if len(middle) != 1 or min(middle) < 1:
        return None
    words = text.written([1, *[middle.pop()] * op.spatial, 1])
    return Repair(f"Change to {words}", (_typed(node, pin, words),))


def _reshaped(view: _View, problem: PageProblem, seen: Seen) -> Repair | None:
    """Give an input the right shape: keep its numbers if the count fits, else use 1, 2, 3, ..."""
    page, checked = view.page, view.checked
    shape, pin, node = problem.expected_shape, problem.pin, problem.node
    source = seen.sources.get(pin or "")
    if shape is None or pin is None or node is None or source is None or math.prod(shape) > literals.LARGEST:
        return None
    if _crowded(view, node, pin):
        return None
    giver = source.partition(".")[0]
    spec, sizes = checked.spec(source), literals.bracketed(shape)
    const = page.nodes[giver].op in ("Const", "Random")
    if const and view.users[giver] == 1:
        edits = [_typed(giver, "shape", sizes)]
        if page.nodes[giver].op == "Random":
            return Repair(f"Give {giver} the shape {sizes}", tuple(edits))
        if spec.shape is not None and math.prod(spec.shape) == math.prod(shape):
            return Repair(f"Reshape {giver} to {sizes}", tuple(edits))
        edits.insert(0, _typed(giver, "val", f"arange(1,{math.prod(shape) + 1})"))
        return Repair(f"Fill {giver} with 1, 2, 3, ... of shape {sizes}", tuple(edits))
    name = view.fresh(pin)
    words = {
        "val": f"arange(1,{math.prod(shape) + 1})",
        "shape": sizes,
        "dtype": text.enumerator(spec.dtype or "float32"),
    }
    made = {"id": name, "op": "Const", "text": words, **_place(page, node, -260, 180)}
    added: list[Edit] = [{"do": "add_node", "node": made}, *_wired(view, node, pin, f"{name}.output")]
    return Repair(f"Insert a Const with 1, 2, 3, ... of shape {sizes}", tuple(added))


def _retyped(page: Page, checked: Checked, problem: PageProblem, seen: Seen, op: Op) -> Repair | None:
    """Set the type of a block to that of the other inputs, if its type is a text."""
    giver = seen.sources.get(problem.pin or "", "").partition(".")[0]
    if giver not in page.nodes or BLOCKS[page.nodes[giver].op].pin("dtype") is None:
        return None
    index = next((p for p in op.params if p.name == problem.pin and p.kind is Kind.INDEX), None)
    others = [checked.spec(source).dtype for pin, source in seen.sources.items() if pin != problem.pin]
    wanted = "int64" if index else next((d for d in others if d in op.dtypes), op.dtypes[0])
    words = text.enumerator("float32" if not index and not others and "float32" in op.dtypes else wanted)
    return Repair(f"Make {giver} {words}", (_typed(giver, "dtype", words),))
