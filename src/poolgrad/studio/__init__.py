"""The studio: a local web page to wire, run and understand pooling ops as blocks. In a notebook, call it: `poolgrad.studio(x, 2)`."""

import sys
from types import ModuleType
from typing import Any


class _Studio(ModuleType):
    """The package, which is also the function that shows a page in a notebook."""

    def __call__(self, *args: Any, **words: Any) -> Any:
        from .notebook import studio

        return studio(*args, **words)


sys.modules[__name__].__class__ = _Studio
