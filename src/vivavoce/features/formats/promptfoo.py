"""Results of promptfoo, as `promptfoo eval --output` writes them in JSON and JSONL, as graded conversations.

Results of one `metadata.conversationId` and one provider are the turns of one conversation. A prompt that is the JSON
of a chat becomes its messages. Assertions become `labels.graders`; whether a result succeeded is `labels.passed`.
Source: files that promptfoo 0.121 wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, cast

from vivavoce.conversations.format import Format, Loss, Place, Record, Row
from vivavoce.conversations.messages_of_formats import Message
from vivavoce.features.formats.promptfoo_suite import list_of, mapping_of

_ROLES = ("system", "developer", "user", "assistant", "tool")
_KEPT = ("latencyMs", "cost", "vars", "tokenUsage")


def _fits(record: Record) -> bool:
    return {"testCase", "promptIdx", "provider"} <= (record.fields or {}).keys()


def _read(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
    together: dict[tuple[str, str], tuple[Place, Row]] = {}
    used: dict[str, int] = {}
    for record in records:
        loss.line, loss.conversation = record.place.line, None
        result = mapping_of(record.value)
        if not _fits(record):
            loss.broken("not a result of promptfoo")
            continue
        row, conversation = _row(result, loss), mapping_of(mapping_of(result["testCase"]).get("metadata"))
        if row is None:
            continue
        if (identity := conversation.get("conversationId")) is None:
            name = str(row["id"])
            used[name] = used.get(name, 0) + 1
            yield record.place, row if used[name] == 1 else {**row, "id": f"{name}-{used[name]}"}
            continue
        key = (str(identity), _provider(result))
        before = together.get(key)
        several = {**row, "id": f"{identity} on {key[1]}"}
        together[key] = (record.place, several) if before is None else (before[0], _joined(before[1], several))
    yield from together.values()


def _row(result: dict[str, Any], loss: Loss) -> Row | None:
    case = mapping_of(result["testCase"])
    name = str(case.get("description") or f"test-{result.get('testIdx', 0)}")
    loss.conversation = name
    output = mapping_of(result.get("response")).get("output")
    if output is None:
        loss.dropped("result without an answer: the target had an error")
        return None
    said = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    grading = mapping_of(result.get("gradingResult"))
    graders: dict[str, Any] = {}
    for part in map(mapping_of, list_of(grading.get("componentResults"))):
        assertion = mapping_of(part.get("assertion"))
        called = str(assertion.get("metric") or f"{assertion.get('type')}: {assertion.get('value')}")[:120]
        graders[called] = {"score": part.get("score"), "passed": part.get("pass"), "reason": part.get("reason")}
    passed = result.get("success")
    labels: dict[str, Any] = {"passed": passed if isinstance(passed, bool) else None, "score": result.get("score")}
    metadata = {key: result[key] for key in _KEPT if result.get(key)}
    return {
        "id": name,
        "messages": [*_asked(mapping_of(result.get("prompt")).get("raw")), {"role": "assistant", "content": said}],
        "labels": {**labels, "graders": graders} if graders else labels,
        "metadata": {**metadata, "provider": _provider(result)},
    }


def _provider(result: dict[str, Any]) -> str:
    provider = mapping_of(result["provider"])
    return str(provider.get("label") or provider.get("id") or result["provider"])


def _asked(raw: Any) -> list[Message]:
    """Return the messages of a prompt: those of a chat, or what the user said."""
    text = raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)
    try:
        chat = json.loads(text)
    except ValueError:
        chat = None
    messages = [mapping_of(one) for one in cast("list[Any]", chat)] if isinstance(chat, list) else []
    if messages and all(
        message.get("role") in _ROLES and isinstance(message.get("content"), str) for message in messages
    ):
        return messages
    return [{"role": "user", "content": text}]


def _joined(before: Row, row: Row) -> Row:
    """Return two turns as one conversation; a prompt that hands the conversation on has it already."""
    earlier, later = cast("list[Message]", before["messages"]), cast("list[Message]", row["messages"])
    handed_on = later[: len(earlier)] == earlier
    labels, more = before["labels"], row["labels"]
    both = (labels["passed"], more["passed"])
    graders = {**labels.get("graders", {}), **more.get("graders", {})}
    return {
        **before,
        "messages": later if handed_on else [*earlier, *later],
        "labels": {"passed": None if None in both else all(both), **({"graders": graders} if graders else {})},
    }


FORMAT = Format("promptfoo", "promptfoo results", _fits, _read, lists=(("results", "results"),))
