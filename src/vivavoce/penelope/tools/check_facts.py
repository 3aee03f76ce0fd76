"""`CheckFactsTool`: does a reply say what is known to be true, something else, or nothing?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict

from vivavoce.errors import UsageError
from vivavoce.models.custom import ModelLike
from vivavoce.pacing.loops import wait_for
from vivavoce.penelope.context import TestState
from vivavoce.penelope.tools.analysis import (
    MAX_ITEMS,
    MODEL_LIMIT,
    RULES_LIMIT,
    AnalysisTool,
    Output,
    Plan,
    Source,
    excerpt,
)
from vivavoce.penelope.tools.claims import LIMITS, Claim, claim, claims
from vivavoce.penelope.tools.tool import ToolResult

SURE = 2 / 3
"""The share of a fact's words beside which other figures contradict it; beside fewer, that is unclear."""

COVERED = 0.8
"""The share of a fact's words from which a sentence without other figures states it."""


class FactVerdict(BaseModel):
    """What a reply says of one fact; `quote` is copied from the reply, empty where it does not mention the fact."""

    model_config = ConfigDict(extra="forbid")

    fact: int
    verdict: Literal["supported", "contradicted", "not mentioned", "unclear"]
    quote: str


class FactsResult(BaseModel):
    """What the model says of each fact."""

    model_config = ConfigDict(extra="forbid")

    verdicts: list[FactVerdict]


class CheckFactsTool(AnalysisTool):
    """Compares a reply with facts: those of the call, else the tool's own, else those of the test.

    Each fact is `supported`, `contradicted`, `not mentioned`, or `unclear`, with the words that show it as `evidence`.
    By rules, a sentence supports a fact when it has its figures, and most of its words; it contradicts one when it has
    other figures of the same kind with the same words. If only one of the two is a denial, or few of the words are the
    same, it is unclear. What a model quotes is `verified` to be in the reply, or marked as not.
    """

    name = "check_facts"
    description = "Compare an answer of the assistant with what is known to be true."
    when_to_use = "when an answer states figures, dates or conditions whose right values you know."
    when_not_to_use = "with facts that you only guess."
    examples = 'good: {"facts": ["Returns are accepted within 30 days"]}; bad: {"facts": ["the answer is good"]}'
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "facts": {
                "type": "array",
                "items": {"type": "string"},
                "description": "a sentence each; left out: what the user knows",
            },
            "response_text": {"type": "string", "description": "left out: the latest answer"},
        },
        "additionalProperties": False,
    }

    def __init__(self, facts: Mapping[str, str] | None = None, model: ModelLike | None = None) -> None:
        super().__init__(model)
        self.facts = None if facts is None else dict(facts)

    def execute(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, response_text: str | None = None, facts: Sequence[str] | None = None
    ) -> ToolResult:
        """Compare a reply with facts."""
        return wait_for(self.aexecute(response_text, facts))

    async def aexecute(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, response_text: str | None = None, facts: Sequence[str] | None = None
    ) -> ToolResult:
        """Compare a reply with facts."""
        return await self.carry_out(partial(self._plan, response_text, facts))

    def _plan(self, response_text: object, facts_of_call: object) -> Plan[FactsResult]:
        text, facts = self.reply(response_text), self._facts(facts_of_call)[:MAX_ITEMS]
        if not facts:
            raise UsageError("no facts to compare with; give facts as a list of sentences")
        return Plan(
            prompt="check_facts",
            values={"response": text[:MODEL_LIMIT], "facts": [f"{i}: {fact}" for i, fact in enumerate(facts)]},
            shape=FactsResult,
            read=partial(_output_of, text, facts),
            rules=partial(_compare_facts, text[:RULES_LIMIT], facts),
            length=len(text),
        )

    def _facts(self, facts_of_call: object) -> list[str]:
        for source in (facts_of_call, self.facts):
            if source is not None and (facts := _list_facts(source)):
                return facts
        return [] if self.state is None else _of_test(self.state)


def _of_test(state: TestState) -> list[str]:
    more: object = (state.context.context or {}).get("facts")
    return [*_list_facts(state.context.facts), *([] if more is None else _list_facts(more))]


def _list_facts(facts: object) -> list[str]:
    """Return facts as sentences; a name with its value is one.

    Raises:
        UsageError: they are neither a text, a list, nor a mapping.
    """
    if isinstance(facts, str):
        facts = [facts]
    if isinstance(facts, Mapping):
        by_name = cast("Mapping[object, object]", facts)
        facts = [f"{name}: {value}" for name, value in by_name.items()]
    if not isinstance(facts, Sequence):
        raise UsageError(f"facts is a list of texts, got a {type(facts).__name__}")
    texts = [str(fact)[:1000] for fact in cast("Sequence[object]", facts)]
    return [fact for fact in texts if fact.strip()]


def _compare_facts(text: str, facts: Sequence[str]) -> Output:
    sentences = claims(text)
    verdicts: list[Output] = []
    for fact in facts:
        verdict, evidence = _judge_fact(claim(fact), sentences)
        verdicts.append({"fact": fact, "verdict": verdict, "evidence": evidence and excerpt(evidence)})
    return {"facts": verdicts, "findings": [_finding(verdict) for verdict in verdicts], "note": LIMITS}


def _judge_fact(fact: Claim, sentences: Sequence[Claim]) -> tuple[str, str | None]:
    """Return the verdict on a fact by the sentence that has most of its words; one that supports it counts first."""
    near = sorted(
        (sentence for sentence in sentences if sentence.is_about(fact)), key=lambda claim: -claim.covers(fact)
    )
    saying = [sentence for sentence in near if _states(sentence, fact)]
    for sentence in saying:
        if sentence.denies == fact.denies:
            return "supported", sentence.text
    differing = [sentence for sentence in near if sentence.differs_from(fact)]
    for sentence in differing:
        if sentence.covers(fact) >= SURE:
            return "contradicted", sentence.text
    doubtful = saying or differing
    return ("unclear", doubtful[0].text) if doubtful else ("not mentioned", None)


def _states(sentence: Claim, fact: Claim) -> bool:
    if fact.figures:
        return sentence.has_figures_of(fact)
    return sentence.covers(fact) >= COVERED


def _finding(verdict: Mapping[str, Any]) -> str:
    evidence = f' ("{verdict["evidence"]}")' if verdict["evidence"] else ""
    doubt = "" if verdict.get("verified", True) else " (not verified: the quote does not stand in the answer)"
    return f"Fact {verdict['verdict']}: {excerpt(verdict['fact'])}{evidence}{doubt}"


def _output_of(text: str, facts: Sequence[str], answer: FactsResult) -> Output:
    source = Source(text)
    by_fact = {judged.fact: judged for judged in reversed(answer.verdicts)}
    verdicts: list[Output] = []
    for i, fact in enumerate(facts):
        judged = by_fact.get(i)
        if judged is None:
            verdicts.append({"fact": fact, "verdict": "not judged", "evidence": None, "verified": True})
            continue
        needed = judged.verdict in ("supported", "contradicted") or bool(judged.quote)
        verified = source.holds(judged.quote) if needed else True
        verdicts.append(
            {"fact": fact, "verdict": judged.verdict, "evidence": excerpt(judged.quote) or None, "verified": verified}
        )
    return {"facts": verdicts, "findings": [_finding(judged) for judged in verdicts]}
