"""Find all problems of a page at once: texts, wires, then shapes and types. Ops use the binder that runs them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.errors import ArgumentErrors
from .._ops.bind import FORWARD, BoundCall, bind
from .._ops.files import closest
from .._ops.semantics import Kernel
from .._ops.table import Kind, Op
from .._windows.cells import count_cells
from .._windows.plan import Plan
from . import literals
from .blocks import BLOCKS, EITHER, TYPED, WIRED
from .embedded_files import Sources
from .model import Node, Page, PageProblem
from .pool_calls import bind_pool
from .seen import BLOCKED, FAILED, OK, UNKNOWN, Checked, Seen, Spec
from .text import TextError

Array = npt.NDArray[Any]
REFUSALS = (ValueError, TypeError, NotImplementedError, MemoryError)
_MOST_GUESSES, _LONGEST_GUESS = 100, 100


def check(page: Page, sources: Sources) -> Checked:
    """Check every block of a page, in an order in which the blocks could run."""
    found = Checked({name: Seen(BLOCKS.get(node.op)) for name, node in page.nodes.items()})
    _wires(page, found)
    _order(found)
    for name in found.order:
        check_node(page.nodes[name], found, sources)
    for fetch in page.fetch:
        node, _, pin = fetch.partition(".")
        block = found.seen[node].block if node in found.seen else None
        if node not in found.seen or (block is not None and pin not in block.outputs):
            found.problems.append(PageProblem(None, "fetch", repr(fetch), "an output of a block on the page"))
    found.sort()
    return found


# ---- wires


def _wires(page: Page, found: Checked) -> None:
    for source, target in page.wires:
        (origin, out), (node, pin) = source.split("."), target.split(".")
        if node not in found.seen:
            found.problems.append(PageProblem(None, None, f"a wire to {target}", "a block on the page"))
            continue
        block, seen = found.seen[node].block, found.seen[node]
        if block is None:
            continue
        wanted = block.pin(pin)
        if wanted is None or wanted.kind == TYPED:
            takes = [p.name for p in block.pins if p.kind != TYPED]
            expected = f"a wire to one of {', '.join(takes)}" if takes else f"no wire: {block.op} takes none"
            _blame(found, node, pin, f"a wire from {source}", expected)
        elif pin in seen.sources:
            _blame(found, node, pin, f"a second wire, from {source}", "one wire")
        elif origin not in found.seen:
            _blame(found, node, pin, f"a wire from {source}", "a wire from a block on the page")
        else:
            seen.sources[pin] = source
            giver = found.seen[origin].block
            if giver is not None and out not in giver.outputs:
                expected = f"one of {origin}'s outputs: {', '.join(giver.outputs)}"
                _blame(found, node, pin, f"a wire from {source}", expected)


def _blame(found: Checked, node: str, pin: str | None, got: str, expected: str, **more: Any) -> None:
    found.problems.append(PageProblem(node, pin, got, expected, **more))
    found.blamed.add((node, pin))
    found.seen[node].status = FAILED


def _order(found: Checked) -> None:
    """Sort blocks so that each follows its inputs; blame those in a cycle, and those that wait for one."""
    waiting = {name: {s.partition(".")[0] for s in seen.sources.values()} for name, seen in found.seen.items()}
    users: dict[str, list[str]] = {name: [] for name in waiting}
    for name, givers in waiting.items():
        for giver in givers:
            users[giver].append(name)
    ready = [name for name, givers in waiting.items() if not givers]
    for name in ready:
        found.order.append(name)
        for user in users[name]:
            waiting[user].discard(name)
            if not waiting[user]:
                ready.append(user)
    for name in found.seen:
        if waiting[name]:
            circle = ", ".join(sorted(waiting[name]))
            _blame(
                found, name, None, f"wires in a circle, by way of {circle}", "blocks that do not wait for themselves"
            )


# ---- one block


def check_node(node: Node, found: Checked, sources: Sources) -> None:
    """Check the texts of a block, then its inputs, then infer its outputs."""
    seen = found.seen[node.id]
    if seen.block is None:
        near = _near(found, node.op, BLOCKS)
        expected = "the name of a block" + (near if "did you mean" in near else "")
        _blame(found, node.id, None, f"op {node.op!r}"[:80], expected)
        return
    noted = _texts(node, seen, found) | _inputs(node, seen, found)
    seen.outputs = dict.fromkeys(seen.block.outputs, Spec())
    givers = {found.seen[s.partition(".")[0]].status for s in seen.sources.values()}
    if seen.status == OK and givers & {FAILED, BLOCKED}:
        seen.status = BLOCKED
    if seen.block.row is not None:
        _infer_op(node, seen, found, noted, sources)
    elif seen.block.pool is not None:
        _infer_pool(node, seen, found, noted, sources)
    elif not noted:
        _infer_other(node, seen, found, sources)
    if seen.status == OK and not all(spec.known for spec in seen.outputs.values()):
        seen.status = UNKNOWN
    if seen.status == OK and sources.limits is not None:
        _afford(node, seen, found, sources.limits.nbytes)
    if seen.status != OK:
        seen.outputs = dict.fromkeys(seen.block.outputs, Spec())


def _near(found: Checked, word: str, known: Iterable[str]) -> str:
    """Suggest the known word closest to this one. Comparing is slow: skip long words, and stop after many problems."""
    found.guessed += 1
    words = list(known)
    return closest(word, words) if words and len(word) <= _LONGEST_GUESS and found.guessed <= _MOST_GUESSES else ""


def _afford(node: Node, seen: Seen, found: Checked, most: int) -> None:
    """Blame a block if its arrays and those of the blocks before it exceed `most` bytes."""
    asked = sum(spec.nbytes for spec in seen.outputs.values())
    if found.nbytes + asked > most:
        got = f"arrays of {asked} bytes, with {found.nbytes} bytes of other blocks"
        _blame(found, node.id, None, got, f"at most {most} bytes on a page")
        return
    found.nbytes += asked


def _texts(node: Node, seen: Seen, found: Checked) -> set[str]:
    """Read every text; return the pins already blamed."""
    block, noted = seen.block, set()
    assert block is not None
    for name in node.text:
        pin = block.pin(name)
        if pin is None or pin.kind == WIRED:
            texts = [p.name for p in block.pins if p.kind != WIRED]
            _blame(found, node.id, name[:80], "a text", f"no such text{_near(found, name, texts)}")
    for pin in block.pins:
        given = node.text.get(pin.name, "")
        if pin.kind == WIRED or pin.name in seen.sources or pin.read is None:
            continue
        if not given.strip() and pin.required:
            wanted = f"a text like {pin.example}" if pin.example else f"a text: {pin.doc}"
            _blame(found, node.id, pin.name, "nothing", wanted + (", or a wire" if pin.kind == EITHER else ""), at=0)
            noted.add(pin.name)
            continue
        try:
            value = pin.read(given if given.strip() else pin.blank)
        except TextError as error:
            _blame_text(found, node.id, pin.name, error)
            noted.add(pin.name)
            continue
        seen.values.update(value if pin.type == "attrs" else {pin.name: value})
    return noted


def _blame_text(found: Checked, node: str, pin: str, error: TextError) -> None:
    _blame(found, node, pin, error.got, error.wanted, at=error.at, length=error.length, fix=error.fix)


def _inputs(node: Node, seen: Seen, found: Checked) -> set[str]:
    """Blame pins without a wire; return these and the pins whose array is unknown."""
    noted = set()
    assert seen.block is not None
    for pin in seen.block.pins:
        if pin.kind == WIRED and pin.name not in seen.sources:
            if (node.id, pin.name) not in found.blamed:
                _blame(found, node.id, pin.name, "no wire", f"a wire: {pin.doc}")
            noted.add(pin.name)
        elif pin.name in seen.sources and not found.spec(seen.sources[pin.name]).known:
            noted.add(pin.name)
    return noted


# ---- ops of the table


def arguments(op: Op, seen: Seen, arrays: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return the arguments of `bind`: arrays from wires or texts, and attributes."""
    given: dict[str, Array] = {}
    attrs: dict[str, Any] = {}
    for p in op.params:
        value = seen.values.get(p.name)
        if p.name in arrays:
            (given if p.kind.is_array else attrs)[p.name] = arrays[p.name]
        elif value is None:
            continue
        elif p.kind.is_array:
            given[p.name] = p.kind.convert(value, p)
        else:
            attrs[p.name] = value
    return given, attrs


