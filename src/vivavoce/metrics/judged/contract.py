"""`ContractMetric`: did the assistant do all that it must, and nothing that it must not?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar, Unpack

from pydantic import BaseModel, Field, create_model

from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evidence import ACTS, PROHIBITION, EvidenceRule
from vivavoce.metrics.judged.rules import (
    SECOND_LOOK,
    RuleAnswer,
    check_rules,
    doubts_of_second_look,
    is_second_look,
    merged_rules,
    rule_answers,
    rule_findings,
    rules_of,
    rules_prompt,
    rules_task,
)
from vivavoce.metrics.judging import JudgedMetric, JudgingOptions
from vivavoce.metrics.ledger import tools_visible
from vivavoce.metrics.metric import score_of_silence
from vivavoce.metrics.question import Piece, Question, Shape, Verdict, merged
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.transcript import Transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike
from vivavoce.records.score import Finding


class ContractReply(Shape):
    """What the judge answers; subclasses know how many rules there are."""

    rules: list[RuleAnswer]
    reasoning: str
    confidence: float = Field(ge=0, le=1)


@lru_cache(64)
def contract_reply(count: int) -> type[ContractReply]:
    """Return the class of an answer about so many rules."""
    return create_model("ContractReply", __base__=ContractReply, rules=(rule_answers(count), ...))


class ContractMetric(JudgedMetric):
    """Judges whether everything in `must` happened and nothing in `must_not` did: true (1.0) or false.

    The judge says of each rule, by its number, whether it happened, with evidence; code turns that into the verdict. A
    rule in `must` that never applied is not counted. Each rule is a finding: `criterion` for what must
    happen, `prohibition` for what must not.

    What happened needs evidence of what the assistant or a tool said or did; a refusal worded like a prohibition proves
    nothing. An answer without evidence is asked for once more; if the verdict still depends on it, that is a judge
    error, not a score.

    Known failure: a rule that speaks of quality, such as "is polite", leaves the judge to say when it happened.
    """

    template: ClassVar[str] = "judged/contract.jinja"
    own_variables: ClassVar[frozenset[str]] = frozenset(("rules", SECOND_LOOK))
    nothing: ClassVar[str] = "there was no occasion for any of the rules"
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule(ACTS)

    def __init__(self, model: ModelLike | None = None, **options: Unpack[JudgingOptions]) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name="contract",
            description="Did the assistant do all that it must, and nothing that it must not?",
            score_type="binary",
        )
        super().__init__(config, model, **options)

    @property
    def parameters(self) -> Mapping[str, object]:
        """What the prompt says about rules."""
        return {"rules": rules_prompt().hash}

    def unmet(self, metric_input: MultiTurnEvaluationInput) -> str | None:
        """Say that there is no rule."""
        return None if rules_of(metric_input) else "needs must or must_not, and neither is given"

    def question(
        self, metric_input: MultiTurnEvaluationInput, written: Transcript, piece: Piece
    ) -> tuple[type[BaseModel], Mapping[str, object]] | None:
        """Return the class of an answer about a piece, and the rules; None where the assistant does nothing."""
        del piece
        if not written.answered:
            return None
        rules = rules_of(metric_input)
        task = rules_task(rules, tools_visible(metric_input, written))
        return contract_reply(len(rules)), {"rules": task, SECOND_LOOK: is_second_look(metric_input)}

    def unasked(self, metric_input: MultiTurnEvaluationInput) -> MetricResult:
        """Return the result for silence: nothing in `must` or `must_not` happened."""
        if self.scope != "conversation":
            return super().unasked(metric_input)
        return score_of_silence(self, metric_input, not metric_input.must)

    def read(self, reply: ContractReply, question: Question) -> Verdict:
        """Return whether all rules are kept."""
        rules = rules_of(question.metric_input)
        check_rules(reply.rules, len(rules))
        findings = list(rule_findings(question, rules, reply.rules))
        kept = _kept(findings)
        reasoning = self.nothing if kept is None else reply.reasoning
        return Verdict(kept, reasoning, reply.confidence, findings, turns=question.piece.judged)

    def doubts(self, verdict: Verdict, question: Question) -> Sequence[str]:
        """Return a question about rules that only a second look calls done."""
        done = [finding for finding in verdict.findings if finding.kind == PROHIBITION and finding.state == "fail"]
        return doubts_of_second_look(done) if is_second_look(question.metric_input) else ()

    def merge(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the verdict over all pieces: an event in any of them counts."""
        versions = zip(*(verdict.findings for verdict in verdicts), strict=True)
        findings = [merged_rules(about_one) for about_one in versions]
        whole = merged(_kept(findings), verdicts, findings)
        return whole if whole.score is not None else replace(whole, reasoning=self.nothing)

    def passes(self, verdict: Verdict, findings: Sequence[Finding]) -> bool | None:
        """Say whether all rules would be kept with other findings."""
        del verdict
        return _kept(findings)


def _kept(findings: Sequence[Finding]) -> bool | None:
    """Say whether all rules are kept, None where there was no occasion for any."""
    verdicts = [finding.state == "pass" for finding in findings if finding.state != "skip"]
    return all(verdicts) if verdicts else None
