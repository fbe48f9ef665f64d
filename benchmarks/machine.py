"""Describe the machine of a run."""

from __future__ import annotations

import datetime
import os
import platform
import time
from pathlib import Path
from typing import Any

from poolgrad import config


def threads() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_memory() -> int:
    """Return the bytes available without swapping; 4 GiB if the system does not tell."""
    return _line_value("/proc/meminfo", "MemAvailable", 4 * 2**20) * 1024


def _line_value(path: str, key: str, default: int) -> int:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return default
    return next((int(line.split()[1]) for line in lines if line.startswith(key)), default)


def cpu() -> str:
    """Return the processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


class Others:
    """A count of the cores that other processes kept busy since its creation; 0 if the system does not tell.

    A barrier waits for the thread that lost its core, so a busy machine slows peers with many threads most:
    figures taken there flatter the others.
    """

    def __init__(self) -> None:
        self.began, self.busy, self.own = time.monotonic(), _busy_seconds(), _own_seconds()

    def cores(self) -> float:
        """Return the busy seconds of other processes per second, over all cores."""
        spent = time.monotonic() - self.began
        foreign = _busy_seconds() - self.busy - (_own_seconds() - self.own)
        return round(max(foreign, 0.0) / spent, 2) if spent > 0.1 else 0.0


def _busy_seconds() -> float:
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    except OSError:
        return 0.0
    user, nice, system, _idle, _wait, irq, softirq, steal = map(int, fields)
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def describe(versions: dict[str, str], missing: dict[str, str]) -> dict[str, Any]:
    """Return date, machine and versions for the report."""
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": cpu(),
        "threads": threads(),
        "system": platform.platform(terse=True),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "config": config(),
        "versions": versions,
        "missing": missing,
    }
