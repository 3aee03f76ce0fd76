"""`AnalyzeTool`: what a reply is like, with regard to something."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.pacing.waiting import wait_for
from vivavoce.penelope.tools import observations
from vivavoce.penelope.tools.analysis import LISTED, READ, SHOWN, AnalysisTool, Output, Plan, excerpt, heard, text_of
from vivavoce.penelope.tools.sentences import stem, words
from vivavoce.penelope.tools.tool import ToolResult


class AnalysisResult(BaseModel):
    """What the model says of a reply; `completeness_score` is how much of the focus it answers, from 0 to 1."""

    model_config = ConfigDict(extra="forbid")

    findings: list[str] = Field(description="what the reply claims, and what was noticed with regard to the focus")
    sentiment: str = Field(description="positive, neutral, negative or mixed")
    completeness_score: float = Field(ge=0, le=1)
    concerns: list[str] = Field(description="gaps, contradictions, risks; empty for none")
    next_steps: list[str] = Field(description="what the user could say next")


class AnalyzeTool(AnalysisTool):
    """Looks at the length, tone and structure of a reply, and at what it does with regard to a focus.

    By rules, `sentiment` is a number from -1 to 1 by an English lexicon; a model names it. Only a model also gives
    `completeness`, `concerns` and `recommendations`.
    """

    name = "analyze_response"
    description = "Look at the assistant's latest answer, or another text: length, tone, structure, what it does."
    when_to_use = "when an answer is long or evasive, states rules, or should keep to what was said before."
    when_not_to_use = "for a plain yes or no, or twice on the same answer with the same focus."
    examples = 'good: {"analysis_focus": "are the refund conditions stated?"}; bad: {"analysis_focus": "analyze"}'
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "analysis_focus": {"type": "string", "description": "what to look for"},
            "response_text": {"type": "string", "description": "left out: the assistant's latest answer"},
            "context": {"type": "string", "description": "what the answer should take up"},
        },
        "required": ["analysis_focus"],
        "additionalProperties": False,
    }

    def execute(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, response_text: str | None = None, analysis_focus: str = "", context: str = ""
    ) -> ToolResult:
        """Analyse a reply."""
        return wait_for(self.aexecute(response_text, analysis_focus, context))

    async def aexecute(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, response_text: str | None = None, analysis_focus: str = "", context: str = ""
    ) -> ToolResult:
        """Analyse a reply."""
        return await self.carry_out(partial(self._plan, response_text, analysis_focus, context))

    def _plan(self, response_text: object, analysis_focus: object, context: object) -> Plan[AnalysisResult]:
        text = self.reply(response_text)
        focus, given = text_of("analysis_focus", analysis_focus), text_of("context", context)
        earlier = [given] if given else self._earlier(text)
        return Plan(
            prompt="analyze",
            values={"response": text[:SHOWN], "focus": focus[:SHOWN], "earlier": _latest(earlier, SHOWN)},
            shape=AnalysisResult,
            read=_read,
            rules=partial(_observed, text[:READ], focus[:READ], _latest(earlier, READ)),
            length=len(text),
        )

    def _earlier(self, text: str) -> list[str]:
        """Return what was said before the turn in which a text was replied."""
        turns = [] if self.state is None else heard(self.state)
        place = max((i for i, turn in enumerate(turns) if turn.reply == text), default=len(turns))
        return [said for turn in turns[:place] for said in (turn.message, turn.reply) if said]


def _latest(earlier: list[str], room: int) -> list[str]:
    """Return the last of what was said before, so many characters of it."""
    shown: list[str] = []
    for one in reversed(earlier):
        if room <= 0:
            break
        shown.insert(0, one[:room])
        room -= len(one)
    return shown


def _read(answer: AnalysisResult) -> Output:
    return {
        "findings": [excerpt(one) for one in answer.findings[:LISTED]],
        "sentiment": excerpt(answer.sentiment),
        "completeness": answer.completeness_score,
        "concerns": [excerpt(one) for one in answer.concerns[:LISTED]],
        "recommendations": [excerpt(one) for one in answer.next_steps[:LISTED]],
    }


_POLICY = "policy rule term condition refund return warranty eligible deadline timeframe allow require fee"
_CONTEXT = "context earlier previous before remember maintain retain memory consistent history keep kept"
_ABOUT_POLICY = frozenset(map(stem, _POLICY.split()))
_ABOUT_CONTEXT = frozenset(map(stem, _CONTEXT.split()))
_DEEDS: tuple[tuple[Callable[[str], str | None], frozenset[str], str], ...] = (
    (observations.refusal, frozenset(map(stem, ("refusal", "refuse", "decline", "reject", "comply"))), "Refusal: none"),
    (observations.question, frozenset(map(stem, ("question", "ask", "clarify"))), "Question asked back: none"),
    (observations.hedging, frozenset(map(stem, ("hedge", "certain", "sure", "confident", "vague"))), "Hedging: none"),
)
"""What is always looked for, the focus that asks for it, and what that focus is told where there is none."""


_CHECKS = _ABOUT_CONTEXT.union(
    *(wanted for _, wanted, _ in _DEEDS), map(stem, ("policy", "tone", "length", "structure"))
)
"""Words of a focus that ask for a check, and are not to be expected in a reply."""


def _observed(text: str, focus: str, earlier: list[str]) -> Output:
    asked = {stem(word) for word in words(focus)}
    told_tone, felt = observations.tone(text)
    findings: list[str | None] = [observations.length(text), told_tone, observations.structure(text)]
    if not asked or asked & _ABOUT_POLICY:
        findings.append(observations.policy(text))
    if earlier or asked & _ABOUT_CONTEXT:
        findings.append(observations.context_kept(text, earlier))
    for look, wanted, none in _DEEDS:
        findings.append(look(text) or (none if asked & wanted else None))
    findings.append(observations.coverage(text, focus, _CHECKS))
    return {"findings": [one for one in findings if one], "sentiment": None if felt is None else round(felt, 4)}
