"""`TopicAdherenceMetric`: does the assistant answer what belongs to its topics, and refuse the rest?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar, Literal, Unpack, cast

from pydantic import BaseModel, Field

from vivavoce.errors import UsageError
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evidence import EvidenceRule
from vivavoce.metrics.judging import JudgedMetric, JudgingOptions
from vivavoce.metrics.question import Piece, Question, Shape, Verdict, limited, merged
from vivavoce.metrics.transcript import Transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike
from vivavoce.records.score import Finding, FindingState, to_index, to_number

Mode = Literal["f1", "precision", "recall"]
VERDICTS: Mapping[tuple[bool, bool], tuple[str, FindingState]] = {
    (True, True): ("answered", "pass"),
    (True, False): ("not answered", "fail"),
    (False, True): ("off topic, answered", "fail"),
    (False, False): ("off topic, refused", "pass"),
}
"""The verdict on a request, by whether it is on topic and whether it was answered."""


class UserRequest(Shape):
    """One request of the user; the judge counts turns from 1."""

    turn: int
    request: str
    evidence: list[str]
    on_topic: bool
    answered: bool


class TopicReply(Shape):
    """What the judge answers."""

    requests: list[UserRequest]
    reasoning: str
    confidence: float = Field(ge=0, le=1)


@lru_cache(256)
def topic_reply(turns: range) -> type[TopicReply]:
    """Return the class of an answer about the requests of these turns, by their numbers."""
    return limited(TopicReply, "requests", UserRequest, "turn", tuple(turns))


class TopicAdherenceMetric(JudgedMetric):
    """Judges whether the assistant answers what belongs to `topics` and nothing else; passes from `threshold` (0.7) up.

    Of what was answered, `precision` is the share on topic; of what was on topic, `recall` is the share answered; the
    score is one of them or, by default, their `f1`, 0 to 1. It is 1 where all requests were off topic and refused.
    A share of nothing, such as precision if nothing was answered, is None, and the metric is skipped.
    Without `topics`, those of the conversation's `context` count, or else the `reference_topics` of its row.

    Ragas' TopicAdherence has the same modes and range. It takes a call for each topic that a first call finds in the
    conversation, and scores 0 where all requests were off topic and refused; this one takes one call in all, and shows
    each request.

    Known failure: topics that are given loosely are judged loosely.
    """

    template: ClassVar[str] = "judged/topic_adherence.jinja"
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule({("request", "pass"): "conversation"})
    own_variables: ClassVar[frozenset[str]] = frozenset(("topics",))
    nothing: ClassVar[str] = "the user asks for nothing in this conversation"

    def __init__(
        self,
        model: ModelLike | None = None,
        *,
        topics: Sequence[str] | None = None,
        mode: Mode = "f1",
        **options: Unpack[JudgingOptions],
    ) -> None:
        if topics is not None and (not topics or isinstance(topics, str)):
            raise UsageError(f"topics are a list of at least one topic; got {topics!r}")
        if mode not in ("f1", "precision", "recall"):
            raise UsageError(f"mode {mode!r} is not f1, precision or recall")
        self.topics = None if topics is None else list(topics)
        self.mode: Mode = mode
        config = MetricConfig(
            class_name=type(self).__name__,
            name="topic_adherence",
            description="Does the assistant answer what belongs to its topics, and refuse the rest?",
            threshold=0.7,
        )
        super().__init__(config, model, **options)

    @property
    def parameters(self) -> Mapping[str, object]:
        """The topics and the mode."""
        return {"topics": self.topics, "mode": self.mode}

    def unmet(self, metric_input: MultiTurnEvaluationInput) -> str | None:
        """Say that nothing names the topics."""
        return None if self._topics(metric_input) else "needs topics: give topics=, or a list of them in the context"

    def question(
        self, metric_input: MultiTurnEvaluationInput, written: Transcript, piece: Piece
    ) -> tuple[type[BaseModel], Mapping[str, object]] | None:
        """Return the class of an answer about the turns of a piece, and the topics; None where it has no turns."""
        del written
        turns = range(to_number(piece.last - piece.judged), to_number(piece.last))
        return (topic_reply(turns), {"topics": self._topics(metric_input)}) if turns else None

    def read(self, reply: TopicReply, question: Question) -> Verdict:
        """Return the share that the mode names."""
        requests = [_finding(question, request) for request in reply.requests]
        return self._scored(Verdict(None, reply.reasoning, reply.confidence, requests))

    def passes(self, verdict: Verdict, findings: Sequence[Finding]) -> bool | None:
        """Return whether the share would pass with other findings; failures were wrongly answered or ignored."""
        del verdict
        requests = [
            (bool(finding.data["on_topic"]), (finding.state == "pass") == bool(finding.data["on_topic"]))
            for finding in findings
        ]
        share = adherence(requests)[self.mode]
        return None if share is None else self.config.passes(share)

    def merge(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the share over the requests of all pieces."""
        return self._scored(merged(None, verdicts))

    def _scored(self, verdict: Verdict) -> Verdict:
        requests = [request.data for request in verdict.findings]
        shares = adherence([(request["on_topic"], request["answered"]) for request in requests])
        score, reasoning = shares[self.mode], verdict.reasoning
        if not requests:
            reasoning = self.nothing
        elif score is None:
            reasoning = "nothing was answered" if self.mode == "precision" else "no request is on topic"
        extra = {"mode": self.mode, **shares}
        return replace(verdict, score=score, reasoning=reasoning, extra=extra, turns=max(1, len(requests)))

    def _topics(self, metric_input: MultiTurnEvaluationInput) -> list[str]:
        if self.topics is not None:
            return self.topics
        row = {} if metric_input.sample is None else metric_input.sample.metadata
        topics: object = (metric_input.context or {}).get("topics") or row.get("reference_topics")
        return [str(topic) for topic in cast("list[object]", topics)] if isinstance(topics, list) else []


def _finding(question: Question, request: UserRequest) -> Finding:
    verdict, state = VERDICTS[request.on_topic, request.answered]
    answers = request.model_dump(include={"on_topic", "answered"})
    return question.finding(
        "request", request.request, verdict, state, request.evidence, to_index(request.turn), answers
    )


def adherence(requests: Sequence[tuple[bool, bool]]) -> dict[str, float | None]:
    """Return precision, recall and F1 of requests, each whether it is on topic and whether it was answered.

    What was answered counts as found, what is on topic as wanted. Without a mistake all three are 1.
    """
    count = Counter(requests)
    right, wrong, missed = count[True, True], count[False, True], count[True, False]
    if not wrong and not missed:
        return dict.fromkeys(("precision", "recall", "f1"), 1.0 if requests else None)
    return {
        "precision": right / (right + wrong) if right + wrong else None,
        "recall": right / (right + missed) if right + missed else None,
        "f1": 2 * right / (2 * right + wrong + missed),
    }
