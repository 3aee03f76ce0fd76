"""The transcript of a conversation on a page: its turns, the score notes next to them, and the calls of a judge."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal

from vivavoce.comparing.json_values import read_strict_json
from vivavoce.messages import AIMessage, AnyMessage, Content, ContentPart, ToolCall, ToolMessage
from vivavoce.records.agents import Agents
from vivavoce.records.replies import JudgeCall
from vivavoce.records.score import to_number
from vivavoce.records.trajectory import Step, Test, Turn, origin, outcome_of, tool_results
from vivavoce.report.html.content.message import (
    MAX_CHARS,
    Media,
    RenderedText,
    Sort,
    media_of,
    reasoning,
    render_text,
    without_reasoning,
)
from vivavoce.report.html.evidence import Cite, Quote, Register, legible
from vivavoce.report.html.score_notes import ScoreNote, State
from vivavoce.report.text import indent_json, one_line, span
from vivavoce.report.transcript import about, asked_text, facts, replied_text, words_of, words_of_parts
from vivavoce.safe_text import safe
from vivavoce.store.runs.rows import worst_of

MAX_PARTS = 300
"""Messages and calls of one turn that a page shows, besides those with evidence."""
FEW = 6
"""Messages and calls of one turn that a page shows where there is no more room on it."""
ROOM = 240_000
"""Characters that a page shows of all messages together before it cuts each of them short; a part counts as `PART`."""
PART = 300
BRIEF = 300
"""Characters of a text that is cut short."""
MAX_JSON_CHARS = 200_000
"""Characters of a text that are looked at: what is longer is not read as JSON."""
CONTEXTS = 20
"""Retrieved texts of one message that a page shows, besides those with evidence."""
INLINE = 1_000_000
"""Bytes of a picture or a sound that is written into a page that has no server."""


@dataclass(frozen=True, slots=True)
class ContentPlace:
    """Where something is in a conversation: its turn, the message in it, and the part or the tool call of that.

    None for the turn is before the first one, None for the message is all of the turn. `context` is one of the texts
    that were retrieved for the message.
    """

    turn: int | None
    message: int | None = None
    part: int | None = None
    call: int | None = None
    context: int | None = None


@dataclass(frozen=True, slots=True)
class Showing:
    """How a page shows what was said: `raw` as it was written, and `address` returns where more of it is.

    Without addresses, media of the kinds `inline` are written into the page. `exchange` returns where it is shown what
    a judge was asked for the score of a grader, or of one of its turns; without it, no page shows that.
    """

    raw: bool = False
    address: Callable[[ContentPlace], str] | None = None
    inline: tuple[str, ...] = ("image", "audio")
    exchange: Callable[[str, int | None], str] | None = None

    def at(self, place: ContentPlace | None) -> str | None:
        """Return the address of a place, None if there is none."""
        return None if self.address is None or place is None else self.address(place)


@dataclass(frozen=True, slots=True)
class ShownMedia:
    """A picture or a sound; `address` is empty where it is not shown."""

    media: Media
    address: str
    kind: Literal["media"] = "media"

    @property
    def words(self) -> str:
        """What it is, and that it is not shown, where only this page cannot show it."""
        return self.media.words + ("" if self.address or not self.media.is_shown else "; not shown on this page")


Segment = RenderedText | ShownMedia


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message; `role` is its author, `name` is what the log calls them."""

    role: str
    name: str
    segments: list[Segment]
    reasoning: RenderedText | None
    kind: Literal["said"] = "said"

    @property
    def cited(self) -> bool:
        """Whether there is evidence in it."""
        return _is_cited((*self.segments, self.reasoning))


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call with what came back; it is shown open if it contains evidence."""

    name: str
    short: str
    brief: str
    arguments: RenderedText
    result: list[Segment] | None
    failed: bool
    cite: Cite | None
    kind: Literal["called"] = "called"

    @property
    def cited(self) -> bool:
        """Whether there is evidence in it."""
        return self.cite is not None or _is_cited((self.arguments, *(self.result or ())))


def _is_cited(segments: Iterable[Segment | None]) -> bool:
    return any(isinstance(segment, RenderedText) and segment.cited for segment in segments)


@dataclass(frozen=True, slots=True)
class Left:
    """The rest of a turn that has more messages and calls than a page can show; `address` is all of it as text."""

    count: int
    address: str | None
    kind: Literal["left"] = "left"


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Texts that were retrieved for the message after it; `left` more are not shown, and `brief` begins the first."""

    texts: list[RenderedText]
    brief: str
    left: int
    kind: Literal["retrieved"] = "retrieved"

    @property
    def cited(self) -> bool:
        """Whether there is evidence in them; if so, they are shown open."""
        return _is_cited(self.texts)


