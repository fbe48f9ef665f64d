"""Draw the random sequences of fractional pooling from (seed, seed2), as TensorFlow does."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import numpy.typing as npt

_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


class Philox:
    """A Philox-4x32-10 generator: a counter, encrypted in ten rounds. Each request starts at a new block of four words.

    >>> Philox(1, 2).words(5).tolist()
    [3878945999, 2364392915, 1057429302, 168492509, 3082076531]
    """

    def __init__(self, seed: int, seed2: int) -> None:
        self._key = seed % 2**64
        self._stream = seed2 % 2**64
        self._block = 0

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """Return the next `count` 32-bit words."""
        blocks = -(-count // 4)
        low = np.arange(self._block, self._block + blocks, dtype=np.uint64)
        self._block += blocks
        c = [low & _LOW, low >> _SHIFT, np.full_like(low, self._stream % 2**32), np.full_like(low, self._stream >> 32)]
        k0, k1 = self._key % 2**32, self._key >> 32
        for _ in range(10):
            p, q = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
            c = [(q >> _SHIFT) ^ c[1] ^ np.uint64(k0), q & _LOW, (p >> _SHIFT) ^ c[3] ^ np.uint64(k1), p & _LOW]
            k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
        return np.stack(c, axis=1).reshape(-1)[:count]


def sequence(n: int, m: int, pseudo_random: bool, source: Philox) -> npt.NDArray[np.int64]:
    """Return the borders of m windows over n cells, each n//m or n//m + 1 long.

    >>> rng = Philox(1, 2)
    >>> sequence(10, 6, False, rng).tolist(), sequence(7, 4, False, rng).tolist()
    ([0, 1, 3, 4, 6, 8, 10], [0, 2, 4, 6, 7])
    """
    lengths = _pseudo_random(n, m, source) if pseudo_random else _shuffled(n, m, source)
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _shuffled(n: int, m: int, source: Philox) -> list[int]:
    k, longer = divmod(n, m)
    lengths = [k + 1] * longer + [k] * (m - longer)
    for i, word in enumerate(source.words(m)[: m - 1].tolist()):
        j = i + word % (m - i)
        lengths[i], lengths[j] = lengths[j], lengths[i]
    return lengths


def _pseudo_random(n: int, m: int, source: Philox) -> list[int]:
    w0, w1 = source.words(2).tolist()
    r = ((w0 & 0xFFFFF) * 2**32 + w1) / 2**52
    k, alpha = n // m, n / m
    u = r * min((k + 2) / alpha - 1, (n + 1 - k) / alpha - (m - 1))
    borders = [1, *(math.ceil(alpha * (i + u)) for i in range(1, m)), n + 1]
    return [b - a for a, b in pairwise(borders)]
