"""Modules of tools that are not installed, under their names, while a user's file is executed.

A file that was written for another tool imports names from it. Where the tool is not installed, a module of that name
has them for as long as the file is executed, and is gone afterwards: no other code takes the tool for installed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Names = Mapping[str, Any]


class _StandIns(MetaPathFinder, Loader):
    """Finds the modules that stand in, after everything that is installed."""

    def __init__(self, modules: Mapping[str, Names]) -> None:
        self._modules = modules
        self._made: dict[str, ModuleType] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Return a spec for a module that stands in, None for any other."""
        return ModuleSpec(fullname, self, is_package=True) if fullname in self._modules else None

    def exec_module(self, module: ModuleType) -> None:
        """Give a module its names."""
        self._made[module.__name__] = module
        vars(module).update(self._modules[module.__name__])

    def forget(self) -> None:
        """Take the modules away again, also from the packages that they were put into."""
        for name, module in self._made.items():
            sys.modules.pop(name, None)
            package, _, last = name.rpartition(".")
            parent = sys.modules.get(package)
            if parent is not None and getattr(parent, last, None) is module:
                delattr(parent, last)


@contextmanager
def standing_in(modules: Mapping[str, Names]) -> Generator[None]:
    """Provide modules, each with its names, where they are not installed."""
    finder = _StandIns(modules)
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        finder.forget()


@contextmanager
def other_names(module: ModuleType, find: Callable[[str], Any]) -> Generator[None]:
    """Let a module that is installed answer names it does not have, with what `find` returns or an AttributeError."""
    before = vars(module).get("__getattr__")
    vars(module)["__getattr__"] = find
    try:
        yield
    finally:
        if before is None:
            del vars(module)["__getattr__"]
        else:
            vars(module)["__getattr__"] = before
