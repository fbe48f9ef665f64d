"""Facts about the blocks of a page, found before anything runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .._ops.bind import BoundCall
from . import literals
from .blocks import Block
from .model import PageProblem
from .pool_calls import PoolCall

Array = npt.NDArray[Any]
OK, FAILED, BLOCKED, UNKNOWN = "ok", "failed", "blocked", "unknown"


@dataclass(frozen=True)
class Spec:
    """The type, shape and perhaps value of an array before it is computed; all unknown if dtype is None."""

    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    value: Array | None = None

    @property
    def known(self) -> bool:
        """Return True if shape and type are known."""
        return self.dtype is not None and self.shape is not None

    @property
    def nbytes(self) -> int:
        """Return the bytes of the array, or 0 if shape or type is unknown."""
        if self.dtype is None or self.shape is None:
            return 0
        return math.prod(self.shape) * literals.numpy_type(self.dtype).itemsize

    def stand_in(self) -> Array:
        """Return an array of that shape and type that takes no memory."""
        if self.value is not None:
            return self.value
        assert self.dtype is not None
        assert self.shape is not None
        return np.broadcast_to(np.zeros((), literals.numpy_type(self.dtype)), self.shape)


@dataclass
class Seen:
    """Facts about one block."""

    block: Block | None = None
    status: str = OK
    values: dict[str, Any] = field(default_factory=dict)  # its parsed texts; optional attributes by name
    sources: dict[str, str] = field(default_factory=dict)  # pin: node.pin
    outputs: dict[str, Spec] = field(default_factory=dict)
    call: BoundCall | None = None  # the checked call, if its block is an op whose inputs are known
    pool_call: PoolCall | None = None  # the checked call, if its block is a pool or a derivative of one


@dataclass
class Checked:
    """Facts about a page."""

    seen: dict[str, Seen] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    problems: list[PageProblem] = field(default_factory=list)
    blamed: set[tuple[str, str | None]] = field(default_factory=set)  # (block, pin) of each problem
    nbytes: int = 0  # of all arrays of the page
    cells: int = 0  # read by all windows
    guessed: int = 0  # unknown names that were compared with all known names

    def spec(self, end: str) -> Spec:
        """Return the facts about `node.pin`."""
        node, _, pin = end.partition(".")
        return self.seen[node].outputs.get(pin, Spec()) if node in self.seen else Spec()

    def sort(self) -> None:
        """Sort problems by block, then by pin."""
        places = {name: i for i, name in enumerate(self.seen)}

        def place(problem: PageProblem) -> tuple[int, int]:
            block = self.seen[problem.node].block if problem.node in self.seen else None
            pins = [pin.name for pin in block.pins] if block else []
            return places.get(problem.node or "", -1), pins.index(problem.pin) if problem.pin in pins else -1

        self.problems.sort(key=place)
