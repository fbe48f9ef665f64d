"""Read and write 8-bit PNG files, grey or RGB, without another library."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

Picture = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int16]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3}  # colour type: grey, RGB
MOST_PIXELS = 2**23  # of a file: 3840 x 2160 fits
LONGEST_SIDE = 2**14  # pixels
_MOST_CHUNKS = 2**16
_NARROW = 64  # bytes along the shorter side, below which a plain loop is faster than NumPy


def encode(picture: Picture) -> bytes:
    """Encode a grey (h, w) or RGB (h, w, 3) picture as a PNG file.

    >>> decode(encode(np.array([[0, 128], [255, 3]], np.uint8))).tolist()
    [[0, 128], [255, 3]]
    """
    if picture.dtype != np.uint8 or picture.ndim not in (2, 3) or (picture.ndim == 3 and picture.shape[2] != 3):
        raise ValueError(f"png: picture: got {picture.dtype} {list(picture.shape)}, wanted uint8 [h, w] or [h, w, 3]")
    if picture.size == 0:
        raise ValueError(f"png: picture: got shape {list(picture.shape)}, wanted at least one pixel")
    height, width = picture.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if picture.ndim == 2 else 2, 0, 0, 0)
    body = zlib.compress(_filtered(picture.reshape(height, width, -1)), 9)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def write(path: str | Path, picture: Picture) -> None:
    """Write a picture to a file."""
    Path(path).write_bytes(encode(picture))


def read(path: str | Path) -> Picture:
    """Read the picture in a file."""
    return decode(Path(path).read_bytes())


def decode(data: bytes) -> Picture:
    """Decode a PNG file; accept only the formats that `encode` writes, with any filters."""
    header, body = b"", list[bytes]()
    for name, content in _chunks(data):
        if name == b"IHDR":
            header = content
        elif name == b"IDAT":
            body.append(content)
        elif name != b"IEND" and not name[0] & 0x20:
            raise ValueError(f"png: got a chunk {name!r}, wanted 8-bit grey or RGB without a palette")
    if len(header) != 13:
        raise ValueError("png: got no header")
    width, height, depth, colour, *methods = struct.unpack(">IIBBBBB", header)
    if depth != 8 or colour not in _CHANNELS or any(methods):
        raise ValueError(f"png: got depth {depth}, colour type {colour}, wanted 8-bit grey or RGB, not interlaced")
    if not 0 < width * height <= MOST_PIXELS or max(width, height) > LONGEST_SIDE:
        wanted = f"at least 1, at most {MOST_PIXELS}, and at most {LONGEST_SIDE} a side"
        raise ValueError(f"png: got {width} x {height} pixels, wanted {wanted}")
    channels = _CHANNELS[colour]
    size = height * (width * channels + 1)
    lines = np.frombuffer(_inflate(b"".join(body), size), np.uint8).reshape(height, -1)
    picture = unfiltered(lines[:, 0], lines[:, 1:].reshape(height, width, channels))
    return picture[:, :, 0] if channels == 1 else picture


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    if not data.startswith(_SIGNATURE):
        raise ValueError("png: got a file that does not begin like one")
    at, name, count = len(_SIGNATURE), b"", 0
    while name != b"IEND":
        count += 1
        if count > _MOST_CHUNKS:
            raise ValueError(f"png: got more than {_MOST_CHUNKS} chunks, wanted fewer")
        length = int.from_bytes(data[at : at + 4], "big")
        name, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        check = data[at + 8 + length : at + 12 + length]
        if check != struct.pack(">I", zlib.crc32(name + content)):
            raise ValueError("png: got a damaged or truncated file")
        at += 12 + length
        yield name, content


def _inflate(body: bytes, size: int) -> bytes:
    """Decompress exactly `size` bytes; stop after one more, so that a small file cannot fill the memory."""
    try:
        lines = zlib.decompressobj().decompress(body, size + 1)
    except zlib.error as error:
        raise ValueError(f"png: got damaged pixels ({error})") from None
    if len(lines) != size:
        raise ValueError(f"png: got {len(lines)} bytes of pixels, wanted {size}")
    return lines


def _paeth(left: Numbers, up: Numbers, corner: Numbers) -> Numbers:
    a, b = up - corner, left - corner  # distances of left + up - corner from left, and from up
    c = np.abs(a + b)
    np.abs(a, out=a)
    np.abs(b, out=b)
    guess = np.where(b <= c, up, corner)
    np.copyto(guess, left, where=a <= np.minimum(b, c))
    return guess


def _filtered(picture: Picture) -> bytes:
    """Filter each line with the filter that leaves the smallest numbers."""
    height = len(picture)
    padded = np.pad(picture, ((1, 0), (1, 0), (0, 0))).astype(np.int16)
    here, left, up, corner = padded[1:, 1:], padded[1:, :-1], padded[:-1, 1:], padded[:-1, :-1]
    guesses = (np.zeros_like(here), left, up, (left + up) // 2, _paeth(left, up, corner))
    tried = np.stack([(here - guess).astype(np.uint8).reshape(height, -1) for guess in guesses])
    best = np.abs(tried.view(np.int8).astype(np.int32)).sum(axis=2).argmin(axis=0)
    lines = np.concatenate([best[:, None].astype(np.uint8), tried[best, np.arange(height)]], axis=1)
    return lines.tobytes()


def unfiltered(filters: Picture, lines: Picture) -> Picture:
    """Undo the filter of each line; `lines` is [height, width, channels].

    Sub adds up along a line and Up down a column. Average and Paeth need the cell before: if any line has them, all lines are
    solved together, one diagonal after the other, because the cells of a diagonal do not depend on each other.
    """
    if filters.max(initial=0) > 4:
        raise ValueError(f"png: got filter {int(filters.max())}, wanted 0 to 4")
    if filters.max(initial=0) < 3:
        return _summed(filters, lines)
    height, width, channels = lines.shape
    if min(height, width) * channels < _NARROW or width == 1:
        return _looped(filters, lines)
    return _swept(filters, lines)


def _summed(filters: Picture, lines: Picture) -> Picture:
    """Undo None, Sub and Up; uint8 sums wrap as PNG wants."""
    picture = lines.copy()
    sub = filters == 1
    if sub.any():
        picture[sub] = np.cumsum(lines[sub], axis=1, dtype=np.uint8)
    starts = np.flatnonzero((filters == 2) & np.append(True, filters[:-1] != 2))
    stops = np.flatnonzero((filters == 2) & np.append(filters[1:] != 2, True)) + 1
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        first = max(start - 1, 0)  # the line above; there is none above the first
        np.cumsum(picture[first:stop], axis=0, dtype=np.uint8, out=picture[first:stop])
    return picture


def _swept(filters: Picture, lines: Picture) -> Picture:
    """Undo all filters by diagonals; `last` and `before` hold the two previous diagonals, one row per line."""
    height, width, channels = lines.shape
    given, picture = lines.reshape(-1, channels), np.empty((height * width, channels), np.uint8)
    guesses = _Guesses(filters)
    last, before, fresh = (np.zeros((height + 1, channels), np.int16) for _ in range(3))
    for d in range(height + width - 1):
        low, high = max(0, d - width + 1), min(height, d + 1)
        guess = guesses.of(slice(low, high), last[low + 1 : high + 1], last[low:high], before[low:high])
        cells = slice(low * (width - 1) + d, (high - 1) * (width - 1) + d + 1, width - 1)
        guess += given[cells]
        guess &= 255
        picture[cells] = fresh[low + 1 : high + 1] = guess
        last, before, fresh = fresh, last, before
    return picture.reshape(lines.shape)


class _Guesses:
    """Guess cells by the filters of their lines: (left * of_left + up * of_up) >> half, or Paeth's choice."""

    def __init__(self, filters: Picture) -> None:
        kinds = filters[:, None]
        self.of_left, self.of_up = (np.isin(kinds, those).astype(np.int16) for those in ((1, 3), (2, 3)))
        self.half, self.paeth = (kinds == 3).astype(np.int16), kinds == 4
        self.some, self.all = bool(self.paeth.any()), bool(self.paeth.all())

    def of(self, rows: slice, left: Numbers, up: Numbers, corner: Numbers) -> Numbers:
        if self.all:
            return _paeth(left, up, corner)
        guess = left * self.of_left[rows]
        guess += up * self.of_up[rows]
        guess >>= self.half[rows]
        if self.some:
            np.copyto(guess, _paeth(left, up, corner), where=self.paeth[rows])
        return guess


