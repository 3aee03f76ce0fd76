"""The messages of a Letta agent in one turn, assembled from its events.

The REST stream and the command line have the same events, distinguished by `message_type`. An event may hold a whole
message or a piece of one; pieces of one message share its id.

Source of the shapes: the types of `letta-client`, under `letta_client/types/agents`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from vivavoce.comparing.text import join_text_parts
from vivavoce.errors import Fault, RateLimited, TargetFault, UsageError
from vivavoce.messages import AnyMessage, ImagePart, TextPart, read_message
from vivavoce.records.score import Usage, shorten
from vivavoce.targets.letta_rows import letta_part
from vivavoce.targets.target import Reply

Event = Mapping[str, Any]
UserContent = str | list[dict[str, Any]]
"""The content of a user message, as a Letta server takes it."""

_BROKEN = {
    "error",
    "llm_api_error",
    "invalid_llm_response",
    "cancelled",
    "insufficient_credits",
    "context_window_overflow_in_system_prompt",
}
"""The stop reasons that say the turn failed; others, such as `max_steps`, are how an agent may end."""


class LettaTurn:
    """The events of one turn; `reply` returns the messages they make."""

    def __init__(self) -> None:
        self._messages: list[AnyMessage] = []
        self._draft = _Draft()
        self._tools: dict[str | None, str | None] = {}
        self._answered: set[str | None] = set()
        self.usage: Usage | None = None
        self._stop: str | None = None
        self._error: Event | None = None

    def read(self, event: Event) -> None:
        """Read the next event; kinds that do not belong to the turn, such as pings, are skipped.

        Raises:
            TargetFault: the event is malformed.
        """
        try:
            self._take(event)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _malformed(error, event) from error

    def _take(self, event: Event) -> None:
        match event.get("message_type"):
            case "reasoning_message":
                self._think(event)
            case "assistant_message":
                self._speak(event)
            case "tool_call_message" | "approval_request_message":
                self._call(event)
            case "tool_return_message":
                self._return(event.get("tool_returns") or [event], event)
            case "approval_response_message":
                approvals: list[Event] = event.get("approvals") or []
                self._return([approval for approval in approvals if "tool_return" in approval], event)
            case "usage_statistics":
                usage = read_usage(event)
                self.usage = usage if self.usage is None else self.usage + usage
            case "stop_reason":
                self._stop = event.get("stop_reason")
            case "error_message":
                self._error = event
            case _:
                pass

    def reply(self) -> Reply:
        """Return the messages and the usage of the turn.

        Raises:
            RateLimited: the model behind the agent asked to slow down.
            TargetFault: the turn failed, waits for an approval, or stopped in the middle. It is never retryable:
                the agent has stored the user's message, and asking again would store it twice.
        """
        try:
            self._flush()
        except ValueError as error:
            raise _malformed(error, self._draft) from error
        if self._error is not None or self._stop in _BROKEN:
            raise _failed(self._error or {}, self._stop)
        if self._stop == "requires_approval":
            tools = ", ".join(str(name) for id_, name in self._tools.items() if id_ not in self._answered)
            raise TargetFault(f"the agent waits for somebody to approve its call of {tools}", kind="approval")
        if self._stop is None:
            text = "\n".join(message.pretty_repr() for message in self._messages)
            raise TargetFault("the answer ended before the end of the turn", kind="format", evidence=shorten(text))
        return Reply(self._messages, self.usage)

    def _think(self, event: Event) -> None:
        if self._draft.words or self._draft.calls:
            self._flush()
        self._draft.reasoning.add(event.get("id"), event.get("reasoning") or "")
        self._draft.date = self._draft.date or event.get("date")

    def _speak(self, event: Event) -> None:
        draft = self._draft
        if draft.calls or (draft.words and draft.words.last != event.get("id")):
            self._flush()
        self._draft.words.add(event.get("id"), _text(event.get("content")))
        self._draft.date = self._draft.date or event.get("date")

    def _call(self, event: Event) -> None:
        calls: Any = event.get("tool_calls") or event.get("tool_call") or []
        for call in cast("list[Event]", calls if isinstance(calls, list) else [calls]):
            id_ = call.get("tool_call_id")
            if id_ in self._draft.calls and not call.get("name"):
                self._draft.calls[id_]["arguments"] += call.get("arguments") or ""
            elif id_ not in self._tools:
                self._tools[id_] = call.get("name")
                arguments = call.get("arguments") or ""
                self._draft.calls[id_] = {"id": id_, "name": call.get("name") or "", "arguments": arguments}
                self._draft.date = self._draft.date or event.get("date")

    def _return(self, returns: Sequence[Event], event: Event) -> None:
        self._flush()
        for returned in returns:
            id_ = returned.get("tool_call_id")
            if id_ in self._answered:
                continue
            self._answered.add(id_)
            fields: dict[str, Any] = {
                "role": "tool",
                "content": _content(returned.get("tool_return")),
                "tool_call_id": id_,
            }
            if name := self._tools.get(id_) or event.get("name"):
                fields["name"] = name
            if returned.get("status") == "error":
                fields["outcome"] = "failed"
            if event.get("date"):
                fields["timestamp"] = event["date"]
            self._messages.append(read_message(fields))

    def _flush(self) -> None:
        if self._draft.words or self._draft.calls or self._draft.reasoning:
            self._messages.append(self._draft.message())
        self._draft = _Draft()


def read_usage(event: Event) -> Usage:
    """Read the tokens of a `usage_statistics` event.

    Some backends leave the cached part out of `prompt_tokens`; it is always in `total_tokens`.
    """
    output = event.get("completion_tokens") or 0
    return Usage(
        input_tokens=max(event.get("prompt_tokens") or 0, (event.get("total_tokens") or 0) - output),
        output_tokens=output,
        cached_input_tokens=event.get("cached_input_tokens") or 0,
        reasoning_tokens=event.get("reasoning_tokens") or 0,
        calls=event.get("step_count") or 1,
    )


def to_letta(messages: Sequence[AnyMessage], turns_before: int) -> UserContent:
    """Return the content of the last message, as a Letta agent takes it; the agent itself holds the earlier ones.

    Raises:
        UsageError: the conversation begins with messages that the agent never saw, or the last one holds something
            other than text and images.
    """
    if turns_before == 0 and len(messages) > 1:
        raise UsageError("a Letta agent keeps its own history and cannot begin in the middle of a conversation")
    content = messages[-1].content
    if isinstance(content, list):
        return [_to_part(part) for part in content]
    return content or ""


def _to_part(part: object) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if not isinstance(part, ImagePart):
        raise UsageError(f"a Letta agent reads text and images, not a part of type '{getattr(part, 'type', part)}'")
    url = part.image_url.url
    if not url.startswith("data:"):
        return {"type": "image", "source": {"type": "url", "url": url}}
    head, _, data = url.removeprefix("data:").partition(",")
    return {"type": "image", "source": {"type": "base64", "media_type": head.partition(";")[0], "data": data}}


@dataclass
class _Pieces:
    """A text that arrives in pieces; pieces of one id belong together, others stand apart."""

    last: str | None = None
    text: str = ""

    def add(self, id_: str | None, piece: str) -> None:
        self.text += f"\n\n{piece}" if self.text and id_ != self.last else piece
        self.last = id_

    def __bool__(self) -> bool:
        return bool(self.text)


@dataclass
class _Draft:
    """The assistant message that is being read."""

    reasoning: _Pieces = field(default_factory=_Pieces)
    words: _Pieces = field(default_factory=_Pieces)
    calls: dict[str | None, dict[str, Any]] = field(default_factory=dict[str | None, dict[str, Any]])
    date: str | None = None

    def message(self) -> AnyMessage:
        calls = [{**call, "arguments": call["arguments"] or "{}"} for call in self.calls.values()]
        fields: dict[str, Any] = {"role": "assistant", "content": self.words.text or (None if calls else "")}
        if calls:
            fields["tool_calls"] = calls
        if self.reasoning:
            fields["reasoning_content"] = self.reasoning.text
        if self.date:
            fields["timestamp"] = self.date
        return read_message(fields)


def _text(content: Any) -> str:
    if isinstance(content, str) or content is None:
        return content or ""
    return join_text_parts(part["text"] for part in cast("list[Event]", content) if part.get("text"))


def _content(returned: Any) -> Any:
    """Return the result of a tool as message content: text, or parts when there are images among it."""
    if isinstance(returned, str) or returned is None:
        return returned or ""
    parts = cast("list[Event]", returned)
    if all(part.get("type") != "image" for part in parts):
        return _text(parts)
    return [letta_part(part) or {"type": "text", "text": part.get("text") or ""} for part in parts]


def _malformed(error: Exception, what: object) -> TargetFault:
    message = f"the agent sent a malformed event: {type(error).__name__}: {error}"
    return TargetFault(message, kind="format", evidence=shorten(str(what)))


def _failed(error: Event, stop: str | None) -> Fault:
    message = str(error.get("message") or f"the agent stopped: {stop}")
    evidence = shorten("\n".join(str(error[key]) for key in ("error_type", "detail") if error.get(key)) or None)
    if "rate_limit" in str(error.get("error_type")) or message.startswith("429"):
        return RateLimited(message, evidence=evidence, retryable=False)
    return TargetFault(message, kind="http" if message[:3].isdigit() else "crash", evidence=evidence)
