"""Assertions that a metric decides: a sentence that a judge says holds, or a metric that passes."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, cast

from pydantic import AfterValidator, Field, JsonValue, StrictBool, StringConstraints, model_validator

from vivavoce.errors import GraderFault, UsageError
from vivavoce.grading.assertions import Assertion, Held, Scene, held_unless
from vivavoce.grading.graders import Case
from vivavoce.grading.metrics import deciding_grader, metric_grader
from vivavoce.metrics.exact.arguments import show
from vivavoce.metrics.exact.tool_calls import CallOptions
from vivavoce.metrics.factory import Choice, choose_metric, named_metric, reaches_out
from vivavoce.metrics.judging import JudgedMetric
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.panel import asking
from vivavoce.metrics.question import carry_out
from vivavoce.metrics.rating import RatingMetric
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.types import Reading, metric_input
from vivavoce.models.model import Model
from vivavoce.records.score import Failure, shorten
from vivavoce.samples.sample import Sample

OWN = "expect"
"""The metric of assertions, which no assertion may name."""
_REASON = 300
"""Characters of a reason that a miss quotes."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Who decides what assertions ask, and with which settings; None for those of the metrics."""

    model: Model
    settings: Mapping[str, Any] | None = None


class Unmeasured(GraderFault):
    """What a metric was to decide is open, because it failed."""

    def __init__(self, asked: Asked, failure: Failure) -> None:
        super().__init__(failure.message, kind=failure.kind)
        self.asked, self.failure = asked, failure


class Asked(Assertion, ABC):
    """Fields of an assertion that a metric decides."""

    @property
    @abstractmethod
    def choice(self) -> Choice:
        """The metric, as chosen by name."""

    @property
    def procedure(self) -> Asked:
        """The assertion without what of it is no more than data of the row."""
        return self

    @property
    def asks(self) -> bool:
        """Whether a judge is asked."""
        return any(True for _ in asking(self.metric(None)))

    def metric(self, judge: Judge | None, turn: int | None = None) -> BaseMultiTurnMetric:
        """Return the metric; one that asks a judge sees what precedes the turn, and judges the turn alone.

        Raises:
            UsageError: there is no such metric or option.
        """
        choice = self.choice
        if turn is not None and issubclass(named_metric(choice["metric"]), JudgedMetric):
            choice["scope"] = "turn"
        if judge is not None and judge.settings is not None:
            choice["settings"] = judge.settings
        metric = choose_metric(choice, judge and judge.model)
        if isinstance(metric, RatingMetric):
            metric.is_decided_outside = True
        return metric

    @property
    def compared_calls(self) -> Sequence[CallOptions]:
        """Which tool calls the metric compares, and how; none where it compares none."""
        return ()

    def calls(self, judge: Judge, turn: int | None, sample: Sample) -> int:
        """Return how many calls it makes about a turn, or with None about the whole conversation."""
        grader = metric_grader(OWN, self.metric(judge, turn))
        if turn is None or not grader.judged:
            return grader.verdicts(sample)
        return grader.once + grader.each_turn

    async def measured(self, case: Case, turn: int | None, judge: Judge | None) -> MetricResult:
        """Measure a turn, or with None the whole conversation; what breaks becomes a result.

        Raises:
            BudgetExhausted: a limit on calls or cost is reached.
        """
        metric = self.metric(judge, turn)
        view, sample, first = case.view, case.sample, 0
        turns = view.turns
        if turn is not None:
            first = 0 if isinstance(metric, JudgedMetric) else turn
            turns, sample = turns[first : turn + 1], sample.turns[turn]
        known = {"submission": case.submission, "state": view.state, "test": view.test, "trial": view.trial}
        messages = [message for one in turns for message in one]
        known_input = metric_input(sample, messages, view.seconds[first : first + len(turns)], **known)
        result = await carry_out(metric.plan_for(Reading(known_input, (turn or 0) - first)))
        return result if first == 0 else _moved(result, first)

    def result(self, scene: Scene) -> MetricResult:
        """Return what the metric said about a scene."""
        return cast("MetricResult", scene.results[id(self)])

    def held(self, scene: Scene) -> Held:
        """Return whether the metric passes.

        Raises:
            GraderFault: it failed, or does not apply.
        """
        result = self.result(scene)
        if result.failure is not None:
            raise Unmeasured(self, result.failure)
        if result.passed is None:
            raise GraderFault(f"{self.wording} cannot be checked: {result.reason}", kind="missing")
        return held_unless("" if result.passed else self.missed(result))

    @abstractmethod
    def missed(self, result: MetricResult) -> str:
        """Return in words what was found instead."""


