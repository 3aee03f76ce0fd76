"""A run and its parts: what was executed, each attempt, what its graders said, and why it passes or fails."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vivavoce.comparing.thresholds import Operator
from vivavoce.errors import StoreError
from vivavoce.plugins import lazy
from vivavoce.records.redaction import MARK
from vivavoce.records.score import BREACH, Failure, Finding, Score, State
from vivavoce.records.trajectory import Trajectory, Turn

Verdict = Literal["pass", "fail", "inconclusive"]
Severity = Literal["fail", "warn"]
"""What a missed requirement does: it fails the run, or is only a warning."""
OfScores = Literal["avg_score", "accuracy", "min", "max", "median", "p50", "p95", "p99"]
Aggregation = OfScores | Literal["pass^k", "pass@k"]
"""What is compared: an aggregate of all scores, or of what the trials of each sample come to."""
Bound = Literal["mean", "lower"]
"""A mean itself, or the lower end of its 95% interval."""
RateBound = Bound | Literal["corrected", "corrected_lower"]
"""The same, and both of a pass rate without the errors of its judge."""

Code = Literal[
    "threshold",
    "no_interval",
    "undecided",
    "calibration",
    "samples",
    "few_trials",
    "min_scored",
    "nothing_scored",
    "errors",
    "spoiled",
    "unverified",
    "breaches",
    "requirement",
    "warned",
    "sentence",
]
"""What a reason is about.

