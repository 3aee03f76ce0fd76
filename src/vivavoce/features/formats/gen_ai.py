"""What a span says in the words of OpenTelemetry's conventions for generative AI, of all its years.

Messages are read where they are first found: the attributes `gen_ai.input.messages` and `gen_ai.output.messages` of a
span or of the event of its call, as JSON or as values; numbered attributes (`gen_ai.prompt.0.content`), as OpenLLMetry
wrote them; an event for each message (`gen_ai.user.message`, `gen_ai.choice`); the events of one text for all.
Source: semantic-conventions-genai, the semantic conventions from 1.26 on, and opentelemetry-semantic-conventions-ai.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, cast

from vivavoce.comparing.text import join_text_parts
from vivavoce.conversations.format import Loss, Row
from vivavoce.conversations.shapes import Message, objects_in, taken_back, tool_call, tool_names, words_in
from vivavoce.features.formats.dialects import NAME, as_text, messages_in, parse_json, read_message
from vivavoce.features.formats.steps import Kind, Step
from vivavoce.wire.otlp import SCORE_EVENT

Side = Literal["input", "output"]

CALLED = "gen_ai.client.inference.operation.details"

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("chat", "text_completion", "generate_content"), "model"),
    **dict.fromkeys(("invoke_agent", "create_agent", "invoke_workflow"), "agent"),
    "execute_tool": "tool",
    "retrieval": "retrieval",
}
_TRACELOOP: dict[str, Kind] = {**dict.fromkeys(("workflow", "task", "agent"), "agent"), "tool": "tool"}
_OLD = {"input": "gen_ai.prompt", "output": "gen_ai.completion"}
_TOOLS = "gen_ai.tool.definitions"
_LONGEST_NUMBER = 6
_CALL = re.compile(r"tool_calls\.(\d{1,4})\.(?:function\.)?(id|name|arguments)")
_BY_EVENT = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}
_USAGE = {
    "gen_ai.usage.prompt_tokens": "input_tokens",
    "gen_ai.usage.input_tokens": "input_tokens",
    "gen_ai.usage.completion_tokens": "output_tokens",
    "gen_ai.usage.output_tokens": "output_tokens",
}
"""What the attributes count; where there are several, the last one of these counts."""


def step_of(span: Row, loss: Loss) -> Step:
    """Return the step that a span tells of."""
    known = cast("Row", span["attributes"])
    kind = _kind(known)
    step = Step(span["trace"], span["id"], span["parent"], kind, span["start"], span["end"])
    step.agent = words_in(known.get("gen_ai.agent.name")) or None
    sources = [known, *(event["attributes"] for event in span["events"] if event["name"] == CALLED)]
    step.tools = next(
        (names for source in sources if (names := tool_names(parse_json(source.get(_TOOLS)))) is not None), None
    )
    step.inputs = _messages(span, sources, "input", loss)
    step.outputs = _first_choice(_messages(span, sources, "output", loss), loss)
    step.system = _system(sources)
    step.continues = known.get("gen_ai.request.previous_response.id") is not None
    if kind == "other" and step.has_messages:
        step.kind = "model"
    if kind == "tool":
        _read_tool(step, known)
    step.about = _about(span, known)
    return step


def scores_of(span: Row) -> Iterator[tuple[str, Any, Row]]:
    """Yield the scores that events of a span tell: a name, the value or else the label, and what else is known."""
    for event in cast("list[Row]", span["events"]):
        known = cast("Row", event["attributes"])
        if event["name"] != SCORE_EVENT or not words_in(known.get("gen_ai.evaluation.name")):
            continue
        value, label = known.get("gen_ai.evaluation.score.value"), known.get("gen_ai.evaluation.score.label")
        if label in ("true", "false") and value in (None, 0, 1):
            score: Any = label == "true"
        else:
            score = label if value is None else value
        others = {"reason": known.get("gen_ai.evaluation.explanation"), "label": label if score != label else None}
        yield (
            words_in(known["gen_ai.evaluation.name"]),
            score,
            {key: item for key, item in others.items() if item is not None and not isinstance(score, bool)},
        )


def _kind(known: Row) -> Kind:
    operation, traceloop = known.get("gen_ai.operation.name"), known.get("traceloop.span.kind")
    if isinstance(operation, str):
        return _KINDS.get(operation, "other")
    if isinstance(traceloop, str):
        return _TRACELOOP.get(traceloop, "other")
    if "gen_ai.tool.name" in known:
        return "tool"
    asks_a_model = any(key in known for key in ("gen_ai.request.model", "llm.request.type", "gen_ai.prompt.0.role"))
    return "model" if asks_a_model else "other"


def _messages(span: Row, sources: list[Row], side: Side, loss: Loss) -> list[Message]:
    known, events = cast("Row", span["attributes"]), cast("list[Row]", span["events"])
    whole = f"gen_ai.{side}.messages"
    value = next((source[whole] for source in sources if source.get(whole) not in (None, "")), None)
    if value is None and side == "input" and "gen_ai.input.messages" not in known:
        value = known.get("pydantic_ai.all_messages")
    if value is not None:
        return _read(value, loss)
    if items := _messages_by_number(known, side):
        return _read(items, loss)
    if items := [item for event in events if (item := _of_event(event, side)) is not None]:
        return _read(items, loss)
    for event in events:
        if event["name"] == _OLD[side].replace("gen_ai.", "gen_ai.content."):
            return _read(event["attributes"].get(_OLD[side]), loss)
    old = known.get(_OLD[side])
    return _read(old, loss) if old is not None else []


def _first_choice(messages: list[Message], loss: Loss) -> list[Message]:
    """Return the first of the answers that a model made at once; each of them says how it ended."""
    ends = [taken_back(message, NAME).get("finish_reason") for message in messages]
    if len(messages) < 2 or not all(ends):
        return messages
    loss.add_dropped("answers that a model made in addition to the first", count=len(messages) - 1)
    return messages[:1]


def _read(value: Any, loss: Loss) -> list[Message]:
    items = parse_json(value)
    if isinstance(items, str):
        loss.add_dropped("messages that are not JSON; an attribute length limit cuts them off")
        return []
    if isinstance(items, list) and all(_has_parts(item) for item in cast("list[Any]", items)):
        rows = cast("list[Row]", items)
        return [message for index, item in enumerate(rows) for message in read_message(item, index, loss)]
    messages = messages_in(items, loss)
    if messages is None:
        if items:
            loss.add_dropped("messages of an unknown shape")
        return []
    return messages


def _has_parts(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(cast("Row", item).get("parts"), list)


def _messages_by_number(known: Row, side: Side) -> list[Row]:
    """Return messages whose every field is an attribute of its own."""
    items: dict[int, Row] = {}
    before = f"{_OLD[side]}."
    for key, value in known.items():
        if not key.startswith(before):
            continue
        number, _, name = key[len(before) :].partition(".")
        if not name or not number.isdecimal() or len(number) > _LONGEST_NUMBER:
            continue
        item = items.setdefault(int(number), {"role": "assistant" if side == "output" else "user"})
        match name:
            case "content":
                item["content"] = _content(value)
            case "role" | "tool_call_id" | "name":
                item[name] = value
            case _ if (call := _CALL.fullmatch(name)) is not None:
                item.setdefault("tool_calls", {}).setdefault(int(call[1]), {})[call[2]] = value
            case _:
                pass
    for item in items.values():
        if "tool_calls" in item:
            item["tool_calls"] = [call for _, call in sorted(item["tool_calls"].items())]
    return [item for _, item in sorted(items.items())]


def _content(value: Any) -> Any:
    """Return content whose parts were written as JSON as parts."""
    inner = parse_json(value)
    parts = objects_in(inner)
    return parts if parts and len(parts) == len(inner) and all("type" in part for part in parts) else value


def _of_event(event: Row, side: Side) -> Row | None:
    """Return the message that an event of its own tells."""
    name = event["name"]
    if (name == "gen_ai.choice") != (side == "output") or (name not in _BY_EVENT and name != "gen_ai.choice"):
        return None
    known = cast("Row", event["attributes"])
    body = event.get("body") or parse_json(known.get("gen_ai.event.content"))
    fields: Row = {**known, **cast("Row", body)} if isinstance(body, dict) else dict(known)
    inner = parse_json(fields.get("message"))
    if isinstance(inner, dict):
        fields |= cast("Row", inner)
    elif isinstance(inner, str):
        fields.setdefault("content", inner)
    role = fields.get("role") if isinstance(fields.get("role"), str) else _BY_EVENT.get(name, "assistant")
    item: Row = {"role": role, "content": _content(fields.get("content"))}
    if calls := parse_json(fields.get("tool_calls")):
        item["tool_calls"] = calls
    if role == "tool" and fields.get("id") is not None:
        item["tool_call_id"] = fields["id"]
    if isinstance(fields.get("name"), str):
        item["name"] = fields["name"]
    return item


def _system(sources: list[Row]) -> str | None:
    for known in sources:
        system = parse_json(known.get("gen_ai.system_instructions"))
        if isinstance(system, str) and system:
            return system
        texts = (part.get("content") for part in objects_in(system))
        if words := [text for text in texts if isinstance(text, str)]:
            return join_text_parts(words)
    return None


def _read_tool(step: Step, known: Row) -> None:
    arguments, result = known.get("gen_ai.tool.call.arguments"), known.get("gen_ai.tool.call.result")
    name = words_in(known.get("gen_ai.tool.name") or known.get("traceloop.entity.name")) or "unknown"
    if arguments is None and result is None:
        arguments, result = known.get("traceloop.entity.input"), known.get("traceloop.entity.output")
    identity = known.get("gen_ai.tool.call.id")
    step.call = tool_call(None if identity is None else str(identity), name, parse_json(arguments))
    step.result = None if result is None else as_text(result)


def _about(span: Row, known: Row) -> Row:
    usage = {name: known[key] for key, name in _USAGE.items() if _is_count(known.get(key))}
    model = known.get("gen_ai.response.model") or known.get("gen_ai.request.model")
    details = {"model": words_in(model) or None, "usage": usage or None, "error": span["error"]}
    return {key: value for key, value in details.items() if value is not None}


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
