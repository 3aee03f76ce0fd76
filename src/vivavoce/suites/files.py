"""The files that a suite is made of: its own, its dataset, its prompts, and the Python that it names."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from vivavoce.errors import Problem
from vivavoce.files.rows import scan_rows
from vivavoce.plugins import is_file_reference
from vivavoce.samples.row import PATHS
from vivavoce.suites.load import Suite
from vivavoce.user_code import files_of

_MAX_PATH_CHARS = 300
"""Characters of a text that may be the name of a file."""
_PROMPTS = (".txt", ".md", ".yaml", ".yml", ".json", ".toml", ".j2", ".jinja", ".prompt")
"""Endings of files that code reads without changing them."""


@dataclass(frozen=True, slots=True)
class SuiteFiles:
    """Files by what they decide: how the target behaves, or everything else; one need not be there yet.

    `prompts` are those that Python of the suite names in its text.
    """

    target: frozenset[Path]
    others: frozenset[Path]
    prompts: frozenset[Path]

    @property
    def all(self) -> frozenset[Path]:
        """All of them."""
        return self.target | self.others | self.prompts


def files_of_suite(suite: Suite, path: Path) -> SuiteFiles:
    """Return the files of a suite that was read from a path."""
    spec = suite.spec.model_dump(mode="json")
    holding = {part: spec.pop(part) for part in ("target", "targets", "setup_script")}
    base, dataset = suite.base.resolve(), suite.spec.dataset.path
    target, others = set(_list_named_files(holding, base)), set(_list_named_files(spec, base))
    if dataset is not None:
        others.add(base / dataset)
        others.update(_named_in_rows(base / dataset, base))
    prompts = frozenset(prompt for file in target | others for prompt in _prompts_in(file))
    return SuiteFiles(frozenset(target), frozenset({path.resolve(), *others}), prompts)


def _list_named_files(value: object, base: Path) -> Iterator[Path]:
    """Yield the files that the texts of a structure name, a Python file with what it imports from its folder."""
    for text in _texts(value):
        if len(text) > _MAX_PATH_CHARS or "\n" in text or "\0" in text:
            continue
        reference = is_file_reference(text)
        file = base / (text.rpartition(":")[0] if reference else text)
        if reference or file.is_file():
            yield file
        if reference and file.is_file():
            yield from files_of(file.resolve())


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in cast("Mapping[object, object]", value).values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in cast("Sequence[object]", value):
            yield from _texts(inner)


def _named_in_rows(dataset: Path, base: Path) -> Iterator[Path]:
    """Yield the rubrics and policies that the rows of a dataset name."""
    for _, row in scan_rows(dataset) if dataset.is_file() else ():
        if not isinstance(row, Problem):
            paths: list[Any] = [row[name] for name in PATHS if name in row]
            yield from (base / path for path in paths if isinstance(path, str) and path)


def _prompts_in(file: Path) -> Iterator[Path]:
    """Yield the texts next to a Python file that it names, such as a prompt that it reads."""
    if file.suffix == ".py" and file.is_file():
        beside = (file.parent / name for name in _names_in(file, file.stat().st_mtime_ns))
        yield from (path for path in beside if path.is_file())


@lru_cache(maxsize=1024)
def _names_in(file: Path, _changed_at: int) -> tuple[str, ...]:
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return ()
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return tuple(
        text for text in texts if text.endswith(_PROMPTS) and len(text) <= _MAX_PATH_CHARS and "\n" not in text
    )
