"""Vertex AI's files for tuning Gemini: conversations to imitate, and pairs of a better and a worse reply.

Calls and results are parts, as in Gemini's contents. A pair has texts only: its contents end with the user, and each
completion is one turn of the model with a score of 1 or 0.
Source: the pages on preparing supervised and preference tuning data for Gemini in Google Cloud's documentation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from vivavoce.conversations.format import Format, Loss, Row
from vivavoce.conversations.messages_of_formats import Message, text_of
from vivavoce.conversations.shapes import arguments_of, name_of
from vivavoce.features.formats.labelled import good, pairs
from vivavoce.features.formats.openai_tuning import fits_none, tools_of


def _write(rows: Iterable[Row], loss: Loss) -> Iterator[Any]:
    for row, messages in good(rows, loss):
        declared = [tool["function"] for tool in tools_of(row).get("tools", []) if "function" in tool]
        beside = {"tools": [{"functionDeclarations": declared}]} if declared else {}
        yield {**_instruction(messages, "systemInstruction", "system"), "contents": _contents(messages, loss), **beside}


def _write_pairs(rows: Iterable[Row], loss: Loss) -> Iterator[Any]:
    for pair in pairs(rows, loss):
        if any(one.get("tool_calls") or one["role"] == "tool" for one in (*pair.before, *pair.preferred, *pair.other)):
            loss.dropped("pair with tool calls")
            continue
        yield {
            **_instruction(pair.before, "system_instruction"),
            "contents": _contents(pair.before, loss),
            "completions": [_completion(1, pair.preferred), _completion(0, pair.other)],
        }


def _instruction(messages: list[Message], key: str, role: str | None = None) -> Row:
    told = [text_of(message.get("content")) for message in messages if message["role"] in ("system", "developer")]
    if not told:
        return {}
    return {key: {**({"role": role} if role else {}), "parts": [{"text": "\n\n".join(told)}]}}


def _contents(messages: list[Message], loss: Loss) -> list[Row]:
    """Return contents of user and model in turn; what one of them says in a row is one content."""
    contents: list[Row] = []
    names: dict[str, str] = {}
    for index, message in enumerate(messages):
        if message["role"] in ("system", "developer"):
            continue
        for call in cast("list[Row]", message.get("tool_calls") or []):
            names[str(call.get("id"))] = name_of(call)
        role = "model" if message["role"] == "assistant" else "user"
        parts = list(_parts(message, names, index, loss))
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"] += parts
        elif parts:
            contents.append({"role": role, "parts": parts})
    return contents


def _parts(message: Message, names: dict[str, str], index: int, loss: Loss) -> Iterator[Row]:
    content: object = message.get("content")
    if isinstance(content, list) and any(part.get("type") != "text" for part in cast("list[Row]", content)):
        loss.dropped("parts of a message that are not text", index)
    text = text_of(content)
    if message["role"] == "tool":
        name = str(message.get("name") or names.get(str(message.get("tool_call_id")), "tool"))
        yield {"functionResponse": {"name": name, "response": {"result": text}}}
        return
    if text:
        yield {"text": text}
    for call in cast("list[Row]", message.get("tool_calls") or []):
        yield {"functionCall": {"name": name_of(call), "args": arguments_of(call)}}


def _completion(score: int, turn: list[Message]) -> Row:
    text = "\n\n".join(filter(None, (text_of(message.get("content")) for message in turn)))
    return {"score": score, "completion": {"role": "model", "parts": [{"text": text}]}}


TUNING = Format("gemini-tuning", "supervised tuning of Gemini on Vertex AI", fits_none, None, _write)
PREFERENCE = Format("gemini-preference", "preference tuning of Gemini on Vertex AI", fits_none, None, _write_pairs)
