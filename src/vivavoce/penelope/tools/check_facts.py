"""`CheckFactsTool`: does a reply say what is known to be true, something else, or nothing?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict

from vivavoce.errors import UsageError
from vivavoce.models.custom import ModelLike
from vivavoce.pacing.waiting import wait_for
from vivavoce.penelope.context import TestState
from vivavoce.penelope.tools.analysis import LISTED, READ, SHOWN, AnalysisTool, Output, Plan, Source, excerpt
from vivavoce.penelope.tools.claims import LIMITS, Claim, claim, claims
from vivavoce.penelope.tools.tool import ToolResult

SURE = 2 / 3
"""The share of a fact's words beside which other figures contradict it; beside fewer, that is unclear."""

SAID = 0.8
"""The share of a fact's words from which a sentence without other figures says it."""


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
    By rules, a sentence supports a fact when it has its figures, and most of its words; it contradicts it when it has
    other figures of the same kind beside the same words. Where only one of the two denies, or few of the words are the
    same, that is unclear. What a model quotes is `verified` to stand in the reply, or marked as not.
    """

    name = "check_facts"
    description = "Compare the assistant's latest answer, or another text, with facts known to be true."
    when_to_use = "when an answer states figures, dates or conditions that you know the right values of."
    when_not_to_use = "for opinions, or with facts that you only guess."
    examples = 'good: {"facts": ["Returns are accepted within 30 days"]}; bad: {"facts": ["the answer is good"]}'
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "facts": {
                "type": "array",
                "items": {"type": "string"},
                "description": "a sentence each; left out: the facts of the test",
            },
            "response_text": {"type": "string", "description": "left out: the assistant's latest answer"},
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

    def _plan(self, response_text: object, given: object) -> Plan[FactsResult]:
        text, facts = self.reply(response_text), self._known(given)[:LISTED]
        if not facts:
            raise UsageError("there are no facts to compare with; give facts, a list of sentences")
        return Plan(
            prompt="check_facts",
            values={"response": text[:SHOWN], "facts": [f"{i}: {fact}" for i, fact in enumerate(facts)]},
            shape=FactsResult,
            read=partial(_read, text, facts),
            rules=partial(_compared, text[:READ], facts),
            length=len(text),
        )

    def _known(self, given: object) -> list[str]:
        for source in (given, self.facts):
            if source is not None and (listed := _listed(source)):
                return listed
        return [] if self.state is None else _of_test(self.state)


def _of_test(state: TestState) -> list[str]:
    more: object = (state.context.context or {}).get("facts")
    return [*_listed(state.context.facts), *([] if more is None else _listed(more))]


def _listed(facts: object) -> list[str]:
    """Return facts as sentences; a name and what it stands for are one.

    Raises:
        UsageError: they are neither a text, a list, nor a mapping.
    """
    if isinstance(facts, str):
        facts = [facts]
    if isinstance(facts, Mapping):
        named = cast("Mapping[object, object]", facts)
        facts = [f"{name}: {value}" for name, value in named.items()]
    if not isinstance(facts, Sequence):
        raise UsageError(f"facts is a list of texts, got a {type(facts).__name__}")
    given = [str(one)[:1000] for one in cast("Sequence[object]", facts)]
    return [fact for fact in given if fact.strip()]


def _compared(text: str, facts: Sequence[str]) -> Output:
    said = claims(text)
    verdicts: list[Output] = []
    for fact in facts:
        verdict, evidence = _judged(claim(fact), said)
        verdicts.append({"fact": fact, "verdict": verdict, "evidence": evidence and excerpt(evidence)})
    return {"facts": verdicts, "findings": [_told(one) for one in verdicts], "note": LIMITS}


def _judged(fact: Claim, said: Sequence[Claim]) -> tuple[str, str | None]:
    """Return the verdict on a fact by the sentence that has most of its words; one that supports it counts first."""
    near = sorted((one for one in said if one.is_about(fact)), key=lambda one: -one.covers(fact))
    saying = [one for one in near if _says(one, fact)]
    for one in saying:
        if one.denies == fact.denies:
            return "supported", one.text
    differing = [one for one in near if one.differs_from(fact)]
    for one in differing:
        if one.covers(fact) >= SURE:
            return "contradicted", one.text
    doubtful = saying or differing
    return ("unclear", doubtful[0].text) if doubtful else ("not mentioned", None)


def _says(one: Claim, fact: Claim) -> bool:
    if fact.figures:
        return one.has_figures_of(fact)
    return one.covers(fact) >= SAID


def _told(one: Mapping[str, Any]) -> str:
    evidence = f' ("{one["evidence"]}")' if one["evidence"] else ""
    doubt = "" if one.get("verified", True) else " (not verified: the quote does not stand in the answer)"
    return f"Fact {one['verdict']}: {excerpt(one['fact'])}{evidence}{doubt}"


def _read(text: str, facts: Sequence[str], answer: FactsResult) -> Output:
    source = Source(text)
    given = {one.fact: one for one in reversed(answer.verdicts)}
    verdicts: list[Output] = []
    for i, fact in enumerate(facts):
        one = given.get(i)
        if one is None:
            verdicts.append({"fact": fact, "verdict": "not judged", "evidence": None, "verified": True})
            continue
        needed = one.verdict in ("supported", "contradicted") or bool(one.quote)
        verified = source.holds(one.quote) if needed else True
        verdicts.append(
            {"fact": fact, "verdict": one.verdict, "evidence": excerpt(one.quote) or None, "verified": verified}
        )
    return {"facts": verdicts, "findings": [_told(one) for one in verdicts]}