@dataclass(frozen=True, slots=True)
class Acting:
    """One of several agents begins to act without a word."""

    name: str
    kind: Literal["acting"] = "acting"
    cited: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class HandedOver:
    """One agent hands the conversation over to another; `sender` is empty where nobody names it."""

    sender: str
    receiver: str
    kind: Literal["handoff"] = "handoff"
    cited: ClassVar[bool] = False


WholePart = ShownMessage | Called | Retrieved | Acting | HandedOver
Part = WholePart | Left


@dataclass(slots=True)
class Writer:
    """Writes the turns of one conversation; tool calls are numbered from `c0` through all of it.

    `agents` are those of the whole conversation, where it may have several.
    """

    register: Register
    showing: Showing = field(default_factory=Showing)
    calls: int = 0
    room: int = ROOM
    agents: Agents = field(default_factory=lambda: Agents(()))

    def parts(self, messages: Sequence[AnyMessage], turn: int | None) -> list[Part]:
        """Return the messages of a turn, and tool calls with their results."""
        parts: list[Part] = []
        left = 0
        for write in self._steps(messages, turn):
            is_full = len(parts) >= (MAX_PARTS if self.room > 0 else FEW)
            self.room -= 0 if is_full else PART
            part = None if is_full and not self.register.awaits(turn) else write()
            if part is None or (is_full and not part.cited):
                left += 1
            else:
                parts.append(part)
        return [*parts, Left(left, self.showing.at(ContentPlace(turn)))] if left else parts

    def skip(self, messages: Sequence[AnyMessage]) -> None:
        """Count the calls of a turn that is not shown."""
        self.calls += sum(len(_calls(message)) for message in messages)

    def _steps(self, messages: Sequence[AnyMessage], turn: int | None) -> Iterator[Callable[[], WholePart]]:
        """Yield how to write each message and each call, in order."""
        answers = {id(call): answer for call, answer in tool_results(messages)}
        answer_ids = {id(answer) for answer in answers.values() if answer is not None}
        places = {id(message): ContentPlace(turn, number) for number, message in enumerate(messages)}
        for message in messages:
            if not isinstance(message, ToolMessage) or id(message) not in answer_ids:
                yield from self._of_message(message, answers, places)
            if (over := self.agents.handoff_after(message)) is not None:
                yield partial(HandedOver, legible(over.sender or ""), legible(over.receiver))

    def _of_message(
        self,
        message: AnyMessage,
        answers: Mapping[int, ToolMessage | None],
        places: Mapping[int, ContentPlace],
    ) -> Iterator[Callable[[], WholePart]]:
        place = places[id(message)]
        if message.retrieval_context:
            yield partial(self._write_contexts, message.retrieval_context, place)
        if _says(message) or not _calls(message):
            yield partial(self._write_message, message, place)
        elif self.agents.several and message.name:
            yield partial(Acting, legible(message.name))
        for number, call in enumerate(_calls(message)):
            answer = answers.get(id(call))
            of_call = replace(place, call=number)
            yield partial(self._write_call, f"c{self.calls}", call, answer, of_call, places.get(id(answer)))
            self.calls += 1

    def _write_message(self, message: AnyMessage, place: ContentPlace) -> ShownMessage:
        thinking, content = reasoning(message), message.content or ""
        if isinstance(message, AIMessage) and not thinking and isinstance(content, str):
            thinking, content = without_reasoning(content)
        segments = self._segments(message, content, place)
        before = self._text(thinking, "speech", place, by_assistant=True) if thinking else None
        return ShownMessage(message.role, legible(message.name or ""), segments, before)

    def _write_contexts(self, contexts: Sequence[str | dict[str, Any]], place: ContentPlace) -> Retrieved:
        texts = [
            context if isinstance(context, str) else json.dumps(context, ensure_ascii=False) for context in contexts
        ]
        shown_texts: list[RenderedText] = []
        for number, text in enumerate(texts):
            if number >= CONTEXTS and not self.register.awaits(place.turn):
                break
            shown_text = self._text(text, "data", replace(place, context=number), by_assistant=False)
            if number < CONTEXTS or shown_text.cited:
                shown_texts.append(shown_text)
        return Retrieved(shown_texts, one_line(legible(texts[0][:1000]), 60), len(texts) - len(shown_texts))

    def _segments(self, message: AnyMessage, content: Content, place: ContentPlace) -> list[Segment]:
        """Return what a message holds, in order."""
        sort = "data" if message.role == "tool" else "speech"
        segments: list[Segment] = []
        texts: list[str] = []
        parts: list[ContentPart] = []

        def end_text() -> None:
            texts[:0] = words_of_parts(parts)
            parts.clear()
            if text := "\n".join(line for line in texts if line):
                segments.append(self._text(text, sort, place, by_assistant=message.role == "assistant"))
            texts.clear()

        for number, part in enumerate([content] if isinstance(content, str) else content):
            media = None if isinstance(part, str) else media_of(part)
            if isinstance(part, str):
                texts.append(part)
            elif media is None:
                parts.append(part)
            else:
                end_text()
                segments.append(self._media(media, replace(place, part=number)))
        if isinstance(message, AIMessage) and message.refusal:
            texts.append(f"[refusal] {message.refusal}")
        end_text()
        return segments

    def _media(self, media: Media, place: ContentPlace) -> ShownMedia:
        if not media.is_shown:
            return ShownMedia(media, "")
        if self.showing.address is not None:
            return ShownMedia(media, self.showing.address(place))
        fits = media.kind in self.showing.inline and media.size <= INLINE
        return ShownMedia(media, f"data:{media.type};base64,{media.data}" if fits else "")

    def _text(self, text: str, sort: Sort, place: ContentPlace, *, by_assistant: bool) -> RenderedText:
        whole = legible(text[:MAX_JSON_CHARS])
        marks = self.register.marks(whole[: MAX_CHARS[sort]], place.turn, by_assistant=by_assistant)
        longest = (
            BRIEF if self.room <= 0 and not marks else MAX_CHARS[sort] if len(text) > MAX_JSON_CHARS else MAX_JSON_CHARS
        )
        read = whole[:longest]
        more = len(whole) - len(read) + max(len(text) - MAX_JSON_CHARS, 0)
        rest = self.showing.at(place) if more or len(read) > MAX_CHARS[sort] else None
        self.room -= min(len(read), MAX_CHARS[sort])
        return render_text(read, sort, marks, raw=self.showing.raw, rest=rest, more=more)

    def _write_call(
        self,
        reference: str,
        call: ToolCall,
        answer: ToolMessage | None,
        place: ContentPlace,
        answered_at: ContentPlace | None,
    ) -> Called:
        cited = self.register.call(reference, place.turn)
        arguments = self._text(call.function.arguments, "data", place, by_assistant=False)
        known = "" if answer is None else origin(answer)
        result = (
            None if answer is None or answered_at is None else self._segments(answer, answer.content or "", answered_at)
        )
        returned = "no result" if answer is None else one_line(legible(words_of(answer)[:1000]), 48)
        return Called(
            name=legible(call.name),
            short=_short(legible(call.function.arguments[:MAX_JSON_CHARS])),
            brief=returned + (f" ({known})" if known else ""),
            arguments=arguments,
            result=result,
            failed=answer is not None and outcome_of(answer) == "failed",
            cite=cited,
        )


