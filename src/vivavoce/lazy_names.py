"""Names that are imported when they are first used, so that importing a package costs almost nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any


def lazy(reference: str) -> Any:
    """Import `package.module:name` and return the thing."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


def lazy_names(
    package: str,
    names: Mapping[str, Collection[str]],
    *,
    here: Collection[str] = (),
    packages: Collection[str] = (),
    also: Mapping[str, Collection[str]] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package.

    `names` maps each module, written as in an import (`.goal` is in the package), to its names. `here` are names
    that the package defines itself, `packages` are packages in it that `dir` lists. The names of `also` can be imported
    too, but are in neither `__all__` nor `dir`.
    """
    module_of = {name: module for module, those in (*names.items(), *(also or {}).items()) for name in those}
    public_names = sorted((*(name for those in names.values() for name in those), *here))

    def find(name: str) -> Any:
        if name == "__all__":
            return public_names
        if name in module_of:
            return getattr(import_module(module_of[name], package), name)
        if name in packages:
            return import_module(f".{name}", package)
        raise AttributeError(f"module '{package}' has no attribute '{name}'")

    def list_names() -> list[str]:
        return sorted((*public_names, *packages))

    return find, list_names
