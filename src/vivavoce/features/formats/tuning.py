"""Files for fine-tuning: conversations that are labelled as good, and pairs of a better and a worse turn.

OpenAI has both; the roles in the outputs of a pair are assistant and tool, and the last message is the assistant's.
Claude on Amazon Bedrock has conversations: an optional `system` and at least two texts, which begin with the user, end
with the assistant and alternate; tools and images are not a part of them.
Gemini on Vertex AI has both; calls and results are parts, as in Gemini's contents. A pair has texts only: its contents
end with the user, and each completion is one turn of the model with a score of 1 or 0.
Source: the guides on supervised fine-tuning and on direct preference optimization of OpenAI; the page on preparing data
for Anthropic's models in the user guide of Amazon Bedrock; the pages on preparing data for Gemini of Google Cloud.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from vivavoce.conversations.format import Format, Loss, Record, Row
from vivavoce.conversations.shapes import Message, arguments_of, name_of, text_of
from vivavoce.stats.raters import ratings_at

_UNDECIDED = "neither labels.people nor labels.passed decides"


def verdict(row: Row) -> bool | None:
    """Return whether a conversation is labelled good, None where no label says.

    People come before graders: `labels.people`, where they say the same of all they were asked, else `labels.passed`.
    """
    labels = _mapping(row.get("labels"))
    people = {value in (True, "pass") for value in _mapping(labels.get("people")).values()}
    if people:
        return people.pop() if len(people) == 1 else None
    passed = labels.get("passed")
    return passed if isinstance(passed, bool) else None


def decided_by(rows: Iterable[Row], label: str, good_from: float | None, loss: Loss) -> Iterator[Row]:
    """Yield rows whose only label is whether they passed, as the label at a dotted path says.

    Raters who say yes or no decide by majority, numbers by a mean from `good_from` on.
    """
    for row in rows:
        loss.at(row)
        try:
            ratings = ratings_at(row.get("labels"), label)
        except ValueError as error:
            loss.add_broken(str(error))
            continue
        yield {**row, "labels": {"passed": None if ratings is None else ratings.good(good_from)}}


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def good(rows: Iterable[Row], loss: Loss) -> Iterator[tuple[Row, list[Message]]]:
    """Yield the conversations that are labelled good, each up to the last message of the assistant."""
    for row in rows:
        loss.at(row)
        is_good = verdict(row)
        if is_good is None:
            loss.add_dropped(f"conversation that no label calls good: {_UNDECIDED}")
        elif not is_good:
            loss.add_dropped("conversation that is labelled as failed")
        elif (messages := _until_reply(cast("list[Message]", row.get("messages") or []), loss)) is not None:
            yield row, messages


def _until_reply(messages: list[Message], loss: Loss) -> list[Message] | None:
    last = max((at for at, message in enumerate(messages) if _is_reply(message)), default=None)
    if last is None:
        loss.add_dropped("conversation without a reply")
        return None
    if last + 1 < len(messages):
        loss.add_dropped("messages after the last reply", count=len(messages) - last - 1)
    return messages[: last + 1]


def _is_reply(message: Message) -> bool:
    return message.get("role") == "assistant" and not message.get("tool_calls")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two ways in which a conversation went on: `before` is what both have in common, and ends with the user."""

    row: Row
    before: list[Message]
    preferred: list[Message]
    other: list[Message]


def pairs(rows: Iterable[Row], loss: Loss) -> Iterator[Pair]:
    """Yield, for a good and a bad conversation that began alike, the turn where they part.

    They begin alike where trials of one sample do, or several targets that were asked the same. Each good one is paired
    once with each bad one; what comes after the first turn that differs is not in the pair.
    """
    began: dict[str, tuple[list[Row], list[Row]]] = {}
    for row in rows:
        loss.at(row)
        is_good = verdict(row)
        messages = cast("list[Message]", row.get("messages") or [])
        if is_good is None:
            loss.add_dropped(f"conversation that no label calls good or bad: {_UNDECIDED}")
        elif (opening := _opening(messages)) is None:
            loss.add_dropped("conversation without a reply")
        else:
            began.setdefault(opening, ([], []))[0 if is_good else 1].append(row)
    loss.line = 0
    for better, worse in began.values():
        if not better or not worse:
            loss.conversation = None
            what = "good conversation" if better else "bad conversation"
            loss.add_dropped(f"{what} without one to pair it with", count=len(better) + len(worse))
        for row in better:
            for other in worse:
                yield from _pair(row, other, loss)


def _opening(messages: Sequence[Message]) -> str | None:
    """Return what is said before the first reply, as something to compare; None without a user or a reply."""
    for at, message in enumerate(messages):
        if message.get("role") == "assistant" and at and messages[at - 1].get("role") == "user":
            return repr([_comparable(message) for message in messages[:at]])
    return None


def _pair(better: Row, worse: Row, loss: Loss) -> Iterator[Pair]:
    ours, theirs = (cast("list[Message]", row["messages"]) for row in (better, worse))
    at = 0
    while at < min(len(ours), len(theirs)) and _comparable(ours[at]) == _comparable(theirs[at]):
        at += 1
    start = max((index + 1 for index, message in enumerate(ours[:at]) if message.get("role") == "user"), default=0)
    preferred, other = _turn(ours, start), _turn(theirs, start)
    if not start or not preferred or not other or preferred == other:
        loss.conversation = str(better.get("id"))
        loss.add_dropped("pair with identical assistant messages")
        return
    yield Pair(better, ours[:start], preferred, other)


