"""A grader: an extractor and a grading function, over each turn or over the whole conversation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from pydantic import ValidationError

from vivavoce.comparing.text import is_blank
from vivavoce.comparing.thresholds import reaches
from vivavoce.errors import BudgetExhausted, Deferred, GraderFault
from vivavoce.grading.extractors import Extract, NothingToGrade, View, letta_messages
from vivavoce.grading.functions import GradeResult, call_user, check_parameters, from_foreign, reads_letta
from vivavoce.grading.graders import Case, Truth
from vivavoce.messages import AnyMessage, split_turns
from vivavoce.metrics.exact.tool_calls import CallOptions
from vivavoce.metrics.result import About, MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.records.run import Severity
from vivavoce.records.score import PASSING, Failure, Score, Usage, failed, failure_of, mean_of_turns, skipped, usage_of
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.samples.sample import Sample
from vivavoce.user_code import foreign_code, name_of, plain_number, skip_reason, unit_number
from vivavoce.validation import copy_with


def fingerprint(parts: Any) -> str:
    """Return a hash of everything that decides a score."""
    text = json.dumps(parts, sort_keys=True, default=str, ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


ScoreCase = Callable[[Case], Awaitable[Score] | Score]
Scope = Literal["turn", "conversation"]


@dataclass(frozen=True, slots=True)
class Grader:
    """One named grader of a suite.

    `truth` says what the grader compares with and, unless there is a `scope`, whether it works turn by turn. A `judged`
    grader needs `once` verdicts for each input and, if it sees the whole conversation, `each_turn` more for each turn;
    where the row says what is asked, `verdicts_on` counts them.
    `accepts_empty` is for functions that look at more than the submission; for the others an empty submission scores 0
    without a call. With a `threshold`, a value from there on passes, whatever the function returned; so does the mean
    over turns, without a threshold from `mean_passes` on. `unmet` returns what a sample lacks for the grader to apply.
    With `scores_errors`, the finished part of a conversation that ended with an error is scored, too. `calls` says
    which tool calls count for it and for the graders in it, and how they are compared. A `severity` makes it a
    requirement: every conversation must pass, or else the run fails or has a warning. Unless it
    `decides`, it only measures: its scores neither pass nor fail.
    """

    name: str
    extract: Extract
    score: ScoreCase
    truth: Truth
    fingerprint: str
    accepts_empty: bool = False
    scope: Scope | None = None
    label: str | None = None
    judged: bool = False
    once: int = 1
    each_turn: int = 0
    threshold: float | None = None
    mean_passes: float = PASSING
    waits: bool = False
    unmet: Callable[[Sample], str | None] | None = None
    scores_errors: bool = False
    verdicts_on: Callable[[Sample], int] | None = None
    calls: tuple[CallOptions, ...] = ()
    severity: Severity | None = None
    decides: bool = True

    def per_turn(self, sample: Sample) -> bool:
        """Return whether this sample is graded turn by turn."""
        if self.scope is not None:
            return self.scope == "turn"
        if self.truth == "reference_tool_calls":
            return sample.calls_per_turn
        return self.truth != "conversation" and sample.per_turn

    def verdicts(self, sample: Sample) -> int:
        """Return how many judge verdicts a sample needs."""
        if self.verdicts_on is not None:
            return self.verdicts_on(sample)
        if not self.judged:
            return 0
        if self.per_turn(sample):
            return (sample.turn_count - sample.history_turns) * (self.once + self.each_turn)
        return self.once + (self.each_turn and self.each_turn * sample.turn_count)

    async def grade(self, sample: Sample, trajectory: Trajectory, trial: int = 0) -> Score:
        """Grade one conversation; any failure is returned as a score in state `error`.

        `trial` is which repetition of the sample it is, from 0.

        Raises:
            BudgetExhausted: a limit on calls or cost is reached.
            Deferred: the answer to a question will come later; all the others have been asked.
        """
        if self.per_turn(sample):
            return await self._turn_by_turn(sample, trajectory, trial)
        common: dict[str, Any] = {"name": self.name, "fingerprint": self.fingerprint}
        common["ground_truth"] = sample.ground_truth
        whole = sample.whole
        if reason := self._lack(sample, whole):
            return skipped(reason, **common)
        held = _held(trajectory) if self.scores_errors else trajectory
        if trajectory.failure is not None and not (self.scores_errors and held.turns):
            return failed(trajectory.failure, **common)
        seconds = [turn.seconds for turn in held.turns]
        view = View(
            _with_opening(held), trajectory.state, seconds, trajectory.test, trial, history_turns=sample.history_turns
        )
        result, submission = await self._one(whole, view.own if self.truth == "reference_tool_calls" else view)
        if trajectory.failure is not None:
            result = _in_spite(result, held, trajectory.failure)
        return copy_with(result, {**common, "submission": submission})

    def inapplicable(self, sample: Sample) -> str | None:
        """Return why this grader does not apply to a sample, however the conversation ended."""
        return None if self.per_turn(sample) else self._lack(sample, sample.whole)

    def _lack(self, sample: Sample, whole: Sample) -> str | None:
        if self.truth == "ground_truth" and sample.per_turn:
            return "the sample has a ground truth for each turn, but this grader grades the whole conversation"
        if missing := _missing(self.truth, whole):
            return missing
        return None if self.unmet is None else self.unmet(whole)

    async def _one(self, sample: Sample, view: View) -> tuple[Score, str]:
        submission = ""
        try:
            with foreign_code():
                extracted = self.extract(view)
                submission = extracted if isinstance(extracted, str) else await extracted
                if not self.accepts_empty and is_blank(submission):
                    return self._decided(_EMPTY), submission
                scored = self.score(Case(sample, submission, view))
                return self._decided(scored if isinstance(scored, Score) else await scored), submission
        except BudgetExhausted:
            raise
        except NothingToGrade as nothing:
            return skipped(str(nothing)), ""
        except Exception as error:
            if reason := skip_reason(error):
                return skipped(reason), submission
            return failed(failure_of(error, "grader"), usage=usage_of(error)), submission

    def _decided(self, score: Score) -> Score:
        """Return a score that passes or fails by the threshold, if there is one."""
        if self.threshold is None or score.value is None:
            return score
        return copy_with(score, {"passed": reaches(score.value, self.threshold)})

    async def _turn_by_turn(self, sample: Sample, trajectory: Trajectory, trial: int) -> Score:
        turns: list[Score] = []
        deferred: Deferred | None = None
        for index in range(len(sample.turns)):
            try:
                turns.append(await self.grade_turn(sample, index, trajectory, trial))
            except Deferred as later:  # the other turns are asked about all the same
                deferred = later
        if deferred is not None:
            raise deferred
        usage = sum((turn.usage for turn in turns if turn.usage is not None), Usage())
        whole = mean_of_turns(
            tuple(turns),
            self.mean_passes if self.threshold is None else self.threshold,
            name=self.name,
            fingerprint=self.fingerprint,
            usage=usage if usage.calls else None,
        )
        if trajectory.failure is None:
            return whole
        held = _held(trajectory)
        if self.scores_errors and whole.state == "scored":
            return _in_spite(whole, held, trajectory.failure)
        return _ended_early(whole, trajectory.failure)

    async def grade_turn(self, sample: Sample, index: int, trajectory: Trajectory, trial: int = 0) -> Score:
        """Grade one turn of a sample that is graded turn by turn; `index` counts from 0."""
        listed = sample.calls_per_turn if self.truth == "reference_tool_calls" else sample.per_turn
        one = sample.turns[index]
        truth = _turn_truth(self.truth, one)
        if index < sample.history_turns:
            result, submission = skipped("this turn is part of the history"), ""
        elif truth is None and listed:
            result, submission = skipped("this turn has no ground truth"), ""
        else:
            result, submission = await self._turn(one, index, trajectory, trial)
        update = {"name": self.name, "turn": index, "submission": submission, "ground_truth": truth}
        return copy_with(result, update)

    async def _turn(self, sample: Sample, index: int, trajectory: Trajectory, trial: int) -> tuple[Score, str]:
        turn = trajectory.turns[index] if index < len(trajectory.turns) else None
        failure = (trajectory.failure or _NEVER_HELD) if turn is None else turn.failure
        spared = self.scores_errors and any(one.failure is None for one in trajectory.turns)
        if failure is not None and trajectory.failure is not None and spared:
            return skipped("the conversation ended with an error before this turn was answered"), ""
        if turn is None or failure is not None:
            return failed(failure or _NEVER_HELD), ""
        if missing := _missing(self.truth, sample):
            return skipped(missing), ""
        return await self._one(sample, View([turn.messages], trajectory.state, trial=trial))


def in_spite_of_errors(grader: Grader) -> Grader:
    """Return a grader that also scores the finished part of a conversation that ended with an error."""
    return replace(grader, scores_errors=True, fingerprint=fingerprint([grader.fingerprint, "scores_errors"]))


_NEVER_HELD = Failure(blame="environment", kind="missing", message="the recording ends before this turn")
_EMPTY = Score(value=0.0, reason="the answer is empty: the extractor found nothing")


def _ended_early(whole: Score, failure: Failure) -> Score:
    """Return the score of a conversation that ended with an error: graded turns do not make up for missing ones.

    A grader with nothing to grade in any turn still does not apply.
    """
    if whole.state != "scored":
        return whole
    graded = sum(turn.state == "scored" for turn in whole.turns or ())
    reason = f"the conversation ended with an error after {graded} graded turn{'s' * (graded != 1)}: {failure.message}"
    without = {"state": "error", "value": None, "raw": None, "passed": None, "failure": failure, "reason": reason}
    return whole.model_copy(update=without)


def _held(trajectory: Trajectory) -> Trajectory:
    """Return a conversation with its finished turns only."""
    return trajectory.model_copy(update={"turns": [turn for turn in trajectory.turns if turn.failure is None]})


def _in_spite(score: Score, held: Trajectory, failure: Failure) -> Score:
    """Return a score whose reason says that the conversation ended with an error."""
    if score.state != "scored":
        return score
    turns = len(held.turns)
    ended = f"the conversation ended with an error after {turns} turn{'s' * (turns != 1)}: {failure.message}"
    return score.model_copy(update={"reason": f"{score.reason}; {ended}" if score.reason else ended})


def _with_opening(trajectory: Trajectory) -> list[list[AnyMessage]]:
    """Return the turns, preceded by the messages before the first user message."""
    turns = [list(turn.messages) for turn in trajectory.turns]
    if trajectory.opening:
        turns[:1] = [[*trajectory.opening, *(turns[0] if turns else ())]]
    return turns


def _turn_truth(truth: Truth, sample: Sample) -> Any:
    if truth != "reference_tool_calls":
        return sample.ground_truth
    calls = sample.reference_tool_calls
    return None if calls is None else [call.to_dict() for call in cast("list[Any]", calls)]


def _missing(truth: Truth, sample: Sample) -> str | None:
    if truth == "ground_truth" and sample.ground_truth is None:
        return "the sample has no ground_truth"
    if truth == "reference_tool_calls" and sample.reference_tool_calls is None:
        return "the sample has no reference_tool_calls"
    return None


def user_score(function: Callable[..., Any], config: Mapping[str, Any], timeout: float) -> ScoreCase:
    """Return a user's grading function, called by the names of its parameters, with a time limit in seconds.

    Raises:
        UsageError: it has a parameter that nobody fills.
    """
    parameters = check_parameters(function, ("sample", "submission"), ("trajectory", "config"))
    letta = "trajectory" in parameters and reads_letta(function)

    async def score(case: Case) -> Score:
        arguments: dict[str, Any] = {}
        if "trajectory" in parameters:
            turns = case.view.turns
            arguments["trajectory"] = letta_messages(turns) if letta else [list(turn) for turn in turns]
        if "config" in parameters:
            arguments["config"] = dict(config)
        value = await call_user(function, case.sample, case.submission, seconds=timeout, **arguments)
        return as_grade(value, name_of(function)).as_score()

    return score


def _from_mapping(fields: dict[str, Any], name: str) -> GradeResult:
    """Return a grade given as a dict; `passed` alone is a score of 1 or 0.

    Raises:
        GraderFault: the score is not a number, or `passed` is not a bool.
        ValueError: a field is unknown or wrong.
    """
    for field, wanted in (("score", "a number"), ("passed", "true or false")):
        given = fields.get(field)
        number = plain_number(given)
        if given is not None and (number is None or (field == "passed" and not isinstance(number, bool))):
            got = f"{given!r}, a {type(given).__name__}"
            raise GraderFault(f"{name} returned a dict whose {field} is {got}, not {wanted}"[:500], kind="format")
        if number is not None:
            fields[field] = number if field == "passed" else unit_number(number)
    if isinstance(fields.get("passed"), bool) and fields.get("score") is None and "state" not in fields:
        fields["score"] = float(fields["passed"])
    return GradeResult.model_validate(fields)


def _what_is_wrong(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        return f"{place}: {first['msg']}" if place else first["msg"]
    return str(error)


def _storable(grade: GradeResult, name: str) -> GradeResult:
    try:
        json.dumps([grade.metadata, grade.ground_truth], default=str)
    except (ValueError, TypeError, RecursionError) as error:
        raise GraderFault(f"{name} returned non-JSON metadata: {error}", kind="format") from error
    return grade


def as_grade(value: Any, name: str) -> GradeResult:
    """Convert the result of a user's function; None says that the function does not apply.

    Raises:
        GraderFault: it is not a number between 0 and 1, a bool, a `GradeResult`, a dict with a `score`, or None.
    """
    if value is None:
        return GradeResult(state="skipped", rationale=f"{name} returned None: it does not apply")
    value = from_foreign(value)
    try:
        if (score := plain_number(value)) is not None:
            return GradeResult(score=unit_number(score))
        if isinstance(value, Mapping):
            value = _from_mapping(dict(cast("Mapping[str, Any]", value)), name)
        if isinstance(value, GradeResult):
            return _storable(value, name)
    except (ValueError, ArithmeticError) as error:
        raise GraderFault(f"{name} returned {value!r}: {_what_is_wrong(error)}"[:500], kind="format") from error
    rule = "a grader returns a number between 0 and 1, a bool, a GradeResult, a dict with a score, or None to skip"
    raise GraderFault(f"{name} returned {type(value).__name__}: {value!r}; {rule}"[:500], kind="format")


async def graded(grader: Grader, metric_input: MultiTurnEvaluationInput, name: str) -> MetricResult:
    """Return the score of a grader for a conversation, as the result of a metric with that name.

    Raises:
        BudgetExhausted: a limit on calls or cost is reached.
    """
    score = await grader.grade(_sample(metric_input), _trajectory(metric_input), metric_input.trial)
    fields: dict[str, Any] = {field: getattr(score, field) for field in Score.model_fields}
    fields |= {"name": name, "raw": score.value if score.raw is None else score.raw}
    return MetricResult.model_construct(about=About("numeric", len(metric_input.messages), metric_input.goal), **fields)


def _sample(metric_input: MultiTurnEvaluationInput) -> Sample:
    """Return the sample of a conversation; if there is none, build one from what is known."""
    if metric_input.sample is not None:
        return (
            metric_input.sample
            if metric_input.sample.turn_count
            else metric_input.sample.with_messages(metric_input.messages)
        )
    return Sample.model_construct(
        id=metric_input.conversation_history.conversation_id or "",
        messages=list(metric_input.messages),
        ground_truth=metric_input.reference,
        goal=metric_input.goal,
        instructions=metric_input.instructions,
        context=metric_input.context,
        policy=metric_input.policy,
        must=list(metric_input.must),
        must_not=list(metric_input.must_not),
    )


def _trajectory(metric_input: MultiTurnEvaluationInput) -> Trajectory:
    opening, turns = split_turns(metric_input.messages)
    seconds = [*metric_input.turn_seconds, *(None for _ in turns[len(metric_input.turn_seconds) :])]
    turn_records = [
        Turn.model_construct(index=index, messages=messages, seconds=seconds[index])
        for index, messages in enumerate(turns)
    ]
    state = None if metric_input.state is None else dict(metric_input.state)
    return Trajectory.model_construct(opening=opening, turns=turn_records, state=state, test=metric_input.test)
