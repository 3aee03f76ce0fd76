"""Filters of samples as text; filters, orders, and cursors as conditions for the database, with bound parameters."""

from __future__ import annotations

import base64
import binascii
import json
import math
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypedDict, cast, get_args

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    and_,
    column,
    exists,
    func,
    literal,
    literal_column,
    not_,
    or_,
    select,
    table,
    tuple_,
)
from sqlalchemy import (
    cast as sql_cast,
)
from sqlalchemy.dialects.postgresql import TSQUERY

from vivavoce.errors import NotFound, UsageError, did_you_mean
from vivavoce.lazy_names import lazy
from vivavoce.records.run import Status
from vivavoce.store.database.schema import (
    Text,
    attempts,
    comments,
    gradings,
    json_text,
    labels,
    passages,
    runs,
    sample_index,
    scores,
)
from vivavoce.store.runs.rows import LAST, tagged

Field = Literal["state", "target", "sample", "trial", "tag", "cause", "has", "text"]
Number = Literal["turns", "trial", "seconds", "tokens", "cost", "worst"]
Operator = Literal["<", "<=", ">", ">=", "=", "!="]

FIELDS: tuple[str, ...] = get_args(Field)
NUMBERS: tuple[str, ...] = get_args(Number)
STATES = ("pass", "fail", "error", "measured", "skip", "scored", "skipped")
HAVING = ("comment", "open-comment", "label")
"""What a conversation may have of people."""
LONGEST = 2000
"""Maximum characters of a filter."""
MOST = 20
"""Maximum terms of a filter."""

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_TERM = re.compile(
    rf"""(?P<minus>-)?
    (?: (?P<field>[^\s":<>=!-][^\s":<>=!]*):(?P<value>{_QUOTED}|[^\s"]+)
      | (?P<name>{_QUOTED}|[^\s":<>=!-][^\s":<>=!]*)(?P<operator><=|>=|!=|<|>|=)(?P<number>[^\s"]+)
      | (?P<word>{_QUOTED}|[^\s":<>=!-][^\s":<>=!]*) )
    (?=\s|$)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Has:
    """A term `field:value`, such as `state:error`; the value of `sample` may end in `*`."""

    field: Field
    value: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Compares:
    """A comparison of a number: the score of a grader if `grader` is set, else a number that every attempt has."""

    name: str
    operator: Operator
    value: float
    grader: bool
    negated: bool = False


Term: TypeAlias = Has | Compares


def parse_filter(text: str) -> tuple[Term, ...]:
    """Return the terms of a filter, none for an empty text.

    Raises:
        UsageError: it cannot be read; the message says at which character, counted from 1.
    """
    if len(text) > LONGEST:
        raise UsageError(f"filter: {len(text):,} characters, at most {LONGEST:,} allowed")
    terms: list[Term] = []
    at = _blank(text, 0)
    while at < len(text):
        found = _TERM.match(text, at)
        if found is None:
            raise _wrong(at, f"'{_piece(text, at)}' is not a term; write state:error, goal<0.5 or text:\"two words\"")
        terms.append(_term(found, at))
        at = _blank(text, found.end())
    if len(terms) > MOST:
        raise UsageError(f"filter: {len(terms)} terms, at most {MOST} allowed")
    return tuple(terms)


def quoted(value: str) -> str:
    """Return a value as a filter has it, in quotation marks."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _term(found: re.Match[str], at: int) -> Term:
    negated = found["minus"] is not None
    if (word := found["word"]) is not None:
        return Has("text", _plain(word), negated)
    if (name := found["name"]) is not None:
        number = _number(found["number"], found.start("number"))
        grader = name.startswith('"') or name not in NUMBERS
        return Compares(_plain(name), cast("Operator", found["operator"]), number, grader, negated)
    field, value = found["field"], _plain(found["value"])
    if field not in FIELDS:
        raise _wrong(at, f"no field '{field}'{did_you_mean(field, FIELDS)}; put quotation marks around a text")
    if field == "state" and value not in STATES:
        raise _wrong(found.start("value"), f"no state '{value}'{did_you_mean(value, STATES)}")
    if field == "has" and value not in HAVING:
        raise _wrong(found.start("value"), f"no has:{value}{did_you_mean(value, HAVING)}")
    if field == "trial":
        return Compares("trial", "=", _number(value, found.start("value")), grader=False, negated=negated)
    return Has(cast("Field", field), value, negated)


def _number(text: str, at: int) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise _wrong(at, f"'{_piece(text, 0)}' is not a number")
    return number


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text


def _blank(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _piece(text: str, at: int) -> str:
    return text[at : at + 40].partition(" ")[0]


def _wrong(at: int, what: str) -> UsageError:
    return UsageError(f"filter, character {at + 1}: {what}")


Condition = ColumnElement[bool]

_COMPARISONS: Mapping[Operator, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True, slots=True)
class Within:
    """The run and the grading of a query, and whether the database is PostgreSQL.

    `ended` is when the scores were complete, None while they may change.
    """

    run_id: str
    grading_id: str
    postgresql: bool
    ended: float | None = None


def conditions(terms: Sequence[Term], within: Within) -> list[Condition]:
    """Return the condition for the samples of a grading that match a filter.

    Raises:
        UsageError: a searched text has no word in it.
    """
    found = [sample_index.c.grading_id == within.grading_id]
    for term in terms:
        one = _compare(term, within) if isinstance(term, Compares) else _has(term, within)
        found.append(not_(one) if term.negated else one)
    return found


@dataclass(frozen=True, slots=True)
class Ordering:
    """A sort order of samples: the columns `names`, with the `kinds` of values in a cursor.

    `extra` is selected in addition to the sample, from `table`.
    """

    columns: Sequence[ColumnElement[Any]]
    names: Sequence[str]
    kinds: Sequence[type]
    table: FromClause
    extra: Sequence[ColumnElement[Any]] = ()
    down: bool = False

    @property
    def by(self) -> list[ColumnElement[Any]]:
        """The columns in their direction."""
        return [column.desc() if self.down else column for column in self.columns]

    def beyond(self, place: Sequence[Any]) -> Condition:
        """Return the condition for everything after a cursor."""
        return tuple_(*self.columns) < place if self.down else tuple_(*self.columns) > place


def ordering(sort: str, within: Within) -> Ordering:
    """Return the sort order of attempts; see `Browse.samples`."""
    d = sample_index.c
    down = sort.startswith("-")
    name = sort[1:] if down else sort
    if name == "position":  # as they are in the table, so that no page needs more than it shows
        return Ordering((d.position, d.attempt_id), ("position", "attempt_id"), (int, int), sample_index, down=down)
    joined: FromClause = sample_index
    if name == "worst":
        value: ColumnElement[Any] = d.lowest if down else d.rank
    elif name in NUMBERS:
        value = d[name] * 1.0
    else:
        value = scores.c.value
        joined = sample_index.outerjoin(scores, and_(_match_name(name, within), scores.c.attempt_id == d.attempt_id))
    key = func.coalesce(-value if down else value, LAST)
    names = ("sort_key", "position", "attempt_id")
    return Ordering((key, d.position, d.attempt_id), names, (float, int, int), joined, (key.label("sort_key"),))


def _has(term: Has, within: Within) -> Condition:
    a, d = attempts.c, sample_index.c
    value = term.value
    match term.field:
        case "state" if value == "scored":
            return or_(d.lowest.is_not(None), d.state == "measured")
        case "state" if value == "skipped":
            return d.skips > 0
        case "state":
            return d.state == value
        case "tag":
            places = (func.strpos if within.postgresql else func.instr)(d.tags, literal(tagged(value), Text(nul=False)))
            return func.coalesce(places, 0) > 0
        case "has":
            return d.attempt_id.in_(_with(value))
        case "sample" if value.endswith("*"):
            # between two texts, for an index; SQLite's LIKE knows no case
            return _attempts(within, a.sample_id >= value[:-1], a.sample_id < f"{value[:-1]}\U0010ffff")
        case "sample":
            return _attempts(within, a.sample_id == value)
        case "target":
            return d.target == value
        case "cause":
            return and_(d.cause.is_not(None), d.cause == value)
        case _:
            return d.attempt_id.in_(_mentions(term.value, within))


def _with(what: str) -> Select[tuple[int]]:
    """Return the attempts, of any run, on which people left something."""
    if what == "label":
        return select(labels.c.attempt_id)
    query = select(comments.c.attempt_id)
    return query if what == "comment" else query.where(comments.c.resolved_at.is_(None))


def _attempts(within: Within, *which: Condition) -> Condition:
    return sample_index.c.attempt_id.in_(select(attempts.c.id).where(attempts.c.run_id == within.run_id, *which))


def _mentions(value: str, within: Within) -> Select[tuple[int]]:
    phrase = " ".join(lazy("vivavoce.store.search.query:folded")(value).split())
    if not phrase:
        raise UsageError(f"filter: there is no word to search for in '{value[:40]}'")
    mark = lazy("vivavoce.store.search.search:mark_of")(within.run_id)
    found = select(passages.c.attempt_id).where(passages.c.grading_id.in_(("", within.grading_id)))
    if within.postgresql:
        tsquery = func.phraseto_tsquery("simple", phrase).op("&&")(sql_cast(f"'run:{mark}'", TSQUERY))
        return found.where(literal_column("passages.words").op("@@")(tsquery))
    index = table("passage_words", column("rowid"))
    match = literal_column("passage_words").op("MATCH")(f'words : "{phrase}" AND run : "{mark}"')
    return found.join(index, index.c.rowid == passages.c.id).where(match)


def _compare(term: Compares, within: Within) -> Condition:
    compare, d, s = _COMPARISONS[term.operator], sample_index.c, scores.c
    if term.grader:
        return d.attempt_id.in_(
            select(s.attempt_id).where(_match_name(term.name, within), compare(s.value, term.value))
        )
    match term.name:
        case "worst":
            return compare(d.lowest, term.value)
        case "trial":
            return compare(d.trial + 1.0, term.value)
        case "turns" | "tokens":
            return compare(d[term.name] * 1.0, term.value)
        case _:
            return compare(d[term.name], term.value)


def _match_name(name: str, within: Within) -> Condition:
    s = scores.c
    return and_(s.name == name, s.grading_id == within.grading_id, s.turn.is_(None))


ListedVerdict = Literal["pass", "fail", "inconclusive", "none"]
"""The verdict of a run in a list; `none` is one without a gate, or without a summary yet."""


class RunFilter(TypedDict, total=False):
    """Which runs: all that is set holds. `whole` leaves out partial runs.

    `text` is part of the id, of the title or of the name of the suite; `since` and `until` are times of the start in
    seconds since the epoch, the second one not included.
    """

    suite: str | None
    status: Status | None
    verdict: ListedVerdict | None
    target: str | None
    tag: str | None
    text: str | None
    since: float | None
    until: float | None
    whole: bool


def run_conditions(which: RunFilter, dead: Collection[str], *, postgresql: bool) -> list[ColumnElement[bool]]:
    """Return the conditions for the runs of a list; `dead` are those that are interrupted and recorded as running."""
    r, g, found = runs.c, gradings.c, list[ColumnElement[bool]]()
    place = func.strpos if postgresql else func.instr
    if (suite := which.get("suite")) is not None:
        found.append(r.suite == suite)
    if (status := which.get("status")) is not None:
        found.append(or_(r.status == status, r.id.in_(dead)) if status == "interrupted" else r.status == status)
        if status == "running":
            found.append(r.id.not_in(dead))
    if which.get("whole"):
        found.append(r.partial_of.is_(None))
    if (since := which.get("since")) is not None:
        found.append(r.started_at >= since)
    if (until := which.get("until")) is not None:
        found.append(r.started_at < until)
    if text := which.get("text"):
        part, named = text.lower(), (r.id, r.suite, func.coalesce(r.title, ""))
        found.append(
            or_(*(func.lower(column, type_=Text(nul=False)).contains(part, autoescape=True) for column in named))
        )
    if (tag := which.get("tag")) is not None:
        found.append(func.coalesce(place(r.tags, literal(tagged(tag), Text)), 0) > 0)
    if (target := which.get("target")) is not None:  # as the JSON of a summary names it
        named_so = place(g.summary, literal(f'"target":{json_text(target)}', Text)) > 0
        found.append(exists().where(g.run_id == r.id, named_so))
    if (verdict := which.get("verdict")) is not None:
        newest = select(g.verdict).where(g.run_id == r.id)
        newest = newest.order_by(g.finished_at.is_not(None).desc(), g.created_at.desc(), g.id.desc()).limit(1)
        found.append(func.coalesce(newest.scalar_subquery(), "none") == verdict)
    return found


Key = str | int | float
INTEGER_BOUND = 2**63


def encode_cursor(values: Sequence[Key]) -> str:
    """Return the cursor after a row."""
    return base64.urlsafe_b64encode(json.dumps(list(values)).encode()).decode().rstrip("=")


def beside(ends: Sequence[str], *, more: bool, after: str | None, before: str | None) -> tuple[str | None, str | None]:
    """Return the cursors of the next and of the previous page of one; `ends` are those of its first and last row.

    `more` says that the list goes on in the direction in which the page was read: back where it stood `before` a place.
    """
    if not ends:
        return None, None
    back = before is not None
    return ends[-1] if more or back else None, ends[0] if (more if back else after is not None) else None


def read_place(place: str, *kinds: type) -> tuple[Any, ...]:
    """Return the sort values of a cursor, one of each kind; a whole number counts as a number.

    Raises:
        NotFound: the text is not a cursor, or is the cursor of another order.
    """
    try:
        parsed = json.loads(base64.urlsafe_b64decode(place.encode() + b"=" * (-len(place) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        parsed = None
    values = cast("list[Any]", parsed) if isinstance(parsed, list) else []
    if len(values) != len(kinds) or not all(map(_fits, values, kinds)):
        raise no_cursor(place)
    return tuple(values)


def no_cursor(place: str) -> NotFound:
    """Return the error for an invalid cursor."""
    return NotFound("cursor", place, hint="; start the list again without it")


def _fits(value: object, kind: type) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    if isinstance(value, str):
        return kind is str
    if isinstance(value, int):
        return kind is not str and -INTEGER_BOUND <= value < INTEGER_BOUND
    return kind is float and math.isfinite(value)