def _turn(messages: Sequence[Message], start: int) -> list[Message]:
    """Return what the assistant said and did from a place on, up to the next message of the user."""
    end = next((at for at in range(start, len(messages)) if messages[at].get("role") == "user"), len(messages))
    turn = list(messages[start:end])
    while turn and not _is_reply(turn[-1]):
        turn.pop()
    return turn


def _comparable(message: Message) -> tuple[Any, ...]:
    calls = cast("list[Row]", message.get("tool_calls") or [])
    return message.get("role"), message.get("content"), tuple(repr(call.get("function")) for call in calls)


_KEYS = ("role", "content", "name", "tool_calls", "tool_call_id", "refusal")


def wire(messages: list[Message]) -> list[Message]:
    """Return messages with the keys that OpenAI's files have."""
    return [{key: message[key] for key in _KEYS if key in message} for message in messages]


def tools_of(row: Row) -> dict[str, list[Row]]:
    """Return the descriptions of tools that are kept with a conversation, as they stand next to messages."""
    metadata: object = row.get("metadata")
    tools: object = cast("Row", metadata).get("tools") if isinstance(metadata, dict) else None
    entries = cast("list[Any]", tools) if isinstance(tools, list) else []
    descriptions = [cast("Row", entry) for entry in entries if isinstance(entry, dict)]
    return {"tools": descriptions} if descriptions else {}


def _write_openai(rows: Iterable[Row], loss: Loss) -> Iterator[Any]:
    for row, messages in good(rows, loss):
        yield {"messages": wire(messages), **tools_of(row)}


def _write_openai_pairs(rows: Iterable[Row], loss: Loss) -> Iterator[Any]:
    for pair in pairs(rows, loss):
        yield {
            "input": {"messages": wire(pair.before), "tools": [], "parallel_tool_calls": True, **tools_of(pair.row)},
            "preferred_output": wire(pair.preferred),
            "non_preferred_output": wire(pair.other),
        }


def fits_none(record: Record) -> bool:
    """Return that no record is of a format that is written only."""
    return False


OPENAI_TUNING = Format("openai-tuning", "OpenAI supervised fine-tuning", fits_none, None, _write_openai)
OPENAI_PREFERENCE = Format("openai-preference", "OpenAI preference optimization", fits_none, None, _write_openai_pairs)


def _write_anthropic(rows: Iterable[Row], loss: Loss) -> Iterator[Any]:
    for _, messages in good(rows, loss):
        instructions = [
            text_of(message.get("content")) for message in messages if message["role"] in ("system", "developer")
        ]
        texts = list(_texts(messages, loss))
        while texts and texts[0]["role"] == "assistant":
            loss.add_dropped("assistant text before the first user message")
            texts.pop(0)
        if len(texts) < 2:
            loss.add_dropped("conversation without a text question and answer")
            continue
        yield {**({"system": "\n\n".join(instructions)} if instructions else {}), "messages": texts}


def _texts(messages: list[Message], loss: Loss) -> Iterator[Row]:
    """Yield the words of user and assistant in turn; those of one speaker in a row are one message."""
    speaker, words = "", list[str]()
    for index, message in enumerate(messages):
        role = message["role"]
        if role == "tool" or message.get("tool_calls"):
            loss.add_dropped("tool call" if role != "tool" else "result of a tool", index)
        text = text_of(message.get("content"))
        if role not in ("user", "assistant") or not text.strip():
            continue
        if role != speaker and words:
            yield {"role": speaker, "content": "\n\n".join(words)}
            words = []
        speaker = role
        words.append(text)
    if words:
        yield {"role": speaker, "content": "\n\n".join(words)}


ANTHROPIC_TUNING = Format(
    "anthropic-tuning", "fine-tuning of Claude on Amazon Bedrock", fits_none, None, _write_anthropic
)


def _write_gemini(rows: Iterable[Row], loss: Loss) -> Iterator[Any]:
    for row, messages in good(rows, loss):
        declared = [tool["function"] for tool in tools_of(row).get("tools", []) if "function" in tool]
        beside = {"tools": [{"functionDeclarations": declared}]} if declared else {}
        yield {**_instruction(messages, "systemInstruction", "system"), "contents": _contents(messages, loss), **beside}


def _write_gemini_pairs(rows: Iterable[Row], loss: Loss) -> Iterator[Any]:
    for pair in pairs(rows, loss):
        if any(
            message.get("tool_calls") or message["role"] == "tool"
            for message in (*pair.before, *pair.preferred, *pair.other)
        ):
            loss.add_dropped("pair with tool calls")
            continue
        yield {
            **_instruction(pair.before, "system_instruction"),
            "contents": _contents(pair.before, loss),
            "completions": [_completion(1, pair.preferred), _completion(0, pair.other)],
        }


def _instruction(messages: list[Message], key: str, role: str | None = None) -> Row:
    instructions = [
        text_of(message.get("content")) for message in messages if message["role"] in ("system", "developer")
    ]
    if not instructions:
        return {}
    return {key: {**({"role": role} if role else {}), "parts": [{"text": "\n\n".join(instructions)}]}}


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
        loss.add_dropped("parts of a message that are not text", index)
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


GEMINI_TUNING = Format("gemini-tuning", "supervised tuning of Gemini on Vertex AI", fits_none, None, _write_gemini)
GEMINI_PREFERENCE = Format(
    "gemini-preference", "preference tuning of Gemini on Vertex AI", fits_none, None, _write_gemini_pairs
)
