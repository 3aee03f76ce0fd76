"""`CompareTurnsTool`: what the target says in one turn and in another, and whether both can be true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict

from vivavoce.errors import UsageError
from vivavoce.pacing.loops import wait_for
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
from vivavoce.penelope.tools.claims import LIMITS, Claim, claims
from vivavoce.penelope.tools.sentences import words
from vivavoce.penelope.tools.tool import ToolResult
from vivavoce.penelope.turn import Turn


class Contradiction(BaseModel):
    """Two passages that cannot both be true, copied from the answers."""

    model_config = ConfigDict(extra="forbid")

    first: str
    second: str
    why: str


class ComparisonResult(BaseModel):
    """What the model says of two answers; `repeated` is what both state, `dropped` what only the first does."""

    model_config = ConfigDict(extra="forbid")

    contradictions: list[Contradiction]
    repeated: list[str]
    dropped: list[str]


class CompareTurnsTool(AnalysisTool):
    """Compares the replies of two turns, by default the last two in which the target said something.

    `similarity` is from 0 to 1, by the words deleted or inserted between the two. By rules, `contradictions`
    are sentences with the same words and other dates, sums or numbers; `repeated` and `dropped` are sentences with
    figures that the later turn repeats, or drops. Rules do not see a contradiction in words alone, as between
    "returns the sorted list" and "returns None"; a model does. Both quotes that a model gives are `verified` to be in
    the replies, or marked as not.

    Source: RapidFuzz, normalised indel similarity.
    """

    name = "compare_turns"
    description = "Compare the assistant's answers in two turns: what contradicts, is repeated, or is dropped."
    when_to_use = "when an answer seems to differ from an earlier one."
    when_not_to_use = "for turns about different things."
    examples = 'good: {"first": 1, "second": 4}; good: {} for the last two; bad: {"first": 2, "second": 2}'
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "first": {"type": "integer", "minimum": 1, "description": "a turn, counted from 1"},
            "second": {"type": "integer", "minimum": 1, "description": "another turn"},
        },
        "additionalProperties": False,
    }

    def execute(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, first: int | None = None, second: int | None = None
    ) -> ToolResult:
        """Compare two turns."""
        return wait_for(self.aexecute(first, second))

    async def aexecute(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, first: int | None = None, second: int | None = None
    ) -> ToolResult:
        """Compare two turns."""
        return await self.carry_out(partial(self._plan, first, second))

    def _plan(self, first: object, second: object) -> Plan[ComparisonResult]:
        earlier, later = self._turns(first, second)
        replies = earlier.reply, later.reply
        for_rules = earlier.reply[:RULES_LIMIT], later.reply[:RULES_LIMIT]
        return Plan(
            prompt="compare_turns",
            values={"first": earlier.reply[: MODEL_LIMIT // 2], "second": later.reply[: MODEL_LIMIT // 2]},
            shape=ComparisonResult,
            read=partial(_output_of, earlier.turn_number, later.turn_number, replies),
            rules=partial(_compare, earlier.turn_number, later.turn_number, for_rules),
            length=max(map(len, replies)),
        )

    def _turns(self, first: object, second: object) -> tuple[Turn, Turn]:
        """Return two turns in order.

        Raises:
            UsageError: there are no two such turns in which the target said something.
        """
        replied = {turn.turn_number: turn for turn in (self.state.turns if self.state else ()) if turn.reply.strip()}
        numbers = ", ".join(map(str, sorted(replied))) or "none"
        for name, number in (("first", first), ("second", second)):
            if number is not None and (
                isinstance(number, bool) or not isinstance(number, int) or number not in replied
            ):
                raise UsageError(f"{name} is the number of a turn with an answer ({numbers}), got {number!r}")
        turn_numbers = [number for number in (first, second) if isinstance(number, int)]
        turn_numbers += [number for number in sorted(replied, reverse=True) if number not in turn_numbers][
            : 2 - len(turn_numbers)
        ]
        if len(set(turn_numbers)) < 2:
            raise UsageError(f"give two different turns that have an answer, from: {numbers}")
        earlier, later = sorted(turn_numbers)
        return replied[earlier], replied[later]


def _similarity(texts: tuple[str, str]) -> float:
    from rapidfuzz.distance import Indel

    return round(Indel.normalized_similarity(words(texts[0]), words(texts[1])), 4)


def _compare(first: int, second: int, texts: tuple[str, str]) -> Output:
    before, after = claims(texts[0], only_figures=True), claims(texts[1], only_figures=True)
    contradictions: list[Output] = []
    repeated: list[str] = []
    dropped: list[str] = []
    for claim in before:
        near = [other for other in after if other.is_about(claim)]
        if any(other.has_figures_of(claim) for other in near):
            repeated.append(excerpt(claim.text))
        elif differing := next((other for other in near if other.differs_from(claim)), None):
            contradictions.append(_contradiction(claim, differing))
        else:
            dropped.append(excerpt(claim.text))
    output = _output(first, second, _similarity(texts), contradictions, repeated, dropped)
    return {**output, "note": LIMITS}


def _contradiction(earlier: Claim, later: Claim) -> Output:
    why = "; ".join(f"{theirs} became {ours}" for ours, theirs in later.differs_from(earlier))
    return {"first": excerpt(earlier.text), "second": excerpt(later.text), "why": why}


def _output_of(first: int, second: int, texts: tuple[str, str], answer: ComparisonResult) -> Output:
    before, after = Source(texts[0]), Source(texts[1])
    contradictions = [
        {
            **contradiction.model_dump(),
            "verified": before.holds(contradiction.first) and after.holds(contradiction.second),
        }
        for contradiction in answer.contradictions
    ]
    similarity = _similarity((texts[0][:RULES_LIMIT], texts[1][:RULES_LIMIT]))
    return _output(first, second, similarity, contradictions, answer.repeated, answer.dropped)


def _output(
    first: int,
    second: int,
    similarity: float,
    contradictions: Sequence[Output],
    repeated: Sequence[str],
    dropped: Sequence[str],
) -> Output:
    findings = [f"Turns {first} and {second}: {similarity:.0%} similar"]
    findings += [
        f'Possible contradiction: "{excerpt(contradiction["first"])}" and "{excerpt(contradiction["second"])}" '
        f"({excerpt(contradiction['why'])})"
        + ("" if contradiction.get("verified", True) else " (not verified: these words do not stand in both answers)")
        for contradiction in contradictions[:MAX_ITEMS]
    ]
    findings += [f"Repeated: {excerpt(sentence)}" for sentence in repeated[:5]]
    findings += [f"Dropped: {excerpt(sentence)}" for sentence in dropped[:5]]
    return {
        "turns": [first, second],
        "similarity": similarity,
        "contradictions": list(contradictions[:MAX_ITEMS]),
        "repeated": list(repeated[:MAX_ITEMS]),
        "dropped": list(dropped[:MAX_ITEMS]),
        "findings": findings,
    }
