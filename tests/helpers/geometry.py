"""The geometries on which kernels are compared: each one takes a path or has an edge of its own."""

from __future__ import annotations

from typing import Any

from support import Case

from poolgrad._ops.table import OPS, Kind, Op

Fields = dict[str, Any]

FLAT: list[Fields] = [
    {"x": (2, 7, 9, 1), "k": (3, 3), "s": (2, 2), "pad": "SAME"},  # inner 1: neighbouring outputs are the lanes
    {"x": (1, 6, 19, 1), "k": (2, 3), "s": (1, 1), "pad": "VALID"},  # inner 1, stride 1, more than a vector long
    {"x": (1, 5, 6, 3), "k": (2, 2), "s": (2, 2), "pad": "VALID"},
    {"x": (2, 4, 5, 4), "k": (2, 3), "s": (1, 2), "pad": "SAME"},
    {"x": (1, 6, 5, 7), "k": (2, 2), "s": (3, 3), "pad": "SAME"},  # stride > window: cells in no window
    {"x": (1, 5, 5, 8), "k": (1, 3), "s": (3, 1), "pad": "VALID"},
    {"x": (1, 4, 4, 16), "k": (3, 2), "s": (2, 1), "pad": "SAME"},
    {"x": (1, 3, 4, 17), "k": (2, 2), "s": (1, 1), "pad": "VALID"},  # a vector and a tail of one
    {"x": (1, 3, 3, 37), "k": (2, 2), "s": (1, 1), "pad": "SAME"},
    {"x": (1, 2, 3, 64), "k": (2, 2), "s": (1, 1), "pad": "SAME"},
    {"x": (2, 3, 4, 2), "k": (7, 5), "s": (1, 1), "pad": "SAME"},  # windows larger than the input
    {"x": (1, 4, 3, 2), "k": (6, 9), "s": (3, 2), "pad": "SAME"},
    {"x": (1, 1, 1, 5), "k": (1, 1), "s": (1, 1), "pad": "VALID"},  # nothing is pooled
    {"x": (3, 9, 9, 2), "k": (1, 1), "s": (3, 3), "pad": "SAME"},
    {"x": (1, 5, 5, 2), "k": (5, 5), "s": (1, 1), "pad": "VALID"},  # one window over everything
    {"x": (1, 3, 7, 11), "k": (2, 3), "s": (2, 2), "pad": "SAME", "first": True},
    {"x": (2, 6, 21, 2), "k": (3, 3), "s": (1, 1), "pad": "SAME", "first": True},
    {"x": (1, 5, 4, 3), "k": (9, 2), "s": (2, 3), "pad": "SAME", "first": True},
    {"x": (2, 9, 35, 2), "k": (3, 3), "s": (1, 1), "pad": "SAME", "first": True},  # planes among neutral cells
    {"x": (1, 8, 40, 3), "k": (3, 4), "s": (2, 1), "pad": "VALID", "first": True},
    {"x": (1, 7, 67, 2), "k": (3, 3), "s": (2, 2), "pad": "SAME", "first": True},  # rows parted in two, some kept
    {"x": (2, 6, 66, 2), "k": (2, 2), "s": (2, 2), "pad": "VALID", "first": True},  # rows read but once
    {"x": (1, 4, 71, 2), "k": (2, 5), "s": (1, 3), "pad": "SAME", "first": True},  # three phases
    {"x": (3, 3, 7, 5), "k": (3, 7), "s": (1, 1), "pad": "VALID", "first": True},  # a gradient that goes everywhere
]
DEPTH: list[Fields] = [
    {"x": (2, 3, 2, 6), "depth": 2},
    {"x": (1, 2, 3, 35), "depth": 7},
    {"x": (1, 3, 5, 6), "depth": 3, "first": True},
    {"x": (1, 1, 2, 8), "depth": 8},
]
PADDED: list[Fields] = [
    {"x": (2, 5, 6, 3), "k": (3, 3), "s": (2, 2), "pad": ((1, 2), (0, 1))},
    {"x": (1, 3, 4, 5), "k": (4, 5), "s": (1, 3), "pad": ((3, 0), (2, 4)), "first": True},
]
SOLID: list[Fields] = [
    {"x": (1, 3, 4, 5, 1), "k": (2, 2, 2), "s": (1, 2, 1), "pad": "VALID"},
    {"x": (2, 3, 3, 4, 3), "k": (2, 3, 2), "s": (2, 2, 2), "pad": "SAME"},
    {"x": (1, 4, 3, 5, 2), "k": (1, 1, 2), "s": (3, 2, 3), "pad": "SAME"},  # stride > window: shifted windows
    {"x": (1, 2, 3, 2, 8), "k": (3, 5, 4), "s": (1, 1, 1), "pad": "SAME"},  # windows larger than the input
    {"x": (1, 2, 3, 3, 17), "k": (2, 2, 2), "s": (1, 1, 1), "pad": "SAME"},
    {"x": (1, 3, 2, 6, 4), "k": (2, 2, 3), "s": (1, 1, 2), "pad": "SAME", "first": True},
    {"x": (2, 2, 4, 9, 2), "k": (1, 3, 2), "s": (2, 1, 2), "pad": "VALID", "first": True},
    {"x": (1, 4, 6, 35, 2), "k": (2, 2, 2), "s": (2, 2, 2), "pad": "SAME", "first": True},  # rows parted, read but once
    {"x": (1, 3, 5, 37, 2), "k": (3, 3, 3), "s": (1, 1, 1), "pad": "SAME", "first": True},  # planes among neutral cells
    {"x": (1, 5, 4, 36, 2), "k": (3, 2, 3), "s": (2, 1, 2), "pad": "SAME", "first": True},  # rows parted, slabs kept
]
DRAWN: list[Fields] = [
    {"x": (1, 9, 7, 1), "ratio": (1.5, 1.4)},
    {"x": (2, 6, 8, 3), "ratio": (2.0, 1.7), "overlapping": True},
    {"x": (1, 7, 5, 17), "ratio": (3.5, 1.3), "pseudo": True},
    {"x": (1, 5, 11, 8), "ratio": (1.0, 2.7), "pseudo": True, "overlapping": True},
    {"x": (2, 4, 4, 37), "ratio": (4.0, 1.2), "overlapping": True},
]


