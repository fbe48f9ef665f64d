"""Build all error messages: op, argument, got, wanted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Finding:
    """One error in a call; `shape` is the wanted shape, if the error is about a shape."""

    argument: str
    got: str
    wanted: str
    kind: type[Exception] = ValueError
    shape: tuple[int, ...] | None = None

    def __str__(self) -> str:
        return f"{self.argument}: got {self.got}, wanted {self.wanted}"


class ArgumentErrors:
    """The errors of one call, collected and raised as one exception.

    >>> p = ArgumentErrors("MaxPool")
    >>> p.add("ksize", "[1, 0, 2, 1]", "positive integers")
    >>> p.add("padding", "'same'", "'SAME' or 'VALID' or 'EXPLICIT'")
    >>> p.raise_if_any()
    Traceback (most recent call last):
    ValueError: MaxPool: ksize: got [1, 0, 2, 1], wanted positive integers; padding: got 'same', wanted 'SAME' or 'VALID' or 'EXPLICIT'
    """

    def __init__(self, op: str) -> None:
        self.op = op
        self.found: list[Finding] = []

    def add(
        self,
        argument: str,
        got: object,
        wanted: object,
        kind: type[Exception] = ValueError,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        """Record an error, unless the argument already has one."""
        if not self.blames(argument):
            self.found.append(Finding(argument, str(got), str(wanted), kind, shape))

    def blames(self, *arguments: str) -> bool:
        """Return True if any of these arguments has an error."""
        return any(finding.argument in arguments for finding in self.found)

    def __bool__(self) -> bool:
        return bool(self.found)

    def raise_if_any(self) -> None:
        """Raise all errors as one exception of the type of the first; its `findings` lists them. Do nothing if there are none."""
        if self.found:
            error = self.found[0].kind(f"{self.op}: " + "; ".join(map(str, self.found)))
            error.findings = tuple(self.found)  # type: ignore[attr-defined]
            raise error

    def fail(self, argument: str, got: object, wanted: object, kind: type[Exception] = ValueError) -> NoReturn:
        """Record an error, and raise all errors."""
        self.add(argument, got, wanted, kind)
        self.raise_if_any()
        raise AssertionError("unreachable")


def out_of_memory(op: str, argument: str, error: MemoryError) -> NoReturn:
    """Raise the error again; name the op and the argument if it does not."""
    if hasattr(error, "findings"):
        raise error
    got = f"a call that needs more memory than there is ({short_repr(str(error), 120)})"
    ArgumentErrors(op).fail(argument, got, "a smaller one", MemoryError)


def names_memory(call: Callable[..., T]) -> Callable[..., T]:
    """Wrap call(op, x, ...) so that a MemoryError names the op and the argument."""

    @wraps(call)
    def named(op: str, *args: Any, **words: Any) -> T:
        try:
            return call(op, *args, **words)
        except MemoryError as error:
            out_of_memory(op, "x", error)

    return named


def short_repr(value: object, limit: int = 80) -> str:
    """Return a short text for any value, even if its repr fails or is long.

    >>> short_repr(list(range(100)))
    '[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21...'
    """
    try:
        text = repr(value[:64]) if isinstance(value, (list, tuple, str, bytes)) else repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 3].rstrip() + "..."