def _infer_op(node: Node, seen: Seen, found: Checked, noted: set[str], sources: Sources) -> None:
    assert seen.block is not None
    op = seen.block.row
    assert op is not None
    arrays: dict[str, Array] = {}
    for pin, source in seen.sources.items():
        spec, param = found.spec(source), next((p for p in op.params if p.name == pin), None)
        if pin in noted or param is None:
            continue
        if spec.value is None and param.kind.by_value:
            noted.add(pin)  # its numbers are unknown until it runs
            continue
        arrays[pin] = spec.stand_in()
    if "attrs" in noted:
        return  # all other checks depend on the layout
    given, attrs = arguments(op, seen, arrays)
    problems = ArgumentErrors(node.id)
    for pin in noted:
        problems.add(pin, "", "")
    limits = sources.limits
    if limits is not None and _padded(given, attrs) > limits.nbytes:
        got = f"explicit_paddings that make arrays of {_padded(given, attrs)} bytes"
        _blame(found, node.id, "attrs", got, f"at most {limits.nbytes} bytes on a page")
        return
    try:
        call = seen.call = bind(op, given, attrs, problems)
    except REFUSALS as error:
        if not hasattr(error, "findings"):
            raise
        blame(node, seen, found, error, noted, arrays)
        return
    seen.outputs = _outputs(op, call, given)
    _charge(node, found, call.plan, sources)


