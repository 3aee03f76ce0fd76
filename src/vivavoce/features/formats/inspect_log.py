"""Logs of Inspect AI: `.eval`, which is a zip archive of JSON, and `.json`.

Archives that unfold without end are refused. Scores are labels, with their explanations in the metadata. So are the
events of a sample, without the messages and scores that they hold again.
Source: the models of `inspect_ai.log` and the logs that it writes.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast
from zipfile import BadZipFile, ZipFile, ZipInfo

from vivavoce.comparing.call_outcomes import failed_if
from vivavoce.comparing.json_values import BrokenJson, check_depth, decode_lenient_from, wrap_decode_error
from vivavoce.conversations.format import NO_MESSAGES, Format, Loss, Place, Record, Row, scan_document
from vivavoce.conversations.shapes import (
    Message,
    drop_empty,
    fields_in,
    number_in,
    objects_in,
    set_aside,
    state_outcome,
    text_in,
    text_of,
    time_in,
    tool_call,
    without,
)
from vivavoce.errors import Problem
from vivavoce.features.formats.traced import Repeats
from vivavoce.files.frames import unpack_zstandard
from vivavoce.files.json_document import JsonDocument
from vivavoce.files.rows import open_file

BEGINS = b"PK\x03\x04"
"""The first bytes of a zip archive."""

_MAX_BYTES = 256 * 1024**2
"""Bytes that a file in an archive may have; it is in memory while it is read."""
_UNFOLDS = 200
"""How many times its own size an archive may unfold to, if that is more than one file may have."""
_ZSTANDARD = 93
_HEADER = 30
_UNREADABLE = (BadZipFile, OSError, EOFError, RuntimeError, NotImplementedError, zlib.error, UnicodeDecodeError)


def json_members(path: Path, *names: str) -> Iterator[tuple[str, Any] | Problem]:
    """Yield the name and the value of each file in an archive that `names` begin, in their order there.

    NaN is None. A file that cannot be read is a `Problem`, and the next one is read.

    Raises:
        UsageError: the archive cannot be opened.
        MissingExtra: it is compressed with Zstandard, which Python can read from 3.14 on, and pyarrow is not there.
    """
    with open_file(path) as file:
        try:
            archive = ZipFile(file)
        except (BadZipFile, OSError, ValueError) as error:
            yield Problem(f"is not a complete zip archive: {error}", path)
            return
        size, unfolded = path.stat().st_size, sum(info.file_size for info in archive.infolist())
        if unfolded > max(_MAX_BYTES, size * _UNFOLDS):
            yield Problem(f"expands from {size:,} to {unfolded:,} bytes; too large for a log", path)
            return
        for info in archive.infolist():
            if info.filename.startswith(names) and info.filename.endswith(".json"):
                yield _member(archive, file, info, path)


def _member(archive: ZipFile, file: BinaryIO, info: ZipInfo, path: Path) -> tuple[str, Any] | Problem:
    if info.file_size > _MAX_BYTES:
        return Problem(f"{info.filename} has {info.file_size:,} bytes; at most {_MAX_BYTES:,} are read", path)
    try:
        return info.filename, _value(_unpack(archive, file, info).decode())
    except BrokenJson as error:
        return Problem(f"{info.filename}: {error}", path)
    except _UNREADABLE as error:
        return Problem(f"{info.filename} cannot be read: {error}", path)


def _unpack(archive: ZipFile, file: BinaryIO, info: ZipInfo) -> bytes:
    try:
        with archive.open(info) as member:
            return member.read(info.file_size)
    except NotImplementedError:
        if info.compress_type != _ZSTANDARD or info.flag_bits & 1:
            raise
    data = unpack_zstandard(_packed_bytes(file, info), info.file_size)
    if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
        raise BadZipFile("it is damaged")
    return data


def _packed_bytes(file: BinaryIO, info: ZipInfo) -> bytes:
    """Return the bytes of a file as they are in the archive; its own header says how far behind it they begin."""
    file.seek(info.header_offset)
    header = file.read(_HEADER)
    file.seek(int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little"), 1)
    return file.read(info.compress_size)


def _value(text: str) -> Any:
    try:
        value, _ = decode_lenient_from(text, len(text) - len(text.lstrip()))
    except (ValueError, RecursionError) as error:
        raise wrap_decode_error(error) from error
    check_depth(value)
    return value


_POSITIONS = ("input_refs", "call_refs")
"""Where in a pool of its own a log keeps what an event holds."""


def more_than_messages(sample: Row, messages: list[Row], loss: Loss) -> Row:
    """Return what is to be kept of the events and the output of a sample; `said` are its messages."""
    scores = [fields_in(score) for score in fields_in(sample.get("scores")).values()]
    repeats = Repeats(_key_of, [*messages, *scores])
    results = {
        text_in(item.get("tool_call_id")): item.get("content") for item in messages if item.get("role") == "tool"
    }
    events = [_event(event, sample, results) for event in objects_in(sample.get("events"))]
    extra = {
        "output": repeats.rest_of(without(fields_in(sample.get("output")), ("completion",))),
        "events": repeats.rest_of(events),
        "events_data": drop_empty(repeats.rest_of(fields_in(sample.get("events_data")))),
    }
    repeats.tell(loss, len(events))
    return extra


def _event(event: Row, sample: Row, results: Mapping[str | None, Any]) -> Row:
    """Return an event without what the messages and its sample say of it."""
    rest = without(event, _POSITIONS)
    match event.get("event"):
        case "tool" if event.get("result") is not None and results.get(text_in(event.get("id"))) == event["result"]:
            return without(rest, ("arguments", "result"))
        case "sample_init":
            changes = {key: value for key, value in fields_in(event.get("sample")).items() if value != sample.get(key)}
            return {**rest, "sample": changes}
        case _:
            return rest


def _key_of(fields: Row) -> Hashable | None:
    if isinstance(fields.get("role"), str) and "content" in fields:
        return ("message", fields["role"], _json(fields["content"]), _json(_calls(fields)))
    if "parameters" in fields and "name" in fields:
        return ("tool", _json(fields))
    if "value" in fields and "explanation" in fields:
        return ("score", _json({key: fields.get(key) for key in ("value", "answer", "explanation", "metadata")}))
    return None


def _calls(fields: Row) -> list[Any]:
    return [(call.get("function"), call.get("arguments")) for call in objects_in(fields.get("tool_calls"))]


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


NAME = "inspect"
_ROLES = ("system", "user", "assistant", "tool")
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""What Inspect counts for correct, partly correct, incorrect and no answer."""
_ATTACHMENT = "attachment://"
_READ_KEYS = ("id", "epoch", "input", "target", "messages", "scores", "metadata")
_BESIDE = ("output", "events", "events_data")
_OF_MESSAGE = frozenset(("role", "content", "tool_calls", "tool_call_id", "function"))


