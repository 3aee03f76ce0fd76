"""`StreamingEvaluator`: a conversation is judged while it grows, and only its new turns are paid for."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, Unpack

from vivavoce.errors import BudgetExhausted, ModelFault, UsageError
from vivavoce.messages import AIMessage, AnyMessage, ConversationHistory, HumanMessage, Message, read_messages
from vivavoce.metrics.evaluation import EvaluationReport, Known, Named, choose, spent
from vivavoce.metrics.metric import BaseMultiTurnMetric, evaluation_input
from vivavoce.metrics.panel import asking
from vivavoce.metrics.question import Answer, Ask, Question, Run, carry_out
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput, Reading
from vivavoce.models.custom import ModelLike
from vivavoce.models.model import ModelReply
from vivavoce.pacing.loops import wait_for
from vivavoce.records.score import Usage, total, turn_label, usage_of
from vivavoce.validation import shows_options

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Moment:
    """The results when a turn was complete; `turn` counts from 0, and is -1 where there was none yet.

    `results` holds what is new: of a metric that judges by turns or windows, the verdict about those that were added.
    """

    turn: int
    results: Mapping[str, MetricResult]


class StreamingEvaluator:
    """Judges one conversation while it grows; `feed` it message by message, turn by turn, or as it comes.

    A turn is complete when the assistant has answered without calling a tool, or when the next turn begins. A metric
    that judges by turns or windows is then asked about the new ones alone. One that judges the whole conversation is
    asked again after every `every` new turns, and by `finish` if there are any; one that asks no model is
    recomputed. What the assistant adds to a complete turn is judged, with that turn, when the next one begins. Feed
    messages sequentially, not concurrently.

    Raises:
        UsageError: a name is unknown, two metrics have the same, or one is made of others that judge by turns: these
            would be paid for again with every turn. Or a goal is judged by turns without its `outcomes`.
    """

    @shows_options
    def __init__(
        self,
        metrics: Sequence[Named],
        goal: str | None = None,
        *,
        every: int = 1,
        model: ModelLike | None = None,
        **known: Unpack[Known],
    ) -> None:
        if every < 1:
            raise UsageError(f"every must be at least 1 (judge every N turns); got {every}")
        chosen = self._metrics = choose(metrics, model)
        metric_input = evaluation_input([], goal=goal, **known)
        self._stream = Stream(metric_input)
        self.history: list[Moment] = []
        self._tracks = {metric.name: _track(metric, every, metric_input) for metric in chosen}
        self._latest: dict[str, MetricResult] = {}

    def feed(self, *messages: Mapping[str, Any] | Message) -> EvaluationReport | None:
        """Add messages; works inside a running loop too.

        Returns the latest result of each metric when a turn is complete, else None: about the new turns where a metric
        judges by turns or windows, else about the conversation so far.

        Raises:
            ValueError: the messages are malformed.
            BudgetExhausted: a limit on calls or cost is reached; what was not asked is asked with the next turn.
        """
        return wait_for(self._closing(self.afeed(*messages)))

    async def afeed(self, *messages: Mapping[str, Any] | Message) -> EvaluationReport | None:
        """Async version of `feed`."""
        if not self._stream.take(read_messages(messages)):
            return None
        await self._advance(final=False)
        return EvaluationReport({name: self._latest[name] for name in self._tracks if name in self._latest})

    def finish(self) -> EvaluationReport:
        """Take the conversation as complete; return the results for the whole of it.

        What a failed judge left open is asked again.

        Raises:
            BudgetExhausted: a limit on calls or cost is reached.
        """
        return wait_for(self._closing(self.afinish()))

    async def afinish(self) -> EvaluationReport:
        """Async version of `finish`."""
        self._stream.close()
        await self._advance(final=True)
        return self.results

    @property
    def results(self) -> EvaluationReport:
        """The results so far, each metric over everything it has judged."""
        results = {name: track.whole(self._stream) for name, track in self._tracks.items()}
        return EvaluationReport({name: result for name, result in results.items() if result is not None})

    @property
    def usage(self) -> Usage | None:
        """The usage of all judgements, including those that later ones replaced."""
        return spent(result for moment in self.history for result in moment.results.values())

    async def close(self) -> None:
        """Close the connections of the judges; a later question opens new ones."""
        for metric in self._metrics:
            await metric.close()

    async def _closing(self, once: Coroutine[Any, Any, T]) -> T:
        try:
            return await once
        finally:
            await self.close()

    async def _advance(self, final: bool) -> None:
        tracks = self._tracks.items()
        new = await asyncio.gather(*(track.advance(self._stream, final) for _, track in tracks))
        results = {name: result for (name, _), result in zip(tracks, new, strict=True) if result is not None}
        if results:
            self._latest |= results
            self.history.append(Moment(self._stream.turns - 1, results))


class Stream:
    """A conversation that grows, with its transcripts; nothing of it is written twice.

    `reading` is what metrics are given: always of the turns that are complete so far. `reopened` lists the turns that
    something was added to after they had been complete.
    """

    def __init__(self, metric_input: MultiTurnEvaluationInput) -> None:
        self._messages: list[AnyMessage] = []
        history = ConversationHistory.model_construct(messages=self._messages)
        self.reading = Reading(metric_input.model_copy(update={"conversation_history": history}))
        self.turns = 0
        self.reopened: list[int] = []
        self._open: list[AnyMessage] = []

    @property
    def metric_input(self) -> MultiTurnEvaluationInput:
        """What is known of the conversation, with its complete turns."""
        return self.reading.metric_input

    def know(self, **more: object) -> None:
        """Change what is known besides the conversation."""
        self.reading = self.reading.knowing(**more)

    def take(self, messages: Sequence[AnyMessage]) -> bool:
        """Add messages; say whether a turn was completed."""
        before = self.turns
        for message in messages:
            if isinstance(message, HumanMessage):
                self.close()
            self._open.append(message)
        last = self._open[-1] if self._open else None
        if isinstance(last, AIMessage) and not last.tool_calls and isinstance(self._open[0], HumanMessage):
            self.close()
        return self.turns > before

    def close(self) -> None:
        """Complete what was added last: a turn, the messages before the first one, or more of the last one."""
        part, self._open = self._open, []
        if not part:
            return
        self._messages += part
        for transcript in self.reading.transcripts:
            if isinstance(part[0], HumanMessage):
                transcript.add_turn(part)
            elif self.turns:
                transcript.extend_turn(part)
            else:
                transcript.add_opening(part)
        if isinstance(part[0], HumanMessage):
            self.turns += 1
        elif self.turns:
            self.reopened.append(self.turns - 1)


class _Track(Protocol):
    """The results of one metric so far."""

    async def advance(self, stream: Stream, final: bool) -> MetricResult | None:
        """Measure what is due; return the result of that, None where nothing is."""
        ...

    def whole(self, stream: Stream) -> MetricResult | None:
        """Return the result for all that was judged, None where nothing was."""
        ...


@dataclass(slots=True, eq=False)
class _Piece:
    """A question with its reply or the error; None where it has not been asked."""

    question: Question
    reply: ModelReply | Exception | None = None

    @property
    def usage(self) -> Usage | None:
        """The usage of the call."""
        return usage_of(self.reply) if isinstance(self.reply, Exception) else self.reply and self.reply.usage


class _ByPiece:
    """A metric that judges by turns or windows."""

    def __init__(self, metric: BaseMultiTurnMetric) -> None:
        self._metric = metric
        self._pieces: list[_Piece] = []
        self._due: list[_Piece] = []
        self._judged_turns = self._reopened_turns = 0
        self._last: MetricResult | None = None

    async def advance(self, stream: Stream, final: bool) -> MetricResult | None:
        self._reopen(stream)
        run = self._run(stream)
        ask = run.step
        if not isinstance(ask, Ask):
            before, self._last = self._last, await run.finish()
            return self._last if before is None or self._last.state != "skipped" else None
        new = [_Piece(question) for question in ask.questions]
        self._pieces += new
        self._due += new
        self._judged_turns = stream.turns
        if final:
            self._ask_again()
        await asyncio.gather(*(_answer(piece, ask) for piece in self._due if piece.reply is None))
        due, self._due = self._due, []
        self._last = _concluded(run, due)
        return self._last if due else None

    def whole(self, stream: Stream) -> MetricResult | None:
        if self._last is None:
            return None
        run = self._run(stream)
        return run.result if run.step is None else _concluded(run, self._pieces)

    def _run(self, stream: Stream) -> Run[MetricResult]:
        """Return the measurement of the turns that have not been asked about."""
        return Run(self._metric.plan_for(stream.reading.after(self._judged_turns)))

    def _reopen(self, stream: Stream) -> None:
        """Drop the answers about turns that have grown since."""
        if changed := stream.reopened[self._reopened_turns :]:
            self._reopened_turns = len(stream.reopened)
            self._judged_turns = min(self._judged_turns, *changed)
            self._pieces = [piece for piece in self._pieces if piece.question.piece.last <= self._judged_turns]
            self._due = [piece for piece in self._due if piece.question.piece.last <= self._judged_turns]

    def _ask_again(self) -> None:
        """Ask all questions about a piece again where one of them failed."""
        failed = {piece.question.piece for piece in self._pieces if isinstance(piece.reply, Exception)}
        for piece in self._pieces:
            if piece.question.piece in failed:
                piece.reply = None
                if piece not in self._due:
                    self._due.append(piece)


class _Whole:
    """A metric that judges the conversation as a whole."""

    def __init__(self, metric: BaseMultiTurnMetric, every: int) -> None:
        self._metric = metric
        self._every = every if metric.judged else 1
        self._result: MetricResult | None = None
        self._judged_until = (0, 0)

    async def advance(self, stream: Stream, final: bool) -> MetricResult | None:
        length = len(stream.metric_input.messages)
        judged_turns, judged_length = self._judged_until
        new = length > judged_length or self._result is None
        broken = self._result is not None and self._result.state == "error"
        if not ((new or broken) if final else new and stream.turns - judged_turns >= self._every):
            return None
        self._result = await carry_out(self._metric.plan_for(stream.reading))
        self._judged_until = stream.turns, length
        return self._result

    def whole(self, stream: Stream) -> MetricResult | None:
        del stream
        return self._result


def _track(metric: BaseMultiTurnMetric, every: int, metric_input: MultiTurnEvaluationInput) -> _Track:
    manner = metric.manner
    if metric.stepwise and manner is not None and manner.scope != "conversation":
        if metric.first_decides(metric_input):
            raise UsageError(
                f"{metric.name} cannot judge by {manner.scope} while a conversation grows: the first "
                f"{manner.scope} would set the outcomes for all; set outcomes=, or judge by conversation"
            )
        return _ByPiece(metric)
    for part in asking(metric):
        if part.manner is not None and part.manner.scope != "conversation":
            raise UsageError(
                f"{metric.name} would judge every turn again with each new turn, because {part.name} judges "
                f"by {part.manner.scope}; use {part.name} directly"
            )
    return _Whole(metric, every)


async def _answer(piece: _Piece, ask: Ask) -> None:
    """Ask a question, and keep the reply or the error.

    Raises:
        BudgetExhausted: a limit on calls or cost is reached.
    """
    try:
        piece.reply = (await ask.answer(piece.question)).reply
    except BudgetExhausted:
        raise
    except Exception as error:
        piece.reply = error


def _concluded(run: Run[MetricResult], pieces: Sequence[_Piece]) -> MetricResult:
    """Return the result of pieces; a single failed one makes it an error, as when all are asked at once."""
    answers: list[Answer] = []
    for judged_piece in pieces:
        if not isinstance(judged_piece.reply, ModelReply):
            run.fail(judged_piece.reply or _unasked(judged_piece))
            return run.result.model_copy(update={"usage": total(piece.usage for piece in pieces)})
        answers.append(Answer(judged_piece.question, judged_piece.reply))
    run.go_on(answers)
    return run.result


def _unasked(piece: _Piece) -> ModelFault:
    return ModelFault(f"{turn_label(piece.question.piece.last - 1)} has not been judged yet", kind="unasked")
