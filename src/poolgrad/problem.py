"""The old place of problem lines, kept for one version; `poolgrad try` runs a line."""

import warnings

from ._ops.problem import *  # noqa: F403

warnings.warn("poolgrad.problem moved; use `poolgrad try LINE`", DeprecationWarning, stacklevel=2)
