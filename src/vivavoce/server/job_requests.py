"""Job requests, and the runs they become; a request never brings code or a path."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator

from vivavoce.errors import StoreError, UsageError
from vivavoce.penelope.strategies import strategies
from vivavoce.plugins import without_files
from vivavoce.records.redaction import keys_of_environment
from vivavoce.records.run import Listener, Run
from vivavoce.report.text import strict_json
from vivavoce.run.execution import Execution
from vivavoce.run.experiment_run import new_id
from vivavoce.run.options import RunOptions
from vivavoce.samples.rows import check_samples
from vivavoce.server.demo import Release, demo_suite
from vivavoce.server.job_record import JobRecord
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.requested_metrics import Metrics, RequestedMetric, as_named, check_metrics
from vivavoce.server.stored_runs import StoredRuns
from vivavoce.store.store import Store
from vivavoce.suites.command_line import judging_suite, testing_suite
from vivavoce.suites.experiment import open_regrading, reopen_run, suite_run
from vivavoce.suites.load import Suite, load_suite, suite_record
from vivavoce.suites.metric_names import metric_graders
from vivavoce.suites.spec import TesterSpec
from vivavoce.work_time import interrupted_work

_OF_ROW = {
    *("goal", "instructions", "policy", "scenario", "persona", "facts"),
    *("restrictions", "must", "must_not", "input", "context"),
}
MOST_AT_ONCE = 1000
"""Maximum of concurrent conversations, and of trials, in a request."""


class LimitedRequest(BaseModel):
    """Limits of every job request: the number of calls, and the cost of models in US dollars."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    brings_text: ClassVar[bool] = True
    """Whether the run has texts of the request, which name no file and are read in a limited time."""
    runs_code: ClassVar[bool] = False
    """Whether the run calls code of the served folder besides."""

    max_calls: int | None = Field(default=None, ge=0, le=2**53)
    max_cost: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    @property
    def limits(self) -> RunOptions:
        """The limits as options of a run."""
        return RunOptions(max_calls=self.max_calls, max_cost=self.max_cost)


class Measurement(LimitedRequest):
    """Measure the conversations in the saved file of an evaluation."""

    kind: Literal["evaluation"] = "evaluation"
    metrics: Metrics
    judge: str | None = None
    max_concurrent: int = Field(default=64, ge=1, le=MOST_AT_ONCE)


class EvaluationJob(Measurement):
    """Measure recorded conversations; each has `messages` and what the metrics need, such as `goal`."""

    conversations: list[dict[str, Any]] = Field(min_length=1, max_length=100_000)


class SuiteJob(LimitedRequest):
    """Run a suite of the served folder; `suite` is the path of its file in that folder."""

    brings_text: ClassVar[bool] = False
    kind: Literal["suite"] = "suite"
    suite: str
    options: RunOptions = Field(default_factory=RunOptions)

    @property
    def limits(self) -> RunOptions:
        """The limits of the job, else those among its options."""
        calls = self.options.max_calls if self.max_calls is None else self.max_calls
        return RunOptions(max_calls=calls, max_cost=self.options.max_cost if self.max_cost is None else self.max_cost)

    @field_validator("options")
    @classmethod
    def _bounded(cls, options: RunOptions) -> RunOptions:
        for name in ("max_concurrent", "trials"):
            if (getattr(options, name) or 1) > MOST_AT_ONCE:
                raise ValueError(f"{name} must be at most {MOST_AT_ONCE}")
        return options


class TestJob(LimitedRequest):
    """Have a tester lead a conversation towards a goal, against the target of a suite of the served folder.

    The tester is that of the suite, if it has one; values in the request override it.
    """

    __test__: ClassVar[bool] = False
    runs_code: ClassVar[bool] = True
    kind: Literal["test"] = "test"
    suite: str
    goal: str
    instructions: str | None = None
    policy: str | None = None
    scenario: str | None = None
    persona: str | dict[str, str] | None = None
    facts: dict[str, str] = Field(default_factory=dict)
    restrictions: list[str] = Field(default_factory=list)
    must: list[str] = Field(default_factory=list)
    must_not: list[str] = Field(default_factory=list)
    input: list[str] = Field(default_factory=list)
    context: dict[str, Any] | str | None = None
    adversarial: bool | None = None
    strategy: str | None = None
    max_turns: int = Field(default=20, ge=1, le=MOST_AT_ONCE)
    min_turns: int = Field(default=0, ge=0, le=MOST_AT_ONCE)
    tester: str | None = None
    judge: str | None = None
    metrics: list[str | RequestedMetric] = Field(default_factory=lambda: list[str | RequestedMetric](), max_length=100)
    trials: int = Field(default=1, ge=1, le=MOST_AT_ONCE)


