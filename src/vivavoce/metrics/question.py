"""Questions to judges about pieces of a conversation, their answers, and the steps in which a metric asks.

A metric does not ask its judge itself. It yields an `Ask`, gets the answers, and goes on until it returns its result.
Whoever carries out a plan decides how a question is answered: at once, jointly with those of other metrics, or, of a
conversation that grows, from earlier answers.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, create_model

from vivavoce.errors import ModelFault
from vivavoce.messages import AIMessage, HumanMessage
from vivavoce.metrics.config import Scope
from vivavoce.metrics.evidence import Checker
from vivavoce.metrics.transcript import CHARACTERS_PER_TOKEN, Transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.model import Model, ModelReply, Request, all_of, ask_all
from vivavoce.records.score import Evidence, Finding, FindingState, Usage, total
from vivavoce.user_code import foreign_code
from vivavoce.validation import construct


@dataclass(frozen=True, slots=True)
class Piece:
    """Turns `first` up to and not including `last`, of which the last `judged` are judged; the others are context."""

    first: int
    last: int
    judged: int


def cut(transcript: Transcript, scope: Scope, window: int, tokens: int, overlap: int, since: int = 0) -> list[Piece]:
    """Return the pieces of a conversation.

    For each turn: that turn with the ones before it as context, or a window of up to `window` turns that ends with it;
    else the whole. What takes more than `tokens` is cut: a context to its latest turns, a whole conversation into
    pieces that share up to `overlap` turns. A turn that alone takes more is still one piece, for a turn is never cut.
    Pieces that end in one of the first `since` turns are left out; a whole conversation has no such pieces.
    """
    count = len(transcript.turns)
    if scope == "conversation":
        return _split(transcript, tokens, overlap)
    size = count if scope == "turn" else window
    whole = scope == "window"
    pieces: list[Piece] = []
    for last in range(since + 1, count + 1):
        first = _fitting(transcript, max(0, last - size), last, tokens)
        pieces.append(Piece(first, last, last - first if whole else 1))
    return pieces


def _split(transcript: Transcript, tokens: int, overlap: int) -> list[Piece]:
    count, room = len(transcript.turns), _room(transcript, tokens)
    sizes = [sum(map(len, lines)) for lines in transcript.turns]
    if sum(sizes) <= room:
        return [Piece(0, count, count)]
    pieces: list[Piece] = []
    first = judged_to = 0
    while True:
        last, used = first, 0
        while last < count and (last == first or used + sizes[last] <= room):
            used += sizes[last]
            last += 1
        if last == judged_to < count:  # the overlap leaves no room for the next turn
            first += 1
            continue
        pieces.append(Piece(first, last, last - judged_to))
        if last >= count:
            return pieces
        judged_to = last
        first = max(first + 1, last - overlap)


def _fitting(transcript: Transcript, first: int, last: int, tokens: int) -> int:
    room = _room(transcript, tokens) - transcript.size(last - 1)
    start = last - 1
    while start > first and (room := room - transcript.size(start - 1)) >= 0:
        start -= 1
    return start


def _room(transcript: Transcript, tokens: int) -> int:
    return tokens * CHARACTERS_PER_TOKEN - sum(map(len, transcript.opening))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The meaning of one answer of a judge; `turns` is how many turns it is about.

    The score is None where there was nothing to judge, and the reasoning says so. Where a conversation is judged in
    pieces, `turns` is what this one weighs: its turns, or as many things as the judge found in it. `evidence` is what
    it rests on besides its findings, and `extra` what only this metric knows.
    """

    score: float | str | bool | None
    reasoning: str
    confidence: float | None = None
    findings: Sequence[Finding] = ()
    evidence: Sequence[Evidence] = ()
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    turns: int = 1


def merged(
    score: float | str | None, verdicts: Sequence[Verdict], findings: Sequence[Finding] | None = None, **extra: object
) -> Verdict:
    """Return the verdict with that score whose reasons are those of all pieces, and its findings theirs."""
    sure = [verdict.confidence for verdict in verdicts if verdict.confidence is not None]
    return Verdict(
        score,
        "\n".join(verdict.reasoning for verdict in verdicts),
        min(sure) if sure else None,
        [finding for verdict in verdicts for finding in verdict.findings] if findings is None else findings,
        list(dict.fromkeys(quote for verdict in verdicts for quote in verdict.evidence)),
        extra,
        sum(verdict.turns for verdict in verdicts),
    )


