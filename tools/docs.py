"""Writes what follows from the table: docs/ops, the index, stub and docstrings of raw_ops, and the README's family table.

python tools/docs.py          writes
python tools/docs.py --check  only says what is out of date, and fails if anything is
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from poolgrad import raw_ops
from poolgrad._cli.trial import draw_call
from poolgrad._ops import problem
from poolgrad._ops.bind import FORWARD
from poolgrad._ops.semantics import Kernel, WindowRule
from poolgrad._ops.table import OPS, REQUIRED, Kind, Op, Param

ROOT = Path(__file__).parents[1]

FORMULAS = {
    Kernel.FOLD: "y[i] = sum of x[j] over the cells j of window i, divided by their number",
    Kernel.SPREAD: "dx[j] = sum of g[i] / (number of cells of window i) over the windows i that cover j",
    Kernel.NEAR: "dx[j] = sum of g[i] over the windows i that cover j and have abs(x[j] - y[i]) < {eps:g}",
    Kernel.SELECT: "y[i] = largest x[j] over the cells j of window i",
    Kernel.ARGMAX: "y[i] = largest x[j] over the cells j of window i; argmax[i] = the flat position of the first such j",
    Kernel.ROUTE: "dx[j] = sum of g[i] over the windows i whose first largest cell is j",
    Kernel.RECALL: "result[i] = v[j] at the first cell j of window i where x[j] = y[i], 0 if there is none",
    Kernel.SCATTER: "dx[j] = sum of g[k] over the k with argmax[k] = j",
    Kernel.GATHER: "result[k] = v[argmax[k]]",
}
WINDOWS = {
    WindowRule.CLIP: "cut off at the edges of the input",
    WindowRule.REACH: "cut off at the edges; one longer than the input that begins before it reaches to the input's end",
    WindowRule.SHIFT: "cut off at the edges; under SAME with strides above the window, the first window begins inside",
    WindowRule.EDGES: "between neighbouring entries of a sequence; overlapping windows also have the cell at their end",
}
FAMILY_NAMES = {
    "avg": "mean",
    "max": "maximum",
    "fmax": "fractional maximum",
    "favg": "fractional mean",
    "qavg": "mean of codes",
    "qmax": "maximum of codes",
}


def signature(op: Op) -> str:
    """Return the op's signature, an argument per line."""
    words = str(inspect.signature(getattr(raw_ops, op.name)))[1:-1].split(", ")
    return f"raw_ops.{op.name}(\n" + "".join(f"    {word},\n" for word in words) + ")"


# ---- a page per op


def line(op: Op) -> str:
    """Return a problem small enough to check by hand."""
    shape = "1x3x3x1" if op.spatial == 2 else "1x2x3x3x1"
    sizes = "x".join(["2"] * op.spatial)
    fractional = op.rule.windows is WindowRule.EDGES
    words = "x=1x5x5x1 ratio=2x2 overlapping" if fractional else f"x={shape} k={sizes} s={'x'.join(['1'] * op.spatial)}"
    return f"{op.name} {op.dtypes[1] if op.family.startswith('q') else 'float32'} {words}"


def literal(value: Any) -> str:
    """Return an argument as a user would type it."""
    if not isinstance(value, np.ndarray):
        return repr(value)
    kind = f"np.{value.dtype.name}"
    if value.ndim < 2:
        return f"np.array({value.tolist()}, {kind})"
    return f"np.array({flat(value)}, {kind}).reshape{value.shape}"


def flat(array: np.ndarray[Any, Any]) -> str:
    """Return all elements in a row, whole numbers without a point."""
    return repr([int(v) if v == int(v) else v for v in array.ravel().tolist()])