def _fits(record: Record) -> bool:
    fields = record.fields or {}
    return {"epoch", "target", "messages"} <= fields.keys() or {"eval", "plan", "stats"} <= fields.keys()


def _records(path: Path) -> Iterator[Record | Problem]:
    with open_file(path) as file:
        zipped = file.read(len(BEGINS)) == BEGINS
        file.seek(0)
        if not zipped:
            document = JsonDocument(file, decode_lenient_from)
            yield from scan_document(document, path, (("samples",),))
            return
    yield from _scan_archive(path)


def _scan_archive(path: Path) -> Iterator[Record | Problem]:
    """Yield the samples of an archive with the header of the log; in one that was cut off it is in the journal."""
    heads = (head[1] for head in json_members(path, "header.", "_journal/start.") if not isinstance(head, Problem))
    beside: Row = {}
    for head in heads:
        beside |= fields_in(head)
    number = 0
    for number, entry in enumerate(json_members(path, "samples/"), 1):
        yield entry if isinstance(entry, Problem) else Record(Place(path, number), entry[1], beside)
    if not number:
        yield Problem("has no samples", path)


def _read(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
    for record in records:
        fields = record.fields or {}
        loss.conversation = text_in(fields.get("id"))
        if not isinstance(fields.get("messages"), list):
            loss.add_broken("not a log sample: it needs 'messages'")
            continue
        row = _row(fields, fields_in(record.beside.get("eval")), loss)
        if "messages" in row:
            yield record.place, row
        else:
            loss.add_broken(NO_MESSAGES)


def _row(sample: Row, spec: Mapping[str, Any], loss: Loss) -> Row:
    attached = fields_in(sample.get("attachments"))
    entries = objects_in(sample["messages"]) or _input_messages(sample.get("input"))
    task, identity, epoch = text_in(spec.get("task")), text_in(sample.get("id")), sample.get("epoch")
    scores = fields_in(sample.get("scores"))
    targets = sample.get("target")
    target = cast("list[Any]", targets) if isinstance(targets, list) else [targets]
    recorded = _unfold({key: sample.get(key) for key in _BESIDE}, attached, loss)
    more = more_than_messages({**sample, **recorded}, _unfold(entries, attached, Loss()), loss)
    return drop_empty(
        {
            "id": f"{task}/{identity}" if task and identity else identity,
            "trial": epoch - 1 if isinstance(epoch, int) and epoch > 0 and not isinstance(epoch, bool) else None,
            "messages": [message for item in entries if (message := _message(item, attached, loss)) is not None],
            "ground_truth": text_in(target[0]) if len(target) == 1 else None,
            "labels": _labels(scores),
            "metadata": drop_empty(
                {
                    "model": text_in(spec.get("model")),
                    "task": task,
                    "targets": target if len(target) > 1 else None,
                    "scores": {name: _without_history(score) for name, score in scores.items()},
                    **without(sample, (*_READ_KEYS, *_BESIDE, "attachments")),
                    **more,
                    "sample": fields_in(sample.get("metadata")),
                }
            ),
        }
    )


def _input_messages(prompt: Any) -> list[Row]:
    """Return what a sample was asked, for one that broke before anything was said."""
    return [{"role": "user", "content": prompt}] if isinstance(prompt, str) and prompt else objects_in(prompt)


def _labels(scores: Row) -> Row:
    labels: Row = {}
    for name, score in scores.items():
        value = fields_in(score).get("value")
        for part, part_value in (fields_in(value) or {"": value}).items():
            if (label := _label(part_value)) is not None:
                labels[f"{name}.{part}" if part else name] = label
    return labels


def _label(value: Any) -> Any:
    if isinstance(value, str):
        return _LETTERS.get(value, value) if value else None
    return value if isinstance(value, bool) else number_in(value)


def _without_history(score: Any) -> Row:
    return drop_empty(without(fields_in(score), ("history",)))


def _message(item: Row, attached: Row, loss: Loss) -> Message | None:
    role = item.get("role")
    if role not in _ROLES:
        loss.add_dropped(f"a message of the role {role!r}"[:80])
        return None
    extra = without(item, _OF_MESSAGE)
    message: Message = {"role": role, "content": _content(_unfold(item.get("content"), attached, loss), extra, loss)}
    if role == "assistant" and (calls := objects_in(item.get("tool_calls"))):
        message["tool_calls"] = [_call(call, attached, loss) for call in calls]
    if role == "tool":
        message["tool_call_id"] = text_in(item.get("tool_call_id"))
        error = fields_in(item.get("error"))
        state_outcome(message, "refused" if error.get("type") == "approval" else failed_if(error))
        if name := text_in(item.get("function")):
            message["name"] = name
    if (time := time_in(item.get("timestamp"))) is not None:
        message["timestamp"] = time
    set_aside(message, NAME, extra)
    return message


def _call(call: Row, attached: Row, loss: Loss) -> Row:
    arguments = _unfold(call.get("arguments"), attached, loss)
    return tool_call(text_in(call.get("id")), text_in(call.get("function")) or "", arguments)


def _unfold(value: Any, attached: Row, loss: Loss) -> Any:
    """Return a value in which long texts stand where the log only refers to them."""
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        text: object = attached.get(value[len(_ATTACHMENT) :])
        if isinstance(text, str):
            return text
        loss.add_dropped("text the log refers to but does not contain")
    elif isinstance(value, list):
        return [_unfold(inner, attached, loss) for inner in cast("list[Any]", value)]
    elif isinstance(value, dict):
        return {key: _unfold(inner, attached, loss) for key, inner in cast("Row", value).items()}
    return value


def _content(content: Any, extra: Row, loss: Loss) -> Any:
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    parts: list[Row] = []
    for part in objects_in(cast("list[Any]", content)):
        if (ours := _part(part)) is not None:
            parts.append(ours)
        else:
            loss.aside(text_in(part.get("type")) or "a part without a type")
            extra["content"] = content
    if all(part["type"] == "text" for part in parts):
        return text_of(parts)
    return parts


def _part(part: Row) -> Row | None:
    match part.get("type"), part.get("text"), part.get("image"):
        case "text", str(text), _:
            return {"type": "text", "text": text}
        case "image", _, str(url):
            return {"type": "image_url", "image_url": {"url": url}}
        case _:
            return None


FORMAT = Format(NAME, "Inspect logs", _fits, _read, lists=(("samples",),), begins=BEGINS, records=_records)
