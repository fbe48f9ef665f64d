"""PNG files of 8 bits, grey or RGB: just enough to show a picture without another library."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

Picture = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int16]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3}  # colour type: grey, RGB
_LARGEST = 2**28  # bytes of pixels that a file may claim


def encode(picture: Picture) -> bytes:
    """A grey (h, w) or RGB (h, w, 3) picture as a PNG file.

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
    """Writes a picture to a file."""
    Path(path).write_bytes(encode(picture))


def read(path: str | Path) -> Picture:
    """The picture in a file."""
    return decode(Path(path).read_bytes())


def decode(data: bytes) -> Picture:
    """The picture in the bytes of a PNG file; only what `encode` could have written, with any filters."""
    header, body = b"", b""
    for name, content in _chunks(data):
        if name == b"IHDR":
            header = content
        elif name == b"IDAT":
            body += content
        elif name != b"IEND" and not name[0] & 0x20:
            raise ValueError(f"png: got a chunk {name!r}, wanted 8-bit grey or RGB without a palette")
    if len(header) != 13:
        raise ValueError("png: got no header")
    width, height, depth, colour, *methods = struct.unpack(">IIBBBBB", header)
    if depth != 8 or colour not in _CHANNELS or any(methods):
        raise ValueError(f"png: got depth {depth}, colour type {colour}, wanted 8-bit grey or RGB, not interlaced")
    channels = _CHANNELS[colour]
    size = height * (width * channels + 1)
    if not 0 < size <= _LARGEST or not width:
        raise ValueError(f"png: got {width} x {height} pixels, wanted at least 1 and at most {_LARGEST} bytes")
    lines = np.frombuffer(_inflate(body, size), np.uint8).reshape(height, -1)
    picture = _unfiltered(lines[:, 0], lines[:, 1:].reshape(height, width, channels))
    return picture[:, :, 0] if channels == 1 else picture


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    if not data.startswith(_SIGNATURE):
        raise ValueError("png: got a file that does not begin like one")
    at, name = len(_SIGNATURE), b""
    while name != b"IEND":
        length = int.from_bytes(data[at : at + 4], "big")
        name, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        check = data[at + 8 + length : at + 12 + length]
        if check != struct.pack(">I", zlib.crc32(name + content)):
            raise ValueError("png: got a damaged or truncated file")
        at += 12 + length
        yield name, content


def _inflate(body: bytes, size: int) -> bytes:
    """At most `size` bytes, so that a small file cannot fill the memory."""
    try:
        lines = zlib.decompressobj().decompress(body, size + 1)
    except zlib.error as error:
        raise ValueError(f"png: got damaged pixels ({error})") from None
    if len(lines) != size:
        raise ValueError(f"png: got {len(lines)} bytes of pixels, wanted {size}")
    return lines


def _paeth(left: Numbers, up: Numbers, corner: Numbers) -> Numbers:
    guess = left + up - corner
    a, b, c = abs(guess - left), abs(guess - up), abs(guess - corner)
    return np.where((a <= b) & (a <= c), left, np.where(b <= c, up, corner))


def _filtered(picture: Picture) -> bytes:
    """Each line with the filter that leaves the smallest numbers."""
    height = len(picture)
    padded = np.pad(picture, ((1, 0), (1, 0), (0, 0))).astype(np.int16)
    here, left, up, corner = padded[1:, 1:], padded[1:, :-1], padded[:-1, 1:], padded[:-1, :-1]
    guesses = (np.zeros_like(here), left, up, (left + up) // 2, _paeth(left, up, corner))
    tried = np.stack([(here - guess).astype(np.uint8).reshape(height, -1) for guess in guesses])
    best = np.abs(tried.view(np.int8).astype(np.int32)).sum(axis=2).argmin(axis=0)
    lines = np.concatenate([best[:, None].astype(np.uint8), tried[best, np.arange(height)]], axis=1)
    return lines.tobytes()


def _unfiltered(filters: Picture, lines: Picture) -> Picture:
    height, width, channels = lines.shape
    padded = np.zeros((height + 1, width + 1, channels), np.int16)
    for y, kind in enumerate(filters.tolist(), 1):
        line, up = lines[y - 1].astype(np.int16), padded[y - 1]
        if kind > 4:
            raise ValueError(f"png: got filter {kind}, wanted 0 to 4")
        if kind in (0, 2):
            padded[y, 1:] = (line + (up[1:] if kind else 0)) & 255
            continue
        for x in range(1, width + 1):
            left = padded[y, x - 1]
            guess = (left, None, (left + up[x]) // 2, _paeth(left, up[x], up[x - 1]))[kind - 1]
            padded[y, x] = (line[x - 1] + guess) & 255
    return padded[1:, 1:].astype(np.uint8)
