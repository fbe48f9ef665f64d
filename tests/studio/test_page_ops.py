"""Place every op of the table from the palette, wire it by its pins, and run it: it gives the library's result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hands import export, place, rename, settled, wire, write
from support import Case, arguments, python

from poolgrad import raw_ops
from poolgrad._ops.table import OPS, Kind
from poolgrad.graph import service

TYPES = {"float32": "DT_FLOAT", "uint8": "DT_UINT8", "int64": "DT_INT64", "int32": "DT_INT32"}


def case_of(op: str) -> Case:
    """Return a small case with several windows along both axes."""
    row = OPS[op]
    space = (4, 3) if row.spatial == 2 else (2, 4, 3)
    window = {} if row.family[0] == "f" else {"k": (2,) * row.spatial, "pad": "SAME"}
    return Case(op, "uint8" if row.family[0] == "q" else "float32", (1, *space, 2), **window)


def text(value: Any) -> str:
    """Return an attribute as one types it."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def draw(page: Any, op: str, given: dict[str, Any]) -> str:
    """Draw the op as a block, its arrays as constants wired to it, everything else as text."""
    facts = next(block for block in service.ops()["blocks"] if block["op"] == op)
    kinds = {pin["name"]: pin["kind"] for pin in facts["pins"]}
    block, attrs = place(page, op), []
    for name, value in given.items():
        array = np.asarray(value)
        if kinds.get(name) in ("input", "either") and array.ndim:
            rename(page, place(page, "Const"), f"in_{name}")
            shape = "".join(f"[{n}]" for n in array.shape)
            write(
                page,
                f"in_{name}",
                val=",".join(map(str, array.ravel().tolist())),
                shape=shape,
                dtype=TYPES[array.dtype.name],
            )
            wire(page, f"in_{name}.output", f"{block}.{name}")
        elif name in kinds:
            write(page, block, **{name: text(value)})
        elif OPS[op].param(Kind.NAME) is None or name != "name":
            attrs.append(f"{name}_ = {text(value)};")
    if attrs:
        write(page, block, attrs=" ".join(attrs))
    return block


def exported(page: Any, folder: Path) -> dict[str, str]:
    """Run the exported script alone; return the arrays that it fetches, as bytes in hexadecimal."""
    script = export(page, "Python", folder)
    done = python(str(script), str(folder / "arrays.npz"))
    assert done.returncode == 0, done.stderr
    with np.load(folder / "arrays.npz") as saved:
        return {name: array.tobytes().hex() for name, array in saved.items()}


@pytest.mark.parametrize("op", OPS)
def test_an_op_from_the_palette_gives_what_the_library_gives(page, op, tmp_path):
    given = arguments(case_of(op))
    page.get_by_label("New page").click()
    block = draw(page, op, given)
    settled(page)
    assert page.evaluate("() => studio.store.run.problems.map(p => p.sentence)") == []
    result = getattr(raw_ops, op)(**given)
    wanted = dict(zip(OPS[op].outputs, result if len(OPS[op].outputs) > 1 else (result,), strict=True))
    for pin, array in wanted.items():
        got = page.evaluate(
            "key => { const t = studio.store.tensors.get(key); return [t.shape, t.dtype, [...t.values]]; }",
            f"{block}.{pin}",
        )
        assert (got[0], got[1]) == (list(array.shape), array.dtype.name)
        assert np.array_equal(np.array(got[2]).reshape(array.shape), array.astype(np.float64))
    assert page.evaluate("id => studio.store.run.nodes[id].links !== null", block)
    assert exported(page, tmp_path) == {f"{block}.{pin}": array.tobytes().hex() for pin, array in wanted.items()}
    cell = page.locator(f'.inspector [data-tensor="{block}.{OPS[op].outputs[0]}"] [data-cell]').first
    page.locator(f'.block[data-id="{block}"]').focus()
    cell.focus()
    assert page.get_by_label("Explanation").locator("strong").inner_text()


def test_the_palette_has_every_op_of_the_table(page):
    names = set(page.get_by_role("option").all_inner_texts())
    assert set(OPS) <= names
    assert {"Const", "Random", "File", "Image", "Placeholder"} <= names