class Judged(Asked):
    """A judge says that this sentence holds of the turn, or of the conversation.

    It needs evidence of what the user, the assistant, or a tool said or did. With `absence` the sentence is about
    something that is not there, which no quote can show, and needs none.
    """

    judged: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    absence: StrictBool = False

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        return f"judged {self.judged!r}"

    @property
    def choice(self) -> Choice:
        """The metric that asks whether a definition holds."""
        absence = {"absence": True} if self.absence else {}
        return Choice(metric="aspect_critic", config={"definition": self.judged, **absence})

    @property
    def procedure(self) -> Asked:
        """The question about any sentence: the sentence itself is in the row."""
        return Judged(judged="…", absence=self.absence)

    def missed(self, result: MetricResult) -> str:
        """Return the sentence, and why it does not hold."""
        return f"{self.judged!r} does not hold{_because(result)}"


def _named(name: str) -> str:
    if name == OWN:
        raise ValueError(f"'{OWN}' is this grader itself; write its assertions here")
    if name.endswith((".yaml", ".yml")) or ".py:" in name:
        raise ValueError(f"a row cannot use a metric from a file; write '{name}' under graders of the suite")
    try:
        named_metric(name)
    except UsageError as error:
        raise ValueError(str(error)) from error
    return name


class Passes(Asked):
    """A metric passes, with its own options in `config`, and from `threshold` on in its own terms."""

    metric_name: Annotated[str, AfterValidator(_named)] = Field(alias="metric")
    threshold: Annotated[float, Field(allow_inf_nan=False, strict=True)] | None = None
    config: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _usable(self) -> Passes:
        if problem := _problem(self._key):
            raise ValueError(problem)
        return self

    @property
    def _key(self) -> str:
        return json.dumps([self.metric_name, self.threshold, self.config])

    @property
    def compared_calls(self) -> Sequence[CallOptions]:
        """Which tool calls the metric compares, and how."""
        return _compared_calls(self._key)

    @property
    def wording(self) -> str:
        """What it demands, in words."""
        how = [] if self.threshold is None else [f"threshold {self.threshold:g}"]
        how += [show(self.config)] if self.config else []
        return f"metric {self.metric_name}" + (f" ({', '.join(how)})" if how else "")

    @property
    def choice(self) -> Choice:
        """The metric with its options."""
        return Choice(metric=self.metric_name, config=self.config, threshold=self.threshold)

    def missed(self, result: MetricResult) -> str:
        """Return the score, and why it is so."""
        score = f"{result.raw:.3g}" if isinstance(result.raw, float) else str(result.raw)
        return f"{self.metric_name} is {score}{_because(result)}"


@lru_cache(maxsize=1024)
def _problem(chosen: str) -> str | None:
    """Return what is wrong with a metric, its threshold and its options, as JSON text; None if nothing is."""
    name, threshold, config = json.loads(chosen)
    if option := reaches_out(config):
        return f"metric {name}: a row cannot use the option '{option}', which names a file or an address"
    try:
        deciding_grader(name, choose_metric(Choice(metric=name, threshold=threshold, config=config)))
    except UsageError as error:
        return str(error)
    return None


@lru_cache(maxsize=1024)
def _compared_calls(chosen: str) -> Sequence[CallOptions]:
    """Return which tool calls a metric compares, which is known to be usable."""
    name, threshold, config = json.loads(chosen)
    return metric_grader(name, choose_metric(Choice(metric=name, threshold=threshold, config=config))).calls


def fingerprints_of(asked: Mapping[str, Asked], judge: Judge | None) -> list[str]:
    """Return what decides the answers to assertions, apart from their rows."""
    return sorted(str(one.metric(judge).fingerprint) for one in asked.values())


def procedures(asked: Iterable[Asked]) -> dict[str, Asked]:
    """Return assertions without the data of their rows, each way to decide once, by what identifies it."""
    return {json.dumps(one.choice, sort_keys=True): one for one in (one.procedure for one in asked)}


def _because(result: MetricResult) -> str:
    reason = shorten(" ".join((result.reason or "").split()), _REASON)
    return f": {reason}" if reason else ""


def _moved(result: MetricResult, turns: int) -> MetricResult:
    """Return a result about turns that were measured alone, with the places that they have in the conversation."""

    def moved(turn: int | None) -> int | None:
        return None if turn is None else turn + turns

    def evidence(shown: Any) -> tuple[Any, ...]:
        return tuple(one.model_copy(update={"turn": moved(one.turn)}) for one in shown)

    findings = tuple(
        finding.model_copy(update={"turn": moved(finding.turn), "evidence": evidence(finding.evidence)})
        for finding in result.findings
    )
    return result.model_copy(update={"findings": findings, "other_evidence": evidence(result.other_evidence)})
