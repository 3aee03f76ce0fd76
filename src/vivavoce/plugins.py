"""The one registry: names to things, from the package, from entry points and from `file.py:name`."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, lru_cache
from importlib.abc import MetaPathFinder
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
)
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from vivavoce.errors import Problem, UsageError, did_you_mean
from vivavoce.user_code import files_of, other_names, packages_of, set_base, standing_in

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

_folders: list[Path] = []
"""The folders of users' files that were made importable, the newest first."""

_executed: dict[Path, int] = {}
"""When the files of users had been changed last, when they were executed."""


def lazy(reference: str) -> Any:
    """Import `package.module:name` and return the thing."""
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


GROUPS = {
    "metric": ("vivavoce.metrics", "vivavoce.graders"),
    "extractor": ("vivavoce.extractors",),
    "reward composer": ("vivavoce.reward_composers",),
    "strategy": ("vivavoce.strategies",),
}
"""The groups of entry points in which an installed package names what it adds, by the kind of thing."""


class Registry(Generic[T]):
    """Names of one kind of thing, a key of `GROUPS`.

    Built-in things are given as `module:name` and imported when first asked for; packages add theirs through entry
    points, user files through a decorator. A package replaces nothing that is built in. Where functions are named too,
    `of_function` is the `module:name` of what makes a thing of a function and its name.
    """

    def __init__(self, kind: str, builtin: Mapping[str, str], *, of_function: str | None = None) -> None:
        self.kind = kind
        self._groups = GROUPS[kind]
        self._builtin = dict(builtin)
        self._added: dict[str, T] = {}
        self._of_function = of_function

    def add(self, name: str, thing: T) -> T:
        """Register a thing under a name; a later one replaces an earlier one."""
        self._added[name] = thing
        return thing

    def add_function(self, name: str, function: Callable[..., Any]) -> None:
        """Register what is made of a function under a name."""
        self.add(name, self._made_of(name, function))

    def names(self) -> list[str]:
        """Return every known name, sorted."""
        return sorted({*self._builtin, *self._added, *self._entry_points()})

    def get(self, name: str, kind: str | None = None) -> T:
        """Return the thing of that name; `kind` is what an error calls it.

        Raises:
            UsageError: no such name, and the message offers the closest one; or two packages have given it.
        """
        if name in self._added:
            return self._added[name]
        if name in self._builtin:
            return self.add(name, self._thing(name, lazy(self._builtin[name])))
        if points := self._entry_points().get(name):
            return self.add(name, self._thing(name, self._only(points).load()))
        raise UsageError(f"no {kind or self.kind} '{name}'{did_you_mean(name, self.names())}")

    def _thing(self, name: str, loaded: Any) -> T:
        return self._made_of(name, loaded) if isinstance(loaded, FunctionType) else cast("T", loaded)

    def _made_of(self, name: str, function: Callable[..., Any]) -> T:
        return cast("T", function) if self._of_function is None else lazy(self._of_function)(name, function)

    def _entry_points(self) -> dict[str, list[EntryPoint]]:
        points_by_name: dict[str, list[EntryPoint]] = {}
        for group in self._groups:
            for point in _installed(group, _places()):
                points_by_name.setdefault(point.name, []).append(point)
        return points_by_name

    def _only(self, points: Sequence[EntryPoint]) -> EntryPoint:
        first, *others = points
        if any(other.value != first.value for other in others):
            packages = sorted({point.dist.name if point.dist else point.value for point in points})
            raise UsageError(
                f"{' and '.join(packages)} both name the {self.kind} '{first.name}'; uninstall one of them"
            )
        return first


def _places() -> tuple[tuple[str, int], ...]:
    """Return the folders in which packages may be, each with the time of its last change."""
    return tuple((place, os.stat(place).st_mtime_ns) for place in sys.path if os.path.isdir(place))


