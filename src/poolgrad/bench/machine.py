"""Where a run took place."""

from __future__ import annotations

import datetime
import os
import platform
from pathlib import Path
from typing import Any

from .. import config


def threads() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_memory() -> int:
    """Bytes that can be had without swapping; 4 GiB where the system does not say."""
    return _line_value("/proc/meminfo", "MemAvailable", 4 * 2**20) * 1024


def _line_value(path: str, key: str, default: int) -> int:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return default
    return next((int(line.split()[1]) for line in lines if line.startswith(key)), default)


def cpu() -> str:
    """The processor's own name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def describe(versions: dict[str, str], missing: dict[str, str]) -> dict[str, Any]:
    """Date, machine and versions, as the report carries them."""
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