class GradeJob(LimitedRequest):
    """Grade the conversations of a stored run again, with the graders of a suite of the served folder.

    The new scores are stored next to the old ones; no target is called.
    """

    brings_text: ClassVar[bool] = False
    kind: Literal["grade"] = "grade"
    run: str
    suite: str


class ResumeJob(LimitedRequest):
    """Continue a run that a job started, or its regrading; `resume` is the id of the run."""

    brings_text: ClassVar[bool] = False
    kind: Literal["resume"] = "resume"
    resume: str


class DemoJob(LimitedRequest):
    """Run the suite of the example on one of the two releases of its bot; only the first page starts it."""

    brings_text: ClassVar[bool] = False
    kind: Literal["demo"] = "demo"
    release: Release


def _kind_of(body: Any) -> str | None:
    if not isinstance(body, dict):
        return getattr(body, "kind", None)
    limits = cast("dict[str, Any]", body)
    kind = limits.get("kind", "resume" if "resume" in limits else None)
    return kind if isinstance(kind, str) else None


AnyJob = EvaluationJob | SuiteJob | TestJob | GradeJob | ResumeJob | DemoJob
JobRequest = Annotated[
    Annotated[EvaluationJob, Tag("evaluation")]
    | Annotated[SuiteJob, Tag("suite")]
    | Annotated[TestJob, Tag("test")]
    | Annotated[GradeJob, Tag("grade")]
    | Annotated[ResumeJob, Tag("resume")],
    Discriminator(_kind_of),
]

KeptRequest = Annotated[
    Measurement | SuiteJob | TestJob | GradeJob | ResumeJob | DemoJob,
    Field(discriminator="kind"),
]
"""A request as it is saved until its job is over; the conversations of an evaluation are in their own file."""


def request_class(request: AnyJob | KeptRequest, store: Store) -> type[LimitedRequest]:
    """Return the class of a request, or of the one whose run it continues, as far as the store has that run."""
    if not isinstance(request, ResumeJob):
        return type(request)
    run = store.run(request.resume)
    if suite_record({}, run).is_from_file:
        return SuiteJob
    return Measurement if run.spec.get("driver") == "replay" else TestJob


@contextmanager
def protected_from(kind: type[LimitedRequest]) -> Generator[None]:
    """Open no file that a text of such a request names, and interrupt the work on it in a process of its own."""
    with ExitStack() as stack:
        stack.enter_context(interrupted_work())
        if kind.brings_text:
            stack.enter_context(without_files(allows_code=kind.runs_code))
        yield


