"""Recorded conversations as a caller in Python has them: dicts, samples, histories, in memory or from a stream."""

from __future__ import annotations

from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Sized,
)
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

from vivavoce.conversations.objects import Live, are_messages, conversation_of, is_live
from vivavoce.conversations.own_rows import is_native_message
from vivavoce.errors import UsageError
from vivavoce.langchain_messages import role_of
from vivavoce.messages import ConversationHistory, Message, are_plain
from vivavoce.samples.evaluation import MultiTurnSample, SingleTurnSample
from vivavoce.samples.row import UnknownKeys, read_sample
from vivavoce.samples.sample import Sample

GivenRow = (
    Mapping[str, Any]
    | Sample
    | MultiTurnSample
    | SingleTurnSample
    | ConversationHistory
    | Live
    | Sequence[Message | Live]
)
"""A recorded conversation with what is known about it; a single question with its response is one too.

It may be of any format that `viva validate list formats` has, as plain data or as objects of the package that made it.
"""

GivenRows = Iterable[GivenRow] | AsyncIterable[GivenRow]

_KINDS = (Mapping, Sample, MultiTurnSample, SingleTurnSample, ConversationHistory)
_HERE = Path()
_OF_ROWS = frozenset(("messages", "input", "prompt", "user_input", "goal", "sessions"))


def as_rows(conversations: GivenRow | Iterable[Message] | GivenRows) -> GivenRows:
    """Return conversations as rows; a single one, be it the list of its messages, becomes the only row.

    Raises:
        UsageError: the first row of a sequence is not a conversation.
    """
    _refuse_several(conversations)
    if _is_dataset(conversations):
        return cast("GivenRows", conversations)
    is_dataset = isinstance(conversations, Sized) and not isinstance(conversations, _KINDS)  # ours, or that of Ragas
    if isinstance(conversations, _KINDS) or _of_ragas(conversations) or (is_live(conversations) and not is_dataset):
        return [cast("GivenRow", conversations)]
    if not isinstance(conversations, Sequence) or not conversations:
        return cast("GivenRows", conversations)
    items = cast("Sequence[object]", conversations)
    rows = [{"messages": list(items)}] if _are_messages(items) else cast("Sequence[GivenRow]", conversations)
    _sample_of(rows[0], 0)
    return rows


def _of_ragas(row: object) -> BaseModel | None:
    """Return a sample of Ragas, None for anything else."""
    return row if isinstance(row, BaseModel) and hasattr(row, "user_input") else None


def _is_dataset(value: object) -> bool:
    """Return whether a value is a data set of Hugging Face, whose items are its rows."""
    return all(hasattr(value, name) for name in ("__iter__", "column_names", "features"))


def _refuse_several(value: object) -> None:
    if isinstance(value, Mapping) and any(map(_is_dataset, cast("Mapping[str, object]", value).values())):
        raise UsageError(
            f"several data sets were given; give one of them: {', '.join(cast('Mapping[str, object]', value))}"
        )


def _are_messages(items: Sequence[object]) -> bool:
    """Return whether the items of a list are the messages of one conversation, and no rows."""
    if all(map(_is_message, items)):
        return True
    first = items[0]
    if isinstance(first, Mapping):
        return not _OF_ROWS & cast("Mapping[str, Any]", first).keys() and are_messages(items)
    return is_live(first) and not isinstance(first, _KINDS) and are_messages(items)


def _is_message(item: object) -> bool:
    """Return whether an item of a list is a message that ours reads, and no row."""
    return (
        isinstance(item, Message)
        or role_of(item) is not None
        or (isinstance(item, Mapping) and "role" in item and not _OF_ROWS & item.keys())
    )


def given_samples(
    rows: GivenRows, check: Callable[[Sample], None] | None = None
) -> Iterator[Sample] | AsyncIterator[Sample]:
    """Return the samples of rows, each read when its turn comes; `check` raises `UsageError` for one that is unusable.

    Raises:
        UsageError: when it reaches a row that is not a conversation, or an id that occurred before.
    """
    reader = _Reader(check)
    if isinstance(rows, AsyncIterable):
        return _read_async(rows, reader)
    return map(reader.sample, rows)


