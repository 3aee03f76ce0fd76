"""Which of labelled conversations are good, and which pairs of them a person would call better and worse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from vivavoce.conversations.format import Loss, Row
from vivavoce.conversations.messages_of_formats import Message
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
            loss.broken(str(error))
            continue
        yield {**row, "labels": {"passed": None if ratings is None else ratings.good(good_from)}}


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def good(rows: Iterable[Row], loss: Loss) -> Iterator[tuple[Row, list[Message]]]:
    """Yield the conversations that are labelled good, each up to the last message of the assistant."""
    for row in rows:
        loss.at(row)
        found = verdict(row)
        if found is None:
            loss.dropped(f"conversation that no label calls good: {_UNDECIDED}")
        elif not found:
            loss.dropped("conversation that is labelled as failed")
        elif (messages := _until_reply(cast("list[Message]", row.get("messages") or []), loss)) is not None:
            yield row, messages


def _until_reply(messages: list[Message], loss: Loss) -> list[Message] | None:
    last = max((at for at, one in enumerate(messages) if _is_reply(one)), default=None)
    if last is None:
        loss.dropped("conversation without a reply")
        return None
    if last + 1 < len(messages):
        loss.dropped("messages after the last reply", count=len(messages) - last - 1)
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
    """Yield, for conversations that began alike and of which one is good and one is not, the turn where they part.

    They begin alike where trials of one sample do, or several targets that were asked the same. Each good one is paired
    once with each bad one; what comes after the first turn that differs is not in the pair.
    """
    began: dict[str, tuple[list[Row], list[Row]]] = {}
    for row in rows:
        loss.at(row)
        found = verdict(row)
        messages = cast("list[Message]", row.get("messages") or [])
        if found is None:
            loss.dropped(f"conversation that no label calls good or bad: {_UNDECIDED}")
        elif (opening := _opening(messages)) is None:
            loss.dropped("conversation without a reply")
        else:
            began.setdefault(opening, ([], []))[0 if found else 1].append(row)
    loss.line = 0
    for better, worse in began.values():
        if not better or not worse:
            loss.conversation = None
            what = "good conversation" if better else "bad conversation"
            loss.dropped(f"{what} without another that began alike", count=len(better) + len(worse))
        for row in better:
            for other in worse:
                yield from _pair(row, other, loss)


def _opening(messages: Sequence[Message]) -> str | None:
    """Return what is said before the first reply, as something to compare; None without a user or a reply."""
    for at, message in enumerate(messages):
        if message.get("role") == "assistant" and at and messages[at - 1].get("role") == "user":
            return repr([_said(one) for one in messages[:at]])
    return None


def _pair(better: Row, worse: Row, loss: Loss) -> Iterator[Pair]:
    ours, theirs = (cast("list[Message]", row["messages"]) for row in (better, worse))
    at = 0
    while at < min(len(ours), len(theirs)) and _said(ours[at]) == _said(theirs[at]):
        at += 1
    start = max((index + 1 for index, one in enumerate(ours[:at]) if one.get("role") == "user"), default=0)
    preferred, other = _turn(ours, start), _turn(theirs, start)
    if not start or not preferred or not other or preferred == other:
        loss.conversation = str(better.get("id"))
        loss.dropped("pair that differs in nothing that the assistant said")
        return
    yield Pair(better, ours[:start], preferred, other)


def _turn(messages: Sequence[Message], start: int) -> list[Message]:
    """Return what the assistant said and did from a place on, up to the next message of the user."""
    end = next((at for at in range(start, len(messages)) if messages[at].get("role") == "user"), len(messages))
    turn = list(messages[start:end])
    while turn and not _is_reply(turn[-1]):
        turn.pop()
    return turn


def _said(message: Message) -> tuple[Any, ...]:
    calls = cast("list[Row]", message.get("tool_calls") or [])
    return message.get("role"), message.get("content"), tuple(repr(call.get("function")) for call in calls)
