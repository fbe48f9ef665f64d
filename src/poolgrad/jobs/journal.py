"""Remember which regions of a result are written, so that a run that was interrupted can go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from .._common.arrays import Array
from .._common.errors import ArgumentErrors

_VERSION = 1


def checksum(arrays: tuple[Array, ...]) -> int:
    """Return a checksum of the bytes of arrays."""
    total = 0
    for array in arrays:
        total = crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, total)
    return total


class Journal:
    """A file with a line per finished region: its number and the checksum of its cells.

    The first line names the job, the source and the size of the regions. A line is written after the region was, and a line that is
    not whole counts as missing. A region that is there with another checksum was torn: it is computed again.
    """

    def __init__(self, path: Path, job: str, source: list[str]) -> None:
        self.path, self.job, self.source = path, job, source
        self.size: list[int] | None = None  # of the regions
        self.done: dict[int, int] = {}
        self._file: Any = None

    def read(self, problems: ArgumentErrors) -> None:
        """Read the size of the regions and the finished ones, if there is a journal. Refuse one of another job or source."""
        try:
            lines = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return
        rows = [row for line in lines[:-1] if (row := _parsed(line)) is not None]  # the last line is empty, or torn
        if not rows or not isinstance(rows[0], dict) or rows[0].get("version") != _VERSION:
            return
        if rows[0].get("job") != self.job:
            wanted = "the journal of the same op, windows and options; or overwrite=True"
            problems.fail("resume", f"{self.path}, of another job", wanted)
        if rows[0].get("source") != self.source:
            wanted = "a source that has not changed since the run began; or overwrite=True"
            problems.fail("resume", f"{self.path}, of another source", wanted)
        self.size = rows[0]["size"]
        self.done = {row[0]: row[1] for row in rows[1:] if isinstance(row, list) and len(row) == 2}

    def begin(self) -> None:
        """Open the file for new lines."""
        self._file = self.path.open("ab" if self.done else "wb")
        if self.done:
            self._file.write(b"\n")  # ends a torn line
        else:
            self._write({"version": _VERSION, "job": self.job, "source": self.source, "size": self.size})

    def add(self, number: int, check: int) -> None:
        """Note a finished region."""
        self._write([number, check])

    def _write(self, row: Any) -> None:
        self._file.write(json.dumps(row).encode() + b"\n")
        self._file.flush()  # a machine that stops may lose lines, or cells that lines name: both are found when the run goes on

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
