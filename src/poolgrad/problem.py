"""The old place of problem lines, kept for one version; `poolgrad try` runs a line."""

import warnings
from typing import Any

from ._cli.trial import draw_call
from ._ops import problem as _problem
from ._ops.dtypes import short
from ._ops.problem import FAMILIES, format, forward

__all__ = ["FAMILIES", "Problem", "format", "forward", "parse", "short"]

warnings.warn("poolgrad.problem moved; use `poolgrad try LINE`", DeprecationWarning, stacklevel=2)


class Problem(_problem.Problem):
    """A problem that can draw its own arguments."""

    def call(self, data: int = 0, integers: bool = True) -> tuple[str, dict[str, Any]]:
        """Return the op's name and its arguments, drawn from the seed `data`."""
        return draw_call(self, data, integers)


def parse(line: str) -> Problem:
    """Return the problem that a line says."""
    return Problem(**vars(_problem.parse(line)))
