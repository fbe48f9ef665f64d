"""What is known about windows is kept for the next call; where windows are many, only as much as fits a store that all share."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

T = TypeVar("T")

SHORT = 1 << 12  # entries up to which something counts as short: not half a megabyte with its native plan
STORE = 1 << 24  # entries of all that is long, but for the newest

_long: dict[Any, Any] = {}  # the oldest first


class _Long(Exception):
    """Carries a result past lru_cache, which does not keep what is raised."""


def entries(made: Any) -> int:
    """The length of the tables of an axis, of a plan, or of what has a plan."""
    found: int = getattr(made, "plan", made).entries
    return found


def kept(most: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
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
                while len(_long) > 1 and sum(map(entries, list(_long.values()))) > STORE:
                    _long.pop(next(iter(_long), None), None)
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