@dataclass(frozen=True, slots=True)
class Question:
    """One question to a judge; the evidence of its answer can be looked up with `checker`.

    `task` is what the metric says in the request, besides the conversation that stands there too.
    """

    request: Request
    task: str
    metric_input: MultiTurnEvaluationInput
    checker: Checker
    piece: Piece

    @property
    def shape(self) -> type[BaseModel]:
        """The class that the answer must match."""
        assert isinstance(self.request.schema, type)
        return self.request.schema

    def repaired(self, answer: ModelReply, problem: str) -> Question:
        """Return the question with an answer to it and the request for a better one, which says what is wrong."""
        text = answer.text or json.dumps(answer.parsed, ensure_ascii=False)
        messages = [*self.request.messages, AIMessage(content=text), HumanMessage(content=problem)]
        return replace(self, request=replace(self.request, messages=messages))

    def reply_of(self, reply: ModelReply) -> BaseModel:
        """Return a reply as an instance of the class that it must match; most models have checked it already.

        Raises:
            ValidationError: it does not match.
        """
        shape, checked = self.request.schema, reply.checked
        if checked is not None and type(checked) is shape:
            return checked
        return self.shape.model_validate(reply.parsed, strict=True)

    def finding(
        self,
        kind: str,
        what: str,
        verdict: str,
        state: FindingState,
        evidence: Sequence[str] = (),
        turn: int | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> Finding:
        """Return a finding with its evidence looked up; without `turn` it gets that of the first verified quote."""
        checked = tuple(self.checker.checked(evidence, against=state in ("fail", "partial")))
        place = turn
        for quote in checked if turn is None else ():
            if quote.verified:
                place = quote.turn
                break
        fields = {"kind": kind, "what": what, "verdict": verdict, "state": state, "turn": place}
        return construct(Finding, {**fields, "evidence": checked, "data": dict(data or {})})


@dataclass(slots=True)
class Answer:
    """The reply of a judge to a question; `verdict` is set once the reply has been read.

    `is_supported` says that every claim in it was found to have evidence that counts.
    """

    question: Question
    reply: ModelReply
    verdict: Verdict | None = None
    is_supported: bool = False

    @property
    def usage(self) -> Usage | None:
        """The usage of the reply."""
        return self.reply.usage


T = TypeVar("T")


@dataclass(slots=True)
class Ask:
    """Ask a model some questions at once; the plan continues with the answers.

    `again` returns the question that must be asked in place of an answered one, None where the answer stands. With
    `leads` the answers decide what is asked next.
    """

    model: Model
    questions: Sequence[Question]
    again: Callable[[Answer], Question | None] | None = None
    leads: bool = False

    def done(self) -> Awaitable[list[Answer]]:
        """Return the answers, in the order of the questions.

        Raises:
            ModelFault: the first one that failed; all others have been waited for, and their usage is in it.
            BudgetExhausted: a limit on calls or cost is reached.
        """
        if len(self.questions) == 1:  # in the task of the plan, which is guarded against foreign code
            return self._ask(self.questions[0])
        return ask_all(map(self.answer, self.questions))

    async def answer(self, question: Question) -> Answer:
        """Return the answer to one question, or to the one that is asked in its place.

        Raises:
            ModelFault: the model failed, or did not answer in the shape asked for.
            BudgetExhausted: a limit on calls or cost is reached.
        """
        with foreign_code():
            (answer,) = await self._ask(question)
        return answer

    async def _ask(self, question: Question) -> list[Answer]:
        answer = Answer(question, await self.model.complete(question.request))
        second = None if self.again is None else self.again(answer)
        if second is None:
            return [answer]
        try:
            reply = await self.model.complete(second.request)
        except ModelFault:  # the first answer stands
            return [answer]
        return [Answer(question, replace(reply, usage=total((answer.usage, reply.usage))))]


@dataclass(slots=True)
class Call:
    """Wait for a call; the plan continues with what it returns."""

    call: Callable[[], Awaitable[object]]

    async def done(self) -> object:
        """Return what the call returns."""
        return await self.call()


@dataclass(slots=True)
class Together:
    """Carry out other plans at once; the plan continues with their results."""

    plans: Sequence[Plan[Any]]

    async def done(self) -> list[Any]:
        """Return the results, in the order of the plans."""
        return await all_of(map(carry_out, self.plans))


Step = Ask | Call | Together
Plan = Generator[Step, Any, T]


class Run(Generic[T]):
    """A plan under way: `step` is what it waits for, None when it is over."""

    __slots__ = ("_plan", "_result", "step")
    _result: T

    def __init__(self, plan: Plan[T]) -> None:
        self._plan = plan
        self.step: Step | None = None
        self.go_on(None)

    def go_on(self, answer: object) -> None:
        """Give the plan what it waits for."""
        try:
            self.step = self._plan.send(answer)
        except StopIteration as end:
            self.step, self._result = None, end.value

    def fail(self, error: BaseException) -> None:
        """Tell the plan that what it waits for failed."""
        try:
            self.step = self._plan.throw(error)
        except StopIteration as end:
            self.step, self._result = None, end.value

    @property
    def result(self) -> T:
        """The result of the plan.

        Raises:
            RuntimeError: the plan has not ended.
        """
        if self.step is not None:
            raise RuntimeError("the plan has not ended")
        return self._result

    async def finish(self) -> T:
        """Carry out the rest of the plan, and return its result."""
        if self.step is not None:
            self._result, self.step = await carry_out(self._plan, self.step), None
        return self._result


async def carry_out(plan: Plan[T], step: Step | None = None) -> T:
    """Carry out a plan, or the rest of it from a step on, and return its result."""
    try:
        step = step or next(plan)
        while True:
            try:
                answer = await step.done()
            except BaseException as error:
                step = plan.throw(error)
            else:
                step = plan.send(answer)
    except StopIteration as end:
        return end.value


def _without_description(schema: dict[str, Any]) -> None:
    schema.pop("description", None)


class Shape(BaseModel):
    """An answer, or a part of one, in which nothing else may stand.

    Its docstring is for those who read the code; what a judge has to know stands in the prompt.
    """

    model_config = ConfigDict(extra="forbid", json_schema_extra=_without_description)


S = TypeVar("S", bound=Shape)


def limited(shape: type[S], parts: str, part: type[Shape], field: str, values: tuple[str | int, ...]) -> type[S]:
    """Return the class of an answer that is a list of `parts`, a field of each of which is one of these values."""
    choice: dict[str, Any] = {field: (cast("Any", Literal)[values], ...)}
    listed: dict[str, Any] = {parts: (list[create_model(part.__name__, __base__=part, **choice)], ...)}
    return create_model(shape.__name__, __base__=shape, **listed)