def example(op: Op) -> str:
    """Call the op; show its arguments and its result."""
    name, given = draw_call(problem.parse(line(op)))
    result = getattr(raw_ops, name)(**given)
    plain = {p.name: p.plain_default for p in op.params}
    used = {k: v for k, v in given.items() if isinstance(v, np.ndarray) or v != plain[k]}
    lines = [">>> import numpy as np", ">>> from poolgrad import raw_ops", f">>> result = raw_ops.{name}("]
    lines += [f"...     {key}={literal(value)}," for key, value in used.items()] + ["... )"]
    for field in op.outputs:
        array = getattr(result, field) if len(op.outputs) > 1 else result
        named = f"result.{field}" if len(op.outputs) > 1 else "result"
        lines += [f">>> {named}.shape, {named}.ravel().tolist()", repr((array.shape, array.ravel().tolist()))]
    return "\n".join(lines)


def argument(param: Param) -> str:
    """Return one row of the table of arguments."""
    default = "" if param.default is REQUIRED else f"`{param.plain_default!r}`"
    return f"| `{param.name}` | {param.kind.doc}{', ' + param.dtype if param.dtype else ''} | {default} |"


def page(op: Op) -> str:
    """Return the page of an op."""
    related = [o.name for o in OPS.values() if (o.family, o.spatial) == (op.family, op.spatial) and o is not op]
    parts = [
        f"# {op.name}", op.summary, f"```python\n{signature(op)}\n```",
        "\n".join(["| argument | what | default |", "|---|---|---|", *map(argument, op.params)]),
        f"**Returns** {', '.join(f'`{name}`' for name in op.outputs)}{', a named tuple' if op.outputs[1:] else ''}.",
        f"**Dtypes** {', '.join(op.dtypes)}. **Layouts** {', '.join(op.formats)}."
        + (f" **Padding** {', '.join(op.paddings)}." if op.param(Kind.PADDING) else "")
        + (" **Depthwise** windows over the channels alone are taken." if op.depthwise else ""),
        "## Formula", f"    {FORMULAS[op.rule.verb].format(eps=op.rule.eps)}", f"Windows: {WINDOWS[op.rule.windows]}.",
        "## Example", f"```python\n{example(op)}\n```",
        f"`poolgrad try \"{problem.parse(line(op))}\"` shows the same call.",
        "## Against TensorFlow 2.21 on CPU", f"{str(op.promise).capitalize()}, except:",
        "\n".join(f"- {deviation}" for deviation in op.promise.deviations),
    ]  # fmt: skip
    if related:
        parts.append("See also " + ", ".join(f"[{name}]({name}.md)" for name in related) + ".")
    return "\n\n".join(parts) + "\n"


def family_table(prefix: str) -> str:
    """Return a table with families down and orders across; every op links to its page."""
    rows = ["| windows | forward | gradient | second order |", "|---|---|---|---|"]
    for family, spatial in dict.fromkeys((op.family, op.spatial) for op in OPS.values()):
        cells = []
        for order in (0, 1, 2):
            names = [op.name for op in OPS.values() if (op.family, op.spatial, op.order) == (family, spatial, order)]
            cells.append("<br>".join(f"[{name}]({prefix}{name}.md)" for name in names) or "-")
        rows.append(f"| {FAMILY_NAMES[family]}, {spatial} dimensions | {' | '.join(cells)} |")
    return "\n".join(rows)


GUIDES = (
    ("pools.md", "Pools", "pool NumPy arrays; taps, operators, derivatives"),
    ("torch.md", "PyTorch", "the pools in torch"),
    ("jax.md", "JAX", "the pools in JAX and Flax"),
    ("tensorflow.md", "TensorFlow and Keras", "the pools in TensorFlow, layers for Keras"),
    ("autograd.md", "autograd", "the pools in HIPS autograd"),
    ("xarray.md", "xarray", "the pools of labelled arrays, in memory or on Dask"),
    ("c.md", "C and C++", "the core as a C library, without Python"),
    ("scale.md", "large arrays", "arrays larger than memory: Zarr, HDF5, Dask, pyramids, the command line"),
    ("graph.md", "Graphs", "build and run pages of blocks in Python"),
    ("studio.md", "Studio", "wire operators on a local page and explain each number"),
    ("performance.md", "Performance", "speed against peers, and its limits"),
    ("bits.md", "Bits", "one hash per operator over threads, instruction sets and layouts"),
    ("promises.md", "Promises", "each promise, its test and its last figure"),
    ("packaging.md", "Packaging", "contents of a package and how to check them"),
    ("glossary.md", "Glossary", "one line per word"),
)


