"""Words of conversations: how texts are cut into them, and which of them a store knows."""

from __future__ import annotations

import json
import string
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import regex
from sqlalchemy import Connection, select

from vivavoce.records.score import State
from vivavoce.store.database.database import any_of
from vivavoce.store.database.schema import scores, turns


class Piece(NamedTuple):
    """A text; `by` is the role of a message, or the grader of a reason, whose score has `state` and `passed`.

    `turn` is None for a reason about a whole conversation.
    """

    turn: int | None
    text: str
    by: str
    state: State | None = None
    passed: int | None = None


Pieces = dict[tuple[int, str], list[Piece]]
"""By attempt and grading, which is empty for what was said: the texts in their order."""


def pieces_of(connection: Connection, which: Sequence[tuple[int, str]]) -> Pieces:
    """Return the texts of attempts and of gradings of attempts."""
    found: Pieces = {one: [] for one in which}
    said = [number for number, grading_id in which if not grading_id]
    t = turns.c
    query = select(t.attempt_id, t.idx, t.messages).where(any_of(connection, t.attempt_id, said))
    for row in connection.execute(query.order_by(t.attempt_id, t.idx)):
        found[row.attempt_id, ""] += [Piece(row.idx, text, role) for role, text in _message_texts(row.messages)]
    s = scores.c
    judged = list({number for number, grading_id in which if grading_id})
    query = select(s.attempt_id, s.grading_id, s.turn, s.reason, s.name, s.state, s.passed).order_by(s.id)
    query = query.where(any_of(connection, s.attempt_id, judged), s.reason.is_not(None))
    for row in connection.execute(query):
        if (pieces := found.get((row.attempt_id, row.grading_id))) is not None:
            pieces.append(Piece(row.turn, row.reason, row.name, row.state, row.passed))
    return found


def _message_texts(messages: str) -> Iterator[tuple[str, str]]:
    held: list[dict[str, Any]] = json.loads(messages)
    for message in held:
        content: str | list[dict[str, Any]] | None = message.get("content")
        parts = [{"text": content}] if isinstance(content, str) else content or ()
        yield from ((message.get("role", ""), part["text"]) for part in parts if part.get("text"))


LONGEST = 30_000
"""Maximum characters of a passage; PostgreSQL numbers no more than 16,383 words of a text."""

BEFORE, AFTER = 40, 120
"""Characters of a snippet before and after the first word."""

_SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORD = regex.compile(
    rf"[{_SPACELESS}]\p{{M}}*|[[\p{{L}}\p{{N}}]--[{_SPACELESS}]][[\p{{L}}\p{{N}}\p{{M}}]--[{_SPACELESS}]]*",
    regex.VERSION1,
)
_ASCII = str.maketrans(
    {chr(code): chr(code).lower() if chr(code) in string.ascii_letters + string.digits else " " for code in range(128)}
)


class Snippet(NamedTuple):
    """An excerpt of a text, with the position of the searched word."""

    text: str
    start: int
    end: int


def folded(text: str) -> str:
    """Return the words of a text, separated by spaces, in the form used for comparison."""
    if text.isascii():
        return text.translate(_ASCII)
    return " ".join(_fold(found) for found in _WORD.findall(text))


def stretches(texts: Iterable[str]) -> Iterator[str]:
    """Yield the words of texts, passage by passage."""
    held: list[str] = []
    size = 0
    for text in texts:
        for start in range(0, len(text), LONGEST):
            piece = text[start : start + LONGEST]
            if size + len(piece) > LONGEST:
                yield " ".join(held)
                held, size = [], 0
            held.append(folded(piece))
            size += len(piece)
    if size:
        yield " ".join(held)


def snippet(text: str, query_words: Sequence[str]) -> Snippet | None:
    """Return the excerpt of a text around the first of the words, None if it has none of them.

    Without words, it is the beginning of the text.
    """
    if not query_words:
        return Snippet(text[: BEFORE + AFTER], 0, 0) if text.strip() else None
    spans = _spans(text, query_words)
    if spans is None:
        return None
    start, end = spans[0]
    begin = max(0, start - BEFORE)
    return Snippet(text[begin : end + AFTER], start - begin, end - begin)


def marked(text: str, query_words: Sequence[str]) -> list[tuple[str, bool]]:
    """Return a text in pieces, each with whether it is a word of a query."""
    parts: list[tuple[str, bool]] = []
    at = 0
    for start, end in _spans(text, query_words) or ():
        parts += [(text[at:start], False), (text[start:end], True)]
        at = end
    return [part for part in [*parts, (text[at:], False)] if part[0]]


def _spans(text: str, query_words: Sequence[str]) -> list[tuple[int, int]] | None:
    """Return where phrases are in a text, else where single words of them do; None where none does."""
    words = [(*found.span(), word) for found in _WORD.finditer(text) for word in _fold(found[0]).split()]
    wanted = [tuple(phrase.split()) for phrase in query_words]
    first: dict[str, list[tuple[str, ...]]] = {}
    for phrase in wanted:
        first.setdefault(phrase[0], []).append(phrase)
    whole = [
        (start, words[at + len(phrase) - 1][1])
        for at, (start, _, word) in enumerate(words)
        for phrase in first.get(word, ())
        if tuple(one[2] for one in words[at : at + len(phrase)]) == phrase
    ]
    single = {word for phrase in wanted for word in phrase}
    spans = sorted(whole or [(start, end) for start, end, word in words if word in single])
    kept = [span for at, span in enumerate(spans) if at == 0 or span[0] >= spans[at - 1][1]]
    return kept or None


def has_all(texts: Iterable[str], query_words: Sequence[str]) -> bool:
    """Return whether all words of a query occur in texts, each phrase within one of them."""
    held = [_pad(text) for text in texts]
    return all(any(f" {phrase} " in text for text in held) for phrase in query_words)


def has_any(texts: Iterable[str], query_words: Sequence[str]) -> bool:
    """Return whether some word of a query occurs in texts."""
    return any(f" {phrase} " in held for held in map(_pad, texts) for phrase in query_words)


def words_in(text: str, query_words: Sequence[str]) -> int:
    """Return how many words of a query occur in a text."""
    held = _pad(text)
    return sum(f" {phrase} " in held for phrase in query_words)


def _pad(text: str) -> str:
    return f" {' '.join(folded(text).split())} "


@cache
def _base(character: str) -> str:
    return "".join(one for one in unicodedata.normalize("NFKD", character) if not unicodedata.combining(one))


def _fold(word: str) -> str:
    lower = word.casefold()
    return lower if lower.isascii() else "".join(map(_base, lower))
