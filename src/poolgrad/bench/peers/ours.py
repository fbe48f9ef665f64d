"""poolgrad itself: the op as a user calls it, and the verb that is given the positions of the maxima."""

from __future__ import annotations

from typing import Any

from ... import __version__, raw_ops, verbs
from ..cells import Cell
from ..data import Arrays, arguments, windows_of
from .base import Peer, Run


class Ours:
    """The op through `raw_ops`, on NumPy arrays."""

    name = "poolgrad"
    given = False

    def version(self) -> str:
        """The version of poolgrad."""
        return __version__

    def can(self, cell: Cell) -> str | None:
        """Every cell."""
        return None

    def prepare(self, cell: Cell, arrays: Arrays) -> Run:
        """The bound function and its arguments."""
        function, given = getattr(raw_ops, cell.kind), arguments(cell, arrays)
        result = (lambda outs: outs[0]) if len(cell.op.outputs) > 1 else (lambda out: out)
        return Run(lambda: function(**given), result)


class OursGiven(Ours):
    """With positions that were computed before."""

    name = "poolgrad"
    given = True

    def can(self, cell: Cell) -> str | None:
        """Derivatives of maxima."""
        return None if cell.maximal and cell.op.order else "needs no positions"

    def prepare(self, cell: Cell, arrays: Arrays) -> Run:
        """The public op where there is one, so that its checks count as the peers' do; elsewhere the verb alone."""
        if cell.layout == "NHWC" and not cell.fractional:
            function = getattr(raw_ops, f"{cell.kind}WithArgmax")
            given: dict[str, Any] = {
                "input": arrays.x,
                "grad": arrays.g if cell.op.order == 1 else arrays.v,
                "argmax": arrays.index,
            }
            given |= {"ksize": cell.every(cell.ksize), "strides": cell.every(cell.strides), "padding": cell.padding}
            return Run(lambda: function(**given))
        plan, index, items = windows_of(cell, arrays).plan, arrays.index, cell.x[0]
        assert plan is not None
        assert index is not None
        if cell.op.order == 1:
            return Run(lambda: verbs.scatter(plan, items, False, arrays.g, index))
        return Run(lambda: verbs.gather(plan, items, False, arrays.v, index))


def peers() -> list[Peer]:
    """Both forms."""
    return [Ours(), OursGiven()]