`threshold`: an aggregate and what it must be; inconclusive where the `errors` could change the result. `no_interval`:
a lower bound of a single sample. `undecided`: the trials did not decide a condition, for the interval from `low` to
`high` holds its value. `calibration`: what the judge lacks before it may decide, or why its rate cannot be
corrected, is its text. `samples`: how often each sample must pass. `few_trials`: samples with fewer trials
than the gate needs. `min_scored`: too few scores. `nothing_scored`: no score at all. `errors`: more
conversations with errors than the run may have. `spoiled`: the tester spoiled more conversations than the gate allows
to leave out. `unverified`: more scores rest on evidence that is missing or not in the conversation than the gate
allows. `breaches`: the judge of a goal found more false statements or broken rules besides it than the gate allows, or
missing scores leave open whether it did. `requirement`: assertions or a rule that must hold in every conversation;
inconclusive where an error could change that, or where it applied to no conversation. `warned`: single assertions that
only warn. `sentence`: one of an older store, where only the words are known.
"""


class Condition(BaseModel):
    """What an aggregate of scores must be; with `lower` the lower end of its 95% interval; `k` is that of pass^k.

    With `corrected` it is the pass rate without the errors of the judge. A `pass_threshold` or another `pass_op` than
    `gte` of the gate says which scores `accuracy` counts, whatever the grader lets pass.
    """

    model_config = ConfigDict(frozen=True)

    aggregation: Aggregation
    op: Operator
    value: float
    lower: bool = False
    corrected: bool = False
    k: int | None = None
    pass_threshold: float | None = None
    pass_op: Operator = "gte"


class SampleTrials(BaseModel):
    """How often a sample passed, of how many scores; `errors` of its trials have none."""

    model_config = ConfigDict(frozen=True)

    sample_id: str
    passed: int
    scored: int
    errors: int = 0


class Reason(BaseModel):
    """One thing that the verdict on a run rests on.

    `graders` has the weight of each grader that it is about; empty for the whole run. `target` is named where a run
    has several. `found` is the aggregate. `errors` and `scored` count what has no score because of an error and
    what has one; for `errors`, of the code, they count conversations, and `limit` is how many may have an error. Of the
    `errors`, `tester_errors` were made by the tester that led the conversations. With `errors_fail` the gate counts
    each of the `errors` as a score of 0 that does not pass. For `spoiled`, `errors` of `scored` conversations were
    spoiled, and `limit` is how many may be. For `unverified`, `errors` of `scored` scores are, and `limit` is how many
    may be. For `breaches`, `missed` of the kind in `text` were found, in the `samples`, and `limit` is how many may be.
    `text` is a `sentence`, or of `calibration`. For `samples` and `few_trials`, `trials` is how many of them must
    pass or are needed, `scored` counts samples, `samples` are the first of those that missed it, and
    `samples_in_all` is how many did. For `requirement` and `warned` the last two are the same, `scored` counts
    conversations, and `missed` is how many of them missed it.
    """

    model_config = ConfigDict(frozen=True)

    verdict: Verdict
    code: Code
    graders: dict[str, float] = Field(default_factory=dict[str, float])
    target: str | None = None
    condition: Condition | None = None
    found: float | None = None
    low: float | None = None
    high: float | None = None
    errors: int = 0
    tester_errors: int = 0
    errors_fail: bool = False
    scored: int = 0
    min_scored: float = 0.0
    limit: str | None = None
    text: str | None = None
    trials: int | None = None
    samples: list[SampleTrials] = Field(default_factory=list[SampleTrials])
    samples_in_all: int = 0
    missed: int = 0


def failing_grader(reasons: Iterable[Mapping[str, Any]]) -> tuple[str | None, str | None]:
    """Return the grader, and the target where there are several, of the first reason for a failure that is about one.

    The reasons are plain data, as they are stored; both are None where nothing failed because of a single grader.
    """
    for reason in reasons:
        graders: dict[str, float] = reason.get("graders") or {}
        if reason.get("verdict") == "fail" and len(graders) == 1:
            return next(iter(graders)), reason.get("target")
    return None, None


SAMPLING = "sampling"
"""The option of a run under which its sampling is stored."""


class DrawRecord(NamedTuple):
    """How a conversation came to be drawn: from which stratum, a place in the list of all, and how likely that was."""

    stratum: int
    probability: float


class Stratum(BaseModel):
    """A stratum of a stratified sample: how many conversations it has, and how many were drawn."""

    model_config = ConfigDict(frozen=True)

    name: str
    size: int
    drawn: int


class Sampling(BaseModel):
    """How the conversations of a run were drawn from those of a file.

    `by` are the things that strata are made of, `weight_by` what the probability within a stratum is in proportion to;
    without either each conversation is as likely. `places` is a hash of the places of those that were drawn.
    """

    model_config = ConfigDict(frozen=True)

    by: list[str]
    weight_by: str | None = None
    strata: list[Stratum]
    places: str

    @property
    def population(self) -> int:
        """How many conversations there are."""
        return sum(stratum.size for stratum in self.strata)

    @property
    def drawn_count(self) -> int:
        """How many of them were drawn."""
        return sum(stratum.drawn for stratum in self.strata)

    @property
    def even(self) -> bool:
        """Whether those that were drawn are a picture of all as they are, without weights."""
        return self.weight_by is None and len(self.strata) == 1


BreachKind = Literal["false_statement", "broken_rule"]

BREACH_NAMES: Mapping[BreachKind, str] = {"false_statement": "false statement", "broken_rule": "broken rule"}
"""Each kind in words."""

UNKNOWN_KIND = "broken"
"""The verdict of a breach whose kind the judge does not give. It may be either, so it counts as both."""


def verified_breaches(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the breaches among findings that evidence in the conversation shows."""
    for finding in findings:
        if finding.kind == BREACH and any(evidence.verified for evidence in finding.evidence):
            yield finding


def breach_name(finding: Finding) -> str:
    """Return what a breach is, in words."""
    return " or ".join(BREACH_NAMES[kind] for kind in _kinds(finding))


def breaches_of(score: Score) -> tuple[BreachKind, ...]:
    """Return the kind of each verified breach that a score rests on."""
    if score.state != "scored":
        return ()
    return tuple(kind for finding in verified_breaches(score.findings) for kind in _kinds(finding))


def stored_breaches(findings: str | None) -> tuple[BreachKind, ...]:
    """Return the same from the stored findings of a score, a JSON list."""
    if not findings or BREACH not in findings:
        return ()
    stored_findings: list[dict[str, Any]] = json.loads(findings)
    breaches = [Finding.model_validate(finding) for finding in stored_findings if finding.get("kind") == BREACH]
    return tuple(kind for finding in verified_breaches(breaches) for kind in _kinds(finding))


def _kinds(finding: Finding) -> list[BreachKind]:
    kinds: list[BreachKind] = [kind for kind in get_args(BreachKind) if kind == finding.verdict]
    return kinds or list(get_args(BreachKind))


Status = Literal["running", "finished", "interrupted"]


class AttemptKey(NamedTuple):
    """What makes an attempt unique within a run; trials count from 0."""

    sample_id: str
    target: str
    trial: int


