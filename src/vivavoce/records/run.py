"""A run and its parts: what was executed, each attempt, and what its graders said."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, cast

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.plugins import lazy
from vivavoce.records.breaches import BreachKind
from vivavoce.records.failure import Failure
from vivavoce.records.reason import Verdict as Verdict
from vivavoce.records.sampling import SAMPLING, Drawn, Sampling
from vivavoce.records.score import Finding, Score, State
from vivavoce.records.trajectory import Trajectory

Status = Literal["running", "finished", "interrupted"]


class AttemptKey(NamedTuple):
    """What makes an attempt unique within a run; trials count from 0."""

    sample_id: str
    target: str
    trial: int


class Run(BaseModel):
    """One execution of one suite; `spec` is the suite as data, without secrets. Times are seconds since the epoch.

    `partial_of` is the run that this one repeats only in part, None for a whole run: no comparison takes a partial run
    for the latest, and no trend has it. `title`, `notes` and `tags` are what people say of it, at any time.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    suite: str
    spec: dict[str, Any]
    base: str
    """The folder of the suite file, where its relative paths start."""
    options: dict[str, Any] = Field(default_factory=dict)
    status: Status = "running"
    started_at: float
    finished_at: float | None = None
    version: str = ""
    partial_of: str | None = None
    title: str | None = None
    notes: str | None = None
    tags: list[str] = Field(default_factory=list[str])

    @property
    def sampling(self) -> Sampling | None:
        """How its conversations were drawn from more, None where all of its dataset run."""
        stored = self.options.get(SAMPLING)
        return None if stored is None else Sampling.model_validate(stored)

    @property
    def name(self) -> str:
        """Its title, else its suite."""
        return self.title or self.suite


class Grading(BaseModel):
    """One set of scores of a run; grading again makes another set and leaves this one as it is.

    `fingerprints` maps a grader's name to the hash of everything that decides its scores. `passed_added` says that the
    scores were made before each said whether it passes: it was added when the store was upgraded, by the rule of then.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    run_id: str
    spec: dict[str, Any]
    fingerprints: dict[str, str] = Field(default_factory=dict)
    created_at: float
    finished_at: float | None = None
    verdict: Verdict | None = None
    summary: dict[str, Any] | None = None
    passed_added: bool = False


class Attempt(BaseModel):
    """One sample, once, against one target; `sample` is its row as JSON text without a recorded conversation.

    `position` is its place in the plan of the run, from 0: sample by sample, then target by target, trial by trial.
    `drawn` says how it was drawn from a larger dataset, None where all of one run.
    """

    model_config = ConfigDict(frozen=True)

    key: AttemptKey
    scenario: str
    sample: str
    trajectory: Trajectory
    started_at: float
    position: int = 0
    drawn: Drawn | None = None

    @property
    def failure(self) -> Failure | None:
        """What went wrong while the conversation was held, None when it went through."""
        return self.trajectory.failure


class Outcome(BaseModel):
    """An attempt with its scores by grader name, and its reward where the suite composes one."""

    model_config = ConfigDict(frozen=True)

    attempt: Attempt
    scores: dict[str, Score]
    reward: Score | None = None

    def _repr_html_(self) -> str:
        """Return the conversation with its scores for a notebook, in which every text is escaped."""
        return cast("str", lazy("vivavoce.report.html.cards:outcome_html")(self))


class ScoreRow(NamedTuple):
    """One score as statistics need it; `name` is a grader's name, or `reward` with `kind` 'reward'.

    `tester_error` marks an error of the tester that led the conversation; `drawn` is that of the attempt. `unverified`
    marks a score whose judge claims something on evidence that is missing or not in the conversation. `breaches` has
    the kind of each false statement and broken rule that the judge of a goal found besides it. `measured` is the number
    of a score that is a measurement, as in `Score`.
    """

    key: AttemptKey
    kind: Literal["grade", "reward"]
    name: str
    state: State
    value: float | None
    passed: bool | None
    tester_error: bool = False
    drawn: Drawn | None = None
    unverified: bool = False
    breaches: tuple[BreachKind, ...] = ()
    measured: float | None = None


class ErrorRow(NamedTuple):
    """Why an attempt lacks a score: `name` is the grader's, None where the conversation itself failed."""

    key: AttemptKey
    name: str | None
    failure: Failure | None
    rationale: str | None


class ToolError(NamedTuple):
    """An error that a tool returned: the tool's name and the text of its result, as in turn `turn` from 0."""

    turn: int
    tool: str
    text: str


class FailureRow(NamedTuple):
    """A score that did not pass or an error: `grader` is None where the conversation itself ended with the error.

    `tools` are the errors that tools returned in that turn, or where `turn` is None in the conversation.
    """

    key: AttemptKey
    grader: str | None
    turn: int | None
    reason: str
    findings: tuple[Finding, ...] = ()
    failure: Failure | None = None
    tools: tuple[ToolError, ...] = ()
