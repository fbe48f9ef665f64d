"""Keep the old name of a function for one version: it works, and warns."""

from __future__ import annotations

import warnings


def warn_renamed(module: str, old: str, new: str) -> None:
    """Warn the caller of a module's `__getattr__` that a name has changed."""
    warnings.warn(f"{module}.{old} is now {module}.{new}; the old name goes in the next version", DeprecationWarning, 3)
