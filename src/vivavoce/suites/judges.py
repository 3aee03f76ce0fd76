"""Opening the judges that a suite names, each call counted against the budget of the run."""

from __future__ import annotations

import os
from dataclasses import dataclass

from vivavoce.errors import UsageError
from vivavoce.models.model import Model
from vivavoce.models.names import open_model
from vivavoce.pacing.budget import Budget
from vivavoce.suites.spec import JudgeGraderSpec
from vivavoce.wire.http import Limits


@dataclass(frozen=True, slots=True)
class JudgeOpener:
    """Opens judges by name; a check opens them without keys, for nothing is asked."""

    budget: Budget
    keys_needed: bool = True

    def open(self, spec: JudgeGraderSpec) -> Model:
        """Return the judge of a grader, ready to be asked.

        Raises:
            UsageError: the name has no known form, or a key is missing.
        """
        limits = Limits(timeout=spec.timeout)
        return open_model(
            spec.model, api_key=self._key(spec), limits=limits, budget=self.budget, tries=spec.max_retries + 1
        )

    def _key(self, spec: JudgeGraderSpec) -> str | None:
        if not self.keys_needed:
            return "unused"
        if spec.api_key_env is None:
            return None
        key = os.environ.get(spec.api_key_env)
        if not key:
            raise UsageError(f"needs a key: set the environment variable {spec.api_key_env}")
        return key
