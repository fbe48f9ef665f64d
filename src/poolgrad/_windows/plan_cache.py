"""What is known about windows is kept for the next call; where windows are many, only as much as fits a store that all share."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

T = TypeVar("T")

SHORT = 1 << 12  # entries up to which something counts as short: not half a megabyte with its native plan
STORE = 1 << 23  # entries of all that is long, unless the newest alone has more

_long: dict[Any, Any] = {}  # the oldest first


class _Long(Exception):
    """Carries a result past lru_cache, which does not keep what is raised."""


def entries(*made: Any) -> int:
    """The length of the tables behind some axes, plans, or what has a plan; what they share counts once."""
    return sum(axis.length + len(axis) for axis in set().union(*map(_axes, made)))


def _axes(made: Any) -> set[Any]:
    found: set[Any] = getattr(made, "plan", made).tables
    return found


def _make_room(newest: Any) -> None:
    """What fits besides the newest stays, the newer ones first; what the newest is made of takes no room."""
    held, room = _axes(newest), STORE - entries(newest)
    for key, old in reversed(list(_long.items())):
        size = entries(*(_axes(old) - held))
        if size > max(room, 0):
            _long.pop(key, None)
        else:
            held, room = held | _axes(old), room - size


def cache_plan(most: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """As lru_cache, for functions that make axes, plans, or what has a plan."""

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
