"""Conversations as other platforms take them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

from vivavoce.conversations.format import SOURCE
from vivavoce.features.publish.sending import Address, Kind, Request, count_items, describe_sent, send, write_requests
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage
from vivavoce.pacing.loops import wait_for
from vivavoce.plugins import lazy
from vivavoce.records.run import AttemptKey, Outcome
from vivavoce.records.score import Score, Usage, to_number
from vivavoce.report.export import FolderExporter
from vivavoce.report.graded_run import GradedRun
from vivavoce.safe_text import encodable

TRACES = "traces"
"""The key in the metadata of an imported row that has the ids of its traces."""


def stable_id(*parts: object, length: int = 32) -> str:
    """Return an id of this many hexadecimal digits that the same parts always get."""
    text = json.dumps([str(part) for part in parts])
    return blake2b(text.encode("utf-8", "backslashreplace"), digest_size=length // 2).hexdigest()


@dataclass(frozen=True, slots=True)
class Place:
    """What a score is about in a tool: a trace, or one span of it; or a session, which has several traces."""

    trace: str | None = None
    span: str | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation with its scores.

    Attributes:
        run: the id of its run.
        outcome: what came out.
        row: its sample, as the dataset has it.
        sources: the traces that its sample was made of in this tool, none if it came from elsewhere.
        is_new: whether the tool does not have it: it was held in the run, or it came from elsewhere.
    """

    run: str
    outcome: Outcome
    row: Mapping[str, Any]
    sources: Sequence[str]
    is_new: bool

    @property
    def trace(self) -> str:
        """The id of its new trace."""
        return stable_id(self.run, *self.outcome.attempt.key)

    @property
    def root(self) -> str:
        """The id of the span of the whole conversation in its new trace."""
        return stable_id(self.trace, "conversation", length=16)

    def span_of(self, turn: int) -> str:
        """Return the id of the span of a turn in its new trace."""
        return stable_id(self.trace, "turn", turn, length=16)

    def place_of(self, turn: int | None) -> Place:
        """Return what a score is about, that of the whole conversation or of a turn.

        A recorded conversation of several traces is a session; its turns are traces if it has as many.
        """
        if self.is_new:
            return Place(self.trace, None if turn is None else self.span_of(turn))
        if len(self.sources) == 1:
            return Place(self.sources[0])
        if turn is not None and len(self.sources) == len(self.outcome.attempt.trajectory.turns):
            return Place(self.sources[turn])
        return Place(session=_session(self.row))


def conversations(graded: GradedRun, formats: frozenset[str]) -> Iterator[Conversation]:
    """Yield the conversations of a run; rows of these formats were imported from the tool."""
    recorded = graded.run.spec.get("driver") == "replay"
    for outcome in graded.outcomes():
        row = cast("dict[str, Any]", json.loads(outcome.attempt.sample))
        sources = _sources(row, formats)
        yield Conversation(graded.run.id, outcome, row, sources, not (recorded and sources))


def _sources(row: Mapping[str, Any], formats: frozenset[str]) -> list[str]:
    """Return the traces that a row was made of, none if it says that it came from elsewhere."""
    metadata = _mapping(row.get("metadata"))
    source = _mapping(metadata.get(SOURCE)).get("format")
    traces: object = metadata.get(TRACES)
    if not isinstance(traces, list) or (source is not None and source not in formats):
        return []
    return [trace for trace in cast("list[object]", traces) if isinstance(trace, str) and trace]


def _session(row: Mapping[str, Any]) -> str:
    source_id = _mapping(_mapping(row.get("metadata")).get(SOURCE)).get("id")
    return str(row["id"] if source_id is None else source_id)


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a trace; times are seconds since the epoch, `given` and `made` messages in OpenAI's shape."""

    trace: str
    id: str
    parent: str | None
    name: str
    start: float
    end: float
    inputs: list[Message]
    outputs: list[Message]
    usage: Usage | None = None
    failure: str | None = None


def spans(conversation: Conversation) -> Iterator[Span]:
    """Yield the spans of a conversation in a new trace; turns without a time stand where the last one ended.

    The span of the whole has every message, so that who reads the trace has the conversation without its turns.
    """
    attempt, trajectory = conversation.outcome.attempt, conversation.outcome.attempt.trajectory
    turns: list[Span] = []
    at = attempt.started_at
    for turn in trajectory.turns:
        start = turn.started_at or at
        at = start + (turn.seconds or 0.0)
        inputs, outputs = _split(turn.messages)
        name, failed = f"turn {to_number(turn.index)}", turn.failure and turn.failure.message
        turns.append(
            Span(
                conversation.trace,
                conversation.span_of(turn.index),
                conversation.root,
                name,
                start,
                at,
                inputs,
                outputs,
                turn.usage,
                failed,
            )
        )
    failed = attempt.failure and attempt.failure.message
    has_answer = bool(turns[-1].outputs if turns else _split(trajectory.opening)[1])
    messages = [message.to_dict() for message in trajectory.messages]
    before = len(messages) - has_answer
    end = max(at, attempt.started_at + (trajectory.seconds or 0.0))
    name = attempt.key.sample_id
    yield Span(
        conversation.trace,
        conversation.root,
        None,
        name,
        attempt.started_at,
        end,
        messages[:before],
        messages[before:],
        None,
        failed,
    )
    yield from turns