class UnreadableRun(StoreError):
    """A stored run has values that vivavoce does not write."""


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
        with reading_record(self, f"options.{SAMPLING}"):
            return None if stored is None else Sampling.model_validate(stored)

    @property
    def code_hash(self) -> str | None:
        """The hash of the code of its targets, None where they have none.

        Raises:
            UnreadableRun: it is missing, or it is not text.
        """
        if self.options.get("code", "") is None:
            return None
        return self.option("code")

    def option(self, name: str) -> str:
        """Return an option that vivavoce stores with every run.

        Raises:
            UnreadableRun: it is missing, or it is not text.
        """
        value = self.options.get(name)
        if not isinstance(value, str):
            raise _unreadable(self, f"options.{name}")
        return value

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
    drawn: DrawRecord | None = None

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
        return cast("str", lazy("vivavoce.report.html.notebook:outcome_html")(self))


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
    drawn: DrawRecord | None = None
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


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins, or goes on; `planned` attempts are asked for, None for nobody knows, `done` are there already."""

    run: Run
    grading: Grading
    planned: int | None
    done: int


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    """A conversation begins."""

    key: AttemptKey


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The target has answered, or failed to."""

    key: AttemptKey
    turn: Turn


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """A conversation is over and graded."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class BatchesAsked:
    """Questions to judges are with batch services, and the run waits; it looks again after `wait` seconds.

    `batches` are what the services call them, `settled` of the `requests` in them have ended, `broken` of these without
    an answer. `since` is when the first was made, in seconds since the epoch; `trouble` is what went wrong last.
    """

    round: int
    batches: tuple[str, ...]
    models: tuple[str, ...]
    requests: int
    settled: int
    broken: int
    since: float
    wait: float
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class RunEnded:
    """Nothing is left to do, or the run was interrupted."""

    run: Run
    grading: Grading


Event = RunStarted | AttemptStarted | TurnEnded | AttemptEnded | BatchesAsked | RunEnded


class Listener(Protocol):
    """Something that reads events; it may wait, and the run waits with it."""

    async def on(self, event: Event) -> None:
        """Take one event."""
        ...


GIVEN_IN_PYTHON = "given in Python"
"""The dataset of a run over conversations that are not in a file, or in a file that only the caller can find."""

WATCHED = "traces as they came"
"""The dataset of a run over conversations that `viva watch` received."""

IN_PARTS = "parts"
"""The option of a run whose parts were made by several processes: the folder with their files."""

REQUEST = ("url", "headers", "body")
"""The parts of a target that form a request, where a user may have written a key."""


def is_from_python(run: Run) -> bool:
    """Return whether only the caller has the conversations of a run."""
    return run.options.get("dataset") == GIVEN_IN_PYTHON


def is_watched(run: Run) -> bool:
    """Return whether the conversations of a run came in as traces, and are nowhere else."""
    return run.options.get("dataset") == WATCHED


def parts_of(run: Run) -> str | None:
    """Return the folder with the parts of a run, None where it was made in one piece."""
    return run.options.get(IN_PARTS)


def lacks_key(run: Run) -> bool:
    """Return whether a target of a run contained a key, which was not stored.

    Raises:
        UnreadableRun: its targets cannot be read.
    """
    with reading_record(run, "spec.target"):
        return any(MARK in str(target.get(part)) for target in described_targets(run.spec) for part in REQUEST)


@contextmanager
def reading_record(run: Run, part: str) -> Generator[None]:
    """Run a block that reads a part of a stored run, and report a value that vivavoce does not write.

    Raises:
        UnreadableRun: the part has such a value.
    """
    try:
        yield
    except ValidationError as error:
        causes = (".".join(map(str, (part, *cause["loc"]))) for cause in error.errors())
        raise _unreadable(run, ", ".join(dict.fromkeys(causes))) from error
    except (KeyError, TypeError, AttributeError) as error:
        raise _unreadable(run, part) from error


def _unreadable(run: Run, cause: str) -> UnreadableRun:
    return UnreadableRun(f"run {run.id} cannot be read: its row in the store has a wrong value: {cause}")


def described_targets(suite: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the targets of a suite that is plain data."""
    return [suite["target"]] if suite.get("target") else list(suite.get("targets") or ())
