"""The language of search: `refund "two words" suite:billing state:fail role:user -goodwill`.

All words must occur, all operators must hold. An operator is `name:value`; the same operator twice means either value.
A leading `-` excludes. Quotation marks keep words together, and turn what looks like an operator into words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, get_args

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.store.search.words import folded

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
        raise UsageError(f"search: '{name}:{value[:40]}' is not a day; write {_example(name)}") from error


def _example(name: str) -> str:
    return next(one.example for one in OPERATORS if one.name == name)


def written(query: str, *terms: tuple[Field, str]) -> str:
    """Return a query with operators added as one would type them."""
    return " ".join([query.strip(), *(f"{field}:{quoted(value)}" for field, value in terms)]).strip()


def quoted(value: str) -> str:
    """Return the value of an operator as it is typed, in quotation marks where it needs them."""
    plain = re.fullmatch(r"[\w.][^\s\"]*", value) is not None
    return value if plain else f'"{value.replace(chr(34), "")}"'
