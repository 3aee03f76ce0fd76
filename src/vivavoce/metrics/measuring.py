"""`ExactMetric`: computes a score from a conversation; the same conversation always gives the same score."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Unpack

from typing_extensions import TypedDict

from vivavoce.comparing.thresholds import mean
from vivavoce.errors import GraderFault, UsageError
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage, split_turns
from vivavoce.metrics.config import MetricConfig, Scope, read_options
from vivavoce.metrics.metric import StepwiseMetric
from vivavoce.metrics.question import Plan
from vivavoce.metrics.result import About, MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput, Reading
from vivavoce.records.score import Evidence, Finding, Score
from vivavoce.user_code import source_of
from vivavoce.work_time import counted_work


class MeasuringOptions(TypedDict, total=False):
    """What every exact metric takes besides its own."""

    name: str
    """What its results are called."""
    threshold: float | None
    """The score, in the metric's own terms, from which it passes."""
    scope: Scope
    """What is measured: the conversation, or each turn or window of it."""
    window: int
    """Turns in a window."""
    model: None
    """Accepted and ignored, so that every metric can be made with one."""


@dataclass(frozen=True, slots=True)
class Part:
    """The turns that are measured: of `all_turns`, those from the index `first` up to, not including, `end`.

    Parts of one conversation share its turns, so that long windows need no memory of their own.
    """

    metric_input: MultiTurnEvaluationInput
    all_turns: Sequence[Sequence[AnyMessage]]
    first: int = 0
    opening: Sequence[AnyMessage] = ()
    end: int | None = None

    @property
    def turns(self) -> Sequence[Sequence[AnyMessage]]:
        """The turns."""
        return self.all_turns[self.first : self.end]

    @property
    def last(self) -> int:
        """The number of the last of the turns, from 0; one less than `first` where there are none."""
        return (len(self.all_turns) if self.end is None else self.end) - 1

    @property
    def messages(self) -> list[AnyMessage]:
        """The messages of the turns, with what precedes the first one of the conversation."""
        return [*self.opening, *(message for turn in self.turns for message in turn)]

    @property
    def answers(self) -> list[tuple[int, AIMessage]]:
        """Every assistant message that has words, with the number of its turn."""
        return [(i, m) for i, m in self._numbered() if isinstance(m, AIMessage) and m.text]

    @property
    def questions(self) -> list[tuple[int, HumanMessage]]:
        """Every user message that has words, with the number of its turn."""
        return [(i, m) for i, m in self._numbered() if isinstance(m, HumanMessage) and m.text]

    def _numbered(self) -> list[tuple[int, AnyMessage]]:
        return [(number, message) for number, turn in enumerate(self.turns, self.first) for message in turn]


@dataclass(frozen=True, slots=True)
class Measured:
    """A score with its reason; None where there was nothing to measure."""

    score: bool | float | str | None
    reasoning: str
    evidence: Sequence[Evidence] = ()
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    findings: Sequence[Finding] = ()


MAX_MEASURED_TURNS = 1_000_000
"""Turns of all the windows of a conversation together."""


def measure_in_time(parts: Sequence[Part], measure: Callable[[Part], Measured]) -> list[Measured]:
    """Return the scores of parts; their number is work that counts.

    Raises:
        GraderFault: no time is left for the request.
    """
    measured: list[Measured] = []
    with counted_work() as check_time:
        for part in parts:
            check_time()
            measured.append(measure(part))
    return measured


