"""A conversation on a page: its transcript with the scores of each turn, what changed in its state, and comments."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from markupsafe import Markup, escape
from pydantic import JsonValue

from vivavoce.comparing.json_values import same_json
from vivavoce.metrics.exact.arguments import at_path
from vivavoce.records.agents import Agents
from vivavoce.records.details import spent, usage_text
from vivavoce.records.label import Comment
from vivavoce.records.run import Attempt, Outcome
from vivavoce.records.score import Failure, to_index, to_number
from vivavoce.records.trajectory import Test, Trajectory
from vivavoce.report.html.evidence import Register
from vivavoce.report.html.outline import Window, found_words, outline, window
from vivavoce.report.html.plots import strip
from vivavoce.report.html.score_notes import (
    Exchanges,
    ScoreNote,
    TurnGrades,
    each_failure_once,
    state_of,
    test_notes,
    turn_grades,
    turn_notes,
    whole_notes,
)
from vivavoce.report.html.transcript import Part, Showing, ShownTurn, Thought, Writer, goal_judgement, steps, thoughts
from vivavoce.report.tester import discarded_title, turn_results
from vivavoce.report.text import one_line, span
from vivavoce.report.transcript import REWARD, Cause, causes
from vivavoce.safe_text import safe
from vivavoce.store.runs.rows import SampleStatus, worst_of

MaybeValue = tuple[JsonValue] | None
"""A value alone in a tuple, None where there is none."""


@dataclass(frozen=True, slots=True)
class StateChange:
    """A path of the state with its value before, after, and as it was expected, None where there is none.

    `holds` says whether what the row expects came true, None where it expects nothing of this path.
    """

    path: str
    before: MaybeValue
    after: MaybeValue
    expected: MaybeValue = None
    holds: bool | None = None


def state_changes(attempt: Attempt) -> list[StateChange]:
    """Return what changed, and what the row expects and did not come true; nothing where no state is recorded.

    Of expectations those count that have to hold: not those under `not` and `any`.
    """
    row = cast("Mapping[str, JsonValue]", json.loads(attempt.sample))
    after = cast("JsonValue", attempt.trajectory.state)
    before = row.get("state")
    start = dict(_leaves(before)) if isinstance(before, dict) else {}
    expectations = list(_read_expectations(row.get("expect")))
    if after is None or not (isinstance(before, dict) or expectations):
        return []
    end = dict(_leaves(after))
    expected = {path: value for base, value in expectations for path, value in _expand_expectation(base, value, after)}
    paths = {**start, **(end if isinstance(before, dict) else {}), **expected}
    changes = (_change(path, start, end, expected) for path in paths)
    known = isinstance(before, dict)
    return [change for change in changes if change.holds is False or (known and not _same(change.before, change.after))]


def _change(
    path: str, start: Mapping[str, JsonValue], end: Mapping[str, JsonValue], expected: Mapping[str, MaybeValue]
) -> StateChange:
    before, after = ((side[path],) if path in side else None for side in (start, end))
    if path not in expected:
        return StateChange(path, before, after)
    return StateChange(path, before, after, expected[path], _same(after, expected[path]))


def _same(first: MaybeValue, other: MaybeValue) -> bool:
    return first is other if first is None or other is None else same_json(first[0], other[0])


def _leaves(value: JsonValue, path: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Yield the values that hold no others, and empty ones, with their paths."""
    pending = [(path, value)]  # a list instead of recursion: a state may nest deeper than Python can call
    while pending:
        place, node = pending.pop()
        inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        steps = [(f"{place}.{key}" if place else str(key), each) for key, each in inner]
        if steps:
            pending += reversed(steps)
        else:
            yield place, node