def geometries(op: Op) -> list[Fields]:
    """Return all geometries that an op can take."""
    if op.family[0] == "f":
        return DRAWN
    flat = (
        SOLID if op.spatial == 3 else FLAT + (DEPTH if op.depthwise else []) + (PADDED if op.param(Kind.PADS) else [])
    )
    return [g for g in flat if op.param(Kind.FORMAT) or not g.get("first")]


def cases(name: str, dtype: str, data: str) -> list[Case]:
    """Return the op on every geometry, with the switches of positions alternating."""
    op = OPS[name]
    plain = [Case(name, dtype, data=data, **g) for g in geometries(op)]
    if not (op.param(Kind.INDEX) or op.param(Kind.INDEX_TYPE)):
        return plain
    return [
        Case(name, dtype, data=data, batched=i % 2 == 1, index=("int64", "int32")[i // 2 % 2], **g)
        for i, g in enumerate(geometries(op))
    ]


def large(name: str, dtype: str) -> list[Case]:
    """Return cases of more than a quarter of a mebibyte in any type, enough for several threads; inner lanes long and short."""
    op = OPS[name]
    if op.family[0] == "f":
        return [Case(name, dtype, x=(3, 61, 64, 24), ratio=(1.6, 1.9), overlapping=over) for over in (False, True)]
    if op.spatial == 3:
        shapes = [((2, 12, 17, 29, 24), False), ((1, 14, 31, 35, 19), True)]
        return [Case(name, dtype, x=x, k=(2, 3, 2), s=(1, 2, 2), pad="SAME", first=f) for x, f in shapes]
    firsts = (False, True) if op.param(Kind.FORMAT) else (False, False)
    shapes = [((3, 61, 64, 24), firsts[0]), ((1, 127, 131, 18), firsts[1]), ((1, 19, 515, 33), False)]
    return [
        Case(name, dtype, x=x, k=(3, 3), s=s, pad="SAME", first=f)
        for (x, f), s in zip(shapes, ((2, 2), (1, 1), (3, 1)), strict=True)
    ]