@lru_cache(maxsize=64)
def _installed(group: str, places: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group that are installed in `places`, which reads a file of every package."""
    del places  # what is read is always what is there now
    from importlib.metadata import entry_points  # a third of the time that importing this package takes

    return tuple(entry_points(group=group))


def is_file_reference(reference: str) -> bool:
    """Say whether the text has the form `file.py:name`."""
    path, _, name = reference.rpartition(":")
    return path.endswith(".py") and name.isidentifier()


def load_object(reference: str, base: Path) -> Any:
    """Load `file.py:name`; a relative path starts at `base`.

    Raises:
        UsageError: the file is missing, raises on import, or has no such name. What is wrong inside the file has its
            place there; what is wrong with the reference has none, for only the caller knows where it is written.
    """
    path_text, _, name = reference.rpartition(":")
    if not is_file_reference(reference):
        raise UsageError(f"'{reference}' does not have the form file.py:name")
    path = (base / path_text).resolve()
    if not path.is_file():
        raise UsageError(f"no file '{path_text}' beside the suite (looked for {path})")
    set_base(path, base.resolve())
    module = load_file(path, tuple((file, file.stat().st_mtime_ns) for file in files_of(path)))
    if not hasattr(module, name):
        public = [n for n in vars(module) if not n.startswith("_")]
        raise UsageError(f"{path_text} has no '{name}'{did_you_mean(name, public)}")
    return getattr(module, name)


@lru_cache(maxsize=256)
def load_file(path: Path, files: tuple[tuple[Path, int], ...]) -> ModuleType:
    """Execute a Python file and return it as a module: once, until one of `files` changes, which it is made of.

    Its folder becomes importable.
    """
    for folder in {file.parent for file, _ in files}:
        _read_from_source(folder)
    _make_importable(path.parent)
    _forget({file for file, _ in files})
    unique = hashlib.blake2b(str(path).encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
    name = f"vivavoce_file_{path.stem}_{unique}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_FromSource(name, str(path)))
    if spec is None or spec.loader is None:
        raise UsageError(Problem("is not a Python file", path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        with _names_of_others(packages_of([file for file, _ in files])):
            spec.loader.exec_module(module)
    except KeyboardInterrupt:
        del sys.modules[spec.name]
        raise
    except BaseException as error:  # a module that calls pytest.skip raises no `Exception`
        del sys.modules[spec.name]
        raise UsageError(_import_problem(path, error)) from error
    return module


@contextmanager
def _names_of_others(packages: Collection[str]) -> Generator[None]:
    """Provide names of letta-evals, and older ones of its client, to a file that imports these packages."""
    with ExitStack() as stack:
        if "letta_evals" in packages and not _is_installed("letta_evals"):
            stack.enter_context(standing_in(lazy("vivavoce.suites.letta_evals_names:MODULES")))
        if "letta_client" in packages and _is_installed("letta_client"):
            stack.enter_context(standing_in(lazy("vivavoce.suites.letta_client_names:MODULES")))
            client = importlib.import_module("letta_client")
            stack.enter_context(other_names(client, lazy("vivavoce.suites.letta_client_names:find_name")))
        yield


def _is_installed(package: str) -> bool:
    return package in sys.modules or importlib.util.find_spec(package) is not None


class _FromSource(SourceFileLoader):
    """Compiles a file each time: bytecode that is kept names its source by second and size, so it may be of another."""

    def get_code(self, fullname: str) -> CodeType:
        """Return what the file says now."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _read_from_source(folder: Path) -> None:
    """Let what is imported from a folder be compiled from its source."""
    sys.path_importer_cache[str(folder)] = FileFinder(
        str(folder), (ExtensionFileLoader, EXTENSION_SUFFIXES), (_FromSource, SOURCE_SUFFIXES)
    )


class _Neighbours(MetaPathFinder):
    """Finds what users' files import from their folders, after everything that is installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Return where a module of one of the folders is."""
        return None if path is not None else PathFinder.find_spec(fullname, [str(folder) for folder in _folders])


def _make_importable(folder: Path) -> None:
    """Let files import their neighbours: after what is installed, before the folders of other suites.

    Modules of another suite with the names of neighbours are forgotten, so that each suite gets its own.
    """
    if not any(isinstance(finder, _Neighbours) for finder in sys.meta_path):
        sys.meta_path.append(_Neighbours())
    others = [other for other in _folders if other != folder]
    _folders[:] = [folder, *others]
    importlib.invalidate_caches()
    beside = {str(other) for other in others}
    for name, module in list(sys.modules.items()):
        place, _, file = (getattr(module, "__file__", None) or "").rpartition(os.sep)
        if place in beside and file == f"{name}.py" and (folder / file).exists():
            del sys.modules[name]


def _forget(files: set[Path]) -> None:
    """Forget the modules of changed files, so that they are imported as they are now."""
    changed = {file for file in files if _executed.get(file, file.stat().st_mtime_ns) != file.stat().st_mtime_ns}
    _executed.update((file, file.stat().st_mtime_ns) for file in files)
    if changed:
        for name, module in list(sys.modules.items()):
            if name != "__main__" and _file_of(getattr(module, "__file__", None) or "") in files:
                del sys.modules[name]


@cache
def _file_of(module: str) -> Path:
    return Path(module).resolve()


def _import_problem(path: Path, error: BaseException) -> Problem:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    line = frames[-1].lineno if frames else getattr(error, "lineno", None)
    hint, package = "", (getattr(error, "name", None) or "").partition(".")[0]
    if isinstance(error, ImportError) and package == "letta_evals":
        hint = "; of letta-evals only what a suite's files need is here: install letta-evals for the rest"
    elif isinstance(error, ModuleNotFoundError) and package == "letta_client":
        hint = "; install vivavoce[letta]"
    return Problem(f"raises {type(error).__name__} on import: {error}{hint}", path, line)
