"""Cache window plans between calls. Large plans share one size-limited cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

T = TypeVar("T")

SHORT = 1 << 12  # most table entries of a short plan: under half a megabyte with its native plan
STORE = 1 << 23  # most table entries of all long plans together, unless the newest alone has more

_long: dict[Any, Any] = {}  # oldest first


class _Long(Exception):
    """Carry a result past lru_cache, which does not cache exceptions."""


def entries(*made: Any) -> int:
    """Count the table entries of axes, plans, or objects with a plan; count shared axes once."""
    return sum(axis.length + len(axis) for axis in set().union(*map(_axes, made)))


def _axes(made: Any) -> set[Any]:
    found: set[Any] = getattr(made, "plan", made).tables
    return found


def _make_room(newest: Any) -> None:
    """Drop the entries that do not fit beside the newest, keeping newer ones first; axes shared with the newest count nothing."""
    held, room = _axes(newest), STORE - entries(newest)
    for key, old in reversed(list(_long.items())):
        size = entries(*(_axes(old) - held))
        if size > max(room, 0):
            _long.pop(key, None)
        else:
            held, room = held | _axes(old), room - size


def cache_plan(most: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Cache like lru_cache, for functions that make axes, plans, or objects with a plan."""

    def keep(make: Callable[..., T]) -> Callable[..., T]:
        @lru_cache(most)
        @wraps(make)
        def short(*args: Any, **words: Any) -> T:
            key = make, args, *words.items()
            made = _long.get(key)
            if made is None:
                made = make(*args, **words)
                if entries(made) <= SHORT:
                    return made
                _long[key] = made
                _make_room(made)
            raise _Long(made)

        @wraps(short)
        def known(*args: Any, **words: Any) -> T:
            try:
                return short(*args, **words)
            except _Long as found:
                made: T = found.args[0]
                return made

        return known

    return keep
