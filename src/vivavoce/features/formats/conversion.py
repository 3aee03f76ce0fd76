"""A file of conversations in one format, written in another; and suites of other tools, translated into ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, TextIO, cast

from vivavoce.conversations.format import NATIVE, SOURCE, Format, Loss, Place, Row
from vivavoce.conversations.own_rows import check_columns, conversation_problem
from vivavoce.conversations.reading import files_in, format_with, read
from vivavoce.errors import Problem, UsageError, VivavoceError, did_you_mean
from vivavoce.features.formats.tuning import decided_by
from vivavoce.files.paths import whole_file
from vivavoce.files.rows import format_of, read_rows
from vivavoce.messages import AnyMessage, ToolMessage, read_messages
from vivavoce.plugins import lazy
from vivavoce.safe_text import encodable

_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode

OF_AGENTS = ("agent_tools", "handoff_to")
"""What a message of ours has in addition to the name of its agent."""


def texts(rows: Iterable[Row], format_: Format, loss: Loss) -> Iterator[str]:
    """Return the text of a file piece by piece.

    Raises:
        UsageError: the format is one that is read only.
    """
    if format_.write is None:
        raise UsageError(f"the format {format_.title} is read-only")
    records = format_.write(rows if format_.name == NATIVE else _conversation_rows(rows, format_, loss), loss)
    return map(_text, records) if format_.document is None else iter([_text(format_.document(records))])


def _conversation_rows(rows: Iterable[Row], format_: Format, loss: Loss) -> Iterator[Row]:
    """Yield the rows that hold a conversation, with its messages in our shape."""
    for row in rows:
        loss.at(row)
        messages: object = row.get("messages")
        if not isinstance(messages, list):
            loss.add_dropped("row without a recorded conversation")
            continue
        try:
            read = read_messages(cast("list[Row]", messages))
        except ValueError as error:
            loss.add_broken(str(error))
        else:
            for index, message in enumerate(read if not format_.keeps_keys else ()):
                beside = {**(message.model_extra or {}), **({"session": message.session} if message.session else {})}
                loss.left_out(beside, beside, index)
            plain = [_with_outcome(message) for message in read]
            unknown = () if format_.keeps_agents else OF_AGENTS
            unknown += () if format_.keeps_outcomes or format_.keeps_keys else ("outcome",)
            yield {**row, "messages": _without(plain, unknown, loss)}


def _with_outcome(message: AnyMessage) -> Row:
    """Return a message as plain data; how a call ended is its `outcome`, whatever mark said so."""
    fields = message.to_dict()
    if isinstance(message, ToolMessage) and (outcome := message.stated_outcome) is not None:
        fields["outcome"] = outcome
    return fields


def _without(messages: list[Row], keys: tuple[str, ...], loss: Loss) -> list[Row]:
    """Return messages without what a format cannot hold, and tell the report."""
    for index, message in enumerate(messages):
        loss.left_out(message, keys, index)
    return [{key: value for key, value in message.items() if key not in keys} for message in messages]


def _text(value: Any) -> str:
    return encodable(_ENCODE(value)) + "\n"


_Name = tuple[str, str]
"""The id of a conversation and its trial."""


class LossError(UsageError):
    """A conversion that may lose nothing would lose something; nothing was written."""


class NothingRead(VivavoceError):
    """A file or folder holds no conversation that can be read; nothing was written."""


@dataclass(slots=True)
class Conversion:
    """What was converted: from which format to which, and how much of it.

    `known` counts the conversations that the written file held before, `changed` those of them that are another now
    and were left as they were there.
    """

    source: Format
    target: Format
    loss: Loss
    conversations: int = 0
    messages: int = 0
    known: int = 0
    changed: int = 0


@dataclass(frozen=True, slots=True)
class How:
    """How to convert.

    Attributes:
        source: the format of what is read; without it, the first conversations show it.
        strict: write nothing if anything would be lost.
        label: the dotted path of the label that says which conversations are good, for files of tuning.
        good_from: from which number a label says so.
        progress: called with the number of conversations so far.
        fields: by what a message has, the column that holds it, of a table with a message in each row.
    """

    source: Format | None = None
    strict: bool = False
    label: str | None = None
    good_from: float | None = None
    progress: Callable[[int], None] | None = None
    fields: Mapping[str, str] = field(default_factory=dict[str, str])


def convert(source: Path, out: Path | TextIO, to: Format, loss: Loss, how: How = How()) -> Conversion:
    """Convert a file, or the files of a folder.

    `loss` takes note of what the new file lacks. Rows of ours are added to a JSONL file that is there already,
    without those of the same source; any other file is rewritten, whole or not at all.

    Raises:
        LossError: `how` is strict, and something would be lost.
        NothingRead: there is no conversation that can be read.
        UsageError: a file cannot be read or written, or a format only the other way.
    """
    files = files_in(source)
    done = Conversion(_source(files, how), to, loss)
    if done.source.name == NATIVE:
        for file in files:
            check_columns(file, loss)
    conversations = read(files, done.source, loss)
    rows = _count_rows(
        _conversations(conversations, loss) if done.source.name == NATIVE else conversations, done, how.progress
    )
    if how.label is not None:
        rows = decided_by(rows, how.label, how.good_from, loss)
    if to.name == NATIVE:
        present = _PresentRows(out) if isinstance(out, Path) and out.is_file() else None
        rows = _with_source(rows, done, present)
    else:
        present = None
    lines = texts(rows, to, loss)
    if isinstance(out, Path):
        with whole_file(out) as new, new.open("wb") as file:
            if present is not None:
                present.copy(file.write)
            for line in lines:
                file.write(line.encode())
            refuse_loss(loss, how.strict)
            _refuse_nothing(source, done)
    else:
        texts_to_write = list(lines) if how.strict else lines
        if how.strict:
            refuse_loss(loss, how.strict)
        out.writelines(texts_to_write)
        _refuse_nothing(source, done)
    return done


def _refuse_nothing(source: Path, done: Conversion) -> None:
    if not done.conversations:
        raise NothingRead(
            f"{source}: read as {done.source.title}, it has no readable conversation, so nothing was written; "
            "name another format with --from"
        )


def _conversations(rows: Iterable[tuple[Place, Row]], loss: Loss) -> Iterator[tuple[Place, Row]]:
    """Yield those of our own rows that are conversations, or ask for one, as every reader of our rows takes them."""
    for place, row in rows:
        if (problem := conversation_problem(row)) is None:
            yield place, row
        else:
            loss.add_broken(problem)


def _source(files: Sequence[Path], how: How) -> Format:
    format_, others = format_with(files[0], how.source, how.fields)
    if others:
        names = (
            f"it has: {', '.join(format_.columns)}"
            if format_.columns
            else "only tables with one message per row have any"
        )
        raise UsageError(f"{next(iter(others))}: {format_.title} has no such column; {names}")
    return format_


def refuse_loss(loss: Loss, strict: bool) -> None:
    """Refuse a loss, if `strict`.

    Raises:
        LossError: something would be lost.
    """
    if strict and not loss.is_lossless:
        raise LossError("\n".join(("this would lose something, so nothing was written", *loss.lines())))


def _count_rows(
    rows: Iterable[tuple[Any, Row]], done: Conversion, progress: Callable[[int], None] | None
) -> Iterator[Row]:
    for _, row in rows:
        done.conversations += 1
        done.messages += len(cast("list[Any]", row.get("messages") or ()))
        if progress is not None:
            progress(done.conversations)
        yield row


class _PresentRows:
    """The rows of a file that is added to: their ids, and what they were made of."""

    def __init__(self, path: Path) -> None:
        if format_of(path) != "jsonl":
            raise UsageError(Problem("already exists; rows can be appended to JSONL only", path))
        self._path = path
        self.ids: set[_Name] = set()
        self.sources: dict[tuple[str, str], str] = {}
        for _, row in read_rows(path):
            self.ids.add((str(row.get("id")), str(row.get("trial") or 0)))
            metadata: object = row.get("metadata")
            made_of: object = cast("Row", metadata).get(SOURCE) if isinstance(metadata, dict) else None
            if isinstance(made_of, dict):
                known = cast("Row", made_of)
                self.sources[str(known.get("format")), str(known.get("id"))] = str(known.get("hash"))

    def copy(self, write: Callable[[bytes], Any]) -> None:
        """Copy the file as it is, ended by a line break."""
        last = b"\n"
        with self._path.open("rb") as file:
            while piece := file.read(1 << 20):
                write(piece)
                last = piece[-1:]
        if last != b"\n":
            write(b"\n")


def _with_source(rows: Iterable[Row], done: Conversion, present: _PresentRows | None) -> Iterator[Row]:
    """Yield rows that say what they were made of, each with an id of its own; what is in the file already is left out.

    A conversation without an id is named by its content, so that it has the same id each time. Trials of one id keep
    it.
    """
    used: set[_Name] = set(present.ids) if present else set()
    seen: dict[_Name, int] = {}
    for row in rows:
        content = _hash(row)
        trial = str(row.get("trial") or 0)
        name = str(row["id"]) if row.get("id") is not None else content[:12]
        seen[name, trial] = seen.get((name, trial), 0) + 1
        unlike = name if seen[name, trial] == 1 else f"{name}-{seen[name, trial]}"
        in_source = unlike if trial == "0" else f"{unlike}#{trial}"
        known = None if present is None else present.sources.get((done.source.name, in_source))
        if known is not None:
            done.known += 1
            done.changed += known != content
            continue
        identity = _free(unlike, trial, used)
        used.add((identity, trial))
        made_of = {"format": done.source.name, "id": in_source, "hash": content}
        metadata = cast("Row", row.get("metadata") or {})
        others = {key: value for key, value in row.items() if key != "id"}
        yield {"id": identity, **others, "metadata": {**metadata, SOURCE: made_of}}


def _free(identity: str, trial: str, used: set[_Name]) -> str:
    number, free = 1, identity
    while (free, trial) in used:
        number += 1
        free = f"{identity}-{number}"
    return free


def _hash(row: Row) -> str:
    text = json.dumps(row, sort_keys=True, ensure_ascii=True)
    return blake2b(text.encode(), digest_size=8).hexdigest()


Suite = dict[str, Any]
"""A suite of ours as plain data, its samples in `dataset.rows`."""

SUITE = "suite"
"""What `--to` is called for a suite."""


@dataclass(frozen=True, slots=True)
class SuiteFormat:
    """Suites of one tool: `fits` says of a path and the text of the file whether it is one."""

    name: str
    title: str
    fits: Callable[[Path, str], bool]
    read: Callable[[Path, str, Loss], Suite]


_SUITES = {"promptfoo": "promptfoo:SUITE", "deepeval": "deepeval:SUITE"}


def suite_formats() -> list[SuiteFormat]:
    """Return the tools whose suites can be translated."""
    return [cast("SuiteFormat", lazy(f"vivavoce.features.formats.{reference}")) for reference in _SUITES.values()]


def translate(path: Path, name: str | None, loss: Loss) -> tuple[SuiteFormat, Suite]:
    """Return a suite of another tool as one of ours; what has no translation is in the report.

    Nothing of the file is executed.

    Raises:
        UsageError: the file cannot be read, or is not a suite that we know.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(Problem(f"cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}", path)) from error
    if name is not None and name not in _SUITES:
        raise UsageError(f"cannot translate suites of '{name}'{did_you_mean(name, _SUITES)}: {', '.join(_SUITES)}")
    for known in suite_formats():
        if name == known.name or (name is None and known.fits(path, text)):
            loss.format = known.title
            return known, known.read(path, text, loss)
    raise UsageError(Problem(f"is not a suite of {' or '.join(each.title for each in suite_formats())}", path))
