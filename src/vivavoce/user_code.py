"""Code that others wrote: how graders, metrics, tools, targets, and plugins are called, and what their source is.

Such code may raise anything. Some exceptions are not `Exception`, such as those of `pytest.fail`, and would end a run.
Whoever calls it does so inside `foreign_code()` and handles `Exception`.

Fingerprints are made of its source, so that a change in a module that a grader imports is a change of the grader.
Imports are read from the text of a file; one whose name is computed while the program runs is not seen.

A file that was written for another tool imports names from it. Where the tool is not installed, a module of that name
has them for as long as the file is executed, and is gone afterwards: no other code takes the tool for installed.
"""

from __future__ import annotations

import ast
import asyncio
import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import lru_cache, partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from math import isfinite
from numbers import Rational, Real
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, cast

from vivavoce.errors import Deferred, UsageError

_SKIPS = (("_pytest.outcomes", "Skipped"), ("unittest.case", "SkipTest"))
"""The exceptions by which a test says that it does not apply, and the modules that have them."""


class foreign_code:  # noqa: N801  # called like a function
    """Let the code inside raise nothing that would end more than its own call.

    `Exception` and our own `Deferred` pass unchanged. So do an interrupt from the keyboard, the cancellation of this
    task from outside, and the closing of this coroutine. With `raises_interrupts`, an interrupt that comes while nobody
    has cancelled this task is one that the code raised itself.

    Raises:
        RuntimeError: the code raised anything else, which is the cause: it called `sys.exit`, cancelled itself, or
            raised a base exception such as that of `pytest.fail`.
    """

    __slots__ = ("_raises_interrupts", "_task")

    def __init__(self, *, raises_interrupts: bool = False) -> None:
        self._raises_interrupts = raises_interrupts
        try:
            self._task = asyncio.current_task()
        except RuntimeError:  # no loop runs here
            self._task = None

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, Exception | Deferred):
            return
        if isinstance(error, KeyboardInterrupt):
            if not self._raises_interrupts or is_cancelled():
                return
            raise RuntimeError("it raised KeyboardInterrupt") from error
        if isinstance(error, SystemExit):
            raise RuntimeError(f"it called sys.exit({error.code!r})") from error
        if isinstance(error, asyncio.CancelledError):
            if is_cancelled():
                return
            raise RuntimeError("it cancelled its own task") from error
        if isinstance(error, GeneratorExit):
            if _current_task() is not self._task:  # the coroutine is closed, and not run
                return
            raise RuntimeError("it raised GeneratorExit") from error
        raise RuntimeError(f"it raised {type(error).__name__}: {error}".removesuffix(": ")) from error


def is_cancelled() -> bool:
    """Return whether this task was cancelled from outside, and not by the code that runs in it."""
    task = _current_task()
    return task is not None and task.cancelling() > 0


def original_error(error: Exception) -> BaseException:
    """Return what foreign code raised: an error, or the base exception that `foreign_code` made an error of."""
    cause = error.__cause__
    return cause if cause is not None and not isinstance(cause, Exception) else error


def skip_reason(error: Exception) -> str | None:
    """Return why foreign code says that it does not apply, as `pytest.skip` does; None for any other error."""
    raised = original_error(error)
    kinds = [getattr(sys.modules.get(module), name, None) for module, name in _SKIPS]
    if any(kind is not None and isinstance(raised, kind) for kind in kinds):
        return str(raised) or f"it raised {type(raised).__name__}"
    return None


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of anything that can be called; an object without one has that of its class."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def check_callable(thing: object, reference: str, kind: str) -> Callable[..., Any]:
    """Return something that can be called: a function, a bound method, a partial, or an object with `__call__`.

    Raises:
        UsageError: it cannot be called, or is a class, which would only make an object.
    """
    if isinstance(thing, type):
        raise UsageError(
            f"'{reference}' is the class {thing.__name__} itself; name a function or an object of the class"
        )
    if not callable(thing):
        raise UsageError(f"'{reference}' is a {type(thing).__name__}; {kind} is a function or a callable object")
    return thing


def plain_number(value: Any) -> bool | Real | Decimal | None:
    """Return a number or a bool, also where it is one of numpy or of a tensor library; None for anything else."""
    if getattr(value, "shape", None) == () and callable(getattr(value, "item", None)):
        short = type(value).__name__ in ("float16", "float32")  # 0.7 is 0.7, and not what a double makes of its bits
        value = float(str(value)) if short else value.item()
    return value if isinstance(value, Real | Decimal) else None


def unit_number(number: bool | Real | Decimal) -> float:
    """Return a number from 0 to 1 as a float.

    Raises:
        ValueError: it is outside.
    """
    value = float(number)
    exact: Any = number if isinstance(number, Decimal | Rational) else value
    if not (isfinite(value) and 0 <= exact <= 1):
        raise ValueError(f"the score is {number}, which is not between 0 and 1")
    return value


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs here
        return None


Names = Mapping[str, Any]


