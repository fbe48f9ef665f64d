"""Run a function once another package is imported, without importing it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _Finder:
    """Wait for one module: leave finding it to the other finders, and run the function after its code."""

    def __init__(self, name: str, run: Callable[[Any], None]) -> None:
        self.name, self.run = name, run

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        for finder in [f for f in sys.meta_path if f is not self]:
            find = getattr(finder, "find_spec", None)
            spec = find(fullname, path, target) if find is not None else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, self)
                return spec  # type: ignore[no-any-return]
        return None


class _Loader:
    """Load a module as its own loader does, then run the function."""

    def __init__(self, of: Any, finder: _Finder) -> None:
        self._of, self._finder = of, finder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._of.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._of
        self._of.exec_module(module)
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        self._finder.run(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)


def when_imported(name: str, run: Callable[[Any], None]) -> None:
    """Call run(module) now if the module is imported, else after its import."""
    module = sys.modules.get(name)
    if module is not None:
        run(module)
    else:
        sys.meta_path.insert(0, _Finder(name, run))
