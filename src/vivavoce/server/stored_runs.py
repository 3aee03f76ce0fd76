"""Which stored runs a server continues: those that run and call only what a request of now could run and call.

A store may come from elsewhere. What a run has stored says which code, files, addresses, models, and variables of the
environment it uses, so it must agree with the suite in the served folder, or with what a request may name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from vivavoce.errors import NotFound, UsageError
from vivavoce.penelope.strategies import strategies
from vivavoce.records.run import Run, UnreadableRun, described_targets
from vivavoce.server.demo import Release, demo_folder, demo_suite
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.requested_metrics import RequestedMetric, as_named, check_metrics
from vivavoce.settings import settings
from vivavoce.suites.command_line import GRADERS
from vivavoce.suites.expectations import EXPECT
from vivavoce.suites.grading_spec import FunctionGraderSpec, MetricGraderSpec
from vivavoce.suites.load import JUDGE, Suite, described_suite, dump_spec, load_suite, stored_suite
from vivavoce.suites.metric_names import metric_graders
from vivavoce.suites.spec import TesterSpec

TEST = "test"
"""The source of a suite that a request for a test describes."""

_REACHES_NOTHING = {"name", "description", "trials", "max_samples", "sample_tags", "max_concurrent", "agreement"}
"""Keys of a suite that name no code, file, address, model, or variable."""

_RELEASES: tuple[Release, ...] = ("v1", "v2")


@dataclass(frozen=True, slots=True)
class StoredRuns:
    """The stored runs that a server may continue; `files` is the folder with the conversations of requests."""

    policy: ServerPolicy
    files: Path

    def check(self, run: Run, suite: str | None) -> None:
        """Check that a job may continue a run; `suite` is the file that its last job names.

        Raises:
            UsageError: it uses something that the served folder, or a request, does not name now.
        """
        try:
            spec = dump_spec(stored_suite(run))
        except UnreadableRun as error:
            raise _refusal(run, "it cannot be read") from error
        if run.option("suite") == JUDGE:
            self._check_evaluation(run, spec)
        elif run.option("suite") == TEST:
            self._check_test(run, spec, suite)
        else:
            self._check_suite(run, spec)

    def _check_suite(self, run: Run, spec: Mapping[str, Any]) -> None:
        differences = [self._differences(spec, served) for served in self._read_source(run)]
        if all(differences):
            raise _refusal(run, f"{run.option('suite')} has another {' and '.join(differences[0])} now")

    def _differences(self, spec: Mapping[str, Any], served: Suite) -> list[str]:
        now = dump_spec(served)
        graders = {
            name: grader
            for name, grader in spec["graders"].items()
            if name != EXPECT or not self._is_expect(cast("dict[str, Any]", grader))
        }
        if EXPECT not in graders:
            now["graders"].pop(EXPECT, None)
        stored = {**spec, "graders": graders}
        keys = sorted((stored.keys() | now.keys()) - _REACHES_NOTHING)
        return [key for key in keys if stored.get(key) != now.get(key)]

    def _read_source(self, run: Run) -> Iterable[Suite]:
        """Return what the source of a run is now.

        Raises:
            UsageError: it is not in the served folder.
        """
        base = Path(run.base).resolve()
        if base == demo_folder().resolve():
            return [demo_suite(release) for release in _RELEASES]
        return [self._suite(run, str(base / run.option("suite")))]

    def _suite(self, run: Run, name: str) -> Suite:
        try:
            return load_suite(self.policy.suite(name))
        except NotFound as error:
            raise _refusal(run, "its suite is not in the served folder") from error

    def _check_evaluation(self, run: Run, spec: Mapping[str, Any]) -> None:
        dataset = dict(spec["dataset"])
        path = Path(str(dataset.pop("path", "")))
        self._check_keys(run, spec, {"driver", "dataset", "graders"})
        if path.parent.resolve() != self.files.resolve() or dataset not in ({}, {"fields": {}}):
            raise _refusal(run, "its conversations were not sent in a request")
        self._check_graders(run, spec["graders"])

    def _check_test(self, run: Run, spec: Mapping[str, Any], suite: str | None) -> None:
        served = self._suite(run, suite or "")
        targets = [*served.spec.all_targets.values()]
        data = {**spec, "target": targets[0].model_dump(exclude_unset=True) | {"kind": targets[0].kind}}
        expected = dump_spec(described_suite(data, served.base, TEST))
        self._check_keys(run, spec, {"driver", "dataset", "graders", "target", "tester", "gate"})
        if len(targets) != 1 or described_targets(spec) != described_targets(expected):
            raise _refusal(run, f"{suite} has another target now")
        if Path(run.base).resolve() != served.base.resolve() or spec["dataset"].keys() - {"rows", "fields"}:
            raise _refusal(run, "its files differ from its suite's")
        self._check_tester(run, dict(spec.get("tester") or {}), served)
        standard = {name: _dump(FunctionGraderSpec.model_validate(grader)) for name, grader in GRADERS.items()}
        others = {name: grader for name, grader in spec["graders"].items() if grader != standard.get(name)}
        self._check_graders(run, others)

    def _check_tester(self, run: Run, tester: dict[str, Any], served: Suite) -> None:
        own = _dump(served.spec.tester or TesterSpec())
        models = {*self.policy.judges, *self.policy.models, settings().judge, settings().tester}
        for key, value in tester.items():
            may_be_requested = key in ("max_turns", "min_turns")
            may_be_requested |= key in ("model", "judge") and value in models
            may_be_requested |= key == "strategy" and value in strategies.names()
            if not may_be_requested and value != own.get(key):
                raise _refusal(run, f"the {key} of its tester differs from the suite's")

    def _check_keys(self, run: Run, spec: Mapping[str, Any], known: set[str]) -> None:
        if others := sorted(spec.keys() - known - _REACHES_NOTHING):
            raise _refusal(run, f"a request cannot set its {' and '.join(others)}")

    def _check_graders(self, run: Run, graders: Mapping[str, Any]) -> None:
        for name, grader in graders.items():
            if not self._is_expect(grader) and not self._may_be_requested(name, grader):
                raise _refusal(run, f"a request cannot name its grader '{name}'")

    def _may_be_requested(self, name: str, grader: Mapping[str, Any]) -> bool:
        """Return whether a grader is what a request for a metric becomes."""
        model = grader.get("model")
        options = {key: value for key, value in grader.items() if key in RequestedMetric.model_fields}
        try:
            requested = [RequestedMetric.model_validate({**options, "name": name})]
            check_metrics(requested)
        except (UsageError, ValidationError):
            return False
        (built,) = metric_graders(as_named(requested), **({"model": model} if model else {})).values()
        is_known_model = model is None or model in self.policy.judges
        return is_known_model and _is_metric(grader, built)

    def _is_expect(self, grader: Mapping[str, Any]) -> bool:
        """Return whether a grader is that of the assertions of rows, which a run adds."""
        if grader == _dump(FunctionGraderSpec(kind="function", function=EXPECT)):
            return True
        model = grader.get("model")
        built = {"kind": "metric", "metric": EXPECT, **({"model": model} if model else {})}
        return (model is None or model in self.policy.judges) and _is_metric(grader, built)


def _is_metric(grader: Mapping[str, Any], built: Mapping[str, Any]) -> bool:
    return grader == _dump(MetricGraderSpec.model_validate(built))


def _dump(part: BaseModel) -> dict[str, Any]:
    return part.model_dump(mode="json", exclude_none=True)


def _refusal(run: Run, cause: str) -> UsageError:
    return UsageError(f"a job cannot continue {run.id}: {cause}; if you trust it, use: viva run --resume {run.id}")