def dev_pages() -> str:
    """List the pages for developers by their titles, architecture first."""
    pages = sorted((ROOT / "docs/dev").glob("*.md"), key=lambda path: (path.stem != "architecture", path.name))
    titles = (path.read_text("utf-8").splitlines()[0].removeprefix("# ") for path in pages)
    return "\n".join(f"- [{title}](dev/{path.name})" for title, path in zip(titles, pages, strict=True))


def index() -> str:
    """Return the first page of the documents: every guide, the operators, problem lines, pages for developers."""
    grammar = (problem.__doc__ or "").partition("\n")[2].strip("\n")
    guides = "\n".join(f"| [{title}]({file}) | {content} |" for file, title, content in GUIDES)
    parts = ["# poolgrad", "## Guides", f"| guide | content |\n|---|---|\n{guides}"]
    parts += ["## Operators", family_table("ops/"), "## Problems in one line", grammar]
    return "\n\n".join([*parts, "## For developers", dev_pages()]) + "\n"


# ---- docstrings


OUTPUTS = {
    "argmax": "Flat position of the first maximum of each window.",
    "row_pooling_sequence": "Borders of the windows along the height, int64.",
    "col_pooling_sequence": "Borders of the windows along the width, int64.",
    "min_output": "`min_input`, unchanged.",
    "max_output": "`max_input`, unchanged.",
}
RAISES = """Raises
------
ValueError
    If a value, shape or size is wrong. The message names every wrong argument: what came, what was wanted.
TypeError
    If an argument has the wrong type, or an array a dtype that the operator does not take.
NotImplementedError
    If the windows pool the batch, or the channels in a way that the operator does not offer.
MemoryError
    If the result does not fit into memory."""


def fill(text: str, indent: str = "") -> str:
    """Wrap a paragraph."""
    return textwrap.fill(text, 100, initial_indent=indent, subsequent_indent=indent, break_long_words=False)


def described(op: Op, param: Param) -> str:
    """Return an argument in the form of numpydoc."""
    default = "" if param.default is REQUIRED or param.kind is Kind.NAME else f", default {param.plain_default!r}"
    meaning = fill(param.kind.meaning(op, param), "    ")
    return f"{param.name} : {param.kind.type_name(op, param)}{default}\n{meaning}"


def returned(op: Op) -> str:
    """Return the results in the form of numpydoc."""
    side = "output" if op.rule.verb in FORWARD else "input"
    first = f"The result, with the shape of the {side} and the dtype of the arrays."
    if len(op.outputs) == 1:
        return f"ndarray\n    {first}"
    fields = [f"{name} : ndarray\n    {OUTPUTS.get(name, first)}" for name in op.outputs]
    return "\n".join([*fields, "", "The results are the fields of a named tuple."])


def docstring(op: Op) -> str:
    """Return the docstring of a function of raw_ops."""
    notes = [
        f"    {FORMULAS[op.rule.verb].format(eps=op.rule.eps)}",
        fill(f"Windows: {WINDOWS[op.rule.windows]}."),
        fill(f"Dtypes: {', '.join(op.dtypes)}. Layouts: {', '.join(op.formats)}."),
        f"Against TensorFlow 2.21 on CPU: {op.promise}, except:",
        "\n".join(f"- {deviation}" for deviation in op.promise.deviations),
    ]
    related = [o for o in OPS.values() if (o.family, o.spatial) == (op.family, op.spatial) and o is not op]
    parts = [
        op.summary,
        "\n".join(["Parameters\n----------", *(described(op, p) for p in op.params)]),
        f"Returns\n-------\n{returned(op)}",
        RAISES,
        *(["See Also\n--------\n" + "\n".join(f"{o.name} : {o.summary}" for o in related)] if related else []),
        "Notes\n-----\n" + "\n\n".join(notes),
        f"Examples\n--------\n{example(op)}",
    ]
    return "\n\n".join(parts) + "\n"


