"""`CompareTurnsTool`: what the target says in one turn and in another, and whether both can be true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict

from vivavoce.errors import UsageError
from vivavoce.pacing.waiting import wait_for
from vivavoce.penelope.tools.analysis import LISTED, READ, SHOWN, AnalysisTool, Output, Plan, Source, excerpt
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

    `similarity` is from 0 to 1, by the words deleted or inserted to make one of the other. By rules, `contradictions`
    are sentences with the same words and other dates, sums or numbers; `repeated` and `dropped` are sentences with
    figures that the later turn has again, or has not. Both readings of what a model quotes are `verified` to stand in
    the replies, or marked as not.

    Source: RapidFuzz, normalised indel similarity.
    """

    name = "compare_turns"
    description = "Compare the assistant's answers in two turns: what contradicts, what is repeated, what is dropped."
    when_to_use = "when you asked for the same thing again, or an answer seems to differ from an earlier one."
    when_not_to_use = "before the assistant answered twice, or for turns about different things."
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
        one, other = self._turns(first, second)
        replies = one.reply, other.reply
        read = one.reply[:READ], other.reply[:READ]
        return Plan(
            prompt="compare_turns",
            values={"first": one.reply[: SHOWN // 2], "second": other.reply[: SHOWN // 2]},
            shape=ComparisonResult,
            read=partial(_read, one.turn_number, other.turn_number, replies),
            rules=partial(_compared, one.turn_number, other.turn_number, read),
            length=max(map(len, replies)),
        )

    def _turns(self, first: object, second: object) -> tuple[Turn, Turn]:
        """Return two turns in order.

        Raises:
            UsageError: there are no two such turns in which the target said something.
        """
        said = {turn.turn_number: turn for turn in (self.state.turns if self.state else ()) if turn.reply.strip()}
        known = ", ".join(map(str, sorted(said))) or "none"
        for name, number in (("first", first), ("second", second)):
            if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number not in said):
                raise UsageError(f"{name} is the number of a turn with an answer ({known}), got {number!r}")
        chosen = [number for number in (first, second) if isinstance(number, int)]
        chosen += [number for number in sorted(said, reverse=True) if number not in chosen][: 2 - len(chosen)]
        if len(set(chosen)) < 2:
            raise UsageError(f"two different turns with an answer are needed; there are: {known}")
        earlier, later = sorted(chosen)
        return said[earlier], said[later]


def _similarity(texts: tuple[str, str]) -> float:
    from rapidfuzz.distance import Indel

    return round(Indel.normalized_similarity(words(texts[0]), words(texts[1])), 4)


def _compared(first: int, second: int, texts: tuple[str, str]) -> Output:
    before, after = claims(texts[0], only_figures=True), claims(texts[1], only_figures=True)
    contradictions: list[Output] = []
    repeated: list[str] = []
    dropped: list[str] = []
    for one in before:
        near = [other for other in after if other.is_about(one)]
        if any(other.has_figures_of(one) for other in near):
            repeated.append(excerpt(one.text))
        elif differing := next((other for other in near if other.differs_from(one)), None):
            contradictions.append(_contradiction(one, differing))
        else:
            dropped.append(excerpt(one.text))
    output = _output(first, second, _similarity(texts), contradictions, repeated, dropped)
    return {**output, "note": LIMITS}


def _contradiction(one: Claim, other: Claim) -> Output:
    why = "; ".join(f"{theirs} became {ours}" for ours, theirs in other.differs_from(one))
    return {"first": excerpt(one.text), "second": excerpt(other.text), "why": why}


def _read(first: int, second: int, texts: tuple[str, str], answer: ComparisonResult) -> Output:
    before, after = Source(texts[0]), Source(texts[1])
    contradictions = [
        {**one.model_dump(), "verified": before.holds(one.first) and after.holds(one.second)}
        for one in answer.contradictions
    ]
    similarity = _similarity((texts[0][:READ], texts[1][:READ]))
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
        f'Possible contradiction: "{excerpt(one["first"])}" and "{excerpt(one["second"])}" ({excerpt(one["why"])})'
        + ("" if one.get("verified", True) else " (not verified: these words do not stand in both answers)")
        for one in contradictions[:LISTED]
    ]
    findings += [f"Repeated: {excerpt(one)}" for one in repeated[:5]]
    findings += [f"Dropped: {excerpt(one)}" for one in dropped[:5]]
    return {
        "turns": [first, second],
        "similarity": similarity,
        "contradictions": list(contradictions[:LISTED]),
        "repeated": list(repeated[:LISTED]),
        "dropped": list(dropped[:LISTED]),
        "findings": findings,
    }
