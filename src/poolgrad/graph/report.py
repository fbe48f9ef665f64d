"""Report results as JSON: tensors with statistics, links that the page can follow without the server, and gradient totals."""

from __future__ import annotations

import base64
import math
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.errors import ArgumentErrors
from .._explain.links import GIVEN, Links
from .._explain.op_calls import named, subject
from .._explain.pools import POOL
from .._explain.sentences import number
from .._explain.subject import Subject, cuts
from .._ops.bind import BoundCall, bind
from .._ops.table import Kind, Op
from .._windows.cells import count_cells
from .check import REFUSALS, arguments
from .executor import Ran, Run, inputs_of
from .model import Json, Limits, PageProblem
from .seen import Checked, Seen, Spec

Array = npt.NDArray[Any]
MOST_LINKED = 2**20  # cells in all windows of a block
_PART = 2**20  # cells counted at a time
_PICTURE = 96  # most rows and columns of a preview
_ENTRIES = 8  # most entries of a preview along other axes
_SHOWN = 20  # windows whose lost or repeated gradient is reported
_NAMED = 6  # of these, windows that the page names
_AXES = {4: "NHWC", 5: "NDHWC"}


# ---- numbers


def numbers(array: Array) -> Json:
    """Encode cells as base64 of a type that JavaScript has; 64-bit integers become doubles."""
    name = array.dtype.name
    if name in ("bfloat16", "float16"):
        array = array.astype(np.float32)
    elif name in ("int64", "uint64"):
        array = array.astype(np.float64)
    raw = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"))).tobytes()
    return {"type": array.dtype.name, "b64": base64.b64encode(raw).decode()}


def statistics(array: Array) -> Json:
    """Return size, extremes and sum of the finite cells, and counts of zero, NaN and infinite cells; take large arrays in parts."""
    flat = array.reshape(-1)
    parts = [_part(flat[start : start + _PART]) for start in range(0, max(flat.size, 1), _PART)]

    def over(key: str) -> list[Any]:
        return [part[key] for part in parts if part[key] is not None]

    sums = over("sum")
    total = sum(sums[1:], sums[0]) if sums else None
    return {
        "size": int(array.size),
        "min": min(over("min"), default=None),
        "max": max(over("max"), default=None),
        "sum": total if total is not None and math.isfinite(total) else None,
        "zeros": sum(over("zeros")),
        "nan": sum(over("nan")),
        "inf": sum(over("inf")),
    }


def _part(array: Array) -> Json:
    wide = array.astype(np.float64) if array.dtype.kind not in "iu" else array
    good = np.isfinite(wide) if array.dtype.kind not in "iu" else np.ones(array.shape, bool)
    some = wide[good]
    with np.errstate(all="ignore"):
        total = float(some.sum(dtype=np.float64)) if some.size else None
    return {
        "min": _plain(some.min()) if some.size else None,
        "max": _plain(some.max()) if some.size else None,
        "sum": total,
        "zeros": int((wide == 0).sum()),
        "nan": int((wide != wide).sum()),
        "inf": int(np.isinf(wide).sum()) if array.dtype.kind not in "iu" else 0,
    }


def _plain(value: Any) -> float | int:
    return int(value) if value.dtype.kind in "iu" else float(value)


def tensor(array: Array, spec: Json, limit: int, ref: str, known: Collection[str] = ()) -> Json:
    """Return one output in the form that the page draws; leave out numbers that are too many or whose ref is known."""
    values = numbers(array) if array.size <= limit and ref not in known else None
    made = {**spec, "shape": list(array.shape), "dtype": array.dtype.name, "stats": statistics(array), "values": values,
            "ref": ref}  # fmt: skip
    return made if array.size <= limit else made | {"preview": preview(array, spec["axes"])}


