"""Threads, instruction sets, versions."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from . import _core

__version__ = "0.1.0"


def get_num_threads() -> int:
    """Return the number of threads that a call may use.

    Returns
    -------
    int
        The number that `set_num_threads` or the environment variable POOLGRAD_NUM_THREADS set. Without one, the least of: the
        processors that the process may use, the limit of its control group, the environment variable OMP_NUM_THREADS, and the number
        that `torch.set_num_threads` set in this thread, if it is below torch's default.

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

    Results never depend on it. The number holds for the whole process, and comes before the limits of frameworks.

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
    before = _core.thread_setting()
    set_num_threads(n)
    try:
        yield
    finally:
        _core.set_num_threads(*before)


@contextmanager
def limit_here(n: int) -> Iterator[None]:
    """Use at most n threads for calls of this thread within a block; 0 sets no limit. Adapters call it with their framework's limit."""
    before = _core.limit_here(n)
    try:
        yield
    finally:
        _core.limit_here(before)


def follow_threads(library: str, threads: str, busy: str, usual: int) -> None:
    """Let another library limit the threads of calls, unless the program sets their number.

    Parameters
    ----------
    library : str
        The path of a library that is loaded.
    threads : str
        The name of its function ``int f(void)``: the threads that a call of this thread may use.
    busy : str
        The name of its function ``bool f(void)``: whether this thread is one of several of that library.
    usual : int
        The number of threads if nobody sets it. Only a lower one is a limit.

    Raises
    ------
    ValueError
        If the library is not loaded, or has no such functions.
    """
    _core.follow_threads(library, threads, busy, usual)


def limit_threads(n: int) -> None:
    """Limit the threads of calls, without a claim that the program set their number. threadpoolctl calls it."""
    _core.set_num_threads(min(max(n, 1), 1024), given=_core.thread_setting()[1])


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
    _kept[0] = int(megabytes * 2**20)
    _core.keep_at_most(min(_kept))


_kept = [0]  # the bytes that the program allows to keep, then those that runs within a given memory allow


@contextmanager
def keep_less(bytes: int) -> Iterator[None]:
    """Keep at most so many bytes of freed results within a block. Runs within a given memory call it."""
    _kept.append(bytes)
    _core.keep_at_most(min(_kept))
    try:
        yield
    finally:
        _kept.pop(_kept.index(bytes, 1))
        _core.keep_at_most(min(_kept))


def foreign() -> object:
    """Return the core for other compiled code.

    Returns
    -------
    PyCapsule
        A capsule named "poolgrad.table.2": the functions that poolgrad.h declares, as a `pg_table`.

    Examples
    --------
    >>> "poolgrad.table.2" in repr(foreign())
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


class CoreCall(NamedTuple):
    """A call of a verb of the core, and the names of the schedules that ran it, joined by "+"."""

    verb: str
    dtype: np.dtype[Any]
    source: tuple[int, ...]
    dest: tuple[int, ...]
    schedule: str


def core_calls(run: Callable[[], object]) -> list[CoreCall]:
    """Run a function; return the calls of the core that it makes in this thread.

    Parameters
    ----------
    run : callable
        A function without arguments.

    Returns
    -------
    list of CoreCall
        In the order of the calls.

    Examples
    --------
    >>> import numpy as np
    >>> import poolgrad as pg
    >>> [call.verb for call in core_calls(lambda: pg.avg_pool(np.ones((1, 4, 4, 1)), 2))]
    ['fold']
    """
    calls: list[Any] = []
    before = _core.watch(calls)
    try:
        run()
    finally:
        _core.watch(before)
    return [CoreCall(*call) for call in calls]


def schedule_reason(name: str) -> str:
    """Return a sentence that says when the core chooses a schedule.

    Parameters
    ----------
    name : str
        The name of a schedule.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If there is no schedule of that name.

    Examples
    --------
    >>> schedule_reason("global")
    'one window covers a whole image'
    """
    reasons = _core.schedules()
    if name not in reasons:
        raise ValueError(f"schedule_reason: name: got {name!r}, wanted one of {', '.join(reasons)}")
    return reasons[name]


def schedule(call: str | Callable[..., object], /, *args: Any, **kwargs: Any) -> dict[str, str]:
    """Return the schedules by which the core runs a call.

    A schedule is a way through the core, such as ``direct`` or ``sliding``. All have the same bits; they differ in speed. The answer
    depends on the shapes, the dtype, the processor and the number of threads. The function runs the call to find it.

    Parameters
    ----------
    call : str or callable
        A problem line, as for ``poolgrad try``; the name of an op or of a pool; or any function.
    *args, **kwargs
        The arguments of an op, a pool or a function. For an op or pool by name, a tuple in the place of an array stands for zeros of that
        shape, of dtype float32.

    Returns
    -------
    dict of str to str
        For each verb of the core that ran, the name of its schedule. Several names are joined by "+"; a call without cells has none.

    Raises
    ------
    TypeError
        If `call` is neither a text nor callable.
    ValueError
        If there is no op or pool of that name, or the line is not a problem.

    See Also
    --------
    schedule_reason : Say when a schedule is chosen.

    Examples
    --------
    >>> import poolgrad as pg
    >>> pg.config.schedule("max f32 nhwc x=2x20x20x64 k=3x3 s=2x2")
    {'select': 'direct'}
    >>> pg.config.schedule("avg_pool", (80, 80), 31, stride=1)
    {'fold': 'sliding'}
    """
    if isinstance(call, str):
        import poolgrad

        run = poolgrad._find_call(call, args, kwargs)
    elif callable(call):
        run = partial(call, *args, **kwargs)
    else:
        raise TypeError(f"schedule: call: got {type(call).__name__}, wanted a problem line, a name or a function")
    found: dict[str, dict[str, None]] = {}
    for made in core_calls(run):
        found.setdefault(made.verb, {}).update(dict.fromkeys(filter(None, made.schedule.split("+"))))
    return {verb: "+".join(names) for verb, names in found.items()}


config.schedule = schedule  # type: ignore[attr-defined]  # the package's `config` is the function, not this module


def _default_kept_memory() -> float:
    if not hasattr(os, "sysconf"):
        return 512
    return min(512, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**24)


def default_threads(processors: int, environment: Mapping[str, str], groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the number of threads where the program sets none.

    OMP_NUM_THREADS may be a list of numbers, one per level of nested teams; the first counts. Other texts do not count.
    """
    first = environment.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    asked = int(first) if first.isdecimal() and int(first) > 0 else processors
    return max(min(processors, asked, _group_processors(groups) or processors, 1024), 1)


def _group_processors(groups: Path) -> int | None:
    """Return the processors that the control group of the process may use at a time, rounded up, or None if it sets no limit."""
    for quota, period in (("cpu.max", ""), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            numbers = (groups / quota).read_text().split()
            numbers += (groups / period).read_text().split() if period else []
            return max(-(-int(numbers[0]) // int(numbers[1])), 1) if int(numbers[0]) > 0 else None
        except (OSError, ValueError, IndexError, ZeroDivisionError):  # no such file, or "max"
            continue
    return None


def _from_environment() -> None:
    set_kept_memory(float(os.environ.get("POOLGRAD_KEPT_MB") or _default_kept_memory()))
    text = os.environ.get("POOLGRAD_NUM_THREADS", "").strip()
    if not text:
        _core.set_num_threads(default_threads(_core.available_threads(), os.environ), given=False)
        return
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise ValueError(f"POOLGRAD_NUM_THREADS: got {text!r}, wanted an integer from 1 to 1024")
    set_num_threads(int(text))


_from_environment()
