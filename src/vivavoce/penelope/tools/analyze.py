"""`AnalyzeTool`: length, tone and structure of a reply, with regard to a focus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.pacing.loops import wait_for
from vivavoce.penelope.tools import observations
from vivavoce.penelope.tools.analysis import (
    MAX_ITEMS,
    MODEL_LIMIT,
    RULES_LIMIT,
    AnalysisTool,
    Output,
    Plan,
    excerpt,
    remembered_turns,
    text_of,
)
from vivavoce.penelope.tools.sentences import stem, words
from vivavoce.penelope.tools.tool import ToolResult


class AnalysisResult(BaseModel):
    """What the model says of a reply; `completeness_score` is how much of the focus it answers, from 0 to 1."""

    model_config = ConfigDict(extra="forbid")

    findings: list[str] = Field(description="what the reply claims, and what was noticed with regard to the focus")
    sentiment: Literal["positive", "neutral", "negative", "mixed"]
    completeness_score: float = Field(ge=0, le=1)
    concerns: list[str] = Field(description="gaps, contradictions, risks; empty for none")
    next_steps: list[str] = Field(description="what the user could say next")


class AnalyzeTool(AnalysisTool):
    """Looks at the length, tone and structure of a reply, and at what it does with regard to a focus.

    Rules give `sentiment` from -1 to 1 by an English lexicon; a model names it. Only a model also gives
    `completeness`, `concerns` and `recommendations`.
    """

    name = "analyze_response"
    description = "Look at an answer of the assistant: its length, tone and structure, and what it does."
    when_to_use = "when an answer is long or evasive, or states rules."
    when_not_to_use = "for a plain yes or no."
    examples = 'good: {"analysis_focus": "are the refund conditions stated?"}; bad: {"analysis_focus": "analyze"}'
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "analysis_focus": {"type": "string", "description": "what to look for"},
            "response_text": {"type": "string", "description": "left out: the latest answer"},
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
        focus, context_text = text_of("analysis_focus", analysis_focus), text_of("context", context)
        earlier = [context_text] if context_text else self._earlier(text)
        return Plan(
            prompt="analyze",
            values={
                "response": text[:MODEL_LIMIT],
                "focus": focus[:MODEL_LIMIT],
                "earlier": _latest(earlier, MODEL_LIMIT),
            },
            shape=AnalysisResult,
            read=_output_of,
            rules=partial(_observe, text[:RULES_LIMIT], focus[:RULES_LIMIT], _latest(earlier, RULES_LIMIT)),
            length=len(text),
        )

    def _earlier(self, text: str) -> list[str]:
        """Return the messages before the turn whose reply is this text."""
        turns = [] if self.state is None else remembered_turns(self.state)
        place = max((i for i, turn in enumerate(turns) if turn.reply == text), default=len(turns))
        return [text_of_turn for turn in turns[:place] for text_of_turn in (turn.message, turn.reply) if text_of_turn]


def _latest(earlier: list[str], room: int) -> list[str]:
    """Return the latest of these texts, at most `room` characters of them."""
    latest: list[str] = []
    for text in reversed(earlier):
        if room <= 0:
            break
        latest.insert(0, text[:room])
        room -= len(text)
    return latest


def _output_of(answer: AnalysisResult) -> Output:
    return {
        "findings": [excerpt(finding) for finding in answer.findings[:MAX_ITEMS]],
        "sentiment": answer.sentiment,
        "completeness": answer.completeness_score,
        "concerns": [excerpt(concern) for concern in answer.concerns[:MAX_ITEMS]],
        "recommendations": [excerpt(next_step) for next_step in answer.next_steps[:MAX_ITEMS]],
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
"""What is always searched for, the words of a focus that ask for it, and the finding for that if there is none."""


_CHECKS = _ABOUT_CONTEXT.union(
    *(stems_of_focus for _, stems_of_focus, _ in _DEEDS), map(stem, ("policy", "tone", "length", "structure"))
)
"""Words of a focus that ask for a check, and are not expected in a reply."""


def _observe(text: str, focus: str, earlier: list[str]) -> Output:
    focus_stems = {stem(word) for word in words(focus)}
    tone, sentiment = observations.tone(text)
    findings: list[str | None] = [observations.length(text), tone, observations.structure(text)]
    if not focus_stems or focus_stems & _ABOUT_POLICY:
        findings.append(observations.policy(text))
    if earlier or focus_stems & _ABOUT_CONTEXT:
        findings.append(observations.context_kept(text, earlier))
    for look, stems, none in _DEEDS:
        findings.append(look(text) or (none if focus_stems & stems else None))
    findings.append(observations.coverage(text, focus, _CHECKS))
    return {
        "findings": [finding for finding in findings if finding],
        "sentiment": None if sentiment is None else round(sentiment, 4),
    }
