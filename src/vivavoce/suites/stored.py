"""A suite as it is stored with its run, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vivavoce.records.origin import REQUEST, described_targets
from vivavoce.records.redaction import without_keys
from vivavoce.records.run import Run
from vivavoce.suites.document import Described
from vivavoce.suites.load import Suite
from vivavoce.suites.spec import SuiteSpec
from vivavoce.suites.variables import as_written, filled


def dump_spec(suite: Suite) -> dict[str, Any]:
    """Return a suite as data with our keys, without values of variables; what looks like a secret is cut out."""
    keys: dict[str, Any] = {"target": {"api_key"}, "targets": {"__all__": {"api_key"}}}
    data = as_written(suite.spec.model_dump(mode="json", exclude_none=True, exclude=keys), suite.document)
    for target in described_targets(data):
        target |= {part: json.loads(without_keys(json.dumps(target[part]))) for part in REQUEST if part in target}
    return data


def stored_suite(run: Run) -> Suite:
    """Return the suite of a run, from its own record.

    Raises:
        UsageError: a variable in it is not set now.
    """
    document = Described(run.spec)
    return Suite(SuiteSpec.model_validate(filled(document)), document, Path(run.base), run.options["suite"])
