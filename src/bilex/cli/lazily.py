"""Imports that wait until a module is used, for commands that only look at what there is.

`importlib.util.LazyLoader` does not serve: before Python 3.12 a second `import` of a waiting module loads it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_WAITING = "_bilex_waiting_loader"


class _WaitingModule(ModuleType):
    """A module that has not been run; the first of its names that is asked for runs it."""

    def __getattr__(self, name: str) -> Any:
        loader: Loader | None = vars(self).pop(_WAITING, None)
        if loader is None:  # it is still being set up
            raise AttributeError(name)
        self.__class__ = ModuleType  # type: ignore[assignment]  # from here on a module as any other
        if self.__spec__ is not None and self.__spec__.submodule_search_locations is not None:
            self.__path__ = self.__spec__.submodule_search_locations
        loader.exec_module(self)
        return getattr(self, name)


class _WaitingLoader(Loader):
    """Makes a module as another loader would, but leaves the running of it until later."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """A module that waits."""
        return _WaitingModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Note who will run it; without a path, so that importing what is inside it runs it first."""
        vars(module)[_WAITING] = self._loader
        vars(module).pop("__path__", None)


class _WaitingFinder(MetaPathFinder):
    """Finds some modules as always, but has them wait."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's spec with a loader that waits; None for all other modules."""
        found = PathFinder.find_spec(name, path, target) if name in self._names else None
        if found is not None and found.loader is not None:
            found.loader = _WaitingLoader(found.loader)
        return found


@contextmanager
def loaded_when_used(*names: str) -> Iterator[None]:
    """Within this block `import NAME` costs nothing; the module is loaded when it is first used, if ever.

    Args:
        names: Whole names of modules; those that are loaded already stay as they are.
    """
    finder = _WaitingFinder(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
