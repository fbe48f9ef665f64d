"""PNG files: every filter on every shape, and files that ask for too much time or memory."""

from __future__ import annotations

import struct
import time
import zlib
from typing import Any

import numpy as np
import pytest

from poolgrad._common import png


def by_definition(filters: list[int], lines: np.ndarray) -> np.ndarray:
    """Return the rows by the PNG specification's filters, byte by byte."""
    height, width, channels = lines.shape
    made = [[[0] * channels for _ in range(width + 1)] for _ in range(height + 1)]
    for y in range(height):
        for x in range(width):
            for c in range(channels):
                left, up, corner = made[y + 1][x][c], made[y][x + 1][c], made[y][x][c]
                guess = left + up - corner
                nearest = min((left, up, corner), key=lambda v: abs(guess - v))  # the first of equals
                guesses = (0, left, up, (left + up) // 2, nearest)
                made[y + 1][x + 1][c] = (int(lines[y, x, c]) + guesses[filters[y]]) % 256
    return np.array(made, np.uint8)[1:, 1:]


SHAPES = [(1, 1), (1, 40), (40, 1), (2, 3), (70, 2), (2, 70), (15, 16), (16, 15), (17, 33), (65, 70)]


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_filter_is_undone_as_the_specification_says(shape: tuple[int, int], channels: int) -> None:
    rng = np.random.default_rng(7)
    lines = rng.integers(0, 256, (*shape, channels), np.uint8)
    for among in ([0], [1], [2], [3], [4], [0, 1, 2], [2, 4], [0, 1, 2, 3, 4]):
        filters = rng.choice(among, shape[0]).astype(np.uint8)
        got = png.unfiltered(filters, lines)
        assert got.dtype == np.uint8
        assert np.array_equal(got, by_definition(filters.tolist(), lines)), among


@pytest.mark.parametrize("kind", range(5))
@pytest.mark.parametrize("shape", [(1000, 1000), (64, 8000), (8000, 64)], ids=str)
def test_a_pixel_of_four_bytes_takes_less_than_a_microsecond(kind: int, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    lines, filters = rng.integers(0, 256, (*shape, 4), np.uint8), np.full(shape[0], kind, np.uint8)
    begin = time.process_time()  # time of this process alone: other work on the machine does not count
    png.unfiltered(filters, lines)
    assert (time.process_time() - begin) / (shape[0] * shape[1]) < 1e-6


# ---- files


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def file(width: int, height: int, body: bytes, *, header: tuple[int, ...] = (8, 2, 0, 0, 0), pieces: int = 1) -> bytes:
    """Return a PNG file of these compressed pixels."""
    step = -(-len(body) // pieces)
    parts = [chunk(b"IDAT", body[i : i + step]) for i in range(0, len(body), max(step, 1))]
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, *header))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(parts) + chunk(b"IEND", b"")


def zeros(count: int) -> bytes:
    """Return so many zeros, compressed."""
    return zlib.compress(bytes(count))


BOMBS: dict[str, tuple[bytes, str]] = {
    "too many pixels": (file(4096, 4096, b""), "4096 x 4096 pixels, wanted at least 1, at most 8388608"),
    "too long a side": (file(2**14 + 1, 1, b""), "16384 a side"),
    "largest claim": (file(2**32 - 1, 2**32 - 1, b""), "pixels"),
    "no pixels": (file(0, 5, b""), "0 x 5 pixels"),
    "more pixels than it claims": (file(10, 10, zeros(2**27)), "311 bytes of pixels, wanted 310"),
    "fewer pixels than it claims": (file(10, 10, zeros(309)), "309 bytes of pixels, wanted 310"),
    "interlaced": (file(2, 2, zeros(14), header=(8, 2, 0, 0, 1)), "not interlaced"),
    "a filter that does not exist": (file(1, 1, zlib.compress(b"\x05abc")), "filter 5"),
    "too many chunks": (file(10, 10, zeros(310) + bytes(70_000), pieces=10**6), "65536 chunks"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_file_that_asks_for_too_much_is_refused_at_once(name: str) -> None:
    raw, wanted = BOMBS[name]
    begin = time.process_time()
    with pytest.raises(ValueError, match=r"^png: got ") as caught:
        png.decode(raw)
    assert wanted in str(caught.value)
    assert time.process_time() - begin < 1


def test_many_small_chunks_are_read_in_linear_time() -> None:
    rng = np.random.default_rng(3)
    pixels = rng.integers(0, 256, (500, 1300), np.uint8)
    lines = np.concatenate([np.zeros((500, 1), np.uint8), pixels], axis=1)
    body = zlib.compress(lines.tobytes(), 0)
    raw = file(1300, 500, body, header=(8, 0, 0, 0, 0), pieces=60_000)
    begin = time.process_time()
    assert np.array_equal(png.decode(raw), pixels)
    assert time.process_time() - begin < 1


def test_the_largest_picture_is_read() -> None:
    width, height = 3840, 2160
    assert width * height <= png.MOST_PIXELS
    made: Any = png.decode(file(width, height, zeros(height * (3 * width + 1))))
    assert made.shape == (height, width, 3)


def picture(header: tuple[int, ...] = (2, 1, 8, 0, 0, 0, 0), body: bytes = b"\0ab", *more: bytes) -> bytes:
    head = b"" if not header else chunk(b"IHDR", struct.pack(">IIBBBBB", *header))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(more) + chunk(b"IDAT", zlib.compress(body)) + chunk(b"IEND", b"")


STRANGE = {
    "no header": (picture(()), "no header"),
    "a palette": (picture((2, 1, 8, 0, 0, 0, 0), b"\0ab", chunk(b"PLTE", b"abc")), "PLTE"),
    "16 bits": (picture((2, 1, 16, 0, 0, 0, 0)), "depth 16"),
    "no pixels": (picture((0, 1, 8, 0, 0, 0, 0)), "0 x 1 pixels"),
    "too many pixels": (picture((2**31, 2**31, 8, 0, 0, 0, 0)), "pixels"),
    "too few bytes": (picture(body=b"\0a"), "2 bytes of pixels, wanted 3"),
    "too many bytes": (picture(body=b"\0abc"), "4 bytes of pixels, wanted 3"),
    "an unknown filter": (picture(body=b"\7ab"), "filter 7"),
    "pixels that do not inflate": (
        picture().replace(zlib.compress(b"\0ab"), b"x" * len(zlib.compress(b"\0ab"))),
        "png",
    ),
}


@pytest.mark.parametrize("what", STRANGE)
def test_a_strange_png_is_refused(what):
    data, words = STRANGE[what]
    with pytest.raises(ValueError, match=words):
        png.decode(data)


def test_chunks_that_may_be_ignored_are():
    data = picture((2, 1, 8, 0, 0, 0, 0), b"\0ab", chunk(b"tEXt", b"hello"))
    assert png.decode(data).tolist() == [[97, 98]]