def _read_expectations(expect: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """Yield what the assertions of a row want at which path of the state, "" for all of it."""
    if isinstance(expect, list):
        for assertion in expect:
            yield from _read_expectations(assertion)
    elif isinstance(expect, dict):
        yield from _read_expectations(expect.get("all"))
        state = expect.get("state")
        yield from state.items() if isinstance(state, dict) else ()
        if "final_state" in expect:
            yield "", expect["final_state"]


def _expand_expectation(base: str, expected_value: JsonValue, after: JsonValue) -> Iterator[tuple[str, MaybeValue]]:
    """Yield what is expected below a path: each value that is wanted, and None for one that is there unwanted."""
    actual = (after,) if not base else at_path(after, base)
    inside = dict(_leaves(expected_value, base))
    for path in _leaves(actual[0], base) if actual is not None else ():
        if path[0] not in inside:
            yield path[0], None
    yield from ((path, (value,)) for path, value in inside.items())


_TURN = re.compile(r"(?<![\w#/])#t([1-9][0-9]{0,8})\b", re.ASCII)

Place = Callable[[int], str | None]
"""Returns the address of a turn, None if there is no such page."""


@dataclass(frozen=True, slots=True)
class CommentShown:
    """A comment; `resolved` is who resolved it, empty while it is open, `may_remove` is of the person who looks."""

    id: int
    author: str
    html: Markup
    at: float
    resolved: str
    may_remove: bool


def shown_comments(
    comments: Sequence[Comment], turns: int, place_of: Place, who: str, *, removes_all: bool
) -> dict[int | None, list[CommentShown]]:
    """Return comments by turn, oldest first; `removes_all` means that this person may remove anybody's."""
    comments_by_turn: dict[int | None, list[CommentShown]] = {}
    for comment in comments:
        comments_by_turn.setdefault(comment.turn, []).append(
            CommentShown(
                id=comment.id,
                author=safe(comment.author),
                html=comment_html(comment.text, turns, place_of),
                at=comment.created_at,
                resolved=safe(comment.resolved_by or ""),
                may_remove=removes_all or comment.author == who,
            )
        )
    return comments_by_turn


def comment_html(text: str, turns: int, place_of: Place) -> Markup:
    """Return a text escaped; a reference to one of the `turns`, such as `#t3`, becomes a link."""
    pieces: list[Markup] = []
    at = 0
    for match in _TURN.finditer(text):
        index = to_index(int(match[1]))
        address = place_of(index) if index < turns else None
        if address is None:
            continue
        pieces.append(escape(safe(text[at : match.start()])))
        pieces.append(Markup('<a href="{}">{}</a>').format(address, match[0]))
        at = match.end()
    return Markup("").join([*pieces, escape(safe(text[at:]))])


CAUSES = 8
"""Causes that stand open at the top; the others are folded."""
OUTLINED = 8
"""Turns from which a conversation has an outline."""
CHANGES = 50
"""Changes of the state that are shown."""
_VALUE = 200
_WHY = 280
"""Characters of a cause."""

Link = Callable[[int], str | None]
"""Returns the address of the part of the conversation that begins with a turn, None if there is no such page."""


def conversation(
    outcome: Outcome,
    link: Link,
    first: int = 0,
    prefix: str = "",
    showing: Showing | None = None,
    find: str = "",
) -> dict[str, object]:
    """Return the values for the template of a conversation, without links to other pages.

    The part with turn `first` is shown. `prefix` begins all element ids, so that several conversations can be on one
    page, and `showing` says how messages are shown. The turns that hold the words `find` are listed.
    """
    attempt, talk = outcome.attempt, outcome.attempt.trajectory
    showing = showing or Showing()
    part = window(talk, first, by_size=link(0) is not None)
    register = Register(prefix, f"p{to_number(part.first)}-" if part.first else "")
    by_turn = turn_grades(outcome)
    exchanges = Exchanges.of(outcome, showing.exchange)
    whole = exchanges.add_links(whole_notes(outcome, register), None)
    tested = test_notes(talk.test, register)
    shown_failures: set[Failure] = set()
    writer = Writer(register, showing, agents=Agents(talk.messages))
    opening, shown_turns = _turns(talk, by_turn, [*whole, *tested], writer, part, exchanges, shown_failures)
    failures = [talk.failure] if talk.failure is not None and talk.failure not in shown_failures else []
    whole = each_failure_once(whole, shown_failures.union(failures))
    final = next((note for note in reversed(whole) if note.number), None)
    place_of = _places(link, part, prefix)
    states = _states(talk, by_turn)
    known: list[SampleStatus | None] = [
        state if turn.index in by_turn or turn.failure else None for turn, state in zip(talk.turns, states, strict=True)
    ]
    cause_rows = _cause_rows(outcome, place_of, prefix)
    changed = state_changes(attempt)
    return {
        "attempt": attempt,
        "sample": _sample(attempt.sample),
        "talk": talk,
        "opening": opening,
        "turns": shown_turns,
        "notes": whole,
        "final": final if len(whole) == 1 or outcome.reward is not None else None,
        "state": "error" if talk.failure else worst_of(note.state for note in whole),
        "strip": strip(states) if by_turn else None,
        "outline": outline(talk, known, part) if len(talk.turns) >= OUTLINED else [],
        "found": found_words(talk, find, known) if find else None,
        "causes": cause_rows,
        "causes_open": CAUSES,
        "windows": _windows(link, len(talk.turns), part),
        "from_first": part.first,
        "prefix": prefix,
        "raw": writer.showing.raw,
        "place_of": place_of,
        "facts": _facts(outcome),
        "ending": _ending(talk.test, tested),
        "discarded": [_build_discarded(i, test) for i, test in enumerate(talk.test.discarded)] if talk.test else [],
        "failures": failures,
        "changes": [_shown_change(change) for change in changed[:CHANGES]],
        "changes_left": max(len(changed) - CHANGES, 0),
    }


def _shown_change(change: StateChange) -> dict[str, object]:
    """Return a path of the state with its values as JSON on one line, empty where there is none."""
    values = {"before": change.before, "after": change.after, "expected": change.expected}
    texts = {
        name: "" if value is None else one_line(json.dumps(value[0], ensure_ascii=False), _VALUE)
        for name, value in values.items()
    }
    return {"path": one_line(change.path, _VALUE), "holds": change.holds, **texts}


def _turns(
    talk: Trajectory,
    by_turn: TurnGrades,
    whole: Sequence[ScoreNote],
    writer: Writer,
    part: Window,
    exchanges: Exchanges,
    shown_failures: set[Failure],
) -> tuple[list[Part], list[ShownTurn]]:
    """Return the messages before the first turn, and the turns of this part; their failures count as shown."""
    opening = writer.parts(talk.opening, None)
    shown_turns: list[ShownTurn] = []
    for turn in talk.turns[: part.first]:
        writer.skip(turn.messages)
    turns = talk.turns[part.first : part.end]
    by_place = {turn.index: turn_notes(by_turn, turn.index, writer.register) for turn in turns}
    for turn in turns:
        parts = writer.parts(turn.messages, turn.index)
        about = [
            (note, quote, what)
            for note in whole
            for quote, what in note.cited
            if quote.turn == turn.index and quote.letter
        ]
        if turn.failure is not None:
            shown_failures.add(turn.failure)
        notes = each_failure_once(exchanges.add_links(by_place[turn.index], turn.index), shown_failures)
        test, index = talk.test, turn.index
        so_far = goal_judgement(test, index), safe(turn_results(test, index))
        shown_turns.append(ShownTurn(turn, parts, notes, thoughts(test, index), about, *so_far))
    return opening, shown_turns


def _states(talk: Trajectory, by_turn: TurnGrades) -> list[SampleStatus]:
    """Return the state of each turn; an ungraded turn counts as skipped."""
    return [
        "error" if turn.failure else worst_of(state_of(grade) for *_, grade in by_turn.get(turn.index, ()))
        for turn in talk.turns
    ]


@dataclass(frozen=True, slots=True)
class _CauseRow:
    """A cause as the head of the page tells it; `link` leads to its place, None if this page has none."""

    cause: Cause
    link: str | None
    name: str
    text: str
    agent: str = ""


def _cause_rows(outcome: Outcome, place_of: Link, prefix: str) -> list[_CauseRow]:
    """Return the causes, except what broke the whole conversation, which is in full below the head."""
    notes = {name: f"#{prefix}m{number}" for number, name in enumerate(outcome.scores)}
    notes[REWARD] = f"#{prefix}m-reward"
    rows: list[_CauseRow] = []
    for cause in causes(outcome):
        if cause.grader is None and cause.turn is None and cause.state == "error":
            continue
        link = f"#{prefix}verdict" if cause.grader is None else notes[cause.grader]
        rows.append(
            _CauseRow(
                cause=cause,
                link=link if cause.turn is None else place_of(cause.turn),
                name=safe("test" if cause.grader is None and cause.turn is None else cause.grader or ""),
                text=one_line(cause.text, _WHY),
                agent=one_line(cause.agent),
            )
        )
    return rows


def _places(link: Link, part: Window, prefix: str) -> Link:
    """Return a function that returns the address of a turn, None if there is no such page."""

    def place_of(turn: int) -> str | None:
        page = "" if part.first <= turn < part.end else link(turn)
        return None if page is None else f"{page}#{prefix}t{to_number(turn)}"

    return place_of


def _windows(link: Link, turns: int, part: Window) -> dict[str, object]:
    """Return which turns these are, of how many, and the links to those before and after."""
    before = None if part.before is None else link(part.before)
    after = link(part.end) if part.end < turns else None
    position = {"first": part.first, "last": part.end - 1, "turns": turns, "following": part.following}
    return {"before": before, "after": after, **position}


def _sample(text: str) -> dict[str, Any]:
    parsed = json.loads(text)
    return cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}