@dataclass(frozen=True, slots=True)
class Beginning:
    """What is needed to start a run: the store, the policy, the listeners, and the file for its conversations.

    `before` is the last job on a resumed run, `run_id` the id of a new one.
    """

    store: Store
    policy: ServerPolicy
    listeners: Sequence[Listener]
    file: Path
    before: JobRecord | None = None
    run_id: str | None = None

    def run(self, request: AnyJob | KeptRequest) -> Execution:
        """Return the run of a request, ready to execute.

        Raises:
            UsageError: the request is wrong or not allowed.
        """
        match request:
            case Measurement():
                return self._evaluation(request)
            case SuiteJob():
                return self._suite(request)
            case TestJob():
                return self._test(request)
            case GradeJob():
                return self._grading(request.run, request.suite, request.limits)
            case ResumeJob():
                return self._rest(request)
            case DemoJob():
                return self._new(demo_suite(request.release), request.limits)

    def _suite(self, request: SuiteJob) -> Execution:
        limits = request.limits.model_dump(exclude_none=True, include={"max_calls", "max_cost"})
        options = request.options.model_copy(update=limits)
        suite = load_suite(self.policy.suite(request.suite))
        if suite.spec.driver == "penelope" and (suite.spec.tester or TesterSpec()).model is None:
            self._tester_model(None)
        return self._new(suite, options)

    def _new(self, suite: Suite, options: RunOptions) -> Execution:
        run_id = self.run_id or new_id(suite.spec.name)
        return suite_run(suite, options, store=self.store, listeners=self.listeners, run_id=run_id)

    def _grading(self, run: str, suite: str, limits: RunOptions, resumed: str | None = None) -> Execution:
        loaded = self._loaded(suite)
        return open_regrading(run, loaded, limits, store=self.store, listeners=self.listeners, resumed=resumed)

    def _loaded(self, suite: str) -> Suite:
        loaded = load_suite(self.policy.suite(suite))
        if loaded.problems:
            raise UsageError(*loaded.problems)
        return loaded

    def _rest(self, request: ResumeJob) -> Execution:
        run, last = self.store.run(request.resume), self.before
        if run.status == "finished" and last and last.grading and last.suite and self._is_open(run, last.grading):
            return self._grading(run.id, last.suite, request.limits, last.grading)
        if run.status != "finished":  # else it is refused as such
            StoredRuns(self.policy, self.file.parent).check(run, None if last is None else last.suite)
        return reopen_run(run.id, request.limits, store=self.store, listeners=self.listeners)

    def _is_open(self, run: Run, grading: str) -> bool:
        return self.store.grading(run.id, grading).finished_at is None

    def _evaluation(self, request: Measurement) -> Execution:
        check_metrics(request.metrics)
        judge = self.policy.judge(request.judge)
        if isinstance(request, EvaluationJob):
            _check_rows(request.conversations)
        suite = judging_suite(
            self.file, as_named(request.metrics), judge, name="evaluation", max_concurrent=request.max_concurrent
        )
        return self._new(suite, request.limits)

    def _test(self, request: TestJob) -> Execution:
        loaded = self._loaded(request.suite)
        targets = [*loaded.spec.all_targets.values()]
        if len(targets) != 1:
            some = f"{len(targets)} targets; a test needs a suite with one" if targets else "no target to test"
            raise UsageError(f"suite '{request.suite}' has {some}")
        check_metrics(request.metrics)
        if request.strategy is not None:
            strategies.get(request.strategy)
        judge = self.policy.judge(request.judge)
        row = {name: value for name, value in request.model_dump(include=_OF_ROW).items() if value}
        if request.adversarial is not None:
            row["adversarial"] = request.adversarial
        suite = testing_suite(
            targets[0].model_dump(exclude_unset=True) | {"kind": targets[0].kind},
            row,
            self._tester(loaded, request),
            metric_graders(as_named(request.metrics), **({"model": judge} if judge else {})),
            loaded.base,
        )
        options = request.limits.model_copy(update={"trials": request.trials})
        return self._new(suite, options)

    def _tester(self, loaded: Suite, request: TestJob) -> dict[str, Any]:
        own = loaded.spec.tester
        how: dict[str, Any] = {} if own is None else own.model_dump(mode="json", exclude_unset=True)
        if request.tester is not None or "model" not in how:
            how["model"] = self._tester_model(request.tester)
        if request.judge is not None or "judge" not in how:
            how["judge"] = self.policy.judge(request.judge)
        if request.strategy is not None:
            how["strategy"] = request.strategy
            how.pop("graph", None)
        how |= {"max_turns": request.max_turns, "min_turns": request.min_turns}
        return {name: value for name, value in how.items() if value is not None}

    def _tester_model(self, name: str | None) -> str:
        model = self.policy.tester(name)
        if model is None:
            raise UsageError(
                "the test needs a tester model: name one as 'tester', or set VIVAVOCE_TESTER on the server"
            )
        return model


def _check_rows(rows: Sequence[dict[str, Any]]) -> None:
    """Refuse rows that are not conversations before a job is made of them.

    Raises:
        UsageError: with every one of them.
    """
    with without_files():
        recorded = check_samples(rows).recorded
    if recorded < len(rows):
        raise UsageError("a conversation has no 'messages'")


class JobFiles:
    """The folder of the files, one for each job that brought conversations."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, job_id: str) -> Path:
        """Return the file of a job."""
        return self.folder / f"{job_id}.jsonl"

    def write(self, job_id: str, content: str) -> None:
        """Write the file of a job, completely or not at all.

        Raises:
            StoreError: it cannot be written.
        """
        path = self.path(job_id)
        new = path.with_suffix(f".{os.getpid()}.new")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with open(new, "w", encoding="utf-8", opener=_ours_alone) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, path)
        except OSError as error:
            with suppress(OSError):  # it was never made
                new.unlink()
            raise StoreError(f"{self.folder}: the job cannot be saved: {error.strerror or error}") from error

    def restore(self, inputs: Mapping[str, str]) -> None:
        """Write the files that are not here; `inputs` is their content by job.

        Raises:
            StoreError: one cannot be written.
        """
        for job_id, content in inputs.items():
            if not self.path(job_id).exists():
                self.write(job_id, content)

    def remove(self, job_id: str) -> None:
        """Delete the file of a job, if there is one."""
        with suppress(OSError):  # it was never made
            self.path(job_id).unlink()


def lines_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return conversations as JSON lines, without the keys of the environment."""
    return keys_of_environment().cut("".join(strict_json(row) + "\n" for row in rows))


def _ours_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
