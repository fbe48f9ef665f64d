"""Show progress: a bar on one line of a terminal; without a terminal, ten lines."""

from __future__ import annotations

import sys
import time


class Bar:
    """A progress bar: `bar.step("loss 0.5")` after each part of it."""

    def __init__(self, total: int, title: str) -> None:
        self.total, self.title, self.done, self.start = total, title, 0, time.perf_counter()

    def step(self, text: str = "") -> None:
        """Count one more part as done."""
        self.done += 1
        seconds = time.perf_counter() - self.start
        terminal, tenth = sys.stderr.isatty(), self.done * 10 // self.total != (self.done - 1) * 10 // self.total
        if terminal or tenth:
            filled = 30 * self.done // self.total
            bar = "#" * filled + "." * (30 - filled)
            line = f"{self.title:24} [{bar}] {self.done}/{self.total}  {seconds:5.1f} s  {text}"
            end = "" if terminal and self.done < self.total else "\n"
            print(f"\r{line:110}" if terminal else line.rstrip(), end=end, file=sys.stderr, flush=True)
