"""The pages about Python: every public name with what its docstring says first; the site has all of each docstring."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from vivavoce.plugins import Registry

PACKAGES = (
    "vivavoce",
    "vivavoce.messages",
    "vivavoce.targets",
    "vivavoce.metrics",
    "vivavoce.penelope",
    "vivavoce.testing",
    "vivavoce.client",
)
"""The packages with public names. A name that several offer has its place where it is found first."""
FOLDER = "python"
HEAD = """# {package}

<!-- Written by docs/generate.py from the docstrings. Change these, then run: make docs -->

{about}

"""


def python_pages(reference: Path) -> dict[Path, str]:
    """Return the text of a page for each public package."""
    taken: set[str] = set()
    pages: dict[Path, str] = {}
    for package in PACKAGES:
        module = import_module(package)
        new = {name: thing for name, thing in public(module).items() if name not in taken}
        taken.update(new)
        entries = "\n".join(line for name, thing in new.items() for line in entry(name, thing))
        pages[reference / FOLDER / f"{package.rpartition('.')[2]}.md"] = (
            HEAD.format(package=package, about=inspect.getdoc(module) or "") + entries
        )
    return pages


def public(module: ModuleType) -> dict[str, Any]:
    """Return the classes, functions and registries that a package offers, by name."""
    names = getattr(module, "__all__", None) or own_names(module)
    things = {name: getattr(module, name) for name in names}
    return {name: thing for name, thing in things.items() if callable(thing) or isinstance(thing, Registry)}


def own_names(module: ModuleType) -> list[str]:
    """Return the public names that a module without a list of them defines itself."""
    here = [name for name, thing in vars(module).items() if getattr(thing, "__module__", None) == module.__name__]
    return sorted(name for name in here if not name.startswith("_"))


def entry(name: str, thing: Any) -> Iterator[str]:
    """Yield the lines about one name."""
    said = inspect.cleandoc(thing.__doc__ or "").split("\n\n")[0]
    yield from (f"## {name}", "", " ".join(said.split()), "")
