"""Read cells from workload files or problem lines. A cell is one op on one shape, layout and dtype."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poolgrad import windows
from poolgrad._ops import problem
from poolgrad._ops.table import OPS, Kind, Op

BUNDLED = Path(__file__).with_name("workloads.json")
SEEDS = ("AvgPoolGrad", "MaxPoolGrad", "MaxPoolGradGrad", "FractionalMaxPoolGrad", "FractionalAvgPoolGrad")
CACHE_LINE = 64
ITEMSIZE = {"float64": 8, "int64": 8, "uint64": 8, "float32": 4, "int32": 4, "uint32": 4, "int8": 1, "uint8": 1}


@dataclass(frozen=True)
class Extent:
    """A pooled axis: length n, window k, stride s, padding before and after, m windows."""

    n: int
    k: int
    s: int
    before: int
    after: int
    m: int


@dataclass(frozen=True)
class Cell:
    """A workload's shape under one op, layout and dtype; `x` is the channels-last shape."""

    workload: str
    kind: str
    layout: str
    dtype: str
    x: tuple[int, ...]
    ksize: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    padding: str = "VALID"
    ratio: tuple[float, ...] = ()
    overlapping: bool = False
    seeds: tuple[int, int] = (7, 11)
    pseudo: bool = True

    @property
    def op(self) -> Op:
        """Return the op's row in the table."""
        return OPS[self.kind]

    @property
    def name(self) -> str:
        """Return the cell's name, one word, which `--only` matches."""
        end = "/overlapping" if self.overlapping else ""
        return f"{self.workload}/{self.kind}/{self.layout}/{self.dtype}{end}"

    @property
    def fractional(self) -> bool:
        """Return True if the windows come from sequences."""
        return bool(self.ratio)

    @property
    def maximal(self) -> bool:
        """Return True if the op belongs to the max family."""
        return self.op.family in ("max", "fmax")

    @property
    def first(self) -> bool:
        """Return True if channels come first."""
        return self.layout.index("C") == 1

    @property
    def twin(self) -> Cell | None:
        """Return the same work in the other layout; None if the op has one layout only."""
        others = [layout for layout in self.op.formats if layout != self.layout]
        return dataclasses.replace(self, layout=others[0]) if others else None

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the input's shape in the cell's layout."""
        return self.in_layout(self.x)

    @property
    def space(self) -> tuple[int, ...]:
        """Return the pooled dimensions in the cell's layout."""
        return tuple(range(2, len(self.x))) if self.first else tuple(range(1, len(self.x) - 1))

    def in_layout(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Reorder channels-last sizes, one per dimension, to the cell's layout."""
        return (sizes[0], sizes[-1], *sizes[1:-1]) if self.first else sizes

    def every(self, sizes: tuple[int, ...]) -> list[int]:
        """Add 1 for batch and channels to the sizes of the pooled dimensions, in the cell's layout."""
        return list(self.in_layout((1, *sizes, 1)))

    @property
    def extents(self) -> tuple[Extent, ...]:
        """Return the pooled axes of a cell that is not fractional."""
        return tuple(_extent(*axis, self.padding) for axis in zip(self.x[1:-1], self.ksize, self.strides, strict=True))

    @property
    def dest(self) -> tuple[int, ...]:
        """Return the output's shape in the cell's layout."""
        if self.fractional:
            cut = tuple(math.floor(n / r) for n, r in zip(self.x[1:-1], self.ratio[1:-1], strict=True))
        else:
            cut = tuple(e.m for e in self.extents)
        return self.in_layout((self.x[0], *cut, self.x[-1]))

    @property
    def itemsize(self) -> int:
        """Return the bytes of an element."""
        return ITEMSIZE.get(self.dtype, 2)

    @property
    def traffic(self) -> int:
        """Return the bytes that any algorithm must read and write at least once.

        A second-order op reads only the chosen cells of v: at most a cache line per output.
        """
        x, y = math.prod(self.shape) * self.itemsize, math.prod(self.dest) * self.itemsize
        if self.op.order == 0:
            return x + y
        if self.op.order == 2:
            return x + y + y + min(x, math.prod(self.dest) * CACHE_LINE)
        if not self.maximal:
            return y + x
        reads_y = self.kind in ("MaxPool3DGrad", "FractionalMaxPoolGrad")  # the others only check its shape
        return x + y + x + (y if reads_y else 0)

    def traffic_given(self, index_itemsize: int) -> int:
        """Return the traffic if the positions are given: indices instead of x and y."""
        x, y = math.prod(self.shape) * self.itemsize, math.prod(self.dest) * self.itemsize
        where = math.prod(self.dest) * index_itemsize
        return where + y + (min(x, math.prod(self.dest) * CACHE_LINE) if self.op.order == 2 else x)


def solid(kind: str) -> str:
    """Return the op of three dimensions that does what an op of two does.

    >>> solid("MaxPoolGrad")
    'MaxPool3DGrad'
    """
    return kind.replace("Pool", "Pool3D", 1)


def _extent(n: int, k: int, s: int, padding: str) -> Extent:
    m = windows.same_length(n, s) if padding == "SAME" else windows.valid_length(n, k, s)
    before = max(windows.same_pad(n, k, s), 0) if padding == "SAME" else 0
    after = max((m - 1) * s + k - n - before, 0)
    return Extent(n, k, s, before, after, m)


def of_workload(entry: dict[str, Any]) -> Iterator[Cell]:
    """Yield all cells of one workload entry; skip kinds that do not exist for a dtype."""
    for kind in entry["kinds"]:
        op = OPS[kind]
        for layout in entry.get("layouts", op.formats[:1]):
            for dtype in entry["dtypes"]:
                if dtype not in op.dtypes or layout not in op.formats:
                    continue
                for overlapping in entry.get("overlapping", [False]):
                    yield Cell(
                        entry["id"], kind, layout, dtype, tuple(entry["x"]),
                        tuple(entry.get("ksize", ())), tuple(entry.get("strides", ())), entry.get("padding", "VALID"),
                        tuple(entry.get("pooling_ratio", ())), overlapping,
                        (entry.get("seed", 7), entry.get("seed2", 11)), entry.get("pseudo_random", True),
                    )  # fmt: skip


def of_line(line: str) -> Cell:
    """Return the cell that a problem line describes; refuse arguments that not every peer has.

    >>> of_line("fmax x=1x9x9x5 ratio=1.5x1.5 grad pseudo seed=7").name
    '1x9x9x5_r1.5x1.5/FractionalMaxPoolGrad/NHWC/float32'
    """
    asked = problem.parse(line)
    op, rank = OPS[asked.op], len(asked.x)
    order = [asked.layout.index(letter) for letter in op.formats[0]]
    x, k, s = (tuple(sizes[d] for d in order) if sizes else () for sizes in (asked.x, asked.k, asked.s))
    ratio = tuple(asked.ratio[d] for d in order) if asked.ratio else ()
    wrong = {
        "positions": op.param(Kind.INDEX) or op.param(Kind.INDEX_TYPE),
        "quantised codes": op.param(Kind.RANGE),
        "explicit padding": asked.pads,
        "windows over batch or channels": any(sizes and (sizes[0], sizes[rank - 1]) != (1, 1) for sizes in (k, s, ratio)),
    }  # fmt: skip
    if any(wrong.values()):
        got = next(words for words, found in wrong.items() if found)
        raise ValueError(f"problem: got {got} in {line!r}, wanted a problem that the benchmarks can race")
    sizes = f"_r{_joined(ratio[1:-1])}" if ratio else f"_k{_joined(k[1:-1])}_s{_joined(s[1:-1])}"
    return Cell(_joined(x) + sizes, op.name, asked.layout, asked.dtype, x, k[1:-1], s[1:-1], asked.padding or "VALID",
                ratio, asked.overlapping, (asked.seed, asked.seed2), asked.pseudo)  # fmt: skip


def _joined(numbers: Iterable[float]) -> str:
    return "x".join(f"{n:g}" for n in numbers)


def read(sources: Iterable[str]) -> list[Cell]:
    """Read cells from workload files (`*.json`), files of problem lines, and problem lines.

    >>> [cell.name for cell in read(["max f32 nhwc x=2x9x9x5 k=3x3 s=2x2 pad=same grad"])]
    ['2x9x9x5_k3x3_s2x2/MaxPoolGrad/NHWC/float32']
    """
    cells: list[Cell] = []
    for source in sources:
        if "=" in source:
            cells.append(of_line(source))
            continue
        text = Path(source).read_text()
        if source.endswith(".json"):
            cells += _of_file(source, text)
            continue
        for line in text.splitlines():
            if line.split("#")[0].strip():
                cells.append(of_line(line))
    return cells


def _of_file(name: str, text: str) -> list[Cell]:
    try:
        return [cell for entry in json.loads(text)["workloads"] for cell in of_workload(entry)]
    except (KeyError, TypeError) as error:
        raise ValueError(f"{name}: got no usable workload ({error!r}), wanted entries as in {BUNDLED.name}") from None


def keep(cells: Iterable[Cell], only: list[str], kinds: list[str], layouts: list[str], dtypes: list[str]) -> list[Cell]:
    """Return the cells that pass all filters; `only` matches any part of a cell's name."""
    return [
        cell
        for cell in cells
        if (not only or any(word in cell.name for word in only))
        and (not kinds or cell.kind in kinds)
        and (not layouts or cell.layout in layouts)
        and (not dtypes or cell.dtype in dtypes)
    ]


def small(cell: Cell, most: int = 2**19) -> Cell:
    """Shrink a cell to about `most` elements: cut its batch, then its channels, then its longer axes."""
    x = list(cell.x)
    for d in (0, len(x) - 1, *range(1, len(x) - 1)):
        least = 1 if d == 0 else 4 * max(cell.ksize or (2,)) if 0 < d < len(x) - 1 else 16
        while math.prod(x) > most and x[d] // 2 >= least:
            x[d] //= 2
    return Cell(**{**cell.__dict__, "x": tuple(x)})
