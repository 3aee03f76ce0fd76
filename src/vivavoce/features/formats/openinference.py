"""What a span says in the words of OpenInference, whose attributes are flat: `llm.input_messages.0.message.role`.

Source: the specification of OpenInference, its messages and its calls of tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from vivavoce.conversations.format import Loss, Row
from vivavoce.conversations.shapes import Message, fields_in, objects_in, set_aside, text_of, tool_call, tool_names
from vivavoce.features.formats.dialects import as_text, parse_json, said_in
from vivavoce.features.formats.steps import Kind, Step

NAME = "openinference"
KIND = "openinference.span.kind"
_KINDS: dict[str, Kind] = {
    "LLM": "model",
    **dict.fromkeys(("AGENT", "CHAIN", "GUARDRAIL"), "agent"),
    "TOOL": "tool",
    **dict.fromkeys(("RETRIEVER", "RERANKER"), "retrieval"),
}
_USAGE = {"input_tokens": "llm.token_count.prompt", "output_tokens": "llm.token_count.completion"}
_MESSAGES = re.compile(r"^llm\.(?:in|out)put_messages\.", re.MULTILINE)
_NESTED = ("llm", "retrieval", "reranker")
_ROLES = {"model": "assistant", "ai": "assistant", "human": "user", "function": "tool"}


def is_open_inference(known: Row) -> bool:
    """Return whether the attributes of a span are OpenInference's."""
    return KIND in known or _MESSAGES.search("\n".join(known)) is not None


def step_of(span: Row, loss: Loss) -> Step:
    """Return the step that a span tells of."""
    known = cast("Row", span["attributes"])
    kind = _KINDS.get(str(known.get(KIND, "LLM")).upper(), "other")
    step = Step(span["trace"], span["id"], span["parent"], kind, span["start"], span["end"])
    tree = nest({key: value for key, value in known.items() if key.startswith(_NESTED)})
    llm = fields_in(tree.get("llm"))
    step.inputs = _messages(llm.get("input_messages"), loss)
    step.outputs = _messages(llm.get("output_messages"), loss)
    if not step.has_messages and kind in ("model", "agent"):
        step.inputs = said_in(known.get("input.value"), "input", loss)
        step.outputs = said_in(known.get("output.value"), "output", loss)
    step.agent = known.get("agent.name") if isinstance(known.get("agent.name"), str) else None
    schemas = (fields_in(tool.get("tool")).get("json_schema") for tool in _members_in_order(llm.get("tools")))
    step.tools = tool_names([*map(parse_json, schemas)]) if "tools" in llm else None
    if kind == "tool":
        _read_tool(step, span, known)
    if kind == "retrieval":
        entries = fields_in(tree.get("retrieval")).get("documents")
        documents = _members_in_order(entries) or _members_in_order(
            fields_in(tree.get("reranker")).get("output_documents")
        )
        texts = (fields_in(document.get("document")).get("content") for document in documents)
        step.passages = [text for text in texts if isinstance(text, str)]
    step.about = _about(span, known)
    return step


def nest(known: Row) -> Row:
    """Return attributes as objects within objects, by the parts of their names."""
    tree: Row = {}
    for key, value in known.items():
        holder = tree
        steps = key.split(".")
        last = steps.pop()
        if len(steps) > _MAX_DEPTH:
            continue
        for step in steps:
            below = holder.get(step)
            if not isinstance(below, dict):
                below = holder[step] = {}
            holder = cast("Row", below)
        if not isinstance(holder.get(last), dict):
            holder[last] = value
    return tree


_MAX_DEPTH = 32
_KEYS = frozenset(("role", "content", "contents", "name", "tool_calls", "tool_call_id"))
_LONGEST_NUMBER = 10


def _members_in_order(value: Any) -> list[Row]:
    """Return the members of an object whose keys are numbers, in their order."""
    members = fields_in(value)
    numbers = sorted((key for key in members if key.isdecimal() and len(key) < _LONGEST_NUMBER), key=int)
    return objects_in([members[key] for key in numbers])


def _messages(value: Any, loss: Loss) -> list[Message]:
    if value is not None and not isinstance(value, dict):
        loss.add_dropped("messages of an unknown shape")
    return [_message(item, index, loss) for index, item in enumerate(_members_in_order(value))]