def _charge(node: Node, found: Checked, plan: Plan | None, sources: Sources) -> None:
    """Blame a block if its windows and those of the blocks before it read too many cells."""
    if sources.limits is None or plan is None:
        return
    work, most = count_cells(plan), sources.limits.cells
    if found.cells + work > most:
        got = f"windows of {work} cells, with {found.cells} cells of other blocks"
        _blame(found, node.id, None, got, f"at most {most} cells on a page")
        return
    found.cells += work


def _infer_pool(node: Node, seen: Seen, found: Checked, noted: set[str], sources: Sources) -> None:
    assert seen.block is not None
    form = seen.block.pool
    assert form is not None
    if noted - {"g", "v"}:
        return  # the windows are not known
    arrays = {pin: found.spec(source).stand_in() for pin, source in seen.sources.items()
              if pin in form.inputs and pin not in noted}  # fmt: skip
    try:
        call = bind_pool(form, seen.values, arrays, sources.limits is not None)
    except REFUSALS as error:
        if not hasattr(error, "findings"):
            raise
        blame(node, seen, found, error, noted, arrays)
        return
    seen.pool_call = call
    seen.outputs["output"] = Spec(call.dtype.name, call.shape)
    _charge(node, found, call.plan, sources)


def _padded(given: Mapping[str, Array], attrs: Mapping[str, Any]) -> int:
    """Return an upper bound on the bytes of a result whose windows may lie in the padding."""
    pads = attrs.get("explicit_paddings")
    if not isinstance(pads, list):
        return 0
    sizes = [(array.shape, array.itemsize) for array in given.values() if 2 * array.ndim == len(pads)]
    sums = [max(a, 0) + max(b, 0) for a, b in zip(pads[::2], pads[1::2], strict=False)]
    return max((n * math.prod(map(operator.add, shape, sums)) for shape, n in sizes), default=0)


def blame(node: Node, seen: Seen, found: Checked, error: Exception, noted: set[str],
          arrays: Mapping[str, Array]) -> None:  # fmt: skip
    """Turn the binder's errors into problems at pins."""
    assert seen.block is not None
    for finding in getattr(error, "findings", ()):
        if finding.argument in noted:
            continue
        pin, at, length = finding.argument, None, 0
        if pin in seen.block.attributes:
            at = node.text.get("attrs", "").find(pin)
            pin, at, length = "attrs", max(at, 0), len(pin) if at >= 0 else 0
        elif pin in node.text and pin not in seen.sources:
            at, length = 0, len(node.text[pin])
        got_shape = tuple(arrays[pin].shape) if finding.shape is not None and pin in arrays else None
        _blame(found, node.id, pin, finding.got, finding.wanted, at=at, length=length, expected_shape=finding.shape,
               got_shape=got_shape)  # fmt: skip


def _outputs(op: Op, call: BoundCall, given: Mapping[str, Array]) -> dict[str, Spec]:
    """Return shapes and types of a call's results. The call has drawn its sequences, so their numbers are known."""
    dtype = next(given[p.name].dtype.name for p in op.params if p.kind in (Kind.SOURCE, Kind.DEST))
    shape = call.dest if op.rule.verb in FORWARD else call.source
    specs = {op.outputs[0]: Spec(dtype, shape)}
    if op.rule.verb is Kernel.ARGMAX:
        specs[op.outputs[1]] = Spec(call.index_type, shape)
    elif call.drawn:
        specs |= {name: Spec("int64", s.shape, s) for name, s in zip(op.outputs[1:], call.drawn, strict=False)}
    for name in op.outputs[len(specs) :]:
        specs[name] = Spec("float32", ())
    return specs


