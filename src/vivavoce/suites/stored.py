"""A suite as it is stored with its run, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vivavoce.records.redaction import MARK, without_keys
from vivavoce.records.run import Run
from vivavoce.suites.document import Described
from vivavoce.suites.load import Suite
from vivavoce.suites.spec import SuiteSpec
from vivavoce.suites.target_names import described_targets

REQUEST = ("url", "headers", "body")
"""The parts of a target that form a request, where a user may have written a key."""


def dump_spec(spec: SuiteSpec) -> dict[str, Any]:
    """Return a suite as data with our keys; whatever looks like a secret is cut out of a request."""
    keys: dict[str, Any] = {"target": {"api_key"}, "targets": {"__all__": {"api_key"}}}
    data = spec.model_dump(mode="json", exclude_none=True, exclude=keys)
    for target in described_targets(data):
        target |= {part: json.loads(without_keys(json.dumps(target[part]))) for part in REQUEST if part in target}
    return data


def lacks_key(run: Run) -> bool:
    """Return whether a target of a run contained a key, which was not stored."""
    return any(MARK in str(target.get(part)) for target in described_targets(run.spec) for part in REQUEST)


def stored_suite(run: Run) -> Suite:
    """Return the suite of a run, from its own record."""
    return Suite(SuiteSpec.model_validate(run.spec), Described(run.spec), Path(run.base), run.options["suite"])
