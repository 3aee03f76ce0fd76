"""The language of search and its words: how a query is read, and how texts are cut into words."""

from __future__ import annotations

import json
import re
import string
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from typing import Any, Literal, NamedTuple, get_args

import regex
from sqlalchemy import Connection, select

from vivavoce.errors import UsageError, did_you_mean
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


MAX_STRETCH_CHARS = 30_000
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
        for start in range(0, len(text), MAX_STRETCH_CHARS):
            piece = text[start : start + MAX_STRETCH_CHARS]
            if size + len(piece) > MAX_STRETCH_CHARS:
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


Field = Literal["run", "suite", "target", "grader", "state", "tag", "role", "before", "after"]
Role = Literal["user", "assistant", "tool"]

FIELDS: tuple[Field, ...] = get_args(Field)
STATES = ("pass", "fail", "error", "measured", "skip")
ROLES: tuple[Role, ...] = get_args(Role)
TIMES = ("before", "after")
OF_RUNS = ("run", "suite", "target", *TIMES)
"""The operators that say something about a run."""
LONGEST = 2000
"""Maximum characters of a query."""
MOST_WORDS = 16
"""Maximum number of words in a query."""
MOST_TERMS = 20
"""Maximum number of operators in a query."""


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator as people are told of it: what it selects, and an example of its values."""

    name: Field
    selects: str
    example: str


OPERATORS = (
    Operator("run", "one run, by its id, the beginning or the end of it, or latest", "run:latest"),
    Operator("suite", "runs of a suite", 'suite:"support bot"'),
    Operator("target", "what a target said, and what was said of it", "target:bot"),
    Operator("grader", "reasons of a grader; with state also conversations that it judged so", "grader:goal"),
    Operator("state", f"conversations and scores by their state: {', '.join(STATES)}", "state:fail"),
    Operator("tag", "conversations whose sample has a tag", "tag:slow"),
    Operator("role", f"words that one speaker said: {', '.join(ROLES)}", "role:tool"),
    Operator("before", "runs that started before a day", "before:2026-11-01"),
    Operator("after", "runs that started on a day or later", "after:2026-10-01"),
)

_QUOTED = r'"[^"]*"'
_PIECE = re.compile(
    rf"(?P<minus>-)?(?:(?P<name>[A-Za-z_]{{2,}}):(?P<value>{_QUOTED}|[\w.]\S*)|(?P<word>{_QUOTED}|\S+))"
)
_BARE = re.compile(rf"-?({'|'.join(FIELDS)}):(?=\s|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Term:
    """An operator with its value."""

    field: Field
    value: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A query: phrases of folded words that must occur, those that must not, and the operators."""

    words: tuple[str, ...]
    excluded: tuple[str, ...] = ()
    terms: tuple[Term, ...] = ()

    def wanted(self, field: Field) -> tuple[str, ...]:
        """Return the values of an operator, one of which must hold; none if it is not used."""
        return tuple(term.value for term in self.terms if term.field == field and not term.negated)

    def unwanted(self, field: Field) -> tuple[str, ...]:
        """Return the excluded values of an operator."""
        return tuple(term.value for term in self.terms if term.field == field and term.negated)

    @property
    def finds(self) -> tuple[bool, bool]:
        """Whether it can find conversations, and whether reasons: a role says nothing of reasons, a grader only them.

        With a state, a grader says something of conversations, too.
        """
        return self.uses("state") or not self.wanted("grader"), not self.uses("role")

    @property
    def is_of_runs(self) -> bool:
        """Whether its operators say something of runs alone, so that it may find runs and comments."""
        return all(term.field in OF_RUNS for term in self.terms)

    def uses(self, *fields: Field) -> bool:
        """Return whether one of these operators is in it."""
        return any(term.field in fields for term in self.terms)


def parse_query(text: str) -> Query:
    """Return a query read from what somebody typed.

    Raises:
        UsageError: an operator or its value is unknown, or there is nothing to look for.
    """
    if len(text) > LONGEST:
        raise UsageError(f"search: {len(text):,} characters, at most {LONGEST:,} allowed")
    if bare := _BARE.search(" " + text):
        raise UsageError(f"search: '{bare[1]}:' needs a value right after it, such as {_example(bare[1].lower())}")
    words: dict[str, None] = {}
    excluded: dict[str, None] = {}
    terms: dict[Term, None] = {}
    for found in _PIECE.finditer(text):
        if (name := found["name"]) is not None:
            terms[_term(name, found["value"].strip('"'), found["minus"] is not None)] = None
        elif phrase := " ".join(folded(found["word"]).split()):
            (words if found["minus"] is None else excluded)[phrase] = None
    if not words and not terms:
        if excluded:
            raise UsageError("search: every term excludes; add a word or an operator to search for")
        raise UsageError(f"there is no word to search for in '{text}'")
    if (number := len(words) + len(excluded)) > MOST_WORDS:
        raise UsageError(f"search for at most {MOST_WORDS} words at a time, got {number}")
    if len(terms) > MOST_TERMS:
        raise UsageError(f"search: {len(terms)} operators, at most {MOST_TERMS} allowed")
    return Query(tuple(words), tuple(excluded), tuple(terms))


def start_of(day: str) -> float:
    """Return the time at which a day, as `2026-11-01`, begins here, in seconds since the epoch."""
    return datetime.combine(date.fromisoformat(day), datetime.min.time()).timestamp()


def _term(typed: str, value: str, negated: bool) -> Term:
    name = typed.lower()
    if name not in FIELDS:
        quoted = f"{typed}:{value}"[:60]
        hint = did_you_mean(name, FIELDS)
        raise UsageError(f"search: no operator '{typed}'{hint}; to find it as text, write \"{quoted}\"")
    if name in TIMES:
        if negated:
            other = "after" if name == "before" else "before"
            raise UsageError(f"search: '{name}:' cannot be excluded; write {other}:{value}")
        _check_day(name, value)
    if name == "role" and negated:
        raise UsageError("search: 'role:' cannot be excluded; name the roles to search, such as role:user role:tool")
    for field, known in (("state", STATES), ("role", ROLES)):
        if name == field:
            value = value.lower()
            if value not in known:
                raise UsageError(f"search: no {field} '{value}'{did_you_mean(value, known)}")
    return Term(name, value, negated)


def _check_day(name: str, value: str) -> None:
    try:
        start_of(value)
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(f"search: '{name}:{value[:40]}' is not a date; write {_example(name)}") from error


def _example(name: str) -> str:
    return next(one.example for one in OPERATORS if one.name == name)


def written(query: str, *terms: tuple[Field, str]) -> str:
    """Return a query with operators added as one would type them."""
    return " ".join([query.strip(), *(f"{field}:{quoted(value)}" for field, value in terms)]).strip()


def quoted(value: str) -> str:
    """Return the value of an operator as it is typed, in quotation marks where it needs them."""
    plain = re.fullmatch(r"[\w.][^\s\"]*", value) is not None
    return value if plain else f'"{value.replace(chr(34), "")}"'
