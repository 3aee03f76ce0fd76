"""From a file, or from data, to a checked suite; every mistake has its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vivavoce.errors import Problem, UsageError
from vivavoce.suites.dialects import translate
from vivavoce.suites.document import Described, KeyPath, read_document
from vivavoce.suites.mistakes import mistakes_in
from vivavoce.suites.spec import SuiteSpec
from vivavoce.suites.target_changes import TargetChanges
from vivavoce.suites.translation import Era
from vivavoce.suites.variables import filled

JUDGE = "judge"
"""The source of a suite that the command of this name describes."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite as it was described; `problems` are unsupported requests in it, `notes` are keys that were renamed.

    `base` is the folder where its paths start, `source` its file in that folder or the command that describes it.
    `wrong` are the parts with mistakes in their shape, of which something else takes the place in `spec`.
    `judge` is whom judged assertions of rows ask where no grader names one, by default that of VIVAVOCE_JUDGE.
    """

    spec: SuiteSpec
    document: Described
    base: Path
    source: str
    era: Era | None = None
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    judge: str | None = None
    wrong: frozenset[KeyPath] = frozenset()

    @property
    def judges_a_log(self) -> bool:
        """Whether a command judges its rows, which are a log and were not written as tests."""
        return self.source == JUDGE


def load_suite(path: Path, targets: Sequence[Mapping[str, Any]] = (), changes: TargetChanges | None = None) -> Suite:
    """Read a suite, with the values of its variables; `targets` replace the suite's own, `changes` are made in them.

    Unsupported requests are collected in `problems`, so that a check can name all of them at once.

    Raises:
        UsageError: the file does not describe a suite.
    """
    work = translate(read_document(path), targets)
    document = work.document
    if changes is not None:
        changes.apply(document.data)
    try:
        spec = SuiteSpec.model_validate(filled(document))
    except ValidationError as error:
        raise UsageError(*work.problems, *mistakes_in(document, error)) from error
    except UsageError as error:
        raise UsageError(*work.problems, *error.problems) from error
    return Suite(spec, document, path.parent, path.name, work.era, tuple(work.notes), tuple(work.problems))


def described_suite(data: Mapping[str, Any], base: Path, source: str) -> Suite:
    """Return the suite that a command describes; paths in it start at `base`.

    Raises:
        UsageError: something in it cannot be used.
    """
    described = Described(dict(data))
    try:
        return Suite(SuiteSpec.model_validate(described.data), described, base, source)
    except ValidationError as error:
        raise UsageError(*mistakes_in(described, error)) from error