# ---- blocks that supply arrays


def _infer_other(node: Node, seen: Seen, found: Checked, sources: Sources) -> None:
    values = seen.values
    try:
        if node.op == "Image" and values["dtype"] == "int8":
            _blame(found, node.id, "dtype", "int8", "a type that holds 0 to 255", at=0, fix="DT_UINT8")
        elif node.op in ("Const", "File", "Image"):
            value = literal(node.op, values, sources, _room(found, sources))
            seen.outputs["output"] = Spec(value.dtype.name, value.shape, value)
        elif node.op == "Placeholder" and (node.id in sources.feeds or values["feed"].strip()):
            value = _fed(node, values, sources, _room(found, sources))
            seen.outputs["output"] = Spec(value.dtype.name, value.shape, value)
        elif node.op in ("Random", "Placeholder"):
            if values["shape"] is not None and math.prod(values["shape"]) > literals.LARGEST:
                shape = f"shape {list(values['shape'])}"
                raise TextError(0, len(node.text["shape"]), shape, f"at most {literals.LARGEST} cells")
            seen.outputs["output"] = Spec(values["dtype"], values["shape"])
            if node.op == "Random":
                _judge(found, node, "dist", lambda: literals.random(values["dist"], (0,), values["dtype"], 0))
        else:
            _infer_help(node, seen, found)
    except TextError as error:
        pin = {"Const": "val", "Random": "shape", "Placeholder": "feed"}.get(node.op, "file")
        _blame_text(found, node.id, pin, error)


def _judge(found: Checked, node: Node, pin: str, trial: Callable[[], object]) -> None:
    """Run a trial; record its error as a problem of the pin."""
    try:
        trial()
    except TextError as error:
        _blame_text(found, node.id, pin, error)


def _room(found: Checked, sources: Sources) -> int:
    """Return the number of cells that a literal may have."""
    if sources.limits is None:
        return literals.LARGEST
    return min(literals.LARGEST, max(sources.limits.nbytes - found.nbytes, 0) // 8)


def _fed(node: Node, values: Mapping[str, Any], sources: Sources, most: int) -> Array:
    """Return the array of a placeholder: from the caller's feeds, or from its own text."""
    if node.id not in sources.feeds:
        return literals.parse(values["feed"], values["shape"], values["dtype"], sources.lookup, most)
    value = np.asarray(sources.feeds[node.id])
    if isinstance(sources.feeds[node.id], (list, tuple, int, float)):
        value = value.astype(literals.numpy_type(values["dtype"]))
    if value.dtype.name != values["dtype"]:
        raise TextError(0, 0, f"an array of dtype {value.dtype.name}", f"{values['dtype']}, as in dtype")
    if values["shape"] is not None and value.shape != values["shape"]:
        raise TextError(0, 0, f"an array of shape {list(value.shape)}", f"{list(values['shape'])}, as in shape")
    return value


def literal(op: str, values: Mapping[str, Any], sources: Sources, most: int = literals.LARGEST) -> Array:
    """Return the array of a Const, File or Image."""
    if op == "Const":
        return literals.parse(values["val"], values["shape"], values["dtype"], sources.lookup, most)
    if op == "File":
        return sources.load(values["file"], ".npy")
    pixels, dtype = sources.load(values["file"], ".png"), literals.numpy_type(values["dtype"])
    picture = pixels.reshape(1, *pixels.shape[:2], -1)
    if picture.size > most:
        raise TextError(0, len(values["file"]), f"a picture of {picture.size} cells", f"at most {most} cells")
    if dtype.kind in "iu":
        return picture.astype(dtype)
    scaled: Array = (picture / np.float32(255)).astype(dtype, copy=False)
    return scaled


def _infer_help(node: Node, seen: Seen, found: Checked) -> None:
    specs = {pin: found.spec(source) for pin, source in seen.sources.items()}
    if node.op == "Shape":
        shape = specs["input"].shape
        assert shape is not None
        value = np.array(shape, seen.values["out_type"])
        seen.outputs["output"] = Spec(value.dtype.name, value.shape, value)
        return
    x, y = specs["x"], specs["y"]
    if (x.dtype, x.shape) != (y.dtype, y.shape):
        got, wanted = (f"{s.dtype} {list(s.shape or ())}" for s in (y, x))
        _blame(found, node.id, "y", got, f"{wanted}, as x", expected_shape=x.shape, got_shape=y.shape)
        return
    seen.outputs["output"] = replace(x, value=None)