def docstrings() -> str:
    """Return the module that holds all docstrings of raw_ops, so that importing it computes nothing."""
    entries = "".join(f'    "{op.name}": """{docstring(op)}""",\n' for op in OPS.values())
    return f'"""The docstrings of raw_ops, made by tools/docs.py from the table."""\n\nDOCSTRINGS = {{\n{entries}}}\n'


# ---- the stub


STUB_HEAD = """# Made by tools/docs.py from the table.
from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

import numpy as np
import numpy.typing as npt

from ._ops.table import Op

S = TypeVar("S", bound=np.generic)
Array = npt.NDArray[Any]
Sizes = Sequence[int] | Array

__all__: list[str]
"""
RESULTS = {  # the scalar types of results whose dtype is not that of the cells
    "argmax": "np.int32 | np.int64",
    "row_pooling_sequence": "np.int64",
    "col_pooling_sequence": "np.int64",
    "min_output": "np.float32",
    "max_output": "np.float32",
}


def stub() -> str:
    """The types of raw_ops: a result has the dtype of the first array of cells, which a list does not tell."""
    parts = [STUB_HEAD]
    for op in OPS.values():
        returns = "npt.NDArray[{}]"
        if len(op.outputs) > 1:
            fields = (f"    {name}: npt.NDArray[{RESULTS.get(name, 'S')}]\n" for name in op.outputs)
            parts.append(f"class _{op.name}(NamedTuple, Generic[S]):\n" + "".join(fields))
            returns = f"_{op.name}[{{}}]"
        cells = next(p for p in op.params if p.kind in (Kind.SOURCE, Kind.DEST))
        for given, scalar in (("npt.NDArray[S]", "S"), ("npt.ArrayLike", "np.number[Any]")):
            args = "".join(_argument(p, given if p is cells else p.kind.annotation(op)) for p in op.params)
            parts.append(f"@overload\ndef {op.name}(\n    *,\n{args}) -> {returns.format(scalar)}: ...\n")
    parts.append("def make(op: Op, verbs: Any = ...) -> Callable[..., Any]: ...\n")
    return _spaced(parts)


def _argument(param: Param, annotation: str) -> str:
    return f"    {param.name}: {annotation}{'' if param.default is REQUIRED else ' = ...'},\n"


def _spaced(parts: list[str]) -> str:
    """Put blank lines around classes but not functions, as formatters want stubs."""
    text = parts[0]
    for before, part in pairwise(parts):
        text += ("\n" if part.startswith("class") or before is parts[0] or before.startswith("class") else "") + part
    return text


# ---- all of it


def rendered() -> Iterator[tuple[Path, str]]:
    """Return every file and its wanted content."""
    for op in OPS.values():
        yield ROOT / f"docs/ops/{op.name}.md", page(op)
    yield ROOT / "docs/index.md", index()
    yield ROOT / "src/poolgrad/raw_ops.pyi", stub()
    yield ROOT / "src/poolgrad/_ops/docstrings.py", docstrings()
    readme = (ROOT / "README.md").read_text("utf-8")
    head, begin, rest = readme.partition("<!-- family:begin -->\n")
    _, end, tail = rest.partition("<!-- family:end -->")
    if not begin or not end:
        raise SystemExit("README.md: wanted <!-- family:begin --> and <!-- family:end -->")
    yield ROOT / "README.md", head + begin + family_table("docs/ops/") + "\n" + end + tail


def stale() -> list[str]:
    """Return the files that differ from the table, and pages of ops that do not exist."""
    wrong = [p for p, text in rendered() if not p.exists() or p.read_text("utf-8") != text]
    extra = [p for p in (ROOT / "docs/ops").glob("*.md") if p.stem not in OPS]
    return [str(p.relative_to(ROOT)) for p in wrong + extra]


def main() -> int:
    """Write the files, or check them."""
    if "--check" in sys.argv[1:]:
        names = stale()
        print("\n".join(f"{name} is out of date: run tools/docs.py" for name in names) or "up to date")
        return 1 if names else 0
    for path, text in rendered():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