def preview(array: Array, letters: list[str]) -> Json:
    """Return a small picture of a large array: every n-th row and column, the first entries along other axes.

    >>> preview(np.arange(400.0).reshape(1, 200, 2, 1), list("NHWC"))["shape"]
    [1, 67, 2, 1]
    """
    steps = [math.ceil(n / _PICTURE) if letter in "HW" else 1 for n, letter in zip(array.shape, letters, strict=True)]
    spans = zip(array.shape, letters, steps, strict=True)
    part = array[tuple(np.s_[: n if letter in "HW" else _ENTRIES : step] for n, letter, step in spans)]
    return {"shape": list(part.shape), "steps": steps, "values": numbers(part)}


# ---- roles and axes


Users = dict[str, list[tuple[Seen, str]]]


def users_of(checked: Checked) -> Users:
    """Return the blocks and pins that take each output."""
    found: Users = {}
    for seen in checked.seen.values():
        for pin, source in seen.sources.items():
            found.setdefault(source, []).append((seen, pin))
    return found


def described(checked: Checked, end: str, taken: Users) -> Json:
    """Return role and axes of an output, from the block that makes it or the first that takes it."""
    node, _, pin = end.partition(".")
    block = checked.seen[node].block
    op = block.row if block else None
    users = taken.get(end, [])
    layouts = [_layout(checked.seen[node])] + [_layout(seen) for seen, _ in users]
    layout = next((text for text in layouts if text), None)
    if block is not None and block.pool is not None:
        return {"role": "value" if block.pool.form == POOL else "gradient", "axes": layout}
    if op is not None:
        first = op.outputs[0] == pin
        role = ("gradient" if op.order else "value") if first else "index" if pin == "argmax" else "other"
        return {"role": role, "axes": layout if first or pin == "argmax" else None}
    roles = [_role(seen, p) for seen, p in users]
    return {"role": next((role for role in roles if role != "value"), "value"), "axes": layout}


def _layout(seen: Seen) -> str | None:
    op = seen.block.row if seen.block else None
    if seen.block is not None and seen.block.pool is not None:
        layout: str | None = seen.values.get("layout")
        return layout
    return None if op is None else str(seen.values.get("data_format", op.formats[0]))


def _role(seen: Seen, pin: str) -> str:
    """Return the role of an array for the block that takes it."""
    op = seen.block.row if seen.block else None
    if seen.block is not None and seen.block.pool is not None:
        return "value" if pin == "x" else "gradient"
    param = next((p for p in op.params if p.name == pin), None) if op else None
    if op is None or param is None:
        return "value"
    if param.kind is Kind.INDEX:
        return "index"
    if param.kind not in (Kind.SOURCE, Kind.DEST):
        return "other"
    last = [p.name for p in op.params if p.kind in (Kind.SOURCE, Kind.DEST)][-1]
    return "gradient" if op.order and pin == last else "value"


def axes(letters: str | None, rank: int | None) -> list[str]:
    """Return a letter per dimension."""
    if rank is None:
        return []
    if letters is not None and len(letters) == rank:
        return list(letters)
    return list(_AXES.get(rank, "WHDCN"[:rank][::-1] if rank <= 5 else "?" * rank))


def outline(spec: Spec, about: Json) -> Json:
    """Return an output of a block that did not run."""
    shape = None if spec.shape is None else list(spec.shape)
    rank = None if shape is None else len(shape)
    return {"shape": shape, "dtype": spec.dtype, "role": about["role"], "axes": axes(about["axes"], rank)}


def problem(found: PageProblem) -> Json:
    """Return a problem in the form that the page lists."""
    repair = None if found.repair is None else {"label": found.repair.label, "edits": list(found.repair.edits)}
    return {
        "node": found.node, "pin": found.pin, "at": found.at, "length": found.length, "expected": found.expected,
        "got": found.got, "expected_shape": None if found.expected_shape is None else list(found.expected_shape),
        "got_shape": None if found.got_shape is None else list(found.got_shape), "sentence": str(found),
        "repair": repair,
    }  # fmt: skip


# ---- links


