"""Print op x layout x dtype as a Markdown table; compare every cell with the reference now.

    python tools/grid.py

A cell says how many calls gave the reference's bits, or that the op refused a type that its row does not have.
Exit status 1 if any cell differs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "helpers"))

from support import FAST, Case, arguments, dtype_of, wrong

from poolgrad._ops.table import OPS, REALS, Op

GEOMETRY = {
    2: [
        {"x": (2, 5, 6, 3), "k": (3, 2), "s": (2, 1), "pad": "SAME"},
        {"x": (1, 6, 4, 9), "k": (2, 2), "s": (2, 2), "pad": "VALID"},
    ],
    3: [
        {"x": (1, 3, 4, 5, 2), "k": (2, 3, 2), "s": (1, 2, 1), "pad": "SAME"},
        {"x": (1, 2, 4, 4, 9), "k": (2, 2, 2), "pad": "VALID"},
    ],
}
DRAWN = [{"x": (2, 7, 6, 3), "ratio": (1.5, 2.0)}, {"x": (1, 5, 9, 9), "ratio": (1.3, 1.7), "overlapping": True}]


def cell(op: Op, dtype: str, first: bool) -> tuple[str, list[str]]:
    """Return the text of a cell, and its errors."""
    fields = DRAWN if op.family[0] == "f" else GEOMETRY[op.spatial]
    cases = [Case(op.name, dtype, first=first, data=data, **f) for f in fields for data in ("ties", "wild")]
    if dtype not in op.dtypes:
        return refusal(Case(op.name, op.dtypes[0], first=first, **fields[0]), dtype)
    found = [line for case in cases for line in wrong(case)]
    return f"{len(cases)} equal" if not found else f"**{len(found)} differ**", found


def refusal(case: Case, dtype: str) -> tuple[str, list[str]]:
    """Check that the op raises TypeError for a type that its row lacks."""
    args = {
        name: value.astype(dtype_of(dtype))
        if isinstance(value, np.ndarray) and value.dtype == dtype_of(case.dtype) and value.ndim > 1
        else value
        for name, value in arguments(case).items()
    }
    try:
        FAST[case.op](**args)
    except TypeError:
        return "refused", []
    return "**accepted**", [f"{case.op} accepts {dtype}"]


def main() -> int:
    """Print the table, then all errors."""
    print("| op | layout | " + " | ".join(REALS) + " |")
    print("|---|---|" + "---|" * len(REALS))
    trouble: list[str] = []
    for op in OPS.values():
        for first, layout in enumerate(op.formats):
            cells = [cell(op, dtype, bool(first)) for dtype in REALS]
            trouble += [line for _, found in cells for line in found]
            print(f"| {op.name} | {layout} | " + " | ".join(text for text, _ in cells) + " |")
    for line in trouble:
        print(line, file=sys.stderr)
    return 1 if trouble else 0


if __name__ == "__main__":
    sys.exit(main())
