"""poolgrad itself: the op as a user calls it, and the operator that takes the taps of the maxima."""

from __future__ import annotations

from poolgrad import __version__, raw_ops
from poolgrad._kernels import native
from poolgrad._pooling.operators import TapGather

from ..cells import Cell
from ..data import Arrays, arguments, windows_of
from .base import Peer, Run


class Ours:
    """The op through `raw_ops`, on NumPy arrays."""

    name = "poolgrad"
    given = False

    def version(self) -> str:
        """Return the version of poolgrad."""
        return __version__

    def can(self, cell: Cell) -> str | None:
        """Accept every cell."""
        return None

    def prepare(self, cell: Cell, arrays: Arrays) -> Run:
        """The bound function and its arguments."""
        function, given = getattr(raw_ops, cell.kind), arguments(cell, arrays)
        result = (lambda outs: outs[0]) if len(cell.op.outputs) > 1 else (lambda out: out)
        return Run(lambda: function(**given), result)


class OursGiven(Ours):
    """The operator, with taps computed before."""

    name = "poolgrad"
    given = True

    def can(self, cell: Cell) -> str | None:
        """Accept derivatives of maxima."""
        return None if cell.maximal and cell.op.order else "needs no positions"

    def prepare(self, cell: Cell, arrays: Arrays) -> Run:
        """Make the operator of the maxima as a user of the pythonic API does, with checks of the taps."""
        plan = windows_of(cell, arrays).plan
        assert plan is not None
        _, taps = native.choose(plan, arrays.x)
        operator = TapGather(plan, taps, range(arrays.x.ndim))
        if cell.op.order == 1:
            return Run(lambda: operator.T(arrays.g))
        return Run(lambda: operator(arrays.v))


def peers() -> list[Peer]:
    """Return both forms."""
    return [Ours(), OursGiven()]