def subject_of(name: str, seen: Seen, ran: Ran, run: Run) -> Subject | None:
    """Return a block that ran, ready to be explained."""
    if seen.block is None or not seen.block.windowed or ran.result is None:
        return None
    if "subject" not in ran.result.notes:
        try:
            ran.result.notes["subject"] = _subject(seen, inputs_of(seen, run), ran.result.outputs)
        except REFUSALS:
            ran.result.notes["subject"] = None
    found: Subject | None = ran.result.notes["subject"]
    if found is None:
        return None
    # Several blocks may share a cached result, so the cache does not hold names.
    names = {pin: called(source) for pin, source in seen.sources.items()} | {
        pin: called(f"{name}.{pin}") for pin in seen.block.outputs
    }
    return named(found, names)


def _subject(seen: Seen, arrays: Mapping[str, Array], outputs: Mapping[str, Array]) -> Subject | None:
    assert seen.block is not None
    if seen.pool_call is not None:
        return seen.pool_call.subject(arrays, outputs["output"])
    op = seen.block.row
    if op is None:
        return None
    given, attrs = arguments(op, seen, arrays)
    return subject(op, _bound(op, seen, given, attrs), given, attrs, outputs)


def _bound(op: Op, seen: Seen, given: Mapping[str, Array], attrs: Mapping[str, Any]) -> BoundCall:
    """Return the call that the check bound; bind again if its windows depend on sequences, which may be drawn anew."""
    if seen.call is not None and op.param(Kind.SEQUENCE) is None:
        return seen.call
    return bind(op, given, attrs, ArgumentErrors(op.name))


def called(end: str) -> str:
    """Return the name of an output in sentences: its block's name, unless the block has several outputs."""
    return end.removesuffix(".output")


class LinkBudget:
    """A count of the window cells whose links a page lists."""

    def __init__(self, limits: Limits | None) -> None:
        self.room = None if limits is None else limits.links

    def take(self, count: int) -> bool:
        """Reserve room for so many cells; return False if there is not enough."""
        if self.room is None or count > self.room:
            return self.room is None
        self.room -= count
        return True


def relation(
    name: str, seen: Seen, ran: Ran, run: Run, budget: LinkBudget, known: Collection[str] = ()
) -> tuple[Json | None, Json | None]:
    """Return links and conservation of a block; none if it has no windows.

    If its windows have too many cells, the links list no hits: the page asks for those of single windows.
    """
    made = subject_of(name, seen, ran, run)
    if made is None or ran.result is None:
        return None, None
    count = count_cells(made.plan)
    if count > MOST_LINKED or not budget.take(count):
        if made.rule.verb in GIVEN:
            return None, None  # any window may point to a cell, so all hits would have to be searched
        few = made.links(np.zeros(0, np.int64))
        return _links(name, seen, made, few, None if few.ptr is None else {"ref": f"{ran.key}.hits", "ask": True}), None
    links: Links = ran.result.notes.get("links") or made.links()
    if links.nbytes <= ran.result.room:
        ran.result.notes["links"] = links
    ref = f"{ran.key}.hits"
    hits: Json | None = None
    if links.ptr is not None and links.cell is not None:
        hits = {"ref": ref}
        if ref not in known:
            hits |= {"ptr": numbers(links.ptr.astype(np.int32)), "cell": numbers(links.cell.astype(np.int32))}
    return _links(name, seen, made, links, hits), conservation(made, links)


