"""`AspectCritic`: does the conversation have an aspect that you define? Yes or no, by one vote or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Unpack

from vivavoce.errors import UsageError
from vivavoce.metrics.config import Direction, MetricConfig
from vivavoce.metrics.prompts import Wording
from vivavoce.metrics.question import Answer, Plan, Question, Verdict, merged
from vivavoce.metrics.rating import RatingMetric, RatingOptions
from vivavoce.metrics.types import MultiTurnEvaluationInput, Reading
from vivavoce.models.custom import ModelLike
from vivavoce.models.model import Model, ModelReply
from vivavoce.records.score import total

VOTING = {"temperature": 0.7}
"""Settings with which votes can differ."""


class AspectCritic(RatingMetric):
    """Judges whether the `definition` applies: true (1.0) or false.

    It passes when it applies, or if `direction` is `lower_is_better`, for an aspect such as harmfulness, if it does
    not. Of a conversation in pieces the worst decides.

    `strictness` is the number of votes, an odd number. Several votes are cast at temperature 0.7 unless `settings` say
    otherwise, each as a separate trial, and shown in `extra["votes"]` with the share that agrees in
    `extra["agreement"]`; a failed vote is an overall error. Ragas has this parameter, but always asks
    once.

    Known failure: the votes of one model share its blind spots.
    """

    template: ClassVar[str] = "judged/aspect_critic.jinja"
    own_variables: ClassVar[frozenset[str]] = frozenset(("definition",))

    def __init__(
        self,
        model: ModelLike | None = None,
        *,
        definition: str,
        strictness: int = 1,
        direction: Direction = "higher_is_better",
        **options: Unpack[RatingOptions],
    ) -> None:
        if not definition.strip():
            raise UsageError("definition is empty; write the statement to judge")
        if strictness < 1 or strictness % 2 == 0:
            raise UsageError(f"strictness must be an odd number of votes, to get a majority; got {strictness}")
        self.definition = definition.strip()
        self.strictness = self.calls_per_question = strictness
        config = MetricConfig(
            class_name=type(self).__name__,
            name="aspect_critic",
            description=self.definition,
            score_type="binary",
            direction=direction,
        )
        if strictness > 1:
            options["settings"] = {**VOTING, **options.get("settings", {})}
        super().__init__(config, model, **options)

    @property
    def parameters(self) -> Mapping[str, object]:
        """The definition and the number of votes."""
        return {"definition": self.definition, "strictness": self.strictness}

    def variables(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, object]:
        """Return the definition, which its author wrote as a part of the prompt."""
        del metric_input
        return {"definition": Wording(self.definition)}

    def answers(self, reading: Reading, questions: Sequence[Question], judge: Model) -> Plan[Sequence[Answer]]:
        """Yield the questions, each once for every vote, and return the votes on each as one answer."""
        if self.strictness == 1:
            return (yield from super().answers(reading, questions, judge))
        trials = range(self.trial * self.strictness, (self.trial + 1) * self.strictness)
        voting_questions = [
            replace(question, request=replace(question.request, trial=trial))
            for question in questions
            for trial in trials
        ]
        votes = yield from super().answers(reading, voting_questions, judge)
        return [_together(votes[i : i + self.strictness]) for i in range(0, len(votes), self.strictness)]

    def verdict(self, answer: Answer) -> Verdict:
        """Return the verdict, or that of the majority.

        Raises:
            ModelFault: it does not match the requested shape.
        """
        if not isinstance(answer, _Votes):
            return super().verdict(answer)
        votes = [super(AspectCritic, self).verdict(vote) for vote in answer.votes]
        verdict = sum(bool(vote.score) for vote in votes) * 2 > len(votes)
        agreeing = [vote for vote in votes if vote.score == verdict]
        cast = [{"verdict": vote.score, "reasoning": vote.reasoning, "confidence": vote.confidence} for vote in votes]
        extra = {"votes": cast, "agreement": len(agreeing) / len(votes)}
        return replace(merged(verdict, agreeing), extra=extra, turns=answer.question.piece.judged)

    def merge(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the verdict of the worst piece, with the votes on each."""
        whole = super().merge(verdicts)
        if self.strictness == 1:
            return whole
        agreement = min(verdict.extra["agreement"] for verdict in verdicts)
        votes = [vote for verdict in verdicts for vote in verdict.extra["votes"]]
        return replace(whole, extra={"votes": votes, "agreement": agreement})


@dataclass(slots=True)
class _Votes(Answer):
    """Several answers to one question."""

    votes: Sequence[Answer] = ()


def _together(votes: Sequence[Answer]) -> Answer:
    """Return the votes on a question as one answer; one without a verdict makes the whole one without."""
    usage = total(vote.usage for vote in votes)
    replies = [vote.reply for vote in votes]
    silent = next((reply for reply in replies if reply.parsed is None), None)
    if silent is not None:
        return Answer(votes[0].question, replace(silent, usage=usage))
    text = "\n".join(reply.text for reply in replies)
    return _Votes(votes[0].question, ModelReply(text, usage=usage, applied=replies[0].applied), votes=votes)
