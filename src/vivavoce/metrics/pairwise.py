"""`PairwiseJudge`: which of two conversations is better, asked in both orders, so that a position cannot win."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.errors import BudgetExhausted, ModelFault
from vivavoce.messages import AnyMessage, HumanMessage, SystemMessage
from vivavoce.metrics.evidence import Checker
from vivavoce.metrics.metric import Conversation, evaluation_input
from vivavoce.metrics.prompts import HERE, read_prompt
from vivavoce.metrics.question import Shape
from vivavoce.metrics.result import Evidence
from vivavoce.metrics.transcript import EVERYTHING, Shown, Transcript, transcript
from vivavoce.models.custom import ModelLike, as_model
from vivavoce.models.model import Model, ModelReply, Request, identity_of
from vivavoce.models.names import DefaultJudge
from vivavoce.pacing.loops import wait_for
from vivavoce.records.score import Failure, State, Usage, failure_of, shorten, usage_of

Winner = Literal["first", "second", "tie"]
Position = Literal["A", "B"]


class PairwiseReply(Shape):
    """What the judge answers."""

    evidence_a: list[str]
    evidence_b: list[str]
    reasoning: str
    better: Literal["A", "B", "tie"]
    confidence: float = Field(ge=0, le=1)


class PairVerdict(BaseModel):
    """What the judge said in one order; `first_was` is where the first conversation stood."""

    model_config = ConfigDict(frozen=True)

    first_was: Position
    better: Literal["A", "B", "tie"]
    winner: Winner
    reasoning: str
    confidence: float
    evidence_first: tuple[Evidence, ...] = ()
    evidence_second: tuple[Evidence, ...] = ()


class Comparison(BaseModel):
    """Which of two conversations is better, None unless `state` is `scored`.

    A winner wins in both orders; where the verdicts differ, it is a tie and not `agreed`. `favoured` is the position
    that won in both orders, whichever conversation stood there: the bias of the judge.
    """

    model_config = ConfigDict(frozen=True)

    winner: Winner | None
    state: State = "scored"
    agreed: bool | None = None
    favoured: Position | None = None
    reasoning: str | None = None
    verdicts: tuple[PairVerdict, ...] = ()
    error: Failure | None = None
    usage: Usage | None = None
    fingerprint: str | None = None


class PairwiseJudge:
    """Compares conversations two by two; without a model a comparison is skipped, and one failed call is an error.

    `criteria` say what counts; without them it is the goal, and how well the user was served. `prompt` is another
    template, as text or as a path, and `blocks` are parts of it by name. Conversations are shown whole, never cut.
    """

    version = "2"

    def __init__(
        self,
        model: ModelLike | None = None,
        *,
        criteria: str | Sequence[str] = (),
        shown: Shown = EVERYTHING,
        prompt: str | Path | None = None,
        blocks: Mapping[str, str] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = None if model is None else as_model(model)
        self._default = DefaultJudge()
        self.criteria = (criteria,) if isinstance(criteria, str) else tuple(criteria)
        self.shown = shown
        self.settings: Mapping[str, Any] = {"temperature": 0.0, **(settings or {})}
        self.prompt = read_prompt("pairwise.jinja", frozenset(("goal", "criteria")), prompt, blocks or {})

    def compare(
        self, first: Conversation, second: Conversation, goal: str | None = None, *, policy: str | None = None
    ) -> Comparison:
        """Say which of two conversations, as objects or messages, is better; works in a running loop too.

        `policy` has the rules for the assistant in both.

        Raises:
            ValueError: the messages are malformed.
            BudgetExhausted: a limit on calls or cost is reached.
        """

        async def once() -> Comparison:
            try:
                return await self.acompare(first, second, goal, policy=policy)
            finally:
                await self.close()

        return wait_for(once())

    async def acompare(
        self, first: Conversation, second: Conversation, goal: str | None = None, *, policy: str | None = None
    ) -> Comparison:
        """Async version of `compare`."""
        if self.judge is None:
            reason = "needs a judge: give a model, or set VIVAVOCE_JUDGE"
            return Comparison(winner=None, state="skipped", reasoning=reason)
        sides = [_Side(evaluation_input(conversation).messages, self.shown) for conversation in (first, second)]
        for side, which in zip(sides, ("first", "second"), strict=True):
            if not side.messages:
                return Comparison(winner=None, state="skipped", reasoning=f"the {which} conversation is empty")
        task = self.prompt.render({"goal": goal, "criteria": self.criteria}).rstrip()
        rules = transcript((), self.shown, policy).text() if policy and self.shown.policy else ""
        answers = await asyncio.gather(*(self._ask(sides, rules, task, where) for where in ("A", "B")))
        usage = sum((used for _, used in answers if used), Usage()) if any(used for _, used in answers) else None
        verdicts = tuple(verdict for verdict, _ in answers if isinstance(verdict, PairVerdict))
        failures = [error for error, _ in answers if isinstance(error, Exception)]
        known: dict[str, Any] = {"verdicts": verdicts, "usage": usage, "fingerprint": self.fingerprint}
        if failures:
            failure = failure_of(failures[0], "judge")
            return Comparison(winner=None, state="error", error=failure, reasoning=failure.message, **known)
        return _decided(*verdicts, **known)

    async def close(self) -> None:
        """Close the connections of the judge; a later question opens new ones."""
        if self.model is not None:
            await self.model.close()
        await self._default.close()

    @property
    def judge(self) -> Model | None:
        """The model that is asked: the given one, else the one that VIVAVOCE_JUDGE names."""
        return self._default.model if self.model is None else self.model

    @property
    def fingerprint(self) -> str:
        """A hash of everything that decides the verdicts: the prompt, the criteria, the model, the settings."""
        request = [self.version, _instructions().text, self.prompt.hash, self.criteria, repr(self.shown)]
        text = json.dumps([*request, self.judge and identity_of(self.judge), dict(self.settings)], default=str)
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    async def _ask(
        self, sides: Sequence[_Side], rules: str, task: str, first_was: Position
    ) -> tuple[PairVerdict | Exception, Usage | None]:
        judge = self.judge
        assert judge is not None
        a, b = sides if first_was == "A" else reversed(sides)
        words = f"{rules}conversation A\n{a.transcript.text()}conversation B\n{b.transcript.text()}{task}"
        messages = [_instructions(), HumanMessage(content=words)]
        usage: Usage | None = None
        try:
            reply = await judge.complete(Request(messages, schema=PairwiseReply, settings=self.settings))
            usage = reply.usage
            return _verdict(_parsed(reply), sides, first_was), usage
        except BudgetExhausted:
            raise
        except Exception as error:
            return error, usage or usage_of(error)


def compare_conversations(
    first: Conversation,
    second: Conversation,
    goal: str | None = None,
    *,
    policy: str | None = None,
    model: ModelLike | None = None,
    criteria: str | Sequence[str] = (),
) -> Comparison:
    """Say which of two conversations is better, asking the model twice with their positions swapped.

    Raises:
        ValueError: the messages are malformed.
        BudgetExhausted: a limit on calls or cost is reached.
    """
    return PairwiseJudge(model, criteria=criteria).compare(first, second, goal, policy=policy)


async def acompare_conversations(
    first: Conversation,
    second: Conversation,
    goal: str | None = None,
    *,
    policy: str | None = None,
    model: ModelLike | None = None,
    criteria: str | Sequence[str] = (),
) -> Comparison:
    """Async version of `compare_conversations`."""
    return await PairwiseJudge(model, criteria=criteria).acompare(first, second, goal, policy=policy)


def position_bias(comparisons: Iterable[Comparison]) -> dict[str, int]:
    """Count how comparisons came out: `agreed` in both orders, won by position `A` or `B` in both, or `undecided`.

    Errors and skipped comparisons are counted under their state.
    """
    counts = Counter({"agreed": 0, "A": 0, "B": 0, "undecided": 0, "error": 0, "skipped": 0})
    for comparison in comparisons:
        counts[
            comparison.state
            if comparison.state != "scored"
            else "agreed"
            if comparison.agreed
            else comparison.favoured or "undecided"
        ] += 1
    return dict(counts)


class _Side:
    """One of the two conversations."""

    def __init__(self, messages: Sequence[AnyMessage], shown: Shown) -> None:
        self.messages = messages
        self.transcript: Transcript = transcript(messages, shown)
        self.checker = Checker(messages, self.transcript)


def _parsed(reply: ModelReply) -> PairwiseReply:
    if reply.parsed is None:
        raise ModelFault("the judge gave no verdict", kind="format", evidence=shorten(reply.text))
    try:
        return PairwiseReply.model_validate(reply.parsed)
    except ValueError as error:
        message = f"the judge's answer cannot be used: {error}"
        raise ModelFault(message, kind="format", evidence=shorten(reply.text)) from error


def _verdict(reply: PairwiseReply, sides: Sequence[_Side], first_was: Position) -> PairVerdict:
    quotes = [reply.evidence_a, reply.evidence_b]
    first, second = quotes if first_was == "A" else reversed(quotes)
    return PairVerdict(
        first_was=first_was,
        better=reply.better,
        winner="tie" if reply.better == "tie" else "first" if reply.better == first_was else "second",
        reasoning=reply.reasoning,
        confidence=reply.confidence,
        evidence_first=tuple(sides[0].checker.checked(first)),
        evidence_second=tuple(sides[1].checker.checked(second)),
    )


def _decided(first: PairVerdict, second: PairVerdict, **known: Any) -> Comparison:
    agreed = first.winner == second.winner
    if agreed:
        return Comparison(winner=first.winner, agreed=True, reasoning=first.reasoning, **known)
    favoured = first.better if first.better != "tie" and first.better == second.better else None
    why = f"position {favoured} won in both orders" if favoured else "the verdict depends on the order"
    reason = f"a tie, for {why}: {first.winner} ({first.reasoning}) against {second.winner} ({second.reasoning})"
    return Comparison(winner="tie", agreed=False, favoured=favoured, reasoning=reason, **known)


@cache
def _instructions() -> SystemMessage:
    return SystemMessage(content=(HERE / "pairwise.txt").read_text(encoding="utf-8").rstrip("\n"))