def _links(name: str, seen: Seen, made: Subject, links: Links, hits: Json | None) -> Json:
    sides: list[Json | None] = []
    for axis in links.axes:
        if axis is None:
            sides.append(None)
            continue
        before, after = cuts(axis)
        sides.append({"start": axis.start.tolist(), "stop": axis.stop.tolist(), "before": before.tolist(),
                      "after": after.tolist(), "step": axis.step})  # fmt: skip
    outputs = seen.block.outputs if seen.block else ()
    tensors: list[Json] = [{"symbol": p.symbol, "dtype": made.arrays[p.pin].dtype.name, "pin": p.pin, "side": p.side, "name": p.called,
                "ref": f"{name}.{p.pin}" if p.pin in outputs else seen.sources.get(p.pin)} for p in made.operands]  # fmt: skip
    for entry, p in zip(tensors, made.operands, strict=True):
        if entry["ref"] is None:  # no block shows it
            entry["values"] = numbers(made.arrays[p.pin])
    return {"verb": links.verb.value, "taken": links.taken, "how": asdict(links.how), "source": list(links.plan.source), "dest": list(links.plan.dest),
            "tensors": tensors, "axes": sides, "hits": hits, "eps": made.rule.eps or None}  # fmt: skip


# ---- conservation


def conservation(made: Subject, links: Links) -> Json | None:
    """Return how much of a gradient arrived, and which windows lost or repeated it."""
    given, result = made.of("g"), made.of("dx")
    if given is None or result is None or links.taken == "norm" or links.how.divide != "cells":
        return None  # such a gradient need not keep its sum
    g, dx = (made.arrays[p.pin].astype(np.float64) for p in (given, result))
    takers = np.ones(g.size, np.int64) if links.ptr is None else np.diff(links.ptr)
    if links.taken in ("first", "split"):
        takers = np.minimum(takers, 1)
    flat = g.reshape(-1)
    with np.errstate(all="ignore"):
        total, arrived = float(flat.sum()), float(dx.sum())
        lost, extra = float(flat[takers == 0].sum()), float((flat * np.maximum(takers - 1, 0)).sum())
        size = float(np.abs(flat).sum())
    odd = np.flatnonzero((takers != 1) & (flat != 0))
    windows = [{"cell": [int(i) for i in np.unravel_index(at, g.shape)], "amount": _finite(flat[at]),
                "why": "lost" if takers[at] == 0 else "repeated"} for at in odd[:_SHOWN]]  # fmt: skip
    exact = made.arrays[given.pin].dtype
    slack = 0.0 if exact.kind in "iu" else size * 64 * _epsilon(exact)
    equal = bool(abs(total - arrived) <= slack)
    return {
        "in": {"pin": given.pin, "sum": _finite(total)}, "out": {"pin": result.pin, "sum": _finite(arrived)},
        "equal": equal, "comparable": math.isfinite(total) and math.isfinite(arrived), "lost": _finite(lost), "extra": _finite(extra), "windows": windows,
        "sentence": _line(given.pin, result.pin, total, arrived, equal, odd.size, takers), "where": _where(windows, g),
    }  # fmt: skip


def _where(windows: list[Json], g: Array) -> str:
    """Name the first windows that lost or repeated their gradient, with its value."""
    shown = [f"[{','.join(map(str, w['cell']))}] {w['why']} {number(g[tuple(w['cell'])])}" for w in windows[:_NAMED]]
    return f"windows: {'; '.join(shown)}{' …' if len(windows) > _NAMED else ''}" if shown else ""


def _epsilon(dtype: np.dtype[Any]) -> float:
    return {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23}.get(dtype.name, 2.0**-52)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _line(g: str, dx: str, total: float, arrived: float, equal: bool, odd: int, takers: npt.NDArray[np.int64]) -> str:
    if not (math.isfinite(total) and math.isfinite(arrived)):
        return f"sum of {g} {number(total)}, sum of {dx} {number(arrived)}: cells that are not finite have no sum to compare"
    sums = f"sum of {g} {number(total)} {'=' if equal else '≠'} sum of {dx} {number(arrived)}"
    if equal:
        return sums
    if not odd:
        return sums + ": rounding"
    lost = int((takers == 0).sum())
    parts = [f"{lost} of {takers.size} windows lose theirs"] if lost else []
    many = int((takers > 1).sum())
    parts += [f"{many} of {takers.size} windows give theirs more than once"] if many else []
    return f"{sums}: {', '.join(parts)}"