def _split(messages: Sequence[AnyMessage]) -> tuple[list[Message], list[Message]]:
    """Return what is said to the target and what it says and does, from its first message on."""
    first = next((at for at, message in enumerate(messages) if isinstance(message, AIMessage)), len(messages))
    if not any(isinstance(message, HumanMessage) for message in messages[:first]):
        first = next((at + 1 for at, message in enumerate(messages) if isinstance(message, HumanMessage)), first)
    return [message.to_dict() for message in messages[:first]], [message.to_dict() for message in messages[first:]]


def publish(graded: GradedRun, to: str) -> list[str]:
    """Send a run with its scores to a tool that takes JSON over HTTP, and return what was done, in words.

    The same scores may be sent again; nothing becomes double.

    Raises:
        UsageError: the tool cannot be reached, or it refuses something.
    """
    left_out: Counter[str] = Counter()
    address = cast("Callable[[], Address]", _part(to, "address"))()
    sent = wait_for(send(_requests(graded, to, left_out), address))
    return [f"{', '.join(describe_sent(sent)) or 'nothing'} to {address.tool} at {address.url}", *_left_out(left_out)]


def write(graded: GradedRun, directory: Path, to: str) -> list[str]:
    """Write what a tool is sent into a folder, and return what was done, in words.

    Raises:
        UsageError: the folder cannot be written.
    """
    left_out: Counter[str] = Counter()
    kinds = cast("Callable[[], Sequence[Kind]]", _part(to, "kinds"))()
    requests = write_requests(_requests(graded, to, left_out), kinds, directory)
    return [count_items(requests), *_left_out(left_out)]


to_langfuse, to_phoenix, to_otel = (partial(publish, to=tool) for tool in ("langfuse", "phoenix", "otel"))
langfuse_folder, phoenix_folder, otel_folder = (
    FolderExporter(partial(write, to=tool)) for tool in ("langfuse", "phoenix", "otel")
)


def _requests(graded: GradedRun, to: str, left_out: Counter[str]) -> Iterator[Request]:
    return cast("Callable[[GradedRun, Counter[str]], Iterator[Request]]", _part(to, "requests"))(graded, left_out)


def _part(to: str, name: str) -> object:
    return lazy(f"vivavoce.features.publish.{to}:{name}")


def _left_out(items: Mapping[str, int]) -> list[str]:
    return [f"left out: {number:,} × {item}" for item, number in items.items()]


COLUMNS = (
    *("sample", "target", "trial", "grader", "state", "score", "passed", "label"),
    *("reason", "conversation", "seconds"),
)
LABEL_COLUMNS = ("sample", "target", "trial", "turn", "grader", "author", "verdict", "note", "blind")
Cell = str | int | float | bool | None


def sample_cells(graded: GradedRun) -> Iterator[tuple[Cell, ...]]:
    """Yield the cells of each row, in the order of `COLUMNS`; the score is text, for metrics score in several ways.

    `label` is what people said of the whole conversation to the question of the grader.
    """
    labels = _verdicts(graded)
    for outcome in graded.outcomes():
        dialogue = _dialogue_text(outcome)
        scores = {**outcome.scores, **({} if outcome.reward is None else {"reward": outcome.reward})}
        for name, score in scores.items():
            yield _cells(outcome, name, score, labels.get((outcome.attempt.key, name)), dialogue)


def label_cells(graded: GradedRun) -> Iterator[tuple[Cell, ...]]:
    """Yield the cells of each label, in the order of `LABEL_COLUMNS`."""
    for label in graded.store.labels.all(graded.run.id):
        turn = None if label.turn is None else to_number(label.turn)
        place = (label.sample_id, label.target, to_number(label.trial), turn, label.grader or None)
        yield _encodable((*place, label.author, label.verdict, label.note, label.blind))


def _verdicts(graded: GradedRun) -> dict[tuple[AttemptKey, str], str]:
    """Return what people said of whole conversations; several answers stand side by side."""
    by_place: defaultdict[tuple[AttemptKey, str], set[str]] = defaultdict(set)
    for label in graded.store.labels.all(graded.run.id):
        if label.turn is None:
            by_place[label.key, label.grader].add(label.verdict)
    return {place: ", ".join(sorted(verdicts)) for place, verdicts in by_place.items()}


def _cells(outcome: Outcome, name: str, score: Score, label: str | None, dialogue: str) -> tuple[Cell, ...]:
    key = outcome.attempt.key
    value = score.raw if isinstance(score.raw, str) or score.value is None else score.value
    cells: tuple[Cell, ...] = (
        key.sample_id,
        key.target,
        to_number(key.trial),
        name,
        score.state,
        None if value is None else str(value),
        score.passed,
        label,
        score.reason,
        dialogue,
        outcome.attempt.trajectory.seconds,
    )
    return _encodable(cells)


def _encodable(cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
    return tuple(encodable(cell) if isinstance(cell, str) else cell for cell in cells)


def _dialogue_text(outcome: Outcome) -> str:
    return "\n".join(
        f"{message.role}: {message.text}" for message in outcome.attempt.trajectory.messages if message.text
    )
