"""The dataset of a suite: where it is, and whether every row can be asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vivavoce.errors import Problem, UsageError
from vivavoce.samples.rows import SampleCount, check_samples
from vivavoce.suites.load import Suite


def dataset_path(suite: Suite) -> Path:
    """Return the file of the dataset."""
    return suite.base / suite.spec.dataset.path


def check_dataset(suite: Suite, tags: Sequence[str] | None = None) -> SampleCount:
    """Read every row once and return what there is; `tags` chooses among the samples.

    Raises:
        UsageError: with every problem found, each at its line of the file.
    """
    path = dataset_path(suite)
    if not path.exists():
        raise UsageError(_here(suite, f"there is no file '{suite.spec.dataset.path}'"))
    found = check_samples(path, fields=suite.spec.dataset.fields, base=suite.base, tags=tags)
    if not found.samples:
        tagged = f" with the tags {', '.join(tags)}" if tags else ""
        raise UsageError(_here(suite, f"'{suite.spec.dataset.path}' has no samples{tagged}"))
    _check_driver(suite, found.recorded, found.samples)
    return found


def _check_driver(suite: Suite, recorded: int, samples: int) -> None:
    if suite.spec.driver == "replay" and recorded < samples:
        raise UsageError(_here(suite, f"{samples - recorded} rows have no 'messages' to replay"))
    if suite.spec.driver == "scripted" and recorded:
        raise UsageError(
            _here(suite, f"{recorded} rows are recorded conversations; use driver: replay, or give 'input'")
        )


def _here(suite: Suite, message: str) -> Problem:
    return suite.document.problem(("dataset",), message)