class ExactMetric(StepwiseMetric):
    """A metric that computes; a subclass says how in `measure`.

    With the scope `turn` or `window` it measures each turn, or each run of `window` turns, and the score is the mean.
    """

    version: ClassVar[str] = "1"
    waits = False

    def __init__(self, config: MetricConfig, **options: Unpack[MeasuringOptions]) -> None:
        options = read_options(MeasuringOptions, options)
        overrides = {name: options.get(name) for name in ("name", "threshold") if name in options}
        super().__init__(config.model_copy(update=overrides) if overrides else config)
        self.scope: Scope = options.get("scope", "conversation")
        self.window = options.get("window", 5)
        if self.window < 1:
            raise UsageError(f"{self.name}: a window needs at least 1 turn, got {self.window}")

    @abstractmethod
    def measure(self, part: Part) -> Measured:
        """Return the score of some turns."""

    def measure_each(self, parts: Sequence[Part]) -> list[Measured]:
        """Return the scores of parts of one conversation.

        Raises:
            GraderFault: no time is left for the request.
        """
        return measure_in_time(parts, self.measure)

    @property
    def parameters(self) -> Mapping[str, object]:
        """The metric's own settings that decide its scores, besides its configuration."""
        return {}

    def steps_for(self, reading: Reading) -> Plan[MetricResult]:
        """Return the result without waiting for anything."""
        yield from ()
        return self.evaluate_conversation(reading.metric_input)

    def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        """Measure a conversation."""
        opening, turns = split_turns(evaluation_input.messages)
        if not turns and not opening:
            return self.skipped("the conversation is empty")
        parts = self._parts(evaluation_input, opening, turns)
        measured = self.measure_each(parts)
        whole = measured[0] if len(measured) == 1 else _merged(measured)
        if whole.score is None:
            return self.skipped(whole.reasoning, fingerprint=self.fingerprint)
        turns = None
        if self.scope != "conversation":
            turns = tuple(self._turn(part, measured_part) for part, measured_part in zip(parts, measured, strict=True))
        return self._result(whole, turns, len(evaluation_input.messages))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that decides the scores."""
        kind = type(self)
        decided = [kind.__name__, self.version, self.scope, self.window, self.config.model_dump(mode="json")]
        text = json.dumps([*decided, self.parameters, source_of(kind)], default=str)
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    def _parts(
        self,
        metric_input: MultiTurnEvaluationInput,
        opening: Sequence[AnyMessage],
        turns: Sequence[Sequence[AnyMessage]],
    ) -> list[Part]:
        if self.scope == "conversation" or not turns:
            return [Part(metric_input, turns, 0, opening)]
        size = min(1 if self.scope == "turn" else self.window, len(turns))
        measured_turns = size * len(turns) - size * (size - 1) // 2
        if measured_turns > MAX_MEASURED_TURNS:
            problem = f"windows of {size:,} turns in {len(turns):,} turns have {measured_turns:,} turns together"
            raise GraderFault(f"{problem}, at most {MAX_MEASURED_TURNS:,} allowed", kind="limit")
        return [Part(metric_input, turns, max(0, end - size), (), end) for end in range(1, len(turns) + 1)]

    def _result(self, whole: Measured, turns: tuple[Score, ...] | None, length: int) -> MetricResult:
        assert whole.score is not None
        value, passed = self.config.scored(whole.score)
        return MetricResult.model_construct(
            name=self.name,
            state="scored",
            value=value,
            raw=whole.score,
            passed=passed,
            reason=whole.reasoning,
            findings=tuple(whole.findings),
            other_evidence=tuple(whole.evidence),
            turns=turns,
            extra=dict(whole.details),
            fingerprint=self.fingerprint,
            about=About(self.config.score_type, length),
        )

    def _turn(self, part: Part, measured: Measured) -> Score:
        """Return the score of the last turn of a part."""
        last, reason = part.last, measured.reasoning
        if measured.score is None:
            return Score(name=self.name, turn=last, state="skipped", reason=reason)
        value, passed = self.config.scored(measured.score)
        evidence = tuple(measured.evidence)
        return Score(
            name=self.name,
            turn=last,
            value=value,
            raw=measured.score,
            passed=passed,
            reason=reason,
            findings=tuple(measured.findings),
            other_evidence=evidence,
        )


def _merged(measured: Sequence[Measured]) -> Measured:
    scores = [float(part.score) for part in measured if isinstance(part.score, int | float)]
    if not scores:
        return Measured(None, measured[0].reasoning)
    evidence = list(dict.fromkeys(quote for part in measured for quote in part.evidence))
    findings = [finding for part in measured for finding in part.findings]
    reason = f"mean of {len(scores)} parts, from {min(scores):g} to {max(scores):g}"
    return Measured(float(mean(scores)), reason, evidence, findings=findings)
