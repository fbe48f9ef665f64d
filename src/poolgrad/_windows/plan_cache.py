"""Cache window plans between calls. Large plans share one size-limited cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

SHORT = 1 << 12  # most table entries of a short plan: under half a megabyte with its native plan
STORE = 1 << 23  # most table entries of all long plans together, unless the newest alone has more

_long: dict[Any, Any] = {}  # oldest first


def entries(made: Any) -> int:
    """Count the table entries of an axis, a plan, or an object with a plan; count shared axes once. Cache it on the object."""
    holder = getattr(made, "plan", made)
    kept: int | None = holder.__dict__.get("_entries")
    if kept is None:
        kept = _count(holder.tables)
        holder.__dict__["_entries"] = kept
    return kept


def _count(axes: set[Any]) -> int:
    return sum([axis._entries for axis in axes])


def trim(kept: dict[Any, Any], most: int) -> None:
    """Drop the oldest entries of a cache until `most` are left."""
    try:
        while len(kept) > most:
            kept.pop(next(iter(kept)), None)
    except (StopIteration, RuntimeError):  # another thread changed the cache meanwhile, and trims it, too
        pass


def _axes(made: Any) -> set[Any]:
    found: set[Any] = getattr(made, "plan", made).tables
    return found


def _make_room(newest: Any) -> None:
    """Drop the entries that do not fit beside the newest, keeping newer ones first; axes shared with the newest count nothing."""
    held, room = _axes(newest), STORE - entries(newest)
    for key, old in reversed(list(_long.items())):
        size = _count(_axes(old) - held)
        if size > max(room, 0):
            _long.pop(key, None)
        else:
            held, room = held | _axes(old), room - size


def cache_plan(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Cache a function that makes axes, plans, or objects with a plan: the `most` newest short ones, and the long ones that fit."""

    def cached(make: Callable[P, T]) -> Callable[P, T]:
        short: dict[Any, T] = {}  # oldest first

        @wraps(make)
        def known(*args: P.args, **words: P.kwargs) -> T:
            key = make, args, *words.items()
            made: T | None = short.get(key)
            if made is None:
                made = _long.get(key)
            if made is None:
                made = make(*args, **words)
                if entries(made) <= SHORT:
                    short[key] = made
                    trim(short, most)
                else:
                    _long[key] = made
                    _make_room(made)
            return made

        known.cache_clear = short.clear  # type: ignore[attr-defined]  # as functools names it
        return known

    return cached