def _facts(outcome: Outcome) -> list[tuple[str, str]]:
    """Return how long it took, and what each role used."""
    seconds = outcome.attempt.trajectory.seconds
    took = [] if seconds is None else [("took", span(seconds))]
    return took + [(role, usage_text(used)) for role, used in spent(outcome).items()]


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a test ended, as its tester recorded it."""

    status: str
    passed: bool | None
    stopped: str
    blame: str
    rules: list[tuple[str, str, str]]
    unfinished: list[Thought]
    covered: list[str]
    notes: list[ScoreNote]


def _ending(test: Test | None, notes: list[ScoreNote]) -> _Ending | None:
    if test is None:
        return None
    return _Ending(
        status=safe(test.ending),
        passed=test.target_passed,
        stopped=safe(test.stop_reason),
        blame=safe(f"{test.blame}: {test.blame_reason}") if test.blame else "",
        rules=[
            (criterion.state, criterion.verdict.capitalize(), safe(criterion.sentence)) for criterion in test.criteria
        ],
        unfinished=steps(test.unfinished),
        covered=[safe(str(phase)) for phase in test.coverage],
        notes=notes,
    )


@dataclass(frozen=True, slots=True)
class _Discarded:
    """A try that the tester spoilt."""

    title: str
    parts: list[Part]


def _build_discarded(index: int, test: Test) -> _Discarded:
    writer = Writer(Register())
    parts = writer.parts(test.opening, None)
    for turn in test.history:
        parts += [] if turn.exchange is None else writer.parts(turn.exchange.messages, None)
    return _Discarded(discarded_title(index, test), parts)