def _looped(filters: Picture, lines: Picture) -> Picture:
    """Undo all filters cell by cell, for a picture too narrow for diagonals."""
    width, channels = lines.shape[1:]
    picture = np.empty_like(lines)
    for channel in range(channels):
        up = [0] * width
        for y, kind in enumerate(filters.tolist()):
            line = lines[y, :, channel].tolist()
            up = _UNDO[kind](line, up)
            picture[y, :, channel] = up
    return picture


def _undo_sub(line: list[int], up: list[int]) -> list[int]:
    made, left = [], 0
    for cell in line:
        left = cell + left & 255
        made.append(left)
    return made


def _undo_average(line: list[int], up: list[int]) -> list[int]:
    made, left = [], 0
    for cell, above in zip(line, up, strict=True):
        left = cell + (left + above >> 1) & 255
        made.append(left)
    return made


def _undo_paeth(line: list[int], up: list[int]) -> list[int]:
    made, left, corner = [], 0, 0
    for cell, above in zip(line, up, strict=True):
        a, b = above - corner, left - corner
        c = abs(a + b)
        a, b = abs(a), abs(b)
        if b < a or c < a:
            left = above if b <= c else corner
        left = cell + left & 255
        made.append(left)
        corner = above
    return made


_UNDO: tuple[Callable[[list[int], list[int]], list[int]], ...] = (
    lambda line, up: line,
    _undo_sub,
    lambda line, up: [cell + above & 255 for cell, above in zip(line, up, strict=True)],
    _undo_average,
    _undo_paeth,
)
