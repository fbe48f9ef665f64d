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


class Entries:
    """So many table entries that a plan holds beside its axes: of its parts in the core."""

    def __init__(self, held: int) -> None:
        self.held = held


def entries(made: Any) -> int:
    """Count the table entries that an axis, a plan, or an object with a plan can have; count shared axes once. Cache it on the object.

    A formula counts as its tables, which someone may read: it is long. What it holds by now is another number.
    """
    holder = getattr(made, "plan", made)
    kept: int | None = holder.__dict__.get("_entries")
    if kept is None:
        kept = sum([axis._entries for axis in holder.tables])
        holder.__dict__["_entries"] = kept
    return kept


def _count(axes: set[Any]) -> int:
    """Count the table entries that axes hold by now."""
    return sum([axis.held for axis in axes])


def trim(kept: dict[Any, Any], most: int) -> None:
    """Drop the oldest entries of a cache until `most` are left."""
    try:
        while len(kept) > most:
            kept.pop(next(iter(kept)), None)
    except (StopIteration, RuntimeError):  # another thread changed the cache meanwhile, and trims it, too
        pass


def _axes(made: Any) -> set[Any]:
    found: set[Any] = getattr(made, "plan", made).tables_by_now
    return found


def make_room() -> None:
    """Drop the entries that do not fit beside the newest, keeping newer ones first; axes shared with the newest count nothing.

    Call it when tables were made: with a new entry, or with one that is known, such as a formula.
    """
    known = list(_long.items())
    if not known:
        return
    held = _axes(known[-1][1])
    room = STORE - _count(held)
    for key, old in reversed(known):
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
                    make_room()
            return made

        known.cache_clear = short.clear  # type: ignore[attr-defined]  # as functools names it
        return known

    return cached
