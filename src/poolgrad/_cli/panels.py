"""Arrange pictures with captions on one page, and colour numbers blue, white and red."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.png import Picture

# Each letter, row by row from the top. A row is five bits in hex, the highest bit on the left; an eighth row is below the baseline.
_LETTERS = """
A 0e 11 11 1f 11 11 11|B 1e 11 11 1e 11 11 1e|C 0e 11 10 10 10 11 0e|D 1e 11 11 11 11 11 1e
E 1f 10 10 1e 10 10 1f|F 1f 10 10 1e 10 10 10|G 0e 11 10 17 11 11 0f|H 11 11 11 1f 11 11 11
I 0e 04 04 04 04 04 0e|J 07 02 02 02 02 12 0c|K 11 12 14 18 14 12 11|L 10 10 10 10 10 10 1f
M 11 1b 15 15 11 11 11|N 11 19 15 13 11 11 11|O 0e 11 11 11 11 11 0e|P 1e 11 11 1e 10 10 10
Q 0e 11 11 11 15 12 0d|R 1e 11 11 1e 14 12 11|S 0f 10 10 0e 01 01 1e|T 1f 04 04 04 04 04 04
U 11 11 11 11 11 11 0e|V 11 11 11 11 11 0a 04|W 11 11 11 15 15 1b 11|X 11 11 0a 04 0a 11 11
Y 11 11 0a 04 04 04 04|Z 1f 01 02 04 08 10 1f|a 00 00 0e 01 0f 11 0f|b 10 10 1e 11 11 11 1e
c 00 00 0e 10 10 10 0e|d 01 01 0f 11 11 11 0f|e 00 00 0e 11 1f 10 0e|f 06 08 1e 08 08 08 08
g 00 00 0f 11 11 0f 01 0e|h 10 10 1e 11 11 11 11|i 04 00 0c 04 04 04 0e|j 02 00 06 02 02 02 12 0c
k 10 10 12 14 18 14 12|l 0c 04 04 04 04 04 0e|m 00 00 1a 15 15 15 15|n 00 00 1e 11 11 11 11
o 00 00 0e 11 11 11 0e|p 00 00 1e 11 11 1e 10 10|q 00 00 0f 11 11 0f 01 01|r 00 00 16 18 10 10 10
s 00 00 0f 10 0e 01 1e|t 08 08 1e 08 08 08 06|u 00 00 11 11 11 11 0f|v 00 00 11 11 11 0a 04
w 00 00 11 15 15 15 0a|x 00 00 11 0a 04 0a 11|y 00 00 11 11 11 0f 01 0e|z 00 00 1f 02 04 08 1f
0 0e 11 13 15 19 11 0e|1 04 0c 04 04 04 04 0e|2 0e 11 01 06 08 10 1f|3 1e 01 01 0e 01 01 1e
4 02 06 0a 12 1f 02 02|5 1f 10 1e 01 01 11 0e|6 06 08 10 1e 11 11 0e|7 1f 01 02 04 04 04 04
8 0e 11 11 0e 11 11 0e|9 0e 11 11 0f 01 02 0c|. 00 00 00 00 00 0c 0c|, 00 00 00 00 00 0c 0c 08
: 00 0c 0c 00 0c 0c 00|- 00 00 00 1f 00 00 00|+ 00 04 04 1f 04 04 00|= 00 00 1f 00 1f 00 00
/ 01 01 02 04 08 10 10|( 02 04 08 08 08 04 02|) 08 04 02 02 02 04 08
"""


def _glyphs() -> dict[str, npt.NDArray[np.bool_]]:
    glyphs = {" ": np.zeros((8, 3), bool)}
    for entry in _LETTERS.strip().replace("\n", "|").split("|"):
        letter, *rows = entry.split()
        bits = np.array([[int(row, 16) >> bit & 1 for bit in (4, 3, 2, 1, 0)] for row in (*rows, "0")[:8]], bool)
        used = np.flatnonzero(bits.any(axis=0))
        glyphs[letter] = bits[:, used[0] : used[-1] + 1]
    return glyphs


GLYPHS = _glyphs()

# Blue for numbers below zero, red for numbers above, darker the further from zero.
_BLUES = [[8, 48, 107], [66, 146, 198], [198, 219, 239]]
_REDS = [[253, 208, 186], [239, 101, 72], [127, 0, 0]]
_COLOURS = np.array([*_BLUES, [250, 250, 250], *_REDS])


def lettering(text: str, scale: int = 1) -> npt.NDArray[np.bool_]:
    """Draw a line of text as a mask.

    >>> for row in lettering("Hi")[:7].astype(int):
    ...     print("".join(".#"[bit] for bit in row))
    #...#..#.
    #...#....
    #...#.##.
    #####..#.
    #...#..#.
    #...#..#.
    #...#.###
    """
    gap = np.zeros((8, 1), bool)
    parts = [part for letter in text for part in (GLYPHS[letter], gap)][:-1]
    return np.concatenate(parts or [gap], axis=1).repeat(scale, 0).repeat(scale, 1)


def diverging(values: npt.NDArray[Any], limit: float = 0.0) -> Picture:
    """Colour numbers of shape (h, w) around zero; by default the limit is the 99th percentile of the nonzero absolute values.

    >>> diverging(np.array([[-1.0, 0.0, 1.0]]), 1).tolist()
    [[[8, 48, 107], [250, 250, 250], [127, 0, 0]]]
    """
    size = np.abs(values[values != 0])
    limit = limit or (float(np.quantile(size, 0.99)) if size.size else 1.0)
    scaled = np.clip(values / limit, -1, 1)
    place = (np.sign(scaled) * np.sqrt(np.abs(scaled)) + 1) / 2 * (len(_COLOURS) - 1)
    stops = np.arange(len(_COLOURS))
    return np.stack([np.interp(place, stops, _COLOURS[:, c]) for c in range(3)], axis=-1).round().astype(np.uint8)


@dataclass(frozen=True)
class Panel:
    """A picture, its title and its caption."""

    title: str
    caption: str
    picture: Picture


def sheet(panels: Sequence[Panel], columns: int, side: int, gap: int = 14) -> Picture:
    """Draw all panels on one page, and enlarge each picture to about `side` pixels without blurring its cells."""
    height, width = side + 44, side
    rows = -(-len(panels) // columns)
    page = np.full((gap + rows * (height + gap), gap + columns * (width + gap), 3), 255, np.uint8)
    for i, panel in enumerate(panels):
        top, left = gap + i // columns * (height + gap), gap + i % columns * (width + gap)
        _paste(page, top, left, side, panel.picture)
        _write(page, top + side + 6, left, lettering(panel.title, 2), (25, 25, 30))
        _write(page, top + side + 28, left, lettering(panel.caption), (105, 105, 115))
    return page


def _paste(page: Picture, top: int, left: int, side: int, picture: Picture) -> None:
    """Draw the picture on the page, enlarged by nearest neighbour so that cells keep their edges."""
    y, x = (np.arange(side) * n // side for n in picture.shape[:2])
    page[top - 1 : top + side + 1, left - 1 : left + side + 1] = 205
    page[top : top + side, left : left + side] = picture[y][:, x]


def _write(page: Picture, top: int, left: int, mask: npt.NDArray[np.bool_], colour: tuple[int, int, int]) -> None:
    room = page[top : top + mask.shape[0], left : left + mask.shape[1]]
    room[mask[: room.shape[0], : room.shape[1]]] = colour
