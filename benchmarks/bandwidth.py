"""Measure the copy speed of this machine, with all threads."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from .machine import available_memory, threads


class Copier:
    """A copier between two existing arrays, in one thread and in all; the better time counts."""

    def __init__(self) -> None:
        self.workers = threads()
        self.pool = ThreadPoolExecutor(self.workers)
        self.known: dict[int, float] = {}

    def rate(self, traffic: int, seconds: float = 0.15) -> float:
        """Return the bytes per second of a copy that reads and writes `traffic` bytes in total; measure each size once."""
        size = max(traffic // 2, 4096) // 4096 * 4096
        if size not in self.known:
            self.known[size] = self._measure(size, seconds)
        return self.known[size]

    def _measure(self, size: int, seconds: float) -> float:
        source, dest = np.ones(size, np.uint8), np.zeros(size, np.uint8)
        best, end, turns = float("inf"), time.perf_counter() + seconds, 0
        while turns < 4 or time.perf_counter() < end:
            for parts in {1, self.workers}:
                began = time.perf_counter()
                self._copy(dest, source, parts)
                best = min(best, time.perf_counter() - began)
            turns += 1
        return 2 * size / best

    def _copy(
        self,
        dest: np.ndarray[tuple[int], np.dtype[np.uint8]],
        source: np.ndarray[tuple[int], np.dtype[np.uint8]],
        parts: int,
    ) -> None:
        if parts == 1:
            np.copyto(dest, source)
            return
        bounds = np.linspace(0, len(dest), parts + 1).astype(int)
        list(
            self.pool.map(
                lambda i: np.copyto(dest[bounds[i] : bounds[i + 1]], source[bounds[i] : bounds[i + 1]]), range(parts)
            )
        )


def last_level_cache() -> int:
    """Return the bytes of the first core's largest cache; 32 MiB if the system does not tell.

    128 MiB at most: virtual machines report larger caches, which they share with others.
    """
    sizes = [0]
    for file in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = file.read_text().strip()
        sizes.append(int(text.rstrip("KMG")) * {"K": 2**10, "M": 2**20, "G": 2**30}.get(text[-1], 1))
    return min(max(sizes), 2**27) or 2**25


def beyond_cache() -> int:
    """Return the bytes of copy traffic that exceed every cache, as far as the memory allows."""
    return min(4 * last_level_cache(), available_memory() // 4)