class _StandIns(MetaPathFinder, Loader):
    """Finds the modules that are in, after everything that is installed."""

    def __init__(self, modules: Mapping[str, Names]) -> None:
        self._modules = modules
        self._loaded_modules: dict[str, ModuleType] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Return a spec for a module that is in, None for any other."""
        return ModuleSpec(fullname, self, is_package=True) if fullname in self._modules else None

    def exec_module(self, module: ModuleType) -> None:
        """Give a module its names."""
        self._loaded_modules[module.__name__] = module
        vars(module).update(self._modules[module.__name__])

    def forget(self) -> None:
        """Take the modules away again, also from the packages that they were put into."""
        for name, module in self._loaded_modules.items():
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


_INSTALLED = frozenset(("site-packages", "dist-packages"))
_STANDARD = Path(sysconfig.get_path("stdlib")).resolve()
_bases: dict[Path, Path] = {}
"""The folder of the suite that named a file, by the file."""


def set_base(path: Path, base: Path) -> None:
    """Remember that a file belongs to the suite in a folder, from which it may import, too."""
    _bases[path] = base


def files_of(path: Path) -> tuple[Path, ...]:
    """Return a file and every file of its folder, or of its suite, that it imports, directly or through another."""
    homes = tuple(dict.fromkeys((path.parent, _home(path), _bases.get(path, path.parent))))
    files, pending = {path}, [path]
    while pending:
        for file in _imported_files(pending.pop(), homes):
            if file not in files:
                files.add(file)
                pending.append(file)
    return (path, *sorted(files - {path}))


def packages_of(files: Sequence[Path]) -> frozenset[str]:
    """Return the top names of everything that files import."""
    return frozenset(
        name.partition(".")[0] for file in files for level, name in _imports(file, file.stat().st_mtime_ns) if not level
    )


def text_of(path: Path) -> str:
    """Return the text of a file and of every file that it imports from its folder."""
    files = files_of(path)
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
    return texts[0] + "".join(f"\0{file.name}\0{text}" for file, text in zip(files[1:], texts[1:], strict=True))


def hash_code(path: Path) -> str:
    """Return a hash of a file and of every file that it imports from its folder."""
    first, *others = files_of(path)
    digest = hashlib.blake2b(first.read_bytes(), digest_size=16)
    for file in others:
        digest.update(b"\0" + file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def source_of(thing: Any) -> str:
    """Return the source that decides what a user's function, class or object does; "" for what is part of vivavoce.

    It is that of the module and of what the module imports from its own folder; of a script or a notebook, which
    changes for many reasons, it is that of the function or class alone, and of what the script imports.
    """
    if isinstance(thing, partial):
        return f"{source_of(thing.func)}\0{thing.args!r}\0{thing.keywords!r}"
    thing = inspect.unwrap(thing) if callable(thing) else thing
    definition: Any = thing if inspect.isclass(thing) or inspect.isroutine(thing) else type(cast("object", thing))
    name: str = getattr(definition, "__module__", None) or ""
    if name.partition(".")[0] == "vivavoce":
        return ""
    path = _file(sys.modules.get(name))
    if path is not None and name != "__main__":
        return text_of(path)
    try:
        text = inspect.getsource(definition)
    except (OSError, TypeError):
        return repr(definition)
    if path is None:
        return text
    return text + "".join(f"\0{file.name}\0{file.read_text(errors='replace')}" for file in files_of(path)[1:])


def _file(module: ModuleType | None) -> Path | None:
    name = getattr(module, "__file__", None)
    path = Path(name).resolve() if isinstance(name, str) and name.endswith(".py") else None
    if path is None or not path.is_file():
        return None
    return None if path.is_relative_to(_STANDARD) and not _INSTALLED & set(path.parts) else path


def _home(path: Path) -> Path:
    """Return the folder that a file imports its neighbours from: that of its package, where it is in one."""
    folder = path.parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _imported_files(path: Path, homes: Sequence[Path]) -> Iterator[Path]:
    for level, name in _imports(path, path.stat().st_mtime_ns):
        if level:
            folder = path.parents[level - 1] if level <= len(path.parents) else path.parent
            yield from _along(folder, name)
            continue
        inside = [file for home in homes if not _INSTALLED & {home.name} for file in _along(home, name)]
        yield from inside
        loaded = _file(sys.modules.get(name))
        if not inside and loaded is not None and _is_user_code(loaded, homes):
            yield loaded


def _is_user_code(file: Path, homes: Sequence[Path]) -> bool:
    """Say whether a loaded module is of the user, wherever it was found through `sys.path`."""
    return any(file.is_relative_to(home) and not _INSTALLED & set(file.relative_to(home).parts) for home in homes)


def _along(folder: Path, name: str) -> Iterator[Path]:
    """Yield the files that are run when a dotted name is imported from a folder."""
    parts = name.split(".") if name else []
    if (folder / "__init__.py").is_file() and not parts:
        yield folder / "__init__.py"
    for part in parts:
        folder = folder / part
        for file in (folder / "__init__.py", folder.with_name(f"{part}.py")):
            if file.is_file():
                yield file.resolve()
                break


@lru_cache(maxsize=4096)
def _imports(path: Path, _changed_at: int) -> tuple[tuple[int, str], ...]:
    """Return what a file imports: how many folders up it starts, 0 for an absolute name, and the dotted name."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return ()
    imported: dict[tuple[int, str], None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= dict.fromkeys((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            stem = node.module or ""
            imported[node.level, stem] = None
            imported |= dict.fromkeys((node.level, f"{stem}.{alias.name}".strip(".")) for alias in node.names)
    return tuple(imported)
