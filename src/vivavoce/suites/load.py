"""From a file to a checked spec, with the line and column of every mistake."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vivavoce.errors import Problem, UsageError
from vivavoce.suites.dialects import Era, translate
from vivavoce.suites.document import Document, read_document
from vivavoce.suites.mistakes import mistakes_in
from vivavoce.suites.spec import SuiteSpec


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite as read; `problems` is what it asks that we cannot do, `notes` what it calls by another name."""

    spec: SuiteSpec
    document: Document
    era: Era | None
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def path(self) -> Path:
        """The file."""
        return self.document.path

    @property
    def base(self) -> Path:
        """The folder of the file."""
        return self.document.path.parent


def load_suite(path: Path, target: dict[str, Any] | None = None) -> Suite:
    """Read a suite; `target` replaces its own.

    What the file asks that we cannot do is collected in `problems`, so that a check can name everything at once.

    Raises:
        UsageError: the file does not describe a suite.
    """
    work = translate(read_document(path), target)
    document = work.document
    try:
        spec = SuiteSpec.model_validate(document.data)
    except ValidationError as error:
        raise UsageError(*work.problems, *mistakes_in(document, error)) from error
    return Suite(spec, document, work.era, tuple(work.notes), tuple(work.problems))
