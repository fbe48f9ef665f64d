"""Threads, instruction sets, versions."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager

import ml_dtypes
import numpy as np

from . import _core

__version__ = "0.1.0"


def get_num_threads() -> int:
    """Return the number of threads that a call may use.

    Returns
    -------
    int
        At first the processors that the process may use, or the environment variable POOLGRAD_NUM_THREADS.

    See Also
    --------
    set_num_threads : Set the number.
    threads : Set it within a block.

    Examples
    --------
    >>> import poolgrad as pg
    >>> with pg.threads(2):
    ...     pg.get_num_threads()
    2
    """
    return _core.get_num_threads()


def set_num_threads(n: int) -> None:
    """Set the number of threads that a call may use.

    Results never depend on it. The number holds for the whole process.

    Parameters
    ----------
    n : int
        From 1 to 1024.

    Raises
    ------
    TypeError
        If n is not an integer.
    ValueError
        If n is out of range.

    See Also
    --------
    get_num_threads : Return the number.
    threads : Set it within a block.

    Examples
    --------
    >>> import poolgrad as pg
    >>> before = pg.get_num_threads()
    >>> pg.set_num_threads(1)
    >>> pg.get_num_threads()
    1
    >>> pg.set_num_threads(before)
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise TypeError(f"set_num_threads: n: got {n!r}, wanted an integer from 1 to 1024")
    if not 1 <= n <= 1024:
        raise ValueError(f"set_num_threads: n: got {n}, wanted an integer from 1 to 1024")
    _core.set_num_threads(int(n))


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Use n threads for calls within a block, then the number from before.

    Parameters
    ----------
    n : int
        From 1 to 1024.

    Returns
    -------
    context manager

    Raises
    ------
    TypeError
        If n is not an integer.
    ValueError
        If n is out of range.

    See Also
    --------
    set_num_threads : Set the number for good.

    Examples
    --------
    >>> import poolgrad as pg
    >>> with pg.threads(1):
    ...     pg.get_num_threads()
    1
    """
    before = get_num_threads()
    set_num_threads(n)
    try:
        yield
    finally:
        set_num_threads(before)


def set_kept_memory(megabytes: float) -> None:
    """Set how much memory of freed results to keep for the next results.

    Memory that is kept makes the next results faster, since the system has not to provide new pages.

    Parameters
    ----------
    megabytes : float
        From 0, which keeps nothing, to 2**20. At the start it is 512 or a 16th of the machine's memory, whichever is less, or the
        environment variable POOLGRAD_KEPT_MB.

    Raises
    ------
    ValueError
        If `megabytes` is not a number in that range.

    See Also
    --------
    show_config : Print the settings.

    Examples
    --------
    >>> import poolgrad as pg
    >>> pg.set_kept_memory(512)
    """
    if not isinstance(megabytes, (int, float, np.integer, np.floating)) or not 0 <= megabytes <= 2**20:
        raise ValueError(f"set_kept_memory: megabytes: got {megabytes}, wanted a number from 0 to {2**20}")
    _core.keep_at_most(int(megabytes * 2**20))


def foreign() -> object:
    """Return the core for other compiled code.

    Returns
    -------
    PyCapsule
        A capsule named "poolgrad.foreign.1", with the functions that foreign.hpp declares.

    Examples
    --------
    >>> "poolgrad.foreign.1" in repr(foreign())
    True
    """
    return _core.foreign()


def config() -> dict[str, object]:
    """Return versions, instruction sets and threads.

    Returns
    -------
    dict of str to object
        The settings that `show_config` prints. Add them to reports of errors.

    See Also
    --------
    show_config : Print them.

    Examples
    --------
    >>> import poolgrad as pg
    >>> pg.config()["poolgrad"] == pg.__version__
    True
    """
    return {
        "poolgrad": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "ml_dtypes": ml_dtypes.__version__,
        "compiler": _core.compiler,
        "machine": platform.machine(),
        "isa": _core.isa(),
        "isa levels": ", ".join(_core.isa_levels()),
        "threads": get_num_threads(),
        "threads available": _core.available_threads(),
    }


def show_config() -> None:
    """Print versions, instruction sets, threads and the compiler.

    See Also
    --------
    config : Return them.

    Examples
    --------
    >>> import poolgrad as pg
    >>> pg.show_config()  # doctest: +ELLIPSIS
    poolgrad ...
    """
    for name, value in config().items():
        print(f"{name:18} {value}")


def _default_kept_memory() -> float:
    if not hasattr(os, "sysconf"):
        return 512
    return min(512, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**24)


def _from_environment() -> None:
    set_kept_memory(float(os.environ.get("POOLGRAD_KEPT_MB") or _default_kept_memory()))
    text = os.environ.get("POOLGRAD_NUM_THREADS", "").strip()
    if not text:
        return
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise ValueError(f"POOLGRAD_NUM_THREADS: got {text!r}, wanted an integer from 1 to 1024")
    set_num_threads(int(text))


_from_environment()
