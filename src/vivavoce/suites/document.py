"""A YAML file as plain data, with the line and column of every key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from vivavoce.errors import Problem, UsageError

KeyPath = tuple[str | int, ...]
MAX_BYTES = 1_000_000
MAX_NODES = 20_000
"""A suite of more values is a mistake, or an alias that multiplies itself."""


@dataclass(slots=True)
class Document:
    """The data of a file; `places` maps the path of a value to its line and column, both from 1."""

    path: Path
    data: dict[str, Any]
    places: dict[KeyPath, tuple[int, int]] = field(default_factory=dict[KeyPath, tuple[int, int]])

    def problem(self, at: KeyPath, message: str) -> Problem:
        """Return a problem at the place of a value, or of the nearest value around it."""
        known = at
        while known and known not in self.places:
            known = known[:-1]
        line, column = self.places.get(known, (1, 1))
        label = ".".join(str(part) for part in at)
        return Problem(f"{label}: {message}" if label else message, self.path, line, column)

    def placed(self, at: KeyPath, error: UsageError) -> list[Problem]:
        """Return the problems of an error, each that names no file at a place of this one."""
        return [problem if problem.file else self.problem(at, problem.message) for problem in error.problems]


def read_document(path: Path) -> Document:
    """Read a YAML file whose top is a mapping.

    Raises:
        UsageError: it is missing, unreadable, not UTF-8, not YAML, too large, or not a mapping.
    """
    text = _read_text(path)
    try:
        loaded: object = YAML(typ="rt").load(text)  # pyright: ignore[reportUnknownMemberType]
    except MarkedYAMLError as error:
        raise UsageError(_unreadable(path, error)) from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise UsageError(Problem(f"is not YAML: {str(error).splitlines()[0]}", path)) from error
    if not isinstance(loaded, Mapping):
        raise UsageError(Problem("must be a mapping with keys such as name, dataset, target and graders", path, 1))
    places: dict[KeyPath, tuple[int, int]] = {}
    data = _Plain(path, places).convert(cast("object", loaded), ())
    return Document(path, cast("dict[str, Any]", data), places)


def _unreadable(path: Path, error: Any) -> Problem:
    mark = error.problem_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
    return Problem(f"is not YAML: {error.problem or error.context}", path, line, column)


def _read_text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UsageError(Problem(f"cannot be read: {error.strerror}", path)) from error
    if len(raw) > MAX_BYTES:
        raise UsageError(Problem(f"has {len(raw)} bytes; a suite has at most {MAX_BYTES}", path))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(Problem("is not UTF-8", path, raw[: error.start].count(b"\n") + 1)) from error


@dataclass(slots=True)
class _Plain:
    path: Path
    places: dict[KeyPath, tuple[int, int]]
    nodes: int = 0

    def convert(self, node: object, at: KeyPath) -> object:
        self.nodes += 1
        if self.nodes > MAX_NODES or len(at) > 60:
            raise UsageError(Problem(f"holds more than {MAX_NODES} values once its aliases are followed", self.path))
        if isinstance(node, Mapping):
            return self._mapping(cast("Mapping[Any, object]", node), at)
        if isinstance(node, Sequence) and not isinstance(node, str | bytes):
            return [self._item(node, i, value, at) for i, value in enumerate(cast("Sequence[object]", node))]
        return _scalar(node)

    def _mapping(self, node: Mapping[Any, object], at: KeyPath) -> dict[str, object]:
        result: dict[str, object] = {}
        for key, value in node.items():
            here = (*at, str(key))
            self.places[here] = _place(node, "key", key)
            result[str(key)] = self.convert(value, here)
        return result

    def _item(self, node: Any, index: int, value: object, at: KeyPath) -> object:
        here = (*at, index)
        self.places[here] = _place(node, "item", index)
        return self.convert(value, here)


def _place(node: Any, method: str, key: Any) -> tuple[int, int]:
    try:
        line, column = getattr(node.lc, method)(key)
    except (AttributeError, KeyError, TypeError):
        return (1, 1)
    return (line + 1, column + 1)


def _scalar(node: object) -> object:
    """Return a plain value for the loader's own scalar classes."""
    for kind in (bool, int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return node if node is None else str(node)