def _message(item: Row, index: int, loss: Loss) -> Message:
    fields = fields_in(item.get("message"))
    role = _ROLES.get(str(fields.get("role")).lower(), str(fields.get("role")).lower())
    if role not in ("system", "developer", "user", "assistant", "tool"):
        loss.add_guess(f"that '{fields.get('role')}' is the user", index)
        role = "user"
    message: Message = {"role": role, "content": _content(fields, role, index, loss)}
    if isinstance(fields.get("name"), str):
        message["name"] = fields["name"]
    calls = [_call(entry) for entry in _members_in_order(fields.get("tool_calls"))]
    if fields.get("function_call_name") is not None:
        arguments = fields.get("function_call_arguments_json")
        calls.append(tool_call(None, str(fields["function_call_name"]), arguments))
    if calls and role == "assistant":
        message["tool_calls"] = calls
    if role == "tool" and fields.get("tool_call_id") is not None:
        message["tool_call_id"] = str(fields["tool_call_id"])
    others = {key: item for key, item in fields.items() if key not in _KEYS and not key.startswith("function_call_")}
    for key in others:
        loss.unknown(key, index)
    set_aside(message, NAME, others)
    return message


def _content(fields: Row, role: str, index: int, loss: Loss) -> Any:
    if fields.get("content") is not None or "contents" not in fields:
        value = fields.get("content")
        return value if value is None or isinstance(value, str) else as_text(value)
    parts: list[Row] = []
    for entry in _members_in_order(fields["contents"]):
        part = fields_in(entry.get("message_content"))
        url: Any = part.get("image")
        while isinstance(url, dict):
            url = cast("Row", url).get("url") or cast("Row", url).get("image")
        if part.get("type") == "text" and isinstance(part.get("text"), str):
            parts.append({"type": "text", "text": part["text"]})
        elif isinstance(url, str) and role == "user":
            parts.append({"type": "image_url", "image_url": {"url": url}})
        elif part.get("type") not in ("tool_use", "tool_result"):
            loss.add_dropped(f"a part of a message: {part.get('type')}", index)
    if all(part["type"] == "text" for part in parts):
        return text_of(parts) if parts else None
    return parts


def _call(item: Row) -> Row:
    call = fields_in(item.get("tool_call"))
    function = fields_in(call.get("function"))
    identity = call.get("id")
    return tool_call(None if identity is None else str(identity), str(function.get("name")), function.get("arguments"))


def _read_tool(step: Step, span: Row, known: Row) -> None:
    name = known.get("tool.name") or known.get("tool_call.function.name") or span["name"] or "unknown"
    arguments = known.get("tool_call.function.arguments", known.get("input.value", known.get("tool.parameters")))
    identity = known.get("tool_call.id") or known.get("tool.id")
    step.call = tool_call(None if identity is None else str(identity), str(name), parse_json(arguments))
    result = known.get("output.value")
    step.result = None if result is None else as_text(result)


def _about(span: Row, known: Row) -> Row:
    usage = {name: known[key] for name, key in _USAGE.items() if type(known.get(key)) in (int, float)}
    cost = known.get("llm.cost.total")
    details: Row = {
        "model": known.get("llm.model_name") or known.get("llm.response.model_name"),
        "usage": {name: int(count) for name, count in usage.items()} or None,
        "cost": cost if isinstance(cost, int | float) else None,
        "error": span["error"],
    }
    return {key: value for key, value in details.items() if value is not None}


def scores_of(known: Row) -> Iterator[tuple[str, Any, Row]]:
    """Yield the scores that the attributes of a span have: a name, a value or a label, and what else is known."""
    names = "\n".join(known)
    if "evaluations." not in names and "annotations." not in names:
        return
    tree = nest(known)
    for holder, of in (("evaluations", "evaluation"), ("annotations", "annotation")):
        lists = [tree.get(holder), *(fields_in(tree.get(level)).get(holder) for level in ("trace", "session"))]
        for item in (entry for value in lists for entry in _members_in_order(value)):
            fields = fields_in(item.get(of))
            score = fields.get("score") if fields.get("score") is not None else fields.get("label")
            if isinstance(fields.get("name"), str) and score is not None:
                others = {"reason": fields.get("explanation"), "label": fields.get("label")}
                yield fields["name"], score, {key: item for key, item in others.items() if item is not None}
