"""`RatingMetric`: a judge gives the score itself, within a range or among labels that the schema enforces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Unpack, cast

from pydantic import BaseModel, ConfigDict, Field, create_model

from vivavoce.metrics.config import MetricConfig, ScoreType, read_options
from vivavoce.metrics.evidence import Checker, Claim, EvidenceRule
from vivavoce.metrics.judging import JudgedMetric, JudgingOptions, with_unsupported
from vivavoce.metrics.question import Question, Verdict, merged
from vivavoce.models.custom import ModelLike

ANSWER: Mapping[ScoreType, str] = {"numeric": "score", "categorical": "label", "binary": "verdict"}
"""What the score is called in an answer, by its kind."""


class RatingOptions(JudgingOptions, total=False):
    """What every metric takes whose judge gives the score."""

    absence: bool
    """Whether it judges that something is not there, which no quote can show; then nothing needs evidence."""


class RatingMetric(JudgedMetric):
    """A judged metric whose answer is a score with its reasoning and evidence.

    The score is what its configuration says: a number from `minimum` to `maximum`, one of `categories`, or a yes or no.
    Pieces of a conversation count by their turns where the score is a number; else the worst piece decides: of those
    that fail, where there are any, the one with the lowest value.

    A yes needs evidence of what the user, the assistant, or a tool said or did, and so does a label or a number that
    passes. A number that no threshold decides needs none, unless `is_decided_outside`: then all but the worst do. With
    `absence` what is judged is that something is not there, so that no quote can show it, and nothing needs evidence.
    """

    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule(verdict="conversation")
    is_decided_outside = False
    """Whether a gate, an assertion, or a grader decides which scores pass."""

    def __init__(self, config: MetricConfig, model: ModelLike | None = None, **options: Unpack[RatingOptions]) -> None:
        own = read_options(RatingOptions, {key: value for key, value in options.items() if key == "absence"})
        self.absence = own.get("absence", False)
        judging = {key: value for key, value in options.items() if key != "absence"}
        super().__init__(config, model, **cast("JudgingOptions", judging))

    @cached_property
    def answer(self) -> Any:
        """The type of the score in an answer."""
        config = self.config
        if config.score_type == "binary":
            return bool
        if config.score_type == "categorical":
            return Literal[config.categories]
        return Annotated[float, Field(ge=config.minimum, le=config.maximum, allow_inf_nan=False)]

    @cached_property
    def reply(self) -> type[BaseModel]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The class of an answer: reasoning and evidence come before the score, so that they lead to it."""
        fields: dict[str, Any] = {
            "reasoning": (str, ...),
            "evidence": (list[str], ...),
            ANSWER[self.config.score_type]: (self.answer, ...),
            "confidence": (Annotated[float, Field(ge=0, le=1)], ...),
        }
        return create_model("Rating", __config__=ConfigDict(extra="forbid"), **fields)

    def read(self, reply: BaseModel, question: Question) -> Verdict:
        """Return the score as it was given."""
        fields = vars(reply)
        score = fields[ANSWER[self.config.score_type]]
        if self.config.score_type == "numeric":
            score = float(score)  # a whole number is an int
        evidence = question.checker.checked(fields["evidence"])
        return Verdict(score, fields["reasoning"], fields["confidence"], (), evidence, turns=question.piece.judged)

    @property
    def evidence_options(self) -> Sequence[str]:
        """Whether something that is not there is judged, and whether a gate decides."""
        named = {"absence": self.absence, "is_decided_outside": self.is_decided_outside}
        return [name for name, chosen in named.items() if chosen]

    def claims(self, verdict: Verdict) -> list[Claim]:
        """Return that the score is deserved, where something decides that it passes."""
        source = None if self.absence else self.evidence_rule.verdict
        if source is None or verdict.score is None or not self._is_claim(verdict.score):
            return []
        return [Claim(self.config.description or self.name, verdict.evidence, source)]

    def conclude(self, verdict: Verdict, checker: Checker) -> Verdict:
        """Return the verdict; a score that nothing decides and that has no evidence is named in `extra`."""
        source = None if self.absence else self.evidence_rule.verdict
        score = verdict.score
        if source is None or score is None or isinstance(score, bool) or self._is_claim(score):
            return verdict
        claim = Claim(self.name, verdict.evidence, source)
        undecided = self.config.passes(score) is None and bool(self.config.normalised(score))
        if undecided and not claim.is_supported(checker):
            return with_unsupported(verdict, [claim.what])
        return verdict

    def _is_claim(self, score: float | str | bool) -> bool:
        if isinstance(score, bool):
            return score
        passes = self.config.passes(score)
        if passes is None:
            return self.is_decided_outside and bool(self.config.normalised(score))
        return passes and self.config.direction == "higher_is_better"

    def merge(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the mean over the pieces, or the score of the worst one."""
        if self.config.score_type == "numeric":
            return super().merge(verdicts)
        scores = [verdict.score for verdict in verdicts if verdict.score is not None]
        return merged(min(scores, key=self.config.goodness), verdicts)