def _says(message: AnyMessage) -> bool:
    """Return whether a message has anything besides calls of tools."""
    return bool(message.content or (isinstance(message, AIMessage) and message.refusal) or reasoning(message))


def _calls(message: AnyMessage) -> Sequence[ToolCall]:
    return (message.tool_calls or ()) if isinstance(message, AIMessage) else ()


def _short(arguments: str) -> str:
    """Return the arguments of a tool call on one line, written as in a program."""
    if len(arguments) > MAX_CHARS["data"]:
        return one_line(arguments[:1000], 72)
    try:
        parsed = read_strict_json(arguments)
    except (ValueError, RecursionError):
        return one_line(arguments, 72)
    if not isinstance(parsed, dict):
        return one_line(arguments, 72)
    return one_line(", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in parsed.items()), 72)


@dataclass(frozen=True, slots=True)
class Thought:
    """A step that the tester took before its message, or its reasoning."""

    word: str
    text: str


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """A turn with its score notes.

    `about` are the notes of the whole conversation that cite it, `judged` is the judgement of the goal after it, and
    `measured` what the metrics of the tester gave.
    """

    turn: Turn
    parts: list[Part]
    notes: list[ScoreNote]
    thoughts: list[Thought]
    about: list[tuple[ScoreNote, Quote, str]] = field(default_factory=list[tuple[ScoreNote, Quote, str]])
    judged: str = ""
    measured: str = ""

    @property
    def state(self) -> State | None:
        """Its worst state, None if nothing graded it."""
        if self.turn.failure is not None:
            return "error"
        return worst_of(note.state for note in self.notes) if self.notes else None

    @property
    def cited(self) -> bool:
        """Whether one of its tool calls has evidence."""
        return any(isinstance(part, Called) and part.cited for part in self.parts)

    @property
    def usage_text(self) -> str:
        """The time and the tokens of the target, as far as they are known."""
        words = [] if self.turn.seconds is None else [span(self.turn.seconds)]
        if (usage := self.turn.usage) is not None and usage.input_tokens + usage.output_tokens:
            words.append(f"{usage.input_tokens + usage.output_tokens:,} tokens")
        return ", ".join(words)


def thoughts(test: Test | None, index: int) -> list[Thought]:
    """Return the steps and the reasoning of the tester before its message in a turn, counted from 0."""
    if test is None or index >= len(test.history):
        return []
    turn = test.history[index]
    tester_thoughts = [Thought("strategy", safe(turn.guidance))] if turn.guidance else []
    tester_thoughts += steps(turn.steps)
    if turn.reasoning:
        tester_thoughts.append(Thought("tester", safe(turn.reasoning)))
    return tester_thoughts


def goal_judgement(test: Test | None, index: int) -> str:
    """Return the judgement of the goal after a turn, counted from 0; empty if it is the same as before."""
    if test is None or index >= len(test.history):
        return ""
    before, after = (test.history[at].evaluation for at in (max(index - 1, 0), index))
    return safe(after or "") if index == 0 or after != before else ""


def steps(tester_steps: Iterable[Step]) -> list[Thought]:
    """Return the steps of a tester, each with its result."""
    return [_step(step) for step in tester_steps]


def _step(step: Step) -> Thought:
    refused = " (refused)" if step.refused else ""
    return Thought(safe(step.tool_name or "words") + refused, one_line(step.tool_message.text, 300))


TextLink = Callable[[int, int | None], str]
"""Returns the address of a message of a call in full, or of the reply; both are counted from 0."""

_ROLES: Mapping[str, str] = {"system": "System", "user": "User", "assistant": "Assistant", "tool": "Tool"}


@dataclass(frozen=True, slots=True)
class RequestMessage:
    """A message of a request, as it was written."""

    role: str
    text: RenderedText


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A call as a page shows it; `reply` is None where none is kept, `settings` and `schema` may be empty."""

    number: int
    about: str
    request: list[RequestMessage]
    reply: RenderedText | None
    repair: list[RequestMessage]
    facts: list[tuple[str, str]]
    settings: str
    schema: str
    is_repaired: bool


def shown_calls(calls: Sequence[JudgeCall], first: int, link: TextLink) -> list[ShownCall]:
    """Return calls as a page shows them; `first` is the place of the first of them among all, from 0."""
    return [_show_call(call, first + place, link) for place, call in enumerate(calls)]


def _show_call(call: JudgeCall, place: int, link: TextLink) -> ShownCall:
    return ShownCall(
        number=to_number(place),
        about=about(call),
        request=[_statement(message, link(place, number)) for number, message in enumerate(call.messages)],
        reply=None if call.text is None else _render_text(replied_text(call), link(place, None), raw=False),
        repair=[_statement(message, None) for message in call.repair],
        facts=facts(call),
        settings=safe(", ".join(f"{name} {json.dumps(value)}" for name, value in call.settings.items())),
        schema="" if call.answer_schema is None else indent_json(call.answer_schema),
        is_repaired=bool(call.applied.get("repaired")),
    )


def _statement(message: AnyMessage, link: str | None) -> RequestMessage:
    return RequestMessage(_ROLES.get(message.role, message.role), _render_text(asked_text(message), link, raw=True))


def _render_text(text: str, link: str | None, *, raw: bool) -> RenderedText:
    return render_text(legible(text), "data", (), raw=raw, rest=link)