def given_sample(row: GivenRow) -> Sample:
    """Return the sample of a single row.

    Raises:
        UsageError: it is not a conversation.
    """
    return _sample_of(row, 0)


async def _read_async(rows: AsyncIterable[GivenRow], reader: _Reader) -> AsyncIterator[Sample]:
    async for row in rows:
        yield reader.sample(row)


class _Reader:
    """Makes samples of rows, and remembers a hash of each id and trial."""

    def __init__(self, check: Callable[[Sample], None] | None) -> None:
        self._check = check
        self._keys: set[int] = set()
        self._position = -1

    def sample(self, row: GivenRow) -> Sample:
        """Return the sample of the next row."""
        self._position += 1
        sample = _sample_of(row, self._position)
        key = hash((sample.id, sample.trial or 0))
        if key in self._keys:
            raise UsageError(f"row {self._position}: the id '{sample.id}' is already used; give each row its own")
        self._keys.add(key)
        if self._check is not None:
            try:
                self._check(sample)
            except UsageError as error:
                raise _of_row(error, self._position) from error
        return sample


def _sample_of(row: GivenRow, position: int) -> Sample:
    try:
        return _read(row, position)
    except UsageError as error:
        raise _of_row(error, position) from error


def _of_row(error: UsageError, position: int) -> UsageError:
    """Return problems that say which row they are about."""
    return UsageError(*(f"row {position}: {problem.message}" for problem in error.problems))


def _read(row: GivenRow, position: int) -> Sample:
    sample = row if isinstance(row, Sample) else _read_row(_fields(row), position)
    if sample.messages is not None:
        return sample
    question, answer = sample.input, sample.metadata.get("response")
    if not isinstance(question, str) or not isinstance(answer, str):
        rule = "give 'messages', or 'user_input' with its 'response'"
        raise UsageError(f"no conversation to measure; {rule}")
    contexts = sample.metadata.get("retrieved_contexts")
    messages = [
        {"role": "user", "content": question},
        {"role": "assistant", "content": answer, "retrieval_context": contexts},
    ]
    fields = {name: getattr(sample, name) for name in sample.model_fields_set - {"input"}}
    rest = {name: value for name, value in sample.metadata.items() if name not in ("response", "retrieved_contexts")}
    return _read_row({**fields, "messages": messages, "metadata": rest}, position)


def _fields(row: GivenRow) -> Mapping[str, Any]:
    """Return a row as the fields of a sample; rows from a caller's program may have any type."""
    if isinstance(row, ConversationHistory):
        return {"id": row.conversation_id, "messages": row.messages}
    if isinstance(row, MultiTurnSample | SingleTurnSample):
        return row.to_dict()
    if isinstance(row, Mapping):
        return row if _is_ours(row) else conversation_of(row) or row
    if (theirs := _of_ragas(row)) is not None:
        return theirs.model_dump(exclude_none=True)
    conversation = conversation_of(row) if isinstance(row, list | tuple) or is_live(row) else None
    if conversation is not None:
        return conversation
    rule = "a row is a dict with 'messages', a sample or a ConversationHistory"
    raise UsageError(f"{rule}; got {type(row).__name__}")


def _is_ours(row: Mapping[str, Any]) -> bool:
    """Return whether a row needs no translation; what is not a list of messages is not looked into."""
    messages: object = row.get("messages")
    if not isinstance(messages, list | tuple):
        return not _OF_ROWS.isdisjoint(row)
    message_list = cast("Sequence[object]", messages)
    return are_plain(message_list) or all(
        isinstance(message, Message)
        or is_native_message(message)
        or (role_of(message) is not None and not is_live(message))
        for message in message_list
    )


def _read_row(row: Mapping[str, Any], position: int) -> Sample:
    return read_sample(row, line=position, position=position, base=_HERE, unknown=UnknownKeys(recorded=True))
