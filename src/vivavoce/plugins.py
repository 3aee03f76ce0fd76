"""The one registry: names to things, from the package, from plugins and from `file.py:name`."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
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
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from vivavoce.errors import Problem, UsageError, did_you_mean
from vivavoce.lazy_names import lazy as lazy
from vivavoce.user_code import files_of, other_names, packages_of, set_base, standing_in

if TYPE_CHECKING:
    from vivavoce.extensions import Addition

T = TypeVar("T")

_folders: list[Path] = []
"""The folders of users' files that were made importable, the newest first."""

_executed: dict[Path, int] = {}
"""When the files of users had been changed last, when they were executed."""


HOOKS = {
    "metric": ("register_metrics", "register_graders"),
    "extractor": ("register_extractors",),
    "reward composer": ("register_reward_composers",),
    "strategy": ("register_strategies",),
    "format": ("register_formats",),
    "target kind": ("register_targets",),
    "framework": ("register_frameworks",),
    "model provider": ("register_models",),
    "export format": ("register_exporters",),
    "tool": ("register_publishers",),
}
"""The hooks through which plugins add things by name, by the kind of thing."""


class Registry(Generic[T]):
    """Names of one kind of thing, a key of `HOOKS`.

    Built-in things are given as `module:name` and imported when first asked for; plugins add theirs through hooks, user
    files through a decorator. A plugin replaces nothing that is built in. Where functions are named too, `of_function`
    is the `module:name` of what makes a thing of a function and its name. `admit` is the `module:name` of a function
    that takes a name, what a plugin adds under it, and the name of the plugin; it returns the thing or raises a
    `UsageError`. Without it, whatever can be called is a thing.
    """

    def __init__(
        self, kind: str, builtin: Mapping[str, str], *, of_function: str | None = None, admit: str | None = None
    ) -> None:
        self.kind = kind
        self._builtin = dict(builtin)
        self._added: dict[str, T] = {}
        self._loaded: dict[Addition, T] = {}
        self._of_function = of_function
        self._admit = admit

    def add(self, name: str, thing: T) -> T:
        """Register a thing under a name; a later one replaces an earlier one."""
        self._added[name] = thing
        return thing

    def add_function(self, name: str, function: Callable[..., Any]) -> None:
        """Register what is made of a function under a name."""
        self.add(name, self._made_of(name, function))

    def names(self) -> list[str]:
        """Return every known name, sorted."""
        return sorted({*self._builtin, *self._added, *self._additions()})

    def is_built_in(self, name: str) -> bool:
        """Return whether a name is that of a built-in thing."""
        return name in self._builtin

    def plugin_names(self) -> list[str]:
        """Return the names that plugins add: those of features in their order, then those of packages, sorted."""
        return list(self._additions())

    def switched_off(self) -> list[str]:
        """Return the built-in features that would add names and are switched off."""
        return lazy("vivavoce.extensions:switched_off")(HOOKS[self.kind])

    def get(self, name: str, kind: str | None = None) -> T:
        """Return the thing of that name; `kind` is what an error calls it.

        Raises:
            UsageError: no such name, and the message offers the closest one; or a plugin cannot load it.
        """
        if name in self._added:
            return self._added[name]
        if name in self._builtin:
            return self.add(name, self._thing(name, lazy(self._builtin[name])))
        if (addition := self._additions().get(name)) is not None:
            return self._load(addition)
        raise UsageError(f"no {kind or self.kind} '{name}'{did_you_mean(name, self.names())}")

    def entries(self, *, of_plugins: bool = False) -> Iterator[tuple[str, T]]:
        """Yield every name and its thing, sorted; `of_plugins`, only what plugins add, in their order.

        A plugin that cannot load something is switched off with a warning.
        """
        for name in self.plugin_names() if of_plugins else self.names():
            if name in self._builtin or name in self._added:
                yield name, self.get(name)
                continue
            addition = self._additions().get(name)
            if addition is None:  # its plugin was switched off after the names were read
                continue
            try:
                thing = self._load(addition)
            except UsageError as error:
                lazy("vivavoce.extensions:plugins")().switch_off(addition.plugin, str(error))
            else:
                yield name, thing

    def _thing(self, name: str, loaded: Any) -> T:
        return self._made_of(name, loaded) if isinstance(loaded, FunctionType) else cast("T", loaded)

    def _made_of(self, name: str, function: Callable[..., Any]) -> T:
        return cast("T", function) if self._of_function is None else lazy(self._of_function)(name, function)

    def _load(self, addition: Addition) -> T:
        if addition not in self._loaded:
            loaded = lazy("vivavoce.extensions:load")(self.kind, addition)
            if self._admit is not None:
                loaded = lazy(self._admit)(addition.name, loaded, addition.plugin)
            elif not callable(loaded):
                raise UsageError(
                    f"the {self.kind} '{addition.name}' of the plugin '{addition.plugin}' must be callable, "
                    f"got {type(loaded).__name__}"
                )
            self._loaded[addition] = self._thing(addition.name, loaded)
        return self._loaded[addition]

    def _additions(self) -> Mapping[str, Addition]:
        return lazy("vivavoce.extensions:additions")(self.kind, HOOKS[self.kind], self._builtin)


def is_file_reference(reference: str) -> bool:
    """Say whether the text has the form `file.py:name`."""
    path, _, name = reference.rpartition(":")
    return path.endswith(".py") and name.isidentifier()


_allowed_files: ContextVar[Literal["all", "code", "none"]] = ContextVar("allowed_files", default="all")


@contextmanager
def without_files(*, allows_code: bool = False) -> Generator[None]:
    """Refuse every file that is named in the data that this task reads meanwhile: it came over HTTP.

    With `allows_code` it is next to the target of a suite, which names the code that is called.
    """
    token = _allowed_files.set("code" if allows_code and _allowed_files.get() != "none" else "none")
    try:
        yield
    finally:
        _allowed_files.reset(token)


def may_name_file() -> bool:
    """Return whether the data that is read may name files."""
    return _allowed_files.get() == "all"


def check_may_name_file() -> None:
    """Check that the data that is read may name files.

    Raises:
        UsageError: it came over HTTP.
    """
    if not may_name_file():
        raise UsageError("a request cannot name a file; send its content")


def load_object(reference: str, base: Path) -> Any:
    """Load `file.py:name`; a relative path starts at `base`.

    Raises:
        UsageError: the file is missing, raises on import, or has no such name. What is wrong inside the file has its
            place there; what is wrong with the reference has none, for only the caller knows where it is written.
    """
    path_text, _, name = reference.rpartition(":")
    if not is_file_reference(reference):
        raise UsageError(f"'{reference}' does not have the form file.py:name")
    if _allowed_files.get() != "code":
        check_may_name_file()
    path = (base / path_text).resolve()
    if not path.is_file():
        raise UsageError(f"no file '{path_text}' next to the suite (looked for {path})")
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
    without_limit: Callable[[], AbstractContextManager[None]] = lazy("vivavoce.work_time:unlimited_work")
    try:
        with _names_of_others(packages_of([file for file, _ in files])), without_limit():
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
            stack.enter_context(standing_in(lazy("vivavoce.suites.letta_names:EVALS_MODULES")))
        if "letta_client" in packages and _is_installed("letta_client"):
            stack.enter_context(standing_in(lazy("vivavoce.suites.letta_names:CLIENT_MODULES")))
            client = importlib.import_module("letta_client")
            stack.enter_context(other_names(client, lazy("vivavoce.suites.letta_names:find_name")))
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
