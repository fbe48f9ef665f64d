"""Read single attributes: convert each given value to its type, or record an error.

A value may be of any class: if one of its methods raises, record an error for the value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import islice
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.errors import ArgumentErrors, short_repr

INT32_MAX = 2**31 - 1


class Attributes:
    """A call's attributes, read by name and kind.

    >>> problems = ArgumentErrors("MaxPool")
    >>> given = Attributes({"ksize": [1, 2, 2, 1], "padding": "same"}, problems)
    >>> given.ints("ksize", 4), given.word("padding", ("SAME", "VALID"))
    ((1, 2, 2, 1), None)
    >>> problems.raise_if_any()
    Traceback (most recent call last):
    ValueError: MaxPool: padding: got 'same', wanted 'SAME' or 'VALID'
    """

    def __init__(self, given: Mapping[str, Any], problems: ArgumentErrors) -> None:
        self.given, self.problems = given, problems

    def ints(self, name: str, count: int, tensor: bool = False) -> tuple[int, ...] | None:
        """Return exactly `count` 32-bit integers; with `tensor`, an array must be an int32 vector."""
        wanted = f"a list of {count} integers"
        value: Any = self.given.get(name)
        try:
            if isinstance(value, np.ndarray) or (tensor and hasattr(value, "__array__")):
                value = self._unpacked(name, np.asarray(value), wanted, tensor)
            listed = self._listed(name, value, count, wanted)
            ints = None if listed is None else tuple(map(index, listed))
        except Exception:
            self.problems.add(name, short_repr(value), wanted, TypeError)
            return None
        if ints is None or all(-INT32_MAX - 1 <= v <= INT32_MAX for v in ints):
            return ints
        self.problems.add(name, short_repr(value), f"{wanted} within 32 bits")
        return None

    def _unpacked(self, name: str, value: npt.NDArray[Any], wanted: str, tensor: bool) -> list[int] | None:
        if value.ndim != 1:
            self.problems.add(name, f"an array of shape {list(value.shape)[:8]}", wanted)
        elif value.dtype.kind not in "iu" or (tensor and value.dtype.name != "int32"):
            wanted = "an int32 vector" if tensor else wanted
            self.problems.add(name, f"an array of dtype {value.dtype.name}", wanted, TypeError)
        else:
            return list(value.tolist())
        return None

    def floats(self, name: str, count: int) -> tuple[float, ...] | None:
        """Return exactly `count` numbers, rounded to float32."""
        wanted = f"a list of {count} numbers"
        value: Any = self.given.get(name)
        try:
            listed = self._listed(name, value, count, wanted) or []
            with np.errstate(over="ignore"):
                floats = tuple(float(np.float32(float(v) if abs(v) < 2**1000 else math.inf)) for v in listed)
        except Exception:
            listed, floats = [None], ()
        if all(isinstance(v, (int, float, np.integer, np.floating)) for v in listed):
            return floats or None
        self.problems.add(name, short_repr(value), wanted, TypeError)
        return None

    def _listed(self, name: str, value: Any, count: int, wanted: str) -> list[Any] | None:
        """Return the entries of a list of `count`; read at most one more, since the list may be longer than its len()."""
        if isinstance(value, (str, bytes)) or not (hasattr(value, "__iter__") and hasattr(value, "__len__")):
            self.problems.add(name, short_repr(value), wanted, TypeError)
        elif len(value) != count or len(listed := list(islice(value, count + 1))) != count:
            self.problems.add(name, f"{short_repr(value)}, {len(value)} entries", wanted)
        else:
            return listed
        return None

    def word(self, name: str, words: tuple[str, ...]) -> str | None:
        """Return one of these words; default: the first."""
        value = self.given.get(name, words[0])
        value = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        if isinstance(value, str) and (value := str.__str__(value)) in words:  # which may be equal to nothing by itself
            return value
        kind = ValueError if isinstance(value, str) else TypeError
        self.problems.add(name, short_repr(value), " or ".join(map(repr, words)), kind)
        return None

    def flag(self, name: str) -> bool:
        """Return a bool; default: False."""
        value = self.given.get(name)
        if value is not None and not isinstance(value, (bool, np.bool_)):
            self.problems.add(name, short_repr(value), "True or False", TypeError)
            return False
        return bool(value)

    def seed(self, name: str) -> int:
        """Return a 64-bit integer; default: 0."""
        try:
            value = index(self.given.get(name) or 0)
        except Exception:
            self.problems.add(name, short_repr(self.given.get(name)), "an integer", TypeError)
            return 0
        if not -(2**63) <= value < 2**63:
            self.problems.add(name, value, "an integer within 64 bits")
        return value

    def index_type(self, name: str, elements: int) -> str:
        """Return the dtype of positions among so many elements; default: int64."""
        given = self.given.get(name, "int64")
        try:
            value = getattr(given, "as_numpy_dtype", given)
            kind = np.dtype(value).name if value is not None else ""
        except Exception:
            kind = ""
        if kind not in ("int32", "int64"):
            self.problems.add(name, short_repr(given), "int32 or int64", TypeError)
            return "int64"
        if kind == "int32" and elements > 2**31:
            self.problems.add(name, "int32", f"int64, for positions in an input of {elements} elements")
        return kind
